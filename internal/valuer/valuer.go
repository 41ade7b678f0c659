// Package valuer tells which ID a driver.Valuer passes on.
package valuer

import (
	"database/sql/driver"
	"reflect"
)

var valuerType = reflect.TypeFor[driver.Valuer]()

// mostPointers ends the search in a value that points to itself.
const mostPointers = 8

// ID returns the type of the ID that v is, points to, or holds in a struct. An
// ID here is any driver.Valuer that isn't a struct around another one, so there is
// no list of types to extend. If it is a nil pointer, null is true. If v holds
// several IDs, the type is nil.
func ID(v driver.Valuer) (id reflect.Type, null bool) {
	ids := find(nil, reflect.ValueOf(v), mostPointers)
	if len(ids) != 1 {
		return nil, false
	}
	return ids[0], ids[0] == nil
}

// find appends the types of the IDs in v, and nil for a nil pointer to one.
func find(ids []reflect.Type, v reflect.Value, pointers int) []reflect.Type {
	if v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	t := v.Type()
	if !t.Implements(valuerType) && !reflect.PointerTo(t).Implements(valuerType) {
		return ids
	}
	switch t.Kind() {
	case reflect.Interface:
		return append(ids, nil)
	case reflect.Pointer:
		if v.IsNil() {
			return append(ids, nil)
		}
		if pointers > 0 {
			return find(ids, v.Elem(), pointers-1)
		}
	case reflect.Struct:
		before := len(ids)
		for i := range t.NumField() {
			ids = find(ids, v.Field(i), pointers)
		}
		if len(ids) > before {
			return ids
		}
	}
	return append(ids, t)
}
