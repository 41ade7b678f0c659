package idtype

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// A Sno is an 80-bit ID. It sorts by time in every form, and has one byte for the
// caller's use:
//
//	 byte 0      1      2      3      4        5        6     7        8     9
//	+-----------------------------------+-+----------+-------------+-------------+
//	| 4 ms units since 2010-01-01 : 39  |t| metabyte | partition   | sequence    |
//	|                                   | | : 8      | : 16        | : 16        |
//	+-----------------------------------+-+----------+-------------+-------------+
//
// t is the tick-tock bit. A generator toggles it when the clock steps back.
//
// The text form has 16 digits of the alphabet 23456789abcdefghijklmnopqrstuvwx. The uuid
// column stores these 16 ASCII characters as its 16 bytes, so psql shows the hex codes of
// the text that a log shows.
type Sno [10]byte

const (
	snoName  = "Sno"
	snoText  = "16 characters [2-9a-x]"
	snoUUID  = "a UUID whose 16 bytes are the 16 characters of a Sno"
	snoBytes = "10 bytes"
	snoScan  = "the UUID of a Sno as 16 bytes or 36 characters, 16 characters [2-9a-x], or 10 raw bytes"

	snoDigits = 16
)

// snoLine starts at 2010-01-01T00:00:00Z.
var snoLine = timeline{snoName, 1262304000000, 4, 1<<39 - 1}

// snoMax is the largest Sno.
var snoMax = Sno{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A SnoPartition is the node number of a Sno: it distinguishes generators that run at the
// same time, in one process or in several. For example, SnoPartition{'A', 10} is partition
// 16650.
type SnoPartition [2]byte

// SnoPartitionFrom returns the partition with number n. The high byte comes first.
func SnoPartitionFrom(n uint16) SnoPartition { return SnoPartition{byte(n >> 8), byte(n)} }

// Uint16 returns the partition as a number.
func (p SnoPartition) Uint16() uint16 { return uint16(p[0])<<8 | uint16(p[1]) }

// A SnoLayout composes a [Sno] from parts, and converts times to bounds. It has no options.
type SnoLayout struct{}

// Fingerprint returns a description of the layout, which never changes.
func (SnoLayout) Fingerprint() string {
	return "epoch 2010-01-01T00:00:00.000Z; bits: metabyte 8, partition 16, sequence 16"
}

// SnoParts are the fields of a [Sno].
type SnoParts struct {
	Time      time.Time // UTC, in multiples of 4 ms; [SnoLayout.Compose] rounds down
	TickTock  bool      // the bit that a generator toggles when the clock steps back
	Meta      byte
	Partition SnoPartition
	Sequence  uint16
}

// Compose returns the ID with these parts. If the time is out of range, it returns
// [ErrBeforeEpoch] or [ErrTimeExhausted]; the error text names the limit.
func (SnoLayout) Compose(p SnoParts) (Sno, error) {
	unit, err := snoLine.unit(p.Time)
	if err != nil {
		return Sno{}, err
	}
	return sno(unit, p.TickTock, p.Meta, p.Partition.Uint16(), p.Sequence), nil
}

func sno(unit int64, tick bool, meta byte, partition, sequence uint16) Sno {
	head := uint64(unit) << 1
	if tick {
		head |= 1
	}
	return snoOf(head, meta, partition, sequence)
}

// snoOf returns the ID with these parts. The head is the upper 40 bits: the unit and the
// tick-tock bit.
func snoOf(head uint64, meta byte, partition, sequence uint16) (id Sno) {
	binary.BigEndian.PutUint64(id[:8], head<<24|uint64(meta)<<16|uint64(partition))
	binary.BigEndian.PutUint16(id[8:], sequence)
	return id
}

// snoFloor returns the lowest ID of a unit, for all metabytes and partitions.
func snoFloor(unit int64) Sno { return sno(unit, false, 0, 0, 0) }

// Parts returns the parts of an ID. The error is always nil.
func (SnoLayout) Parts(id Sno) (SnoParts, error) {
	return SnoParts{id.Time(), id.TickTock(), id.Meta(), id.Partition(), id.Sequence()}, nil
}

// Time returns [Sno.Time].
func (SnoLayout) Time(id Sno) time.Time { return id.Time() }

// Floor returns the lowest ID of the 4 ms unit that contains t. It returns
// [ErrBeforeEpoch] before 2010, and [ErrTimeExhausted] after 2079-09-07T15:47:35.551Z.
func (SnoLayout) Floor(t time.Time) (Sno, error) {
	unit, err := snoLine.unit(t)
	if err != nil {
		return Sno{}, err
	}
	return snoFloor(unit), nil
}

// Range returns the bounds lo <= id < hi of the IDs created at or after from and before
// to, for all metabytes and partitions. It rounds both times down to 4 ms, so adjacent
// time windows have adjacent ranges. A zero from or to leaves that side open. For times
// outside the format, Range uses the smallest or the largest ID. If to is before from, it
// returns [ErrRange].
func (SnoLayout) Range(from, to time.Time) (lo, hi Sno, err error) {
	return timeRange(snoLine, from, to, snoFloor, snoMax)
}

// Time returns the start of the 4 ms unit in which the ID was created, in UTC.
func (id Sno) Time() time.Time { return snoLine.time(int64(id.head() >> 1)) }

// head returns the time and the tick-tock bit.
func (id Sno) head() uint64 { return binary.BigEndian.Uint64(id[:8]) >> 24 }

// TickTock reports whether the tick-tock bit is set.
func (id Sno) TickTock() bool { return id[4]&1 == 1 }

// Meta returns the metabyte.
func (id Sno) Meta() byte { return id[5] }

// Partition returns the partition of the generator.
func (id Sno) Partition() SnoPartition { return SnoPartition(id[6:8]) }

// Sequence returns the partition's sequence number within the 4 ms unit: 0 to 65535.
func (id Sno) Sequence() uint16 { return binary.BigEndian.Uint16(id[8:]) }

// WithMeta returns the ID with another metabyte: for example the ID of the next version
// of a record, if the metabyte counts versions.
func (id Sno) WithMeta(meta byte) Sno {
	id[5] = meta
	return id
}

// ParseSno parses 16 characters [2-9a-x], in lower case only. The error is a
// [*ParseError].
func ParseSno(s string) (id Sno, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// UUID returns the ID as its column stores it: the 16 bytes of its text.
func (id Sno) UUID() (u uuid.UUID) {
	hi, lo := id.digits()
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return u
}

// SnoFromUUID converts a UUID whose 16 bytes are the text of a Sno. For any other UUID it
// returns [ErrNotSno].
func SnoFromUUID(u uuid.UUID) (id Sno, err error) {
	// Calling setUUID instead would add 2 ns to every row read.
	hi, lo := octets(u[:])
	if !id.setDigits(hi, lo) {
		return Sno{}, notSno(hi, lo)
	}
	return id, nil
}

// setUUID sets *id from the two halves of a scanned UUID.
func (id *Sno) setUUID(hi, lo uint64) error {
	if !id.setDigits(hi, lo) {
		return scanError(notSno(hi, lo))
	}
	return nil
}

// notSno returns the error for a UUID, given in two halves, that holds no Sno.
func notSno(hi, lo uint64) error {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return flaw{-1, "not all bytes are in [2-9a-x], so the UUID is from another source", ErrNotSno}.in(snoName, snoUUID, []byte(u.String()))
}

// IsZero reports whether id is the zero ID. Generators never return it.
func (id Sno) IsZero() bool { return id == Sno{} }

// Compare compares IDs by time, as their column does. Text and bytes sort the same way.
func (id Sno) Compare(other Sno) int { return bytes.Compare(id[:], other[:]) }

// AppendText appends the 16 characters of the ID. The error is always nil.
func (id Sno) AppendText(b []byte) ([]byte, error) {
	hi, lo := id.digits()
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, hi), lo), nil
}

// String returns the 16 characters of the ID.
func (id Sno) String() string {
	var buf [snoDigits]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

// MarshalText returns the 16 characters of the ID. The error is always nil.
func (id Sno) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, snoDigits)) }

// UnmarshalText accepts the same input as [ParseSno].
func (id *Sno) UnmarshalText(b []byte) error {
	if len(b) != snoDigits {
		return badLength(len(b)).in(snoName, snoText, b)
	}
	if !id.setDigits(octets(b)) {
		return digitFlaw(base32Digits, b).in(snoName, snoText, b)
	}
	return nil
}

// UnmarshalParam accepts the same input as [ParseSno]. The binders of gin and echo call it for
// path and query parameters.
func (id *Sno) UnmarshalParam(param string) error { return id.UnmarshalText([]byte(param)) }

// Bind accepts the same input as UnmarshalParam. The code that oapi-codegen generates calls it for
// parameters, and without it would parse an integer type as a decimal number.
func (id *Sno) Bind(param string) error { return id.UnmarshalParam(param) }

// AppendBinary appends the 10 bytes. The error is always nil.
func (id Sno) AppendBinary(b []byte) ([]byte, error) { return append(b, id[:]...), nil }

// MarshalBinary returns the 10 bytes. The error is always nil.
func (id Sno) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary accepts 10 bytes.
func (id *Sno) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return badLength(len(b)).in(snoName, snoBytes, b)
	}
	copy(id[:], b)
	return nil
}

// MarshalJSON returns the 16 characters in quotes, or null for the zero ID.
func (id Sno) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, snoDigits)
}

// UnmarshalJSON accepts 16 characters in quotes, the 36 characters of a uuid column in
// quotes, as Postgres writes it in JSON, and null for the zero ID.
func (id *Sno) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = Sno{}
		return nil
	}
	s, quoted := unquote(b)
	switch {
	case !quoted:
		return notQuoted(snoName, snoText, b)
	case isUUIDText(s):
		return id.unmarshalUUID(s)
	}
	return id.UnmarshalText(s)
}

// JSONSchemaAlias returns a string, because the JSON is one. Package
// github.com/invopop/jsonschema calls it.
func (Sno) JSONSchemaAlias() any { return "" }

// isUUIDText reports whether a text can be a UUID's. The text of a Sno can't, not even with
// a model's prefix, because a prefix has no hyphen.
func isUUIDText(b []byte) bool { return len(b) == uuidTextSize && b[8] == '-' }

// unmarshalUUID sets *id from the 36 characters of its UUID.
func (id *Sno) unmarshalUUID(b []byte) error {
	hi, lo, ok := readUUID((*[uuidTextSize]byte)(b))
	switch {
	case !ok:
		return flaw{-1, "invalid UUID", ErrSyntax}.in(snoName, snoUUID, b)
	case !id.setDigits(hi, lo):
		return notSno(hi, lo)
	}
	return nil
}

// Value returns the 36 characters of [Sno.UUID]. It returns a string, because each driver
// stores 16 raw bytes differently, and GORM would expand them to 16 numbers in an IN list.
func (id Sno) Value() (driver.Value, error) {
	u := id.UUID()
	return uuidString((*[16]byte)(&u)), nil
}

// Scan accepts the 16 bytes or the 36 characters of a uuid column, and the 16 characters
// or the 10 raw bytes of an ID from other columns. It also accepts a Sno, a pointer to
// one, or a struct that holds one, and the UUID of another package: any type whose underlying
// type is [16]byte. For a UUID that is not a Sno it returns [ErrNotSno],
// and for NULL [ErrNull].
func (id *Sno) Scan(src any) error {
	switch src := src.(type) {
	case string:
		return id.scanText([]byte(src))
	case []byte:
		switch {
		case src == nil:
			return nullError(snoName, snoScan)
		case len(src) == len(id):
			return id.UnmarshalBinary(src)
		case len(src) == len(uuid.UUID{}):
			return id.setUUID(octets(src))
		}
		return id.scanText(src)
	case [16]byte:
		return id.setUUID(octets(src[:]))
	case nil:
		return nullError(snoName, snoScan)
	case Sno:
		*id = src
		return nil
	}
	v, err := valueOf[Sno](snoName, snoScan, src)
	if err != nil {
		return err
	}
	return id.Scan(v)
}

// scanText scans the text of a Sno or of its UUID.
func (id *Sno) scanText(b []byte) error {
	var err error
	switch len(b) {
	case snoDigits:
		err = id.UnmarshalText(b)
	case uuidTextSize:
		err = id.unmarshalUUID(b)
	default:
		err = badLength(len(b)).in(snoName, snoScan, b)
	}
	if err != nil {
		return scanError(err)
	}
	return nil
}

// GormDataType returns the column type for GORM: uuid.
func (Sno) GormDataType() string { return uuidType }
