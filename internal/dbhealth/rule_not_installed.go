package dbhealth

import (
	"context"
	"errors"
	"strings"

	"github.com/sortkey/sortkey/migrations"
)

// It runs in each examination: the other rules need the layouts.
var notInstalled = Rule{
	ID: "not-installed", Area: "installation",
	Means:  "the schema has no installation, or one whose tables are empty or unknown",
	Remedy: "`sortkey migrate up`, or the right `--schema`; restore the data",
	needs:  []string{usage},
	check:  checkInstalled,
}

func checkInstalled(ctx context.Context, e *Examination) error {
	config, err := migrations.Installed(ctx, e.db, e.Config.Schema)
	if err == nil {
		e.Config = config
		return nil
	}
	detail, remedy := Diagnose(err, e.Config.Schema)
	if detail == "" {
		return err
	}
	if errors.Is(err, migrations.ErrNotInstalled) {
		detail, remedy = "sortkey is not installed", RemedyUp
		others, err := e.texts(ctx, `SELECT n.nspname FROM pg_namespace n
			WHERE (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('revision', 'layout', 'node_lease')) = 3 ORDER BY 1`)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			remedy = "pass --schema " + strings.Join(others, " or --schema ")
		}
	}
	e.absent = true
	e.add(Problem, "", e.installation(), e.withoutSchema(detail), remedy)
	return nil
}

// installation is the subject of findings about the installation.
func (e *Examination) installation() string { return "schema " + e.Config.Schema }

// withoutSchema removes the subject from the text of an error of package migrations.
func (e *Examination) withoutSchema(detail string) string {
	return strings.TrimPrefix(detail, `schema "`+e.Config.Schema+`": `)
}
