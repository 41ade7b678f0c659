package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// A step updates rows and plans views, which runs triggers, constraints and functions of the
// tables' owner with the rights of the session. So a session must trust the owner of every
// object that a step uses, and works as the role of that owner. What it creates belongs to
// the owner, too. Superusers trust only superusers, and keep their role.

// asOwner makes a transaction act as the owner of the first table, if the session trusts it.
// It reports whether the session does. The role is the session's if it is a superuser.
func (m *model) asOwner(ctx context.Context, tx *sql.Tx) (trusted bool, err error) {
	i := slices.IndexFunc(m.keys, func(k *key) bool { return k.root != nil })
	if i < 0 {
		return true, nil // no table was found, which is a problem
	}
	if trusted, err = m.checkOwners(ctx, tx); err != nil || !trusted {
		return false, err
	}
	var owner string
	err = tx.QueryRowContext(ctx, `SELECT CASE WHEN u.rolsuper THEN current_user ELSE pg_catalog.pg_get_userbyid(c.relowner) END
		FROM pg_catalog.pg_class c, pg_catalog.pg_roles u WHERE c.oid = $1::text::oid AND u.rolname = current_user`, fmt.Sprint(m.keys[i].root.rel.OID)).Scan(&owner)
	if err != nil {
		return false, err
	}
	m.owner = owner
	_, err = tx.ExecContext(ctx, "SELECT pg_catalog.set_config('role', $1::text, true)", owner)
	return true, roleError(err, owner)
}

// roleError names the remedy if a session can't act as a role.
func roleError(err error, role string) error {
	if sqlState(err) == "42501" || sqlState(err) == "22023" {
		return fmt.Errorf("act as %q, the owner of the tables: %w; connect as that role", role, err)
	}
	return err
}

// checkOwners adds a problem for each object of an untrusted role that a step would run or
// evaluate, and reports whether there is none. Only the catalog has been read so far.
func (m *model) checkOwners(ctx context.Context, tx *sql.Tx) (trusted bool, err error) {
	oids := append(each(m.relations, func(r *relation) string { return fmt.Sprint(r.OID) }), each(m.views, func(v *view) string { return fmt.Sprint(v.OID) })...)
	findings, err := untrustedTables(ctx, tx, oids)
	for _, f := range findings {
		m.problem(f.Object, "belongs to role %s, and its code would run with your rights",
			"connect as that role, give the object to the owner of the tables, or drop it until contract", f.Reason)
	}
	return len(findings) == 0, err
}

func untrustedTables(ctx context.Context, tx *sql.Tx, oids []string) ([]trust.Finding, error) {
	return trust.Find(ctx, tx, trust.Tables("'{"+strings.Join(oids, ",")+"}'::pg_catalog.oid[]"))
}

// checkVisible adds a problem for each name with control characters. They could forge lines
// of a report, or change a terminal.
func (m *model) checkVisible() {
	visible := func(kind string, names ...string) {
		for _, name := range names {
			if shown := trust.Visible(name); shown != name {
				m.problem(kind+" "+shown, "has a name with control characters", "rename it")
			}
		}
	}
	for _, r := range m.relations {
		visible("table", r.Name)
		visible("column", r.others...)
		for _, c := range r.columns {
			visible("column", c.Quoted)
		}
	}
	for _, v := range m.views {
		visible("view", v.Name)
		visible("column", v.columns()...)
	}
	visible("index", each(m.indexes, func(x *index) string { return x.Name })...)
	visible("constraint", each(m.foreignKeys, func(f *foreignKey) string { return f.Name })...)
	visible("constraint", each(m.checks, func(c *check) string { return c.Name })...)
	visible("statistics", each(m.statistics, func(s *statistic) string { return s.Name })...)
	visible("trigger", each(m.triggers, func(t *trigger) string { return t.Name })...)
}

// checkExpression returns the reason why a text isn't a single SQL expression that stays
// inside the parentheses around it, or "".
func checkExpression(text string) string {
	depth := 0
	for _, t := range tokens(text) {
		quoted := len(t) > 1 && (strings.HasSuffix(t, "'") || strings.HasSuffix(t, `"`))
		switch {
		case t == "(":
			depth++
		case t == ")":
			depth--
		case quoted && !strings.Contains(t, `\`): // a name or a text
		case quoted, t == ";", t == "'", t == `"`, t == "$", t == `\`, strings.Contains(t, "--"), strings.Contains(t, "/*"):
			return "contains " + strings.TrimSpace(t)
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return "has unbalanced parentheses"
	}
	return ""
}

// protect renders a statement that revokes the privileges on a job's schema, tables and
// functions that other roles have by ALTER DEFAULT PRIVILEGES: the tables have the plan, and
// the functions the rights of their owner.
func protect(schema string) string {
	return "DO " + body(strings.ReplaceAll(`
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = '{schema}'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = '{schema}'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
`, "{schema}", schema))
}

// checkJob returns [migrations.ErrUntrusted] if an untrusted role could have written the plan
// of a job, or the code that its step runs.
func checkJob(ctx context.Context, db trust.Beginner, schema string, tables []string) error {
	var findings []trust.Finding
	err := trust.Read(ctx, db, func(tx *sql.Tx) (err error) {
		findings, err = trust.Find(ctx, tx, trust.Schemas([]string{schema}, nil))
		if err == nil && len(findings) == 0 && len(tables) > 0 {
			findings, err = untrustedTables(ctx, tx, tables)
			findings = trust.Owners(findings)
		}
		return err
	})
	if err != nil || len(findings) == 0 {
		return err
	}
	return fmt.Errorf("%s (%s); connect as the role that ran expand, or, if schema %s isn't yours, drop it: %w", trust.List(findings), trust.Rule, schema, migrations.ErrUntrusted)
}

// jobOwner returns the role that a session acts as in a step: that of the plan's owner, or
// the session's if it is a superuser.
func jobOwner(ctx context.Context, conn *sql.Conn, schema, fallback string) (string, error) {
	var owner sql.NullString
	err := conn.QueryRowContext(ctx, `SELECT CASE WHEN u.rolsuper THEN current_user ELSE (SELECT pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relname = 'rekey_state') END FROM pg_catalog.pg_roles u WHERE u.rolname = current_user`, schema).Scan(&owner)
	return cmp.Or(owner.String, fallback), err
}
