package leasetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// testDistinct checks that concurrent holders get different numbers until all are held,
// and that the next holder gets a number that was released.
func (s *suite) testDistinct() {
	const size = 8
	p := s.pool(size)
	clients := make([]*client, size)
	claims := make([]nodelease.Claim, size)
	errs := make([]error, size)
	for i := range clients {
		clients[i] = s.open()
	}
	ctx, cancel := s.patiently()
	defer cancel()
	r := make([]nodelease.Request, size)
	var wg sync.WaitGroup
	for i, c := range clients {
		r[i] = s.request(0, 100)
		wg.Go(func() { claims[i], errs[i] = c.store.Claim(ctx, p, r[i]) })
	}
	wg.Wait()
	taken := map[int]bool{}
	for i, got := range claims {
		if errs[i] != nil {
			s.Fatalf("expected a number for each of %d, got %v", size, errs[i])
		}
		if err := granted(p, r[i], got); err != nil {
			s.Error(err)
		}
		if got.After != 0 || got.Until != r[i].Until {
			s.Errorf("an unused number: expected a claim after 0 until %d, got %+v", r[i].Until, got)
		}
		if taken[got.Number] {
			s.Errorf("number %d was granted twice", got.Number)
		}
		taken[got.Number] = true
	}
	late := s.open()
	late.busy(p, s.request(0, 100), size, 0, 0)

	for i := range 3 {
		mark := int64(-1000 - i)
		clients[i].release(p, claims[i], mark)
		r := s.request(0, 100)
		got := late.claim(p, r)
		if got.Number != claims[i].Number || got.After != s.base+mark || got.Term <= claims[i].Term || got.Until != r.Until {
			s.Errorf("expected number %d in a term after %d, after %d and until %d, got %+v", claims[i].Number, claims[i].Term, s.base+mark, r.Until, got)
		}
	}
	late.busy(p, s.request(0, 100), size, 0, 0)
}

// testReserved checks that the numbers in Pool.Reserved are reserved for that call only.
func (s *suite) testReserved() {
	p := s.pool(5)
	p.Reserved = []int{0, 3, 3}
	c := s.open()
	taken := map[int]bool{}
	for range 3 {
		taken[c.claim(p, s.request(0, 100)).Number] = true
	}
	if len(taken) != 3 {
		s.Errorf("expected three numbers, got %v", taken)
	}
	c.busy(p, s.request(0, 100), 3, 2, 0)
	all := s.pool(2)
	all.Reserved = []int{1, 0}
	s.open().busy(all, s.request(0, 100), 0, 2, 0)

	// Another program, without Pool.Reserved, can claim and keep these numbers.
	p.Reserved = nil
	other := s.open()
	claims := []nodelease.Claim{other.claim(p, s.request(0, 100)), other.claim(p, s.request(0, 100))}
	other.busy(p, s.request(0, 100), 5, 0, 0)
	p.Reserved = []int{0, 3}
	c.busy(p, s.request(0, 100), 3, 2, 0)
	p.Reserved = nil
	for _, claim := range claims {
		other.release(p, other.renew(p, claim, 200), 150)
	}
	all.Reserved = nil
	c.claim(all, s.request(0, 100))
	c.claim(all, s.request(0, 100))
}

// testRepeated checks that a repeated claim, as after a lost answer, returns the same
// claim.
func (s *suite) testRepeated() {
	p := s.pool(2)
	c := s.open()
	before := c.claim(p, s.request(0, 100))
	c.release(p, before, 7)

	r := s.request(1000, 100)
	first := c.claim(p, r)
	for i := range 3 {
		// A later call has later times.
		r.Now, r.Until = r.Now+10, r.Until+10
		got := c.claim(p, r)
		if got.Number != first.Number || got.Term != first.Term || got.After != first.After || got.Until != r.Until {
			s.Errorf("repetition %d: expected %+v until %d, got %+v", i+1, first, r.Until, got)
		}
	}
	other := c.claim(p, s.request(1000, 100))
	if other.Number == first.Number {
		s.Errorf("number %d was granted to another", first.Number)
	}
	// After a renewal, a call with this holder is late, or of a copy of the process.
	first = c.renew(p, c.claim(p, r), 2000)
	r.Now, r.Until = s.base+3000, s.base+3100
	c.busy(p, r, 2, 0, 0)

	c.release(p, first, 1050)
	r.Now, r.Until = s.base+1100, s.base+1200
	got := c.claim(p, r)
	if got.Number != first.Number || got.Term <= first.Term || got.After != s.base+1050 {
		s.Errorf("after the release: expected number %d in a term after %d, after %d, got %+v", first.Number, first.Term, s.base+1050, got)
	}
	if used := max(first.After, other.After); used != s.base+7 {
		s.Errorf("expected one of the claims after %d, got %+v and %+v", s.base+7, first, other)
	}
}

// testOrder checks that the number with the lowest high-water mark is granted first. It
// is the mark that most clocks have passed.
func (s *suite) testOrder() {
	p := s.pool(4)
	c := s.open()
	var claims []nodelease.Claim
	for range 3 {
		claims = append(claims, c.claim(p, s.request(0, 100)))
	}
	// Set the high-water marks in another order than the claims.
	for i, mark := range []int64{30, 10, 20} {
		c.release(p, claims[i], mark)
	}
	if got := c.claim(p, s.request(50, 100)); got.After != 0 {
		s.Errorf("expected the number that was never used, got %+v", got)
	}
	for i, want := range []int{1, 2, 0} {
		got := c.claim(p, s.request(50, 100))
		if mark := s.base + int64(10*(i+1)); got.Number != claims[want].Number || got.After != mark {
			s.Errorf("claim %d: expected number %d after %d, got %+v", i+1, claims[want].Number, mark, got)
		}
	}
}

// testAhead checks that a clock that was ahead makes one number unusable, until the
// other clocks have passed its high-water mark.
func (s *suite) testAhead() {
	const hour = 3_600_000
	p := s.pool(3)
	c := s.open()
	ahead := c.claim(p, s.request(hour, 1000))
	further := c.claim(p, s.request(2*hour, 1000))
	c.release(p, ahead, hour)
	c.release(p, further, 2*hour)

	other := c.claim(p, s.request(0, 100))
	if other.Number == ahead.Number || other.Number == further.Number {
		s.Errorf("expected the number whose high-water mark isn't ahead, got %+v", other)
	}
	for _, now := range []int64{1, hour} {
		if got, want := c.busy(p, s.request(now, 100), 1, 0, 2), time.Duration(hour-now+1)*time.Millisecond; got != want {
			s.Errorf("want to try again after %v, got %v", want, got)
		}
	}
	if got := c.claim(p, s.request(hour+1, 100)); got.Number != ahead.Number || got.After != s.base+hour {
		s.Errorf("a clock past the high-water mark: expected number %d after %d, got %+v", ahead.Number, s.base+hour, got)
	}
	if got := c.busy(p, s.request(hour+1, 100), 2, 0, 1); got != time.Hour {
		s.Errorf("want to try again after %v, got %v", time.Hour, got)
	}
}

// testSkew checks that a store neither grants nor renews a claim if the holder's clock is too
// far from the store's, and that it writes nothing in that case.
func (s *suite) testSkew() {
	const hour = 3_600_000
	p := s.pool(1)
	c := s.open()
	limited := func(at int64) nodelease.Request {
		r := s.request(at, 100)
		r.MaxSkew = time.Hour
		return r
	}
	// skewed checks the error of a refused call.
	skewed := func(what string, r nodelease.Request, err error) {
		s.Helper()
		local := time.UnixMilli(r.Now).UTC().Format("2006-01-02T15:04:05.000Z")
		if busy := (*nodelease.BusyError)(nil); !errors.Is(err, nodelease.ErrClockSkew) || errors.As(err, &busy) || !strings.Contains(err.Error(), local) || !strings.Contains(err.Error(), p.Name) {
			s.Errorf("%s: want %v with the pool and the time %s, got %v", what, nodelease.ErrClockSkew, local, err)
		}
	}
	for _, at := range []int64{-2 * hour, 2 * hour, 100 * 365 * 24 * hour} {
		r := limited(at)
		_, err := c.try(p, r)
		skewed("Claim", r, err)
	}
	r := limited(0)
	claim := c.claim(p, r)
	if claim.After != 0 {
		s.Errorf("want a number that was never used, got %+v", claim)
	}
	repeated := r
	repeated.Now, repeated.Until = r.Now+2*hour, r.Until+2*hour
	_, err := c.try(p, repeated)
	skewed("repeated Claim", repeated, err)
	for _, at := range []int64{-2 * hour, 2 * hour} {
		r := limited(at)
		_, err := c.tryRenew(p, claim, r)
		skewed("Renew", r, err)
	}
	s.open().busy(p, s.request(hour/2, 100), 1, 0, 0)
	got, err := c.tryRenew(p, claim, limited(200))
	if err != nil || got.Until != s.base+300 {
		s.Errorf("want a claim until %d, got %+v, %v", s.base+300, got, err)
	}
	c.release(p, got, 250)
	// Without a limit, or within it, the clocks may differ.
	for i, r := range []nodelease.Request{limited(hour / 2), s.request(2*hour, 100)} {
		next := s.open()
		claim := next.claim(p, r)
		if i == 0 && claim.After != s.base+250 {
			s.Errorf("want a claim after %d, got %+v", s.base+250, claim)
		}
		next.release(p, claim, r.Now+50-s.base)
	}
}

// testPools checks that the numbers of two pools are independent.
func (s *suite) testPools() {
	c := s.open()
	p, q := s.pool(1), s.pool(1)
	first := c.claim(p, s.request(0, 100))
	second := c.claim(q, s.request(0, 100))
	c.release(p, first, 50)
	c.busy(q, s.request(0, 100), 1, 0, 0)
	c.release(q, second, 70)
	c.claimAfter(p, s.request(100, 100), 50)
}

// testMismatch checks that a pool with another size or layout is rejected.
func (s *suite) testMismatch() {
	c := s.open()
	p := s.pool(4)
	claim := c.claim(p, s.request(0, 100))
	larger, smaller, other := p, p, p
	larger.Size++
	smaller.Size--
	other.Layout += " in another way"
	for _, q := range []nodelease.Pool{larger, smaller, other} {
		if got, err := s.open().try(q, s.request(0, 100)); !errors.Is(err, nodelease.ErrPoolMismatch) {
			s.Errorf("%d numbers for %q: expected %v, got %+v, %v", q.Size, q.Layout, nodelease.ErrPoolMismatch, got, err)
		}
	}
	claim = c.renew(p, claim, 200)
	c.release(p, claim, 150)
}

// testInvalid checks that invalid pools are rejected.
func (s *suite) testInvalid() {
	c := s.open()
	p := s.pool(2)
	unnamed, empty, beyond := p, p, p
	unnamed.Name = "No, thanks"
	empty.Size = 0
	beyond.Reserved = []int{2}
	for _, q := range []nodelease.Pool{unnamed, empty, beyond} {
		got, err := c.try(q, s.request(0, 100))
		if busy := (*nodelease.BusyError)(nil); err == nil || errors.As(err, &busy) {
			s.Errorf("invalid pool %+v: expected an error, got %+v, %v", q, got, err)
		}
	}
	c.claim(p, s.request(0, 100))
}

// testCancelled checks that a call with an ended context changes nothing.
func (s *suite) testCancelled() {
	p := s.pool(1)
	c := s.open()
	claim := c.claim(p, s.request(0, 100))
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	if got, err := c.store.Renew(ended, p, claim, s.request(1000, 100)); err == nil {
		s.Errorf("Renew: expected an error, got %+v", got)
	}
	if err := c.store.Release(ended, p, claim, s.base+3000); err == nil {
		s.Error("Release: expected an error, got none")
	}
	claim = c.renew(p, claim, 200)
	c.release(p, claim, 150)
	if got, err := c.store.Claim(ended, p, s.request(300, 100)); err == nil {
		s.Errorf("Claim: expected an error, got %+v", got)
	}
	s.open().claimAfter(p, s.request(300, 100), 150)
}

// testCancelledMidway checks that a claim whose context ends during the call loses no
// number: a later call of the holder returns it. The storms test the same for renewals
// and releases.
func (s *suite) testCancelledMidway() {
	p := s.pool(1)
	c := s.open()
	begun := time.Now()
	claim := c.claim(p, s.request(0, 1))
	took := time.Since(begun) + time.Microsecond
	// cut makes a claim whose context ends at some point in the call.
	const calls = 24
	cut := func(i int, r nodelease.Request) (nodelease.Claim, error) {
		ctx, cancel := context.WithTimeout(s.Context(), took*time.Duration(i)/(calls/2))
		defer cancel()
		begun := time.Now()
		got, err := c.store.Claim(ctx, p, r)
		if late := time.Since(begun); late > patience/2 {
			s.Errorf("expected the call to return when its context ends, took %v", late)
		}
		return got, err
	}
	for i := range calls {
		mark := claim.Until - s.base
		c.release(p, claim, mark)
		// Retry, since the cut call may take effect after the next one.
		r := s.brief(mark+1, 1)
		var err error
		if claim, err = cut(i, r); err != nil {
			claim = c.claimEventually(p, func() nodelease.Request { return r })
		}
		if claim.After != s.base+mark {
			s.Fatalf("expected the high-water mark %d, got %+v", s.base+mark, claim)
		}
	}
	// If the holder doesn't call again, the number is free after some time.
	c.release(p, claim, claim.Until-s.base)
	now := func() nodelease.Request { return s.brief(time.Now().UnixMilli()-s.base, 1) }
	for i := range calls {
		if got, err := cut(i, now()); err == nil {
			c.release(p, got, got.Until-s.base)
		}
	}
	s.open().claimEventually(p, now)
}
