package migrations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	migratepq "github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	ternmigrate "github.com/jackc/tern/v2/migrate"
	"github.com/pressly/goose/v3"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// The exported files work with other migration tools, and with psql.

// A tool is a migration tool.
type tool interface {
	to(ctx context.Context, version int) error // migrates up or down
	mend(failed int) error                     // prepares a retry after a failed migration
}

// A toolKind has the files of a tool and a function that opens it on a database.
type toolKind struct {
	files func(migrations.Config) (fs.FS, error)
	open  func(t *testing.T, db *pgtest.DB, files fs.FS) tool
}

// tools are the tools that need no container.
var tools = map[string]toolKind{
	"goose": {migrations.Goose, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		p, err := goose.NewProvider(goose.DialectPostgres, db.SQL(t), files)
		must(t, err)
		return toolGooseProvider{p}
	}},
	"golang-migrate with pgx": {migrations.GolangMigrate, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		d, err := migratepgx.WithInstance(db.SQL(t), &migratepgx.Config{})
		must(t, err)
		return toolMigrateOn(t, files, d)
	}},
	"golang-migrate with pq": {migrations.GolangMigrate, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		d, err := migratepq.WithInstance(installPQ(t, db), &migratepq.Config{MigrationsTable: "sortkey_migrations"})
		must(t, err)
		return toolMigrateOn(t, files, d)
	}},
	"tern": {migrations.Tern, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		m, err := ternmigrate.NewMigrator(t.Context(), db.Conn(t), "public.schema_version")
		must(t, err)
		must(t, m.LoadMigrations(files))
		return toolTern{m}
	}},
}

type toolGooseProvider struct{ p *goose.Provider }

func (g toolGooseProvider) mend(int) error { return nil }
func (g toolGooseProvider) to(ctx context.Context, version int) error {
	now, err := g.p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if int(now) > version {
		_, err = g.p.DownTo(ctx, int64(version))
	} else {
		_, err = g.p.UpTo(ctx, int64(version))
	}
	return err
}

type toolMigrate struct{ m *migrate.Migrate }

func toolMigrateOn(t *testing.T, files fs.FS, d database.Driver) tool {
	t.Helper()
	source, err := iofs.New(files, ".")
	must(t, err)
	m, err := migrate.NewWithInstance("iofs", source, "postgres", d)
	must(t, err)
	t.Cleanup(func() {
		a, b := m.Close()
		must(t, errors.Join(a, b))
	})
	return toolMigrate{m}
}

// mend resets the version to the one before the failed migration, which golang-migrate
// has marked as dirty.
func (g toolMigrate) mend(failed int) error {
	var dirty migrate.ErrDirty
	if err := g.m.Up(); !errors.As(err, &dirty) || dirty.Version != failed {
		return fmt.Errorf("expected version %d to be dirty, got %v", failed, err)
	}
	if failed == 1 {
		return g.m.Force(database.NilVersion)
	}
	return g.m.Force(failed - 1)
}

func (g toolMigrate) to(_ context.Context, version int) error {
	if version == 0 {
		return g.m.Down()
	}
	return g.m.Migrate(uint(version))
}

type toolTern struct{ m *ternmigrate.Migrator }

func (g toolTern) mend(int) error { return nil }
func (g toolTern) to(ctx context.Context, version int) error {
	return g.m.MigrateTo(ctx, int32(version))
}

// A toolPSQL runs one file after another with psql -1.
type toolPSQL struct {
	toolShell
	up, down []string // the paths of the files, in order of their versions
}

func toolPSQLOn(t *testing.T, db *pgtest.DB, files fs.FS) tool {
	p := toolPSQL{toolShell: toolShell{t, db}}
	list, err := migrations.List(complete)
	must(t, err)
	folder := filepath.Join(t.TempDir(), db.Name)
	must(t, os.CopyFS(folder, files))
	must(t, db.Container().CopyDirToContainer(t.Context(), folder, "/tmp/"+db.Name, 0o755))
	for _, m := range list {
		path := fmt.Sprintf("/tmp/%s/%04d_%s", db.Name, m.Version, m.Name)
		p.up, p.down = append(p.up, path+".up.sql"), append(p.down, path+".down.sql")
	}
	return p
}

func (p toolPSQL) mend(int) error { return nil }
func (p toolPSQL) to(ctx context.Context, version int) error {
	conn := p.db.Conn(p.t)
	defer conn.Close(ctx)
	now := 0
	if pgtest.Value[bool](p.t, conn, "SELECT to_regclass('sortkey.revision') IS NOT NULL") {
		now = pgtest.Value[int](p.t, conn, "SELECT max(version) FROM sortkey.revision")
	}
	var files []string
	if now < version {
		files = p.up[now:version]
	} else {
		files = slices.Clone(p.down[version:now])
		slices.Reverse(files)
	}
	// One command for all files, because it takes longer to start one in a container than to run psql.
	const each = `url=$0; for file; do psql -X -q -1 -vON_ERROR_STOP=1 -f "$file" "$url" || exit; done`
	if out, ok := p.run(append([]string{"sh", "-c", each, p.url(p.db.Name)}, files...)...); !ok || out != "" {
		return fmt.Errorf("psql: %s", out)
	}
	return nil
}

// Each tool installs and removes the same objects as Up and Down, and rolls back a
// failed migration. Up and Down refuse an installation by another tool.
func TestTools(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) { testTools(t, db, tools) })
}

// Files that a tool runs in a transaction need nothing else from the tool. Flyway's files have
// the same contents, as the unit tests show. TestUpAndDown and TestPSQL run the same statements
// on all versions.
func TestPlainFiles(t *testing.T) {
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		testTools(t, db, map[string]toolKind{"plain files": {migrations.Plain, toolPSQLOn}})
	})
}

func testTools(t *testing.T, db *pgtest.DB, tools map[string]toolKind) {
	c := complete
	list, err := migrations.List(c)
	must(t, err)
	last := len(list)
	pool := db.SQL(t)
	must(t, migrations.Up(t.Context(), pool, c))
	want := installCatalog(t, pool, "sortkey")
	must(t, migrations.Down(t.Context(), pool, c))
	// After a failed way down while a sno is in use, the migrations up to Sno's remain.
	sno := 1 + slices.IndexFunc(list, func(m migrations.Migration) bool { return m.Name == "sno" })
	for _, m := range list[:sno] {
		db.Exec(t, m.Up)
	}
	wantUsed := installCatalog(t, pool, "sortkey")
	db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE")

	for name, how := range tools {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			offered, err := how.files(c)
			must(t, err)
			tool := how.open(t, db, offered)
			must(t, tool.to(ctx, last))
			installSame(t, "up", installCatalog(t, pool, "sortkey"), want)
			must(t, migrations.Check(ctx, pool, c))
			if applied := installApplied(t, pool, c); len(applied) != last {
				t.Errorf("expected Status to report all migrations, got %v", applied)
			}
			wantError(t, migrations.Up(ctx, pool, c), migrations.ErrForeign, fmt.Sprintf("%d migrations", last), "continue with that tool")
			wantError(t, migrations.Down(ctx, pool, c), migrations.ErrForeign, "continue with that tool")
			installSame(t, "Up and Down after another tool", installCatalog(t, pool, "sortkey"), want)

			// Unlike Down, a tool stops halfway if an object is in use.
			db.Exec(t, "CREATE TABLE used (id sortkey.sno)")
			if err := tool.to(ctx, 0); err == nil {
				t.Error("expected an error while a table uses a domain")
			}
			installSame(t, "down while a table uses a domain", installCatalog(t, pool, "sortkey"), wantUsed)
			db.Exec(t, "DROP TABLE used")
			if g, ok := tool.(toolMigrate); ok {
				must(t, g.m.Force(sno))
			}
			must(t, tool.to(ctx, 0))
			installGone(t, pool, "sortkey")

			folder := t.TempDir()
			must(t, os.CopyFS(folder, offered))
			tool = how.open(t, db, os.DirFS(folder))
			for failing, obstacle := range map[int]string{
				1: "FUNCTION sortkey_internal.sequence_bits(text, timestamptz, integer, integer)",
				7: "SEQUENCE sortkey_internal.sno_clock",
			} {
				obstruct, sentinel := "CREATE "+obstacle, migrations.ErrOutdated
				if failing == 1 {
					obstruct += " RETURNS bigint LANGUAGE sql RETURN 1::bigint"
					sentinel = migrations.ErrNotInstalled
				}
				const create, drop = "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal; ", "DROP SCHEMA sortkey, sortkey_internal CASCADE; "
				db.Exec(t, create) // the migrations don't drop these schemas
				for _, m := range list[:failing-1] {
					db.Exec(t, m.Up)
				}
				db.Exec(t, obstruct)
				before := installCatalog(t, pool, "sortkey")
				db.Exec(t, drop+create+obstruct)
				wantError(t, tool.to(ctx, last), nil, "already exists")
				installSame(t, fmt.Sprintf("migration %d failed", failing), installCatalog(t, pool, "sortkey"), before)
				wantError(t, migrations.Check(ctx, pool, c), sentinel, "run Up, or ")
				db.Exec(t, "DROP "+obstacle)
				must(t, tool.mend(failing))
				must(t, tool.to(ctx, last))
				installSame(t, "up after the cause is removed", installCatalog(t, pool, "sortkey"), want)
				must(t, tool.to(ctx, 0))
				db.Exec(t, drop)
			}
		})
	}
}

// If a tool's version table is in the schema, the schema stays.
func TestToolInSchema(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		db.Exec(t, "CREATE SCHEMA sortkey")
		files, err := migrations.Goose(migrations.Config{})
		must(t, err)
		p, err := goose.NewProvider(goose.DialectPostgres, pool, files, goose.WithTableName("sortkey.goose_db_version"))
		must(t, err)
		for range 2 {
			_, err = p.Up(ctx)
			must(t, err)
			must(t, migrations.Check(ctx, pool, migrations.Config{}))
			wantError(t, migrations.Up(ctx, pool, migrations.Config{}), migrations.ErrForeign)
			_, err = p.DownTo(ctx, 0)
			must(t, err)
			if left := columnOf(t, pool, "SELECT relname FROM pg_class WHERE relnamespace = 'sortkey'::regnamespace AND relkind = 'r'"); !slices.Equal(left, []string{"goose_db_version"}) {
				t.Errorf("expected only the tool's table, got %v", left)
			}
		}
	})
}

// A toolShell runs psql, pg_dump and the like in the server's container.
type toolShell struct {
	t  testing.TB
	db *pgtest.DB
}

// url returns the URL of a database, for use inside the container.
func (s toolShell) url(database string) string {
	u, err := url.Parse(s.db.URL)
	must(s.t, err)
	u.Host, u.Path = "127.0.0.1:5432", "/"+database
	return u.String()
}

// write writes a file in the container.
func (s toolShell) write(path, text string) {
	s.t.Helper()
	must(s.t, s.db.Container().CopyToContainer(s.t.Context(), []byte(text), path, 0o644))
}

// run returns the output of a command and reports whether it succeeded.
func (s toolShell) run(command ...string) (string, bool) {
	s.t.Helper()
	out, err := pgtest.Exec(s.t, s.db.Container(), "root", command...)
	return out, err == nil
}

// must runs a command and fails the test on an error.
func (s toolShell) must(command ...string) string {
	s.t.Helper()
	out, ok := s.run(command...)
	if !ok {
		s.t.Fatalf("%v failed:\n%s", command, out)
	}
	return out
}

// The file for psql installs the same objects as Up. A second run fails.
func TestPSQL(t *testing.T) {
	c := complete
	text, err := migrations.SQL(c)
	must(t, err)
	t.Parallel()
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, shell := t.Context(), db.SQL(t), toolShell{t, db}
		must(t, migrations.Up(ctx, pool, c))
		want := installCatalog(t, pool, "sortkey")
		must(t, migrations.Down(ctx, pool, c))
		file := "/tmp/" + db.Name + ".sql"
		shell.write(file, text)
		psql := func(settings ...string) (string, bool) {
			return shell.run(append(append([]string{"psql", "-X", "-q", "-f", file}, settings...), shell.url(db.Name))...)
		}
		const stop = "-vON_ERROR_STOP=1"

		// A failed file changes nothing, even if psql continues after errors.
		db.Exec(t, "CREATE SCHEMA sortkey; CREATE SCHEMA sortkey_internal; CREATE SEQUENCE sortkey_internal.sno_clock")
		before := installCatalog(t, pool, "sortkey")
		if out, ok := psql(stop); ok || !strings.Contains(out, `relation "sno_clock" already exists`) {
			t.Errorf("expected psql to fail, got %s", out)
		}
		installSame(t, "a file that failed", installCatalog(t, pool, "sortkey"), before)
		psql()
		installSame(t, "a file that failed, with all statements run", installCatalog(t, pool, "sortkey"), before)
		db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE")

		if out, ok := psql(stop); !ok || out != "" {
			t.Fatalf("expected no output of psql, got %s", out)
		}
		installSame(t, "psql", installCatalog(t, pool, "sortkey"), want)
		must(t, migrations.Check(ctx, pool, c))
		wantError(t, migrations.Up(ctx, pool, c), migrations.ErrForeign)
		wantError(t, migrations.Down(ctx, pool, c), migrations.ErrForeign)

		for _, settings := range [][]string{{stop}, nil} {
			out, ok := psql(settings...)
			if ok != (settings == nil) || !strings.Contains(out, "sortkey is already installed in schema sortkey") {
				t.Errorf("expected an error that sortkey is installed, got %s", out)
			}
			installSame(t, "psql again", installCatalog(t, pool, "sortkey"), want)
		}
		list, err := migrations.List(c)
		must(t, err)
		installRemove(t, db, list)
	})
}

// SQLAfter upgrades an installation at its version, and fails at any other version.
func TestSQLAfter(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		list, err := migrations.List(c)
		must(t, err)
		rest, err := migrations.SQLAfter(c, 3)
		must(t, err)
		for _, m := range list[:2] {
			db.Exec(t, m.Up)
		}
		_, err = pool.ExecContext(ctx, rest)
		wantError(t, err, nil, "schema sortkey is at migration 2, not 3")
		db.Exec(t, "ROLLBACK; "+list[2].Up)
		db.Exec(t, rest)
		must(t, migrations.Check(ctx, pool, c))
		_, err = pool.ExecContext(ctx, rest)
		wantError(t, err, nil, fmt.Sprintf("schema sortkey is at migration %d, not 3", len(list)))
	})
}
