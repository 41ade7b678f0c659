package rekey

import (
	"embed"
	"strings"
	"text/template"
)

// The SQL of this package is in sql/: queries of the catalog in catalog.sql and inspect.sql, the
// bodies of functions in functions.sql, the rest of the plan in plan.sql, and the queries of
// running steps in run.sql. TestPlan shows a whole plan in testdata/plan.sql.
//
//go:embed sql/*.sql
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"literal": literal, "join": strings.Join, "ownTriggers": func() string { return ownTriggers },
	"next":     func() string { return "\x00" },
	"exchange": func(before, visible, hidden string) renaming { return renaming{before + " ", "", visible, hidden} },
	"exchangeIndex": func(schema, visible, hidden string) renaming {
		return renaming{"ALTER INDEX " + schema + ".", " RENAME", visible, hidden}
	},
	"ourTriggers": func() []string {
		return []string{firstInsertTrigger, firstUpdateTrigger, insertTrigger, updateTrigger, deleteTrigger}
	},
}).ParseFS(files, "sql/*.sql"))

// values are the values of a template, by name.
type values map[string]any

// query renders the template of a query or a part of one.
func query(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("rekey: " + err.Error()) // the templates of a plan don't depend on the tables
	}
	return b.String()
}

// script renders the statements of a script. No text of Postgres has the character that
// separates them.
func script(name string, data any) []string {
	return strings.Split(query(name, data), "\x00")[1:]
}

// These methods are for scripts.

func (r *relation) Changed() []*column { return r.columns }
func (r *relation) Others() []string   { return r.others }
func (c *column) Fresh() string        { return c.fresh }
func (c *column) NewType() string      { return c.key.format.sqlType }
func (c *column) NotNullCheck() string { return ident(newName("%s_not_null", c.Name)) }
func (x *index) Fresh() string         { return ident(x.fresh) }
func (c *check) Fresh() string         { return freshConstraint(c.Name) }
func (f *foreignKey) Fresh() string    { return freshConstraint(f.Name) }
func (n *notNull) Fresh() string       { return freshConstraint(n.Name) }

// Loosened reports whether the foreign key on the columns with names of rekey's is deferred, unlike
// the other one: SET CONSTRAINTS knows only the other one's name.
func (f *foreignKey) Loosened() bool {
	return f.Deferrable && !strings.Contains(f.Definition, deferred)
}

// NewDefault returns the default of the key after contract, or "".
func (c *column) NewDefault() string {
	if !c.root || !c.key.hasDefault() {
		return ""
	}
	return c.key.newDefault()
}

// A renaming is an exchange of two quoted names. Hidden begins with rekey_.
type renaming struct{ before, after, Visible, Hidden string }

// Rename renders a statement without the new name.
func (r renaming) Rename(name string) string { return r.before + name + r.after }

// On renders a GRANT for an object, or for a column of it.
func (g grant) On(object, column string) string {
	privilege, option := g.Privilege, ""
	if column != "" {
		privilege += " (" + column + ")"
	}
	if g.Option {
		option = " WITH GRANT OPTION"
	}
	return "GRANT " + privilege + " ON " + object + " TO " + g.Role + option
}

// Names returns the quoted names of the columns of a view.
func (v *view) Names() []string {
	return each(v.Columns, func(c struct{ Column, Text, Default string }) string { return c.Column })
}

func (v *view) Query() string { return strings.TrimSuffix(v.Definition, ";") }
