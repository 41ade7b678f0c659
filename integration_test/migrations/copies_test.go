package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// copies are the ways to copy a database on its server.
var copies = map[string]func(t *testing.T, db *pgtest.DB) *pgtest.DB{
	"dump": func(t *testing.T, db *pgtest.DB) *pgtest.DB {
		into := newDatabase(t, db, "dump", "")
		_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", fmt.Sprintf("set -o pipefail; pg_dump -U postgres %s | psql -U postgres -q -v ON_ERROR_STOP=1 %s", db.Name, into.Name))
		must(t, err)
		return into
	},
	"template": func(t *testing.T, db *pgtest.DB) *pgtest.DB {
		from := newDatabase(t, db, "from", "") // without connections
		_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", fmt.Sprintf("set -o pipefail; pg_dump -U postgres %s | psql -U postgres -q -v ON_ERROR_STOP=1 %s", db.Name, from.Name))
		must(t, err)
		from.Exec(t, "SELECT sortkey.confirm_original()")
		return newDatabase(t, db, "template", "TEMPLATE "+from.Name)
	},
}

// strange is a function whose name ends a comment.
const strange = `"Shop"."f
(); DROP TABLE ""Shop"".orders"()`

// shop creates tables with defaults of each kind, and uses a number of the pool.
func shop(t *testing.T, db *pgtest.DB) {
	t.Helper()
	setNode(t, db, "sortkey", 15)
	db.Exec(t, `SELECT sortkey.reserve_node('snowflake', 1000, 'payments'), sortkey.reserve_node('spread64', 1000, 'shards');
		CREATE SCHEMA "Shop";
		CREATE DOMAIN "Shop".payment AS bigint DEFAULT sortkey.next_snowflake(1000);
		CREATE TABLE "Shop".orders (id bigint DEFAULT sortkey.next_snowflake(), note uuid DEFAULT sortkey.next_sno(), si bigint DEFAULT sortkey.next_snowflake_si());
		CREATE FUNCTION `+strange+` RETURNS bigint RETURN sortkey.next_snowflake(1000);
		CREATE TABLE "Shop".payments (id bigint DEFAULT sortkey.next_snowflake(1000), "Shard" bigint DEFAULT sortkey.next_spread64(1000), sno uuid DEFAULT sortkey.next_sno(1000, 7), of "Shop".payment)`)
	db.Exec(t, "SELECT sortkey.reserve_node('sno', 1000, 'snos')")
	for _, release := range []bool{false, true} {
		generator := instance(t, db)
		_, err := generator.Next()
		must(t, err)
		if release {
			must(t, generator.Close())
		}
	}
}

// instance starts a generator with a number of the database. It is closed when the test ends.
func instance(t *testing.T, db *pgtest.DB) *nodelease.Generator[idtype.Snowflake] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := nodelease.NewSnowflakeGenerator(ctx, pglease.New(db.SQL(t), pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{TTL: 5 * time.Second, Wait: time.Minute})
	must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// A copyWriter writes rows and generates IDs in one database.
type copyWriter struct {
	rows      *sql.DB
	instances []*nodelease.Generator[idtype.Snowflake]
}

func newCopyWriter(t *testing.T, db *pgtest.DB) copyWriter {
	t.Helper()
	w := copyWriter{rows: db.SQL(t)}
	for range 4 {
		w.instances = append(w.instances, instance(t, db))
	}
	return w
}

// write returns the IDs that the defaults and the instances create in a period.
func (w copyWriter) write(t *testing.T, d time.Duration) (ids []string) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		rows, err := w.rows.QueryContext(t.Context(), `WITH o AS (INSERT INTO "Shop".orders SELECT FROM generate_series(1, 20) RETURNING *), p AS (INSERT INTO "Shop".payments SELECT FROM generate_series(1, 20) RETURNING *)
			SELECT unnest(ARRAY['orders.id ' || id, 'sno ' || note, 'si ' || si]) FROM o UNION ALL SELECT unnest(ARRAY['payments ' || id, 'spread64 ' || "Shard", 'sno ' || sno, 'payments ' || of]) FROM p`)
		must(t, err)
		for rows.Next() {
			var id string
			must(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		must(t, rows.Err())
		for _, g := range w.instances {
			id, err := g.Next()
			must(t, err)
			ids = append(ids, "orders.id "+id.String())
		}
	}
	return ids
}

// repeats writes in both databases at once and returns the number of equal IDs by kind.
func repeats(t *testing.T, d time.Duration, a, b copyWriter) map[string]int {
	t.Helper()
	var lists [2][]string
	var writers sync.WaitGroup
	for i, w := range []copyWriter{a, b} {
		writers.Go(func() { lists[i] = w.write(t, d) })
	}
	writers.Wait()
	seen, equal := map[string]bool{}, map[string]int{}
	for _, id := range lists[0] {
		seen[id] = true
	}
	for _, id := range lists[1] {
		if seen[id] {
			kind, _, _ := strings.Cut(id, " ")
			equal[kind]++
		}
	}
	t.Logf("%d and %d IDs, equal ones: %v", len(lists[0]), len(lists[1]), equal)
	return equal
}

// A copy repeats IDs of its original until it has numbers that the original has reserved for it.
// The copy says so. The setting of a dump is missing, so defaults without a number fail.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, copyOf := range copies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
				shop(t, db)
				other := copyOf(t, db)
				copied := func(db *pgtest.DB, want bool) {
					t.Helper()
					if err := migrations.CheckDefaults(t.Context(), db.SQL(t), complete); errors.Is(err, migrations.ErrCopied) != want {
						t.Errorf("%s: want a copy: %v, got %v", db.Name, want, err)
					}
				}
				copied(db, false)
				copied(other, true)
				if _, err := other.SQL(t).ExecContext(t.Context(), `INSERT INTO "Shop".orders DEFAULT VALUES`); err == nil || !strings.Contains(err.Error(), "sortkey.node is not set") {
					t.Errorf("want an error for the missing setting, got %v", err)
				}

				// The dump may lack the last claims.
				_, err := nodelease.Acquire(t.Context(), pglease.New(other.SQL(t), pglease.Config{}), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{Wait: -1})
				pgtest.Fails(t, err, nodelease.ErrClockBehind)

				// Without new numbers.
				other.Exec(t, "ALTER DATABASE "+other.Name+" SET sortkey.node = 15")
				same := repeats(t, 2*time.Second, newCopyWriter(t, db), newCopyWriter(t, other))
				if same["payments"] == 0 || same["orders.id"] == 0 {
					t.Errorf("want equal IDs of a copy without numbers of its own, got %v", same)
				}

				numbers := pgtest.Value[string](t, db.Conn(t), "SELECT sortkey.reserve_for_copy('staging', 64)")
				if again := pgtest.Value[string](t, db.Conn(t), "SELECT sortkey.reserve_for_copy('staging', 64)::jsonb -> 'pools'"); !strings.Contains(numbers, again) {
					t.Errorf("want the same numbers for the same note, got %s and %s", numbers, again)
				}
				statements := pgtest.Value[[]string](t, other.Conn(t), "SELECT array_agg(s) FROM sortkey.confirm_copy($1) s", numbers)
				for _, s := range statements {
					other.Exec(t, s)
				}
				other.Exec(t, "DROP FUNCTION "+strange)
				want := []string{
					"ALTER DATABASE " + other.Name + " SET sortkey.node = ",
					`ALTER TABLE "Shop".payments ALTER COLUMN sno SET DEFAULT sortkey.next_sno(`, `ALTER DOMAIN "Shop".payment SET DEFAULT sortkey.next_snowflake(`,
					"-- give function ",
					`ALTER TABLE "Shop".payments ALTER COLUMN id SET DEFAULT sortkey.next_snowflake(`, `ALTER TABLE "Shop".payments ALTER COLUMN "Shard" SET DEFAULT sortkey.next_spread64(`,
				}
				for _, s := range want {
					if !strings.Contains(strings.Join(statements, "\n"), s) {
						t.Errorf("want the statement %s…, got %q", s, statements)
					}
				}
				if len(statements) != len(want) {
					t.Errorf("want %d statements, got %q", len(want), statements)
				}
				if n := pgtest.Value[int](t, other.Conn(t), `SELECT count(*) FROM sortkey.node_lease l JOIN sortkey.node_pool p ON p.name = l.pool
						WHERE NOT l.number <@ p.of_original AND CASE WHEN l.holder IS NULL THEN l.mark ELSE l.after END < ($1::jsonb ->> 'time_ms')::bigint`, numbers); n > 0 {
					t.Errorf("want marks from the time of the reservation on, got %d earlier ones", n)
				}
				for _, db := range []*pgtest.DB{db, other} {
					must(t, migrations.CheckDefaults(t.Context(), db.SQL(t), complete))
				}
				if same := repeats(t, pgtest.Soak(t, 2*time.Second, 5*time.Second), newCopyWriter(t, db), newCopyWriter(t, other)); len(same) > 0 {
					t.Errorf("want no equal IDs, got %v", same)
				}

				// The numbers of the original stay closed, also in pools that the original gets later.
				for _, statement := range []string{"SELECT sortkey.reserve_node('snowflake', 700, 'x')", "SELECT sortkey.reserve_node('spread64', 3, 'x')", "SELECT sortkey.reserve_node('other', 3, 'x')"} {
					if _, err := other.SQL(t).ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "this database is a copy, and its original uses the number") {
						t.Errorf("%s: want an error about the original, got %v", statement, err)
					}
				}
				if state := pgtest.Value[string](t, other.Conn(t), "SELECT string_agg(DISTINCT concat_ws(': ', state, reserved), ', ') FROM sortkey.node_status WHERE pool = 'snowflake' AND number IN (600, 700)"); state != "reserved: the original of this copy" {
					t.Errorf("got the state %q", state)
				}
				// The original gets a pool, and numbers of it for the copy, which keeps its reservations.
				db.Exec(t, "SELECT sortkey.create_node_pool('other', 8, 'of a test')")
				other.Exec(t, "SELECT sortkey.reserve_node('snowflake', 17, 'own')")
				numbers = pgtest.Value[string](t, db.Conn(t), "SELECT sortkey.reserve_for_copy('staging', 64)")
				other.Exec(t, "SELECT sortkey.confirm_copy('"+numbers+"'); SELECT sortkey.reserve_node('other', 7, 'x')")
				if notes := pgtest.Value[string](t, other.Conn(t), "SELECT string_agg(reserved, ',' ORDER BY reserved) FROM sortkey.node_lease WHERE pool = 'snowflake' AND reserved <> 'defaults of ' || current_database()"); notes != "own" {
					t.Errorf("want the reservation of the copy, got %q", notes)
				}

				// The original is gone.
				other.Exec(t, "SELECT sortkey.confirm_original(); SELECT sortkey.reserve_node('snowflake', 900, 'x')")
				copied(other, false)
			})
		})
	}
}

// A claim beside confirm_copy gets a number of the copy, also if it began before the copy had its numbers.
func TestClaimBesideConfirmCopy(t *testing.T) {
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		must(t, instance(t, db).Close())
		numbers := pgtest.Value[string](t, db.Conn(t), "SELECT sortkey.reserve_for_copy('staging', 4)")
		tx, err := db.Conn(t).Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "SELECT sortkey.confirm_copy($1, snapshot => true)", numbers)
		must(t, err)
		results := map[string]chan error{}
		statements := map[string]string{ // with their errors
			"SELECT sortkey.reserve_node('snowflake', 5, 'x')": "this database is a copy, and its original uses the number",
			"SELECT number FROM sortkey.claim_node('snowflake', 1024, (SELECT layout FROM sortkey.node_pool WHERE name = 'snowflake'), '{}', 'x y', 30000, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 30000)": "",
		}
		for statement := range statements {
			conn, done := db.Conn(t), make(chan error, 1)
			go func() {
				_, err := conn.Exec(t.Context(), statement)
				done <- err
			}()
			pgtest.AwaitLock(t, db.Conn(t), conn.PgConn().PID(), done)
			results[statement] = done
		}
		must(t, tx.Commit(t.Context()))
		for statement, want := range statements {
			if err := <-results[statement]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want the error %q, got %v", statement, want, err)
			}
		}
		if n := pgtest.Value[int](t, db.Conn(t), "SELECT count(*) FROM sortkey.node_lease l JOIN sortkey.node_pool p ON p.name = l.pool WHERE l.number <@ p.of_original AND (l.holder IS NOT NULL OR l.reserved IS NOT NULL)"); n > 0 {
			t.Errorf("%d claims and reservations of numbers that the original uses", n)
		}
	})
}

// A note of another reservation doesn't give a copy numbers that the original uses.
func TestNotesOfCopies(t *testing.T) {
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		exec(t, conn, "SELECT sortkey.reserve_node('snowflake', 1023, 'shop')")
		fails(t, conn, "55006", "SELECT sortkey.reserve_for_copy('shop')", "cannot reserve numbers for copy 'shop': this database uses a number with that note")
		exec(t, conn, "SELECT sortkey.reserve_for_copy('staging', 4)")
		fails(t, conn, "55006", "SELECT sortkey.reserve_node('snowflake', 31, 'staging')", "it is reserved for 'staging'")
		// A pool that is made later has the reservations of its layout, and the copy's are still its own.
		exec(t, conn, "SELECT sortkey.create_node_pool('more', 1024, (SELECT d.layout FROM sortkey_internal.default_pool('snowflake') d))")
		numbers := func() string {
			return pgtest.Value[string](t, conn, "SELECT sortkey.reserve_for_copy('staging', 4) #>> '{pools,more,numbers}'")
		}
		if got := numbers(); got != "{[28,32)}" {
			t.Errorf("want the numbers of the copy in the new pool, got %s", got)
		}
		exec(t, conn, "SELECT sortkey.unreserve_node('more', 31)")
		if got := numbers(); got != "{[28,31)}" {
			t.Errorf("want the other numbers of the copy, got %s", got)
		}
	})
}

// A dump that is restored into the same database doesn't know the claims since then. Its pools are closed until those
// have expired, and the settings of partitions stay.
func TestRestoreInPlace(t *testing.T) {
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('events', '1 day')")
		must(t, instance(t, db).Close()) // creates the pool
		file := "/tmp/" + db.Name
		sh := func(script string) {
			t.Helper()
			_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", "set -eo pipefail; "+script)
			must(t, err)
		}
		sh("pg_dump -U postgres " + db.Name + " >" + file)
		running := instance(t, db) // after the dump
		sh("psql -U postgres -qc 'DROP SCHEMA public, sortkey, sortkey_internal CASCADE; CREATE SCHEMA public' " + db.Name + "; psql -U postgres -q -v ON_ERROR_STOP=1 -f " + file + " " + db.Name)
		if err := migrations.CheckDefaults(t.Context(), db.SQL(t), complete); !errors.Is(err, migrations.ErrCopied) {
			t.Errorf("want ErrCopied, got %v", err)
		}
		_, err := nodelease.Acquire(t.Context(), pglease.New(db.SQL(t), pglease.Config{}), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{TTL: 5 * time.Second, Wait: -1})
		pgtest.Fails(t, err, nodelease.ErrClockBehind)
		later := instance(t, db)
		seen := map[idtype.Snowflake]bool{}
		for range 1000 {
			if id, err := running.Next(); err == nil {
				seen[id] = true
			}
			id, err := later.Next()
			must(t, err)
			if seen[id] {
				t.Fatalf("ID %v of a program that had claimed its number after the dump", id)
			}
		}
		db.Exec(t, "CALL sortkey.maintain_partitions()")
		if n := pgtest.Value[int](t, db.Conn(t), "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass"); n < 2 {
			t.Errorf("want partitions of the restored table, got %d", n)
		}
	})
}

// Arguments that can't be right are errors, and change nothing.
func TestCopyArguments(t *testing.T) {
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		before := pgtest.Value[string](t, db.Conn(t), "SELECT count(*)::text FROM sortkey.node_home")
		own := pgtest.Value[string](t, db.Conn(t), "SELECT sortkey.reserve_for_copy('a', 3)")
		for statement, want := range map[string]string{
			"SELECT sortkey.reserve_for_copy('')":          "invalid argument of reserve_for_copy: note ''",
			"SELECT sortkey.reserve_for_copy(NULL)":        "note NULL",
			"SELECT sortkey.reserve_for_copy('a', 0)":      "numbers 0 (1 to 65536)",
			"SELECT sortkey.confirm_copy('[]')":            "invalid argument of confirm_copy",
			"SELECT sortkey.confirm_copy(NULL)":            "NULL; want the result of reserve_for_copy",
			"SELECT sortkey.confirm_copy('" + own + "')":   "which would be a copy of itself",
			"SELECT sortkey.confirm_copy('{\"place\":1}')": "want the result of reserve_for_copy",
			`SELECT sortkey.confirm_copy('{"place": "1/1", "time_ms": 1, "pools": {"sno": {"size": 65536, "layout": "sno: partitions", "numbers": "{[0,65537)}"}}}')`: "invalid argument of confirm_copy: pool",
		} {
			if _, err := db.SQL(t).ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want an error with %q, got %v", statement, want, err)
			}
		}
		if before != "0" {
			t.Errorf("want no home before a number is used, got %s", before)
		}
		if n := pgtest.Value[int](t, db.Conn(t), "SELECT count(*) FROM sortkey.node_pool WHERE of_original IS NOT NULL"); n > 0 {
			t.Errorf("want no change, got %d pools of a copy", n)
		}
	})
}
