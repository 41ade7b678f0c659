package idtype

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"

	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/internal/valuer"
)

// valueOf returns the Value of src, for the Scan of T. Drivers don't pass a
// driver.Valuer, but ent does: id.Scan(&id). A nil pointer is NULL. valueOf accepts only
// a T or a struct that holds one, because the number of another type could be a valid T.
func valueOf[T any](typeName, want string, src any) (driver.Value, error) {
	if b, ok := bytesOfUUID(src); ok && reflect.TypeFor[T]().Kind() == reflect.Array {
		return b, nil
	}
	v, ok := src.(driver.Valuer)
	if !ok {
		return nil, badType(typeName, want, src)
	}
	id, null := valuer.ID(v)
	switch {
	case null:
		return nil, nil
	case id != reflect.TypeFor[T]():
		e := flaw{-1, "got " + typename.OfValue(src) + "; scan it into its own type", ErrSyntax}.
			in(typeName, "one ID of type "+typename.Of(reflect.TypeFor[T]())+", alone or in a struct", fmt.Append(nil, src))
		e.public = "it is a value of another type"
		return nil, scanError(e)
	}
	val, err := v.Value()
	if err != nil {
		return nil, scanError(flaw{-1, fmt.Sprintf("call Value of %s: %v", typename.OfValue(src), err), err}.in(typeName, want, fmt.Append(nil, src)))
	}
	if _, again := val.(driver.Valuer); again {
		return nil, badType(typeName, want, val) // following it could loop forever
	}
	return val, nil
}

// bytesOfUUID returns the bytes of a UUID of another package, or of one to which src points. A
// driver may return its own type.
func bytesOfUUID(src any) (b [16]byte, ok bool) {
	v := reflect.Indirect(reflect.ValueOf(src))
	if !v.IsValid() || v.Kind() != reflect.Array || v.Len() != len(b) || v.Type().Elem() != reflect.TypeFor[byte]() {
		return b, false
	}
	switch v.Interface().(type) {
	case UUID, interface{ Untyped() UUID }: // a UUID without a model, or of another one
		return b, false
	}
	reflect.Copy(reflect.ValueOf(b[:]), v)
	return b, true
}

// fromColumn adds the column type that Scan expects to the error for a text without the syntax of
// an ID: the column probably has another type.
func fromColumn(columnType string, err error) error {
	var e *ParseError
	if errors.As(err, &e) && e.Err == ErrSyntax {
		e.public = e.problem()
		e.Want += ", the value of a " + columnType + " column"
	}
	return scanError(err)
}

// set sets *dst to v unless err is set, so that a failed call leaves its receiver
// unchanged.
func set[T any](dst *T, v T, err error) error {
	if err == nil {
		*dst = v
	}
	return err
}
