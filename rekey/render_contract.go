package rekey

import (
	"fmt"
	"slices"
	"strings"
)

// A group has tables that contract changes in one transaction, since a function or a view works on
// several of them, and the views of these tables, each after the views that it reads.
type group struct {
	tables []*relation
	views  []*view
}

func (g group) objects(m *model) *objects {
	o := m.objects(g.tables...)
	o.Views = each(g.views, func(v *view) string { return v.Name })
	return o
}

// groups returns the tables in groups.
func (m *model) groups() (list []group) {
	parent := map[string]string{} // a table or a view of the same group, by name
	var find func(name string) string
	find = func(name string) string {
		if p, ok := parent[name]; ok {
			return find(p)
		}
		return name
	}
	join := func(names []string) {
		for _, name := range names {
			if a, b := find(names[0]), find(name); a != b {
				parent[a] = b
			}
		}
	}
	for _, v := range m.views {
		names := []string{v.Name}
		for _, oid := range v.Reads {
			if r := m.relation(oid); r != nil {
				names = append(names, r.Name)
			}
			for _, other := range m.views {
				if other.OID == oid {
					names = append(names, other.Name)
				}
			}
		}
		join(names)
	}
	for _, f := range m.functions {
		uses := each(m.allUses(f), func(u use) string { return u.relation })
		join(uses)
		for _, t := range m.triggers {
			if t.Function == f.OID && len(uses) > 0 {
				join(append([]string{m.relation(t.Table).Name}, uses...))
			}
		}
	}
	for _, r := range m.relations {
		i := slices.IndexFunc(list, func(g group) bool { return find(g.tables[0].Name) == find(r.Name) })
		if i < 0 {
			i, list = len(list), append(list, group{})
		}
		list[i].tables = append(list[i].tables, r)
	}
	for _, v := range m.views {
		for i := range list {
			if find(list[i].tables[0].Name) == find(v.Name) {
				list[i].views = append(list[i].views, v)
			}
		}
	}
	return list
}

// contract renders the actions of contract. They exchange the names of the columns, one group of
// tables after another. The functions of the triggers get the other names in the same transaction,
// and go on keeping both keys, so the groups are independent of each other.
func (m *model) contract(groups []group, o Options) []action {
	step := plan{step: StepContract}
	if len(m.relations) > 0 {
		step.add(kindCheck, compareKeys, m.rowChecks()...)
		step.add(kindCheck, newObjects, m.dependentCheck(StepContract), inheritance(m.relations...), m.schemaCheck(), m.publicationCheck())
	}
	if sql := m.privilegeChecks(o); len(sql) > 0 {
		step.add(kindCheck, "check the privileges", sql...)
	}
	for i, g := range groups {
		step.add(kindTrial, "try the new columns of "+strings.Join(relationNames(g.tables), ", "), m.trial(g)...).Swap = i
	}
	for _, g := range groups {
		a := step.add(kindSwap, "exchange the columns of "+strings.Join(relationNames(g.tables), ", "), m.swap(g, true)...)
		a.Objects, a.Check = g.objects(m), m.exchanged(g)
	}
	for _, k := range m.stayed() {
		step.add(kindSwap, "replace the default of "+k.root.rel.Name+"."+k.root.Quoted, append(lock(allPrograms, k.root.rel.Name), k.replaceDefault()...)...).Objects = k.objects()
	}
	return step.list
}

// undo renders the actions that take contract back, in the opposite order. It has one swap for each swap
// of contract.
func (m *model) undo(groups []group) []action {
	step := plan{step: StepUndo}
	if len(m.relations) > 0 {
		swapped(m.relations, func() { step.add(kindCheck, compareKeys, m.rowChecks()...) })
		step.add(kindCheck, newObjects, m.dependentCheck(StepUndo), inheritance(m.relations...))
	}
	for _, k := range slices.Backward(m.stayed()) {
		step.add(kindSwap, "restore the default of "+k.root.rel.Name+"."+k.root.Quoted, append(lock(allPrograms, k.root.rel.Name), k.restoreDefault()...)...).Objects = k.objects()
	}
	for _, g := range slices.Backward(groups) {
		a := step.add(kindSwap, "give the old columns of "+strings.Join(relationNames(g.tables), ", ")+" their names", m.swap(g, false)...)
		a.Objects, a.Check = g.objects(m), m.exchanged(g)
	}
	return step.list
}

// swap renders the statements that exchange the names of the columns of tables, and of their
// indexes and constraints, and create the views again, which name the columns.
func (m *model) swap(g group, forward bool) []string {
	sql := lock(allPrograms, relationNames(g.tables)...)
	if len(g.views) > 0 {
		sql = append(sql, "DROP VIEW "+strings.Join(reversed(each(g.views, func(v *view) string { return v.Name })), ", "))
	}
	for _, r := range g.tables {
		sql = append(sql, script("exchange", values{"table": r, "forward": forward,
			"indexes":      filter(m.changed, func(x *index) bool { return x.Table == r.OID }),
			"checks":       m.checksOf(r),
			"foreign_keys": filter(m.changedForeignKeys(), func(f *foreignKey) bool { return f.Table == r.OID })})...)
	}
	functions := func() { sql = append(sql, m.functionSQL(g.tables...)...) }
	if forward {
		swapped(g.tables, functions)
	} else {
		functions()
	}
	if len(g.views) > 0 {
		sql = append(sql, "SET LOCAL search_path = "+strings.Join(m.path, ", "))
		for _, v := range g.views {
			sql = append(sql, m.createView(v, v.schema(), true)...)
		}
		sql = append(sql, "SET LOCAL search_path = pg_catalog")
	}
	return append(sql, m.recompile(g.tables)...)
}

// swapped calls render with the names that the columns of tables have between contract and cleanup.
func swapped(tables []*relation, render func()) {
	for _, r := range tables {
		r.swapped = true
	}
	render()
	for _, r := range tables {
		r.swapped = false
	}
}

// readers renders a query for the views of a group that read the columns with names of rekey's, as
// by their position.
func (m *model) readers(g group) string {
	if len(g.views) == 0 {
		return ""
	}
	return query("readers", values{"views": sqlNames(each(g.views, func(v *view) string { return v.Name })), "columns": m.columnNames(func(c *column) string { return c.fresh })})
}

// inheritance renders a query for tables that inherit from tables, or from which they inherit.
func inheritance(tables ...*relation) string {
	return query("inheritance", sqlNames(relationNames(tables)))
}

// exchanged renders a query whose rows are findings after the swap of a group.
func (m *model) exchanged(g group) string {
	list := []string{inheritance(g.tables...)}
	if readers := m.readers(g); readers != "" {
		list = append(list, readers)
	}
	return strings.Join(list, "\nUNION ALL ")
}

// stayed returns the keys whose columns stay, and whose default changes.
func (m *model) stayed() []*key {
	return filter(m.keys, func(k *key) bool { return len(k.columns) == 0 && k.hasDefault() })
}

func (k *key) objects() *objects {
	return &objects{Tables: []string{k.root.rel.Name}, Columns: []string{k.root.rel.Name + "." + k.root.Name}}
}

// replaceDefault renders the statements that replace the default of a key whose column stays. The
// sequence stays until cleanup. That of an identity column can't, so its state moves to another one.
func (k *key) replaceDefault() (sql []string) {
	column := "ALTER TABLE " + k.root.rel.Name + " ALTER COLUMN " + k.root.Quoted
	if k.root.Identity != "" {
		sql = []string{
			"CREATE SEQUENCE " + k.identityName() + k.root.SequenceOptions,
			fmt.Sprintf("SELECT setval(%s, s.last_value, s.is_called) FROM %s s", literal(k.identityName()), k.root.Sequence),
			column + " DROP IDENTITY",
		}
	}
	return append(sql, column+" SET DEFAULT "+k.newDefault())
}

func (k *key) restoreDefault() []string {
	column := "ALTER TABLE " + k.root.rel.Name + " ALTER COLUMN " + k.root.Quoted
	if k.root.Identity == "" {
		return []string{column + " SET DEFAULT " + k.root.Default}
	}
	generated := "BY DEFAULT"
	if k.root.Identity == "a" {
		generated = "ALWAYS"
	}
	return append([]string{
		column + " DROP DEFAULT",
		column + " ADD GENERATED " + generated + " AS IDENTITY (SEQUENCE NAME " + k.root.Sequence + k.root.SequenceOptions + ")",
		fmt.Sprintf("SELECT setval(%s, s.last_value, s.is_called) FROM %s s", literal(k.root.Sequence), k.identityName()),
		"DROP SEQUENCE " + k.identityName(),
	}, k.root.SequenceGrants...)
}

// identityName returns the sequence that keeps the state of an identity column from contract on.
func (k *key) identityName() string { return fmt.Sprintf("%s.identity_%d", Schema, k.n) }

// dependentCheck renders a query for objects that depend on the columns and that the plan doesn't
// know. They would stay with the wrong column, or be lost. After contract, the columns are swapped, and
// cleanup drops only the columns with names of rekey's.
func (m *model) dependentCheck(step Step) string {
	known := each(m.dependents, func(d dependent) string { return d.Identity })
	remedy, visible := "drop it, and create it again after contract", m.columnNames(func(c *column) string { return c.Quoted })
	switch step {
	case StepCleanup:
		remedy, visible = "drop it: cleanup drops this column", sqlNames(nil)
	case StepUndo:
		remedy = "drop it before undo"
	}
	if step != StepContract {
		known = append(known, m.swappedIdentities()...)
	}
	return query("dependent check", values{"schema": Schema, "known": sqlNames(known), "remedy": remedy,
		"visible": visible, "hidden": m.columnNames(func(c *column) string { return c.fresh })})
}

// swappedIdentities returns the objects that depend on other columns after contract than before: the
// primary key and the defaults stay with the old columns.
func (m *model) swappedIdentities() (list []string) {
	for _, x := range m.changed {
		if x.Type == "p" {
			list = append(list, "index "+m.relation(x.Table).Schema+"."+x.Name)
		}
	}
	for _, r := range m.relations {
		for _, c := range r.columns {
			list = append(list, "default value for "+r.Name+"."+c.Quoted, "default value for "+r.Name+"."+c.fresh)
		}
	}
	return list
}

// privilegeChecks renders queries for roles that would lose or gain privileges.
func (m *model) privilegeChecks(o Options) (sql []string) {
	if len(m.relations) > 0 {
		sql = append(sql, m.viewPrivileges())
	}
	for _, k := range m.keys {
		if k.hasDefault() && k.format.creates != "" {
			sql = append(sql, "SELECT 'role ' || role || "+literal(" inserts into "+k.root.rel.Name+", and can't execute "+k.format.creates+", the default after contract; GRANT USAGE ON SCHEMA "+o.Config.Schema+" TO ")+
				" || role || "+literal("; GRANT EXECUTE ON FUNCTION "+k.format.creates+" TO ")+" || role FROM ("+k.inserters(o)+") x")
		}
	}
	return sql
}

// inserters renders a query for the roles that can insert rows now, and couldn't with the new
// default.
func (k *key) inserters(o Options) string {
	return query("inserters", values{"table": literal(k.root.rel.Name), "schema": o.Config.Schema, "creates": k.format.creates})
}

// viewPrivileges renders a query for privileges that only a table has, or only its view for
// programs of the new version. The privileges on a table with row security apply to its view.
func (m *model) viewPrivileges() string {
	var pairs []string
	for _, r := range m.relations {
		if !r.RLS {
			pairs = append(pairs, "("+literal(r.Name)+"::regclass, "+literal(Schema+"."+r.quotedPlain())+"::regclass)")
		}
	}
	if len(pairs) == 0 {
		return "SELECT NULL::text WHERE false"
	}
	return query("view privileges", pairs)
}

// schemaCheck renders a query for objects of others in the schema of the job, such as a table
// that a program of the new version has created.
func (m *model) schemaCheck() string {
	own := append(m.jobViews(), jobTables()...)
	for _, k := range m.stayed() {
		own = append(own, k.identityName())
	}
	return query("schema check", values{"schema": Schema, "own": sqlNames(each(own, func(name string) string { return unquote(strings.TrimPrefix(name, Schema+".")) }))})
}

func (k *key) newDefault() string { return k.with(k.format.next, k.Node, "", "") }

func comment(object, text string) []string {
	if text == "" {
		return nil
	}
	return []string{"COMMENT ON " + object + " IS " + literal(text)}
}

// recompile renders statements after which sessions compile the functions again that work on
// tables. Otherwise, their variables and queries would keep the types of the other columns.
func (m *model) recompile(tables []*relation) (sql []string) {
	isTable := func(list []*relation, name string) bool {
		return slices.Contains(relationNames(list), name)
	}
	of := func(f *function) bool {
		return slices.ContainsFunc(m.triggers, func(t *trigger) bool {
			return t.Function == f.OID && isTable(tables, m.relation(t.Table).Name)
		}) || slices.ContainsFunc(m.uses(f), func(u use) bool {
			return isTable(tables, u.relation) || !isTable(m.relations, u.relation) // a view
		})
	}
	for _, f := range m.functions {
		if !f.Owned || !of(f) {
			continue
		}
		security := "INVOKER" // unchanged
		if f.Definer {
			security = "DEFINER"
		}
		sql = append(sql, "ALTER ROUTINE "+f.Name+" SECURITY "+security)
	}
	return sql
}
