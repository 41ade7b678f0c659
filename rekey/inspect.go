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
	err := readJSON(ctx, db, &found, `SELECT row_to_json(x)::text FROM (SELECT to_regnamespace($1) IS NOT NULL AS "Exists",
		has_database_privilege(current_database(), 'CREATE') AS "Create",
		has_function_privilege(`+literal(o.Config.Schema+".reserve_node(text,integer,text,boolean)")+`, 'EXECUTE') AND has_function_privilege(`+literal(o.Config.Schema+".unreserve_node(text,integer,timestamptz)")+`, 'EXECUTE') AS "Reserve",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT quote_ident(p.pubname) AS "Name", string_agg(format('%I.%I', p.schemaname, p.tablename), ', ' ORDER BY p.schemaname, p.tablename) AS "Tables",
			bool_and(EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid WHERE b.pubname = p.pubname AND r.prrelid = format('%I.%I', p.schemaname, p.tablename)::regclass)) AS "Listed"
			`+m.published()+` GROUP BY p.pubname ORDER BY 1) y) AS "Publications",
		(SELECT array_agg(DISTINCT s.srrelid::regclass::text) FROM pg_subscription_rel s WHERE s.srrelid = ANY ($2::text::oid[])) AS "Subscribed",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT d.refobjid::regclass::text AS "Sequence", `+describe+` AS "Object"
			FROM pg_depend d LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
			WHERE d.refclassid = 'pg_class'::regclass AND d.deptype = 'n' AND d.refobjid = ANY (ARRAY[`+strings.Join(serials, ",")+`]::regclass[]::oid[])
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
		m.problem("publication "+p.Name, "publishes %s, and subscribers would take new keys for other rows", remedy+"; after contract, copy the tables to subscribers again, as docs/rekey.md shows", p.Tables)
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

// published renders the FROM clause of a query for the tables in publications.
func (m *model) published() string {
	return "FROM pg_publication_tables p WHERE format('%I.%I', p.schemaname, p.tablename) IN (" + strings.Join(append(each(m.relations, func(r *relation) string { return literal(r.Name) }), "''"), ", ") + ")"
}

// publicationCheck renders a query for tables that were added to a publication since inspect.
func (m *model) publicationCheck() string {
	return "SELECT format('publication %I publishes %I.%I; drop the table from it, and copy it to subscribers again after contract', p.pubname, p.schemaname, p.tablename) " + m.published()
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
	err := readJSON(ctx, db, &found, `SELECT row_to_json(x)::text FROM (SELECT
		(SELECT array_agg(DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)) FROM pg_type t JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
			WHERE t.typrelid = ANY ($1::text::oid[]) AND d.classid = 'pg_class'::regclass AND d.deptype = 'n') AS "Rows",
		(SELECT array_agg(DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)) FROM pg_constraint k JOIN pg_depend d ON d.refclassid = 'pg_constraint'::regclass AND d.refobjid = k.oid
			LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
			WHERE k.conindid = ANY ($2::text::oid[]) AND k.contype IN ('p', 'u') AND d.deptype = 'n' AND r.rulename IS DISTINCT FROM '_RETURN') AS "Constraints",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT d.objid::regclass::text AS "View", quote_ident(e.extname) AS "Extension" FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
			WHERE d.classid = 'pg_class'::regclass AND d.objid = ANY ($3::text::oid[]) AND d.deptype = 'e' ORDER BY 1) y) AS "Extensions",
		(SELECT array_agg(pg_describe_object('pg_rewrite'::regclass, r.oid, 0) ORDER BY r.rulename) FROM pg_rewrite r WHERE r.ev_class = ANY ($1::text::oid[]) AND r.ev_type = '2'
			AND (r.ev_enabled IN ('A', 'R') OR r.ev_enabled = 'O' AND NOT has_parameter_privilege('session_replication_role', 'SET'))) AS "Rules",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT DISTINCT quote_ident(pg_get_userbyid(c.relowner)) AS "Owner", quote_ident(n.nspname) AS "Schema" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.oid = ANY ($3::text::oid[]) AND NOT has_schema_privilege(c.relowner, n.oid, 'CREATE')) y) AS "Owners",
		(SELECT array_agg(quote_ident(n.nspname) ORDER BY n.nspname) FROM pg_namespace n WHERE quote_ident(n.nspname) = ANY ($4::text::text[]) AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE'))) AS "Schemas",
		(SELECT json_agg(row_to_json(y)) FROM (SELECT format('%I.%I', n.nspname, c.relname) AS "Name", format('%I.%I', o.relnamespace::regnamespace, o.relname) AS "Other"
			FROM pg_class o JOIN pg_class c ON c.relname = o.relname AND c.oid <> o.oid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE o.oid = ANY ($1::text::oid[] || $3::text::oid[]) AND c.oid <> ALL ($1::text::oid[] || $3::text::oid[]) AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND quote_ident(n.nspname) = ANY ($4::text::text[])
			ORDER BY 1) y) AS "Names") x`,
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
	seen := jobTables(o.Schema)
	for _, v := range m.views {
		name := o.Schema + "." + v.Plain
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
	m.checkDefinitions()
	return nil
}

// checkDefinitions looks for queries of views that can't read other relations instead: one
// that names columns by their positions, such as FROM orders o(key, total), and one that names
// a relation with its schema, as Postgres prints it if a WITH query has the same name.
func (m *model) checkDefinitions() {
	plain, qualified := map[string]bool{}, map[string]bool{}
	add := func(name, plainName string) { plain[plainName], qualified[name] = true, true }
	for _, r := range m.relations {
		add(r.Name, r.quotedPlain())
	}
	for _, v := range m.views {
		add(v.Name, v.Plain)
	}
	for _, v := range m.views {
		if name := rigid(v.Definition, plain, qualified); name != "" {
			m.problem("view "+v.Name, "contains %s, which can't stand for the new columns", "drop it and create it again after contract", name)
		}
	}
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
	err := readJSON(ctx, db, &list, `SELECT json_agg(o ORDER BY o)::text FROM (
		SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0) FROM pg_constraint k WHERE k.conrelid = ANY ($1::text::oid[]) AND k.conname LIKE 'rekey\_%'
		UNION ALL SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0) FROM pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND t.tgname ~ '`+ownTriggers+`'
		UNION ALL SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class c WHERE c.relkind IN ('r', 'i', 'S', 'v', 'm', 'p', 'f') AND c.relname LIKE 'rekey\_%'
			AND c.relnamespace IN (SELECT t.relnamespace FROM pg_class t WHERE t.oid = ANY ($1::text::oid[]))
			AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.conrelid = ANY ($1::text::oid[]))) x (o)`,
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
		failure, err := try(ctx, db, "EXPLAIN SELECT ("+k.oldExpr+")::"+k.root.Type)
		if err != nil {
			return err
		}
		if failure != nil {
			m.problem(object, "has the OldKey %s, which fails: %v", "correct it; names need their schemas", k.oldExpr, failure)
			continue
		}
		form, reason := "", ""
		switch kind, ok := keyForms[k.Times.Key]; {
		case ok:
			form, reason = kind.valid(k, k.root.Quoted), kind.what
		case k.times != nil && k.times.numeric():
			form, reason = fmt.Sprintf("coalesce(abs(%s::numeric * %d) < 253402300800000000, true)", k.times.Quoted, k.Times.unit()), "a row with a time before the year 10000"
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
		if k.byBytes() && !keyForms[k.Times.Key].exact {
			var upper, lower, one bool
			column := k.root.Quoted + "::text"
			err := db.QueryRowContext(ctx, "SELECT coalesce(bool_and("+column+" = upper("+column+")), true), coalesce(bool_and("+column+" = lower("+column+")), false), coalesce(min(length("+column+")) = max(length("+column+")), true) FROM ONLY "+k.root.rel.Name).Scan(&upper, &lower, &one)
			if err != nil {
				return err
			}
			if !one || !upper && !lower {
				m.problem(object, "has values of the same form that differ in case or length, so their order isn't that of their times", "give all of them one form, or name another source of times")
				continue
			}
			if lower && !upper && k.oldExpr == newULID {
				k.oldExpr = "lower(" + newULID + ")"
			}
		}
		if err := m.checkTimeColumn(ctx, db, k); err != nil {
			return err
		}
		var first, last sql.NullFloat64
		err = db.QueryRowContext(ctx, "SELECT min(ms), max(ms) FROM (SELECT "+k.milliseconds("t")+" AS ms FROM ONLY "+k.root.rel.Name+" t) x").Scan(&first, &last)
		if err != nil {
			return err
		}
		if first.Valid && int64(first.Float64) < k.format.epochMS {
			remedy := ""
			if earlier := time.UnixMilli(int64(first.Float64)).UTC(); k.Format == Snowflake || k.Format == SnowflakeSI {
				flag := map[Format]string{Snowflake: "--epoch", SnowflakeSI: "--si-epoch"}[k.Format]
				remedy = "; for IDs of their times, install the SQL with an earlier epoch, as sortkey migrate up " + flag + " " + earlier.Format(time.DateOnly) + ", before the first ID is created"
			}
			m.note(object, "has rows from %s, before the first instant of the format", "they get IDs of that first instant, in order"+remedy, stamp(int64(first.Float64)))
		}
		if last.Valid {
			failure, err := try(ctx, db, "SELECT "+k.idAt("to_timestamp("+strconv.FormatInt(max(int64(last.Float64), k.format.epochMS), 10)+" / 1000.0)", "1"))
			if err != nil {
				return err
			}
			if failure != nil {
				m.problem(object, "has rows from %s, which the format can't represent: %v", "correct these times, or choose another format", stamp(int64(last.Float64)), failure)
			}
		}
	}
	for _, x := range m.changed {
		if !x.Unique {
			continue
		}
		failure, err := try(ctx, db, "SELECT hash_record_extended(ROW("+strings.Join(each(x.Types, func(t string) string { return "NULL::" + t }), ", ")+"), 0)")
		if err != nil {
			return err
		}
		x.byText = failure != nil
	}
	for _, c := range m.checks {
		if c.Valid || strings.HasSuffix(c.Definition, " NOT ENFORCED") {
			continue
		}
		table := m.relation(c.Table).Name
		var violations int64
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+table+" WHERE NOT ("+c.Expression+")").Scan(&violations); err != nil {
			return err
		}
		if violations > 0 {
			m.problem("constraint "+c.Name+" of "+table, "isn't valid: %d rows violate it, so the backfill can't update them", "correct these rows, or drop the constraint", violations)
		}
	}
	if err := m.checkViews(ctx, db); err != nil {
		return err
	}
	if err := m.checkUnlisted(ctx, db); err != nil {
		return err
	}
	for _, r := range m.relations {
		for _, c := range r.columns {
			if c.root {
				continue
			}
			if err := m.checkReferences(ctx, db, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkViews looks for views that don't work with the types of the new keys. In the query
// of a view, a WITH query takes the place of each table and each view.
func (m *model) checkViews(ctx context.Context, db querier) error {
	if len(m.views) == 0 {
		return nil
	}
	with := each(m.relations, func(r *relation) string {
		columns := append(each(r.others, func(name string) string { return "t." + name }), each(r.columns, func(c *column) string { return "NULL::" + c.key.format.sqlType + " AS " + c.Quoted })...)
		return r.quotedPlain() + " AS (SELECT " + strings.Join(columns, ", ") + " FROM " + r.Name + " t)"
	})
	if _, err := db.ExecContext(ctx, "SET LOCAL search_path = "+strings.Join(m.path, ", ")); err != nil {
		return err
	}
	for _, v := range m.views {
		query := strings.TrimSuffix(v.Definition, ";")
		failure, err := try(ctx, db, "EXPLAIN WITH "+strings.Join(with, ", ")+" SELECT FROM ("+query+") v")
		if err != nil {
			return err
		}
		if failure != nil && sqlState(failure) != "42501" { // not a privilege on other tables
			m.problem("view "+v.Name, "fails with the types of the new keys: %v", "drop it and create it again after contract", failure)
			query = "TABLE " + v.Name
		}
		with = append(with, v.Plain+" ("+strings.Join(v.columns(), ", ")+") AS ("+query+")")
	}
	_, err := db.ExecContext(ctx, "SET LOCAL search_path = pg_catalog")
	return err
}

// try runs a statement. It returns the error of the server as failure.
func try(ctx context.Context, db querier, statement string) (failure, err error) {
	if _, err := db.ExecContext(ctx, "SAVEPOINT try"); err != nil {
		return nil, err
	}
	if _, failure = db.ExecContext(ctx, statement); failure != nil && sqlState(failure) == "" {
		return nil, failure
	}
	_, err = db.ExecContext(ctx, "ROLLBACK TO SAVEPOINT try")
	return failure, err
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
