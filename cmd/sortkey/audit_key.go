package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
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
	table, column := name, ""
	oid, err := db.oidOf(ctx, table)
	if i := strings.LastIndexByte(name, '.'); i > 0 && i < len(name)-1 && oid == 0 && err == nil {
		table, column = name[:i], name[i+1:]
		oid, err = db.oidOf(ctx, table)
	}
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

// describeKey reads the properties of a column from the catalog. column is as in SQL, or "" for the primary key.
// It returns whether a unique index excludes duplicates, and the time by the server's clock, too.
func (db database) describeKey(ctx context.Context, oid uint32, column, wanted string) (k *auditKey, unique bool, now time.Time, err error) {
	k = &auditKey{}
	var kind, base, source, known string
	var attribute *string
	err = cli.ReadRow(ctx, db, []any{&k.table, &kind, &attribute, &base, &source, &known, &unique, &k.hidden, &now}, `
		WITH RECURSIVE key AS (
			SELECT a.* FROM pg_attribute a WHERE a.attrelid = $3 AND a.attnum > 0 AND NOT a.attisdropped
				AND CASE WHEN $4::text <> '' THEN a.attname = (parse_ident($4::text))[1]
					ELSE a.attnum = (SELECT i.indkey[0] FROM pg_index i WHERE i.indrelid = $3 AND i.indisprimary AND i.indnkeyatts = 1) END
		), `+columnFormats+`
		SELECT format('%I.%I', n.nspname, c.relname), c.relkind::text, quote_ident(key.attname), coalesce(base.type, ''),
			coalesce(known.source, ''), coalesce(replace(known.format, '_', '-'), ''),
			-- The index of a table doesn't cover tables that inherit from it.
			(c.relkind = 'p' OR NOT c.relhassubclass) AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indkey[0] = key.attnum
				AND i.indisunique AND i.indnkeyatts = 1 AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL),
			row_security_active(c.oid), clock_timestamp()
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN key ON true LEFT JOIN base USING (attrelid, attnum) LEFT JOIN known USING (attrelid, attnum)
		WHERE c.oid = $3`,
		db.Schema, sqlFormats(), oid, column)
	switch {
	case pgerror.State(err) == "22023": // invalid_parameter_value, of parse_ident
		err = fmt.Errorf("%s is not the name of a column; quote names with upper case as in SQL", column)
	case err != nil:
	case !slices.Contains([]string{"r", "p", "m"}, kind):
		err = fmt.Errorf("%s: a view or foreign table; name the tables with the rows", k.table)
	case attribute == nil && column != "":
		err = fmt.Errorf("table %s has no column %s; quote names with upper case as in SQL", k.table, column)
	case attribute == nil:
		err = cli.Usagef("%s: the table has no primary key of one column; write %[1]s.COLUMN", k.table)
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
