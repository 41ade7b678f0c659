package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// partitionNow is the current time of the tests, a Saturday.
const partitionNow = "2026-11-21T10:30:00Z"

// A partitionDB is a database with sortkey installed.
type partitionDB struct {
	*pgtest.DB
	pool *sql.DB
}

// partitionEach is for tests of definitions, of catalogs and of plans, which differ
// between versions of Postgres.
func partitionEach(t *testing.T, f func(t *testing.T, db partitionDB)) {
	t.Helper()
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) { f(t, partitionDB{db, db.SQL(t)}) })
}

// partitionOne is partitionEach on the last version only.
func partitionOne(t *testing.T, f func(t *testing.T, db partitionDB)) {
	t.Helper()
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) { f(t, partitionDB{db, db.SQL(t)}) })
}

func partitionTime(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	must(t, err)
	return at
}

// managed creates a table and manages its partitions, with an interval of a day.
func (db partitionDB) managed(t testing.TB, table, arguments string) {
	t.Helper()
	db.Exec(t, "create table "+table+" (id sortkey.snowflake primary key, v text) partition by range (id)")
	db.manage(t, table, arguments)
}

func (db partitionDB) manage(t testing.TB, table, arguments string) {
	t.Helper()
	db.Exec(t, "select sortkey.manage_partitions('"+table+"', '1 day', "+arguments+")")
}

// begin begins a transaction and executes statements in it.
func (db partitionDB) begin(t testing.TB, statements string) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	return tx
}

// role creates a role and returns its name.
func (db partitionDB) role(t testing.TB, prefix string) string {
	t.Helper()
	name, _ := newRole(t, db.DB, prefix)
	return name
}

// A listener collects the notices of a session, as "WARNING text".
type listener struct {
	mu    sync.Mutex
	heard []string
}

func (db partitionDB) listen(t testing.TB, options ...pgtest.Option) (*pgx.Conn, *listener) {
	t.Helper()
	l := &listener{}
	return db.Conn(t, append(options, pgtest.Config(func(c *pgx.ConnConfig) {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.heard = append(l.heard, n.Severity+" "+n.Message)
		}
	}))...), l
}

// take returns the notices since the last call that have a prefix, without the prefix.
func (l *listener) take(prefix string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.heard {
		if s, ok := strings.CutPrefix(s, prefix); ok {
			found = append(found, s)
		}
	}
	l.heard = nil
	return found
}

// maintain takes the steps that are due at a time and lists them as "action
// partition". It fails the test unless all succeed.
func (db partitionDB) maintain(t testing.TB, at string) []string {
	t.Helper()
	steps, err := db.try(t, at)
	must(t, err)
	for _, s := range steps {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
	}
	return partitionActions(steps)
}

func (db partitionDB) try(t testing.TB, at string) ([]migrations.PartitionStep, error) {
	t.Helper()
	var seen []migrations.PartitionStep
	steps, err := migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{
		At:       partitionTime(t, at),
		Progress: func(s migrations.PartitionStep) { seen = append(seen, s) },
	})
	if !slices.Equal(seen, steps) {
		t.Errorf("expected Progress to get the steps %v, got %v", steps, seen)
	}
	return steps, err
}

func partitionActions(steps []migrations.PartitionStep) []string {
	list := []string{}
	for _, s := range steps {
		list = append(list, s.Action+" "+s.Partition)
	}
	return list
}

// strings returns the first column of a query.
func (db partitionDB) strings(t testing.TB, query string, args ...any) []string {
	t.Helper()
	return columnOf(t, db.pool, query, args...)
}

// partitions returns the partitions of a table, with their bounds.
func (db partitionDB) partitions(t testing.TB, parent string) []string {
	t.Helper()
	return db.strings(t, `select c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent = $1::text::regclass order by 1`, parent)
}

// places returns the partition of each row, as "partition v".
func (db partitionDB) places(t testing.TB, table string) []string {
	t.Helper()
	return db.strings(t, "select c.relname || ' ' || x.v from "+table+" x join pg_class c on c.oid = x.tableoid order by x.id")
}

// partitionWant fails the test unless got and want are equal.
func partitionWant(t testing.TB, name string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: expected\n\t%s\ngot\n\t%s", name, strings.Join(want, "\n\t"), strings.Join(got, "\n\t"))
	}
}

// Maintenance creates partitions ahead for all formats and intervals. Each partition
// takes the first and the last ID of its time.
func TestPartitionsAhead(t *testing.T) {
	formats := []struct{ column, format string }{
		{"sortkey.snowflake", "NULL"}, {"bigint", "'snowflake'"},
		{"sortkey.snowflake_si", "NULL"}, {"bigint", "'snowflake_si'"},
		{"sortkey.uid60", "NULL"}, {"bigint", "'uid60'"},
		{"sortkey.sno", "NULL"}, {"uuid", "'sno'"}, {"over_uid60", "NULL"}, {"over_uuid", "'sno'"},
	}
	widths := []struct {
		every string
		begin []string // the beginnings of the partitions, and the end of the last one
		names []string
	}{
		{"1 month", []string{"2026-11-01", "2026-12-01", "2027-01-01", "2027-02-01"}, []string{"20261101", "20261201", "20270101"}},
		{"3 months", []string{"2026-10-01", "2027-01-01", "2027-04-01", "2027-07-01"}, []string{"20261001", "20270101", "20270401"}},
		{"1 year", []string{"2026-01-01", "2027-01-01", "2028-01-01", "2029-01-01"}, []string{"20260101", "20270101", "20280101"}},
		{"7 days", []string{"2026-11-16", "2026-11-23", "2026-11-30", "2026-12-07"}, []string{"20261116", "20261123", "20261130"}},
		{"1 day", []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"}, []string{"20261121", "20261122", "20261123"}},
		{"24 hours", []string{"2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"}, []string{"20261121", "20261122", "20261123"}},
		{"36 hours", []string{"2026-11-21", "2026-11-22 12:00", "2026-11-24", "2026-11-25 12:00"}, []string{"20261121", "20261122t1200", "20261124"}},
		{"6 hours", []string{"2026-11-21 06:00", "2026-11-21 12:00", "2026-11-21 18:00", "2026-11-22"}, []string{"20261121t0600", "20261121t1200", "20261121t1800"}},
		{"15 minutes", []string{"2026-11-21 10:30", "2026-11-21 10:45", "2026-11-21 11:00", "2026-11-21 11:15"}, []string{"20261121t1030", "20261121t1045", "20261121t1100"}},
	}
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, "create domain over_uid60 as sortkey.uid60; create domain over_uuid as uuid")
		for i, w := range widths {
			f := formats[i%len(formats)]
			if i == len(widths)-1 {
				f = formats[9]
			}
			db.Exec(t, fmt.Sprintf(`create table w%d (id %s primary key, v text) partition by range (id);
				select sortkey.manage_partitions('w%[1]d', '%[3]s', %[4]s, premake => 2)`, i, f.column, w.every, f.format))
		}
		db.maintain(t, partitionNow)
		for i, w := range widths {
			table := fmt.Sprintf("w%d", i)
			format := db.strings(t, "select format from sortkey.partitioned_table where parent = $1::text::regclass", table)[0]
			insert := func(at, v string) {
				// The first ID of a time.
				db.Exec(t, fmt.Sprintf("insert into %s values (sortkey.%s_floor('%s+00'), '%s')", table, format, at, v))
			}
			var want []string
			for j, name := range w.names {
				insert(w.begin[j], "first")
				// The first ID of the last 4 ms, which are a unit of Sno.
				db.Exec(t, fmt.Sprintf("insert into %s values (sortkey.%s_floor(timestamptz '%s+00' - interval '4 ms'), 'last')", table, format, w.begin[j+1]))
				want = append(want, table+"_p"+name+" first", table+"_p"+name+" last")
			}
			insert(w.begin[len(w.names)], "beyond")
			partitionWant(t, "rows of "+w.every+" in "+format, db.places(t, table), append(want, table+"_default beyond")...)
		}
		partitionWant(t, "no steps", db.maintain(t, partitionNow))
	})
}

// Maintenance detaches or drops a partition when its end is older than the retention,
// and no earlier, whatever its bounds.
func TestPartitionsRetention(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table kept (id sortkey.snowflake primary key, v text) partition by range (id);
			create table dropped (like kept including all) partition by range (id);
			create schema elsewhere;
			create table elsewhere.ancient partition of kept for values from (minvalue) to (sortkey.snowflake_floor('2022-01-01Z'));
			create table elsewhere."Year" partition of kept for values from (sortkey.snowflake_floor('2025-01-01Z')) to (sortkey.snowflake_floor('2026-01-01Z'))
				partition by hash (id);
			create table elsewhere.half partition of kept for values from (sortkey.snowflake_floor('2026-11-01Z')) to (sortkey.snowflake_floor('2026-11-21 12:00Z'));
			select sortkey.manage_partitions('kept', '1 day', premake => 1, retention => '2 days');
			select sortkey.manage_partitions('dropped', '1 day', premake => 1, retention => '2 days', retention_action => 'drop')`)
		partitionWant(t, "steps around existing partitions", db.maintain(t, partitionNow),
			"create public.dropped_p20261121", "create public.dropped_p20261122", "default public.dropped_default",
			"create public.kept_p20261121t1200", "create public.kept_p20261122", "default public.kept_default",
			`detach elsewhere."Year"`)
		db.Exec(t, "insert into kept values (sortkey.snowflake_floor('2026-11-21 13:00Z'), 'x'); insert into dropped table kept")
		before := "2026-11-23T23:59:59Z" // a second less than two days after the end of the 21st
		partitionWant(t, "no step too early", db.maintain(t, before), "create public.dropped_p20261123", "create public.dropped_p20261124",
			"create public.kept_p20261123", "create public.kept_p20261124", "detach elsewhere.half")
		partitionWant(t, "steps that remove the 21st", db.maintain(t, "2026-11-24T00:00:00Z"),
			"create public.dropped_p20261125", "drop public.dropped_p20261121",
			"create public.kept_p20261125", "detach public.kept_p20261121t1200")
		partitionWant(t, "the detached rows", db.places(t, "kept_p20261121t1200"), "kept_p20261121t1200 x")
		partitionWant(t, "no rows", append(db.places(t, "kept"), db.places(t, "dropped")...))
		partitionWant(t, "the remaining partitions", db.strings(t, "select c.relname from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'kept'::regclass order by 1"),
			"ancient", "kept_default", "kept_p20261122", "kept_p20261123", "kept_p20261124", "kept_p20261125")

		// A row that is older than the retention when it arrives stays in the default
		// partition. It can be from before the table had such keys.
		db.Exec(t, "insert into dropped values (1, 'serial'), (sortkey.snowflake_floor('2026-11-20 13:00Z'), 'late')")
		partitionWant(t, "no steps for late rows", db.maintain(t, "2026-11-24T00:00:00Z"))
		partitionWant(t, "late rows in the default partition", db.places(t, "dropped"), "dropped_default serial", "dropped_default late")
		// A step fails if another table has the partition's name.
		db.Exec(t, "create table kept_p20261127 (); insert into kept values (sortkey.snowflake_floor('2026-11-24 14:00Z'), 'early')")
		steps, err := migrations.MaintainPartitions(t.Context(), db.pool, complete,
			migrations.PartitionOptions{Parent: "kept", At: partitionTime(t, "2026-11-26T00:00:00Z")})
		wantError(t, err, migrations.ErrPartition, "cannot create public.kept_p20261127 as a partition of")
		partitionWant(t, "all other steps", partitionActions(steps), "create public.kept_p20261126", "create public.kept_p20261127",
			"detach public.kept_p20261122", "detach public.kept_p20261123")
	})
}

// Maintenance moves rows from the default partition to their own partitions without
// changes, and without firing triggers or foreign key actions.
func TestPartitionsDrain(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table ref (a bigint primary key); insert into ref values (1);
			create table log (what text);
			create function note() returns trigger language plpgsql as $$ begin insert into log values (tg_op); return coalesce(new, old); end $$;
			create table e (
				n bigint generated always as identity, gone text, id sortkey.uid60 primary key, v text not null default 'x' check (v <> ''),
				g int generated always as (length(v)) stored, r bigint references ref
			) partition by range (id);
			alter table e drop gone;
			create index on e (v);
			create trigger a after insert or delete on e for each row execute function note();
			create trigger b after insert or delete on e for each row execute function note();
			create trigger c after insert or delete on e for each row execute function note();
			alter table e enable always trigger b;
			alter table e disable trigger c;
			select sortkey.manage_partitions('e', '1 day', premake => 1)`)
		db.maintain(t, partitionNow)
		db.Exec(t, `create trigger s after delete on e_default for each statement execute function note();
			insert into e (id, v, r) select sortkey.uid60_floor(x::timestamptz), x, 1 from unnest(array[
				'2026-10-01 00:00:00Z', '2026-10-01 23:59:59.999Z', '2026-11-23 05:00Z', '2026-11-30Z', '2100-01-01Z']) x;
			truncate log`)
		rows := "select format('%s %s %s %s %s', n, id, v, g, r) from e order by 1"
		before := db.strings(t, rows)
		partitionWant(t, "steps", db.maintain(t, "2026-11-22T00:00:00Z"), "drain public.e_p20261001", "drain public.e_p20261123")
		partitionWant(t, "each row in its partition", db.places(t, "e"),
			"e_p20261001 2026-10-01 00:00:00Z", "e_p20261001 2026-10-01 23:59:59.999Z", "e_p20261123 2026-11-23 05:00Z",
			"e_default 2026-11-30Z", "e_default 2100-01-01Z")
		partitionWant(t, "the same rows", db.strings(t, rows), before...)
		partitionWant(t, "no trigger calls", db.strings(t, "select what from log"))
		triggers := "select tgname || tgenabled::text from pg_trigger where tgrelid = $1::text::regclass and not tgisinternal order by 1"
		partitionWant(t, "the same states of triggers", db.strings(t, triggers, "e_default"), "aO", "bA", "cD", "sO")
		partitionWant(t, "triggers of the parent", db.strings(t, triggers, "e_p20261123"), "aO", "bA", "cD")
		partitionWant(t, "both indexes on the partition", db.strings(t, "select count(*)::text from pg_index where indrelid = 'e_p20261123'::regclass and indisvalid"), "2")

		// Referenced rows aren't moved, since their deletion could cascade.
		db.Exec(t, `insert into e (id, v) values (sortkey.uid60_floor('2026-11-24Z'), 'referred');
			create table f (id bigint references e on delete cascade);
			create table later (id bigint references e deferrable initially deferred);
			insert into f values (sortkey.uid60_floor('2026-11-24Z'));`)
		steps, err := db.try(t, "2026-11-24T00:00:00Z")
		wantError(t, err, migrations.ErrPartition, "public.f references some of them by foreign key f_id_fkey; Drop that foreign key")
		partitionWant(t, "both steps", partitionActions(steps), "create public.e_p20261125", "drain public.e_p20261124")
		partitionWant(t, "the reference", db.strings(t, "select id::text from f"), db.strings(t, "select sortkey.uid60_floor('2026-11-24Z')::text")...)
		db.Exec(t, "truncate f")
		partitionWant(t, "the failed step again", db.maintain(t, "2026-11-24T00:00:00Z"), "drain public.e_p20261124")
		partitionWant(t, "all rows", db.strings(t, "select count(*)::text from e"), "6")

		// Partitions with referenced rows aren't dropped; the others are.
		db.Exec(t, `insert into f values (sortkey.uid60_floor('2026-10-01Z'));
			select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '1 day', retention_action => 'drop')`)
		steps, err = db.try(t, "2026-11-24T00:00:00Z")
		wantError(t, err, migrations.ErrPartition, "is still referenced from table")
		partitionWant(t, "steps", partitionActions(steps), "drop public.e_p20261001", "drop public.e_p20261121", "drop public.e_p20261122")
		partitionWant(t, "the remaining partitions", db.strings(t, "select relname from pg_class where relname like 'e\\_p________' order by 1"),
			"e_p20261001", "e_p20261123", "e_p20261124", "e_p20261125")
		partitionWant(t, "the reference", db.strings(t, "select count(*)::text from f"), "1")
	})
}

// No rows are lost and no insert fails while programs insert rows, with IDs generated
// in programs and on the server, and two maintainers create partitions and move rows.
func TestPartitionsUnderInserts(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		const tables, writers = 5, 4
		for i := range tables {
			db.Exec(t, fmt.Sprintf(`create table e%d (id sortkey.snowflake default sortkey.next_snowflake(33) primary key, v text) partition by range (id);
				create table e%[1]d_default partition of e%[1]d default;
				select sortkey.manage_partitions('e%[1]d', '1 minute', premake => 2)`, i))
		}
		stop := make(chan struct{})
		inserted := make([][]string, writers)
		begun := make(chan struct{}, writers)
		var wg sync.WaitGroup
		for w := range writers {
			conn := db.Conn(t, pgtest.Codec)
			g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: 2, Worker: w})
			must(t, err)
			wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if n == 10 {
						begun <- struct{}{}
					}
					// A transaction that reads before it inserts, in several tables.
					err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
						var keys []string
						for i := range tables {
							table := fmt.Sprintf("e%d", (n+i)%tables)
							var count int
							if err := tx.QueryRow(ctx, "select count(*) from "+table+" where v = 'none'").Scan(&count); err != nil {
								return err
							}
							var id int64
							if n%2 == 0 {
								if err := tx.QueryRow(ctx, "insert into "+table+" (v) values ('server') returning id::bigint").Scan(&id); err != nil {
									return err
								}
							} else {
								next, err := g.Next()
								if err != nil {
									return err
								}
								if _, err := tx.Exec(ctx, "insert into "+table+" values ($1, 'program')", next); err != nil {
									return err
								}
								id = int64(next)
							}
							keys = append(keys, fmt.Sprintf("%s %d", table, id))
						}
						inserted[w] = append(inserted[w], keys...)
						return nil
					})
					if err != nil {
						t.Errorf("insert: %v", err)
						return
					}
				}
			})
		}
		for range writers {
			<-begun
		}
		now := time.Now()
		var maintainers sync.WaitGroup
		var drains atomic.Int64
		for range 2 {
			maintainers.Go(func() {
				// If no attempt gets its locks, a later call takes the step.
				for minute := 0; minute < 4 || drains.Load() == 0 && minute < 60; minute++ {
					steps, err := migrations.MaintainPartitions(ctx, db.pool, complete, migrations.PartitionOptions{At: now.Add(time.Duration(minute) * time.Minute)})
					if err != nil {
						t.Error(err)
					}
					for _, s := range steps {
						if s.Action == "drain" && s.Err == nil {
							drains.Add(1)
						}
					}
				}
			})
		}
		maintainers.Wait()
		close(stop)
		wg.Wait()
		db.maintain(t, time.Now().Format(time.RFC3339)) // the skipped steps

		var want, got []string
		for _, keys := range inserted {
			want = append(want, keys...)
		}
		for i := range tables {
			got = append(got, db.strings(t, fmt.Sprintf("select 'e%d ' || id from e%[1]d", i))...)
			partitionWant(t, "an empty default partition", db.strings(t, fmt.Sprintf("select id::text from e%d_default", i)))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("expected the %d inserted rows, got %d rows with other IDs", len(want), len(got))
		}
		if drains.Load() == 0 {
			t.Error("expected drain steps during the inserts, got none")
		}
	})
}

// A row can arrive in the default partition between the plan and the creation of its
// partition: when the time of that partition begins, or from a clock that is ahead.
// Maintenance moves it, without an error.
func TestPartitionsRowAfterPlan(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 2")
		db.maintain(t, partitionNow)
		tx := db.begin(t, "insert into e values (sortkey.snowflake_floor('2026-11-24 00:00Z'), 'late')") // no plan sees this row
		maintained := make(chan error, 1)
		var steps []migrations.PartitionStep
		go func() {
			var err error
			steps, err = migrations.MaintainPartitions(t.Context(), db.pool, complete,
				migrations.PartitionOptions{At: partitionTime(t, "2026-11-23T10:00:00Z"), LockTimeout: time.Minute})
			maintained <- err
		}()
		waitUntil(t, db.DB, "exists (select from pg_locks where not granted and relation = 'e_default'::regclass)")
		committing := db.strings(t, "select clock_timestamp()::text")[0]
		must(t, tx.Commit(t.Context()))
		must(t, <-maintained)
		partitionWant(t, "the steps of a new plan", partitionActions(steps), "create public.e_p20261125", "drain public.e_p20261124")
		must(t, errors.Join(steps[0].Err, steps[1].Err))
		partitionWant(t, "the row in its partition", db.places(t, "e"), "e_p20261124 late")
		// The attempt that waited doesn't count for these steps.
		partitionWant(t, "one attempt per step", db.strings(t, `select action || ' ' || attempts || (begun_at > $1) from sortkey.partition_log
			where partition in ('public.e_p20261124', 'public.e_p20261125') order by ended_at`, committing), "create 1true", "drain 1true")
	})
}

// If a step doesn't get its locks in six attempts, maintenance leaves it and the later
// steps of its table. It maintains other tables, and the next call takes the steps.
func TestPartitionsLockTimeout(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		for _, table := range []string{"a", "b"} {
			db.managed(t, table, "premake => 1, retention => '1 day', retention_action => 'drop'")
		}
		db.maintain(t, partitionNow)
		tx := db.begin(t, "select from a")

		// Without the lock timeout, the call would wait until the context is done.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		options := migrations.PartitionOptions{At: partitionTime(t, "2026-11-23T10:00:00Z"), LockTimeout: 10 * time.Millisecond}
		steps, err := migrations.MaintainPartitions(ctx, db.pool, complete, options)
		must(t, err)
		partitionWant(t, "the first step of a, and all of b", partitionActions(steps), "create public.a_p20261123",
			"create public.b_p20261123", "create public.b_p20261124", "drop public.b_p20261121")
		for _, s := range steps {
			if blocked := s.Table == "public.a"; errors.Is(s.Err, migrations.ErrLocked) != blocked || !blocked && s.Err != nil {
				t.Errorf("%s %s: expected ErrLocked only behind a lock, got %v", s.Action, s.Partition, s.Err)
			}
		}
		partitionWant(t, "partitions of b", db.strings(t, "select to_regclass('b_p20261124')::text || coalesce(to_regclass('b_p20261121')::text, '')"), "b_p20261124")
		partitionWant(t, "partitions of a", db.strings(t, "select to_regclass('a_p20261121')::text || coalesce(to_regclass('a_p20261124')::text, '')"), "a_p20261121")

		// The procedure raises a warning and no error.
		conn, notices := db.listen(t)
		exec(t, conn, "call sortkey.maintain_partitions(lock_timeout => '10 ms', at => '2026-11-23 10:00Z')")
		if warnings := notices.take("WARNING skipped "); len(warnings) != 1 {
			t.Errorf("got warnings %q, want 1", warnings)
		}
		partitionWant(t, "six attempts of each call", db.strings(t, "select attempts || ' ' || problem from sortkey.partition_log where outcome = 'skipped'"),
			"6 canceling statement due to lock timeout", "6 canceling statement due to lock timeout")
		partitionWant(t, "the original lock_timeout", []string{pgtest.Value[string](t, conn, "show lock_timeout")}, "0")

		must(t, tx.Rollback(t.Context()))
		partitionWant(t, "the remaining steps", db.maintain(t, "2026-11-23T10:00:00Z"),
			"create public.a_p20261123", "create public.a_p20261124", "drop public.a_p20261121")
	})
}

// An insert waits while maintenance drains rows of its time, or creates a partition
// whose time has begun. It then uses the new partition. Inserts, even in open transactions,
// don't block the creation of a partition ahead, nor does it block inserts.
func TestPartitionsInsertWaits(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "e", "premake => 1")
		db.maintain(t, partitionNow)
		tx := db.begin(t, "insert into e values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x')")
		partitionWant(t, "the next day", db.maintain(t, "2026-11-22T00:00:00Z"), "create public.e_p20261123")
		_, err := tx.Exec(ctx, "insert into e values (sortkey.snowflake_floor('2026-11-23 11:00Z'), 'y')")
		must(t, errors.Join(err, tx.Commit(ctx)))
		partitionWant(t, "both rows", db.places(t, "e"), "e_p20261121 x", "e_p20261123 y")

		for table, want := range map[string][]string{
			"drained": {"drained_p20261121 first", "drained_p20261121 second"},
			"bare":    {"bare_p20261121 second"},
		} {
			db.managed(t, table, "premake => 1")
			db.Exec(t, "create table "+table+"_default partition of "+table+" default")
			if len(want) == 2 {
				db.Exec(t, "insert into "+table+" values (sortkey.snowflake_floor('2026-11-21Z'), 'first')")
			}
			step := "select sortkey.next_partition_step('" + table + "', '" + partitionNow + "'); "
			tx := db.begin(t, step+step)
			written := db.behind(t, db.Conn(t), "insert into "+table+" values (sortkey.snowflake_floor('2026-11-21 12:00Z'), 'second')")
			must(t, tx.Commit(ctx))
			must(t, <-written)
			partitionWant(t, "rows in their partition", db.places(t, table), want...)
		}
	})
}

// behind executes a statement that has to wait for a lock. It returns when the
// statement waits.
func (db partitionDB) behind(t testing.TB, conn *pgx.Conn, sql string) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), sql)
		result <- err
	}()
	pgtest.AwaitLock(t, db.Conn(t), conn.PgConn().PID(), result)
	return result
}

// Two maintainers of a table take turns, and the second sees the changes of the first,
// even if the default isolation level is repeatable read.
func TestPartitionsTwoMaintainers(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "a", "premake => 1") // maintained first, without a wait
		db.managed(t, "e", "premake => 1")
		db.maintain(t, partitionNow)
		first := db.Conn(t)
		repeatable := pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["default_transaction_isolation"] = "repeatable read" })
		for day, second := range map[int]func(conn *pgx.Conn, pool *sql.DB, at time.Time) error{
			22: func(conn *pgx.Conn, _ *sql.DB, at time.Time) error {
				_, err := conn.Exec(ctx, "call sortkey.maintain_partitions(at => $1)", at)
				return err
			},
			23: func(_ *pgx.Conn, pool *sql.DB, at time.Time) error {
				steps, err := migrations.MaintainPartitions(ctx, pool, complete, migrations.PartitionOptions{At: at})
				for _, s := range steps {
					err = errors.Join(err, s.Err)
				}
				return err
			},
		} {
			at := time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)
			tx, err := first.Begin(ctx)
			must(t, err)
			_, err = tx.Exec(ctx, "select sortkey.next_partition_step('e', $1)", at)
			must(t, err)
			partitionWant(t, "the original lock_timeout", db.strings(t, "show lock_timeout"), pgtest.Value[string](t, first, "show lock_timeout"))
			conn, pool := db.Conn(t, repeatable), db.SQL(t, repeatable)
			pool.SetMaxOpenConns(1)
			pid := conn.PgConn().PID()
			if day == 23 {
				must(t, pool.QueryRowContext(ctx, "select pg_backend_pid()").Scan(&pid))
			}
			result := make(chan error, 1)
			go func() { result <- second(conn, pool, at) }()
			pgtest.AwaitLock(t, db.Conn(t), pid, result)
			must(t, tx.Commit(ctx))
			if err := <-result; err != nil {
				t.Errorf("second maintainer: %v", err)
			}
		}
		if n := len(db.partitions(t, "e")); n != 5 {
			t.Errorf("expected partitions of 4 days and the default, got %q", db.partitions(t, "e"))
		}
	})
}

// A dry run changes nothing. Executing its SQL by hand has the same result as a run.
func TestPartitionsDryRun(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		for _, schema := range []string{"by_hand", "by_call"} {
			db.Exec(t, `create schema `+schema+`;
				create table `+schema+`.e (id sortkey.uid60 primary key, v text, parent bigint references `+schema+`.e) partition by range (id);
				create table `+schema+`.e_default partition of `+schema+`.e default;
				create table `+schema+`.old partition of `+schema+`.e for values from (sortkey.uid60_floor('2026-10-01Z')) to (sortkey.uid60_floor('2026-10-02Z'));
				insert into `+schema+`.e select sortkey.uid60_floor(x::timestamptz), x
					from unnest(array['2026-10-01Z', '2026-11-18Z', '2026-11-21 23:00Z', '2027-01-01Z']) x;
				select sortkey.manage_partitions('`+schema+`.e', '1 day', retention => '5 days', retention_action => 'drop')`)
		}
		state := func(schema string) []string {
			return append(db.partitions(t, schema+".e"), db.places(t, schema+".e")...)
		}
		db.Exec(t, "create table gone (id sortkey.uid60) partition by range (id); select sortkey.manage_partitions('gone', '1 day'); drop table gone")
		before := state("by_hand")
		options := migrations.PartitionOptions{Parent: "by_hand.e", At: partitionTime(t, partitionNow), DryRun: true}
		steps, err := migrations.MaintainPartitions(ctx, db.pool, complete, options)
		must(t, err)
		if len(steps) != 7 {
			t.Fatalf("expected 4 creates, 2 drains and 1 drop, got %q", partitionActions(steps))
		}
		if from := partitionTime(t, "2026-11-22T00:00:00Z"); !steps[0].From.Equal(from) || !steps[0].To.Equal(from.AddDate(0, 0, 1)) {
			t.Errorf("expected the times of the first step, got %v to %v", steps[0].From, steps[0].To)
		}
		conn, notices := db.listen(t)
		// A publication includes the inserted rows only if the partition is attached before.
		if sql := steps[4].SQL; strings.Index(sql, "INSERT INTO ") < strings.Index(sql, " ATTACH ") {
			t.Errorf("expected ATTACH before INSERT, got\n%s", sql)
		}
		// A dry run also works in a transaction, even a read-only one.
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		must(t, err)
		_, err = tx.Exec(ctx, "call sortkey.maintain_partitions('by_hand.e', dry_run => true, at => $1)", options.At)
		must(t, err)
		must(t, tx.Commit(ctx))
		partitionWant(t, "no changes", state("by_hand"), before...)
		partitionWant(t, "all settings", db.strings(t, "select count(*)::text from sortkey.partitioned_table"), "3")

		var want []string
		for _, s := range steps {
			want = append(want, fmt.Sprintf("%s %s\nBEGIN;\n%s\nCOMMIT;", s.Action, s.Partition, s.SQL))
		}
		shown := notices.take("NOTICE ")
		partitionWant(t, "the same SQL from the procedure", shown, want...)
		for _, statement := range shown {
			_, sql, _ := strings.Cut(statement, "\n")
			db.Exec(t, sql)
		}
		options = migrations.PartitionOptions{Parent: "by_call.e", At: options.At}
		called, err := migrations.MaintainPartitions(ctx, db.pool, complete, options)
		must(t, err)
		for i, s := range called {
			if i >= len(steps) || strings.ReplaceAll(s.SQL, "by_call", "by_hand") != steps[i].SQL {
				t.Errorf("expected the planned SQL, got %s", s.SQL)
			}
		}
		partitionWant(t, "the same result by hand", state("by_hand"), state("by_call")...)
		partitionWant(t, "the rows", db.places(t, "by_hand.e"), "e_p20261118 2026-11-18Z", "e_p20261121 2026-11-21 23:00Z", "e_default 2027-01-01Z")
		partitionWant(t, "no steps", db.maintain(t, partitionNow))
	})
}

// Queries by time read only the partitions of that time.
func TestPartitionsPruned(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		for _, f := range []struct{ table, column, format string }{
			{"a", "sortkey.snowflake", "snowflake"}, {"b", "sortkey.snowflake_si", "snowflake_si"},
			{"c", "sortkey.uid60", "uid60"}, {"d", "sortkey.sno", "sno"}, {"e", "bigint", "uid60"}, {"f", "uuid", "sno"},
			{"g", "sortkey.uuid7", "uuid7"}, {"h", "uuid", "uuid7"},
		} {
			db.Exec(t, fmt.Sprintf(`create table %s (id %s primary key, v text) partition by range (id);
				select sortkey.manage_partitions('%[1]s', '1 day', '%[3]s', premake => 3)`, f.table, f.column, f.format))
			db.maintain(t, partitionNow)
			conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
			scan := regexp.MustCompile(`Scan (?:using \S+ )?on (\w+)(?: \w+)?\n`)
			check := func(form, plan string, removed int) {
				t.Helper()
				scans := scan.FindAllStringSubmatch(plan, -1)
				scans = slices.DeleteFunc(scans, func(m []string) bool { return strings.HasSuffix(m[1], "_pkey") })
				if len(scans) != 1 || scans[0][1] != f.table+"_p20261122" || !strings.Contains(plan, "Index Cond") ||
					strings.Contains(plan, "Subplans Removed") != (removed > 0) || removed > 0 && !strings.Contains(plan, fmt.Sprintf("Subplans Removed: %d\n", removed)) {
					t.Errorf("%s, %s: expected an index scan of one partition, and %d to be removed at executor start, got\n%s", f.column, form, removed, plan)
				}
			}
			query := func(from, to string) string {
				return fmt.Sprintf("select * from %s where id >= sortkey.%s_floor(%s) and id < sortkey.%[2]s_floor(%[4]s)", f.table, f.format, from, to)
			}
			exec(t, conn, "set enable_seqscan = off; prepare q(timestamptz, timestamptz) as "+query("$1", "$2"))
			check("literals", explain(t, conn, "costs off", query("'2026-11-22Z'", "'2026-11-23Z'")), 0)
			exec(t, conn, "set plan_cache_mode = force_custom_plan")
			check("custom plan", explain(t, conn, "costs off", "execute q('2026-11-22Z', '2026-11-23Z')"), 0)
			exec(t, conn, "set plan_cache_mode = force_generic_plan")
			check("generic plan", explain(t, conn, "costs off", "execute q('2026-11-22Z', '2026-11-23Z')"), 4)
			// now() plus an offset to the time of the test.
			now := func(of string) string {
				return fmt.Sprintf("now() + (timestamptz '%s' - timestamptz '%s')", of, db.strings(t, "select now()::text")[0])
			}
			check("now()", explain(t, conn, "costs off", query(now("2026-11-22 01:00Z"), now("2026-11-22 22:00Z"))), 4)
		}
	})
}

// Invalid arguments are errors that name the value and the remedy.
func TestPartitionsInvalid(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table good (id sortkey.snowflake) partition by range (id);
			create table plain (id bigint);
			create table two (id bigint, b int) partition by range (id, b);
			create table hashed (id bigint) partition by hash (id);
			create table listed (id bigint) partition by list (id);
			create table computed (id bigint) partition by range ((id + 1));
			create table spread (id sortkey.spread64) partition by range (id);
			create table unknown (id bigint) partition by range (id);
			create table texts (id sortkey.sno_as_text) partition by range (id)`)
		for _, c := range []struct{ call, got, hint string }{
			{"sortkey.manage_partitions(null, '1 day')", "table NULL does not exist", "Pass the name"},
			{"sortkey.manage_partitions(4242, '1 day')", "table 4242 does not exist", "Pass the name"},
			{"sortkey.manage_partitions('plain', '1 day', 'uid60')", "public.plain: it is not partitioned", "A table is partitioned when it is created"},
			{"sortkey.manage_partitions('two', '1 day', 'uid60')", "public.two: it is PARTITION BY RANGE (id, b)", "A table is partitioned"},
			{"sortkey.manage_partitions('hashed', '1 day', 'uid60')", "public.hashed: it is PARTITION BY HASH (id)", "A table is partitioned"},
			{"sortkey.manage_partitions('listed', '1 day', 'uid60')", "public.listed: it is PARTITION BY LIST (id)", "A table is partitioned"},
			{"sortkey.manage_partitions('computed', '1 day', 'uid60')", "public.computed: it is PARTITION BY RANGE (((id + 1)))", "A table is partitioned"},
			{"sortkey.manage_partitions('spread', '1 day')", "by public.spread.id: Spread64", "or use another format"},
			{"sortkey.manage_partitions('unknown', '1 day')", "format NULL is not valid for public.unknown.id of type bigint", "Pass format"},
			{"sortkey.manage_partitions('unknown', '1 day', 'spread64')", "Spread64", "another format"},
			{"sortkey.manage_partitions('good', '1 day', 'uid60')", "format 'uid60' does not match public.good.id, whose domain is snowflake", "Omit format"},
			{"sortkey.manage_partitions('spread', '1 day', 'uid60')", "public.spread.id, whose domain is spread64", "Omit format"},
			{"sortkey.manage_partitions('good', '1 day', retention => '1001 years')", "retention '1001 years' is not valid; want a positive interval of up to 1000 years", "or NULL"},
			{"sortkey.next_partition_step(null)", "parent must not be NULL", "one table per call"},
			{"sortkey.manage_partitions('unknown', '1 day', 'ulid')", "format 'ulid'", "Pass format"},
			{"sortkey.manage_partitions('unknown', '1 day', 'sno')", "format sno needs a column of type uuid, but public.unknown.id is of type bigint", "Pass the format"},
			{"sortkey.manage_partitions('texts', '1 day')", "format NULL is not valid for public.texts.id of type sortkey.sno_as_text", "Pass format"},
			{"sortkey.manage_partitions('texts', '1 day', 'sno')", "public.texts.id is of type sortkey.sno_as_text", "Pass the format"},
			{"sortkey.manage_partitions('good', null)", "partition interval NULL", "'1 month'"},
			{"sortkey.manage_partitions('good', '0')", "partition interval '00:00:00'", "'1 month'"},
			{"sortkey.manage_partitions('good', '-1 day')", "partition interval '-1 days'", "'1 month'"},
			{"sortkey.manage_partitions('good', '-1 month')", "partition interval '-1 mons'", "'1 month'"},
			{"sortkey.manage_partitions('good', '1 month 1 day')", "partition interval '1 mon 1 day'", "Do not mix months with days"},
			{"sortkey.manage_partitions('good', '90 seconds')", "partition interval '00:01:30'", "'1 month'"},
			{"sortkey.manage_partitions('good', '101 years')", "partition interval '101 years'", "from 1 minute to 100 years"},
			{"sortkey.manage_partitions('good', '1 day', premake => 0)", "premake 0 is out of range", "enough to last"},
			{"sortkey.manage_partitions('good', '1 day', premake => null)", "premake NULL is out of range", "enough to last"},
			{"sortkey.manage_partitions('good', '1 day', retention => '0')", "retention '00:00:00'", "or NULL"},
			{"sortkey.manage_partitions('good', '1 day', retention => '1 month -40 days')", "retention '1 mon -40 days'", "or NULL"},
			{"sortkey.manage_partitions('good', '1 day', retention_action => 'archive')", "retention_action 'archive'", "Use detach"},
			{"sortkey.manage_partitions('good', '1 day', retention_action => null)", "retention_action NULL", "Use detach"},
			{"sortkey.manage_partitions('good', '1 day', default_partition => null)", "default_partition must not be NULL", "false to reject them"},
			{"sortkey.unmanage_partitions('good')", "partitions of public.good are not managed", "Call sortkey.manage_partitions"},
			{"sortkey.next_partition_step('good', lock_timeout => '0')", "lock_timeout '00:00:00'", "such as 100 milliseconds"},
			{"sortkey.next_partition_step('good', lock_timeout => null)", "lock_timeout NULL", "such as 100 milliseconds"},
		} {
			_, err := db.pool.ExecContext(t.Context(), "select "+c.call)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || !strings.Contains(pg.Message, c.got) || !strings.Contains(pg.Hint, c.hint) {
				t.Errorf("%s: expected an error with %q and a hint with %q, got %v, %+v", c.call, c.got, c.hint, err, pg)
			}
		}
		partitionWant(t, "no managed tables", db.strings(t, "select parent::text from sortkey.partitioned_table"))

		call := func(args string) error {
			_, err := db.pool.ExecContext(t.Context(), "call sortkey.maintain_partitions("+args+")")
			return err
		}
		wantError(t, call("'good'"), nil, "partitions of public.good are not managed")
		_, err := migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{Parent: "good"})
		wantError(t, err, nil, "public.good")
		_, err = migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{LockTimeout: -time.Second})
		wantError(t, err, nil, "PartitionOptions.LockTimeout: -1s")

		// The domain of another installation doesn't determine the format.
		up(t, db.DB, migrations.Config{Schema: "other"})
		db.Exec(t, "create table another (id other.uid60) partition by range (id); select other.manage_partitions('another', '1 day')")
		_, err = db.pool.ExecContext(t.Context(), "select sortkey.manage_partitions('another', '1 day')")
		wantError(t, err, nil, "format NULL", "public.another.id")

		// A time out of the format's range is an error.
		db.Exec(t, "select sortkey.manage_partitions('good', '1 day')")
		for _, at := range []string{"1999-01-01", "3000-01-01"} {
			if err := call("at => '" + at + "Z'"); err == nil {
				t.Errorf("expected an error at %s", at)
			}
			_, err := db.try(t, at+"T00:00:00Z")
			wantError(t, err, migrations.ErrPartition, "time "+at+"T00:00:00Z", "public.good")
		}
		// In a transaction block, CALL fails and changes nothing.
		_, err = db.pool.ExecContext(t.Context(), "begin; call sortkey.maintain_partitions(at => '"+partitionNow+"'); commit")
		wantSQLState(t, err, "2D000", "CALL in a transaction")
		partitionWant(t, "no partitions", db.partitions(t, "good"))
	})
}

// Maintenance works with unusual names and settings.
func TestPartitionsNames(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		for _, setting := range []string{"datestyle = 'SQL, DMY'", "timezone = 'America/New_York'", "search_path = ''", "intervalstyle = 'iso_8601'",
			"default_transaction_isolation = 'repeatable read'", "standard_conforming_strings = off"} {
			db.Exec(t, "do $$ begin execute format('alter database %I set "+strings.ReplaceAll(setting, "'", "''")+"', current_database()); end $$")
		}
		db.pool = db.SQL(t) // with these settings
		partitionWant(t, "a month in UTC", db.strings(t, "select (sortkey_internal.partition_window('1 month', '2026-11-01 00:30Z') = tstzrange('2026-11-01Z', '2026-12-01Z'))::text"), "true")
		long := strings.Repeat("ä", 31)
		db.Exec(t, `create schema "Odd ""Schema'"; create schema other;
			create table "Odd ""Schema'"."T %_'x\$$" ("I ""d'" sortkey.sno primary key, v text) partition by range ("I ""d'");
			create table public.`+long+`1 (id bigint primary key, v text) partition by range (id);
			create table public.`+long+`2 (id bigint primary key, v text) partition by range (id);
			create table other.`+long+`1 (id bigint primary key, v text) partition by range (id);
			select sortkey.manage_partitions($n$"Odd ""Schema'"."T %_'x\$$"$n$, '6 hours', premake => 1, retention => '1 day', retention_action => 'drop');
			select sortkey.manage_partitions('public.`+long+`1', '6 hours', 'uid60', premake => 1);
			select sortkey.manage_partitions('public.`+long+`2', '6 hours', 'uid60', premake => 1);
			select sortkey.manage_partitions('other.`+long+`1', '6 hours', 'uid60', premake => 1);`)
		if n := len(db.maintain(t, partitionNow)); n != 12 {
			t.Errorf("expected 3 partitions of each table, got %d", n)
		}
		partitionWant(t, "no steps", db.maintain(t, partitionNow))
		partitionWant(t, "names of at most 63 bytes", db.strings(t, `select bool_and(octet_length(c.relname) <= 63 and c.relname ~ '^ä+_[0-9a-f]{8}_(p20261121t0600|p20261121t1200|default)$')::text || count(*)
			from pg_inherits join pg_class c on c.oid = inhrelid where c.relname like 'ä%' and c.relkind = 'r'`), "true9")
		db.Exec(t, `insert into "Odd ""Schema'"."T %_'x\$$" values (sortkey.sno_floor('2026-11-20 07:00Z'), 'a'), (sortkey.sno_floor('2026-11-21 07:00Z'), 'b')`)
		partitionWant(t, "steps", db.maintain(t, partitionNow), `drain "Odd ""Schema'"."T %_'x\$$_p20261120t0600"`)
		partitionWant(t, "steps a day later", db.maintain(t, "2026-11-21T12:00:00Z")[:2],
			`create "Odd ""Schema'"."T %_'x\$$_p20261121t1800"`, `drop "Odd ""Schema'"."T %_'x\$$_p20261120t0600"`)

		// Maintenance continues after the table is renamed.
		db.Exec(t, `alter table "Odd ""Schema'"."T %_'x\$$" rename to "renamed"; alter schema "Odd ""Schema'" rename to odd`)
		partitionWant(t, "steps under the new name", db.maintain(t, "2026-11-21T18:00:00Z")[:1], "create odd.renamed_p20261122t0000")

		// A table that isn't a partition but has a partition's name isn't changed.
		db.Exec(t, "create table odd.renamed_p20261122t0600 (a int); insert into odd.renamed_p20261122t0600 values (1)")
		_, err := migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{Parent: "odd.renamed", At: partitionTime(t, "2026-11-22T01:00:00Z")})
		wantError(t, err, nil, "cannot create odd.renamed_p20261122t0600 as a partition of odd.renamed FOR VALUES FROM", "Rename, drop or attach")
		partitionWant(t, "the unchanged table", db.strings(t, "select a::text from odd.renamed_p20261122t0600"), "1")

		// The settings of a dropped table are deleted. A table that is no longer managed isn't changed.
		db.Exec(t, "drop table odd.renamed; select sortkey.unmanage_partitions('other."+long+"1')")
		steps := db.maintain(t, "2026-11-22T01:00:00Z")
		partitionWant(t, "the managed tables", db.strings(t, "select parent::text from sortkey.partitioned_table order by 1"), `public."`+long+`1"`, `public."`+long+`2"`)
		if len(steps) == 0 || slices.ContainsFunc(steps, func(s string) bool { return strings.Contains(s, "other.") }) {
			t.Errorf("expected steps of two tables, got %q", steps)
		}
	})
}

// Errors of one table don't prevent the maintenance of others; the call returns them at
// the end. The maintaining role only needs to own the tables.
func TestPartitionsRoles(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create schema app; create table app.a (id sortkey.snowflake primary key, v text) partition by range (id);
			create table app.b (like app.a including all) partition by range (id);
			create table app.c (like app.a including all) partition by range (id);
			select sortkey.manage_partitions(t, '1 day', premake => 1) from unnest(array['app.a', 'app.b', 'app.c']::regclass[]) t`)
		owner, member := db.role(t, "owner"), db.role(t, "member")
		db.Exec(t, fmt.Sprintf(`grant %[1]s to %[2]s; alter table app.a owner to %[1]s; alter table app.c owner to %[1]s;
			grant usage, create on schema app to %[1]s; grant usage on schema sortkey, sortkey_internal to %[1]s`, owner, member))
		conn, notices := db.listen(t, pgtest.Login(member))
		_, err := conn.Exec(t.Context(), "call sortkey.maintain_partitions(at => '"+partitionNow+"')")
		wantError(t, err, nil, "partition steps failed: 1")
		warnings := notices.take("WARNING ")
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "failed plan app.b: permission denied") {
			t.Errorf("expected a warning about b, got %q", warnings)
		}
		partitionWant(t, "the owner's partitions", db.strings(t, `select c.relname || ' ' || replace(pg_get_userbyid(c.relowner), current_database(), '')
			from pg_inherits join pg_class c on c.oid = inhrelid where c.relnamespace = 'app'::regnamespace and c.relkind = 'r' order by 1`),
			"a_default owner_", "a_p20261121 owner_", "a_p20261122 owner_", "c_default owner_", "c_p20261121 owner_", "c_p20261122 owner_")
		// Rows hidden by row-level security cause an error. If they were ignored, they would stay in the default partition.
		db.Exec(t, `insert into app.c values (sortkey.snowflake_floor('2026-10-01Z'), 'hidden');
			alter table app.c_default enable row level security, force row level security`)
		_, err = conn.Exec(t.Context(), "call sortkey.maintain_partitions('app.c', at => '"+partitionNow+"')")
		if warnings = notices.take("WARNING "); err == nil || len(warnings) != 1 || !strings.Contains(warnings[0], "row-level security") {
			t.Errorf("expected an error because of row-level security, got %v, %q", err, warnings)
		}
		_, err = conn.Exec(t.Context(), "select sortkey.manage_partitions('app.a', '2 days')")
		if err == nil {
			t.Error("manage_partitions without write access to partitioned_table: expected an error, got none")
		}
	})
}

// A role with write access to partitioned_table can manage its own tables, and tables
// of roles that it is a member of.
func TestPartitionsOfOtherOwners(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		owner, member, other := db.role(t, "owner"), db.role(t, "member"), db.role(t, "other")
		db.Exec(t, fmt.Sprintf(`create table e (id sortkey.snowflake primary key) partition by range (id); alter table e owner to %[1]s; grant %[1]s to %[2]s;
			grant usage on schema sortkey, sortkey_internal to %[1]s, %[3]s; grant insert, update, delete on sortkey.partitioned_table to %[1]s, %[3]s`, owner, member, other))
		as := func(role, sql string) error {
			_, err := db.Conn(t, pgtest.Login(role)).Exec(t.Context(), sql)
			return err
		}
		refused := func(sql string) {
			t.Helper()
			wantSQLState(t, as(other, sql), "42501", sql, other+" does not own public.e", "the owner is "+owner, "member of "+owner)
		}
		const manage, unmanage = "select sortkey.manage_partitions('e', '1 day', retention => '1 day', retention_action => 'drop')", "select sortkey.unmanage_partitions('e')"
		refused(manage)
		must(t, as(member, manage))
		// These roles need USAGE on the schema of the internal functions.
		db.Exec(t, "revoke usage on schema sortkey_internal from "+owner)
		for _, sql := range []string{manage, unmanage, "call sortkey.maintain_partitions('e')", "select * from sortkey.plan_partitions('e')", "select * from sortkey.next_partition_step('e')"} {
			wantSQLState(t, as(member, sql), "42501", sql, "permission denied for schema sortkey_internal")
		}
		db.Exec(t, "grant usage on schema sortkey_internal to "+owner)
		refused(unmanage)
		must(t, as(member, unmanage))
		must(t, as(owner, manage))
		must(t, as(owner, unmanage))
	})
}

// Maintenance fills the gaps around partitions whose bounds aren't at units of the
// format or at the ends of its range, without overlaps.
func TestPartitionsBounds(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table e (id bigint primary key, v text) partition by range (id);
			select sortkey.manage_partitions('e', '1 year', 'snowflake_si', premake => 2);
			do $$ begin
				execute format('create table mine partition of e for values from (%s) to (%s)',
					sortkey.snowflake_si_floor('2020-06-01Z') + 5, sortkey.snowflake_si_floor('2021-03-01Z') + 5);
				execute format('create table negative partition of e for values from (-20) to (-10)');
			end $$`)
		partitionWant(t, "the gaps", db.maintain(t, "2020-02-01T00:00:00Z"),
			"create public.e_p20200101", "create public.e_p20210301t000000001", "create public.e_p20220101", "default public.e_default")
		// Rows in the partial milliseconds between partitions stay in the default partition.
		db.Exec(t, `insert into e values (sortkey.snowflake_si_floor('2020-06-01Z') + 4, 'before'), (sortkey.snowflake_si_floor('2020-06-01Z') + 5, 'in'),
			(sortkey.snowflake_si_floor('2021-03-01Z') + 5, 'after'), (0, 'zero'), (-1, 'none'), (9223372036854775807, 'too large'),
			(sortkey.snowflake_si_floor('2024-03-01Z'), 'ahead')`)
		partitionWant(t, "no steps", db.maintain(t, "2020-02-01T00:00:00Z"))
		partitionWant(t, "places", db.places(t, "e"), "e_default none", "e_default zero", "e_default before", "mine in", "e_default after", "e_default ahead", "e_default too large")
		partitionWant(t, "steps for the last, open partition", db.maintain(t, "2054-10-01T00:00:00Z"), "create public.e_p20540101", "drain public.e_p20240101")
		partitionWant(t, "its bounds", db.strings(t, "select regexp_replace(pg_get_expr(relpartbound, oid), '\\d+', 'N') from pg_class where relname = 'e_p20540101'"),
			"FOR VALUES FROM ('N') TO (MAXVALUE)")

		// The first week of the format has less than seven days.
		db.Exec(t, `create table made (id sortkey.sno primary key, v text) partition by range (id);
			create table drained (id sortkey.snowflake_si primary key, v text) partition by range (id);
			create table drained_default partition of drained default;
			insert into drained values (sortkey.snowflake_si_floor('2020-01-01Z') + 1, 'first');
			select sortkey.unmanage_partitions('e'), sortkey.manage_partitions('made', '7 days', premake => 1)`)
		partitionWant(t, "the first week", db.maintain(t, "2010-01-02T00:00:00Z"), "create public.made_p20100101", "create public.made_p20100104", "default public.made_default")
		db.Exec(t, "select sortkey.unmanage_partitions('made'), sortkey.manage_partitions('drained', '7 days', premake => 1)")
		partitionWant(t, "the first week", db.maintain(t, "2020-02-01T00:00:00Z"),
			"create public.drained_p20200127", "create public.drained_p20200203", "drain public.drained_p20200101")
	})
}

// A dump includes the settings, and maintenance continues in a restored database.
func TestPartitionsDump(t *testing.T) {
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		// One table sorts before schema sortkey, and one after.
		db.Exec(t, `create schema zoo; create table zoo."E" (id sortkey.sno primary key, v text) partition by range (id);
			create table a (id bigint primary key, v text) partition by range (id);
			select sortkey.manage_partitions('zoo."E"', '1 day', premake => 1);
			select sortkey.manage_partitions('a', '1 month', 'uid60', premake => 1)`)
		partitionDB{db, db.SQL(t)}.maintain(t, partitionNow)
		db.Exec(t, `insert into zoo."E" values (sortkey.sno_floor('2026-11-22Z'), 'x'), (sortkey.sno_floor('2026-11-23Z'), 'y')`)
		restored := newDatabase(t, db, "restored", "")
		_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", fmt.Sprintf(
			"set -o pipefail; pg_dump -U postgres %s | psql -U postgres -q -v ON_ERROR_STOP=1 %s", db.Name, restored.Name))
		must(t, err)
		copied := partitionDB{restored, restored.SQL(t)}
		must(t, migrations.Check(ctx, copied.pool, complete))
		partitionWant(t, "the next partitions", copied.maintain(t, "2026-12-01T00:00:00Z"),
			"create public.a_p20270101", `create zoo."E_p20261201"`, `create zoo."E_p20261202"`, `drain zoo."E_p20261123"`)
		partitionWant(t, "the rows", copied.places(t, `zoo."E"`), "E_p20261122 x", "E_p20261123 y")
	})
}

// A partition has the properties of the table, on all versions of Postgres.
func TestPartitionsProperties(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		var version int
		must(t, db.pool.QueryRowContext(t.Context(), "select current_setting('server_version_num')::int").Scan(&version))
		space, using, virtual := db.Name+"_space", "", ""
		if version >= 170000 { // before, a partitioned table has no access method
			db.Exec(t, "create access method heap2 type table handler heap_tableam_handler")
			using = "using heap2"
		}
		if version >= 180000 {
			virtual = ", twice int generated always as (n * 2) virtual"
		}
		// In separate messages, since CREATE TABLESPACE can't run in a transaction.
		conn := db.Conn(t)
		exec(t, conn, "set allow_in_place_tablespaces = on")
		exec(t, conn, "create tablespace "+space+" location ''")
		db.Exec(t, `create foreign data wrapper nowhere; create server nowhere foreign data wrapper nowhere;
			create table e (id sortkey.uid60, v text collate "C" default 'd', n int generated by default as identity`+virtual+`) partition by range (id) `+using+` tablespace `+space+`;
			create index on e (id) include (v) where n > 3;
			create statistics st on id, n from e;
			alter table e alter v set storage external;
			comment on column e.v is 'a comment';
			create foreign table far partition of e for values from (sortkey.uid60_floor('2020-01-01Z')) to (sortkey.uid60_floor('2021-01-01Z')) server nowhere;
			select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '1 year', retention_action => 'drop')`)
		partitionWant(t, "steps", db.maintain(t, partitionNow), "create public.e_p20261121", "create public.e_p20261122", "default public.e_default", "drop public.far")
		db.Exec(t, "insert into e (id) values (sortkey.uid60_floor('2026-11-21Z')), (sortkey.uid60_floor('2026-11-23Z'))")
		partitionWant(t, "steps", db.maintain(t, "2026-11-22T00:00:00Z"), "drain public.e_p20261123")
		partitionWant(t, "the original rows", db.strings(t, "select tableoid::regclass || v || n from e order by id"), "e_p20261121d1", "e_p20261123d2")
		method := map[bool]string{true: "heap2", false: "heap"}[version >= 170000]
		for _, partition := range []string{"e_default", "e_p20261121", "e_p20261123"} {
			partitionWant(t, "the properties", db.strings(t, `select concat_ws(' ', s.spcname, m.amname, a.attstorage, col_description(c.oid, 2),
					(select count(*) from pg_statistic_ext where stxrelid = c.oid), (select count(*) from pg_index where indrelid = c.oid and indpred is not null))
				from pg_class c join pg_tablespace s on s.oid = c.reltablespace join pg_am m on m.oid = c.relam join pg_attribute a on a.attrelid = c.oid and a.attnum = 2
				where c.oid = $1::text::regclass`, partition), space+" "+method+" e a comment 1 1")
		}
		db.Exec(t, "drop table e")
		exec(t, conn, "drop tablespace "+space)
	})
}

// A table that is partitioned by time can itself be a partition.
func TestPartitionsOfPartitions(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table e (region text, v text, id sortkey.uid60, primary key (id, region)) partition by list (region);
			create table eu (id sortkey.uid60 not null, region text not null, v text) partition by range (id);
			alter table e attach partition eu for values in ('eu');
			select sortkey.manage_partitions('eu', '1 day', premake => 1)`)
		partitionWant(t, "steps", db.maintain(t, partitionNow), "create public.eu_p20261121", "create public.eu_p20261122", "default public.eu_default")
		db.Exec(t, `insert into e (region, v, id) select 'eu', x, sortkey.uid60_floor(x::timestamptz) from unnest(array['2026-11-20Z', '2026-11-21Z', '2026-11-23Z']) x;
			create table f (region text, id bigint, foreign key (id, region) references e on delete cascade);
			insert into f values ('eu', sortkey.uid60_floor('2026-11-20Z'))`)
		steps, err := db.try(t, "2026-11-22T00:00:00Z")
		wantError(t, err, migrations.ErrPartition, "public.f references some of them by foreign key f_id_region_fkey")
		partitionWant(t, "steps", partitionActions(steps), "drain public.eu_p20261120", "drain public.eu_p20261123")
		partitionWant(t, "rows", db.places(t, "e"), "eu_default 2026-11-20Z", "eu_p20261121 2026-11-21Z", "eu_p20261123 2026-11-23Z")
		partitionWant(t, "the reference", db.strings(t, "select region from f"), "eu")
	})
}

// A step sees a foreign key that is added while the step waits for its lock. It
// doesn't move referenced rows, since that would cascade.
func TestPartitionsConcurrentForeignKey(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "a", "premake => 1")
		db.managed(t, "b", "premake => 1")
		db.maintain(t, partitionNow)
		for parent, to := range map[string]string{"a": "a", "b": "b_default"} {
			db.Exec(t, fmt.Sprintf(`insert into %[1]s values (sortkey.snowflake_floor('2026-11-01 12:00Z'), 'x');
				create table child_of_%[1]s as select id from %[1]s`, parent))
			tx := db.begin(t, "alter table child_of_"+parent+" add foreign key (id) references "+to+" on delete cascade")
			result := db.behind(t, db.Conn(t), "call sortkey.maintain_partitions('"+parent+"', at => '"+partitionNow+"')")
			must(t, tx.Commit(ctx))
			wantError(t, <-result, nil, "failed: 1")
			if n := len(db.strings(t, "select '' from child_of_"+parent)); n != 1 {
				t.Errorf("foreign key to %s: expected 1 referencing row, got %d", to, n)
			}
		}
	})
}

// Maintenance doesn't create partitions that the retention would remove at once.
func TestPartitionsShortRetention(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create table e (id sortkey.snowflake primary key, v text) partition by range (id);
			select sortkey.manage_partitions('e', '1 hour', premake => 1, retention => '2 hours', retention_action => 'drop')`)
		partitionWant(t, "hours", db.maintain(t, "2026-11-21T05:30:00Z"), "create public.e_p20261121t0500", "create public.e_p20261121t0600", "default public.e_default")
		db.manage(t, "e", "premake => 1, retention => '2 hours', retention_action => 'drop'")
		// The hours of the night are older than the retention.
		partitionWant(t, "steps for the rest of the day", db.maintain(t, "2026-11-21T10:30:00Z"),
			"create public.e_p20261121t0700", "create public.e_p20261122", "drop public.e_p20261121t0500", "drop public.e_p20261121t0600")
		again := db.maintain(t, "2026-11-21T10:30:00Z")
		if len(again) > 1 {
			t.Errorf("expected at most one more step, got %q", again)
		}
	})
}

// Maintenance uses the operators and types of pg_catalog, even if others come first in
// the search_path or match the domain of a key better. Functions that the table uses
// have the search_path of the caller.
func TestPartitionsShadowed(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create function own_path() returns boolean language plpgsql as $$ begin return not starts_with(current_setting('search_path'), 'pg_catalog'); end $$;
			create table e (id sortkey.snowflake primary key, v text check (own_path())) partition by range (id);
			create table child (id sortkey.snowflake references e);
			select sortkey.manage_partitions('e', '1 day', premake => 1)`)
		db.maintain(t, partitionNow)
		db.Exec(t, `insert into e values (sortkey.snowflake_floor('2026-11-21 12:00Z'), 'y'); insert into child select id from e;
			insert into e values (sortkey.snowflake_floor('2026-11-01 12:00Z'), 'x'), (sortkey.snowflake_floor('2026-11-02 12:00Z'), 'referred');
			insert into child select id from e where v = 'referred';
			create function trap() returns boolean language plpgsql as $$ begin raise exception 'trapped'; end $$`)
		for i, o := range []string{
			">= sortkey.snowflake sortkey.snowflake boolean", "< sortkey.snowflake sortkey.snowflake boolean", "= sortkey.snowflake sortkey.snowflake boolean",
			"= text text boolean", "<> text text boolean", "|| text text text", "= integer integer boolean", "> integer integer boolean", "+ integer integer integer",
			"- integer integer integer", "* numeric integer numeric", "* numeric numeric numeric", ">= numeric integer boolean", "<= numeric integer boolean",
			"#> jsonb text[] jsonb", "- jsonb text jsonb",
		} {
			f := strings.Fields(o)
			db.Exec(t, fmt.Sprintf(`create function trap%d(%s, %s) returns %s language plpgsql as $$ begin perform public.trap(); end $$;
				create operator public.%s (leftarg = %[2]s, rightarg = %[3]s, function = trap%[1]d)`, i, f[1], f[2], f[3], f[0]))
		}
		for _, name := range []string{"text", "timestamptz", "jsonb", "oid", "regclass"} {
			db.Exec(t, "create domain public."+name+" as pg_catalog."+name+" check (public.trap())")
		}
		conn := db.Conn(t)
		exec(t, conn, "set search_path = public, pg_catalog")
		for _, bait := range []string{"select 1 + 1", "select 'x'::text", "select pg_catalog.count(*) from e where id < id"} {
			fails(t, conn, "P0001", bait, "trapped")
		}
		exec(t, conn, "call sortkey.maintain_partitions('e', at => '"+partitionNow+"', dry_run => true)")
		_, err := conn.Exec(t.Context(), "call sortkey.maintain_partitions('e', at => '"+partitionNow+"')")
		wantError(t, err, nil, "partition steps failed: 1")
		partitionWant(t, "the moved row", db.places(t, "e"), "e_p20261101 x", "e_default referred", "e_p20261121 y")
		partitionWant(t, "the problem", db.strings(t, "select split_part(problem, ':', 1) from sortkey.partition_log where outcome = 'failed'"),
			"cannot move rows of public.e_default to public.e_p20261102")
	})
}

// Steps use the index of the key to find the rows that they move.
func TestPartitionsIndexed(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		for table, column := range map[string]string{"a": "sortkey.snowflake", "b": "sortkey.sno", "c": "bigint", "d": "uuid", "e": "uuid"} {
			format := map[string]string{"a": "snowflake", "b": "sno", "c": "uid60", "d": "sno", "e": "uuid7"}[table]
			db.Exec(t, fmt.Sprintf(`create table %s (id %s primary key, v text) partition by range (id);
				create table %[1]s_default partition of %[1]s default;
				insert into %[1]s select sortkey.%[3]s_floor('2026-11-01Z'::timestamptz + n * interval '1 hour') from generate_series(1, 1000) n;
				analyze %[1]s_default;
				select sortkey.manage_partitions('%[1]s', '1 day', '%[3]s', premake => 1)`, table, column, format))
			statements := db.strings(t, "select unnest(statements) from sortkey.plan_partitions($1::text::regclass, $2) where action = 'drain' and lower = '2026-11-02Z'",
				table, partitionTime(t, partitionNow))
			var plans int
			for _, statement := range statements {
				if !strings.Contains(statement, " WHERE ") {
					continue
				}
				plans++
				plan := explain(t, db.Conn(t), "costs off", statement)
				if !regexp.MustCompile(`Index Cond: .*id\)?(::\w+)? >= .*id\)?(::\w+)? < `).MatchString(plan) {
					t.Errorf("%s: want an index scan with both bounds, got\n%s", statement, plan)
				}
			}
			if plans != 2 {
				t.Errorf("want a SELECT and a DELETE, got %q", statements)
			}
		}
	})
}

// Without a default partition, a query for the newest rows reads only the newest
// partitions, a long reader doesn't block the creation of partitions ahead, and a row
// outside all partitions is an error.
func TestPartitionsWithoutDefault(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "a", "default_partition => false")
		db.managed(t, "b", "premake => 4")
		partitionWant(t, "steps", db.maintain(t, partitionNow),
			"create public.a_p20261121", "create public.a_p20261122", "create public.a_p20261123", "create public.a_p20261124", "create public.a_p20261125",
			"create public.b_p20261121", "create public.b_p20261122", "create public.b_p20261123", "create public.b_p20261124", "create public.b_p20261125",
			"default public.b_default")
		db.Exec(t, `insert into a select sortkey.snowflake_floor('2026-11-21Z'::timestamptz + n * interval '1 minute'), 'x' from generate_series(1, 2000) n;
			insert into b table a; analyze a; analyze b`)
		for table, merge := range map[string]bool{"a": false, "b": true} {
			plan := explain(t, db.Conn(t), "costs off", "select * from "+table+" order by id desc limit 10")
			if strings.Contains(plan, "Merge Append") != merge || strings.Contains(plan, "  Append") == merge || strings.Contains(plan, "Sort  ") {
				t.Errorf("%s: want a Merge Append: %t, and an Append otherwise, got\n%s", table, merge, plan)
			}
			// Three partitions ahead are empty, and the one before them has the newest rows.
			plan = explain(t, db.Conn(t), "analyze, costs off, timing off, summary off", "select * from "+table+" order by id desc limit 10")
			if unread := strings.Count(plan, "(never executed)"); unread != map[bool]int{false: 1, true: 0}[merge] {
				t.Errorf("%s: want an Append to read from the partitions ahead to the newest rows, got\n%s", table, plan)
			}
		}

		tx := db.begin(t, "select count(*) from a; select count(*) from b")
		steps, err := migrations.MaintainPartitions(ctx, db.pool, complete,
			migrations.PartitionOptions{At: partitionTime(t, "2026-11-22T10:00:00Z"), LockTimeout: 10 * time.Millisecond})
		must(t, err)
		partitionWant(t, "steps", partitionActions(steps), "create public.a_p20261126", "create public.b_p20261126")
		if steps[0].Err != nil || !errors.Is(steps[1].Err, migrations.ErrLocked) {
			t.Errorf("want the reader to block only the table with a default partition, got %v and %v", steps[0].Err, steps[1].Err)
		}
		must(t, tx.Rollback(ctx))

		fails(t, db.Conn(t), "23514", "insert into a values (sortkey.snowflake_floor('2026-12-01Z'), 'late')", "no partition of relation")
		db.Exec(t, "insert into b values (sortkey.snowflake_floor('2026-12-01Z'), 'late')")
	})
}

// A later call of manage_partitions can add or remove the default partition. Rows of
// the default partition are moved; if some can't be, the default partition stays.
func TestPartitionsDefaultChanged(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1, default_partition => false")
		partitionWant(t, "steps without a default partition", db.maintain(t, partitionNow), "create public.e_p20261121", "create public.e_p20261122")
		db.manage(t, "e", "premake => 1")
		partitionWant(t, "steps with a default partition", db.maintain(t, partitionNow), "default public.e_default")
		db.manage(t, "e", "premake => 1, default_partition => false")
		partitionWant(t, "steps that remove it", db.maintain(t, partitionNow), "drop public.e_default")
		partitionWant(t, "no steps", db.maintain(t, partitionNow))

		// The name of the default partition doesn't matter. One row is in the time of a partition; the other one is ahead.
		db.Exec(t, `create schema other; create table other.rest partition of e default;
			insert into e values (sortkey.snowflake_floor('2026-11-01Z'), 'early'), (sortkey.snowflake_floor('2027-01-01Z'), 'ahead')`)
		for range 2 {
			steps, err := db.try(t, partitionNow)
			if len(steps) == 0 || !errors.Is(err, migrations.ErrPartition) || !strings.Contains(err.Error(), "drop default partition other.rest: it has rows; Delete or move") {
				t.Fatalf("want an error because the default partition has rows, got %v, %v", steps, err)
			}
			last := steps[len(steps)-1]
			if last.Action != "drop" || last.Partition != "other.rest" || !last.From.IsZero() || !last.To.IsZero() {
				t.Errorf("want a step that drops the default partition, got %+v", last)
			}
		}
		partitionWant(t, "the rows", db.places(t, "e"), "e_p20261101 early", "rest ahead")
		db.Exec(t, "delete from other.rest")
		partitionWant(t, "the drop", db.maintain(t, partitionNow), "drop other.rest")
		partitionWant(t, "partitions", db.strings(t, "select relid::text from pg_partition_tree('e') where isleaf order by 1"), "e_p20261101", "e_p20261121", "e_p20261122")
	})
}

// Maintenance doesn't drop the default partition if it fails to create a partition,
// whose rows would have no other place.
func TestPartitionsDefaultKept(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		// The setting is off at the time of the plan, or changes after it.
		for table, between := range map[string]func(){
			"planned": func() {},
			"changed": func() {
				db.manage(t, "changed", "premake => 1, default_partition => false")
			},
		} {
			db.managed(t, table, "premake => 1, default_partition => "+fmt.Sprint(table == "changed"))
			db.Exec(t, "create table "+table+"_rest partition of "+table+" default; create table "+table+"_p20261121 ()")
			steps, _ := db.run(t, table, partitionNow, func(step int) {
				if step == 1 {
					between()
				}
			})
			partitionWant(t, "steps", steps, "failed create public."+table+"_p20261121", "done create public."+table+"_p20261122")
			db.Exec(t, "insert into "+table+" values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x'); drop table "+table+"_p20261121")
			steps, _ = db.run(t, table, partitionNow, func(int) {})
			partitionWant(t, "the remaining steps", steps, "done drain public."+table+"_p20261121", "done drop public."+table+"_rest")
			partitionWant(t, "the row", db.places(t, table), table+"_p20261121 x")
		}

		// The same if maintenance fails to move rows to a partition.
		db.managed(t, "e", "premake => 1, default_partition => false")
		db.Exec(t, `create table e_default partition of e default;
			insert into e values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x');
			create table child (id bigint references e); insert into child select id from e`)
		steps, _ := db.run(t, "e", partitionNow, func(int) {})
		partitionWant(t, "steps", steps, "done create public.e_p20261122", "failed drain public.e_p20261121")
	})
}

// If another session drops or creates the default partition while a step waits for the
// table, the step sees the change and locks the new default partition.
func TestPartitionsConcurrentDefault(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		step := func(conn *pgx.Conn) (string, error) {
			var took string
			err := conn.QueryRow(ctx, "select coalesce(string_agg(concat_ws(' ', outcome, action, partition, problem), ', '), '') from sortkey.next_partition_step('e', $1)",
				partitionTime(t, partitionNow)).Scan(&took)
			return took, err
		}
		db.Exec(t, "create table e (id sortkey.snowflake primary key, v text) partition by range (id)")
		for _, c := range []struct{ keep, took, locks string }{
			{"false", "done create public.e_p20261121", ""}, // the initial partitions
			{"false", "done create public.e_p20261122", ""},
			{"true", "done default public.e_default", "e_default"},
			{"false", "done drop public.e_default", ""},
		} {
			db.manage(t, "e", "premake => 1, default_partition => "+c.keep)
			first, second := db.Conn(t), db.Conn(t)
			tx, err := first.Begin(ctx)
			must(t, err)
			took, err := step(first)
			must(t, err)
			partitionWant(t, "the step", []string{took}, c.took)
			if strings.Contains(took, "create") {
				must(t, tx.Commit(ctx))
				continue
			}
			exec(t, second, "begin")
			result := make(chan error, 1)
			go func() {
				took, err := step(second)
				if err == nil && took != "" {
					err = fmt.Errorf("took %s", took)
				}
				result <- err
			}()
			pgtest.AwaitLock(t, db.Conn(t), second.PgConn().PID(), result)
			must(t, tx.Commit(ctx))
			if err := <-result; err != nil {
				t.Errorf("after %s: want no steps, got %v", c.took, err)
			}
			partitionWant(t, "the default partition, locked", db.strings(t, `select distinct c.relname from pg_locks l join pg_class c on c.oid = l.relation
				where l.pid = $1 and l.mode = 'ShareUpdateExclusiveLock' and c.relname = 'e_default'`, second.PgConn().PID()), strings.Fields(c.locks)...)
			exec(t, second, "commit")
		}
	})
}

// run takes the steps of a table until no step is left, and calls between after each
// step. It returns the steps and the number of plans.
func (db partitionDB) run(t testing.TB, table, at string, between func(step int)) (steps []string, plans int) {
	t.Helper()
	ctx := t.Context()
	conn := db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["track_functions"] = "pl" }))
	count := func() (calls int) {
		t.Helper()
		exec(t, conn, "select pg_stat_force_next_flush()")
		must(t, conn.QueryRow(ctx, "select coalesce(sum(calls), 0) from pg_stat_user_functions where schemaname = 'sortkey_internal' and funcname = 'partition_steps'").Scan(&calls))
		return calls
	}
	before := count()
	for run := new(string); run != nil; {
		var action, partition, outcome string
		err := conn.QueryRow(ctx, `select run::text, action, partition, outcome
			from sortkey.next_partition_step($1::text::regclass, $2, run => nullif($3, '')::jsonb)`, table, partitionTime(t, at), *run).Scan(&run, &action, &partition, &outcome)
		if errors.Is(err, pgx.ErrNoRows) {
			return steps, count() - before
		}
		must(t, err)
		steps = append(steps, outcome+" "+action+" "+partition)
		between(len(steps))
	}
	t.Fatal("next_partition_step returned no run")
	return nil, 0
}

// A call plans a table once. It makes a new plan only if another session changes the
// table's partitions or settings.
func TestPartitionsPlannedOnce(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 20, retention => '10 days'")
		nothing := func(int) {}
		if steps, plans := db.run(t, "e", partitionNow, nothing); len(steps) != 22 || plans != 1 {
			t.Errorf("got %d plans for %q, want 1 for 22 steps", plans, steps)
		}
		if steps, plans := db.run(t, "e", partitionNow, nothing); len(steps) != 0 || plans != 1 {
			t.Errorf("got %d plans for %q, want 1 for no step", plans, steps)
		}
		steps, plans := db.run(t, "e", "2026-12-03T10:30:00Z", func(step int) {
			switch step {
			case 1: // another session creates the next partition
				db.Exec(t, `create table mine partition of e for values from (sortkey.snowflake_floor('2026-12-13Z')) to (sortkey.snowflake_floor('2026-12-14Z'))`)
			case 2:
				db.Exec(t, "alter table mine rename to ours")
			case 3:
				db.manage(t, "e", "premake => 12, retention => '100 days'")
			}
		})
		partitionWant(t, "steps after changes by other sessions", steps, "done create public.e_p20261212", "done create public.e_p20261214",
			"done create public.e_p20261215")
		if plans != 4 {
			t.Errorf("got %d plans, want 4", plans)
		}
	})
}

// A step that doesn't get a lock releases its own locks, pauses and retries. So other
// sessions wait for one lock_timeout at a time.
func TestPartitionsLockRetried(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "e", "premake => 1, retention => '1 day'")
		db.maintain(t, partitionNow)
		db.maintain(t, "2026-11-22T10:30:00Z")
		// The trigger reports the lock_timeout at the start of a step's statement.
		db.Exec(t, `create function note() returns event_trigger language plpgsql as $$ begin raise notice 'lock_timeout %', current_setting('lock_timeout'); end $$;
			create event trigger note on ddl_command_start when tag in ('ALTER TABLE') execute function note();
			select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '10 hours')`)
		reader := db.begin(t, "select from e")
		conn, notices := db.listen(t)
		result := db.behind(t, conn, "call sortkey.maintain_partitions(at => '2026-11-22 10:30Z', lock_timeout => '1 s')")
		pid := conn.PgConn().PID()
		waitUntil(t, db.DB, "exists (select from pg_locks where pid = $1 and not granted and mode = 'AccessExclusiveLock' and relation = 'e'::regclass)", pid)
		waitUntil(t, db.DB, `exists (select from pg_stat_activity a where pid = $1 and wait_event = 'PgSleep'
			and not exists (select from pg_locks l where l.pid = a.pid and l.relation in (select relid from pg_partition_tree('e'))))`, pid)
		must(t, reader.Commit(ctx))
		must(t, <-result)
		partitionWant(t, "one step in several attempts", db.strings(t, `select concat_ws(' ', action, partition, outcome, attempts between 2 and 6)
			from sortkey.partition_log where action = 'detach'`), "detach public.e_p20261121 done t")
		partitionWant(t, "the given lock_timeout for one statement", notices.take("NOTICE "), "lock_timeout 1s", "detach public.e_p20261121")
		db.Exec(t, "drop event trigger note")

		// The pause doubles with each attempt, and is random and bounded.
		partitionWant(t, "pauses", db.strings(t, `select every(pause between low / 2 and low)::text || every(pause <> other)::text from generate_series(1, 100),
			lateral (values (1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.6), (20, 5.0)) v (attempt, low),
			lateral (select sortkey_internal.partition_pause(attempt, '100 ms'), sortkey_internal.partition_pause(attempt, '100 ms')) p (pause, other)`), "truetrue")
	})
}

// Each statement of a step is a single command, as Citus requires. It works in the
// extended protocol. Executing all statements by hand completes the maintenance.
func TestPartitionsSingleCommands(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		ctx, role := t.Context(), db.role(t, "owner")
		db.Exec(t, `grant create on schema public to `+role+`; grant usage on schema sortkey, sortkey_internal to `+role+`;
			create function note() returns trigger language plpgsql as $$ begin return new; end $$;
			create table e (id sortkey.uid60 primary key, v text default ';', n bigint references e deferrable) partition by range (id);
			create trigger i after insert on e for each row execute function note();
			create trigger d after delete on e for each row execute function note();
			alter table e owner to `+role+`;
			create table "a;b" partition of e for values from (sortkey.uid60_floor('2026-09-01Z')) to (sortkey.uid60_floor('2026-09-02Z'));
			alter table "a;b" owner to `+role+`;
			grant insert, update on sortkey.partitioned_table to `+role)
		// The partitions that a member creates belong to the owner.
		member := db.role(t, "member")
		db.Exec(t, "grant "+role+" to "+member)
		u, err := url.Parse(db.URL)
		must(t, err)
		u.User = url.UserPassword(member, "secret")
		db = partitionDB{&pgtest.DB{Name: db.Name, URL: u.String(), Version: db.Version}, db.SQL(t, pgtest.Login(member))}
		conn := db.Conn(t)
		exec(t, conn, "select sortkey.manage_partitions('e', '1 day', premake => 1)")
		seen := map[string]bool{}
		apply := func(at string) {
			t.Helper()
			rows, err := conn.Query(ctx, "select action, statements from sortkey.plan_partitions('e', $1)", partitionTime(t, at))
			must(t, err)
			type step struct {
				Action     string
				Statements []string
			}
			steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[step])
			must(t, err)
			for _, s := range steps {
				seen[s.Action] = true
				must(t, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
					for _, statement := range s.Statements {
						if strings.Contains(statement, "SELECT FROM") {
							t.Errorf("want no empty SELECT list, which Citus rejects, got %s", statement)
						}
						if err := conn.PgConn().ExecParams(ctx, statement, nil, nil, nil, nil).Read().Err; err != nil {
							return fmt.Errorf("%s: %w", statement, err)
						}
					}
					return nil
				}))
			}
			partitionWant(t, "no steps", db.maintain(t, at))
		}
		apply(partitionNow)
		db.Exec(t, "insert into e select sortkey.uid60_floor(x::timestamptz) from unnest(array['2026-10-01Z', '2026-11-23 01:00Z']) x; create table f (id bigint references e)")
		apply("2026-11-22T10:30:00Z")
		db.manage(t, "e", "premake => 1, retention => '60 days'")
		apply("2026-11-23T10:30:00Z")
		db.Exec(t, "drop table f; select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '1 hour', retention_action => 'drop', default_partition => false)")
		apply("2026-11-24T10:30:00Z")
		for _, action := range []string{"create", "drain", "default", "detach", "drop"} {
			if !seen[action] {
				t.Errorf("want a step of each kind, got no %s", action)
			}
		}
	})
}

// The log has each step and the end of each run, for both ways to maintain partitions.
// It keeps 90 days. Roles without privileges on the log don't write to it.
func TestPartitionsLog(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		db.managed(t, "e", "premake => 1")
		db.Exec(t, `create table e_p20261122 ();
			insert into sortkey.partition_log (begun_at, ended_at, parent_table, action, attempts, outcome)
				select at, at, 'x', 'maintain', 1, 'done' from unnest(array[now() - interval '91 days', now() - interval '89 days']) at`)
		options := migrations.PartitionOptions{At: partitionTime(t, partitionNow)}
		if _, err := migrations.MaintainPartitions(ctx, db.pool, complete, options); !errors.Is(err, migrations.ErrPartition) {
			t.Errorf("want the step to fail, got %v", err)
		}
		const log = `select concat_ws(' ', parent_table, action, partition, to_char(lower at time zone 'UTC', 'DD'), to_char(upper at time zone 'UTC', 'DD'),
				attempts, outcome, left(problem, 36), role = current_user) from sortkey.partition_log order by ended_at`
		want := []string{"x maintain 1 done t", "public.e create public.e_p20261121 21 22 1 done t",
			"public.e create public.e_p20261122 22 23 1 failed cannot create public.e_p20261122 as  t",
			"public.e default public.e_default 1 done t", "public.e maintain 1 done t"}
		partitionWant(t, "the log", db.strings(t, log), want...)
		db.Exec(t, "drop table e; drop table e_p20261122")
		db.managed(t, "e", "premake => 1")
		db.Exec(t, "create table e_p20261122 (); delete from sortkey.partition_log where parent_table <> 'x'")
		if _, err := db.pool.ExecContext(ctx, "call sortkey.maintain_partitions(at => $1)", options.At); err == nil {
			t.Error("want the step to fail")
		}
		partitionWant(t, "the same log by the procedure", db.strings(t, log), want...)

		// The table's owner needs privileges on the log to write to it, but not to maintain the table.
		role := db.role(t, "owner")
		db.Exec(t, `grant create on schema public to `+role+`; grant usage on schema sortkey, sortkey_internal to `+role+`;
			alter table e owner to `+role+`; alter table e_default owner to `+role+`; drop table e_p20261122`)
		conn := db.Conn(t, pgtest.Login(role))
		exec(t, conn, "call sortkey.maintain_partitions(at => $1)", options.At)
		partitionWant(t, "the same log without privileges", db.strings(t, log), want...)
		db.Exec(t, "grant select, insert, delete on sortkey.partition_log to "+role)
		exec(t, conn, "call sortkey.maintain_partitions(at => $1)", options.At)
		partitionWant(t, "one more row with privileges", db.strings(t, log), append(want, "public.e maintain 1 done f")...)
	})
}

// If the log can't be written, steps are still done. A call waits only briefly for the
// log, to write to it and to delete old rows.
func TestPartitionsLogLocked(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a call that waits longer fails
		defer cancel()
		db.managed(t, "a", "premake => 1")
		db.managed(t, "b", "premake => 1")
		db.Exec(t, `insert into sortkey.partition_log (begun_at, ended_at, parent_table, action, attempts, outcome)
				values (now(), now() - interval '91 days', 'x', 'maintain', 1, 'done')`)
		conn, notices := db.listen(t)
		call := func() error {
			_, err := conn.Exec(ctx, "call sortkey.maintain_partitions(at => $1)", partitionTime(t, partitionNow))
			return err
		}
		tx := db.begin(t, "lock table sortkey.partition_log in share mode")
		must(t, call())
		must(t, tx.Rollback(ctx))
		partitionWant(t, "partitions", db.strings(t, "select relname from pg_class where relispartition and relkind = 'r' order by 1"),
			"a_default", "a_p20261121", "a_p20261122", "b_default", "b_p20261121", "b_p20261122")
		partitionWant(t, "a warning about the old row and each new one", notices.take("WARNING "),
			append([]string{"cannot delete old rows of partition_log and partitioned_table: canceling statement due to lock timeout"},
				slices.Repeat([]string{"cannot write to partition_log: canceling statement due to lock timeout"}, 8)...)...)
		partitionWant(t, "the log", db.strings(t, "select parent_table from sortkey.partition_log"), "x")
		must(t, call())
		partitionWant(t, "the log", db.strings(t, "select parent_table || ' ' || action from sortkey.partition_log order by 1"), "public.a maintain", "public.b maintain")

		// If a write to the log fails, steps are still done.
		notices.take("")
		db.Exec(t, "alter table sortkey.partition_log add check (parent_table <> 'public.a') not valid; drop table a_p20261122")
		must(t, call())
		partitionWant(t, "partitions", db.strings(t, "select relname from pg_class where relname = 'a_p20261122'"), "a_p20261122")
		const violated = `cannot write to partition_log: new row for relation "partition_log" violates check constraint "partition_log_parent_table_check"`
		partitionWant(t, "a warning about each row", notices.take("WARNING "), violated, violated)
	})
}

// A canceled call returns its completed steps, and rolls back the current one.
func TestPartitionsCancelled(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "a", "premake => 1")
		db.managed(t, "b", "premake => 1")
		db.Exec(t, "create table b_default partition of b default")
		tx := db.begin(t, "select from b")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var steps []migrations.PartitionStep
		result := make(chan error, 1)
		go func() {
			var err error
			steps, err = migrations.MaintainPartitions(ctx, db.pool, complete,
				migrations.PartitionOptions{At: partitionTime(t, partitionNow), LockTimeout: time.Minute})
			result <- err
		}()
		waitUntil(t, db.DB, "exists (select from pg_locks where not granted and relation = 'b'::regclass)")
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "maintain partitions of public.b") {
			t.Errorf("want context.Canceled and the name of the table, got %v", err)
		}
		partitionWant(t, "steps of the other table", partitionActions(steps), "create public.a_p20261121", "create public.a_p20261122", "default public.a_default")
		must(t, tx.Rollback(t.Context()))
		partitionWant(t, "the remaining steps", db.maintain(t, partitionNow), "create public.b_p20261121", "create public.b_p20261122")
	})
}
