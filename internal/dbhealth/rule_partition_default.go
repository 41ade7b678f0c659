package dbhealth

import (
	"context"
	"fmt"
)

const countedRows = 1000 // of a default partition

var partitionDefault = Rule{
	ID: "partition-default", Area: "partitions",
	Means:  "the default partition of a managed table has rows",
	Remedy: "`sortkey partitions run` moves them, unless they are older than the retention or of the future",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		return e.eachTable(ctx, func(t *ManagedTable) error {
			rows, err := e.CountDefaultRows(ctx, t, countedRows)
			if err != nil || rows == 0 {
				return err
			}
			if err := e.ReadSteps(ctx, t); err != nil {
				return err
			}
			count := plural(rows, "row", "")
			if rows == countedRows {
				count = "1,000 rows or more"
			}
			var key string
			if err := e.row(ctx, []any{&key}, `SELECT quote_ident(a.attname) FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
				WHERE p.partrelid = $1::bigint::oid`, t.OID); err != nil {
				return err
			}
			find := fmt.Sprintf("SELECT %s.%s_time(%s), * FROM %s ORDER BY %[3]s", e.Config.Schema, t.Format, key, *t.DefaultPartition)
			remedy := "run " + find + " to see them. Maintenance doesn't move rows older than the retention: delete them, or move them to another table. It moves later rows when their time comes: if that is far in the future, correct the clock of the program that generated them"
			if t.Steps["drain"] > 0 {
				remedy = "run sortkey partitions run, which moves rows within the retention and the partitions ahead to partitions of their own; if rows remain, run " + find + " to see them"
			}
			e.add(Warning, t.Table, t.Table, fmt.Sprintf("default partition %s has %s outside all other partitions", *t.DefaultPartition, count), remedy)
			return nil
		})
	},
}
