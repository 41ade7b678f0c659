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

// Installations is a query for the oid and the nspname of the schemas with an installation.
const Installations = `SELECT n.oid, n.nspname FROM pg_namespace n
	WHERE (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('revision', 'layout', 'node_lease')) = 3`

// OwnSchemas is a query for the names of the schemas of installations, and of a rekey, whose tables
// aren't the user's.
const OwnSchemas = `SELECT own FROM (` + Installations + `) i, unnest(ARRAY[i.nspname::text, i.nspname || '_internal']) own
	UNION ALL SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = '` + rekeySchema + `' AND c.relname = 'rekey_state'`

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
		detail, remedy = "sortkey is not installed", "run "+e.command("migrate up")
		others, err := e.texts(ctx, `SELECT i.nspname FROM (`+Installations+`) i ORDER BY 1`)
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
	l, si := e.Config.Snowflake, e.Config.SnowflakeSI
	id, err := l.Compose(idtype.SnowflakeParts{Time: l.Epoch.Add(sampleAge), Worker: 1})
	if err == nil {
		err = e.checkFunctions(ctx, "snowflake", l.Epoch, int64(id), 1<<l.SequenceBits)
	}
	if err != nil || si == (idtype.SnowflakeSILayout{}) {
		return err
	}
	e.add(OK, "", "snowflake-si", e.layoutOf("snowflake_si"), "")
	sample, err := si.Compose(idtype.SnowflakeSIParts{Time: si.BaseClock.Add(sampleAge), Machine: 1})
	if err != nil {
		return err
	}
	return e.checkFunctions(ctx, "snowflake_si", si.BaseClock, int64(sample), 1<<si.IndexBits)
}

// sampleAge is the time since the epoch in the IDs that checkFunctions passes.
const sampleAge = 12345678 * time.Millisecond

// checkFunctions compares functions of a format with its layout, by an ID of sampleAge and node number 1.
func (e *Examination) checkFunctions(ctx context.Context, format string, epoch time.Time, id, node int64) error {
	var wrong string
	err := e.row(ctx, []any{&wrong}, strings.ReplaceAll(`
		SELECT coalesce(string_agg(name, ', '), '') FROM (VALUES
			('FORMAT_time', extract(epoch FROM $s.FORMAT_time($1)) * 1000 = $2),
			('FORMAT_node', $s.FORMAT_node($1) = 1),
			('FORMAT_parts', (SELECT extract(epoch FROM p."time") * 1000 FROM $s.FORMAT_parts($1) p) = $2),
			('FORMAT_floor', $s.FORMAT_floor(to_timestamp($2 / 1000.0)) = $1 - $3)) f (name, ok)
		WHERE ok IS NOT TRUE`, "FORMAT", format), id, epoch.Add(sampleAge).UnixMilli(), node)
	if Missing(err) {
		return nil // checkObjects names it
	}
	if err == nil && wrong != "" {
		e.add(Problem, "", e.installation(), "functions have another layout than the installation: "+wrong, "replace them with their statements from "+e.printCommand())
	}
	return err
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

// dropped matches the statements that drop the objects of an installation, with the arguments of
// functions. An installation without a base clock lacks the ones that may not exist.
var dropped = regexp.MustCompile(`(?m)^DROP (TABLE|VIEW|SEQUENCE|DOMAIN|FUNCTION|PROCEDURE) (IF EXISTS )?([a-z0-9_]+)\.([a-z0-9_]+)(?:\(([a-z0-9_, \[\]]*)\))?;$`)

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
		for _, object := range dropped.FindAllStringSubmatch(m.Down, -1) {
			if object[2] == "" || e.Config.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
				objects = append(objects, strings.ToLower(object[1])+"/"+strings.Join(object[3:], "/"))
			}
		}
	}
	missing, err := e.texts(ctx, `
		SELECT format(CASE WHEN o.routine THEN '%s %s.%s(%s)' ELSE '%s %s.%s' END, o.kind, o.schema, o.name, o.arguments)
		FROM string_to_table($1, E'\n') t, LATERAL (SELECT split_part(t, '/', 1), split_part(t, '/', 2), split_part(t, '/', 3), split_part(t, '/', 4), t ~ '^(function|procedure)/') o (kind, schema, name, arguments, routine)
		WHERE NOT CASE
			WHEN o.routine THEN EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = o.schema AND p.proname = o.name
				AND ARRAY(SELECT unnest(p.proargtypes)) = ARRAY(SELECT to_regtype(a)::oid FROM string_to_table(o.arguments, ', ') a))
			WHEN o.kind = 'domain' THEN EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = o.schema AND t.typname = o.name)
			ELSE EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = o.schema AND c.relname = o.name) END
		ORDER BY 1`, strings.Join(objects, "\n"))
	for _, object := range missing {
		e.add(Problem, "", e.installation(), object+" is missing", e.remedyMissing())
	}
	return err
}

func checkCopied(ctx context.Context, e *Examination) error {
	_, err := e.addRows(ctx, Warning, `SELECT '', 'database ' || current_database(), problem, remedy FROM $s.database_problems`)
	return err
}
