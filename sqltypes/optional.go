package sqltypes

import (
	"database/sql/driver"

	"github.com/sortkey/sortkey/idtype"
)

// An Optional is an ID whose column may be NULL: the zero ID, which is never
// minted, stands for NULL. It suits optional foreign keys, without pointers.
type Optional[T ID] struct {
	// ID is a field with a name because a type parameter can't be embedded. Its
	// tag is that of [Text].
	ID T `gorm:"column:write IN for a slice of IDs"`
}

// The types of package idtype, SnoText and SnoBytes in columns that may be NULL.
type (
	// OptionalSnowflake is a nullable bigint.
	OptionalSnowflake = Optional[idtype.Snowflake]
	// OptionalSnowflakeSI is a nullable bigint.
	OptionalSnowflakeSI = Optional[idtype.SnowflakeSI]
	// OptionalUID60 is a nullable bigint.
	OptionalUID60 = Optional[idtype.UID60]
	// OptionalSpread64 is a nullable bigint.
	OptionalSpread64 = Optional[idtype.Spread64]
	// OptionalSno is a nullable uuid.
	OptionalSno = Optional[idtype.Sno]
	// OptionalSnoText is a nullable SnoText.
	OptionalSnoText = Optional[SnoText]
	// OptionalSnoBytes is a nullable SnoBytes.
	OptionalSnoBytes = Optional[SnoBytes]
)

// OptionalOf is id for a nullable column: NULL if id is the zero ID.
func OptionalOf[T ID](id T) Optional[T] { return Optional[T]{id} }

// IsZero reports whether there is no ID.
func (v Optional[T]) IsZero() bool { return v.ID.IsZero() }

// String is the ID's text, and empty if there is no ID.
func (v Optional[T]) String() string {
	if v.IsZero() {
		return ""
	}
	return v.ID.String()
}

// AppendText appends the ID's text, and nothing if there is no ID.
func (v Optional[T]) AppendText(b []byte) ([]byte, error) {
	if v.IsZero() {
		return b, nil
	}
	return v.ID.AppendText(b)
}

// MarshalText is the ID's text, and empty if there is no ID.
func (v Optional[T]) MarshalText() ([]byte, error) { return v.AppendText([]byte{}) }

// UnmarshalText reads the ID's text; an empty one is no ID.
func (v *Optional[T]) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*v = Optional[T]{}
		return nil
	}
	return unmarshalText(&v.ID, b)
}

// MarshalJSON is the ID's JSON, and null if there is no ID.
func (v Optional[T]) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}
	return v.ID.MarshalJSON()
}

// UnmarshalJSON reads the ID's JSON; null is no ID.
func (v *Optional[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Optional[T]{}
		return nil
	}
	return unmarshalJSON(&v.ID, b)
}

// Value is what T gives for its column, and NULL if there is no ID.
func (v Optional[T]) Value() (driver.Value, error) {
	if v.IsZero() {
		return nil, nil
	}
	return v.ID.Value()
}

// Scan takes the column values and IDs that T takes, and an Optional of the same
// format; NULL is no ID.
func (v *Optional[T]) Scan(src any) error {
	val, err := valueOf[T](src)
	switch {
	case err != nil:
		return err
	case isNull(val):
		*v = Optional[T]{}
		return nil
	}
	switch src.(type) {
	case Optional[T], *Optional[T], T, *T:
		return scan(&v.ID, val)
	}
	return scan(&v.ID, src) // T decides about an ID in another column's type
}

// GormDataType is the type of T's column.
func (v Optional[T]) GormDataType() string { return v.ID.GormDataType() }
