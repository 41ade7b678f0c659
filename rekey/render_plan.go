package rekey

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of an Action.
const (
	kindDDL      = "ddl"      // a transaction
	kindSwap     = "swap"     // a transaction that exchanges the names of columns
	kindEnd      = "end"      // a transaction that drops the state
	kindIndex    = "index"    // CREATE INDEX CONCURRENTLY
	kindBackfill = "backfill" // batches
	kindCheck    = "check"    // queries whose rows are findings
	kindTrial    = "trial"    // a transaction that rolls back
)

// An action is an Action as rekey_state stores it.
type action struct {
	Action
	Fill *fill `json:"fill,omitempty"`
	// Objects are tables and views whose properties the action must keep.
	Objects *objects `json:"objects,omitempty"`
	// Check is a query whose rows are findings after the statements, in their transaction.
	Check string `json:"check,omitempty"`
	// Swap is, for a trial, the number of the swap of contract that it tries.
	Swap int `json:"swap,omitempty"`
}

// public returns the exported part of actions.
func public(list []action) []Action {
	actions := make([]Action, len(list))
	for i, a := range list {
		actions[i] = a.Action
	}
	return actions
}

func ofStep(actions []action, step Step) []action {
	return slices.DeleteFunc(slices.Clone(actions), func(a action) bool { return a.Step != step })
}

// A plan collects the actions of a step.
type plan struct {
	step Step
	list []action
}

// add adds an action, and returns it.
func (s *plan) add(kind, title string, sql ...string) *action {
	s.list = append(s.list, action{Action: Action{Step: s.step, Kind: kind, Title: title, SQL: sql}})
	return &s.list[len(s.list)-1]
}

// compareKeys is the title of the check of the rows.
const compareKeys = "compare the keys of all rows"

// newObjects is the title of the check of the catalog.
const newObjects = "look for new objects on the columns"

// actions renders the actions of all steps.
func (m *model) actions(o Options) []action {
	groups := m.groups()
	return slices.Concat(m.expand(o), m.backfill(), m.validate(groups), m.contract(groups, o), m.cleanup(o), m.undo(groups), m.abort(o))
}

func each[T any](list []T, f func(T) string) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = f(v)
	}
	return texts
}

// node is a node number with its purpose.
type node struct {
	pool   string
	number int
	note   string
	keep   bool   // after contract
	last   string // SQL for the time of the largest ID after contract
}

// nodes returns the node numbers to reserve.
func (m *model) nodes() (list []node) {
	add := func(n node) {
		if i := slices.IndexFunc(list, func(o node) bool { return o.pool == n.pool && o.number == n.number }); i >= 0 {
			list[i].keep = list[i].keep || n.keep
			return
		}
		list = append(list, n)
	}
	for _, k := range m.keys {
		if k.format.pool == "" {
			continue
		}
		table := k.root.rel.Name
		if !k.nodeReserved {
			add(node{pool: k.format.pool, number: k.Node, note: k.purpose(), keep: k.hasDefault()})
		}
		if !k.InPlace {
			add(node{pool: k.format.pool, number: k.BackfillNode, note: "existing rows of " + table,
				last: "(SELECT " + k.format.time + "(" + k.root.Quoted + ") FROM " + table + " ORDER BY " + k.root.Quoted + " DESC LIMIT 1)"})
		}
	}
	return list
}

// purpose describes the reservation of Node.
func (k *key) purpose() string { return "default of " + k.root.rel.Name + "." + k.root.Quoted }

func (k *key) hasDefault() bool { return k.root.Default != "" || k.root.Identity != "" }

// moved returns the keys that get new columns.
func (m *model) moved() (list []*key) {
	for _, k := range m.keys {
		if len(k.columns) > 0 {
			list = append(list, k)
		}
	}
	return list
}

// stopVacuum renders a statement that ends an autovacuum of tables, and keeps others away
// until the transaction ends. An autovacuum ends only for a session that waits for longer
// than deadlock_timeout, so it would outlast the attempts to get a stronger lock. No
// program that reads or writes rows waits for this lock.
func stopVacuum(tables ...string) string {
	return "LOCK TABLE " + strings.Join(tables, ", ") + weakLock
}

const weakLock = " IN SHARE UPDATE EXCLUSIVE MODE"

// The modes for which programs wait.
const (
	allPrograms = "ACCESS EXCLUSIVE"
	writers     = "SHARE ROW EXCLUSIVE"
)

// lock renders the statements that lock tables in a mode for which programs wait, and that is
// the strongest one that the transaction needs: a program that has read a table, and waits to
// write to it, would make a wait for a stronger lock a deadlock. Most transactions lock a
// single table, because a program that has used one table and waits for another one would
// keep a transaction from ever getting both.
func lock(mode string, tables ...string) []string {
	tables = slices.Compact(tables)
	return []string{stopVacuum(tables...), "LOCK TABLE " + strings.Join(tables, ", ") + " IN " + mode + " MODE"}
}

// lockBoth renders the statements that lock the tables of a foreign key. Most programs use
// the table that it refers to first.
func (m *model) lockBoth(f *foreignKey) []string {
	return lock(allPrograms, m.relation(f.To).Name, m.relation(f.Table).Name)
}

// childrenFirst returns the tables so that each comes before the tables that it refers to.
// Tables that refer to each other in a circle are in one group.
func (m *model) childrenFirst() (groups [][]*relation) {
	refersTo := func(from, to *relation) bool {
		return slices.ContainsFunc(from.columns, func(c *column) bool {
			return slices.ContainsFunc(m.keys, func(k *key) bool { return k.root.rel == to && c.refersTo(k) })
		})
	}
	reaches := map[[2]*relation]bool{}
	for _, a := range m.relations {
		for _, b := range m.relations {
			reaches[[2]*relation{a, b}] = refersTo(a, b)
		}
	}
	for _, via := range m.relations {
		for _, a := range m.relations {
			for _, b := range m.relations {
				if reaches[[2]*relation{a, via}] && reaches[[2]*relation{via, b}] {
					reaches[[2]*relation{a, b}] = true
				}
			}
		}
	}
	rest := slices.Clone(m.relations)
	for len(rest) > 0 {
		first := slices.IndexFunc(rest, func(r *relation) bool {
			return !slices.ContainsFunc(rest, func(o *relation) bool {
				return o != r && reaches[[2]*relation{o, r}] && !reaches[[2]*relation{r, o}]
			})
		})
		r := rest[first]
		inGroup := func(o *relation) bool {
			return o == r || reaches[[2]*relation{o, r}] && reaches[[2]*relation{r, o}]
		}
		var group []*relation
		for _, o := range rest {
			if inGroup(o) {
				group = append(group, o)
			}
		}
		groups = append(groups, group)
		rest = slices.DeleteFunc(rest, inGroup)
	}
	return groups
}

func relationNames(list []*relation) []string {
	return each(list, func(r *relation) string { return r.Name })
}

// expand renders the actions of expand. Rows that programs insert before all triggers exist
// have no new key, like existing rows.
func (m *model) expand(o Options) []action {
	step := plan{step: StepExpand}
	add := func(title string, sql ...string) { step.add(kindDDL, title, sql...) }
	var sql []string
	for _, n := range m.nodes() {
		sql = append(sql, fmt.Sprintf("SELECT %s.reserve_node(%s, %d, %s)", o.Config.Schema, literal(n.pool), n.number, literal(n.note)))
	}
	sql = append(sql, createTables()...)
	sql = append(sql, protect())
	add("reserve node numbers", sql...)
	for _, r := range m.relations {
		sql := append(lock(allPrograms, r.Name), script("add columns", r)...)
		add("add columns to "+r.Name, sql...)
	}
	// If a row came before the row that it refers to, their triggers would agree on a new key.
	// So a table that others refer to needs its triggers first.
	for _, group := range slices.Backward(m.childrenFirst()) {
		var sql []string
		for _, r := range group {
			for _, k := range m.moved() {
				if k.root.rel == r {
					sql = append(sql, k.translators()...)
				}
			}
			sql = append(sql, m.functionSQL(r)...)
		}
		sql = append(sql, protect())
		for _, r := range group {
			sql = append(sql, m.triggerSQL(r)...)
		}
		add("add triggers to "+strings.Join(relationNames(group), ", "), sql...)
	}
	return step.list
}

func (m *model) backfill() []action {
	step := plan{step: StepBackfill}
	if len(m.relations) > 0 {
		step.add(kindCheck, newObjects, inheritance(m.relations...))
	}
	var done []*key
	for _, k := range m.parentsFirst() {
		r := k.root.rel
		estimate := &fill{Table: r.Name, Rows: int64(r.Rows), Pages: k.InPlace, Moment: k.momentType() != ""}
		if k.InPlace {
			step.add(kindBackfill, "fill keys of "+r.Name, k.fillInPlace(), k.left()).Fill = estimate
			done = append(done, k)
			continue
		}
		index := newName("%s_times", r.Plain)
		temporary := k.needsIndex()
		if temporary {
			step.add(kindIndex, "create index "+ident(index), "CREATE INDEX CONCURRENTLY "+ident(index)+" ON "+r.Name+" ("+strings.Join(k.order(""), ", ")+")").Index = r.Schema + "." + ident(index)
		}
		step.add(kindBackfill, "fill keys of "+r.Name, m.fillKeys(k, done), k.left()).Fill = estimate
		if temporary {
			step.add(kindDDL, "drop index "+ident(index), append(lock(allPrograms, r.Name), "DROP INDEX IF EXISTS "+r.Schema+"."+ident(index))...)
		}
		done = append(done, k)
	}
	m.addReferences(&step)
	return step.list
}

// addReferences adds the backfills of the tables that refer to others.
func (m *model) addReferences(step *plan) {
	for _, r := range m.relations {
		if sql := m.fillReferences(r); sql != nil {
			step.add(kindBackfill, "fill references of "+r.Name, sql...).Fill = &fill{Table: r.Name, Rows: int64(r.Rows), Pages: true}
		}
	}
}

// parentsFirst returns the keys so that a table comes after the tables that it refers to,
// if there is no circle.
func (m *model) parentsFirst() (list []*key) {
	rest := m.moved()
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(k *key) bool {
			return !slices.ContainsFunc(k.root.rel.columns, func(c *column) bool {
				return slices.ContainsFunc(rest, func(o *key) bool { return o != k && c.refersTo(o) })
			})
		})
		next = max(next, 0)
		list = append(list, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return list
}

// fresh returns the new names of a table's columns by old name, both quoted.
func (r *relation) fresh() map[string]string {
	names := map[string]string{}
	for _, c := range r.columns {
		names[c.Quoted] = c.fresh
	}
	return names
}

// create renders the index on the new columns.
func (x *index) create(r *relation) string {
	rest := after(x.Definition, "USING", " ")
	sql := "CREATE INDEX CONCURRENTLY "
	if x.Unique {
		sql = "CREATE UNIQUE INDEX CONCURRENTLY "
	}
	sql += ident(x.fresh) + " ON " + r.Name + " USING "
	rest = rename(rest, r.fresh())
	if x.Tablespace == "" {
		return sql + rest
	}
	list := tokens(rest)
	depth, where := 0, len(list)
	for i, t := range list {
		switch t {
		case "(":
			depth++
		case ")":
			depth--
		case "WHERE":
			if depth == 0 {
				where = i
			}
		}
	}
	return sql + strings.TrimSpace(strings.Join(list[:where], "")) + " TABLESPACE " + x.Tablespace + " " + strings.Join(list[where:], "")
}

// changedForeignKeys returns the foreign keys to add on the new columns.
func (m *model) changedForeignKeys() (list []*foreignKey) {
	for _, f := range m.foreignKeys {
		if m.has(f.Table, f.Columns) {
			list = append(list, f)
		}
	}
	return list
}

// freshConstraint returns the quoted name of a constraint on the new columns.
func freshConstraint(quoted string) string {
	return ident(newName("%s", unquote(quoted)))
}

const deferred = " INITIALLY DEFERRED"

// create renders the definition of a foreign key on the new columns, without NOT VALID.
func (f *foreignKey) create(m *model) string {
	from, to := m.column(f.Table, f.Columns[0]), m.column(f.To, f.ToColumns[0])
	rest := after(f.Definition, "REFERENCES", ")")
	sql := "FOREIGN KEY (" + from.fresh + ") REFERENCES " + to.rel.Name + "(" + to.fresh + ")" + strings.TrimSuffix(rename(rest, from.rel.fresh()), " NOT VALID")
	if f.Deferrable && !strings.HasSuffix(sql, deferred) {
		sql += deferred // SET CONSTRAINTS knows only the old name, and the old constraint is checked
	}
	return sql
}

func filter[T any](list []T, f func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !f(v) })
}

// checksOf returns the checks to add on the new columns of a table.
func (m *model) checksOf(r *relation) []*check {
	return filter(m.checks, func(c *check) bool { return c.Table == r.OID && m.has(c.Table, c.Columns) })
}

func (m *model) validate(groups []group) []action {
	step := plan{step: StepValidate}
	add := step.add
	if len(m.relations) == 0 {
		return nil
	}
	add(kindCheck, newObjects, inheritance(m.relations...))
	for _, x := range m.changed {
		r := m.relation(x.Table)
		add(kindIndex, "create index "+ident(x.fresh), x.create(r)).Index = r.Schema + "." + ident(x.fresh)
		sql := comment("INDEX "+r.Schema+"."+ident(x.fresh), x.Comment)
		if x.Type == "u" { // A repeated step finds the constraint.
			sql = append(sql, lock(allPrograms, r.Name)...)
			sql = append(sql, "DO "+body("BEGIN IF NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = "+literal(r.Schema+"."+ident(x.fresh))+"::regclass) THEN ALTER TABLE "+r.Name+
				" ADD CONSTRAINT "+ident(x.fresh)+" UNIQUE USING INDEX "+ident(x.fresh)+"; END IF; END"))
			sql = append(sql, comment("CONSTRAINT "+ident(x.fresh)+" ON "+r.Name, x.ConComment)...)
		}
		if len(sql) > 0 {
			add(kindDDL, "complete index "+ident(x.fresh), sql...)
		}
	}
	// A repeated step replaces the constraints.
	validations := plan{step: StepValidate}
	constraint := func(r *relation, name, definition string, valid bool) string {
		if valid {
			validations.add(kindDDL, "validate constraint "+name+" of "+r.Name, stopVacuum(r.Name), "ALTER TABLE "+r.Name+" VALIDATE CONSTRAINT "+name)
		}
		return "DROP CONSTRAINT IF EXISTS " + name + ", ADD CONSTRAINT " + name + " " + definition + " NOT VALID"
	}
	for _, r := range m.relations {
		var parts []string
		for _, c := range r.columns {
			if c.NotNull {
				parts = append(parts, constraint(r, c.NotNullCheck(), "CHECK ("+c.fresh+" IS NOT NULL)", true))
			}
		}
		for _, c := range m.checksOf(r) {
			parts = append(parts, constraint(r, c.Fresh(), strings.TrimSuffix(rename(c.Definition, r.fresh()), " NOT VALID"), c.Valid))
		}
		if len(parts) > 0 {
			sql := append(lock(allPrograms, r.Name), "ALTER TABLE "+r.Name+" "+strings.Join(parts, ", "))
			for _, c := range m.checksOf(r) {
				sql = append(sql, comment("CONSTRAINT "+c.Fresh()+" ON "+r.Name, c.Comment)...)
			}
			add(kindDDL, "add check constraints to "+r.Name, sql...)
		}
	}
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		name := freshConstraint(f.Name)
		add(kindDDL, "add foreign key "+name+" to "+r.Name, append(m.lockBoth(f), append([]string{"ALTER TABLE " + r.Name + " " + constraint(r, name, f.create(m), f.Valid)}, comment("CONSTRAINT "+name+" ON "+r.Name, f.Comment)...)...)...)
	}
	// A transaction can have looked for a key before it was filled, so its rows have old keys alone, or
	// other new keys. It has ended here: an index waits for old snapshots, and the constraint on a key for
	// transactions that have read the table.
	for _, k := range m.moved() {
		if sql := m.settle(k); sql != nil {
			add(kindDDL, "correct references to "+k.root.rel.Name, sql...)
		}
	}
	m.addReferences(&step)
	step.list = append(step.list, validations.list...)
	for _, r := range m.relations {
		if sql := r.requireNew(); sql != nil {
			add(kindDDL, "set NOT NULL on the new columns of "+r.Name, append(lock(allPrograms, r.Name), sql...)...)
		}
	}
	for _, r := range m.relations {
		add(kindDDL, "analyze "+r.Name, stopVacuum(r.Name), "ANALYZE "+r.Name+" ("+strings.Join(each(r.columns, func(c *column) string { return c.fresh }), ", ")+")")
	}
	add(kindCheck, compareKeys, m.rowChecks()...)
	add(kindDDL, "create views for programs of the new version", m.createViews()...)
	add(kindCheck, "check the views", m.viewCheck(), m.viewPrivileges())
	for i, g := range groups {
		add(kindTrial, "try the new columns of "+strings.Join(relationNames(g.tables), ", ")+" before contract", m.trial(g)...).Swap = i
	}
	return step.list
}

// requireNew renders the statements that give the new columns the NOT NULL constraints of the old
// ones. The check spares them reading the table. They can be repeated.
func (r *relation) requireNew() (sql []string) {
	for _, c := range r.columns {
		if !c.NotNull {
			continue
		}
		set := "ALTER COLUMN " + c.fresh + " SET NOT NULL"
		if n := c.NotNullAs; n != nil {
			set = "ADD CONSTRAINT " + freshConstraint(n.Name) + " NOT NULL " + c.fresh
			if n.NoInherit {
				set += " NO INHERIT"
			}
		}
		sql = append(sql, "DO "+body("BEGIN IF NOT (SELECT attnotnull FROM pg_attribute WHERE attrelid = "+literal(r.Name)+"::regclass AND attname = "+literal(unquote(c.fresh))+") THEN ALTER TABLE "+r.Name+" "+set+"; END IF; END"))
		if n := c.NotNullAs; n != nil {
			sql = append(sql, comment("CONSTRAINT "+freshConstraint(n.Name)+" ON "+r.Name, n.Comment)...)
		}
		sql = append(sql, "ALTER TABLE "+r.Name+" DROP CONSTRAINT IF EXISTS "+c.NotNullCheck())
	}
	return sql
}

// rowChecks renders queries whose rows are findings: about rows without a new key, and about rows whose
// keys mean different rows.
func (m *model) rowChecks() (list []string) {
	for _, r := range m.relations {
		for _, c := range r.columns {
			root := c.key.root
			missing := query("rows", values{"table": r.Name, "join": "", "where": "t." + c.new() + " IS NULL AND t." + c.old() + " IS NOT NULL",
				"reason": " rows of " + r.Name + " have no " + c.new() + ", such as the one with " + c.old() + " ", "sample": "min(t." + c.old() + "::text)",
				"remedy": "; run backfill, and repeat the step"})
			list = append(list, missing)
			if c.root {
				continue
			}
			join, expected, noRow := "", "", ""
			if c.plain() {
				join = " LEFT JOIN ONLY " + root.rel.Name + " p ON " + c.equals(c.key, "p", "t")
				expected = "p." + root.new()
				noRow = expected + " IS NULL AND "
				if m.loose(c) {
					join += " LEFT JOIN " + pendingTable() + " d ON " + c.pair(c.key, "d", "t")
					expected = "coalesce(" + expected + ", d.new_key::" + c.key.format.sqlType + ")"
				}
			} else {
				expected = m.lookup(c, "t")
			}
			differs := expected + " <> t." + c.new()
			if m.loose(c) { // the old key can be that of no row, and the new key that of one
				differs += " OR " + noRow + c.choose("t", "false", func(t target) string {
					other := t.key.root
					return "EXISTS (SELECT FROM ONLY " + other.rel.Name + " o WHERE o." + other.new() + " = t." + c.new() + " AND o." + other.old() + " <> " + c.value(t.key, "t") + other.collate() + ")"
				})
			}
			remedy := "; correct one of them"
			if c.plain() {
				update := "UPDATE ONLY " + r.Name + " SET %s = %s(%s) WHERE " + c.old() + " IS NOT DISTINCT FROM … AND " + c.new() + " = …"
				remedy = "; if " + c.old() + " is right, run " + fmt.Sprintf(update, c.new(), c.key.newKey(), c.old()) + ", and if " + c.new() + " is right, " + fmt.Sprintf(update, c.old(), c.key.oldKey(), c.new())
			}
			list = append(list, query("rows", values{"table": r.Name, "join": join, "where": "t." + c.new() + " IS NOT NULL AND (t." + c.old() + " IS NULL OR " + differs + ")",
				"reason": " rows of " + r.Name + " have " + c.old() + " and " + c.new() + " of different rows, as ",
				"sample": "(array_agg(coalesce(t." + c.old() + "::text, 'NULL') || ' and ' || t." + c.new() + "))[1:5]::text", "remedy": remedy}))
		}
	}
	return list
}

// jobViews returns the names of the views for programs of the new version, each after the
// views that it reads.
func (m *model) jobViews() []string {
	list := each(m.relations, func(r *relation) string { return Schema + "." + r.quotedPlain() })
	return append(list, each(m.views, func(v *view) string { return Schema + "." + v.Plain })...)
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func (m *model) createViews() []string {
	sql := []string{"DROP VIEW IF EXISTS " + strings.Join(reversed(m.jobViews()), ", "), "GRANT USAGE ON SCHEMA " + Schema + " TO PUBLIC"}
	for _, r := range m.relations {
		name := Schema + "." + r.quotedPlain()
		sql = append(sql, script("table view", values{"table": r, "name": name, "revoke": revokeAll(name, false), "grants": viewGrants(r.Grants), "schema": Schema, "owner": r.Owner, "role": m.role})...)
	}
	if len(m.views) == 0 {
		return sql
	}
	sql = append(sql, "SET LOCAL search_path = "+Schema+", "+strings.Join(m.path, ", "))
	for _, v := range m.views {
		sql = append(sql, m.createView(v, Schema, false)...)
	}
	return append(sql, "SET LOCAL search_path = pg_catalog")
}

// viewGrants returns the privileges on a table that its view can have.
func viewGrants(list []grant) []grant {
	return slices.DeleteFunc(slices.Clone(list), func(g grant) bool {
		return !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, g.Privilege)
	})
}

// columnNames renders a list of texts for columns, each a table and a name.
func (m *model) columnNames(name func(c *column) string) string {
	var list []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			list = append(list, r.Name+":"+unquote(name(c)))
		}
	}
	return sqlNames(list)
}

// sqlNames renders a list of texts.
func sqlNames(list []string) string {
	return strings.Join(append(each(list, literal), "''"), ", ")
}

// viewCheck renders a query for views that still read old columns.
func (m *model) viewCheck() string {
	return query("view check", values{"schema": Schema, "old": m.columnNames(func(c *column) string { return c.Quoted }), "views": sqlNames(each(m.views, func(v *view) string { return v.Name }))})
}

// protect renders a statement that revokes the privileges on a job's schema, tables and
// functions that other roles have by ALTER DEFAULT PRIVILEGES: the tables have the plan, and
// the functions the rights of their owner.
func protect() string {
	return "DO " + body(query("protect", Schema))
}

// schema returns the quoted name of the view's schema.
func (v *view) schema() string { return strings.TrimSuffix(v.Name, "."+v.Plain) }

// createView renders the statements that create a view in a schema. The role gives it to its owner
// first, so that the owner grants the privileges.
func (m *model) createView(v *view, schema string, comments bool) []string {
	name := schema + "." + v.Plain
	sql := script("create view", values{"view": v, "name": name, "comments": comments})
	if schema == Schema {
		sql = append(sql, script("give", values{"name": name, "schema": Schema, "owner": v.Owner, "role": m.role})...)
	} else if v.Owner != m.role {
		sql = append(sql, "ALTER VIEW "+name+" OWNER TO "+v.Owner)
	}
	return append(sql, script("grant on a view", values{"view": v, "name": name, "revoke": revokeAll(name, len(v.Grants) > 0)})...)
}

// revokeAll renders a statement that revokes the privileges that a new view has by ALTER
// DEFAULT PRIVILEGES and, if owner is set, the privileges of its owner.
func revokeAll(name string, owner bool) string {
	return "DO " + body(query("revoke all", values{"name": name, "owner": owner}))
}
