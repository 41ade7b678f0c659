package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// A beginner is a connection, or a pool of connections.
type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// begin calls f with a transaction. In it, names without a schema are names of the
// server. Otherwise a function of another user in the search_path whose types match a
// call better would run with the privileges of this role. To set the path of the
// session instead would change other sessions behind PgBouncer.
func begin(ctx context.Context, db beginner, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL intervalstyle = postgres"); err != nil {
			return err
		}
		return f(tx)
	})
}

// read is begin for a transaction that writes nothing.
func read(ctx context.Context, db beginner, f func(pgx.Tx) error) error {
	return begin(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, f)
}

// readRow scans the only row of a query, with read.
func readRow(ctx context.Context, db beginner, dst []any, query string, args ...any) error {
	return read(ctx, db, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query, args...).Scan(dst...) })
}

// collect returns the rows of a query, with read.
func collect[T any](ctx context.Context, db beginner, row pgx.RowToFunc[T], query string, args ...any) (list []T, err error) {
	err = read(ctx, db, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, query, args...) // CollectRows returns the error
		list, err = pgx.CollectRows(rows, row)
		return err
	})
	return list, err
}

// readable returns an error that wraps [migrations.ErrUntrusted] if reading a table, or one of
// its partitions, would run code of a role that the session doesn't trust. table is a name as
// in SQL.
func readable(ctx context.Context, db beginner, table string) error {
	findings, err := collect(ctx, db, pgx.RowToStructByPos[trust.Finding], trust.Reads(trust.WithChildren("$1::text::regclass")), table)
	if err != nil || len(findings) == 0 {
		return err
	}
	return fmt.Errorf("%s, and reading the table could run code of that role with your rights (%s); connect as the owner of the table: %w",
		trust.List(trust.Owners(findings)), trust.Rule, migrations.ErrUntrusted)
}
