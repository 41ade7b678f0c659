//go:build unix

package nodelease

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// A server is a store's server, with its data and its port for good.
type server struct {
	pause, unpause func(testing.TB)
	cut, join      func(testing.TB) // from its network, and with that from everybody
	// ends are the ways in which it ends, for start to start it again.
	ends  []ending
	start func(testing.TB)
	// refuses reports whether calls fail at once while it is gone, instead of waiting.
	refuses bool
	// cutAlways reports whether outages cut it from its network outside CI too.
	cutAlways bool
}

type ending struct {
	name string
	end  func(testing.TB)
}

// serverFaults are scenarios, one after the other, of a server of their own.
var serverFaults = map[string]func(*testing.T, scenarios, *server){
	"outages":       outages,
	"interruptions": interruptions,
}

// outages are scenarios in which the server is gone for too long.
func outages(t *testing.T, scenarios scenarios, srv *server) {
	outage := func(t *testing.T, gone, back func(testing.TB)) {
		t.Helper()
		scenarios.run(t, func(t *testing.T, s *scenario) { outage(t, s, gone, back) })
	}
	t.Run(srv.ends[0].name, func(t *testing.T) { outage(t, srv.ends[0].end, srv.start) })
	t.Run("cut", func(t *testing.T) {
		if !srv.cutAlways {
			pgtest.ThoroughOnly(t) // it runs on Postgres
		}
		outage(t, srv.cut, srv.join)
	})
	t.Run("pause", func(t *testing.T) {
		pgtest.ThoroughOnly(t)
		outage(t, srv.pause, srv.unpause)
	})
}

// outage has the server gone for longer than claims last. Minting stops, and goes
// on with other claims once it is back.
func outage(t *testing.T, s *scenario, gone, back func(testing.TB)) {
	t.Helper()
	once, again, jumper := s.start(t), s.start(t, "-reacquire"), s.start(t, "-clock")
	for _, m := range s.minters {
		m.mints(t)
	}
	first := again.acquired(t)
	// What was granted last is what a server would forget first.
	once.renews(t, 1)
	gone(t)
	// To the process this is as if it had been suspended for an hour, with its
	// monotonic clock: the claim is still trusted, but not for this time.
	jumper.order(t, "clock 1h")
	for _, m := range s.minters {
		e := s.lost(t, m, 1)
		if e.Since > s.window()+late(s.ttl) {
			t.Errorf("expected process %s to notice its loss %v after its last renewal was asked for, got %v", m.name, s.window(), e.Since)
		}
		if e.Failures == 0 {
			t.Errorf("expected process %s to have counted renewals that failed, got none: %+v", m.name, e)
		}
	}
	once.tries(t)
	jumper.tries(t)
	if n := again.count(journal.Acquired); n != 1 {
		t.Errorf("expected no other claim while the server is gone, got %d", n-1)
	}
	back(t)
	// The numbers of the others are free by now, or about to be.
	second := again.told(t, journal.Acquired, 2, patience)
	if second.Number == first.Number && second.Term <= first.Term {
		t.Errorf("expected another claim than term %d of number %d, got term %d of number %d", first.Term, first.Number, second.Term, second.Number)
	}
	again.mints(t)
	// The number of one may be spoilt: a server that was paused gets all that it
	// was sent meanwhile, also a high-water mark that is an hour ahead.
	others := []*minter{s.start(t, "-wait", "10m"), s.start(t, "-wait", "10m")}
	for _, m := range others {
		m.mints(t)
	}
	for _, m := range append(others, again) {
		m.close(t)
	}
	s.check(t)
}

// interruptions are scenarios in which the server is gone for a shorter time than
// claims are trusted: nothing is lost.
func interruptions(t *testing.T, scenarios scenarios, srv *server) {
	t.Run("pause", func(t *testing.T) {
		interruption(t, scenarios, 1, 1.0/3, srv.pause, srv.unpause)
	})
	for _, way := range srv.ends {
		t.Run(way.name, func(t *testing.T) {
			pgtest.ThoroughOnly(t)
			lasts := 0.1
			if srv.refuses {
				// A renewal, which is due after a third, falls into that.
				lasts = 0.4
			}
			// There has to be time for the server to start.
			if n := interruption(t, scenarios, 2, lasts, way.end, srv.start); n == 0 && srv.refuses {
				t.Error("expected renewals to fail while the server is gone, got none that did")
			}
		})
	}
}

// interruption has the server gone for a part of a TTL, which is so many times
// that of the scenario, and gives how many renewals have failed.
func interruption(t *testing.T, scenarios scenarios, times int, lasts float64, gone, back func(testing.TB)) (failures uint64) {
	t.Helper()
	scenarios.run(t, func(t *testing.T, s *scenario) {
		s.ttl *= time.Duration(times)
		m := s.start(t, "-reacquire")
		m.mints(t)
		// From right after a renewal on, so that most time is left.
		renewals := m.count(journal.Renewed) + 1
		m.told(t, journal.Renewed, renewals, patience)
		begun := time.Now()
		gone(t)
		time.Sleep(time.Duration(lasts * float64(s.ttl)))
		back(t)
		took := time.Since(begun)
		m.told(t, journal.Renewed, renewals+1, patience)
		if took > s.window()*2/3 {
			s.repeat("the server was gone for %v of a TTL of %v", took, s.ttl)
		}
		m.keeps(t)
		m.close(t)
		s.check(t)
		failures = m.told(t, journal.Closed, 1, patience).Failures
	})
	return failures
}
