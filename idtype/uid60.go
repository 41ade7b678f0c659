package idtype

import (
	"cmp"
	"database/sql/driver"
	"log/slog"
	"math/bits"
	"strconv"
	"time"
)

// A UID60 is a 60-bit ID that orders by time, needs no node number, and is
// short to read:
//
//	 63  60 59                                       18 17         9 8         0
//	+------+-------------------------------------------+------------+-----------+
//	| 0    | milliseconds since 2018-03-01 : 42        | sequence   | random    |
//	| : 4  |                                           | : 9        | : 9       |
//	+------+-------------------------------------------+------------+-----------+
//
// It is stored as a bigint, which orders by time, and written as the 4 to 10
// digits of the number in base64url's alphabet, most significant first, whose
// last two were moved to the front: its text doesn't order.
//
// The design's text speaks of a 48-bit timestamp; its drawing has 42 bits, and
// so do its IDs.
type UID60 int64

// MaxUID60 is the largest number that is a [UID60]: 2^60-1.
const MaxUID60 = 1<<60 - 1

var uid60Kind = integerKind{"UID60", "a decimal integer from 0 to 1152921504606846975", 0, MaxUID60}

const (
	uid60Text = "4 to 10 characters [A-Za-z0-9_-]"

	uid60SequenceBits = 9
	uid60RandomBits   = 9
	uid60TimeShift    = uid60SequenceBits + uid60RandomBits

	// Below four digits there would be too little to move to the front.
	uid60MinDigits = 4
	uid60MaxDigits = 10
)

// uid60Line counts from 2018-03-01T00:00:00Z.
var uid60Line = timeline{uid60Kind.name, 1519862400000, 1, 1<<42 - 1}

// A UID60Layout makes [UID60]s from parts and bounds from times. It has no
// choices.
type UID60Layout struct{}

// Validate always gives nil.
func (UID60Layout) Validate() error { return nil }

// UID60Parts are the fields of a [UID60].
type UID60Parts struct {
	Time     time.Time // UTC, in whole milliseconds; [UID60Layout.Compose] rounds down
	Sequence int       // 0 to 511
	Random   int       // 0 to 511
}

// Compose makes the ID that has these parts. A part out of range is an error
// that names the limit: [ErrBeforeEpoch], [ErrTimeExhausted] or [ErrRange].
func (UID60Layout) Compose(p UID60Parts) (UID60, error) {
	unit, err := uid60Line.unit(p.Time)
	if err != nil {
		return 0, err
	}
	if err := checkField(uid60Kind.name, "sequence", p.Sequence, uid60SequenceBits, ErrRange); err != nil {
		return 0, err
	}
	if err := checkField(uid60Kind.name, "random number", p.Random, uid60RandomBits, ErrRange); err != nil {
		return 0, err
	}
	return uid60Floor(unit) | UID60(p.Sequence)<<uid60RandomBits | UID60(p.Random), nil
}

func uid60Floor(unit int64) UID60 { return UID60(unit << uid60TimeShift) }

// Parts takes an ID apart. A number that is negative or past 2^60-1 is not a
// UID60: [ErrRange].
func (UID60Layout) Parts(id UID60) (UID60Parts, error) {
	if err := uid60Kind.check(int64(id)); err != nil {
		return UID60Parts{}, err
	}
	return UID60Parts{Time: id.Time(), Sequence: id.Sequence(), Random: id.Random()}, nil
}

// Time is [UID60.Time].
func (UID60Layout) Time(id UID60) time.Time { return id.Time() }

// Floor is the lowest ID of the millisecond in which t lies: [ErrBeforeEpoch]
// before 2018-03-01, [ErrTimeExhausted] after 2157-07-13T07:35:11.103Z.
func (l UID60Layout) Floor(t time.Time) (UID60, error) { return l.Compose(UID60Parts{Time: t}) }

// Range gives the bounds lo <= id < hi of the IDs minted from one instant to
// before another, so that windows that meet in time meet in IDs. A zero from
// or to leaves that side open. Times outside the format's give its smallest
// and its largest value. A window that ends before it begins is an [ErrRange].
func (UID60Layout) Range(from, to time.Time) (lo, hi UID60, err error) {
	return timeRange(uid60Line, from, to, uid60Floor, UID60(uid60Kind.hi))
}

// Time is the millisecond in which the ID was minted, in UTC; the zero Time if
// the number is negative or past 2^60-1.
func (id UID60) Time() time.Time {
	if uid60Kind.check(int64(id)) != nil {
		return time.Time{}
	}
	return uid60Line.time(int64(id >> uid60TimeShift))
}

// Sequence tells apart the IDs that a generator minted in one millisecond: 0
// to 511.
func (id UID60) Sequence() int { return int(id >> uid60RandomBits & (1<<uid60SequenceBits - 1)) }

// Random is the random number of the ID: 0 to 511.
func (id UID60) Random() int { return int(id & (1<<uid60RandomBits - 1)) }

// ParseUID60 reads the text form as [UID60.String] writes it, or padded with A
// to 10 digits. The error is a [*ParseError].
func ParseUID60(s string) (id UID60, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// uid60Digits is how many digits the text of id has.
func uid60Digits(id UID60) int {
	return max(uid60MinDigits, (bits.Len64(uint64(id))+5)/6)
}

// MustParseUID60 is [ParseUID60] for constants: it panics on an error.
func MustParseUID60(s string) UID60 { return must(ParseUID60(s)) }

// UID60FromInt64 is the ID that a column holds as n. A number that is negative
// or past 2^60-1 is an [ErrRange].
func UID60FromInt64(n int64) (UID60, error) {
	if uint64(n) <= MaxUID60 {
		return UID60(n), nil
	}
	return 0, uid60Kind.check(n)
}

// Int64 is the number that the column holds.
func (id UID60) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID, which is never minted.
func (id UID60) IsZero() bool { return id == 0 }

// Compare orders IDs as their column does, which is by time.
func (id UID60) Compare(other UID60) int { return cmp.Compare(id, other) }

// AppendText appends 4 to 10 digits. A number that is negative or past 2^60-1
// has no text: [ErrRange].
func (id UID60) AppendText(b []byte) ([]byte, error) {
	if err := uid60Kind.check(int64(id)); err != nil {
		return b, err
	}
	b = append(b, base64Digits[id>>6&63], base64Digits[id&63])
	for shift := 6 * (uid60Digits(id) - 1); shift >= 12; shift -= 6 {
		b = append(b, base64Digits[id>>shift&63])
	}
	return b, nil
}

// String is the text form. A number that is negative or past 2^60-1 has none
// and shows as "invalid UID60(-1)".
func (id UID60) String() string {
	var buf [uid60MaxDigits]byte
	b, err := id.AppendText(buf[:0])
	if err != nil {
		return "invalid UID60(" + strconv.FormatInt(int64(id), 10) + ")"
	}
	return string(b)
}

// MarshalText is the text form. A number that is negative or past 2^60-1 has
// none: [ErrRange].
func (id UID60) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, uid60MaxDigits))
}

// UnmarshalText reads what [ParseUID60] does.
func (id *UID60) UnmarshalText(b []byte) error {
	n := len(b)
	if n < uid60MinDigits || n > uid60MaxDigits {
		return badLength(n).in(uid60Kind.name, uid60Text, b)
	}
	// The text is the number's digits with the last two moved to the front.
	var v UID60
	var bad byte
	read := func(c byte) {
		d := base64Value[c]
		v = v<<6 | UID60(d)
		bad |= d // all ones from the first noDigit on
	}
	for _, c := range b[2:] {
		read(c)
	}
	read(b[0])
	read(b[1])
	if bad == noDigit {
		return digitFlaw(&base64Value, b).in(uid60Kind.name, uid60Text, b)
	}
	if n != uid60MaxDigits && n != uid60Digits(v) {
		return flaw{2, "leading A", ErrSyntax}.in(uid60Kind.name, uid60Text+", with a leading A only in the 10-character form", b)
	}
	*id = v
	return nil
}

// AppendBinary appends the 8 bytes, big-endian. A number that is negative or
// past 2^60-1 is an [ErrRange].
func (id UID60) AppendBinary(b []byte) ([]byte, error) {
	return uid60Kind.appendBinary(b, int64(id))
}

// MarshalBinary gives what AppendBinary appends.
func (id UID60) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary reads 8 bytes, big-endian. The first 4 bits must be zero.
func (id *UID60) UnmarshalBinary(b []byte) error { return unmarshalInteger(id, &uid60Kind, b) }

// MarshalJSON gives the text form in quotes, and null for the zero ID.
func (id UID60) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, uid60MaxDigits)
}

// UnmarshalJSON reads the text form in quotes, and null as the zero ID.
func (id *UID60) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = 0
		return nil
	}
	s, err := unquoteText(b, uid60Kind.name, uid60Text)
	if err != nil {
		return err
	}
	return id.UnmarshalText(s)
}

// Value gives the column's int64. A number that is negative or past 2^60-1 is
// an [ErrRange]: it could be stored, and not be read again.
func (id UID60) Value() (driver.Value, error) { return uid60Kind.value(int64(id)) }

// Scan takes an int64 or its decimal text, never the text form: ten decimal
// digits could be either. It also takes a UID60, a pointer to one, or a struct
// around one. Numbers that are negative or past 2^60-1 are refused, and NULL is an
// [ErrNull].
func (id *UID60) Scan(src any) error { return scanInteger(id, &uid60Kind, src) }

// GormDataType is the column's type for GORM: bigint. Without it GORM would
// make the key a bigserial.
func (UID60) GormDataType() string { return bigintType }

// LogValue is the ID's text.
func (id UID60) LogValue() slog.Value { return slog.StringValue(id.String()) }
