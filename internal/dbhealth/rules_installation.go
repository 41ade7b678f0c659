package dbhealth

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

func checkInstalled(ctx context.Context, e *Examination) error {
	config, err := migrations.Installed(ctx, e.db, e.Config.Schema)
	if err == nil {
		e.Config = config
		return nil
	}
	detail, remedy := e.diagnose(err)
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
	e.add(Problem, "", e.installation(), detail, remedy)
	return nil
}

// installation is the subject of findings about the installation.
func (e *Examination) installation() string { return "schema " + e.Config.Schema }

// diagnose is [Diagnose] for a finding, whose subject is the schema.
func (e *Examination) diagnose(err error) (problem, remedy string) {
	problem, remedy = Diagnose(err, e.Config.Schema)
	return strings.TrimPrefix(problem, `schema "`+e.Config.Schema+`": `), remedy
}

// checked returns the error of [migrations.Check], on which three rules rely. A layout that the
// options don't have is the one of the installation.
func (e *Examination) checked(ctx context.Context) error {
	err, _ := recall(e, "check", func() (error, error) {
		c := e.o.Config
		if c.Snowflake == (idtype.SnowflakeLayout{}) {
			c.Snowflake = e.Config.Snowflake
		}
		if c.SnowflakeSI == (idtype.SnowflakeSILayout{}) {
			c.SnowflakeSI = e.Config.SnowflakeSI
		}
		return migrations.Check(ctx, e.db, c), nil
	})
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
	problem, remedy := e.diagnose(err)
	switch {
	case newest > len(known):
		e.add(Warning, "", e.installation(), fmt.Sprintf("migrations up to %d; this command knows %d", newest, len(known)), "upgrade the command")
	case err == nil, errors.Is(err, migrations.ErrLayout):
		e.add(OK, "", e.installation(), detail, "")
	case errors.Is(err, migrations.ErrOutdated):
		e.outdated = remedy
		e.add(Problem, "", e.installation(), detail+"; "+problem, remedy)
	case problem != "":
		e.add(Problem, "", e.installation(), problem, remedy)
	default:
		return err
	}
	return nil
}

func checkLayouts(ctx context.Context, e *Examination) error {
	if err := e.checked(ctx); errors.Is(err, migrations.ErrLayout) {
		problem, remedy := e.diagnose(err)
		e.add(Problem, "", e.installation(), problem, remedy)
		return nil
	}
	if e.Config.Snowflake == (idtype.SnowflakeLayout{}) { // unreadable, as checkInstalled has reported
		return nil
	}
	e.add(OK, "", "snowflake", e.layoutOf("snowflake"), "")
	if e.Config.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		e.add(OK, "", "snowflake-si", e.layoutOf("snowflake_si"), "")
	}
	return nil
}

// layoutOf returns the layout of a format, as the flags of the command.
func (e *Examination) layoutOf(format string) string {
	l, si := e.Config.Snowflake, e.Config.SnowflakeSI
	if format == "snowflake_si" {
		return layoutFlags(si.BaseClock, si.MachineBits, si.IndexBits)
	}
	return layoutFlags(l.Epoch, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

// layoutFlags returns the flags that select a layout.
func layoutFlags(epoch time.Time, widths ...int) string {
	layout := "2006-01-02T15:04:05.999Z07:00"
	if epoch = epoch.UTC(); epoch.Equal(epoch.Truncate(day)) {
		layout = time.DateOnly
	}
	return fmt.Sprintf("--epoch %s --bits %s", epoch.Format(layout), strings.Trim(strings.ReplaceAll(fmt.Sprint(widths), " ", "/"), "[]"))
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

func checkCopied(ctx context.Context, e *Examination) error {
	_, err := e.addRows(ctx, Warning, `SELECT '', 'database ' || current_database(), problem, remedy FROM $s.database_problems`)
	return err
}
