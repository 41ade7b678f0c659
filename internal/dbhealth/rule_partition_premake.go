package dbhealth

import (
	"context"
	"fmt"
)

var partitionPremake = Rule{
	ID: "partition-premake", Area: "partitions",
	Means:  "half of the partitions ahead are missing: the maintenance doesn't run often enough",
	Remedy: "`sortkey partitions run` every hour or so",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		return e.eachTable(ctx, func(t *ManagedTable) error {
			if e.ReadHorizon(ctx, t) != nil || !t.covered() || !t.ahead {
				return nil // partition-horizon
			}
			if err := e.ReadSteps(ctx, t); err != nil {
				return err
			}
			if missing := t.Steps["create"]; missing*2 >= t.Premake && missing > 0 {
				e.add(Warning, t.Table, t.Table, fmt.Sprintf("%s; %d of %d partitions ahead are missing", e.until(t), missing, t.Premake), e.sql("run sortkey partitions run regularly, or CALL $s.maintain_partitions()"))
			}
			return nil
		})
	},
}
