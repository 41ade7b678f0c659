package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"
	"github.com/pressly/goose/v3"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// installCatalog returns a description of the two schemas of an installation from the
// catalog, one line per property.
func installCatalog(t testing.TB, db *sql.DB, schema string) []string {
	t.Helper()
	lines := columnOf(t, db, `
		WITH s AS (SELECT oid, nspname FROM pg_namespace WHERE nspname IN ($1::text, $1::text || '_internal'))
		SELECT format('function %s %s %s %s', pg_get_functiondef(p.oid), coalesce(p.proacl, acldefault('f', p.proowner)), pg_get_userbyid(p.proowner), obj_description(p.oid, 'pg_proc'))
			FROM pg_proc p JOIN s ON pronamespace = s.oid
		UNION ALL SELECT format('domain %s %s %s %s %s %s', t.oid::regtype, format_type(typbasetype, typtypmod), typcollation::regcollation, typnotnull, typacl, obj_description(t.oid, 'pg_type'))
			FROM pg_type t JOIN s ON typnamespace = s.oid WHERE typtype = 'd'
		UNION ALL SELECT format('constraint %s of %s %s: %s', conname, conrelid::regclass, contypid::regtype, pg_get_constraintdef(c.oid))
			FROM pg_constraint c JOIN s ON connamespace = s.oid WHERE conrelid = 0 OR conrelid IN (to_regclass($1 || '.revision'), to_regclass($1 || '.layout'))
		UNION ALL SELECT format('relation %s %s %s %s %s', c.oid::regclass, relkind, relacl, pg_get_userbyid(relowner), obj_description(c.oid, 'pg_class'))
			FROM pg_class c JOIN s ON relnamespace = s.oid
		UNION ALL SELECT format('sequence %s by %s from %s to %s, starts %s, caches %s, %s', seqrelid::regclass, seqincrement, seqmin, seqmax, seqstart, seqcache, seqtypid::regtype)
			FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid JOIN s ON relnamespace = s.oid
		UNION ALL SELECT format('column %s %s %s %s %s', attrelid::regclass, attname, atttypid::regtype, attnotnull, pg_get_expr(adbin, adrelid))
			FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN s ON relnamespace = s.oid LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum
			WHERE attnum > 0 AND relkind = 'r' AND relname IN ('revision', 'layout')
		UNION ALL SELECT format('schema %s %s', nspname, nspacl) FROM pg_namespace JOIN s USING (oid, nspname)
		ORDER BY 1`, schema)
	if there := columnOf(t, db, "SELECT to_regclass($1)::text WHERE to_regclass($1) IS NOT NULL", schema+".layout"); len(there) > 0 {
		for _, q := range []string{"SELECT format('layout %s: %s', format, layout) FROM " + schema + ".layout ORDER BY 1",
			"SELECT format('revision %s: %s', version, name) FROM " + schema + ".revision ORDER BY 1"} {
			lines = append(lines, columnOf(t, db, q)...)
		}
	}
	return lines
}

// installSame reports the lines that only one of two catalogs has.
func installSame(t testing.TB, situation string, got, want []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: missing: %s", situation, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: unexpected: %s", situation, line)
		}
	}
}

// installGone fails the test if anything of an installation is left.
func installGone(t testing.TB, db *sql.DB, schema string) {
	t.Helper()
	wantLines(t, "what is left of "+schema, installCatalog(t, db, schema))
}

// installApplied fails the test unless Status reports the first n migrations as installed.
func installApplied(t testing.TB, db *sql.DB, c migrations.Config, n int) {
	t.Helper()
	status, err := migrations.Status(t.Context(), db, c)
	must(t, err)
	list := migrationsOf(t, c)
	if len(status) != len(list) {
		t.Fatalf("expected the status of %d migrations, got %d", len(list), len(status))
	}
	for i, s := range status {
		if s.Version != list[i].Version || s.Name != list[i].Name {
			t.Errorf("expected migration %d (%s), got %d (%s)", list[i].Version, list[i].Name, s.Version, s.Name)
		}
		if applied := !s.AppliedAt.IsZero(); applied != (i < n) || applied && time.Since(s.AppliedAt).Abs() > time.Hour {
			t.Errorf("migration %d: expected an AppliedAt of now for the first %d, got %s", s.Version, n, s.AppliedAt)
		}
	}
}

// installWhole returns the catalog of an installation of complete, and removes it.
func installWhole(t testing.TB, pool *sql.DB) []string {
	t.Helper()
	installDo(t, pool, complete, migrations.Up)
	defer installDo(t, pool, complete, migrations.Down)
	return installCatalog(t, pool, "sortkey")
}

// installDo makes calls, which must succeed.
func installDo(t testing.TB, db *sql.DB, c migrations.Config, calls ...func(context.Context, *sql.DB, migrations.Config) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // in case a call waits for a second connection
	defer cancel()
	for _, call := range calls {
		must(t, call(ctx, db, c))
	}
}

// installDrivers opens the database through each driver.
func installDrivers(t *testing.T, db *pgtest.DB, f func(t *testing.T, pool *sql.DB)) {
	t.Run("pgx", func(t *testing.T) { f(t, db.SQL(t)) })
	t.Run("pq", func(t *testing.T) { f(t, installPQ(t, db)) })
}

func installPQ(t testing.TB, db *pgtest.DB) *sql.DB {
	t.Helper()
	connector, err := pq.NewConnector(db.URL)
	must(t, err)
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { pool.Close() })
	return pool
}

// Up and Down work repeatedly, with one connection and with each driver. Down leaves
// nothing.
func TestUpAndDown(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			pool.SetMaxOpenConns(1)
			c := complete
			const everything = `SELECT format('%s %s', classid::regclass, objid) FROM pg_depend WHERE classid NOT IN ('pg_rewrite'::regclass)
				AND refclassid = 'pg_namespace'::regclass ORDER BY 1`
			before := columnOf(t, pool, everything)
			var first []string
			for range 2 {
				installApplied(t, pool, c, 0)
				installDo(t, pool, c, migrations.Up)
				if first == nil {
					first = installCatalog(t, pool, "sortkey")
				}
				installSame(t, "Up after Down", installCatalog(t, pool, "sortkey"), first)
				installDo(t, pool, c, migrations.Up)
				installSame(t, "Up twice", installCatalog(t, pool, "sortkey"), first)
				installDo(t, pool, c, migrations.Check)
				installApplied(t, pool, c, len(migrationsOf(t, c)))
				installDo(t, pool, c, migrations.Down, migrations.Down)
				installGone(t, pool, "sortkey")
				wantRows(t, pool, everything, before...)
			}
		})
	})
}

// Down changes nothing while other objects depend on the installation, and names
// them. It keeps the user's own objects in the schema.
func TestDownInUse(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			c := migrations.Config{}
			installDo(t, pool, c, migrations.Up)
			// Dependencies on the last migration, on one in the middle, and on the first possible one.
			dependents := []struct{ create, drop, dependent string }{
				{"CREATE TABLE orders (id sortkey.sno PRIMARY KEY DEFAULT sortkey.next_sno(2, 1))", "DROP TABLE orders", "default value for column id of table public.orders"},
				{"CREATE TABLE orders (id sortkey.sno PRIMARY KEY)", "DROP TABLE orders", "column id of table public.orders"},
				{"CREATE TABLE orders (id bigint DEFAULT sortkey.next_uid60())", "DROP TABLE orders", "default value for column id of table public.orders"},
				{"CREATE VIEW recent AS SELECT sortkey.snowflake_time(1)", "DROP VIEW recent", "view public.recent"},
				{"CREATE TABLE orders (id sortkey.snowflake)", "DROP TABLE orders", "column id of table public.orders"},
				{"CREATE TABLE orders (id sortkey.snowflake) PARTITION BY RANGE (id)", "DROP TABLE orders", "(table public.orders)"},
				{"CREATE TABLE sortkey.orders (id sortkey.snowflake_si)", "DROP TABLE sortkey.orders", "column id of table sortkey.orders"},
			}
			if strings.HasSuffix(t.Name(), "/pq") { // whose errors have the names, too
				dependents = dependents[:1]
			}
			for _, used := range dependents {
				db.Exec(t, used.create)
				catalog := installCatalog(t, pool, "sortkey")
				wantError(t, migrations.Down(t.Context(), pool, c), nil, used.dependent, "drop or change the dependent objects first", `schema "sortkey"`)
				installSame(t, "Down after "+used.create, installCatalog(t, pool, "sortkey"), catalog)
				installDo(t, pool, c, migrations.Check, migrations.Up)
				db.Exec(t, used.drop)
			}

			db.Exec(t, "CREATE TABLE sortkey.own (n int); INSERT INTO sortkey.own VALUES (42)")
			installDo(t, pool, c, migrations.Down)
			wantRows(t, pool, "SELECT n FROM sortkey.own", "42")
			wantRows(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'sortkey'::regnamespace", "own")
			installDo(t, pool, c, migrations.Up, migrations.Check)
			db.Exec(t, "DROP TABLE sortkey.own")
			installDo(t, pool, c, migrations.Down)
			installGone(t, pool, "sortkey")
		})
	})
}

// Down names all dependents at once, of every migration, but neither partitions nor objects in
// its schemas.
func TestDownNamesDependents(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE DOMAIN order_id AS sortkey.snowflake;
			CREATE TABLE orders (id order_id PRIMARY KEY, at timestamptz GENERATED ALWAYS AS (sortkey.snowflake_time(id)) STORED, others sortkey.sno[], CHECK (sortkey.snowflake_node(id) < 9));
			CREATE INDEX by_node ON orders (sortkey.snowflake_node(id));
			CREATE VIEW recent AS SELECT sortkey.uuid7_time(gen_random_uuid());
			CREATE TABLE "odd ""names""" (id bigint PRIMARY KEY DEFAULT sortkey.next_uid60());
			CREATE TABLE events (id sortkey.spread64, n bigint DEFAULT sortkey.next_uid60()) PARTITION BY HASH (id);
			CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 2, REMAINDER 0);
			CREATE TABLE lines (order_id bigint REFERENCES orders);
			CREATE TABLE sortkey.ours (id sortkey.sno PRIMARY KEY DEFAULT sortkey.next_sno())`)
		wantError(t, migrations.Down(t.Context(), db.SQL(t), migrations.Config{}), nil, "("+strings.Join([]string{
			"column at of table public.orders", "column id of table public.orders", "column others of table public.orders", "constraint orders_id_check on table public.orders",
			`default value for column id of table public."odd ""names"""`, "default value for column n of table public.events",
			"index public.by_node", "table public.events", "type public.order_id", "view public.recent",
		}, ", ")+"); drop or change the dependent objects first")
	})
}

// DROP SCHEMA CASCADE, unlike Down, drops columns and tables, as documented. It keeps
// objects that don't depend on the schema. A change of a column from a domain to its base
// type, which doesn't rewrite the table, keeps the column.
func TestDropSchemaCascade(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		wantRows(t, pool, `SELECT typname FROM pg_type WHERE typnamespace = 'sortkey'::regnamespace AND typtype = 'd'
			AND obj_description(oid, 'pg_type') NOT LIKE '%DROP SCHEMA sortkey CASCADE drops the columns of this type.'`)
		db.Exec(t, `CREATE TABLE of_domain (id sortkey.snowflake PRIMARY KEY, n int);
			CREATE TABLE parted (id sortkey.snowflake) PARTITION BY RANGE (id);
			CREATE TABLE parted_default PARTITION OF parted DEFAULT;
			CREATE TABLE of_base (
				id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(103),
				referring bigint REFERENCES of_domain,
				at timestamptz GENERATED ALWAYS AS (sortkey.snowflake_time(id)) STORED,
				CONSTRAINT by_domain CHECK (id::sortkey.snowflake IS NOT NULL),
				CONSTRAINT by_function CHECK (sortkey.snowflake_time(id) IS NOT NULL),
				CONSTRAINT by_itself CHECK (referring > 0)
			);
			CREATE INDEX ON of_base (sortkey.snowflake_time(id));
			INSERT INTO of_domain VALUES (1, 42); INSERT INTO parted VALUES (1);
			CREATE TABLE changed (id sortkey.snowflake PRIMARY KEY, owner sortkey.sno, code sortkey.sno_as_text); INSERT INTO changed VALUES (1)`)
		const files = "SELECT pg_relation_filenode(c)::text FROM unnest(ARRAY['changed'::regclass, 'changed_pkey'::regclass]) c"
		before := columnOf(t, pool, files)
		db.Exec(t, `ALTER TABLE changed ALTER COLUMN id TYPE bigint, ALTER COLUMN owner TYPE uuid, ALTER COLUMN code TYPE text COLLATE "C"`)
		wantRows(t, pool, files, before...)
		db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE")
		const columns = "SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid = "
		wantRows(t, pool, columns+"'of_domain'::regclass", "n")
		wantRows(t, pool, columns+"'of_base'::regclass", "id referring")
		wantRows(t, pool, columns+"'changed'::regclass", "code id owner")
		wantRows(t, pool, "SELECT conname FROM pg_constraint WHERE conrelid = 'of_base'::regclass AND contype <> 'n' ORDER BY 1", "by_itself", "of_base_pkey")
		wantRows(t, pool, "SELECT conname FROM pg_constraint WHERE conrelid = 'of_domain'::regclass")
		wantRows(t, pool, "SELECT relname FROM pg_class WHERE relname LIKE 'parted%'")
		wantRows(t, pool, "SELECT count(*) FROM pg_index WHERE indrelid = 'of_base'::regclass", "1")
		wantRows(t, pool, "SELECT adnum FROM pg_attrdef WHERE adrelid = 'of_base'::regclass")
		wantRows(t, pool, "SELECT n FROM of_domain", "42")
		wantRows(t, pool, "INSERT INTO of_base VALUES (-1) RETURNING id", "-1")
		fails(t, db.Conn(t), "23514", "INSERT INTO of_base VALUES (1, -1)", "by_itself")
	})
}

// installObstacles are objects with which the first seven migrations conflict. The conflict is
// near the end of the migration, so most of it has to be rolled back.
var installObstacles = []string{
	"FUNCTION sortkey_internal.sequence_bits(text, timestamptz, integer, integer) RETURNS bigint LANGUAGE sql RETURN $3",
	"VIEW sortkey.node_defaults AS SELECT",
	"FUNCTION sortkey.snowflake_at(timestamptz, integer, integer) RETURNS bigint LANGUAGE sql RETURN $2",
	"SEQUENCE sortkey_internal.snowflake_si_clock",
	"SEQUENCE sortkey_internal.uid60_clock",
	"SEQUENCE sortkey_internal.spread64_clock",
	"SEQUENCE sortkey_internal.sno_clock",
}

// installObstruct creates an obstacle for a migration of complete, in new schemas, which the
// migrations don't drop. It returns the catalog of the obstacle and the migrations before it, the
// statement that removes the obstacle, and the error of Check that the obstacle causes.
func installObstruct(t testing.TB, db *pgtest.DB, pool *sql.DB, migration int) (catalog []string, remove string, sentinel error) {
	t.Helper()
	const drop, create = "DROP SCHEMA IF EXISTS sortkey, sortkey_internal CASCADE; ", "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal; "
	list := migrationsOf(t, complete)
	obstacle := installObstacles[migration-1]
	db.Exec(t, drop+create)
	for _, m := range list[:migration-1] {
		db.Exec(t, m.Up)
	}
	db.Exec(t, "CREATE "+obstacle)
	catalog = installCatalog(t, pool, "sortkey")
	db.Exec(t, drop+create+"CREATE "+obstacle)
	if sentinel = migrations.ErrOutdated; migration == 1 {
		sentinel = migrations.ErrNotInstalled
	}
	return catalog, "DROP " + regexp.MustCompile(`^\w+ [\w.]+`).FindString(obstacle), sentinel
}

// A failed migration leaves the database unchanged. Up continues a partial installation, and
// Down removes one.
func TestBrokenUp(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool, ctx, c := db.SQL(t), t.Context(), complete
		whole := installWhole(t, pool)
		list := migrationsOf(t, c)
		for i := range installObstacles {
			broken := i + 1
			partial, remove, _ := installObstruct(t, db, pool, broken)
			before := installCatalog(t, pool, "sortkey")
			for range 2 {
				got, err := migrations.Apply(ctx, pool, c)
				wantError(t, err, nil, fmt.Sprintf("migration %d (%s)", broken, list[i].Name), "already exists")
				if got != nil {
					t.Errorf("expected no migrations from a failed Apply, got %d", len(got))
				}
				installSame(t, fmt.Sprintf("migration %d broken", broken), installCatalog(t, pool, "sortkey"), before)
			}
			wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "run Up")
			// The migrations before the obstacle are there, as after a tool that commits each.
			for _, m := range list[:i] {
				db.Exec(t, m.Up)
			}
			wantError(t, migrations.Up(ctx, pool, c), nil, "already exists")
			installSame(t, "a partial installation", installCatalog(t, pool, "sortkey"), partial)
			installApplied(t, pool, c, i)
			db.Exec(t, remove)
			if broken%2 == 0 {
				installDo(t, pool, c, migrations.Up)
				installSame(t, "Up after the cause is removed", installCatalog(t, pool, "sortkey"), whole)
			}
			installDo(t, pool, c, migrations.Down)
			if left := installCatalog(t, pool, "sortkey"); len(left) != 2 {
				t.Errorf("expected the two schemas after Down, got %v", left)
			}
		}
	})
}

// Concurrent calls of Up, and of Down, succeed.
func TestConcurrently(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const processes = 8
		shared, c := db.SQL(t), complete
		shared.SetMaxOpenConns(2)
		pools := make([]*sql.DB, processes)
		for i := range pools {
			if pools[i] = shared; i%2 == 0 {
				pools[i] = db.SQL(t)
			}
		}
		list := migrationsOf(t, c)
		for range 2 {
			results := make([][]migrations.Migration, processes)
			genEach(t, processes, func(i int) (err error) {
				results[i], err = migrations.Apply(t.Context(), pools[i], c)
				return errors.Join(err, migrations.Check(t.Context(), pools[i], c))
			})
			applied := slices.Concat(results...)
			slices.SortFunc(applied, func(a, b migrations.Migration) int { return cmp.Compare(a.Version, b.Version) })
			if !slices.Equal(applied, list) {
				t.Errorf("expected one call to return each migration, got %d of %d", len(applied), len(list))
			}
			genEach(t, processes, func(i int) error { return migrations.Down(t.Context(), pools[i], c) })
			installGone(t, shared, "sortkey")
		}
	})
}

// Up returns ErrLayout if another process installs another layout in the meantime.
func TestOvertaken(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		late := migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.UnixMilli(1)}}
		quick := migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.UnixMilli(2)}}
		// The first transaction finds no installation. The other process installs after it.
		after := &installAfterRead{do: func() { must(t, migrations.Up(t.Context(), db.SQL(t), quick)) }}
		pool := db.SQL(t, pgtest.Config(func(c *pgx.ConnConfig) { c.Tracer = after }))
		wantError(t, migrations.Up(t.Context(), pool, late), migrations.ErrLayout,
			"epoch 1970-01-01T00:00:00.001Z", "epoch 1970-01-01T00:00:00.002Z")
		installDo(t, pool, quick, migrations.Check)
	})
}

// installAfterRead calls do after the first transaction, which only reads.
type installAfterRead struct {
	do   func()
	once sync.Once
}

type installStatement struct{} // the key of a statement in a context

func (a *installAfterRead) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, installStatement{}, d.SQL)
}

func (a *installAfterRead) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(installStatement{}) == "rollback" {
		a.once.Do(a.do)
	}
}

// UpTx installs in the caller's transaction, and leaves its search_path as it was.
func TestUpTx(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			ctx, c := t.Context(), complete
			for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
				installGone(t, pool, "sortkey")
				tx, err := pool.BeginTx(ctx, nil)
				must(t, err)
				for _, s := range []string{"CREATE SCHEMA shop", "SET LOCAL search_path = shop", "SET LOCAL intervalstyle = iso_8601", "SET LOCAL standard_conforming_strings = " + db.OddStrings(), "SET LOCAL quote_all_identifiers = on"} {
					_, err = tx.ExecContext(ctx, s)
					must(t, err)
				}
				must(t, migrations.UpTx(ctx, tx, c))
				must(t, migrations.UpTx(ctx, tx, c)) // has nothing to do
				_, err = tx.ExecContext(ctx, "CREATE TABLE orders (id sortkey.snowflake DEFAULT sortkey.next_snowflake(1))")
				must(t, err)
				for name, want := range map[string]string{"search_path": "shop", "intervalstyle": "iso_8601", "standard_conforming_strings": db.OddStrings(), "quote_all_identifiers": "on"} {
					var got string
					must(t, tx.QueryRowContext(ctx, "SHOW "+name).Scan(&got))
					if got != want {
						t.Errorf("expected the caller's %s %s after UpTx, got %s", name, want, got)
					}
				}
				must(t, end(tx))
			}
			installDo(t, pool, c, migrations.Check)
			wantRows(t, pool, "SELECT schemaname FROM pg_tables WHERE tablename = 'orders'", "shop")

			tx, err := pool.BeginTx(ctx, nil)
			must(t, err)
			other := c
			other.Snowflake.Epoch = time.UnixMilli(1)
			wantError(t, migrations.UpTx(ctx, tx, other), migrations.ErrLayout)
			must(t, tx.Rollback())
			db.Exec(t, "DROP SCHEMA shop CASCADE")
			installDo(t, pool, c, migrations.Down)
		})
	})
}

// An installation is the same, and works, in a database with other settings.
func TestSettings(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		whole := installWhole(t, db.SQL(t))
		for _, setting := range []string{"standard_conforming_strings = " + db.OddStrings(), "intervalstyle = iso_8601", "quote_all_identifiers = on", "row_security = off", "search_path = nowhere"} {
			name, _, _ := strings.Cut(setting, " ")
			db.Exec(t, "ALTER DATABASE "+db.Name+" SET "+setting)
			pool := db.SQL(t)
			installDo(t, pool, complete, migrations.Up, migrations.Check)
			db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 7, 'x'); CREATE TABLE public.orders (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7))")
			wantRows(t, pool, "SELECT number FROM sortkey.node_defaults", "7")
			must(t, migrations.CheckDefaults(t.Context(), pool, complete))
			db.Exec(t, "DROP TABLE public.orders; ALTER DATABASE "+db.Name+" RESET "+name)
			installSame(t, setting, installCatalog(t, db.SQL(t), "sortkey"), whole)
			installDo(t, db.SQL(t), complete, migrations.Down)
		}
	})
}

// Earlier versions of Up also recorded the migrations in a table of goose. Up and Down drop it.
func TestGooseVersion(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		whole := installWhole(t, pool)
		files, err := migrations.Goose(complete)
		must(t, err)
		last := int64(len(migrationsOf(t, complete)))
		install := func(version int64) {
			db.Exec(t, "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal; COMMENT ON SCHEMA sortkey IS 'Created by the sortkey migrations.'; COMMENT ON SCHEMA sortkey_internal IS 'Created by the sortkey migrations.'")
			p, err := goose.NewProvider(goose.DialectPostgres, pool, files, goose.WithTableName("sortkey_internal.goose_version"))
			must(t, err)
			_, err = p.UpTo(ctx, version)
			must(t, err)
		}
		install(last - 2)
		installDo(t, pool, complete, migrations.Up)
		installSame(t, "Up", installCatalog(t, pool, "sortkey"), whole)
		installDo(t, pool, c, migrations.Down)
		installGone(t, pool, "sortkey")
		install(last)
		installDo(t, pool, c, migrations.Check, migrations.Up, migrations.Down)
		installGone(t, pool, "sortkey")
	})
}

// A canceled call stops waiting for another one and leaves no lock behind.
func TestGiveUpWaiting(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const waiting = `EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			for name, f := range map[string]func(context.Context, *sql.DB, migrations.Config) error{"Up": migrations.Up, "Down": migrations.Down} {
				other := db.Conn(t)
				exec(t, other, "SELECT pg_advisory_lock(hashtextextended('sortkey migrations of sortkey', 0))")
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- f(ctx, pool, migrations.Config{}) }()
				waitUntil(t, db, waiting)
				cancel()
				select {
				case err := <-done:
					wantError(t, err, nil, "schema \"sortkey\"", "cancel") // lib/pq doesn't wrap the context's error
				case <-time.After(time.Minute):
					t.Fatalf("%s: expected the call to end with its context", name)
				}
				waitUntil(t, db, "NOT "+waiting)
				exec(t, other, "SELECT pg_advisory_unlock_all()")
				installGone(t, pool, "sortkey")
				installDo(t, pool, migrations.Config{}, migrations.Up, migrations.Down)
			}
		})
	})
}

// A role without CREATE on the database can install into existing schemas.
func TestExistingSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, c := t.Context(), migrations.Config{Schema: "ids"}
		name, pool := newRole(t, db, "installer")
		for _, grant := range []string{"", "CREATE SCHEMA ids; GRANT USAGE, CREATE ON SCHEMA ids TO " + name} {
			db.Exec(t, grant)
			wantError(t, migrations.Up(ctx, pool, c), nil, `create schemas "ids" and "ids_internal"`, "permission denied for database",
				"run GRANT CREATE ON DATABASE, or CREATE SCHEMA ids and ids_internal with AUTHORIZATION for this role")
		}
		db.Exec(t, "CREATE SCHEMA ids_internal; GRANT USAGE ON SCHEMA ids_internal TO "+name)
		wantError(t, migrations.Up(ctx, pool, c), nil, "permission denied for schema ids_internal")
		db.Exec(t, "GRANT CREATE ON SCHEMA ids_internal TO "+name)
		before := installCatalog(t, pool, "ids")
		for range 2 {
			installDo(t, pool, c, migrations.Up, migrations.Check, migrations.Down) // keeps the schemas, which the role doesn't own
			installSame(t, "Down", installCatalog(t, pool, "ids"), before)
		}
		// The same with the SQL for other tools.
		list := migrationsOf(t, c)
		file, err := migrations.SQL(c)
		must(t, err)
		with := migrations.Config{Schema: c.Schema, SnowflakeSI: complete.SnowflakeSI}
		add, err := migrations.AddSnowflakeSI(with)
		must(t, err)
		role := db.Conn(t, pgtest.Login(name))
		exec(t, role, file)
		exec(t, role, add)
		installDo(t, pool, with, migrations.Check)
		for _, m := range slices.Backward(list) {
			exec(t, role, m.Down)
		}
		installSame(t, "the down migrations", installCatalog(t, pool, "ids"), before)
		db.Exec(t, "ALTER SCHEMA ids OWNER TO "+name+"; ALTER SCHEMA ids_internal OWNER TO "+name)
		before = installCatalog(t, pool, "ids")
		for range 2 { // Down also keeps schemas that the role owns, since Up didn't create them
			installDo(t, pool, c, migrations.Up, migrations.Down)
			installSame(t, "Down", installCatalog(t, pool, "ids"), before)
		}
	})
}

// An installation in a shared schema doesn't change other objects there, such as
// goose's version table for a program's own migrations.
func TestSharedSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{Schema: "public"}
		db.Exec(t, "CREATE TABLE goose_db_version (version_id bigint); INSERT INTO goose_db_version VALUES (20)")
		installDo(t, pool, c, migrations.Up, migrations.Check, migrations.Down)
		wantRows(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace", "goose_db_version")
		wantRows(t, pool, "SELECT version_id FROM goose_db_version", "20")
		db.Exec(t, "DROP TABLE goose_db_version")
		installDo(t, pool, c, migrations.Up, migrations.Down)
		db.Exec(t, "CREATE TABLE public.stays ()") // checks that schema public still exists

		// If a tool's version table is in the schema, the schema stays.
		db.Exec(t, "CREATE SCHEMA sortkey")
		files, err := migrations.Goose(migrations.Config{})
		must(t, err)
		p, err := goose.NewProvider(goose.DialectPostgres, pool, files, goose.WithTableName("sortkey.goose_db_version"))
		must(t, err)
		for range 2 {
			_, err = p.Up(ctx)
			must(t, err)
			must(t, migrations.Check(ctx, pool, migrations.Config{}))
			_, err = p.DownTo(ctx, 0)
			must(t, err)
			wantRows(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'sortkey'::regnamespace AND relkind = 'r'", "goose_db_version")
		}
	})
}

// Two installations in one database are independent.
func TestTwoInstallations(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, conn := t.Context(), db.SQL(t), db.Conn(t)
		a := migrations.Config{Schema: "a", SnowflakeSI: complete.SnowflakeSI}
		b := migrations.Config{
			Schema:      "b",
			Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), WorkerBits: 10, SequenceBits: 12},
			SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), MachineBits: 3, IndexBits: 10},
		}
		installDo(t, pool, a, migrations.Up)
		aAlone := installCatalog(t, pool, "a")
		installDo(t, pool, b, migrations.Up)
		installSame(t, "a after Up of b", installCatalog(t, pool, "a"), aAlone)
		works := func(c migrations.Config) {
			t.Helper()
			installDo(t, pool, c, migrations.Check)
			for _, f := range formatsOf(c)[:2] {
				p, err := f.parts(pgtest.Value[string](t, conn, "SELECT "+f.nextOf(5)+"::text"))
				must(t, err)
				if p.node != 5 || time.Since(p.time).Abs() > time.Hour {
					t.Errorf("%s: expected a current ID of node 5, got %+v", c.Schema, p)
				}
			}
		}
		works(a)
		works(b)
		swapped := a
		swapped.Schema = "b"
		wantError(t, migrations.Up(ctx, pool, swapped), migrations.ErrLayout)
		must(t, migrations.Down(ctx, pool, b))
		installSame(t, "a after Down of b", installCatalog(t, pool, "a"), aAlone)
		installGone(t, pool, "b")
		works(a)
	})
}

// A base clock can be added later, once.
func TestAddSnowflakeSI(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		without, with := migrations.Config{}, complete
		want := installWhole(t, pool)
		installDo(t, pool, without, migrations.Up, migrations.Check)
		wantError(t, migrations.Check(ctx, pool, with), migrations.ErrOutdated, "SnowflakeSI", "base clock 2020-01-01T00:00:00.000Z", "run Up")
		db.Exec(t, "CREATE TABLE used (id sortkey.snowflake_si)")
		for _, names := range [][]string{{"snowflake_si"}, nil} {
			applied, err := migrations.Apply(ctx, pool, with)
			must(t, err)
			var got []string
			for _, m := range applied {
				got = append(got, m.Name)
			}
			wantLines(t, "Apply", got, names...)
			installDo(t, pool, with, migrations.Check)
			installSame(t, "a base clock added later", installCatalog(t, pool, "sortkey"), want)
		}
		// Programs without a base clock still work.
		installDo(t, pool, without, migrations.Check, migrations.Up)
		db.Exec(t, "DROP TABLE used")
		installDo(t, pool, without, migrations.Down)
		installGone(t, pool, "sortkey")

		// With another tool, the user adds a migration.
		list := migrationsOf(t, without)
		for _, m := range list {
			db.Exec(t, m.Up)
		}
		add, err := migrations.AddSnowflakeSI(with)
		must(t, err)
		db.Exec(t, add)
		installDo(t, pool, with, migrations.Check)
		installSame(t, "a base clock added later by a tool", installCatalog(t, pool, "sortkey"), want)
		for _, m := range slices.Backward(list) {
			db.Exec(t, m.Down)
		}
		installGone(t, pool, "sortkey")
	})
}

// An older version of the package doesn't change an installation by a later one. If only one
// of the two schemas was dropped, Up and Down name the remedy. Down keeps a schema that never
// had an installation.
func TestDamaged(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), complete
		db.Exec(t, "INSERT INTO sortkey.revision VALUES (1000, 'later')")
		before := installCatalog(t, pool, "sortkey")
		installDo(t, pool, c, migrations.Check, migrations.Up)
		wantError(t, migrations.Down(ctx, pool, c), nil, "migration 1000", "run Down of the version that installed it")
		installSame(t, "Down by an older version", installCatalog(t, pool, "sortkey"), before)

		db.Exec(t, "DROP SCHEMA sortkey CASCADE")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "run Up")
		before = installCatalog(t, pool, "sortkey")
		const remedy = "DROP SCHEMA sortkey_internal CASCADE"
		wantError(t, migrations.Up(ctx, pool, c), nil, `install schema "sortkey": schema "sortkey_internal" still has the internal functions`, "; run "+remedy)
		wantError(t, migrations.Down(ctx, pool, c), nil, `remove schema "sortkey": schema "sortkey_internal" still has the internal functions`, "; run "+remedy)
		installSame(t, "Up and Down", installCatalog(t, pool, "sortkey"), before)
		db.Exec(t, remedy)
		installDo(t, pool, c, migrations.Up, migrations.Check)

		db.Exec(t, "CREATE SCHEMA mine")
		installDo(t, pool, migrations.Config{Schema: "mine"}, migrations.Down)
		db.Exec(t, "DROP SCHEMA mine") // checks that it still exists
	})
}

// installWords are the keywords of PL/pgSQL, with the reserved ones before the bar.
// The server has no list of them.
const installWords = `all begin by case declare else end execute for foreach from if in into loop not null or strict then to using when while | absolute
	alias and array assert backward call chain close collate column column_name commit constant constraint constraint_name continue current cursor
	datatype debug default detail diagnostics do dump elseif elsif errcode error exception exit fetch first forward get hint import info insert is
	last log merge message message_text move next no notice open option perform pg_context pg_datatype_name pg_exception_context
	pg_exception_detail pg_exception_hint pg_routine_oid print_strict_params prior query raise relative return returned_sqlstate reverse
	rollback row_count rowtype schema schema_name scroll slice sqlstate stacked table table_name type use_column use_variable
	variable_conflict warning`

// Every valid schema name works without quotes, even if it is a keyword of the server. Reserved
// words of the server and of PL/pgSQL aren't valid.
func TestKeywords(t *testing.T) {
	reserved, _, _ := strings.Cut(installWords, "|")
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		words := columnOf(t, pool, "SELECT word FROM pg_get_keywords() ORDER BY 1")
		if len(words) < 400 {
			t.Fatalf("expected the server's keywords, got %d", len(words))
		}
		var all strings.Builder
		for _, w := range words {
			if (migrations.Config{Schema: w}).Validate() == nil {
				all.WriteString(strings.ReplaceAll(`CREATE SCHEMA $s; CREATE DOMAIN $s.d AS int; CREATE FUNCTION $s.f() RETURNS $s.d LANGUAGE sql RETURN 1;
					CREATE TABLE $s.t (id $s.d DEFAULT $s.f()); SELECT $s.t.id, $s.f(), 1::$s.d FROM $s.t;
					`, "$s", w))
			}
		}
		exec(t, db.Conn(t), all.String()+"ROLLBACK") // the error names the word
		for _, w := range append(columnOf(t, pool, "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"), strings.Fields(reserved)...) {
			wantError(t, migrations.Config{Schema: w}.Validate(), nil, w)
		}
	})
}

// installCalls returns SQL that calls the functions of schema sortkey, which can also have the name $s.
func installCalls() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; SET LOCAL $s.node = %d;\n", reserveNode("sortkey", installNode), installNode)
	for _, g := range genFormats() {
		fmt.Fprintf(&b, "SELECT sortkey.%[1]s_parts(id), sortkey.%[1]s_time(id), %[2]s FROM (SELECT %[3]s id) q;\n",
			g.name, g.call("from_text", g.call("text", "id")), g.nextOf(g.node))
		if g.name != "spread64" {
			fmt.Fprintf(&b, "SELECT $s.%s_floor(now());\n", g.name)
		}
		if g.hasNodes() {
			fmt.Fprintf(&b, "SELECT sortkey.%[1]s_node(%[2]s), sortkey.%[1]s_at(now(), 1);\n", g.name, g.next())
		}
	}
	b.WriteString(`SELECT $s.sno_partman_decoder($s.sno_floor(now())::text), $s.uid60_at(now(), 1);
		SELECT $s.claim_node('p', 4, 'l', '{[1,2)}', 'h', 60000, 1000, 2000);
		SELECT $s.renew_node('p', 0, 1, 'h', 60000, 3000), $s.renew_node('p', 0, 1, 'nobody', 60000, 3000), $s.release_node('p', 0, 1, 'h', 2500);
		SELECT $s.reserve_node('p', 3, 'x'), $s.unreserve_node('p', 3);
		SELECT FROM $s.node_status, $s.node_defaults;
		CREATE TABLE parted (id $s.snowflake PRIMARY KEY DEFAULT $s.next_snowflake(1)) PARTITION BY RANGE (id);
		SELECT $s.manage_partitions('parted', '1 day', retention => '30 days', retention_action => 'drop');
		SELECT $s.next_partition_step('parted', now(), '1 s', '{}');
		INSERT INTO parted VALUES (DEFAULT);
		CALL $s.maintain_partitions(dry_run => true);
		SELECT $s.unmanage_partitions('parted');
		DROP TABLE parted;
		`)
	return b.String()
}

// The functions work in a schema of any valid name: names of variables, a keyword of
// PL/pgSQL, and the longest name.
func TestSchemaNames(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		for _, w := range []string{"absolute", "found", "value", "unit", "pool", "known", "snowflake", strings.Repeat("a", 54)} {
			var b strings.Builder
			b.WriteString("BEGIN;\n")
			list := migrationsOf(t, migrations.Config{Schema: w, SnowflakeSI: complete.SnowflakeSI})
			for _, m := range list {
				b.WriteString(m.Up)
			}
			b.WriteString(strings.NewReplacer("$s.", w+".", "sortkey.", w+".").Replace(installCalls()))
			for _, m := range slices.Backward(list) {
				b.WriteString(m.Down)
			}
			b.WriteString("ROLLBACK")
			db.Exec(t, b.String()) // a session that caches the functions of many schemas would get slow
		}
	})
}

// installFunction matches a function in PL/pgSQL, in the text of a migration.
var installFunction = regexp.MustCompile(`(?ms)^CREATE ((?:FUNCTION|PROCEDURE) (?:[^\n]+\n)+?    LANGUAGE plpgsql(?:[^\n]*\n)(?:    [^\n]+\n)*AS \$\$\n.*?\n\$\$;)`)

// CREATE FUNCTION accepts all functions in PL/pgSQL in a schema whose name is any of its
// keywords. In other statements, the name is one for TestKeywords.
func TestSchemaKeywords(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		functions := pgtest.Value[int](t, conn, `SELECT count(*) FROM pg_proc WHERE pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace)
			AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')`)
		_, keywords, _ := strings.Cut(installWords, "|")
		valid := 0
		for _, w := range strings.Fields(keywords) {
			list, err := migrations.List(migrations.Config{Schema: w, SnowflakeSI: complete.SnowflakeSI})
			if err != nil {
				continue // Validate rejects it
			}
			valid++
			var b strings.Builder
			fmt.Fprintf(&b, "BEGIN; ALTER SCHEMA sortkey RENAME TO %s; ALTER SCHEMA sortkey_internal RENAME TO %[1]s_internal;\n", w)
			n := 0
			for _, m := range list {
				for _, f := range installFunction.FindAllStringSubmatch(m.Up, -1) {
					b.WriteString("CREATE OR REPLACE " + f[1] + "\n")
					n++
				}
			}
			if n < functions { // one more since Postgres 18, where next_uuid7 is in SQL
				t.Fatalf("expected the %d functions of the installation, got %d", functions, n)
			}
			exec(t, conn, b.String()+"ROLLBACK")
		}
		if valid < 50 {
			t.Errorf("expected most keywords to be valid names, got %d", valid)
		}
	})
}
