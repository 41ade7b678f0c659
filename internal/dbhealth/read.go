package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

// read calls f with a read-only transaction, as [trust.Read] does. In it, a table whose rows a
// policy would hide is an error, and so is a lock that another session keeps: to print a
// default, the server locks its table.
func (e *Examination) read(ctx context.Context, f func(*sql.Tx) error) error {
	return read(ctx, e.db, f)
}

func read(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	return trust.Read(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "SET LOCAL row_security = off; SET LOCAL lock_timeout = '1s'"); err != nil {
			return err
		}
		return f(tx)
	})
}

// sql replaces $s in a query with the schema of the installation.
func (e *Examination) sql(query string) string {
	return strings.ReplaceAll(query, "$s", e.Config.Schema)
}

// row scans the only row of a query, in which $s is the schema.
func (e *Examination) row(ctx context.Context, dst []any, query string, args ...any) error {
	return e.rowOf(ctx, dst, e.sql(query), args...)
}

// rowOf is row for a query with names of the user's, which can contain $s.
func (e *Examination) rowOf(ctx context.Context, dst []any, query string, args ...any) error {
	return e.read(ctx, func(tx *sql.Tx) error { return tx.QueryRowContext(ctx, query, args...).Scan(dst...) })
}

// collect returns the rows of a query, in which $s is the schema. dst returns the pointers to
// scan a row into.
func collect[T any](ctx context.Context, e *Examination, dst func(*T) []any, query string, args ...any) (list []T, err error) {
	err = e.read(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, e.sql(query), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var v T
			if err := rows.Scan(dst(&v)...); err != nil {
				return err
			}
			list = append(list, v)
		}
		return rows.Err()
	})
	return list, err
}

// texts returns the rows of a query with one column.
func (e *Examination) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	return collect(ctx, e, func(s *string) []any { return []any{s} }, query, args...)
}

// recall returns the result of a query on which several rules rely. It calls f once per
// examination.
func recall[T any](e *Examination, name string, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	r, ok := e.memory[name].(result)
	if !ok {
		r.v, r.err = f()
		e.memory[name] = r
	}
	return r.v, r.err
}

// untrusted returns findings for the tables that the session must not open, by OID. query is
// [trust.Tables] or [trust.Reads].
func (e *Examination) untrusted(ctx context.Context, query func(string) string, oids []int64) (findings map[int64]trust.Finding, err error) {
	err = e.read(ctx, func(tx *sql.Tx) error {
		findings, err = trust.FindTables(ctx, tx, query("'"+array(oids)+"'::pg_catalog.oid[]"))
		return err
	})
	return findings, err
}

// array returns the text of an array of OIDs.
func array(oids []int64) string {
	return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(oids), " ", ","), "[]") + "}"
}

// unreadable reports whether the server answered with an error: the role lacks a privilege,
// for example, or the installation lacks an object. A session that the server ended, or a
// statement that it canceled (class 57), is no such error.
func unreadable(err error) bool {
	state := pgerror.State(err)
	return state != "" && !strings.HasPrefix(state, "57")
}
