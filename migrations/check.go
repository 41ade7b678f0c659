package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// The problems with an installation that [Check], [Up] and [Down] report. Errors
// wrap them, so compare with [errors.Is].
var (
	// ErrNotInstalled means that the schema doesn't exist or has no installation.
	ErrNotInstalled = errors.New("sortkey not installed")
	// ErrOutdated means that migrations of this version of the package, or the
	// functions of SnowflakeSI, are not installed.
	ErrOutdated = errors.New("outdated installation")
	// ErrIncomplete means that the tables that record the installation are empty,
	// as after a restore of a dump without its data.
	ErrIncomplete = errors.New("empty installation tables")
	// ErrLayout means that the layouts of the installation differ from the Config.
	ErrLayout = errors.New("layout mismatch")
	// ErrCitusWorker means that the connection is to a worker of a Citus cluster.
	// Only the coordinator has the tables of an installation.
	ErrCitusWorker = errors.New("connection to a Citus worker")
	// ErrUnreservedNode means that a default generates IDs with a node number that
	// a program could claim. Only CheckDefaults returns it.
	ErrUnreservedNode = errors.New("unreserved node number")
	// ErrNoNode means that a default takes its node number from the setting
	// sortkey.node, and that the setting is missing or out of range, so that inserts
	// fail. Only CheckDefaults returns it.
	ErrNoNode = errors.New("no node number")
	// ErrCopied means that the database was copied, restored from a dump, promoted or
	// recovered since it used its node numbers, and that nobody has said whether the other
	// one still uses them. Only CheckDefaults returns it.
	ErrCopied = errors.New("copied database")
	// ErrUntrusted means that another role could run code with the rights of the
	// session: it owns one of the schemas or an object in them, can create objects or
	// write to tables there, or the tables of the installation are views, for example. A
	// session trusts itself, the roles that it is a member of, the owner of the
	// database, and superusers. A superuser trusts only superusers.
	ErrUntrusted = errors.New("objects of an untrusted role")
)

// Check returns an error unless the database has all migrations, with the layouts
// of c. Call it when a process starts. A process whose layout has another epoch,
// for example, would read wrong times from IDs and could generate duplicates. If
// the layouts differ, the error names both.
//
// Check reads two tables and needs only USAGE on the schema. It accepts an installation
// by any tool and by any role, because a program runs the functions of the owner anyway. It
// returns [ErrUntrusted] if reading the tables would run code. Before you use an
// installation as an administrator, call [CheckOwner].
//
// Call [CheckDefaults] after Check, and log its result.
func Check(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	return trust.Read(ctx, db, func(tx *sql.Tx) error { return checkInstallation(ctx, tx, d) })
}

// CheckDefaults looks at the defaults of columns that generate IDs with a node number. If
// a program claimed that number, both could generate the same IDs. So CheckDefaults
// returns [ErrUnreservedNode] if the number of a default isn't reserved, and [ErrNoNode]
// if a default needs the setting sortkey.node and its session has no such setting, or one
// that is no node number. It returns [ErrCopied] if the database is a copy, or was restored
// or promoted, until somebody calls confirm_original or confirm_copy. The error names the
// defaults, and the statements that correct the problems. It can wrap all three. One error
// in its chain has a method Unwrap() []error, which returns an error per problem. The view
// node_defaults lists the defaults.
//
// Log the error as a warning, and go on: any role with USAGE on the schema can create a
// table with such a default. CheckDefaults waits up to 5 s for a table that is locked.
//
// CheckDefaults returns [ErrUntrusted] if the session doesn't trust the owner of the
// installation. It needs USAGE on the schema.
func CheckDefaults(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	return trust.Read(ctx, db, func(tx *sql.Tx) error {
		if err := checkOwners(ctx, tx, "check", d); err != nil {
			return err
		}
		return checkDefaults(ctx, tx, d.Schema)
	})
}

// CheckOwner returns [ErrUntrusted] if a role that the session doesn't trust owns one of
// the schemas or an object in them, can create objects there, or can write to the tables
// that programs rely on, or if a table has other triggers, rules, policies, defaults, or
// constraints, indexes and statistics with expressions, than the migrations created. Then the
// installation could run code of that role with the rights of the session. CheckOwner returns nil
// if nothing is installed. It reads only the catalog. [Up], [Down], [Status] and [CheckDefaults] call it.
func CheckOwner(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	return trust.Read(ctx, db, func(tx *sql.Tx) error { return checkOwners(ctx, tx, "check", d) })
}

// checkOwners is CheckOwner.
func checkOwners(ctx context.Context, tx *sql.Tx, verb string, d data) error {
	findings, err := trust.Find(ctx, tx, trust.Installation(d.Schema))
	if err != nil {
		return failed(verb, d.Schema, err)
	}
	if len(findings) > 0 {
		return fmt.Errorf("migrations: %s schema %q: %s (%s); %s: %w",
			verb, d.Schema, trust.List(findings), trust.Rule, trust.Remedy(ctx, tx, d.Schema, findings), ErrUntrusted)
	}
	found, err := trust.Find(ctx, tx, trust.Definitions([]string{d.Schema, d.Internal}))
	if err != nil {
		return failed(verb, d.Schema, err)
	}
	if findings := d.compare(found); len(findings) > 0 {
		return fmt.Errorf("migrations: %s schema %q: %s; drop what the migrations didn't create, and restore what is missing: %w", verb, d.Schema, trust.List(findings), ErrUntrusted)
	}
	return nil
}

// Installed returns the Config of the installation in a schema: "" means
// [DefaultSchema]. Use it in tools that work with any installation. A program that
// generates IDs passes its own Config to [Check] instead, since a changed layout
// must be an error.
//
// Installed needs only USAGE on the schema. Like Check, it returns
// [ErrNotInstalled], [ErrIncomplete] or [ErrCitusWorker] if it finds no layouts. It returns
// [ErrLayout] for a layout that this version of the package doesn't know.
func Installed(ctx context.Context, db *sql.DB, schema string) (Config, error) {
	c := Config{Schema: schema}
	d, err := c.data()
	if err != nil {
		return Config{}, err
	}
	var installed map[string]string
	err = trust.Read(ctx, db, func(tx *sql.Tx) (err error) {
		installed, err = layouts(ctx, tx, d.Schema)
		return err
	})
	if err != nil {
		return Config{}, err
	}
	if installed[d.Snowflake.Format] == "" {
		return Config{}, fmt.Errorf("migrations: read schema %q: table %[1]s.layout has no layout of Snowflake; restore the data of the schemas, or run Up: %w", d.Schema, ErrIncomplete)
	}
	if c.Snowflake, err = parseSnowflakeLayout(installed[d.Snowflake.Format]); err != nil {
		return Config{}, fmt.Errorf("migrations: read schema %q: %w: %w", d.Schema, err, ErrLayout)
	}
	if text := installed["snowflake_si"]; text != "" {
		if c.SnowflakeSI, err = parseSnowflakeSILayout(text); err != nil {
			return Config{}, fmt.Errorf("migrations: read schema %q: %w: %w", d.Schema, err, ErrLayout)
		}
	}
	return c, nil
}

// checkInstallation is Check.
func checkInstallation(ctx context.Context, tx *sql.Tx, d data) error {
	applied, err := revisions(ctx, tx, d.Schema)
	if err != nil {
		return err
	}
	for i, s := range steps() {
		if _, ok := applied[i+1]; !ok {
			return fmt.Errorf("migrations: check schema %q: migration %d (%s) of %d is not installed; run Up, or the tool that installed the others: %w",
				d.Schema, i+1, s.name, len(steps()), ErrOutdated)
		}
	}
	return checkLayouts(ctx, tx, d, false)
}

// checkDefaults returns an error if a default has no node number, or one that isn't
// reserved. It ignores defaults whose number isn't a literal.
func checkDefaults(ctx context.Context, tx *sql.Tx, schema string) error {
	// To print a default, the server locks its table. Any role can keep its own table locked.
	if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = '5s'"); err != nil {
		return unreadable(schema, err)
	}
	rows, err := tx.QueryContext(ctx, "SELECT 'copied', pg_catalog.format('database %s %s (%s)', pg_catalog.current_database(), problem, remedy) FROM "+schema+".database_problems"+
		" UNION ALL (SELECT CASE WHEN no_node THEN 'missing' ELSE 'unreserved' END, pg_catalog.format('%s %s (%s)', subject, problem, remedy) FROM "+schema+".node_problems ORDER BY no_node DESC, pool, number, 2)")
	if err != nil {
		return unreadable(schema, err)
	}
	defer rows.Close()
	var problems defaultProblems
	for rows.Next() {
		var kind, problem string
		if err := rows.Scan(&kind, &problem); err != nil {
			return unreadable(schema, err)
		}
		sentinel := map[string]error{"copied": ErrCopied, "missing": ErrNoNode, "unreserved": ErrUnreservedNode}[kind]
		problems = append(problems, fmt.Errorf("%s: %w", problem, sentinel))
	}
	if err := rows.Err(); err != nil {
		return unreadable(schema, err)
	}
	if problems == nil {
		return nil
	}
	return fmt.Errorf("migrations: check the defaults of schema %q: %w", schema, problems)
}

// defaultProblems are the problems with defaults, as one error.
type defaultProblems []error

func (p defaultProblems) Unwrap() []error { return p }

func (p defaultProblems) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// checkLayouts returns [ErrLayout] if an installation has other layouts than d, and
// [ErrOutdated] if a layout is missing, unless beforeUp is true.
func checkLayouts(ctx context.Context, tx *sql.Tx, d data, beforeUp bool) error {
	installed, err := layouts(ctx, tx, d.Schema)
	if err != nil {
		if beforeUp && errors.Is(err, ErrNotInstalled) {
			return nil
		}
		return err
	}
	wanted := []struct{ format, title, layout string }{{d.Snowflake.Format, d.Snowflake.Title, d.Snowflake.Layout}}
	if si := d.SnowflakeSI; si != nil {
		wanted = append(wanted, struct{ format, title, layout string }{si.Format, si.Title, si.Layout})
	}
	for _, w := range wanted {
		got, ok := installed[w.format]
		switch {
		case got == w.layout, !ok && beforeUp:
		case !ok:
			return fmt.Errorf("migrations: check schema %q: it has no functions for %s (%s); run Up with this Config, or add them with AddSnowflakeSI and your own tool: %w",
				d.Schema, w.title, w.layout, ErrOutdated)
		default:
			return fmt.Errorf("migrations: check schema %q: its %s layout is %s, and this process has %s; give this process the layout of the database, or another schema: %w",
				d.Schema, w.title, got, w.layout, ErrLayout)
		}
	}
	return nil
}

func hasSchema(ctx context.Context, tx *sql.Tx, schema string) (there bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '"+schema+"')").Scan(&there)
	if err != nil {
		return false, failed("find", schema, err)
	}
	return there, nil
}

// hasTable reports whether a table exists, even if the role cannot read it.
func hasTable(ctx context.Context, tx *sql.Tx, schema, table string) (there bool, err error) {
	// to_regclass would need USAGE on the schema. With parameters, lib/pq would use
	// a prepared statement, which can fail behind PgBouncer. The names need no
	// escaping: they consist of letters, digits and underscores.
	err = tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = '%s' AND c.relname = '%s')`, schema, table)).Scan(&there)
	if err != nil {
		return false, failed("inspect", schema, err)
	}
	return there, nil
}

// layouts returns the layouts of an installation by format.
func layouts(ctx context.Context, tx *sql.Tx, schema string) (map[string]string, error) {
	return readMap[string, string](ctx, tx, schema, "layout", "format, layout")
}

// revisions returns the times of the installed migrations by version.
func revisions(ctx context.Context, tx *sql.Tx, schema string) (map[int]time.Time, error) {
	applied, err := readMap[int, time.Time](ctx, tx, schema, "revision", "version, installed_at")
	if err == nil && len(applied) == 0 {
		// The first migration creates the table and writes a row.
		err = fmt.Errorf("migrations: check schema %q: table %[1]s.revision is empty, as after a restore without data; restore the data of the schemas (pg_dump --data-only --schema=%[1]s --schema=%[2]s): %[3]w",
			schema, schema+internalSuffix, ErrIncomplete)
	}
	return applied, err
}

func readMap[K comparable, V any](ctx context.Context, tx *sql.Tx, schema, table, columns string) (map[K]V, error) {
	there, err := hasTable(ctx, tx, schema, table)
	if err != nil {
		return nil, err
	}
	if !there {
		if err := refuseCitusWorker(ctx, tx); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("migrations: this database has no table %s.%s; run Up, or your own migration tool: %w", schema, table, ErrNotInstalled)
	}
	if err := refuseCode(ctx, tx, schema, table); err != nil {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+columns+" FROM ONLY "+schema+"."+table)
	if err != nil {
		return nil, unreadable(schema, err)
	}
	defer rows.Close()
	m := map[K]V{}
	for rows.Next() {
		var k K
		var v V
		if err := rows.Scan(&k, &v); err != nil {
			return nil, unreadable(schema, err)
		}
		m[k] = v
	}
	if err := rows.Err(); err != nil {
		return nil, unreadable(schema, err)
	}
	return m, nil
}

// refuseCode returns [ErrUntrusted] if reading a table could run code of its owner. The server
// computes constant parts of expressions when it plans a statement.
func refuseCode(ctx context.Context, tx *sql.Tx, schema, table string) error {
	var reason sql.NullString
	err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT CASE WHEN c.relkind <> 'r' THEN 'is not a table' WHEN c.relrowsecurity THEN 'has row security' WHEN c.relhasrules THEN 'has rules'
			WHEN EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
				OR EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c')
				OR EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = c.oid AND s.stxexprs IS NOT NULL) THEN 'has expressions in indexes, constraints or statistics'
			WHEN EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND tn.nspname <> 'pg_catalog') THEN 'has a column of another type' END
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '%s' AND c.relname = '%s'`, schema, table)).Scan(&reason)
	if err != nil {
		return failed("inspect", schema, err)
	}
	if !reason.Valid {
		return nil
	}
	return fmt.Errorf("migrations: check schema %q: %[1]s.%s %s, so it wasn't created by the migrations; if the schema isn't yours, drop it or choose another one: %w",
		schema, table, reason.String, ErrUntrusted)
}

// refuseCitusWorker returns [ErrCitusWorker] if the server is a worker of a Citus
// cluster. The coordinator creates the functions and types of an installation on
// the workers, but not its tables.
func refuseCitusWorker(ctx context.Context, tx *sql.Tx) error {
	const catalog, table = "pg_catalog", "pg_dist_local_group"
	citus, err := hasTable(ctx, tx, catalog, table)
	if err != nil || !citus {
		return err
	}
	var group int // the coordinator's is 0
	if err := tx.QueryRowContext(ctx, "SELECT groupid FROM "+catalog+"."+table).Scan(&group); err != nil {
		return failed("inspect", catalog, err)
	}
	if group == 0 {
		return nil
	}
	return fmt.Errorf("migrations: this server is worker %d of a Citus cluster; connect to the coordinator: %w", group, ErrCitusWorker)
}

// unreadable adds the missing privilege to an error from reading an installation.
func unreadable(schema string, err error) error {
	if sqlState(err) == insufficientPrivilege {
		err = fmt.Errorf("%w; run GRANT USAGE ON SCHEMA %s TO this role", err, schema)
	}
	return failed("read", schema, err)
}

const insufficientPrivilege = "42501"

// sqlState returns the code of a server's error, or "" for other errors.
func sqlState(err error) string { return pgerror.State(err) }
