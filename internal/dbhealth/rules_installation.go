package dbhealth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
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

var migrationMissing = Rule{
	ID: "migration-missing", Area: "installation",
	Means:  "migrations of this version are not installed, or, as a warning, the database has newer ones",
	Remedy: "`sortkey migrate up`, or your own tool; upgrade the command",
	needs:  []string{usage},
	check:  checkMigrations,
}

// wanted returns the layouts of the options, or the ones of the installation.
func (e *Examination) wanted() migrations.Config {
	c := e.o.Config
	if c.Snowflake == (idtype.SnowflakeLayout{}) {
		c.Snowflake = e.Config.Snowflake
	}
	if c.SnowflakeSI == (idtype.SnowflakeSILayout{}) {
		c.SnowflakeSI = e.Config.SnowflakeSI
	}
	return c
}

// checked returns the error of [migrations.Check], on which three rules rely.
func (e *Examination) checked(ctx context.Context) error {
	err, _ := recall(e, "check", func() (error, error) { return migrations.Check(ctx, e.db, e.wanted()), nil })
	return err
}

func checkMigrations(ctx context.Context, e *Examination) error {
	var installed, newest int
	if err := e.row(ctx, []any{&installed, &newest}, `SELECT count(*), coalesce(max(version), 0) FROM $s.revision`); err != nil {
		return err
	}
	known, err := migrations.List(e.Config)
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("%d of %d migrations", installed, len(known))
	err = e.checked(ctx)
	switch {
	case newest > len(known):
		e.add(Warning, "", e.installation(), fmt.Sprintf("migrations up to %d; this command knows %d", newest, len(known)), "upgrade the command")
	case errors.Is(err, migrations.ErrOutdated):
		problem, remedy := Diagnose(err, e.Config.Schema)
		e.outdated = remedy
		e.add(Problem, "", e.installation(), detail+"; "+e.withoutSchema(problem), remedy)
	case err == nil, errors.Is(err, migrations.ErrLayout):
		e.add(OK, "", e.installation(), detail, "")
	default:
		problem, remedy := Diagnose(err, e.Config.Schema)
		if problem == "" {
			return err
		}
		e.add(Problem, "", e.installation(), cmp.Or(e.withoutSchema(problem), err.Error()), remedy)
	}
	return nil
}

var layoutDiffers = Rule{
	ID: "layout-differs", Area: "installation",
	Means:  "the layouts of the installation differ from the flags, or from the program that calls `migrations.Check`",
	Remedy: "give programs the layouts of the database",
	check: func(ctx context.Context, e *Examination) error {
		if err := e.checked(ctx); errors.Is(err, migrations.ErrLayout) {
			problem, remedy := Diagnose(err, e.Config.Schema)
			e.add(Problem, "", e.installation(), e.withoutSchema(problem), remedy)
			return nil
		}
		l, si := e.Config.Snowflake, e.Config.SnowflakeSI
		e.add(OK, "", "snowflake", layoutFlags(l.Epoch, l.DatacenterBits, l.WorkerBits, l.SequenceBits), "")
		if si != (idtype.SnowflakeSILayout{}) {
			e.add(OK, "", "snowflake-si", layoutFlags(si.BaseClock, si.MachineBits, si.IndexBits), "")
		}
		return nil
	},
}

// layoutFlags returns the flags that select a layout.
func layoutFlags(epoch time.Time, widths ...int) string {
	layout := "2006-01-02T15:04:05.999Z07:00"
	if epoch = epoch.UTC(); epoch.Equal(epoch.Truncate(day)) {
		layout = time.DateOnly
	}
	return fmt.Sprintf("--epoch %s --bits %s", epoch.Format(layout), strings.Trim(strings.ReplaceAll(fmt.Sprint(widths), " ", "/"), "[]"))
}

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

var databaseCopied = Rule{
	ID: "database-copied", Area: "installation",
	Means:  "the database was copied, restored from a dump, promoted or recovered since it used its node numbers: it and the other one can create the same IDs",
	Remedy: "`SELECT sortkey.confirm_original()` if this one continues alone, or `sortkey.reserve_for_copy` there and `sortkey.confirm_copy` here ([copies](operations.md#copies))",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		type row struct{ problem, remedy string }
		list, err := collect(ctx, e, func(r *row) []any { return []any{&r.problem, &r.remedy} }, `SELECT problem, remedy FROM $s.database_problems`)
		for _, r := range list {
			e.add(Warning, "", "database "+e.report.Server.Database, r.problem, r.remedy)
		}
		return err
	},
}
