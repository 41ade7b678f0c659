package leasetest_test

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// TestMain runs more tests in parallel than the machine has processors, since they
// mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32")
	m.Run()
}

func TestStore(t *testing.T) {
	store, ttl := new(leasetest.Store), time.Second
	if testing.Short() {
		ttl = 300 * time.Millisecond
	}
	leasetest.TestStore(t, leasetest.Harness{TTL: ttl, Open: func(*testing.T, bool) nodelease.Store { return store }})
}

// A store that has lost its last writes renews the claims of before, refuses lost ones,
// and grants nothing until the longest TTL has passed.
func TestLoseWrites(t *testing.T) {
	clock := time.Unix(1_800_000_000, 0)
	now := func(d time.Duration) int64 { return clock.Add(d).UnixMilli() }
	store, p := &leasetest.Store{Clock: func() time.Time { return clock }}, nodelease.Pool{Name: "p", Size: 3, Layout: "of a test"}
	ask := func(holder string) nodelease.Request {
		return nodelease.Request{Holder: holder, TTL: time.Minute, Now: now(0), Until: now(time.Minute), Nonce: "nonce of " + holder}
	}
	claim := func(holder string) nodelease.Claim {
		t.Helper()
		c, err := store.Claim(t.Context(), p, ask(holder))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	kept := claim("kept")
	clock = clock.Add(time.Second)
	since := clock
	if _, err := store.Renew(t.Context(), p, kept, ask("kept")); err != nil {
		t.Fatal(err)
	}
	lost := claim("lost")
	clock = clock.Add(time.Second)
	store.LoseWrites(since)

	if _, err := store.Renew(t.Context(), p, lost, ask("lost")); !errors.Is(err, nodelease.ErrSuperseded) {
		t.Errorf("a claim that was lost: want %v, got %v", nodelease.ErrSuperseded, err)
	}
	kept.Nonce, kept.Past = "nonce of kept", []string{kept.Nonce}
	kept, err := store.Renew(t.Context(), p, kept, ask("kept"))
	if err != nil {
		t.Errorf("a claim whose last renewal was lost: %v", err)
	}
	var busy *nodelease.BusyError
	if _, err := store.Claim(t.Context(), p, ask("new")); !errors.As(err, &busy) || busy.Ahead != 2 || busy.RetryAfter < time.Minute {
		t.Errorf("want two numbers ahead for a minute, got %v", err)
	}
	fence := now(time.Minute)
	clock = clock.Add(busy.RetryAfter)
	if c := claim("new"); c.Number != lost.Number || c.Term != lost.Term || c.After < fence || c.After < lost.Until {
		t.Errorf("want number %d after the fence %d, got %+v", lost.Number, fence, c)
	}
}
