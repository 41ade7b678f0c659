package idtype

import (
	"bytes"
	"database/sql/driver"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A TypedSno is a [Sno] that is the key of a model's table. Use its alias [SnoOf]. The
// type argument P is a pointer to the model, because Go compiles the methods once for all
// pointer types.
//
// If the model has a method IDMeta() byte, its IDs have that metabyte. The GORM plugin and
// [GeneratorOf] create them with it. Value, Scan, Parse and all marshalling methods
// return [ErrRange] for an ID with another metabyte, except for the zero ID. Declare IDMeta
// only for a table whose IDs all have the metabyte: other rows can't be read. For an ID with
// another metabyte, use a plain Sno: id.Untyped().WithMeta(meta). The plain Sno also has the
// accessors of the other parts, such as [Sno.Meta].
type TypedSno[P any] [10]byte

// Untyped returns the ID without its model.
func (id TypedSno[P]) Untyped() Sno { return Sno(id) }

// UntypedPointer returns id as a pointer to the ID without its model. An ID that is set through
// it, as by a conversion, may have another metabyte than the model's.
func (id *TypedSno[P]) UntypedPointer() *Sno { return (*Sno)(id) }

// ModelPrefix returns the prefix that the model declares with IDPrefix, without its
// underscore. It is empty if the model declares none.
func (TypedSno[P]) ModelPrefix() string { return traitsOf[P]().modelPrefix() }

// ModelMeta returns the metabyte that the model declares with IDMeta. ok is false if the
// model declares none.
func (TypedSno[P]) ModelMeta() (meta byte, ok bool) {
	m := traitsOf[P]()
	return m.meta, m.hasMeta
}

// ModelLayout returns [SnoLayout], the only layout of Snos.
func (TypedSno[P]) ModelLayout() Layout[Sno] { return SnoLayout{} }

// Time returns the time in the ID, as [Sno.Time] does.
func (id TypedSno[P]) Time() time.Time { return Sno(id).Time() }

// UUID returns the ID as its column stores it, as [Sno.UUID] does.
func (id TypedSno[P]) UUID() uuid.UUID { return Sno(id).UUID() }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id TypedSno[P]) IsZero() bool { return Sno(id).IsZero() }

// Compare compares IDs by time, as their column does. Text and bytes sort the same way.
func (id TypedSno[P]) Compare(other TypedSno[P]) int { return bytes.Compare(id[:], other[:]) }

// check returns an error if the ID has a metabyte other than its model's.
func (id TypedSno[P]) check(m *traits) error {
	if !m.hasMeta || id[5] == m.meta || id.IsZero() {
		return nil
	}
	e := flaw{-1, "got the metabyte " + byteName(id[5]), ErrRange}.
		in(typedName[P](snoName), "the model's metabyte "+byteName(m.meta), []byte(id.String()))
	e.number = true
	e.public = "it is the ID of another kind of record"
	return e
}

// byteName returns a byte as a number, and as a character if it is printable.
func byteName(b byte) string {
	name := strconv.Itoa(int(b))
	if b > ' ' && b < 0x7f {
		name += " (" + strconv.QuoteRune(rune(b)) + ")"
	}
	return name
}

// AppendText appends the model's prefix and the 16 characters of the ID. If the ID has
// a metabyte other than its model's, it returns [ErrRange].
func (id TypedSno[P]) AppendText(b []byte) ([]byte, error) {
	m := traitsOf[P]()
	if err := id.check(m); err != nil {
		return b, err
	}
	return Sno(id).AppendText(append(b, m.prefix...))
}

// String returns the model's prefix and the 16 characters of the ID, whatever its
// metabyte is.
func (id TypedSno[P]) String() string {
	var buf [maxText]byte
	b, _ := Sno(id).AppendText(append(buf[:0], traitsOf[P]().prefix...))
	return string(b)
}

// MarshalText returns the text that AppendText appends.
func (id TypedSno[P]) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, len(traitsOf[P]().prefix)+snoDigits))
}

// UnmarshalText accepts the text that AppendText appends. It rejects a text without the
// model's prefix, and an ID with a metabyte other than the model's.
func (id *TypedSno[P]) UnmarshalText(b []byte) error {
	v, err := parseTypedSno[P](b)
	return set(id, v, err)
}

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (id *TypedSno[P]) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *TypedSno[P]) Bind(param string) error { return id.UnmarshalParam(param) }

func (*TypedSno[P]) parse(s string) (TypedSno[P], error) { return parseTypedSno[P]([]byte(s)) }

func parseTypedSno[P any](b []byte) (id TypedSno[P], err error) {
	m := traitsOf[P]()
	rest, ok := m.cut(b)
	if !ok {
		return id, typedError[P](snoName, m.wrongPrefix(b, snoText, 0))
	}
	var v Sno
	if err := v.UnmarshalText(rest); err != nil {
		return id, typedError[P](snoName, m.textError(err, b))
	}
	if err = id.set(v, m); err != nil {
		err.(*ParseError).number = false // the input is text
	}
	return id, err
}

// set sets *id, unless v has a metabyte other than the model's.
func (id *TypedSno[P]) set(v Sno, m *traits) error {
	return set(id, TypedSno[P](v), TypedSno[P](v).check(m))
}

// AppendBinary appends the 10 bytes. If the ID has a metabyte other than its
// model's, it returns [ErrRange].
func (id TypedSno[P]) AppendBinary(b []byte) ([]byte, error) {
	if err := id.check(traitsOf[P]()); err != nil {
		return b, err
	}
	return append(b, id[:]...), nil
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id TypedSno[P]) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 10 bytes. It rejects a metabyte other than the model's.
func (id *TypedSno[P]) UnmarshalBinary(b []byte) error {
	var v Sno
	if err := v.UnmarshalBinary(b); err != nil {
		return typedError[P](snoName, err)
	}
	return id.set(v, traitsOf[P]())
}

// MarshalJSON returns the text in quotes, or null for the zero ID.
func (id TypedSno[P]) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, len(traitsOf[P]().prefix)+snoDigits)
}

// UnmarshalJSON accepts the text in quotes, the 36 characters of a uuid column in quotes, as
// Postgres writes it in JSON, without the model's prefix, and null for the zero ID.
func (id *TypedSno[P]) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = TypedSno[P]{}
		return nil
	}
	s, quoted := unquote(b)
	switch {
	case !quoted:
		return typedError[P](snoName, notQuoted(snoName, traitsOf[P]().want(snoText), b))
	case isUUIDText(s):
		var v Sno
		if err := v.unmarshalUUID(s); err != nil {
			return typedError[P](snoName, err)
		}
		return id.set(v, traitsOf[P]())
	}
	return id.UnmarshalText(s)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (TypedSno[P]) JSONSchemaAlias() any { return "" }

// Value returns the 36 characters of [Sno.UUID], without the model's prefix. If the ID has
// a metabyte other than its model's, it returns [ErrRange].
func (id TypedSno[P]) Value() (driver.Value, error) {
	if err := id.check(traitsOf[P]()); err != nil {
		return nil, err
	}
	return Sno(id).Value()
}

// Scan accepts the column values that [Sno.Scan] accepts, without the model's prefix. It
// also accepts an ID of the same model, a pointer to one, or a struct that holds one. It
// rejects IDs of other models, IDs without a model, and IDs with a metabyte other than the
// model's. For NULL it returns [ErrNull].
func (id *TypedSno[P]) Scan(src any) error {
	var v Sno
	switch own := src.(type) {
	case TypedSno[P]:
		v = Sno(own)
	case string, []byte, [16]byte, nil:
		if err := v.Scan(src); err != nil {
			return typedError[P](snoName, err)
		}
	default:
		value, err := valueOf[TypedSno[P]](snoName, snoScan, src)
		if err == nil {
			err = v.Scan(value)
		}
		if err != nil {
			return typedError[P](snoName, err)
		}
	}
	if err := id.set(v, traitsOf[P]()); err != nil {
		return scanError(err)
	}
	return nil
}

// GormDataType returns the column type for GORM: uuid.
func (TypedSno[P]) GormDataType() string { return uuidType }
