// Package readme has the code that README.md shows. A test compares the two.
package readme

import (
	"context"
	"database/sql"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
	"github.com/sortkey/sortkey/pgxcodec"
)

// An Order needs nothing but the type of its key.
type Order struct {
	ID         idtype.Snowflake // a bigint; filled in before the row is created
	CustomerID idtype.Sno       // a uuid
	Total      int64
}

// FillKeys is called once, where the database is opened.
func FillKeys(db *gorm.DB) error {
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}) // no two processes with the same number
	if err != nil {
		return err
	}
	return db.Use(gormplugin.New(gormplugin.For(gen)))
}

// CreateOrder inserts a row whose key fills itself, in the struct and in the row.
func CreateOrder(db *gorm.DB, customer idtype.Sno, total int64) (*Order, error) {
	order := &Order{CustomerID: customer, Total: total}
	return order, db.Create(order).Error
}

// Connect makes a pool that knows the IDs, their pointers and slices, in every query mode and in COPY.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = pgxcodec.AfterConnect
	return pgxpool.NewWithConfig(ctx, config)
}

// OrdersSince finds rows by time, without a column for the time: by a range of keys, which the primary key's index serves.
func OrdersSince(ctx context.Context, pool *pgxpool.Pool, since time.Time) ([]idtype.Snowflake, error) {
	lo, hi, err := idtype.DefaultSnowflakeLayout().Range(since, time.Time{})
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(ctx, "SELECT id FROM orders WHERE id >= $1 AND id < $2 ORDER BY id", lo, hi)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[idtype.Snowflake])
}

// ClaimKeys is FillKeys for a process of which several run. Close what it gives when the process ends.
func ClaimKeys(ctx context.Context, db *gorm.DB, leases *sql.DB) (io.Closer, error) {
	store := pglease.New(leases, pglease.Config{}) // in a database that has had Migrate
	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.DefaultSnowflakeLayout(), nodelease.Options{Reacquire: true})
	if err != nil {
		return nil, err
	}
	return ids, db.Use(gormplugin.New(gormplugin.For(ids)))
}

// An InvoiceID is no order's ID: the compiler tells them apart.
type InvoiceID struct{ idtype.Snowflake }

// ConnectOwn makes a pool that knows InvoiceID as well as the others.
func ConnectOwn(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := pgxcodec.AfterConnect(ctx, conn); err != nil {
			return err
		}
		return pgxcodec.RegisterOwn[InvoiceID](conn.TypeMap())
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Migrate teaches a database the formats, in a schema named sortkey.
func Migrate(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, migrations.Config{})
}
