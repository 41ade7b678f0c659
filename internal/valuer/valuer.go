// Package valuer finds the ID type that a driver.Valuer is or holds.
package valuer

import (
	"database/sql/driver"
	"reflect"
)

var valuerType = reflect.TypeFor[driver.Valuer]()

// mostPointers bounds the search, for values that point to themselves.
const mostPointers = 8

// ID returns the type of the ID that v is, points to, or holds in a struct. Any
// driver.Valuer that isn't a struct around another Valuer counts as an ID, so the
// package needs no list of types. If the ID is a nil pointer, null is true. If v
// holds several IDs, the type is nil.
func ID(v driver.Valuer) (id reflect.Type, null bool) {
	ids := find(nil, reflect.ValueOf(v), mostPointers)
	if len(ids) != 1 {
		return nil, false
	}
	return ids[0], ids[0] == nil
}

// find appends the types of the IDs in v, and nil for each nil pointer to an ID.
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
