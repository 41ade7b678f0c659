package dbhealth

import (
	"context"
	"fmt"
)

var generatorBehind = Rule{
	ID: "generator-behind", Area: "generators",
	Means:  "a table has keys with the node number of a default that are newer than the last ID of its `next_` function: its sequence was set back, or another generator uses the number",
	Remedy: "`sortkey audit`; reserve another number for the defaults",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		g, err := e.generators(ctx)
		if err != nil {
			return err
		}
		generated := func(k key) bool { return k.generated && sorts(k) }
		return e.eachKey(ctx, generated, func(k key) error {
			n, err := e.newest(ctx, k)
			last, known := g.last[k.format]
			if err != nil || !known || n.own == nil || n.own.Sub(last) <= largeSkew {
				return err
			}
			if now := e.serverNow(); n.own.Sub(now) > largeSkew {
				e.add(Problem, k.table, k.subject(), fmt.Sprintf("has a key of %s (%s) with the node number of a default, and the last ID of next_%s is of %s: the default repeats keys at that time",
					stamp(*n.own), distance(*n.own, now), k.format, stamp(last)), "reserve another node number for the defaults before that time")
				return nil
			}
			e.add(Warning, k.table, k.subject(), fmt.Sprintf("has a key of %s with the node number of a default, and the last ID of next_%s is of %s: its sequence was set back, or another generator uses the number",
				stamp(*n.own), k.format, stamp(last)), e.sql("run sortkey audit "+k.table+" to find duplicates, and never set or restore $s_internal."+k.format+"_clock by itself; the next ID is of the present again"))
			return nil
		})
	},
}
