package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
)

var keyDuplicate = Rule{
	ID: "key-duplicate", Area: "keys",
	Means:  "a column with a `next_` default, or a column `id` with a domain, has no unique index, and the same key twice among 10,000 rows",
	Remedy: "`sortkey audit`; correct the rows, and create a unique index",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		identifies := func(k key) bool { return !k.unique && (k.generated || k.column == "id") }
		return e.eachKey(ctx, identifies, func(k key) error {
			var duplicates int64
			var example *string
			err := e.read(ctx, func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*), min(k::text) FROM (SELECT k FROM (%s) x WHERE k IS NOT NULL GROUP BY k HAVING count(*) > 1) y", k.sample(sampled))).Scan(&duplicates, &example)
			})
			if err != nil || duplicates == 0 {
				return err
			}
			e.add(Problem, k.table, k.subject(), fmt.Sprintf("has no unique index, and %s more than once among %d rows, such as %s", plural(duplicates, "key", ""), sampled, *example),
				fmt.Sprintf("run sortkey audit %s to find all, correct the rows, and run CREATE UNIQUE INDEX ON %[1]s (%s)", k.table, k.column))
			return nil
		})
	},
}
