package gormplugin

import (
	"database/sql"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

var (
	idPackage  = reflect.TypeFor[idtype.Snowflake]().PkgPath()
	sqlPackage = reflect.TypeFor[sql.NullBool]().PkgPath()
)

// idsIn returns the types of the IDs that a field of type t can hold, nearest first. They are t
// itself, the type behind t's pointer or in its sql.Null, and the types in structs of one field.
func idsIn(t reflect.Type) iter.Seq[reflect.Type] {
	return func(yield func(reflect.Type) bool) {
		for nullable := false; yield(t); {
			inner, wrapped := wrappedType(t)
			switch {
			case wrapped:
				t = inner
			case !nullable && t.Kind() == reflect.Pointer:
				t, nullable = t.Elem(), true
			case !nullable && isSQLNull(t):
				t, nullable = t.Field(0).Type, true
			default:
				return
			}
		}
	}
}

// idOf returns the type of the ID in a field of type t.
func idOf(t reflect.Type) (id reflect.Type) {
	for id = range idsIn(contentOf(t)) {
		continue
	}
	return id
}

// isID reports whether a field of type t holds one of package idtype's IDs.
func isID(t reflect.Type) bool { return idOf(t).PkgPath() == idPackage }

// contentOf returns the type to which a pointer type t points, and the T of a sql.Null[T]. It
// returns other types unchanged.
func contentOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isSQLNull(t) {
		t = t.Field(0).Type
	}
	return t
}

func isSQLNull(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == sqlPackage && strings.HasPrefix(t.Name(), "Null[")
}

// wrappedType returns the type of the only field of a struct type, such as a column type of
// package sqltypes.
func wrappedType(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 1 || !t.Field(0).IsExported() {
		return nil, false
	}
	return t.Field(0).Type, true
}

// untyped returns the base type of a typed key, for example idtype.Snowflake for an
// idtype.SnowflakeOf. It returns other types unchanged.
func untyped(t reflect.Type) reflect.Type {
	// Types of other packages may have the method too, for example a struct that embeds a
	// typed key. Only in package idtype it means an equal memory layout.
	if m, ok := t.MethodByName("Untyped"); ok && t.PkgPath() == idPackage {
		return m.Type.Out(0)
	}
	return t
}

// wraps reports whether t is the type inner, a typed key of it, or wraps one of them in
// structs of one field.
func wraps(t, inner reflect.Type) bool {
	for t := range idsIn(t) {
		if t == inner || untyped(t) == inner {
			return true
		}
	}
	return false
}

// identity returns the type of the ID in a type t: a type of package idtype, a typed key,
// or the caller's own type that embeds one.
func identity(t reflect.Type) reflect.Type {
	t = contentOf(t)
	for inner, ok := wrappedType(t); ok && !t.Field(0).Anonymous; inner, ok = wrappedType(t) {
		t = inner
	}
	return t
}

// dataType returns the column type that a type declares for GORM, or "".
func dataType(t reflect.Type) string {
	if t, ok := reflect.New(t).Interface().(schema.GormDataTypeInterface); ok {
		return t.GormDataType()
	}
	return ""
}

// stored returns an ID in the form that a field stores. It fails if the field has
// IDs of another type, or if its form sorts differently from the IDs. Without a field, it
// returns the ID unchanged.
func stored(f *schema.Field, id any) (any, error) {
	if f == nil {
		return id, nil
	}
	t, form := contentOf(reflect.TypeOf(id)), contentOf(f.FieldType)
	if got, want := identity(t), identity(form); isID(form) && !wraps(want, got) && !wraps(got, want) {
		return nil, fmt.Errorf("gormplugin: compare %s: want an ID of type %s, got %s; pass a cursor or a layout of the column's type, or name another column: %w",
			fieldName(f), typename.Of(want), typename.Of(got), gorm.ErrInvalidField)
	}
	if t == form || !isID(t) || dataType(form) == "" || dataType(form) == dataType(t) {
		return id, nil
	}
	// The text and the bytes of a Sno or a UUID sort as the ID does. The text of a number
	// doesn't sort as the number does.
	v := within(reflect.ValueOf(id), idOf(t))
	base := untyped(v.Type())
	if !wraps(form, base) || base.Kind() != reflect.Array && dataType(form) != dataType(base) {
		return nil, fmt.Errorf("gormplugin: compare %s: IDs of type %s in a column of type %s don't sort in their order; use a column of type %s: %w",
			fieldName(f), typename.Of(f.FieldType), dataType(form), dataType(base), gorm.ErrInvalidField)
	}
	// The bounds of time windows have no metabyte.
	if meta := metaOf(idOf(form)); meta != nil {
		v = reflect.ValueOf(v.Convert(reflect.TypeFor[idtype.Sno]()).Interface().(idtype.Sno).WithMeta(*meta))
	}
	holder := reflect.New(form).Elem()
	slot(holder, idOf(form)).Set(v.Convert(idOf(form)))
	return holder.Interface(), nil
}
