package rekey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// check adds the problems and the notes.
func (m *model) check(ctx context.Context, db querier, o Options) error {
	for _, r := range m.relations {
		m.checkTable(r)
	}
	m.checkPartitions()
	if err := m.checkDomains(ctx, db); err != nil {
		return err
	}
	for _, k := range m.keys {
		m.checkKey(k)
	}
	m.checkForeignKeys()
	m.checkIndexes()
	for _, c := range m.checks {
		if strings.Contains(c.Expression, ".*") {
			m.problem("constraint "+c.Name+" of "+m.relation(c.Table).Name, "depends on the whole row, and the new columns are NULL at first", "drop it and add it again after contract")
		}
		if keys := m.names(c.Table); m.has(c.Table, c.Columns) && !m.inPlace(c.Table, c.Columns) && !fitsAnyKey(c.Expression, keys) {
			m.literal("constraint "+c.Name+" of "+m.relation(c.Table).Name, "depends on values of a key: "+c.Expression, m.sameColumns(c.Table, c.Columns))
		}
	}
	m.checkLiterals()
	m.noteSettings()
	m.checkNames()
	m.checkVisible()
	m.checkFunctions()
	m.checkSequences()
	m.checkDependents()
	if err := m.checkDatabase(ctx, db, o); err != nil {
		return err
	}
	if err := m.checkExhausted(ctx, db); err != nil {
		return err
	}
	return m.checkRows(ctx, db)
}

// names returns the keys of a table's columns by quoted name.
func (m *model) names(table int64) map[string]*key {
	names := map[string]*key{}
	if r := m.relation(table); r != nil {
		for _, c := range r.columns {
			names[c.Quoted] = c.key
			if !c.root && !c.plain() {
				names[c.Quoted] = &key{} // equal values can refer to different rows
			}
		}
	}
	return names
}

// mentions reports whether an expression contains the name of a column that changes.
func (m *model) mentions(table int64, expression string) bool {
	return len(m.mentioned(table, expression)) > 0
}

// mentioned returns the columns that change and that an expression contains.
func (m *model) mentioned(table int64, expression string) (nums []int) {
	r := m.relation(table)
	if r == nil {
		return nil
	}
	list := tokens(expression)
	for _, c := range r.columns {
		if slices.Contains(list, c.Quoted) {
			nums = append(nums, c.Num)
		}
	}
	return nums
}

// inPlace reports whether all of the columns that change have keys that keep their values.
func (m *model) inPlace(table int64, nums []int) bool {
	return !slices.ContainsFunc(nums, func(n int) bool {
		c := m.column(table, n)
		return c != nil && !c.key.InPlace
	})
}

// ordinary is the remedy for tables that can't change. Their rows would be orphans without
// their foreign keys.
const ordinary = "only ordinary tables can be rekeyed; copy its rows to an ordinary table that replaces it, with its foreign keys, or, if the key and its references are bigint, set in_place"

// checkPartitions reports partitions, once per partitioned table.
func (m *model) checkPartitions() {
	var roots []string
	for _, r := range m.relations {
		if !r.Partition || slices.Contains(roots, r.Root) {
			continue
		}
		roots = append(roots, r.Root)
		others := 0
		for _, o := range m.relations {
			if o != r && o.Root == r.Root {
				others++
			}
		}
		if others > 0 {
			m.problem("table "+r.Name, "and %d other tables are partitions of %s", ordinary, others, r.Root)
		} else {
			m.problem("table "+r.Name, "is a partition of %s", ordinary, r.Root)
		}
	}
}

func (m *model) checkTable(r *relation) {
	object := "table " + r.Name
	switch {
	case r.Partition: // reported once per partitioned table, in checkPartitions
	case r.Kind != "r":
		m.problem(object, "is a %s", ordinary, kinds[r.Kind])
	case r.NoInherit != "":
		m.problem(object, "inherits from a table, or a table inherits from it", "run "+r.NoInherit+", or move the rows to a new table")
	case r.Typed:
		m.problem(object, "is a typed table, which can't have other columns", "run ALTER TABLE "+r.Name+" NOT OF")
	case r.Distributed:
		m.problem(object, "is a table of Citus on its workers, where triggers can't keep both keys", "undistribute the tables, or keep the key")
	case r.Temporary:
		m.problem(object, "is temporary", "create it as an ordinary table")
	}
	if r.Attributes+len(r.columns) > 1600 {
		m.problem(object, "has %d columns, with dropped ones, and Postgres allows 1600", "copy its rows to a new table, which has no dropped columns", r.Attributes)
	}
	if !r.Owned {
		m.problem(object, "belongs to %s, and you aren't a member of that role", "run rekey as its owner, or give it to the owner of the tables", r.Owner)
	}
	if r.ForceRLS && !m.bypassRLS {
		m.problem(object, "hides rows from its owner by FORCE ROW LEVEL SECURITY", "if no program connects as its owner, ALTER TABLE "+r.Name+" NO FORCE ROW LEVEL SECURITY until contract; otherwise give the programs another role first")
	}
	if r.RLS && slices.ContainsFunc(r.Grants, func(g grant) bool { return g.Column != "" }) {
		m.note(object, "has row level security, and privileges on single columns", "roles without the privilege on all columns can't read the view for programs of the new version: let them read the table until contract")
	}
	if r.Triggers && !m.replicaRole {
		m.problem(object, "has a trigger on UPDATE, which the backfill would fire for each row", "run GRANT SET ON PARAMETER session_replication_role TO "+m.role+" as a superuser, or drop the trigger")
	}
	if r.AlwaysTriggers {
		m.note(object, "has a trigger on UPDATE that is ENABLE ALWAYS or ENABLE REPLICA, which the backfill fires for each row", "check that it may")
	}
	for _, other := range m.relations {
		if other != r && other.Plain == r.Plain && other.OID < r.OID {
			m.problem(object, "has the name of %s, and both need a view in the same schema", "rename one of them until contract", other.Name)
		}
	}
	for _, c := range r.columns {
		for _, t := range c.targets {
			m.checkTarget(c, t)
		}
		switch {
		case c.Domain:
			m.note(c.String(), "has the domain %s, and the new column has none", "add NOT NULL or a CHECK to the table if the domain has one", c.Type)
		case c.Equal:
			m.problem(c.String(), "has the collation %s, by which different texts can be equal", "use a deterministic collation", c.Collation)
		case c.NotNullAs != nil && !c.NotNullAs.Valid:
			m.problem(c.String(), "has a NOT NULL constraint that isn't valid", "run ALTER TABLE "+r.Name+" VALIDATE CONSTRAINT "+c.NotNullAs.Name+", or drop it")
		case c.Generated != "":
			m.problem(c.String(), "is generated", "drop its expression")
		case c.Default != "" && !strings.HasPrefix(c.Default, "NULL::") && !c.root:
			m.problem(c.String(), "is a reference with a default, %s", "drop the default, and let programs write NULL for no row", c.Default)
		case c.Identity != "" && !c.root:
			m.problem(c.String(), "is a reference and an identity column", "drop the identity")
		}
	}
}

// checkDomains looks for domains that refuse NULL. The server checks a domain before the triggers of
// rekey, which fill the column that a program leaves out.
func (m *model) checkDomains(ctx context.Context, db querier) error {
	for _, r := range m.relations {
		for _, c := range r.columns {
			if !c.Domain {
				continue
			}
			failure, err := try(ctx, db, "SELECT NULL::"+c.Type)
			if err != nil {
				return err
			}
			if failure != nil {
				m.problem(c.String(), "has the domain %s, which refuses NULL before a trigger can set the key: %v",
					"run ALTER TABLE "+r.Name+" ALTER "+c.Quoted+" TYPE "+c.Stored+", ALTER "+c.Quoted+" SET NOT NULL, or let the domain accept NULL, and give the column the constraint", c.Type, failure)
			}
		}
	}
	return nil
}

func (m *model) checkKey(k *key) {
	if k.root == nil {
		return // the table isn't fit, which is another problem
	}
	object := "key of " + k.root.rel.Name
	problem := func(reason, remedy string, args ...any) { m.problem(object, reason, remedy, args...) }
	if k.format.sqlType == "" {
		reason := "which is unknown"
		switch k.Format {
		case "spread64":
			reason = "which doesn't sort by time"
		case "snowflake_si":
			reason = "which rekey doesn't support"
		}
		problem("has the new format %q, "+reason, "use snowflake, uid60, sno or uuid7", k.Format)
		return
	}
	base := baseTypes[k.root.Base]
	for _, c := range k.columns {
		if t := baseTypes[c.Base]; t == "" {
			m.problem(c.String(), "has type %s", "only smallint, integer, bigint, uuid, text, varchar and char can be rekeyed", c.Type)
		} else if t != base && (t == "integer" || base == "integer" && t == "uuid" || !m.loose(c)) {
			m.problem(c.String(), "has type %s, and the key type %s", "give both the same type", c.Type, k.root.Type)
		}
	}
	for _, node := range []struct {
		name   string
		value  int
		unused bool
	}{{"Node", k.Node, false}, {"BackfillNode", k.BackfillNode, k.InPlace}} {
		if k.format.pool != "" && !node.unused && (node.value < 0 || node.value >= k.format.nodes) {
			problem("has %s %d", fmt.Sprintf("choose a node number from 0 to %d", k.format.nodes-1), node.name, node.value)
		}
	}
	if k.InPlace {
		if base != "integer" || k.format.sqlType != "bigint" {
			problem("can't change in place from %s to %s", "in place, an integer becomes a snowflake or uid60", k.root.Type, k.Format)
		}
		if k.Times != (Times{}) {
			problem("has Times, and changes in place", "remove Times: existing rows keep their keys")
		}
	} else {
		problems := len(m.problems)
		m.checkTimes(k, problem)
		k.untimed = len(m.problems) > problems
	}
	if len(k.columns) == 0 && !k.hasDefault() {
		problem("has bigint columns and no default, so nothing would change in place", "change the programs only")
	}
	if reason := checkExpression(k.OldKey); reason != "" {
		problem("has an OldKey that %s", "set it to a single expression, without comments, dollar quotes and backslashes", reason)
		return // no statement may contain it
	}
	k.oldExpr = cmp.Or(k.OldKey, k.root.Default)
	if k.oldExpr != "" || len(k.columns) == 0 {
		return
	}
	switch {
	case k.root.Identity != "":
		k.oldExpr = "nextval(" + literal(k.root.Sequence) + ")"
	case base == "uuid":
		k.oldExpr = "gen_random_uuid()"
	case k.Times.Key == KeyULID && base == "text":
		k.oldExpr = newULID // in upper case, until checkRows has read the others
	default:
		problem("has no default, so rekey can't choose old keys for rows that programs insert by the new key", "set OldKey to an expression such as nextval('a_sequence')")
	}
}

func (m *model) checkTimes(k *key, problem func(reason, remedy string, args ...any)) {
	t := k.Times
	sources := 0
	for _, set := range []bool{t.Column != "", t.SQL != "", t.Key != ""} {
		if set {
			sources++
		}
	}
	if sources > 1 || sources == 0 && t.Start.IsZero() || t.Key != "" && !t.Start.IsZero() {
		problem("needs one source of times", "set one of column, sql, key and start in times; a start beside a column or sql is for rows without a time")
		return
	}
	form, ok := keyForms[t.Key]
	switch {
	case t.Key != "" && !ok:
		problem("has the unknown Times.Key %q", "use uuidv7 or ulid, or the time of another form in Times.SQL", t.Key)
	case ok && !slices.Contains(form.types, baseTypes[k.root.Base]):
		problem("has Times.Key %s and type %s", "name a column with times, or a start", t.Key, k.root.Type)
	}
	if reason := checkExpression(t.SQL); reason != "" {
		problem("has Times.SQL that %s", "set it to a single expression, without comments, dollar quotes and backslashes", reason)
		k.Times.SQL = ""
	}
	if t.Column == "" {
		return
	}
	i := slices.IndexFunc(k.root.rel.times, func(c timeColumn) bool { return c.Name == t.Column })
	if i < 0 {
		problem("has no column %q of type timestamptz or timestamp for times", "name another column, an expression in sql such as to_timestamp(created_ms / 1000.0), or a start", t.Column)
		return
	}
	k.times = &k.root.rel.times[i]
}

func (m *model) checkForeignKeys() {
	for _, f := range m.foreignKeys {
		local, foreign := m.has(f.Table, f.Columns), m.has(f.To, f.ToColumns)
		switch {
		case !local && !foreign: // of a key that keeps its column
		case len(f.Columns) > 1:
			m.problem("foreign key "+f.Name+" of "+f.TableName, "has %d columns", "only foreign keys of one column can be rekeyed; drop it, name its column as a reference, and add it again after contract", len(f.Columns))
		case local && !foreign:
			m.problem("foreign key "+f.Name+" of "+f.TableName, "refers to %s, whose key doesn't change", "rekey that table, too: name it instead", f.ToName)
		}
	}
}

func (m *model) checkIndexes() {
	for _, x := range m.changed {
		r := m.relation(x.Table)
		object := "index " + r.Schema + "." + x.Name
		if x.Unique && !x.claimable() {
			m.note(object, "has an expression or a type that isn't built in, so programs that insert the same values at the same time with ON CONFLICT fail with SQLSTATE 23505", "repeat these statements")
		}
		if x.Deferrable {
			m.problem("constraint "+x.Constraint+" of "+r.Name, "is deferrable", "let it be checked at once until cleanup: drop it, and add it again without DEFERRABLE")
		}
		switch {
		case x.Type == "x":
			m.problem("constraint "+x.Constraint+" of "+r.Name, "is an exclusion constraint on a key", "drop it and add it again after contract")
			continue
		case !x.Valid:
			m.problem(object, "is invalid", "drop it, or create it again with REINDEX INDEX CONCURRENTLY")
		case !slices.Contains([]string{"btree", "hash", "brin"}, x.Method) && !m.sameColumns(x.Table, x.Columns):
			m.problem(object, "on a key has the access method %s", "drop it and create it again after contract; only btree, hash and brin can be carried over to another type", x.Method)
		}
		if m.mentions(x.Table, x.Expression) && !m.keepsValues(x.Table) && !fitsAnyKey(x.Expression, m.names(x.Table)) {
			m.literal(object, "has an expression on a key: "+x.Expression, m.sameColumns(x.Table, m.mentioned(x.Table, x.Expression)))
		}
		for i, num := range x.Columns {
			c := m.column(x.Table, num)
			if c == nil || i >= len(x.DefaultOps) || c.sameType() {
				continue // included columns have no operator class
			}
			if !x.DefaultOps[i] || i < len(x.DefaultCollations) && !x.DefaultCollations[i] {
				m.problem(object, "has an operator class or a collation for %s that the new type lacks", "drop it and create it again after contract", c.Quoted)
			}
		}
	}
}

// sameType reports whether the new column has the type of the old one.
func (c *column) sameType() bool {
	return c.Base == map[string]string{"bigint": "int8", "uuid": "uuid"}[c.key.format.sqlType]
}

// sameColumns reports whether no column of a list gets another type.
func (m *model) sameColumns(table int64, nums []int) bool {
	return !slices.ContainsFunc(nums, func(num int) bool { c := m.column(table, num); return c != nil && !c.sameType() })
}

// keepsValues reports whether all keys in a table change in place.
func (m *model) keepsValues(table int64) bool {
	return !slices.ContainsFunc(m.relation(table).columns, func(c *column) bool { return !c.key.InPlace })
}

// checkNames looks for constraints whose new names would be equal when shortened.
func (m *model) checkNames() {
	for _, r := range m.relations {
		seen := map[string]bool{}
		add := func(constraint, fresh string) {
			if seen[fresh] {
				m.problem("constraint "+constraint+" of "+r.Name, "would get the new name %s, like another constraint", "rename it", fresh)
			}
			seen[fresh] = true
		}
		for _, c := range r.columns {
			if c.NotNull {
				add("NOT NULL of "+c.Quoted, c.NotNullCheck())
			}
		}
		for _, c := range m.checksOf(r) {
			add(c.Name, c.Fresh())
		}
		for _, f := range m.changedForeignKeys() {
			if f.Table == r.OID {
				add(f.Name, freshConstraint(f.Name))
			}
		}
	}
}

func (m *model) checkDependents() {
	isView := func(oid int64) bool {
		return slices.ContainsFunc(m.views, func(v *view) bool { return v.OID == oid })
	}
	for _, v := range m.views {
		object := kinds[v.Kind] + " " + v.Name
		switch {
		case v.Kind != "v":
			m.problem(object, "depends on a key", "drop it and create it again after contract")
		case v.Triggers:
			m.problem(object, "has triggers", "drop it and create it again after contract; only views without triggers can be carried over")
		case v.Rules:
			m.problem(object, "has a rule", "drop it and create it again after contract; only views without rules can be carried over")
		case v.Groups:
			m.problem(object, "relies on a primary key in GROUP BY", "name all columns in its GROUP BY, or drop it until contract")
		case !v.Owned:
			m.problem(object, "belongs to %s, and you aren't a member of that role", "run rekey as its owner, or give it to the owner of the tables", v.Owner)
		}
		for _, r := range m.relations {
			if r.quotedPlain() == v.Plain {
				m.problem(object, "has the name of %s, and both need a view in the same schema", "rename one of them until contract", r.Name)
			}
		}
	}
	drop := "drop it and create it again after contract"
	for _, d := range m.dependents {
		if d.ByType {
			m.problem(d.Object, "depends on the row type of a view of a key", drop)
			continue
		}
		switch d.Class {
		case "pg_constraint", "pg_class", "pg_statistic_ext", "pg_publication_rel", "pg_attrdef":
			if d.Class != "pg_attrdef" || isView(d.Table) {
				continue // read with the tables
			}
			if c := m.column(d.Table, d.Column); !d.Own {
				m.problem(d.Object, "depends on %s", "drop the generated column until contract", c)
			}
		case "pg_rewrite":
			if !d.Own {
				m.problem(d.Object, "depends on a key", drop)
			}
		case "pg_trigger":
			if !d.Own {
				m.problem(d.Object, "depends on a key by UPDATE OF or WHEN", drop)
			}
		case "pg_policy":
			m.problem(d.Object, "depends on a key", "replace it in one transaction by a policy on other columns until contract; to drop it alone could open rows")
		default:
			m.problem(d.Object, "depends on a key", drop)
		}
	}
}

// noteSettings notes what rekey doesn't carry over, with the statements that do so after cleanup.
func (m *model) noteSettings() {
	for _, s := range m.statistics {
		if m.has(s.Table, s.Columns) {
			m.note("statistics "+s.Name, "end with the old columns", "after cleanup, run "+s.Definition)
		}
	}
	for _, r := range m.relations {
		for _, c := range r.columns {
			if c.Settings != "" {
				m.note(c.String(), "has settings that the new column lacks", "after cleanup, run ALTER TABLE "+r.Name+" "+c.Settings)
			}
		}
	}
	for _, x := range m.changed {
		if r := m.relation(x.Table); x.Clustered {
			m.note("index "+r.Schema+"."+x.Name, "has been used by CLUSTER", "after cleanup, run ALTER TABLE "+r.Name+" CLUSTER ON "+x.Name)
		}
	}
}
