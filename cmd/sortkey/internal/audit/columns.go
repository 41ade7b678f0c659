package audit

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// A database is a database with columns to audit.
type database struct {
	label string // the name of the database, with its host if several have this name
	mu    sync.Mutex
	pool  *cli.Pool
	conn  *pgx.Conn // of the pool, guarded by mu while columns are read
	std   *sql.DB   // the pool, for the packages that read the installation

	config migrations.Config
	// notInstalled is the reason why config has only defaults. If the role cannot read
	// the installation, forbidden is set, too.
	notInstalled error
	forbidden    bool
}

// A column is a column of IDs to audit, with its result.
type column struct {
	Table    // its names are quoted as in SQL
	db       *database
	oid      uint32
	name     string // of the column, as in the catalog
	format   *format
	base     string // bigint or uuid
	unique   bool   // an index ensures that no ID stands twice
	nullable bool
	hidden   bool // row-level security hides rows from the role

	first   string       // the condition of the first batch
	batches chan []entry // closed at the end

	// In Unix milliseconds. The first one is after the last one until an ID has a time.
	firstTime, lastTime int64
}

// String returns the column's name as in SQL.
func (col *column) String() string { return col.Table.Table + "." + col.Column }

// open connects to a database.
func open(ctx context.Context, url string, o *Options) (*database, error) {
	pool, err := cli.Open(ctx, url, func(config *pgx.ConnConfig) {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statements, for PgBouncer
	})
	if err != nil {
		return nil, err
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	config := pool.Config().ConnConfig
	d := &database{pool: pool, conn: conn.Hijack(), std: stdlib.OpenDBFromPool(pool.Pool), config: migrations.Config{Schema: o.Schema}}
	if err := migrations.CheckOwner(ctx, d.std, d.config); err != nil {
		return nil, cli.ExplainLost(err, config)
	}
	installed, err := migrations.Installed(ctx, d.std, o.Schema)
	switch {
	case errors.Is(err, migrations.ErrNotInstalled), errors.Is(err, migrations.ErrCitusWorker):
		d.notInstalled = fmt.Errorf("the database has no installation in schema %s", o.Schema)
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		d.notInstalled, d.forbidden = fmt.Errorf("the role lacks USAGE on schema %s", o.Schema), true
	case err != nil:
		return nil, cli.ExplainLost(err, config)
	default:
		d.config = installed
	}
	if o.Layouts != nil {
		d.config.Snowflake = o.Layouts.Snowflake
		if !o.Layouts.SnowflakeSI.BaseClock.IsZero() {
			d.config.SnowflakeSI = o.Layouts.SnowflakeSI
		}
	}
	return d, d.row(ctx, []any{&d.label}, "SELECT current_database()")
}

func (d *database) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = d.conn.Close(ctx)
	_ = d.std.Close()
	d.pool.Close()
}

// labelDatabases makes the labels differ.
func labelDatabases(databases []*database) error {
	names := map[string]int{}
	for _, d := range databases {
		names[d.label]++
	}
	seen := map[string]bool{}
	for _, d := range databases {
		if names[d.label] > 1 {
			d.label = fmt.Sprintf("%s:%d/%s", d.conn.Config().Host, d.conn.Config().Port, d.label)
		}
		if seen[d.label] {
			return cli.Usagef("--database: %s is given twice", d.label)
		}
		seen[d.label] = true
	}
	return nil
}

// row scans the only row of a query.
func (d *database) row(ctx context.Context, dst []any, query string, args ...any) error {
	return cli.ExplainLost(cli.ReadRow(ctx, d.conn, dst, query, args...), d.conn.Config())
}

// findColumn returns the column that TABLE[.COLUMN] names.
func (d *database) findColumn(ctx context.Context, name string) (*column, error) {
	path, err := d.pool.SearchPath(ctx)
	if err != nil {
		return nil, err
	}
	var kind string
	found, err := cli.Collect(ctx, d.conn, func(row pgx.CollectableRow) (*column, error) {
		col := &column{db: d, firstTime: math.MaxInt64, lastTime: math.MinInt64}
		col.Database = d.label
		err := row.Scan(&col.oid, &col.name, &col.Table.Table, &col.Column, &kind)
		return col, err
	}, `
		WITH w AS (
			SELECT v.* FROM parse_ident($1::text) p, LATERAL (VALUES
				(1, NULL, p[1], NULL), (2, p[1], p[2], NULL), (2, NULL, p[1], p[2]), (3, p[1], p[2], p[3])
			) v (parts, sch, tab, col) WHERE parts = cardinality(p)
		), r AS (
			SELECT c.*, n.nspname, array_position($2::text[], n.nspname::text) AS place FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		)
		SELECT c.oid, coalesce(w.col, ''), format('%I.%I', c.nspname, c.relname), coalesce(quote_ident(w.col), ''), c.relkind::text
		FROM w JOIN r c ON c.relname = w.tab
		WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f')
			AND coalesce(c.nspname = w.sch, c.place IS NOT NULL AND NOT EXISTS (SELECT FROM r WHERE r.relname = w.tab AND r.place < c.place))
			AND (w.col IS NULL OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = w.col AND a.attnum > 0 AND NOT a.attisdropped))
		ORDER BY w.col NULLS FIRST`, name, path)
	switch {
	case pgerror.State(err) == "22023": // invalid_parameter_value, of parse_ident
		return nil, cli.Usagef("%s: want [SCHEMA.]TABLE[.COLUMN], with names quoted as in SQL", name)
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%s: database %s has no such table or column; quote names with upper case as in SQL", name, d.label)
	case len(found) > 1:
		return nil, cli.Usagef("%s: both table %s and column %s have this name; write the schema, the table and the column",
			name, found[0].Table.Table, found[1])
	case kind == "v" || kind == "f":
		return nil, fmt.Errorf("%s: a view or foreign table has no indexes; name the tables with the rows", found[0].Table.Table)
	}
	if err := cli.CheckTable(ctx, d.std, trust.Reads, found[0].oid); err != nil {
		return nil, err
	}
	return found[0], nil
}

// separate returns an error if one of two tables includes the rows of the other.
func (d *database) separate(ctx context.Context, a, b *column) error {
	var inherits bool
	err := d.row(ctx, []any{&inherits}, `
		WITH RECURSIVE up (child, parent) AS (
			SELECT i.inhrelid, i.inhparent FROM pg_inherits i WHERE i.inhrelid IN ($1, $2)
			UNION SELECT up.child, i.inhparent FROM up JOIN pg_inherits i ON i.inhrelid = up.parent
		)
		SELECT EXISTS (SELECT FROM up WHERE up.parent IN ($1, $2))`, a.oid, b.oid)
	if err == nil && inherits {
		err = cli.Usagef("tables %s and %s have rows in common, since one inherits from the other; name the parent alone", a.Table.Table, b.Table.Table)
	}
	return err
}

// describe reads the properties of a column from the catalog.
func (col *column) describe(ctx context.Context, o *Options) error {
	db := col.db
	if col.name == "" {
		err := db.row(ctx, []any{&col.name, &col.Column}, `
			SELECT a.attname, quote_ident(a.attname) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
			WHERE i.indrelid = $1 AND i.indisprimary AND i.indnkeyatts = 1`, col.oid)
		if errors.Is(err, pgx.ErrNoRows) {
			return cli.Usagef("%s: the table has no primary key of one column; write %[1]s.COLUMN", col.Table.Table)
		}
		if err != nil {
			return err
		}
	}
	var declared, createdAt, format string // format has its source in front
	var indexed, partitioned bool
	err := db.row(ctx, []any{&declared, &createdAt, &col.base, &format, &indexed, &partitioned, &col.unique, &col.nullable, &col.hidden}, `
		WITH RECURSIVE types AS (
			SELECT t.*, 0 AS depth FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = $1 AND a.attname = $2
			UNION ALL
			SELECT t.*, types.depth + 1 FROM types JOIN pg_type t ON t.oid = types.typbasetype AND types.typtype = 'd'
		), indexes AS (
			SELECT i.indisunique AND i.indnkeyatts = 1 AND i.indimmediate AS is_unique FROM pg_index i
				JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam JOIN pg_opclass o ON o.oid = i.indclass[0]
				JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
			WHERE i.indrelid = $1 AND a.attname = $2 AND m.amname = 'btree' AND o.opcdefault AND i.indisvalid AND i.indpred IS NULL
				AND i.indoption[0] IN (0, 3) -- NULLs are at the end of the ascending order
		)
		SELECT format_type(a.atttypid, a.atttypmod),
			coalesce((SELECT format_type(t.atttypid, NULL) FROM pg_attribute t WHERE t.attrelid = a.attrelid AND t.attname = $5 AND t.attnum > 0 AND NOT t.attisdropped), ''),
			(SELECT format_type(oid, NULL) FROM types ORDER BY depth DESC LIMIT 1),
			coalesce(
				'domain ' || (SELECT typname FROM types WHERE typnamespace = to_regnamespace($3) AND typtype = 'd' AND typname = ANY ($4::text[]) ORDER BY depth LIMIT 1),
				'default ' || (SELECT substr(min(p.proname), 6) FROM pg_attrdef d
					JOIN pg_depend u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
					JOIN pg_proc p ON p.oid = u.refobjid AND p.pronamespace = to_regnamespace($3) AND p.proname = ANY (SELECT 'next_' || f FROM unnest($4::text[]) f)
					WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum),
				'comment ' || (SELECT f FROM unnest($4::text[]) f WHERE 'sortkey: ' || f = ANY (string_to_array(col_description(a.attrelid, a.attnum), E'\n')) LIMIT 1), -- of rekey
				''),
			EXISTS (SELECT FROM indexes), c.relkind = 'p',
			-- The index of a table doesn't cover tables that inherit from it.
			EXISTS (SELECT FROM indexes WHERE is_unique) AND (c.relkind = 'p' OR NOT c.relhassubclass),
			NOT a.attnotnull, row_security_active(a.attrelid)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attrelid = $1 AND a.attname = $2`, col.oid, col.name, pgx.Identifier{o.Schema}.Sanitize(), strings.Split(strings.ReplaceAll(strings.Join(ids.Names(), ","), "-", "_"), ","), o.CreatedAt)
	if err != nil {
		return err
	}
	if col.base != "bigint" && col.base != "uuid" {
		return fmt.Errorf("column %s is of type %s: audit reads columns of type bigint and uuid, and of domains over them", col, declared)
	}
	if !indexed {
		concurrently := "CONCURRENTLY "
		if partitioned {
			concurrently = ""
		}
		return fmt.Errorf("column %s has no index, so that each batch would read the whole table; run CREATE INDEX %sON %s (%s)",
			col, concurrently, col.Table.Table, col.Column)
	}
	if err := col.findFormat(ctx, o, format); err != nil {
		return err
	}
	if err := col.setFirst(o.Since); err != nil {
		return err
	}
	switch {
	case o.CreatedAt == "", createdAt == "timestamp with time zone", createdAt == "timestamp without time zone":
		return nil
	case createdAt == "":
		return cli.Usagef("--created-at %s: table %s has no such column", o.CreatedAt, col.Table.Table)
	}
	return cli.Usagef("--created-at %s: the column is of type %s; want timestamp or timestamptz", o.CreatedAt, createdAt)
}

// setFirst sets the condition of the first batch.
func (col *column) setFirst(since time.Time) error {
	if since.IsZero() {
		col.first = col.Column + " IS NOT NULL"
		return nil
	}
	if col.format.Window == nil {
		return cli.Usagef("type %s: the IDs don't sort by time; omit --since", col.Type)
	}
	low, _, err := col.format.Window(since, since)
	if err == nil {
		col.first = fmt.Sprintf("%s >= '%s'::%s", col.Column, ids.ColumnText(low), col.base)
	}
	return cli.Usage(err)
}

// findFormat sets the format of a column: that of its domain, its default or its comment,
// which found has, the one of the partition settings of its table, or --type.
func (col *column) findFormat(ctx context.Context, o *Options, found string) error {
	wanted := o.Type
	source, certain, _ := strings.Cut(found, " ")
	if certain == "" && col.db.notInstalled == nil {
		// The table does not exist in old installations.
		settings := pgx.Identifier{o.Schema, "partitioned_table"}.Sanitize()
		var readable bool
		err := col.db.row(ctx, []any{&readable}, "SELECT coalesce(has_table_privilege(to_regclass($1), 'SELECT'), false)", settings)
		if err == nil && readable {
			err = col.db.row(ctx, []any{&certain}, "SELECT s.format FROM "+settings+` s JOIN pg_partitioned_table p ON p.partrelid = s.parent
				JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] WHERE s.parent::oid = $1 AND a.attname = $2`, col.oid, col.name)
			source = "partition settings"
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	certain = strings.ReplaceAll(certain, "_", "-")
	if certain == "" && wanted == "" && col.base == "uuid" {
		// The text of a Sno has no variant of RFC 9562.
		ends := fmt.Sprintf("(SELECT %[1]s AS id FROM %[2]s WHERE %[1]s IS NOT NULL ORDER BY %[1]s", col.Column, col.Table.Table)
		var isSno bool
		if err := col.db.row(ctx, []any{&isSno}, "SELECT coalesce(bool_or(encode(uuid_send(id), 'escape') ~ '^[2-9a-x]{16}$'), false) FROM ("+
			ends+" LIMIT 100) UNION ALL "+ends+" DESC LIMIT 100)) q"); err != nil {
			return err
		}
		if wanted = "uuid7"; isSno {
			wanted = "sno"
		}
	}
	switch {
	case wanted == "" && certain == "":
		return cli.Usagef("column %s of type bigint: the type of its IDs is unknown; pass --type with one of %s", col, strings.Join(bigintFormats(), ", "))
	case wanted != "" && certain != "" && wanted != certain:
		return cli.Usagef("--type %s: column %s has IDs of type %s by its %s", wanted, col, certain, source)
	case wanted != "" && slices.Contains(bigintFormats(), wanted) != (col.base == "bigint"):
		names := strings.Join(bigintFormats(), ", ")
		if col.base == "uuid" {
			names = "sno, uuid7"
		}
		return cli.Usagef("--type %s: column %s is of type %s; want one of %s", wanted, col, col.base, names)
	}
	col.Type = cmp.Or(certain, wanted)
	if col.db.forbidden && o.Layouts == nil && strings.HasPrefix(col.Type, "snowflake") {
		return fmt.Errorf("column %s: %w, so the layout of its IDs is unknown; grant the privilege, or pass --type, --epoch and --bits", col, col.db.notInstalled)
	}
	var err error
	col.format, err = newFormat(col.Type, col.db.config)
	return err
}

func bigintFormats() []string {
	return slices.DeleteFunc(ids.Names(), func(name string) bool { return name == "sno" || name == "uuid7" })
}

// estimate returns the number of rows to read, as the planner sees it.
func (col *column) estimate(ctx context.Context) (int64, error) {
	var plan []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	var text []byte
	err := col.db.row(ctx, []any{&text}, fmt.Sprintf("EXPLAIN (FORMAT JSON) SELECT %s FROM %s WHERE %s", col.Column, col.Table.Table, col.first))
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil || len(plan) != 1 {
		return 0, err
	}
	return int64(plan[0].Plan.Rows), nil
}

// addNodes adds the node numbers that are reserved, or were claimed or reserved, in the pools
// of a format. It reports whether there is such a pool.
func (d *database) addNodes(ctx context.Context, f *format, known map[int]bool) (found bool, err error) {
	health := dbhealth.New(d.std, dbhealth.Options{Config: d.config})
	pools, err := health.Pools(ctx)
	if err != nil {
		return false, err
	}
	numbers, err := health.Numbers(ctx, "", -1)
	if err != nil {
		return false, err
	}
	for _, p := range pools {
		layout := ""
		if p.Layout != nil {
			layout = *p.Layout
		}
		// Programs that share a partition claim ranges of its sequence.
		var partition, ranges int
		var node func(number int) int
		if matched, _ := fmt.Sscanf(layout, "sno: partition %d in %d ranges", &partition, &ranges); matched == 2 && f.Name == "sno" {
			node = func(int) int { return partition }
		} else if pool := dbhealth.FormatOf(d.config, p.Pool, layout); pool != nil && strings.ReplaceAll(pool.Name, "_", "-") == f.Name {
			node = pool.Node
		} else {
			continue
		}
		found = true
		for _, n := range numbers {
			if n.Pool == p.Pool {
				known[node(n.Number)] = true
			}
		}
	}
	return found, nil
}
