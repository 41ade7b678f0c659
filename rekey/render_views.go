package rekey

import (
	"strings"
)

// schema returns the quoted name of the view's schema.
func (v *view) schema() string { return strings.TrimSuffix(v.Name, "."+v.Plain) }

// createView renders the statements that create a view in a schema. The role gives it to its owner
// first, so that the owner grants the privileges.
func (m *model) createView(v *view, schema string, comments bool) []string {
	name := schema + "." + v.Plain
	sql := script("create view", values{"view": v, "name": name, "comments": comments})
	if schema == Schema {
		sql = append(sql, script("give", values{"name": name, "schema": Schema, "owner": v.Owner, "role": m.role})...)
	} else if v.Owner != m.role {
		sql = append(sql, "ALTER VIEW "+name+" OWNER TO "+v.Owner)
	}
	return append(sql, script("grant on a view", values{"view": v, "name": name, "revoke": revokeAll(name, len(v.Grants) > 0)})...)
}

// revokeAll renders a statement that revokes the privileges that a new view has by ALTER
// DEFAULT PRIVILEGES and, if owner is set, the privileges of its owner.
func revokeAll(name string, owner bool) string {
	return "DO " + body(query("revoke all", values{"name": name, "owner": owner}))
}
