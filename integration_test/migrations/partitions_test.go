package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// partitionNow is the current time of the tests, a Saturday.
const partitionNow = "2026-11-21 10:30Z"

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

// partitionAt parses a time such as partitionNow or 2026-11-22Z.
func partitionAt(t testing.TB, s string) time.Time {
	t.Helper()
	s = strings.TrimSuffix(s, "Z")
	at, err := time.Parse(time.DateTime[:len(s)], s)
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

// call maintains all tables, to prepare a test.
func (db partitionDB) call(t testing.TB, at string) {
	t.Helper()
	db.Exec(t, "call sortkey.maintain_partitions(at => '"+at+"')")
}

// maintain fails the test unless the steps that are due at a time are want, and succeed.
func (db partitionDB) maintain(t testing.TB, at string, want ...string) {
	t.Helper()
	must(t, db.try(t, at, want...))
}

// try is maintain for steps that can fail.
func (db partitionDB) try(t testing.TB, at string, want ...string) error {
	t.Helper()
	return db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, at)}, want...)
}

// tryWith fails the test unless the steps are want.
func (db partitionDB) tryWith(t testing.TB, o migrations.PartitionOptions, want ...string) error {
	t.Helper()
	var seen []migrations.PartitionStep
	progress := o.Progress
	o.Progress = func(s migrations.PartitionStep) {
		if seen = append(seen, s); progress != nil {
			progress(s)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // in case it waits without a lock timeout
	defer cancel()
	steps, err := migrations.MaintainPartitions(ctx, db.pool, complete, o)
	if !slices.Equal(seen, steps) {
		t.Errorf("expected Progress to get the steps %v, got %v", steps, seen)
	}
	wantLines(t, "steps at "+o.At.Format(time.DateTime), partitionSteps(steps), want...)
	return err
}

// partitionSteps lists steps as "action partition", without schema public, after "locked" or
// "failed" if the step has such an error.
func partitionSteps(steps []migrations.PartitionStep) (list []string) {
	for _, s := range steps {
		text := s.Action + " " + strings.TrimPrefix(s.Partition, "public.")
		switch {
		case errors.Is(s.Err, migrations.ErrLocked):
			text = "locked " + text
		case errors.Is(s.Err, migrations.ErrPartition):
			text = "failed " + text
		case s.Err != nil:
			text = s.Err.Error()
		}
		list = append(list, text)
	}
	return list
}

// begin begins a transaction and executes statements in it.
func (db partitionDB) begin(t testing.TB, statements string) pgx.Tx {
	t.Helper()
	tx, err := db.Conn(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), statements)
	must(t, err)
	return tx
}

// behind calls f, whose session has to wait for a lock. It returns when the session waits.
func (db partitionDB) behind(t testing.TB, pid uint32, f func() error) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	pgtest.AwaitLock(t, db.Conn(t), pid, result)
	return result
}

// listen opens a session. take returns its notices since the last call that have a prefix,
// as "WARNING text", without the prefix.
func (db partitionDB) listen(t testing.TB, options ...pgtest.Option) (conn *pgx.Conn, take func(prefix string) []string) {
	t.Helper()
	var heard []string
	conn = db.Conn(t, append(options, pgtest.Config(func(c *pgx.ConnConfig) {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { heard = append(heard, n.Severity+" "+n.Message) }
	}))...)
	return conn, func(prefix string) (found []string) {
		for _, s := range heard {
			if s, ok := strings.CutPrefix(s, prefix); ok {
				found = append(found, s)
			}
		}
		heard = nil
		return found
	}
}

// strings returns the first column of a query.
func (db partitionDB) strings(t testing.TB, query string, args ...any) []string {
	t.Helper()
	return columnOf(t, db.pool, query, args...)
}

// want fails the test unless a query, which has one column, returns the values.
func (db partitionDB) want(t testing.TB, query string, want ...string) {
	t.Helper()
	wantRows(t, db.pool, query, want...)
}

// rows fails the test unless these are the rows of a table, as "partition v".
func (db partitionDB) rows(t testing.TB, table string, want ...string) {
	t.Helper()
	db.want(t, "select c.relname || ' ' || x.v from "+table+" x join pg_class c on c.oid = x.tableoid order by x.id", want...)
}

// leaves fails the test unless these are the partitions of a table.
func (db partitionDB) leaves(t testing.TB, table string, want ...string) {
	t.Helper()
	db.want(t, "select c.relname from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = '"+table+"'::regclass order by 1", want...)
}

// Maintenance creates partitions ahead for all formats and intervals. Each partition
// takes the first and the last ID of its time.
func TestPartitionsAhead(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, "create domain over_uid60 as sortkey.uid60; create domain over_uuid as uuid")
		for i, c := range []struct {
			every, column, format string
			begin                 string // the beginnings of three partitions, and of the next one, as in their names
		}{
			{"1 month", "sortkey.snowflake", "NULL", "20261101 20261201 20270101 20270201"},
			{"3 months", "bigint", "'snowflake'", "20261001 20270101 20270401 20270701"},
			{"1 year", "sortkey.snowflake_si", "NULL", "20260101 20270101 20280101 20290101"},
			{"7 days", "bigint", "'snowflake_si'", "20261116 20261123 20261130 20261207"},
			{"1 day", "sortkey.uid60", "NULL", "20261121 20261122 20261123 20261124"},
			{"24 hours", "bigint", "'uid60'", "20261121 20261122 20261123 20261124"},
			{"36 hours", "sortkey.sno", "NULL", "20261121 20261122t1200 20261124 20261125t1200"},
			{"6 hours", "uuid", "'sno'", "20261121t0600 20261121t1200 20261121t1800 20261122t0000"},
			{"20 minutes", "over_uid60", "NULL", "20261121t1020 20261121t1040 20261121t1100 20261121t1120"},
			{"15 minutes", "over_uuid", "'sno'", "20261121t1030 20261121t1045 20261121t1100 20261121t1115"},
		} {
			table, begin := fmt.Sprint("w", i), strings.Fields(c.begin)
			db.Exec(t, fmt.Sprintf(`create table %s (id %s primary key, v text) partition by range (id);
				select sortkey.manage_partitions('%[1]s', '%[3]s', %[4]s, premake => 2)`, table, c.column, c.every, c.format))
			places := []string{table + "_default", table + "_p" + begin[0], table + "_p" + begin[1], table + "_p" + begin[2], table + "_default"}
			must(t, db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, partitionNow), Parent: table},
				"create "+places[1], "create "+places[2], "create "+places[3], "default "+places[4]))
			format := db.strings(t, "select format from sortkey.partitioned_table where parent = $1::text::regclass", table)[0]
			var rows []string
			for j, name := range begin {
				at, err := time.Parse("20060102t1504"[:len(name)], name)
				must(t, err)
				// The last 4 ms are a unit of Sno.
				db.Exec(t, fmt.Sprintf("insert into %s select sortkey.%s_floor(timestamptz '%s' + x), x from unnest('{-4 ms, 0}'::interval[]) x", table, format, at.Format(time.RFC3339)))
				rows = append(rows, places[j]+" -00:00:00.004", places[j+1]+" 00:00:00")
			}
			db.rows(t, table, rows...)
			db.Exec(t, "truncate "+table)
		}
		db.maintain(t, partitionNow)
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
		db.maintain(t, partitionNow, "create dropped_p20261121", "create dropped_p20261122", "default dropped_default",
			"create kept_p20261121t1200", "create kept_p20261122", "default kept_default", `detach elsewhere."Year"`)
		db.Exec(t, "insert into kept values (sortkey.snowflake_floor('2026-11-21 13:00Z'), 'x'); insert into dropped table kept")
		// A second less than two days after the end of the 21st.
		db.maintain(t, "2026-11-23 23:59:59Z", "create dropped_p20261123", "create dropped_p20261124", "create kept_p20261123", "create kept_p20261124", "detach elsewhere.half")
		db.maintain(t, "2026-11-24Z", "create dropped_p20261125", "drop dropped_p20261121", "create kept_p20261125", "detach kept_p20261121t1200")
		db.rows(t, "kept_p20261121t1200", "kept_p20261121t1200 x")
		db.rows(t, "kept")
		db.rows(t, "dropped")
		db.leaves(t, "kept", "ancient", "kept_default", "kept_p20261122", "kept_p20261123", "kept_p20261124", "kept_p20261125")

		// A row that is older than the retention when it arrives stays in the default
		// partition. It can be from before the table had such keys.
		db.Exec(t, "insert into dropped values (1, 'serial'), (sortkey.snowflake_floor('2026-11-20 13:00Z'), 'late')")
		db.maintain(t, "2026-11-24Z")
		db.rows(t, "dropped", "dropped_default serial", "dropped_default late")
		// A step fails if another table has the partition's name. The other steps are done.
		db.Exec(t, "create table kept_p20261127 (); insert into kept values (sortkey.snowflake_floor('2026-11-24 14:00Z'), 'early')")
		err := db.tryWith(t, migrations.PartitionOptions{Parent: "kept", At: partitionAt(t, "2026-11-26Z")},
			"create kept_p20261126", "failed create kept_p20261127", "detach kept_p20261122", "detach kept_p20261123")
		wantError(t, err, migrations.ErrPartition, "cannot create public.kept_p20261127 as a partition of")

		// Maintenance doesn't create partitions that the retention would remove at once. At
		// first, an hour has a partition.
		db.Exec(t, `drop table kept, dropped; create table e (id sortkey.snowflake primary key) partition by range (id);
			select sortkey.manage_partitions('e', '1 hour', premake => 1, retention => '2 hours', retention_action => 'drop')`)
		db.maintain(t, "2026-11-21 05:30Z", "create e_p20261121t0500", "create e_p20261121t0600", "default e_default")
		db.manage(t, "e", "premake => 1, retention => '2 hours', retention_action => 'drop'")
		// The hours of the night are older than the retention.
		db.maintain(t, partitionNow, "create e_p20261121t0700", "create e_p20261122", "drop e_p20261121t0500", "drop e_p20261121t0600")
		db.maintain(t, partitionNow)
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
		db.call(t, partitionNow)
		db.Exec(t, `create trigger s after delete on e_default for each statement execute function note();
			insert into e (id, v, r) select sortkey.uid60_floor(x::timestamptz), x, 1 from unnest(array[
				'2026-10-01 00:00:00Z', '2026-10-01 23:59:59.999Z', '2026-11-23 05:00Z', '2026-11-30Z', '2100-01-01Z']) x;
			truncate log`)
		const rows = "select format('%s %s %s %s %s', n, id, v, g, r) from e order by 1"
		before := db.strings(t, rows)
		db.maintain(t, "2026-11-22Z", "drain e_p20261001", "drain e_p20261123")
		db.rows(t, "e", "e_p20261001 2026-10-01 00:00:00Z", "e_p20261001 2026-10-01 23:59:59.999Z", "e_p20261123 2026-11-23 05:00Z",
			"e_default 2026-11-30Z", "e_default 2100-01-01Z")
		db.want(t, rows, before...)
		db.want(t, "select what from log")
		db.want(t, `select tgrelid::regclass || ' ' || string_agg(tgname || tgenabled::text, ' ' order by tgname) from pg_trigger
			where tgrelid in ('e_default'::regclass, 'e_p20261123'::regclass) and not tgisinternal group by tgrelid order by 1`, "e_default aO bA cD sO", "e_p20261123 aO bA cD")
		db.want(t, "select count(*)::text from pg_index where indrelid = 'e_p20261123'::regclass and indisvalid", "2")

		// Referenced rows aren't moved, since their deletion could cascade.
		const reference = "select (id = sortkey.uid60_floor('2026-11-24Z'))::text from f"
		db.Exec(t, `insert into e (id, v) values (sortkey.uid60_floor('2026-11-24Z'), 'referred');
			create table f (id bigint references e on delete cascade);
			create table later (id bigint references e deferrable initially deferred);
			insert into f values (sortkey.uid60_floor('2026-11-24Z'));`)
		wantError(t, db.try(t, "2026-11-24Z", "create e_p20261125", "failed drain e_p20261124"),
			migrations.ErrPartition, "public.f references some of them by foreign key f_id_fkey; Drop that foreign key")
		db.want(t, reference, "true")
		db.Exec(t, "truncate f")
		db.maintain(t, "2026-11-24Z", "drain e_p20261124")
		db.want(t, "select count(*)::text from e", "6")

		// Partitions with referenced rows aren't dropped; the others are.
		db.Exec(t, `insert into f values (sortkey.uid60_floor('2026-10-01Z'));
			select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '1 day', retention_action => 'drop')`)
		wantError(t, db.try(t, "2026-11-24Z", "failed drop e_p20261001", "drop e_p20261121", "drop e_p20261122"),
			migrations.ErrPartition, "is still referenced from table")
		db.leaves(t, "e", "e_default", "e_p20261001", "e_p20261123", "e_p20261124", "e_p20261125")
		db.want(t, "select count(*)::text from f", "1")
	})
}

// No rows are lost and no insert fails while programs insert rows, with IDs generated
// in programs and on the server, and two maintainers create partitions and move rows.
func TestPartitionsUnderInserts(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		const tables, writers = 3, 4
		for i := range tables {
			db.Exec(t, fmt.Sprintf(`create table e%d (id sortkey.snowflake default sortkey.next_snowflake(33) primary key, v text) partition by range (id);
				create table e%[1]d_default partition of e%[1]d default;
				select sortkey.manage_partitions('e%[1]d', '1 minute', premake => 2)`, i))
		}
		conns, generators := genConns(t, db.DB, writers), make([]*idtype.SnowflakeGenerator, writers)
		for w := range generators {
			g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: 2, Worker: w})
			must(t, err)
			generators[w] = g
		}
		inserted := make([][]string, writers) // "table id"
		// A transaction inserts a row in each table, and reads before it inserts.
		inserts := genStart(writers, func(w, n int) (string, error) {
			return "inserted", pgx.BeginFunc(t.Context(), conns[w], func(tx pgx.Tx) error {
				keys := make([]string, tables)
				for i := range keys {
					id := "default"
					if n%2 == 1 {
						next, err := generators[w].Next()
						if err != nil {
							return err
						}
						id = fmt.Sprint(int64(next))
					}
					var count int
					table := fmt.Sprint("e", (n+i)%tables)
					if err := errors.Join(tx.QueryRow(t.Context(), "select count(*) from "+table+" where v = 'none'").Scan(&count),
						tx.QueryRow(t.Context(), fmt.Sprintf("insert into %s values (%s) returning '%[1]s ' || id", table, id)).Scan(&keys[i])); err != nil {
						return err
					}
				}
				inserted[w] = append(inserted[w], keys...)
				return nil
			})
		})
		inserts.await(t, "programs insert rows", func() bool { return inserts.count("inserted") > 10*writers })
		now := time.Now()
		var drains atomic.Int64
		genEach(t, 2, func(int) error {
			// If no attempt gets its locks, a later call takes the step.
			for minute := 0; minute < 4 || drains.Load() == 0 && minute < 60; minute++ {
				steps, err := migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{At: now.Add(time.Duration(minute) * time.Minute)})
				if err != nil {
					return err
				}
				for _, s := range steps {
					if s.Action == "drain" && s.Err == nil {
						drains.Add(1)
					}
				}
			}
			return nil
		})
		must(t, inserts.end())
		db.call(t, "now") // the skipped steps

		var got []string
		for i := range tables {
			got = append(got, db.strings(t, fmt.Sprintf("select 'e%d ' || id from e%[1]d", i))...)
			db.want(t, fmt.Sprintf("select id::text from e%d_default", i))
		}
		want := slices.Concat(inserted...)
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

// If a step and another statement need the same table, one waits for the transaction of the
// other, and sees its changes then.
func TestPartitionsConcurrently(t *testing.T) {
	const (
		step     = "select sortkey.next_partition_step('e', '" + partitionNow + "')"
		maintain = "call sortkey.maintain_partitions(at => '" + partitionNow + "')"
		function = "MaintainPartitions" // instead of a statement
		insert   = "insert into e values (sortkey.snowflake_floor('2026-11-21 12:00Z'), 'second')"
		referred = "insert into e values (sortkey.snowflake_floor('2026-11-01 12:00Z'), 'x'); insert into child select id from e"
		other    = "create table a (id sortkey.snowflake) partition by range (id); select sortkey.manage_partitions('a', '1 day')" // maintained first, without a wait
	)
	for name, c := range map[string]struct {
		arguments, maintained, sql string // of table e, before
		first, second              string // the second session waits for the transaction of the first one
		isolation                  string // the default of the second session
		err                        string // of the second session
		steps, rows                []string
		locked                     string // by the second session
	}{
		"an insert during a drain": {
			sql:   "create table e_default partition of e default; insert into e values (sortkey.snowflake_floor('2026-11-21Z'), 'first')",
			first: step + ";" + step, second: insert,
			steps: []string{"done create e_p20261122", "done drain e_p20261121"}, rows: []string{"e_p20261121 first", "e_p20261121 second"},
		},
		"an insert during the creation of its partition": {
			sql: "create table e_default partition of e default", first: step + ";" + step, second: insert,
			steps: []string{"done create e_p20261121", "done create e_p20261122"}, rows: []string{"e_p20261121 second"},
		},
		"the procedure during a step": {
			maintained: "2026-11-20Z", sql: other, first: step, second: maintain, isolation: "repeatable read", steps: []string{"done create e_p20261122"},
		},
		"the function during a step": {
			maintained: "2026-11-20Z", sql: other, first: step, second: function, isolation: "repeatable read", steps: []string{"done create e_p20261122"},
		},
		// When the time of a partition begins, or from a clock that is ahead, a row can arrive in the default partition
		// between the plan and the creation of its partition. The attempt that waited doesn't count for the steps of a new plan.
		"an insert ahead during the function": {
			arguments: "premake => 2", maintained: "2026-11-19Z", first: "insert into e values (sortkey.snowflake_floor('2026-11-22Z'), 'late')", second: function,
			steps: []string{"done create e_p20261123 1", "done drain e_p20261122 1"}, rows: []string{"e_p20261122 late"},
		},
		// A step doesn't move referenced rows, since that would cascade.
		"a foreign key to the table": {
			maintained: partitionNow, sql: referred, first: "alter table child add foreign key (id) references e on delete cascade", second: maintain,
			err: "failed: 1", steps: []string{"failed drain e_p20261101"}, rows: []string{"e_default x"},
		},
		"a foreign key to the default partition": {
			maintained: partitionNow, sql: referred, first: "alter table child add foreign key (id) references e_default on delete cascade", second: maintain,
			err: "failed: 1", steps: []string{"failed drain e_p20261101"}, rows: []string{"e_default x"},
		},
		"a step after the creation of the default partition": {
			arguments: "premake => 1, default_partition => false", maintained: partitionNow, sql: "select sortkey.manage_partitions('e', '1 day', premake => 1)",
			first: step, second: "begin; " + step, steps: []string{"done default e_default"}, locked: "e_default",
		},
		"a step after the drop of the default partition": {
			maintained: partitionNow, sql: "select sortkey.manage_partitions('e', '1 day', premake => 1, default_partition => false)",
			first: step, second: "begin; " + step, steps: []string{"done drop e_default"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			partitionOne(t, func(t *testing.T, db partitionDB) {
				db.managed(t, "e", cmp.Or(c.arguments, "premake => 1"))
				if c.maintained != "" {
					db.call(t, c.maintained)
				}
				db.Exec(t, "create table child (id bigint); "+c.sql+"; delete from sortkey.partition_log")
				tx := db.begin(t, c.first)
				db.want(t, "show lock_timeout", pgtest.Value[string](t, tx.Conn(), "show lock_timeout"))
				session := pgtest.Config(func(config *pgx.ConnConfig) {
					config.RuntimeParams["default_transaction_isolation"] = cmp.Or(c.isolation, "read committed")
				})
				second, pool := db.Conn(t, session), db.SQL(t, session)
				pool.SetMaxOpenConns(1)
				pid, run := second.PgConn().PID(), func() error {
					_, err := second.Exec(t.Context(), c.second)
					return err
				}
				if c.second == function {
					must(t, pool.QueryRowContext(t.Context(), "select pg_backend_pid()").Scan(&pid))
					run = func() error {
						_, err := migrations.MaintainPartitions(t.Context(), pool, complete,
							migrations.PartitionOptions{At: partitionAt(t, partitionNow), LockTimeout: time.Minute})
						return err
					}
				}
				result := db.behind(t, pid, run)
				waited := db.strings(t, "select clock_timestamp()::text")[0]
				must(t, tx.Commit(t.Context()))
				if err := <-result; c.err != "" {
					wantError(t, err, nil, c.err)
				} else if err != nil {
					t.Error(err)
				}
				db.want(t, "select c.relname from pg_locks l join pg_class c on c.oid = l.relation where l.mode = 'ShareUpdateExclusiveLock' and c.relname = 'e_default'",
					strings.Fields(c.locked)...)
				exec(t, second, "commit")
				db.want(t, `select concat_ws(' ', outcome, action, replace(partition, 'public.', ''), case when begun_at > '`+waited+`' then attempts end)
						from sortkey.partition_log where parent_table = 'public.e' and action <> 'maintain' order by ended_at`, c.steps...)
				db.rows(t, "e", c.rows...)
				db.want(t, "select count(*)::text from child", fmt.Sprint(strings.Count(c.sql, "child")))
			})
		})
	}
}

// A step doesn't move rows whose DELETE a publication leaves out: subscribers would have them twice.
func TestPartitionsInsertOnlyPublication(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1")
		db.Exec(t, `create table e_default partition of e default; insert into e values (sortkey.snowflake_floor('2026-11-21Z'), 'x');
			create publication added for table e with (publish = 'insert', publish_via_partition_root = true)`)
		err := db.try(t, partitionNow, "create e_p20261122", "failed drain e_p20261121")
		wantError(t, err, migrations.ErrPartition, "publication added has their INSERT, and not their DELETE")
		db.Exec(t, "alter publication added set (publish = 'insert, delete')")
		db.maintain(t, partitionNow, "drain e_p20261121")
	})
}

// If an object depends on an expired partition, the step fails, and its error names the object and doesn't advise CASCADE.
func TestPartitionsDependents(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1, retention => '10 days', retention_action => 'drop'")
		db.call(t, "2026-11-10Z")
		db.Exec(t, "create view old as select * from e_p20261110")
		err := db.try(t, partitionNow, "create e_p20261121", "create e_p20261122", "failed drop e_p20261110")
		wantError(t, err, migrations.ErrPartition, "view old depends on table e_p20261110")
		if strings.Contains(err.Error(), "CASCADE") {
			t.Errorf("expected no advice to drop objects with CASCADE, got %v", err)
		}
	})
}

// While maintenance waits for the lock of an expired partition, another one gets its name. It stays.
func TestPartitionsSwappedNames(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1, retention => '10 days', retention_action => 'drop'")
		db.call(t, "2026-11-10Z")
		db.Exec(t, `create table today partition of e for values from (sortkey.snowflake_floor('2026-11-21Z')) to (sortkey.snowflake_floor('2026-11-22Z'));
			insert into e values (sortkey.snowflake_floor('2026-11-21Z'), 'x')`)
		db.pool.SetMaxOpenConns(1)
		var pid uint32
		must(t, db.pool.QueryRowContext(t.Context(), "select pg_backend_pid()").Scan(&pid))
		swapped := make(chan error, 1)
		swap := func(s migrations.PartitionStep) {
			if s.Action != "create" {
				return
			}
			tx, probe := db.begin(t, "alter table e_p20261110 rename to expired; alter table today rename to e_p20261110"), db.Conn(t)
			go func() {
				pgtest.AwaitLock(t, probe, pid, swapped)
				swapped <- tx.Commit(t.Context())
			}()
		}
		must(t, db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, partitionNow), LockTimeout: time.Minute, Progress: swap}, "create e_p20261122", "drop expired"))
		must(t, <-swapped)
		db.rows(t, "e", "e_p20261110 x")
	})
}

// If a step doesn't get its locks in six attempts, maintenance leaves it and the later
// steps of its table. It maintains other tables, and the next call takes the steps.
func TestPartitionsLockTimeout(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "a", "premake => 1, retention => '1 day', retention_action => 'drop'")
		db.managed(t, "b", "premake => 1, retention => '1 day', retention_action => 'drop'")
		db.call(t, partitionNow)
		tx := db.begin(t, "select from a")
		must(t, db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, "2026-11-23 10:00Z"), LockTimeout: 10 * time.Millisecond},
			"locked create a_p20261123", "create b_p20261123", "create b_p20261124", "drop b_p20261121"))
		db.leaves(t, "a", "a_default", "a_p20261121", "a_p20261122")
		db.leaves(t, "b", "b_default", "b_p20261122", "b_p20261123", "b_p20261124")

		// The procedure raises a warning and no error.
		conn, take := db.listen(t)
		exec(t, conn, "call sortkey.maintain_partitions(lock_timeout => '10 ms', at => '2026-11-23 10:00Z')")
		if warnings := take("WARNING skipped "); len(warnings) != 1 {
			t.Errorf("got warnings %q, want 1", warnings)
		}
		db.want(t, "select attempts || ' ' || problem from sortkey.partition_log where outcome = 'skipped'",
			"6 canceling statement due to lock timeout", "6 canceling statement due to lock timeout")
		wantLines(t, "the original lock_timeout", []string{pgtest.Value[string](t, conn, "show lock_timeout")}, "0")

		must(t, tx.Rollback(t.Context()))
		db.maintain(t, "2026-11-23 10:00Z", "create a_p20261123", "create a_p20261124", "drop a_p20261121")

		// A canceled call returns its completed steps, and rolls back the current one.
		tx = db.begin(t, "select from b")
		ctx, cancel := context.WithCancel(t.Context())
		var steps []migrations.PartitionStep
		result := make(chan error, 1)
		go func() {
			var err error
			steps, err = migrations.MaintainPartitions(ctx, db.pool, complete, migrations.PartitionOptions{At: partitionAt(t, "2026-11-24Z"), LockTimeout: time.Minute})
			result <- err
		}()
		waitUntil(t, db.DB, "exists (select from pg_locks where not granted and relation = 'b_default'::regclass)")
		cancel()
		wantError(t, <-result, context.Canceled, "maintain partitions of public.b")
		wantLines(t, "steps of the other table", partitionSteps(steps), "create a_p20261125", "drop a_p20261122")
		must(t, tx.Rollback(t.Context()))
		db.maintain(t, "2026-11-24Z", "create b_p20261125", "drop b_p20261122")
	})
}

// A step that doesn't get a lock releases its own locks, pauses and retries. So other
// sessions wait for one lock_timeout at a time.
func TestPartitionsLockRetried(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1, retention => '1 day'")
		db.call(t, partitionNow)
		db.call(t, "2026-11-22 10:30Z")
		// The trigger reports the lock_timeout at the start of a step's statement.
		db.Exec(t, `create function note() returns event_trigger language plpgsql as $$ begin raise notice 'lock_timeout %', current_setting('lock_timeout'); end $$;
			create event trigger note on ddl_command_start when tag in ('ALTER TABLE') execute function note();
			select sortkey.manage_partitions('e', '1 day', premake => 1, retention => '10 hours')`)
		reader := db.begin(t, "select from e")
		conn, take := db.listen(t)
		pid := conn.PgConn().PID()
		result := db.behind(t, pid, func() error {
			_, err := conn.Exec(t.Context(), "call sortkey.maintain_partitions(at => '2026-11-22 10:30Z', lock_timeout => '1 s')")
			return err
		})
		waitUntil(t, db.DB, "exists (select from pg_locks where pid = $1 and not granted and mode = 'AccessExclusiveLock' and relation = 'e'::regclass)", pid)
		waitUntil(t, db.DB, `exists (select from pg_stat_activity a where pid = $1 and wait_event = 'PgSleep'
			and not exists (select from pg_locks l where l.pid = a.pid and l.relation in (select relid from pg_partition_tree('e'))))`, pid)
		must(t, reader.Commit(t.Context()))
		must(t, <-result)
		db.want(t, "select concat_ws(' ', action, partition, outcome, attempts between 2 and 6) from sortkey.partition_log where action = 'detach'", "detach public.e_p20261121 done t")
		wantLines(t, "the given lock_timeout for one statement", take("NOTICE "), "lock_timeout 1s", "detach public.e_p20261121")
		db.Exec(t, "drop event trigger note")

		// The pause doubles with each attempt, and is random and bounded.
		db.want(t, `select every(pause between low / 2 and low)::text || every(pause <> other)::text from generate_series(1, 100),
			lateral (values (1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.6), (20, 5.0)) v (attempt, low),
			lateral (select sortkey_internal.partition_pause(attempt, '100 ms'), sortkey_internal.partition_pause(attempt, '100 ms')) p (pause, other)`, "truetrue")
	})
}

// A dry run changes nothing. Executing its statements by hand has the same result as a run.
// Each is a single command, as Citus requires, and works in the extended protocol. The
// partitions that a member creates belong to the owner of the table.
func TestPartitionsByHand(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		ctx := t.Context()
		owner, _ := newRole(t, db.DB, "owner")
		member, pool := newRole(t, db.DB, "member")
		db.pool = pool
		db.Exec(t, fmt.Sprintf(`grant %s to %s; grant usage on schema sortkey, sortkey_internal to %[1]s; grant insert, update, delete on sortkey.partition_settings to %[1]s;
			create function note() returns trigger language plpgsql as $$ begin return new; end $$`, owner, member))
		conn, take := db.listen(t, pgtest.Login(member))
		both := func(conn *pgx.Conn, sql string) {
			t.Helper()
			for _, schema := range []string{"by_hand", "by_call"} {
				exec(t, conn, strings.NewReplacer("$s", schema, "$owner", owner).Replace(sql))
			}
		}
		both(db.Conn(t), `create schema $s authorization $owner;
			create table $s.e (id sortkey.uid60 primary key, v text default ';', n bigint references $s.e deferrable) partition by range (id);
			create trigger i after insert on $s.e for each row execute function note();
			create trigger d after delete on $s.e for each row execute function note();
			create table $s."a;b" partition of $s.e for values from (sortkey.uid60_floor('2026-09-01Z')) to (sortkey.uid60_floor('2026-09-02Z'));
			alter table $s.e owner to $owner; alter table $s."a;b" owner to $owner`)
		state := func(schema string) []string {
			t.Helper()
			return db.strings(t, `select concat_ws(' ', c.relname, pg_get_userbyid(c.relowner), pg_get_expr(c.relpartbound, c.oid)) from pg_inherits i join pg_class c on c.oid = i.inhrelid
				where i.inhparent = '`+schema+`.e'::regclass union all select c.relname || ' ' || e.id from `+schema+`.e e join pg_class c on c.oid = e.tableoid order by 1`)
		}
		for _, round := range []struct{ sql, at, actions string }{
			{"select sortkey.manage_partitions('$s.e', '1 day', premake => 1)", partitionNow, "create create default"},
			{`insert into $s.e select sortkey.uid60_floor(x::timestamptz) from unnest(array['2026-10-01Z', '2026-11-23 01:00Z']) x;
				create table $s.f (id bigint references $s.e)`, "2026-11-22 10:30Z", "drain drain"},
			{"select sortkey.manage_partitions('$s.e', '1 day', premake => 1, retention => '60 days')", "2026-11-23 10:30Z", "create detach"},
			{`drop table $s.f; select sortkey.manage_partitions('$s.e', '1 day', premake => 1, retention => '1 hour', retention_action => 'drop', default_partition => false)`,
				"2026-11-24 10:30Z", "create drop drop drop drop drop"},
		} {
			both(conn, round.sql)
			db.Exec(t, "create table gone (id sortkey.uid60) partition by range (id); select sortkey.manage_partitions('gone', '1 day'); drop table gone")
			before, o := state("by_hand"), migrations.PartitionOptions{Parent: "by_hand.e", At: partitionAt(t, round.at), DryRun: true}
			steps, err := migrations.MaintainPartitions(ctx, pool, complete, o)
			must(t, err)
			// A dry run also works in a transaction, even a read-only one.
			exec(t, conn, "begin read only")
			exec(t, conn, "call sortkey.maintain_partitions('by_hand.e', dry_run => true, at => $1)", o.At)
			exec(t, conn, "commit")
			wantLines(t, "the state after dry runs", state("by_hand"), before...)
			db.want(t, "select count(*)::text from sortkey.partition_settings", "3")
			if day := o.At.Truncate(24 * time.Hour); round.at == partitionNow && (!steps[0].From.Equal(day) || !steps[0].To.Equal(day.AddDate(0, 0, 1))) {
				t.Errorf("expected the times of the first step, got %v to %v", steps[0].From, steps[0].To)
			}

			shown := take("NOTICE ")
			rows, _ := conn.Query(ctx, "select statements from sortkey.plan_partitions('by_hand.e', $1)", o.At)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
			must(t, err)
			if len(shown) != len(steps) || len(plan) != len(steps) {
				t.Fatalf("expected the %d steps of the function, got %q and %q", len(steps), shown, plan)
			}
			var actions []string
			for i, s := range steps {
				actions = append(actions, s.Action)
				if want := fmt.Sprintf("%s %s\nBEGIN;\n%s\nCOMMIT;", s.Action, s.Partition, s.SQL); shown[i] != want || strings.Join(plan[i], ";\n")+";" != s.SQL {
					t.Errorf("expected the same SQL, got\n%s\n%s\n%s", want, shown[i], plan[i])
				}
				// A publication includes the inserted rows only if the partition is attached before.
				if insert := strings.Index(s.SQL, "INSERT INTO "); insert >= 0 && insert < strings.Index(s.SQL, " ATTACH ") {
					t.Errorf("expected ATTACH before INSERT, got\n%s", s.SQL)
				}
				must(t, pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
					for _, statement := range plan[i] {
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
			wantLines(t, "actions", actions, strings.Fields(round.actions)...)
			o.Parent, o.DryRun = "by_call.e", false
			called, err := migrations.MaintainPartitions(ctx, pool, complete, o)
			must(t, err)
			for i, s := range called {
				if i >= len(steps) || strings.ReplaceAll(s.SQL, "by_call", "by_hand") != steps[i].SQL {
					t.Errorf("expected the planned SQL, got %s", s.SQL)
				}
			}
			wantLines(t, "the same result by hand", state("by_hand"), state("by_call")...)
			db.maintain(t, round.at)
		}
		db.leaves(t, "by_hand.e", "e_p20261124", "e_p20261125")
		db.want(t, "select distinct pg_get_userbyid(relowner) from pg_class where relname ~ '^e_'", owner)
	})
}

// Steps use the index of the key to find the rows that they move. Queries by time read only
// the partitions of that time.
func TestPartitionsPlans(t *testing.T) {
	bounds := regexp.MustCompile(`Index Cond: .*id\)?(::\w+)? >= .*id\)?(::\w+)? < `)
	scan := regexp.MustCompile(`Scan (?:using \S+ )?on (\w+)(?: \w+)?\n`)
	partitionEach(t, func(t *testing.T, db partitionDB) {
		conn := db.Conn(t, pgtest.Mode(pgx.QueryExecModeSimpleProtocol))
		for _, f := range []struct{ table, column, format string }{
			{"a", "sortkey.snowflake", "snowflake"}, {"b", "sortkey.snowflake_si", "snowflake_si"},
			{"c", "sortkey.uid60", "uid60"}, {"d", "sortkey.sno", "sno"}, {"e", "bigint", "uid60"}, {"f", "uuid", "sno"},
			{"g", "sortkey.uuid7", "uuid7"}, {"h", "uuid", "uuid7"},
		} {
			db.Exec(t, fmt.Sprintf(`create table %s (id %s primary key, v text) partition by range (id);
				create table %[1]s_default partition of %[1]s default;
				insert into %[1]s select sortkey.%[3]s_floor('2026-11-01Z'::timestamptz + n * interval '1 hour') from generate_series(1, 1000) n;
				analyze %[1]s_default;
				select sortkey.manage_partitions('%[1]s', '1 day', '%[3]s', premake => 3)`, f.table, f.column, f.format))
			statements := db.strings(t, "select s from sortkey.plan_partitions($1::text::regclass, $2), unnest(statements) s where action = 'drain' and lower = '2026-11-02Z' and s like '% WHERE %'",
				f.table, partitionAt(t, partitionNow))
			for _, statement := range statements {
				if plan := explain(t, db.Conn(t), "costs off", statement); !bounds.MatchString(plan) {
					t.Errorf("%s: want an index scan with both bounds, got\n%s", statement, plan)
				}
			}
			if len(statements) != 2 {
				t.Errorf("want a SELECT and a DELETE, got %q", statements)
			}

			db.Exec(t, "truncate "+f.table)
			db.call(t, partitionNow)
			check := func(form, query string, removed int) {
				t.Helper()
				plan := explain(t, conn, "costs off", query)
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
			exec(t, conn, "set enable_seqscan = off; prepare "+f.table+"(timestamptz, timestamptz) as "+query("$1", "$2"))
			execute := "execute " + f.table + "('2026-11-22Z', '2026-11-23Z')"
			check("literals", query("'2026-11-22Z'", "'2026-11-23Z'"), 0)
			exec(t, conn, "set plan_cache_mode = force_custom_plan")
			check("custom plan", execute, 0)
			exec(t, conn, "set plan_cache_mode = force_generic_plan")
			check("generic plan", execute, 4)
			// now() plus an offset to the time of the test.
			now := func(of string) string {
				return fmt.Sprintf("now() + (timestamptz '%s' - timestamptz '%s')", of, db.strings(t, "select now()::text")[0])
			}
			check("now()", query(now("2026-11-22 01:00Z"), now("2026-11-22 22:00Z")), 4)
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
			if !strings.Contains(pgerror.Message(err), c.got) || !strings.Contains(pgerror.Hint(err), c.hint) {
				t.Errorf("%s: expected an error with %q and a hint with %q, got %v, %s", c.call, c.got, c.hint, err, pgerror.Hint(err))
			}
		}
		db.want(t, "select name from sortkey.partition_settings")

		conn := db.Conn(t)
		fails(t, conn, "42704", "call sortkey.maintain_partitions('good')", "partitions of public.good are not managed")
		wantError(t, db.tryWith(t, migrations.PartitionOptions{Parent: "good"}), nil, "public.good")
		wantError(t, db.tryWith(t, migrations.PartitionOptions{LockTimeout: -time.Second}), nil, "PartitionOptions.LockTimeout: -1s")

		// The domain of another installation doesn't determine the format.
		up(t, db.DB, migrations.Config{Schema: "other"})
		db.Exec(t, "create table another (id other.uid60) partition by range (id); select other.manage_partitions('another', '1 day')")
		fails(t, conn, "22023", "select sortkey.manage_partitions('another', '1 day')", "format NULL", "public.another.id")

		// A time out of the format's range is an error.
		db.Exec(t, "select sortkey.manage_partitions('good', '1 day')")
		for _, at := range []string{"1999-01-01", "3000-01-01"} {
			fails(t, conn, "55000", "call sortkey.maintain_partitions(at => '"+at+"Z')", "partition steps failed: 1")
			wantError(t, db.try(t, at+"Z", "failed plan "), migrations.ErrPartition, "time "+at+"T00:00:00Z", "public.good")
		}
		// In a transaction block, CALL fails and changes nothing.
		fails(t, conn, "2D000", "begin; call sortkey.maintain_partitions(at => '"+partitionNow+"'); commit")
		db.leaves(t, "good")
	})
}

// Maintenance works with unusual names and settings.
func TestPartitionsNames(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		for _, setting := range []string{"datestyle = 'SQL, DMY'", "timezone = 'America/New_York'", "search_path = ''", "intervalstyle = 'iso_8601'",
			"default_transaction_isolation = 'repeatable read'", "standard_conforming_strings = " + db.OddStrings()} {
			db.Exec(t, "alter database "+db.Name+" set "+setting)
		}
		db.pool = db.SQL(t) // with these settings
		db.want(t, "select (sortkey_internal.partition_window('1 month', '2026-11-01 00:30Z') = tstzrange('2026-11-01Z', '2026-12-01Z'))::text", "true")
		odd, long := `"Odd ""Schema'"."T %_'x\$$"`, strings.Repeat("ä", 31)
		db.Exec(t, `create schema "Odd ""Schema'"; create schema other; create table `+odd+` ("I ""d'" sortkey.sno primary key, v text) partition by range ("I ""d'");
			select sortkey.manage_partitions($n$`+odd+`$n$, '6 hours', premake => 1, retention => '1 day', retention_action => 'drop')`)
		for _, table := range []string{"other." + long + "1", "public." + long + "1", "public." + long + "2"} {
			db.Exec(t, `create table `+table+` (id bigint primary key, v text) partition by range (id);
				select sortkey.manage_partitions('`+table+`', '6 hours', 'uid60', premake => 1)`)
		}
		db.call(t, partitionNow)
		db.maintain(t, partitionNow)
		// A name has at most 63 bytes.
		db.want(t, `select bool_and(octet_length(c.relname) <= 63 and c.relname ~ '^ä+_[0-9a-f]{8}_(p20261121t0600|p20261121t1200|default)$')::text || count(*)
			from pg_inherits join pg_class c on c.oid = inhrelid where c.relname like 'ä%' and c.relkind = 'r'`, "true9")
		at := func(s, parent string) migrations.PartitionOptions {
			return migrations.PartitionOptions{At: partitionAt(t, s), Parent: parent}
		}
		partition := func(suffix string) string { return strings.TrimSuffix(odd, `"`) + "_p" + suffix + `"` }
		db.Exec(t, "insert into "+odd+" values (sortkey.sno_floor('2026-11-20 07:00Z'), 'a'), (sortkey.sno_floor('2026-11-21 07:00Z'), 'b')")
		db.maintain(t, partitionNow, "drain "+partition("20261120t0600"))
		must(t, db.tryWith(t, at("2026-11-21 12:00Z", odd), "create "+partition("20261121t1800"), "drop "+partition("20261120t0600")))

		// Maintenance continues after the table is renamed.
		db.Exec(t, "alter table "+odd+` rename to renamed; alter schema "Odd ""Schema'" rename to odd`)
		must(t, db.tryWith(t, at("2026-11-21 18:00Z", "odd.renamed"), "create odd.renamed_p20261122t0000"))

		// A table that isn't a partition but has a partition's name isn't changed.
		db.Exec(t, "create table odd.renamed_p20261122t0600 (a int); insert into odd.renamed_p20261122t0600 values (1)")
		wantError(t, db.tryWith(t, at("2026-11-22 01:00Z", "odd.renamed"), "failed create odd.renamed_p20261122t0600"), nil,
			"cannot create odd.renamed_p20261122t0600 as a partition of odd.renamed FOR VALUES FROM", "Rename, drop or attach")
		db.want(t, "select a::text from odd.renamed_p20261122t0600", "1")

		// The settings of a dropped table are deleted. A table that is no longer managed isn't changed.
		db.Exec(t, "drop table odd.renamed; select sortkey.unmanage_partitions('other."+long+"1')")
		db.call(t, "2026-11-22 01:00Z")
		db.want(t, "select concat_ws('.', schema, name) from sortkey.partition_settings order by 1", "public."+long+"1", "public."+long+"2")
		db.want(t, "select inhparent::regclass::text || ' ' || count(*) from pg_inherits join pg_class c on c.oid = inhrelid and relkind = 'r' group by inhparent order by 1",
			`other."`+long+`1" 3`, `public."`+long+`1" 5`, `public."`+long+`2" 5`)
	})
}

// Errors of one table don't prevent the maintenance of others; the call returns them at
// the end. The maintaining role only needs to own the tables, or to be a member of their owner.
// With write access to partition_settings, it can also manage them.
func TestPartitionsRoles(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `create schema app; create table app.a (id sortkey.snowflake primary key, v text) partition by range (id);
			create table app.b (like app.a including all) partition by range (id);
			create table app.c (like app.a including all) partition by range (id);
			select sortkey.manage_partitions(t, '1 day', premake => 1) from unnest(array['app.a', 'app.b', 'app.c']::regclass[]) t`)
		owner, _ := newRole(t, db.DB, "owner")
		member, _ := newRole(t, db.DB, "member")
		other, _ := newRole(t, db.DB, "other")
		db.Exec(t, fmt.Sprintf(`grant %[1]s to %[2]s; alter table app.a owner to %[1]s; alter table app.c owner to %[1]s;
			grant usage, create on schema app to %[1]s; grant usage on schema app to %[3]s; grant usage on schema sortkey, sortkey_internal to %[1]s, %[3]s`, owner, member, other))
		conn, take := db.listen(t, pgtest.Login(member))
		warned := func(call, prefix string) {
			t.Helper()
			fails(t, conn, "55000", call, "partition steps failed: 1")
			if warnings := take("WARNING "); len(warnings) != 1 || !strings.HasPrefix(warnings[0], prefix) {
				t.Errorf("expected a warning %q, got %q", prefix, warnings)
			}
		}
		warned("call sortkey.maintain_partitions(at => '"+partitionNow+"')", "failed plan app.b: role "+member+" does not own app.b; ")
		for _, table := range []string{"a", "c"} {
			db.want(t, "select relname || ' ' || pg_get_userbyid(relowner) from pg_class where relname like '"+table+"\\_%' and relkind = 'r' order by 1",
				table+"_default "+owner, table+"_p20261121 "+owner, table+"_p20261122 "+owner)
		}
		// Rows hidden by row-level security cause an error. If they were ignored, they would stay in the default partition.
		db.Exec(t, `insert into app.c values (sortkey.snowflake_floor('2026-10-01Z'), 'hidden');
			alter table app.c_default enable row level security, force row level security`)
		warned("call sortkey.maintain_partitions('app.c', at => '"+partitionNow+"')", "failed plan app.c: query would be affected by row-level security")

		const manage, unmanage = "select sortkey.manage_partitions('app.a', '1 day', retention => '1 day', retention_action => 'drop')", "select sortkey.unmanage_partitions('app.a')"
		fails(t, conn, "42501", manage, "permission denied for table partition_settings")
		db.Exec(t, fmt.Sprintf("grant insert, update, delete on sortkey.partition_settings to %s, %s", owner, other))
		refused := func(sql string) {
			t.Helper()
			fails(t, db.Conn(t, pgtest.Login(other)), "42501", sql, other+" does not own app.a", "the owner is "+owner, "member of "+owner)
		}
		refused(manage)
		exec(t, conn, manage)
		// These roles need USAGE on the schema of the internal functions.
		db.Exec(t, "revoke usage on schema sortkey_internal from "+owner)
		for _, sql := range []string{manage, unmanage, "call sortkey.maintain_partitions('app.a')", "select * from sortkey.plan_partitions('app.a')", "select * from sortkey.next_partition_step('app.a')"} {
			fails(t, db.Conn(t, pgtest.Login(member)), "42501", sql, "permission denied for schema sortkey_internal")
		}
		db.Exec(t, "grant usage on schema sortkey_internal to "+owner)
		refused(unmanage)
		exec(t, conn, unmanage)
		as := db.Conn(t, pgtest.Login(owner))
		exec(t, as, manage)
		exec(t, as, unmanage)
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
		db.maintain(t, "2020-02-01Z", "create e_p20200101", "create e_p20210301t000000001", "create e_p20220101", "default e_default")
		// Rows in the partial milliseconds between partitions stay in the default partition.
		db.Exec(t, `insert into e values (sortkey.snowflake_si_floor('2020-06-01Z') + 4, 'before'), (sortkey.snowflake_si_floor('2020-06-01Z') + 5, 'in'),
			(sortkey.snowflake_si_floor('2021-03-01Z') + 5, 'after'), (0, 'zero'), (-1, 'none'), (9223372036854775807, 'too large'),
			(sortkey.snowflake_si_floor('2024-03-01Z'), 'ahead')`)
		db.maintain(t, "2020-02-01Z")
		db.rows(t, "e", "e_default none", "e_default zero", "e_default before", "mine in", "e_default after", "e_default ahead", "e_default too large")
		db.maintain(t, "2054-10-01Z", "create e_p20540101", "drain e_p20240101")
		// The last partition is open.
		db.want(t, "select regexp_replace(pg_get_expr(relpartbound, oid), '\\d+', 'N') from pg_class where relname = 'e_p20540101'", "FOR VALUES FROM ('N') TO (MAXVALUE)")

		// The first week of the format has less than seven days.
		db.Exec(t, `create table made (id sortkey.sno primary key, v text) partition by range (id);
			create table drained (id sortkey.snowflake_si primary key, v text) partition by range (id);
			create table drained_default partition of drained default;
			insert into drained values (sortkey.snowflake_si_floor('2020-01-01Z') + 1, 'first');
			select sortkey.unmanage_partitions('e'), sortkey.manage_partitions('made', '7 days', premake => 1)`)
		db.maintain(t, "2010-01-02Z", "create made_p20100101", "create made_p20100104", "default made_default")
		db.Exec(t, "select sortkey.unmanage_partitions('made'), sortkey.manage_partitions('drained', '7 days', premake => 1)")
		db.maintain(t, "2020-02-01Z", "create drained_p20200127", "create drained_p20200203", "drain drained_p20200101")
	})
}

// A dump includes the settings, and maintenance continues in a restored database.
func TestPartitionsDump(t *testing.T) {
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		// One table sorts before schema sortkey, and one after.
		db.Exec(t, `create schema zoo; create table zoo."E" (id sortkey.sno primary key, v text) partition by range (id);
			create table a (id bigint primary key, v text) partition by range (id);
			select sortkey.manage_partitions('zoo."E"', '1 day', premake => 1);
			select sortkey.manage_partitions('a', '1 month', 'uid60', premake => 1)`)
		partitionDB{DB: db}.call(t, partitionNow)
		db.Exec(t, `insert into zoo."E" values (sortkey.sno_floor('2026-11-22Z'), 'x'), (sortkey.sno_floor('2026-11-23Z'), 'y')`)
		restored := newDatabase(t, db, "restored", "")
		_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", fmt.Sprintf(
			"set -o pipefail; pg_dump -U postgres %s | psql -U postgres -q -v ON_ERROR_STOP=1 %s", db.Name, restored.Name))
		must(t, err)
		copied := partitionDB{restored, restored.SQL(t)}
		must(t, migrations.Check(t.Context(), copied.pool, complete))
		copied.maintain(t, "2026-12-01Z", "create a_p20270101", `create zoo."E_p20261201"`, `create zoo."E_p20261202"`, `drain zoo."E_p20261123"`)
		copied.rows(t, `zoo."E"`, "E_p20261122 x", "E_p20261123 y")
	})
}

// In a restored database, the settings of a table that the dump lacks, or that was dropped before,
// apply to no other table. The settings of the others take effect, also if their tables are restored
// later.
func TestPartitionsDumpWithoutTables(t *testing.T) {
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		// Only "kept" is in both dumps.
		db.Exec(t, `create schema app; create table app.dropped (id sortkey.sno primary key, v text) partition by range (id);
			create table app.kept (like app.dropped including all) partition by range (id); create table app.excluded (like app.dropped including all) partition by range (id);
			select sortkey.manage_partitions(t, '1 day', premake => 1) from unnest(array['app.kept', 'app.excluded', 'app.dropped']::regclass[]) t;
			select sortkey.manage_partitions('app.dropped', '1 day', retention => '1 day', retention_action => 'drop', premake => 1);
			drop table app.dropped`)
		restored := newDatabase(t, db, "restored", "")
		dump := func(options string) {
			t.Helper()
			_, err := pgtest.Exec(t, db.Container(), "root", "bash", "-c", fmt.Sprintf(
				"set -o pipefail; pg_dump -U postgres %s %s | psql -U postgres -q -v ON_ERROR_STOP=1 %s", options, db.Name, restored.Name))
			must(t, err)
		}
		dump("--schema=sortkey --schema=sortkey_internal")
		copied := partitionDB{restored, restored.SQL(t)}
		copied.maintain(t, partitionNow)
		dump("--schema=app --exclude-table=app.excluded")
		// A table with the OID of the dropped one. Nobody manages it.
		copied.Exec(t, `create table other (id sortkey.sno primary key, v text) partition by range (id);
			create table other_old partition of other for values from (sortkey.sno_floor('2025-11-01Z')) to (sortkey.sno_floor('2025-11-02Z'));
			update sortkey.partition_settings set id = 'other'::regclass where name = 'dropped'`)
		copied.maintain(t, partitionNow, "create app.kept_p20261121", "create app.kept_p20261122", "default app.kept_default")
		copied.leaves(t, "other", "other_old")
		copied.want(t, "select parent::text from sortkey.partitioned_table", "app.kept")
		copied.want(t, "select concat_ws(' ', schema, name, database = sortkey_internal.database_identity(), id = to_regclass('app.' || name)) from sortkey.partition_settings order by 1",
			"app dropped f", "app excluded f", "app kept t t")
		// The settings of the restored table follow it to its new name.
		copied.Exec(t, "alter table app.kept rename to renamed")
		copied.maintain(t, "2026-11-22 10:30Z", "create app.renamed_p20261123")
		copied.want(t, "select name from sortkey.partition_settings where database = sortkey_internal.database_identity()", "renamed")
		// A new table of a missing one's name gets settings of its own.
		copied.Exec(t, `create table app.dropped (id sortkey.sno primary key, v text) partition by range (id); select sortkey.manage_partitions('app.dropped', '1 month', premake => 1)`)
		copied.want(t, "select every::text || coalesce(retention::text, ' permanent') from sortkey.partition_settings where name = 'dropped'", "1 mon permanent")
	})
}

// A partition has the properties of the table, on all versions of Postgres. The table can itself
// be a partition.
func TestPartitionsProperties(t *testing.T) {
	partitionEach(t, func(t *testing.T, db partitionDB) {
		version, err := strconv.Atoi(db.Version)
		must(t, err)
		space, using, method, virtual := db.Name+"_space", "", "heap", ""
		if version >= 17 { // before, a partitioned table has no access method
			db.Exec(t, "create access method heap2 type table handler heap_tableam_handler")
			using, method = "using heap2", "heap2"
		}
		if version >= 18 {
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
		db.maintain(t, partitionNow, "create e_p20261121", "create e_p20261122", "default e_default", "drop far")
		db.Exec(t, "insert into e (id) values (sortkey.uid60_floor('2026-11-21Z')), (sortkey.uid60_floor('2026-11-23Z'))")
		db.maintain(t, "2026-11-22Z", "drain e_p20261123")
		db.want(t, "select tableoid::regclass || v || n from e order by id", "e_p20261121d1", "e_p20261123d2")
		properties := " " + space + " " + method + " e a comment 1 1"
		db.want(t, `select concat_ws(' ', c.relname, s.spcname, m.amname, a.attstorage, col_description(c.oid, 2),
				(select count(*) from pg_statistic_ext where stxrelid = c.oid), (select count(*) from pg_index where indrelid = c.oid and indpred is not null))
			from pg_class c join pg_tablespace s on s.oid = c.reltablespace join pg_am m on m.oid = c.relam join pg_attribute a on a.attrelid = c.oid and a.attnum = 2
			where c.relname like 'e\_%' and c.relkind = 'r' order by 1`,
			"e_default"+properties, "e_p20261121"+properties, "e_p20261122"+properties, "e_p20261123"+properties)
		db.Exec(t, "drop table e")
		exec(t, conn, "drop tablespace "+space)

		db.Exec(t, `create table e (region text, v text, id sortkey.uid60, primary key (id, region)) partition by list (region);
			create table eu (id sortkey.uid60 not null, region text not null, v text) partition by range (id);
			alter table e attach partition eu for values in ('eu');
			select sortkey.manage_partitions('eu', '1 day', premake => 1)`)
		db.maintain(t, partitionNow, "create eu_p20261121", "create eu_p20261122", "default eu_default")
		db.Exec(t, `insert into e (region, v, id) select 'eu', x, sortkey.uid60_floor(x::timestamptz) from unnest(array['2026-11-20Z', '2026-11-21Z', '2026-11-23Z']) x;
			create table f (region text, id bigint, foreign key (id, region) references e on delete cascade);
			insert into f values ('eu', sortkey.uid60_floor('2026-11-20Z'))`)
		wantError(t, db.try(t, "2026-11-22Z", "failed drain eu_p20261120", "drain eu_p20261123"),
			migrations.ErrPartition, "public.f references some of them by foreign key f_id_region_fkey")
		db.rows(t, "e", "eu_default 2026-11-20Z", "eu_p20261121 2026-11-21Z", "eu_p20261123 2026-11-23Z")
		db.want(t, "select region from f", "eu")
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
		db.call(t, partitionNow)
		db.Exec(t, `insert into e values (sortkey.snowflake_floor('2026-11-21 12:00Z'), 'y'); insert into child select id from e;
			insert into e values (sortkey.snowflake_floor('2026-11-01 12:00Z'), 'x'), (sortkey.snowflake_floor('2026-11-02 12:00Z'), 'referred');
			insert into child select id from e where v = 'referred'`)
		db.Exec(t, trapSQL("public", `
			>=(sortkey.snowflake, sortkey.snowflake) boolean; <(sortkey.snowflake, sortkey.snowflake) boolean; =(sortkey.snowflake, sortkey.snowflake) boolean;
			=(text, text) boolean; <>(text, text) boolean; ||(text, text) text; =(integer, integer) boolean; >(integer, integer) boolean; +(integer, integer) integer;
			-(integer, integer) integer; *(numeric, integer) numeric; *(numeric, numeric) numeric; >=(numeric, integer) boolean; <=(numeric, integer) boolean;
			#>(jsonb, text[]) jsonb; -(jsonb, text) jsonb`))
		for _, name := range []string{"text", "timestamptz", "jsonb", "oid", "regclass"} {
			db.Exec(t, "create domain public."+name+" as pg_catalog."+name+" check (public.trap())")
		}
		conn := db.Conn(t)
		exec(t, conn, "set search_path = public, pg_catalog")
		for _, bait := range []string{"select 1 + 1", "select 'x'::text", "select pg_catalog.count(*) from e where id < id"} {
			fails(t, conn, "P0001", bait, "trapped")
		}
		exec(t, conn, "call sortkey.maintain_partitions('e', at => '"+partitionNow+"', dry_run => true)")
		fails(t, conn, "55000", "call sortkey.maintain_partitions('e', at => '"+partitionNow+"')", "partition steps failed: 1")
		db.rows(t, "e", "e_p20261101 x", "e_default referred", "e_p20261121 y")
		db.want(t, "select split_part(problem, ':', 1) from sortkey.partition_log where outcome = 'failed'", "cannot move rows of public.e_default to public.e_p20261102")
	})
}

// Without a default partition, a query for the newest rows reads only the newest
// partitions, a long reader doesn't block the creation of partitions ahead, and a row
// outside all partitions is an error.
func TestPartitionsWithoutDefault(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		conn := db.Conn(t)
		db.managed(t, "a", "default_partition => false")
		db.managed(t, "b", "premake => 4")
		db.call(t, partitionNow)
		db.leaves(t, "a", "a_p20261121", "a_p20261122", "a_p20261123", "a_p20261124", "a_p20261125")
		db.leaves(t, "b", "b_default", "b_p20261121", "b_p20261122", "b_p20261123", "b_p20261124", "b_p20261125")
		db.Exec(t, `insert into a select sortkey.snowflake_floor('2026-11-21Z'::timestamptz + n * interval '1 minute'), 'x' from generate_series(1, 2000) n;
			insert into b table a; analyze a; analyze b`)
		for table, merge := range map[string]bool{"a": false, "b": true} {
			newest := "select * from " + table + " order by id desc limit 10"
			plan := explain(t, conn, "costs off", newest)
			if strings.Contains(plan, "Merge Append") != merge || strings.Contains(plan, "  Append") == merge || strings.Contains(plan, "Sort  ") {
				t.Errorf("%s: want a Merge Append: %t, and an Append otherwise, got\n%s", table, merge, plan)
			}
			// Three partitions ahead are empty, and the one before them has the newest rows.
			plan = explain(t, conn, "analyze, costs off, timing off, summary off", newest)
			if unread := strings.Count(plan, "(never executed)"); unread != map[bool]int{false: 1, true: 0}[merge] {
				t.Errorf("%s: want an Append to read from the partitions ahead to the newest rows, got\n%s", table, plan)
			}
		}

		tx := db.begin(t, "select count(*) from a; select count(*) from b")
		must(t, db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, "2026-11-22 10:00Z"), LockTimeout: 10 * time.Millisecond},
			"create a_p20261126", "locked create b_p20261126"))
		must(t, tx.Rollback(t.Context()))

		fails(t, conn, "23514", "insert into a values (sortkey.snowflake_floor('2026-12-01Z'), 'late')", "no partition of relation")
		db.Exec(t, "insert into b values (sortkey.snowflake_floor('2026-12-01Z'), 'late')")
	})
}

// Inserts, even in open transactions, don't block the creation of a partition ahead, nor does
// it block inserts. A later call of manage_partitions can add or remove the default partition.
// Rows of the default partition are moved; if some can't be, the default partition stays.
func TestPartitionsDefault(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 1, default_partition => false")
		db.maintain(t, partitionNow, "create e_p20261121", "create e_p20261122")
		db.manage(t, "e", "premake => 1")
		db.maintain(t, partitionNow, "default e_default")
		tx := db.begin(t, "insert into e values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x')")
		db.maintain(t, "2026-11-22Z", "create e_p20261123")
		_, err := tx.Exec(t.Context(), "insert into e values (sortkey.snowflake_floor('2026-11-23 11:00Z'), 'y')")
		must(t, errors.Join(err, tx.Commit(t.Context())))
		db.rows(t, "e", "e_p20261121 x", "e_p20261123 y")
		db.manage(t, "e", "premake => 1, default_partition => false")
		db.maintain(t, partitionNow, "drop e_default")
		db.maintain(t, partitionNow)

		// The name of the default partition doesn't matter. One row is in the time of a partition; the other one is ahead.
		db.Exec(t, `create schema other; create table other.rest partition of e default;
			insert into e values (sortkey.snowflake_floor('2026-11-01Z'), 'early'), (sortkey.snowflake_floor('2027-01-01Z'), 'ahead')`)
		for _, steps := range [][]string{{"drain e_p20261101", "failed drop other.rest"}, {"failed drop other.rest"}} {
			o := migrations.PartitionOptions{At: partitionAt(t, partitionNow), Progress: func(s migrations.PartitionStep) {
				if s.Action == "drop" && (!s.From.IsZero() || !s.To.IsZero()) {
					t.Errorf("want no times of the default partition, got %+v", s)
				}
			}}
			wantError(t, db.tryWith(t, o, steps...), migrations.ErrPartition, "drop default partition other.rest: it has rows; Delete or move")
		}
		db.rows(t, "e", "e_p20261101 early", "e_p20261121 x", "e_p20261123 y", "rest ahead")
		db.Exec(t, "delete from other.rest")
		db.maintain(t, partitionNow, "drop other.rest")
		db.leaves(t, "e", "e_p20261101", "e_p20261121", "e_p20261122", "e_p20261123")

		// Maintenance doesn't drop the default partition if it fails to create a partition, whose rows would have no other place.
		// The setting is off at the time of the plan, or changes after it.
		for table, initially := range map[string]string{"planned": "false", "changed": "true"} {
			db.managed(t, table, "premake => 1, default_partition => "+initially)
			db.Exec(t, "create table "+table+"_rest partition of "+table+" default; create table "+table+"_p20261121 ()")
			change := func(migrations.PartitionStep) { db.manage(t, table, "premake => 1, default_partition => false") }
			_ = db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, partitionNow), Progress: change},
				"failed create "+table+"_p20261121", "create "+table+"_p20261122")
			db.Exec(t, "insert into "+table+" values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x'); drop table "+table+"_p20261121")
			db.maintain(t, partitionNow, "drain "+table+"_p20261121", "drop "+table+"_rest")
			db.rows(t, table, table+"_p20261121 x")
		}

		// The same if maintenance fails to move rows to a partition.
		db.managed(t, "k", "premake => 1, default_partition => false")
		db.Exec(t, `create table k_default partition of k default;
			insert into k values (sortkey.snowflake_floor('2026-11-21 11:00Z'), 'x');
			create table child (id bigint references k); insert into child select id from k`)
		_ = db.try(t, partitionNow, "create k_p20261122", "failed drain k_p20261121")
	})
}

// A call plans a table once. It makes a new plan only if another session changes the
// table's partitions or settings.
func TestPartitionsPlannedOnce(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.managed(t, "e", "premake => 20, retention => '10 days'")
		db.pool = db.SQL(t, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["track_functions"] = "pl" }))
		db.pool.SetMaxOpenConns(1)
		before := 0
		planned := func(want int) {
			t.Helper()
			db.strings(t, "select ''::text from pg_stat_force_next_flush()")
			var calls int
			must(t, db.pool.QueryRowContext(t.Context(), "select sum(calls) from pg_stat_user_functions where schemaname = 'sortkey_internal' and funcname = 'partition_steps'").Scan(&calls))
			if calls-before != want {
				t.Errorf("got %d plans, want %d", calls-before, want)
			}
			before = calls
		}
		_, err := migrations.MaintainPartitions(t.Context(), db.pool, complete, migrations.PartitionOptions{At: partitionAt(t, partitionNow)})
		must(t, err)
		planned(1)
		db.want(t, "select count(*)::text from pg_inherits where inhparent = 'e'::regclass", "22")
		db.maintain(t, partitionNow)
		planned(1)
		step := 0
		changes := func(migrations.PartitionStep) {
			switch step++; step {
			case 1: // another session creates the next partition
				db.Exec(t, `create table mine partition of e for values from (sortkey.snowflake_floor('2026-12-13Z')) to (sortkey.snowflake_floor('2026-12-14Z'))`)
			case 2:
				db.Exec(t, "alter table mine rename to ours")
			case 3:
				db.manage(t, "e", "premake => 12, retention => '100 days'")
			}
		}
		must(t, db.tryWith(t, migrations.PartitionOptions{At: partitionAt(t, "2026-12-03 10:30Z"), Progress: changes}, "create e_p20261212", "create e_p20261214", "create e_p20261215"))
		planned(4)
	})
}

// The log has each step and the end of each run, for both ways to maintain partitions.
// It keeps 90 days. Roles without privileges on the log don't write to it.
func TestPartitionsLog(t *testing.T) {
	partitionOne(t, func(t *testing.T, db partitionDB) {
		db.Exec(t, `insert into sortkey.partition_log (begun_at, ended_at, parent_table, action, attempts, outcome)
			select at, at, 'x', 'maintain', 1, 'done' from unnest(array[now() - interval '91 days', now() - interval '89 days']) at`)
		logged := func(more ...string) {
			t.Helper()
			db.want(t, `select concat_ws(' ', parent_table, action, partition, to_char(lower at time zone 'UTC', 'DD'), to_char(upper at time zone 'UTC', 'DD'),
				attempts, outcome, left(problem, 36), role = current_user) from sortkey.partition_log order by ended_at`,
				append([]string{
					"x maintain 1 done t", "public.e create public.e_p20261121 21 22 1 done t",
					"public.e create public.e_p20261122 22 23 1 failed cannot create public.e_p20261122 as  t",
					"public.e default public.e_default 1 done t", "public.e maintain 1 done t",
				}, more...)...)
		}
		for _, procedure := range []bool{false, true} {
			db.managed(t, "e", "premake => 1")
			db.Exec(t, "create table e_p20261122 (); delete from sortkey.partition_log where parent_table <> 'x'")
			if procedure {
				fails(t, db.Conn(t), "55000", "call sortkey.maintain_partitions(at => '"+partitionNow+"')", "partition steps failed: 1")
			} else {
				wantError(t, db.try(t, partitionNow, "create e_p20261121", "failed create e_p20261122", "default e_default"), migrations.ErrPartition)
			}
			logged()
			if !procedure {
				db.Exec(t, "drop table e; drop table e_p20261122")
			}
		}

		// The table's owner needs privileges on the log to write to it, but not to maintain the table.
		role, pool := newRole(t, db.DB, "owner")
		db.Exec(t, `grant create on schema public to `+role+`; grant usage on schema sortkey, sortkey_internal to `+role+`;
			alter table e owner to `+role+`; alter table e_default owner to `+role+`; drop table e_p20261122`)
		owner := partitionDB{db.DB, pool}
		owner.maintain(t, partitionNow, "create e_p20261122")
		logged()
		db.Exec(t, "grant select, insert, delete on sortkey.partition_log to "+role)
		owner.maintain(t, partitionNow)
		logged("public.e maintain 1 done f")
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
		conn, take := db.listen(t)
		call := func() {
			t.Helper()
			_, err := conn.Exec(ctx, "call sortkey.maintain_partitions(at => '"+partitionNow+"')")
			must(t, err)
		}
		tx := db.begin(t, "lock table sortkey.partition_log in share mode")
		call()
		must(t, tx.Rollback(ctx))
		db.leaves(t, "a", "a_default", "a_p20261121", "a_p20261122")
		db.leaves(t, "b", "b_default", "b_p20261121", "b_p20261122")
		wantLines(t, "a warning about the old row and each new one", take("WARNING "),
			append([]string{"cannot delete old rows of partition_log and partition_settings: canceling statement due to lock timeout"},
				slices.Repeat([]string{"cannot write to partition_log: canceling statement due to lock timeout"}, 8)...)...)
		const log = "select parent_table || ' ' || action from sortkey.partition_log order by 1"
		db.want(t, log, "x maintain")
		call()
		db.want(t, log, "public.a maintain", "public.b maintain")

		// If a write to the log fails, steps are still done.
		take("")
		db.Exec(t, "alter table sortkey.partition_log add check (parent_table <> 'public.a') not valid; drop table a_p20261122")
		call()
		db.leaves(t, "a", "a_default", "a_p20261121", "a_p20261122")
		const violated = `cannot write to partition_log: new row for relation "partition_log" violates check constraint "partition_log_parent_table_check"`
		wantLines(t, "a warning about each row", take("WARNING "), violated, violated)
	})
}
