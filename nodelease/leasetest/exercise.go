package leasetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A Harness is what [Exercise] needs to know of a store.
type Harness struct {
	// Open gives a client of the store, with a connection of its own where the
	// store has connections. All that one test function opens are clients
	// of the same data; the next test function may find that data, or none. Whatever
	// has to be closed, Open leaves to t.Cleanup.
	Open func(t *testing.T) nodelease.Store
	// OpenLasting is Open for tests in which no claim is to lapse, however busy the
	// machine is: where claims live as long as connections, these should outlast a
	// minute's silence. Nil: Open.
	OpenLasting func(t *testing.T) nodelease.Store
	// Pool gives a pool of so many numbers that no test has used before. Nil:
	// pools with random names.
	Pool func(t *testing.T, size int) nodelease.Pool
	// TTL is the shortest that the store can do well on a machine that has other
	// things to do; 0 means three seconds.
	TTL time.Duration
	// Crash ends a client as the death of its process would, where that makes a
	// difference to the store: where claims live no longer than connections. Nil
	// where a claim is over when its TTL is.
	Crash func(t *testing.T, client nodelease.Store)
}

// Exercise runs the tests that each store must pass. The tests run in parallel,
// each with a pool of its own, and mostly wait: with -parallel 16 it takes about
// three times the TTL.
func Exercise(t *testing.T, h Harness) {
	if h.TTL == 0 {
		h.TTL = 3 * time.Second
	}
	if h.OpenLasting == nil {
		h.OpenLasting = h.Open
	}
	if h.Pool == nil {
		h.Pool = func(_ *testing.T, size int) nodelease.Pool {
			return nodelease.Pool{Name: "test-" + strings.ToLower(rand.Text()), Size: size, Layout: "leasetest: made up"}
		}
	}
	// The group ends when all in it have, so that the caller may clean up.
	t.Run("store", func(t *testing.T) {
		for _, test := range []struct {
			name   string
			run    func(*suite)
			lapses bool // claims are to lapse in it
		}{
			{"grants each number once", (*suite).testDistinct, false},
			{"reserved numbers", (*suite).testReserved, false},
			{"the same holder again", (*suite).testRepeated, false},
			{"least recently used first", (*suite).testOrder, false},
			{"high-water marks ahead", (*suite).testAhead, false},
			{"pools are their own", (*suite).testPools, false},
			{"other pools of the name", (*suite).testMismatch, false},
			{"invalid pools", (*suite).testInvalid, false},
			{"time to live", (*suite).testLapse, true},
			{"renewals", (*suite).testRenewed, true},
			{"renewed late", (*suite).testRenewedLate, true},
			{"high-water marks don't go back", (*suite).testMarks, true},
			{"superseded", (*suite).testSuperseded, true},
			{"released", (*suite).testReleased, false},
			{"someone else's", (*suite).testForeign, false},
			{"contexts that have ended", (*suite).testCancelled, false},
			{"contexts that end", (*suite).testCancelledMidway, false},
			{"keepers and generators", (*suite).testStack, false},
			{"storm", (*suite).testStorm, false},
			{"storm with claims given up", (*suite).testRoughStorm, true},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				s := &suite{T: t, h: h, base: time.Now().UnixMilli()}
				if !test.lapses {
					s.h.Open = h.OpenLasting
				}
				test.run(s)
			})
		}
	})
}

// A suite is what all tests need.
type suite struct {
	*testing.T
	h    Harness
	base int64 // a time in Unix milliseconds that the test counts from
}

// patience is how long a store may take for what it has to do at some time.
const patience = 30 * time.Second

// pool gives a new pool.
func (s *suite) pool(size int) nodelease.Pool {
	s.Helper()
	return s.h.Pool(s.T, size)
}

// open gives a new client.
func (s *suite) open() *client {
	s.Helper()
	return &client{s, s.h.Open(s.T)}
}

// crash ends a client, or leaves it alone where its claims end by themselves.
func (s *suite) crash(c *client) {
	s.Helper()
	if s.h.Crash != nil {
		s.h.Crash(s.T, c.store)
	}
}

// long is the time to live of claims that aren't to be over during a test.
const long = 10 * time.Minute

// request is what a new holder asks, at a time from the base on, for as many
// milliseconds.
func (s *suite) request(at, lasting int64) nodelease.Request {
	return nodelease.Request{Holder: "test " + rand.Text(), TTL: long, Now: s.base + at, Until: s.base + at + lasting}
}

// brief is a request for a claim that may be over during the test.
func (s *suite) brief(at, lasting int64) nodelease.Request {
	r := s.request(at, lasting)
	r.TTL = s.h.TTL
	return r
}

// patiently gives a context for a call that isn't to fail.
func (s *suite) patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.Context(), patience)
}

// eventually waits until f has no complaints any more.
func (s *suite) eventually(what string, f func() error) {
	s.Helper()
	var err error
	for deadline := time.Now().Add(s.h.TTL + patience); time.Now().Before(deadline); time.Sleep(s.h.TTL / 100) {
		if err = f(); err == nil {
			return
		}
	}
	s.Fatalf("expected that %s within %s: %v", what, s.h.TTL+patience, err)
}

// A client is a client of the store whose calls fail the test, unless they are
// meant to fail.
type client struct {
	*suite
	store nodelease.Store
}

// try claims a number, and looks at what it is given.
func (c *client) try(p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	c.Helper()
	ctx, cancel := c.patiently()
	defer cancel()
	got, err := c.store.Claim(ctx, p, r)
	if err != nil {
		return got, err
	}
	if err := granted(p, r, got); err != nil {
		c.Fatal(err)
	}
	return got, nil
}

// granted tells what is wrong with a new claim.
func granted(p nodelease.Pool, r nodelease.Request, got nodelease.Claim) error {
	switch {
	case got.Number < 0 || got.Number >= p.Size || slices.Contains(p.Reserved, got.Number):
		return fmt.Errorf("expected a number of %d but for %v, got %d", p.Size, p.Reserved, got.Number)
	case got.Holder != r.Holder:
		return fmt.Errorf("expected a claim of %q, got one of %q", r.Holder, got.Holder)
	case got.After >= r.Now || got.After < 0:
		return fmt.Errorf("expected a high-water mark before %d, got %d", r.Now, got.After)
	case got.Until < r.Until:
		return fmt.Errorf("expected a claim until %d, got %d", r.Until, got.Until)
	case got.TTL < 0 || got.TTL > r.TTL:
		return fmt.Errorf("expected a claim of at most %v, got %v", r.TTL, got.TTL)
	}
	return nil
}

// claim claims a number that is there.
func (c *client) claim(p nodelease.Pool, r nodelease.Request) nodelease.Claim {
	c.Helper()
	got, err := c.try(p, r)
	if err != nil {
		c.Fatalf("expected a number, got %v", err)
	}
	return got
}

// claimEventually waits for a number, asking at the time that it is.
func (c *client) claimEventually(p nodelease.Pool) nodelease.Claim {
	c.Helper()
	return c.grantedEventually(p, func() nodelease.Request { return c.brief(time.Now().UnixMilli()-c.base, 1) })
}

// grantedEventually waits for a number, asking again and again.
func (c *client) grantedEventually(p nodelease.Pool, request func() nodelease.Request) (got nodelease.Claim) {
	c.Helper()
	c.eventually("a number is free", func() (err error) {
		got, err = c.try(p, request())
		if busy := (*nodelease.BusyError)(nil); err != nil && !errors.As(err, &busy) {
			c.Fatal(err)
		}
		return err
	})
	return got
}

// busy claims a number where there is none, and returns when to try again.
func (c *client) busy(p nodelease.Pool, r nodelease.Request, held, reserved, ahead int) (retryAfter time.Duration) {
	c.Helper()
	got, err := c.try(p, r)
	var busy *nodelease.BusyError
	if !errors.As(err, &busy) {
		c.Fatalf("expected no number, got %+v, %v", got, err)
	}
	if busy.Held != held || busy.Reserved != reserved || busy.Ahead != ahead {
		c.Errorf("expected %d held, %d reserved and %d ahead, got %d, %d and %d", held, reserved, ahead, busy.Held, busy.Reserved, busy.Ahead)
	}
	if ahead == 0 && (busy.RetryAfter < 0 || busy.RetryAfter > r.TTL) {
		c.Errorf("expected the first of the held numbers to be free within %v, got %v", r.TTL, busy.RetryAfter)
	}
	want := nodelease.ErrPoolExhausted
	if ahead > 0 {
		want = nodelease.ErrClockBehind
	}
	if !errors.Is(err, want) {
		c.Errorf("expected %v, got %v", want, err)
	}
	return busy.RetryAfter
}

// renew renews a claim that isn't over, up to a time from the base on. It gives
// the claim as it is then.
func (c *client) renew(p nodelease.Pool, claim nodelease.Claim, until int64) nodelease.Claim {
	c.Helper()
	got, err := c.tryRenew(p, claim, until, long)
	if err != nil {
		c.Fatalf("expected a renewal, got %v", err)
	}
	if want := max(claim.Until, c.base+until); got.Number != claim.Number || got.Term != claim.Term || got.Holder != claim.Holder || got.Until != want {
		c.Fatalf("expected %+v until %d, got %+v", claim, want, got)
	}
	return got
}

func (c *client) tryRenew(p nodelease.Pool, claim nodelease.Claim, until int64, ttl time.Duration) (nodelease.Claim, error) {
	ctx, cancel := c.patiently()
	defer cancel()
	return c.store.Renew(ctx, p, claim, nodelease.Request{
		Holder: claim.Holder, TTL: ttl, Now: c.base + until - 1, Until: c.base + until,
	})
}

// release releases a claim, over or not, at a high-water mark from the base on.
func (c *client) release(p nodelease.Pool, claim nodelease.Claim, mark int64) {
	c.Helper()
	ctx, cancel := c.patiently()
	defer cancel()
	if err := c.store.Release(ctx, p, claim, c.base+mark); err != nil {
		c.Fatalf("expected a release, got %v", err)
	}
}

// refused renews and releases a claim whose term is over. Whether that changes
// nothing is for the test to see.
func (c *client) refused(p nodelease.Pool, claim nodelease.Claim) {
	c.Helper()
	const hour = 3_600_000
	if got, err := c.tryRenew(p, claim, hour, long); !errors.Is(err, nodelease.ErrSuperseded) {
		c.Errorf("expected no renewal of %+v, got %+v, %v", claim, got, err)
	}
	for _, mark := range []int64{-hour, hour} {
		c.release(p, claim, mark)
	}
}

// slack is by how much the store's clock may run faster than this one.
func (s *suite) slack() time.Duration { return 10*time.Millisecond + s.h.TTL/50 }

// stands is how long a claim does.
func (s *suite) stands(c nodelease.Claim) time.Duration {
	if c.TTL > 0 {
		return min(c.TTL, s.h.TTL)
	}
	return s.h.TTL
}
