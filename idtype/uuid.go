package idtype

import (
	"bytes"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// A UUID is a 128-bit ID of RFC 9562, for tables whose keys are UUIDs. Any UUID is a value.
// A [UUIDGenerator] creates UUIDs of version 7, which sort by time:
//
//	 byte 0 to 5                     6 and 7            8 to 15
//	+-------------------------------+---+--------------+--+-------------+
//	| milliseconds since 1970 : 48  | 7 | fraction: 12 | 2| random : 62 |
//	|                               |: 4|              |:2|             |
//	+-------------------------------+---+--------------+--+-------------+
//
// The fraction is the time within the millisecond, in units of 1/4096. The 7 is the
// version, and the bits 10 (2) are the variant of RFC 9562.
//
// A UUID has no node number, so clients and other languages can create UUIDs for the same
// table. It takes twice the space of an integer ID. Convert from and to the
// UUID of google/uuid, or of another library with the same 16 bytes, by a Go conversion:
// uuid.UUID(id).
type UUID [16]byte

const (
	uuidName  = "UUID"
	uuidText  = "36 characters, hex digits 8-4-4-4-12"
	uuidBytes = "16 bytes"
	uuidType  = "uuid" // of a column
	uuidScan  = "a UUID as 16 bytes or 36 characters"
	uuid7     = "a UUID of version 7"

	// The bits of a UUID's two halves that don't depend on time and random bits.
	uuidVersion7 = 0x7000
	uuidVariant  = 1 << 63
)

// uuidLine starts at 1970-01-01T00:00:00Z.
var uuidLine = timeline{uuidName, 0, 1, 1<<48 - 1}

var (
	uuidMax = UUID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	// uuid7Max is the largest UUID of version 7.
	uuid7Max = UUID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// A UUIDLayout converts times to bounds of a [UUID], version 7. It has no options.
type UUIDLayout struct{}

// Fingerprint returns "uuid7".
func (UUIDLayout) Fingerprint() string { return "uuid7" }

// Time returns the millisecond in which a UUID of version 7 was created, in UTC, or the zero
// Time for a UUID of another version. [UUID.Time] returns an error instead.
func (UUIDLayout) Time(id UUID) time.Time {
	t, _ := id.Time()
	return t
}

// Floor returns the lowest UUID of version 7 of the millisecond that contains t. It returns
// [ErrBeforeEpoch] before 1970, and [ErrTimeExhausted] after 10889-08-02T05:31:50.655Z.
func (UUIDLayout) Floor(t time.Time) (UUID, error) {
	unit, err := uuidLine.unit(t)
	if err != nil {
		return UUID{}, err
	}
	return uuidFloor(unit), nil
}

// At returns a new UUID of version 7 for a time in the past, in units of 1/4096 ms, for rows
// that get another kind of key. UUIDs of one unit differ in 62 random bits, and have no order. At
// returns [ErrBeforeEpoch] before 1970, and [ErrTimeExhausted] after
// 10889-08-02T05:31:50.655Z.
func (UUIDLayout) At(t time.Time) (UUID, error) {
	unit, err := uuidLine.unit(t)
	if err != nil {
		return UUID{}, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return uuidOf(uint64(instantOf(unit, t)), binary.NativeEndian.Uint64(random[:])), nil
}

// instantOf returns the instant of a time in a millisecond, in units of 1/4096 ms.
func instantOf(ms int64, t time.Time) int64 {
	return ms*uuidUnits + int64(t.Nanosecond()%1e6)*uuidUnits/1e6
}

// Range returns the bounds lo <= id < hi of the UUIDs of version 7 created at or after from
// and before to. It rounds both times down to the millisecond, so adjacent time windows
// have adjacent ranges. A zero from or to leaves that side open. For times outside the
// format, Range uses the smallest or the largest UUID of version 7. If to is before from, it
// returns [ErrRange].
//
// UUIDs of other versions aren't sorted by this time. Some of them are in the range of any
// long window.
func (UUIDLayout) Range(from, to time.Time) (lo, hi UUID, err error) {
	return timeRange(uuidLine, from, to, uuidFloor, uuid7Max)
}

// uuidFloor returns the lowest UUID of a unit.
func uuidFloor(unit int64) UUID { return uuidOf(uint64(unit)<<12, 0) }

// uuidOf returns the UUID of version 7 with the 60 bits of an instant, which are
// milliseconds and 1/4096 of a millisecond, and 62 random bits.
func uuidOf(instant, random uint64) (id UUID) {
	binary.BigEndian.PutUint64(id[:8], instant>>12<<16|uuidVersion7|instant&0xfff)
	binary.BigEndian.PutUint64(id[8:], uuidVariant|random&(1<<62-1))
	return id
}

// Time returns the millisecond in which a UUID of version 7 was created, in UTC. For a UUID
// of another version it returns a [*ParseError] with [ErrVersion], which names the version.
func (id UUID) Time() (time.Time, error) {
	if id.Version() != 7 {
		return time.Time{}, versionError(uuidName, id)
	}
	return uuidLine.time(int64(binary.BigEndian.Uint64(id[:8]) >> 16)), nil
}

// versionError returns the error for a UUID that isn't of version 7.
func versionError(name string, id UUID) error {
	e := flaw{-1, "got a UUID of " + id.kind(), ErrVersion}.in(name, uuid7, []byte(id.String()))
	e.number = true
	return e
}

// kind describes the version and the variant, for errors.
func (id UUID) kind() string {
	switch {
	case id == UUID{}:
		return "all zeros"
	case id == uuidMax:
		return "all ones"
	case id[8]>>6 != 2:
		return "another variant than RFC 9562's"
	}
	return "version " + strconv.Itoa(id.Version())
}

// Version returns the version of the UUID, 0 to 15. It is 0 for a UUID of another variant
// than RFC 9562's, which has no version.
func (id UUID) Version() int {
	if id[8]>>6 != 2 {
		return 0
	}
	return int(id[6] >> 4)
}

// ParseUUID parses 36 characters: hex digits of either case in groups of 8, 4, 4, 4 and 12,
// separated by hyphens. The error is a [*ParseError].
func ParseUUID(s string) (id UUID, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// IsZero reports whether id is the zero ID, the nil UUID. Generators never return it.
func (id UUID) IsZero() bool { return id == UUID{} }

// Compare compares IDs as their column does: by bytes. UUIDs of version 7 sort by time.
// Text sorts the same way.
func (id UUID) Compare(other UUID) int { return bytes.Compare(id[:], other[:]) }

// AppendText appends the 36 characters of the ID. The error is always nil.
func (id UUID) AppendText(b []byte) ([]byte, error) {
	var text [uuidTextSize]byte
	writeUUID(&text, (*[16]byte)(&id))
	return append(b, text[:]...), nil
}

// String returns the 36 characters of the ID.
func (id UUID) String() string { return uuidString((*[16]byte)(&id)) }

// MarshalText returns the 36 characters of the ID. The error is always nil.
func (id UUID) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, uuidTextSize)) }

// UnmarshalText accepts the same input as [ParseUUID].
func (id *UUID) UnmarshalText(b []byte) error {
	if len(b) != uuidTextSize {
		return badLength(len(b)).in(uuidName, uuidText, b)
	}
	if !id.setText((*[uuidTextSize]byte)(b)) {
		return uuidFlaw(b).in(uuidName, uuidText, b)
	}
	return nil
}

// setText sets *id from 36 characters in either case. It returns false, and leaves *id
// unchanged, if they are no UUID.
func (id *UUID) setText(b *[uuidTextSize]byte) bool {
	hi, lo, ok := readUUID(b)
	if ok {
		binary.BigEndian.PutUint64(id[:8], hi)
		binary.BigEndian.PutUint64(id[8:], lo)
	}
	return ok
}

// UnmarshalParam accepts the same input as [ParseUUID]. The binders of gin and echo call it for
// path and query parameters.
func (id *UUID) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters.
func (id *UUID) Bind(param string) error { return id.UnmarshalParam(param) }

// uuidFlaw returns the flaw of 36 characters that are no UUID.
func uuidFlaw(b []byte) flaw {
	for i, c := range b {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (c == '-') || !hyphen && strings.IndexByte(hexDigits+"ABCDEF", c) < 0 {
			return badCharacter(i, c)
		}
	}
	panic("idtype: no invalid character in " + string(b))
}

// AppendBinary appends the 16 bytes. The error is always nil.
func (id UUID) AppendBinary(b []byte) ([]byte, error) { return append(b, id[:]...), nil }

// MarshalBinary returns the 16 bytes. The error is always nil.
func (id UUID) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 16 bytes.
func (id *UUID) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return badLength(len(b)).in(uuidName, uuidBytes, b)
	}
	copy(id[:], b)
	return nil
}

// MarshalJSON returns the 36 characters in quotes, or null for the zero ID.
func (id UUID) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, uuidTextSize)
}

// UnmarshalJSON accepts 36 characters in quotes, and null for the zero ID.
func (id *UUID) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = UUID{}
		return nil
	}
	s, quoted := unquote(b)
	if !quoted {
		return notQuoted(uuidName, uuidText, b)
	}
	return id.UnmarshalText(s)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (UUID) JSONSchemaAlias() any { return "" }

// Value returns the 36 characters. It returns a string, because each driver stores 16 raw
// bytes differently, and GORM would expand them to 16 numbers in an IN list.
func (id UUID) Value() (driver.Value, error) { return id.String(), nil }

// Scan accepts the 16 bytes or the 36 characters of a uuid column, with hex digits in
// either case. It also accepts a UUID, a pointer to one, or a struct that holds one, and the
// UUID of another package: any type whose underlying type is [16]byte. For NULL it returns
// [ErrNull].
func (id *UUID) Scan(src any) error {
	switch src := src.(type) {
	case string:
		return id.scanText([]byte(src))
	case []byte:
		switch len(src) {
		case len(id):
			copy(id[:], src)
			return nil
		case 0:
			if src == nil {
				return nullError(uuidName, uuidScan)
			}
		}
		return id.scanText(src)
	case [16]byte:
		*id = src
		return nil
	case nil:
		return nullError(uuidName, uuidScan)
	case UUID:
		*id = src
		return nil
	}
	v, err := valueOf[UUID](uuidName, uuidScan, src)
	if err != nil {
		return err
	}
	return id.Scan(v)
}

// scanText scans 36 characters in either case.
func (id *UUID) scanText(b []byte) error {
	if len(b) != uuidTextSize {
		return fromColumn(uuidType, badLength(len(b)).in(uuidName, uuidScan, b))
	}
	if !id.setText((*[uuidTextSize]byte)(b)) {
		return fromColumn(uuidType, flaw{-1, "invalid UUID", ErrSyntax}.in(uuidName, uuidScan, b))
	}
	return nil
}

// GormDataType returns the column type for GORM: uuid.
func (UUID) GormDataType() string { return uuidType }
