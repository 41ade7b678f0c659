// Package reflecttest creates and reads values whose types a test knows only at run time. Tests
// use it in place of type parameters, because the compiler makes a generic test once per type.
package reflecttest

import "reflect"

// Fill returns a struct with these first fields, or a slice or an array of these elements. A
// nil part is the zero value.
func Fill(t reflect.Type, parts ...any) any {
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

// SliceOf returns a slice with elements of the first one's type.
func SliceOf(elements ...any) any {
	return Fill(reflect.SliceOf(reflect.TypeOf(elements[0])), elements...)
}

// ArrayOf returns an array with elements of the first one's type.
func ArrayOf(elements ...any) any {
	return Fill(reflect.ArrayOf(len(elements), reflect.TypeOf(elements[0])), elements...)
}

// MapOf returns a map with one entry.
func MapOf(key, value any) any {
	m := reflect.MakeMap(reflect.MapOf(reflect.TypeOf(key), reflect.TypeOf(value)))
	m.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(value))
	return m.Interface()
}

// Ptr returns a pointer to a copy of a value.
func Ptr(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

// Elem returns the value that a pointer points to.
func Elem(p any) any { return reflect.ValueOf(p).Elem().Interface() }

// Zero returns the zero value of a type.
func Zero(t reflect.Type) any { return reflect.Zero(t).Interface() }

// NewOf returns a pointer to a zero value of v's type.
func NewOf(v any) any { return reflect.New(reflect.TypeOf(v)).Interface() }
