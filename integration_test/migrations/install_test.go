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
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// installCatalog returns a description of the two schemas of an installation from the
// catalog, one line per property. It omits the version tables of tools.
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
			FROM pg_class c JOIN s ON relnamespace = s.oid WHERE NOT starts_with(relname, 'goose_')
		UNION ALL SELECT format('sequence %s by %s from %s to %s, starts %s, caches %s, %s', seqrelid::regclass, seqincrement, seqmin, seqmax, seqstart, seqcache, seqtypid::regtype)
			FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid JOIN s ON relnamespace = s.oid WHERE NOT starts_with(relname, 'goose_')
		UNION ALL SELECT format('column %s %s %s %s %s', attrelid::regclass, attname, atttypid::regtype, attnotnull, pg_get_expr(adbin, adrelid))
			FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN s ON relnamespace = s.oid LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum
			WHERE attnum > 0 AND relkind = 'r' AND relname IN ('revision', 'layout')
		UNION ALL SELECT format('schema %s %s', nspname, nspacl) FROM pg_namespace JOIN s USING (oid, nspname)
		ORDER BY 1`, schema)
	if hasInstallTable(t, db, schema, "layout") {
		for _, q := range []string{"SELECT format('layout %s: %s', format, layout) FROM " + schema + ".layout ORDER BY 1",
			"SELECT format('revision %s: %s', version, name) FROM " + schema + ".revision ORDER BY 1"} {
			lines = append(lines, columnOf(t, db, q)...)
		}
	}
	return lines
}

func hasInstallTable(t testing.TB, db *sql.DB, schema, table string) (there bool) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), "SELECT to_regclass($1) IS NOT NULL", schema+"."+table).Scan(&there))
	return there
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
	if left := installCatalog(t, db, schema); len(left) != 0 {
		t.Fatalf("expected nothing of %s, got %v", schema, left)
	}
}

// installApplied returns the versions that Status reports as installed.
func installApplied(t testing.TB, db *sql.DB, c migrations.Config) []int {
	t.Helper()
	status, err := migrations.Status(t.Context(), db, c)
	must(t, err)
	list, err := migrations.List(c)
	must(t, err)
	if len(status) != len(list) {
		t.Fatalf("expected the status of %d migrations, got %d", len(list), len(status))
	}
	var applied []int
	for i, s := range status {
		if s.Version != list[i].Version || s.Name != list[i].Name {
			t.Errorf("expected migration %d (%s), got %d (%s)", list[i].Version, list[i].Name, s.Version, s.Name)
		}
		if s.AppliedAt.IsZero() {
			continue
		}
		if age := time.Since(s.AppliedAt); age < -time.Hour || age > time.Hour {
			t.Errorf("migration %d: expected an AppliedAt of now, got %s ago", s.Version, age)
		}
		applied = append(applied, s.Version)
	}
	return applied
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
		all, err := migrations.List(migrations.Config{})
		must(t, err)
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			pool.SetMaxOpenConns(1)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // in case it waits for a second connection
			defer cancel()
			c := complete
			everything := `SELECT format('%s %s', classid::regclass, objid) FROM pg_depend WHERE classid NOT IN ('pg_rewrite'::regclass)
				AND refclassid = 'pg_namespace'::regclass ORDER BY 1`
			before := columnOf(t, pool, everything)
			var first []string
			for range 2 {
				if applied := installApplied(t, pool, c); len(applied) != 0 {
					t.Errorf("expected no migration to be applied before Up, got %v", applied)
				}
				must(t, migrations.Up(ctx, pool, c))
				catalog := installCatalog(t, pool, "sortkey")
				if first == nil {
					first = catalog
				}
				installSame(t, "Up after Down", catalog, first)
				must(t, migrations.Up(ctx, pool, c))
				installSame(t, "Up twice", installCatalog(t, pool, "sortkey"), first)
				must(t, migrations.Check(ctx, pool, c))
				if applied := installApplied(t, pool, c); len(applied) != len(all) {
					t.Errorf("expected all migrations to be applied, got %v", applied)
				}
				must(t, migrations.Down(ctx, pool, c))
				must(t, migrations.Down(ctx, pool, c))
				installGone(t, pool, "sortkey")
				installSame(t, "Down", columnOf(t, pool, everything), before)
			}
		})
	})
}

// Down changes nothing while other objects depend on the installation, and names
// them. It keeps the user's own objects in the schema.
func TestDownInUse(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		installDrivers(t, db, func(t *testing.T, pool *sql.DB) {
			ctx, c := t.Context(), migrations.Config{}
			must(t, migrations.Up(ctx, pool, c))
			// Dependencies on the last migration, on one in the middle, and on the first possible one.
			dependents := []struct{ create, drop, dependent string }{
				{"CREATE TABLE orders (id sortkey.sno PRIMARY KEY DEFAULT sortkey.next_sno(1, 2))", "DROP TABLE orders", "default value for column id of table public.orders"},
				{"CREATE TABLE orders (id sortkey.sno PRIMARY KEY)", "DROP TABLE orders", "column id of table public.orders"},
				{"CREATE TABLE orders (id bigint DEFAULT sortkey.next_uid60())", "DROP TABLE orders", "default value for column id of table public.orders"},
				{"CREATE VIEW recent AS SELECT sortkey.snowflake_time(1)", "DROP VIEW recent", "view public.recent"},
				{"CREATE TABLE orders (id sortkey.snowflake)", "DROP TABLE orders", "column id of table public.orders"},
				{"CREATE TABLE orders (id sortkey.snowflake) PARTITION BY RANGE (id)", "DROP TABLE orders", "table public.orders depends on type sortkey.snowflake"},
				{"CREATE TABLE sortkey.orders (id sortkey.snowflake_si)", "DROP TABLE sortkey.orders", "column id of table sortkey.orders"},
			}
			if strings.HasSuffix(t.Name(), "/pq") { // whose errors have the names, too
				dependents = dependents[:1]
			}
			for _, used := range dependents {
				db.Exec(t, used.create)
				catalog := installCatalog(t, pool, "sortkey")
				wantError(t, migrations.Down(ctx, pool, c), nil, used.dependent, "drop or change the dependent objects first", `schema "sortkey"`)
				installSame(t, "Down after "+used.create, installCatalog(t, pool, "sortkey"), catalog)
				must(t, migrations.Check(ctx, pool, c))
				must(t, migrations.Up(ctx, pool, c))
				db.Exec(t, used.drop)
			}

			db.Exec(t, "CREATE TABLE sortkey.own (n int); INSERT INTO sortkey.own VALUES (42)")
			must(t, migrations.Down(ctx, pool, c))
			var n int
			must(t, pool.QueryRowContext(ctx, "SELECT n FROM sortkey.own").Scan(&n))
			if got := columnOf(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'sortkey'::regnamespace"); n != 42 || !slices.Equal(got, []string{"own"}) {
				t.Errorf("expected only the user's table, with its row, got %v", got)
			}
			must(t, migrations.Up(ctx, pool, c))
			must(t, migrations.Check(ctx, pool, c))
			db.Exec(t, "DROP TABLE sortkey.own")
			must(t, migrations.Down(ctx, pool, c))
			installGone(t, pool, "sortkey")
		})
	})
}

// DROP SCHEMA CASCADE, unlike Down, drops columns and tables, as documented. It keeps
// objects that don't depend on the schema.
func TestDropSchemaCascade(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		for _, comment := range columnOf(t, pool, "SELECT obj_description(oid, 'pg_type') FROM pg_type WHERE typnamespace = 'sortkey'::regnamespace AND typtype = 'd'") {
			if !strings.HasSuffix(comment, "DROP SCHEMA sortkey CASCADE drops the columns of this type.") {
				t.Errorf("expected a warning in the comment, got %s", comment)
			}
		}
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
			DROP SCHEMA sortkey, sortkey_internal CASCADE`)
		for query, want := range map[string]string{
			"SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute WHERE attrelid = 'of_domain'::regclass AND attnum > 0 AND NOT attisdropped": "n",
			"SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute WHERE attrelid = 'of_base'::regclass AND attnum > 0 AND NOT attisdropped":   "id referring",
			"SELECT string_agg(conname, ' ' ORDER BY conname) FROM pg_constraint WHERE conrelid = 'of_base'::regclass AND contype <> 'n'":                   "by_itself of_base_pkey",
			"SELECT count(*) FROM pg_constraint WHERE conrelid = 'of_domain'::regclass":                                                                     "0",
			"SELECT count(*) FROM pg_class WHERE relname LIKE 'parted%'":                                                                                    "0",
			"SELECT count(*) FROM pg_index WHERE indrelid = 'of_base'::regclass":                                                                            "1",
			"SELECT count(*) FROM pg_attrdef WHERE adrelid = 'of_base'::regclass":                                                                           "0",
			"SELECT n FROM of_domain":                      "42",
			"INSERT INTO of_base VALUES (-1) RETURNING id": "-1",
		} {
			if got := columnOf(t, pool, query); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: expected %s, got %v", query, want, got)
			}
		}
		_, err := pool.ExecContext(ctx, "INSERT INTO of_base VALUES (1, -1)")
		wantError(t, err, nil, "by_itself")
	})
}

// A change of a column from a domain to its base type doesn't rewrite the table.
func TestDomainToBase(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		const files = "SELECT pg_relation_filenode(c)::text FROM unnest(ARRAY['t'::regclass, 't_pkey'::regclass]) c"
		db.Exec(t, "CREATE TABLE t (id sortkey.snowflake PRIMARY KEY, owner sortkey.sno, code sortkey.sno_as_text); INSERT INTO t VALUES (1)")
		before := columnOf(t, pool, files)
		db.Exec(t, `ALTER TABLE t ALTER COLUMN id TYPE bigint, ALTER COLUMN owner TYPE uuid, ALTER COLUMN code TYPE text COLLATE "C"`)
		if after := columnOf(t, pool, files); !slices.Equal(after, before) {
			t.Errorf("expected the same files of the table and its index, %v, got %v", before, after)
		}
		must(t, migrations.Down(t.Context(), pool, migrations.Config{}))
	})
}

// A failed migration leaves the database unchanged, and the next Up continues there.
func TestBrokenUp(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool, ctx, c := db.SQL(t), t.Context(), complete
		must(t, migrations.Up(ctx, pool, c))
		whole := installCatalog(t, pool, "sortkey")
		must(t, migrations.Down(ctx, pool, c))

		// One obstacle for each of the first seven migrations. The conflict is near the end of the migration, so most of it has to be rolled back.
		obstacles := []string{
			"FUNCTION sortkey_internal.sequence_bits(text, timestamptz, integer, integer) RETURNS bigint LANGUAGE sql RETURN $3",
			"VIEW sortkey.node_defaults AS SELECT",
			"FUNCTION sortkey.snowflake_at(timestamptz, integer, integer) RETURNS bigint LANGUAGE sql RETURN $2",
			"SEQUENCE sortkey_internal.snowflake_si_clock",
			"SEQUENCE sortkey_internal.uid60_clock",
			"SEQUENCE sortkey_internal.spread64_clock",
			"SEQUENCE sortkey_internal.sno_clock",
		}
		kindAndName := regexp.MustCompile(`^\w+ [\w.]+`)
		drop := func(obstacle string) string { return "DROP " + kindAndName.FindString(obstacle) }
		// The catalogs after the migrations before each obstacle.
		const schemas = "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal; "
		db.Exec(t, schemas)
		list, err := migrations.List(c)
		must(t, err)
		var wants [][]string
		for i, o := range obstacles {
			db.Exec(t, "CREATE "+o)
			wants = append(wants, installCatalog(t, pool, "sortkey"))
			db.Exec(t, drop(o)+"; "+list[i].Up)
		}
		db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE; "+schemas)

		for i, o := range obstacles {
			broken, done := i+1, list[max(i-1, 0):i]
			db.Exec(t, "CREATE "+o)
			for _, done := range [][]migrations.Migration{done, nil} {
				got, err := migrations.Apply(ctx, pool, c)
				wantError(t, err, nil, fmt.Sprintf("migration %d (%s)", broken, list[i].Name), "already exists")
				if !slices.Equal(got, done) {
					t.Errorf("expected Apply to return %d migrations before migration %d fails, got %d", len(done), broken, len(got))
				}
				installSame(t, fmt.Sprintf("migration %d broken", broken), installCatalog(t, pool, "sortkey"), wants[i])
			}
			if applied := installApplied(t, pool, c); len(applied) != broken-1 {
				t.Errorf("expected %d migrations to be applied, got %v", broken-1, applied)
			}
			sentinel := migrations.ErrOutdated
			if broken == 1 {
				sentinel = migrations.ErrNotInstalled
			}
			wantError(t, migrations.Check(ctx, pool, c), sentinel, "run Up")
			db.Exec(t, drop(o))
		}
		must(t, migrations.Up(ctx, pool, c))
		installSame(t, "Up after the causes are removed", installCatalog(t, pool, "sortkey"), whole)

		// Down of a partial installation.
		must(t, migrations.Down(ctx, pool, c))
		db.Exec(t, "CREATE SEQUENCE sortkey_internal.uid60_clock") // in the schema, which this test has created
		wantError(t, migrations.Up(ctx, pool, c), nil, "already exists")
		db.Exec(t, "DROP SEQUENCE sortkey_internal.uid60_clock")
		must(t, migrations.Down(ctx, pool, c))
		if left := installCatalog(t, pool, "sortkey"); len(left) != 2 {
			t.Errorf("expected two empty schemas after Down of a partial installation, got %v", left)
		}
	})
}

// Concurrent calls of Up, and of Down, succeed.
func TestConcurrently(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const processes = 8
		shared, c := db.SQL(t), complete
		shared.SetMaxOpenConns(2)
		together := func(f func(pool *sql.DB) error) {
			t.Helper()
			var g sync.WaitGroup
			errs := make([]error, processes)
			start := make(chan struct{})
			for i := range processes {
				pool := shared
				if i%2 == 0 {
					pool = db.SQL(t)
				}
				g.Go(func() { <-start; errs[i] = f(pool) })
			}
			close(start)
			g.Wait()
			must(t, errors.Join(errs...))
		}
		list, err := migrations.List(c)
		must(t, err)
		want := []string{"0"} // the initial row of goose
		for _, m := range list {
			want = append(want, strconv.Itoa(m.Version))
		}
		for range pgtest.Scaled(1, 3) {
			results := make(chan []migrations.Migration, processes)
			together(func(pool *sql.DB) error {
				applied, err := migrations.Apply(t.Context(), pool, c)
				if err != nil {
					return err
				}
				results <- applied
				return migrations.Check(t.Context(), pool, c)
			})
			close(results)
			var applied []migrations.Migration
			for r := range results {
				applied = append(applied, r...)
			}
			slices.SortFunc(applied, func(a, b migrations.Migration) int { return cmp.Compare(a.Version, b.Version) })
			if !slices.Equal(applied, list) {
				t.Errorf("expected one call to return each migration, got %d of %d", len(applied), len(list))
			}
			if got := columnOf(t, shared, "SELECT version_id FROM sortkey_internal.goose_version ORDER BY id"); !slices.Equal(got, want) {
				t.Errorf("expected each migration once, got %v", got)
			}
			together(func(pool *sql.DB) error { return migrations.Down(t.Context(), pool, c) })
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
		after := &installAfterCommit{do: func() { must(t, migrations.Up(t.Context(), db.SQL(t), quick)) }}
		pool := db.SQL(t, pgtest.Config(func(c *pgx.ConnConfig) { c.Tracer = after }))
		wantError(t, migrations.Up(t.Context(), pool, late), migrations.ErrLayout,
			"epoch 1970-01-01T00:00:00.001Z", "epoch 1970-01-01T00:00:00.002Z")
		must(t, migrations.Check(t.Context(), pool, quick))
	})
}

// installAfterCommit calls do after the first commit.
type installAfterCommit struct {
	do   func()
	once sync.Once
}

type installStatement struct{} // the key of a statement in a context

func (a *installAfterCommit) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, installStatement{}, d.SQL)
}

func (a *installAfterCommit) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(installStatement{}) == "commit" {
		a.once.Do(a.do)
	}
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
				must(t, migrations.Up(t.Context(), pool, migrations.Config{}))
				must(t, migrations.Down(t.Context(), pool, migrations.Config{}))
			}
		})
	})
}

// A role without CREATE on the database can install into existing schemas.
func TestExistingSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, c := t.Context(), migrations.Config{Schema: "ids"}
		name, pool := newRole(t, db, "installer")
		lacks := func() {
			t.Helper()
			wantError(t, migrations.Up(ctx, pool, c), nil, `create schemas "ids" and "ids_internal"`, "permission denied for database",
				"run GRANT CREATE ON DATABASE, or CREATE SCHEMA ids and ids_internal with AUTHORIZATION for this role")
		}
		lacks()
		db.Exec(t, "CREATE SCHEMA ids; GRANT USAGE, CREATE ON SCHEMA ids TO "+name)
		lacks()
		db.Exec(t, "CREATE SCHEMA ids_internal; GRANT USAGE ON SCHEMA ids_internal TO "+name)
		wantError(t, migrations.Up(ctx, pool, c), nil, "permission denied for schema ids_internal")
		db.Exec(t, "GRANT CREATE ON SCHEMA ids_internal TO "+name)
		before := installCatalog(t, pool, "ids")
		for range 2 {
			must(t, migrations.Up(ctx, pool, c))
			must(t, migrations.Check(ctx, pool, c))
			must(t, migrations.Down(ctx, pool, c)) // keeps the schemas, which the role doesn't own
			installSame(t, "Down", installCatalog(t, pool, "ids"), before)
		}
		// The same with the SQL for other tools.
		list, err := migrations.List(c)
		must(t, err)
		file, err := migrations.SQL(c)
		must(t, err)
		with := migrations.Config{Schema: c.Schema, SnowflakeSI: complete.SnowflakeSI}
		add, err := migrations.AddSnowflakeSI(with)
		must(t, err)
		run := func(statements string) {
			t.Helper()
			if _, err := pool.ExecContext(ctx, statements); err != nil {
				t.Error(err)
			}
		}
		run(file)
		run(add)
		must(t, migrations.Check(ctx, pool, with))
		for _, m := range slices.Backward(list) {
			run(m.Down)
		}
		installSame(t, "the down migrations", installCatalog(t, pool, "ids"), before)
		db.Exec(t, "ALTER SCHEMA ids OWNER TO "+name+"; ALTER SCHEMA ids_internal OWNER TO "+name)
		for range 2 { // Down also keeps schemas that the role owns, since Up didn't create them
			must(t, migrations.Up(ctx, pool, c))
			must(t, migrations.Down(ctx, pool, c))
			if left := installCatalog(t, pool, "ids"); len(left) != 2 {
				t.Errorf("expected two empty schemas, got %v", left)
			}
		}
	})
}

// An installation in a shared schema doesn't change other objects there, such as
// goose's version table for a program's own migrations.
func TestSharedSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{Schema: "public"}
		db.Exec(t, "CREATE TABLE goose_db_version (version_id bigint); INSERT INTO goose_db_version VALUES (20)")
		before := columnOf(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
		must(t, migrations.Up(ctx, pool, c))
		must(t, migrations.Check(ctx, pool, c))
		must(t, migrations.Down(ctx, pool, c))
		if after := columnOf(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"); !slices.Equal(after, before) {
			t.Errorf("expected %v, got %v", before, after)
		}
		db.Exec(t, "DROP TABLE goose_db_version")
		must(t, migrations.Up(ctx, pool, c))
		must(t, migrations.Down(ctx, pool, c))
		db.Exec(t, "CREATE TABLE public.stays ()") // checks that schema public still exists
	})
}

// Two installations in one database are independent.
func TestTwoInstallations(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		a := migrations.Config{Schema: "a", SnowflakeSI: complete.SnowflakeSI}
		b := migrations.Config{
			Schema:      "b",
			Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), WorkerBits: 10, SequenceBits: 12},
			SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), MachineBits: 3, IndexBits: 10},
		}
		must(t, migrations.Up(ctx, pool, a))
		aAlone := installCatalog(t, pool, "a")
		must(t, migrations.Up(ctx, pool, b))
		installSame(t, "a after Up of b", installCatalog(t, pool, "a"), aAlone)
		works := func(c migrations.Config) {
			t.Helper()
			must(t, migrations.Check(ctx, pool, c))
			var id idtype.Snowflake
			var si idtype.SnowflakeSI
			var when, siWhen time.Time
			must(t, pool.QueryRowContext(ctx, strings.ReplaceAll("SELECT id, $s.snowflake_time(id), si, $s.snowflake_si_time(si) FROM (SELECT $s.next_snowflake(7) id, $s.next_snowflake_si(5) si OFFSET 0) q", "$s", c.Schema)).
				Scan(&id, &when, &si, &siWhen))
			p, err := c.Snowflake.Parts(id)
			must(t, err)
			q, err := c.SnowflakeSI.Parts(si)
			must(t, err)
			if p.Worker != 7 || q.Machine != 5 || !p.Time.Equal(when) || !q.Time.Equal(siWhen) || time.Since(when).Abs() > time.Hour {
				t.Errorf("expected current IDs of worker 7 and machine 5, got %+v and %+v", p, q)
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
		must(t, migrations.Up(ctx, pool, with))
		want := installCatalog(t, pool, "sortkey")
		must(t, migrations.Down(ctx, pool, without))

		must(t, migrations.Up(ctx, pool, without))
		must(t, migrations.Check(ctx, pool, without))
		wantError(t, migrations.Check(ctx, pool, with), migrations.ErrOutdated, "SnowflakeSI", "base clock 2020-01-01T00:00:00.000Z", "run Up")
		db.Exec(t, "CREATE TABLE used (id sortkey.snowflake_si)")
		for _, names := range [][]string{{"snowflake_si"}, nil} {
			applied, err := migrations.Apply(ctx, pool, with)
			must(t, err)
			if got := installNames(applied); !slices.Equal(got, names) {
				t.Errorf("expected Apply to return %v, got %v", names, got)
			}
			must(t, migrations.Check(ctx, pool, with))
			installSame(t, "a base clock added later", installCatalog(t, pool, "sortkey"), want)
		}
		// Programs without a base clock still work.
		must(t, migrations.Check(ctx, pool, without))
		must(t, migrations.Up(ctx, pool, without))
		db.Exec(t, "DROP TABLE used")
		must(t, migrations.Down(ctx, pool, without))
		installGone(t, pool, "sortkey")

		// With another tool, the user adds a migration.
		list, err := migrations.List(without)
		must(t, err)
		for _, m := range list {
			db.Exec(t, m.Up)
		}
		add, err := migrations.AddSnowflakeSI(with)
		must(t, err)
		db.Exec(t, add)
		must(t, migrations.Check(ctx, pool, with))
		installSame(t, "a base clock added later by a tool", installCatalog(t, pool, "sortkey"), want)
		installRemove(t, db, list)
	})
}

func installNames(list []migrations.Migration) (names []string) {
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

// installRemove runs the down migrations by hand and checks that nothing is left.
func installRemove(t testing.TB, db *pgtest.DB, list []migrations.Migration) {
	t.Helper()
	for _, m := range slices.Backward(list) {
		db.Exec(t, m.Down)
	}
	installGone(t, db.SQL(t), "sortkey")
}

// An older version of the package doesn't change an installation by a later one.
func TestLaterVersion(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		db.Exec(t, "INSERT INTO sortkey.revision VALUES (1000, 'later'); INSERT INTO sortkey_internal.goose_version (version_id, is_applied) VALUES (1000, true)")
		catalog := installCatalog(t, pool, "sortkey")
		must(t, migrations.Check(ctx, pool, c))
		must(t, migrations.Up(ctx, pool, c))
		wantError(t, migrations.Down(ctx, pool, c), nil, "migration 1000", "run Down of the version that installed it")
		installSame(t, "Down by an older version", installCatalog(t, pool, "sortkey"), catalog)
	})
}

// Every valid schema name works without quotes, even if it is a keyword of the
// server.
func TestKeywords(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		words := columnOf(t, pool, "SELECT word FROM pg_get_keywords() ORDER BY 1")
		if len(words) < 400 {
			t.Fatalf("expected the server's keywords, got %d", len(words))
		}
		reserved := columnOf(t, pool, "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U' ORDER BY 1")
		var refused []string
		var all strings.Builder
		for _, w := range words {
			if (migrations.Config{Schema: w}).Validate() != nil {
				refused = append(refused, w)
				continue
			}
			all.WriteString(strings.ReplaceAll(`CREATE SCHEMA $s; CREATE DOMAIN $s.d AS int; CREATE FUNCTION $s.f() RETURNS $s.d LANGUAGE sql RETURN 1;
				CREATE TABLE $s.t (id $s.d DEFAULT $s.f()); SELECT $s.t.id, $s.f(), 1::$s.d FROM $s.t;
				`, "$s", w))
		}
		if _, err := pool.ExecContext(t.Context(), all.String()+"ROLLBACK"); err != nil { // the error names the word
			t.Errorf("a valid schema name doesn't work without quotes: %v", err)
		}
		for _, w := range reserved {
			if !slices.Contains(refused, w) {
				t.Errorf("reserved word %s: expected an error from Validate", w)
			}
		}
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

// The functions work in a schema of any valid name: keywords of PL/pgSQL, names of
// variables, and the longest name.
func TestSchemaNames(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		pool.SetMaxIdleConns(-1) // a session that caches the functions of many schemas gets slow
		reserved, others, _ := strings.Cut(installWords, "|")
		for _, w := range strings.Fields(reserved) {
			wantError(t, migrations.Config{Schema: w}.Validate(), nil, w)
		}
		words := append(strings.Fields(others), "found", "value", "unit", "pool", "known", "snowflake", strings.Repeat("a", 54))
		if !pgtest.Thorough() {
			words = words[len(words)-10:]
		}
		for _, w := range words {
			c := migrations.Config{Schema: w, SnowflakeSI: complete.SnowflakeSI}
			list, err := migrations.List(c)
			if err != nil {
				continue // Validate rejects it
			}
			var b strings.Builder
			b.WriteString("BEGIN;\n")
			for _, m := range list {
				b.WriteString(m.Up)
			}
			fmt.Fprintf(&b, "%s; SET LOCAL $s.node = %d;\n", reserveNode("sortkey", installNode), installNode)
			for _, g := range genFormats() {
				fmt.Fprintf(&b, "SELECT sortkey.%[1]s_parts(id), sortkey.%[1]s_time(id), %[2]s FROM (SELECT %[3]s id) q;\n",
					g.name, g.fromText(g.text("id")), g.nextOf(g.node))
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
			for _, m := range slices.Backward(list) {
				b.WriteString(m.Down)
			}
			b.WriteString("ROLLBACK")
			if _, err := pool.ExecContext(t.Context(), strings.NewReplacer("$s.", w+".", "sortkey.", w+".").Replace(b.String())); err != nil {
				t.Errorf("schema %s: %v", w, err)
			}
		}
	})
}

// installPublic are the names in the schema of an installation. Users call, read or
// write each of these objects.
var installPublic = strings.Fields(`
	domain:sno domain:sno_as_text domain:snowflake domain:snowflake_si domain:spread64 domain:uid60 domain:uuid7
	next_sno next_snowflake next_snowflake_si next_spread64 next_uid60 next_uuid7
	sno_at snowflake_at snowflake_si_at spread64_at uid60_at
	sno_floor snowflake_floor snowflake_si_floor uid60_floor uuid7_floor
	sno_node snowflake_node snowflake_si_node spread64_node
	sno_parts snowflake_parts snowflake_si_parts spread64_parts uid60_parts
	sno_time snowflake_time snowflake_si_time spread64_time uid60_time uuid7_time
	sno_text spread64_text uid60_text sno_from_text spread64_from_text uid60_from_text typeid_text typeid_from_text sno_partman_decoder
	create_node_pool claim_node renew_node release_node reserve_node unreserve_node prepare_citus_worker
	manage_partitions unmanage_partitions plan_partitions next_partition_step maintain_partitions
	relation:revision relation:layout relation:node_pool relation:node_lease relation:node_status relation:node_defaults relation:node_problems
	relation:partitioned_table relation:partition_log relation:partition_horizon`)

// The schema has no internal objects, all of its objects have comments, and no type and
// function have the same name.
func TestPublicObjects(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		lines := columnOf(t, pool, `
			WITH s AS (SELECT 'sortkey'::regnamespace AS oid)
			SELECT DISTINCT proname || CASE WHEN obj_description(p.oid, 'pg_proc') IS NULL THEN ' without a comment' ELSE '' END FROM pg_proc p JOIN s ON pronamespace = s.oid
			UNION ALL SELECT 'domain:' || typname || CASE WHEN obj_description(t.oid, 'pg_type') IS NULL THEN ' without a comment' ELSE '' END
				FROM pg_type t JOIN s ON typnamespace = s.oid WHERE typtype = 'd'
			UNION ALL SELECT 'relation:' || relname || CASE WHEN obj_description(c.oid, 'pg_class') IS NULL THEN ' without a comment' ELSE '' END
				FROM pg_class c JOIN s ON relnamespace = s.oid WHERE relkind <> 'i'
			UNION ALL SELECT 'type:' || typname FROM pg_type t JOIN s ON typnamespace = s.oid WHERE typtype <> 'd' AND typrelid = 0 AND typelem = 0
			UNION ALL SELECT 'operator:' || oprname FROM pg_operator o JOIN s ON oprnamespace = s.oid
			UNION ALL SELECT 'collation:' || collname FROM pg_collation o JOIN s ON collnamespace = s.oid`)
		slices.Sort(lines)
		want := slices.Sorted(slices.Values(installPublic))
		installSame(t, "the schema", lines, want)
		if len(lines) != len(want) {
			t.Errorf("expected %d names, got %d", len(want), len(lines))
		}

		// Otherwise a call with a literal or a parameter would be a cast.
		if both := columnOf(t, pool, `SELECT typname FROM pg_type t JOIN pg_proc p ON p.proname = t.typname AND p.pronamespace = t.typnamespace
			WHERE typnamespace = 'sortkey'::regnamespace ORDER BY 1`); len(both) != 0 {
			t.Errorf("expected no name of both a type and a function, got %v", both)
		}
		if got := columnOf(t, pool, "SELECT sortkey.sno_text('6272706b-3471-3732-7877-66326d36336c')"); !slices.Equal(got, []string{"brpk4q72xwf2m63l"}) {
			t.Errorf("expected the text of the sno, got %v", got)
		}
		var text string
		must(t, pool.QueryRowContext(t.Context(), "SELECT sortkey.sno_text($1)", idtype.MustParseSno("brpk4q72xwf2m63l")).Scan(&text))
		if text != "brpk4q72xwf2m63l" {
			t.Errorf("expected the text of the sno, got %s", text)
		}
	})
}

// The definition of a next_ function, which a user can read in psql with \sf, is a
// short expression. No function qualifies operators.
func TestReadableFunctions(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		definitions := columnOf(t, pool, `SELECT pg_get_functiondef(oid) FROM pg_proc
			WHERE pronamespace = 'sortkey'::regnamespace AND proname ~ '^next_(snowflake|snowflake_si|uid60|spread64|sno)$'`)
		if len(definitions) != 9 {
			t.Errorf("expected 9 next_ functions, got %d", len(definitions))
		}
		for _, d := range definitions {
			_, body, _ := strings.Cut(d, "LANGUAGE sql\n")
			body = strings.TrimSpace(body)
			if !strings.HasPrefix(body, "RETURN ") || strings.Count(body, "\n") > 2 || len(body) > 160 || strings.Contains(body, "OPERATOR(") {
				t.Errorf("expected a body of up to three lines and 160 characters, got\n%s", d)
			}
		}
		for _, name := range columnOf(t, pool, `SELECT oid::regprocedure FROM pg_proc
			WHERE pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND pg_get_functiondef(oid) ILIKE '%operator(pg\_catalog%'`) {
			t.Errorf("expected no qualified operators in %s", name)
		}
		// With standard_conforming_strings off, a backslash in a string means something else.
		for _, name := range columnOf(t, pool, `SELECT oid::regprocedure FROM pg_proc
			WHERE pronamespace IN ('sortkey'::regnamespace, 'sortkey_internal'::regnamespace) AND prosecdef AND strpos(prosrc, E'\\') > 0`) {
			t.Errorf("expected no backslashes in %s, which has the privileges of its owner", name)
		}
	})
}

// If only one of the two schemas was dropped, Up and Down name the remedy. Down keeps a
// schema that never had an installation.
func TestDroppedSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), complete
		must(t, migrations.Up(ctx, pool, c))
		db.Exec(t, "DROP SCHEMA sortkey CASCADE")
		wantError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "run Up")
		before := installCatalog(t, pool, "sortkey")
		const remedy = "DROP SCHEMA sortkey_internal CASCADE"
		wantError(t, migrations.Up(ctx, pool, c), nil, `install schema "sortkey": schema "sortkey_internal" still has the internal functions`, "; run "+remedy)
		wantError(t, migrations.Down(ctx, pool, c), nil, `remove schema "sortkey": schema "sortkey_internal" still has the internal functions`, "; run "+remedy)
		installSame(t, "Up and Down", installCatalog(t, pool, "sortkey"), before)
		db.Exec(t, remedy)
		must(t, migrations.Up(ctx, pool, c))
		must(t, migrations.Check(ctx, pool, c))

		db.Exec(t, "CREATE SCHEMA mine")
		must(t, migrations.Down(ctx, pool, migrations.Config{Schema: "mine"}))
		db.Exec(t, "DROP SCHEMA mine") // checks that it still exists
	})
}
