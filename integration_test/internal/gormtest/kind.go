package gormtest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// A Kind is an [idtest.Kind] whose functions take and return [ID]s.
type Kind struct {
	Name   string
	Column string // the type of its column

	first, last time.Time
	unit        time.Duration
	at          func(t time.Time, pick func(largest int) int) (ID, error)
	stored      func(ID) string
	window      func(column string, from, to time.Time) scope // nil if IDs don't sort by time
	formWindow  func(column string, from, to time.Time) scope // like window, with the layout of a struct's ID
	mapped      func(t *testing.T, f func(ID) ID) gormplugin.Binding
	none        gormplugin.Binding // of a generator that fails
	types       *types
}

// Typed keys with a prefix, Snos with a metabyte, and the caller's own ID types, which are
// structs.
type (
	typedSno   = idtype.SnoOf[idtest.Customer]
	orderID    struct{ idtype.Snowflake }
	customerID struct{ idtype.Sno }
)

func (a orderID) Compare(b orderID) int       { return a.Snowflake.Compare(b.Snowflake) }
func (a customerID) Compare(b customerID) int { return a.Sno.Compare(b.Sno) }

// own returns the kind of the caller's own ID type.
func own[T idtest.ID[T], V idtest.ID[V]](base idtest.Kind[T], of func(T) V, id func(V) T) idtest.Kind[V] {
	return idtest.Kind[V]{Name: typename.OfValue(*new(V)), Column: base.Column, First: base.First, Last: base.Last, Unit: base.Unit,
		Stored: func(v V) string { return base.Stored(id(v)) },
		At: func(t time.Time, pick func(int) int) (V, error) {
			v, err := base.At(t, pick)
			return of(v), err
		},
		NewGenerator: func() (idtype.Generator[V], error) {
			gen, err := base.NewGenerator()
			return idtype.MapGenerator(gen, of), err
		}}
}

// The kinds.
var (
	Snowflake      = newKind[snowflakePerson](idtest.Snowflake)
	SnowflakeSI    = newKind[snowflakeSIPerson](idtest.SnowflakeSI)
	UID60          = newKind[uid60Person](idtest.UID60)
	Spread64       = newKind[spread64Person](idtest.Spread64)
	Sno            = withBytes(newKind[snoPerson](idtest.Sno))
	TypedSnowflake = newKind[typedSnowflakePerson](idtest.OrderID)
	TypedSno       = newKind[typedSnoPerson](idtest.CustomerID)
	UUID           = newKind[uuidPerson](idtest.UUID)
	TypedUUID      = newKind[typedUUIDPerson](idtest.OrderUUID)
	OwnSnowflake   = ownKind[ownSnowflakePerson](idtest.Snowflake, func(id idtype.Snowflake) orderID { return orderID{id} }, func(id orderID) idtype.Snowflake { return id.Snowflake })
	OwnSno         = ownKind[ownSnoPerson](idtest.Sno, func(id idtype.Sno) customerID { return customerID{id} }, func(id customerID) idtype.Sno { return id.Sno })
)

func ownKind[N any, T idtest.ID[T], V idtest.ID[V]](base idtest.Kind[T], of func(T) V, id func(V) T) *Kind {
	k := newKind[N](own(base, of, id))
	k.formWindow = windowOf(base.Layout)
	return k
}

// withBytes adds the forms of a Sno in a column of type bytea.
func withBytes(k *Kind) *Kind {
	k.types.add(reflect.TypeFor[inBytes](), reflect.TypeFor[sqltypes.SnoBytes]())
	k.types.add(reflect.TypeFor[keyed[inBytes]](), reflect.TypeFor[keyed[sqltypes.SnoBytes]]())
	return k
}

func windowOf[T any](layout gormplugin.Layout[T]) func(column string, from, to time.Time) scope {
	if layout == nil {
		return nil
	}
	return func(column string, from, to time.Time) scope {
		return gormplugin.CreatedBetweenIn(layout, column, from, to)
	}
}

func newKind[N any, T idtest.ID[T]](k idtest.Kind[T]) *Kind {
	idOf := func(v T) (id ID) {
		if !v.IsZero() {
			id.value = v
		}
		return id
	}
	real := func(id ID) (v T) {
		if !id.IsZero() {
			v = id.value.(T)
		}
		return v
	}
	window := windowOf(k.Layout)
	return &Kind{
		Name: k.Name, Column: k.Column, first: k.First, last: k.Last, unit: k.Unit, window: window, formWindow: window,
		at: func(t time.Time, pick func(int) int) (ID, error) {
			id, err := k.At(t, pick)
			return idOf(id), err
		},
		stored: func(id ID) string { return k.Stored(real(id)) },
		mapped: func(t *testing.T, f func(ID) ID) gormplugin.Binding {
			return gormplugin.For(idtype.MapGenerator(must1(t, k.NewGenerator), func(id T) T { return real(f(idOf(id))) }))
		},
		none:  gormplugin.For(noIDs[T]{}),
		types: newTypes(append(modelTypes[T](), (*person)(nil), (*N)(nil))),
	}
}

// newTypes returns types for a list of pointers to types with ID, each followed by the real one.
func newTypes(list []any) *types {
	ts := &types{real: map[reflect.Type]reflect.Type{}, of: map[reflect.Type]reflect.Type{}}
	for i := 0; i < len(list); i += 2 {
		ts.add(reflect.TypeOf(list[i]).Elem(), reflect.TypeOf(list[i+1]).Elem())
	}
	return ts
}

// Some tests are only for ID types that sort by time, that aren't structs, which GORM takes for
// models in a list of conditions, or that have one type of column.

func (k *Kind) byTime() bool { return k.window != nil }
func (k *Kind) plain() bool  { return k.goKind() != reflect.Struct }
func (k *Kind) number() bool { return k.Column == "bigint" }
func (k *Kind) uuid() bool   { return k.Column == "uuid" }

func (k *Kind) goKind() reflect.Kind { return k.realKind(typeID) }

// realKind returns the kind of the type that GORM gets for t.
func (k *Kind) realKind(t reflect.Type) reflect.Kind { return k.types.realOf(t).Kind() }

func (k *Kind) is(id any) bool { return k.types.realOf(typeID) == reflect.TypeOf(id) }

// real returns a value with the ID type in place of ID.
func (k *Kind) real(v any) any { return newCopying(k.types, nil).real(v) }

// A cursor is an ID in some form.
type cursor interface{ IsZero() bool }

func (k *Kind) after(column string, c cursor) scope {
	return gormplugin.PageAfter(column, k.real(c).(cursor))
}
func (k *Kind) before(column string, c cursor) scope {
	return gormplugin.PageBefore(column, k.real(c).(cursor))
}

// A noIDs is a generator that fails.
type noIDs[T any] struct{}

var errNoIDs = errors.New("the generator has no IDs")

func (noIDs[T]) Next() (id T, err error)                { return id, errNoIDs }
func (noIDs[T]) Fill(context.Context, []T) (int, error) { return 0, errNoIDs }

// bindings returns generators of the formats. They also fill typed keys and the caller's own ID
// types.
func bindings(t *testing.T) []gormplugin.Binding {
	return []gormplugin.Binding{
		gormplugin.For(must1(t, idtest.Snowflake.NewGenerator)), gormplugin.For(must1(t, idtest.SnowflakeSI.NewGenerator)),
		gormplugin.For(must1(t, idtest.UID60.NewGenerator)), gormplugin.For(must1(t, idtest.Spread64.NewGenerator)),
		gormplugin.For(must1(t, idtest.Sno.NewGenerator)), gormplugin.For(must1(t, idtest.UUID.NewGenerator)),
	}
}

// ids returns n IDs with a time in the past, like IDs of an earlier run.
func (k *Kind) ids(t *testing.T, n int) (ids []ID) {
	t.Helper()
	for i := range n {
		id, err := k.at(k.first.AddDate(1, 0, i), func(largest int) int { return largest / (i + 1) })
		must(t, err)
		ids = append(ids, id)
	}
	return ids
}
