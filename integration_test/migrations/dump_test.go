package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// installTables returns SQL that creates a column of each domain with its default,
// and the other objects that can depend on an installation.
func installTables() string {
	var b strings.Builder
	for _, g := range installGenerators {
		fmt.Fprintf(&b, `CREATE TABLE of_%[1]s (id sortkey.%[1]s PRIMARY KEY DEFAULT %[2]s, n int);
			CREATE INDEX ON of_%[1]s (sortkey.%[1]s_time(id));
			ALTER TABLE of_%[1]s ADD shown text GENERATED ALWAYS AS (sortkey.%[1]s_text(id)) STORED;
			`, g.format, g.call)
	}
	b.WriteString(`CREATE TABLE of_sno_as_text (id sortkey.sno_as_text PRIMARY KEY DEFAULT sortkey.sno_text(sortkey.next_sno(200, 40000)), n int);
		CREATE TABLE parted (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(3, 7), n int) PARTITION BY RANGE (id);
		CREATE TABLE parted_before PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (sortkey.snowflake_floor('2026-01-01 00:00:00+00'));
		CREATE TABLE parted_after PARTITION OF parted FOR VALUES FROM (sortkey.snowflake_floor('2026-01-01 00:00:00+00')) TO (MAXVALUE);
		CREATE VIEW latest AS SELECT id, sortkey.snowflake_time(id) FROM of_snowflake WHERE id >= sortkey.snowflake_floor('2026-01-01 00:00:00+00');
		`)
	return b.String()
}

// installGenerated are the tables whose defaults generate IDs.
var installGenerated = func() []string {
	names := []string{"of_sno_as_text", "parted"}
	for _, g := range installGenerators {
		names = append(names, "of_"+g.format)
	}
	return names
}()

// installInsert inserts rows with generated IDs into each table.
func installInsert(t testing.TB, pool *sql.DB) {
	t.Helper()
	for _, table := range installGenerated {
		_, err := pool.ExecContext(t.Context(), "INSERT INTO "+table+" (n) SELECT generate_series(1, 500)")
		must(t, err)
	}
}

// installDatabase creates another database on the server.
func installDatabase(t testing.TB, db *pgtest.DB, suffix, options string) *pgtest.DB {
	t.Helper()
	name := db.Name + "_" + suffix
	db.Exec(t, "CREATE DATABASE "+name+" TEMPLATE template0 "+options)
	t.Cleanup(func() {
		if _, err := db.SQL(t).ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(db.URL)
	must(t, err)
	u.Path = "/" + name
	return &pgtest.DB{Name: name, URL: u.String(), Version: db.Version}
}

func installClocks(t testing.TB, pool *sql.DB) []string {
	t.Helper()
	return columnOf(t, pool, "SELECT format('%s %s', sequencename, last_value) FROM pg_sequences WHERE schemaname = 'sortkey' AND sequencename LIKE '%\\_clock' ORDER BY 1")
}

// installRestored checks that a restored database has the same installation as the
// dumped one, that it works, and that it generates IDs that neither database has.
func installRestored(t *testing.T, old, restored *sql.DB, c migrations.Config) {
	t.Helper()
	ctx := t.Context()
	wantError(t, migrations.Check(ctx, restored, c), migrations.ErrUnreservedNode, "of_snowflake.id") // and no other problem
	catalog := installCatalog(t, restored, "sortkey")
	installSame(t, "restored", catalog, installCatalog(t, old, "sortkey"))
	const versions = "SELECT format('%s %s', id, version_id) FROM sortkey.sortkey_goose_version ORDER BY 1"
	before := columnOf(t, restored, versions)
	must(t, migrations.Up(ctx, restored, c))
	installSame(t, "Up after a restore", installCatalog(t, restored, "sortkey"), catalog)
	if after := columnOf(t, restored, versions); len(before) < 7 || !slices.Equal(after, before) {
		t.Errorf("expected Up to change nothing, got %v and then %v", before, after)
	}

	installInsert(t, restored)
	for _, table := range installGenerated {
		column := "SELECT id::text FROM " + table
		ids := columnOf(t, restored, column)
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		if len(ids) != 1000 || len(seen) != len(ids) {
			t.Errorf("%s: expected 500 dumped and 500 new IDs, got %d, %d of them distinct", table, len(ids), len(seen))
		}
		// The old database has the 500 dumped IDs, and 500 that it generated after the dump.
		var both int
		for _, id := range columnOf(t, old, column) {
			if seen[id] {
				both++
			}
		}
		if both != 500 {
			t.Errorf("%s: expected the databases to share the 500 dumped IDs, got %d", table, both)
		}
	}
	for _, g := range installGenerators {
		var bad int
		must(t, restored.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FILTER (WHERE (%s) IS NOT TRUE OR shown <> sortkey.%s_text(id)) FROM of_%[2]s", g.checks, g.format)).Scan(&bad))
		if bad != 0 {
			t.Errorf("of_%s: expected valid IDs, got %d invalid ones", g.format, bad)
		}
		if _, err := restored.ExecContext(ctx, "INSERT INTO of_"+g.format+" SELECT * FROM (SELECT NULL::sortkey."+g.format+", 1) q"); err == nil {
			t.Errorf("of_%s: expected the NULL to violate a constraint", g.format)
		}
		must(t, func() error { _, err := restored.ExecContext(ctx, "ANALYZE of_"+g.format); return err }())
	}
	wantError(t, migrations.Down(ctx, restored, c), nil, "drop or change the dependent objects first")
}

func TestDump(t *testing.T) {
	c := complete
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		ctx, old, shell := t.Context(), db.SQL(t), toolShell{t, db}
		db.Exec(t, installTables())
		installInsert(t, old)
		clocks := installClocks(t, old)

		file := func(kind string) string { return "/tmp/" + db.Name + "." + kind }
		dump := func(kind string, options ...string) {
			t.Helper()
			shell.must(append(append([]string{"pg_dump", "-f", file(kind)}, options...), shell.url(db.Name))...)
		}
		dump("plain")
		dump("custom", "-Fc")
		dump("schema", "--schema-only")
		dump("data", "--data-only")
		dump("own_schema", "--schema-only", "--exclude-schema=sortkey")
		dump("own_data", "--data-only", "--exclude-schema=sortkey")
		psql := func(into *pgtest.DB, kind string) (string, bool) {
			return shell.run("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", file(kind), shell.url(into.Name))
		}
		restore := func(into *pgtest.DB, kind string) {
			t.Helper()
			if out, ok := psql(into, kind); !ok {
				t.Fatalf("restore %s: %s", kind, out)
			}
		}
		installInsert(t, old)
		if len(clocks) != 5 || slices.Equal(installClocks(t, old), clocks) {
			t.Fatalf("expected 5 clocks that advance, got %v", clocks)
		}
		survived := func(pool *sql.DB) {
			t.Helper()
			if got := installClocks(t, pool); !slices.Equal(got, clocks) {
				t.Errorf("expected the dumped values of the sequences (%v), got %v", clocks, got)
			}
		}

		t.Run("plain", func(t *testing.T) {
			into := installDatabase(t, db, "plain", "")
			restore(into, "plain")
			survived(into.SQL(t))
			installRestored(t, old, into.SQL(t), c)
		})
		t.Run("custom", func(t *testing.T) {
			into := installDatabase(t, db, "custom", "")
			shell.must("pg_restore", "--exit-on-error", "-d", shell.url(into.Name), file("custom"))
			survived(into.SQL(t))
			installRestored(t, old, into.SQL(t), c)
		})
		t.Run("into a database with another collation", func(t *testing.T) {
			into := installDatabase(t, db, "danish", "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'da-DK' LOCALE 'C'")
			restore(into, "plain")
			survived(into.SQL(t))
			installRestored(t, old, into.SQL(t), c)
		})
		t.Run("schema, then data", func(t *testing.T) {
			into := installDatabase(t, db, "schema", "")
			restore(into, "schema")
			pool := into.SQL(t)
			for name, f := range map[string]func(context.Context, *sql.DB, migrations.Config) error{"Check": migrations.Check, "Up": migrations.Up, "Down": migrations.Down} {
				if err := f(ctx, pool, c); err == nil {
					t.Errorf("%s: expected an error because of missing data, got none", name)
				} else {
					wantError(t, err, migrations.ErrIncomplete, "pg_dump --data-only --schema=sortkey")
				}
			}
			restore(into, "data")
			survived(pool)
			installRestored(t, old, pool, c)
		})
		t.Run("data after Up", func(t *testing.T) {
			into := installDatabase(t, db, "data", "")
			pool := into.SQL(t)
			must(t, migrations.Up(ctx, pool, c))
			restore(into, "own_schema")
			// Up has filled the tables that record the installation.
			if out, ok := psql(into, "data"); ok || !strings.Contains(out, "duplicate key value") {
				t.Errorf("expected a conflict with the rows of the installation, got %s", out)
			}
			restore(into, "own_data")
			installRestored(t, old, pool, c)
		})
	})
}
