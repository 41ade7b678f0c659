package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
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
	Name string     `json:"name"`
}

// IDMeta returns the metabyte of customer IDs. Parsing rejects IDs with another one.
func (Customer) IDMeta() byte { return 'c' }

// An Order has the ID of a bigint column: a decimal with a prefix in URLs and JSON.
type Order struct {
	ID         OrderID    `json:"id"`
	CustomerID CustomerID `json:"customer_id"`
	Item       string     `json:"item"`
	Quantity   int        `json:"quantity"`
	// RequestKey is the Idempotency-Key of the request that created the order. It is unique
	// per customer.
	RequestKey *string `json:"-" db:"-"`
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

// The files of sql change the tables, in the order of their names. Once deployed, a file
// stays as it is: the next change is another file.
//
//go:embed sql/*.sql
var changes embed.FS

// migrate installs the schema of sortkey, and runs the files of sql that the database
// lacks, in one transaction. Concurrent calls wait for one another. For goose, tern and
// other tools, package migrations exports the schema of sortkey as files.
func migrate(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit

	// Other calls wait here until this transaction ends.
	if err := migrations.UpTx(ctx, tx, migrations.Config{}); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS shop_changes (file text PRIMARY KEY)"); err != nil {
		return err
	}
	files, err := fs.Glob(changes, "sql/*.sql")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := changes.ReadFile(file)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, "INSERT INTO shop_changes VALUES ($1) ON CONFLICT DO NOTHING RETURNING file", file).Scan(&file)
		if errors.Is(err, sql.ErrNoRows) { // an earlier call ran it
			continue
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return tx.Commit()
}
