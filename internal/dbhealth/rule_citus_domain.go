package dbhealth

import (
	"context"
	"fmt"
)

var citusDomain = Rule{
	ID: "citus-domain", Area: "citus",
	Means:  "a distribution column of Citus has a domain: `WHERE id = $1` misses rows",
	Remedy: "undistribute the table, change the type to the domain's base, and distribute it again",
	check: func(ctx context.Context, e *Examination) error {
		if e.report.Server.Citus == nil {
			return nil
		}
		// Citus routes WHERE id = $1 by the hash of the base type, and then misses the rows.
		type column struct{ table, name, domain, base string }
		columns, err := collect(ctx, e, func(c *column) []any { return []any{&c.table, &c.name, &c.domain, &c.base} }, `
			SELECT p.logicalrelid::regclass::text, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), format_type(t.typbasetype, t.typtypmod)
			FROM pg_dist_partition p JOIN pg_attribute a ON a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
				JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'd'
			WHERE p.partkey IS NOT NULL ORDER BY 1`)
		for _, c := range columns {
			e.add(Problem, c.table, c.table, fmt.Sprintf("distribution column %s has domain %s: WHERE %[1]s = $1 misses rows", c.name, c.domain),
				fmt.Sprintf("run SELECT undistribute_table('%s'); ALTER TABLE %[1]s ALTER %s TYPE %s; SELECT create_distributed_table('%[1]s', '%[2]s')", c.table, c.name, c.base))
		}
		if err == nil && len(columns) == 0 {
			e.add(OK, "", "distribution columns", "none has a domain", "")
		}
		return err
	},
}
