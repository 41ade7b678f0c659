package rekey

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// checkRows looks for values that can't be carried over. It reads whole tables.
func (m *model) checkRows(ctx context.Context, db querier) error {
	for _, k := range m.keys {
		if len(k.columns) == 0 {
			continue
		}
		object := "key of " + k.root.rel.Name
		failure, err := try(ctx, db, "EXPLAIN SELECT ("+k.oldExpr+")::"+k.root.Type)
		if err != nil {
			return err
		}
		if failure != nil {
			m.problem(object, "has the OldKey %s, which fails: %v", "correct it; names need their schemas", k.oldExpr, failure)
			continue
		}
		form, reason := "", ""
		switch kind, ok := keyForms[k.Times.Key]; {
		case ok:
			form, reason = kind.valid(k, k.root.Quoted), kind.what
		case k.times != nil && k.times.numeric():
			form, reason = fmt.Sprintf("coalesce(abs(%s::numeric * %d) < 253402300800000000, true)", k.times.Quoted, k.Times.unit()), "a row with a time before the year 10000"
		}
		if form != "" {
			var bad sql.NullString
			err := db.QueryRowContext(ctx, "SELECT min("+k.root.Quoted+"::text) FROM ONLY "+k.root.rel.Name+" WHERE NOT ("+form+")").Scan(&bad)
			if err != nil {
				return err
			}
			if bad.Valid {
				m.problem(object, "has the value %q, which isn't %s", "name another source of times", bad.String, reason)
				continue
			}
		}
		if k.InPlace {
			continue
		}
		if k.byBytes() && !keyForms[k.Times.Key].exact {
			var upper, lower, one bool
			column := k.root.Quoted + "::text"
			err := db.QueryRowContext(ctx, "SELECT coalesce(bool_and("+column+" = upper("+column+")), true), coalesce(bool_and("+column+" = lower("+column+")), false), coalesce(min(length("+column+")) = max(length("+column+")), true) FROM ONLY "+k.root.rel.Name).Scan(&upper, &lower, &one)
			if err != nil {
				return err
			}
			if !one || !upper && !lower {
				m.problem(object, "has values of the same form that differ in case or length, so their order isn't that of their times", "give all of them one form, or name another source of times")
				continue
			}
			if lower && !upper && k.oldExpr == newULID {
				k.oldExpr = "lower(" + newULID + ")"
			}
		}
		if err := m.checkTimeColumn(ctx, db, k); err != nil {
			return err
		}
		var first, last sql.NullFloat64
		err = db.QueryRowContext(ctx, "SELECT min(ms), max(ms) FROM (SELECT "+k.milliseconds("t")+" AS ms FROM ONLY "+k.root.rel.Name+" t) x").Scan(&first, &last)
		if err != nil {
			return err
		}
		if first.Valid && int64(first.Float64) < k.format.epochMS {
			remedy := ""
			if earlier := time.UnixMilli(int64(first.Float64)).UTC(); k.Format == Snowflake || k.Format == SnowflakeSI {
				flag := map[Format]string{Snowflake: "--epoch", SnowflakeSI: "--si-epoch"}[k.Format]
				remedy = "; for IDs of their times, install the SQL with an earlier epoch, as sortkey migrate up " + flag + " " + earlier.Format(time.DateOnly) + ", before the first ID is created"
			}
			m.note(object, "has rows from %s, before the first instant of the format", "they get IDs of that first instant, in order"+remedy, stamp(int64(first.Float64)))
		}
		if last.Valid {
			failure, err := try(ctx, db, "SELECT "+k.idAt("to_timestamp("+strconv.FormatInt(max(int64(last.Float64), k.format.epochMS), 10)+" / 1000.0)", "1"))
			if err != nil {
				return err
			}
			if failure != nil {
				m.problem(object, "has rows from %s, which the format can't represent: %v", "correct these times, or choose another format", stamp(int64(last.Float64)), failure)
			}
		}
	}
	for _, x := range m.changed {
		if !x.Unique {
			continue
		}
		failure, err := try(ctx, db, "SELECT hash_record_extended(ROW("+strings.Join(each(x.Types, func(t string) string { return "NULL::" + t }), ", ")+"), 0)")
		if err != nil {
			return err
		}
		x.byText = failure != nil
	}
	for _, c := range m.checks {
		if c.Valid || strings.HasSuffix(c.Definition, " NOT ENFORCED") {
			continue
		}
		table := m.relation(c.Table).Name
		var violations int64
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+table+" WHERE NOT ("+c.Expression+")").Scan(&violations); err != nil {
			return err
		}
		if violations > 0 {
			m.problem("constraint "+c.Name+" of "+table, "isn't valid: %d rows violate it, so the backfill can't update them", "correct these rows, or drop the constraint", violations)
		}
	}
	if err := m.checkViews(ctx, db); err != nil {
		return err
	}
	if err := m.checkUnlisted(ctx, db); err != nil {
		return err
	}
	for _, r := range m.relations {
		for _, c := range r.columns {
			if c.root {
				continue
			}
			if err := m.checkReferences(ctx, db, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkViews looks for views that don't work with the types of the new keys. In the query
// of a view, a WITH query takes the place of each table and each view.
func (m *model) checkViews(ctx context.Context, db querier) error {
	if len(m.views) == 0 {
		return nil
	}
	with := each(m.relations, func(r *relation) string {
		columns := append(each(r.others, func(name string) string { return "t." + name }), each(r.columns, func(c *column) string { return "NULL::" + c.key.format.sqlType + " AS " + c.Quoted })...)
		return r.quotedPlain() + " AS (SELECT " + strings.Join(columns, ", ") + " FROM " + r.Name + " t)"
	})
	if _, err := db.ExecContext(ctx, "SET LOCAL search_path = "+strings.Join(m.path, ", ")); err != nil {
		return err
	}
	for _, v := range m.views {
		query := strings.TrimSuffix(v.Definition, ";")
		failure, err := try(ctx, db, "EXPLAIN WITH "+strings.Join(with, ", ")+" SELECT FROM ("+query+") v")
		if err != nil {
			return err
		}
		if failure != nil && sqlState(failure) != "42501" { // not a privilege on other tables
			m.problem("view "+v.Name, "fails with the types of the new keys: %v", "drop it and create it again after contract", failure)
			query = "TABLE " + v.Name
		}
		with = append(with, v.Plain+" ("+strings.Join(v.Names(), ", ")+") AS ("+query+")")
	}
	_, err := db.ExecContext(ctx, "SET LOCAL search_path = pg_catalog")
	return err
}

// try runs a statement. It returns the error of the server as failure.
func try(ctx context.Context, db querier, statement string) (failure, err error) {
	if _, err := db.ExecContext(ctx, "SAVEPOINT try"); err != nil {
		return nil, err
	}
	if _, failure = db.ExecContext(ctx, statement); failure != nil && sqlState(failure) == "" {
		return nil, failure
	}
	_, err = db.ExecContext(ctx, "ROLLBACK TO SAVEPOINT try")
	return failure, err
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// checkTimeColumn looks for rows without a time.
func (m *model) checkTimeColumn(ctx context.Context, db querier, k *key) error {
	if k.times == nil || !k.Times.Start.IsZero() {
		return nil
	}
	table := k.root.rel.Name
	for _, c := range []struct {
		condition, reason, remedy string
		report                    func(object, reason, remedy string, args ...any)
	}{
		{" IS NULL", "is NULL in %d rows, such as the one with key %s", "they get IDs of " + stamp(k.format.epochMS) + ", the first instant of the format, in order; set Times.Start for another time", m.note},
		{" IN ('infinity', '-infinity')", "is infinite in %d rows, such as the one with key %s", "correct these times, or set Times.Start to the time of such rows", m.problem},
	} {
		if k.times.numeric() && c.condition != " IS NULL" {
			continue
		}
		var count int64
		var first sql.NullString
		err := db.QueryRowContext(ctx, "SELECT count(*), min("+k.root.Quoted+"::text) FROM ONLY "+table+" WHERE "+k.times.Quoted+c.condition).Scan(&count, &first)
		if err != nil {
			return err
		}
		if count > 0 {
			c.report("column "+table+"."+k.times.Quoted, c.reason, c.remedy, count, first.String)
		}
	}
	return nil
}
