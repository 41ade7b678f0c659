package idtype

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"
)

// A Snowflake is a 64-bit ID that orders by time, in the layout that Twitter
// introduced:
//
//	 63 62                                        22 21    17 16    12 11          0
//	+--+---------------------------------------------+--------+--------+------------+
//	|0 | milliseconds since the epoch : 41           | data-  | worker | sequence   |
//	|  |                                             | center | : 5    | : 12       |
//	|  |                                             | : 5    |        |            |
//	+--+---------------------------------------------+--------+--------+------------+
//
// The widths and the epoch are a [SnowflakeLayout]'s. A Snowflake is stored as
// a bigint and written as a decimal number; in JSON that number is quoted,
// because JavaScript's numbers lose digits past 2^53.
type Snowflake int64

// MaxSnowflake is the largest number that is a [Snowflake].
const MaxSnowflake = math.MaxInt64

var snowflakeKind = integerKind{"Snowflake", "a decimal integer from 0 to 9223372036854775807", 0, MaxSnowflake}

const (
	// snowflakeEpoch is 2021-01-01T00:00:00Z in Unix milliseconds.
	snowflakeEpoch = 1609459200000
	// snowflakeMinTimeBits leaves the time 49 days at the least: a layout
	// with less is a mistake.
	snowflakeMinTimeBits = 32
)

// A SnowflakeLayout says what the bits of a [Snowflake] mean. The time takes
// what the three widths leave of 63 bits. The zero value is
// [DefaultSnowflakeLayout].
type SnowflakeLayout struct {
	Epoch          time.Time // whole milliseconds; zero: 2021-01-01T00:00:00Z
	DatacenterBits int       // all three widths 0: 5, 5, 12
	WorkerBits     int
	SequenceBits   int
}

// DefaultSnowflakeLayout has 5 bits of datacenter, 5 of worker and 12 of
// sequence (4096 IDs a millisecond), and counts time from 2021-01-01, which
// ends at 2090-09-07T15:47:35.551Z.
func DefaultSnowflakeLayout() SnowflakeLayout {
	return SnowflakeLayout{Epoch: time.UnixMilli(snowflakeEpoch).UTC(), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}
}

// normal fills in the defaults.
func (l SnowflakeLayout) normal() SnowflakeLayout {
	d := DefaultSnowflakeLayout()
	if l.Epoch.IsZero() {
		l.Epoch = d.Epoch
	}
	if l.DatacenterBits == 0 && l.WorkerBits == 0 && l.SequenceBits == 0 {
		l.DatacenterBits, l.WorkerBits, l.SequenceBits = d.DatacenterBits, d.WorkerBits, d.SequenceBits
	}
	return l
}

// line is the layout's timeline; the layout is normal and valid.
func (l SnowflakeLayout) line() timeline {
	return timeline{snowflakeKind.name, l.Epoch.UnixMilli(), 1, 1<<(63-l.timeShift()) - 1}
}

func (l SnowflakeLayout) workerShift() int     { return l.SequenceBits }
func (l SnowflakeLayout) datacenterShift() int { return l.SequenceBits + l.WorkerBits }
func (l SnowflakeLayout) timeShift() int       { return l.SequenceBits + l.WorkerBits + l.DatacenterBits }

// Validate tells whether IDs can be made with the layout: no width is
// negative, there is a sequence, the time keeps at least 32 bits, and the
// epoch is a whole millisecond between the years 1 and 9999.
func (l SnowflakeLayout) Validate() error {
	_, err := l.checked()
	return err
}

func (l SnowflakeLayout) checked() (SnowflakeLayout, error) {
	l = l.normal()
	// Each width is looked at before their sum is, which could overflow.
	for _, w := range []int{l.DatacenterBits, l.WorkerBits, l.SequenceBits} {
		if w < 0 || w > 63-snowflakeMinTimeBits {
			return l, l.badWidths()
		}
	}
	if l.SequenceBits == 0 || l.timeShift() > 63-snowflakeMinTimeBits {
		return l, l.badWidths()
	}
	return l, checkEpoch(snowflakeKind.name, "epoch", l.Epoch)
}

// String gives the layout in words, such as "epoch 2021-01-01T00:00:00.000Z;
// bits: datacenter 5, worker 5, sequence 12".
func (l SnowflakeLayout) String() string {
	l = l.normal()
	return fmt.Sprintf("epoch %s; bits: datacenter %d, worker %d, sequence %d", stamp(l.Epoch), l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

func (l SnowflakeLayout) badWidths() error {
	return &limitError{fmt.Sprintf("idtype: SnowflakeLayout: widths datacenter %d, worker %d, sequence %d are out of range; want 0 or more each, at least 1 for sequence, and at most %d in total",
		l.DatacenterBits, l.WorkerBits, l.SequenceBits, 63-snowflakeMinTimeBits), ErrRange}
}

// SnowflakeParts are the fields of a [Snowflake].
type SnowflakeParts struct {
	Time       time.Time // UTC, in whole milliseconds; [SnowflakeLayout.Compose] rounds down
	Datacenter int       // 0 to 31 in the default layout
	Worker     int       // 0 to 31
	Sequence   int       // 0 to 4095
}

// Compose makes the ID that has these parts. A time, node or sequence out of
// range is an error that names the limit: [ErrBeforeEpoch],
// [ErrTimeExhausted], [ErrNode] or [ErrRange].
func (l SnowflakeLayout) Compose(p SnowflakeParts) (Snowflake, error) {
	l, err := l.checked()
	if err != nil {
		return 0, err
	}
	unit, err := l.line().unit(p.Time)
	if err != nil {
		return 0, err
	}
	node, err := l.node(p.Datacenter, p.Worker)
	if err != nil {
		return 0, err
	}
	if err := checkField(snowflakeKind.name, "sequence", p.Sequence, l.SequenceBits, ErrRange); err != nil {
		return 0, err
	}
	return Snowflake(unit<<l.timeShift()) | node | Snowflake(p.Sequence), nil
}

// node is the datacenter and worker in their places.
func (l SnowflakeLayout) node(datacenter, worker int) (Snowflake, error) {
	if err := checkField(snowflakeKind.name, "datacenter", datacenter, l.DatacenterBits, ErrNode); err != nil {
		return 0, err
	}
	if err := checkField(snowflakeKind.name, "worker", worker, l.WorkerBits, ErrNode); err != nil {
		return 0, err
	}
	return Snowflake(datacenter<<l.datacenterShift() | worker<<l.workerShift()), nil
}

// Parts takes an ID apart. A negative number is not a Snowflake: [ErrRange].
func (l SnowflakeLayout) Parts(id Snowflake) (SnowflakeParts, error) {
	l, err := l.checked()
	if err != nil {
		return SnowflakeParts{}, err
	}
	if err := snowflakeKind.check(int64(id)); err != nil {
		return SnowflakeParts{}, err
	}
	field := func(shift, bits int) int { return int(id >> shift & (1<<bits - 1)) }
	return SnowflakeParts{
		Time:       l.line().time(int64(id >> l.timeShift())),
		Datacenter: field(l.datacenterShift(), l.DatacenterBits),
		Worker:     field(l.workerShift(), l.WorkerBits),
		Sequence:   field(0, l.SequenceBits),
	}, nil
}

// Time is the millisecond in which the ID was minted, in UTC; the zero Time
// where [SnowflakeLayout.Parts] would give an error.
func (l SnowflakeLayout) Time(id Snowflake) time.Time {
	p, _ := l.Parts(id)
	return p.Time
}

// Floor is the lowest ID of the millisecond in which t lies: [ErrBeforeEpoch]
// or [ErrTimeExhausted] if the layout has none.
func (l SnowflakeLayout) Floor(t time.Time) (Snowflake, error) {
	return l.Compose(SnowflakeParts{Time: t})
}

// Range gives the bounds lo <= id < hi of the IDs minted from one instant to
// before another, so that windows that meet in time meet in IDs. A zero from
// or to leaves that side open. Times outside the layout's give its smallest
// and its largest value. A window that ends before it begins is an [ErrRange].
func (l SnowflakeLayout) Range(from, to time.Time) (lo, hi Snowflake, err error) {
	l, err = l.checked()
	if err != nil {
		return 0, 0, err
	}
	return timeRange(l.line(), from, to, func(unit int64) Snowflake {
		return Snowflake(unit << l.timeShift())
	}, math.MaxInt64)
}

// ParseSnowflake reads a decimal number from 0 to 9223372036854775807, without
// sign, space or leading zero. The error is a [*ParseError].
func ParseSnowflake(s string) (Snowflake, error) {
	v, err := snowflakeKind.parse([]byte(s))
	return Snowflake(v), err
}

// MustParseSnowflake is [ParseSnowflake] for constants: it panics on an error.
func MustParseSnowflake(s string) Snowflake { return must(ParseSnowflake(s)) }

// SnowflakeFromInt64 is the ID that a column holds as n. A negative number is an
// [ErrRange].
func SnowflakeFromInt64(n int64) (Snowflake, error) {
	if n >= 0 {
		return Snowflake(n), nil
	}
	return 0, snowflakeKind.check(n)
}

// Int64 is the number that the column holds.
func (id Snowflake) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID, which is never minted.
func (id Snowflake) IsZero() bool { return id == 0 }

// Compare orders IDs as their column does, which is by time.
func (id Snowflake) Compare(other Snowflake) int { return cmp.Compare(id, other) }

// AppendText appends the decimal number. A negative number is an
// [ErrRange].
func (id Snowflake) AppendText(b []byte) ([]byte, error) {
	return snowflakeKind.appendDecimal(b, int64(id))
}

// String is the decimal number, of any value.
func (id Snowflake) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText is what AppendText appends.
func (id Snowflake) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText reads what [ParseSnowflake] does.
func (id *Snowflake) UnmarshalText(b []byte) error {
	v, err := snowflakeKind.parse(b)
	return set(id, Snowflake(v), err)
}

// AppendBinary appends the 8 bytes, big-endian. A negative number is an
// [ErrRange].
func (id Snowflake) AppendBinary(b []byte) ([]byte, error) {
	return snowflakeKind.appendBinary(b, int64(id))
}

// MarshalBinary gives what AppendBinary appends.
func (id Snowflake) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary reads 8 bytes, big-endian. The first bit must be zero.
func (id *Snowflake) UnmarshalBinary(b []byte) error { return unmarshalInteger(id, &snowflakeKind, b) }

// MarshalJSON gives the decimal number in quotes, and null for the zero ID. A
// negative number is an [ErrRange].
func (id Snowflake) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, 19)
}

// UnmarshalJSON reads a decimal number, quoted or not, and null as the zero ID.
func (id *Snowflake) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = 0
		return nil
	}
	s, _ := unquote(b)
	return id.UnmarshalText(s)
}

// Value gives the column's int64. A negative number is an
// [ErrRange]: it could be stored, and not be read again.
func (id Snowflake) Value() (driver.Value, error) { return snowflakeKind.value(int64(id)) }

// Scan takes an int64 or its decimal text. It also takes a Snowflake, a pointer to
// one, or a struct around one. Negative numbers are refused, and NULL is an
// [ErrNull].
func (id *Snowflake) Scan(src any) error { return scanInteger(id, &snowflakeKind, src) }

// GormDataType is the column's type for GORM: bigint. Without it GORM would
// make the key a bigserial.
func (Snowflake) GormDataType() string { return bigintType }

// LogValue is the ID's text.
func (id Snowflake) LogValue() slog.Value { return slog.StringValue(id.String()) }
