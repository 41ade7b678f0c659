package migrations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// A number is reserved while the sequence of the format is behind its high-water mark. If the server's clock is set
// back before the first default, there are no IDs of the earlier holder.
func TestReserveBeforeClockStep(t *testing.T) {
	t.Parallel()
	pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) {
		up(t, db, complete)
		g := instance(t, db)
		seen := map[int64]bool{}
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
			id, err := g.Next()
			must(t, err)
			seen[id.Int64()] = true
		}
		node := g.Stats().Claim.Number
		must(t, g.Close())
		conn := db.Conn(t)
		exec(t, conn, fmt.Sprintf("SELECT sortkey.reserve_node('snowflake', %d, 'defaults')", node))
		clock.Step(t, -time.Hour)
		var id int64
		next := fmt.Sprintf("SELECT sortkey.next_snowflake(%d)", node)
		if err := conn.QueryRow(t.Context(), next).Scan(&id); err == nil || !strings.Contains(err.Error(), "is behind") {
			t.Errorf("want an error about the clock, got the ID %d and %v", id, err)
		}
		for _, offset := range []time.Duration{-3 * time.Second, 0} { // first in the time of the earlier holder
			clock.Step(t, offset)
			for range 300 {
				err := conn.QueryRow(t.Context(), next).Scan(&id)
				if offset < 0 && err != nil {
					break
				}
				must(t, err)
				if seen[id] {
					t.Fatalf("ID %d of the earlier holder", id)
				}
			}
		}
	})
}

// The server's clock steps back and forward while 8 sessions generate IDs. There are
// no duplicates. The IDs of a session increase. If the clock is behind, a call waits for a second at most and then returns
// an error. Calls succeed again once the clock has caught up.
func TestServerClockSteps(t *testing.T) {
	t.Parallel()
	const clients = 8
	pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) {
		up(t, db, complete)
		setNode(t, db, migrations.DefaultSchema, genNode)
		formats := genFormats()
		for _, f := range formats {
			db.Exec(t, fmt.Sprintf("create unlogged table %s (id %s primary key)", f.name, f.column))
		}
		clientsOf, probe, probes := stormClients(t, db, formats, clients), db.Conn(t), genConns(t, db, len(formats))
		load := genStart(clients, func(i, n int) (string, error) { return genClockInsert(t, clientsOf[i], n) })

		var high, at time.Duration // the highest offset of the clock so far, and the current one
		woken := 0
		for _, step := range pgtest.Scaled(
			[]time.Duration{-500 * time.Millisecond, -time.Hour, 0, time.Hour},
			[]time.Duration{
				-5 * time.Millisecond, 0, -500 * time.Millisecond, 0, -3 * time.Millisecond, -time.Hour, 0,
				time.Hour, 0, time.Hour, time.Hour - 5*time.Millisecond, time.Hour - 500*time.Millisecond, time.Hour + time.Second,
			}) {
			back := step < at
			clock.Step(t, step)
			at, high = step, max(at, high, step)
			if back {
				woken += genWake(t, probe)
			}
			behind := high-at > 2*time.Second
			n := 100
			if behind {
				n = 1 // not even the rest of the unit is usable
			}
			errs, times := make([]error, len(formats)), make([]time.Duration, len(formats))
			genEach(t, len(formats), func(i int) error {
				start := time.Now()
				_, errs[i] = probes[i].Exec(t.Context(), fmt.Sprintf("select %s from generate_series(1, %d)", formats[i].next(), n))
				times[i] = time.Since(start)
				return nil
			})
			for i, f := range formats {
				err, took := errs[i], times[i]
				if behind {
					wantSQLState(t, err, "55000", f.next(), " is behind ", "the last ID of "+f.clock(), "The server's clock was set back.")
				} else if err != nil {
					t.Errorf("%s: expected IDs at %s, where the highest offset was %s; got %v", f.name, at, high, err)
				}
				if took > genClockPatience {
					t.Errorf("%s: expected a result after about a second, got %v after %s", f.name, err, took)
				}
			}
			// Sessions continue at the new time. They generate IDs if it is the highest so far.
			tried := func() int { return load.count("inserted") + load.count("behind") }
			before, inserted := tried(), load.count("inserted")
			load.await(t, fmt.Sprintf("sessions continue at %s, where the highest offset was %s", at, high), func() bool {
				return tried() >= before+2*clients && (high > at || load.count("inserted") > inserted)
			})
		}
		must(t, load.end())
		t.Logf("%v, %d were asleep when the clock was set back", load.counts, woken)
		if load.count("inserted") == 0 || load.count("behind") == 0 {
			t.Error("expected statements that succeed and statements that fail because the clock is behind")
		}

		// Use another connection, since a canceled statement can close its own.
		for _, f := range formats {
			if ahead := pgtest.Value[float64](t, probe, fmt.Sprintf("select extract(epoch from max(sortkey.%[1]s_time(id)) - clock_timestamp())::float8 from %[1]s", f.name)); ahead*1000 >= genAhead {
				t.Errorf("%s: expected no ID %d ms ahead of the highest clock, got one %.3f s ahead", f.name, genAhead, ahead)
			}
		}
	})
}

// genClockPatience is the time limit for a statement on a busy machine. Its calls
// wait for a second, as counted by the server. If they waited for the clock to catch
// up, they would wait for up to an hour.
const genClockPatience = 2 * time.Minute

// genClockInsert generates IDs. It returns no error if the clock is behind.
func genClockInsert(t *testing.T, c *stormClient, n int) (string, error) {
	f, start := c.formats[c.format(n)], time.Now()
	err := c.insert(t.Context(), n)
	result := "failed"
	switch state := pgerror.State(err); {
	case state == "57014": // query_canceled, by genWake
		return "canceled", nil
	case state == "55000" && strings.Contains(err.Error(), "the last ID of "+f.clock()): // object_not_in_prerequisite_state
		result, err = "behind", nil
	case err == nil:
		result = "inserted"
	}
	if took := time.Since(start); took > genClockPatience {
		return result, fmt.Errorf("%s: expected a result after about a second, got one after %s: %w", f.name, took, err)
	}
	return result, err
}

// genWake cancels statements that are asleep after the clock was set back, and returns their
// number. They would sleep until the clock reaches their wake-up time. Their start time is later
// than the current time.
func genWake(t *testing.T, conn *pgx.Conn) (woken int) {
	t.Helper()
	pgtest.Eventually(t, "no statement from before the clock was set back is running", func() error {
		var began, asleep int
		must(t, conn.QueryRow(t.Context(), `select count(*), count(*) filter (where wait_event = 'PgSleep' and pg_cancel_backend(pid))
			from pg_stat_activity where backend_type = 'client backend' and state = 'active' and pid <> pg_backend_pid()
				and query_start > clock_timestamp()`).Scan(&began, &asleep))
		if woken += asleep; began > 0 {
			return fmt.Errorf("%d are running", began)
		}
		return nil
	})
	return woken
}

// A number that defaults used while the server's clock was ahead is free once the clock has passed
// their last ID.
func TestUnreserveAfterClockAhead(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		const schema = "ahead"
		genInstallClock(t, db, schema, "clock_timestamp() + interval '1 minute'")
		for _, g := range genFormatsOf(schema) {
			if !g.hasNodes() {
				continue
			}
			name := strings.ReplaceAll(g.name, "_", "-")
			db.Exec(t, fmt.Sprintf("SELECT %s.reserve_node('%s', %d, 'x')", schema, name, g.node))
			genSetClock(t, db, "clock_timestamp() + interval '1 minute'")
			last := columnOf(t, db.SQL(t), "SELECT "+g.call("time", g.nextOf(g.node)))[0]
			genSetClock(t, db, "clock_timestamp()")
			db.Exec(t, fmt.Sprintf("SELECT %s.unreserve_node('%s', %d)", schema, name, g.node))
			pool, number := g.pool(g.node)
			wantRows(t, db.SQL(t), fmt.Sprintf("SELECT mark >= extract(epoch FROM timestamptz '%s') * 1000 FROM %s.node_lease WHERE pool = '%s' AND number = %d", last, schema, pool, number), "true")
		}
	})
}
