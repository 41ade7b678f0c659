package sqltypes

import (
	"bytes"
	"database/sql/driver"
	"fmt"

	"github.com/sortkey/sortkey/idtype"
)

// A Text is an ID whose column is text, varchar or char(n) and holds the ID's
// own text form. The zero ID has a text too; for NULL see [Optional].
type Text[T ID] struct {
	// ID is a field with a name because a type parameter can't be embedded. GORM
	// takes a slice of structs in a condition for models: with this column's
	// name the database refuses it.
	ID T `gorm:"column:write IN for a slice of IDs"`
}

// The texts of the types of package idtype.
type (
	// SnowflakeText is 1 to 19 decimal digits, which don't order as text.
	SnowflakeText = Text[idtype.Snowflake]
	// SnowflakeSIText is 1 to 16 decimal digits, which don't order as text.
	SnowflakeSIText = Text[idtype.SnowflakeSI]
	// UID60Text is 4 to 10 characters, 10 for IDs minted after 2020-05-04,
	// which don't order as text.
	UID60Text = Text[idtype.UID60]
	// Spread64Text is 16 hex digits.
	Spread64Text = Text[idtype.Spread64]
	// SnoText is 16 characters that order by time under COLLATE "C".
	SnoText = Text[idtype.Sno]
)

// TextOf is id for a text column.
func TextOf[T ID](id T) Text[T] { return Text[T]{id} }

// IsZero reports whether the ID is the zero ID.
func (v Text[T]) IsZero() bool { return v.ID.IsZero() }

// String is the ID's text.
func (v Text[T]) String() string { return v.ID.String() }

// AppendText appends the ID's text.
func (v Text[T]) AppendText(b []byte) ([]byte, error) { return v.ID.AppendText(b) }

// MarshalText is the ID's text.
func (v Text[T]) MarshalText() ([]byte, error) { return v.ID.MarshalText() }

// UnmarshalText reads the ID's text, and nothing beside it.
func (v *Text[T]) UnmarshalText(b []byte) error { return unmarshalText(&v.ID, b) }

// MarshalJSON is the ID's JSON.
func (v Text[T]) MarshalJSON() ([]byte, error) { return v.ID.MarshalJSON() }

// UnmarshalJSON reads the ID's JSON.
func (v *Text[T]) UnmarshalJSON(b []byte) error { return unmarshalJSON(&v.ID, b) }

// Value gives the ID's text as a string. An ID that has none is an error.
func (v Text[T]) Value() (driver.Value, error) {
	b, err := v.ID.AppendText(nil)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// Scan takes the ID's text as a string or bytes. It also takes a Text of the same
// format, a pointer to one, or a struct around one. Spaces after the text are
// dropped: a char(n) column pads its values, and no driver says which column a
// value came from. NULL is an [idtype.ErrNull].
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
		return v.UnmarshalText(bytes.TrimRight([]byte(val), " "))
	case []byte:
		return v.UnmarshalText(bytes.TrimRight(val, " "))
	}
	return typeError(v.want(), src, *v)
}

func (v Text[T]) want() string { return fmt.Sprintf("the text of an %T", v.ID) }

// GormDataType is the column's type for GORM: text.
func (Text[T]) GormDataType() string { return "text" }
