package pgxcodec

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/google/uuid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// A wire encodes and decodes the IDs of a leaf with the base type V, for one column type
// and one format.
type wire[V any] interface {
	// put appends *v.
	put(buf []byte, v *V) ([]byte, error)
	// get reads a value that isn't NULL. If it fails, it leaves *dst unchanged. It passes
	// unusual input to the leaf's Scan, which accepts it or returns the error.
	get(src []byte, dst *V) error
}

// bigintBinary is the wire for int8. The bits in invalid are zero in all IDs.
type bigintBinary[T integer] struct {
	*leaf
	invalid uint64
}

func (w bigintBinary[T]) put(buf []byte, v *T) ([]byte, error) {
	n := uint64(*v)
	if n&w.invalid != 0 {
		return nil, w.rejection(unsafe.Pointer(v), idtype.ErrRange)
	}
	return binary.BigEndian.AppendUint64(buf, n), nil
}

func (w bigintBinary[T]) get(src []byte, dst *T) error {
	if len(src) != 8 {
		return badWire("an int8 of 8 bytes", src)
	}
	n := binary.BigEndian.Uint64(src)
	if n&w.invalid != 0 {
		return w.scan(unsafe.Pointer(dst), int64(n))
	}
	*dst = T(n)
	return nil
}

type bigintText[T integer] struct {
	*leaf
	invalid uint64
}

func (w bigintText[T]) put(buf []byte, v *T) ([]byte, error) {
	n := int64(*v)
	if uint64(n)&w.invalid != 0 {
		return nil, w.rejection(unsafe.Pointer(v), idtype.ErrRange)
	}
	return strconv.AppendInt(buf, n, 10), nil
}

func (w bigintText[T]) get(src []byte, dst *T) error {
	n, err := strconv.ParseInt(string(src), 10, 64)
	if err != nil || !canonical(src) {
		return w.scan(unsafe.Pointer(dst), string(src))
	}
	if uint64(n)&w.invalid != 0 {
		return w.scan(unsafe.Pointer(dst), n)
	}
	*dst = T(n)
	return nil
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

type uuidBinary struct{ *leaf }

func (w uuidBinary) put(buf []byte, v *idtype.Sno) ([]byte, error) {
	if !w.accepts(*v) {
		return nil, w.rejection(unsafe.Pointer(v), idtype.ErrRange)
	}
	u := v.UUID()
	return append(buf, u[:]...), nil
}

func (w uuidBinary) get(src []byte, dst *idtype.Sno) error {
	// The bytes of a Sno's uuid are its text.
	var id idtype.Sno
	switch {
	case id.UnmarshalText(src) == nil && w.accepts(id):
		*dst = id
		return nil
	case len(src) != len(uuid.UUID{}):
		return badWire("a uuid of 16 bytes", src)
	}
	return w.scan(unsafe.Pointer(dst), uuid.UUID(src))
}

type uuidText struct{ *leaf }

func (w uuidText) put(buf []byte, v *idtype.Sno) ([]byte, error) {
	if !w.accepts(*v) {
		return nil, w.rejection(unsafe.Pointer(v), idtype.ErrRange)
	}
	u := v.UUID()
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return buf, nil
}

func (w uuidText) get(src []byte, dst *idtype.Sno) error {
	u, err := uuid.ParseBytes(src)
	if err != nil || len(src) != 36 { // ParseBytes also accepts other notations
		return w.scan(unsafe.Pointer(dst), string(src))
	}
	var id idtype.Sno
	if id.UnmarshalText(u[:]) == nil && w.accepts(id) {
		*dst = id
		return nil
	}
	return w.scan(unsafe.Pointer(dst), u)
}

// textChars is the wire for text, varchar and domains over them, in both formats.
type textChars[T sqltypes.ID] struct{ *leaf }

func (w textChars[T]) put(buf []byte, v *sqltypes.Text[T]) ([]byte, error) {
	b, err := v.ID.AppendText(buf)
	if err == nil && w.tagged && !w.accepts(*(*idtype.Sno)(unsafe.Pointer(v))) {
		err = idtype.ErrRange
	}
	if err != nil {
		return nil, w.rejection(unsafe.Pointer(v), err)
	}
	return b, nil
}

func (w textChars[T]) get(src []byte, dst *sqltypes.Text[T]) error {
	if w.tagged {
		var id idtype.Sno
		if id.UnmarshalText(src) == nil && !w.accepts(id) {
			return w.scan(unsafe.Pointer(new(sqltypes.Text[T])), string(src)) // for its error
		}
	}
	if err := any(&dst.ID).(encoding.TextUnmarshaler).UnmarshalText(src); err != nil {
		return w.named(err)
	}
	return nil
}

// named puts the name of a typed key into the error of its base type.
func (w textChars[T]) named(err error) error {
	var e *idtype.ParseError
	if errors.As(err, &e) && w.of.typ.Kind() != reflect.Struct {
		e.Type = strings.TrimPrefix(typename.Of(w.of.typ), "idtype.")
	}
	return err
}

// paddedChars is the wire for char(n), which the server pads with spaces.
type paddedChars[T sqltypes.ID] struct{ textChars[T] }

func (p paddedChars[T]) get(src []byte, dst *sqltypes.Text[T]) error {
	return p.textChars.get(bytes.TrimRight(src, " "), dst)
}

type byteaBinary struct{}

func (byteaBinary) put(buf []byte, v *sqltypes.SnoBytes) ([]byte, error) {
	return append(buf, v.ID[:]...), nil
}

func (byteaBinary) get(src []byte, dst *sqltypes.SnoBytes) error {
	return dst.ID.UnmarshalBinary(src)
}

type byteaText struct{}

const byteaPrefix = `\x`

func (byteaText) put(buf []byte, v *sqltypes.SnoBytes) ([]byte, error) {
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
