package pgxcodec

import (
	"bytes"
	"database/sql"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A wire is what values of the type V look like in one kind of column and one
// format. The types that implement it have no fields, so that plans made of
// them have none either, and cost no allocation.
type wire[V any] interface {
	// put appends a value.
	put(buf []byte, v V) ([]byte, error)
	// get reads a value that isn't NULL. If it fails, *dst is as it was. The
	// unusual is left to V's Scan, for it to accept or to explain.
	get(src []byte, dst *V) error
}

// integer is the ID types of bigint columns.
type integer interface {
	idtype.Snowflake | idtype.SnowflakeSI | idtype.UID60 | idtype.Spread64
}

type bigintBinary[T integer] struct{}

func (bigintBinary[T]) put(buf []byte, id T) ([]byte, error) {
	return binary.BigEndian.AppendUint64(buf, uint64(id)), nil
}

func (bigintBinary[T]) get(src []byte, dst *T) error {
	if len(src) != 8 {
		return badWire("an int8 of 8 bytes", src)
	}
	return setNumber(dst, int64(binary.BigEndian.Uint64(src)))
}

type bigintText[T integer] struct{}

func (bigintText[T]) put(buf []byte, id T) ([]byte, error) {
	return strconv.AppendInt(buf, int64(id), 10), nil
}

func (bigintText[T]) get(src []byte, dst *T) error {
	n, err := strconv.ParseInt(string(src), 10, 64)
	var digits [20]byte
	if err != nil || !bytes.Equal(src, strconv.AppendInt(digits[:0], n, 10)) {
		return scanInto(dst, string(src))
	}
	return setNumber(dst, n)
}

// setNumber sets *dst to a column's number.
func setNumber[T integer](dst *T, n int64) error {
	if uint64(n)>>width[T]() != 0 {
		return scanInto(dst, n)
	}
	*dst = T(n)
	return nil
}

// How many bits the numbers of a type have: those that have no more are IDs.
// Spread64 has all 64, since data with reserved bits stays readable.
const (
	snowflakeBits   = 63
	snowflakeSIBits = 53
	uid60Bits       = 60
)

func width[T integer]() int {
	switch any((*T)(nil)).(type) {
	case *idtype.Snowflake:
		return snowflakeBits
	case *idtype.SnowflakeSI:
		return snowflakeSIBits
	case *idtype.UID60:
		return uid60Bits
	}
	return 64
}

type uuidBinary struct{}

func (uuidBinary) put(buf []byte, id idtype.Sno) ([]byte, error) {
	u := id.UUID()
	return append(buf, u[:]...), nil
}

func (uuidBinary) get(src []byte, dst *idtype.Sno) error {
	if len(src) != len(uuid.UUID{}) {
		return badWire("a uuid of 16 bytes", src)
	}
	return setSno(dst, uuid.UUID(src))
}

type uuidText struct{}

func (uuidText) put(buf []byte, id idtype.Sno) ([]byte, error) {
	u := id.UUID()
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return buf, nil
}

func (uuidText) get(src []byte, dst *idtype.Sno) error {
	u, err := uuid.ParseBytes(src)
	if err != nil || len(src) != 36 { // ParseBytes reads other notations as well
		return scanInto(dst, string(src))
	}
	return setSno(dst, u)
}

func setSno(dst *idtype.Sno, u uuid.UUID) error {
	id, err := idtype.SnoFromUUID(u)
	if err != nil {
		return err
	}
	*dst = id
	return nil
}

// chars is text, varchar and the domains over them, in both formats.
type chars[T sqltypes.ID] struct{}

func (chars[T]) put(buf []byte, v sqltypes.Text[T]) ([]byte, error) { return v.ID.AppendText(buf) }

func (chars[T]) get(src []byte, dst *sqltypes.Text[T]) error {
	// Not dst.UnmarshalText: T is a type of idtype, and leaves itself alone.
	return any(&dst.ID).(encoding.TextUnmarshaler).UnmarshalText(src)
}

// paddedChars is char(n), whose server pads what it stores with spaces.
type paddedChars[T sqltypes.ID] struct{ chars[T] }

func (p paddedChars[T]) get(src []byte, dst *sqltypes.Text[T]) error {
	return p.chars.get(bytes.TrimRight(src, " "), dst)
}

type byteaBinary struct{}

func (byteaBinary) put(buf []byte, v sqltypes.SnoBytes) ([]byte, error) {
	return append(buf, v.ID[:]...), nil
}

func (byteaBinary) get(src []byte, dst *sqltypes.SnoBytes) error {
	return dst.ID.UnmarshalBinary(src)
}

type byteaText struct{}

const byteaPrefix = `\x`

func (byteaText) put(buf []byte, v sqltypes.SnoBytes) ([]byte, error) {
	return hex.AppendEncode(append(buf, byteaPrefix...), v.ID[:]), nil
}

func (byteaText) get(src []byte, dst *sqltypes.SnoBytes) error {
	digits, ok := bytes.CutPrefix(src, []byte(byteaPrefix))
	var id idtype.Sno
	if !ok || len(digits) != 2*len(id) {
		return badWire(`a bytea of 10 bytes as \x and 20 hex digits`, src)
	}
	if _, err := hex.Decode(id[:], digits); err != nil {
		return badWire(`a bytea of 10 bytes as \x and 20 hex digits`, src)
	}
	dst.ID = id
	return nil
}

// scanInto is dst.Scan(src).
func scanInto[V any](dst *V, src any) error { return any(dst).(sql.Scanner).Scan(src) }
