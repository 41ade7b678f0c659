package migrations

import (
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

// The real pg_partman makes the partitions of a table by snos, finds the rows'
// among them, empties the default one and drops what is too old: by the encoder
// and the decoder.
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

// partmanDays works with a table for whose partitions it is today.
func partmanDays(t *testing.T, conn *pgx.Conn, today time.Time) error {
	t.Helper()
	// pg_partman takes no domain for a key, so the column has its checks.
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
		p_time_encoder := 'sortkey.sno_partman_encoder', p_time_decoder := 'sortkey.sno_partman_decoder')`,
		today.AddDate(0, 0, -6).Format(time.DateOnly))

	of := func(day time.Time) string { return "events_p" + day.Format("20060102") }
	insert := func(at time.Time) (partition string) {
		t.Helper()
		id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: at, Meta: 0xff, Sequence: 0xffff})
		must(t, err)
		return pgtest.Value[string](t, conn, `insert into events values ($1, $2) returning tableoid::regclass::text`, id, at)
	}
	// A row at the first and one at the last instant of each day, and one of long
	// ago that no partition is for.
	const first, last = -6, 2
	for n := first; n <= last; n++ {
		day := today.AddDate(0, 0, n)
		if a, b := insert(day), insert(day.Add(24*time.Hour-4*time.Millisecond)); a != of(day) || b != of(day) {
			return fmt.Errorf("the rows of %s went to %s and %s", day.Format(time.DateOnly), a, b)
		}
	}
	old := today.AddDate(0, 0, -30)
	if got := insert(old); got != "events_default" {
		return fmt.Errorf("a row of %s went to %s, want the default partition", old.Format(time.DateOnly), got)
	}

	const oldest = `select min(relid::text) from pg_partition_tree('events') where relid::text like 'events\_p%'`
	// The default one is emptied into a partition that is made for it, by the
	// function of times: the procedure looks for a function of uuids that isn't
	// there. In 5.2 the function, too, is not for uuids.
	if strings.HasPrefix(pgtest.Value[string](t, conn, `select extversion from pg_extension where extname = 'pg_partman'`), "5.2.") {
		exec(t, conn, `delete from events_default`)
	} else {
		exec(t, conn, `select partman.partition_data_time('public.events', p_batch_count := 10)`)
		inDefault, partition := pgtest.Value[int](t, conn, `select count(*) from events_default`), pgtest.Value[string](t, conn, oldest)
		if inDefault != 0 || partition != of(old) {
			return fmt.Errorf("%d rows are left in the default partition, and the oldest is %s, want %s", inDefault, partition, of(old))
		}
	}

	// Three days are kept, and more is made ahead.
	exec(t, conn, `update partman.part_config set retention = '3 days', retention_keep_table = false, premake = 5 where parent_table = 'public.events'`)
	exec(t, conn, `select partman.run_maintenance('public.events')`)
	begin := today.AddDate(0, 0, -3)
	if got := pgtest.Value[string](t, conn, oldest); got != of(begin) {
		return fmt.Errorf("the oldest partition is %s, want %s", got, of(begin))
	}
	if n, from := pgtest.Value[int](t, conn, `select count(*) from events`), pgtest.Value[time.Time](t, conn, `select day from events order by id limit 1`); n != 2*(last+3+1) || !from.Equal(begin) {
		return fmt.Errorf("%d rows are left, from %v on, want %d from %v on", n, from, 2*(last+3+1), begin)
	}
	if day := today.AddDate(0, 0, 5); insert(day) != of(day) {
		return fmt.Errorf("a row of the fifth day ahead went elsewhere than to %s", of(day))
	}

	// And what reads a window of time reads its partition alone.
	day := func(n int) string { return today.AddDate(0, 0, n).Format("'2006-01-02Z'") }
	plan := explain(t, conn, "costs off", "select * from events where id >= sortkey.sno_floor("+day(0)+") and id < sortkey.sno_floor("+day(1)+")")
	partition := regexp.MustCompile(`events_(p\d+|default)\b`) // an index has a longer name
	if read := slices.Compact(partition.FindAllString(plan, -1)); !slices.Equal(read, []string{of(today)}) {
		return fmt.Errorf("a query of today reads %q, want %s", read, of(today))
	}
	return nil
}
