package leasetest

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// testLapse checks that a claim without renewals expires, and not before its TTL.
func (s *suite) testLapse() {
	p := s.pool(1)
	c, rival := s.open(), s.openLasting()
	sent := time.Now()
	first := c.claim(p, s.brief(0, 500))
	s.crash(c)
	var next nodelease.Claim
	s.eventually("the number is free", func() (err error) {
		next, err = rival.try(p, s.brief(1000, 500))
		if busy := (*nodelease.BusyError)(nil); errors.As(err, &busy) && (busy.Held != 1 || busy.Ahead != 0) {
			s.Errorf("expected the number to be held, got %d held and %d ahead", busy.Held, busy.Ahead)
		}
		return err
	})
	if held := time.Since(sent); held < s.stands(first) && !s.h.Prompt {
		s.Errorf("expected the number to be held for %v, got %v", s.stands(first), held)
	}
	if next.Number != first.Number || next.Term <= first.Term || next.After != first.Until {
		s.Errorf("expected number %d in a term after %d, after %d, got %+v", first.Number, first.Term, first.Until, next)
	}
}

// testRenewed checks that renewals keep a claim. If the machine is too busy, it tries again,
// with a longer TTL unless the client limits it.
func (s *suite) testRenewed() {
	for range 10 {
		if s.renewed() {
			return
		}
		s.h.TTL = min(2*s.h.TTL, patience)
	}
	s.Fatalf("the machine is too busy: it often makes no two calls in %v", s.h.TTL)
}

// renewed runs the test once. It returns false if the machine was so busy that the claim
// may have expired before a check.
func (s *suite) renewed() bool {
	p := s.pool(1)
	c, rival := s.open(), s.openLasting()
	sent := time.Now()
	claim := c.claim(p, s.brief(0, 100))
	stands := s.stands(claim)
	// Longer than the claim lasts without renewals.
	for begun, i := time.Now(), int64(1); time.Since(begun) < 5*s.h.TTL/4; i++ {
		time.Sleep(stands / 20)
		again := time.Now()
		renewed, err := c.tryRenew(p, claim, s.brief(100*i-1, 1))
		if time.Since(sent) >= stands {
			return false
		}
		if err != nil {
			s.Fatalf("expected a renewal, got %v", err)
		}
		claim, sent = renewed, again
		theirs, err := rival.try(p, s.brief(1_000_000, 1))
		if time.Since(sent) >= stands {
			return false
		}
		if err == nil {
			s.Fatalf("expected the number to be held, got %+v", theirs)
		}
	}
	// The TTL counts from the last renewal.
	s.crash(c)
	s.eventually("the number is free", func() error {
		_, err := rival.try(p, s.brief(1_000_000, 1))
		return err
	})
	if held := time.Since(sent); held < stands && !s.h.Prompt {
		s.Errorf("expected the number to be held for %v after the last renewal, got %v", stands, held)
	}
	return true
}

// testRenewedLate checks that an expired claim can be renewed if no other holder has the
// number.
func (s *suite) testRenewedLate() {
	p := s.pool(1)
	c := s.open()
	claim := c.claim(p, s.brief(0, 100))
	time.Sleep(s.h.TTL + s.h.TTL/5)
	claim = c.renew(p, claim, 5000)
	s.openLasting().busy(p, s.request(10_000, 100), 1, 0, 0)
	c.release(p, claim, 4000)
}

// testMarks checks that renewals never lower the high-water mark.
func (s *suite) testMarks() {
	p := s.pool(1)
	c := s.open()
	claim := c.claim(p, s.request(0, 1000))
	claim = c.renew(p, claim, 500)
	claim = c.renew(p, claim, 2000)
	claim = c.renew(p, claim, -3000)
	got, err := c.tryRenew(p, claim, s.brief(1998, 1))
	if err != nil || got.Until != s.base+2000 {
		s.Errorf("expected the high-water mark %d, got %+v, %v", s.base+2000, got, err)
	}
	s.crash(c)
	rival := s.openLasting()
	s.eventually("the next claim has the high-water mark", func() error {
		next, err := rival.try(p, s.request(2001, 100))
		if err == nil && next.After != s.base+2000 {
			s.Errorf("expected the high-water mark %d, got %+v", s.base+2000, next)
		}
		return err
	})
	// A release lowers the high-water mark.
	p = s.pool(1)
	c = s.openLasting()
	c.release(p, c.claim(p, s.request(0, 1000)), -7)
	c.claimAfter(p, s.request(0, 1000), -7)
}

// testSuperseded checks that a claim can't be renewed or released after another holder
// has claimed the number.
func (s *suite) testSuperseded() {
	p := s.pool(1)
	c, present := s.open(), s.openLasting()
	old := c.claim(p, s.brief(0, 100))
	s.crash(c)
	var claim nodelease.Claim
	s.eventually("the number is free", func() (err error) {
		claim, err = present.try(p, s.request(1000, 100))
		return err
	})
	s.openLasting().refused(p, old)
	if s.h.Crash == nil {
		c.refused(p, old)
	}
	claim = present.renew(p, claim, 1300)
	s.openLasting().busy(p, s.request(10_000, 100), 1, 0, 0)
	present.release(p, claim, 1250)
	s.openLasting().refused(p, old)
	if next := s.openLasting().claimAfter(p, s.request(10_000, 100), 1250); next.Term <= claim.Term {
		s.Errorf("expected a term after %d, got %+v", claim.Term, next)
	}
}

// testReleased checks that a claim can't be renewed or released after its release.
func (s *suite) testReleased() {
	p := s.pool(1)
	c := s.open()
	old := c.claim(p, s.request(0, 100))
	c.release(p, old, 50)
	c.refused(p, old)
	claim := c.claimAfter(p, s.request(1000, 100), 50)
	c.refused(p, old)
	s.open().refused(p, old)
	claim = c.renew(p, claim, 1200)
	c.release(p, claim, 1150)
	c.release(p, claim, 1170)
	s.open().claimAfter(p, s.request(2000, 100), 1150)
}

// testForeign checks that the number, term and holder together identify a claim.
func (s *suite) testForeign() {
	p := s.pool(2)
	c := s.open()
	for i := range int64(3) { // so that there are earlier terms
		first, second := c.claim(p, s.request(100*i, 50)), c.claim(p, s.request(100*i, 50))
		c.release(p, first, 100*i)
		c.release(p, second, 100*i+1)
	}
	claim := c.claim(p, s.request(1000, 100))
	holder, earlier, later, number, beyond := claim, claim, claim, claim, claim
	holder.Holder += "x"
	earlier.Term--
	later.Term++
	number.Number = 1 - number.Number
	beyond.Number = 2
	for _, foreign := range []nodelease.Claim{holder, earlier, later, number, beyond} {
		c.refused(p, foreign)
		s.open().refused(p, foreign)
	}
	claim = c.renew(p, claim, 1200)
	c.release(p, claim, 1150)
	for _, mark := range []int64{201, 1150} {
		c.claimAfter(p, s.request(2000, 100), mark)
	}
}

// testLostAnswers checks that a holder keeps a claim although the answers to its renewals
// are lost, whether or not these took effect, and that late renewals change nothing.
func (s *suite) testLostAnswers() {
	p := s.pool(1)
	c := s.open()
	claim := c.claim(p, s.request(0, 100))
	for i := range int64(3) {
		known := claim
		lost := c.renew(p, known, 1000*i+200)
		c.refused(p, known) // without the nonce of the lost answer
		known.Sent = []string{rand.Text(), lost.Nonce, rand.Text()}
		claim = c.renew(p, known, 1000*i+300)
		c.refused(p, lost) // a renewal that was sent before, and arrives late
		claim.Sent = []string{rand.Text()}
		claim = c.renew(p, claim, 1000*i+400) // none took effect
	}
	claim.Past, claim.Nonce = []string{"", rand.Text(), claim.Nonce, rand.Text()}, rand.Text() // the store went back in time
	claim = c.renew(p, claim, 3800)
	known, lost := claim, c.renew(p, claim, 4000)
	known.Sent, known.Past = []string{lost.Nonce}, nil
	c.release(p, known, 3500)
	c.refused(p, lost)
	c.claimAfter(p, s.request(5000, 100), 3500)
}

// testCopies checks that of two copies of a holder, such as the processes of a virtual
// machine whose snapshot was resumed twice, only the first to renew the claim keeps it. A
// release by the other one changes nothing.
func (s *suite) testCopies() {
	p := s.pool(1)
	c := s.open()
	for i := range int64(3) {
		at := 10_000 * i
		claim := c.claim(p, s.request(at, 100))
		switch i {
		case 1: // copied after a renewal
			claim = c.renew(p, claim, at+200)
		case 2: // copied when the answer to a renewal was lost
			lost := c.renew(p, claim, at+200)
			claim.Sent = []string{lost.Nonce}
		}
		first, second := claim, claim
		first = c.renew(p, first, at+300)
		c.refused(p, second)
		first = c.renew(p, first, at+400)
		c.refused(p, second)
		s.open().busy(p, s.request(at+5000, 100), 1, 0, 0)
		c.release(p, first, at+350)
		c.release(p, c.claimAfter(p, s.request(at+5000, 100), at+350), at+5050)
	}
}
