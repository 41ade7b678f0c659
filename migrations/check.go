package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What [Check], [Up] and [Down] find wrong with an installation. Errors wrap
// them, so compare with [errors.Is].
var (
	// ErrNotInstalled: the schema isn't there, or nothing of ours is in it.
	ErrNotInstalled = errors.New("sortkey not installed")
	// ErrOutdated: migrations of this package's version were not run.
	ErrOutdated = errors.New("outdated installation")
	// ErrIncomplete: the tables that say what is installed are empty, as after
	// a dump was restored without its data.
	ErrIncomplete = errors.New("empty installation tables")
	// ErrLayout: the installation is for other layouts.
	ErrLayout = errors.New("layout mismatch")
	// ErrForeign: the migrations were run by something else than Up.
	ErrForeign = errors.New("installation by another tool")
	// ErrCitusWorker: the connection is to a worker of a Citus cluster. The tables
	// of an installation exist on the coordinator only.
	ErrCitusWorker = errors.New("connection to a Citus worker")
	// ErrUnreservedNode: a default mints with a node number that a program could
	// claim. Only Check returns it, and only if nothing else is wrong.
	ErrUnreservedNode = errors.New("unreserved node number")
)

// Check tells whether the database has what this process takes for granted:
// all migrations, of the same layouts. A process with another epoch, say,
// would read wrong times out of IDs, and could mint some that are there; the
// error has both layouts. Call it when the process starts.
//
// Check also looks for defaults that mint with a node number that isn't
// reserved. If a program claims that number, both mint the same IDs.
// [ErrUnreservedNode] names the defaults and the call that reserves the number.
// Nothing else is wrong, so a process may log this error and start. The view
// node_defaults lists the defaults.
//
// A role needs USAGE on the schema for it, and no more. It doesn't matter which
// tool ran the migrations.
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

// checkInstallation does what Check does, except that it ignores defaults.
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

// checkDefaults looks for node numbers in defaults that aren't reserved. A
// number that isn't a literal can't be known here.
func checkDefaults(ctx context.Context, db querier, schema string) error {
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT pool, number, min(kind || ' ' || name), count(*) - 1,
			format('SELECT %[1]s.reserve_node(%%L, %%s, %%L)', pool, number, min(kind || ' ' || name))
		FROM %[1]s.node_defaults WHERE number IS NOT NULL AND reserved IS NULL GROUP BY pool, number ORDER BY pool, number`, schema))
	if err != nil {
		return unreadable(schema, err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var pool, name, remedy string
		var number, more int
		if err := rows.Scan(&pool, &number, &name, &more, &remedy); err != nil {
			return unreadable(schema, err)
		}
		if more > 0 {
			name = fmt.Sprintf("%s (and %d more)", name, more)
		}
		found = append(found, fmt.Sprintf("%s uses unreserved number %d of pool %s (run %s)", name, number, pool, remedy))
	}
	if err := rows.Err(); err != nil {
		return unreadable(schema, err)
	}
	if found == nil {
		return nil
	}
	return fmt.Errorf("migrations: check the defaults of schema %q: %s: %w", schema, strings.Join(found, "; "), ErrUnreservedNode)
}

// checkLayouts compares the layouts of an installation with those wanted.
// Before Up it is no fault that one isn't there.
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

// querier is what *sql.DB and *sql.Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func hasSchema(ctx context.Context, db querier, schema string) (there bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '"+schema+"')").Scan(&there)
	if err != nil {
		return false, failed("look for", schema, err)
	}
	return there, nil
}

// hasTable tells whether there is a table, whoever may read it.
func hasTable(ctx context.Context, db querier, schema, table string) (there bool, err error) {
	// Not to_regclass, which needs USAGE on the schema. And no parameters, which
	// with lib/pq mean a prepared statement, and trouble behind PgBouncer; the
	// names are of letters, digits and underscores.
	err = db.QueryRowContext(ctx, fmt.Sprintf(`SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = '%s' AND c.relname = '%s')`, schema, table)).Scan(&there)
	if err != nil {
		return false, failed("look into", schema, err)
	}
	return there, nil
}

// layouts are the installation's, by format.
func layouts(ctx context.Context, db querier, schema string) (map[string]string, error) {
	return readMap[string, string](ctx, db, schema, "layout", "format, layout")
}

// revisions are the migrations that were run, and when.
func revisions(ctx context.Context, db querier, schema string) (map[int]time.Time, error) {
	applied, err := readMap[int, time.Time](ctx, db, schema, "revision", "version, installed_at")
	if err == nil && len(applied) == 0 {
		// The first migration writes a row where it makes the table.
		err = fmt.Errorf("migrations: check schema %q: table %[1]s.revision is empty, as after a restore without data; restore the data of the schema (pg_dump --data-only --schema=%[1]s): %w",
			schema, ErrIncomplete)
	}
	return applied, err
}

// ownRevisions are revisions of an installation that Up has made, or none. One
// whose migrations Up has no record of is refused.
func ownRevisions(ctx context.Context, db querier, schema string) (map[int]time.Time, error) {
	applied, err := revisions(ctx, db, schema)
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	own, err := hasTable(ctx, db, schema, versionTable)
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
// cluster, where the coordinator has made the functions and types of an
// installation, but none of its tables.
func refuseCitusWorker(ctx context.Context, db querier) error {
	const catalog, table = "pg_catalog", "pg_dist_local_group"
	citus, err := hasTable(ctx, db, catalog, table)
	if err != nil || !citus {
		return err
	}
	var group int // the coordinator's is 0
	if err := db.QueryRowContext(ctx, "SELECT groupid FROM "+catalog+"."+table).Scan(&group); err != nil {
		return failed("look into", catalog, err)
	}
	if group == 0 {
		return nil
	}
	return fmt.Errorf("migrations: this server is worker %d of a Citus cluster; connect to the coordinator: %w", group, ErrCitusWorker)
}

// unreadable says what a role lacks that can't read what is installed.
func unreadable(schema string, err error) error {
	var pg interface{ SQLState() string }
	if errors.As(err, &pg) && pg.SQLState() == "42501" {
		err = fmt.Errorf("%w; run GRANT USAGE ON SCHEMA %s TO this role", err, schema)
	}
	return failed("read", schema, err)
}
