package pgxcodec_test

import (
	"database/sql"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// The fields of these structs are the generic types that hold a V. The tests make values of
// these types with reflection: the compiler would make a generic test once per V.
type (
	holders[V comparable] struct {
		Null     sql.Null[V]
		List     list[V]
		Pointers list[*V]
		Slices   list[[]V]
		Matrix   matrix[V]
		Document document[V]
		Hidden   struct{ id V }
	}
	idHolders[V sqltypes.ID] struct {
		holders[V]
		Optional         sqltypes.Optional[V]
		IDs              sqltypes.Array[V]
		OptionalIDs      sqltypes.Array[sqltypes.Optional[V]]
		Optionals        list[sqltypes.Optional[V]]
		OptionalDocument document[sqltypes.Optional[V]]
	}
	// Types with many methods, which take half of the time to compile. The first family of each
	// kind of ID has them.
	pgxHolders[V comparable] struct {
		Flat         pgtype.FlatArray[V]
		FlatPointers pgtype.FlatArray[*V]
		FlatSlices   pgtype.FlatArray[[]V]
		Array        pgtype.Array[V]
		Range        pgtype.Range[V]
		Multirange   pgtype.Multirange[pgtype.Range[V]]
		NullPointer  sql.Null[*V]
		NullSlice    sql.Null[[]V]
	}
	pgxIDHolders[V sqltypes.ID] struct {
		pgxHolders[V]
		NullOptional sql.Null[sqltypes.Optional[V]]
	}
)

// Named types around others.
type (
	list[V any]     []V
	matrix[V any]   [][]V
	document[V any] struct {
		ID   V   `json:"id"`
		List []V `json:"list"`
		Next *V  `json:"next"`
		Name string
	}
)

// A family is a value, such as an ID, with its type and the types that hold it.
type family struct {
	v     any
	typ   reflect.Type
	types []reflect.Type // structs like holders
}

func familyOf[V comparable](v V) family {
	return family{v, reflect.TypeFor[V](), []reflect.Type{reflect.TypeFor[holders[V]]()}}
}

func idFamily[V sqltypes.ID](v V) family {
	return family{v, reflect.TypeFor[V](), []reflect.Type{reflect.TypeFor[idHolders[V]]()}}
}

// in returns a type of the family, or nil if the family lacks it.
func (f family) in(name string) reflect.Type {
	for _, t := range f.types {
		if field, ok := t.FieldByName(name); ok {
			return field.Type
		}
	}
	return nil
}

// null and optional hold the ID. No holder does so if its type is zero.
func (f family) null() any     { return fill(f.in("Null"), f.v, true) }
func (f family) optional() any { return fill(f.in("Optional"), f.v) }

// none is a nil *V.
func (f family) none() any { return zero(reflect.PointerTo(f.typ)) }

// slice returns a []V.
func (f family) slice(ids ...any) any { return fill(reflect.SliceOf(f.typ), ids...) }

// fill returns a struct with these first fields, or a slice or an array of these elements.
// nil is the zero value.
func fill(t reflect.Type, parts ...any) any {
	v := reflect.New(t).Elem()
	if t.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(t, len(parts), len(parts)))
	}
	for i, part := range parts {
		switch {
		case part == nil:
		case t.Kind() == reflect.Struct:
			v.Field(i).Set(reflect.ValueOf(part))
		default:
			v.Index(i).Set(reflect.ValueOf(part))
		}
	}
	return v.Interface()
}

// sliceOf returns a slice with elements of the first one's type.
func sliceOf(elements ...any) any {
	return fill(reflect.SliceOf(reflect.TypeOf(elements[0])), elements...)
}

func arrayOf(elements ...any) any {
	return fill(reflect.ArrayOf(len(elements), reflect.TypeOf(elements[0])), elements...)
}

func mapOf(key, value any) any {
	m := reflect.MakeMap(reflect.MapOf(reflect.TypeOf(key), reflect.TypeOf(value)))
	m.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(value))
	return m.Interface()
}

// ptr returns a pointer to a copy of a value.
func ptr(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

// elem returns the value that a pointer points to.
func elem(p any) any { return reflect.ValueOf(p).Elem().Interface() }

func zero(t reflect.Type) any { return reflect.Zero(t).Interface() }

// newOf returns a pointer to a zero value of v's type.
func newOf(v any) any { return reflect.New(reflect.TypeOf(v)).Interface() }

// first returns the first field of a struct.
func first(v any) any { return reflect.ValueOf(v).Field(0).Interface() }

// at returns an element of a slice.
func at(slice any, i int) any { return reflect.ValueOf(slice).Index(i).Interface() }

func length(slice any) int { return reflect.ValueOf(slice).Len() }

func isNil(v any) bool { return reflect.ValueOf(v).IsNil() }
