package idtype

import (
	"database/sql/driver"
	"encoding"
	"encoding/binary"
	"strconv"
)

// An integerKind describes an integer ID type, so that all integer types share one parser
// and one scanner.
type integerKind struct {
	name   string // of the type
	want   string // the accepted numbers, for errors
	text   string // the accepted text, for errors
	lo, hi int64  // the range of the column's values
}

// bigintType is the column type of the integer types.
const bigintType = "bigint"

// check returns an error if v can't be an ID.
func (k *integerKind) check(v int64) error {
	if v >= k.lo && v <= k.hi {
		return nil
	}
	return k.outside(v)
}

// outside returns the error for a number out of range. It is separate from check so
// that the compiler inlines check.
func (k *integerKind) outside(v int64) error {
	e := outOfRange().in(k.name, k.want, strconv.AppendInt(nil, v, 10))
	e.number = true
	return e
}

// parse parses the decimal form. Like all parsers here, it takes bytes. The callers'
// conversions from string copy nothing, because the compiler proves that the parsers
// neither keep nor change the bytes. (It can't prove that for a generic function called
// from another package.)
func (k *integerKind) parse(b []byte) (int64, error) {
	v, ok := parseDecimal(b, k.lo, k.hi)
	if !ok {
		return 0, decimalFlaw(b, k.lo).in(k.name, k.want, b)
	}
	return v, nil
}

// scanInteger sets dst from the value of a bigint column or from a driver.Valuer.
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
		return badType(k.name, k.want, val) // text could be decimal or the ID's own form
	}
	if err != nil {
		return fromColumn(bigintType, err)
	}
	*dst = T(v)
	return nil
}

// unmarshalInteger sets dst from 8 big-endian bytes.
func unmarshalInteger[T ~int64](dst *T, k *integerKind, b []byte) error {
	if len(b) != 8 {
		return badLength(len(b)).in(k.name, "8 bytes", b)
	}
	v := int64(binary.BigEndian.Uint64(b))
	return set(dst, T(v), k.check(v))
}

// appendBinary appends v as 8 big-endian bytes. It rejects numbers that unmarshalInteger
// rejects.
func (k *integerKind) appendBinary(b []byte, v int64) ([]byte, error) {
	if err := k.check(v); err != nil {
		return b, err
	}
	return binary.BigEndian.AppendUint64(b, uint64(v)), nil
}

// value returns v for a bigint column. It rejects numbers that scanInteger rejects.
func (k *integerKind) value(v int64) (driver.Value, error) {
	if err := k.check(v); err != nil {
		return nil, err
	}
	return v, nil
}

// unmarshalIntegerJSON sets *dst from null, from its text in quotes, or from the number of a
// bigint column, as Postgres writes it. want is the accepted text, for errors.
func unmarshalIntegerJSON[T ~int64, P interface {
	*T
	encoding.TextUnmarshaler
}](dst P, k *integerKind, want string, b []byte) error {
	if string(b) == jsonNull {
		*dst = 0
		return nil
	}
	if s, quoted := unquote(b); quoted {
		return dst.UnmarshalText(s)
	}
	v, err := k.parseNumber(b, want)
	return set((*T)(dst), T(v), err)
}

// parseNumber parses JSON other than a string.
//
// If the tag of a field has the option string, [json.Unmarshal] removes the quotes of a type
// with an integer kind. What is left of a text may be no JSON.
func (k *integerKind) parseNumber(b []byte, want string) (int64, error) {
	if v, ok := parseDecimal(b, k.lo, k.hi); ok {
		if k == &spread64Kind {
			return v, Spread64(v).check()
		}
		return v, nil
	}
	f := decimalFlaw(b, k.lo)
	if f.err == ErrSyntax && want != k.want {
		want += " in quotes, or " + k.want
		f = flaw{-1, `not a JSON string or integer; write the field's tag without the option string: json:"id", not json:"id,string"`, ErrSyntax}
		e := f.in(k.name, want, b)
		e.public = "want " + want
		return 0, e
	}
	return 0, f.in(k.name, k.want, b)
}
