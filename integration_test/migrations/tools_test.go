package migrations

import (
	"errors"
	"fmt"
	"io/fs"
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
type tool struct {
	to   func(version int) error         // migrates up to a version, or down to 0
	mend func(failed, version int) error // after a failed migration, sets the version; nil: the tool doesn't need it
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
		return tool{to: func(version int) error {
			if version == 0 {
				_, err := p.DownTo(t.Context(), 0)
				return err
			}
			_, err := p.UpTo(t.Context(), int64(version))
			return err
		}}
	}},
	"golang-migrate with pgx": {migrations.GolangMigrate, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		d, err := migratepgx.WithInstance(db.SQL(t), &migratepgx.Config{})
		must(t, err)
		return toolMigrate(t, files, d)
	}},
	"golang-migrate with pq": {migrations.GolangMigrate, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		d, err := migratepq.WithInstance(installPQ(t, db), &migratepq.Config{MigrationsTable: "sortkey_migrations"})
		must(t, err)
		return toolMigrate(t, files, d)
	}},
	"tern": {migrations.Tern, func(t *testing.T, db *pgtest.DB, files fs.FS) tool {
		m, err := ternmigrate.NewMigrator(t.Context(), db.Conn(t), "public.schema_version")
		must(t, err)
		must(t, m.LoadMigrations(files))
		return tool{to: func(version int) error { return m.MigrateTo(t.Context(), int32(version)) }}
	}},
}

func toolMigrate(t *testing.T, files fs.FS, d database.Driver) tool {
	t.Helper()
	source, err := iofs.New(files, ".")
	must(t, err)
	m, err := migrate.NewWithInstance("iofs", source, "postgres", d)
	must(t, err)
	t.Cleanup(func() {
		a, b := m.Close()
		must(t, errors.Join(a, b))
	})
	return tool{
		to: func(version int) error {
			if version == 0 {
				return m.Down()
			}
			return m.Migrate(uint(version))
		},
		mend: func(failed, version int) error {
			var dirty migrate.ErrDirty
			if err := m.Up(); !errors.As(err, &dirty) || dirty.Version != failed {
				return fmt.Errorf("expected version %d to be dirty, got %v", failed, err)
			}
			if version == 0 {
				version = database.NilVersion
			}
			return m.Force(version)
		},
	}
}

// Each tool installs and removes the same objects as Up and Down, and rolls back a
// failed migration. Up completes the installation of another tool.
func TestTools(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		c := complete
		list := migrationsOf(t, c)
		last := len(list)
		pool := db.SQL(t)
		want := installWhole(t, pool)
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
				must(t, tool.to(last))
				installSame(t, "up", installCatalog(t, pool, "sortkey"), want)
				must(t, migrations.Check(ctx, pool, c))
				installApplied(t, pool, c, last)
				must(t, migrations.Up(ctx, pool, c))
				installSame(t, "Up after another tool", installCatalog(t, pool, "sortkey"), want)

				// Unlike Down, a tool stops halfway if an object is in use.
				db.Exec(t, "CREATE TABLE used (id sortkey.sno)")
				if err := tool.to(0); err == nil {
					t.Error("expected an error while a table uses a domain")
				}
				installSame(t, "down while a table uses a domain", installCatalog(t, pool, "sortkey"), wantUsed)
				db.Exec(t, "DROP TABLE used")
				if tool.mend != nil {
					must(t, tool.mend(sno-1, sno))
				}
				must(t, tool.to(0))
				installGone(t, pool, "sortkey")

				folder := t.TempDir()
				must(t, os.CopyFS(folder, offered))
				tool = how.open(t, db, os.DirFS(folder))
				for _, failing := range []int{1, 7} {
					before, remove, sentinel := installObstruct(t, db, pool, failing)
					wantError(t, tool.to(last), nil, "already exists")
					installSame(t, fmt.Sprintf("migration %d failed", failing), installCatalog(t, pool, "sortkey"), before)
					wantError(t, migrations.Check(ctx, pool, c), sentinel, "run Up, or ")
					db.Exec(t, remove)
					if tool.mend != nil {
						must(t, tool.mend(failing, failing-1))
					}
					must(t, tool.to(last))
					installSame(t, "up after the cause is removed", installCatalog(t, pool, "sortkey"), want)
					must(t, tool.to(0))
				}
				db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE")
			})
		}
	})
}

// A toolShell runs psql, pg_dump and the like in the server's container.
type toolShell struct {
	t  testing.TB
	db *pgtest.DB
}

// url returns the URL of a database, for use inside the container.
func (toolShell) url(database string) string { return "postgresql://postgres@/" + database }

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

// The file for psql, and the plain files, install the same objects as Up. A second run of the
// file fails.
func TestPSQL(t *testing.T) {
	c := complete
	text, err := migrations.SQL(c)
	must(t, err)
	t.Parallel()
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, shell := t.Context(), db.SQL(t), toolShell{t, db}
		want := installWhole(t, pool)
		file := "/tmp/" + db.Name + ".sql"
		must(t, db.Container().CopyToContainer(ctx, []byte(text), file, 0o644))
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

		for _, settings := range [][]string{{stop}, nil} {
			out, ok := psql(settings...)
			if ok != (settings == nil) || !strings.Contains(out, "sortkey is already installed in schema sortkey") {
				t.Errorf("expected an error that sortkey is installed, got %s", out)
			}
			installSame(t, "psql again", installCatalog(t, pool, "sortkey"), want)
		}

		// Each plain file runs in a transaction. Flyway's files have the same contents, as the unit tests show.
		plain, err := migrations.Plain(c)
		must(t, err)
		folder := filepath.Join(t.TempDir(), db.Name)
		must(t, os.CopyFS(folder, plain))
		must(t, db.Container().CopyDirToContainer(ctx, folder, "/tmp/"+db.Name, 0o755))
		run := func(files string) {
			t.Helper()
			if out := shell.must("sh", "-ec", fmt.Sprintf(`for file in $(ls %s); do psql -X -q -1 %s -f "$file" '%s'; done`, files, stop, shell.url(db.Name))); out != "" {
				t.Errorf("expected no output of psql, got %s", out)
			}
		}
		run("-r /tmp/" + db.Name + "/*.down.sql")
		installGone(t, pool, "sortkey")
		run("/tmp/" + db.Name + "/*.up.sql")
		installSame(t, "plain files", installCatalog(t, pool, "sortkey"), want)
	})
}

// SQLAfter upgrades an installation at its version, and fails at any other version.
func TestSQLAfter(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		list := migrationsOf(t, c)
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
