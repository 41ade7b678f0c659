package dbhealth

import "context"

var databaseCopied = Rule{
	ID: "database-copied", Area: "installation",
	Means:  "the database was copied, restored from a dump, promoted or recovered since it used its node numbers: it and the other one can create the same IDs",
	Remedy: "`SELECT sortkey.confirm_original()` if this one continues alone, or `sortkey.reserve_for_copy` there and `sortkey.confirm_copy` here ([copies](operations.md#copies))",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		type row struct{ problem, remedy string }
		list, err := collect(ctx, e, func(r *row) []any { return []any{&r.problem, &r.remedy} }, `SELECT problem, remedy FROM $s.database_problems`)
		for _, r := range list {
			e.add(Warning, "", "database "+e.report.Server.Database, r.problem, r.remedy)
		}
		return err
	},
}
