package sqltypes

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/internal/valuer"
)

// An ID is a type that [Text], [Optional] and [Array] can hold: a type of package idtype,
// such as a typed key, or a struct that embeds one. An Optional can also hold a Text or a
// [SnoBytes], and an Array can hold all three. A pointer to the type must implement [sql.Scanner], [encoding.TextUnmarshaler] and
// [json.Unmarshaler].
type ID interface {
	comparable
	IsZero() bool
	fmt.Stringer
	encoding.TextAppender
	encoding.TextMarshaler
	json.Marshaler
	driver.Valuer
	GormDataType() string
}

// The three functions below restore *dst if they fail. Types outside idtype may
// change their receiver before they return an error.

func unmarshalText[T ID](dst *T, b []byte) error {
	u, ok := any(dst).(encoding.TextUnmarshaler)
	if !ok {
		return lacks[T]("UnmarshalText")
	}
	old := *dst
	return restore(dst, old, u.UnmarshalText(b))
}

func unmarshalJSON[T ID](dst *T, b []byte) error {
	u, ok := any(dst).(json.Unmarshaler)
	if !ok {
		return lacks[T]("UnmarshalJSON")
	}
	old := *dst
	return restore(dst, old, u.UnmarshalJSON(b))
}

func scan[T ID](dst *T, src any) error {
	s, ok := any(dst).(sql.Scanner)
	if !ok {
		return lacks[T]("Scan")
	}
	old := *dst
	return restore(dst, old, s.Scan(src))
}

// restore sets *dst to old if err is not nil, and returns err.
func restore[T ID](dst *T, old T, err error) error {
	if err != nil {
		*dst = old
	}
	return err
}

func lacks[T ID](method string) error {
	return fmt.Errorf("sqltypes: use %[2]s as an ID: *%[2]s has no method %[1]s; declare it", method, typename.Of(reflect.TypeFor[T]()))
}

// valueOf returns the Value of src if src is a driver.Valuer, and src otherwise.
// Drivers don't pass a Valuer to Scan, but ent does: id.Scan(&id). A nil pointer is
// NULL. valueOf rejects a Valuer that isn't an ID of T's format, because its text
// could be mistaken for a T.
func valueOf[T driver.Valuer](src any) (any, error) {
	v, ok := src.(driver.Valuer)
	if !ok {
		return src, nil
	}
	id, null := valuer.ID(v)
	if null {
		return nil, nil
	}
	if own, _ := valuer.ID(*new(T)); id == nil || id != own {
		return nil, fmt.Errorf("sqltypes: scan %s as %s: want one ID of this type, alone or in a struct; scan other IDs into their own type: %w",
			typename.OfValue(src), typename.Of(reflect.TypeFor[T]()), idtype.ErrSyntax)
	}
	val, err := v.Value()
	if err != nil {
		return nil, fmt.Errorf("sqltypes: scan %s: its Value method failed: %w", typename.OfValue(src), err)
	}
	return val, nil
}

// isNull reports whether a driver's value is NULL. Some drivers pass a nil slice.
func isNull(src any) bool {
	b, isBytes := src.([]byte)
	return src == nil || isBytes && b == nil
}

func nullError(want string, dst any) error {
	return fmt.Errorf("sqltypes: scan NULL into %[1]s: want %[2]s; scan a nullable column into *%[1]s, sql.Null[%[1]s] or sqltypes.Optional[%[1]s]: %[3]w",
		typename.OfValue(dst), want, idtype.ErrNull)
}

func typeError(want string, src, dst any) error {
	return fmt.Errorf("sqltypes: scan a column value of type %s into %s: want %s; use the Go type that fits the column: %w",
		typename.OfValue(src), typename.OfValue(dst), want, idtype.ErrSyntax)
}
