package rekey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The kinds of an Action.
const (
	kindDDL      = "ddl"      // a transaction
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

// actions renders the actions of all steps.
func (m *model) actions(o Options) []action {
	return slices.Concat(m.expand(o), m.backfill(o), m.validate(o), m.contract(o), m.abort(o))
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
			add(node{pool: k.format.pool, number: k.Node, note: "default of " + table + "." + k.root.Quoted, keep: k.hasDefault()})
		}
		if !k.InPlace {
			add(node{pool: k.format.pool, number: k.BackfillNode, note: "existing rows of " + table,
				last: "(SELECT " + k.format.time + "(" + k.root.Quoted + ") FROM " + table + " ORDER BY " + k.root.Quoted + " DESC LIMIT 1)"})
		}
	}
	return list
}

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
	schema := o.Schema
	var sql []string
	for _, n := range m.nodes() {
		sql = append(sql, fmt.Sprintf("SELECT %s.reserve_node(%s, %d, %s)", o.Config.Schema, literal(n.pool), n.number, literal(n.note)))
	}
	sql = append(sql, createTables(schema)...)
	for _, k := range m.moved() {
		sql = append(sql, k.translators(schema)...)
	}
	sql = append(sql, protect(schema))
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
			sql = append(sql, m.triggerSQL(r, slices.Index(m.relations, r), schema)...)
		}
		sql = append(sql, protect(schema))
		add("add triggers to "+strings.Join(relationNames(group), ", "), sql...)
	}
	return step.list
}

func (m *model) backfill(o Options) []action {
	step := plan{step: StepBackfill}
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
		step.add(kindBackfill, "fill keys of "+r.Name, m.fillKeys(k, done, o.Schema), k.left()).Fill = estimate
		if temporary {
			step.add(kindDDL, "drop index "+ident(index), append(lock(allPrograms, r.Name), "DROP INDEX IF EXISTS "+r.Schema+"."+ident(index))...)
		}
		done = append(done, k)
	}
	for _, r := range m.relations {
		if fillSQL, left := m.fillReferences(r, o.Schema); fillSQL != "" {
			step.add(kindBackfill, "fill references of "+r.Name, fillSQL, left).Fill = &fill{Table: r.Name, Rows: int64(r.Rows), Pages: true}
		}
	}
	return step.list
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

func (m *model) validate(o Options) []action {
	step := plan{step: StepValidate}
	add := step.add
	if len(m.relations) == 0 {
		return nil
	}
	for _, x := range m.changed {
		r := m.relation(x.Table)
		add(kindIndex, "create index "+ident(x.fresh), x.create(r)).Index = r.Schema + "." + ident(x.fresh)
		if x.Checked() != "" && x.Type == "u" {
			// A repeated step finds the constraint.
			add(kindDDL, "add constraint "+ident(x.fresh)+" to "+r.Name, append(lock(allPrograms, r.Name),
				"DO "+body("BEGIN IF NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = "+literal(r.Schema+"."+ident(x.fresh))+"::regclass) THEN ALTER TABLE "+r.Name+
					" ADD CONSTRAINT "+ident(x.fresh)+" UNIQUE USING INDEX "+ident(x.fresh)+x.Checked()+"; END IF; END"))...)
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
			add(kindDDL, "add check constraints to "+r.Name, append(lock(allPrograms, r.Name), "ALTER TABLE "+r.Name+" "+strings.Join(parts, ", "))...)
		}
	}
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		name := freshConstraint(f.Name)
		add(kindDDL, "add foreign key "+name+" to "+r.Name, append(m.lockBoth(f), "ALTER TABLE "+r.Name+" "+constraint(r, name, f.create(m), f.Valid))...)
	}
	step.list = append(step.list, validations.list...)
	for _, r := range m.relations {
		add(kindDDL, "analyze "+r.Name, stopVacuum(r.Name), "ANALYZE "+r.Name+" ("+strings.Join(each(r.columns, func(c *column) string { return c.fresh }), ", ")+")")
	}
	add(kindCheck, compareKeys, m.rowChecks(o)...)
	add(kindDDL, "create views for programs of the new version", m.createViews(o)...)
	add(kindCheck, "check the views", m.viewCheck(o), m.viewPrivileges(o))
	return step.list
}

// rowChecks renders queries whose rows are findings.
func (m *model) rowChecks(o Options) (list []string) {
	for _, r := range m.relations {
		for _, c := range r.columns {
			root := c.key.root
			where, join := "", ""
			if c.root {
				where = "t." + c.fresh + " IS NULL"
			} else {
				expected := ""
				if c.plain() {
					join = " LEFT JOIN ONLY " + root.rel.Name + " p ON " + c.equals(c.key, "p", "t")
					expected = "p." + root.fresh
					if m.loose(c) {
						join += " LEFT JOIN " + pendingTable(o.Schema) + " d ON " + c.pair(c.key, "d", "t")
						expected = "coalesce(" + expected + ", d.new_key::" + c.key.format.sqlType + ")"
					}
				} else {
					expected = m.lookup(c, "t", o.Schema)
				}
				where = query("differs", values{"old": c.Quoted, "new": c.fresh, "expected": expected})
			}
			list = append(list, fmt.Sprintf("SELECT count(*) || %s FROM ONLY %s t%s WHERE %s HAVING count(*) > 0",
				literal(" rows of "+r.Name+" have no "+c.fresh+" that equals "+c.Quoted), r.Name, join, where))
		}
	}
	return list
}

// jobViews returns the names of the views for programs of the new version, each after the
// views that it reads.
func (m *model) jobViews(o Options) []string {
	list := each(m.relations, func(r *relation) string { return o.Schema + "." + r.quotedPlain() })
	return append(list, each(m.views, func(v *view) string { return o.Schema + "." + v.Plain })...)
}

func reversed(list []string) []string {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func (m *model) createViews(o Options) []string {
	sql := []string{"DROP VIEW IF EXISTS " + strings.Join(reversed(m.jobViews(o)), ", "), "GRANT USAGE ON SCHEMA " + o.Schema + " TO PUBLIC"}
	for _, r := range m.relations {
		name := o.Schema + "." + r.quotedPlain()
		sql = append(sql, script("table view", values{"table": r, "name": name, "revoke": revokeAll(name, false), "grants": viewGrants(r.Grants), "schema": o.Schema, "owner": r.Owner, "role": m.role})...)
	}
	if len(m.views) == 0 {
		return sql
	}
	sql = append(sql, "SET LOCAL search_path = "+o.Schema+", "+strings.Join(m.path, ", "))
	for _, v := range m.views {
		sql = append(sql, v.create(o.Schema+"."+v.Plain, false)...)
		sql = append(sql, script("give", values{"name": o.Schema + "." + v.Plain, "schema": o.Schema, "owner": v.Owner, "role": m.role})...)
	}
	return append(sql, "SET LOCAL search_path = pg_catalog")
}

// viewGrants returns the privileges on a table that its view can have.
func viewGrants(list []grant) []grant {
	return slices.DeleteFunc(slices.Clone(list), func(g grant) bool {
		return !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE"}, g.Privilege)
	})
}

// oldColumns renders a list of texts for the old columns, each a table's OID and a number.
func (m *model) oldColumns() string {
	var list []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			list = append(list, literal(strconv.FormatInt(r.OID, 10)+":"+strconv.Itoa(c.Num)))
		}
	}
	return strings.Join(list, ", ")
}

// viewCheck renders a query for views that still read old columns.
func (m *model) viewCheck(o Options) string {
	return query("view check", values{"schema": o.Schema, "old": m.oldColumns(), "views": oids(m.views, func(v *view) int64 { return v.OID })})
}

// protect renders a statement that revokes the privileges on a job's schema, tables and
// functions that other roles have by ALTER DEFAULT PRIVILEGES: the tables have the plan, and
// the functions the rights of their owner.
func protect(schema string) string {
	return "DO " + body(query("protect", schema))
}
