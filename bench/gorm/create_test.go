package gormbench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

// open opens a database with GORM. Create runs without a transaction, to make the key
// a larger part of its cost.
func open(b *testing.B, pool *sql.DB, plugins ...gorm.Plugin) *gorm.DB {
	b.Helper()
	b.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard})
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

// BenchmarkCreate creates rows with a driver that answers at once.
func BenchmarkCreate(b *testing.B) {
	for _, s := range []shape{{20, 1}, {100, 100}, {1000, 1000}} {
		for _, k := range kinds {
			// The fake has no sequence.
			subjects := slices.DeleteFunc(slices.Clone(k.subjects), func(s subject) bool { return s.label() == bigserial.name })
			versus(b, fmt.Sprintf("batch=%d/kind=%s/", s.batch, k.name), subjects, figures.Duel{Operations: s.rows, Unit: "row"}, func(b *testing.B, subject subject) figures.Side {
				return subject.side(b, openFake(b, subject.plugins(b)...), s, "truncate "+table)
			})
		}
	}
}

func openFake(b *testing.B, plugins ...gorm.Plugin) *gorm.DB {
	b.Helper()
	return open(b, sql.OpenDB(new(fake)), plugins...)
}

// A fake is a server with a table of contacts. It keeps the arguments of INSERTs and
// returns them from every query. A statement without arguments deletes them. Like
// pgx's driver, it accepts arguments without conversion.
type fake struct{ inserted [][]driver.NamedValue }

func (f *fake) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fake) Driver() driver.Driver                        { return nil }
func (f *fake) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (f *fake) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (f *fake) Close() error                                 { return nil }
func (f *fake) CheckNamedValue(*driver.NamedValue) error     { return nil }

func (f *fake) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		clear(f.inserted)
		f.inserted = f.inserted[:0]
	} else {
		f.inserted = append(f.inserted, args)
	}
	return driver.RowsAffected(len(args) / len(columns)), nil
}

func (f *fake) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &answer{slices.Concat(f.inserted...)}, nil
}

var columns = []string{"id", "email", "visits"}

type answer struct{ values []driver.NamedValue }

func (a *answer) Columns() []string { return columns }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(row []driver.Value) (err error) {
	if len(a.values) == 0 {
		return io.EOF
	}
	for i := range row {
		if row[i], err = driver.DefaultParameterConverter.ConvertValue(a.values[i].Value); err != nil {
			return err
		}
	}
	a.values = a.values[len(row):]
	return nil
}
