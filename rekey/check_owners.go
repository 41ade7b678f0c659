package rekey

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
)

// A step updates rows and plans views, which runs triggers, constraints and functions of the
// tables' owner with the rights of the session. So a session must trust the owner of every table
// and view that a step opens, and works as the role of that owner. What it creates belongs to
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

// checkOwners adds a problem for each table and view that a step must not open, and reports
// whether there is none. Only the catalog has been read so far.
func (m *model) checkOwners(ctx context.Context, tx *sql.Tx) (trusted bool, err error) {
	oids := append(each(m.relations, func(r *relation) string { return fmt.Sprint(r.OID) }), each(m.views, func(v *view) string { return fmt.Sprint(v.OID) })...)
	findings, err := untrusted(ctx, tx, oids)
	for _, f := range findings {
		m.problem(f.Object, "%s, whose code would run with your rights",
			"connect as that role, give the object or its schema to the owner of the tables, or drop it until contract", f.Reason)
	}
	return len(findings) == 0, err
}

// untrusted returns the tables and views of untrusted roles, and the triggers of tables that
// call a function of such a role: the owner of a table lets others create them by TRIGGER.
func untrusted(ctx context.Context, tx *sql.Tx, oids []string) ([]trust.Finding, error) {
	list := "'{" + strings.Join(oids, ",") + "}'::pg_catalog.oid[]"
	tables, err := trust.FindTables(ctx, tx, trust.Tables(list))
	if err != nil {
		return nil, err
	}
	findings, err := trust.Find(ctx, tx, trust.Triggers(list))
	for _, oid := range slices.Sorted(maps.Keys(tables)) {
		findings = append(findings, tables[oid])
	}
	return findings, err
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
		visible("column", v.Names()...)
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
