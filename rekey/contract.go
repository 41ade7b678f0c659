package rekey

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

func (m *model) contract(o Options) (list []Action) {
	if len(m.relations) > 0 {
		list = append(list, Action{Step: StepContract, Kind: kindCheck, Title: "compare the keys of all rows", SQL: m.rowChecks()})
	}
	return append(list, Action{Step: StepContract, Kind: kindSwap, Title: "drop the old columns and rename the new ones", SQL: m.swap(o)})
}

// swap renders the transaction that replaces the old columns.
func (m *model) swap(o Options) []string {
	var views []string
	if len(m.relations) > 0 {
		views = m.jobViews(o)
	}
	userViews := each(m.views, func(v *view) string { return v.Name })
	sql := m.lock(append(reversed(views), reversed(userViews)...))
	add := func(format string, args ...any) { sql = append(sql, fmt.Sprintf(format, args...)) }
	if len(views) > 0 {
		add("DROP VIEW %s", strings.Join(reversed(views), ", "))
	}
	if len(userViews) > 0 {
		add("DROP VIEW %s", strings.Join(reversed(userViews), ", "))
	}
	var lists []*publication
	for _, p := range m.publications {
		if m.has(p.Table, p.Columns) {
			lists = append(lists, p)
			add("ALTER PUBLICATION %s DROP TABLE %s", p.Name, m.relation(p.Table).Name)
		}
	}
	sql = append(sql, m.dropTriggers()...)
	for _, f := range m.changedForeignKeys() {
		add("ALTER TABLE %s DROP CONSTRAINT %s", m.relation(f.Table).Name, f.Name)
	}
	for _, r := range m.relations {
		add("ALTER TABLE %s %s", r.Name, strings.Join(each(r.columns, func(c *column) string { return "DROP COLUMN " + c.Quoted }), ", "))
		var parts []string
		for _, c := range r.columns {
			add("ALTER TABLE %s RENAME COLUMN %s TO %s", r.Name, c.fresh, c.Quoted)
			if c.NotNull && m.version >= 180000 {
				parts = append(parts, "ADD CONSTRAINT "+c.NotNullAs+" NOT NULL "+c.Quoted)
			} else if c.NotNull {
				parts = append(parts, "ALTER COLUMN "+c.Quoted+" SET NOT NULL")
			}
			if c.root && c.key.hasDefault() {
				parts = append(parts, "ALTER COLUMN "+c.Quoted+" SET DEFAULT "+c.key.with(c.key.format.next, c.key.Node, "", ""))
			}
		}
		if len(parts) > 0 {
			add("ALTER TABLE %s %s", r.Name, strings.Join(parts, ", "))
		}
		for _, c := range r.columns {
			if c.NotNull {
				add("ALTER TABLE %s DROP CONSTRAINT %s", r.Name, c.notNullCheck())
			}
		}
	}
	for _, x := range m.changedIndexes() {
		m.adopt(x, add)
	}
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		add("ALTER TABLE %s RENAME CONSTRAINT %s TO %s", r.Name, freshConstraint(f.Name), f.Name)
		m.comment("CONSTRAINT "+f.Name+" ON "+r.Name, f.Comment, add)
	}
	for _, c := range m.changedChecks() {
		r := m.relation(c.Table)
		add("ALTER TABLE %s RENAME CONSTRAINT %s TO %s", r.Name, freshConstraint(c.Name), c.Name)
		m.comment("CONSTRAINT "+c.Name+" ON "+r.Name, c.Comment, add)
	}
	for _, s := range m.statistics {
		if !m.has(s.Table, s.Columns) {
			continue
		}
		add("%s", s.Definition)
		if s.Target != nil {
			add("ALTER STATISTICS %s SET STATISTICS %d", s.Name, *s.Target)
		}
		m.comment("STATISTICS "+s.Name, s.Comment, add)
		if s.Owner != m.role {
			add("ALTER STATISTICS %s OWNER TO %s", s.Name, s.Owner)
		}
	}
	for _, p := range lists {
		filter := ""
		if p.Filter != "" {
			filter = " WHERE (" + p.Filter + ")"
		}
		add("ALTER PUBLICATION %s ADD TABLE %s (%s)%s", p.Name, m.relation(p.Table).Name, strings.Join(p.Names, ", "), filter)
	}
	if len(m.views) > 0 {
		add("SET LOCAL search_path = %s", strings.Join(m.path, ", "))
		for _, v := range m.views {
			sql = append(sql, v.create(v.Name, true)...)
			if v.Owner != m.role {
				add("ALTER VIEW %s OWNER TO %s", v.Name, v.Owner)
			}
		}
		add("SET LOCAL search_path = pg_catalog")
	}
	for _, k := range m.keys {
		if len(k.columns) > 0 || !k.hasDefault() {
			continue // an InPlace key whose columns stay
		}
		if k.root.Identity != "" {
			add("ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY", k.root.rel.Name, k.root.Quoted)
		}
		add("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s", k.root.rel.Name, k.root.Quoted, k.with(k.format.next, k.Node, "", ""))
		if k.root.Identity == "" && k.root.Sequence != "" {
			add("DROP SEQUENCE %s", k.root.Sequence)
		}
	}
	for _, n := range m.nodes() {
		if !n.keep {
			add("SELECT %s.unreserve_node(%s, %d, %s)", o.Config.Schema, literal(n.pool), n.number, "greatest(clock_timestamp(), "+cmp.Or(n.last, "NULL")+")")
		}
	}
	return append(sql, m.dropJob(o)...)
}

// adopt gives a new index the name and the properties of the old one.
func (m *model) adopt(x *index, add func(format string, args ...any)) {
	r := m.relation(x.Table)
	fresh := r.Schema + "." + ident(x.fresh)
	if x.Constraint == "" {
		add("ALTER INDEX %s RENAME TO %s", fresh, x.Name)
	} else {
		kind := "UNIQUE"
		if x.Type == "p" {
			kind = "PRIMARY KEY"
		}
		if x.Deferrable {
			kind += " USING INDEX " + ident(x.fresh) + " DEFERRABLE"
			if x.Deferred {
				kind += " INITIALLY DEFERRED"
			}
		} else {
			kind += " USING INDEX " + ident(x.fresh)
		}
		add("ALTER TABLE %s ADD CONSTRAINT %s %s", r.Name, x.Constraint, kind)
		m.comment("CONSTRAINT "+x.Constraint+" ON "+r.Name, x.ConComment, add)
	}
	if x.Clustered {
		add("ALTER TABLE %s CLUSTER ON %s", r.Name, x.Name)
	}
	if x.ReplIdent && r.Identity == "i" {
		add("ALTER TABLE %s REPLICA IDENTITY USING INDEX %s", r.Name, x.Name)
	}
	m.comment("INDEX "+r.Schema+"."+x.Name, x.Comment, add)
}

func (m *model) comment(object, text string, add func(format string, args ...any)) {
	if text != "" {
		add("COMMENT ON %s IS %s", object, literal(text))
	}
}

func (m *model) dropTriggers() (sql []string) {
	for _, r := range m.relations {
		sql = append(sql, "DROP TRIGGER IF EXISTS "+insertTrigger+" ON "+r.Name, "DROP TRIGGER IF EXISTS "+updateTrigger+" ON "+r.Name)
	}
	return sql
}

func (m *model) dropJob(o Options) (sql []string) {
	for i := range m.relations {
		sql = append(sql, "DROP FUNCTION "+o.Schema+".fill_"+strconv.Itoa(i)+"()")
	}
	for _, k := range m.moved() {
		sql = append(sql, "DROP FUNCTION "+k.newKey(o.Schema)+", "+k.oldKey(o.Schema))
	}
	return append(sql, "DROP TABLE "+pendingTable(o.Schema)+", "+stateTable(o.Schema), "DROP SCHEMA "+o.Schema)
}

func (m *model) abort(o Options) Action {
	sql := m.lock(nil)
	if len(m.relations) > 0 {
		sql = append(sql, "DROP VIEW IF EXISTS "+strings.Join(reversed(m.jobViews(o)), ", "))
	}
	sql = append(sql, m.dropTriggers()...)
	for _, f := range m.changedForeignKeys() {
		r := m.relation(f.Table)
		sql = append(sql, "ALTER TABLE "+r.Name+" DROP CONSTRAINT IF EXISTS "+freshConstraint(f.Name))
	}
	for _, k := range m.moved() {
		if r := k.root.rel; !k.InPlace && k.needsIndex() {
			sql = append(sql, "DROP INDEX IF EXISTS "+r.Schema+"."+ident(newName("%s_times", r.Plain)))
		}
	}
	for _, r := range m.relations {
		sql = append(sql, "ALTER TABLE "+r.Name+" "+strings.Join(each(r.columns, func(c *column) string { return "DROP COLUMN " + c.fresh }), ", "))
	}
	for _, n := range m.nodes() {
		sql = append(sql, fmt.Sprintf("SELECT %s.unreserve_node(%s, %d)", o.Config.Schema, literal(n.pool), n.number))
	}
	return Action{Step: StepAbort, Kind: kindSwap, Title: "drop the new columns", SQL: append(sql, m.dropJob(o)...)}
}
