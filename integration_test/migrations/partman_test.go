package migrations

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// pg_partman, with the encoder and decoder, creates the partitions of a table with sno
// keys, moves rows out of the default partition, and drops old partitions.
func TestPartman(t *testing.T) {
	t.Parallel()
	pgtest.EachPartman(t, func(t *testing.T, db *pgtest.DB) {
		up(t, db, complete)
		for {
			today := time.Now().UTC().Truncate(24 * time.Hour)
			err := partmanDays(t, db.Conn(t, pgtest.Codec), today)
			// If midnight has passed, pg_partman's today may be a day later than the
			// test's.
			if time.Now().UTC().Truncate(24 * time.Hour).Equal(today) {
				must(t, err)
				return
			}
		}
	})
}

// partmanDays tests a table whose current partition is that of today. It returns the differences.
func partmanDays(t *testing.T, conn *pgx.Conn, today time.Time) (differences error) {
	t.Helper()
	want := func(what string, got, want any) {
		if got != want {
			differences = errors.Join(differences, fmt.Errorf("%s: expected %v, got %v", what, want, got))
		}
	}
	// pg_partman doesn't support domains as keys, so the column has a CHECK.
	for _, statement := range []string{
		"drop table if exists events cascade", "drop schema if exists partman cascade",
		"create schema partman", "create extension pg_partman schema partman",
		"create table events (id uuid primary key check (id::sortkey.sno is not null), day date not null) partition by range (id)",
	} {
		exec(t, conn, statement)
	}
	exec(t, conn, `select partman.create_parent(
		p_parent_table := 'public.events', p_control := 'id', p_type := 'range', p_interval := '1 day', p_premake := 2,
		p_start_partition := $1,
		p_time_encoder := 'sortkey.sno_floor', p_time_decoder := 'sortkey.sno_partman_decoder')`,
		today.AddDate(0, 0, -6).Format(time.DateOnly))

	of := func(day time.Time) string { return "events_p" + day.Format("20060102") }
	insert := func(at time.Time) (partition string) {
		t.Helper()
		id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: at, Meta: 0xff, Sequence: 0xffff})
		must(t, err)
		return pgtest.Value[string](t, conn, `insert into events values ($1, $2) returning tableoid::regclass::text`, id, at)
	}
	// A row at the first and one at the last instant of each day, and one before all
	// partitions.
	const first, last = -6, 2
	for n := first; n <= last; n++ {
		day := today.AddDate(0, 0, n)
		want("the first row of a day", insert(day), of(day))
		want("the last row of a day", insert(day.Add(24*time.Hour-4*time.Millisecond)), of(day))
	}
	old := today.AddDate(0, 0, -30)
	want("an old row", insert(old), "events_default")

	const oldest = `select min(relid::text) from pg_partition_tree('events') where relid::text like 'events\_p%'`
	// partition_data_time creates a partition for the rows in the default partition
	// and moves them. The procedure would call a function for uuids, which doesn't
	// exist. In version 5.2, partition_data_time doesn't support uuids either.
	if strings.HasPrefix(pgtest.Value[string](t, conn, `select extversion from pg_extension where extname = 'pg_partman'`), "5.2.") {
		exec(t, conn, `delete from events_default`)
	} else {
		exec(t, conn, `select partman.partition_data_time('public.events', p_batch_count := 10)`)
		want("rows in the default partition", pgtest.Value[int](t, conn, `select count(*) from events_default`), 0)
		want("the oldest partition", pgtest.Value[string](t, conn, oldest), of(old))
	}

	// Keep three days, and create more partitions ahead.
	exec(t, conn, `update partman.part_config set retention = '3 days', retention_keep_table = false, premake = 5 where parent_table = 'public.events'`)
	exec(t, conn, `select partman.run_maintenance('public.events')`)
	begin := today.AddDate(0, 0, -3)
	want("the oldest partition", pgtest.Value[string](t, conn, oldest), of(begin))
	want("the rows that are left", pgtest.Value[int](t, conn, `select count(*) from events`), 2*(last+3+1))
	want("the first of them", pgtest.Value[string](t, conn, `select day::text from events order by id limit 1`), begin.Format(time.DateOnly))
	want("the row of the fifth day ahead", insert(today.AddDate(0, 0, 5)), of(today.AddDate(0, 0, 5)))

	// A query by time reads only the partition of that time.
	day := func(n int) string { return today.AddDate(0, 0, n).Format("'2006-01-02Z'") }
	plan := explain(t, conn, "costs off", "select * from events where id >= sortkey.sno_floor("+day(0)+") and id < sortkey.sno_floor("+day(1)+")")
	partition := regexp.MustCompile(`events_(p\d+|default)\b`) // an index has a longer name
	want("a query of today reads", strings.Join(slices.Compact(partition.FindAllString(plan, -1)), " "), of(today))
	return differences
}
