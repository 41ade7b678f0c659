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

// A Harness tells [TestStore] how to test a store.
type Harness struct {
	// Open returns a client of the store. If the store uses connections, each client
	// has its own. Clients opened with the same t must share their data. Clients of
	// different tests may share it too. Open registers cleanups with t.Cleanup.
	//
	// If lasting is set, no claim of the client may expire, even on a busy machine. If claims
	// live as long as connections, the connection should survive a minute without traffic.
	Open func(t *testing.T, lasting bool) nodelease.Store
	// TTL is the shortest TTL that works reliably on a busy machine. 0 means three
	// seconds.
	TTL time.Duration
	// Crash ends a client as the death of its process would. Leave it nil if claims
	// expire by their TTL alone. Set it if they also end with a connection.
	Crash func(t *testing.T, client nodelease.Store)
	// Prompt means that Crash ends the client's claims at once. By default, they last for
	// the rest of the TTL.
	Prompt bool
}

// TestStore runs the tests that each store must pass. They run in parallel, each with
// its own pool, and mostly wait. With -parallel 16, TestStore takes about three times the
// TTL.
func TestStore(t *testing.T, h Harness) {
	if h.Open == nil {
		t.Fatal("leasetest: Harness.Open is nil; set it to a function that returns a client of the store")
	}
	if h.TTL == 0 {
		h.TTL = 3 * time.Second
	}
	// The group waits for its parallel tests, so that the caller can clean up after it.
	t.Run("store", func(t *testing.T) {
		for _, test := range []struct {
			name   string
			run    func(*suite)
			lapses bool // the test lets claims expire
		}{
			{"grants each number once", (*suite).testDistinct, false},
			{"reserved numbers", (*suite).testReserved, false},
			{"repeated claim", (*suite).testRepeated, false},
			{"lowest high-water mark first", (*suite).testOrder, false},
			{"high-water marks ahead", (*suite).testAhead, false},
			{"clock skew", (*suite).testSkew, false},
			{"independent pools", (*suite).testPools, false},
			{"pool mismatch", (*suite).testMismatch, false},
			{"invalid pools", (*suite).testInvalid, false},
			{"expiry", (*suite).testLapse, true},
			{"renewals", (*suite).testRenewed, true},
			{"late renewal", (*suite).testRenewedLate, true},
			{"high-water marks don't go back", (*suite).testMarks, true},
			{"superseded", (*suite).testSuperseded, true},
			{"released", (*suite).testReleased, false},
			{"another holder or term", (*suite).testForeign, false},
			{"lost answers", (*suite).testLostAnswers, false},
			{"copies of a holder", (*suite).testCopies, false},
			{"context ended before the call", (*suite).testCancelled, false},
			{"context ends during the call", (*suite).testCancelledMidway, false},
			{"keepers and generators", (*suite).testStack, false},
			{"storm", (*suite).testStorm, false},
			{abandoning, (*suite).testRoughStorm, true},
		} {
			if test.name == abandoning && h.Crash != nil {
				continue // claims end only with a connection, so the other storm is the same
			}
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(&suite{T: t, h: h, lapses: test.lapses, base: time.Now().UnixMilli()})
			})
		}
	})
}

// abandoning is the name of testRoughStorm.
const abandoning = "storm with abandoned claims"

// A suite is the state of one test.
type suite struct {
	*testing.T
	h      Harness
	lapses bool  // claims may expire
	base   int64 // the test's times are relative to this time, in Unix milliseconds
}

// patience is the time limit for calls, and for effects that a store may delay.
const patience = time.Minute

// pool returns a new pool.
func (s *suite) pool(size int) nodelease.Pool {
	return nodelease.Pool{Name: "test-" + strings.ToLower(rand.Text()), Size: size, Layout: "leasetest: made up"}
}

// open returns a new client.
func (s *suite) open() *client {
	s.Helper()
	return &client{s, s.h.Open(s.T, !s.lapses)}
}

// openLasting returns a new client whose claims don't expire during the test.
func (s *suite) openLasting() *client {
	s.Helper()
	return &client{s, s.h.Open(s.T, true)}
}

// crash ends a client, if the store needs that for its claims to expire.
func (s *suite) crash(c *client) {
	s.Helper()
	if s.h.Crash != nil {
		s.h.Crash(s.T, c.store)
	}
}

// long is the TTL of claims that must not expire during a test.
const long = 10 * time.Minute

// request returns the request of a new holder. Its Now is the base plus at, and its
// Until is Now plus lasting, in milliseconds.
func (s *suite) request(at, lasting int64) nodelease.Request {
	return nodelease.Request{Holder: "test " + rand.Text(), TTL: long, Now: s.base + at, Until: s.base + at + lasting}
}

// brief returns a request for a claim that may expire during the test.
func (s *suite) brief(at, lasting int64) nodelease.Request {
	r := s.request(at, lasting)
	r.TTL = s.h.TTL
	return r
}

// patiently returns a context for a call that must succeed.
func (s *suite) patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.Context(), patience)
}

// eventually waits until f returns nil.
func (s *suite) eventually(what string, f func() error) {
	s.Helper()
	var err error
	for deadline := time.Now().Add(s.h.TTL + patience); time.Now().Before(deadline); time.Sleep(s.h.TTL / 100) {
		if err = f(); err == nil {
			return
		}
	}
	s.Fatalf("condition %q not met within %s: %v", what, s.h.TTL+patience, err)
}

// A client is a client of the store. Its methods fail the test if the store doesn't
// behave as expected.
type client struct {
	*suite
	store nodelease.Store
}

// try claims a number and checks a granted claim.
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

// granted returns an error if a new claim doesn't match its request.
func granted(p nodelease.Pool, r nodelease.Request, got nodelease.Claim) error {
	switch {
	case got.Number < 0 || got.Number >= p.Size || slices.Contains(p.Reserved, got.Number):
		return fmt.Errorf("expected a number below %d and not in %v, got %d", p.Size, p.Reserved, got.Number)
	case got.Holder != r.Holder:
		return fmt.Errorf("expected holder %q, got %q", r.Holder, got.Holder)
	case got.After >= r.Now || got.After < 0:
		return fmt.Errorf("expected a high-water mark before %d, got %d", r.Now, got.After)
	case got.Until < r.Until:
		return fmt.Errorf("expected a claim until at least %d, got %d", r.Until, got.Until)
	case got.TTL < 0 || got.TTL > r.TTL:
		return fmt.Errorf("expected a TTL of at most %v, got %v", r.TTL, got.TTL)
	}
	return nil
}

// claim claims a number, and fails the test if it can't.
func (c *client) claim(p nodelease.Pool, r nodelease.Request) nodelease.Claim {
	c.Helper()
	got, err := c.try(p, r)
	if err != nil {
		c.Fatalf("expected a number, got %v", err)
	}
	return got
}

// claimAfter claims a number, and checks that its last holder has left a high-water mark
// relative to the base.
func (c *client) claimAfter(p nodelease.Pool, r nodelease.Request, mark int64) nodelease.Claim {
	c.Helper()
	got := c.claim(p, r)
	if got.After != c.base+mark {
		c.Errorf("expected the high-water mark %d, got %+v", c.base+mark, got)
	}
	return got
}

// claimEventually retries a claim until it is granted.
func (c *client) claimEventually(p nodelease.Pool, request func() nodelease.Request) (got nodelease.Claim) {
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

// busy makes a claim that must fail with a BusyError of these counts, and returns its
// RetryAfter.
func (c *client) busy(p nodelease.Pool, r nodelease.Request, held, reserved, ahead int) (retryAfter time.Duration) {
	c.Helper()
	got, err := c.try(p, r)
	var busy *nodelease.BusyError
	if !errors.As(err, &busy) {
		c.Fatalf("expected a BusyError, got %+v, %v", got, err)
	}
	if busy.Held != held || busy.Reserved != reserved || busy.Ahead != ahead {
		c.Errorf("expected %d held, %d reserved and %d ahead, got %d, %d and %d", held, reserved, ahead, busy.Held, busy.Reserved, busy.Ahead)
	}
	if ahead == 0 && (busy.RetryAfter < 0 || busy.RetryAfter > r.TTL) {
		c.Errorf("expected a RetryAfter of at most %v, got %v", r.TTL, busy.RetryAfter)
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

// renew renews a claim up to a time relative to the base, and returns the renewed claim.
// It fails the test if the store refuses.
func (c *client) renew(p nodelease.Pool, claim nodelease.Claim, until int64) nodelease.Claim {
	c.Helper()
	got, err := c.tryRenew(p, claim, c.request(until-1, 1))
	if err != nil {
		c.Fatalf("expected a renewal, got %v", err)
	}
	if want := max(claim.Until, c.base+until); got.Number != claim.Number || got.Term != claim.Term || got.Holder != claim.Holder || got.Until != want {
		c.Fatalf("expected %+v until %d, got %+v", claim, want, got)
	}
	return got
}

// tryRenew renews a claim and checks the nonce of a renewed one.
func (c *client) tryRenew(p nodelease.Pool, claim nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	ctx, cancel := c.patiently()
	defer cancel()
	r.Holder, r.Nonce = claim.Holder, rand.Text()
	got, err := c.store.Renew(ctx, p, claim, r)
	if err == nil && (got.Nonce != r.Nonce || len(got.Sent) > 0) {
		c.Fatalf("expected the nonce %q, got %+v", r.Nonce, got)
	}
	return got, err
}

// release releases a claim, whose term may be over, at a high-water mark relative to
// the base.
func (c *client) release(p nodelease.Pool, claim nodelease.Claim, mark int64) {
	c.Helper()
	ctx, cancel := c.patiently()
	defer cancel()
	if err := c.store.Release(ctx, p, claim, c.base+mark); err != nil {
		c.Fatalf("expected a release, got %v", err)
	}
}

// refused checks that a claim whose term is over can't be renewed, and releases it. The
// caller checks that this changes nothing.
func (c *client) refused(p nodelease.Pool, claim nodelease.Claim) {
	c.Helper()
	const hour = 3_600_000
	if got, err := c.tryRenew(p, claim, c.request(hour-1, 1)); !errors.Is(err, nodelease.ErrSuperseded) {
		c.Errorf("renewal of %+v: expected %v, got %+v, %v", claim, nodelease.ErrSuperseded, got, err)
	}
	for _, mark := range []int64{-hour, hour} {
		c.release(p, claim, mark)
	}
}

// stands returns how long a claim from a brief request lasts at least without a renewal. The
// store's clock may run faster than this machine's.
func (s *suite) stands(c nodelease.Claim) time.Duration {
	ttl := s.h.TTL
	if c.TTL > 0 {
		ttl = min(c.TTL, ttl)
	}
	return ttl - ttl/50 - 10*time.Millisecond
}
