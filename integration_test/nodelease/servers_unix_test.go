//go:build unix

package nodelease

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// A server is the server of a store. It keeps its data and its port when it is
// restarted.
type server struct {
	pause, unpause func(testing.TB)
	cut, join      func(testing.TB) // disconnect it from its network, and reconnect it
	// ends are the ways to end the server; start restarts it.
	ends  []ending
	start func(testing.TB)
	// refuses reports whether calls fail at once while the server is down, instead of
	// waiting.
	refuses bool
}

type ending struct {
	name string
	end  func(testing.TB)
}

// outages are scenarios in which the server is down for longer than claims last.
func outages(t *testing.T, scenarios scenarios, srv *server) {
	outage := func(t *testing.T, gone, back func(testing.TB)) {
		t.Helper()
		scenarios.run(t, func(t testing.TB, s *scenario) { outage(t, s, gone, back) })
	}
	t.Run(srv.ends[0].name, func(t *testing.T) { outage(t, srv.ends[0].end, srv.start) })
	t.Run("cut", func(t *testing.T) { outage(t, srv.cut, srv.join) })
	t.Run("pause", func(t *testing.T) { outage(t, srv.pause, srv.unpause) })
}

// outage takes the server down for longer than claims last. The generators stop, and
// continue with new claims once the server is back.
func outage(t testing.TB, s *scenario, gone, back func(testing.TB)) {
	t.Helper()
	once, again, jumper := s.start(t), s.start(t, "-reacquire"), s.start(t, "-clock")
	for _, m := range s.minters {
		m.mints(t)
	}
	first := again.acquired(t)
	// Wait for a renewal: a server that loses writes would lose the latest.
	once.renews(t, 1)
	gone(t)
	// To the process this looks as if it had been suspended for an hour. By its monotonic
	// clock the claim is still trusted, but the time is after Until.
	jumper.order(t, "clock 1h")
	for _, m := range s.minters {
		e := s.lost(t, m, 1)
		if e.Since > s.window()+late(s.ttl) {
			s.busy(t, "process %s noticed the loss %v after it sent its last renewal; want %v", m.name, e.Since, s.window())
		}
		if e.Failures == 0 {
			t.Errorf("expected process %s to count failed renewals, got none: %+v", m.name, e)
		}
	}
	once.tries(t)
	jumper.tries(t)
	if n := again.count(journal.Acquired); n != 1 {
		t.Errorf("expected no new claim while the server is down, got %d", n-1)
	}
	back(t)
	// The numbers of the other processes are free by now, or soon.
	second := again.told(t, journal.Acquired, 2, patience)
	if second.Number == first.Number && second.Term <= first.Term {
		t.Errorf("expected a new claim after term %d of number %d, got term %d of number %d", first.Term, first.Number, second.Term, second.Number)
	}
	again.mints(t)
	// One number may be unusable: a server that was paused still processes the requests
	// sent to it, also one with a high-water mark an hour ahead.
	others := []*minter{s.start(t, "-wait", "10m"), s.start(t, "-wait", "10m")}
	for _, m := range others {
		m.mints(t)
	}
	for _, m := range append(others, again) {
		m.close(t)
	}
	s.check(t)
}

// interruptions are scenarios in which the server is down for a shorter time than claims
// are trusted, so that no claim is lost.
func interruptions(t *testing.T, scenarios scenarios, srv *server) {
	t.Run("pause", func(t *testing.T) {
		interruption(t, scenarios, 1, 1.0/3, srv.pause, srv.unpause)
	})
	for _, way := range srv.ends {
		t.Run(way.name, func(t *testing.T) {
			lasts := 0.1
			if srv.refuses {
				// Long enough for a renewal, which is due after a third of the TTL.
				lasts = 0.4
			}
			// Twice the TTL, to have time for the start of the server.
			if n := interruption(t, scenarios, 2, lasts, way.end, srv.start); n == 0 && srv.refuses {
				t.Error("expected failed renewals while the server is down, got none")
			}
		})
	}
}

// interruption takes the server down for a fraction of the TTL, which is a multiple of
// the scenario's TTL. It returns the number of failed renewals.
func interruption(t *testing.T, scenarios scenarios, times int, lasts float64, gone, back func(testing.TB)) (failures uint64) {
	t.Helper()
	scenarios.run(t, func(t testing.TB, s *scenario) {
		s.ttl *= time.Duration(times)
		m := s.start(t, "-reacquire")
		m.mints(t)
		// Start right after a renewal, when the trust window is longest.
		renewals := m.count(journal.Renewed) + 1
		m.told(t, journal.Renewed, renewals, patience)
		begun := time.Now()
		gone(t)
		time.Sleep(time.Duration(lasts * float64(s.ttl)))
		back(t)
		took := time.Since(begun)
		m.told(t, journal.Renewed, renewals+1, patience)
		if took > s.window()*2/3 {
			s.busy(t, "the server was down for %v of a TTL of %v", took, s.ttl)
		}
		m.keeps(t)
		m.close(t)
		s.check(t)
		failures = m.told(t, journal.Closed, 1, patience).Failures
	})
	return failures
}
