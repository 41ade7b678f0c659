package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// Up installs the missing migrations in one transaction: it installs all of them or, if it
// returns an error, none. Concurrent calls wait for one another, until ctx is done. Which
// tool ran the installed migrations doesn't matter.
//
// Up returns [ErrLayout] if the layouts of the installation differ from c. The
// layout of SnowflakeSI is the only one that it can add to an installation.
//
// The role needs CREATE on the database, or USAGE and CREATE on both schemas if they
// exist: that of the Config, and the one of the internal functions, which has the
// suffix _internal. If all migrations are installed, it needs only USAGE on the
// first. Up returns [ErrUntrusted] if a role that the session doesn't trust owns one of
// the schemas, an object in them, or privileges to change them: it could replace the
// functions that others call. On Citus, connect to the coordinator, or Up returns
// [ErrCitusWorker].
func Up(ctx context.Context, db *sql.DB, c Config) error {
	_, err := Apply(ctx, db, c)
	return err
}

// Apply is [Up] for programs that report the migrations. It returns the migrations
// that this call installed. They include snowflake_si if the call added only the
// functions of that migration.
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
		complete = checkInstallation(ctx, tx, d) == nil
		return nil
	})
	if err != nil || complete {
		return nil, err
	}
	var applied []Migration
	err = locked(ctx, db, "install", d.Schema, func(tx *sql.Tx) error {
		applied, err = d.install(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// UpTx is [Up] in a transaction of the caller, whose isolation level must be READ
// COMMITTED. It leaves the settings of the transaction as they were. If UpTx returns an
// error, roll the transaction back. Until the transaction ends, calls of Up for the same
// schema wait.
func UpTx(ctx context.Context, tx *sql.Tx, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	restore, err := trust.Save(ctx, tx)
	if err != nil {
		return failed("install", d.Schema, err)
	}
	if err := lock(ctx, tx, d.Schema); err != nil {
		return failed("install", d.Schema, err)
	}
	if _, err := d.install(ctx, tx); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return failed("install", d.Schema, err)
	}
	return nil
}

// install installs the missing migrations in a transaction that has called lock.
func (d data) install(ctx context.Context, tx *sql.Tx) (applied []Migration, err error) {
	if err := refuseCitusWorker(ctx, tx); err != nil {
		return nil, err
	}
	// CREATE SCHEMA IF NOT EXISTS would need the privilege even if the schema exists.
	if _, err := tx.ExecContext(ctx, d.createSchemas()); err != nil {
		return nil, uncreated(d, err)
	}
	// Only now, because another role could have created a schema until now.
	if err := checkOwners(ctx, tx, "install", d); err != nil {
		return nil, err
	}
	installed, err := revisions(ctx, tx, d.Schema)
	if errors.Is(err, ErrNotInstalled) {
		err = refuseRemains(ctx, tx, "install", d)
	}
	if err != nil {
		return nil, err
	}
	if err := checkLayouts(ctx, tx, d, true); err != nil {
		return nil, err
	}
	list := d.list()
	for _, m := range list {
		if _, ok := installed[m.Version]; ok {
			continue
		}
		if _, err := tx.ExecContext(ctx, m.Up); err != nil {
			return nil, failed("install", d.Schema, fmt.Errorf("migration %d (%s): %w", m.Version, m.Name, err))
		}
		applied = append(applied, m)
	}
	if d.SnowflakeSI != nil {
		present, err := layouts(ctx, tx, d.Schema)
		if err != nil {
			return nil, err
		}
		if present[d.SnowflakeSI.Format] == "" {
			if _, err := tx.ExecContext(ctx, d.snowflakeSIFunctions()); err != nil {
				return nil, failed("install SnowflakeSI in", d.Schema, err)
			}
			i := slices.IndexFunc(list, func(m Migration) bool { return m.Name == d.SnowflakeSI.Format })
			applied = append(applied, list[i])
		}
	}
	if _, err := tx.ExecContext(ctx, d.dropVersionTable()); err != nil {
		return nil, failed("install", d.Schema, err)
	}
	return applied, checkInstallation(ctx, tx, d)
}

// Down removes an installation in one transaction. It also drops each of the two
// schemas if the migrations created it and it is empty. If columns, defaults or
// functions depend on the installation, Down removes nothing and returns an error
// that names up to 20 of them. If nothing is installed, Down does nothing.
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
		installed, err := revisions(ctx, tx, d.Schema)
		if err != nil && !errors.Is(err, ErrNotInstalled) {
			return err
		}
		for version := range installed {
			if version > len(list) {
				return fmt.Errorf("migrations: remove schema %q: it has migration %d, and this version of the package has migrations up to %d; run Down of the version that installed it",
					d.Schema, version, len(list))
			}
		}
		var statements []string
		for _, m := range slices.Backward(list) {
			if _, ok := installed[m.Version]; ok {
				statements = append(statements, m.Down)
			}
		}
		statements = append(statements, d.dropVersionTable(), d.dropEmptySchemas())
		for _, s := range append([]string{"SAVEPOINT installed"}, statements...) {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				if sqlState(err) == pgerror.DependentObjects {
					names, readErr := d.dependents(ctx, tx)
					err = withDependents(err, names, readErr)
				}
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

func failed(verb, schema string, err error) error {
	return fmt.Errorf("migrations: %s schema %q: %w", verb, schema, err)
}

// locked runs f in a transaction that has called lock.
func locked(ctx context.Context, db *sql.DB, verb, schema string, f func(*sql.Tx) error) error {
	var own error // the error of f, which already names the verb and the schema
	err := inTx(ctx, db, func(tx *sql.Tx) error {
		if err := lock(ctx, tx, schema); err != nil {
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

// lock gives a transaction the settings of package trust, and waits until other transactions
// on the same installation end.
func lock(ctx context.Context, tx *sql.Tx, schema string) error {
	if _, err := tx.ExecContext(ctx, trust.Settings()); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtextextended(concat('sortkey migrations of ', $1::text), 0::bigint))", schema)
	return err
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

// withDependents adds the names of the dependent objects to the error of a DROP. If there are none,
// it adds the server's detail, which names only the ones of the object in that DROP: they are a
// user's objects in the schemas, or partitions. readErr is the error of reading the names.
func withDependents(err error, names []string, readErr error) error {
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	const shown = 20
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown:shown], fmt.Sprintf("and %d more", more))
	}
	if detail := pgerror.Detail(err); len(names) == 0 && detail != "" {
		names = []string{detail}
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w; drop or change the dependent objects first", err)
}

// dependents goes back to the savepoint installed, and returns the names of the objects outside of
// the two schemas that depend on objects in them. It omits partitions, which change with their
// table.
func (d data) dependents(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT installed"); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, dependentsQuery, d.Schema, d.Internal)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, trust.Visible(name))
	}
	return names, rows.Err()
}

// dependentsQuery is the query of dependents. used also has the arrays and the domains of the
// types in the schemas.
const dependentsQuery = `
	WITH RECURSIVE inside (class, oid) AS (
		SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid IN (SELECT oid FROM pg_namespace WHERE nspname IN ($1::text, $2::text))
	), used AS (
		SELECT * FROM inside
		UNION SELECT d.classid, d.objid FROM used u JOIN pg_depend d ON d.refclassid = u.class AND d.refobjid = u.oid WHERE d.classid = 'pg_type'::regclass
	)
	SELECT DISTINCT CASE WHEN owner.refobjid IS NULL THEN pg_describe_object(d.classid, d.objid, d.objsubid) ELSE pg_describe_object(owner.refclassid, owner.refobjid, owner.refobjsubid) END
	FROM used u JOIN pg_depend d ON d.refclassid = u.class AND d.refobjid = u.oid AND d.deptype = 'n'
		LEFT JOIN pg_depend owner ON owner.classid = d.classid AND owner.objid = d.objid AND owner.objsubid = d.objsubid AND owner.deptype = 'i' -- the view of a rule, for example
	WHERE NOT EXISTS (
		SELECT FROM (
			SELECT d.classid, d.objid
			UNION ALL SELECT p.refclassid, p.refobjid FROM pg_depend p WHERE p.classid = d.classid AND p.objid = d.objid AND p.deptype IN ('a', 'i')
		) part (class, oid)
		WHERE (part.class, part.oid) IN (SELECT class, oid FROM inside)
			OR part.class = 'pg_class'::regclass AND part.oid IN (SELECT oid FROM pg_class WHERE relispartition)
	) ORDER BY 1`
