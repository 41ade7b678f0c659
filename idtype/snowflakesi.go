package idtype

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// A SnowflakeSI is a 53-bit ID that orders by time and that JavaScript holds
// exactly as a number:
//
//	 63      53 52                               13 12       8 7          0
//	+----------+-----------------------------------+----------+------------+
//	| 0        | MAB: milliseconds since the base  | MID:     | UIN: index |
//	| : 11     | clock : 40                        | machine  | : 8        |
//	|          |                                   | : 5      |            |
//	+----------+-----------------------------------+----------+------------+
//
// The lower 13 bits can be split otherwise; a [SnowflakeSILayout] says how. A
// SnowflakeSI is stored as a bigint and written as a decimal number, bare even
// in JSON, which is what it is for.
type SnowflakeSI int64

// MaxSnowflakeSI is the largest number that is a [SnowflakeSI]: 2^53-1, which
// JavaScript calls Number.MAX_SAFE_INTEGER.
const MaxSnowflakeSI = 1<<53 - 1

var snowflakeSIKind = integerKind{"SnowflakeSI", "a decimal integer from 0 to 9007199254740991", 0, MaxSnowflakeSI}

// snowflakeSILowBits are those of machine and index together.
const snowflakeSILowBits = 13

// A SnowflakeSILayout says what the bits of a [SnowflakeSI] mean. The zero
// value is not valid: there is no default base clock, since 40 bits last 34.84
// years from whichever is chosen.
type SnowflakeSILayout struct {
	BaseClock   time.Time // whole milliseconds; required
	MachineBits int       // both widths 0: 5 and 8
	IndexBits   int       // together with MachineBits always 13
}

// normal fills in the defaults.
func (l SnowflakeSILayout) normal() SnowflakeSILayout {
	if l.MachineBits == 0 && l.IndexBits == 0 {
		l.MachineBits, l.IndexBits = 5, 8
	}
	return l
}

// line is the layout's timeline; the layout is normal and valid.
func (l SnowflakeSILayout) line() timeline {
	return timeline{snowflakeSIKind.name, l.BaseClock.UnixMilli(), 1, 1<<40 - 1}
}

// Validate tells whether IDs can be made with the layout: the base clock is
// set, to a whole millisecond between the years 1 and 9999, and the widths are
// 0 or more and 13 together.
func (l SnowflakeSILayout) Validate() error {
	_, err := l.checked()
	return err
}

func (l SnowflakeSILayout) checked() (SnowflakeSILayout, error) {
	l = l.normal()
	if l.BaseClock.IsZero() {
		return l, &limitError{"idtype: SnowflakeSILayout.BaseClock: not set; choose an instant before the first ID, and never change it", ErrRange}
	}
	if m, i := l.MachineBits, l.IndexBits; m < 0 || i < 0 || m > snowflakeSILowBits || m+i != snowflakeSILowBits {
		return l, &limitError{fmt.Sprintf("idtype: SnowflakeSILayout: widths machine %d, index %d are out of range; want 0 or more each, and 13 in total", m, i), ErrRange}
	}
	return l, checkEpoch(snowflakeSIKind.name, "base clock", l.BaseClock)
}

// String gives the layout in words, such as "base clock
// 2024-01-01T00:00:00.000Z; bits: machine 5, index 8".
func (l SnowflakeSILayout) String() string {
	l = l.normal()
	return fmt.Sprintf("base clock %s; bits: machine %d, index %d", stamp(l.BaseClock), l.MachineBits, l.IndexBits)
}

// SnowflakeSIParts are the fields of a [SnowflakeSI].
type SnowflakeSIParts struct {
	Time    time.Time // UTC, in whole milliseconds; [SnowflakeSILayout.Compose] rounds down
	Machine int       // 0 to 31 in the default split
	Index   int       // 0 to 255
}

// Compose makes the ID that has these parts. A time, machine or index out of
// range is an error that names the limit: [ErrBeforeEpoch],
// [ErrTimeExhausted], [ErrNode] or [ErrRange].
func (l SnowflakeSILayout) Compose(p SnowflakeSIParts) (SnowflakeSI, error) {
	l, err := l.checked()
	if err != nil {
		return 0, err
	}
	unit, err := l.line().unit(p.Time)
	if err != nil {
		return 0, err
	}
	node, err := l.node(p.Machine)
	if err != nil {
		return 0, err
	}
	if err := checkField(snowflakeSIKind.name, "index", p.Index, l.IndexBits, ErrRange); err != nil {
		return 0, err
	}
	return SnowflakeSI(unit<<snowflakeSILowBits) | node | SnowflakeSI(p.Index), nil
}

// node is the machine in its place.
func (l SnowflakeSILayout) node(machine int) (SnowflakeSI, error) {
	err := checkField(snowflakeSIKind.name, "machine", machine, l.MachineBits, ErrNode)
	return SnowflakeSI(machine << l.IndexBits), err
}

// Parts takes an ID apart. A negative number or one past 2^53-1 is not a
// SnowflakeSI: [ErrRange].
func (l SnowflakeSILayout) Parts(id SnowflakeSI) (SnowflakeSIParts, error) {
	l, err := l.checked()
	if err != nil {
		return SnowflakeSIParts{}, err
	}
	if err := snowflakeSIKind.check(int64(id)); err != nil {
		return SnowflakeSIParts{}, err
	}
	return SnowflakeSIParts{
		Time:    l.line().time(int64(id >> snowflakeSILowBits)),
		Machine: int(id >> l.IndexBits & (1<<l.MachineBits - 1)),
		Index:   int(id & (1<<l.IndexBits - 1)),
	}, nil
}

// Time is the millisecond in which the ID was minted, in UTC; the zero Time
// where [SnowflakeSILayout.Parts] would give an error.
func (l SnowflakeSILayout) Time(id SnowflakeSI) time.Time {
	p, _ := l.Parts(id)
	return p.Time
}

// Floor is the lowest ID of the millisecond in which t lies: [ErrBeforeEpoch]
// or [ErrTimeExhausted] if the layout has none.
func (l SnowflakeSILayout) Floor(t time.Time) (SnowflakeSI, error) {
	return l.Compose(SnowflakeSIParts{Time: t})
}

// Range gives the bounds lo <= id < hi of the IDs minted from one instant to
// before another, so that windows that meet in time meet in IDs. A zero from
// or to leaves that side open. Times outside the layout's give its smallest
// and its largest value. A window that ends before it begins is an [ErrRange].
func (l SnowflakeSILayout) Range(from, to time.Time) (lo, hi SnowflakeSI, err error) {
	l, err = l.checked()
	if err != nil {
		return 0, 0, err
	}
	return timeRange(l.line(), from, to, func(unit int64) SnowflakeSI {
		return SnowflakeSI(unit << snowflakeSILowBits)
	}, SnowflakeSI(snowflakeSIKind.hi))
}

// ParseSnowflakeSI reads a decimal number from 0 to 9007199254740991, without
// sign, space or leading zero. The error is a [*ParseError].
func ParseSnowflakeSI(s string) (SnowflakeSI, error) {
	v, err := snowflakeSIKind.parse([]byte(s))
	return SnowflakeSI(v), err
}

// MustParseSnowflakeSI is [ParseSnowflakeSI] for constants: it panics on an error.
func MustParseSnowflakeSI(s string) SnowflakeSI { return must(ParseSnowflakeSI(s)) }

// SnowflakeSIFromInt64 is the ID that a column holds as n. A number that is
// negative or past 2^53-1 is an [ErrRange].
func SnowflakeSIFromInt64(n int64) (SnowflakeSI, error) {
	if uint64(n) <= MaxSnowflakeSI {
		return SnowflakeSI(n), nil
	}
	return 0, snowflakeSIKind.check(n)
}

// Int64 is the number that the column holds.
func (id SnowflakeSI) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID, which is never minted.
func (id SnowflakeSI) IsZero() bool { return id == 0 }

// Compare orders IDs as their column does, which is by time.
func (id SnowflakeSI) Compare(other SnowflakeSI) int { return cmp.Compare(id, other) }

// AppendText appends the decimal number. One that is negative or past 2^53-1 is
// an [ErrRange].
func (id SnowflakeSI) AppendText(b []byte) ([]byte, error) {
	return snowflakeSIKind.appendDecimal(b, int64(id))
}

// String is the decimal number, of any value.
func (id SnowflakeSI) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText is what AppendText appends.
func (id SnowflakeSI) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads what [ParseSnowflakeSI] does.
func (id *SnowflakeSI) UnmarshalText(b []byte) error {
	v, err := snowflakeSIKind.parse(b)
	return set(id, SnowflakeSI(v), err)
}

// AppendBinary appends the 8 bytes, big-endian. A number that is negative or
// past 2^53-1 is an [ErrRange].
func (id SnowflakeSI) AppendBinary(b []byte) ([]byte, error) {
	return snowflakeSIKind.appendBinary(b, int64(id))
}

// MarshalBinary gives what AppendBinary appends.
func (id SnowflakeSI) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary reads 8 bytes, big-endian. The first 11 bits must be zero.
func (id *SnowflakeSI) UnmarshalBinary(b []byte) error {
	return unmarshalInteger(id, &snowflakeSIKind, b)
}

// MarshalJSON gives the bare decimal number, and null for the zero ID. A number
// that is negative or past 2^53-1, which JavaScript would change, is an
// [ErrRange].
func (id SnowflakeSI) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return id.AppendText(nil)
}

// UnmarshalJSON reads a decimal number, bare or quoted, and null as the zero ID.
func (id *SnowflakeSI) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = 0
		return nil
	}
	s, _ := unquote(b)
	return id.UnmarshalText(s)
}

// Value gives the column's int64. A number that is negative or past 2^53-1 is
// an [ErrRange]: it could be stored, and not be read again.
func (id SnowflakeSI) Value() (driver.Value, error) { return snowflakeSIKind.value(int64(id)) }

// Scan takes an int64 or its decimal text. It also takes a SnowflakeSI, a pointer
// to one, or a struct around one. Numbers that are negative or past 2^53-1 are
// refused, and NULL is an [ErrNull].
func (id *SnowflakeSI) Scan(src any) error { return scanInteger(id, &snowflakeSIKind, src) }

// GormDataType is the column's type for GORM: bigint. Without it GORM would
// make the key a bigserial.
func (SnowflakeSI) GormDataType() string { return bigintType }

// LogValue is the ID's text.
func (id SnowflakeSI) LogValue() slog.Value { return slog.StringValue(id.String()) }
