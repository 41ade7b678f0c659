package idtype

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// A Sno is an 80-bit ID that orders by time in every form it takes, with a
// byte for the caller's own use:
//
//	 byte 0      1      2      3      4        5        6     7        8     9
//	+-----------------------------------+-+----------+-------------+-------------+
//	| 4 ms units since 2010-01-01 : 39  |t| metabyte | partition   | sequence    |
//	|                                   | | : 8      | : 16        | : 16        |
//	+-----------------------------------+-+----------+-------------+-------------+
//
// t is the tick-tock bit: a generator toggles it when the clock steps back.
//
// A Sno is written as 16 digits of the alphabet 23456789abcdefghijklmnopqrstuvwx.
// Those 16 ASCII characters are the 16 bytes of the uuid column that it is
// stored in, so that a psql session shows, in hex, the very text that a log does.
type Sno [10]byte

const (
	snoName  = "Sno"
	snoText  = "16 characters [2-9a-x]"
	snoUUID  = "a UUID whose 16 bytes are the 16 characters of a Sno"
	snoBytes = "10 bytes"
	snoScan  = "the UUID of a Sno as 16 bytes or 36 characters, 16 characters [2-9a-x], or 10 raw bytes"

	snoDigits = 16
)

// snoLine counts from 2010-01-01T00:00:00Z.
var snoLine = timeline{snoName, 1262304000000, 4, 1<<39 - 1}

// snoMax is the largest of all.
var snoMax = Sno{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// A SnoPartition keeps generators apart that could mint at the same time, in
// one process or in many. Its two bytes can be written as {'A', 10}.
type SnoPartition [2]byte

// SnoPartitionFrom is the partition of a number: the high byte comes first.
func SnoPartitionFrom(n uint16) SnoPartition { return SnoPartition{byte(n >> 8), byte(n)} }

// Uint16 is the partition as a number.
func (p SnoPartition) Uint16() uint16 { return uint16(p[0])<<8 | uint16(p[1]) }

// A SnoLayout makes [Sno]s from parts and bounds from times. It has no choices.
type SnoLayout struct{}

// Validate always gives nil.
func (SnoLayout) Validate() error { return nil }

// SnoParts are the fields of a [Sno].
type SnoParts struct {
	Time      time.Time // UTC, in multiples of 4 ms; [SnoLayout.Compose] rounds down
	TickTock  bool      // whether the bit is set that a step back of the clock toggles
	Meta      byte
	Partition SnoPartition
	Sequence  uint16
}

// Compose makes the ID that has these parts. A time out of range is an error
// that names the limit: [ErrBeforeEpoch] or [ErrTimeExhausted].
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

// snoOf is the ID with these upper 40 bits, which are the unit and the
// tick-tock bit.
func snoOf(head uint64, meta byte, partition, sequence uint16) (id Sno) {
	// Ten bytes are eight and the last two.
	binary.BigEndian.PutUint64(id[:8], head<<24|uint64(meta)<<16|uint64(partition))
	binary.BigEndian.PutUint16(id[8:], sequence)
	return id
}

// snoFloor is the lowest ID of a unit, of all metabytes and partitions.
func snoFloor(unit int64) Sno { return sno(unit, false, 0, 0, 0) }

// Parts takes an ID apart. The error is always nil.
func (SnoLayout) Parts(id Sno) (SnoParts, error) {
	return SnoParts{id.Time(), id.TickTock(), id.Meta(), id.Partition(), id.Sequence()}, nil
}

// Time is [Sno.Time].
func (SnoLayout) Time(id Sno) time.Time { return id.Time() }

// Floor is the lowest ID of the 4 ms unit in which t lies: [ErrBeforeEpoch]
// before 2010, [ErrTimeExhausted] after 2079-09-07T15:47:35.551Z.
func (SnoLayout) Floor(t time.Time) (Sno, error) {
	unit, err := snoLine.unit(t)
	if err != nil {
		return Sno{}, err
	}
	return snoFloor(unit), nil
}

// Range gives the bounds lo <= id < hi of the IDs minted from one instant to
// before another, whatever their metabytes and partitions, in steps of 4 ms,
// so that windows that meet in time meet in IDs. A zero from or to leaves that
// side open. Times outside the format's give its smallest and its largest
// value. A window that ends before it begins is an [ErrRange].
func (SnoLayout) Range(from, to time.Time) (lo, hi Sno, err error) {
	return timeRange(snoLine, from, to, snoFloor, snoMax)
}

// Time is the beginning of the 4 ms unit in which the ID was minted, in UTC.
func (id Sno) Time() time.Time { return snoLine.time(int64(id.head() >> 1)) }

// head is the time and the tick-tock bit.
func (id Sno) head() uint64 { return binary.BigEndian.Uint64(id[:8]) >> 24 }

// TickTock reports whether the tick-tock bit is set.
func (id Sno) TickTock() bool { return id[4]&1 == 1 }

// Meta is the metabyte.
func (id Sno) Meta() byte { return id[5] }

// Partition is the partition of the generator.
func (id Sno) Partition() SnoPartition { return SnoPartition(id[6:8]) }

// Sequence tells apart the IDs of a partition's unit.
func (id Sno) Sequence() uint16 { return binary.BigEndian.Uint16(id[8:]) }

// WithMeta is the ID with another metabyte: such as the next version of a
// record, if the metabyte counts versions.
func (id Sno) WithMeta(meta byte) Sno {
	id[5] = meta
	return id
}

// WithPartition is the ID with another partition.
func (id Sno) WithPartition(p SnoPartition) Sno {
	copy(id[6:8], p[:])
	return id
}

// SnoMetaFromText reads the metabyte off a Sno's text, where it stands in the
// digits 8 and 9, without reading the rest: enough to tell what a JSON
// document is before unmarshalling it.
func SnoMetaFromText(s string) (byte, error) {
	if len(s) != snoDigits {
		return 0, badLength(len(s)).in(snoName, snoText, []byte(s))
	}
	hi, lo := base32Value[s[8]], base32Value[s[9]]
	for i, d := range []byte{hi, lo} {
		if d == noDigit {
			return 0, badCharacter(8+i, s[8+i]).in(snoName, snoText, []byte(s))
		}
	}
	return hi<<3 | lo>>2, nil
}

// ParseSno reads 16 digits [2-9a-x], lower case alone. The error is a
// [*ParseError].
func ParseSno(s string) (id Sno, err error) {
	err = id.UnmarshalText([]byte(s))
	return id, err
}

// MustParseSno is [ParseSno] for constants: it panics on an error.
func MustParseSno(s string) Sno { return must(ParseSno(s)) }

// UUID is the ID as its column holds it: the 16 bytes of its text.
func (id Sno) UUID() (u uuid.UUID) {
	hi, lo := id.digits()
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return u
}

// SnoFromUUID reads the 16 bytes of a UUID as the text of a Sno. A UUID of
// another origin is an [ErrNotSno].
func SnoFromUUID(u uuid.UUID) (id Sno, err error) {
	// As setUUID, by which it would take 2 ns longer: every row read pays that.
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

// notSno is the error of a UUID, given in halves, that holds no Sno.
func notSno(hi, lo uint64) error {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], hi)
	binary.BigEndian.PutUint64(u[8:], lo)
	return flaw{-1, "not all bytes are in [2-9a-x], so the UUID is from another source", ErrNotSno}.in(snoName, snoUUID, []byte(u.String()))
}

// IsZero reports whether id is the zero ID, which is never minted.
func (id Sno) IsZero() bool { return id == Sno{} }

// Compare orders IDs as their column does, which is by time; text and bytes
// have the same order.
func (id Sno) Compare(other Sno) int { return bytes.Compare(id[:], other[:]) }

// AppendText appends 16 digits. The error is always nil.
func (id Sno) AppendText(b []byte) ([]byte, error) {
	hi, lo := id.digits()
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, hi), lo), nil
}

// String is 16 digits.
func (id Sno) String() string {
	var buf [snoDigits]byte
	b, _ := id.AppendText(buf[:0]) // never an error
	return string(b)
}

// GoString is the text in the words of Go: idtype.MustParseSno("..."). The
// errors of pgx show values so.
func (id Sno) GoString() string { return `idtype.MustParseSno("` + id.String() + `")` }

// MarshalText is 16 digits. The error is always nil.
func (id Sno) MarshalText() ([]byte, error) { return id.AppendText(make([]byte, 0, snoDigits)) }

// UnmarshalText reads what [ParseSno] does.
func (id *Sno) UnmarshalText(b []byte) error {
	if len(b) != snoDigits {
		return badLength(len(b)).in(snoName, snoText, b)
	}
	if !id.setDigits(octets(b)) {
		return digitFlaw(&base32Value, b).in(snoName, snoText, b)
	}
	return nil
}

// AppendBinary appends the 10 bytes. The error is always nil.
func (id Sno) AppendBinary(b []byte) ([]byte, error) { return append(b, id[:]...), nil }

// MarshalBinary gives the 10 bytes. The error is always nil.
func (id Sno) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary reads 10 bytes.
func (id *Sno) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return badLength(len(b)).in(snoName, snoBytes, b)
	}
	copy(id[:], b)
	return nil
}

// MarshalJSON gives the 16 digits in quotes, and null for the zero ID.
func (id Sno) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte(jsonNull), nil
	}
	return quote(id.AppendText, snoDigits)
}

// UnmarshalJSON reads 16 digits in quotes, and null as the zero ID.
func (id *Sno) UnmarshalJSON(b []byte) error {
	if string(b) == jsonNull {
		*id = Sno{}
		return nil
	}
	s, err := unquoteText(b, snoName, snoText)
	if err != nil {
		return err
	}
	return id.UnmarshalText(s)
}

// Value gives the 36 characters of [Sno.UUID]: a string, because drivers
// store 16 raw bytes as whatever they like, and GORM expands them in an IN.
func (id Sno) Value() (driver.Value, error) { return uuidString(id.digits()), nil }

// Scan takes what a uuid column gives, its 16 bytes or its 36 characters, and
// from other columns the 16 digits or 10 raw bytes. It also takes a Sno, a pointer
// to one, or a struct around one. A UUID of another origin is an [ErrNotSno], and
// NULL an [ErrNull].
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
	case uuid.UUID:
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

// scanText reads a Sno's text, or the text of a UUID that holds it.
func (id *Sno) scanText(b []byte) error {
	switch len(b) {
	case snoDigits:
		if err := id.UnmarshalText(b); err != nil {
			return scanError(err)
		}
		return nil
	case uuidTextSize:
		hi, lo, ok := readUUID((*[uuidTextSize]byte)(b))
		if !ok {
			return scanError(flaw{-1, "invalid UUID", ErrSyntax}.in(snoName, snoScan, b))
		}
		return id.setUUID(hi, lo)
	}
	return scanError(badLength(len(b)).in(snoName, snoScan, b))
}

// GormDataType is the column's type for GORM: uuid.
func (Sno) GormDataType() string { return "uuid" }

// LogValue is the ID's text.
func (id Sno) LogValue() slog.Value { return slog.StringValue(id.String()) }
