package cli

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// A Beginner is a connection, or a pool of connections.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Begin calls f with a transaction that has [trust.Settings]. Otherwise a function of
// another user in the search_path whose types match a call better would run with the
// privileges of this role. To set the path of the session instead would change other
// sessions behind PgBouncer.
func Begin(ctx context.Context, db Beginner, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, trust.Settings()); err != nil {
			return err
		}
		return f(tx)
	})
}

// Read is Begin for a transaction that writes nothing.
func Read(ctx context.Context, db Beginner, f func(pgx.Tx) error) error {
	return Begin(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, f)
}

// ReadRow scans the only row of a query, with Read.
func ReadRow(ctx context.Context, db Beginner, dst []any, query string, args ...any) error {
	return Read(ctx, db, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query, args...).Scan(dst...) })
}

// Collect returns the rows of a query, with Read.
func Collect[T any](ctx context.Context, db Beginner, row pgx.RowToFunc[T], query string, args ...any) (list []T, err error) {
	err = Read(ctx, db, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, query, args...) // CollectRows returns the error
		list, err = pgx.CollectRows(rows, row)
		return err
	})
	return list, err
}

// CheckTable returns an error that wraps [migrations.ErrUntrusted] if the session must not open a
// table, given by its OID, or one of its partitions. query is [trust.Tables] or [trust.Reads].
func CheckTable(ctx context.Context, db trust.Beginner, query func(string) string, table uint32) error {
	return trust.Read(ctx, db, func(tx *sql.Tx) error {
		findings, err := trust.FindTables(ctx, tx, query(fmt.Sprintf("ARRAY[%d::pg_catalog.oid]", table)))
		if f, untrusted := findings[int64(table)]; untrusted {
			return fmt.Errorf("%s, so no statement opens the table (%s; audit reads no rows on other servers); connect as the owner of the table: %w", f, trust.Rule, migrations.ErrUntrusted)
		}
		return err
	})
}
