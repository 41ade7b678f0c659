package idtype

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"time"
)

// A SnowflakeSI is a 53-bit ID that sorts by time and is exact as a JavaScript number:
//
//	 63      53 52                               13 12       8 7          0
//	+----------+-----------------------------------+----------+------------+
//	| 0        | MAB: milliseconds since the base  | MID:     | UIN: index |
//	| : 11     | clock : 40                        | machine  | : 8        |
//	|          |                                   | : 5      |            |
//	+----------+-----------------------------------+----------+------------+
//
// A [SnowflakeSILayout] can split the lower 13 bits differently. A SnowflakeSI is stored
// as a bigint. Its text form is a decimal number, and its JSON form a bare number.
type SnowflakeSI int64

// MaxSnowflakeSI is the largest [SnowflakeSI]: 2^53-1, JavaScript's
// Number.MAX_SAFE_INTEGER.
const MaxSnowflakeSI = 1<<53 - 1

// snowflakeSIDecimal describes the numbers and the texts.
const snowflakeSIDecimal = "a decimal integer from 0 to 9007199254740991"

var snowflakeSIKind = integerKind{"SnowflakeSI", snowflakeSIDecimal, snowflakeSIDecimal, 0, MaxSnowflakeSI}

// snowflakeSILowBits is the total width of machine and index.
const snowflakeSILowBits = 13

// A SnowflakeSILayout defines the bits of a [SnowflakeSI]. The zero value is invalid,
// because the base clock has no default: 40 bits last only 34.84 years from the chosen
// instant.
type SnowflakeSILayout struct {
	BaseClock   time.Time // in whole milliseconds; required
	MachineBits int       // if both widths are 0, they are 5 and 8
	IndexBits   int       // MachineBits and IndexBits are 13 in total
}

// normal returns the layout with defaults for zero fields.
func (l SnowflakeSILayout) normal() SnowflakeSILayout {
	if l.MachineBits == 0 && l.IndexBits == 0 {
		l.MachineBits, l.IndexBits = 5, 8
	}
	return l
}

// line returns the timeline of a normal, valid layout.
func (l SnowflakeSILayout) line() timeline {
	return timeline{snowflakeSIKind.name, l.BaseClock.UnixMilli(), 1, 1<<40 - 1}
}

// Validate returns nil if the layout is valid: the base clock is set to a whole
// millisecond between the years 1 and 9999, and the widths are 0 or more and 13 in total.
func (l SnowflakeSILayout) Validate() error {
	_, err := l.checked()
	return err
}

func (l SnowflakeSILayout) checked() (SnowflakeSILayout, error) {
	l = l.normal()
	if l.BaseClock.IsZero() {
		return l, &configError{"idtype: SnowflakeSILayout.BaseClock: not set; choose an instant before the first ID, and never change it"}
	}
	if m, i := l.MachineBits, l.IndexBits; m < 0 || i < 0 || m > snowflakeSILowBits || m+i != snowflakeSILowBits {
		return l, &limitError{fmt.Sprintf("idtype: SnowflakeSILayout: widths machine %d, index %d are out of range; want 0 or more each, and 13 in total", m, i), ErrRange}
	}
	return l, checkEpoch(snowflakeSIKind.name, "base clock", l.BaseClock)
}

// Fingerprint returns a text such as "base clock 2024-01-01T00:00:00.000Z; bits: machine 5,
// index 8". Layouts that make the same IDs have the same fingerprint, and other layouts have
// another one. It never changes, so databases and lease stores keep it.
func (l SnowflakeSILayout) Fingerprint() string {
	l = l.normal()
	return fmt.Sprintf("base clock %s; bits: machine %d, index %d", stamp(l.BaseClock), l.MachineBits, l.IndexBits)
}

// String returns a description of the layout for people. To compare layouts, use
// Fingerprint.
func (l SnowflakeSILayout) String() string { return l.Fingerprint() }

// SnowflakeSIParts are the fields of a [SnowflakeSI].
type SnowflakeSIParts struct {
	Time    time.Time // UTC, in whole milliseconds; [SnowflakeSILayout.Compose] rounds down
	Machine int       // 0 to 31 in the default split
	Index   int       // 0 to 255
}

// Compose returns the ID with these parts. If a part is out of range, it returns
// [ErrBeforeEpoch], [ErrTimeExhausted], [ErrNode] or [ErrRange]; the error text names the
// limit.
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

// node returns the machine, shifted to its bits.
func (l SnowflakeSILayout) node(machine int) (SnowflakeSI, error) {
	err := checkField(snowflakeSIKind.name, "machine", machine, l.MachineBits, ErrNode)
	return SnowflakeSI(machine << l.IndexBits), err
}

// Parts returns the parts of an ID. For a number that is negative or above 2^53-1 it
// returns [ErrRange].
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

// Time returns the millisecond in which the ID was created, in UTC. If
// [SnowflakeSILayout.Parts] returns an error, Time returns the zero Time.
func (l SnowflakeSILayout) Time(id SnowflakeSI) time.Time {
	p, _ := l.Parts(id)
	return p.Time
}

// Floor returns the lowest ID of the millisecond that contains t. If t is outside the
// layout's time, it returns [ErrBeforeEpoch] or [ErrTimeExhausted].
func (l SnowflakeSILayout) Floor(t time.Time) (SnowflakeSI, error) {
	return l.Compose(SnowflakeSIParts{Time: t})
}

// Range returns the bounds lo <= id < hi of the IDs created at or after from and before
// to. It rounds both times down to milliseconds, so adjacent time windows have adjacent
// ranges. A zero from or to leaves that side open. For times outside the layout, Range
// uses the smallest or the largest ID. If to is before from, it returns [ErrRange].
func (l SnowflakeSILayout) Range(from, to time.Time) (lo, hi SnowflakeSI, err error) {
	l, err = l.checked()
	if err != nil {
		return 0, 0, err
	}
	return timeRange(l.line(), from, to, func(unit int64) SnowflakeSI {
		return SnowflakeSI(unit << snowflakeSILowBits)
	}, SnowflakeSI(snowflakeSIKind.hi))
}

// ParseSnowflakeSI parses a decimal number from 0 to 9007199254740991, without sign,
// space or leading zero. The error is a [*ParseError].
func ParseSnowflakeSI(s string) (SnowflakeSI, error) {
	v, err := snowflakeSIKind.parse([]byte(s))
	return SnowflakeSI(v), err
}

// Int64 returns the column's number.
func (id SnowflakeSI) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id SnowflakeSI) IsZero() bool { return id == 0 }

// Compare compares IDs by time, as their column does.
func (id SnowflakeSI) Compare(other SnowflakeSI) int { return cmp.Compare(id, other) }

// AppendText appends the decimal number. If the number is negative or above 2^53-1, it
// returns [ErrRange].
func (id SnowflakeSI) AppendText(b []byte) ([]byte, error) {
	if uint64(id) > MaxSnowflakeSI {
		return b, snowflakeSIKind.check(int64(id))
	}
	return appendDecimal(b, int64(id)), nil
}

// String returns the decimal number, even if it is not an ID.
func (id SnowflakeSI) String() string { return decimalString(int64(id)) }

// MarshalText returns the text that AppendText appends.
func (id SnowflakeSI) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts the same input as [ParseSnowflakeSI].
func (id *SnowflakeSI) UnmarshalText(b []byte) error {
	v, err := snowflakeSIKind.parse(b)
	return set(id, SnowflakeSI(v), err)
}

// UnmarshalParam accepts the same input as [ParseSnowflakeSI]. The binders of gin and echo call it for
// path and query parameters.
func (id *SnowflakeSI) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *SnowflakeSI) Bind(param string) error { return id.UnmarshalParam(param) }

// AppendBinary appends 8 big-endian bytes. If the number is negative or above 2^53-1, it
// returns [ErrRange].
func (id SnowflakeSI) AppendBinary(b []byte) ([]byte, error) {
	return snowflakeSIKind.appendBinary(b, int64(id))
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id SnowflakeSI) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 8 big-endian bytes. The first 11 bits must be zero.
func (id *SnowflakeSI) UnmarshalBinary(b []byte) error {
	return unmarshalInteger(id, &snowflakeSIKind, b)
}

// MarshalJSON returns the bare decimal number, or null for the zero ID. If the number is
// negative or above 2^53-1, which JavaScript would round, it returns [ErrRange].
func (id SnowflakeSI) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return id.AppendText(nil)
}

// UnmarshalJSON accepts a decimal number, bare or quoted, and null for the zero ID.
func (id *SnowflakeSI) UnmarshalJSON(b []byte) error {
	return unmarshalIntegerJSON(id, &snowflakeSIKind, snowflakeSIKind.text, b)
}

// Value returns the column's int64. If the number is negative or above 2^53-1, it returns
// [ErrRange], because Scan could not read the number back.
func (id SnowflakeSI) Value() (driver.Value, error) { return snowflakeSIKind.value(int64(id)) }

// Scan accepts an int64 or its decimal text. It also accepts a SnowflakeSI, a pointer to
// one, or a struct that holds one. For a number that is negative or above 2^53-1 it
// returns [ErrRange], and for NULL [ErrNull].
func (id *SnowflakeSI) Scan(src any) error { return scanInteger(id, &snowflakeSIKind, src) }

// GormDataType returns the column type for GORM: bigint. Without this method, GORM would
// declare the key as bigserial.
func (SnowflakeSI) GormDataType() string { return bigintType }
