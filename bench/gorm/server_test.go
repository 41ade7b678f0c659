package gormbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// A contact has few columns besides its key, to make the key a large part of the cost
// of a row.
type contact[T comparable] struct {
	ID     T
	Email  string
	Visits int64
}

func (contact[T]) TableName() string { return "contacts" }

// A hookedContact creates its own key in a hook.
type hookedContact struct {
	ID     uuid.UUID
	Email  string
	Visits int64
}

func (hookedContact) TableName() string { return "contacts" }

func (c *hookedContact) BeforeCreate(*gorm.DB) (err error) {
	c.ID, err = uuid.NewV7()
	return err
}

// of and hooked return a row of another type.
func of[T comparable](c contact[int]) contact[T] { return contact[T]{Email: c.Email, Visits: c.Visits} }
func hooked(c contact[int]) hookedContact        { return hookedContact{Email: c.Email, Visits: c.Visits} }

// A subject is a way for rows of type R to get their keys.
type subject[R comparable] struct {
	column   string               // the key's type
	codec    func(*pgtype.Map)    // of the key's type
	row      func(contact[int]) R // returns a row without a key
	bindings []gormplugin.Binding // the plugin's, if it fills the keys
	preset   func([]R) error      // sets the keys before Create, unmeasured; may be nil
}

// BenchmarkPostgres creates rows in an empty temporary table, whose only index is the primary
// key's. The yardstick is rows with preset keys, without the plugin.
func BenchmarkPostgres(b *testing.B) {
	config := figures.Server(b, "./bench/gorm")
	snowflakes, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	if err != nil {
		b.Fatal(err)
	}
	uuids, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		b.Fatal(err)
	}
	type way struct {
		key  string
		open func(b *testing.B, batch int) figures.Side
	}
	plugin := []gormplugin.Binding{gormplugin.For(snowflakes), gormplugin.For(uuids)}
	for _, batch := range []int{1, 1000} {
		for _, k := range []struct {
			name string
			ways []way // the first is the yardstick
		}{
			{"bigint", []way{
				{"preset", subject[contact[idtype.Snowflake]]{"bigint", pgxcodec.Register, of[idtype.Snowflake], nil, byNext(snowflakes)}.open(config)},
				{"plugin", subject[contact[idtype.Snowflake]]{"bigint", pgxcodec.Register, of[idtype.Snowflake], plugin, nil}.open(config)},
				{"bigserial", subject[contact[int64]]{"bigserial", pgxcodec.Register, of[int64], nil, nil}.open(config)},
			}},
			{"uuid", []way{
				{"preset", subject[contact[idtype.UUID]]{"uuid", pgxcodec.Register, of[idtype.UUID], nil, byNext(uuids)}.open(config)},
				{"plugin", subject[contact[idtype.UUID]]{"uuid", pgxcodec.Register, of[idtype.UUID], plugin, nil}.open(config)},
				{"v7hook", subject[hookedContact]{"uuid", pgxuuid.Register, hooked, nil, nil}.open(config)},
			}},
		} {
			for _, w := range k.ways {
				b.Run(fmt.Sprintf("client=codec/batch=%d/kind=%s/key=%s", batch, k.name, w.key), func(b *testing.B) {
					d := figures.Duel{Operations: max(batch, 20), Unit: "row", Meters: []figures.Meter{figures.ProcessCPU}}
					d.Run(b, k.ways[0].open(b, batch), w.open(b, batch))
				})
			}
		}
	}
}

// byNext returns a function that sets keys by Next, like a caller.
func byNext[T comparable](gen idtype.Generator[T]) func([]contact[T]) error {
	return func(rows []contact[T]) (err error) {
		for i := range rows {
			if rows[i].ID, err = gen.Next(); err != nil {
				return err
			}
		}
		return nil
	}
}

// open returns a function that opens a session with an empty temporary table, and returns a side
// that creates rows in it in batches.
func (s subject[R]) open(config *pgx.ConnConfig) func(b *testing.B, batch int) figures.Side {
	return func(b *testing.B, batch int) figures.Side {
		b.Helper()
		pool := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
			s.codec(conn.TypeMap())
			return nil
		}))
		b.Cleanup(func() { _ = pool.Close() })
		pool.SetMaxOpenConns(1) // other sessions don't see the temporary table
		// Create runs without a transaction, to make the key a larger part of its cost.
		db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{SkipDefaultTransaction: true, Logger: logger.Discard})
		if err != nil {
			b.Fatal(err)
		}
		if s.bindings != nil {
			if err := db.Use(gormplugin.New(s.bindings...)); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.Exec("create temporary table contacts (id " + s.column + " primary key, email text, visits bigint)").Error; err != nil {
			b.Fatal(err)
		}

		blank := make([]R, max(batch, 20))
		for i := range blank {
			blank[i] = s.row(contact[int]{Email: fmt.Sprintf("contact%d@example.com", i), Visits: int64(i)})
		}
		rows := slices.Clone(blank)
		side := figures.Side{
			Run: func() error {
				for batch := range slices.Chunk(rows, batch) {
					if err := create(db, batch); err != nil {
						return err
					}
				}
				return nil
			},
			Reset: func() error {
				copy(rows, blank)
				if err := db.Exec("truncate contacts").Error; err != nil || s.preset == nil {
					return err
				}
				return s.preset(rows)
			},
		}
		// Check that each row receives a key, and that the table contains the same rows.
		var stored []R
		if err := errors.Join(side.Reset(), side.Run(), db.Order("visits").Find(&stored).Error); err != nil {
			b.Fatal(err)
		}
		if !slices.Equal(stored, rows) || slices.ContainsFunc(rows, func(r R) bool { return slices.Contains(blank, r) }) {
			b.Fatalf("created %v, but the table has %v", rows, stored)
		}
		if err := side.Reset(); err != nil {
			b.Fatal(err)
		}
		return side
	}
}

// create inserts rows.
func create[R any](db *gorm.DB, batch []R) error {
	if len(batch) == 1 {
		return db.Create(&batch[0]).Error
	}
	many := batch // &batch would make single rows allocate, too
	return db.Create(&many).Error
}
