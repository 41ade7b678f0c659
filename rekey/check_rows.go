package rekey

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
)

// checkRows looks for values that can't be carried over. It reads whole tables. If there are other
// problems, a check can fail because of them, and is left out.
func (m *model) checkRows(ctx context.Context, db querier) error {
	var checks []func() error
	for _, k := range m.moved() {
		if k.root != nil && k.oldExpr != "" && k.format.sqlType != "" {
			checks = append(checks, func() error { return m.checkKeyRows(ctx, db, k) })
		}
	}
	for _, x := range m.changed {
		checks = append(checks, func() error { return x.checkHash(ctx, db) })
	}
	for _, c := range m.checks {
		checks = append(checks, func() error { return m.checkInvalid(ctx, db, c) })
	}
	checks = append(checks, func() error { return m.checkViews(ctx, db) }, func() error { return m.checkUnlisted(ctx, db) })
	for _, r := range m.relations {
		for _, c := range r.columns {
			if !c.root && c.key.root != nil {
				checks = append(checks, func() error { return m.checkReferences(ctx, db, c) })
			}
		}
	}
	for _, check := range checks {
		if _, err := db.ExecContext(ctx, "SAVEPOINT rows"); err != nil {
			return err
		}
		err := check()
		if err != nil && (sqlState(err) == "" || len(m.problems) == 0) {
			return err
		}
		if err != nil {
			if _, err := db.ExecContext(ctx, "ROLLBACK TO SAVEPOINT rows; SET LOCAL search_path = pg_catalog"); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeyRows looks at the values of a key, and at the times of its rows.
func (m *model) checkKeyRows(ctx context.Context, db querier, k *key) error {
	object := "key of " + k.root.rel.Name
	failure, err := try(ctx, db, "EXPLAIN SELECT ("+k.oldExpr+")::"+k.root.Type)
	if err != nil {
		return err
	}
	if failure != nil {
		m.problem(object, "has the OldKey %s, which fails: %v", "correct it; names need their schemas", k.oldExpr, failure)
		return nil
	}
	if k.untimed {
		return nil
	}
	if k.Times.SQL != "" {
		if ok, err := m.checkTimeSQL(ctx, db, k); err != nil || !ok {
			return err
		}
	}
	if form, ok := keyForms[k.Times.Key]; ok {
		var bad sql.NullString
		err := db.QueryRowContext(ctx, "SELECT min("+k.root.Quoted+"::text) FROM ONLY "+k.root.rel.Name+" WHERE NOT ("+form.valid(k, k.root.Quoted)+")").Scan(&bad)
		if err != nil {
			return err
		}
		if bad.Valid {
			m.problem(object, "has the value %q, which isn't %s", "name another source of times", bad.String, form.what)
			return nil
		}
	}
	if k.InPlace {
		return nil
	}
	if k.byBytes() {
		var upper, lower, one bool
		column := k.root.Quoted + "::text"
		err := db.QueryRowContext(ctx, "SELECT coalesce(bool_and("+column+" = upper("+column+")), true), coalesce(bool_and("+column+" = lower("+column+")), false), coalesce(min(length("+column+")) = max(length("+column+")), true) FROM ONLY "+k.root.rel.Name).Scan(&upper, &lower, &one)
		if err != nil {
			return err
		}
		if !one || !upper && !lower {
			m.problem(object, "has values of the same form that differ in case or length, so their order isn't that of their times", "give all of them one form, or name another source of times")
			return nil
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
		if k.Format == Snowflake {
			remedy = "; for IDs of their times, install the SQL with an earlier epoch, as sortkey migrate up --epoch " + time.UnixMilli(int64(first.Float64)).UTC().Format(time.DateOnly) + ", before the first ID is created"
		}
		m.note(object, "has rows from %s, before the first instant of the format", "they get IDs of that first instant, in order"+remedy, stamp(int64(first.Float64)))
	}
	if last.Valid && k.BackfillNode >= 0 && (k.format.pool == "" || k.BackfillNode < k.format.nodes) {
		failure, err := try(ctx, db, "SELECT "+k.idAt("to_timestamp("+strconv.FormatInt(max(int64(last.Float64), k.format.epochMS), 10)+" / 1000.0)", "1"))
		if err != nil {
			return err
		}
		if failure != nil {
			m.problem(object, "has rows from %s, which the format can't represent: %v", "correct these times, or choose another format", stamp(int64(last.Float64)), failure)
		}
	}
	return nil
}

// checkHash finds out whether the values of a unique index have hash functions.
func (x *index) checkHash(ctx context.Context, db querier) error {
	if !x.Unique {
		return nil
	}
	failure, err := try(ctx, db, "SELECT hash_record_extended(ROW("+strings.Join(each(x.Types, func(t string) string { return "NULL::" + t }), ", ")+"), 0)")
	x.byText = failure != nil
	return err
}

// checkInvalid looks for rows that violate a check constraint.
func (m *model) checkInvalid(ctx context.Context, db querier, c *check) error {
	if c.Valid || strings.HasSuffix(c.Definition, " NOT ENFORCED") {
		return nil
	}
	table := m.relation(c.Table).Name
	var violations int64
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+table+" WHERE NOT ("+c.Expression+")").Scan(&violations)
	if violations > 0 {
		m.problem("constraint "+c.Name+" of "+table, "isn't valid: %d rows violate it, so the backfill can't update them", "correct these rows, or drop the constraint", violations)
	}
	return err
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
		if m.refused(kinds[v.Kind] + " " + v.Name) {
			with = append(with, v.Plain+" ("+strings.Join(v.Names(), ", ")+") AS (TABLE "+v.Name+")")
			continue
		}
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
	if !k.timed() || !k.Times.Start.IsZero() {
		return nil
	}
	table, object, value := k.root.rel.Name, "the expression of times of "+k.root.rel.Name, "("+k.Times.SQL+")"
	if k.times != nil {
		object, value = "column "+table+"."+k.times.Quoted, k.times.Quoted
	}
	for _, c := range []struct {
		condition, reason, remedy string
		report                    func(object, reason, remedy string, args ...any)
	}{
		{" IS NULL", "is NULL in %d rows, such as the one with key %s", "they get IDs of " + stamp(k.format.epochMS) + ", the first instant of the format, in order; set Times.Start for another time", m.note},
		{" IN ('infinity', '-infinity')", "is infinite in %d rows, such as the one with key %s", "correct these times, or set Times.Start to the time of such rows", m.problem},
	} {
		var count int64
		var first sql.NullString
		err := db.QueryRowContext(ctx, "SELECT count(*), min("+k.root.Quoted+"::text) FROM ONLY "+table+" WHERE "+value+c.condition).Scan(&count, &first)
		if err != nil {
			return err
		}
		if count > 0 {
			c.report(object, c.reason, c.remedy, count, first.String)
		}
	}
	return nil
}

// checkTimeSQL looks for an expression of times that fails or has another type.
func (m *model) checkTimeSQL(ctx context.Context, db querier, k *key) (ok bool, err error) {
	object := "key of " + k.root.rel.Name
	failure, err := try(ctx, db, "EXPLAIN SELECT ("+k.Times.SQL+") FROM ONLY "+k.root.rel.Name+" t")
	if err != nil {
		return false, err
	}
	if failure != nil {
		m.problem(object, "has Times.SQL that fails: %v", "correct it; names of functions need their schemas", failure)
		return false, nil
	}
	var kind string
	err = db.QueryRowContext(ctx, "SELECT pg_typeof((SELECT ("+k.Times.SQL+") FROM ONLY "+k.root.rel.Name+" t LIMIT 1))::text").Scan(&kind)
	if err == nil && kind != "timestamp with time zone" {
		m.problem(object, "has Times.SQL of type %s", "let it return a timestamptz, as created AT TIME ZONE 'UTC' does", kind)
	}
	return kind == "timestamp with time zone", err
}

// checkTimeIndex looks for an expression of times that isn't immutable. It creates an index on a
// temporary table, and rolls back.
func (m *model) checkTimeIndex(ctx context.Context, pool *sql.DB, k *key) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it changes nothing
	if _, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config('role', $1::text, true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)", m.owner); err != nil {
		return err
	}
	if _, failure := tx.ExecContext(ctx, "CREATE TEMPORARY TABLE rekey_times (LIKE "+k.root.rel.Name+")"); failure != nil {
		return nil // without the privilege for temporary tables, backfill finds the mistake
	}
	if _, failure := tx.ExecContext(ctx, "CREATE INDEX ON pg_temp.rekey_times ("+strings.Join(k.order(""), ", ")+")"); failure != nil {
		m.problem("key of "+k.root.rel.Name, "has Times.SQL that an index can't contain: %v", "use immutable functions, such as AT TIME ZONE 'UTC' instead of a cast from timestamp", failure)
	}
	return nil
}
