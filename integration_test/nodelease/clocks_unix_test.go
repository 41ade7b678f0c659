//go:build unix

package nodelease

import (
	"testing"
	"time"
)

// A process whose clock is an hour ahead is killed. It spoils its own number for
// an hour, and no other.
func clockAhead(t *testing.T, s *scenario) {
	s.format = "snowflake:1"
	ahead := s.start(t, "-offset", "1h")
	spoilt := ahead.acquired(t).Number
	ahead.mints(t)
	ahead.kill(t)
	right := s.start(t, "-wait", "-1s")
	if n := right.acquired(t).Number; n == spoilt {
		t.Errorf("expected a process to get the number that isn't spoilt, got %d", n)
	}
	right.mints(t)

	// By the end of its wait the claim of the one that was killed is over.
	expectBehind(t, s, s.start(t, "-wait", (2*s.ttl).String()), 2*s.ttl, time.Hour)
	right.close(t)
	again := s.start(t, "-wait", "-1s")
	if n := again.acquired(t).Number; n == spoilt {
		t.Errorf("expected a process to get the number that isn't spoilt, got %d", n)
	}

	// With such a clock the number can be used.
	other := s.start(t, "-offset", "1h", "-wait", "10m")
	if e := other.acquired(t); e.Number != spoilt || e.After < time.Now().Add(time.Hour-patience).UnixMilli() {
		t.Errorf("expected a process with a clock an hour ahead to get number %d, from an hour ahead on, got number %d after %v", spoilt, e.Number, time.UnixMilli(e.After))
	}
	other.mints(t)
	other.close(t)
	again.mints(t)
	again.close(t)
	s.check(t)
}

// expectBehind expects a process that gets no number since its clock is behind
// a high-water mark by about as much.
func expectBehind(t *testing.T, s *scenario, m *minter, wait, by time.Duration) {
	t.Helper()
	e := m.fails(t)
	if !e.Behind || e.Exhausted {
		t.Errorf("expected process %s to find its clock behind, got %q", m.name, e.Error)
	}
	if e.Took < wait || e.Took > wait+s.ttl/2+late(s.ttl) {
		t.Errorf("expected process %s to fail after %v, got %v", m.name, wait, e.Took)
	}
	if (e.RetryAfter - by).Abs() > patience {
		t.Errorf("expected to be told to try again about %v later, got %v: %s", by, e.RetryAfter, e.Error)
	}
}

// A process whose clock is an hour behind gets a number that was never used, but
// none that was.
func clockBehind(t *testing.T, s *scenario) {
	s.format = "snowflake:1"
	right := s.start(t)
	used := right.acquired(t).Number
	right.mints(t)
	right.close(t)
	slow := s.start(t, "-offset", "-1h", "-wait", "-1s")
	if n := slow.acquired(t).Number; n == used {
		t.Errorf("expected a process whose clock is behind to get the number that was never used, got %d", n)
	}
	slow.mints(t)
	expectBehind(t, s, s.start(t, "-offset", "-1h", "-wait", "1s"), time.Second, time.Hour)
	other := s.start(t, "-wait", "-1s")
	if n := other.acquired(t).Number; n != used {
		t.Errorf("expected a process whose clock is right to get the number that is left, %d, got %d", used, n)
	}
	other.mints(t)
	slow.mints(t)
	slow.close(t)
	other.close(t)
	s.check(t)
}

// A holder's clock is set back to a time in which the holder before it minted,
// and in a format that needn't wait for the clock.
func clockSetBack(t *testing.T, s *scenario) {
	s.format = "sno:1"
	first := s.start(t)
	first.mints(t)
	first.renews(t, 1) // after more than a second
	first.close(t)
	second := s.start(t, "-clock")
	second.mints(t)
	// To and fro, so that no bit sets its IDs apart.
	for _, back := range []string{"-300ms", "-600ms", "-900ms", "-1200ms"} {
		second.order(t, "clock "+back)
		second.mints(t)
	}
	second.order(t, "clock 0s")
	second.keeps(t)
	second.close(t)
	if c := s.check(t); c.handovers() != 1 {
		t.Errorf("expected one handover, got %d", c.handovers())
	}
}
