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

// A leaf is a Go type that holds one ID in one column: a type of package idtype such as
// a typed key, a struct that embeds one, sqltypes.Text of one, or sqltypes.SnoBytes.
type leaf struct {
	typ     reflect.Type
	pointer reflect.Type // to typ
	column  *column
	base    *base // of an ID without its model, and nil for a struct and for sqltypes.Text of one
	of      *leaf // of sqltypes.Text, the leaf of the ID
	uuid    bool  // the ID of a uuid column is a UUID, not a Sno
	tagged  bool  // all IDs have the metabyte meta
	meta    byte
}

// own reports whether the type is a struct, or Text of one, which may declare its own
// Value and Scan. The codec calls these, instead of reading and setting the ID.
func (l *leaf) own() bool { return l.base == nil }

// typed reports whether the ID is a typed key.
func (l *leaf) typed() bool { return l.base != nil && l.base.typ != l.typ }

// A shape is the way in which a form contains its leaf.
type shape int

const (
	other      shape = iota // one that the codec leaves to pgx
	one                     // T, sql.Null[T], sqltypes.Optional[T]
	slice                   // []T, []*T, sqltypes.Array[T]
	array                   // other types that hold the elements of an array
	span                    // pgtype.Range
	multirange              // pgtype.Multirange
)

// A form is a Go type that holds IDs: a leaf, or a pointer, a slice, a sql.Null etc. of
// another form.
type form struct {
	*leaf
	typ   reflect.Type
	shape shape // of the type, or of the type that it points to
	many  bool  // the type can hold several IDs
}

var forms sync.Map // from reflect.Type to *form, nil for a type that holds no ID

// formOf returns the form of a type, or nil if the type holds no ID.
func formOf(t reflect.Type) *form {
	if t == nil {
		return nil
	}
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f := newForm(t)
	if f != nil {
		f.typ = t
	}
	forms.Store(t, f)
	return f
}

func newForm(t reflect.Type) *form {
	if t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer:
			if f := formOf(t.Elem()); f != nil {
				return &form{leaf: f.leaf, shape: f.shape, many: f.many}
			}
			return nil
		case reflect.Slice:
			return several(t.Elem())
		}
	}
	if l := leafOf(t); l != nil {
		return &form{leaf: l, shape: one}
	}
	switch origin(t) {
	case nullOrigin, optionalOrigin:
		f := formOf(t.Field(0).Type)
		switch {
		case f == nil:
			return nil
		case f.isLeaf():
			return &form{leaf: f.leaf, shape: one}
		}
		return &form{leaf: f.leaf, many: f.many}
	case idsOrigin:
		return several(t.Elem())
	case flatOrigin:
		return around(t.Elem(), array)
	case arrayOrigin:
		return around(t.Field(0).Type.Elem(), array)
	case rangeOrigin:
		return around(t.Field(0).Type, span)
	case multiOrigin:
		f := formOf(t.Elem())
		if f == nil || f.shape != span {
			return nil
		}
		return &form{leaf: f.leaf, shape: multirange, many: true}
	}
	if l := embedded(t); l != nil {
		return &form{leaf: l}
	}
	return nil
}

// several returns the form of a slice with elements of the type t.
func several(t reflect.Type) *form {
	f := formOf(t)
	switch {
	case f == nil:
		return nil
	case f.isLeaf(), t.Kind() == reflect.Pointer && t.Elem() == f.leaf.typ && f.shape == one:
		return &form{leaf: f.leaf, shape: slice, many: true}
	case f.shape == one && t.Kind() == reflect.Struct:
		return &form{leaf: f.leaf, shape: array, many: true}
	}
	return &form{leaf: f.leaf, many: true}
}

// around returns the form of a type with a shape that contains the type inner.
func around(inner reflect.Type, s shape) *form {
	f := formOf(inner)
	switch {
	case f == nil:
		return nil
	case f.isLeaf():
		return &form{leaf: f.leaf, shape: s, many: true}
	}
	return &form{leaf: f.leaf, many: true}
}

// isLeaf reports whether the form is its leaf, not a type around it.
func (f *form) isLeaf() bool { return f.shape == one && f.typ == f.leaf.typ }

// pgType returns the name of the Postgres type that holds a form, or "" if there is none.
func (f *form) pgType() string {
	switch f.shape {
	case one:
		return f.column.pgName
	case slice, array:
		return "_" + f.column.pgName
	case span:
		return f.column.pgRange
	case multirange:
		return f.column.pgMultirange
	}
	return ""
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
	optionalOrigin = origin(reflect.TypeFor[sqltypes.OptionalSno]())
	textOrigin     = origin(reflect.TypeFor[sqltypes.SnoText]())
	flatOrigin     = origin(reflect.TypeFor[pgtype.FlatArray[int]]())
	arrayOrigin    = origin(reflect.TypeFor[pgtype.Array[int]]())
	idsOrigin      = origin(reflect.TypeFor[sqltypes.Array[idtype.Sno]]())
	rangeOrigin    = origin(reflect.TypeFor[pgtype.Range[int]]())
	multiOrigin    = origin(reflect.TypeFor[pgtype.Multirange[pgtype.Range[int]]]())
)

// isArray reports whether t is a sqltypes.Array.
func isArray(t reflect.Type) bool { return t.Kind() == reflect.Slice && origin(t) == idsOrigin }

// leafOf returns the leaf of a type, or nil if it has none.
func leafOf(t reflect.Type) *leaf {
	switch {
	case leaves[t] != nil:
		return leaves[t]
	case t.PkgPath() == idtypePath:
		return typedLeaf(t)
	case origin(t) == textOrigin:
		if id := leafOf(t.Field(0).Type); id != nil {
			return &leaf{typ: t, pointer: reflect.PointerTo(t), column: &texts, base: id.base, of: id}
		}
	case t.Kind() == reflect.Struct && t.NumField() == 1 && reflect.PointerTo(t).Implements(scanner):
		return embedded(t)
	}
	return nil
}

var scanner = reflect.TypeFor[sql.Scanner]()

var idtypePath = reflect.TypeFor[idtype.Sno]().PkgPath()

// typedLeaf returns the leaf of a typed key, or nil if the type isn't a typed key.
func typedLeaf(t reflect.Type) *leaf {
	m, ok := t.MethodByName("Untyped")
	if !ok {
		return nil
	}
	plain, ok := leaves[m.Type.Out(0)]
	if !ok {
		return nil
	}
	l := &leaf{typ: t, pointer: reflect.PointerTo(t), column: plain.column, base: plain.base, uuid: plain.uuid}
	if tag, ok := reflect.Zero(t).Interface().(interface{ ModelMeta() (byte, bool) }); ok {
		l.meta, l.tagged = tag.ModelMeta()
	}
	return l
}

// accepts reports whether the leaf can hold an ID: its model declares no metabyte, the ID
// has that metabyte, or the ID is zero.
func (l *leaf) accepts(id idtype.Sno) bool { return !l.tagged || id[5] == l.meta || id.IsZero() }

// id returns the ID in a value of a form with the shape one, as a T or a *T, or nil if the
// value is NULL.
func (f *form) id(v reflect.Value) any {
	for v.Type() != f.leaf.typ {
		switch {
		case v.Kind() != reflect.Pointer: // a sql.Null or a sqltypes.Optional
			if isNullStruct(v) {
				return nil
			}
			v = v.Field(0)
		case v.IsNil():
			return nil
		default:
			v = v.Elem()
		}
	}
	return at(v)
}

// isNullStruct reports whether a sql.Null or a sqltypes.Optional is NULL.
func isNullStruct(v reflect.Value) bool {
	if v.NumField() > 1 {
		return !v.Field(1).Bool()
	}
	return at(v).(interface{ IsZero() bool }).IsZero()
}

// at returns a value, or a pointer to it if it has an address. Interface would copy such a
// value to the heap.
func at(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}
