package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
)

var uuidVersion = Rule{
	ID: "uuid-version", Area: "keys",
	Means:  "a column of version-7 UUIDs has UUIDs of other versions, too: they have no time, and sort anywhere",
	Remedy: "nothing, or find the program that creates them",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		versions := func(k key) bool { return k.format == "uuid7" }
		return e.eachKey(ctx, versions, func(k key) error {
			// Random UUIDs are among the largest ones, since UUIDs of version 7 begin with 01.
			var rows, others int64
			err := e.read(ctx, func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, e.sql(fmt.Sprintf("SELECT count(k), count(k) FILTER (WHERE $s.uuid7_time(k) IS NULL) FROM (%s) x", k.sample(sampled)))).Scan(&rows, &others)
			})
			if err != nil || others == 0 {
				return err
			}
			e.add(Info, k.table, k.subject(), fmt.Sprintf("%d of the %d largest UUIDs are not of version 7: they have no time, so windows of time and partitions don't have them where their rows were created", others, rows),
				"if all programs should create version 7, find the one that doesn't; otherwise add 'sortkey: ignore uuid-version' to the comment on table "+k.table)
			return nil
		})
	},
}
