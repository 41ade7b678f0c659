package dbhealth

import "context"

var partitionSkipped = Rule{
	ID: "partition-skipped", Area: "partitions",
	Means:  "a managed table, or one of its partitions, belongs to a role that the session [doesn't trust](security.md#administrators): no rule opens it",
	Remedy: "none is needed; to examine the table, connect as its owner",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		tables, err := e.ManagedTables(ctx)
		for _, t := range tables {
			if t.Skipped != "" {
				e.skip(t.Table, t.Skipped)
			}
		}
		return err
	},
}
