package dbhealth

import (
	"context"
	"fmt"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/trust"
)

func checkSkippedKeys(ctx context.Context, e *Examination) error {
	keys, err := e.keys(ctx)
	last := ""
	for _, k := range keys { // by table
		if k.skipped != "" && k.table != last {
			e.skip(k.table, k.skipped)
		}
		last = k.table
	}
	return err
}

// skip adds the finding for a table that isn't examined.
func (e *Examination) skip(table, reason string) {
	e.add(Skipped, table, table, "not examined: "+reason, "to examine it, connect as the owner of the table; rows on another server are not read")
}

// reason returns the reason for which a table isn't examined, or "". It names the relation only
// if that is a partition.
func reason(f trust.Finding, table string) string {
	if f.Object == "table "+table {
		return f.Reason
	}
	return strings.TrimSpace(f.Object + " " + f.Reason)
}

func checkReferences(ctx context.Context, e *Examination) error {
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
}

// unindexed reports whether no unique index is on a column that identifies rows.
func unindexed(k key) bool { return !k.unique && (k.generated || k.column == "id") }

func checkDuplicates(ctx context.Context, e *Examination, k key) error {
	var duplicates int64
	var example *string
	err := e.rowOf(ctx, []any{&duplicates, &example}, fmt.Sprintf("SELECT count(*), min(k::text) FROM (SELECT k FROM (%s) x WHERE k IS NOT NULL GROUP BY k HAVING count(*) > 1) y", k.sample(sampled)))
	if err != nil || duplicates == 0 {
		return err
	}
	e.add(Problem, k.table, k.subject(), fmt.Sprintf("has no unique index, and %s more than once among %d rows, such as %s", plural(duplicates, "key", ""), sampled, *example),
		fmt.Sprintf("run %s to find all, correct the rows, and run CREATE UNIQUE INDEX ON %s (%s)", e.command("audit %s", k.table), k.table, k.column))
	return nil
}

// checkZero finds rows that were created without a generator. It looks at all primary keys that
// programs set: a column that only a program knows has neither a domain nor a default.
func checkZero(ctx context.Context, e *Examination) error {
	keys, err := collect(ctx, e, func(k *key) []any { return []any{&k.oid, &k.table, &k.column, &k.base} }, `
		SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), t.typname
		FROM pg_constraint p JOIN pg_class c ON c.oid = p.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.conkey[1] JOIN pg_type t ON t.oid = a.atttypid
		WHERE p.contype = 'p' AND cardinality(p.conkey) = 1 AND t.oid IN ('int8'::regtype, 'uuid'::regtype) AND NOT a.atthasdef AND a.attidentity = ''
			AND NOT c.relispartition AND c.relpersistence <> 't' AND n.nspname NOT IN (`+OwnSchemas+`)
			AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
			AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND a.attnum = ANY (f.conkey))
		ORDER BY 2`)
	if err != nil {
		return err
	}
	if err := e.setSkipped(ctx, keys); err != nil {
		return err
	}
	zeros := map[string][]string{"int8": {"0"}, "uuid": {"'" + idtype.UUID{}.String() + "'", "'" + idtype.Sno{}.UUID().String() + "'"}}
	for _, k := range keys {
		if k.skipped != "" {
			continue
		}
		var found *string
		err := e.rowOf(ctx, []any{&found}, fmt.Sprintf("SELECT (SELECT min(%s::text) FROM %s WHERE %[1]s IN (%[3]s))", k.column, k.table, strings.Join(zeros[k.base], ", ")))
		if err := e.fail(ctx, k.table, k.subject(), err); err != nil {
			return err
		}
		if found != nil {
			e.add(Warning, k.table, k.subject(), "has a row with the zero key "+*found+": a program created it without a generator, for example without db.Use(gormplugin.New(...))",
				fmt.Sprintf("correct the program, give the row and its references another key, and add CHECK (%s <> '%s')", k.column, *found))
		}
	}
	return nil
}

func isUUID7(k key) bool { return k.format == "uuid7" }

func checkUUIDVersion(ctx context.Context, e *Examination, k key) error {
	// Random UUIDs are among the largest ones, since UUIDs of version 7 begin with 01.
	var rows, others int64
	err := e.rowOf(ctx, []any{&rows, &others}, fmt.Sprintf("SELECT count(k), count(k) FILTER (WHERE %s.uuid7_time(k) IS NULL) FROM (%s) x", e.Config.Schema, k.sample(sampled)))
	if err != nil || others == 0 {
		return err
	}
	e.add(Info, k.table, k.subject(), fmt.Sprintf("%d of the %d largest UUIDs are not of version 7: they have no time, so windows of time and partitions don't have them where their rows were created", others, rows),
		"if all programs should create version 7, find the one that doesn't; otherwise add 'sortkey: ignore uuid-version' to the comment on table "+k.table)
	return nil
}
