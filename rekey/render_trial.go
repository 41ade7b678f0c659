package rekey

import (
	"fmt"
	"slices"
	"strings"
)

// A trial runs the swap of a group of tables in a transaction that it rolls back. In each table with
// triggers, it updates a row, and inserts and deletes a copy of a row, first with the old keys and
// then with the new ones. It also inserts a copy without a key, as programs do that leave the key to the
// database: a trigger that sets the key would go on with old ones.

// tryBefore and tryAfter begin the statements before and after the swap: what fails with the new
// keys must fail with the old keys, too.
const (
	tryBefore = "/* with the old keys */ "
	tryAfter  = "/* with the new keys */ "
)

// setsKey is the SQLSTATE of a trial in which a trigger sets the key that a program leaves out.
const setsKey = "RK001"

// tryTimeouts is the duration of a statement of a trial, in Options.LockTimeouts. Programs wait
// for it.
const tryTimeouts = 30

// trial renders the statements of a trial before and after the swap.
func (m *model) trial(g group) []string {
	tables := filter(g.tables, func(r *relation) bool {
		return slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Table == r.OID })
	})
	sql := []string{"SET LOCAL search_path = " + strings.Join(append(slices.Clone(m.trustedPath), "pg_temp"), ", ")}
	for _, r := range tables {
		sql = append(sql, each(m.tries(r, false), func(s string) string { return tryBefore + s })...)
	}
	for _, r := range tables {
		sql = append(sql, each(m.tries(r, true), func(s string) string { return tryAfter + s })...)
	}
	return sql
}

// tries renders the statements on rows of a table, with the names before or after
// the swap.
func (m *model) tries(r *relation, swapped bool) (list []string) {
	columns, copied, from := slices.Clone(r.settable), slices.Clone(r.settable), "FROM ONLY "+r.Name
	var key, value []string
	var root *column
	for _, c := range r.columns {
		if !c.root {
			columns = append(columns, c.Quoted)
			copied = append(copied, c.Quoted, c.fresh)
			continue
		}
		name := c.fresh
		if swapped {
			name = c.Quoted
		}
		key, value, root = []string{name}, []string{c.key.newDefault()}, c
		from += " ORDER BY " + name + " DESC"
	}
	run := func(statements string) {
		list = append(list, "DO "+body("\n#variable_conflict use_column\nDECLARE\n    copy tid;\n    given text;\n    other boolean;\nBEGIN"+statements+"\n    SET CONSTRAINTS ALL IMMEDIATE;\nEND\n"))
	}
	if len(columns) > 0 {
		run(fmt.Sprintf("\n    UPDATE ONLY %s SET %s WHERE ctid = (SELECT ctid %s LIMIT 1);", r.Name, strings.Join(each(columns, func(c string) string { return c + " = " + c }), ", "), from))
	}
	// A copy has the values of unique indexes. An index that a foreign key refers to stays.
	var unique strings.Builder
	drop := func(statement string) {
		unique.WriteString("\n    BEGIN " + statement + "; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;")
	}
	for _, x := range m.indexes {
		if x.Table != r.OID || !x.Unique || len(x.Columns) == 1 && slices.ContainsFunc(r.columns, func(c *column) bool { return c.root && c.Num == x.Columns[0] }) {
			continue
		}
		names := []string{x.Name}
		if x.fresh != "" {
			names = append(names, ident(x.fresh))
		}
		for _, name := range names {
			drop("ALTER TABLE " + r.Name + " DROP CONSTRAINT IF EXISTS " + name)
			drop("DROP INDEX IF EXISTS " + r.Schema + "." + name)
		}
	}
	v := values{"drops": unique.String(), "table": r.Name, "from": from, "columns": append(slices.Clone(copied), key...),
		"values": append(each(copied, func(c string) string { return "x." + c }), value...)}
	run(query("trial copy", v))
	if root != nil {
		v["columns"], v["values"], v["key"], v["time"] = copied, each(copied, func(c string) string { return "x." + c }), root.Quoted, ""
		if swapped {
			v["time"], v["format"], v["code"] = root.key.format.time, string(root.key.Format), setsKey
		}
		run(query("trial without a key", v))
	}
	return list
}
