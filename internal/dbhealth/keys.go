package dbhealth

import (
	"context"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// A key is a column whose keys this package knows: its domain, the default of a next_ function,
// or the partition settings of its table name the format. A column that refers to another table
// is no key.
type key struct {
	oid           int64
	table, column string // as in SQL
	base          string // bigint or uuid
	format        string // as in SQL
	nodes         string // an array of the node numbers in the defaults of the format
	generated     bool   // by a default
	readable      bool
	indexed       bool   // the first column of a btree index
	unique        bool   // alone in a unique index
	skipped       string // why the table isn't examined
}

func (k key) subject() string { return k.table + "." + k.column }

// keys returns the keys of the database, or none if the layouts are unreadable.
func (e *Examination) keys(ctx context.Context) ([]key, error) {
	return recall(e, "keys", func() ([]key, error) {
		if e.timespans() == nil {
			return nil, nil
		}
		// A subquery in place of partitioned_table, so that an old installation has keys, too.
		managed := "SELECT NULL::oid AS parent, NULL::text AS format"
		var has bool
		err := e.row(ctx, []any{&has}, "SELECT coalesce(has_table_privilege(to_regclass('$s.partitioned_table'), 'SELECT'), false)")
		if err != nil {
			return nil, err
		}
		if has {
			managed = "SELECT parent::oid, format FROM $s.partitioned_table"
		}
		keys, err := collect(ctx, e, func(k *key) []any {
			return []any{&k.oid, &k.table, &k.column, &k.base, &k.format, &k.nodes, &k.generated, &k.readable, &k.indexed, &k.unique}
		}, `WITH functions AS (
				SELECT p.oid, replace(substr(p.proname, 6), '_meta', '') AS format, p.prorettype FROM pg_proc p
				WHERE p.pronamespace = '$s'::regnamespace AND p.proname IN ('next_snowflake', 'next_snowflake_si', 'next_uid60', 'next_spread64', 'next_sno', 'next_sno_meta', 'next_uuid7')
			), found (relid, attnum, format, generated) AS (
				SELECT a.attrelid, a.attnum, p.format, true FROM functions p
					JOIN pg_depend x ON x.refclassid = 'pg_proc'::regclass AND x.refobjid = p.oid AND x.classid = 'pg_attrdef'::regclass
					JOIN pg_attrdef f ON f.oid = x.objid JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum JOIN pg_type t ON t.oid = a.atttypid
				WHERE p.prorettype IN (t.oid, t.typbasetype)
				UNION ALL SELECT f.adrelid, f.adnum, 'uuid7', true FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
				WHERE a.atttypid = 'uuid'::regtype AND f.adbin::text ~ ('^.FUNCEXPR :funcid ' || to_regprocedure('pg_catalog.uuidv7()')::oid || ' [^{}]*:args <> [^{}]*.$') -- pg_get_expr would open the table
				UNION ALL SELECT a.attrelid, a.attnum, t.typname, false FROM pg_type t JOIN pg_attribute a ON a.atttypid = t.oid
				WHERE t.typnamespace = '$s'::regnamespace AND t.typname IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno', 'uuid7') AND NOT a.attisdropped
				UNION ALL SELECT p.partrelid, p.partattrs[0], m.format, false FROM (`+managed+`) m JOIN pg_partitioned_table p ON p.partrelid = m.parent
			), keys AS (
				SELECT relid, attnum, min(format) AS format, bool_or(generated) AS generated FROM found GROUP BY 1, 2 HAVING count(DISTINCT format) = 1
			), nodes AS MATERIALIZED (
				SELECT format, array_agg(DISTINCT number) AS numbers FROM $s.node_defaults WHERE number IS NOT NULL GROUP BY 1
			)
			SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), CASE WHEN k.format IN ('sno', 'uuid7') THEN 'uuid' ELSE 'bigint' END, k.format,
				coalesce((SELECT numbers FROM nodes WHERE nodes.format = k.format), '{}')::text, k.generated,
				has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT'),
				EXISTS (SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
					WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'),
				EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum AND i.indisunique AND i.indisvalid AND i.indpred IS NULL)
			FROM keys k JOIN pg_attribute a ON a.attrelid = k.relid AND a.attnum = k.attnum
				JOIN pg_class c ON c.oid = k.relid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_temp_'
				AND EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = '$s'::regnamespace AND p.proname = k.format || '_time')
				AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND a.attnum = ANY (f.conkey))
			ORDER BY 2, 3`)
		if err != nil {
			return nil, err
		}
		return keys, e.setSkipped(ctx, keys)
	})
}

// setSkipped sets skipped of keys.
func (e *Examination) setSkipped(ctx context.Context, keys []key) error {
	var oids []int64
	for _, k := range keys {
		oids = append(oids, k.oid)
	}
	skipped, err := e.untrusted(ctx, trust.Reads, oids)
	for i := range keys {
		keys[i].skipped = reason(skipped[keys[i].oid], keys[i].table)
	}
	return err
}

// sampled is how many keys of a column a rule reads.
const sampled = 10_000

// sample returns a query for keys of a column: the largest ones, or, without an index, the
// first ones that the server reads.
func (k key) sample(rows int) string {
	order := ""
	if k.indexed {
		order = fmt.Sprintf(" WHERE t.%s IS NOT NULL ORDER BY t.%[1]s DESC", k.column)
	}
	return fmt.Sprintf("SELECT t.%s::%s AS k FROM %s t%s LIMIT %d", k.column, k.base, k.table, order, rows)
}

// eachKey returns a check that calls f for the keys that want returns true for. If the role can't
// read some of them, the check adds a finding.
func eachKey(want func(key) bool, f func(context.Context, *Examination, key) error) checkFunc {
	return func(ctx context.Context, e *Examination) error {
		keys, err := e.keys(ctx)
		if err != nil {
			return err
		}
		denied := 0
		for _, k := range keys {
			if k.skipped != "" || !want(k) {
				continue
			}
			var failed error
			if k.readable {
				failed = f(ctx, e, k)
			}
			if !k.readable || pgerror.State(failed) == pgerror.InsufficientPrivilege {
				denied++
			} else if err := e.fail(ctx, k.table, k.subject(), failed); err != nil {
				return err
			}
		}
		if denied > 0 {
			e.add(Unknown, "", "keys", plural(denied, "column", "")+" of keys can't be read", "connect as the owner of the tables")
		}
		return nil
	}
}

// A newest has the newest times of keys of a column: of all, and of the ones with the node
// number of a default.
type newest struct{ all, own *time.Time }

// newest reads the largest keys of a column.
func (e *Examination) newest(ctx context.Context, k key) (newest, error) {
	return recall(e, "newest "+k.subject(), func() (n newest, err error) {
		node, sample := e.sql("$s."+k.format+"_node(k)"), k.sample(1000)
		switch k.format {
		case "uid60":
			node = "NULL::integer"
		case "uuid7":
			// UUIDs of version 4 are as large as any. So read the ones of the next century, and few
			// random ones are among them.
			node = "NULL::integer"
			sample = fmt.Sprintf(e.sql(`SELECT t.%[1]s::uuid AS k FROM %[2]s t WHERE t.%[1]s::uuid >= $s.uuid7_floor(clock_timestamp()) AND t.%[1]s::uuid < $s.uuid7_floor(clock_timestamp() + interval '100 years') ORDER BY t.%[1]s LIMIT %[3]d`),
				k.column, k.table, sampled)
		}
		err = e.rowOf(ctx, []any{&n.all, &n.own}, fmt.Sprintf(e.sql(`SELECT max($s.%[1]s_time(k)), max($s.%[1]s_time(k)) FILTER (WHERE %[2]s = ANY ($1::text::integer[])) FROM (%[3]s) x`),
			k.format, node, sample), k.nodes)
		return n, err
	})
}

// sorts reports whether a column has an index, and keys that sort by time.
func sorts(k key) bool { return k.indexed && k.format != "spread64" }
