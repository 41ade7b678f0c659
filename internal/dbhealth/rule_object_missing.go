package dbhealth

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/sortkey/sortkey/migrations"
)

var objectMissing = Rule{
	ID: "object-missing", Area: "installation",
	Means:  "a table, view, function or domain of the installation doesn't exist",
	Remedy: "restore it, or create it again with its statements from `sortkey migrate print`",
	check:  checkObjects,
}

// created matches the statements that create the objects of an installation.
var created = regexp.MustCompile(`(?m)^CREATE (TABLE|VIEW|SEQUENCE|DOMAIN|FUNCTION|PROCEDURE) ([a-z0-9_]+)\.([a-z0-9_]+)`)

// checkObjects compares the catalog with the migrations. Missing migrations are another rule's
// matter.
func checkObjects(ctx context.Context, e *Examination) error {
	if errors.Is(e.checked(ctx), migrations.ErrOutdated) {
		return nil
	}
	list, err := migrations.List(e.Config)
	if err != nil {
		return err
	}
	var objects []string
	for _, m := range list {
		for _, object := range created.FindAllStringSubmatch(m.Up, -1) {
			objects = append(objects, strings.ToLower(object[1])+" "+object[2]+" "+object[3])
		}
	}
	missing, err := e.texts(ctx, `
		SELECT DISTINCT format('%s %s.%s', o.kind, o.schema, o.name)
		FROM string_to_table($1, ',') t, LATERAL (SELECT split_part(t, ' ', 1), split_part(t, ' ', 2), split_part(t, ' ', 3)) o (kind, schema, name)
		WHERE NOT CASE
			WHEN o.kind IN ('function', 'procedure') THEN EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = o.schema AND p.proname = o.name)
			WHEN o.kind = 'domain' THEN EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = o.schema AND t.typname = o.name)
			ELSE EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = o.schema AND c.relname = o.name) END
		ORDER BY 1`, strings.Join(objects, ","))
	for _, object := range missing {
		e.add(Problem, "", e.installation(), object+" is missing", remedyMissing)
	}
	return err
}
