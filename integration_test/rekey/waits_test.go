package rekey

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// What a step waits for: other sessions, autovacuum and replicas.
// What ends one: locks, timeouts and triggers.

// events creates a table without references.
func events(rows int) string {
	return fmt.Sprintf(`CREATE TABLE events (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL);
		INSERT INTO events (created_at) SELECT now() - n * interval '1 s' FROM generate_series(1, %d) n;`, rows)
}

var eventsSpec = rekey.Spec{Keys: []rekey.Key{{Table: "events", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: created}}}

// install creates a job on a server without the SQL functions.
func install(t testing.TB, db *pgtest.DB, tables string, spec rekey.Spec) *job {
	t.Helper()
	j := newJob(t, db, tables, spec)
	must(t, migrations.Up(t.Context(), j.pool, config))
	return j
}

// hold runs a statement in a transaction of another session, which keeps its locks until it ends.
func (j *job) hold(sql string) *session {
	j.Helper()
	s := j.connect(oldVersion, setting("application_name", "a report"))
	s.do("BEGIN")
	s.do(sql)
	return s
}

// A batch reads only its own rows, although the server doesn't know yet how many rows lack a
// new key.
func TestBatchesByIndex(t *testing.T) {
	const rows = 20_000
	oneJob(t, events(rows)+"ANALYZE events", eventsSpec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand)
		must(t, j.pool.Close()) // a server process reports its statistics at its end
		pgtest.Eventually(t, "the server processes of expand end", func() error {
			if n := j.one("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); n != "0" {
				return fmt.Errorf("%s processes", n)
			}
			return nil
		})
		j.pool = j.db.SQL(t)
		// read returns the number of rows that scans of the whole table have read.
		conn := j.db.Conn(t)
		read := func() int {
			return pgtest.Value[int](t, conn, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'events'")
		}
		before, batches := read(), 0
		j.runWith(rekey.Options{Progress: func(p rekey.Progress) {
			if !p.Done && p.Waiting == "" {
				batches++
			}
		}}, rekey.StepBackfill)
		must(t, j.pool.Close())
		// CREATE INDEX CONCURRENTLY reads the table twice, and the query for rows that are left once.
		pgtest.Eventually(t, "the server counts the scans of the backfill", func() error {
			if got := read() - before; got < 3*rows {
				return fmt.Errorf("%d rows", got)
			}
			return nil
		})
		if got := read() - before; got > 4*rows || batches < 5 {
			t.Errorf("expected scans of the whole table to read at most %d rows, got %d in %d batches", 4*rows, got, batches)
		}
	})
}

// Transactions that use two tables in opposite orders, and overlap all the time, don't keep a
// step from its locks.
func TestOppositeOrders(t *testing.T) {
	spec := eventsSpec
	spec.References = []rekey.Reference{{Table: "notes", Column: "event_id", To: "events"}}
	oneJob(t, events(100)+"CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint NOT NULL); INSERT INTO notes (event_id) SELECT id FROM events", spec, func(t *testing.T, j *job) {
		for i := range 8 {
			tables := []string{"events", "notes"}
			if i%2 == 0 {
				slices.Reverse(tables)
			}
			j.connect(oldVersion).repeat(0, func(int) []string {
				return []string{fmt.Sprintf("BEGIN; SELECT 1 FROM %s LIMIT 1; SELECT pg_sleep(0.02); SELECT 1 FROM %s LIMIT 1; COMMIT", tables[0], tables[1])}
			})
		}
		// An attempt lasts for several transactions, also on a slow machine.
		j.runWith(rekey.Options{LockTimeout: 500 * time.Millisecond, LockWait: time.Minute}, steps...)
	})
}

// A step that waits for a lock, and its error, name the session that holds the lock then. pg_cancel_backend
// ends a step, also one that waits.
func TestHolders(t *testing.T) {
	oneJob(t, events(100), eventsSpec, func(t *testing.T, j *job) {
		holder := j.hold("SELECT count(*) FROM events")
		named := func(s *session) string {
			return fmt.Sprintf("session %d (a report, idle in transaction) has ", s.conn.PgConn().PID())
		}
		first := named(holder)
		waiting := ""
		var next *session
		err := j.try(t.Context(), rekey.StepExpand, rekey.Options{LockWait: 8 * time.Second, Progress: func(p rekey.Progress) {
			if waiting != "" || p.Waiting == "" {
				return
			}
			waiting, next = p.Waiting, j.hold("SELECT count(*) FROM events")
			holder.do("ROLLBACK")
		}})
		const lock = "a lock on public.events in a transaction since "
		if next == nil || !strings.HasPrefix(waiting, first+lock) {
			t.Fatalf("expected to wait for %q, got %q", first+lock, waiting)
		}
		wantError(t, "expand", err, rekey.ErrLocked, named(next)+lock)
		next.do("ROLLBACK")
		j.canceled(rekey.StepExpand, "^LOCK TABLE .* ACCESS EXCLUSIVE")
		j.run(rekey.StepExpand)
		j.canceled(rekey.StepBackfill, "^CREATE INDEX")
		j.run(rekey.StepBackfill)

		j.run(steps[2:]...)
	})
}

// Transactions that began before a list had its new key insert rows that refer to it by the old key
// alone, and commit after backfill. Validate waits for them, and gives their rows the new key.
func TestLateReferences(t *testing.T) {
	const tables = `CREATE TABLE lists (id bigserial PRIMARY KEY, name text); INSERT INTO lists (name) SELECT 'list ' || i FROM generate_series(1, 10) i;
		CREATE TABLE items (list_id bigint NOT NULL REFERENCES lists); CREATE TABLE visits (list_id bigint, at date)`
	spec := rekey.Spec{
		Keys:       []rekey.Key{{Table: "lists", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started}},
		References: []rekey.Reference{{Table: "visits", Column: "list_id", To: "lists"}},
	}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand)
		item, visit := j.hold("INSERT INTO items VALUES (1)"), j.hold("INSERT INTO visits VALUES (2)")
		reader := j.connect(oldVersion)
		reader.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
		reader.do("SELECT count(*) FROM lists")
		j.run(rekey.StepBackfill)

		done := make(chan error, 1)
		go func() { done <- j.try(t.Context(), rekey.StepValidate, rekey.Options{LockWait: 10 * time.Minute}) }()
		j.awaitWait(done, "the transaction with an old snapshot", "locktype = 'virtualxid' AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())")
		reader.do("INSERT INTO items VALUES (3)")
		reader.do("INSERT INTO visits VALUES (4)")
		want(t, "new keys of the references", reader.all("SELECT rekey_list_id FROM items UNION ALL SELECT rekey_list_id FROM visits"), ",")
		reader.do("COMMIT")
		j.awaitWait(done, "the transactions that have looked for a list", "relation = 'lists'::regclass")
		item.do("COMMIT")
		visit.do("COMMIT")
		must(t, <-done)
		j.run(rekey.StepContract, rekey.StepCleanup)
		want(t, "references by list", j.all("SELECT l.name, count(i), count(v) FROM lists l LEFT JOIN items i ON i.list_id = l.id LEFT JOIN visits v ON v.list_id = l.id GROUP BY l.name HAVING count(i) + count(v) > 0 ORDER BY 1"),
			"list 1|1|0,list 2|0|1,list 3|1|0,list 4|0|1")
	})
}

// Before the backfill, transactions refer to lists that they don't see, so they choose new keys for them, and
// commit after the backfill has given the lists others. Validate gives their rows the keys of the lists.
func TestLatePairs(t *testing.T) {
	const tables = `CREATE TABLE lists (id bigserial PRIMARY KEY, name text); INSERT INTO lists (name) SELECT 'list ' || i FROM generate_series(1, 10) i;
		CREATE TABLE notes (list_id bigint NOT NULL REFERENCES lists DEFERRABLE INITIALLY DEFERRED); CREATE TABLE visits (list_id bigint);
		CREATE TABLE events (subject text, subject_id uuid); CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text); INSERT INTO users (name) SELECT 'user ' || i FROM generate_series(1, 3) i`
	spec := rekey.Spec{
		Keys: []rekey.Key{{Table: "lists", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started}, {Table: "users", Format: rekey.UUID7, Times: started}},
		References: []rekey.Reference{
			{Table: "visits", Column: "list_id", To: "lists"},
			{Table: "events", Column: "subject_id", To: "users", Where: "subject = 'user'"},
		},
	}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		snapshot := j.connect(oldVersion)
		snapshot.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
		snapshot.one("SELECT 1 FROM pg_class LIMIT 1")
		j.do("INSERT INTO lists (name) VALUES ('list 11')")
		user := j.one("INSERT INTO users (name) VALUES ('user 4') RETURNING id")
		j.run(rekey.StepExpand)
		update := j.hold("UPDATE lists SET id = 200 WHERE id = 5")
		const insert = "INSERT INTO visits VALUES (%d); INSERT INTO notes VALUES (%[1]d)"
		late := []*session{j.hold(fmt.Sprintf(insert, 200)), j.hold(fmt.Sprintf(insert, 300)), snapshot}
		update.do("COMMIT")
		j.do("UPDATE lists SET id = 300 WHERE id = 6")
		snapshot.do("INSERT INTO visits VALUES (11)")
		snapshot.do("INSERT INTO events VALUES ('user', $1), ('other', $1)", user)
		j.run(rekey.StepBackfill)
		for _, s := range late {
			s.do("COMMIT")
		}
		want(t, "references with other new keys than their rows", j.one(`SELECT (SELECT count(*) FROM visits v JOIN lists l ON l.id = v.list_id AND l.rekey_id <> v.rekey_list_id),
			(SELECT count(*) FROM notes n JOIN lists l ON l.id = n.list_id AND l.rekey_id <> n.rekey_list_id), (SELECT count(*) FROM events e JOIN users u ON u.id = e.subject_id AND u.rekey_id <> e.rekey_subject_id WHERE subject = 'user')`), "3|2|1")
		j.run(rekey.StepValidate)
		j.do("INSERT INTO visits VALUES (200)")
		j.run(rekey.StepContract, rekey.StepCleanup)
		want(t, "references by list", j.all("SELECT l.name, (SELECT count(*) FROM visits WHERE list_id = l.id) AS v, (SELECT count(*) FROM notes WHERE list_id = l.id) FROM lists l WHERE EXISTS (SELECT FROM visits WHERE list_id = l.id) ORDER BY 1"),
			"list 11|1|0,list 5|2|1,list 6|1|1")
		want(t, "events by user", j.all("SELECT u.name, e.subject FROM events e JOIN users u ON u.id = e.subject_id"), "user 4|user")
	})
}

// awaitWait returns when a step, whose result done gets, waits for a lock. lock is a condition for its row of
// pg_locks.
func (j *job) awaitWait(done <-chan error, what, lock string) {
	j.Helper()
	pgtest.Eventually(j, "the step waits for "+what, func() error {
		if len(done) > 0 {
			j.Fatalf("expected the step to wait for %s, got its end: %v", what, <-done)
		}
		if j.one("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND "+lock+")") != "t" {
			return errors.New("not yet")
		}
		return nil
	})
}

// canceled fails the test unless pg_cancel_backend ends a step in a statement that waits for a lock.
func (j *job) canceled(step rekey.Step, pattern string) {
	j.Helper()
	holder := j.hold("UPDATE events SET created_at = created_at")
	defer holder.do("ROLLBACK")
	done := make(chan error, 1)
	go func() {
		done <- j.try(j.Context(), step, rekey.Options{LockTimeout: 5 * time.Second, LockWait: 20 * time.Second})
	}()
	pgtest.Eventually(j, "a statement of "+string(step)+" is canceled", func() error {
		j.one("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid() AND query ~ $1", pattern)
		if len(done) == 0 { // on a loaded machine, a statement can end before it is canceled
			return errors.New("not yet")
		}
		return nil
	})
	if err := <-done; err == nil || !strings.Contains(err.Error(), pgerror.QueryCanceled) {
		j.Errorf("%s: expected the error %s, got %v", step, pgerror.QueryCanceled, err)
	}
}

// A backfill that makes no progress ends with an error that names the trigger.
func TestTriggerStopsBackfill(t *testing.T) {
	const tables = `CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint REFERENCES events); INSERT INTO notes (event_id) SELECT id FROM events;
		CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id > 900 THEN RETURN NULL; END IF; RETURN NEW; END';
		CREATE TRIGGER stop BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION stop(); CREATE TRIGGER stop BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION stop();`
	const always = "ALTER TABLE events ENABLE ALWAYS TRIGGER stop; ALTER TABLE notes ENABLE ALWAYS TRIGGER stop"
	spec := eventsSpec
	spec.Literals = []string{"function public.stop()"}
	oneJob(t, events(1000)+tables+always, spec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand)
		for _, table := range []string{"events", "notes"} { // of the key, and of a reference
			most := int64(0)
			err := j.try(t.Context(), rekey.StepBackfill, rekey.Options{Progress: func(p rekey.Progress) {
				if strings.HasSuffix(p.Action, "public."+table) {
					most = max(most, p.Rows)
				}
			}})
			wantError(t, "backfill", err, rekey.ErrInconsistent, "rows of public."+table+" don't change: trigger stop returns NULL")
			want(t, "the row count", most, 900)
			j.do("ALTER TABLE " + table + " DISABLE TRIGGER stop")
		}
		j.run(rekey.StepBackfill)
		j.do(always)
		j.run(steps[2:]...)
	})
}

// A pass of the backfill that fills nothing, beside rows that appear meanwhile, doesn't mean that these rows
// refer to no row.
func TestIdlePass(t *testing.T) {
	const tables = `CREATE TABLE lists (id bigserial PRIMARY KEY, name text); INSERT INTO lists (name) SELECT 'list ' || i FROM generate_series(1, 10) i; CREATE TABLE visits (list_id bigint, n integer)`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: "lists", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started}}, References: []rekey.Reference{{Table: "visits", Column: "list_id", To: "lists"}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand)
		one := j.hold("INSERT INTO visits VALUES (1, 1)") // on the first page
		two := j.hold("INSERT INTO visits SELECT NULL, i FROM generate_series(1, 5000) i; INSERT INTO visits VALUES (2, 2)")
		changed := false
		j.runWith(rekey.Options{Progress: func(p rekey.Progress) {
			switch {
			case p.Action == "fill keys of public.lists" && p.Done:
				two.do("COMMIT")
			case p.Action == "fill references of public.visits" && !changed: // after the first page
				changed = true
				j.do("DELETE FROM visits WHERE list_id = 2")
				one.do("COMMIT")
			}
		}}, rekey.StepBackfill)
		want(t, "whether the rows have changed during the pass", changed, true)
		want(t, "references with a new key", j.one("SELECT count(rekey_list_id) FROM visits"), "1")
		j.do(`ALTER TABLE visits DISABLE TRIGGER USER; INSERT INTO visits VALUES (77)`)
		j.fails(rekey.StepBackfill, rekey.ErrInconsistent, "rows of public.visits refer to rows that don't exist")
	})
}

// Timeouts of the role end no step, although a batch and the pause after it take longer.
func TestTimeoutsOfRole(t *testing.T) {
	const slow = `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.006); RETURN NEW; END';
		CREATE TRIGGER slow BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION slow(); ALTER TABLE events ENABLE ALWAYS TRIGGER slow`
	oneJob(t, events(1000)+slow, eventsSpec, func(t *testing.T, j *job) {
		timeouts := []pgtest.Option{setting("statement_timeout", "2s"), setting("idle_in_transaction_session_timeout", "2s"), setting("idle_session_timeout", "2s")}
		if j.db.Version >= "17" {
			timeouts = append(timeouts, setting("transaction_timeout", "2s"))
		}
		j.pool = j.db.SQL(t, timeouts...)
		j.pool.SetMaxIdleConns(0)
		j.inspect()
		j.runWith(rekey.Options{BatchTime: 4 * time.Second, Pause: 0.5}, steps...)
	})
}

// shell runs a command in the container of a server as the operating system user postgres.
func shell(t testing.TB, db *pgtest.DB, command string) {
	t.Helper()
	out, err := pgtest.Exec(t, db.Container(), "postgres", "sh", "-c", command)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The backfill waits for a standby that is further behind than MaxLag. An autovacuum that works
// on a table for longer than an attempt to get a lock doesn't keep a step from its locks.
func TestPressure(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		j := install(t, db, events(20_000)+"ANALYZE events", eventsSpec)
		shell(t, db, "echo 'host replication follower 127.0.0.1/32 trust' >>"+j.one("SHOW hba_file"))
		j.do("CREATE ROLE follower REPLICATION LOGIN")
		j.do("ALTER SYSTEM SET autovacuum_naptime = '1h'")
		j.do("SELECT pg_reload_conf()")
		pgtest.Eventually(t, "the standby is created", func() error {
			_, err := pgtest.Exec(t, db.Container(), "postgres", "sh", "-c", "rm -rf /tmp/standby && pg_basebackup -h 127.0.0.1 -U follower -D /tmp/standby -R -c fast --no-sync && chmod 700 /tmp/standby")
			return err
		})
		shell(t, db, `pg_ctl -D /tmp/standby -l /tmp/standby.log -w -o "-p 5433 -c fsync=off -c max_connections=300 -c cluster_name=follower" start >/dev/null || { cat /tmp/standby.log; false; }`)

		for _, c := range []struct {
			name          string
			options       rekey.Options
			begin, relief string // commands
			want          string
			waits         bool
		}{
			{"a standby", rekey.Options{MaxLag: 500 * time.Millisecond}, "psql -XAtq -p 5433 -c 'SELECT pg_wal_replay_pause()' postgres", "psql -XAtq -p 5433 -c 'SELECT pg_wal_replay_resume()' postgres", "replica follower is ", true},
		} {
			t.Run(c.name, func(t *testing.T) {
				j.run(rekey.StepExpand)
				shell(t, db, c.begin)
				var waiting []string
				var before, after int64 // rows done while the backfill waits
				o := c.options
				o.Pause = 0.9
				o.Progress = func(p rekey.Progress) {
					if p.Waiting == "" {
						return
					}
					waiting = append(waiting, p.Waiting)
					switch len(waiting) {
					case 1:
						before = p.Rows
					case 2:
						after = p.Rows
						shell(t, db, c.relief)
					}
				}
				j.runWith(o, rekey.StepBackfill)
				if len(waiting) == 0 || !strings.HasPrefix(waiting[0], c.want) {
					t.Errorf("expected %q, got %q", c.want, waiting)
				}
				if c.waits && (len(waiting) < 2 || before != after) {
					t.Errorf("expected the backfill to wait, got %d rows and then %d, and %q", before, after, waiting)
				}
				j.run(rekey.StepAbort)
				j.do("VACUUM FULL events")
			})
		}
		shell(t, db, "pg_ctl -D /tmp/standby -m immediate stop")

		j.do("ALTER TABLE events SET (autovacuum_vacuum_threshold = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)")
		j.do("ALTER SYSTEM SET autovacuum_naptime = '1s'")
		j.do("SELECT pg_reload_conf()")
		for _, step := range steps {
			j.do("UPDATE events SET created_at = created_at")
			pgtest.Eventually(t, "autovacuum works on the table", func() error {
				if j.one("SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 'events'::regclass") == "0" {
					return errors.New("no autovacuum")
				}
				return nil
			})
			j.runWith(rekey.Options{LockWait: 30 * time.Second}, step)
		}
	})
}
