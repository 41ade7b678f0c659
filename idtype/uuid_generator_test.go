package idtype

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// A uuidClock is a clock that a test sets. The wall clock and the monotonic clock advance
// together while a call sleeps.
type uuidClock struct {
	wall   time.Time
	ticks  time.Duration
	frozen bool // the wall clock stands still
	slept  time.Duration
}

func (c *uuidClock) clock() *clock {
	return &clock{
		wall:      func() time.Time { return c.wall },
		monotonic: func() time.Duration { return c.ticks },
		sleep: func(_ context.Context, d time.Duration, _ <-chan struct{}) {
			c.ticks += d
			c.slept += d
			if !c.frozen {
				c.wall = c.wall.Add(d)
			}
		},
	}
}

// newUUIDClock returns a clock and a generator with it.
func newUUIDClock(t *testing.T, c UUIDConfig) (*uuidClock, *UUIDGenerator) {
	t.Helper()
	at := &uuidClock{wall: utc("2026-01-02T03:04:05.678Z")}
	c.Options.clock = at.clock()
	g, err := NewUUIDGenerator(c)
	if err != nil {
		t.Fatal(err)
	}
	return at, g
}

func mustUUID(t *testing.T, g *UUIDGenerator) UUID {
	t.Helper()
	id, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The time and the fraction of an ID are the clock's.
func TestUUIDFraction(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{Random: bytes.NewReader(bytes.Repeat([]byte{0xff}, 4096))})
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "019b7ca9-8f2e-7000-bfff-ffffffffffff"},
		{0, "019b7ca9-8f2e-7001-bfff-ffffffffffff"}, // the same reading
		{time.Microsecond, "019b7ca9-8f2e-7004-bfff-ffffffffffff"},
		{500 * time.Microsecond, "019b7ca9-8f2e-7800-bfff-ffffffffffff"},
		{time.Millisecond - 1, "019b7ca9-8f2e-7fff-bfff-ffffffffffff"},
		{time.Millisecond - 1, "019b7ca9-8f2f-7000-bfff-ffffffffffff"}, // carries
		{0, "019b7ca9-8f2f-7001-bfff-ffffffffffff"},                    // a step back
		{-time.Millisecond, "019b7ca9-8f2f-7002-bfff-ffffffffffff"},    // to an earlier millisecond
		{time.Hour, "019b7ce0-7dae-7000-bfff-ffffffffffff"},
	} {
		at.wall = utc("2026-01-02T03:04:05.678Z").Add(tt.after)
		if id := mustUUID(t, g); id.String() != tt.want {
			t.Errorf("after %v: %v, want %v", tt.after, id, tt.want)
		}
	}
	if s := g.Stats(); s != (GeneratorStats{Minted: 9, ClockRegressions: 1}) {
		t.Errorf("stats %+v", s)
	}
}

// Through random steps of the clock, IDs strictly increase, are never more than a second
// ahead, and calls fail only if the clock is further behind than they may wait.
func TestUUIDClockScripts(t *testing.T) {
	for seed := range uint64(20) {
		at, g := newUUIDClock(t, UUIDConfig{Options: Options{MaxWait: 2 * time.Second}})
		r := rand.New(rand.NewPCG(seed, 1))
		var last UUID
		latest := at.wall
		for range 2000 {
			switch r.IntN(6) {
			case 0:
			case 1:
				at.wall = at.wall.Add(time.Duration(r.Int64N(1e9)))
			case 2:
				at.wall = at.wall.Add(-time.Duration(r.Int64N(9e8)))
			case 3:
				at.wall = at.wall.Add(-time.Duration(r.Int64N(9e9)))
			case 4:
				at.wall = at.wall.Add(time.Duration(r.Int64N(1e4)))
			case 5:
				at.wall = latest.Add(time.Millisecond)
			}
			if at.wall.After(latest) {
				latest = at.wall
			}
			dst := make([]UUID, 1+r.IntN(3))
			before := at.slept
			n, err := g.Fill(t.Context(), dst)
			if slept := at.slept - before; slept > 2*time.Second {
				t.Fatalf("seed %d: slept for %v", seed, slept)
			}
			if behind := latest.Sub(at.wall); err != nil && (!errors.Is(err, ErrClockBackwards) || behind < 2*time.Second || n > 0) {
				t.Fatalf("seed %d: %d IDs, %v, with the clock %v behind", seed, n, err, behind)
			}
			if at.wall.After(latest) {
				latest = at.wall
			}
			for _, id := range dst[:n] {
				if id.Compare(last) <= 0 {
					t.Fatalf("seed %d: %v after %v", seed, id, last)
				}
				last = id
				if ahead := Must(id.Time()).Sub(at.wall); ahead > time.Second {
					t.Fatalf("seed %d: %v is %v ahead", seed, id, ahead)
				}
			}
		}
	}
}

func TestUUIDWaits(t *testing.T) {
	for _, tt := range []struct {
		name    string
		maxWait time.Duration
		back    time.Duration
		slept   time.Duration
		err     error
	}{
		{"a second back costs no wait", 0, time.Second - time.Millisecond, 0, nil},
		{"then it waits", 0, 1500 * time.Millisecond, 501 * time.Millisecond, nil},
		{"within MaxWait", time.Minute, 31 * time.Second, 30*time.Second + time.Millisecond, nil},
		{"but not longer", 0, time.Hour, 0, ErrClockBackwards},
		{"fails at once", -1, 1001 * time.Millisecond, 0, ErrClockBackwards},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, g := newUUIDClock(t, UUIDConfig{Options: Options{MaxWait: tt.maxWait}})
			first := mustUUID(t, g)
			at.wall = at.wall.Add(-tt.back)
			ready := g.Ready()
			id, err := g.Next()
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || (at.slept-tt.slept).Abs() > time.Millisecond {
				t.Errorf("error %v after %v, want %v after %v", err, at.slept, tt.err, tt.slept)
			}
			if !errors.Is(ready, tt.err) || (ready == nil) != (err == nil) {
				t.Errorf("Ready: %v, but Next: %v", ready, err)
			}
			if err == nil && id.Compare(first) <= 0 {
				t.Errorf("%v after %v", id, first)
			}
			at.wall = at.wall.Add(tt.back)
			if id := mustUUID(t, g); id.Compare(first) <= 0 {
				t.Errorf("%v after %v", id, first)
			}
		})
	}
}

// A clock that stands still allows a second's worth of IDs. Then calls fail after MaxWait.
func TestUUIDFrozen(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{Options: Options{MaxWait: 50 * time.Millisecond}})
	at.frozen = true
	dst := make([]UUID, uuidAhead+100)
	n, err := g.Fill(t.Context(), dst)
	if n != uuidAhead+1 || !errors.Is(err, ErrSequenceExhausted) || at.slept != 50*time.Millisecond {
		t.Errorf("%d IDs, %v after %v, want %d and ErrSequenceExhausted after 50 ms", n, err, at.slept, uuidAhead+1)
	}
	if !slices.IsSortedFunc(dst[:n], UUID.Compare) || dst[n-1] == dst[n-2] {
		t.Error("the IDs don't increase")
	}
	if _, err := g.Next(); !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("Next: %v", err)
	}
	at.frozen = false
	if n, err := g.Fill(t.Context(), dst[:400_000]); n != 400_000 || err != nil { // 98 ms' worth: MaxWait bounds only the time without an ID
		t.Errorf("%d IDs, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := g.Fill(ctx, dst); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: %d IDs, %v", n, err)
	}
}

func TestUUIDConfig(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{Options: Options{NotBefore: utc("2026-01-02T03:04:06Z")}})
	if id := mustUUID(t, g); id.String()[:18] != "019b7ca9-9071-7000" || at.slept != 0 {
		t.Errorf("after NotBefore 03:04:06: %v after %v", id, at.slept)
	}
	_, g = newUUIDClock(t, UUIDConfig{Options: Options{NotBefore: utc("2026-01-02T04:00:00Z")}})
	if id, err := g.Next(); !errors.Is(err, ErrClockBackwards) {
		t.Errorf("an hour before NotBefore: %v, %v", id, err)
	}
	for want, c := range map[error]UUIDConfig{
		ErrConfig:        {Options: Options{Lease: struct{ Lease }{}}},
		ErrBeforeEpoch:   {Options: Options{Clock: func() time.Time { return time.UnixMilli(-1) }}},
		ErrTimeExhausted: {Options: Options{Clock: func() time.Time { return time.UnixMilli(1 << 48) }}},
		ErrRange:         {Options: Options{NotBefore: time.UnixMilli(1 << 48)}},
	} {
		if _, err := NewUUIDGenerator(c); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestUUIDEnd(t *testing.T) {
	at, g := newUUIDClock(t, UUIDConfig{})
	if r := g.Remaining(); r < 200*365*24*time.Hour {
		t.Errorf("Remaining = %v", r)
	}
	at.wall = time.UnixMilli(1<<48 - 1).Add(time.Millisecond - time.Microsecond)
	if r := g.Remaining(); r != time.Microsecond {
		t.Errorf("Remaining = %v, want 1µs", r)
	}
	var ids []UUID
	for {
		id, err := g.Next()
		if errors.Is(err, ErrTimeExhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(ids) != 5 || ids[4].String()[:18] != "ffffffff-ffff-7fff" {
		t.Errorf("the last IDs are %v", ids)
	}
	at.wall = time.UnixMilli(1 << 48)
	if err := g.Ready(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("Ready past the end: %v", err)
	}
}

// An error of the random source loses no ID and repeats none.
func TestUUIDRandomFails(t *testing.T) {
	failing := errors.New("no entropy")
	_, g := newUUIDClock(t, UUIDConfig{Random: io.MultiReader(bytes.NewReader(make([]byte, 512)), iotest.ErrReader(failing))})
	dst := make([]UUID, 100)
	if n, err := g.Fill(t.Context(), dst); n != 64 || !errors.Is(err, failing) {
		t.Errorf("%d IDs, %v, want 64 and the error", n, err)
	}
	if _, err := g.Next(); !errors.Is(err, failing) {
		t.Errorf("Next: %v", err)
	}
	if s := g.Stats(); s.Minted != 64 {
		t.Errorf("%d IDs counted", s.Minted)
	}
}

// Concurrent calls on the system's clock never return the same ID, and each goroutine's IDs
// increase.
func TestUUIDParallel(t *testing.T) {
	g := Must(NewUUIDGenerator(UUIDConfig{}))
	each := scaled(20_000, 400_000)
	lists := make([][]UUID, 8)
	var wg sync.WaitGroup
	for i := range lists {
		wg.Go(func() {
			list := make([]UUID, each)
			n := 0
			for n < each {
				size := min(1+i*100, each-n)
				got, err := g.Fill(context.Background(), list[n:n+size])
				if n += got; err != nil {
					t.Error(err)
					return
				}
			}
			if !slices.IsSortedFunc(list, UUID.Compare) {
				t.Error("a goroutine's IDs don't increase")
			}
			lists[i] = list
		})
	}
	wg.Wait()
	all := slices.Concat(lists...)
	slices.SortFunc(all, UUID.Compare)
	if unique := len(slices.Compact(all)); unique != 8*each {
		t.Errorf("%d different IDs of %d", unique, 8*each)
	}
	if v := all[0].Version(); v != 7 {
		t.Errorf("version %d", v)
	}
}

func TestUUIDGeneratorAllocations(t *testing.T) {
	g := Must(NewUUIDGenerator(UUIDConfig{}))
	dst := make([]UUID, 100)
	for name, do := range map[string]func() error{
		"Next": func() error { _, err := g.Next(); return err },
		"Fill": func() error { _, err := g.Fill(context.Background(), dst); return err },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestUUIDGeneratorOf(t *testing.T) {
	g := UUIDGeneratorOf[prefixed](Must(NewUUIDGenerator(UUIDConfig{})))
	id, err := g.Next()
	if err != nil || id.Version() != 7 || fmt.Sprintf("%.7s", id) != "prefix_" {
		t.Errorf("%v, %v", id, err)
	}
	if s := g.(Monitored).Stats(); s.Minted != 1 {
		t.Errorf("stats %+v", s)
	}
}
