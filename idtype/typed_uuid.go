package idtype

import (
	"bytes"
	"database/sql/driver"
	"time"

	"github.com/sortkey/sortkey/internal/crockford"
)

// UUIDOf is a [UUID] that is the key of K's table. K is the model: the Go type for the rows
// of the table.
type UUIDOf[K any] = TypedUUID[*K]

// A TypedUUID is a [UUID] that is the key of a model's table. Use its alias [UUIDOf]. The
// type argument P is a pointer to the model, because Go compiles the methods once for all
// pointer types.
//
// If the model has a method IDPrefix() string, the text of its IDs is a TypeID (version 0.3
// of its specification): the prefix, an underscore, and the 128 bits as 26 characters of
// Crockford's base32, for example "order_01h455vb4pex5vsknk084sn02q". The prefix has up to 63
// lower-case letters and underscores, and begins and ends with a letter. JSON, map keys and
// logs have this text, and Parse and UnmarshalText reject other text. UnmarshalJSON also accepts
// the UUID of a column, as Postgres writes it in JSON. Columns never contain the prefix. If
// IDPrefix panics or returns another form, the first use of the model's IDs panics. Without a prefix, the text is that of a UUID.
type TypedUUID[P any] [16]byte

// typeIDText describes the text of a TypeID after its prefix, for errors.
const typeIDText = "26 characters [0-9a-hjkmnp-tv-z], the first at most 7"

// Untyped returns the ID without its model.
func (id TypedUUID[P]) Untyped() UUID { return UUID(id) }

// UntypedPointer returns id as a pointer to the ID without its model, so that a codec can set
// it.
func (id *TypedUUID[P]) UntypedPointer() *UUID { return (*UUID)(id) }

// ModelPrefix returns the prefix that the model declares with IDPrefix, without its
// underscore. It is empty if the model declares none.
func (TypedUUID[P]) ModelPrefix() string { return typeIDTraits[P]().modelPrefix() }

// ModelLayout returns [UUIDLayout], the only layout of UUIDs.
func (TypedUUID[P]) ModelLayout() Layout[UUID] { return UUIDLayout{} }

// Time returns the time in the ID, or the zero Time if the UUID isn't of version 7. The Time of
// Untyped returns an error instead.
func (id TypedUUID[P]) Time() time.Time { return UUIDLayout{}.Time(UUID(id)) }

// Version returns the version of the UUID, as [UUID.Version] does.
func (id TypedUUID[P]) Version() int { return UUID(id).Version() }

// IsZero reports whether id is the zero ID, the nil UUID. Generators never return it.
func (id TypedUUID[P]) IsZero() bool { return UUID(id).IsZero() }

// Compare compares IDs as their column does: by bytes. UUIDs of version 7 sort by time.
// Text sorts the same way.
func (id TypedUUID[P]) Compare(other TypedUUID[P]) int { return bytes.Compare(id[:], other[:]) }

// AppendText appends the TypeID, or the 36 characters of the UUID if the model has no
// prefix. The error is always nil.
func (id TypedUUID[P]) AppendText(b []byte) ([]byte, error) {
	m := typeIDTraits[P]()
	if m.prefix == "" {
		return UUID(id).AppendText(b)
	}
	return crockford.Append(append(b, m.prefix...), (*[16]byte)(&id)), nil
}

// String returns the text that AppendText appends.
func (id TypedUUID[P]) String() string {
	var buf [maxText]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

// MarshalText returns the text that AppendText appends.
func (id TypedUUID[P]) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, typeIDTraits[P]().uuidTextSize()))
}

// uuidTextSize returns the length of the text of a model's UUIDs.
func (m *traits) uuidTextSize() int {
	if m.prefix == "" {
		return uuidTextSize
	}
	return len(m.prefix) + crockford.Digits
}

// UnmarshalText accepts the text that AppendText appends.
func (id *TypedUUID[P]) UnmarshalText(b []byte) error {
	v, err := parseTypedUUID[P](b)
	return set(id, v, err)
}

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (id *TypedUUID[P]) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters.
func (id *TypedUUID[P]) Bind(param string) error { return id.UnmarshalParam(param) }

func (*TypedUUID[P]) parse(s string) (TypedUUID[P], error) { return parseTypedUUID[P]([]byte(s)) }

func parseTypedUUID[P any](b []byte) (id TypedUUID[P], err error) {
	m := typeIDTraits[P]()
	if m.prefix == "" {
		var v UUID
		if err := v.UnmarshalText(b); err != nil {
			return id, typedError[P](uuidName, err)
		}
		return TypedUUID[P](v), nil
	}
	rest, ok := m.cut(b)
	if !ok {
		return id, typedError[P](uuidName, m.wrongPrefix(b, typeIDText, 0))
	}
	if len(rest) != crockford.Digits {
		return id, typedError[P](uuidName, m.textError(badLength(len(rest)).in(uuidName, typeIDText, rest), b))
	}
	v, bad := crockford.Parse(rest)
	if bad >= 0 {
		return id, typedError[P](uuidName, m.textError(badCharacter(bad, rest[bad]).in(uuidName, typeIDText, rest), b))
	}
	return v, nil
}

// AppendBinary appends the 16 bytes. The error is always nil.
func (id TypedUUID[P]) AppendBinary(b []byte) ([]byte, error) { return append(b, id[:]...), nil }

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id TypedUUID[P]) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 16 bytes.
func (id *TypedUUID[P]) UnmarshalBinary(b []byte) error {
	var v UUID
	if err := v.UnmarshalBinary(b); err != nil {
		return typedError[P](uuidName, err)
	}
	*id = TypedUUID[P](v)
	return nil
}

// MarshalJSON returns the text in quotes, or null for the zero ID.
func (id TypedUUID[P]) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, typeIDTraits[P]().uuidTextSize())
}

// UnmarshalJSON accepts the text in quotes, the 36 characters of a uuid column in quotes, as
// Postgres writes it in JSON, without the model's prefix, and null for the zero ID.
func (id *TypedUUID[P]) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = TypedUUID[P]{}
		return nil
	}
	m := typeIDTraits[P]()
	s, quoted := unquote(b)
	switch {
	case !quoted && m.prefix == "":
		return typedError[P](uuidName, notQuoted(uuidName, uuidText, b))
	case !quoted:
		return typedError[P](uuidName, notQuoted(uuidName, m.want(typeIDText), b))
	case isUUIDText(s):
		var v UUID
		if err := v.UnmarshalText(s); err != nil {
			return typedError[P](uuidName, err)
		}
		*id = TypedUUID[P](v)
		return nil
	}
	return id.UnmarshalText(s)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (TypedUUID[P]) JSONSchemaAlias() any { return "" }

// Value returns the 36 characters of the UUID, as [UUID.Value] does.
func (id TypedUUID[P]) Value() (driver.Value, error) { return UUID(id).Value() }

// Scan accepts the column values that [UUID.Scan] accepts, without the model's prefix. It
// also accepts an ID of the same model, a pointer to one, or a struct that holds one. It
// rejects IDs of other models and IDs without a model. For NULL it returns [ErrNull].
func (id *TypedUUID[P]) Scan(src any) error {
	var v UUID
	switch own := src.(type) {
	case TypedUUID[P]:
		*id = own
		return nil
	case string, []byte, [16]byte, nil:
		if err := v.Scan(src); err != nil {
			return typedError[P](uuidName, err)
		}
	default:
		value, err := valueOf[TypedUUID[P]](uuidName, uuidScan, src)
		if err == nil {
			err = v.Scan(value)
		}
		if err != nil {
			return typedError[P](uuidName, err)
		}
	}
	*id = TypedUUID[P](v)
	return nil
}

// GormDataType returns the column type for GORM: uuid.
func (TypedUUID[P]) GormDataType() string { return uuidType }
