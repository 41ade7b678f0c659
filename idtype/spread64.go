package idtype

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"log/slog"
	"math"
	"math/bits"
	"time"
)

// A Spread64 is a 64-bit ID that has a time but no time order: IDs minted one
// after another lie far apart in the key space, like hashes, so that no page
// or shard takes all inserts.
//
//	 63                                      22 21      16 15      10 9       4 3        0
//	+------------------------------------------+----------+----------+---------+----------+
//	| milliseconds since 1970, its 42 bits in  | sequence | reserved | gener-  | cluster  |
//	| reverse order : 42                       | : 6      | 0 : 6    | ator: 6 | : 4      |
//	+------------------------------------------+----------+----------+---------+----------+
//
// The design's text speaks of a reversed byte order; its program reverses the
// 42 bits, and so do its IDs.
//
// It is stored as a bigint in two's complement, so that half of the IDs are
// negative there, and written as 16 hex digits.
type Spread64 int64

// The column may hold any number: data with reserved bits stays readable.
var spread64Kind = integerKind{"Spread64", "a decimal integer from -9223372036854775808 to 9223372036854775807", math.MinInt64, math.MaxInt64}

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

// spread64Line counts from 1970.
var spread64Line = timeline{spread64Kind.name, 0, 1, 1<<spread64TimeBits - 1}

// A Spread64Layout makes [Spread64]s from parts. It has no choices, and since
// the IDs don't order by time, no floors and ranges.
type Spread64Layout struct{}

// Validate always gives nil.
func (Spread64Layout) Validate() error { return nil }

// Spread64Parts are the fields of a [Spread64].
type Spread64Parts struct {
	Time      time.Time // UTC, in whole milliseconds; [Spread64Layout.Compose] rounds down
	Sequence  int       // 0 to 63
	Generator int       // 0 to 63
	Cluster   int       // 0 to 15
}

// Compose makes the ID that has these parts. A part out of range is an error
// that names the limit: [ErrBeforeEpoch], [ErrTimeExhausted], [ErrNode] or
// [ErrRange].
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

// spread64 puts the time and the sequence in their places.
func spread64(unit int64, sequence int) Spread64 {
	// Reversing all 64 bits moves the 42 of the time to the top as well.
	return Spread64(bits.Reverse64(uint64(unit))) | Spread64(sequence)<<spread64SequenceShift
}

// spread64Node is the generator and the cluster in their places.
func spread64Node(generator, cluster int) (Spread64, error) {
	if err := checkField(spread64Kind.name, "generator", generator, spread64GeneratorBits, ErrNode); err != nil {
		return 0, err
	}
	if err := checkField(spread64Kind.name, "cluster", cluster, spread64ClusterBits, ErrNode); err != nil {
		return 0, err
	}
	return Spread64(generator<<spread64GeneratorShift | cluster), nil
}

// Parts takes an ID apart. A number with a reserved bit set is not a Spread64:
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

// check refuses numbers with reserved bits.
func (id Spread64) check() error {
	if id&spread64Reserved == 0 {
		return nil
	}
	return flaw{-1, "reserved bits are set", ErrRange}.in(spread64Kind.name, spread64Text+" with bits 10 to 15 zero", []byte(id.String()))
}

// Time is [Spread64.Time].
func (Spread64Layout) Time(id Spread64) time.Time { return id.Time() }

// Time is the millisecond in which the ID was minted, in UTC.
func (id Spread64) Time() time.Time {
	return spread64Line.time(int64(bits.Reverse64(uint64(id)) & (1<<spread64TimeBits - 1)))
}

// ParseSpread64 reads 16 digits [0-9a-f] whose reserved bits are zero. The
// error is a [*ParseError].
func ParseSpread64(s string) (id Spread64, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// MustParseSpread64 is [ParseSpread64] for constants: it panics on an error.
func MustParseSpread64(s string) Spread64 { return must(ParseSpread64(s)) }

// Spread64FromInt64 is the ID that a column holds as n, which is negative for half
// of the IDs. A number with reserved bits is an [ErrRange]; Scan keeps it.
func Spread64FromInt64(n int64) (Spread64, error) {
	if n&spread64Reserved == 0 {
		return Spread64(n), nil
	}
	return 0, Spread64(n).check()
}

// Int64 is the number that the column holds: negative for half of the IDs.
func (id Spread64) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID, which is never minted.
func (id Spread64) IsZero() bool { return id == 0 }

// Compare orders IDs as their column does: as signed numbers, which is neither
// the order of their times nor that of their texts.
func (id Spread64) Compare(other Spread64) int { return cmp.Compare(id, other) }

// AppendText appends 16 hex digits. A number with reserved bits has no text
// that could be read again: [ErrRange].
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

// String is 16 hex digits, of any value.
func (id Spread64) String() string {
	var buf [spread64Digits]byte
	return string(id.appendHex(buf[:0]))
}

// MarshalText is what AppendText appends.
func (id Spread64) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, spread64Digits))
}

// UnmarshalText reads what [ParseSpread64] does.
func (id *Spread64) UnmarshalText(b []byte) error {
	if len(b) != spread64Digits {
		return badLength(len(b)).in(spread64Kind.name, spread64Text, b)
	}
	v, ok := readHex(octets(b))
	if !ok {
		return digitFlaw(&hexValue, b).in(spread64Kind.name, spread64Text, b)
	}
	return set(id, Spread64(v), Spread64(v).check())
}

// AppendBinary appends the 8 bytes, big-endian. A number with reserved bits is
// an [ErrRange].
func (id Spread64) AppendBinary(b []byte) ([]byte, error) {
	if err := id.check(); err != nil {
		return b, err
	}
	return spread64Kind.appendBinary(b, int64(id))
}

// MarshalBinary gives what AppendBinary appends.
func (id Spread64) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary reads 8 bytes, big-endian. The reserved bits must be zero.
func (id *Spread64) UnmarshalBinary(b []byte) error {
	var v Spread64
	if err := unmarshalInteger(&v, &spread64Kind, b); err != nil {
		return err
	}
	return set(id, v, v.check())
}

// MarshalJSON gives the 16 hex digits in quotes, and null for the zero ID. A
// number with reserved bits is an [ErrRange].
func (id Spread64) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, spread64Digits)
}

// UnmarshalJSON reads 16 hex digits in quotes, and null as the zero ID.
func (id *Spread64) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = 0
		return nil
	}
	s, err := unquoteText(b, spread64Kind.name, spread64Text)
	if err != nil {
		return err
	}
	return id.UnmarshalText(s)
}

// Value gives the column's int64, which is negative for half of the IDs. It can
// have reserved bits: what Scan has kept can be written back.
func (id Spread64) Value() (driver.Value, error) { return int64(id), nil }

// Scan takes an int64 or its decimal text, never the text form: 16 decimal
// digits could be either. It also takes a Spread64, a pointer to one, or a struct
// around one. A number with reserved bits is kept, so that data already in a
// column stays readable. NULL is an [ErrNull].
func (id *Spread64) Scan(src any) error { return scanInteger(id, &spread64Kind, src) }

// GormDataType is the column's type for GORM: bigint. Without it GORM would
// make the key a bigserial.
func (Spread64) GormDataType() string { return bigintType }

// LogValue is the ID's text.
func (id Spread64) LogValue() slog.Value { return slog.StringValue(id.String()) }
