package sqltypes

import (
	"database/sql/driver"
)

// An Optional is an ID in a nullable column, such as an optional foreign key. The
// zero ID stands for NULL; generators never create it.
type Optional[T ID] struct {
	// ID is a named field because a type parameter can't be embedded. For the tag,
	// see [Text].
	ID T `gorm:"column:write IN for a slice of IDs"`
}

// OptionalOf returns id as an Optional, which is NULL if id is the zero ID.
func OptionalOf[T ID](id T) Optional[T] { return Optional[T]{id} }

// IsZero reports whether v holds no ID.
func (v Optional[T]) IsZero() bool { return v.ID.IsZero() }

// String returns the ID's text, or an empty string if v holds no ID.
func (v Optional[T]) String() string {
	if v.IsZero() {
		return ""
	}
	return v.ID.String()
}

// AppendText appends the ID's text, or nothing if v holds no ID.
func (v Optional[T]) AppendText(b []byte) ([]byte, error) {
	if v.IsZero() {
		return b, nil
	}
	return v.ID.AppendText(b)
}

// MarshalText returns the ID's text, or an empty text if v holds no ID.
func (v Optional[T]) MarshalText() ([]byte, error) { return v.AppendText([]byte{}) }

// UnmarshalText parses the ID's text. An empty text sets v to no ID.
func (v *Optional[T]) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*v = Optional[T]{}
		return nil
	}
	return unmarshalText(&v.ID, b)
}

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (v *Optional[T]) UnmarshalParam(param string) error { return v.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (v *Optional[T]) Bind(param string) error { return v.UnmarshalParam(param) }

// MarshalJSON returns the ID's JSON, or null if v holds no ID.
func (v Optional[T]) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}
	return v.ID.MarshalJSON()
}

// UnmarshalJSON parses the ID's JSON. null sets v to no ID.
func (v *Optional[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Optional[T]{}
		return nil
	}
	return unmarshalJSON(&v.ID, b)
}

// JSONSchemaAlias returns the ID, whose JSON v has unless it is null. Package
// github.com/invopop/jsonschema calls it.
func (v Optional[T]) JSONSchemaAlias() any { return v.ID }

// Value returns the ID's Value, or NULL if v holds no ID.
func (v Optional[T]) Value() (driver.Value, error) {
	if v.IsZero() {
		return nil, nil
	}
	return v.ID.Value()
}

// Scan accepts the column values and IDs that T's Scan accepts, and an Optional of
// the same format. NULL sets v to no ID.
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
	return scan(&v.ID, src) // T's Scan accepts or rejects an ID for another column type
}

// GormDataType returns the column type of T for GORM.
func (v Optional[T]) GormDataType() string { return v.ID.GormDataType() }
