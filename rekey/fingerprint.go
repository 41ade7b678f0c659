package rekey

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// objects names the objects of a fingerprint.
type objects struct {
	Tables  []string // OIDs
	Columns []string // that change, as OID.name
	Views   []string // qualified
}

// objects returns the objects of tables.
func (m *model) objects(list ...*relation) *objects {
	o := &objects{}
	for _, r := range list {
		oid := strconv.FormatInt(r.OID, 10)
		o.Tables = append(o.Tables, oid)
		for _, c := range r.columns {
			o.Columns = append(o.Columns, oid+"."+c.Name)
		}
	}
	return o
}

// typePrefix begins the lines about types and defaults of the columns that change, and
// queryPrefix the lines about the queries of views.
const (
	typePrefix  = "type and default of "
	queryPrefix = "query of "
)

func without(lines []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// changes compares a fingerprint with the one of expand. It returns what the plan doesn't know:
// the properties of keys and views, which contract gives to others, and the columns, constraints,
// triggers and policies. Triggers that are gone, and new indexes on other columns, do no harm,
// dependentCheck looks for those on old columns, and viewPrivileges compares privileges.
func changes(then, now []string) (findings []string) {
	find := func(what string, list, other []string, kinds ...string) {
		for _, line := range list {
			if kind, _, _ := strings.Cut(line, " "); slices.Contains(kinds, kind) && !slices.Contains(other, line) {
				findings = append(findings, what+" since expand: "+line)
			}
		}
	}
	find("gone", then, now, "owner", "type", "key", "constraint", "policy", "view", "query", "index", "statistics")
	find("new", now, then, "owner", "type", "key", "constraint", "trigger", "policy", "view", "query")
	return findings
}

// unchanged returns an error that wraps [ErrInconsistent] if the plan of expand no longer fits
// the tables.
func (j *job) unchanged(ctx context.Context) error {
	if j.state.job.Objects == nil {
		return nil
	}
	now, err := j.state.job.Objects.fingerprint(ctx, j.conn)
	if err != nil {
		return err
	}
	if findings := changes(j.state.job.Fingerprint, now); len(findings) > 0 {
		return fmt.Errorf("%w\nUndo these changes until contract, and repeat the step; or abort, and begin again with expand", inconsistent(findings))
	}
	return nil
}

// allObjects returns the objects of the plan, or nil if no column changes.
func (m *model) allObjects() *objects {
	if len(m.relations) == 0 {
		return nil
	}
	o := m.objects(m.relations...)
	o.Views = each(m.views, func(v *view) string { return v.Name })
	return o
}

// fingerprint describes the tables and the views in lines. It leaves out what belongs to the
// job.
func (o *objects) fingerprint(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
},
) ([]string, error) {
	return texts(ctx, db, fingerprintQuery, pgArray(o.Tables), pgArray(o.Columns), pgArray(o.Views))
}

// pgArray returns the text of a text[].
func pgArray(list []string) string {
	return "{" + strings.Join(each(list, func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}), ",") + "}"
}

// fingerprintQuery has the parameters OIDs of tables, columns that change, and views. An ACL
// is sorted, since the order of its entries has no meaning.
const fingerprintQuery = `
WITH tables AS (
	SELECT c.oid::regclass::text AS name, c.* FROM pg_class c WHERE c.oid = ANY ($1::text::oid[])
), columns AS (
	SELECT t.name || '.' || a.attname AS name, a.*, t.oid::text || '.' || a.attname = ANY ($2::text::text[]) AS changes
	FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname !~ '^rekey_'
), acl AS (
	SELECT o.kind || 'privilege ' || a.privilege_type || ' on ' || o.name || ' for ' || coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') || CASE WHEN a.is_grantable THEN ' with grant option' ELSE '' END AS line
	FROM (
		SELECT '' AS kind, name, coalesce(relacl, acldefault('r', relowner)) AS relacl FROM tables
		UNION ALL SELECT CASE WHEN changes THEN 'key ' ELSE '' END, 'column ' || name, attacl FROM columns
		UNION ALL SELECT 'view ', c.oid::regclass::text, coalesce(c.relacl, acldefault('r', c.relowner)) FROM pg_class c WHERE c.oid::regclass::text = ANY ($3::text::text[])
	) o, aclexplode(o.relacl) a
)
SELECT line FROM (
	SELECT 'table ' || t.name || ': ' || concat_ws(', ', 'options ' || t.reloptions::text, 'replica identity ' || t.relreplident::text, 'comment ' || obj_description(t.oid, 'pg_class')) AS line FROM tables t
	UNION ALL
	SELECT 'owner and row security of table ' || t.name || ': ' || concat_ws(', ', t.relowner::regrole, CASE WHEN t.relrowsecurity THEN 'row security' END, CASE WHEN t.relforcerowsecurity THEN 'forced row security' END) FROM tables t
	UNION ALL
	SELECT CASE WHEN c.changes THEN 'key ' ELSE '' END || 'column ' || c.name || ': ' || concat_ws(', ', CASE WHEN c.attnotnull THEN 'NOT NULL' END, 'statistics ' || CASE WHEN c.attstattarget >= 0 THEN c.attstattarget END,
		(SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(c.attoptions) o WHERE o LIKE 'n_distinct%'), 'comment ' || col_description(c.attrelid, c.attnum)) FROM columns c
	UNION ALL
	SELECT CASE WHEN c.changes THEN '` + typePrefix + `' ELSE 'type of column ' END || c.name || ': ' || concat_ws(', ', format_type(c.atttypid, c.atttypmod),
		CASE WHEN c.attidentity <> '' THEN 'identity ' || c.attidentity::text END, CASE WHEN c.attgenerated <> '' THEN 'generated' END, 'default ' || pg_get_expr(d.adbin, d.adrelid))
	FROM columns c LEFT JOIN pg_attrdef d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
	UNION ALL
	SELECT 'index ' || c.relname || ': ' || pg_get_indexdef(c.oid) || concat_ws(', ', '', CASE WHEN NOT i.indisvalid THEN 'invalid' END, CASE WHEN i.indisprimary THEN 'primary key' END,
		CASE WHEN i.indisclustered THEN 'clustered' END, CASE WHEN i.indisreplident THEN 'replica identity' END,
		(SELECT 'statistics ' || string_agg(a.attnum || ' ' || a.attstattarget, ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attstattarget >= 0), 'tablespace ' || s.spcname, 'comment ' || obj_description(c.oid, 'pg_class'))
	FROM tables t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.relname !~ '^rekey_'
	UNION ALL
	SELECT 'constraint ' || k.conname || ' of ' || k.conrelid::regclass || ': ' || CASE WHEN k.contype = 'f'
		THEN concat_ws(', ', 'foreign key to', k.confrelid::regclass, k.confdeltype, k.confupdtype, k.confmatchtype, cardinality(k.confdelsetcols), k.condeferrable, k.condeferred) -- its columns have other names
		ELSE pg_get_constraintdef(k.oid) END || concat_ws(', ', '', CASE WHEN NOT k.convalidated THEN 'not validated' END, 'comment ' || obj_description(k.oid, 'pg_constraint'))
	FROM pg_constraint k WHERE k.conrelid = ANY ($1::text::oid[]) AND k.contype <> 't' AND k.conname !~ '^rekey_'
	UNION ALL
	SELECT 'trigger ' || t.tgname || ' of ' || t.tgrelid::regclass || ': ' || pg_get_triggerdef(t.oid) || ', ' || t.tgenabled::text || concat_ws(', ', '', 'comment ' || obj_description(t.oid, 'pg_trigger'))
	FROM pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND NOT t.tgisinternal AND t.tgname !~ '` + ownTriggers + `'
	UNION ALL
	SELECT 'policy ' || p.polname || ' of ' || p.polrelid::regclass || ': ' || concat_ws(', ', p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) FROM pg_policy p WHERE p.polrelid = ANY ($1::text::oid[])
	UNION ALL
	SELECT 'statistics ' || s.stxname || ': ' || concat_ws(', ', s.stxnamespace::regnamespace, s.stxkind::text, s.stxrelid::regclass, (SELECT string_agg(a.attname, ', ' ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = s.stxrelid AND a.attnum = ANY (s.stxkeys)),
		pg_get_expr(s.stxexprs, s.stxrelid), 'owner ' || s.stxowner::regrole, 'target ' || CASE WHEN s.stxstattarget >= 0 THEN s.stxstattarget END, 'comment ' || obj_description(s.oid, 'pg_statistic_ext'))
	FROM pg_statistic_ext s WHERE s.stxrelid = ANY ($1::text::oid[])
	UNION ALL
	SELECT 'publication ' || p.pubname || ' of ' || r.prrelid::regclass || ': ' || concat_ws(', ', (SELECT string_agg(a.attname, ', ' ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::smallint[])), pg_get_expr(r.prqual, r.prrelid))
	FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = ANY ($1::text::oid[])
	UNION ALL
	SELECT 'view ' || c.oid::regclass || ': ' || concat_ws(', ', (SELECT string_agg(concat_ws(' ', a.attname, col_description(a.attrelid, a.attnum)), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
		'options ' || c.reloptions::text, 'owner ' || c.relowner::regrole, 'comment ' || obj_description(c.oid, 'pg_class')) FROM pg_class c WHERE c.relkind = 'v' AND c.oid::regclass::text = ANY ($3::text::text[])
	UNION ALL
	SELECT '` + queryPrefix + `view ' || c.oid::regclass || ': ' || pg_get_viewdef(c.oid) FROM pg_class c WHERE c.relkind = 'v' AND c.oid::regclass::text = ANY ($3::text::text[])
	UNION ALL
	SELECT line FROM acl
) x ORDER BY line`
