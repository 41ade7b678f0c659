package dbhealth

import (
	"context"
	"fmt"
	"time"
)

var partitionHorizon = Rule{
	ID: "partition-horizon", Area: "partitions",
	Means:  "no partition of a managed table covers the present, or the last one ends within an interval",
	Remedy: "`sortkey partitions run`, and check the job that runs it",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		tables, err := e.ManagedTables(ctx)
		if err == nil && len(tables) == 0 {
			e.add(OK, "", "managed tables", "none", "")
		}
		if err != nil {
			return err
		}
		return e.eachTable(ctx, func(t *ManagedTable) error {
			if err := e.ReadHorizon(ctx, t); err != nil {
				return err
			}
			remedy := e.sql("run sortkey partitions run regularly, or CALL $s.maintain_partitions()")
			switch {
			case !t.covered() && t.DefaultPartition != nil:
				e.add(Problem, t.Table, t.Table, "no partition covers the present: new rows go to the default partition", remedy)
			case !t.covered():
				e.add(Problem, t.Table, t.Table, "no partition covers the present: inserts fail", remedy)
			case !t.ahead:
				e.add(Problem, t.Table, t.Table, e.until(t)+", less than one interval ahead", remedy)
			default:
				e.add(OK, t.Table, t.Table, e.until(t), "")
			}
			return nil
		})
	},
}

// eachTable calls f for each managed table that the session may open. If the role can't read
// one, it adds a finding.
func (e *Examination) eachTable(ctx context.Context, f func(*ManagedTable) error) error {
	tables, err := e.ManagedTables(ctx)
	for _, t := range tables {
		if t.Skipped != "" {
			continue
		}
		if err := f(t); err != nil {
			if err := e.failTable(ctx, t.Table, t.Table, err); err != nil {
				return err
			}
		}
	}
	return err
}

// until describes the horizon of a table.
func (e *Examination) until(t *ManagedTable) string {
	until := t.Horizon.Infinite
	if until == "" {
		until = fmt.Sprintf("%s (%s)", t.Horizon.Format(time.DateTime+" UTC"), t.Horizon.From(e.serverNow()))
	}
	return fmt.Sprintf("partitions of %s until %s", t.Every, until)
}
