package rekey

import (
	"strings"
)

// schema returns the quoted name of the view's schema.
func (v *view) schema() string { return strings.TrimSuffix(v.Name, "."+v.Plain) }

// create renders the statements that create the view under a name.
func (v *view) create(name string, comments bool) []string {
	return script("create view", values{"view": v, "name": name, "comments": comments, "revoke": revokeAll(name, len(v.Grants) > 0)})
}

// revokeAll renders a statement that revokes the privileges that a new view has by ALTER
// DEFAULT PRIVILEGES and, if owner is set, the privileges of its owner.
func revokeAll(name string, owner bool) string {
	return "DO " + body(query("revoke all", values{"name": name, "owner": owner}))
}
