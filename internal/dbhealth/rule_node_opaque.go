package dbhealth

import "context"

var nodeOpaque = Rule{
	ID: "node-opaque", Area: "defaults",
	Means:  "a default computes its node number, so no other rule can check it",
	Remedy: "pass a reserved number as a literal",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		var total, opaque, problems int
		err := e.row(ctx, []any{&total, &opaque, &problems}, `
			SELECT count(DISTINCT (kind, name)), count(DISTINCT (kind, name)) FILTER (WHERE number IS NULL AND NOT from_setting), (SELECT count(*) FROM $s.node_problems) FROM $s.node_defaults`)
		if err != nil {
			return err
		}
		const subject = "node numbers"
		switch {
		case total == 0:
			e.add(OK, "", subject, "no default uses one", "")
		case problems == 0 && total > opaque:
			e.add(OK, "", subject, plural(total-opaque, "default uses a reserved number", "defaults use reserved numbers"), "")
		}
		if opaque > 0 {
			e.add(Warning, "", subject, plural(opaque, "default doesn't pass a literal, so its number is unknown", "defaults don't pass a literal, so their numbers are unknown"),
				"pass a reserved number as a literal, or use the setting "+e.Config.Schema+".node")
		}
		return nil
	},
}
