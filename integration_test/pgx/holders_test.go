package pgx

import (
	"database/sql"
	"reflect"

	"github.com/sortkey/sortkey/internal/reflecttest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A holders is an ID type V with the generic types that hold a V. The tests make values of
// these types with reflection: the compiler would make a generic test once per V.
type holders struct {
	id, null, optional, array, optionals, document reflect.Type
}

func holdersOf[V sqltypes.ID]() holders {
	return holders{reflect.TypeFor[V](), reflect.TypeFor[sql.Null[V]](), reflect.TypeFor[sqltypes.Optional[V]](),
		reflect.TypeFor[sqltypes.Array[V]](), reflect.TypeFor[sqltypes.Array[sqltypes.Optional[V]]](), reflect.TypeFor[document[V]]()}
}

// slice returns a []V.
func (h holders) slice(ids ...any) any { return fill(reflect.SliceOf(h.id), ids...) }

// pointers returns a []*V.
func (h holders) pointers(ids ...any) any {
	return fill(reflect.SliceOf(reflect.PointerTo(h.id)), ids...)
}

// forms returns values of all Go types that hold an ID.
func (h holders) forms(id any) []any {
	p, null, optional := ptr(id), fill(h.null, id, true), fill(h.optional, id)
	return []any{id, p, ptr(p), null, ptr(null), optional, ptr(optional)}
}

// sliceForms returns slices of an ID.
func (h holders) sliceForms(id any) []any {
	return []any{h.slice(id), h.pointers(ptr(id)), ptr(h.slice(id)), sliceOf(fill(h.optional, id))}
}

func forms[V sqltypes.ID](id V) []any      { return holdersOf[V]().forms(id) }
func sliceForms[V sqltypes.ID](id V) []any { return holdersOf[V]().sliceForms(id) }

var (
	fill    = reflecttest.Fill
	sliceOf = reflecttest.SliceOf
	ptr     = reflecttest.Ptr
	elem    = reflecttest.Elem
	zero    = reflecttest.Zero
	newOf   = reflecttest.NewOf
)

func isZero(id any) bool { return id.(interface{ IsZero() bool }).IsZero() }
