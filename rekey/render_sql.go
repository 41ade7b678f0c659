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
