package idtype

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"

	"github.com/sortkey/sortkey/internal/valuer"
)

// An integerKind is what the integer types differ in as numbers, so that one
// piece of code can read them all.
type integerKind struct {
	name   string // the type's name
	want   string // its number, for errors
	lo, hi int64  // the values that a column may hold
}

// bigintType is the column type of the integer types.
const bigintType = "bigint"

// check refuses numbers that can't be IDs.
func (k *integerKind) check(v int64) error {
	if v >= k.lo && v <= k.hi {
		return nil
	}
	return k.outside(v)
}

// outside is the error of a number that isn't in the range. It is apart from
// check so that the latter is inlined.
func (k *integerKind) outside(v int64) error {
	return outOfRange(v < k.lo, k.lo, k.hi).in(k.name, k.want, strconv.AppendInt(nil, v, 10))
}

// parse reads the decimal form. It takes bytes, as all parsers here do; who has
// a string converts it, which copies nothing, because the compiler sees that
// they neither keep the bytes nor change them. (In a generic function it
// wouldn't see that from other packages.)
func (k *integerKind) parse(b []byte) (int64, error) {
	v, ok := parseDecimal(b, k.lo, k.hi)
	if !ok {
		return 0, decimalFlaw(b, k.lo, k.hi).in(k.name, k.want, b)
	}
	return v, nil
}

// scanInteger sets dst from what database/sql gives for a bigint column, or
// from a driver.Valuer.
func scanInteger[T ~int64](dst *T, k *integerKind, src any) error {
	var v int64
	var err error
	switch src := src.(type) {
	case int64:
		v, err = src, k.check(src)
	case string:
		v, err = k.parse([]byte(src))
	case []byte:
		if src == nil {
			return nullError(k.name, k.want)
		}
		v, err = k.parse(src)
	case nil:
		return nullError(k.name, k.want)
	case T:
		v, err = int64(src), k.check(int64(src))
	default:
		val, err := valueOf[T](k.name, k.want, src)
		if err != nil {
			return err
		}
		switch val.(type) {
		case nil, int64:
			return scanInteger(dst, k, val)
		}
		return badType(k.name, k.want, val) // a text could be the ID's own
	}
	return set(dst, T(v), err)
}

// valueOf returns the Value of src, for the Scan of T. Drivers don't pass a
// driver.Valuer, but ent does: id.Scan(&id). A nil pointer is NULL. All that
// isn't a T, or a struct around one, is refused: its number could be a T as well.
func valueOf[T any](typeName, want string, src any) (driver.Value, error) {
	v, ok := src.(driver.Valuer)
	if !ok {
		return nil, badType(typeName, want, src)
	}
	id, null := valuer.ID(v)
	switch {
	case null:
		return nil, nil
	case id != reflect.TypeFor[T]():
		return nil, flaw{-1, fmt.Sprintf("the %T is neither a %[2]s nor a struct around one; scan it into its own type", src, typeName), ErrSyntax}.
			in(typeName, want, fmt.Append(nil, src))
	}
	val, err := v.Value()
	if err != nil {
		return nil, flaw{-1, fmt.Sprintf("the Value of the %T failed: %v", src, err), err}.in(typeName, want, fmt.Append(nil, src))
	}
	if _, again := val.(driver.Valuer); again {
		return nil, badType(typeName, want, val) // or it could go on without end
	}
	return val, nil
}

// unmarshalInteger sets dst from 8 bytes, big-endian.
func unmarshalInteger[T ~int64](dst *T, k *integerKind, b []byte) error {
	if len(b) != 8 {
		return badLength(len(b)).in(k.name, "8 bytes", b)
	}
	v := int64(binary.BigEndian.Uint64(b))
	return set(dst, T(v), k.check(v))
}

// appendBinary appends 8 bytes, big-endian, of what unmarshalInteger would read.
func (k *integerKind) appendBinary(b []byte, v int64) ([]byte, error) {
	if err := k.check(v); err != nil {
		return b, err
	}
	return binary.BigEndian.AppendUint64(b, uint64(v)), nil
}

// appendDecimal appends the decimal form of what parse would read.
func (k *integerKind) appendDecimal(b []byte, v int64) ([]byte, error) {
	if err := k.check(v); err != nil {
		return b, err
	}
	return strconv.AppendInt(b, v, 10), nil
}

// value is what a bigint column is given, of what scanInteger would read.
func (k *integerKind) value(v int64) (driver.Value, error) {
	if err := k.check(v); err != nil {
		return nil, err
	}
	return v, nil
}

// set sets *dst to v unless there is an error: nothing that fails leaves a
// trace in its receiver.
func set[T any](dst *T, v T, err error) error {
	if err == nil {
		*dst = v
	}
	return err
}

// must is behind the MustParse functions.
func must[T any](id T, err error) T {
	if err != nil {
		panic(err)
	}
	return id
}

// The JSON of the zero ID.
const jsonNull = "null"

// quote puts an ID's text between the quotes of a JSON string.
func quote(appendText func([]byte) ([]byte, error), size int) ([]byte, error) {
	b, err := appendText(append(make([]byte, 0, size+2), '"'))
	if err != nil {
		return nil, err
	}
	return append(b, '"'), nil
}

// unquote takes the text out of a JSON string. No format's text needs an
// escape, so a backslash stays, for the parser to refuse.
func unquote(b []byte) (s []byte, quoted bool) {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		return b[1 : len(b)-1], true
	}
	return b, false
}

// unquoteText is unquote for the types whose JSON is always a string.
func unquoteText(b []byte, name, want string) ([]byte, error) {
	s, quoted := unquote(b)
	if !quoted {
		return nil, flaw{-1, "it is not a JSON string", ErrSyntax}.in(name, want, b)
	}
	return s, nil
}
