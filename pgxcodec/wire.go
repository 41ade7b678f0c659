package pgxcodec

import (
	"bytes"
	"database/sql"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A wire encodes and decodes values of type V for one column type and one format.
// Implementations have no fields, so plans built from them have none either and need
// no allocation.
type wire[V any] interface {
	// put appends a value.
	put(buf []byte, v V) ([]byte, error)
	// get reads a value that isn't NULL. If it fails, it leaves *dst unchanged. It
	// passes unusual input to V's Scan, which accepts it or returns the error.
	get(src []byte, dst *V) error
}

// A plainID is an ID in its own column type: a type of package idtype, or a struct of
// the caller's that embeds one.
type plainID interface {
	sqltypes.ID
	encoding.BinaryAppender
}

type bigintBinary[T plainID] struct{}

func (bigintBinary[T]) put(buf []byte, id T) ([]byte, error) {
	// The binary form of an ID is the wire format of int8.
	if b, err := id.AppendBinary(buf); err == nil && len(b) == len(buf)+8 {
		return b, nil
	}
	// A Spread64 with reserved bits has no binary form, but is stored as it is.
	n, err := number(id)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(buf, uint64(n)), nil
}

func (bigintBinary[T]) get(src []byte, dst *T) error {
	if len(src) != 8 {
		return badWire("an int8 of 8 bytes", src)
	}
	n := int64(binary.BigEndian.Uint64(src))
	if known, err := setNumber(dst, n); known {
		return err
	}
	if any(dst).(encoding.BinaryUnmarshaler).UnmarshalBinary(src) == nil {
		return nil
	}
	return scanInto(dst, n)
}

type bigintText[T plainID] struct{}

func (bigintText[T]) put(buf []byte, id T) ([]byte, error) {
	// The binary form goes behind buf and is then overwritten, which saves the
	// allocation of another buffer.
	b, err := bigintBinary[T]{}.put(buf, id)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(buf, int64(binary.BigEndian.Uint64(b[len(buf):])), 10), nil
}

func (bigintText[T]) get(src []byte, dst *T) error {
	n, err := strconv.ParseInt(string(src), 10, 64)
	if err != nil || !canonical(src) {
		return scanInto(dst, string(src))
	}
	if known, err := setNumber(dst, n); known {
		return err
	}
	return scanInto(dst, n)
}

// canonical reports whether a number that ParseInt accepts is written as a server
// writes it: without a plus sign and without leading zeros.
func canonical(src []byte) bool {
	first := src[0]
	if first == '-' {
		first = src[1]
	}
	return '1' <= first && first <= '9' || len(src) == 1 // a 0
}

// number returns the bigint for an ID.
func number[T plainID](id T) (int64, error) {
	v, err := id.Value()
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("encode %T: want an int64 from its Value method, got %T; remove that method to use the embedded one", id, v)
	}
	return n, nil
}

// setNumber is dst.Scan(n) without the allocation. known is false for types outside
// package idtype.
func setNumber[T plainID](dst *T, n int64) (known bool, err error) {
	switch dst := any(dst).(type) {
	case *idtype.Snowflake:
		var id idtype.Snowflake
		if id, err = idtype.SnowflakeFromInt64(n); err == nil {
			*dst = id
		}
	case *idtype.SnowflakeSI:
		var id idtype.SnowflakeSI
		if id, err = idtype.SnowflakeSIFromInt64(n); err == nil {
			*dst = id
		}
	case *idtype.UID60:
		var id idtype.UID60
		if id, err = idtype.UID60FromInt64(n); err == nil {
			*dst = id
		}
	case *idtype.Spread64:
		*dst = idtype.Spread64(n)
	default:
		return false, nil
	}
	return true, err
}

type uuidBinary[T plainID] struct{}

func (uuidBinary[T]) put(buf []byte, id T) ([]byte, error) {
	// The bytes of a Sno's uuid are its text.
	b, err := id.AppendText(buf)
	if n := len(b) - len(buf); err == nil && n != len(uuid.UUID{}) {
		return nil, fmt.Errorf("encode %T: want 16 bytes of text from its AppendText method, got %d; remove that method to use the embedded one", id, n)
	}
	return b, err
}

func (uuidBinary[T]) get(src []byte, dst *T) error {
	if sno, ok := any(dst).(*idtype.Sno); ok && sno.UnmarshalText(src) == nil {
		return nil
	}
	switch {
	case len(src) != len(uuid.UUID{}):
		return badWire("a uuid of 16 bytes", src)
	case any(dst).(encoding.TextUnmarshaler).UnmarshalText(src) == nil:
		return nil
	}
	return scanInto(dst, uuid.UUID(src))
}

type uuidText[T plainID] struct{}

func (uuidText[T]) put(buf []byte, id T) ([]byte, error) {
	b, err := uuidBinary[T]{}.put(buf, id)
	if err != nil {
		return nil, err
	}
	u := uuid.UUID(b[len(buf):])
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return buf, nil
}

func (uuidText[T]) get(src []byte, dst *T) error {
	u, err := uuid.ParseBytes(src)
	if err != nil || len(src) != 36 { // ParseBytes also accepts other notations
		return scanInto(dst, string(src))
	}
	if sno, ok := any(dst).(*idtype.Sno); ok && sno.UnmarshalText(u[:]) == nil {
		return nil
	}
	return scanInto(dst, u)
}

// chars is the wire for text, varchar and domains over them, in both formats.
type chars[T sqltypes.ID] struct{}

func (chars[T]) put(buf []byte, v sqltypes.Text[T]) ([]byte, error) { return v.ID.AppendText(buf) }

func (chars[T]) get(src []byte, dst *sqltypes.Text[T]) error {
	// dst.UnmarshalText would keep a copy to restore after an error. Here that isn't
	// needed: T is a type of idtype or embeds one, whose UnmarshalText leaves its
	// receiver unchanged if it fails.
	return any(&dst.ID).(encoding.TextUnmarshaler).UnmarshalText(src)
}

// paddedChars is the wire for char(n), which the server pads with spaces.
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
