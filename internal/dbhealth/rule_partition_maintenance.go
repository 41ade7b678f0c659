package dbhealth

import (
	"context"
	"time"
)

var partitionMaintenance = Rule{
	ID: "partition-maintenance", Area: "partitions",
	Means:  "the last maintenance of a managed table failed, or, as a warning, skipped a step or was long ago",
	Remedy: "correct the cause, and `sortkey partitions run`",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		return e.eachTable(ctx, func(t *ManagedTable) error {
			var last *time.Time
			var late bool
			var outcome, failure string
			err := e.row(ctx, []any{&last, &late, &outcome, &failure}, `
				WITH l AS (
					SELECT l.* FROM $s.partition_log l WHERE l.parent_table = $1
				), runs AS (
					SELECT l.ended_at, row_number() OVER (ORDER BY l.ended_at DESC) AS number FROM l WHERE l.action = 'maintain'
				)
				SELECT r.ended_at, coalesce(r.ended_at < clock_timestamp() - greatest($2::text::interval, interval '1 day'), false),
					coalesce(f.outcome, ''), concat(concat_ws(' ', f.action, f.partition), ': ', f.problem)
				FROM (SELECT) x LEFT JOIN runs r ON r.number = 1
					LEFT JOIN LATERAL (
						SELECT * FROM l WHERE l.outcome <> 'done' AND l.ended_at > coalesce((SELECT b.ended_at FROM runs b WHERE b.number = 2), '-infinity')
						ORDER BY l.outcome = 'failed' DESC, l.ended_at DESC LIMIT 1
					) f ON true`, t.name, t.Every)
			switch {
			case err != nil:
				return err
			case outcome == "failed":
				e.add(Problem, t.Table, t.Table, "the last maintenance of a table with this name failed at step "+failure, "correct the cause, and run sortkey partitions run")
			case outcome != "":
				e.add(Warning, t.Table, t.Table, "the last maintenance of a table with this name skipped step "+failure, "run sortkey partitions run while no long transaction uses the table")
			case late:
				e.add(Warning, t.Table, t.Table, "the last maintenance was "+distance(*last, e.serverNow()), "run sortkey partitions run every hour or so")
			case last != nil:
				e.add(OK, t.Table, t.Table, "the last maintenance was "+distance(*last, e.serverNow()), "")
			}
			return nil
		})
	},
}
