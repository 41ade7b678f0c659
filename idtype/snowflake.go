package idtype

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"math"
	"time"
)

// A Snowflake is a 64-bit ID that sorts by time, in the layout introduced by Twitter:
//
//	 63 62                                        22 21    17 16    12 11          0
//	+--+---------------------------------------------+--------+--------+------------+
//	|0 | milliseconds since the epoch : 41           | data-  | worker | sequence   |
//	|  |                                             | center | : 5    | : 12       |
//	|  |                                             | : 5    |        |            |
//	+--+---------------------------------------------+--------+--------+------------+
//
// A [SnowflakeLayout] sets the widths and the epoch. A Snowflake is stored as a bigint.
// Its text form is a decimal number, which JSON quotes, because JavaScript numbers lose
// digits above 2^53.
type Snowflake int64

// MaxSnowflake is the largest [Snowflake].
const MaxSnowflake = math.MaxInt64

// snowflakeDecimal describes the numbers and the texts.
const snowflakeDecimal = "a decimal integer from 0 to 9223372036854775807"

var snowflakeKind = integerKind{"Snowflake", snowflakeDecimal, snowflakeDecimal, 0, MaxSnowflake}

const (
	// snowflakeEpoch is 2021-01-01T00:00:00Z in Unix milliseconds.
	snowflakeEpoch = 1609459200000
	// snowflakeMinTimeBits is the minimum width of the time. 32 bits last 49 days; a
	// layout with fewer bits is a mistake.
	snowflakeMinTimeBits = 32
)

// A SnowflakeLayout defines the bits of a [Snowflake]. The time has the rest of the 63
// bits. The zero value is [DefaultSnowflakeLayout].
type SnowflakeLayout struct {
	Epoch          time.Time // in whole milliseconds; zero means 2021-01-01T00:00:00Z
	DatacenterBits int       // if all three widths are 0, they are 5, 5 and 12
	WorkerBits     int
	SequenceBits   int
}

// DefaultSnowflakeLayout returns the layout with 5 datacenter bits, 5 worker bits and 12
// sequence bits (4096 IDs per millisecond). Its time starts at 2021-01-01 and ends at
// 2090-09-07T15:47:35.551Z.
func DefaultSnowflakeLayout() SnowflakeLayout {
	return SnowflakeLayout{Epoch: time.UnixMilli(snowflakeEpoch).UTC(), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}
}

// normal returns the layout with defaults for zero fields.
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

// line returns the timeline of a normal, valid layout.
func (l SnowflakeLayout) line() timeline {
	return timeline{snowflakeKind.name, l.Epoch.UnixMilli(), 1, 1<<(63-l.timeShift()) - 1}
}

func (l SnowflakeLayout) workerShift() int     { return l.SequenceBits }
func (l SnowflakeLayout) datacenterShift() int { return l.SequenceBits + l.WorkerBits }
func (l SnowflakeLayout) timeShift() int       { return l.SequenceBits + l.WorkerBits + l.DatacenterBits }

// Validate returns nil if the layout is valid: no width is negative, the sequence has at
// least 1 bit, the time has at least 32 bits, and the epoch is a whole millisecond between
// the years 1 and 9999.
func (l SnowflakeLayout) Validate() error {
	_, err := l.checked()
	return err
}

func (l SnowflakeLayout) checked() (SnowflakeLayout, error) {
	l = l.normal()
	// Each width is checked before the sum, which could overflow.
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

// Fingerprint returns a text such as "epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5,
// worker 5, sequence 12". Layouts with the same epoch and widths have the same fingerprint, and
// other layouts have another one. It never changes, so databases and lease stores keep it.
func (l SnowflakeLayout) Fingerprint() string {
	l = l.normal()
	return fmt.Sprintf("epoch %s; bits: datacenter %d, worker %d, sequence %d", stamp(l.Epoch), l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

// String returns a description of the layout for people. To compare layouts, use
// Fingerprint.
func (l SnowflakeLayout) String() string { return l.Fingerprint() }

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

// Compose returns the ID with these parts. If a part is out of range, it returns
// [ErrBeforeEpoch], [ErrTimeExhausted], [ErrNode] or [ErrRange]; the error text names the
// limit.
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

// node returns the datacenter and worker, shifted to their bits.
func (l SnowflakeLayout) node(datacenter, worker int) (Snowflake, error) {
	if err := checkField(snowflakeKind.name, "datacenter", datacenter, l.DatacenterBits, ErrNode); err != nil {
		return 0, err
	}
	if err := checkField(snowflakeKind.name, "worker", worker, l.WorkerBits, ErrNode); err != nil {
		return 0, err
	}
	return Snowflake(datacenter<<l.datacenterShift() | worker<<l.workerShift()), nil
}

// Parts returns the parts of an ID. For a negative number it returns [ErrRange].
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

// Time returns the millisecond in which the ID was created, in UTC. If
// [SnowflakeLayout.Parts] returns an error, Time returns the zero Time.
func (l SnowflakeLayout) Time(id Snowflake) time.Time {
	p, _ := l.Parts(id)
	return p.Time
}

// Floor returns the lowest ID of the millisecond that contains t. If t is outside the
// layout's time, it returns [ErrBeforeEpoch] or [ErrTimeExhausted].
func (l SnowflakeLayout) Floor(t time.Time) (Snowflake, error) {
	return l.Compose(SnowflakeParts{Time: t})
}

// Range returns the bounds lo <= id < hi of the IDs created at or after from and before
// to. It rounds both times down to milliseconds, so adjacent time windows have adjacent
// ranges. A zero from or to leaves that side open. For times outside the layout, Range
// uses the smallest or the largest ID. If to is before from, it returns [ErrRange].
func (l SnowflakeLayout) Range(from, to time.Time) (lo, hi Snowflake, err error) {
	l, err = l.checked()
	if err != nil {
		return 0, 0, err
	}
	return timeRange(l.line(), from, to, func(unit int64) Snowflake {
		return Snowflake(unit << l.timeShift())
	}, math.MaxInt64)
}

// ParseSnowflake parses a decimal number from 0 to 9223372036854775807, without sign,
// space or leading zero. The error is a [*ParseError].
func ParseSnowflake(s string) (Snowflake, error) {
	v, err := snowflakeKind.parse([]byte(s))
	return Snowflake(v), err
}

// Int64 returns the column's number.
func (id Snowflake) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id Snowflake) IsZero() bool { return id == 0 }

// Compare compares IDs by time, as their column does.
func (id Snowflake) Compare(other Snowflake) int { return cmp.Compare(id, other) }

// AppendText appends the decimal number. If the number is negative, it returns
// [ErrRange].
func (id Snowflake) AppendText(b []byte) ([]byte, error) {
	if id < 0 {
		return b, snowflakeKind.check(int64(id))
	}
	return appendDecimal(b, int64(id)), nil
}

// String returns the decimal number, even if it is not an ID.
func (id Snowflake) String() string { return decimalString(int64(id)) }

// MarshalText returns the text that AppendText appends.
func (id Snowflake) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText accepts the same input as [ParseSnowflake].
func (id *Snowflake) UnmarshalText(b []byte) error {
	v, err := snowflakeKind.parse(b)
	return set(id, Snowflake(v), err)
}

// UnmarshalParam accepts the same input as [ParseSnowflake]. The binders of gin and echo call it for
// path and query parameters.
func (id *Snowflake) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *Snowflake) Bind(param string) error { return id.UnmarshalParam(param) }

// AppendBinary appends 8 big-endian bytes. If the number is negative, it returns
// [ErrRange].
func (id Snowflake) AppendBinary(b []byte) ([]byte, error) {
	return snowflakeKind.appendBinary(b, int64(id))
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id Snowflake) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 8 big-endian bytes. The first bit must be zero.
func (id *Snowflake) UnmarshalBinary(b []byte) error { return unmarshalInteger(id, &snowflakeKind, b) }

// MarshalJSON returns the decimal number in quotes, or null for the zero ID. If the
// number is negative, it returns [ErrRange].
func (id Snowflake) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, 19)
}

// UnmarshalJSON accepts a decimal number, quoted or bare, and null for the zero ID.
func (id *Snowflake) UnmarshalJSON(b []byte) error {
	return unmarshalIntegerJSON(id, &snowflakeKind, snowflakeKind.text, b)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (Snowflake) JSONSchemaAlias() any { return "" }

// Value returns the column's int64. If the number is negative, it returns [ErrRange],
// because Scan could not read the number back.
func (id Snowflake) Value() (driver.Value, error) { return snowflakeKind.value(int64(id)) }

// Scan accepts an int64 or its decimal text. It also accepts a Snowflake, a pointer to
// one, or a struct that holds one. For a negative number it returns [ErrRange], and for
// NULL [ErrNull].
func (id *Snowflake) Scan(src any) error { return scanInteger(id, &snowflakeKind, src) }

// GormDataType returns the column type for GORM: bigint. Without this method, GORM would
// declare the key as bigserial.
func (Snowflake) GormDataType() string { return bigintType }
