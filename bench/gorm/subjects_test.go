package gormbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

const table = "contacts"

// A contact has few columns besides its key, to make the key a large part of the cost
// of a row.
type contact[T comparable] struct {
	ID     T
	Email  string
	Visits int64
}

func (contact[T]) TableName() string { return table }

func newContact[T comparable](i int) contact[T] {
	return contact[T]{Email: email(i), Visits: int64(i)}
}

// A hookedContact creates its own key in a hook.
type hookedContact struct {
	ID     uuid.UUID
	Email  string
	Visits int64
}

func (hookedContact) TableName() string { return table }

func (c *hookedContact) BeforeCreate(*gorm.DB) (err error) {
	c.ID, err = uuid.NewV7()
	return err
}

func newHookedContact(i int) hookedContact {
	return hookedContact{Email: email(i), Visits: int64(i)}
}

func email(i int) string { return fmt.Sprintf("contact%d@example.com", i) }

// A shape is the number of rows that a turn creates, and the size of its batches.
type shape struct{ rows, batch int }

// A subject is a way for rows to get their keys.
type subject interface {
	label() string
	column() string // the key's type
	codec(context.Context, *pgx.Conn) error
	plugins(*testing.B) []gorm.Plugin
	// side returns a side that creates rows. The SQL in reset restores the table.
	side(b *testing.B, db *gorm.DB, s shape, reset string) figures.Side
}

// of is a subject with rows of type R.
type of[R comparable] struct {
	name         string
	columnType   string
	afterConnect func(context.Context, *pgx.Conn) error // registers the codec of the key's type
	row          func(i int) R                          // returns a row without a key

	// At most one of these sets the keys. Otherwise the database or a hook does.
	preset func(*testing.B) func([]R) error // sets them before Create, unmeasured
	minted func(*testing.B) func([]R) error // sets them before Create, measured
	plugin func(*testing.B) gorm.Plugin
}

func (o of[R]) label() string                                   { return o.name }
func (o of[R]) column() string                                  { return o.columnType }
func (o of[R]) codec(ctx context.Context, conn *pgx.Conn) error { return o.afterConnect(ctx, conn) }
func (o of[R]) plugins(b *testing.B) []gorm.Plugin {
	if o.plugin == nil {
		return nil
	}
	return []gorm.Plugin{o.plugin(b)}
}

func (o of[R]) side(b *testing.B, db *gorm.DB, s shape, reset string) figures.Side {
	b.Helper()
	preset, minted := func([]R) error { return nil }, func([]R) error { return nil }
	if o.preset != nil {
		preset = o.preset(b)
	}
	if o.minted != nil {
		minted = o.minted(b)
	}
	blank := make([]R, s.rows)
	for i := range blank {
		blank[i] = o.row(i)
	}
	rows := make([]R, s.rows)

	create := func(batch []R) error {
		if err := minted(batch); err != nil {
			return err
		}
		if len(batch) == 1 {
			return db.Create(&batch[0]).Error
		}
		many := batch // &batch would make single rows allocate, too
		return db.Create(&many).Error
	}
	side := figures.Side{
		Run: func() error {
			for batch := range slices.Chunk(rows, s.batch) {
				if err := create(batch); err != nil {
					return err
				}
			}
			return nil
		},
		Reset: func() error {
			copy(rows, blank)
			if err := db.Exec(reset).Error; err != nil {
				return err
			}
			return preset(rows)
		},
	}
	o.check(b, db, side, rows, blank)
	return side
}

// check runs a side once. It checks that each row has received a key and that the
// table contains the same rows.
func (o of[R]) check(b *testing.B, db *gorm.DB, side figures.Side, rows, blank []R) {
	b.Helper()
	if err := errors.Join(side.Reset(), side.Run()); err != nil {
		b.Fatalf("%s: %v", o.name, err)
	}
	var stored []R
	if err := db.Order("visits").Find(&stored).Error; err != nil {
		b.Fatalf("%s: %v", o.name, err)
	}
	if len(stored) != len(rows) {
		b.Fatalf("%s: the table has %d rows, want %d", o.name, len(stored), len(rows))
	}
	for i := range rows {
		switch rows[i] {
		case blank[i]:
			b.Fatalf("%s: row %d has no key", o.name, i)
		case stored[i]:
		default:
			b.Fatalf("%s: row %d is %v in memory but %v in the table", o.name, i, rows[i], stored[i])
		}
	}
	if err := side.Reset(); err != nil {
		b.Fatalf("%s: %v", o.name, err)
	}
}

// A kind is the type of the key column. Its first subject is the yardstick.
type kind struct {
	name     string
	subjects []subject
}

// The yardstick of kinds is rows with preset keys, without the plugin.
var kinds = []kind{
	{"bigint", []subject{
		preset("preset", "bigint", snowflakes),
		minted("minted", "bigint", snowflakes),
		plugin("plugin", "bigint", snowflakes),
		bigserial,
	}},
	{"uuid", []subject{
		preset("preset", "uuid", uuids),
		minted("minted", "uuid", uuids),
		plugin("plugin", "uuid", uuids),
		plugin("plugin,Sno", "uuid", snos),
		v7hook,
	}},
}

// upserts are the subjects of BenchmarkUpsert. The database returns their keys.
var upserts = []subject{
	bigserial,
	plugin("Snowflake", "bigint", snowflakes),
	plugin("Sno", "uuid", snos),
	plugin("UUID", "uuid", uuids),
}

var (
	// bigserial gets keys that the database creates, by RETURNING.
	bigserial = contacts[int64]("bigserial", "bigserial")
	// v7hook creates the key in each row's hook.
	v7hook = of[hookedContact]{name: "v7hook", columnType: "uuid", row: newHookedContact,
		afterConnect: func(_ context.Context, conn *pgx.Conn) error { pgxuuid.Register(conn.TypeMap()); return nil }}
)

func preset[T comparable](name, column string, generator func(*testing.B) idtype.Generator[T]) subject {
	o := contacts[T](name, column)
	o.preset = minter(generator)
	return o
}

func minted[T comparable](name, column string, generator func(*testing.B) idtype.Generator[T]) subject {
	o := contacts[T](name, column)
	o.minted = minter(generator)
	return o
}

func plugin[T comparable](name, column string, generator func(*testing.B) idtype.Generator[T]) subject {
	o := contacts[T](name, column)
	o.plugin = func(b *testing.B) gorm.Plugin { return gormplugin.New(gormplugin.For(generator(b))) }
	return o
}

func contacts[T comparable](name, column string) of[contact[T]] {
	return of[contact[T]]{name: name, columnType: column, row: newContact[T], afterConnect: pgxcodec.AfterConnect}
}

// minter returns a function that sets keys by Next, like a caller.
func minter[T comparable](generator func(*testing.B) idtype.Generator[T]) func(*testing.B) func([]contact[T]) error {
	return func(b *testing.B) func([]contact[T]) error {
		b.Helper()
		gen := generator(b)
		return func(rows []contact[T]) (err error) {
			for i := range rows {
				if rows[i].ID, err = gen.Next(); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func snowflakes(b *testing.B) idtype.Generator[idtype.Snowflake] {
	b.Helper()
	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return gen
}

func snos(b *testing.B) idtype.Generator[idtype.Sno] {
	b.Helper()
	gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{'A', 10}})
	if err != nil {
		b.Fatal(err)
	}
	return gen
}

func uuids(b *testing.B) idtype.Generator[idtype.UUID] {
	b.Helper()
	gen, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return gen
}

// versus runs a benchmark of each subject against the first one.
func versus(b *testing.B, prefix string, subjects []subject, d figures.Duel, open func(b *testing.B, s subject) figures.Side) {
	b.Helper()
	for _, s := range subjects {
		b.Run(prefix+"key="+s.label(), func(b *testing.B) {
			yardstick := open(b, subjects[0])
			d.Run(b, yardstick, open(b, s))
		})
	}
}
