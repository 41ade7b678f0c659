package dbhealth

import (
	"context"
	"fmt"
)

var intReference = Rule{
	ID: "int4-reference", Area: "keys",
	Means:  "a column of type integer or smallint refers to a key, and can't hold its values",
	Remedy: "change the type of the column to bigint",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		keys, err := e.keys(ctx)
		if err != nil {
			return err
		}
		formats := map[string]key{}
		for _, k := range keys {
			formats[k.subject()] = k
		}
		type reference struct{ table, column, base, target string }
		references, err := collect(ctx, e, func(r *reference) []any { return []any{&r.table, &r.column, &r.base, &r.target} }, `
			SELECT format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), CASE WHEN t.typbasetype = 0 THEN t.oid ELSE t.typbasetype END::regtype::text, format('%I.%I.%I', fn.nspname, fc.relname, fa.attname)
			FROM pg_constraint f CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS p (attnum, fattnum)
				JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.attnum
				JOIN pg_class fc ON fc.oid = f.confrelid JOIN pg_namespace fn ON fn.oid = fc.relnamespace JOIN pg_attribute fa ON fa.attrelid = fc.oid AND fa.attnum = p.fattnum
				JOIN pg_type t ON t.oid = a.atttypid
			WHERE f.contype = 'f' AND f.conparentid = 0 AND (CASE WHEN t.typbasetype = 0 THEN t.oid ELSE t.typbasetype END) IN ('int2'::regtype, 'int4'::regtype)
			ORDER BY 1, 2`)
		for _, r := range references {
			k, ok := formats[r.target]
			if !ok {
				continue
			}
			e.add(Problem, r.table, r.table+"."+r.column, fmt.Sprintf("is of type %s, and refers to %s with keys of type %s, which it can't hold: inserts of rows that refer to them fail", r.base, r.target, k.format),
				fmt.Sprintf("run ALTER TABLE %s ALTER %s TYPE bigint, which rewrites the table under an exclusive lock", r.table, r.column))
		}
		return err
	},
}
