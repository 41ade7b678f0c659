package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
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
	// ErrForeign means that a tool other than Up ran the migrations.
	ErrForeign = errors.New("installation by another tool")
	// ErrCitusWorker means that the connection is to a worker of a Citus cluster.
	// Only the coordinator has the tables of an installation.
	ErrCitusWorker = errors.New("connection to a Citus worker")
	// ErrUnreservedNode means that a default generates IDs with a node number that
	// a program could claim. Only Check returns it, if the installation is right.
	ErrUnreservedNode = errors.New("unreserved node number")
	// ErrNoNode means that a default takes its node number from the setting
	// sortkey.node, and that the setting is missing or out of range, so that inserts
	// fail. Only Check returns it, if the installation is right.
	ErrNoNode = errors.New("no node number")
)

// Check returns an error unless the database has all migrations, with the layouts
// of c. Call it when a process starts. A process whose layout has another epoch,
// for example, would read wrong times from IDs and could generate duplicates. If
// the layouts differ, the error names both.
//
// Check also looks at the defaults that generate IDs with a node number. If a
// program claimed that number, both could generate the same IDs. So Check returns
// [ErrUnreservedNode] if the number of a default isn't reserved, and [ErrNoNode] if
// a default needs the setting sortkey.node and Check's session has no such setting,
// or one that is no node number. The error names the defaults and the statements
// that correct them. It can wrap both, but no error of the installation, so a
// process can log it and start. One error in its chain has a method Unwrap() []error,
// which returns an error per default. The view node_defaults lists the defaults.
//
// Check needs only USAGE on the schema. It accepts an installation by any tool.
func Check(ctx context.Context, db *sql.DB, c Config) error {
	d, err := c.data()
	if err != nil {
		return err
	}
	if err := checkInstallation(ctx, db, d); err != nil {
		return err
	}
	return checkDefaults(ctx, db, d.Schema)
}

// Installed returns the Config of the installation in a schema: "" means
// [DefaultSchema]. Use it in tools that work with any installation. A program that
// generates IDs passes its own Config to [Check] instead, since a changed layout
// must be an error.
//
// Installed needs only USAGE on the schema. Like Check, it returns
// [ErrNotInstalled], [ErrIncomplete] or [ErrCitusWorker] if it finds no layouts.
func Installed(ctx context.Context, db *sql.DB, schema string) (Config, error) {
	c := Config{Schema: schema}
	d, err := c.data()
	if err != nil {
		return Config{}, err
	}
	installed, err := layouts(ctx, db, d.Schema)
	if err != nil {
		return Config{}, err
	}
	if installed[d.Snowflake.Format] == "" {
		return Config{}, fmt.Errorf("migrations: read schema %q: table %[1]s.layout has no layout of Snowflake; restore the data of the schemas, or run Up: %w", d.Schema, ErrIncomplete)
	}
	if c.Snowflake, err = parseSnowflakeLayout(installed[d.Snowflake.Format]); err != nil {
		return Config{}, fmt.Errorf("migrations: read schema %q: %w", d.Schema, err)
	}
	if text := installed["snowflake_si"]; text != "" {
		if c.SnowflakeSI, err = parseSnowflakeSILayout(text); err != nil {
			return Config{}, fmt.Errorf("migrations: read schema %q: %w", d.Schema, err)
		}
	}
	return c, nil
}

// checkInstallation is Check without checkDefaults.
func checkInstallation(ctx context.Context, db querier, d data) error {
	applied, err := revisions(ctx, db, d.Schema)
	if err != nil {
		return err
	}
	for i, s := range steps() {
		if _, ok := applied[i+1]; !ok {
			return fmt.Errorf("migrations: check schema %q: migration %d (%s) of %d is not installed; run Up, or the tool that installed the others: %w",
				d.Schema, i+1, s.name, len(steps()), ErrOutdated)
		}
	}
	return checkLayouts(ctx, db, d, false)
}

// checkDefaults returns an error if a default has no node number, or one that isn't
// reserved. It ignores defaults whose number isn't a literal.
func checkDefaults(ctx context.Context, db querier, schema string) error {
	rows, err := db.QueryContext(ctx, "SELECT no_node, problem FROM "+schema+".node_problems ORDER BY 1 DESC, pool, number, problem")
	if err != nil {
		return unreadable(schema, err)
	}
	defer rows.Close()
	var problems defaultProblems
	for rows.Next() {
		var noNode bool
		var problem string
		if err := rows.Scan(&noNode, &problem); err != nil {
			return unreadable(schema, err)
		}
		sentinel := ErrUnreservedNode
		if noNode {
			sentinel = ErrNoNode
		}
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
func checkLayouts(ctx context.Context, db querier, d data, beforeUp bool) error {
	installed, err := layouts(ctx, db, d.Schema)
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

// A querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func hasSchema(ctx context.Context, db querier, schema string) (there bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '"+schema+"')").Scan(&there)
	if err != nil {
		return false, failed("find", schema, err)
	}
	return there, nil
}

// hasTable reports whether a table exists, even if the role cannot read it.
func hasTable(ctx context.Context, db querier, schema, table string) (there bool, err error) {
	// to_regclass would need USAGE on the schema. With parameters, lib/pq would use
	// a prepared statement, which can fail behind PgBouncer. The names need no
	// escaping: they consist of letters, digits and underscores.
	err = db.QueryRowContext(ctx, fmt.Sprintf(`SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = '%s' AND c.relname = '%s')`, schema, table)).Scan(&there)
	if err != nil {
		return false, failed("inspect", schema, err)
	}
	return there, nil
}

// layouts returns the layouts of an installation by format.
func layouts(ctx context.Context, db querier, schema string) (map[string]string, error) {
	return readMap[string, string](ctx, db, schema, "layout", "format, layout")
}

// revisions returns the times of the installed migrations by version.
func revisions(ctx context.Context, db querier, schema string) (map[int]time.Time, error) {
	applied, err := readMap[int, time.Time](ctx, db, schema, "revision", "version, installed_at")
	if err == nil && len(applied) == 0 {
		// The first migration creates the table and writes a row.
		err = fmt.Errorf("migrations: check schema %q: table %[1]s.revision is empty, as after a restore without data; restore the data of the schemas (pg_dump --data-only --schema=%[1]s --schema=%[2]s): %[3]w",
			schema, schema+internalSuffix, ErrIncomplete)
	}
	return applied, err
}

// ownRevisions returns the revisions of an installation by Up, or nil if nothing
// is installed. It returns [ErrForeign] if Up has no record of the migrations.
func ownRevisions(ctx context.Context, db querier, schema string) (map[int]time.Time, error) {
	applied, err := revisions(ctx, db, schema)
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	own, err := hasTable(ctx, db, schema+internalSuffix, versionTable)
	if err != nil || own {
		return applied, err
	}
	return nil, fmt.Errorf("migrations: schema %q has %d migrations that another tool ran; continue with that tool and its files: %w",
		schema, len(applied), ErrForeign)
}

func readMap[K comparable, V any](ctx context.Context, db querier, schema, table, columns string) (map[K]V, error) {
	there, err := hasTable(ctx, db, schema, table)
	if err != nil {
		return nil, err
	}
	if !there {
		if err := refuseCitusWorker(ctx, db); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("migrations: this database has no table %s.%s; run Up, or your own migration tool: %w", schema, table, ErrNotInstalled)
	}
	rows, err := db.QueryContext(ctx, "SELECT "+columns+" FROM "+schema+"."+table)
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

// refuseCitusWorker returns [ErrCitusWorker] if the server is a worker of a Citus
// cluster. The coordinator creates the functions and types of an installation on
// the workers, but not its tables.
func refuseCitusWorker(ctx context.Context, db querier) error {
	const catalog, table = "pg_catalog", "pg_dist_local_group"
	citus, err := hasTable(ctx, db, catalog, table)
	if err != nil || !citus {
		return err
	}
	var group int // the coordinator's is 0
	if err := db.QueryRowContext(ctx, "SELECT groupid FROM "+catalog+"."+table).Scan(&group); err != nil {
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
func sqlState(err error) string {
	var pg interface{ SQLState() string } // an error of pgx or lib/pq
	if errors.As(err, &pg) {
		return pg.SQLState()
	}
	return ""
}
