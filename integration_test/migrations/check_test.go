package migrations

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// Check and Up reject a process with another layout. The error names both layouts.
func TestCheckLayouts(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		ours := migrations.Config{
			Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), DatacenterBits: 2, WorkerBits: 8, SequenceBits: 12},
			SnowflakeSI: complete.SnowflakeSI,
		}
		installDo(t, pool, ours, migrations.Up, migrations.Check)
		installed, err := migrations.Installed(ctx, pool, "")
		must(t, err)
		must(t, migrations.Check(ctx, pool, installed))
		const snowflake = "epoch 2015-01-01T00:00:00.000Z; bits: datacenter 2, worker 8, sequence 12"
		for name, change := range map[string]func(c *migrations.Config){
			"another epoch":               func(c *migrations.Config) { c.Snowflake.Epoch = c.Snowflake.Epoch.Add(time.Millisecond) },
			"other widths":                func(c *migrations.Config) { c.Snowflake.DatacenterBits, c.Snowflake.WorkerBits = 8, 2 },
			"the default layout":          func(c *migrations.Config) { c.Snowflake = idtype.SnowflakeLayout{} },
			"another base clock":          func(c *migrations.Config) { c.SnowflakeSI.BaseClock = time.UnixMilli(0) },
			"other widths of SnowflakeSI": func(c *migrations.Config) { c.SnowflakeSI.MachineBits, c.SnowflakeSI.IndexBits = 6, 7 },
		} {
			other := ours
			change(&other)
			want := []string{`schema "sortkey"`, "give this process the layout of the database, or another schema", "Snowflake layout", snowflake, other.Snowflake.Fingerprint()}
			if other.Snowflake == ours.Snowflake {
				want = append(want[:2], "SnowflakeSI layout", "base clock 2020-01-01T00:00:00.000Z; bits: machine 5, index 8", other.SnowflakeSI.Fingerprint())
			}
			t.Run(name, func(t *testing.T) {
				wantError(t, migrations.Check(ctx, pool, other), migrations.ErrLayout, want...)
				wantError(t, migrations.Up(ctx, pool, other), migrations.ErrLayout, want...)
			})
		}
		// Up doesn't complete a partial installation with another layout.
		must(t, migrations.Down(ctx, pool, ours))
		_, err = migrations.Installed(ctx, pool, "sortkey")
		wantError(t, err, migrations.ErrNotInstalled)
		for _, m := range migrationsOf(t, ours)[:3] {
			db.Exec(t, m.Up)
		}
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
		list := migrationsOf(t, c)
		for _, m := range list[1:] {
			_, err := p.UpTo(ctx, int64(m.Version-1))
			must(t, err)
			wantError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, m.Name, fmt.Sprintf("of %d is not installed", len(list)), "run Up, or the tool")
			installApplied(t, pool, c, m.Version-1)
		}
		_, err = p.Up(ctx)
		must(t, err)
		must(t, migrations.Check(ctx, pool, c))
		db.Exec(t, "DELETE FROM sortkey.revision WHERE version = 3")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, "migration 3 (snowflake)")
		db.Exec(t, "DELETE FROM sortkey.revision")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrIncomplete, "(pg_dump --data-only --schema=sortkey --schema=sortkey_internal): empty installation tables")
		wantError(t, migrations.Check(ctx, pool, migrations.Config{Schema: "elsewhere"}), migrations.ErrNotInstalled, "elsewhere.revision")
		pool.Close()
		wantError(t, migrations.Check(ctx, pool, c), nil, "closed")
	})
}

// An unreserved node number in a default is a separate error, which names the
// default and the call that reserves the number. Only CheckDefaults returns it.
func TestCheckDefaults(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), complete
		name, reader := newRole(t, db, "reader")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		must(t, migrations.CheckDefaults(ctx, reader, c))
		db.Exec(t, `CREATE TABLE orders (id bigint DEFAULT sortkey.next_snowflake(1021)) PARTITION BY RANGE (id);
			CREATE TABLE orders_default PARTITION OF orders DEFAULT`)
		for _, check := range []*sql.DB{pool, reader} {
			wantError(t, migrations.CheckDefaults(ctx, check, c), migrations.ErrUnreservedNode, `schema "sortkey"`,
				"column public.orders.id (and 1 more) uses unreserved number 1021 of pool snowflake", "run SELECT sortkey.reserve_node('snowflake', 1021, 'column public.orders.id')")
		}
		installDo(t, pool, c, migrations.Up)
		// Check ignores defaults, since any role with USAGE on the schema can create one.
		installDo(t, reader, c, migrations.Up, migrations.Check)
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1021, 'column public.orders.id')")
		must(t, migrations.CheckDefaults(ctx, reader, c))
		db.Exec(t, "SELECT sortkey.unreserve_node('snowflake', 1021)")
		wantError(t, migrations.CheckDefaults(ctx, pool, c), migrations.ErrUnreservedNode, "1021")
		// The remedy is a valid statement, even for names that need quotes.
		db.Exec(t, `CREATE SCHEMA "it's"; CREATE TABLE "it's"."a.b" ("Id" uuid DEFAULT sortkey.next_sno(2, 1)); DROP TABLE orders`)
		err := migrations.CheckDefaults(ctx, pool, c)
		wantError(t, err, migrations.ErrUnreservedNode, `column "it's"."a.b"."Id" uses unreserved number 2 of pool sno (run `)
		db.Exec(t, checkRemedy(err))
		must(t, migrations.CheckDefaults(ctx, pool, c))
	})
}

// checkRemedy returns the statement in an error of CheckDefaults.
func checkRemedy(err error) string {
	_, remedy, _ := strings.Cut(err.Error(), "(run ")
	remedy, _, _ = strings.Cut(remedy, "): ")
	return remedy
}

// A default that needs the setting sortkey.node, while the session has none or one
// that is no node number of the format, is a separate error, too. It names the
// defaults and the statements that make the setting.
func TestCheckSetting(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, c := t.Context(), complete
		name, reader := newRole(t, db, "reader")
		reader.SetMaxIdleConns(0) // so that each call has a new session
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		set := func(value string) {
			t.Helper()
			db.Exec(t, "ALTER DATABASE "+db.Name+" SET sortkey.node = "+value)
		}
		check := func(sentinel error, parts ...string) {
			t.Helper()
			err := migrations.CheckDefaults(ctx, reader, c)
			wantError(t, err, sentinel, parts...)
			for _, other := range []error{migrations.ErrNoNode, migrations.ErrUnreservedNode} {
				if sentinel != nil && other != sentinel && errors.Is(err, other) {
					t.Errorf("expected only %v, got %v", sentinel, err)
				}
			}
		}
		must(t, migrations.CheckDefaults(ctx, reader, c)) // no default needs it
		db.Exec(t, "CREATE TABLE orders (id bigint DEFAULT sortkey.next_snowflake(), other bigint DEFAULT sortkey.next_snowflake())")
		const missing = "column public.orders.id (and 1 more) needs the setting sortkey.node, which is missing (choose a number N that no program and no other database uses; run "
		check(migrations.ErrNoNode, missing+fmt.Sprintf("SELECT sortkey.reserve_node('snowflake', N, 'defaults of %[1]s') and ALTER DATABASE %[1]s SET sortkey.node = N; and reconnect): no node number", db.Name))
		must(t, migrations.Up(ctx, db.SQL(t), c))
		set("''")
		check(migrations.ErrNoNode, missing)
		for _, value := range []string{"1024", "-1", "'007'", "x", "'1;2'", "99999999999"} {
			set(value)
			check(migrations.ErrNoNode, "needs the setting sortkey.node, which is '"+strings.Trim(value, "'")+"', no node number of snowflake (choose")
			fails(t, db.Conn(t), "22023", "INSERT INTO orders VALUES (DEFAULT)")
		}
		set("1021")
		check(migrations.ErrUnreservedNode, "column public.orders.id (and 1 more) uses unreserved number 1021 of pool snowflake from the setting sortkey.node (run SELECT sortkey.reserve_node('snowflake', 1021, 'defaults of "+db.Name+"'))")

		// Defaults of several formats, and with explicit numbers. Some have a problem with the setting, and some with their reservation.
		db.Exec(t, `CREATE TABLE "it's" (a uuid DEFAULT sortkey.next_sno(), b bigint DEFAULT sortkey.next_snowflake_si(), c bigint DEFAULT sortkey.next_spread64(), d bigint DEFAULT sortkey.next_snowflake(1021), e bigint DEFAULT sortkey.next_snowflake(1020), f bigint DEFAULT sortkey.next_uid60())`)
		set("40000")
		err := migrations.CheckDefaults(ctx, reader, c)
		for _, sentinel := range []error{migrations.ErrNoNode, migrations.ErrUnreservedNode} {
			wantError(t, err, sentinel, `column public."it's".b (and 3 more) needs the setting sortkey.node, which is '40000', no node number of snowflake and snowflake-si and spread64 (choose`,
				fmt.Sprintf("run SELECT sortkey.reserve_node('snowflake', N, 'defaults of %[1]s'), sortkey.reserve_node('snowflake-si', N, 'defaults of %[1]s'), sortkey.reserve_node('spread64', N, 'defaults of %[1]s') and", db.Name),
				"): no node number; column", `column public."it's".e uses unreserved number 1020 of pool snowflake (run SELECT sortkey.reserve_node('snowflake', 1020, `,
				`column public."it's".a uses unreserved number 40000 of pool sno from the setting sortkey.node (run `)
		}
		var list interface{ Unwrap() []error }
		if !errors.As(err, &list) || len(list.Unwrap()) != 4 || !errors.Is(list.Unwrap()[0], migrations.ErrNoNode) || !errors.Is(list.Unwrap()[3], migrations.ErrUnreservedNode) {
			t.Errorf("expected a list of 4 errors, got %v", err)
		}
		set("21")
		for { // each remedy is a valid statement
			err := migrations.CheckDefaults(ctx, reader, c)
			if err == nil {
				break
			}
			wantError(t, err, migrations.ErrUnreservedNode)
			db.Exec(t, checkRemedy(err))
		}
		db.Exec(t, `INSERT INTO orders DEFAULT VALUES; INSERT INTO "it's" DEFAULT VALUES`)

		// The setting of another installation has its schema.
		other := migrations.Config{Schema: "other"}
		must(t, migrations.Up(ctx, db.SQL(t), other))
		db.Exec(t, "CREATE TABLE others (id bigint DEFAULT other.next_snowflake()); GRANT USAGE ON SCHEMA other TO "+name)
		wantError(t, migrations.CheckDefaults(ctx, reader, other), migrations.ErrNoNode, "needs the setting other.node, which is missing", "SELECT other.reserve_node('snowflake', N, ", " SET other.node = N")
		must(t, migrations.CheckDefaults(ctx, reader, c))
	})
}

// A role that isn't a superuser needs SET on the parameter to make it a setting of its
// database, but not to make it a setting of its own session.
func TestSettingByRole(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		name, _ := newRole(t, db, "owner")
		db.Exec(t, fmt.Sprintf(`%s; GRANT USAGE ON SCHEMA sortkey TO %[2]s; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake() TO %[2]s; ALTER DATABASE %[3]s OWNER TO %[2]s`, reserveNode("sortkey", installNode), name, db.Name))
		defer db.Exec(t, "ALTER DATABASE "+db.Name+" OWNER TO CURRENT_USER") // so that the role can be dropped
		const node = "SELECT sortkey.snowflake_node(sortkey.next_snowflake())"
		role := db.Conn(t, pgtest.Login(name))
		for _, statement := range []string{"ALTER DATABASE " + db.Name + " SET sortkey.node = 21", "ALTER ROLE " + name + " SET sortkey.node = 21"} {
			fails(t, role, "42501", statement, `permission denied to set parameter "sortkey.node"`)
		}
		exec(t, role, "BEGIN; SET LOCAL sortkey.node = 21")
		wantValue(t, role, node, installNode)
		exec(t, role, "COMMIT")
		wantValue(t, db.Conn(t, pgtest.Login(name), pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["options"] = "-csortkey.node=21" })), node, installNode)

		db.Exec(t, "GRANT SET ON PARAMETER sortkey.node TO "+name)
		exec(t, role, "ALTER DATABASE "+db.Name+" SET sortkey.node = 21")
		role = db.Conn(t, pgtest.Login(name))
		wantValue(t, role, node, installNode)
		// A session that chooses its number checks it, too.
		fails(t, role, "55000", "RESET ALL; SET sortkey.node = 22; SELECT sortkey.next_snowflake()")
	})
}

// The view node_defaults lists each kind of default.
func TestNodeDefaults(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), complete
		must(t, migrations.Up(ctx, pool, migrations.Config{Schema: "other"}))
		var columns, want []string
		for i, d := range []struct {
			column string
			rows   []string // format, from_setting, pool, number, reserved
		}{
			{"bigint DEFAULT sortkey.next_snowflake(103)", []string{"snowflake f snowflake 103 of a"}},
			{"bigint DEFAULT sortkey.next_snowflake(node => 135)", []string{"snowflake f snowflake 135 -"}},
			{"bigint DEFAULT coalesce(sortkey.next_snowflake(167), sortkey.next_snowflake(199))", []string{"snowflake f snowflake 167 -", "snowflake f snowflake 199 -"}},
			{"bigint DEFAULT sortkey.next_snowflake(37) + sortkey.next_snowflake(37)", []string{"snowflake f snowflake 37 -"}},
			{"bigint DEFAULT sortkey.next_snowflake(3 + 4)", []string{"snowflake f - -"}},
			{"bigint DEFAULT sortkey.next_snowflake(length('next_snowflake(8)'))", []string{"snowflake f - -"}},
			{"bigint DEFAULT sortkey.next_snowflake(1024)", []string{"snowflake f - -"}},
			{"bigint DEFAULT sortkey.next_snowflake_si(9)", []string{"snowflake_si f snowflake-si 9 -"}},
			{"bigint DEFAULT sortkey.next_spread64(10 << 4 | 2)", []string{"spread64 f - -"}},
			{"bigint DEFAULT sortkey.next_spread64(node => 178)", []string{"spread64 f spread64-2 11 -"}},
			{"uuid DEFAULT sortkey.next_sno(65535, ascii('c'))", []string{"sno f sno 65535 of j"}},
			{"bigint DEFAULT other.next_snowflake(1)", nil},
			{"bigint DEFAULT sortkey.next_uid60()", nil},
			{"bigint DEFAULT 13", nil},
			{"bigint DEFAULT other.next_snowflake(2) + sortkey.next_snowflake(35)", []string{"snowflake f snowflake 35 -"}},
			{"bigint DEFAULT sortkey.next_snowflake()", []string{"snowflake t snowflake 21 of all"}},
			{"uuid DEFAULT sortkey.next_sno()", []string{"sno t sno 21 -"}},
			{"uuid DEFAULT sortkey.next_sno_meta(7)", []string{"sno t sno 21 -"}},
			{"bigint DEFAULT sortkey.next_spread64()", []string{"spread64 t spread64-5 1 -"}},
			{"bigint DEFAULT sortkey.next_snowflake_si()", []string{"snowflake_si t snowflake-si 21 -"}},
			{"bigint DEFAULT other.next_snowflake()", nil},
			{"bigint DEFAULT greatest(sortkey.next_snowflake(), sortkey.next_snowflake(36))", []string{"snowflake f snowflake 36 -", "snowflake t snowflake 21 of all"}},
			{"uuid DEFAULT sortkey.next_sno(node => 8, meta => 1)", []string{"sno f sno 8 -"}},
		} {
			name := string(rune('a' + i))
			columns = append(columns, name+" "+d.column)
			for _, row := range d.rows {
				want = append(want, "column public.t."+name+" "+row)
			}
		}
		want = append(want, "column public.v.a snowflake f snowflake 487 -", "domain public.key snowflake f snowflake 391 -",
			"function public.next_key(n integer) snowflake f snowflake 423 -", "function public.next_own() snowflake t snowflake 21 of all")
		db.Exec(t, `CREATE TABLE t (`+strings.Join(columns, ", ")+`);
			CREATE DOMAIN key AS bigint DEFAULT sortkey.next_snowflake(391);
			CREATE FUNCTION next_key(n integer) RETURNS bigint LANGUAGE sql RETURN sortkey.next_snowflake(423);
			CREATE FUNCTION next_own() RETURNS bigint LANGUAGE sql RETURN sortkey.next_snowflake();
			CREATE FUNCTION uncounted() RETURNS bigint LANGUAGE sql AS 'SELECT sortkey.next_snowflake(455)';
			CREATE VIEW v AS SELECT a FROM t;
			ALTER VIEW v ALTER COLUMN a SET DEFAULT sortkey.next_snowflake(487);
			SELECT sortkey.reserve_node('snowflake', 103, 'of a'), sortkey.reserve_node('sno', 65535, 'of j'), sortkey.reserve_node('snowflake-si', 10, 'of none'),
				sortkey.reserve_node('snowflake', 21, 'of all')`)
		fails(t, db.Conn(t), "22023", "SELECT sortkey.reserve_node('snowflake-si', 32, 'too large')", "number 32 (0 to 31)")
		conn := db.SQL(t)
		conn.SetMaxOpenConns(1)
		for _, settings := range []string{"RESET ALL", "SET search_path = sortkey, other, public", "SET search_path = other, sortkey", "SET quote_all_identifiers = on"} {
			_, err := conn.ExecContext(ctx, settings+"; SET sortkey.node = 21")
			must(t, err)
			wantRows(t, conn, `SELECT replace(concat_ws(' ', kind, name, format, from_setting, pool, coalesce(number::text, '-'), coalesce(reserved, '-')), '"', '') FROM sortkey.node_defaults ORDER BY kind, name, from_setting, number`, want...)
		}
		// All existing pools of the format count, whatever their names, since a program could claim the number in each.
		db.Exec(t, "DROP TABLE t CASCADE; DROP DOMAIN key; DROP FUNCTION next_key, next_own, uncounted; CREATE TABLE t (a bigint DEFAULT sortkey.next_snowflake(103), b bigint DEFAULT sortkey.next_spread64(81), c uuid DEFAULT sortkey.next_sno(9), d bigint DEFAULT sortkey.next_snowflake_si(1))")
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
		_, err := conn.ExecContext(ctx, "CREATE TEMPORARY TABLE mine (a bigint DEFAULT sortkey.next_snowflake(104), b bigint DEFAULT sortkey.next_snowflake())")
		must(t, err)
		claim(nodelease.ForSnowflakeSI(c.SnowflakeSI), "shop-si")
		claim(nodelease.ForSpread64(1), "shop-spread")
		claim(nodelease.ForSpread64(11), "shop-spread-11")
		claim(nodelease.ForSno(), "shop-sno")
		db.Exec(t, "SELECT sortkey.reserve_node('shop', 103, 'of a')") // again: the pool took over the reservation
		wantRows(t, pool, "SELECT concat_ws(' ', name, pool, number, reserved) FROM sortkey.node_defaults ORDER BY 1",
			"public.t.a shop 103 of a", "public.t.b shop-spread 5", "public.t.c shop-sno 9", "public.t.d shop-si 1")
	})
}
