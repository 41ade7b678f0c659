package guide

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// NewPool returns a pool whose connections encode and scan IDs.
func NewPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = pgxcodec.AfterConnect
	return pgxpool.NewWithConfig(ctx, config)
}

// CopyOrders stores n new orders by COPY, and returns their keys.
func CopyOrders(ctx context.Context, pool *pgxpool.Pool, gen *idtype.SnowflakeGenerator, n int) ([]OrderID, error) {
	ids := make([]OrderID, n)
	if _, err := idtype.GeneratorOf[OrderID](gen).Fill(ctx, ids); err != nil {
		return nil, err
	}
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id"}, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		return []any{ids[i]}, nil
	}))
	return ids, err
}

// Existing returns the keys that have a row.
func Existing(ctx context.Context, pool *pgxpool.Pool, ids []OrderID) ([]OrderID, error) {
	rows, _ := pool.Query(ctx, "SELECT id FROM orders WHERE id = ANY($1) ORDER BY id", ids)
	return pgx.CollectRows(rows, pgx.RowTo[OrderID])
}
