package rekey

import (
	"strings"
)

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
	return "DO " + body(query("revoke all", values{"name": name, "owner": owner}))
}
