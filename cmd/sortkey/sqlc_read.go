package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/rekey"
)

// A catalogColumn is a column of a primary or foreign key.
type catalogColumn struct {
	OID      uint32   `json:"-"`
	Schema   string   `json:"schema"`
	Table    string   `json:"table"`
	Column   string   `json:"column"`
	Model    string   `db:"-" json:"-"`      // the Go name of the table's model
	Type     string   `db:"-" json:"type"`   // the Go name of the key's type
	Format   string   `db:"-" json:"format"` // of the key
	Nullable bool     `json:"nullable"`
	Base     string   `json:"-"` // the type in SQL, or the base type of a domain
	Known    string   `json:"-"` // the name of the format, or ""
	Other    string   `json:"-"` // the schema of the installation of the format, or "" if it is this one
	Primary  int      `json:"-"` // the number of columns in the primary key that it belongs to, or 0
	Serial   bool     `json:"-"`
	Refers   []string `json:"-"` // the IDs of the columns to which it refers

	format *ids.Format // if it can be a key itself
	key    *catalogColumn
}

// id identifies a column in Refers.
func (c *catalogColumn) id() string { return fmt.Sprint(c.OID, " ", c.Column) }

// tableName returns the name of the table, for people.
func (c *catalogColumn) tableName() string { return trust.Visible(c.Schema + "." + c.Table) }

func (c *catalogColumn) String() string {
	return trust.Visible(c.Schema + "." + c.Table + "." + c.Column)
}

func compareColumns(a, b *catalogColumn) int {
	return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Column, b.Column))
}

// A catalog holds the columns of keys and references of a database, in the order of their names.
type catalog struct {
	columns []*catalogColumn
	byID    map[string]*catalogColumn
	notes   []string // about omitted tables and columns
}

// readCatalog reads the columns of IDs. bigint is the name of the format of bigint keys, or "".
// If own is set, all tables are the caller's.
func readCatalog(ctx context.Context, db database, bigint string, own bool) (*catalog, error) {
	columns, err := cli.Collect(ctx, db, pgx.RowToAddrOfStructByName[catalogColumn], `
		WITH RECURSIVE tables AS (
			SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
				AND NOT starts_with(n.nspname, 'pg_') AND n.nspname <> 'information_schema' AND n.nspname NOT IN (`+dbhealth.OwnSchemas+`)
		), primaries AS ( -- from rekey contract to cleanup, the old column still has the primary key
			SELECT k.conrelid AS oid, coalesce(new.attnum, old.attnum) AS attnum, cardinality(k.conkey) AS columns
			FROM pg_constraint k JOIN pg_attribute old ON old.attrelid = k.conrelid AND old.attnum = ANY (k.conkey)
				LEFT JOIN pg_attribute new ON new.attrelid = k.conrelid AND old.attname = 'rekey_' || new.attname AND NOT new.attisdropped AND EXISTS (
					SELECT FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace WHERE g.tgrelid = k.conrelid AND n.nspname = '`+rekey.Schema+`')
			WHERE k.contype = 'p'
		), key AS (
			SELECT a.* FROM pg_attribute a JOIN tables ON tables.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped
				AND (EXISTS (SELECT FROM primaries p WHERE p.oid = a.attrelid AND p.attnum = a.attnum)
					OR EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey)))
		), `+columnFormats+`
		SELECT t.oid, t.nspname::text AS schema, t.relname::text AS table, key.attname::text AS column, base.type AS base, coalesce(replace(known.format, '_', '-'), '') AS known, coalesce(nullif(known.installation, $1::text), '') AS other,
			coalesce((SELECT p.columns FROM primaries p WHERE p.oid = t.oid AND p.attnum = key.attnum), 0) AS primary,
			key.attidentity <> '' OR EXISTS (SELECT FROM pg_attrdef d JOIN pg_depend u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass
				JOIN pg_class s ON s.oid = u.refobjid AND s.relkind = 'S' WHERE d.adrelid = key.attrelid AND d.adnum = key.attnum) AS serial,
			NOT key.attnotnull AND NOT EXISTS (SELECT FROM types WHERE types.attrelid = key.attrelid AND types.attnum = key.attnum AND types.typnotnull) AS nullable,
			-- A reference to a partition is one to the partitioned table.
			ARRAY(SELECT coalesce(pg_partition_root(k.confrelid), k.confrelid)::oid || ' ' || a.attname FROM pg_constraint k CROSS JOIN unnest(k.conkey, k.confkey) u (own, other)
				JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.other
				WHERE k.conrelid = t.oid AND k.contype = 'f' AND u.own = key.attnum AND k.conparentid = 0 AND (k.confrelid, u.other) <> (k.conrelid, u.own)) AS refers
		FROM tables t JOIN key ON key.attrelid = t.oid JOIN base USING (attrelid, attnum) LEFT JOIN known USING (attrelid, attnum)`,
		db.Schema, sqlFormats())
	if err != nil {
		return nil, err
	}
	c := &catalog{columns: columns, byID: map[string]*catalogColumn{}}
	slices.SortFunc(c.columns, compareColumns)
	if !own {
		if err := c.removeUntrusted(ctx, db); err != nil {
			return nil, err
		}
	}
	for _, column := range c.columns {
		c.byID[column.id()] = column
	}
	c.setFormats(bigint)
	c.setKeys()
	return c, nil
}

// removeUntrusted removes the columns of tables of roles that the session doesn't trust.
func (c *catalog) removeUntrusted(ctx context.Context, db database) error {
	var tables []string
	for _, column := range c.columns {
		tables = append(tables, fmt.Sprint(column.OID))
	}
	return trust.Read(ctx, db.std, func(tx *sql.Tx) error {
		findings, err := trust.FindTables(ctx, tx, trust.Tables("ARRAY["+strings.Join(tables, ",")+"]::pg_catalog.oid[]"))
		for _, f := range findings {
			c.notes = append(c.notes, fmt.Sprintf("not read: %s (%s)", f, trust.Rule))
		}
		slices.Sort(c.notes)
		c.columns = slices.DeleteFunc(c.columns, func(column *catalogColumn) bool {
			_, untrusted := findings[int64(column.OID)]
			return untrusted
		})
		return err
	})
}

// setFormats sets the formats of the columns that can be keys: the column of a primary key, or
// the only one with a format among several, without references.
func (c *catalog) setFormats(bigint string) {
	var serial, several, unknown []string
	others := map[string][]string{}                        // the keys of other installations, by schema
	refers, formats := map[uint32]bool{}, map[uint32]int{} // of primary keys
	for _, column := range c.columns {
		refers[column.OID] = refers[column.OID] || column.Primary > 1 && len(column.Refers) > 0
	}
	for _, column := range c.columns {
		known := ids.ByName(column.Known, ids.Layouts{})
		switch refer := len(column.Refers) > 0; {
		case column.Primary == 0 || column.Primary > 1 && refer:
		case column.Other != "":
			others[column.Other] = append(others[column.Other], column.String())
			formats[column.OID]++
		case known != nil && known.Column == column.Base:
			column.format = known
		case column.Base == "uuid":
			column.format = ids.ByName("uuid7", ids.Layouts{})
		case column.Base != "bigint" || refer:
		case column.Serial:
			serial = append(serial, column.String())
		case bigint != "" && !refers[column.OID]: // beside a reference, it can be a number
			column.format = ids.ByName(bigint, ids.Layouts{})
		case column.Primary == 1:
			unknown = append(unknown, column.String())
		}
		if column.format != nil {
			formats[column.OID]++
		}
	}
	for _, column := range c.columns {
		if column.format != nil && formats[column.OID] > 1 {
			column.format = nil
			several = append(several, column.String())
		}
	}
	if serial != nil {
		c.notes = append(c.notes, "not IDs, since they count up from a sequence: "+strings.Join(serial, ", "))
	}
	if several != nil {
		c.notes = append(c.notes, "left out, since several columns of the primary key could be the ID: "+strings.Join(several, ", "))
	}
	for _, schema := range slices.Sorted(maps.Keys(others)) {
		c.notes = append(c.notes, fmt.Sprintf("left out, since they are keys of the installation in schema %s: %s; pass --schema %[1]s", schema, strings.Join(others[schema], ", ")))
	}
	if unknown != nil {
		c.notes = append(c.notes, "left out, since nothing tells the format of these bigint keys: "+strings.Join(unknown, ", ")+"; if they are IDs, pass --bigint FORMAT")
	}
}

// setKeys sets the key to which each column leads, and keeps only the columns that lead to one.
func (c *catalog) setKeys() {
	reached := map[*catalogColumn][]*catalogColumn{}
	for _, column := range c.columns {
		reached[column] = c.reach(column)
	}
	for _, column := range c.columns {
		var ends []*catalogColumn
		for _, key := range reached[column] {
			// At an end, each key that it leads to leads back. In a cycle, the first name stands for all.
			if !slices.ContainsFunc(reached[key], func(next *catalogColumn) bool { return !slices.Contains(reached[next], key) }) {
				if first := slices.MinFunc(reached[key], compareColumns); !slices.Contains(ends, first) {
					ends = append(ends, first)
				}
			}
		}
		slices.SortFunc(ends, compareColumns)
		switch {
		case len(ends) == 0:
			continue
		case len(ends) > 1:
			c.notes = append(c.notes, fmt.Sprintf("%s refers to %s and %s: it has the type of the first", column, ends[0], ends[1]))
		}
		if column.Base == ends[0].Base {
			column.key, column.Format = ends[0], ends[0].format.Name
		} else {
			c.notes = append(c.notes, fmt.Sprintf("left out: %s is of type %s, and refers to %s of type %s", column, column.Base, ends[0], ends[0].Base))
		}
	}
	c.columns = slices.DeleteFunc(c.columns, func(column *catalogColumn) bool { return column.key == nil })
}

// reach returns the keys to which a column leads, with itself if it is a key.
func (c *catalog) reach(column *catalogColumn) (keys []*catalogColumn) {
	all := []*catalogColumn{column}
	for i := 0; i < len(all); i++ {
		if all[i].format != nil {
			keys = append(keys, all[i])
		}
		for _, id := range all[i].Refers {
			if to := c.byID[id]; to != nil && !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	return keys
}
