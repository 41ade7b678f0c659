package pgxcodec_test

import (
	"database/sql"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/internal/reflecttest"
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

var (
	fill    = reflecttest.Fill
	sliceOf = reflecttest.SliceOf
	arrayOf = reflecttest.ArrayOf
	mapOf   = reflecttest.MapOf
	ptr     = reflecttest.Ptr
	elem    = reflecttest.Elem
	zero    = reflecttest.Zero
	newOf   = reflecttest.NewOf
)

// first returns the first field of a struct.
func first(v any) any { return reflect.ValueOf(v).Field(0).Interface() }

// at returns an element of a slice.
func at(slice any, i int) any { return reflect.ValueOf(slice).Index(i).Interface() }

func length(slice any) int { return reflect.ValueOf(slice).Len() }

func isNil(v any) bool { return reflect.ValueOf(v).IsNil() }
