package leasetest

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A stretch is the time range of a number that a holder may have used.
type stretch struct {
	claim nodelease.Claim
	end   int64 // end of the range
	exact bool  // the store confirmed each call, so end is the high-water mark
}

// A storm runs concurrent holders that make random calls.
type storm struct {
	*suite
	pool     nodelease.Pool
	rough    bool // calls of Claim may also be cut short, and claims abandoned
	deadline time.Time
	took     atomic.Int64 // duration of the last complete call, in nanoseconds

	mu        sync.Mutex
	stretches []stretch
}

// testStorm checks that the ranges of a number's holders never overlap under concurrent
// claims, renewals and releases.
func (s *suite) testStorm() { (&storm{suite: s}).run(s.h.TTL) }

// testRoughStorm is testStorm with claims that expire.
func (s *suite) testRoughStorm() { (&storm{suite: s, rough: true}).run(2 * s.h.TTL) }

func (s *storm) run(lasting time.Duration) {
	seed := uint64(time.Now().UnixNano())
	s.Logf("seed %d", seed)
	s.pool = s.suite.pool(6)
	s.pool.Reserved = []int{2}
	s.deadline = time.Now().Add(lasting)
	var wg sync.WaitGroup
	var c *client
	for i := range uint64(12) {
		if i%3 == 0 {
			c = s.open()
		}
		store, r := c.store, rand.New(rand.NewPCG(seed, i))
		wg.Go(func() {
			// Each holder's clock differs, so that some are behind high-water marks.
			off := r.Int64N(200) - 100
			for s.goesOn() && s.hold(store, r, off) {
			}
		})
	}
	wg.Wait()
	if !s.Failed() {
		s.judge()
	}
}

// goesOn reports whether the storm continues: until the deadline, and on a busy machine
// until its five numbers have had enough holders.
func (s *storm) goesOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := time.Since(s.deadline)
	return late < 0 || len(s.stretches) < 2*5 && late < 4*patience
}

// hold claims a number, renews it and releases it. It reports whether to go on.
func (s *storm) hold(store nodelease.Store, r *rand.Rand, off int64) bool {
	holder := "storm " + crand.Text()
	ask := func() nodelease.Request {
		now := time.Now().UnixMilli() + off
		q := nodelease.Request{Holder: holder, TTL: long, Now: now, Until: now + 1 + r.Int64N(50)}
		if s.rough {
			q.TTL = s.h.TTL
		}
		return q
	}
	var claim nodelease.Claim
	_, err := s.call(r, s.rough, func(ctx context.Context) (err error) {
		q := ask()
		if claim, err = store.Claim(ctx, s.pool, q); err == nil {
			err = granted(s.pool, q, claim)
		}
		return err
	})
	if busy := (*nodelease.BusyError)(nil); errors.As(err, &busy) {
		time.Sleep(time.Duration(r.Int64N(int64(10 * time.Millisecond))))
		return true
	}
	if s.wrong(err) {
		return false
	}
	// In a rough storm, a call that was cut short may have granted a claim that no
	// holder knows.
	mine := stretch{claim, claim.Until, !s.rough}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stretches = append(s.stretches, mine)
	}()
	for range r.IntN(4) {
		time.Sleep(time.Duration(r.Int64N(int64(5 * time.Millisecond))))
		if s.rough && r.IntN(10) == 0 && s.goesOn() {
			time.Sleep(s.h.TTL + s.h.TTL/10) // until the claim has expired and another holder may have the number
		}
		var got nodelease.Claim
		cut, err := s.call(r, true, func(ctx context.Context) (err error) {
			q := ask()
			q.Nonce = crand.Text()
			got, err = store.Renew(ctx, s.pool, claim, q)
			claim.Sent = append(slices.Clone(claim.Sent), q.Nonce)
			return err
		})
		if s.rough && errors.Is(err, nodelease.ErrSuperseded) {
			return true
		}
		if s.wrong(err) {
			return false
		}
		if got.Until < mine.end || got.Number != claim.Number || got.Term != claim.Term {
			s.Errorf("expected %+v to be renewed until at least %d, got %+v", claim, mine.end, got)
		}
		claim.Nonce, claim.Sent = got.Nonce, nil
		mine.end, mine.exact = got.Until, mine.exact && !cut
	}
	if s.rough && r.IntN(10) == 0 {
		return true
	}
	mark := claim.After + r.Int64N(mine.end-claim.After+1)
	_, err = s.call(r, true, func(ctx context.Context) error { return store.Release(ctx, s.pool, claim, mark) })
	mine.end, mine.exact = mark, !s.rough
	return !s.wrong(err)
}

// call makes a call. If mayCut, it may first make the call with a context that ends at
// a random time. It reports whether that first call was cut short.
func (s *storm) call(r *rand.Rand, mayCut bool, f func(context.Context) error) (cut bool, err error) {
	if mayCut && r.IntN(4) == 0 {
		ctx, cancel := context.WithTimeout(s.Context(), time.Duration(r.Int64N(2*s.took.Load()+1)))
		defer cancel()
		if err := f(ctx); err == nil {
			return false, nil
		}
		cut = true
	}
	ctx, cancel := s.patiently()
	defer cancel()
	begun := time.Now()
	if err = f(ctx); err == nil {
		s.took.Store(int64(time.Since(begun)))
	}
	return cut, err
}

// wrong reports an error to the test, and reports whether there was one.
func (s *storm) wrong(err error) bool {
	if err != nil {
		s.Error(err)
	}
	return err != nil
}

// judge checks that the stretches of each number don't overlap.
func (s *storm) judge() {
	slices.SortFunc(s.stretches, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.claim.Number, b.claim.Number), cmp.Compare(a.claim.Term, b.claim.Term))
	})
	passed := 0
	for i, b := range s.stretches[1:] {
		a := s.stretches[i]
		if a.claim.Number != b.claim.Number {
			continue
		}
		passed++
		switch {
		case a.claim.Term == b.claim.Term:
			s.Errorf("expected one holder per term, got %+v and %+v", a, b)
		case b.claim.After < a.end:
			s.Errorf("expected a claim after %d, got %+v after %+v", a.end, b, a)
		case a.exact && b.claim.After != a.end:
			s.Errorf("expected a claim after exactly %d, got %+v after %+v", a.end, b, a)
		}
	}
	s.Logf("%d claims, %d of them with a number used before", len(s.stretches), passed)
	if passed < 5 {
		s.Errorf("expected at least 5 claims with a number used before, got %d", passed)
	}
}
