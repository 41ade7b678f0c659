package dbhealth

import (
	"context"
	"fmt"
)

var citusWorker = Rule{
	ID: "citus-worker", Area: "citus",
	Means:  "a worker of Citus has no node number, so defaults fail there",
	Remedy: "reserve a number, and set `sortkey.node_GROUP` of the database",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		if e.report.Server.Citus == nil {
			return nil
		}
		type worker struct{ setting, host, database string }
		workers, err := collect(ctx, e, func(w *worker) []any { return []any{&w.setting, &w.host, &w.database} }, `
			SELECT '$s.node_' || n.groupid, n.nodename, quote_ident(current_database()) FROM pg_dist_node n
			WHERE n.groupid > 0 AND n.noderole = 'primary' AND n.isactive AND coalesce(current_setting('$s.node_' || n.groupid, true), '') = ''
				AND EXISTS (SELECT FROM $s.node_defaults f WHERE f.from_setting)
			ORDER BY n.groupid`)
		for _, w := range workers {
			e.add(Warning, "", w.setting, fmt.Sprintf("not set: worker %s has no node number, so defaults fail there", w.host),
				fmt.Sprintf("reserve a number N, and run ALTER DATABASE %s SET %s = N and SELECT * FROM run_command_on_workers('SELECT %s.prepare_citus_worker()')", w.database, w.setting, e.Config.Schema))
		}
		return err
	},
}
