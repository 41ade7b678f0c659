package dbhealth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

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
