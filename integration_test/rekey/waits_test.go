package rekey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// What a step waits for: other sessions, autovacuum, replicas and the creation of indexes.

// events is a table without references.
const events = `CREATE TABLE events (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL);
	INSERT INTO events (created_at) SELECT now() - n * interval '1 s' FROM generate_series(1, %d) n`

func eventsSpec() rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{{Table: "events", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Column: "created_at"}}}}
}

// A batch reads only its own rows, although the server doesn't know yet how many rows lack a
// new key.
func TestBatchesByIndex(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		const rows = 50_000
		db.Exec(t, fmt.Sprintf(events, rows)+"; ANALYZE events")
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepExpand)
		conn := db.Conn(t)
		// read returns the number of rows that scans of the whole table have read.
		read := func() int {
			return pgtest.Value[int](t, conn, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'events'")
		}
		before := read()
		batches := 0
		pool := db.SQL(t)
		mustRun(t, pool, eventsSpec(), rekey.Options{Progress: func(p rekey.Progress) {
			if !p.Done && p.Waiting == "" {
				batches++
			}
		}}, rekey.StepBackfill)
		must(t, pool.Close()) // a server process reports its statistics at its end
		// CREATE INDEX CONCURRENTLY reads the table twice, and the query for rows that are left once.
		pgtest.Eventually(t, "the server counts the scans of the backfill", func() error {
			if got := read() - before; got < 3*rows {
				return fmt.Errorf("%d rows", got)
			}
			return nil
		})
		if got := read() - before; got > 4*rows {
			t.Errorf("expected scans of the whole table to read at most %d rows, got %d in %d batches", 4*rows, got, batches)
		}
	})
}

// An autovacuum that works on a table for longer than an attempt to get a lock doesn't keep a
// step from its locks.
func TestVacuum(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "ALTER SYSTEM SET autovacuum_naptime = '1s'")
		db.Exec(t, "SELECT pg_reload_conf()")
		pool := db.SQL(t)
		must(t, migrations.Up(t.Context(), pool, config))
		db.Exec(t, fmt.Sprintf(events, 20_000)+"; ALTER TABLE events SET (autovacuum_vacuum_threshold = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)")
		conn := db.Conn(t)
		for _, step := range steps {
			if _, err := conn.Exec(t.Context(), "UPDATE events SET created_at = created_at"); err != nil {
				t.Fatal(err)
			}
			pgtest.Eventually(t, "autovacuum works on the table", func() error {
				if pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 'events'::regclass") == 0 {
					return errors.New("no autovacuum")
				}
				return nil
			})
			mustRun(t, pool, eventsSpec(), rekey.Options{LockWait: 30 * time.Second}, step)
		}
	})
}

// Transactions that use two tables in opposite orders, and overlap all the time, don't keep a
// step from its locks.
func TestOppositeOrders(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 100)+"; CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint NOT NULL); INSERT INTO notes (event_id) SELECT id FROM events")
		spec := eventsSpec()
		spec.References = []rekey.Reference{{Table: "notes", Column: "event_id", To: "events"}}
		ctx, stop := context.WithCancel(t.Context())
		failed := make(chan error, 8)
		for i := range cap(failed) {
			tables := []string{"events", "notes"}
			if i%2 == 0 {
				slices.Reverse(tables)
			}
			conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
			go func() {
				for ctx.Err() == nil {
					_, err := conn.Exec(context.WithoutCancel(ctx), fmt.Sprintf("BEGIN; SELECT 1 FROM %s LIMIT 1; SELECT pg_sleep(0.02); SELECT 1 FROM %s LIMIT 1; COMMIT", tables[0], tables[1]))
					if err != nil {
						failed <- err
						return
					}
				}
				failed <- nil
			}()
		}
		// An attempt lasts for several transactions, also on a slow machine.
		mustRun(t, db.SQL(t), spec, rekey.Options{LockTimeout: 500 * time.Millisecond, LockWait: time.Minute}, steps...)
		stop()
		for range cap(failed) {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	})
}

// The backfill waits for a replica that is further behind than MaxLag, also if the replica
// doesn't answer.
func TestReplica(t *testing.T) {
	t.Parallel()
	const rows = 30_000
	pgtest.OnePair(t, func(t *testing.T, db, replica *pgtest.DB, link *pgtest.Link) {
		db.Exec(t, "ALTER SYSTEM SET wal_sender_timeout = 0") // keep the replica that doesn't answer
		db.Exec(t, "SELECT pg_reload_conf()")
		pool := db.SQL(t)
		must(t, migrations.Up(t.Context(), pool, config))
		db.Exec(t, fmt.Sprintf(events, rows)+"; CREATE TABLE ticks (n integer PRIMARY KEY); INSERT INTO ticks VALUES (1); CREATE PUBLICATION changes FOR TABLE ticks")
		replica.Exec(t, "CREATE TABLE ticks (n integer PRIMARY KEY)")
		replica.Exec(t, fmt.Sprintf("CREATE SUBSCRIPTION copy CONNECTION '%s' PUBLICATION changes", link.URL(t, db)))
		there := replica.Conn(t)
		caughtUp := func() error {
			if n := pgtest.Value[int](t, there, "SELECT count(*) FROM ticks"); n != 1 {
				return fmt.Errorf("the replica has %d rows", n)
			}
			return nil
		}
		pgtest.Eventually(t, "the replica has all rows", caughtUp)
		mustRun(t, pool, eventsSpec(), rekey.Options{}, rekey.StepExpand)

		// The replica waits for a lock on its table, and doesn't answer meanwhile.
		lock, err := there.Begin(t.Context())
		must(t, err)
		_, err = lock.Exec(t.Context(), "LOCK TABLE ticks IN ACCESS EXCLUSIVE MODE")
		must(t, err)
		db.Exec(t, "INSERT INTO ticks VALUES (2)")
		var waiting string
		o := rekey.Options{MaxLag: 2 * time.Second, Pause: 0.97, Progress: func(p rekey.Progress) {
			if p.Waiting != "" && waiting == "" {
				waiting = p.Waiting
				must(t, lock.Rollback(t.Context()))
			}
		}}
		mustRun(t, pool, eventsSpec(), o, rekey.StepBackfill)
		if !strings.HasPrefix(waiting, "replica copy is ") || !strings.HasSuffix(waiting, "s behind") {
			t.Errorf("expected the backfill to wait for the replica, got %q", waiting)
		}
		mustRun(t, pool, eventsSpec(), rekey.Options{}, rekey.StepValidate, rekey.StepContract)
		replica.Exec(t, "DROP SUBSCRIPTION copy")
	})
}

// Validate names the session whose transaction the creation of an index waits for.
func TestIndexWaits(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, steps[:2]...)
		holder := db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "a report" }))
		tx, err := holder.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "INSERT INTO events (created_at) VALUES (now())")
		must(t, err)
		want := fmt.Sprintf("session %d (a report, idle in transaction) has an open transaction", holder.PgConn().PID())
		var waiting, phase string
		o := rekey.Options{Progress: func(p rekey.Progress) {
			if p.Waiting != "" && waiting == "" {
				waiting, phase = p.Waiting, p.Phase
				must(t, tx.Commit(context.WithoutCancel(t.Context())))
			}
		}}
		mustRun(t, db.SQL(t), eventsSpec(), o, rekey.StepValidate)
		if waiting != want || !strings.HasPrefix(phase, "waiting for ") {
			t.Errorf("expected validate to wait for %q, got %q in phase %q", want, waiting, phase)
		}
	})
}

// A step that waits for a lock, and its error, name the session that holds the lock.
func TestHolder(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10))
		holder := db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "a report" }))
		tx, err := holder.Begin(t.Context())
		must(t, err)
		pgtest.Value[int](t, holder, "SELECT count(*) FROM events")
		want := fmt.Sprintf("session %d (a report, idle in transaction) has a lock on public.events in a transaction since ", holder.PgConn().PID())
		waiting := ""
		err = run(t.Context(), db.SQL(t), rekey.StepExpand, eventsSpec(), rekey.Options{LockWait: 8 * time.Second, Progress: func(p rekey.Progress) { waiting = p.Waiting }})
		if !errors.Is(err, rekey.ErrLocked) || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %v and %q, got %v", rekey.ErrLocked, want, err)
		}
		if !strings.HasPrefix(waiting, want) {
			t.Errorf("expected to wait for %q, got %q", want, waiting)
		}
		must(t, tx.Rollback(context.WithoutCancel(t.Context())))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepExpand)
	})
}
