package dbhealth

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

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
