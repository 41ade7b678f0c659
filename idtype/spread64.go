package idtype

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// A Spread64 is a 64-bit ID that has a time but doesn't sort by it. IDs of consecutive
// milliseconds are far apart in the key space, like hashes, so inserts spread over all
// pages or shards.
//
//	 63                                      22 21      16 15      10 9       4 3        0
//	+------------------------------------------+----------+----------+---------+----------+
//	| milliseconds since 1970, its 42 bits in  | sequence | reserved | gener-  | cluster  |
//	| reverse order : 42                       | : 6      | 0 : 6    | ator: 6 | : 4      |
//	+------------------------------------------+----------+----------+---------+----------+
//
// The text of the original design describes a reversed byte order, but its program and
// its IDs reverse the 42 bits. This package reverses the bits too.
//
// The reserved bits of an ID are zero. A Spread64 is stored as a bigint in two's
// complement, so half of the IDs are negative in the column. Its text form is 16 hex
// digits.
type Spread64 int64

// The column can hold any number, because data with reserved bits must stay readable.
var spread64Kind = integerKind{"Spread64", "a decimal integer from -9223372036854775808 to 9223372036854775807", spread64Text, math.MinInt64, math.MaxInt64}

const (
	spread64Text   = "16 hex digits [0-9a-f]"
	spread64Digits = 16

	spread64TimeBits      = 42
	spread64SequenceBits  = 6
	spread64GeneratorBits = 6
	spread64ClusterBits   = 4

	spread64SequenceShift  = 16
	spread64GeneratorShift = spread64ClusterBits

	spread64Reserved = 0xfc00
)

// spread64Line starts at 1970.
var spread64Line = timeline{spread64Kind.name, 0, 1, 1<<spread64TimeBits - 1}

// A Spread64Layout composes a [Spread64] from parts. It has no options, and no Floor or
// Range, because the IDs don't sort by time.
type Spread64Layout struct{}

// Fingerprint returns a description of the layout, which never changes.
func (Spread64Layout) Fingerprint() string {
	return "epoch 1970-01-01T00:00:00.000Z; bits: sequence 6, generator 6, cluster 4"
}

// Spread64Parts are the fields of a [Spread64].
type Spread64Parts struct {
	Time      time.Time // UTC, in whole milliseconds; [Spread64Layout.Compose] rounds down
	Sequence  int       // 0 to 63
	Generator int       // 0 to 63
	Cluster   int       // 0 to 15
}

// Compose returns the ID with these parts. If a part is out of range, it returns
// [ErrBeforeEpoch], [ErrTimeExhausted], [ErrNode] or [ErrRange]; the error text names the
// limit.
func (Spread64Layout) Compose(p Spread64Parts) (Spread64, error) {
	unit, err := spread64Line.unit(p.Time)
	if err != nil {
		return 0, err
	}
	node, err := spread64Node(p.Generator, p.Cluster)
	if err != nil {
		return 0, err
	}
	if err := checkField(spread64Kind.name, "sequence", p.Sequence, spread64SequenceBits, ErrRange); err != nil {
		return 0, err
	}
	return spread64(unit, p.Sequence) | node, nil
}

// spread64 returns an ID with this time and sequence.
func spread64(unit int64, sequence int) Spread64 {
	// Reversing all 64 bits also moves the 42 time bits to the top.
	return Spread64(bits.Reverse64(uint64(unit))) | Spread64(sequence)<<spread64SequenceShift
}

// spread64Node returns the generator and the cluster, shifted to their bits.
func spread64Node(generator, cluster int) (Spread64, error) {
	if err := checkField(spread64Kind.name, "generator", generator, spread64GeneratorBits, ErrNode); err != nil {
		return 0, err
	}
	if err := checkField(spread64Kind.name, "cluster", cluster, spread64ClusterBits, ErrNode); err != nil {
		return 0, err
	}
	return Spread64(generator<<spread64GeneratorShift | cluster), nil
}

// Parts returns the parts of an ID. For a number with reserved bits it returns
// [ErrRange].
func (Spread64Layout) Parts(id Spread64) (Spread64Parts, error) {
	if err := id.check(); err != nil {
		return Spread64Parts{}, err
	}
	field := func(shift, bits int) int { return int(id >> shift & (1<<bits - 1)) }
	return Spread64Parts{
		Time:      id.Time(),
		Sequence:  field(spread64SequenceShift, spread64SequenceBits),
		Generator: field(spread64GeneratorShift, spread64GeneratorBits),
		Cluster:   field(0, spread64ClusterBits),
	}, nil
}

// check returns an error if a reserved bit is set.
func (id Spread64) check() error {
	if id&spread64Reserved == 0 {
		return nil
	}
	e := reservedBits.in(spread64Kind.name, "a number with bits 10 to 15 zero", strconv.AppendInt(nil, int64(id), 10))
	e.number = true
	return e
}

var reservedBits = flaw{-1, "reserved bits are set", ErrRange}

// Time returns [Spread64.Time].
func (Spread64Layout) Time(id Spread64) time.Time { return id.Time() }

// Time returns the millisecond in which the ID was created, in UTC.
func (id Spread64) Time() time.Time {
	return spread64Line.time(int64(bits.Reverse64(uint64(id)) & (1<<spread64TimeBits - 1)))
}

// ParseSpread64 parses 16 hex digits [0-9a-f] with all reserved bits zero. The error is a
// [*ParseError].
func ParseSpread64(s string) (id Spread64, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// Int64 returns the column's number, which is negative for half of the IDs.
func (id Spread64) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id Spread64) IsZero() bool { return id == 0 }

// Compare compares IDs as signed numbers, as their column does. Neither times nor texts
// sort in this order.
func (id Spread64) Compare(other Spread64) int { return cmp.Compare(id, other) }

// AppendText appends 16 hex digits. If the number has reserved bits, it returns
// [ErrRange], because [ParseSpread64] could not read the text back.
func (id Spread64) AppendText(b []byte) ([]byte, error) {
	if err := id.check(); err != nil {
		return b, err
	}
	return id.appendHex(b), nil
}

func (id Spread64) appendHex(b []byte) []byte {
	hi, lo := writeHex(uint64(id))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, hi), lo)
}

// String returns 16 hex digits, even if the number has reserved bits.
func (id Spread64) String() string {
	var buf [spread64Digits]byte
	return string(id.appendHex(buf[:0]))
}

// MarshalText returns the text that AppendText appends.
func (id Spread64) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, spread64Digits))
}

// UnmarshalText accepts the same input as [ParseSpread64].
func (id *Spread64) UnmarshalText(b []byte) error {
	if len(b) != spread64Digits {
		return badLength(len(b)).in(spread64Kind.name, spread64Text, b)
	}
	v, ok := readHex(octets(b))
	if !ok {
		return digitFlaw(hexDigits, b).in(spread64Kind.name, spread64Text, b)
	}
	if v&spread64Reserved != 0 {
		return reservedBits.in(spread64Kind.name, spread64Text+" with bits 10 to 15 zero", b)
	}
	*id = Spread64(v)
	return nil
}

// UnmarshalParam accepts the same input as [ParseSpread64]. The binders of gin and echo call it for
// path and query parameters.
func (id *Spread64) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *Spread64) Bind(param string) error { return id.UnmarshalParam(param) }

// AppendBinary appends 8 big-endian bytes. If the number has reserved bits, it returns
// [ErrRange].
func (id Spread64) AppendBinary(b []byte) ([]byte, error) {
	if err := id.check(); err != nil {
		return b, err
	}
	return spread64Kind.appendBinary(b, int64(id))
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id Spread64) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 8 big-endian bytes. The reserved bits must be zero.
func (id *Spread64) UnmarshalBinary(b []byte) error {
	var v Spread64
	if err := unmarshalInteger(&v, &spread64Kind, b); err != nil {
		return err
	}
	return set(id, v, v.check())
}

// MarshalJSON returns 16 hex digits in quotes, or null for the zero ID. If the number has
// reserved bits, it returns [ErrRange].
func (id Spread64) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, spread64Digits)
}

// UnmarshalJSON accepts 16 hex digits in quotes, the number of a bigint column, as Postgres
// writes it in JSON, and null for the zero ID. It rejects reserved bits.
func (id *Spread64) UnmarshalJSON(b []byte) error {
	return unmarshalIntegerJSON(id, &spread64Kind, spread64Kind.text, b)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (Spread64) JSONSchemaAlias() any { return "" }

// Value returns the column's int64, which is negative for half of the IDs. It keeps
// reserved bits, so a program can write back every number that Scan accepts.
func (id Spread64) Value() (driver.Value, error) { return int64(id), nil }

// Scan accepts an int64 or its decimal text. It doesn't accept the text form, because 16
// decimal digits could be either form. It also accepts a Spread64, a pointer to one, or a
// struct that holds one. Scan keeps reserved bits, so that data already in a column stays
// readable. For NULL it returns [ErrNull].
func (id *Spread64) Scan(src any) error { return scanInteger(id, &spread64Kind, src) }

// GormDataType returns the column type for GORM: bigint. Without this method, GORM would
// declare the key as bigserial.
func (Spread64) GormDataType() string { return bigintType }
