//go:build unix

package nodelease

import (
	"testing"
	"time"
)

// A process whose clock is an hour ahead is killed. Its own number is unusable for an
// hour, and no other number is.
func clockAhead(t testing.TB, s *scenario) {
	s.format = "snowflake:1"
	ahead := s.start(t, "-offset", "1h")
	spoilt := ahead.acquired(t).Number
	ahead.mints(t)
	ahead.kill(t)
	// On a slow machine, the killed process may have claimed a second number, until its TTL is over.
	right := s.start(t, "-wait", (2 * s.ttl).String())
	if n := right.acquired(t).Number; n == spoilt {
		t.Errorf("expected another number than %d, whose high-water mark is ahead", n)
	}
	right.mints(t)

	// The claim of the killed process expires during this wait.
	expectBehind(t, s.start(t, "-wait", (2*s.ttl).String()), 2*s.ttl, time.Hour)
	right.close(t)
	again := s.start(t, "-wait", (2 * s.ttl).String())
	if n := again.acquired(t).Number; n == spoilt {
		t.Errorf("expected another number than %d, whose high-water mark is ahead", n)
	}

	// A process with a clock an hour ahead can use the number.
	other := s.start(t, "-offset", "1h", "-wait", "10m")
	if e := other.acquired(t); e.Number != spoilt || e.After < time.Now().Add(time.Hour-patience).UnixMilli() {
		t.Errorf("expected number %d after a time an hour ahead, got number %d after %v", spoilt, e.Number, time.UnixMilli(e.After))
	}
	other.mints(t)
	other.close(t)
	again.mints(t)
	again.close(t)
	s.check(t)
}

// expectBehind checks that a process fails after wait because its clock is behind a
// high-water mark by about the duration by.
func expectBehind(t testing.TB, m *minter, wait, by time.Duration) {
	t.Helper()
	e := m.fails(t)
	if !e.Behind || e.Exhausted {
		t.Errorf("expected process %s to fail with ErrClockBehind, got %q", m.name, e.Error)
	}
	if e.Took < wait {
		t.Errorf("expected process %s to fail after %v, got %v", m.name, wait, e.Took)
	}
	if (e.RetryAfter - by).Abs() > patience {
		t.Errorf("expected a RetryAfter of about %v, got %v: %s", by, e.RetryAfter, e.Error)
	}
}

// A process whose clock is an hour behind gets an unused number, but no used one.
func clockBehind(t testing.TB, s *scenario) {
	s.format = "snowflake:1"
	right := s.start(t)
	used := right.acquired(t).Number
	right.mints(t)
	right.close(t)
	slow := s.start(t, "-offset", "-1h", "-wait", "-1s")
	if n := slow.acquired(t).Number; n == used {
		t.Errorf("expected the unused number, got %d", n)
	}
	slow.mints(t)
	expectBehind(t, s.start(t, "-offset", "-1h", "-wait", "1s"), time.Second, time.Hour)
	other := s.start(t, "-wait", "-1s")
	if n := other.acquired(t).Number; n != used {
		t.Errorf("expected the free number %d, got %d", used, n)
	}
	other.mints(t)
	slow.mints(t)
	slow.close(t)
	other.close(t)
	s.check(t)
}

// A holder's clock is set back to a time in which the previous holder created IDs. The
// format, Sno, doesn't wait for the clock.
func clockSetBack(t testing.TB, s *scenario) {
	s.format = "sno:1"
	first := s.start(t)
	first.mints(t)
	first.renews(t, 1) // after more than a second
	first.close(t)
	second := s.start(t, "-clock")
	second.mints(t)
	// Set the clock back several times, so that the tick-tock bit doesn't distinguish the
	// IDs of the two holders.
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
