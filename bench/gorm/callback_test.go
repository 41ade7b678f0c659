package gormbench

import (
	"context"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// callbackRows is the number of keys that a turn sets. It is less than a Snowflake
// generator's 4096 per millisecond, so no generator waits for its cap.
const callbackRows = 1000

// BenchmarkCallback sets the keys of rows without an INSERT. The yardstick uses GORM's
// Field.Set, like most callbacks. Next and Fill are loops over the concrete row type:
// they take only the time of the generator, the minimum.
func BenchmarkCallback(b *testing.B) {
	b.Run("generator=free", func(b *testing.B) {
		setKeys(b, func(*testing.B) idtype.Generator[idtype.Snowflake] { return new(free) }, gormplugin.For, func() {})
	})
	// A typed key, filled by a generator of its base type.
	b.Run("generator=free,typed", func(b *testing.B) {
		setKeys(b, func(*testing.B) idtype.Generator[typedKey] {
			return idtype.GeneratorOf[idtype.SnowflakeOf[row]](new(free))
		},
			func(idtype.Generator[typedKey]) gormplugin.Binding { return gormplugin.For(new(free)) }, func() {})
	})
	b.Run("generator=Snowflake", func(b *testing.B) { setKeys(b, snowflakes, gormplugin.For, awaitUnit) })
	b.Run("generator=Sno", func(b *testing.B) { setKeys(b, snos, gormplugin.For, awaitUnit) })
	b.Run("generator=UUID", func(b *testing.B) { setKeys(b, uuids, gormplugin.For, awaitUnit) })
}

// A row is the model of typed keys.
type row struct{}

type typedKey = idtype.SnowflakeOf[row]

func awaitUnit() { figures.AwaitUnit(time.Millisecond) }

// free generates IDs at no cost.
type free struct{ n idtype.Snowflake }

func (g *free) Next() (idtype.Snowflake, error) { g.n++; return g.n, nil }

func (g *free) Fill(_ context.Context, dst []idtype.Snowflake) (int, error) {
	for i := range dst {
		g.n++
		dst[i] = g.n
	}
	return len(dst), nil
}

func setKeys[T comparable](b *testing.B, generator func(*testing.B) idtype.Generator[T], bind func(idtype.Generator[T]) gormplugin.Binding, pause func()) {
	byPlugin := func(b *testing.B, t *target[T], gen idtype.Generator[T]) func() error {
		return byPlugin(b, t, bind(gen))
	}
	ways := []struct {
		name string
		set  func(*testing.B, *target[T], idtype.Generator[T]) func() error
	}{{"Set", bySet[T]}, {"Next", byNext[T]}, {"Fill", byFill[T]}, {"plugin", byPlugin}}
	for _, shape := range []struct {
		name   string
		target func(*testing.B) *target[T]
	}{{"one", oneRow[T]}, {"one,cancelable", cancelable[T]}, {"values", values[T]}, {"pointers", pointers[T]}} {
		for _, way := range ways {
			b.Run("rows="+shape.name+"/by="+way.name, func(b *testing.B) {
				yardstick, subject := shape.target(b), shape.target(b)
				figures.Duel{Operations: callbackRows, Unit: "row"}.Run(b,
					yardstick.side(b, bySet(b, yardstick, generator(b)), pause),
					subject.side(b, way.set(b, subject, generator(b)), pause))
			})
		}
	}
}

// A target is the argument of a Create and the rows in it.
type target[T comparable] struct {
	dest any
	rows []*contact[T]
	ctx  context.Context
}

func oneRow[T comparable](*testing.B) *target[T] {
	row := new(contact[T])
	return &target[T]{row, []*contact[T]{row}, context.Background()}
}

// cancelable returns one row and a cancelable context, such as a request's.
func cancelable[T comparable](b *testing.B) *target[T] {
	t := oneRow[T](b)
	t.ctx = b.Context()
	return t
}

func values[T comparable](*testing.B) *target[T] {
	rows := make([]contact[T], callbackRows)
	t := &target[T]{dest: &rows, ctx: context.Background()}
	for i := range rows {
		t.rows = append(t.rows, &rows[i])
	}
	return t
}

func pointers[T comparable](*testing.B) *target[T] {
	t := &target[T]{ctx: context.Background()}
	for range callbackRows {
		t.rows = append(t.rows, new(contact[T]))
	}
	t.dest = &t.rows
	return t
}

// statement returns the DB that callbacks receive for a Create of the target.
func (t *target[T]) statement(b *testing.B, plugins ...gorm.Plugin) *gorm.DB {
	b.Helper()
	db := openFake(b, plugins...)
	tx := db.Session(&gorm.Session{Initialized: true})
	tx.Statement.Context = t.ctx
	tx.Statement.Dest = t.dest
	tx.Statement.ReflectValue = reflect.ValueOf(t.dest).Elem()
	if err := tx.Statement.Parse(t.dest); err != nil {
		b.Fatal(err)
	}
	return tx
}

// side returns a side that sets callbackRows keys. If the target is a single row, it
// sets that row's key repeatedly.
func (t *target[T]) side(b *testing.B, set func() error, pause func()) figures.Side {
	b.Helper()
	var none T
	run, times := set, callbackRows/len(t.rows)
	if times > 1 {
		run = func() error {
			for range times {
				t.rows[0].ID = none
				if err := set(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	reset := func() error {
		for _, row := range t.rows {
			row.ID = none
		}
		pause()
		return nil
	}

	if err := set(); err != nil {
		b.Fatal(err)
	}
	keys := map[T]bool{none: true}
	for i, row := range t.rows {
		if keys[row.ID] {
			b.Fatalf("row %d has the key %v, which is zero or a duplicate", i, row.ID)
		}
		keys[row.ID] = true
	}
	if err := reset(); err != nil {
		b.Fatal(err)
	}
	return figures.Side{Run: run, Reset: reset}
}

// bySet sets keys like the callbacks in GORM's documentation.
func bySet[T comparable](b *testing.B, t *target[T], gen idtype.Generator[T]) func() error {
	b.Helper()
	stmt := t.statement(b).Statement
	return func() error {
		field := stmt.Schema.PrioritizedPrimaryField
		if stmt.ReflectValue.Kind() == reflect.Struct {
			id, err := gen.Next()
			if err != nil {
				return err
			}
			return field.Set(stmt.Context, stmt.ReflectValue, id)
		}
		for i := range stmt.ReflectValue.Len() {
			id, err := gen.Next()
			if err != nil {
				return err
			}
			if err := field.Set(stmt.Context, reflect.Indirect(stmt.ReflectValue.Index(i)), id); err != nil {
				return err
			}
		}
		return nil
	}
}

func byNext[T comparable](_ *testing.B, t *target[T], gen idtype.Generator[T]) func() error {
	return func() (err error) {
		for _, row := range t.rows {
			if row.ID, err = gen.Next(); err != nil {
				return err
			}
		}
		return nil
	}
}

func byFill[T comparable](_ *testing.B, t *target[T], gen idtype.Generator[T]) func() error {
	ids := make([]T, len(t.rows))
	return func() error {
		if _, err := gen.Fill(t.ctx, ids); err != nil {
			return err
		}
		for i, row := range t.rows {
			row.ID = ids[i]
		}
		return nil
	}
}

// byPlugin calls the plugin's callbacks for a Create: one before the INSERT and one
// after it.
func byPlugin[T comparable](b *testing.B, t *target[T], bound gormplugin.Binding) func() error {
	b.Helper()
	tx := t.statement(b, gormplugin.New(bound))
	before := tx.Callback().Create().Get("sortkey:fill_keys")
	after := tx.Callback().Create().Get("sortkey:reconcile_keys")
	if before == nil || after == nil {
		b.Fatal("callback sortkey:fill_keys or sortkey:reconcile_keys isn't registered")
	}
	return func() error {
		before(tx)
		after(tx)
		return tx.Error
	}
}
