package migrations

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// The real pg_partman makes the partitions of a table by snos, finds the rows'
// among them, empties the default one and drops what is too old: by the encoder
// and the decoder.
func TestPartman(t *testing.T) {
	pgtest.EachPartman(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		must(t, migrations.Up(ctx, db.SQL(t), migrations.Config{}))
		conn := db.Conn(t, pgtest.Codec)
		exec := func(sql string, args ...any) {
			t.Helper()
			if _, err := conn.Exec(ctx, sql, args...); err != nil {
				t.Fatalf("%v\nin: %s", err, sql)
			}
		}
		// pg_partman takes no domain for a key, so the column has its checks.
		exec(`create schema partman`)
		exec(`create extension pg_partman schema partman`)
		exec(`create table events (
			id uuid primary key check (id::sortkey.sno is not null),
			day date not null
		) partition by range (id)`)

		today := time.Now().UTC().Truncate(24 * time.Hour)
		exec(`select partman.create_parent(
			p_parent_table := 'public.events', p_control := 'id', p_type := 'range', p_interval := '1 day', p_premake := 2,
			p_start_partition := $1,
			p_time_encoder := 'sortkey.sno_partman_encoder', p_time_decoder := 'sortkey.sno_partman_decoder')`,
			today.AddDate(0, 0, -6).Format(time.DateOnly))

		// A row at the first and one at the last instant of each day, and one of
		// long ago that no partition is for.
		insert := func(at time.Time) (partition string) {
			t.Helper()
			id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: at, Meta: 0xff, Sequence: 0xffff})
			must(t, err)
			must(t, conn.QueryRow(ctx, `insert into events values ($1, $2) returning tableoid::regclass::text`, id, at).Scan(&partition))
			return partition
		}
		const first, last = -6, 2
		for n := first; n <= last; n++ {
			day := today.AddDate(0, 0, n)
			want := "events_p" + day.Format("20060102")
			if a, b := insert(day), insert(day.Add(24*time.Hour-4*time.Millisecond)); a != want || b != want {
				t.Errorf("the rows of %s went to %s and %s, want %s", day.Format(time.DateOnly), a, b, want)
			}
		}
		old := today.AddDate(0, 0, -30)
		if got := insert(old); got != "events_default" {
			t.Errorf("a row of %s went to %s, want the default partition", old.Format(time.DateOnly), got)
		}

		partitions := func() (n, inDefault int, oldest string) {
			t.Helper()
			must(t, conn.QueryRow(ctx, `select count(*), (select count(*) from events_default),
				min(relid::text) filter (where relid::text like 'events\_p%')
				from pg_partition_tree('events') where isleaf`).Scan(&n, &inDefault, &oldest))
			return n, inDefault, oldest
		}
		// The default one is emptied into a partition that is made for it, by the
		// function of times: the procedure looks for a function of uuids that isn't
		// there. In 5.2 the function, too, is not for uuids.
		var version string
		must(t, conn.QueryRow(ctx, `select extversion from pg_extension where extname = 'pg_partman'`).Scan(&version))
		if strings.HasPrefix(version, "5.2.") {
			exec(`delete from events_default`)
		} else {
			exec(`select partman.partition_data_time('public.events', p_batch_count := 10)`)
			if _, inDefault, oldest := partitions(); inDefault != 0 || oldest != "events_p"+old.Format("20060102") {
				t.Errorf("%d rows are left in the default partition, and the oldest is %s, want %s", inDefault, oldest, old.Format("20060102"))
			}
		}

		// Three days are kept, and more is made ahead.
		exec(`update partman.part_config set retention = '3 days', retention_keep_table = false, premake = 5 where parent_table = 'public.events'`)
		exec(`select partman.run_maintenance('public.events')`)
		oldest := today.AddDate(0, 0, -3)
		if _, _, got := partitions(); got != "events_p"+oldest.Format("20060102") {
			t.Errorf("the oldest partition is %s, want that of %s", got, oldest.Format(time.DateOnly))
		}
		rows, err := conn.Query(ctx, `select day from events order by id`)
		must(t, err)
		days, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
		must(t, err)
		if want := 2 * (last + 3 + 1); len(days) != want || !days[0].Equal(oldest) {
			t.Errorf("%d rows are left, from %v on, want %d from %v on", len(days), days[0], want, oldest)
		}
		if got, want := insert(today.AddDate(0, 0, 5)), "events_p"+today.AddDate(0, 0, 5).Format("20060102"); got != want {
			t.Errorf("a row of the fifth day ahead went to %s, want %s", got, want)
		}

		// And what reads a window of time reads its partition alone.
		var plan string
		must(t, conn.QueryRow(ctx, `explain (format json) select * from events where id >= sortkey.sno_floor($1) and id < sortkey.sno_floor($2)`,
			pgx.QueryExecModeSimpleProtocol, today, today.AddDate(0, 0, 1)).Scan(&plan))
		if got, want := relations(plan), []string{"events_p" + today.Format("20060102")}; len(got) != 1 || got[0] != want[0] {
			t.Errorf("a query of today reads %v, want %v", got, want)
		}
	})
}
