package rekey

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Backfills without progress, canceled steps and timeouts.

// A backfill that makes no progress ends with an error that names the trigger.
func TestTriggerStopsBackfill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, table string }{{"key", "events"}, {"reference", "notes"}} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, fmt.Sprintf(events, 1000)+`; CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint REFERENCES events); INSERT INTO notes (event_id) SELECT id FROM events;
					CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id > 900 THEN RETURN NULL; END IF; RETURN NEW; END'`)
				db.Exec(t, "CREATE TRIGGER stop BEFORE UPDATE ON "+c.table+" FOR EACH ROW EXECUTE FUNCTION stop(); ALTER TABLE "+c.table+" ENABLE ALWAYS TRIGGER stop")
				mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepExpand)
				most := int64(0)
				err := run(t.Context(), db.SQL(t), rekey.StepBackfill, eventsSpec(), rekey.Options{Progress: func(p rekey.Progress) {
					if strings.HasSuffix(p.Action, "public."+c.table) {
						most = max(most, p.Rows)
					}
				}})
				if want := "rows of public." + c.table + " don't change: trigger stop returns NULL"; !errors.Is(err, rekey.ErrInconsistent) || !strings.Contains(err.Error(), want) {
					t.Fatalf("expected the error %q, got %v", want, err)
				}
				if most != 900 {
					t.Errorf("expected 900 rows, got %d", most)
				}
				db.Exec(t, "ALTER TABLE "+c.table+" DISABLE TRIGGER stop")
				mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepBackfill)
				db.Exec(t, "ALTER TABLE "+c.table+" ENABLE ALWAYS TRIGGER stop")
				mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, steps[2:]...)
			})
		})
	}
}

// pg_cancel_backend ends a step, also one that waits for a lock.
func TestCancelBackend(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 1000))
		conn := db.Conn(t)
		// cancel cancels the statement of a step that matches a pattern.
		cancel := func(step rekey.Step, pattern string, o rekey.Options) {
			t.Helper()
			o.LockWait = 30 * time.Second
			done := make(chan error, 1)
			began := time.Now()
			go func() { done <- run(t.Context(), db.SQL(t), step, eventsSpec(), o) }()
			pgtest.Eventually(t, "a statement of "+string(step)+" is canceled", func() error {
				if pgtest.Value[int](t, conn, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid() AND query ~ $1", pattern) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			if err := <-done; err == nil || !strings.Contains(err.Error(), "57014") {
				t.Errorf("%s: expected the error 57014, got %v", step, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: expected it to end at once, got %v", step, took)
			}
		}
		holder := db.Conn(t)
		hold := func() pgx.Tx {
			t.Helper()
			tx, err := holder.Begin(t.Context())
			must(t, err)
			_, err = tx.Exec(t.Context(), "UPDATE events SET created_at = created_at")
			must(t, err)
			return tx
		}
		tx := hold()
		cancel(rekey.StepExpand, "^LOCK TABLE .* ACCESS EXCLUSIVE", rekey.Options{LockTimeout: 5 * time.Second})
		must(t, tx.Rollback(t.Context()))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepExpand)
		tx = hold()
		cancel(rekey.StepBackfill, "^CREATE INDEX", rekey.Options{})
		must(t, tx.Rollback(t.Context()))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, steps[1:]...)
	})
}

// Timeouts of the role end no step.
func TestTimeoutsOfRole(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 60_000))
		pool := db.SQL(t, pgtest.Config(func(c *pgx.ConnConfig) {
			names := []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"}
			if db.Version >= "17" {
				names = append(names, "transaction_timeout")
			}
			for _, name := range names {
				c.RuntimeParams[name] = "750ms"
			}
		}))
		pool.SetMaxIdleConns(0)
		_, err := rekey.Inspect(t.Context(), pool, eventsSpec(), rekey.Options{Config: config})
		must(t, err)
		mustRun(t, pool, eventsSpec(), rekey.Options{BatchTime: time.Second, Pause: 0.5}, steps...)
	})
}

// Calls of Progress don't overlap, also while an index is watched.
func TestProgressDoesNotOverlap(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, steps[:2]...)
		// The snapshot of a transaction keeps CREATE INDEX CONCURRENTLY from its end.
		tx, err := db.Conn(t).Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "INSERT INTO events (created_at) VALUES (now())")
		must(t, err)
		var calls, running atomic.Int32
		o := rekey.Options{Progress: func(p rekey.Progress) {
			if running.Add(1) > 1 {
				t.Error("expected one call at a time")
			}
			defer running.Add(-1)
			if p.Phase == "" {
				return
			}
			switch calls.Add(1) {
			case 1:
				must(t, tx.Rollback(t.Context()))
				time.Sleep(2 * time.Second) // the index is complete meanwhile, which is the next call
			}
		}}
		mustRun(t, db.SQL(t), eventsSpec(), o, rekey.StepValidate)
		if calls.Load() == 0 {
			t.Error("expected calls with a phase, got none")
		}
	})
}

// Names of tables can contain the tags of dollar quotes.
func TestDollarsInNames(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE "a$rekey$b" (id serial PRIMARY KEY, "$rekey_1$" text UNIQUE, "$rekey$" integer DEFAULT 3, created_at timestamptz DEFAULT now());
			CREATE TABLE "b$rekey_1$" (id serial PRIMARY KEY, "a$rekey$" integer REFERENCES "a$rekey$b", UNIQUE ("a$rekey$") DEFERRABLE);
			INSERT INTO "a$rekey$b" SELECT FROM generate_series(1, 50); INSERT INTO "b$rekey_1$" ("a$rekey$") SELECT id FROM "a$rekey$b";`+
			"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER \"$rekey$\" BEFORE INSERT ON \"b$rekey_1$\" FOR EACH ROW EXECUTE FUNCTION f()")
		spec := rekey.Spec{Keys: []rekey.Key{
			{Table: `"a$rekey$b"`, Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Column: "created_at"}},
			{Table: `"b$rekey_1$"`, Format: rekey.UID60, Times: rekey.Times{Start: sourceStart}},
		}}
		mustRun(t, db.SQL(t), spec, rekey.Options{}, steps[:3]...)
		mustRun(t, db.SQL(t), spec, rekey.Options{}, rekey.StepAbort)
		mustRun(t, db.SQL(t), spec, rekey.Options{}, steps...)
	})
}

// Inspect names each bad reference.
func TestBadReferences(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10)+"; CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint)")
		spec := eventsSpec()
		spec.References = append(spec.References, rekey.Reference{}, rekey.Reference{Table: "nobody", Column: "a", To: "events"}, rekey.Reference{Table: "notes", Column: "nothing", To: "events"},
			rekey.Reference{Table: "notes", Column: "event_id", To: "nowhere"}, rekey.Reference{Table: "nobody", Column: "b", To: "nowhere"})
		plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
		must(t, err)
		if len(plan.Problems) != len(spec.References) {
			t.Errorf("expected %d problems, got %q", len(spec.References), plan.Problems)
		}
	})
}
