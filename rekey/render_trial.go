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
	run(fmt.Sprintf(`%s
    INSERT INTO %s (%s)
        SELECT %s FROM (SELECT) one LEFT JOIN (SELECT * %s LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY %[2]s WHERE ctid = copy;`, unique.String(), r.Name, strings.Join(append(slices.Clone(copied), key...), ", "),
		strings.Join(append(each(copied, func(c string) string { return "x." + c }), value...), ", "), from))
	return list
}

// exchange renders the statements that give the names of the old columns to the new ones, and
// the other way around. A trigger sets the old keys of new rows.
func (m *model) exchange(r *relation, group []*relation, schema string) []string {
	sql := dropTriggers(r)
	alter := func(format string, args ...any) {
		sql = append(sql, "ALTER TABLE "+r.Name+" "+fmt.Sprintf(format, args...))
	}
	var sets strings.Builder
	for _, c := range r.columns {
		alter(`RENAME COLUMN %s TO "~rekey"`, c.Quoted)
		alter("RENAME COLUMN %s TO %s", c.fresh, c.Quoted)
		alter(`RENAME COLUMN "~rekey" TO %s`, c.fresh)
		if c.root {
			if c.key.hasDefault() {
				alter("ALTER COLUMN %s SET DEFAULT %s", c.Quoted, c.key.newDefault())
			}
			fmt.Fprintf(&sets, "\n    IF NEW.%[1]s IS NULL THEN\n        NEW.%[1]s := %[2]s;\n    END IF;", c.fresh, c.key.oldExpr)
			continue
		}
		if c.NotNull && !slices.ContainsFunc(m.indexes, func(x *index) bool {
			return x.Table == r.OID && (x.Type == "p" || x.ReplIdent) && slices.Contains(x.Columns, c.Num)
		}) {
			alter("ALTER COLUMN %s DROP NOT NULL", c.fresh) // the row that it refers to can come later
		}
		root := c.key.root
		newKey, oldKey := root.fresh, root.Quoted
		if slices.Contains(group, root.rel) {
			newKey, oldKey = oldKey, newKey
		}
		fmt.Fprintf(&sets, "\n    NEW.%[1]s := CASE WHEN NEW.%[2]s IS NOT NULL THEN coalesce((SELECT p.%[3]s FROM ONLY %[4]s p WHERE p.%[5]s = NEW.%[2]s), NEW.%[1]s) END;",
			c.fresh, c.Quoted, oldKey, root.rel.Name, newKey)
	}
	for _, c := range m.changedChecks() {
		if c.Table == r.OID {
			alter("DROP CONSTRAINT %s", c.Name)
		}
	}
	function := fmt.Sprintf("%s.trial_%d()", schema, slices.Index(m.relations, r))
	return append(sql, "CREATE FUNCTION "+function+" RETURNS trigger "+functionOptions+" AS "+body("\n#variable_conflict use_column\nBEGIN"+sets.String()+"\n    RETURN NEW;\nEND\n"),
		`CREATE TRIGGER "~rekey trial" BEFORE INSERT OR UPDATE ON `+r.Name+" FOR EACH ROW EXECUTE FUNCTION "+function)
}
