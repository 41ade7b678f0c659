// Package readme holds code of README.md and of the first steps in docs. The programs in
// README.md are packages hello and snowflake.
package readme

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// An Order is a row of the table that package snowflake creates.
type Order struct{ ID idtype.SnowflakeOf[Order] }

// ClaimIDs returns a generator with a node number that no other instance has claimed. Its Close releases the number.
// leases is a pool of two connections that nothing else uses.
func ClaimIDs(ctx context.Context, leases *sql.DB) (*nodelease.Generator[idtype.Snowflake], error) {
	return nodelease.NewSnowflakeGenerator(ctx, pglease.New(leases, pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{})
}

// OrdersSince returns the IDs of orders created since a time. The index of the primary key serves the query.
func OrdersSince(ctx context.Context, pool *pgxpool.Pool, since time.Time) ([]idtype.SnowflakeOf[Order], error) {
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(since, time.Time{})
	if err != nil {
		return nil, err
	}
	rows, _ := pool.Query(ctx, "SELECT id FROM orders WHERE id >= $1 AND id < $2 ORDER BY id", lo, hi)
	return pgx.CollectRows(rows, pgx.RowTo[idtype.SnowflakeOf[Order]])
}
