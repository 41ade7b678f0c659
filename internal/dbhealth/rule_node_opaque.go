package dbhealth

import "context"

var nodeOpaque = Rule{
	ID: "node-opaque", Area: "defaults",
	Means:  "a default computes its node number, so no other rule can check it",
	Remedy: "pass a reserved number as a literal",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		var total, problems int
		err := e.row(ctx, []any{&total, &problems}, "SELECT count(DISTINCT (kind, name)), (SELECT count(*) FROM $s.node_problems) FROM $s.node_defaults")
		if err != nil {
			return err
		}
		opaque, err := e.texts(ctx, "SELECT DISTINCT concat_ws(' ', kind, name) FROM $s.node_defaults WHERE number IS NULL AND NOT from_setting ORDER BY 1")
		if err != nil {
			return err
		}
		const subject = "node numbers"
		switch known := total - len(opaque); {
		case total == 0:
			e.add(OK, "", subject, "no default uses one", "")
		case problems == 0 && known > 0:
			e.add(OK, "", subject, plural(known, "default uses a reserved number", "defaults use reserved numbers"), "")
		}
		for _, name := range opaque {
			e.add(Warning, "", name, "doesn't pass a literal, so its node number is unknown",
				"pass a reserved number as a literal, or use the setting "+e.Config.Schema+".node")
		}
		return nil
	},
}
