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
	"github.com/sortkey/sortkey/internal/trust"
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

// usePath sets the search_path of a transaction, unless path is "".
func usePath(ctx context.Context, tx querier, path string) error {
	if path == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)", path)
	return err
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
		err := readJSON(ctx, db, &pk, query("primary key", nil), strconv.FormatInt(named[k.Table], 10))
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
		if len(pk.Columns) == 0 {
			m.problem("table "+k.Table, "has no primary key", "add one, or name another table")
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
		err := readJSON(ctx, db, &e, query("column by name", nil), strconv.FormatInt(named[r.Table], 10), r.Column)
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
		t := target{where: r.Where}
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
			case !c.root && (!c.plain() || e.where != ""):
				m.problem(c.String(), "refers to %s twice, with where in a reference", "remove where, or the other reference or foreign key", c.key.Table)
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
		err = readJSON(ctx, db, &list, rows(query("foreign keys", nil)), strconv.FormatInt(e.table, 10), strconv.Itoa(e.num))
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

func readRelation(ctx context.Context, db querier, oid int64) (*relation, error) {
	r := &relation{}
	err := readJSON(ctx, db, r, query("relation", nil), strconv.FormatInt(oid, 10))
	return r, err
}

// read completes the model with the other properties of the tables.
func (m *model) read(ctx context.Context, db querier) error {
	err := readJSON(ctx, db, &struct {
		Database    *string
		Role        *string
		ReplicaRole *bool
		BypassRLS   *bool
	}{&m.database, &m.role, &m.replicaRole, &m.bypassRLS}, query("session", nil))
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
		{&m.indexes, query("indexes", nil)},
		{&m.checks, query("checks", nil)},
		{&m.statistics, query("statistics", nil)},
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

func (m *model) readColumns(ctx context.Context, db querier, r *relation) error {
	var all []column
	err := readJSON(ctx, db, &all, rows(query("columns", r.Name)), strconv.FormatInt(r.OID, 10))
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
			if slices.Contains([]string{"timestamptz", "timestamp"}, a.Base) {
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

// readTrustedPath reads the schemas of the tables in which only trusted roles can create
// objects. Triggers of a trial find names there.
func (m *model) readTrustedPath(ctx context.Context, db querier) error {
	return readJSON(ctx, db, &m.trustedPath, query("trusted schemas", trust.Roles), pgArray(m.path))
}

// readFunctions reads the triggers, and the functions that they might call.
func (m *model) readFunctions(ctx context.Context, db querier, tables string) error {
	err := readJSON(ctx, db, &m.triggers, rows(query("triggers", nil)), tables)
	if err != nil {
		return err
	}
	return readJSON(ctx, db, &m.functions, rows(query("functions", nil)), tables, pgArray(m.own))
}

// readDependents returns the objects that depend on the columns, and reads the views.
func (m *model) readDependents(ctx context.Context, db querier) ([]dependent, error) {
	var columns []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			columns = append(columns, strconv.FormatInt(r.OID, 10)+":"+strconv.Itoa(c.Num))
		}
	}
	var direct []dependent
	err := readJSON(ctx, db, &direct, rows(query("dependents of columns", nil)), "{"+strings.Join(columns, ",")+"}")
	if err != nil {
		return nil, err
	}
	all := direct
	for level := 1; len(direct) > 0; level++ {
		var rules []int64
		for _, d := range direct {
			if d.Class == "pg_rewrite" {
				rules = append(rules, d.OID)
			}
		}
		var found []*view
		// Names of tables in the definition depend on the search_path.
		err := readJSON(ctx, db, &found, rows(query("views", trust.Roles)),
			oids(rules, func(v int64) int64 { return v }))
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			// A view comes after all views that it reads.
			m.views = slices.DeleteFunc(m.views, func(o *view) bool { return o.OID == v.OID })
			m.views = append(m.views, v)
		}
		direct = nil
		if len(found) == 0 {
			break
		}
		err = readJSON(ctx, db, &direct, rows(query("dependents of views", nil)),
			oids(found, func(v *view) int64 { return v.OID }))
		if err != nil {
			return nil, err
		}
		all = append(all, direct...)
	}
	slices.SortStableFunc(all, func(a, b dependent) int { return strings.Compare(a.Object, b.Object) })
	return slices.CompactFunc(all, func(a, b dependent) bool { return a.Object == b.Object }), nil
}
