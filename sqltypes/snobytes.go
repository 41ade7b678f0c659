package sqltypes

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/sortkey/sortkey/idtype"
)

// A SnoBytes is an [idtype.Sno] in a bytea column, which stores its 10 bytes. They
// sort by time. The text and JSON forms are the Sno's. The zero ID is 10 zero bytes;
// for NULL, see [Optional].
type SnoBytes struct {
	ID idtype.Sno `gorm:"column:write IN for a slice of IDs"` // see [Text]
}

const snoBytesWant = "the 10 bytes of an idtype.Sno"

// SnoBytesOf returns id as a SnoBytes.
func SnoBytesOf(id idtype.Sno) SnoBytes { return SnoBytes{id} }

// IsZero reports whether the ID is the zero ID.
func (v SnoBytes) IsZero() bool { return v.ID.IsZero() }

// String returns the ID's text: 16 digits.
func (v SnoBytes) String() string { return v.ID.String() }

// AppendText appends the ID's text. The error is always nil.
func (v SnoBytes) AppendText(b []byte) ([]byte, error) { return v.ID.AppendText(b) }

// MarshalText returns the ID's text. The error is always nil.
func (v SnoBytes) MarshalText() ([]byte, error) { return v.ID.MarshalText() }

// UnmarshalText parses the ID's text.
func (v *SnoBytes) UnmarshalText(b []byte) error { return v.ID.UnmarshalText(b) }

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (v *SnoBytes) UnmarshalParam(param string) error { return v.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (v *SnoBytes) Bind(param string) error { return v.UnmarshalParam(param) }

// MarshalJSON returns the ID's JSON.
func (v SnoBytes) MarshalJSON() ([]byte, error) { return v.ID.MarshalJSON() }

// UnmarshalJSON parses the ID's JSON. It also accepts the column's bytes as hex digits, as
// Postgres writes them in JSON.
func (v *SnoBytes) UnmarshalJSON(b []byte) error {
	err := v.ID.UnmarshalJSON(b)
	var column string
	if err != nil && json.Unmarshal(b, &column) == nil {
		if digits, ok := strings.CutPrefix(column, `\x`); ok {
			if raw, bad := hex.DecodeString(digits); bad == nil && v.ID.UnmarshalBinary(raw) == nil {
				return nil
			}
		}
	}
	return err
}

// JSONSchemaAlias returns the ID, whose JSON v has. Package github.com/invopop/jsonschema calls it.
func (v SnoBytes) JSONSchemaAlias() any { return v.ID }

// Value returns the 10 bytes.
func (v SnoBytes) Value() (driver.Value, error) { return v.ID.MarshalBinary() }

// Scan accepts 10 bytes. It also accepts a SnoBytes, a pointer to one, or a struct
// that holds one. It rejects strings, and an [idtype.Sno], because its Value is a UUID.
// For NULL it returns [idtype.ErrNull].
func (v *SnoBytes) Scan(src any) error {
	val, err := valueOf[SnoBytes](src)
	switch {
	case err != nil:
		return err
	case isNull(val):
		return nullError(snoBytesWant, *v)
	}
	b, ok := val.([]byte)
	if !ok {
		return typeError(snoBytesWant, src, *v)
	}
	return v.ID.UnmarshalBinary(b)
}

// GormDataType returns the column type for GORM: bytea.
func (SnoBytes) GormDataType() string { return "bytea" }
