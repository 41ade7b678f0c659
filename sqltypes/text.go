package sqltypes

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"

	"github.com/sortkey/sortkey/internal/typename"
)

// A Text is an ID in a text, varchar or char(n) column, which stores the ID's text
// form. The zero ID is stored as its text; for NULL, see [Optional].
//
// The column never contains the prefix of a typed key, such as [idtype.SnowflakeOf]. So a
// model can get a prefix, or another one, while its table has rows, and the functions of
// package migrations can read the column. String, MarshalText and JSON have the prefix.
type Text[T ID] struct {
	// ID is a named field because a type parameter can't be embedded. If a GORM
	// condition is a slice of structs, GORM treats the structs as models and
	// compares their columns. This column name makes the database reject the
	// query with an error that names the remedy.
	ID T `gorm:"column:write IN for a slice of IDs"`
}

// TextOf returns id as a Text.
func TextOf[T ID](id T) Text[T] { return Text[T]{id} }

// IsZero reports whether the ID is the zero ID.
func (v Text[T]) IsZero() bool { return v.ID.IsZero() }

// String returns the ID's text.
func (v Text[T]) String() string { return v.ID.String() }

// AppendText appends the ID's text.
func (v Text[T]) AppendText(b []byte) ([]byte, error) { return v.ID.AppendText(b) }

// MarshalText returns the ID's text.
func (v Text[T]) MarshalText() ([]byte, error) { return v.ID.MarshalText() }

// UnmarshalText parses the ID's text. It rejects surrounding spaces.
func (v *Text[T]) UnmarshalText(b []byte) error { return unmarshalText(&v.ID, b) }

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (v *Text[T]) UnmarshalParam(param string) error { return v.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (v *Text[T]) Bind(param string) error { return v.UnmarshalParam(param) }

// MarshalJSON returns the ID's JSON.
func (v Text[T]) MarshalJSON() ([]byte, error) { return v.ID.MarshalJSON() }

// UnmarshalJSON parses the ID's JSON. It also accepts the column's text in quotes, without a
// prefix, as Postgres writes it in JSON.
func (v *Text[T]) UnmarshalJSON(b []byte) error {
	err := unmarshalJSON(&v.ID, b)
	var column string
	if err != nil && json.Unmarshal(b, &column) == nil && v.Scan(column) == nil {
		return nil
	}
	return err
}

// JSONSchemaAlias returns the ID, whose JSON v has. Package github.com/invopop/jsonschema calls it.
func (v Text[T]) JSONSchemaAlias() any { return v.ID }

// Value returns the ID's text as a string, without a prefix. If the ID is outside its
// format's range, and therefore has no text, it returns an error.
func (v Text[T]) Value() (driver.Value, error) {
	b, err := columnText(v.ID)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// Scan accepts the ID's text as a string or bytes, without a prefix. It also accepts a Text of the
// same format, a pointer to one, or a struct that holds one. Scan drops trailing
// spaces, because a char(n) column pads its values and drivers don't report the column
// type. For NULL it returns [idtype.ErrNull].
func (v *Text[T]) Scan(src any) error {
	val, err := valueOf[T](src)
	switch {
	case err != nil:
		return err
	case isNull(val):
		return nullError(v.want(), *v)
	}
	switch val := val.(type) {
	case string:
		return scanColumnText(&v.ID, bytes.TrimRight([]byte(val), " "))
	case []byte:
		return scanColumnText(&v.ID, bytes.TrimRight(val, " "))
	}
	return typeError(v.want(), src, *v)
}

func (v Text[T]) want() string { return "the text of an " + typename.OfValue(v.ID) }

// GormDataType returns the column type for GORM: text.
func (Text[T]) GormDataType() string { return "text" }
