// Package shop is a small part of a program. Its tests show how to test code with keys of
// package idtype.
package shop

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// An Order has a key with the prefix ord.
type Order struct {
	ID    idtype.SnowflakeOf[Order] `json:"id"`
	Total int64                     `json:"total"`
}

// IDPrefix returns the prefix of order IDs.
func (Order) IDPrefix() string { return "ord" }

// Open opens a database. The program passes a generator with a node number, and a test
// passes one of its own.
func Open(d gorm.Dialector, ids idtype.Generator[idtype.Snowflake]) (*gorm.DB, error) {
	db, err := gorm.Open(d)
	if err != nil {
		return nil, err
	}
	return db, errors.Join(
		db.Use(gormplugin.New(gormplugin.For(ids))),
		db.Use(gormplugin.Domains{}), // columns of type sortkey.snowflake, on Postgres only
	)
}

// OrdersOf returns the orders of a day.
func OrdersOf(db *gorm.DB, day time.Time) (orders []Order, err error) {
	created := gormplugin.CreatedBetween("id", day, day.AddDate(0, 0, 1))
	err = db.Scopes(created).Order("id").Find(&orders).Error
	return orders, err
}

// Connect returns a pool with the codec of package pgxcodec.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = pgxcodec.AfterConnect
	return pgxpool.NewWithConfig(ctx, config)
}

// Insert inserts orders, and fills their IDs.
func Insert(ctx context.Context, tx pgx.Tx, ids idtype.Generator[idtype.SnowflakeOf[Order]], orders []Order) error {
	keys := make([]idtype.SnowflakeOf[Order], len(orders))
	if _, err := ids.Fill(ctx, keys); err != nil {
		return err
	}
	for i := range orders {
		orders[i].ID = keys[i]
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "total"}, pgx.CopyFromSlice(len(orders), func(i int) ([]any, error) {
		return []any{orders[i].ID, orders[i].Total}, nil
	}))
	return err
}
