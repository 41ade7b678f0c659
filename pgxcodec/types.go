package pgxcodec

import (
	"database/sql"
	"reflect"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A column is a kind of column type that can hold IDs.
type column struct {
	name string // in error messages
	// The Postgres types of arguments whose OID is unknown.
	pgName, pgRange, pgMultirange string
}

// The columns. The types varchar, char(n), name and citext are texts.
var (
	bigints = column{name: "bigint", pgName: "int8", pgRange: "int8range", pgMultirange: "int8multirange"}
	uuids   = column{name: "uuid", pgName: "uuid"}
	texts   = column{name: "text", pgName: "text"}
	byteas  = column{name: "bytea", pgName: "bytea"}
)

// An idType is a Go type T that holds one ID: a type of package idtype such as a typed key,
// sqltypes.Text of one, sqltypes.SnoBytes, or a struct that embeds one.
type idType struct {
	typ     reflect.Type
	pointer reflect.Type // to typ
	column  *column
	typed   bool    // T is a typed key
	own     bool    // T is a struct, or sqltypes.Text of one. pgx calls its Value and Scan.
	of      *idType // of sqltypes.Text, the type of the ID
	wire    wire    // of the types of bigint and uuid columns, otherwise nil
}

// baseTypes are the types without a model, and sqltypes.SnoBytes.
var baseTypes = map[reflect.Type]*idType{}

func init() {
	addBase[idtype.Snowflake](&bigints, &bigint{invalid: 1 << 63})
	addBase[idtype.SnowflakeSI](&bigints, &bigint{invalid: ^uint64(idtype.MaxSnowflakeSI)})
	addBase[idtype.UID60](&bigints, &bigint{invalid: ^uint64(idtype.MaxUID60)})
	addBase[idtype.Spread64](&bigints, &bigint{})
	addBase[idtype.Sno](&uuids, &sno{})
	addBase[idtype.UUID](&uuids, &uuid7{})
	addBase[sqltypes.SnoBytes](&byteas, nil)
}

func addBase[T sqltypes.ID](c *column, w wire) {
	t := reflect.TypeFor[T]()
	id := &idType{typ: t, pointer: reflect.PointerTo(t), column: c}
	baseTypes[t] = id
	if w != nil {
		id.wire = w.of(id)
	}
}

var idtypePath = reflect.TypeFor[idtype.Sno]().PkgPath()

// idTypeOf returns the idType of a type, or nil if the type isn't one.
func idTypeOf(t reflect.Type) *idType {
	switch {
	case baseTypes[t] != nil:
		return baseTypes[t]
	case t.PkgPath() == idtypePath:
		untyped, ok := t.MethodByName("Untyped")
		if !ok {
			return nil
		}
		if base := baseTypes[untyped.Type.Out(0)]; base != nil {
			id := &idType{typ: t, pointer: reflect.PointerTo(t), column: base.column, typed: true}
			id.wire = base.wire.of(id)
			return id
		}
	case origin(t) == textOrigin:
		if id := idTypeOf(t.Field(0).Type); id != nil {
			return &idType{typ: t, pointer: reflect.PointerTo(t), column: &texts, own: id.own, of: id}
		}
	case t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous:
		if id := idTypeOf(t.Field(0).Type); id != nil {
			return &idType{typ: t, pointer: reflect.PointerTo(t), column: id.column, own: true}
		}
	}
	return nil
}

// A shape is the way in which a form holds IDs.
type shape int

const (
	one        shape = iota // T, *T, sql.Null[T], sqltypes.Optional[T]
	list                    // []T, []*T, sqltypes.Array[T], and other types of an array's elements
	span                    // pgtype.Range[T]
	multirange              // pgtype.Multirange[pgtype.Range[T]]
)

// A form is a Go type that holds IDs: a T, or a pointer, a slice, a sql.Null etc. of another
// form.
type form struct {
	*idType
	typ   reflect.Type
	shape shape
	// Of a pointer, the plan for a target in the binary format of T's own column or of an
	// array of it. It is nil if pgx scans the form through the ID's Scan.
	scan pgtype.ScanPlan
}

var forms sync.Map // from reflect.Type to *form, nil for a type that holds no ID

// formOf returns the form of a type, or nil if the type is none.
func formOf(t reflect.Type) *form {
	if t == nil {
		return nil
	}
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f := newForm(t)
	if f != nil && f.wire != nil && t.Kind() == reflect.Pointer {
		f.scan = f.scanPlan()
	}
	forms.Store(t, f)
	return f
}

func newForm(t reflect.Type) *form {
	if id := idTypeOf(t); id != nil {
		return &form{idType: id, typ: t, shape: one}
	}
	inner, from, to := t, one, one // the type that t holds, its shape, and t's
	switch origin(t) {
	case nullOrigin, optionalOrigin:
		inner = t.Field(0).Type
	case idsOrigin, flatOrigin:
		inner, to = t.Elem(), list
	case arrayOrigin:
		inner, to = t.Field(0).Type.Elem(), list
	case rangeOrigin:
		inner, to = t.Field(0).Type, span
	case multiOrigin:
		inner, from, to = t.Elem(), span, multirange
	case "":
		switch {
		case t.Name() == "" && t.Kind() == reflect.Slice:
			inner, to = t.Elem(), list
		case t.Name() == "" && t.Kind() == reflect.Pointer:
			if f := formOf(t.Elem()); f != nil {
				return &form{idType: f.idType, typ: t, shape: f.shape}
			}
			return nil
		}
	}
	if inner == t {
		return nil
	}
	if f := formOf(inner); f != nil && f.shape == from {
		return &form{idType: f.idType, typ: t, shape: to}
	}
	return nil
}

// holdsIDs reports whether a list is a []T, a []*T, a sqltypes.Array[T], or a pointer to one.
func (f *form) holdsIDs() bool {
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Slice && (t.Elem() == f.idType.typ || t.Elem() == f.pointer)
}

// pgType returns the name of the Postgres type that holds a form, or "" if there is none.
func (f *form) pgType() string {
	switch f.shape {
	case list:
		return "_" + f.column.pgName
	case span:
		return f.column.pgRange
	case multirange:
		return f.column.pgMultirange
	}
	return f.column.pgName
}

// origin returns the name of a generic type without its type arguments, or "" if the type
// is not generic.
func origin(t reflect.Type) string {
	name, _, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return ""
	}
	return t.PkgPath() + "." + name
}

var (
	nullOrigin     = origin(reflect.TypeFor[sql.Null[int]]())
	optionalOrigin = origin(reflect.TypeFor[sqltypes.Optional[idtype.Sno]]())
	textOrigin     = origin(reflect.TypeFor[sqltypes.Text[idtype.Sno]]())
	idsOrigin      = origin(reflect.TypeFor[sqltypes.Array[idtype.Sno]]())
	flatOrigin     = origin(reflect.TypeFor[pgtype.FlatArray[int]]())
	arrayOrigin    = origin(reflect.TypeFor[pgtype.Array[int]]())
	rangeOrigin    = origin(reflect.TypeFor[pgtype.Range[int]]())
	multiOrigin    = origin(reflect.TypeFor[pgtype.Multirange[pgtype.Range[int]]]())
)

// isArray reports whether t is a sqltypes.Array.
func isArray(t reflect.Type) bool { return origin(t) == idsOrigin }
