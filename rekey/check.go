package rekey

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check adds the problems and the notes.
func (m *model) check(ctx context.Context, db querier, o Options) error {
	for _, r := range m.relations {
		m.checkTable(r)
	}
	for _, k := range m.keys {
		m.checkKey(k)
	}
	m.checkForeignKeys()
	m.checkIndexes()
	for _, c := range m.checks {
		if keys := m.names(c.Table); m.has(c.Table, c.Columns) && !m.inPlace(c.Table, c.Columns) && !fitsAnyKey(c.Expression, keys) {
			m.problem("constraint "+c.Name+" of "+m.relation(c.Table).Name, "depends on values of a key: %s", "drop it and add it again after contract", c.Expression)
		}
	}
	for _, p := range m.publications {
		if !m.has(p.Table, p.Columns) && !m.mentions(p.Table, p.Filter) {
			continue
		}
		object := "publication " + p.Name
		if m.mentions(p.Table, p.Filter) {
			m.problem(object, "filters rows of %s by a key", "remove the filter, and add it again after contract", m.relation(p.Table).Name)
		}
		if !p.Owned {
			m.problem(object, "belongs to a role that you aren't a member of", "run rekey as its owner or as a superuser")
		}
	}
	for _, s := range m.statistics {
		if m.has(s.Table, s.Columns) && strings.Contains(s.Definition[strings.Index(s.Definition, " ON "):strings.LastIndex(s.Definition, " FROM ")], "(") {
			m.problem("statistics "+s.Name, "have an expression and a key", "drop them and create them again after contract")
		}
	}
	m.checkNames()
	m.checkDependents()
	if err := m.checkDatabase(ctx, db, o); err != nil {
		return err
	}
	if len(m.problems) > 0 {
		return nil // the queries for the rows might fail
	}
	return m.checkRows(ctx, db)
}

// names returns the keys of a table's columns by quoted name.
func (m *model) names(table int64) map[string]*key {
	names := map[string]*key{}
	if r := m.relation(table); r != nil {
		for _, c := range r.columns {
			names[c.Quoted] = c.key
		}
	}
	return names
}

// mentions reports whether an expression contains the name of a column that changes.
func (m *model) mentions(table int64, expression string) bool {
	keys := m.names(table)
	return slices.ContainsFunc(tokens(expression), func(t string) bool { return keys[t] != nil })
}

// inPlace reports whether all of the columns that change have keys that keep their values.
func (m *model) inPlace(table int64, nums []int) bool {
	return !slices.ContainsFunc(nums, func(n int) bool {
		c := m.column(table, n)
		return c != nil && !c.key.InPlace
	})
}

func (m *model) checkTable(r *relation) {
	object := "table " + r.Name
	switch {
	case r.Kind != "r":
		m.problem(object, "is a %s", "only ordinary tables can be rekeyed; drop its foreign key, or move its rows to a new table", kinds[r.Kind])
	case r.Partition:
		m.problem(object, "is a partition", "only ordinary tables can be rekeyed; detach it, or drop its foreign key")
	case r.Parents:
		m.problem(object, "inherits from a table, or a table inherits from it", "remove it with ALTER TABLE … NO INHERIT, or move the rows to a new table")
	case r.Temporary:
		m.problem(object, "is temporary", "create it as an ordinary table")
	}
	if !r.Owned {
		m.problem(object, "belongs to %s, and you aren't a member of that role", "run rekey as its owner or as a superuser", r.Owner)
	}
	if r.ForceRLS && !m.bypassRLS {
		m.problem(object, "hides rows from its owner by FORCE ROW LEVEL SECURITY", "run rekey as a role with BYPASSRLS, or set NO FORCE ROW LEVEL SECURITY until contract")
	}
	if r.RLS && slices.ContainsFunc(r.Grants, func(g grant) bool { return g.Column != "" }) {
		m.note(object, "has row level security, and privileges on single columns", "roles without the privilege on all columns can't read the view for programs of the new version: let them read the table until contract")
	}
	if r.Triggers && !m.replicaRole {
		m.problem(object, "has a trigger on UPDATE, which the backfill would fire for each row", "GRANT SET ON PARAMETER session_replication_role to the role of rekey, run it as a superuser, or drop the trigger")
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
		switch {
		case c.Generated != "":
			m.problem(c.String(), "is generated", "drop its expression")
		case c.Default != "" && !c.root:
			m.problem(c.String(), "is a reference with a default, %s", "drop the default", c.Default)
		case c.Identity != "" && !c.root:
			m.problem(c.String(), "is a reference and an identity column", "drop the identity")
		}
	}
}

var baseTypes = map[string]string{"int2": "integer", "int4": "integer", "int8": "integer", "uuid": "uuid", "text": "text", "varchar": "text", "bpchar": "text"}

func (m *model) checkKey(k *key) {
	if k.root == nil {
		return // the table isn't fit, which is another problem
	}
	object := "key of " + k.root.rel.Name
	problem := func(reason, remedy string, args ...any) { m.problem(object, reason, remedy, args...) }
	if k.format.sqlType == "" {
		problem("has the new format %q, which isn't installed", "use snowflake, uid60 or sno, or snowflake_si after an installation with its layout", k.Format)
		return
	}
	base := baseTypes[k.root.Base]
	for _, c := range k.columns {
		if t := baseTypes[c.Base]; t == "" {
			m.problem(c.String(), "has type %s", "only smallint, integer, bigint, uuid, text, varchar and char can be rekeyed", c.Type)
		} else if t != base {
			m.problem(c.String(), "has type %s, and the key type %s", "give both the same type", c.Type, k.root.Type)
		}
	}
	if k.format.pool != "" && !k.InPlace {
		for _, node := range []struct {
			name  string
			value int
		}{{"Node", k.Node}, {"BackfillNode", k.BackfillNode}} {
			if node.value < 0 || node.value >= k.format.nodes {
				problem("has %s %d", fmt.Sprintf("choose a node number from 0 to %d", k.format.nodes-1), node.name, node.value)
			}
		}
	}
	if k.InPlace {
		if base != "integer" || k.format.sqlType != "bigint" {
			problem("can't change in place from %s to %s", "in place, an integer becomes a snowflake, snowflake_si or uid60", k.root.Type, k.Format)
		}
		if k.Times != (Times{}) {
			problem("has Times, and changes in place", "remove Times: existing rows keep their keys")
		}
	} else {
		m.checkTimes(k, problem)
	}
	if len(k.columns) == 0 && !k.hasDefault() {
		problem("has bigint columns and no default, so nothing would change in place", "change the programs only")
	}
	k.oldExpr = cmp(k.OldKey, k.root.Default)
	if k.oldExpr != "" || len(k.columns) == 0 {
		return
	}
	switch {
	case k.root.Identity != "":
		k.oldExpr = "nextval(" + literal(k.root.Sequence) + ")"
	case base == "uuid":
		k.oldExpr = "gen_random_uuid()"
	case k.Times.Key == KeyULID:
		k.oldExpr = newULID
	default:
		problem("has no default, so rekey can't choose old keys for rows that programs insert by the new key", "set OldKey to an expression such as nextval('a_sequence')")
	}
}

func cmp(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ulidDigits are the digits of Crockford's base 32.
const ulidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newULID is an SQL expression for a ULID of now.
const newULID = `(SELECT string_agg(substr('` + ulidDigits + `', 1 + (CASE WHEN i < 10
	THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint >> (5 * (9 - i))
	ELSE get_byte(r, (i - 10) % 8 + CASE WHEN i < 18 THEN 0 ELSE 8 END) END & 31)::integer, 1), '' ORDER BY i)
	FROM generate_series(0, 25) i, (SELECT uuid_send(gen_random_uuid()) AS r) r)`

func (m *model) checkTimes(k *key, problem func(reason, remedy string, args ...any)) {
	t := k.Times
	if t.Column == "" && t.Key == "" && t.Start.IsZero() || t.Column != "" && t.Key != "" || t.Key != "" && !t.Start.IsZero() {
		problem("needs one source of times", "set one of Times.Column, Times.Key and Times.Start; a Start beside a Column is for rows without a time")
		return
	}
	if t.Key != KeySnowflake && (t.Unit != 0 || t.Shift != 0 || !t.Epoch.IsZero()) {
		problem("has Times.Epoch, Unit or Shift without a Key of snowflake", "remove them")
	}
	base := baseTypes[k.root.Base]
	switch t.Key {
	case "":
	case KeyUUIDv7:
		if base != "uuid" {
			problem("has Times.Key uuidv7 and type %s", "name a column with times, or a start", k.root.Type)
		}
	case KeyULID:
		if base != "text" {
			problem("has Times.Key ulid and type %s", "name a column with times, or a start", k.root.Type)
		}
	case KeySnowflake:
		switch {
		case k.root.Base != "int8":
			problem("has Times.Key snowflake and type %s", "name a column with times, or a start", k.root.Type)
		case t.Epoch.IsZero() || t.Unit < time.Microsecond || t.Unit%time.Microsecond != 0 || t.Shift < 0 || t.Shift > 62:
			problem("has an incomplete layout in Times", "set Epoch, Unit (whole microseconds) and Shift (0 to 62)")
		}
	default:
		problem("has the unknown Times.Key %q", "use uuidv7, ulid or snowflake", t.Key)
	}
	if t.Column == "" {
		return
	}
	i := slices.IndexFunc(k.root.rel.times, func(c timeColumn) bool { return c.Name == t.Column })
	if i < 0 {
		problem("has no column %q of type timestamptz or timestamp for Times.Column", "name another column, or a start", t.Column)
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
	for _, x := range m.indexes {
		uses := m.has(x.Table, x.Columns)
		if !uses && !m.mentions(x.Table, x.Expression) {
			continue
		}
		r := m.relation(x.Table)
		object := "index " + r.Schema + "." + x.Name
		switch {
		case x.Type == "x":
			m.problem("constraint "+x.Constraint+" of "+r.Name, "is an exclusion constraint on a key", "drop it and add it again after contract")
			continue
		case !x.Valid:
			m.problem(object, "is invalid", "drop it, or create it again with REINDEX INDEX CONCURRENTLY")
		case !slices.Contains([]string{"btree", "hash", "brin"}, x.Method):
			m.problem(object, "on a key has the access method %s", "drop it and create it again after contract; only btree, hash and brin can be carried over", x.Method)
		}
		if m.mentions(x.Table, x.Expression) && !fitsAnyKey(x.Expression, m.names(x.Table)) {
			m.problem(object, "has an expression on a key: %s", "drop it and create it again after contract", x.Expression)
		}
		for i, num := range x.Columns {
			c := m.column(x.Table, num)
			if c == nil || i >= len(x.DefaultOps) || baseTypes[c.Base] == "integer" && c.key.format.sqlType == "bigint" {
				continue // included columns have no operator class
			}
			if !x.DefaultOps[i] || i < len(x.DefaultCollations) && !x.DefaultCollations[i] {
				m.problem(object, "has an operator class or a collation for %s that the new type lacks", "drop it and create it again after contract", c.Quoted)
			}
		}
	}
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
				add("NOT NULL of "+c.Quoted, c.notNullCheck())
			}
		}
		for _, c := range m.changedChecks() {
			if c.Table == r.OID {
				add(c.Name, freshConstraint(c.Name))
			}
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
			m.problem(object, "belongs to %s, and you aren't a member of that role", "run rekey as its owner or as a superuser", v.Owner)
		}
		for _, r := range m.relations {
			if r.quotedPlain() == v.Plain {
				m.problem(object, "has the name of %s, and both need a view in the same schema", "rename one of them until contract", r.Name)
			}
		}
	}
	drop := "drop it and create it again after contract"
	for _, d := range m.dependents {
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
		default:
			m.problem(d.Object, "depends on a key", drop)
		}
	}
}

func (m *model) checkDatabase(ctx context.Context, db querier, o Options) error {
	var found struct {
		Exists, Create, Reserve, All bool
		Subscribed                   []string
		Sequences                    []struct{ Sequence, Object string }
		Nodes                        []struct {
			Pool   string
			Number int
			State  string
		}
	}
	var serials []string
	for _, k := range m.keys {
		if k.root != nil && k.root.Sequence != "" && len(k.columns) > 0 {
			serials = append(serials, literal(k.root.Sequence)+"::regclass")
		}
	}
	err := readJSON(ctx, db, &found, `SELECT row_to_json(x)::text FROM (SELECT to_regnamespace($1) IS NOT NULL AS "Exists",
		has_database_privilege(current_database(), 'CREATE') AS "Create",
		has_function_privilege(`+literal(o.Config.Schema+".reserve_node(text,integer,text,boolean)")+`, 'EXECUTE') AND has_function_privilege(`+literal(o.Config.Schema+".unreserve_node(text,integer,timestamptz)")+`, 'EXECUTE') AS "Reserve",
		EXISTS (SELECT FROM pg_publication WHERE puballtables) AS "All",
		(SELECT array_agg(DISTINCT s.srrelid::regclass::text) FROM pg_subscription_rel s WHERE s.srrelid = ANY ($2::text::oid[])) AS "Subscribed",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT d.refobjid::regclass::text AS "Sequence", pg_describe_object(d.classid, d.objid, 0) AS "Object"
			FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid WHERE d.classid = 'pg_attrdef'::regclass AND d.refobjid = ANY (ARRAY[`+strings.Join(serials, ",")+`]::regclass[]::oid[])
			AND NOT EXISTS (SELECT FROM pg_depend s WHERE s.objid = d.refobjid AND s.classid = 'pg_class'::regclass AND s.refobjid = f.adrelid AND s.refobjsubid = f.adnum)) y) AS "Sequences",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT pool AS "Pool", number AS "Number", state AS "State" FROM `+o.Config.Schema+`.node_status WHERE state <> 'free') y) AS "Nodes") x`,
		o.Schema, oids(m.relations, func(r *relation) int64 { return r.OID }))
	if err != nil {
		return err
	}
	if found.Exists {
		m.problem("schema "+ident(o.Schema), "exists", "finish or abort the rekey that it belongs to, or choose another name in Options.Schema")
	}
	if !found.Create {
		m.problem("database "+m.database, "doesn't let you create schemas", "GRANT CREATE ON DATABASE to the role of rekey")
	}
	if !found.Reserve {
		m.problem("function "+o.Config.Schema+".reserve_node", "can't be executed by "+m.role, "GRANT EXECUTE on reserve_node and unreserve_node to the role, or run rekey as the owner of the schema")
	}
	for _, t := range found.Subscribed {
		m.problem("table "+t, "receives rows from a subscription, which fires no triggers", "rekey the publisher's table, or drop the subscription")
	}
	for _, s := range found.Sequences {
		m.problem("sequence "+s.Sequence, "is used by %s, and would be dropped with the old key", "ALTER SEQUENCE … OWNED BY NONE", s.Object)
	}
	if found.All || len(m.publications) > 0 {
		m.note("publications", "publish the new columns", "add them to the tables of subscribers before expand, unless the publication has a list of columns")
	}
	if err := m.checkGrants(ctx, db, o); err != nil {
		return err
	}
	if err := m.checkFreshNames(ctx, db); err != nil {
		return err
	}
	state := func(k *key, node int) string {
		for _, n := range found.Nodes {
			if n.Pool == k.format.pool && n.Number == node {
				return n.State
			}
		}
		return "free"
	}
	for _, k := range m.keys {
		if k.root == nil || k.format.pool == "" {
			continue
		}
		object := "key of " + k.root.rel.Name
		k.nodeReserved = state(k, k.Node) == "reserved"
		if s := state(k, k.Node); s == "held" {
			m.problem(object, "has Node %d, which is %s in pool %s", "choose a free number: view node_status has the others", k.Node, s, k.format.pool)
		}
		if k.InPlace {
			continue
		}
		if s := state(k, k.BackfillNode); s != "free" {
			m.problem(object, "has BackfillNode %d, which is %s in pool %s", "choose a free number: view node_status has the others", k.BackfillNode, s, k.format.pool)
		}
		for _, other := range m.keys {
			if other.format.pool == k.format.pool && other.Node == k.BackfillNode {
				m.problem(object, "has BackfillNode %d, which is the Node of %s", "choose different numbers, so that IDs of existing rows differ from those of new rows", k.BackfillNode, other.Table)
			}
		}
	}
	return nil
}

// checkGrants looks for roles that can insert rows now, and couldn't with the new default.
func (m *model) checkGrants(ctx context.Context, db querier, o Options) error {
	for _, k := range m.keys {
		if k.root == nil || !k.hasDefault() || k.format.creates == "" {
			continue
		}
		var roles []string
		err := readJSON(ctx, db, &roles, `SELECT json_agg(role ORDER BY role)::text FROM (
			SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END AS role
			FROM (SELECT a.* FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = $1::text::oid
				UNION ALL SELECT a.* FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = $1::text::oid) g
			WHERE g.privilege_type = 'INSERT' AND NOT (has_schema_privilege(g.grantee, $2, 'USAGE') AND has_function_privilege(g.grantee, $3, 'EXECUTE'))) r`,
			strconv.FormatInt(k.root.rel.OID, 10), o.Config.Schema, k.format.creates)
		if err != nil {
			return err
		}
		for _, role := range roles {
			m.problem("role "+role, "inserts into %s, and can't execute %s, the default after contract",
				"GRANT USAGE ON SCHEMA "+o.Config.Schema+" TO "+role+"; GRANT EXECUTE ON FUNCTION "+k.format.creates+" TO "+role, k.root.rel.Name, k.format.creates)
		}
	}
	return nil
}

// checkFreshNames looks for objects with the names of objects that rekey creates.
func (m *model) checkFreshNames(ctx context.Context, db querier) error {
	var list []string
	err := readJSON(ctx, db, &list, `SELECT json_agg(o ORDER BY o)::text FROM (
		SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0) FROM pg_constraint k WHERE k.conrelid = ANY ($1::text::oid[]) AND k.conname LIKE 'rekey\_%'
		UNION ALL SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0) FROM pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND t.tgname LIKE '~rekey%'
		UNION ALL SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class c WHERE c.relkind IN ('r', 'i', 'S', 'v', 'm', 'p', 'f') AND c.relname LIKE 'rekey\_%'
			AND c.relnamespace IN (SELECT t.relnamespace FROM pg_class t WHERE t.oid = ANY ($1::text::oid[]))
			AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid)) x (o)`,
		oids(m.relations, func(r *relation) int64 { return r.OID }))
	for _, object := range list {
		m.problem(object, "has a name with the prefix of objects that rekey creates", "finish or abort the rekey that it belongs to, or rename it")
	}
	return err
}

// checkRows looks for values that can't be carried over. It reads whole tables.
func (m *model) checkRows(ctx context.Context, db querier) error {
	for _, k := range m.keys {
		if len(k.columns) == 0 {
			continue
		}
		object := "key of " + k.root.rel.Name
		form, reason := "", ""
		switch {
		case k.Times.Key == KeyUUIDv7:
			form, reason = "substr("+k.root.Quoted+"::text, 15, 1) = '7' AND substr("+k.root.Quoted+"::text, 20, 1) IN ('8', '9', 'a', 'b')", "a UUIDv7"
		case k.Times.Key == KeyULID:
			form, reason = k.root.Quoted+` ~ '^[0-7][`+ulidDigits+`]{25}$'`, "a ULID of 26 upper-case characters"
		case k.times != nil:
			form, reason = "coalesce(isfinite("+k.times.Quoted+"), true)", "a row with a finite time"
		case k.Times.Key == KeySnowflake:
			form, reason = k.root.Quoted+" >= 0", "a snowflake"
		}
		if form != "" {
			var bad sql.NullString
			err := db.QueryRowContext(ctx, "SELECT min("+k.root.Quoted+"::text) FROM ONLY "+k.root.rel.Name+" WHERE NOT ("+form+")").Scan(&bad)
			if err != nil {
				return err
			}
			if bad.Valid {
				m.problem(object, "has the value %q, which isn't %s", "name another source of times", bad.String, reason)
				continue
			}
		}
		if k.InPlace {
			continue
		}
		var first, last sql.NullFloat64
		err := db.QueryRowContext(ctx, "SELECT min(ms), max(ms) FROM (SELECT "+k.milliseconds("t")+" AS ms FROM ONLY "+k.root.rel.Name+" t) x").Scan(&first, &last)
		if err != nil {
			return err
		}
		if first.Valid && int64(first.Float64) < k.format.epochMS {
			m.note(object, "has rows from %s, before the first instant of the format", "they get IDs of that first instant, in order", stamp(int64(first.Float64)))
		}
		if last.Valid {
			if _, err := db.ExecContext(ctx, "SAVEPOINT time"); err != nil {
				return err
			}
			expr := k.idAt("to_timestamp("+strconv.FormatInt(max(int64(last.Float64), k.format.epochMS), 10)+" / 1000.0)", "1")
			if _, err := db.ExecContext(ctx, "SELECT "+expr); err != nil {
				if sqlState(err) == "" {
					return err
				}
				m.problem(object, "has rows from %s, which the format can't represent", "correct these times, or choose another format", stamp(int64(last.Float64)))
			}
			if _, err := db.ExecContext(ctx, "ROLLBACK TO SAVEPOINT time"); err != nil {
				return err
			}
		}
	}
	for _, r := range m.relations {
		for _, c := range r.columns {
			if c.root || slices.ContainsFunc(m.foreignKeys, func(f *foreignKey) bool { return f.Table == r.OID && f.Columns[0] == c.Num && f.Valid }) {
				continue
			}
			var dangling int64
			err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+r.Name+" t WHERE t."+c.Quoted+" IS NOT NULL AND NOT EXISTS (SELECT FROM "+
				c.key.root.rel.Name+" p WHERE p."+c.key.root.Quoted+" = t."+c.Quoted+")").Scan(&dangling)
			if err != nil {
				return err
			}
			if dangling > 0 {
				m.problem(c.String(), "has %d rows that refer to no row of %s", "delete these rows, or set the column to NULL", dangling, c.key.root.rel.Name)
			}
		}
	}
	return nil
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
