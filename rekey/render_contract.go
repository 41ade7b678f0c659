package rekey

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// contract renders the actions of contract. Each locks a single table, except for foreign
// keys, for tables that refer to each other in a circle, and if functions work on several
// tables. A table comes before the tables that it refers to, since its triggers need their old
// keys. The views of the job stay until
// the tables have the names of their columns.
func (m *model) contract(o Options) []action {
	step := plan{step: StepContract}
	add := func(kind, title string, objects *objects, sql ...string) {
		step.add(kind, title, sql...).Objects = objects
	}
	if len(m.relations) > 0 {
		add(kindCheck, compareKeys, nil, m.rowChecks(o)...)
		add(kindCheck, "look for new objects on the old columns", nil, m.dependentCheck(), m.schemaCheck(o), m.publicationCheck())
	}
	if sql := m.privilegeChecks(o); len(sql) > 0 {
		add(kindCheck, "check the privileges", nil, sql...)
	}
	groups := m.childrenFirst()
	if m.linked {
		// While some tables have new keys and others old ones, functions that work on both would
		// fail, or find no rows.
		groups = [][]*relation{slices.Concat(groups...)}
	}
	for _, group := range groups {
		if sql := m.trial(group, o); sql != nil {
			add(kindTrial, "try the triggers of "+strings.Join(relationNames(group), ", "), nil, sql...)
		}
	}
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		sql := append(m.lockBoth(f), "ALTER TABLE "+r.Name+" DROP CONSTRAINT "+f.Name, "ALTER TABLE "+r.Name+" RENAME CONSTRAINT "+freshConstraint(f.Name)+" TO "+f.Name)
		if f.Deferrable && !strings.Contains(f.Definition, deferred) {
			sql = append(sql, "ALTER TABLE "+r.Name+" ALTER CONSTRAINT "+f.Name+" DEFERRABLE INITIALLY IMMEDIATE")
		}
		add(kindDDL, "replace foreign key "+f.Name+" of "+r.Name, m.objects(r), append(sql, comment("CONSTRAINT "+f.Name+" ON "+r.Name, f.Comment)...)...)
	}
	views := &objects{Views: each(m.views, func(v *view) string { return v.Name })}
	if len(m.views) > 0 {
		add(kindDDL, "point views at the new columns", views, m.replaceViews(append([]string{o.Schema}, m.path...))...)
	}
	for _, group := range groups {
		names := relationNames(group)
		sql := lock(allPrograms, names...)
		for _, r := range group {
			sql = append(sql, m.replaceColumns(r)...)
		}
		sql = append(sql, m.recompile(group)...)
		add(kindDDL, "replace the old columns of "+strings.Join(names, ", "), m.objects(group...), sql...)
	}
	if len(m.views) > 0 {
		add(kindDDL, "point views at the tables", views, m.replaceViews(m.path)...)
	}
	if len(m.relations) > 0 {
		for _, v := range reversed(m.jobViews(o)) {
			add(kindDDL, "drop view "+v, nil, "DROP VIEW IF EXISTS "+v)
		}
	}
	for _, k := range m.keys {
		if len(k.columns) > 0 || !k.hasDefault() {
			continue // an InPlace key whose columns stay
		}
		r := k.root.rel
		sql := lock(allPrograms, r.Name)
		if k.root.Identity != "" {
			sql = append(sql, "ALTER TABLE "+r.Name+" ALTER COLUMN "+k.root.Quoted+" DROP IDENTITY")
		}
		sql = append(sql, "ALTER TABLE "+r.Name+" ALTER COLUMN "+k.root.Quoted+" SET DEFAULT "+k.newDefault())
		if k.root.Identity == "" && k.root.Sequence != "" && len(m.sequenceUsers(k.root)) == 0 {
			sql = append(sql, "DROP SEQUENCE "+k.root.Sequence)
		}
		oid := strconv.FormatInt(r.OID, 10)
		add(kindDDL, "replace the default of "+r.Name+"."+k.root.Quoted, &objects{Tables: []string{oid}, Columns: []string{oid + "." + k.root.Name}}, sql...)
	}
	sql := m.comments()
	for _, n := range m.nodes() {
		if !n.keep {
			sql = append(sql, fmt.Sprintf("SELECT %s.unreserve_node(%s, %d, greatest(clock_timestamp(), %s))", o.Config.Schema, literal(n.pool), n.number, cmp.Or(n.last, "NULL")))
		}
	}
	add(kindEnd, "drop schema "+o.Schema, nil, append(sql, m.dropJob(o)...)...)
	return step.list
}

// comments renders the statements that record the format of bigint columns without a default
// that shows it. sortkey audit reads the comments.
func (m *model) comments() (sql []string) {
	for _, r := range m.relations {
		for _, c := range r.columns {
			if c.key.format.sqlType == "bigint" && !(c.root && c.key.hasDefault()) {
				sql = append(sql, comment("COLUMN "+r.Name+"."+c.Quoted, strings.TrimLeft(c.Comment+"\nsortkey: "+string(c.key.Format), "\n"))...)
			}
		}
	}
	return sql
}

func (k *key) newDefault() string { return k.with(k.format.next, k.Node, "", "") }

// dependentCheck renders a query for objects that have come to depend on old columns since
// inspect.
func (m *model) dependentCheck() string {
	known := each(m.dependents, func(d dependent) string { return literal(d.Identity) })
	return query("dependent check", values{"old": m.oldColumns(), "known": strings.Join(append(known, "''"), ", ")})
}

// privilegeChecks renders queries for roles that would lose or gain privileges.
func (m *model) privilegeChecks(o Options) (sql []string) {
	if len(m.relations) > 0 {
		sql = append(sql, m.viewPrivileges(o))
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
	return query("inserters", values{"table": k.root.rel.OID, "schema": o.Config.Schema, "creates": k.format.creates})
}

// viewPrivileges renders a query for privileges that only a table has, or only its view for
// programs of the new version. The privileges on a table with row security apply to its view.
func (m *model) viewPrivileges(o Options) string {
	var pairs []string
	for _, r := range m.relations {
		if !r.RLS {
			pairs = append(pairs, "("+literal(r.Name)+"::regclass, "+literal(o.Schema+"."+r.quotedPlain())+"::regclass)")
		}
	}
	if len(pairs) == 0 {
		return "SELECT NULL::text WHERE false"
	}
	return query("view privileges", pairs)
}

// schemaCheck renders a query for objects of others in the schema of the job, such as a table
// that a program of the new version has created.
func (m *model) schemaCheck(o Options) string {
	own := append(m.jobViews(o), jobTables(o.Schema)...)
	names := each(own, func(name string) string { return literal(unquote(strings.TrimPrefix(name, o.Schema+"."))) })
	return query("schema check", values{"schema": o.Schema, "own": strings.Join(names, ", ")})
}

// replaceViews renders the statements that create the views again, on the relations that a
// search_path finds.
func (m *model) replaceViews(path []string) []string {
	sql := []string{
		"DROP VIEW " + strings.Join(reversed(each(m.views, func(v *view) string { return v.Name })), ", "),
		"SET LOCAL search_path = " + strings.Join(path, ", "),
	}
	for _, v := range m.views {
		sql = append(sql, v.create(v.Name, true)...)
		if v.Owner != m.role {
			sql = append(sql, "ALTER VIEW "+v.Name+" OWNER TO "+v.Owner)
		}
	}
	return append(sql, "SET LOCAL search_path = pg_catalog")
}

// replaceColumns renders the statements that drop the old columns of a table and give their
// names and properties to the new ones.
func (m *model) replaceColumns(r *relation) []string {
	var sequences, properties []string
	for _, c := range r.columns {
		if c.root && c.Identity == "" && len(m.sequenceUsers(c)) > 0 {
			sequences = append(sequences, c.Sequence)
		}
		if n := c.NotNullAs; n != nil {
			noInherit := ""
			if n.NoInherit {
				noInherit = " NO INHERIT"
			}
			properties = append(properties, "ADD CONSTRAINT "+n.Name+" NOT NULL "+c.Quoted+noInherit)
		} else if c.NotNull {
			properties = append(properties, "ALTER COLUMN "+c.Quoted+" SET NOT NULL")
		}
		if value := cmp.Or(c.NewDefault(), c.defaultZero()); value != "" {
			properties = append(properties, "ALTER COLUMN "+c.Quoted+" SET DEFAULT "+value)
		}
	}
	return script("replace columns", values{
		"table": r, "role": m.role, "sequences": sequences, "properties": properties, "checks": m.checksOf(r),
		"indexes":    filter(m.changed, func(x *index) bool { return x.Table == r.OID }),
		"statistics": filter(m.statistics, func(s *statistic) bool { return s.Table == r.OID && m.has(s.Table, s.Columns) }),
	})
}

func comment(object, text string) []string {
	if text == "" {
		return nil
	}
	return []string{"COMMENT ON " + object + " IS " + literal(text)}
}

// dropJob renders the statements that drop the schema of the job.
func (m *model) dropJob(o Options) (sql []string) {
	for i := range m.relations {
		sql = append(sql, "DROP FUNCTION IF EXISTS "+o.Schema+".fill_"+strconv.Itoa(i)+"()")
	}
	for _, k := range m.moved() {
		sql = append(sql, "DROP FUNCTION "+k.newKey(o.Schema)+", "+k.oldKey(o.Schema))
	}
	return append(sql, "DROP TABLE "+strings.Join(jobTables(o.Schema), ", "), "DROP SCHEMA "+o.Schema)
}

// abort renders the actions of abort, which can follow any action before contract changes
// tables. As in contract, an action locks a single table where possible. The triggers of a
// table are dropped before the columns that they need.
func (m *model) abort(o Options) []action {
	step := plan{step: StepAbort}
	add := func(kind, title string, objects *objects, sql ...string) {
		step.add(kind, title, sql...).Objects = objects
	}
	if len(m.relations) > 0 {
		add(kindCheck, "look for other objects in schema "+o.Schema, nil, m.schemaCheck(o))
		add(kindDDL, "drop the views", nil, "DROP VIEW IF EXISTS "+strings.Join(reversed(m.jobViews(o)), ", "))
	}
	for _, f := range m.changedForeignKeys() {
		r, name := m.relation(f.Table), freshConstraint(f.Name)
		add(kindDDL, "drop foreign key "+name+" of "+r.Name, nil, append(m.lockBoth(f), "ALTER TABLE "+r.Name+" DROP CONSTRAINT IF EXISTS "+name)...)
	}
	for _, group := range m.childrenFirst() {
		names := relationNames(group)
		sql := lock(allPrograms, names...)
		for _, r := range group {
			sql = append(sql, script("drop triggers", r.Name)...)
		}
		for _, r := range group {
			for _, k := range m.moved() {
				if k.root.rel == r && !k.InPlace && k.needsIndex() {
					sql = append(sql, "DROP INDEX IF EXISTS "+r.Schema+"."+ident(newName("%s_times", r.Plain)))
				}
			}
			sql = append(sql, "ALTER TABLE "+r.Name+" "+strings.Join(each(r.columns, func(c *column) string { return "DROP COLUMN IF EXISTS " + c.fresh }), ", "))
		}
		add(kindDDL, "drop the new columns of "+strings.Join(names, ", "), m.objects(group...), sql...)
	}
	var sql []string
	for _, n := range m.nodes() {
		sql = append(sql, fmt.Sprintf("SELECT %s.unreserve_node(%s, %d)", o.Config.Schema, literal(n.pool), n.number))
	}
	add(kindEnd, "drop schema "+o.Schema, nil, append(sql, m.dropJob(o)...)...)
	return step.list
}

// recompile renders statements after which sessions compile the functions again that work on
// tables. Otherwise, their variables and queries would keep the types of the old columns.
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
