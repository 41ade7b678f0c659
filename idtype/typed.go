package idtype

import (
	"cmp"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
)

// An Integer is one of the four integer ID types.
type Integer interface {
	Snowflake | SnowflakeSI | UID60 | Spread64

	fmt.Stringer
	encoding.TextAppender
	encoding.BinaryAppender
	json.Marshaler
	driver.Valuer
}

// The typed keys of package idtype. K is the model: the Go type for the rows of the table.
type (
	// SnowflakeOf is a [Snowflake] that is the key of K's table.
	SnowflakeOf[K any] = Typed[*K, Snowflake]
	// SnowflakeSIOf is a [SnowflakeSI] that is the key of K's table.
	SnowflakeSIOf[K any] = Typed[*K, SnowflakeSI]
	// UID60Of is a [UID60] that is the key of K's table.
	UID60Of[K any] = Typed[*K, UID60]
	// Spread64Of is a [Spread64] that is the key of K's table.
	Spread64Of[K any] = Typed[*K, Spread64]
	// SnoOf is a [Sno] that is the key of K's table. If K has a method IDMeta() byte, all
	// its IDs have that metabyte; see [TypedSno].
	SnoOf[K any] = TypedSno[*K]
)

// A Typed is a T that is the key of a model's table. Use its aliases, such as
// [SnowflakeOf]. The type argument P is a pointer to the model, because Go compiles the
// methods once for all pointer types.
//
// A Typed has the methods of T, except for accessors such as [UID60.Random]; call them on
// Untyped. To convert a plain ID, write idtype.SnowflakeOf[Order](id).
//
// # Prefix
//
// If the model has a method IDPrefix() string, the text of its IDs begins with the prefix
// and an underscore, for example "ord_779300444248735744". JSON, map keys and logs have this
// text, and Parse and UnmarshalText reject a text without the prefix. UnmarshalJSON also accepts
// the number of a column, as Postgres writes it in JSON. The prefix has
// lower-case letters and digits, and begins with a letter. Behind it, a UID60 always has
// 10 characters. Columns never contain the prefix: Value, Scan and MarshalBinary use the
// plain ID. A model that embeds another one inherits its prefix. If IDPrefix panics or
// returns another form, the first use of the model's IDs panics.
//
// # Layout
//
// Time reads the time in an ID, so it needs the layout in which the ID was created. UID60 and
// Spread64 have only one. A Snowflake has [DefaultSnowflakeLayout], unless the model declares
// another one. A SnowflakeSI has no default. The model declares its layout with a method
// IDLayout:
//
//	func (Order) IDLayout() idtype.SnowflakeLayout { return orders }
//
// The IDs are never created in one layout and read in another:
//   - [GeneratorOf], [MapGenerator] and the GORM plugin compare the model's layout with the
//     generator's. If they differ, GeneratorOf and MapGenerator panic, and the plugin returns
//     [ErrConfig].
//   - migrations.Check compares the layout of the database, in which its functions and
//     defaults create and read IDs, with the program's. Pass it the layout that IDLayout
//     returns.
//
// What remains is a generator that doesn't report its layout, such as one of your own: give it
// a method Layout() idtype.SnowflakeLayout.
type Typed[P any, T Integer] int64

// Parse parses the text of any ID type, for example Parse[OrderID]("ord_779300444").
// The error is a [*ParseError].
func Parse[V any, P interface {
	*V
	encoding.TextUnmarshaler
}](s string) (id V, err error) {
	if p, ok := any(P(nil)).(interface{ parse(string) (V, error) }); ok {
		return p.parse(s) // allocates nothing: neither s nor the result is behind a pointer
	}
	return unmarshaled[V, P](s)
}

// unmarshaled is a function of its own because id escapes.
func unmarshaled[V any, P interface {
	*V
	encoding.TextUnmarshaler
}](s string) (id V, err error) {
	err = P(&id).UnmarshalText([]byte(s))
	return id, err
}

// kindOf returns the kind of T.
func kindOf[T Integer]() *integerKind {
	// A pointer, because boxing a nil pointer allocates nothing.
	switch any((*T)(nil)).(type) {
	case *Snowflake:
		return &snowflakeKind
	case *SnowflakeSI:
		return &snowflakeSIKind
	case *UID60:
		return &uid60Kind
	default:
		return &spread64Kind
	}
}

// parseInteger parses the text of a T. The calls are static, so b doesn't escape.
func parseInteger[T Integer](b []byte) (int64, error) {
	switch k := kindOf[T](); k {
	case &uid60Kind:
		var id UID60
		err := id.UnmarshalText(b)
		return int64(id), err
	case &spread64Kind:
		var id Spread64
		err := id.UnmarshalText(b)
		return int64(id), err
	default:
		return k.parse(b)
	}
}

// Untyped returns the ID without its model.
func (id Typed[P, T]) Untyped() T { return T(id) }

// ModelPrefix returns the prefix that the model declares with IDPrefix, without its
// underscore. It is empty if the model declares none.
func (Typed[P, T]) ModelPrefix() string { return traitsOf[P]().modelPrefix() }

// Int64 returns the column's number.
func (id Typed[P, T]) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id Typed[P, T]) IsZero() bool { return id == 0 }

// Compare compares IDs as their column does: by time, except for Spread64.
func (id Typed[P, T]) Compare(other Typed[P, T]) int { return cmp.Compare(id, other) }

// AppendText appends the model's prefix and the text that T's AppendText appends. If the
// number is out of T's range, it returns [ErrRange].
func (id Typed[P, T]) AppendText(b []byte) ([]byte, error) {
	text, err := appendInteger[T](b, traitsOf[P]().prefix, int64(id))
	if err != nil {
		return b, typedError[P](kindOf[T]().name, err)
	}
	return text, nil
}

// appendInteger appends a prefix and the text of a T. The calls are static, so b doesn't
// escape.
func appendInteger[T Integer](b []byte, prefix string, id int64) ([]byte, error) {
	b = append(b, prefix...)
	switch any((*T)(nil)).(type) {
	case *Snowflake:
		return Snowflake(id).AppendText(b)
	case *SnowflakeSI:
		return SnowflakeSI(id).AppendText(b)
	case *UID60:
		if prefix != "" {
			return UID60(id).appendDigits(b, uid60MaxDigits)
		}
		return UID60(id).AppendText(b)
	default:
		return Spread64(id).AppendText(b)
	}
}

// String returns the model's prefix and T's String.
func (id Typed[P, T]) String() string {
	prefix := traitsOf[P]().prefix
	if prefix == "" {
		return T(id).String()
	}
	var buf [maxText]byte
	b, err := appendInteger[T](buf[:0], prefix, int64(id))
	if err != nil {
		return prefix + T(id).String() // not an ID
	}
	return string(b)
}

// maxText is the size of String's buffer. A longer text costs a second allocation.
const maxText = 48

// MarshalText returns the text that AppendText appends.
func (id Typed[P, T]) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, len(traitsOf[P]().prefix)+maxIntegerText))
}

// maxIntegerText is the maximum length of the text of an Integer.
const maxIntegerText = 19

// UnmarshalText accepts the text that AppendText appends. It rejects a text without the
// model's prefix.
func (id *Typed[P, T]) UnmarshalText(b []byte) error {
	v, err := parseTyped[P, T](b)
	return set(id, v, err)
}

// UnmarshalParam accepts the same input as UnmarshalText. The binders of gin and echo call it
// for path and query parameters.
func (id *Typed[P, T]) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *Typed[P, T]) Bind(param string) error { return id.UnmarshalParam(param) }

func (*Typed[P, T]) parse(s string) (Typed[P, T], error) { return parseTyped[P, T]([]byte(s)) }

func parseTyped[P any, T Integer](b []byte) (Typed[P, T], error) {
	m := traitsOf[P]()
	rest, ok := m.cut(b)
	if !ok {
		longest := 0
		if kindOf[T]() == &uid60Kind {
			longest = uid60MaxDigits
		}
		return 0, typedError[P](kindOf[T]().name, m.wrongPrefix(b, kindOf[T]().text, longest))
	}
	v, err := parseInteger[T](rest)
	if err == nil && m.prefix != "" && kindOf[T]() == &uid60Kind && len(rest) != uid60MaxDigits {
		// The text of a UID60 can contain an underscore. Without this check, a shorter text
		// behind a prefix could also be the text of another UID60.
		err = badLength(len(rest)).in(uid60Kind.name, uid60Padded, rest)
	}
	if err != nil {
		return 0, typedError[P](kindOf[T]().name, m.textError(err, b))
	}
	return Typed[P, T](v), nil
}

// AppendBinary appends 8 big-endian bytes. If the number is out of T's range, it returns
// [ErrRange].
func (id Typed[P, T]) AppendBinary(b []byte) ([]byte, error) {
	if kindOf[T]() == &spread64Kind {
		if err := Spread64(id).check(); err != nil {
			return b, typedError[P](spread64Kind.name, err)
		}
	}
	b, err := kindOf[T]().appendBinary(b, int64(id))
	if err != nil {
		return b, typedError[P](kindOf[T]().name, err)
	}
	return b, nil
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id Typed[P, T]) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts the 8 bytes that AppendBinary appends.
func (id *Typed[P, T]) UnmarshalBinary(b []byte) error {
	var v Typed[P, T]
	err := unmarshalInteger(&v, kindOf[T](), b)
	if err == nil && kindOf[T]() == &spread64Kind {
		err = Spread64(v).check()
	}
	if err != nil {
		return typedError[P](kindOf[T]().name, err)
	}
	*id = v
	return nil
}

// MarshalJSON returns T's JSON, or the text with the model's prefix in quotes. It returns
// null for the zero ID. If the number is out of T's range, it returns [ErrRange].
func (id Typed[P, T]) MarshalJSON() ([]byte, error) {
	switch {
	case id == 0:
		return []byte(jsonNull), nil
	case id.jsonIsNumber():
		return id.AppendText(nil)
	}
	return quote(id.AppendText, len(traitsOf[P]().prefix)+maxIntegerText)
}

func (Typed[P, T]) jsonIsNumber() bool {
	return traitsOf[P]().prefix == "" && kindOf[T]() == &snowflakeSIKind
}

// UnmarshalJSON accepts what T's UnmarshalJSON accepts. If the model has a prefix, a text
// must have it, but the number of a bigint column, as Postgres writes it in JSON, has none.
func (id *Typed[P, T]) UnmarshalJSON(b []byte) error {
	k := kindOf[T]()
	if err := unmarshalIntegerJSON(id, k, traitsOf[P]().want(k.text), b); err != nil {
		return typedError[P](k.name, err)
	}
	return nil
}

// JSONSchemaAlias returns a string or an int64, as the JSON is. Package
// github.com/invopop/jsonschema calls it.
func (id Typed[P, T]) JSONSchemaAlias() any {
	if id.jsonIsNumber() {
		return int64(0)
	}
	return ""
}

// Value returns the column's int64, as T's Value does: without the model's prefix.
func (id Typed[P, T]) Value() (driver.Value, error) {
	v, err := kindOf[T]().value(int64(id))
	if err != nil {
		return nil, typedError[P](kindOf[T]().name, err)
	}
	return v, nil
}

// Scan accepts the column values that T's Scan accepts, without the model's prefix. It
// also accepts an ID of the same model, a pointer to one, or a struct that holds one. It
// rejects IDs of other models and IDs without a model. For NULL it returns [ErrNull].
func (id *Typed[P, T]) Scan(src any) error {
	if err := scanInteger(id, kindOf[T](), src); err != nil {
		return typedError[P](kindOf[T]().name, err)
	}
	return nil
}

// GormDataType returns the column type for GORM: bigint.
func (Typed[P, T]) GormDataType() string { return bigintType }
