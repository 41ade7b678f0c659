//go:build unix

package nodelease

import (
	"slices"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
	"github.com/sortkey/sortkey/migrations"
)

// The faults don't depend on the version of Postgres, so the tests use the latest.
func TestPostgres(t *testing.T) {
	t.Parallel()
	program := pgtest.Build(t, "./minter")
	in := func(t *testing.T, db *pgtest.DB) scenarios {
		t.Helper()
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		return scenarios{program, []string{"-postgres", db.URL}}
	}
	// The longest tests start first.
	type clocked struct {
		*pgtest.DB
		*pgtest.Clock
	}
	each := func(t *testing.T, f func(*testing.T, clocked)) {
		pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) { f(t, clocked{db, clock}) })
	}
	for _, test := range []struct {
		name string
		f    func(testing.TB, *scenario, *pgtest.Clock)
	}{{"server clock", serverClock}, {"takeover", takenOver}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			started(t, each, func(t *testing.T, server clocked) {
				in(t, server.DB).run(t, func(t testing.TB, s *scenario) { test.f(t, s, server.Clock) })
			})
		})
	}
	for _, test := range []struct {
		name string
		f    func(*testing.T, scenarios, *server)
	}{{"outages", outages}, {"chaos", chaos}, {"interruptions", interruptions}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			started(t, pgtest.OneServer, func(t *testing.T, db *pgtest.DB) {
				test.f(t, in(t, db), postgresServer(db))
			})
		})
	}
	for _, p := range slices.Concat(processes, clocks) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			started(t, pgtest.One, func(t *testing.T, db *pgtest.DB) {
				in(t, db).run(t, p.f)
			})
		})
	}
}

// postgresServer returns the server of a database.
func postgresServer(db *pgtest.DB) *server {
	ctr := db.Container()
	end := func(name, signal string) ending {
		return ending{name, func(t testing.TB) { pgtest.Stop(t, ctr, signal) }}
	}
	return &server{
		pause:   func(t testing.TB) { pgtest.Pause(t, ctr) },
		unpause: func(t testing.TB) { pgtest.Unpause(t, ctr) },
		cut:     func(t testing.TB) { pgtest.Disconnect(t, ctr) },
		join:    func(t testing.TB) { pgtest.Reconnect(t, ctr) },
		ends:    []ending{end("crash", "KILL"), end("stop", "INT")}, // SIGINT is a fast shutdown
		start:   func(t testing.TB) { pgtest.Start(t, ctr) },
		refuses: true,
	}
}

// takenOver steps the server's clock ahead. The server grants the number to a process
// whose clock is ahead too, while the holder still trusts its claim. Both create IDs, in
// ranges separated by the high-water mark. The holder learns of the loss at its next
// renewal.
func takenOver(t testing.TB, s *scenario, clock *pgtest.Clock) {
	clock.Step(t, 0)
	s.format, s.ttl = "sno:1", 3*s.ttl
	holder := s.start(t)
	holder.mints(t)
	holder.told(t, journal.Renewed, 1, patience)
	clock.Step(t, time.Hour)
	early := s.start(t, "-offset", (2 * s.ttl).String(), "-wait", "-1s")
	if e := early.acquired(t); e.After < time.Now().UnixMilli() {
		s.busy(t, "the takeover was after the holder's high-water mark, %v", time.UnixMilli(e.After))
	}
	holder.mints(t)
	if n := holder.count(journal.Lost); n > 0 {
		s.busy(t, "the holder renewed its claim before it created IDs")
	}
	early.mints(t)
	if e := s.lost(t, holder, 1); !e.Superseded {
		t.Errorf("expected ErrSuperseded, got: %s", e.Error)
	} else if e.Since > s.ttl/2+late(s.ttl) {
		s.busy(t, "the holder learned of the loss %v after its last renewal", e.Since)
	}
	holder.tries(t)
	early.close(t)
	s.check(t)
}

// serverClock steps the server's clock by an hour while claims are held. Live holders
// keep their claims. The number of a killed holder is free about a TTL later.
func serverClock(t testing.TB, s *scenario, clock *pgtest.Clock) {
	clock.Step(t, 0)
	s.format = "snowflake:1"
	lives, dies := s.start(t), s.start(t)
	lives.acquired(t)
	number := dies.acquired(t).Number
	steps := []time.Duration{time.Hour, 0, -time.Hour}
	for _, step := range steps {
		dies.mints(t)
		waits := s.start(t, "-wait", "10m")
		if step > 0 {
			// Live holders renew their claims before another process can get the numbers.
			clock.Step(t, step)
			dies.renews(t, 4)
			dies.keeps(t)
			if n := waits.count(journal.Acquired); n > 0 {
				t.Fatal("with the server's clock an hour ahead, a process got the number of a live holder")
			}
			dies.kill(t)
		} else {
			// The claim isn't renewed any more, and by the stepped clock lasts another hour.
			dies.kill(t)
			clock.Step(t, step)
		}
		// The number must be free long before an hour has passed.
		if e := waits.acquired(t); e.Number != number {
			t.Errorf("server clock stepped to %v: expected number %d, got number %d", step, number, e.Number)
		}
		lives.keeps(t)
		dies = waits
	}
	lives.close(t)
	dies.close(t)
	if c := s.check(t); c.handovers() != len(steps) {
		t.Errorf("expected %d handovers, got %d", len(steps), c.handovers())
	}
}
