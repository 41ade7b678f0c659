package dbhealth

import (
	"context"
	"fmt"
)

var keyAhead = Rule{
	ID: "key-ahead", Area: "generators",
	Means:  "a column has keys of the future: a clock was wrong, or a program with another epoch created them",
	Remedy: "correct the clock, or the layout of the program",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		g, err := e.generators(ctx)
		if err != nil {
			return err
		}
		return e.eachKey(ctx, sorts, func(k key) error {
			n, err := e.newest(ctx, k)
			now := e.serverNow()
			if err != nil || n.all == nil || n.all.Sub(now) <= largeSkew {
				return err
			}
			if last, known := g.last[k.format]; k.generated && known && n.own != nil && n.own.Sub(now) > largeSkew && n.own.Sub(last) > largeSkew {
				return nil // generator-behind
			}
			detail := fmt.Sprintf("has a key of %s (%s): a clock was wrong", stamp(*n.all), distance(*n.all, now))
			remedy := "find the program that generated it, and correct its clock; until that time, no new key sorts after this one"
			if n.all.Sub(now) > 30*day && (k.format == "snowflake" || k.format == "snowflake_si") {
				detail += ", or a program with another epoch created it"
				remedy = fmt.Sprintf("compare the layouts of your programs with the one of the database, %s; if that is the same, %s", e.layoutOf(k.format), remedy)
			}
			e.add(Problem, k.table, k.subject(), detail, remedy)
			return nil
		})
	},
}

// layoutOf returns the layout of a format, as the flags of the command.
func (e *Examination) layoutOf(format string) string {
	l, si := e.Config.Snowflake, e.Config.SnowflakeSI
	if format == "snowflake_si" {
		return layoutFlags(si.BaseClock, si.MachineBits, si.IndexBits)
	}
	return layoutFlags(l.Epoch, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}
