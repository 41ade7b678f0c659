package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// An auditKey is a column to audit, with the statements that do it.
type auditKey struct {
	table, column string // quoted as in SQL
	format        *ids.Format
	hidden        bool         // row-level security hides rows from the role
	valid         string       // the condition for IDs whose parts are read
	checks        []auditCheck // whose results are in the row of counts
	unchecked     string       // why unknown_node isn't among them
	counts        string       // the statement that counts the rows
	duplicates    string       // the statement that counts duplicates, or "" if a unique index excludes them
}

// An auditCheck is a condition for rows. Its name is that of a finding, or version_ and a number.
type auditCheck struct {
	name, condition string
	rows            int64
	example         *string
}

func (k *auditKey) String() string { return k.table + "." + k.column }

// auditKey returns the column that TABLE[.COLUMN] names.
func (db database) auditKey(ctx context.Context, name string, o *auditFlags) (*auditKey, error) {
	oid, column, err := db.columnOf(ctx, name)
	if err == nil && oid == 0 {
		err = fmt.Errorf("%s: the database has no such table; quote names with upper case as in SQL", name)
	}
	if err == nil {
		err = cli.CheckTable(ctx, db.std, trust.Reads, oid)
	}
	if err != nil {
		return nil, err
	}
	k, unique, now, err := db.describeKey(ctx, oid, column, o.name)
	if err != nil {
		return nil, err
	}
	known, err := db.knownNodes(ctx, k, o)
	if err == nil {
		err = k.setChecks(known, o.serialUntil, now)
	}
	if err == nil {
		err = k.setStatements(o, unique)
	}
	return k, err
}

// columnOf returns the OID of the table that TABLE[.COLUMN] names, or 0 if there is none, and the name
// of the column, or "". A name can have dots, so the server splits it.
func (db database) columnOf(ctx context.Context, name string) (oid uint32, column string, err error) {
	var parts, quoted []string
	err = cli.ReadRow(ctx, db, []any{&parts, &quoted}, "SELECT p, ARRAY(SELECT quote_ident(n) FROM unnest(p) WITH ORDINALITY u (n, i) ORDER BY i) FROM parse_ident($1) p", name)
	if pgerror.State(err) == "22023" { // invalid_parameter_value: not a name
		return 0, "", nil
	}
	if err == nil {
		oid, err = db.oidOf(ctx, strings.Join(quoted, "."))
	}
	if last := len(parts) - 1; err == nil && oid == 0 && last > 0 {
		column = parts[last]
		oid, err = db.oidOf(ctx, strings.Join(quoted[:last], "."))
	}
	return oid, column, err
}

// oidOf returns the OID of a table, or 0 if there is none.
func (db database) oidOf(ctx context.Context, name string) (oid uint32, err error) {
	qualified, err := db.Qualified(ctx, name)
	switch pgerror.State(err) {
	case "42601", "42602", "0A000": // syntax_error, invalid_name, feature_not_supported: not a name, or with too many parts
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return oid, cli.ReadRow(ctx, db, []any{&oid}, "SELECT coalesce(to_regclass($1), 0)::oid", qualified)
}

// describeKey reads the properties of a column from the catalog. column is its name, or "" for the primary key.
// It returns whether a unique index excludes duplicates, and the time by the server's clock, too.
func (db database) describeKey(ctx context.Context, oid uint32, column, wanted string) (k *auditKey, unique bool, now time.Time, err error) {
	k = &auditKey{}
	var kind, base, source, installation, known string
	var attribute *string
	err = cli.ReadRow(ctx, db, []any{&k.table, &kind, &attribute, &base, &source, &installation, &known, &unique, &k.hidden, &now}, `
		WITH RECURSIVE key AS (
			SELECT a.* FROM pg_attribute a WHERE a.attrelid = $3 AND a.attnum > 0 AND NOT a.attisdropped
				AND CASE WHEN $4::text <> '' THEN a.attname = $4::text
					ELSE a.attnum = (SELECT i.indkey[0] FROM pg_index i WHERE i.indrelid = $3 AND i.indisprimary AND i.indnkeyatts = 1) END
		), `+columnFormats+`
		SELECT format('%I.%I', n.nspname, c.relname), c.relkind::text, quote_ident(key.attname), coalesce(base.type, ''),
			coalesce(known.source, ''), coalesce(known.installation, ''), coalesce(replace(known.format, '_', '-'), ''),
			-- The index of a table doesn't cover tables that inherit from it.
			(c.relkind = 'p' OR NOT c.relhassubclass) AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indkey[0] = key.attnum
				AND i.indisunique AND i.indnkeyatts = 1 AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL),
			row_security_active(c.oid), clock_timestamp()
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN key ON true LEFT JOIN base USING (attrelid, attnum) LEFT JOIN known USING (attrelid, attnum)
		WHERE c.oid = $3`,
		db.Schema, sqlFormats(), oid, column)
	switch {
	case err != nil:
	case !slices.Contains([]string{"r", "p", "m"}, kind):
		err = fmt.Errorf("%s: a view or foreign table; name the tables with the rows", k.table)
	case attribute == nil && column != "":
		err = fmt.Errorf("table %s has no column %s; quote names with upper case as in SQL", k.table, column)
	case attribute == nil:
		err = cli.Usagef("%s: the table has no primary key of one column; write %[1]s.COLUMN", k.table)
	case installation != "" && installation != db.Schema: // whose layouts and node numbers are others
		err = cli.Usagef("column %s.%s: its %s is of the installation in schema %s; pass --schema %[4]s", k.table, *attribute, source, installation)
	default:
		k.column = *attribute
		err = k.setFormat(base, source, known, wanted, ids.Layouts{Snowflake: db.Snowflake, SnowflakeSI: db.SnowflakeSI})
	}
	return k, unique, now, err
}

// setFormat sets the format: the one that a source in the catalog knows, or the one with the wanted name.
func (k *auditKey) setFormat(base, source, known, wanted string, layouts ids.Layouts) error {
	k.format = ids.ByName(cmp.Or(known, wanted), layouts)
	var names []string
	for _, f := range ids.Formats(layouts) {
		if f.Column == base {
			names = append(names, f.Name)
		}
	}
	switch {
	case names == nil:
		return fmt.Errorf("column %s is of type %s: audit reads columns of type bigint and uuid, and of domains over them", k, base)
	case k.format == nil:
		return cli.Usagef("column %s of type %s: the type of its IDs is unknown; pass --type with one of %s", k, base, strings.Join(names, ", "))
	case wanted != "" && wanted != k.format.Name:
		return cli.Usagef("--type %s: column %s has IDs of type %s by its %s", wanted, k, known, source)
	case k.format.Column != base:
		return cli.Usagef("--type %s: column %s is of type %s; want one of %s", wanted, k, base, strings.Join(names, ", "))
	case k.format.Undated:
		return cli.Usagef("type snowflake-si: the installation has no base clock; pass --epoch")
	}
	return nil
}

// smallLimit is above the keys of serial columns, and below almost all IDs.
const smallLimit = 1 << 32

// setChecks sets valid, the condition for IDs, and the checks. known has the known node numbers, or is nil. now is the time by
// the server's clock, and serialUntil the largest key of a serial column.
func (k *auditKey) setChecks(known map[int]bool, serialUntil int64, now time.Time) error {
	f := k.format
	latest := now.Add(time.Second)
	future := "" // IDs that sort by time are compared with the lowest one of the future
	if f.Window != nil {
		low, _, err := f.Window(latest, latest)
		if err != nil {
			return err
		}
		future = fmt.Sprintf("id >= %s AND ", literal(f, low))
	}
	check := func(name, condition string) {
		k.checks = append(k.checks, auditCheck{name: name, condition: condition})
	}
	node := ""
	switch f.Name {
	case "snowflake", "snowflake-si", "uid60":
		last := map[string]int64{"snowflake": math.MaxInt64, "snowflake-si": int64(idtype.MaxSnowflakeSI), "uid60": idtype.MaxUID60}[f.Name]
		first := max(serialUntil+1, smallLimit)
		k.valid = fmt.Sprintf("id BETWEEN %d AND %d", first, last)
		node = fmt.Sprintf("id >> %d & %d", bits.Len(uint(f.Sequences-1)), f.NodeLimit()-1)
		check("malformed", fmt.Sprintf("id NOT BETWEEN 0 AND %d", last))
		check("zero", "id = 0")
		check("small", fmt.Sprintf("id BETWEEN %d AND %d", serialUntil+1, first-1))
	case "spread64":
		k.valid, node = fmt.Sprintf("id & 64512 = 0 AND id NOT BETWEEN 0 AND %d", serialUntil), "id & 1023"
		future = fmt.Sprintf("reverse(substr(id::bit(64)::text, 1, 42))::bit(42)::bigint > %d AND ", latest.UnixMilli())
		check("malformed", fmt.Sprintf("id & 64512 <> 0 AND id NOT BETWEEN 0 AND %d", serialUntil))
		check("zero", "id = 0")
	case "sno": // the 16 digits of the text, from 2 to 9 and from a to x
		const zero, others = "id = '32323232-3232-3232-3232-323232323232'", "btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx')"
		digit := func(n int) string { return fmt.Sprintf("((get_byte(uuid_send(id), %d) - 50) %% 39)", n) }
		k.valid, node = others+" = '' AND NOT "+zero, fmt.Sprintf("((%s & 3) << 14) | (%s << 9) | (%s << 4) | (%s >> 1)", digit(9), digit(10), digit(11), digit(12))
		check("malformed", others+" <> ''")
		check("zero", zero)
	case "uuid7":
		const zero, version, variant = "id = '00000000-0000-0000-0000-000000000000'", "get_byte(uuid_send(id), 6) >> 4", "get_byte(uuid_send(id), 8) >> 6"
		k.valid = version + " = 7 AND " + variant + " = 2"
		check("malformed", variant+" <> 2 AND NOT "+zero)
		check("zero", zero)
		for _, n := range []int{1, 4, 6, 7} {
			check(fmt.Sprint("version_", n), fmt.Sprintf("%s = %d AND %s = 2", version, n, variant))
		}
	}
	check("future", future+k.valid)
	if known != nil {
		numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(known))), "[]"), " ", ",")
		check("unknown_node", fmt.Sprintf("%s AND (%s) <> ALL ('{%s}')", k.valid, node, numbers))
	}
	return nil
}

// setStatements sets the statements, whose column id is the key. They need no installation.
func (k *auditKey) setStatements(o *auditFlags, unique bool) error {
	rows, err := k.rows(o.since, o.until)
	if err != nil {
		return err
	}
	serial, low, high := fmt.Sprintf("id BETWEEN 1 AND %d", o.serialUntil), "min(id)", "max(id)"
	if k.format.Column == "uuid" { // Postgres 18 is the first with min(uuid)
		serial, low, high = "false", `min(id::text COLLATE "C")`, `max(id::text COLLATE "C")`
		if o.serialUntil > 0 {
			return cli.Usagef("--serial-until %d: column %s is of type uuid", o.serialUntil, k)
		}
	}
	results := fmt.Sprintf("count(id) AS rows, count(*) - count(id) AS nulls, count(*) FILTER (WHERE serial) AS serial,\n    %s FILTER (WHERE valid)::text AS first, %s FILTER (WHERE valid)::text AS last", low, high)
	conditions := fmt.Sprintf("%s AS serial,\n        %s AS valid", serial, k.valid)
	for _, c := range k.checks {
		example := map[bool]string{true: high, false: low}[c.name == "small"]
		results += fmt.Sprintf(",\n    count(*) FILTER (WHERE %s) AS %[1]s, %s FILTER (WHERE %[1]s)::text", c.name, example)
		conditions += fmt.Sprintf(",\n        %s AS %s", c.condition, c.name)
	}
	k.counts = fmt.Sprintf("SELECT %s\nFROM (\n    SELECT id, %s\n    FROM %s\n) t", results, conditions, rows)
	if !unique {
		k.duplicates = fmt.Sprintf("SELECT count(*) AS duplicate, %s::text\nFROM (SELECT id, lag(id) OVER (ORDER BY id) AS previous FROM %s) t\nWHERE id = previous", low, rows)
	}
	return nil
}

// rows returns a subquery for the keys of a time window.
func (k *auditKey) rows(since, until time.Time) (string, error) {
	var where string
	if !since.IsZero() || !until.IsZero() {
		if k.format.Window == nil {
			return "", cli.Usagef("type %s: the IDs don't sort by time; omit --since and --until", k.format.Name)
		}
		low, high, err := k.format.Window(since, until)
		if err != nil {
			return "", cli.Usage(err)
		}
		where = fmt.Sprintf(" WHERE %s >= %s", k.column, literal(k.format, low))
		if !until.IsZero() {
			where += fmt.Sprintf(" AND %s < %s", k.column, literal(k.format, high))
		}
	}
	return fmt.Sprintf("(SELECT %s::%s AS id FROM %s%s) t", k.column, k.format.Column, k.table, where), nil
}

// literal returns an ID as a literal of SQL.
func literal(f *ids.Format, id ids.ID) string {
	if f.Column == "uuid" {
		return "'" + ids.ColumnText(id) + "'"
	}
	return ids.ColumnText(id)
}

// runAudit runs the statements.
func (db database) runAudit(ctx context.Context, k *auditKey) (auditResult, error) {
	var r auditResult
	var first, last *string
	duplicate := auditCheck{name: "duplicate"}
	dst := []any{&r.Rows, &r.Nulls, &r.Serial, &first, &last}
	for i := range k.checks {
		dst = append(dst, &k.checks[i].rows, &k.checks[i].example)
	}
	err := cli.Read(ctx, db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, k.counts).Scan(dst...)
		if err == nil && k.duplicates != "" {
			err = tx.QueryRow(ctx, k.duplicates).Scan(&duplicate.rows, &duplicate.example)
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("column %s: %w", k, err)
	}
	r.Table, r.Column, r.Type, r.Hidden = k.table, k.column, k.format.Name, k.hidden
	if p := k.partsOf(first); !p.Time.IsZero() && k.format.Window != nil {
		r.First, r.Last = &ids.Time{Time: p.Time}, &ids.Time{Time: k.partsOf(last).Time}
	}
	for _, c := range append(k.checks, duplicate) {
		if version, is := strings.CutPrefix(c.name, "version_"); is {
			r.Versions = append(r.Versions, auditVersion{version, c.rows})
			continue
		}
		f := auditFinding{Finding: c.name, Count: &c.rows, Example: c.example}
		switch {
		case c.rows == 0:
		case c.name == "small":
			f.Note = "if they are keys of a serial column, pass --serial-until " + *c.example
		case c.name == "unknown_node":
			f.Note = fmt.Sprintf("node %d", k.partsOf(c.example).Node)
		}
		r.Findings = append(r.Findings, f)
	}
	if k.unchecked != "" {
		r.Findings = append(r.Findings, auditFinding{Finding: "unknown_node", Note: "not checked: " + k.unchecked})
	}
	return r, nil
}

// partsOf returns the parts of an ID in the text of its column, or none.
func (k *auditKey) partsOf(text *string) (p ids.Parts) {
	if text == nil {
		return p
	}
	form := map[string]string{"bigint": "int64", "uuid": "uuid"}[k.format.Column]
	for _, r := range ids.Own(*text, form, []*ids.Format{k.format}) {
		p = r.Parts
	}
	return p
}
