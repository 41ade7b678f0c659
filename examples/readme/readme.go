// Package readme has the code that README.md shows. A test compares the two.
package readme

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// An Order needs nothing but the type of its key.
type Order struct {
	ID         idtype.Snowflake // a bigint; filled in before the row is created
	CustomerID idtype.Sno       // a uuid
	Total      int64
}

// CreateOrder inserts a row whose key fills itself.
func CreateOrder(db *gorm.DB, customer idtype.Sno) (*Order, error) {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}) // once per process
	if err != nil {
		return nil, err
	}
	if err := db.Use(gormplugin.New(gormplugin.For(gen))); err != nil { // once per *gorm.DB
		return nil, err
	}
	order := &Order{CustomerID: customer, Total: 995}
	return order, db.Create(order).Error // order.ID is set, in the struct and in the row
}

// OrdersSince finds rows by time, without a column for the time.
func OrdersSince(ctx context.Context, url string, since time.Time) ([]idtype.Snowflake, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = pgxcodec.AfterConnect // IDs, their pointers and slices, in every query mode and COPY
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(since, time.Time{}) // a range of keys: the primary key's index serves it
	if err != nil {
		return nil, err
	}
	rows, _ := pool.Query(ctx, "SELECT id FROM orders WHERE id >= $1 AND id < $2 ORDER BY id", lo, hi)
	return pgx.CollectRows(rows, pgx.RowTo[idtype.Snowflake])
}
