package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// Up installs what isn't there yet, each migration in a transaction of its
// own: one that fails leaves the database as the one before it did, and after
// mending what was in its way Up goes on with it. Processes that call it at the
// same time wait for one another, for as long as ctx lets them.
//
// An installation of other layouts is refused ([ErrLayout]); only SnowflakeSI's
// can be added later. So is one that another tool has made ([ErrForeign]): go
// on with that.
//
// The role needs the right to create schemas in the database, or a schema that
// is there already and in which it may create; where nothing is to be done,
// USAGE on it is enough. The connection must be one that isn't handed to others
// between transactions, as PgBouncer's are in transaction mode. On Citus it must
// be one to the coordinator ([ErrCitusWorker]).
func Up(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	if there, err := hasTable(ctx, db, d.Schema, versionTable); err == nil && there && checkInstallation(ctx, db, d) == nil {
		return nil // a role that couldn't do more than look may call this, too
	}
	if err := prepare(ctx, db, d); err != nil {
		return err
	}
	p, err := provider(db, d)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			version := int(partial.Failed.Source.Version)
			err = fmt.Errorf("migration %d (%s): %w", version, steps()[version-1].name, partial.Err)
		}
		return failed("install", d.Schema, err)
	}
	if err := addSnowflakeSI(ctx, db, d); err != nil {
		return err
	}
	// Another process may have been quicker, with another layout.
	return checkInstallation(ctx, db, d)
}

// Down removes all of an installation, and the schema if nothing else is in
// it, in one transaction. While columns, defaults or functions depend on it, it
// removes nothing and says on what. Where nothing is installed, it does
// nothing.
//
// Functions in PL/pgSQL that use the installation don't count: the server
// doesn't know what they use before they run.
func Down(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	list := d.list()
	// Not through goose, which ends a transaction with each migration: half an
	// installation is of no use to anybody.
	return locked(ctx, db, "remove", d.Schema, func(tx *sql.Tx) error {
		there, err := hasSchema(ctx, tx, d.Schema)
		if err != nil || !there {
			return err
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
		for _, statement := range []string{"DROP TABLE IF EXISTS " + d.Schema + "." + versionTable, d.dropEmptySchema()} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return failed("remove", d.Schema, err)
			}
		}
		return nil
	})
}

// A MigrationStatus tells of one migration whether it was run.
type MigrationStatus struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero: it wasn't
}

// Status lists the migrations, and which of them were run, by whichever tool.
func Status(ctx context.Context, db *sql.DB, c Config) ([]MigrationStatus, error) {
	d, err := c.data()
	if err != nil {
		return nil, err
	}
	applied, err := revisions(ctx, db, d.Schema)
	if err != nil && !errors.Is(err, ErrNotInstalled) {
		return nil, err
	}
	list := make([]MigrationStatus, len(steps()))
	for i, s := range steps() {
		list[i] = MigrationStatus{Version: i + 1, Name: s.name, AppliedAt: applied[i+1]}
	}
	return list, nil
}

// versionTable is goose's, beside the rest. It doesn't have goose's name for it:
// the schema may be one in which a program keeps that for migrations of its own.
const versionTable = "sortkey_goose_version"

// provider is goose, as Up uses it.
func provider(db *sql.DB, d data) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, mapFS(d.list(), gooseFiles),
		goose.WithTableName(d.Schema+"."+versionTable),
		goose.WithSessionLocker(sessionLock(d.Schema)),
		goose.WithDisableGlobalRegistry(true))
}

func failed(what, schema string, err error) error {
	return fmt.Errorf("migrations: %s schema %q: %w", what, schema, err)
}

const lockKey = "hashtextextended('sortkey migrations of ' || $1, 0)"

// A sessionLock has those that change the same installation wait for one
// another between goose's transactions. It is the server's, so it goes with the
// connection at the latest.
type sessionLock string

func (schema sessionLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+lockKey+")", string(schema))
	return err
}

func (schema sessionLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock("+lockKey+")", string(schema))
	return err
}

// locked runs f in a transaction that excludes others that change the same
// installation.
func locked(ctx context.Context, db *sql.DB, what, schema string, f func(*sql.Tx) error) error {
	var own error // of f, which says what it was about
	err := inTx(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock("+lockKey+")", schema); err != nil {
			return err
		}
		own = f(tx)
		return own
	})
	if err != nil && own == nil {
		return failed(what, schema, err)
	}
	return err
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	// What is seen must be as new as the locks, whatever the database's default.
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // in vain after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare finds out whether Up may go to work, and makes what goose needs
// before the first migration: the schema, and its table in there. Goose would
// make the table without a lock, so that several at once get into one another's
// way and wait a second.
func prepare(ctx context.Context, db *sql.DB, d data) error {
	return locked(ctx, db, "install", d.Schema, func(tx *sql.Tx) error {
		if _, err := ownRevisions(ctx, tx, d.Schema); err != nil {
			return err
		}
		if err := checkLayouts(ctx, tx, d, true); err != nil {
			return err
		}
		// Not IF NOT EXISTS, which asks for the right to make schemas even if
		// there is one.
		there, err := hasSchema(ctx, tx, d.Schema)
		if err != nil {
			return err
		}
		if !there {
			for _, statement := range []string{"CREATE SCHEMA " + d.Schema, d.markSchema()} {
				if _, err := tx.ExecContext(ctx, statement); err != nil {
					return failed("create", d.Schema, err)
				}
			}
		}
		if there, err = hasTable(ctx, tx, d.Schema, versionTable); err != nil || there {
			return err
		}
		store, err := database.NewStore(database.DialectPostgres, d.Schema+"."+versionTable)
		if err != nil {
			return err
		}
		if err := store.CreateVersionTable(ctx, tx); err != nil {
			return failed("install", d.Schema, err)
		}
		if err := store.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil { // which goose wants first
			return failed("install", d.Schema, err)
		}
		return nil
	})
}

// addSnowflakeSI makes the functions of SnowflakeSI if they are asked for and
// an installation without a base clock came before.
func addSnowflakeSI(ctx context.Context, db *sql.DB, d data) error {
	if d.SnowflakeSI == nil {
		return nil
	}
	return locked(ctx, db, "install", d.Schema, func(tx *sql.Tx) error {
		installed, err := layouts(ctx, tx, d.Schema)
		if err != nil || installed[d.SnowflakeSI.Format] != "" {
			return err
		}
		if _, err := tx.ExecContext(ctx, d.snowflakeSIFunctions()); err != nil {
			return failed("install SnowflakeSI in", d.Schema, err)
		}
		return nil
	})
}

// withDependents adds to an error what Postgres says besides the message, if it
// is that something depends on what was to be dropped.
func withDependents(err error) error {
	// Of pgx as *pgconn.PgError and of lib/pq as *pq.Error, which have the field
	// and no interface for it.
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) || pg.SQLState() != "2BP01" {
		return err
	}
	if v := reflect.Indirect(reflect.ValueOf(pg)); v.Kind() == reflect.Struct {
		if f := v.FieldByName("Detail"); f.IsValid() && f.Kind() == reflect.String {
			return fmt.Errorf("%w (%s); drop or change the dependent objects first", err, f.String())
		}
	}
	return fmt.Errorf("%w; drop or change the dependent objects first", err)
}
