package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// Up installs the missing migrations, each in a separate transaction. If one
// fails, it is rolled back. Remove the cause and call Up again to continue.
// Concurrent calls wait for one another, until ctx is done.
//
// Up returns [ErrLayout] if the layouts of the installation differ from c. The
// layout of SnowflakeSI is the only one that it can add to an installation. Up
// returns [ErrForeign] if another tool created the installation: continue with that
// tool.
//
// The role needs CREATE on the database, or USAGE and CREATE on both schemas if they
// exist: that of the Config, and the one of the internal functions, which has the
// suffix _internal. If all migrations are installed, it needs only USAGE on the
// first. Up returns [ErrUntrusted] if a role that the session doesn't trust owns one of
// the schemas, an object in them, or privileges to change them: it could replace the
// functions that others call. Up needs a session of its own, so PgBouncer in transaction mode does not work. On Citus,
// connect to the coordinator, or Up returns [ErrCitusWorker].
func Up(ctx context.Context, db *sql.DB, c Config) error {
	_, err := Apply(ctx, db, c)
	return err
}

// Apply is [Up] for programs that report the migrations. It returns the migrations
// that this call installed, also if it returns an error. They include snowflake_si
// if the call added only the functions of that migration.
func Apply(ctx context.Context, db *sql.DB, c Config) ([]Migration, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	complete := false // then a role with USAGE alone can call Up
	err = trust.Read(ctx, db, func(tx *sql.Tx) error {
		if err := checkOwners(ctx, tx, "install", d); err != nil {
			return err
		}
		there, err := hasTable(ctx, tx, d.Internal, versionTable)
		complete = err == nil && there && checkInstallation(ctx, tx, d) == nil
		return nil
	})
	if err != nil || complete {
		return nil, err
	}
	if err := prepare(ctx, db, d); err != nil {
		return nil, err
	}
	p, err := provider(db, d)
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		version := int(partial.Failed.Source.Version)
		results, err = partial.Applied, fmt.Errorf("migration %d (%s): %w", version, steps()[version-1].name, partial.Err)
	}
	list := d.list()
	var applied []Migration
	for _, r := range results {
		applied = append(applied, list[r.Source.Version-1])
	}
	if err != nil {
		return applied, failed("install", d.Schema, err)
	}
	added, err := addSnowflakeSI(ctx, db, d)
	if err != nil {
		return applied, err
	}
	if added {
		i := slices.IndexFunc(list, func(m Migration) bool { return m.Name == d.SnowflakeSI.Format })
		applied = append(applied, list[i])
	}
	// Another process may have installed another layout in the meantime.
	return applied, Check(ctx, db, c)
}

// Down removes an installation in one transaction. It also drops each of the two
// schemas if the migrations created it and it is empty. If columns, defaults or
// functions depend on the installation, Down removes nothing and returns an error
// that names them. If nothing is installed, Down does nothing.
//
// The server doesn't track what the bodies of PL/pgSQL functions use, so these
// functions don't prevent Down.
//
// Down returns [ErrUntrusted] like [Up].
func Down(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	list := d.list()
	// goose would commit after each migration, and an error would leave half an
	// installation.
	return locked(ctx, db, "remove", d.Schema, func(tx *sql.Tx) error {
		if err := checkOwners(ctx, tx, "remove", d); err != nil {
			return err
		}
		there, err := hasSchema(ctx, tx, d.Schema)
		if err != nil {
			return err
		}
		if !there {
			return refuseRemains(ctx, tx, "remove", d)
		}
		applied, err := ownRevisions(ctx, tx, d.Schema)
		if err != nil {
			return err
		}
		for version := range applied {
			if version > len(list) {
				return fmt.Errorf("migrations: remove schema %q: it has migration %d, and this version of the package has migrations up to %d; run Down of the version that installed it",
					d.Schema, version, len(list))
			}
		}
		for _, m := range slices.Backward(list) {
			if _, ok := applied[m.Version]; !ok {
				continue
			}
			if _, err := tx.ExecContext(ctx, m.Down); err != nil {
				return failed("remove", d.Schema, withDependents(err))
			}
		}
		for _, statement := range []string{"DROP TABLE IF EXISTS " + d.Internal + "." + versionTable, d.dropEmptySchemas()} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return failed("remove", d.Schema, err)
			}
		}
		return nil
	})
}

// A MigrationStatus holds the status of one migration.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: not installed
}

// Status returns all migrations, with the times at which any tool installed them. It
// returns [ErrUntrusted] like [Up].
func Status(ctx context.Context, db *sql.DB, c Config) ([]MigrationStatus, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	var applied map[int]time.Time
	err = trust.Read(ctx, db, func(tx *sql.Tx) error {
		if err := checkOwners(ctx, tx, "read", d); err != nil {
			return err
		}
		applied, err = revisions(ctx, tx, d.Schema)
		return err
	})
	if err != nil && !errors.Is(err, ErrNotInstalled) {
		return nil, err
	}
	list := make([]MigrationStatus, len(steps()))
	for i, s := range steps() {
		list[i] = MigrationStatus{Version: i + 1, Name: s.name, AppliedAt: applied[i+1]}
	}
	return list, nil
}

// versionTable is the version table of goose, in the schema of the internal
// functions. It differs from goose's default name, since an installation that has
// it is one by Up.
const versionTable = "goose_version"

// provider returns the goose provider for Up.
func provider(db *sql.DB, d data) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, mapFS(d.list(), gooseFiles),
		goose.WithTableName(d.Internal+"."+versionTable),
		goose.WithSessionLocker(&sessionLock{schema: d.Schema}),
		goose.WithDisableGlobalRegistry(true))
}

func failed(verb, schema string, err error) error {
	return fmt.Errorf("migrations: %s schema %q: %w", verb, schema, err)
}

const lockKey = "pg_catalog.hashtextextended(pg_catalog.concat('sortkey migrations of ', $1::pg_catalog.text), 0::bigint)"

// A sessionLock has the name of a schema, and the search_path that the session had. It sets
// the search_path to pg_catalog for the statements of goose. It takes an advisory lock for the
// installation in that schema and holds it across the transactions of goose, so
// that concurrent calls wait for one another. The server releases it when the
// connection ends.
type sessionLock struct{ schema, path string }

func (l *sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_lock("+lockKey+")", l.schema); err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, "SELECT pg_catalog.current_setting('search_path')").Scan(&l.path); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)")
	return err
}

func (l *sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_unlock("+lockKey+"), pg_catalog.set_config('search_path', $2::pg_catalog.text, false)", l.schema, l.path)
	return err
}

// locked runs f in a transaction, under the lock of the installation.
func locked(ctx context.Context, db *sql.DB, verb, schema string, f func(*sql.Tx) error) error {
	var own error // the error of f, which already names the verb and the schema
	err := inTx(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT pg_catalog.pg_advisory_xact_lock("+lockKey+")", schema); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, trust.Settings); err != nil {
			return err
		}
		own = f(tx)
		return own
	})
	if err != nil && own == nil {
		return failed(verb, schema, err)
	}
	return err
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	// A statement must see all changes that were committed before it got its locks,
	// so override the default isolation level of the database.
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare checks that Up can proceed, and creates the schemas and the version table
// of goose. If goose created the table itself, it would do so without a lock, and
// concurrent calls would collide and wait for a second.
func prepare(ctx context.Context, db *sql.DB, d data) error {
	return locked(ctx, db, "install", d.Schema, func(tx *sql.Tx) error {
		if err := checkOwners(ctx, tx, "install", d); err != nil { // again, under the lock
			return err
		}
		applied, err := ownRevisions(ctx, tx, d.Schema)
		if err != nil {
			return err
		}
		if applied == nil {
			if err := refuseRemains(ctx, tx, "install", d); err != nil {
				return err
			}
		}
		if err := checkLayouts(ctx, tx, d, true); err != nil {
			return err
		}
		// CREATE SCHEMA IF NOT EXISTS would need the privilege even if the schema
		// exists.
		if _, err := tx.ExecContext(ctx, d.createSchemas()); err != nil {
			return uncreated(d, err)
		}
		if there, err := hasTable(ctx, tx, d.Internal, versionTable); err != nil || there {
			return err
		}
		store, err := database.NewStore(database.DialectPostgres, d.Internal+"."+versionTable)
		if err != nil {
			return err
		}
		if err := store.CreateVersionTable(ctx, tx); err != nil {
			return failed("install", d.Schema, err)
		}
		if _, err := tx.ExecContext(ctx, d.wrapped(shared(), "protect version table")); err != nil {
			return failed("install", d.Schema, err)
		}
		if err := store.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil { // goose requires this row
			return failed("install", d.Schema, err)
		}
		return nil
	})
}

// refuseRemains returns an error if the schema of the internal functions has an
// installation, although the other schema has none.
func refuseRemains(ctx context.Context, tx *sql.Tx, verb string, d data) error {
	remains, err := hasTable(ctx, tx, d.Internal, d.Snowflake.Format+"_clock")
	if err != nil || !remains {
		return err
	}
	return fmt.Errorf("migrations: %s schema %q: schema %q still has the internal functions of an earlier installation, as after DROP SCHEMA %[2]s CASCADE; run DROP SCHEMA %[3]s CASCADE", verb, d.Schema, d.Internal)
}

// uncreated adds the missing privilege to an error from creating the schemas.
func uncreated(d data, err error) error {
	if sqlState(err) == insufficientPrivilege {
		err = fmt.Errorf("%w; run GRANT CREATE ON DATABASE, or CREATE SCHEMA %s and %s with AUTHORIZATION for this role", err, d.Schema, d.Internal)
	}
	return fmt.Errorf("migrations: create schemas %q and %q: %w", d.Schema, d.Internal, err)
}

// addSnowflakeSI creates the functions of SnowflakeSI if d has its layout and the
// installation doesn't. It reports whether it did.
func addSnowflakeSI(ctx context.Context, db *sql.DB, d data) (added bool, err error) {
	if d.SnowflakeSI == nil {
		return false, nil
	}
	err = locked(ctx, db, "install", d.Schema, func(tx *sql.Tx) error {
		installed, err := layouts(ctx, tx, d.Schema)
		if err != nil || installed[d.SnowflakeSI.Format] != "" {
			return err
		}
		if _, err := tx.ExecContext(ctx, d.snowflakeSIFunctions()); err != nil {
			return failed("install SnowflakeSI in", d.Schema, err)
		}
		added = true
		return nil
	})
	return added, err
}

// withDependents adds the names of the dependent objects to the error of a DROP.
func withDependents(err error) error {
	if sqlState(err) != pgerror.DependentObjects {
		return err
	}
	if detail := pgerror.Detail(err); detail != "" {
		err = fmt.Errorf("%w (%s)", err, detail)
	}
	return fmt.Errorf("%w; drop or change the dependent objects first", err)
}
