package dbhealth

import (
	"context"
	"fmt"
)

var partitionMissing = Rule{
	ID: "partition-missing", Area: "partitions",
	Means:  "the settings for partitions are of a table that doesn't exist: a dump was restored without the table",
	Remedy: "restore the table, or delete its row of `sortkey.partition_settings`",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		if _, err := e.ManagedTables(ctx); err != nil { // for the same error as in the other rules, if the installation is outdated
			return err
		}
		type missing struct{ name, condition string }
		list, err := collect(ctx, e, func(m *missing) []any { return []any{&m.name, &m.condition} }, `
			SELECT format('%I.%I', s.schema, s.name), format('schema = %L AND name = %L', s.schema, s.name)
			FROM $s.partition_settings s WHERE NOT EXISTS (SELECT FROM $s.partitioned_table t WHERE t.parent = s.id)
				AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = s.schema AND c.relname = s.name) ORDER BY 1`)
		for _, m := range list {
			e.add(Warning, m.name, m.name, "has settings for partitions, and doesn't exist",
				e.sql(fmt.Sprintf("restore the table with its data, or run DELETE FROM $s.partition_settings WHERE %s", m.condition)))
		}
		return err
	},
}
