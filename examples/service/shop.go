package main

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/pgxcodec"
)

// The compiler rejects the ID of another model.
type (
	CustomerID = idtype.SnoOf[Customer]
	OrderID    = idtype.SnowflakeOf[Order]
)

// A Customer has the ID of a uuid column: 16 characters in URLs and JSON.
type Customer struct {
	ID   CustomerID `json:"id"`
	Name string     `json:"name" gorm:"not null"`
}

// IDMeta returns the metabyte of customer IDs. Parsing rejects IDs with another one.
func (Customer) IDMeta() byte { return 'c' }

// An Order has the ID of a bigint column: a decimal with a prefix in URLs and JSON.
type Order struct {
	ID         OrderID    `json:"id" gorm:"index:orders_of_customer,priority:2"`
	CustomerID CustomerID `json:"customer_id" gorm:"index:orders_of_customer,priority:1"`
	Customer   *Customer  `json:"-" db:"-"` // declares the foreign key
	Item       string     `json:"item" gorm:"not null"`
	Quantity   int        `json:"quantity" gorm:"not null"`
	// RequestKey is the Idempotency-Key of the request that created the order.
	RequestKey *string `json:"-" db:"-" gorm:"uniqueIndex"`
}

// IDPrefix returns the prefix of order IDs, as in ord_779811650940178432.
func (Order) IDPrefix() string { return "ord" }

// openPool returns a pool of connections that encode and decode IDs.
func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = pgxcodec.AfterConnect
	return pgxpool.NewWithConfig(ctx, config)
}

// openGORM returns GORM on the pool. The plugin fills the keys of new rows.
func openGORM(db *sql.DB, keys ...gormplugin.Binding) (*gorm.DB, error) {
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{
		SkipDefaultTransaction: true,           // each handler runs single statements
		Logger:                 logger.Discard, // the handlers return all errors
	})
	if err != nil {
		return nil, err
	}
	return g, g.Use(gormplugin.New(keys...))
}

// migrate installs the schema of sortkey, with the table of node numbers, and creates
// or changes the tables of the shop.
func migrate(ctx context.Context, url string) error {
	pool, err := openPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if err := migrations.Up(ctx, db, migrations.Config{}); err != nil {
		return err
	}
	g, err := openGORM(db)
	if err != nil {
		return err
	}
	return g.WithContext(ctx).AutoMigrate(&Customer{}, &Order{})
}
