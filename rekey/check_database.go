package rekey

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

func (m *model) checkDatabase(ctx context.Context, db querier, o Options) error {
	var found struct {
		Exists, Create, Reserve bool
		Subscribed              []string
		Publications            []struct {
			Name, Tables string
			Listed       bool
		}
		Sequences []struct{ Sequence, Object string }
		Nodes     []struct {
			Pool   string
			Number int
			State  string
			// Reserved is the purpose of a reservation.
			Reserved string
		}
	}
	var readable bool
	if err := db.QueryRowContext(ctx, "SELECT has_table_privilege($1, 'SELECT')", o.Config.Schema+".node_status").Scan(&readable); err != nil {
		return err
	}
	if !readable {
		m.problem("view "+o.Config.Schema+".node_status", "can't be read by "+m.role, "run GRANT SELECT ON "+o.Config.Schema+".node_status TO "+m.role)
		return nil
	}
	var serials []string
	for _, k := range m.keys {
		if k.root != nil && k.root.Sequence != "" {
			serials = append(serials, literal(k.root.Sequence)+"::regclass")
		}
	}
	err := readJSON(ctx, db, &found, query("database", map[string]string{"Functions": o.Config.Schema, "Published": m.published(), "Serials": strings.Join(serials, ",")}),
		Schema, oids(m.relations, func(r *relation) int64 { return r.OID }))
	if err != nil {
		return err
	}
	if found.Exists {
		m.problem("schema "+ident(Schema), "exists", "finish or abort the rekey that it belongs to: a database has one at a time")
	}
	if !found.Create {
		m.problem("database "+m.database, "doesn't let you create schemas", "run GRANT CREATE ON DATABASE "+m.database+" TO "+m.role)
	}
	if !found.Reserve {
		m.problem("function "+o.Config.Schema+".reserve_node", "can't be executed by "+m.role, "run GRANT EXECUTE ON FUNCTION "+o.Config.Schema+".reserve_node(text, integer, text, boolean), "+o.Config.Schema+".unreserve_node(text, integer, timestamptz) TO "+m.role)
	}
	for _, t := range found.Subscribed {
		m.problem("table "+t, "receives rows from a subscription, which fires no triggers", "rekey the publisher's table, or drop the subscription")
	}
	for _, p := range found.Publications {
		remedy := "run ALTER PUBLICATION " + p.Name + " DROP TABLE " + p.Tables
		if !p.Listed {
			remedy = "replace it by a publication that lists its other tables"
		}
		m.problem("publication "+p.Name, "publishes %s, and subscribers would take new keys for other rows", remedy+"; after cleanup, copy the tables to subscribers again, as docs/rekey.md shows", p.Tables)
	}
	for _, s := range found.Sequences {
		if slices.ContainsFunc(m.keys, func(k *key) bool { return k.root != nil && k.root.Identity != "" && k.root.Sequence == s.Sequence }) {
			m.problem("sequence "+s.Sequence, "is used by %s, and an identity column can't leave it behind", "drop this use, or let it use another sequence", s.Object)
			continue
		}
		m.problem("sequence "+s.Sequence, "is used by %s, and would be dropped with the old key", "run ALTER SEQUENCE "+s.Sequence+" OWNED BY NONE", s.Object)
	}
	if err := m.checkUses(ctx, db, o); err != nil {
		return err
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
		if k.root == nil {
			continue
		}
		for _, n := range found.Nodes {
			if n.State == "reserved" && n.Reserved == k.purpose() && k.root.Default != "" && (n.Pool != k.format.pool || n.Number != k.Node) {
				m.note("node number "+strconv.Itoa(n.Number)+" of pool "+n.Pool, "stays reserved for the old default of %s", "after cleanup, if nothing else uses it, run SELECT "+o.Config.Schema+".unreserve_node("+literal(n.Pool)+", "+strconv.Itoa(n.Number)+")", k.root.rel.Name)
			}
		}
		if k.format.pool == "" {
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

// published renders the FROM clause of a query for the tables in publications.
func (m *model) published() string {
	return "FROM pg_publication_tables p WHERE format('%I.%I', p.schemaname, p.tablename) IN (" + strings.Join(append(each(m.relations, func(r *relation) string { return literal(r.Name) }), "''"), ", ") + ")"
}

// publicationCheck renders a query for tables that were added to a publication since inspect.
func (m *model) publicationCheck() string {
	return "SELECT format('publication %I publishes %I.%I; drop the table from it, and copy it to subscribers again after cleanup', p.pubname, p.schemaname, p.tablename) " + m.published()
}

// checkUses looks for uses of the tables that aren't uses of the columns.
func (m *model) checkUses(ctx context.Context, db querier, o Options) error {
	constraints := slices.DeleteFunc(slices.Clone(m.changed), func(x *index) bool { return x.Constraint == "" })
	var found struct {
		Rows, Constraints, Schemas, Rules []string
		Extensions                        []struct{ View, Extension string }
		Owners                            []struct{ Owner, Schema string }
		Names                             []struct{ Name, Other string }
	}
	err := readJSON(ctx, db, &found, query("uses", nil),
		oids(m.relations, func(r *relation) int64 { return r.OID }), oids(constraints, func(x *index) int64 { return x.OID }), oids(m.views, func(v *view) int64 { return v.OID }), pgArray(m.path))
	if err != nil {
		return err
	}
	for _, object := range found.Rows {
		m.problem(object, "has the row type of a table whose columns change", "drop it until contract, or use another type")
	}
	for _, object := range found.Constraints {
		m.problem(object, "depends on the constraint of a key", "drop it and create it again after contract")
	}
	for _, x := range found.Extensions {
		m.problem("view "+x.View, "depends on a key, and belongs to extension %s", "run ALTER EXTENSION "+x.Extension+" DROP VIEW "+x.View, x.Extension)
	}
	for _, s := range found.Schemas {
		m.problem("schema "+s, "doesn't let you create indexes or views", "GRANT USAGE, CREATE ON SCHEMA "+s+" TO "+m.role)
	}
	for _, r := range found.Rules {
		m.problem(r, "applies to UPDATE, which the backfill runs in a WITH query", "drop it until contract, or run GRANT SET ON PARAMETER session_replication_role TO "+m.role+" as a superuser")
	}
	for _, role := range found.Owners {
		m.problem("role "+role.Owner, "owns a view in schema %s, and can't create views there", "GRANT CREATE ON SCHEMA "+role.Schema+" TO "+role.Owner, role.Schema)
	}
	for _, n := range found.Names {
		m.problem("relation "+n.Name, "has the name of %s, whose view would hide it", "rename one of them until contract", n.Other)
	}
	seen := jobTables()
	for _, v := range m.views {
		name := Schema + "." + v.Plain
		if slices.Contains(seen, name) {
			m.problem("view "+v.Name, "has the name of another relation in the schema of the views", "rename it until contract")
		}
		seen = append(seen, name)
	}
	for _, d := range m.dependents {
		c := m.column(d.Table, d.Column)
		if d.Class == "pg_class" && !d.ByType && c != nil && strings.HasPrefix(d.Identity, "sequence ") && (!c.root || d.Identity != "sequence "+c.Sequence) {
			m.problem(d.Identity, "belongs to %s, and would be dropped with it", "run ALTER "+d.Identity+" OWNED BY NONE", c)
		}
	}
	return nil
}

// checkGrants looks for roles that can insert rows now, and couldn't with the new default.
func (m *model) checkGrants(ctx context.Context, db querier, o Options) error {
	for _, k := range m.keys {
		if k.root == nil || k.format.creates == "" {
			continue
		}
		var missing bool
		if err := db.QueryRowContext(ctx, "SELECT to_regprocedure($1) IS NULL", k.format.creates).Scan(&missing); err != nil {
			return err
		}
		if missing {
			m.problem("function "+k.format.creates, "isn't installed", "run sortkey migrate up")
			continue
		}
		if !k.hasDefault() {
			continue
		}
		var roles []string
		err := readJSON(ctx, db, &roles, "SELECT json_agg(role ORDER BY role)::text FROM ("+k.inserters(o)+") x")
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
	err := readJSON(ctx, db, &list, query("fresh names", nil),
		oids(m.relations, func(r *relation) int64 { return r.OID }))
	for _, object := range list {
		m.problem(object, "has a name with the prefix of objects that rekey creates", "finish or abort the rekey that it belongs to, or rename it")
	}
	return err
}
