package rekey

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortkey/sortkey/internal/pgerror"
)

// querier is a *sql.Tx or a *sql.Conn.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// readJSON scans the result of a query, which is one JSON value, or NULL.
func readJSON(ctx context.Context, db querier, dst any, query string, args ...any) error {
	var text sql.NullString
	if err := db.QueryRowContext(ctx, query, args...).Scan(&text); err != nil {
		return err
	}
	if !text.Valid {
		return nil
	}
	return json.Unmarshal([]byte(text.String), dst)
}

// rows wraps a query so that its result is a JSON array of its rows.
func rows(query string) string {
	return "SELECT json_agg(row_to_json(x))::text FROM (" + query + ") x"
}

// oids returns the text of an oid[] parameter.
func oids[T any](list []T, oid func(T) int64) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = strconv.FormatInt(oid(v), 10)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func sqlState(err error) string { return pgerror.State(err) }

var simpleName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// ident quotes a name that rekey has formed. No such name is a keyword.
func ident(name string) string {
	if simpleName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// literal quotes a text, whatever standard_conforming_strings is.
func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// body quotes the body of a function or of a DO statement with a tag that isn't in it: the
// body has names from the catalog.
func body(text string) string {
	tag := "$rekey$"
	for n := 1; strings.Contains(text, tag); n++ {
		tag = fmt.Sprintf("$rekey_%d$", n)
	}
	return tag + text + tag
}

// newName returns a name with the prefix of rekey's objects, shortened to the limit of Postgres.
func newName(format string, args ...any) string {
	name := fmt.Sprintf("rekey_"+format, args...)
	for len(name) > 63 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// resolve returns the OIDs of the tables that a Spec names, by the search_path of the session;
// 0 for a name that no table has. The query names no operator, because that path can find
// operators of other roles.
func resolve(ctx context.Context, db querier, spec Spec) (map[string]int64, error) {
	named := map[string]int64{}
	names := each(spec.Keys, func(k Key) string { return k.Table })
	for _, r := range spec.References {
		names = append(names, r.Table, r.To)
	}
	for _, name := range spec.NotReferences {
		if table, _ := splitColumn(name); table != "" {
			names = append(names, table)
		}
	}
	for _, name := range names {
		var oid sql.NullInt64
		if err := db.QueryRowContext(ctx, "SELECT pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid::bigint", name).Scan(&oid); err != nil {
			return nil, err
		}
		named[name] = oid.Int64
	}
	return named, nil
}

// find returns the columns of the Spec, and of all references to them. named has the OIDs of
// the tables by name.
func (m *model) find(ctx context.Context, db querier, spec Spec, named map[string]int64, formats map[Format]format) error {
	type edge struct {
		table int64
		num   int
		root  bool
		target
	}
	var todo []edge
	for i, k := range spec.Keys {
		key := &key{Key: k, n: i, format: formats[k.Format]}
		m.keys = append(m.keys, key)
		var pk struct {
			OID     int64
			Columns []int
			Kind    string
		}
		err := readJSON(ctx, db, &pk, `SELECT row_to_json(x)::text FROM (SELECT c.oid::bigint AS "OID", c.relkind AS "Kind",
			(SELECT array_agg(k) FROM pg_catalog.pg_index i, unnest(i.indkey::smallint[]) WITH ORDINALITY u(k, o) WHERE i.indrelid = c.oid AND i.indisprimary AND o <= i.indnkeyatts) AS "Columns"
			FROM pg_catalog.pg_class c WHERE c.oid = $1::text::oid) x`, strconv.FormatInt(named[k.Table], 10))
		if errors.Is(err, sql.ErrNoRows) {
			m.problem("table "+k.Table, "doesn't exist", "correct the name, or set the search_path of the connection")
			continue
		}
		if err != nil {
			return err
		}
		if pk.Kind != "r" {
			m.problem("table "+k.Table, "is a %s", "only ordinary tables can be rekeyed; move its rows to one, or create a new table", kinds[pk.Kind])
			continue
		}
		if len(pk.Columns) != 1 {
			m.problem("table "+k.Table, "has a primary key of %d columns", "only keys of one column can be rekeyed; name the tables that the columns refer to", len(pk.Columns))
			continue
		}
		todo = append(todo, edge{pk.OID, pk.Columns[0], true, target{key: key}})
	}
	type end struct {
		table int64
		num   int
	}
	referring := map[end][]edge{} // by the primary key that they refer to
	for _, r := range spec.References {
		var e struct {
			OID int64
			Num int
		}
		err := readJSON(ctx, db, &e, `SELECT row_to_json(x)::text FROM (SELECT a.attrelid::bigint AS "OID", a.attnum AS "Num"
			FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::text::oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped) x`, strconv.FormatInt(named[r.Table], 10), r.Column)
		if errors.Is(err, sql.ErrNoRows) {
			m.problem("reference "+r.Table+"."+r.Column, "doesn't exist", "correct the name of the table or the column")
			continue
		}
		if err != nil {
			return err
		}
		if named[r.To] == 0 {
			m.problem("reference "+r.Table+"."+r.Column, "refers to table %s, which doesn't exist", "correct the name of the table", r.To)
			continue
		}
		to := end{table: named[r.To]}
		err = db.QueryRowContext(ctx, "SELECT coalesce((SELECT i.indkey[0] FROM pg_catalog.pg_index i WHERE i.indrelid = $1::text::oid AND i.indisprimary AND i.indnkeyatts = 1), 0)", strconv.FormatInt(to.table, 10)).Scan(&to.num)
		if err != nil {
			return err
		}
		none, err := r.none()
		if err != nil {
			m.problem("reference "+r.Table+"."+r.Column, "%v", "set none to a number or a text", err)
			continue
		}
		t := target{where: r.Where, none: none}
		if strings.EqualFold(strings.TrimSpace(r.Where), "true") {
			t.where, t.all = "", true
		}
		referring[to] = append(referring[to], edge{e.OID, e.Num, false, t})
	}
	for _, name := range spec.NotReferences {
		table, column := splitColumn(name)
		w := waiver{name: name, table: named[table], column: column}
		err := db.QueryRowContext(ctx, "SELECT coalesce((SELECT attnum FROM pg_catalog.pg_attribute WHERE attrelid = $1::text::oid AND attname = $2 AND attnum > 0 AND NOT attisdropped), 0)",
			strconv.FormatInt(w.table, 10), column).Scan(&w.num)
		if err != nil {
			return err
		}
		m.waivers = append(m.waivers, w)
	}
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		if c := m.column(e.table, e.num); c != nil {
			switch {
			case c.conditional() && e.where != "":
				c.targets = append(c.targets, e.target)
				if !slices.Contains(e.key.columns, c) {
					e.key.columns = append(e.key.columns, c)
				}
			case c.key != e.key:
				m.problem(c.String(), "refers to two keys, of %s and %s", "name only one of the tables in a Spec, or drop one of the foreign keys, or set where in the references", c.key.Table, e.key.Table)
				for i := range c.targets {
					c.targets[i].all = true // don't ask for where again
				}
			case e.root && !c.root:
				m.problem(c.String(), "refers to another key of the Spec", "name only the table that it refers to")
			case !c.root && (!c.plain() || !e.plain()):
				m.problem(c.String(), "refers to %s twice, with where or none in a reference", "remove where and none, or the other reference or foreign key", c.key.Table)
			}
			continue
		}
		if e.where != "" && e.key.InPlace {
			m.problem("reference to table "+e.key.Table, "has a condition, and the key changes in place", "move the reference to a column of its own")
			continue
		}
		rel := m.relation(e.table)
		if rel == nil {
			var err error
			if rel, err = readRelation(ctx, db, e.table); err != nil {
				return err
			}
			m.relations = append(m.relations, rel)
		}
		c := &column{rel: rel, Num: e.num, key: e.key, root: e.root}
		if !e.root {
			c.targets = []target{e.target}
		}
		err := db.QueryRowContext(ctx, "SELECT pg_catalog.quote_ident(attname) FROM pg_catalog.pg_attribute WHERE attrelid = $1::text::oid AND attnum = $2::text::smallint", strconv.FormatInt(e.table, 10), strconv.Itoa(e.num)).Scan(&c.Quoted)
		if err != nil {
			return err
		}
		rel.columns = append(rel.columns, c)
		e.key.columns = append(e.key.columns, c)
		if e.root {
			e.key.root = c
		}
		var list []*foreignKey
		err = readJSON(ctx, db, &list, rows(`SELECT `+foreignKeyColumns+` FROM pg_catalog.pg_constraint f
			WHERE f.contype = 'f' AND f.conparentid = 0 AND (f.confrelid = $1::text::oid AND $2::text::smallint = ANY (f.confkey) OR f.conrelid = $1::text::oid AND $2::text::smallint = ANY (f.conkey))
			ORDER BY f.conname`), strconv.FormatInt(e.table, 10), strconv.Itoa(e.num))
		if err != nil {
			return err
		}
		for _, f := range list {
			if slices.ContainsFunc(m.foreignKeys, func(o *foreignKey) bool { return o.OID == f.OID }) {
				continue
			}
			m.foreignKeys = append(m.foreignKeys, f)
			if len(f.Columns) == 1 && f.To == e.table && f.ToColumns[0] == e.num {
				todo = append(todo, edge{f.Table, f.Columns[0], false, target{key: e.key}})
			}
		}
		for _, r := range referring[end{e.table, e.num}] {
			r.key = e.key
			todo = append(todo, r)
		}
		delete(referring, end{e.table, e.num})
	}
	for to := range referring {
		for _, r := range spec.References {
			if named[r.To] == to.table {
				m.problem("reference "+r.Table+"."+r.Column, "refers to table %s, whose key doesn't change", "name a table of Keys, or one that refers to it by its primary key", r.To)
			}
		}
	}
	return nil
}

var kinds = map[string]string{"v": "view", "m": "materialized view", "p": "partitioned table", "f": "foreign table", "S": "sequence", "i": "index", "c": "composite type", "t": "TOAST table", "I": "partitioned index"}

const foreignKeyColumns = `f.oid::bigint AS "OID", pg_catalog.quote_ident(f.conname) AS "Name", f.conrelid::bigint AS "Table", f.confrelid::bigint AS "To",
	(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.conrelid) AS "TableName",
	(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.confrelid) AS "ToName",
	f.conkey AS "Columns", f.confkey AS "ToColumns", f.convalidated AS "Valid", f.condeferrable AS "Deferrable", pg_catalog.pg_get_constraintdef(f.oid) AS "Definition",
	coalesce(pg_catalog.obj_description(f.oid, 'pg_constraint'), '') AS "Comment"`

func readRelation(ctx context.Context, db querier, oid int64) (*relation, error) {
	r := &relation{}
	err := readJSON(ctx, db, r, `SELECT row_to_json(x)::text FROM (SELECT c.oid::bigint AS "OID", pg_catalog.format('%I.%I', n.nspname, c.relname) AS "Name",
		c.relname AS "Plain", pg_catalog.quote_ident(n.nspname) AS "Schema", c.relkind AS "Kind", c.relispartition AS "Partition",
		(SELECT pg_catalog.format('%I.%I', rn.nspname, rc.relname) FROM pg_catalog.pg_class rc JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace WHERE rc.oid = pg_catalog.pg_partition_root(c.oid)) AS "Root",
		c.reloftype <> 0 AS "Typed",
		(SELECT coalesce(string_agg(pg_catalog.format('ALTER TABLE %s NO INHERIT %s', i.inhrelid::regclass, i.inhparent::regclass), '; ' ORDER BY i.inhrelid, i.inhparent), '') FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)) AS "NoInherit",
		pg_catalog.pg_has_role(c.relowner, 'USAGE') AS "Owned", c.relrowsecurity AS "RLS", c.relforcerowsecurity AS "ForceRLS",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT `+grantColumns+` FROM pg_catalog.aclexplode(c.relacl) g) y) AS "Grants", c.relpersistence = 't' AS "Temporary",
		EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 16 <> 0 AND t.tgenabled IN ('O', 'A')) AS "Triggers",
		EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 16 <> 0 AND t.tgenabled IN ('A', 'R')) AS "AlwaysTriggers",
		c.reltuples AS "Rows", c.relreplident AS "Identity", pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) AS "Owner"
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::text::oid) x`, strconv.FormatInt(oid, 10))
	return r, err
}

// read completes the model with the other properties of the tables.
func (m *model) read(ctx context.Context, db querier) error {
	err := readJSON(ctx, db, &struct {
		Database    *string
		Role        *string
		ReplicaRole *bool
		BypassRLS   *bool
	}{&m.database, &m.role, &m.replicaRole, &m.bypassRLS}, `SELECT row_to_json(x)::text FROM (SELECT pg_catalog.quote_ident(current_database()) AS "Database", pg_catalog.quote_ident(current_user) AS "Role",
		pg_catalog.has_parameter_privilege('session_replication_role', 'SET') AS "ReplicaRole",
		(SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user) AS "BypassRLS") x`)
	if err != nil {
		return err
	}
	// Print all names with their schemas.
	if _, err := db.ExecContext(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	for _, r := range m.relations {
		if err := m.readColumns(ctx, db, r); err != nil {
			return err
		}
		if !slices.Contains(m.path, r.Schema) {
			m.path = append(m.path, r.Schema)
		}
	}
	m.keepMoved()
	for _, r := range m.relations {
		if r.Rows >= 0 {
			continue
		}
		r.Rows = 0
		if r.Kind == "r" && r.Owned && !r.Temporary && !r.ForceRLS { // a table without statistics
			if err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+r.Name).Scan(&r.Rows); err != nil {
				return err
			}
		}
	}
	tables := oids(m.relations, func(r *relation) int64 { return r.OID })
	if err := m.readFunctions(ctx, db, tables); err != nil || len(m.relations) == 0 {
		return err
	}
	for _, q := range []struct {
		dst   any
		query string
	}{
		{&m.indexes, `SELECT i.indexrelid::bigint AS "OID", i.indrelid::bigint AS "Table", pg_catalog.quote_ident(c.relname) AS "Name", c.relname AS "Plain", i.indisunique AS "Unique",
			i.indkey::smallint[] AS "Columns", (SELECT array_agg(coalesce('(' || pg_catalog.pg_get_expr(g.adbin, g.adrelid) || ')', pg_catalog.pg_get_indexdef(i.indexrelid, n, false)) ORDER BY n) FROM generate_series(1, i.indnkeyatts) n
				LEFT JOIN (pg_catalog.pg_attribute ga JOIN pg_catalog.pg_attrdef g ON g.adrelid = ga.attrelid AND g.adnum = ga.attnum) ON ga.attrelid = i.indrelid AND ga.attnum = i.indkey[n - 1] AND ga.attgenerated <> '') AS "Keys",
			(SELECT array_agg(pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum <= i.indnkeyatts) AS "Types",
			(SELECT bool_and(coalesce(ca.attgenerated = '' AND t.typnamespace = 'pg_catalog'::regnamespace, false)) FROM unnest(i.indkey::smallint[]) u(num)
				LEFT JOIN pg_catalog.pg_attribute ca ON ca.attrelid = i.indrelid AND ca.attnum = u.num LEFT JOIN pg_catalog.pg_type t ON t.oid = ca.atttypid) AS "Findable",
			i.indnullsnotdistinct AS "NullsEqual", coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), '') AS "Predicate", concat_ws(' ', pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)) AS "Expression",
			pg_catalog.pg_get_indexdef(i.indexrelid) AS "Definition", coalesce(pg_catalog.quote_ident(k.conname), '') AS "Constraint", coalesce(k.contype::text, '') AS "Type",
			coalesce(k.condeferrable, false) AS "Deferrable", coalesce(k.condeferred, false) AS "Deferred", i.indisclustered AS "Clustered", i.indisreplident AS "ReplIdent",
			i.indisvalid AS "Valid", h.amname AS "Method", (SELECT array_agg(o.opcdefault ORDER BY u.n) FROM unnest(i.indclass::oid[]) WITH ORDINALITY u(oid, n) JOIN pg_catalog.pg_opclass o ON o.oid = u.oid) AS "DefaultOps",
			(SELECT array_agg(coalesce(u.oid = a.attcollation, true) ORDER BY u.n) FROM unnest(i.indcollation::oid[], i.indkey::smallint[]) WITH ORDINALITY u(oid, num, n) LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.num AND u.oid <> 0 WHERE u.oid IS NOT NULL) AS "DefaultCollations",
			(SELECT array_agg(a.attnum || ' SET STATISTICS ' || a.attstattarget ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attstattarget >= 0) AS "Targets",
			coalesce(pg_catalog.quote_ident(s.spcname), '') AS "Tablespace", coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') AS "Comment",
			coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "ConComment"
			FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am h ON h.oid = c.relam LEFT JOIN pg_catalog.pg_tablespace s ON s.oid = c.reltablespace
			LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
			WHERE i.indrelid = ANY ($1::text::oid[]) ORDER BY i.indrelid, c.relname`},
		{&m.checks, `SELECT k.conrelid::bigint AS "Table", pg_catalog.quote_ident(k.conname) AS "Name", coalesce(k.conkey, '{}') AS "Columns", pg_catalog.pg_get_constraintdef(k.oid) AS "Definition",
			pg_catalog.pg_get_expr(k.conbin, k.conrelid) AS "Expression", k.convalidated AS "Valid", coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "Comment"
			FROM pg_catalog.pg_constraint k WHERE k.contype = 'c' AND k.conrelid = ANY ($1::text::oid[]) ORDER BY k.conrelid, k.conname`},
		{&m.statistics, `SELECT s.oid::bigint AS "OID", s.stxrelid::bigint AS "Table", pg_catalog.format('%I.%I', n.nspname, s.stxname) AS "Name", s.stxkeys::smallint[] AS "Columns",
			pg_catalog.pg_get_statisticsobjdef(s.oid) AS "Definition", pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(s.stxowner)) AS "Owner",
			coalesce(pg_catalog.obj_description(s.oid, 'pg_statistic_ext'), '') AS "Comment", CASE WHEN s.stxstattarget >= 0 THEN s.stxstattarget END AS "Target"
			FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace WHERE s.stxrelid = ANY ($1::text::oid[]) ORDER BY 3`},
	} {
		if err := readJSON(ctx, db, q.dst, rows(q.query), tables); err != nil {
			return err
		}
	}
	// Print definitions of views so that they can be created for the tables and for the views
	// of the job's schema: without the schemas of the tables and of the views.
	for schemas := 0; schemas < len(m.path); {
		schemas = len(m.path)
		if _, err := db.ExecContext(ctx, "SET LOCAL search_path = "+strings.Join(m.path, ", ")); err != nil {
			return err
		}
		m.views = nil
		if m.dependents, err = m.readDependents(ctx, db); err != nil {
			return err
		}
		for _, v := range m.views {
			if !slices.Contains(m.path, v.schema()) {
				m.path = append(m.path, v.schema())
			}
		}
	}
	for _, x := range m.indexes {
		if !m.has(x.Table, x.Columns) && !m.mentions(x.Table, x.Expression) {
			continue
		}
		x.fresh = newName("%s", x.Plain)
		for slices.ContainsFunc(m.changed, func(o *index) bool { return o.fresh == x.fresh }) {
			x.fresh = newName("%d_%s", len(m.changed), x.Plain)
		}
		m.changed = append(m.changed, x)
	}
	if _, err := db.ExecContext(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	return m.readTrustedPath(ctx, db)
}

// keepMoved removes the columns of InPlace keys whose columns are all bigint.
func (m *model) keepMoved() {
	for _, k := range m.keys {
		if !k.InPlace || slices.ContainsFunc(k.columns, func(c *column) bool { return c.Base != "int8" }) {
			continue
		}
		for _, c := range k.columns {
			c.rel.columns = slices.DeleteFunc(c.rel.columns, func(o *column) bool { return o == c })
		}
		k.columns = nil
	}
	m.relations = slices.DeleteFunc(m.relations, func(r *relation) bool { return len(r.columns) == 0 })
}

const grantColumns = `g.privilege_type AS "Privilege", CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) END AS "Role", g.is_grantable AS "Option"`

func (m *model) readColumns(ctx context.Context, db querier, r *relation) error {
	var all []column
	err := readJSON(ctx, db, &all, rows(`SELECT a.attnum AS "Num", a.attname AS "Name", pg_catalog.quote_ident(a.attname) AS "Quoted",
		pg_catalog.format_type(a.atttypid, a.atttypmod) AS "Type", coalesce(l.collnamespace::regnamespace || '.' || pg_catalog.quote_ident(l.collname), '') AS "Collation", NOT coalesce(l.collisdeterministic, true) AS "Equal", b.typname AS "Base", t.typtype = 'd' AS "Domain", a.attnotnull AS "NotNull", a.attidentity AS "Identity", a.attgenerated AS "Generated",
		coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') AS "Default",
		(SELECT row_to_json(y) FROM (SELECT pg_catalog.quote_ident(k.conname) AS "Name", k.convalidated AS "Valid", k.connoinherit AS "NoInherit",
			coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "Comment"
			FROM pg_catalog.pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey[1] = a.attnum) y) AS "NotNullAs",
		pg_catalog.pg_get_serial_sequence('`+strings.ReplaceAll(r.Name, "'", "''")+`', a.attname) AS "Sequence",
		CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END AS "Target", (SELECT array_agg(o) FROM unnest(a.attoptions) o WHERE o LIKE 'n_distinct%') AS "Options", -- the server sets others
		coalesce(pg_catalog.col_description(a.attrelid, a.attnum), '') AS "Comment",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT `+grantColumns+`, pg_catalog.quote_ident(a.attname) AS "Column" FROM pg_catalog.aclexplode(a.attacl) g) y) AS "Grants"
		FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
		JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN (WITH RECURSIVE d(oid, kind, base) AS (
			SELECT t.oid, t.typtype, t.typbasetype UNION ALL SELECT p.oid, p.typtype, p.typbasetype FROM d JOIN pg_catalog.pg_type p ON p.oid = d.base WHERE d.kind = 'd')
			SELECT d.oid FROM d WHERE d.kind <> 'd') ELSE t.oid END
		LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
		WHERE a.attrelid = $1::text::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`), strconv.FormatInt(r.OID, 10))
	if err != nil {
		return err
	}
	for _, a := range all {
		r.Grants = append(r.Grants, a.Grants...)
		c := m.column(r.OID, a.Num)
		if c == nil {
			r.others = append(r.others, a.Quoted)
			if a.Generated == "" && a.Identity != "a" {
				r.settable = append(r.settable, a.Quoted)
			}
			if slices.Contains([]string{"timestamptz", "timestamp", "int8", "int4"}, a.Base) {
				r.times = append(r.times, timeColumn{a.Name, a.Quoted, a.Base})
			}
			if strings.HasPrefix(a.Name, "rekey_") {
				m.problem("column "+r.Name+"."+a.Quoted, "has a name with the prefix of new columns", "finish or abort the other rekey of the table, or rename the column")
			}
			continue
		}
		rel, key, root, targets := c.rel, c.key, c.root, c.targets
		*c = a
		c.rel, c.key, c.root, c.targets, c.fresh = rel, key, root, targets, ident("rekey_"+c.Name)
		if len("rekey_"+c.Name) > 63 {
			m.problem(c.String(), "has a name of more than 57 bytes", "rename the column")
		}
	}
	slices.SortFunc(r.columns, func(a, b *column) int { return a.Num - b.Num })
	return nil
}
