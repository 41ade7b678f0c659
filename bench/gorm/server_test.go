package gormbench

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

// shapes are the turns on a server. Each takes some milliseconds.
var shapes = []shape{{20, 1}, {1000, 1000}}

// A client is a configuration of pgx, with or without the codec of the keys.
type client struct {
	name         string
	afterConnect func(subject) func(context.Context, *pgx.Conn) error
}

var clients = []client{
	{"plain", func(subject) func(context.Context, *pgx.Conn) error {
		return func(context.Context, *pgx.Conn) error { return nil }
	}},
	{"codec", func(s subject) func(context.Context, *pgx.Conn) error { return s.codec }},
}

// open opens a session with an empty temporary table for a subject.
func (c client) open(b *testing.B, config *pgx.ConnConfig, s subject, email string) *gorm.DB {
	b.Helper()
	pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(c.afterConnect(s)))
	pool.SetMaxOpenConns(1) // other sessions don't see the temporary table
	db := open(b, pool, s.plugins(b)...)
	exec(b, db, fmt.Sprintf("create temporary table %s (id %s primary key, email %s, visits bigint)", table, s.column(), email))
	return db
}

func exec(b *testing.B, db *gorm.DB, sql string) {
	b.Helper()
	if err := db.Exec(sql).Error; err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// BenchmarkPostgres creates rows in an empty temporary table. Its only index is the
// primary key's.
func BenchmarkPostgres(b *testing.B) {
	config := figures.Server(b, "./bench/gorm")
	for _, c := range clients {
		for _, s := range shapes {
			for _, k := range kinds {
				prefix := fmt.Sprintf("client=%s/batch=%d/kind=%s/", c.name, s.batch, k.name)
				versus(b, prefix, k.subjects, figures.Duel{Operations: s.rows, Unit: "row", CPU: true}, func(b *testing.B, subject subject) figures.Side {
					return subject.side(b, c.open(b, config, subject, "text"), s, "truncate "+table)
				})
			}
		}
	}
}

// BenchmarkUpsert creates or updates rows by a key other than the primary one. Every
// second row exists already, and the database returns its ID.
func BenchmarkUpsert(b *testing.B) {
	config := figures.Server(b, "./bench/gorm")
	conflict := clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"visits"})}
	for _, c := range clients {
		for _, s := range shapes {
			prefix := fmt.Sprintf("client=%s/batch=%d/", c.name, s.batch)
			versus(b, prefix, upserts, figures.Duel{Operations: s.rows, Unit: "row", CPU: true}, func(b *testing.B, subject subject) figures.Side {
				db := c.open(b, config, subject, "text unique")
				if err := subject.side(b, db, s, "truncate "+table).Run(); err != nil {
					b.Fatal(err)
				}
				exec(b, db, "create temporary table known as select * from "+table+" where visits % 2 = 0")
				side := subject.side(b, db.Clauses(conflict).Session(&gorm.Session{}), s,
					"truncate "+table+"; insert into "+table+" select * from known")

				if err := side.Run(); err != nil {
					b.Fatal(err)
				}
				var same int
				err := db.Raw("select count(*) from " + table + " join known using (id, email, visits)").Scan(&same).Error
				if err != nil || same != s.rows/2 {
					b.Fatalf("%s: %d rows were updated, want %d: %v", subject.label(), same, s.rows/2, err)
				}
				if err := side.Reset(); err != nil {
					b.Fatal(err)
				}
				return side
			})
		}
	}
}
