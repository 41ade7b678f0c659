package rekey

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// cleanup renders the actions after which there is no way back: they drop the old columns, the
// triggers, the views and the job. A table comes before the tables that it refers to, since its
// triggers need their old keys.
func (m *model) cleanup(o Options) []action {
	step := plan{step: StepCleanup}
	if len(m.relations) > 0 {
		step.add(kindCheck, newObjects, m.dependentCheck(StepCleanup), inheritance(m.relations...), m.schemaCheck(), m.viewUsers(), m.sequenceUses(), m.publicationCheck())
	} else if len(m.stayed()) > 0 {
		step.add(kindCheck, newObjects, m.sequenceUses())
	}
	m.dropForeignKeys(&step)
	for _, group := range m.childrenFirst() {
		sql := lock(allPrograms, relationNames(group)...)
		for _, r := range group {
			sql = append(sql, m.dropOld(r)...)
		}
		a := step.add(kindDDL, "drop the old columns of "+strings.Join(relationNames(group), ", "), sql...)
		a.Objects, a.Check = m.objects(group...), inheritance(group...)
	}
	if len(m.relations) > 0 {
		for _, v := range reversed(m.jobViews()) {
			step.add(kindDDL, "drop view "+v, "DROP VIEW IF EXISTS "+v)
		}
	}
	sql := m.comments()
	for _, k := range m.stayed() {
		switch {
		case k.root.Identity != "":
			sql = append(sql, "DROP SEQUENCE IF EXISTS "+k.identityName())
		case k.root.Sequence != "" && len(m.sequenceUsers(k.root)) == 0:
			// It stays if it doesn't belong to the column any more.
			sql = append(sql, "DO "+body("BEGIN IF pg_get_serial_sequence("+literal(k.root.rel.Name)+", "+literal(k.root.Name)+") = "+literal(k.root.Sequence)+" THEN DROP SEQUENCE "+k.root.Sequence+"; END IF; END"))
		}
	}
	for _, n := range m.nodes() {
		if !n.keep {
			sql = append(sql, fmt.Sprintf("SELECT %s.unreserve_node(%s, %d, greatest(clock_timestamp(), %s))", o.Config.Schema, literal(n.pool), n.number, cmp.Or(n.last, "NULL")))
		}
	}
	step.add(kindEnd, "drop schema "+Schema, append(sql, m.dropJob()...)...)
	return step.list
}

// dropForeignKeys adds the actions that drop the foreign keys with names of rekey's: on the new columns
// before contract, and on the old ones afterwards.
func (m *model) dropForeignKeys(step *plan) {
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		step.add(kindDDL, "drop foreign key "+f.Fresh()+" of "+r.Name, append(m.lockBoth(f), "ALTER TABLE "+r.Name+" DROP CONSTRAINT IF EXISTS "+f.Fresh())...)
	}
}

// dropOld renders the statements that drop the old columns of a table.
func (m *model) dropOld(r *relation) []string {
	var sequences []string
	for _, c := range r.columns {
		if c.root && c.Identity == "" && len(m.sequenceUsers(c)) > 0 {
			sequences = append(sequences, c.Sequence)
		}
	}
	return script("drop old columns", values{"table": r, "sequences": sequences,
		"checks": m.checksOf(r), "indexes": filter(m.changed, func(x *index) bool { return x.Table == r.OID })})
}

// viewUsers renders a query for views of others that read the views of the job.
func (m *model) viewUsers() string {
	return query("view users", values{"views": sqlNames(m.jobViews())})
}

// sequenceUses renders a query for other defaults that use the sequences of the old keys.
func (m *model) sequenceUses() string {
	var names, owners []string
	for _, k := range m.keys {
		if k.root.Sequence == "" || len(m.sequenceUsers(k.root)) > 0 {
			continue
		}
		owner := k.root.Quoted
		if len(k.columns) > 0 {
			owner = k.root.fresh
		}
		names, owners = append(names, k.root.Sequence), append(owners, k.root.rel.Name+":"+unquote(owner))
	}
	return query("sequence uses", values{"sequences": sqlNames(names), "owners": sqlNames(owners)})
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

// dropJob renders the statements that drop the schema of the job.
func (m *model) dropJob() (sql []string) {
	for i := range m.relations {
		sql = append(sql, "DROP FUNCTION IF EXISTS "+Schema+".fill_"+strconv.Itoa(i)+"()")
	}
	for _, k := range m.moved() {
		sql = append(sql, "DROP FUNCTION IF EXISTS "+strings.Join([]string{k.newKey(), k.oldKey(), k.newOf(), k.oldOf()}, ", "))
	}
	return append(sql, "DROP TABLE IF EXISTS "+strings.Join(jobTables(), ", "), "DROP SCHEMA "+Schema)
}

// abort renders the actions of abort, which can follow any action before contract changes
// tables, and undo. An action locks a single table where possible. The triggers of a
// table are dropped before the columns that they need.
func (m *model) abort(o Options) []action {
	step := plan{step: StepAbort}
	if len(m.relations) > 0 {
		step.add(kindCheck, "look for other objects in schema "+Schema, m.schemaCheck(), m.viewUsers())
		step.add(kindDDL, "drop the views", "DROP VIEW IF EXISTS "+strings.Join(reversed(m.jobViews()), ", "))
	}
	m.dropForeignKeys(&step)
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
		step.add(kindDDL, "drop the new columns of "+strings.Join(names, ", "), sql...).Objects = m.objects(group...)
	}
	var sql []string
	for _, n := range m.nodes() {
		sql = append(sql, fmt.Sprintf("SELECT %s.unreserve_node(%s, %d)", o.Config.Schema, literal(n.pool), n.number))
	}
	step.add(kindEnd, "drop schema "+Schema, append(sql, m.dropJob()...)...)
	return step.list
}
