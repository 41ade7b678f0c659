package rekey

import (
	"fmt"
	"slices"
	"strings"
)

// A trial runs the triggers of the application with the new keys before contract changes
// anything, and rolls back. In each table with triggers, it updates a row, and inserts and
// deletes a copy of a row, first with the old keys and then with the new ones. To need no lock
// on other tables, it exchanges the names of the columns instead of dropping the old ones.

// tryBefore and tryAfter begin the statements that a trial compares: what fails with the new
// keys must fail with the old keys, too.
const (
	tryBefore = "/* with the old keys */ "
	tryAfter  = "/* with the new keys */ "
)

// tryTimeouts is the duration of a statement of a trial, in Options.LockTimeouts. Programs wait
// for it.
const tryTimeouts = 30

// trial renders the statements of a trial on tables that contract changes together, or nil if
// none of them has triggers.
func (m *model) trial(group []*relation, o Options) []string {
	tables := slices.DeleteFunc(slices.Clone(group), func(r *relation) bool {
		return !slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Table == r.OID })
	})
	if len(tables) == 0 {
		return nil
	}
	path := "SET LOCAL search_path = " + strings.Join(append(slices.Clone(m.trustedPath), "pg_temp"), ", ")
	sql := append(lock(allPrograms, relationNames(group)...), path)
	for _, r := range tables {
		sql = append(sql, each(m.tries(r, false), func(s string) string { return tryBefore + s })...)
	}
	for _, r := range group {
		sql = append(sql, m.exchange(r, group, o.Schema)...)
	}
	if m.linked && len(m.views) > 0 {
		sql = append(sql, m.replaceViews(m.path)...)
	}
	sql = append(append(sql, m.recompile(group)...), path)
	for _, r := range tables {
		sql = append(sql, each(m.tries(r, true), func(s string) string { return tryAfter + s })...)
	}
	return sql
}

// tries renders the statements on rows of a table, with the name of its key before or after
// exchange.
func (m *model) tries(r *relation, exchanged bool) (list []string) {
	columns, copied, from := slices.Clone(r.settable), slices.Clone(r.settable), "FROM ONLY "+r.Name
	var key, value []string
	for _, c := range r.columns {
		if !c.root {
			columns = append(columns, c.Quoted)
			copied = append(copied, c.Quoted, c.fresh)
			continue
		}
		name := c.fresh
		if exchanged {
			name = c.Quoted
		}
		key, value = []string{name}, []string{c.key.newDefault()}
		from += " ORDER BY " + name + " DESC"
	}
	run := func(statements string) {
		list = append(list, "DO "+body("\n#variable_conflict use_column\nDECLARE\n    copy tid;\nBEGIN"+statements+"\n    SET CONSTRAINTS ALL IMMEDIATE;\nEND\n"))
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
		if x.Constraint != "" {
			drop("ALTER TABLE " + r.Name + " DROP CONSTRAINT " + x.Constraint)
		} else {
			drop("DROP INDEX " + r.Schema + "." + x.Name)
		}
		switch {
		case x.fresh == "":
		case x.Type == "u" && x.Deferrable:
			drop("ALTER TABLE " + r.Name + " DROP CONSTRAINT " + ident(x.fresh))
		default:
			drop("DROP INDEX " + r.Schema + "." + ident(x.fresh))
		}
	}
	run(query("trial copy", values{"drops": unique.String(), "table": r.Name, "from": from, "columns": append(slices.Clone(copied), key...),
		"values": append(each(copied, func(c string) string { return "x." + c }), value...)}))
	return list
}

// exchange renders the statements that give the names of the old columns to the new ones, and
// the other way around. A trigger sets the old keys of new rows.
func (m *model) exchange(r *relation, group []*relation, schema string) []string {
	optional := map[string]bool{} // the row that they refer to can come later
	var sets strings.Builder
	for _, c := range r.columns {
		if c.root {
			sets.WriteString(query("trial key", values{"fresh": c.fresh, "old": c.key.oldExpr}))
			continue
		}
		optional[c.Quoted] = c.NotNull && !slices.ContainsFunc(m.indexes, func(x *index) bool {
			return x.Table == r.OID && (x.Type == "p" || x.ReplIdent) && slices.Contains(x.Columns, c.Num)
		})
		root := c.key.root
		newKey, oldKey := root.fresh, root.Quoted
		if slices.Contains(group, root.rel) {
			newKey, oldKey = oldKey, newKey
		}
		sets.WriteString(query("trial reference", values{"fresh": c.fresh, "quoted": c.Quoted, "old_key": oldKey, "new_key": newKey, "root": root.rel.Name}))
	}
	function := fmt.Sprintf("%s.trial_%d()", schema, slices.Index(m.relations, r))
	return append(script("exchange columns", values{"table": r, "optional": optional, "checks": m.checksOf(r)}),
		"CREATE FUNCTION "+function+" RETURNS trigger "+functionOptions+" AS "+body("\n#variable_conflict use_column\nBEGIN"+sets.String()+"\n    RETURN NEW;\nEND\n"),
		`CREATE TRIGGER "~rekey trial" BEFORE INSERT OR UPDATE ON `+r.Name+" FOR EACH ROW EXECUTE FUNCTION "+function)
}
