package rekey

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// dependentColumns is the SELECT list of a dependent, for an alias d of pg_depend.
const dependentColumns = `d.classid::regclass::text AS "Class", d.objid::bigint AS "OID", d.refobjid::bigint AS "Table", d.refobjsubid AS "Column",
	pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) AS "Object", ` + identity + ` AS "Identity",
	CASE d.classid WHEN 'pg_catalog.pg_attrdef'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_attrdef f WHERE f.oid = d.objid AND f.adrelid = d.refobjid AND f.adnum = d.refobjsubid)
		WHEN 'pg_catalog.pg_rewrite'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.oid = d.objid AND r.rulename = '_RETURN')
		WHEN 'pg_catalog.pg_trigger'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.oid = d.objid AND t.tgisinternal) ELSE false END AS "Own"`

// identity is an SQL expression for the type and the qualified name of the object of a row d
// of pg_depend.
const identity = `(SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(` + object + `) i)`

// describe is an SQL expression that describes the object of a row d of pg_depend.
const describe = `pg_catalog.pg_describe_object(` + object + `)`

// object has the arguments for the object of a row d of pg_depend, and of the view for its rule.
const (
	object = `CASE WHEN ` + queried + ` IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce(` + queried + `, d.objid), CASE WHEN ` + queried + ` IS NULL THEN d.objsubid ELSE 0 END`

	queried = `(SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN')`
)

// readDependents returns the objects that depend on the columns, and reads the views.
func (m *model) readDependents(ctx context.Context, db querier) ([]dependent, error) {
	var columns []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			columns = append(columns, strconv.FormatInt(r.OID, 10)+":"+strconv.Itoa(c.Num))
		}
	}
	var direct []dependent
	err := readJSON(ctx, db, &direct, rows(`SELECT DISTINCT `+dependentColumns+` FROM pg_catalog.pg_depend d
		WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid::text || ':' || d.refobjsubid = ANY ($1::text::text[]) ORDER BY 5`), "{"+strings.Join(columns, ",")+"}")
	if err != nil {
		return nil, err
	}
	all := direct
	for level := 1; len(direct) > 0; level++ {
		var rules []int64
		for _, d := range direct {
			if d.Class == "pg_rewrite" {
				rules = append(rules, d.OID)
			}
		}
		var found []*view
		// Names of tables in the definition depend on the search_path.
		err := readJSON(ctx, db, &found, rows(`SELECT c.oid::bigint AS "OID", c.relkind AS "Kind", pg_catalog.format('%I.%I', n.nspname, c.relname) AS "Name", pg_catalog.quote_ident(c.relname) AS "Plain",
			CASE WHEN c.relkind = 'v' THEN pg_catalog.pg_get_viewdef(c.oid) ELSE '' END AS "Definition", c.reloptions AS "Options", pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) AS "Owner",
			pg_catalog.pg_has_role(c.relowner, 'USAGE') AS "Owned",
			coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') AS "Comment", EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid) AS "Triggers",
			EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN') AS "Rules",
			EXISTS (SELECT FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
				WHERE r.ev_class = c.oid AND d.refclassid = 'pg_catalog.pg_constraint'::regclass) AS "Groups",
			(SELECT json_agg(row_to_json(y)) FROM (SELECT pg_catalog.quote_ident(a.attname) AS "Column", pg_catalog.col_description(a.attrelid, a.attnum) AS "Text", coalesce(pg_catalog.pg_get_expr(f.adbin, f.adrelid), '') AS "Default"
				FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
				WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum) y) AS "Columns",
			(SELECT json_agg(row_to_json(y)) FROM (SELECT `+grantColumns+`, '' AS "Column" FROM pg_catalog.aclexplode(c.relacl) g
				UNION ALL SELECT `+grantColumns+`, pg_catalog.quote_ident(a.attname)
				FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) g WHERE a.attrelid = c.oid) y) AS "Grants"
			FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.oid IN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE r.oid = ANY ($1::text::oid[]) AND r.rulename = '_RETURN') ORDER BY 2`),
			oids(rules, func(v int64) int64 { return v }))
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			// A view comes after all views that it reads.
			m.views = slices.DeleteFunc(m.views, func(o *view) bool { return o.OID == v.OID })
			m.views = append(m.views, v)
		}
		direct = nil
		if len(found) == 0 {
			break
		}
		err = readJSON(ctx, db, &direct, rows(`SELECT DISTINCT `+dependentColumns+`, d.refclassid <> 'pg_catalog.pg_class'::regclass AS "ByType" FROM pg_catalog.pg_depend d
			WHERE (d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ANY ($1::text::oid[]) OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (
				SELECT pg_catalog.unnest(ARRAY[t.oid, t.typarray]) FROM pg_catalog.pg_type t WHERE t.typrelid = ANY ($1::text::oid[])))
			AND d.deptype = 'n' AND NOT (d.classid = 'pg_catalog.pg_rewrite'::regclass AND EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.oid = d.objid AND r.ev_class = d.refobjid)) ORDER BY 5`),
			oids(found, func(v *view) int64 { return v.OID }))
		if err != nil {
			return nil, err
		}
		all = append(all, direct...)
	}
	slices.SortStableFunc(all, func(a, b dependent) int { return strings.Compare(a.Object, b.Object) })
	return slices.CompactFunc(all, func(a, b dependent) bool { return a.Object == b.Object }), nil
}

// grants renders GRANT statements for an object.
func grants(list []grant, object string) (sql []string) {
	for _, g := range list {
		privilege := g.Privilege
		if g.Column != "" {
			privilege += " (" + g.Column + ")"
		}
		statement := "GRANT " + privilege + " ON " + object + " TO " + g.Role
		if g.Option {
			statement += " WITH GRANT OPTION"
		}
		sql = append(sql, statement)
	}
	return sql
}

// schema returns the quoted name of the view's schema.
func (v *view) schema() string { return strings.TrimSuffix(v.Name, "."+v.Plain) }

// columns returns the quoted names of the columns.
func (v *view) columns() []string {
	return each(v.Columns, func(c struct{ Column, Text, Default string }) string { return c.Column })
}

// create renders the statements that create the view under a name. The search_path
// determines the tables.
func (v *view) create(name string, comments bool) []string {
	options := ""
	if len(v.Options) > 0 {
		options = " WITH (" + strings.Join(v.Options, ", ") + ")"
	}
	columns := ""
	if len(v.Columns) > 0 {
		columns = " (" + strings.Join(v.columns(), ", ") + ")"
	}
	sql := []string{"CREATE VIEW " + name + columns + options + " AS\n" + strings.TrimSuffix(v.Definition, ";")}
	for _, c := range v.Columns {
		if c.Default != "" {
			sql = append(sql, "ALTER VIEW "+name+" ALTER COLUMN "+c.Column+" SET DEFAULT "+c.Default)
		}
		if c.Text != "" && comments {
			sql = append(sql, "COMMENT ON COLUMN "+name+"."+c.Column+" IS "+literal(c.Text))
		}
	}
	if v.Comment != "" && comments {
		sql = append(sql, "COMMENT ON VIEW "+name+" IS "+literal(v.Comment))
	}
	return append(sql, v.grants(name)...)
}

// grants renders the statements that give a new view the privileges of v.
func (v *view) grants(name string) []string {
	return append([]string{revokeAll(name, len(v.Grants) > 0)}, grants(v.Grants, name)...)
}

// revokeAll renders a statement that revokes the privileges that a new view has by ALTER
// DEFAULT PRIVILEGES and, if owner is set, the privileges of its owner.
func revokeAll(name string, owner bool) string {
	return "DO " + body("DECLARE role text; BEGIN FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = "+
		literal(name)+"::regclass AND ("+strconv.FormatBool(owner)+" OR a.grantee <> c.relowner) LOOP EXECUTE "+literal("REVOKE ALL ON "+name+" FROM ")+" || role; END LOOP; END")
}
