package idtype

import (
	"cmp"
	"database/sql/driver"
	"math/bits"
	"strconv"
	"time"
)

// A UID60 is a 60-bit ID that sorts by time, needs no node number, and has a short text:
//
//	 63  60 59                                       18 17         9 8         0
//	+------+-------------------------------------------+------------+-----------+
//	| 0    | milliseconds since 2018-03-01 : 42        | sequence   | random    |
//	| : 4  |                                           | : 9        | : 9       |
//	+------+-------------------------------------------+------------+-----------+
//
// A UID60 is stored as a bigint, which sorts by time. Its text form is the number in 4 to
// 10 digits of the base64url alphabet, most significant first, with the last two digits
// moved to the front. The text doesn't sort by time.
//
// The text of the original design describes a 48-bit timestamp, but its drawing and its
// IDs have 42 bits. This package has 42 bits too.
type UID60 int64

// MaxUID60 is the largest [UID60]: 2^60-1.
const MaxUID60 = 1<<60 - 1

var uid60Kind = integerKind{"UID60", "a decimal integer from 0 to 1152921504606846975", uid60Text, 0, MaxUID60}

const (
	uid60Text   = "4 to 10 characters [A-Za-z0-9_-]"
	uid60Padded = "10 characters [A-Za-z0-9_-]"

	uid60SequenceBits = 9
	uid60RandomBits   = 9
	uid60TimeShift    = uid60SequenceBits + uid60RandomBits

	// At least two digits follow the two that are moved to the front.
	uid60MinDigits = 4
	uid60MaxDigits = 10
)

// uid60Line starts at 2018-03-01T00:00:00Z.
var uid60Line = timeline{uid60Kind.name, 1519862400000, 1, 1<<42 - 1}

// A UID60Layout composes a [UID60] from parts, and converts times to bounds. It has no
// options.
type UID60Layout struct{}

// Fingerprint returns a description of the layout, which never changes.
func (UID60Layout) Fingerprint() string {
	return "epoch 2018-03-01T00:00:00.000Z; bits: sequence 9, random 9"
}

// UID60Parts are the fields of a [UID60].
type UID60Parts struct {
	Time     time.Time // UTC, in whole milliseconds; [UID60Layout.Compose] rounds down
	Sequence int       // 0 to 511
	Random   int       // 0 to 511
}

// Compose returns the ID with these parts. If a part is out of range, it returns
// [ErrBeforeEpoch], [ErrTimeExhausted] or [ErrRange]; the error text names the limit.
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

// Parts returns the parts of an ID. For a number that is negative or above 2^60-1 it
// returns [ErrRange].
func (UID60Layout) Parts(id UID60) (UID60Parts, error) {
	if err := uid60Kind.check(int64(id)); err != nil {
		return UID60Parts{}, err
	}
	return UID60Parts{Time: id.Time(), Sequence: id.Sequence(), Random: id.Random()}, nil
}

// Time returns [UID60.Time].
func (UID60Layout) Time(id UID60) time.Time { return id.Time() }

// Floor returns the lowest ID of the millisecond that contains t. It returns
// [ErrBeforeEpoch] before 2018-03-01, and [ErrTimeExhausted] after
// 2157-07-13T07:35:11.103Z.
func (l UID60Layout) Floor(t time.Time) (UID60, error) { return l.Compose(UID60Parts{Time: t}) }

// Range returns the bounds lo <= id < hi of the IDs created at or after from and before
// to. It rounds both times down to milliseconds, so adjacent time windows have adjacent
// ranges. A zero from or to leaves that side open. For times outside the format, Range
// uses the smallest or the largest ID. If to is before from, it returns [ErrRange].
func (UID60Layout) Range(from, to time.Time) (lo, hi UID60, err error) {
	return timeRange(uid60Line, from, to, uid60Floor, UID60(uid60Kind.hi))
}

// Time returns the millisecond in which the ID was created, in UTC. If the number is
// negative or above 2^60-1, Time returns the zero Time.
func (id UID60) Time() time.Time {
	if uid60Kind.check(int64(id)) != nil {
		return time.Time{}
	}
	return uid60Line.time(int64(id >> uid60TimeShift))
}

// Sequence returns the generator's sequence number within the millisecond: 0 to 511.
func (id UID60) Sequence() int { return int(id >> uid60RandomBits & (1<<uid60SequenceBits - 1)) }

// Random returns the random number of the ID: 0 to 511.
func (id UID60) Random() int { return int(id & (1<<uid60RandomBits - 1)) }

// ParseUID60 parses the output of [UID60.String]. It also accepts a shorter number that is
// padded with leading zero digits, A, to 10 digits: AHAAAAAAAA as well as AHAA. The error
// is a [*ParseError].
func ParseUID60(s string) (id UID60, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// uid60Digits returns the number of digits in the text of id.
func uid60Digits(id UID60) int {
	return max(uid60MinDigits, (bits.Len64(uint64(id))+5)/6)
}

// Int64 returns the column's number.
func (id UID60) Int64() int64 { return int64(id) }

// IsZero reports whether id is the zero ID. Generators never return it.
func (id UID60) IsZero() bool { return id == 0 }

// Compare compares IDs by time, as their column does.
func (id UID60) Compare(other UID60) int { return cmp.Compare(id, other) }

// AppendText appends 4 to 10 digits. If the number is negative or above 2^60-1, it returns
// [ErrRange].
func (id UID60) AppendText(b []byte) ([]byte, error) {
	return id.appendDigits(b, uid60Digits(id))
}

// appendDigits appends the last n digits.
func (id UID60) appendDigits(b []byte, n int) ([]byte, error) {
	if err := uid60Kind.check(int64(id)); err != nil {
		return b, err
	}
	d := base64Digits
	if n == uid60MaxDigits { // faster than the loop, and the length of all current IDs
		return append(b, d[id>>6&63], d[id&63], d[id>>54&63], d[id>>48&63], d[id>>42&63], d[id>>36&63], d[id>>30&63], d[id>>24&63], d[id>>18&63], d[id>>12&63]), nil
	}
	b = append(b, d[id>>6&63], d[id&63])
	for shift := 6 * (n - 1); shift >= 12; shift -= 6 {
		b = append(b, d[id>>shift&63])
	}
	return b, nil
}

// String returns the text form. If the number is negative or above 2^60-1, it returns a
// text such as "invalid UID60(-1)".
func (id UID60) String() string {
	var buf [uid60MaxDigits]byte
	b, err := id.AppendText(buf[:0])
	if err != nil {
		return "invalid UID60(" + strconv.FormatInt(int64(id), 10) + ")"
	}
	return string(b)
}

// MarshalText returns the text form. If the number is negative or above 2^60-1, it returns
// [ErrRange].
func (id UID60) MarshalText() ([]byte, error) {
	return id.AppendText(make([]byte, 0, uid60MaxDigits))
}

// UnmarshalText accepts the same input as [ParseUID60].
func (id *UID60) UnmarshalText(b []byte) error {
	n := len(b)
	if n < uid60MinDigits || n > uid60MaxDigits {
		return badLength(n).in(uid60Kind.name, uid60Text, b)
	}
	// The first two characters are the last two digits of the number.
	var v UID60
	var bad byte
	read := func(c byte) {
		d := base64Value[c]
		v = v<<6 | UID60(d)
		bad |= d // all ones after a noDigit
	}
	for _, c := range b[2:] {
		read(c)
	}
	read(b[0])
	read(b[1])
	if bad == noDigit {
		return digitFlaw(base64Digits, b).in(uid60Kind.name, uid60Text, b)
	}
	if n != uid60MaxDigits && n != uid60Digits(v) {
		return flaw{2, "leading A", ErrSyntax}.in(uid60Kind.name, uid60Text+", with a leading A only in the 10-character form", b)
	}
	*id = v
	return nil
}

// UnmarshalParam accepts the same input as [ParseUID60]. The binders of gin and echo call it for
// path and query parameters.
func (id *UID60) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *UID60) Bind(param string) error { return id.UnmarshalParam(param) }

// AppendBinary appends 8 big-endian bytes. If the number is negative or above 2^60-1, it
// returns [ErrRange].
func (id UID60) AppendBinary(b []byte) ([]byte, error) {
	return uid60Kind.appendBinary(b, int64(id))
}

// MarshalBinary returns the bytes that AppendBinary appends.
func (id UID60) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 8 big-endian bytes. The first 4 bits must be zero.
func (id *UID60) UnmarshalBinary(b []byte) error { return unmarshalInteger(id, &uid60Kind, b) }

// MarshalJSON returns the text form in quotes, or null for the zero ID. If the number is
// negative or above 2^60-1, it returns [ErrRange].
func (id UID60) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, uid60MaxDigits)
}

// UnmarshalJSON accepts the text form in quotes, the number of a bigint column, as Postgres
// writes it in JSON, and null for the zero ID.
func (id *UID60) UnmarshalJSON(b []byte) error {
	return unmarshalIntegerJSON(id, &uid60Kind, uid60Kind.text, b)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (UID60) JSONSchemaAlias() any { return "" }

// Value returns the column's int64. If the number is negative or above 2^60-1, it returns
// [ErrRange], because Scan could not read the number back.
func (id UID60) Value() (driver.Value, error) { return uid60Kind.value(int64(id)) }

// Scan accepts an int64 or its decimal text. It doesn't accept the text form, because ten
// decimal digits could be either form. It also accepts a UID60, a pointer to one, or a
// struct that holds one. For a number that is negative or above 2^60-1 it returns
// [ErrRange], and for NULL [ErrNull].
func (id *UID60) Scan(src any) error { return scanInteger(id, &uid60Kind, src) }

// GormDataType returns the column type for GORM: bigint. Without this method, GORM would
// declare the key as bigserial.
func (UID60) GormDataType() string { return bigintType }
