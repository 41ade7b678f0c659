package gormbench

import (
	"context"
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// callbackRows is the number of keys that a turn sets.
const callbackRows = 1000

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

type row = contact[idtype.Snowflake]

// BenchmarkCallback sets the keys of rows without an INSERT, with a generator that takes no
// time. The yardstick uses GORM's Field.Set, like most callbacks.
func BenchmarkCallback(b *testing.B) {
	for _, shape := range []struct {
		name string
		dest func() any
	}{
		{"one", func() any { return new(row) }},
		{"values", func() any { rows := make([]row, callbackRows); return &rows }},
		{"pointers", func() any {
			rows := make([]*row, callbackRows)
			for i := range rows {
				rows[i] = new(row)
			}
			return &rows
		}},
	} {
		for _, way := range []struct {
			name string
			set  func(*testing.B, *gorm.DB) func() error
		}{{"Set", bySet}, {"plugin", byPlugin}} {
			b.Run("rows="+shape.name+"/by="+way.name, func(b *testing.B) {
				figures.Duel{Operations: callbackRows, Unit: "row"}.Run(b, side(b, shape.dest(), bySet), side(b, shape.dest(), way.set))
			})
		}
	}
}

// side returns a side that sets the keys of dest, a pointer to a row or to a slice. If it is a
// single row, the side sets that row's key repeatedly.
func side(b *testing.B, dest any, set func(*testing.B, *gorm.DB) func() error) figures.Side {
	b.Helper()
	db, err := gorm.Open(tests.DummyDialector{})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.For(new(free)))); err != nil {
		b.Fatal(err)
	}
	// The DB that callbacks receive for a Create of dest.
	tx := db.Session(&gorm.Session{Initialized: true})
	tx.Statement.Context = context.Background()
	tx.Statement.Dest = dest
	tx.Statement.ReflectValue = reflect.ValueOf(dest).Elem()
	if err := tx.Statement.Parse(dest); err != nil {
		b.Fatal(err)
	}
	var ids []*idtype.Snowflake
	switch rows := dest.(type) {
	case *row:
		ids = append(ids, &rows.ID)
	case *[]row:
		for i := range *rows {
			ids = append(ids, &(*rows)[i].ID)
		}
	case *[]*row:
		for _, r := range *rows {
			ids = append(ids, &r.ID)
		}
	}
	fill := set(b, tx)
	reset := func() error {
		for _, id := range ids {
			*id = 0
		}
		return nil
	}
	if err := fill(); err != nil {
		b.Fatal(err)
	}
	for i, id := range ids {
		if *id == 0 || i > 0 && *id == *ids[i-1] {
			b.Fatalf("row %d has the key %v, which is zero or a duplicate", i, *id)
		}
	}
	_ = reset()
	return figures.Side{Reset: reset, Run: func() error {
		for range callbackRows / len(ids) {
			*ids[0] = 0
			if err := fill(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// bySet sets keys like the callbacks in GORM's documentation.
func bySet(_ *testing.B, tx *gorm.DB) func() error {
	gen, stmt := new(free), tx.Statement
	field := stmt.Schema.PrioritizedPrimaryField
	return func() error {
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

// byPlugin calls the plugin's callbacks for a Create: one before the INSERT and one
// after it.
func byPlugin(b *testing.B, tx *gorm.DB) func() error {
	b.Helper()
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
