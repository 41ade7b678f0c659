package migrations

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// Check and Up reject a process with another layout. The error names both layouts.
func TestCheckLayouts(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		ours := migrations.Config{
			Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), DatacenterBits: 2, WorkerBits: 8, SequenceBits: 12},
			SnowflakeSI: complete.SnowflakeSI,
		}
		must(t, migrations.Up(ctx, pool, ours))
		must(t, migrations.Check(ctx, pool, ours))
		const snowflake, si = "epoch 2015-01-01T00:00:00.000Z; bits: datacenter 2, worker 8, sequence 12",
			"base clock 2020-01-01T00:00:00.000Z; bits: machine 5, index 8"
		for name, c := range map[string]struct {
			change func(c *migrations.Config)
			title  string
			want   []string
		}{
			"another epoch": {func(c *migrations.Config) { c.Snowflake.Epoch = c.Snowflake.Epoch.Add(time.Millisecond) }, "Snowflake layout",
				[]string{snowflake, "epoch 2015-01-01T00:00:00.001Z; bits: datacenter 2, worker 8, sequence 12"}},
			"other widths": {func(c *migrations.Config) { c.Snowflake.DatacenterBits, c.Snowflake.WorkerBits = 8, 2 }, "Snowflake layout",
				[]string{snowflake, "epoch 2015-01-01T00:00:00.000Z; bits: datacenter 8, worker 2, sequence 12"}},
			"the default layout": {func(c *migrations.Config) { c.Snowflake = idtype.SnowflakeLayout{} }, "Snowflake layout",
				[]string{snowflake, "epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12"}},
			"another base clock": {func(c *migrations.Config) { c.SnowflakeSI.BaseClock = time.UnixMilli(0) }, "SnowflakeSI layout",
				[]string{si, "base clock 1970-01-01T00:00:00.000Z; bits: machine 5, index 8"}},
			"other widths of SnowflakeSI": {func(c *migrations.Config) { c.SnowflakeSI.MachineBits, c.SnowflakeSI.IndexBits = 6, 7 }, "SnowflakeSI layout",
				[]string{si, "base clock 2020-01-01T00:00:00.000Z; bits: machine 6, index 7"}},
		} {
			other := ours
			c.change(&other)
			want := append(c.want, c.title, `schema "sortkey"`, "give this process the layout of the database, or another schema")
			wantError(t, migrations.Check(ctx, pool, other), migrations.ErrLayout, want...)
			wantError(t, migrations.Up(ctx, pool, other), migrations.ErrLayout, want...)
			if t.Failed() {
				t.Fatal(name)
			}
		}
		// Up doesn't complete a partial installation with another layout.
		must(t, migrations.Down(ctx, pool, ours))
		db.Exec(t, "CREATE SCHEMA sortkey; CREATE SEQUENCE sortkey.snowflake_si_clock")
		wantError(t, migrations.Up(ctx, pool, ours), nil, "migration 3 (snowflake_si)")
		db.Exec(t, "DROP SEQUENCE sortkey.snowflake_si_clock")
		half := installCatalog(t, pool, "sortkey")
		wantError(t, migrations.Up(ctx, pool, migrations.Config{}), migrations.ErrLayout, snowflake)
		installSame(t, "Up with another layout", installCatalog(t, pool, "sortkey"), half)
		must(t, migrations.Up(ctx, pool, ours))
		// An equal epoch in another time zone is accepted.
		same := ours
		same.Snowflake.Epoch = same.Snowflake.Epoch.In(time.FixedZone("", 3600))
		must(t, migrations.Check(ctx, pool, same))
	})
}

func TestCheckInstallation(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "sortkey.revision", "run Up")
		db.Exec(t, "CREATE SCHEMA sortkey")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "run Up")

		files, err := migrations.Goose(c)
		must(t, err)
		p, err := goose.NewProvider(goose.DialectPostgres, pool, files)
		must(t, err)
		list, err := migrations.List(c)
		must(t, err)
		for _, m := range list[1:] {
			_, err := p.UpTo(ctx, int64(m.Version-1))
			must(t, err)
			wantError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, m.Name, fmt.Sprintf("of %d is not installed", len(list)), "run Up, or the tool")
			if applied := installApplied(t, pool, c); len(applied) != m.Version-1 {
				t.Errorf("expected %d migrations to be applied, got %v", m.Version-1, applied)
			}
		}
		_, err = p.Up(ctx)
		must(t, err)
		must(t, migrations.Check(ctx, pool, c))
		db.Exec(t, "DELETE FROM sortkey.revision WHERE version = 3")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, "migration 3 (snowflake_si)")
		db.Exec(t, "DELETE FROM sortkey.revision")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrIncomplete, "pg_dump --data-only --schema=sortkey")
		wantError(t, migrations.Check(ctx, pool, migrations.Config{Schema: "elsewhere"}), migrations.ErrNotInstalled, "elsewhere.revision")
		pool.Close()
		wantError(t, migrations.Check(ctx, pool, c), nil, "closed")
	})
}

// Check needs only USAGE on the schema.
func TestCheckByRole(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, c, name := t.Context(), complete, installRoleName(db, "reader")
		pool := installRole(t, db, name)
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled)
		must(t, migrations.Up(ctx, db.SQL(t), c))
		wantError(t, migrations.Check(ctx, pool, c), nil, "permission denied", "GRANT USAGE ON SCHEMA sortkey")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		must(t, migrations.Check(ctx, pool, c))
		if applied := installApplied(t, pool, c); len(applied) < 6 {
			t.Errorf("expected Status to return the migrations, got %v", applied)
		}
		for _, statement := range []string{"INSERT INTO sortkey.revision VALUES (7, 'x')", "DELETE FROM sortkey.revision", "UPDATE sortkey.layout SET layout = 'x'",
			"TRUNCATE sortkey.layout", "SELECT * FROM sortkey.sortkey_goose_version", "CREATE TABLE sortkey.t ()"} {
			_, err := pool.ExecContext(ctx, statement)
			wantError(t, err, nil, "permission denied")
		}
	})
}

// An unreserved node number in a default is a separate error, which names the
// default and the call that reserves the number. Only Check returns it.
func TestCheckDefaults(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c, name := t.Context(), db.SQL(t), complete, installRoleName(db, "reader")
		reader := installRole(t, db, name)
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		must(t, migrations.Check(ctx, reader, c))
		db.Exec(t, `CREATE TABLE orders (id bigint DEFAULT sortkey.next_snowflake(31, 29)) PARTITION BY RANGE (id);
			CREATE TABLE orders_default PARTITION OF orders DEFAULT`)
		for _, check := range []*sql.DB{pool, reader} {
			wantError(t, migrations.Check(ctx, check, c), migrations.ErrUnreservedNode, `schema "sortkey"`,
				"column public.orders.id (and 1 more) uses unreserved number 1021 of pool snowflake", "run SELECT sortkey.reserve_node('snowflake', 1021, 'column public.orders.id')")
		}
		must(t, migrations.Up(ctx, pool, c))
		must(t, migrations.Up(ctx, reader, c))
		// ErrLayout takes precedence.
		wantError(t, migrations.Check(ctx, pool, migrations.Config{Snowflake: idtype.SnowflakeLayout{WorkerBits: 10, SequenceBits: 12}}), migrations.ErrLayout)
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1021, 'column public.orders.id')")
		must(t, migrations.Check(ctx, reader, c))
		db.Exec(t, "SELECT sortkey.unreserve_node('snowflake', 1021)")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrUnreservedNode, "1021")
		// The remedy is a valid statement, even for names that need quotes.
		db.Exec(t, `CREATE SCHEMA "it's"; CREATE TABLE "it's"."a.b" ("Id" uuid DEFAULT sortkey.next_sno(1, 2)); DROP TABLE orders`)
		err := migrations.Check(ctx, pool, c)
		wantError(t, err, migrations.ErrUnreservedNode, `column "it's"."a.b"."Id" uses unreserved number 2 of pool sno (run `)
		_, remedy, _ := strings.Cut(err.Error(), "(run ")
		remedy, _, _ = strings.Cut(remedy, "): ")
		db.Exec(t, remedy)
		must(t, migrations.Check(ctx, pool, c))
	})
}

// The view node_defaults lists each kind of default.
func TestNodeDefaults(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), complete
		must(t, migrations.Up(ctx, pool, migrations.Config{Schema: "other"}))
		db.Exec(t, `CREATE TABLE t (
				a bigint DEFAULT sortkey.next_snowflake(3, 7),
				b bigint DEFAULT sortkey.next_snowflake(worker => 7, datacenter => 4),
				c bigint DEFAULT coalesce(sortkey.next_snowflake(5, 7), sortkey.next_snowflake(6, 7)),
				d bigint DEFAULT sortkey.next_snowflake(7, 3 + 4),
				e bigint DEFAULT sortkey.next_snowflake(length('next_snowflake(8, 7)'), 7),
				f bigint DEFAULT sortkey.next_snowflake(32, 7),
				g bigint DEFAULT sortkey.next_snowflake_si(9),
				h bigint DEFAULT sortkey.next_spread64(10, 2),
				i bigint DEFAULT sortkey.next_spread64(cluster => 2, generator => 11),
				j uuid DEFAULT sortkey.next_sno(ascii('c'), 65535),
				k bigint DEFAULT other.next_snowflake(1, 1),
				l bigint DEFAULT sortkey.next_uid60(),
				m bigint DEFAULT 13,
				n bigint DEFAULT other.next_snowflake(1, 2) + sortkey.next_snowflake(1, 3)
			);
			CREATE DOMAIN key AS bigint DEFAULT sortkey.next_snowflake(12, 7);
			CREATE FUNCTION next_key(n integer) RETURNS bigint LANGUAGE sql RETURN sortkey.next_snowflake(13, 7);
			CREATE FUNCTION uncounted() RETURNS bigint LANGUAGE sql AS 'SELECT sortkey.next_snowflake(14, 7)';
			CREATE VIEW v AS SELECT a FROM t;
			ALTER VIEW v ALTER COLUMN a SET DEFAULT sortkey.next_snowflake(15, 7);
			SELECT sortkey.reserve_node('snowflake', 3 << 5 | 7, 'of a'), sortkey.reserve_node('sno', 65535, 'of j'), sortkey.reserve_node('snowflake-si', 10, 'of none')`)
		want := []string{
			"column public.t.a snowflake 103 of a", "column public.t.b snowflake 135 -", "column public.t.c snowflake 167 -", "column public.t.c snowflake 199 -",
			"column public.t.d snowflake - -", "column public.t.e snowflake - -", "column public.t.f snowflake - -", "column public.t.g snowflake-si 9 -",
			"column public.t.h spread64-2 10 -", "column public.t.i spread64-2 11 -", "column public.t.j sno 65535 of j", "column public.t.n snowflake 35 -",
			"column public.v.a snowflake 487 -", "domain public.key snowflake 391 -", "function public.next_key(n integer) snowflake 423 -",
		}
		conn := db.SQL(t)
		conn.SetMaxOpenConns(1)
		for _, settings := range []string{"RESET ALL", "SET search_path = sortkey, other, public", "SET search_path = other, sortkey", "SET quote_all_identifiers = on"} {
			_, err := conn.ExecContext(ctx, settings)
			must(t, err)
			got := columnOf(t, conn, `SELECT replace(concat_ws(' ', kind, name, pool, coalesce(number::text, '-'), coalesce(reserved, '-')), '"', '') FROM sortkey.node_defaults ORDER BY kind, name, number`)
			if !slices.Equal(got, want) {
				t.Errorf("%s: expected\n%s\ngot\n%s", settings, strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
		}
		// All existing pools of the format count, whatever their names, since a program could claim the number in each.
		db.Exec(t, "DROP TABLE t CASCADE; DROP DOMAIN key; DROP FUNCTION next_key, uncounted; CREATE TABLE t (a bigint DEFAULT sortkey.next_snowflake(3, 7), b bigint DEFAULT sortkey.next_spread64(5, 1), c uuid DEFAULT sortkey.next_sno(0, 9), d bigint DEFAULT sortkey.next_snowflake_si(1))")
		store := pglease.New(pool, pglease.Config{})
		claim := func(p nodelease.Pool, name string) {
			t.Helper()
			p.Name = name
			now := time.Now().UnixMilli()
			_, err := store.Claim(ctx, p, nodelease.Request{Holder: name, TTL: time.Minute, Now: now, Until: now})
			must(t, err)
		}
		claim(nodelease.ForSnowflake(c.Snowflake), "shop")
		// These pools don't count: one has another layout, and one lacks the number.
		claim(nodelease.ForSnowflake(idtype.SnowflakeLayout{Epoch: complete.SnowflakeSI.BaseClock, SequenceBits: 12, WorkerBits: 10}), "layout")
		claim(nodelease.Pool{Size: 103, Layout: nodelease.ForSnowflake(c.Snowflake).Layout}, "size")
		_, err := conn.ExecContext(ctx, "CREATE TEMPORARY TABLE mine (a bigint DEFAULT sortkey.next_snowflake(3, 8))")
		must(t, err)
		claim(nodelease.ForSnowflakeSI(c.SnowflakeSI), "shop-si")
		claim(nodelease.ForSpread64(1), "shop-spread")
		claim(nodelease.ForSpread64(11), "shop-spread-11")
		claim(nodelease.ForSno(), "shop-sno")
		db.Exec(t, "SELECT sortkey.reserve_node('shop', 3 << 5 | 7, 'x')")
		got := columnOf(t, pool, "SELECT concat_ws(' ', name, pool, number, reserved) FROM sortkey.node_defaults ORDER BY 1")
		if want := []string{"public.t.a shop 103 x", "public.t.b shop-spread 5", "public.t.c shop-sno 9", "public.t.d shop-si 1"}; !slices.Equal(got, want) {
			t.Errorf("expected %q, got %q", want, got)
		}
	})
}
