package pgxcodec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// An arrayCodec is the codec of an array type whose elements have an elementCodec.
// It handles slices of IDs, for which pgx would use reflection, and leaves other
// values to the codec that it embeds.
type arrayCodec struct {
	pgtype.Codec
	column  *column
	element uint32 // the elements' OID
	callers bool   // the caller registered a codec for the array or its elements; it goes first
}

func (c *arrayCodec) wrapped() pgtype.Codec { return c.Codec }
func (c *arrayCodec) holder() *column       { return c.column }
func (c *arrayCodec) ofCaller() bool        { return c.callers }

func (c *arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	wrapped := planner(func(value any) pgtype.EncodePlan { return c.Codec.PlanEncode(m, oid, format, value) })
	if c.callers {
		if p := wrapped(value); p != nil {
			return p
		}
	}
	// In the text format, elements need quotes: the text of a UID60 can be "NULL".
	// Leave that to pgx; only the slower exec modes use the text format.
	if format == pgtype.BinaryFormatCode && !c.callers {
		if p := first(c.column, func(v member) pgtype.EncodePlan { return v.encodeSlice(c.element, value) }); p != nil {
			return p
		}
	}
	if _, ok := value.(string); ok && format == pgtype.BinaryFormatCode {
		return encodeLiteral{m, oid}
	}
	if err := c.column.refuseElement(value, wrapped); err != nil {
		return refusal{err}
	}
	return wrapped(value)
}

func (c *arrayCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if c.callers {
		if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
			return p
		}
	}
	s := sliceScanner{c.Codec, m, oid, format, format == pgtype.BinaryFormatCode && !c.callers}
	if p := first(c.column, func(v member) pgtype.ScanPlan { return v.scanSlice(s, target) }); p != nil {
		return p
	}
	if c.column.registry.columnOf(target) != nil {
		return scanRefusal{fmt.Errorf("pgxcodec: scan an array into %T: the target holds one ID; pass a pointer to a slice: %w", target, idtype.ErrSyntax)}
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

// encodeLiteral encodes an array from its text form, such as {{1,2},{3,4}}. In COPY,
// pgx does this itself and keeps the dimensions, but only for its own *ArrayCodec.
type encodeLiteral struct {
	m   *pgtype.Map
	oid uint32
}

var errLiteral = errors.New("pgxcodec: encode a string as an array: want a literal of elements that the column takes, such as {1,2} or {{1,2},{3,4}}; pass a slice")

func (p encodeLiteral) Encode(value any, buf []byte) ([]byte, error) {
	if !plainDimensions(value.(string)) {
		return nil, errLiteral // pgx then falls back to what it does without this package
	}
	var a pgtype.Array[any]
	if err := p.m.Scan(p.oid, pgtype.TextFormatCode, []byte(value.(string)), &a); err != nil {
		return nil, err
	}
	return p.m.Encode(p.oid, pgtype.BinaryFormatCode, a, buf)
}

// plainDimensions reports whether a literal has dimensions that pgx would lose, and
// only syntax that pgx and the server parse alike.
func plainDimensions(literal string) bool {
	return (strings.HasPrefix(literal, "{{") || strings.HasPrefix(literal, "[")) &&
		!strings.ContainsAny(literal, " \t\n\v\f\r\\") &&
		strings.Count(strings.ToUpper(literal), "NULL") == strings.Count(literal, "NULL")
}

func encodeSlicePlan[V any, B wire[V]](element uint32, value any) pgtype.EncodePlan {
	// These plans have a field, so they are allocated. pgx caches them.
	switch value.(type) {
	case []V:
		return encodeSlice[V, B]{element}
	case *[]V:
		return encodeSlicePointer[V, B]{element}
	case []*V:
		return encodePointerSlice[V, B]{element}
	case *[]*V:
		return encodePointerSlicePointer[V, B]{element}
	}
	return nil
}

// The binary format of a one-dimensional array: the number of dimensions, a flag for
// NULLs, the elements' OID, the length, the lower bound; then, per element, its size
// (-1 for NULL) and its bytes.
const (
	hasNullsOffset = 4
	elementNull    = 0xffffffff
)

func appendHeader(buf []byte, element uint32, n int) []byte {
	if n == 0 {
		return append(appendUint32(buf, 0, 0), byte(element>>24), byte(element>>16), byte(element>>8), byte(element))
	}
	return appendUint32(buf, 1, 0, element, uint32(n), 1)
}

func appendUint32(buf []byte, values ...uint32) []byte {
	for _, v := range values {
		buf = binary.BigEndian.AppendUint32(buf, v)
	}
	return buf
}

func putSlice[V any, W wire[V]](buf []byte, element uint32, ids []V) ([]byte, error) {
	if ids == nil {
		return nil, nil
	}
	buf = appendHeader(buf, element, len(ids))
	for i := range ids {
		var err error
		if buf, err = putElement[V, W](buf, &ids[i]); err != nil {
			return nil, elementError(i, err)
		}
	}
	return buf, nil
}

func putPointerSlice[V any, W wire[V]](buf []byte, element uint32, ids []*V) ([]byte, error) {
	if ids == nil {
		return nil, nil
	}
	start := len(buf)
	buf = appendHeader(buf, element, len(ids))
	for i, id := range ids {
		if id == nil {
			binary.BigEndian.PutUint32(buf[start+hasNullsOffset:], 1)
			buf = binary.BigEndian.AppendUint32(buf, elementNull)
			continue
		}
		var err error
		if buf, err = putElement[V, W](buf, id); err != nil {
			return nil, elementError(i, err)
		}
	}
	return buf, nil
}

func putElement[V any, W wire[V]](buf []byte, id *V) ([]byte, error) {
	start := len(buf) + 4
	var w W
	buf, err := w.put(append(buf, 0, 0, 0, 0), *id)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(buf[start-4:], uint32(len(buf)-start))
	return buf, nil
}

func elementError(i int, err error) error {
	return fmt.Errorf("pgxcodec: array element %d: %w", i, err)
}

type encodeSlice[V any, W wire[V]] struct{ element uint32 }

func (p encodeSlice[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	return putSlice[V, W](buf, p.element, value.([]V))
}

type encodeSlicePointer[V any, W wire[V]] struct{ element uint32 }

func (p encodeSlicePointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	ids := value.(*[]V)
	if ids == nil {
		return nil, nil
	}
	return putSlice[V, W](buf, p.element, *ids)
}

type encodePointerSlice[V any, W wire[V]] struct{ element uint32 }

func (p encodePointerSlice[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	return putPointerSlice[V, W](buf, p.element, value.([]*V))
}

type encodePointerSlicePointer[V any, W wire[V]] struct{ element uint32 }

func (p encodePointerSlicePointer[V, W]) Encode(value any, buf []byte) ([]byte, error) {
	ids := value.(*[]*V)
	if ids == nil {
		return nil, nil
	}
	return putPointerSlice[V, W](buf, p.element, *ids)
}

// A sliceScanner holds the arguments of an array codec's PlanScan.
type sliceScanner struct {
	codec  pgtype.Codec
	m      *pgtype.Map
	oid    uint32
	format int16
	direct bool // bypasses codec
}

func scanSlicePlan[V any, B wire[V]](s sliceScanner, target any) pgtype.ScanPlan {
	switch target.(type) {
	case *[]V:
		if s.direct {
			return scanBinary[V, B]{}
		}
		return scanElements[V](s)
	case *[]*V:
		if s.direct {
			return scanBinaryPointers[V, B]{}
		}
		return scanElements[*V](s)
	}
	return nil
}

// scanElements returns a plan for *[]E, or nil if the codec has none.
func scanElements[E any](s sliceScanner) pgtype.ScanPlan {
	next := s.codec.PlanScan(s.m, s.oid, s.format, new(pgtype.FlatArray[E]))
	if next == nil {
		return nil
	}
	return scanSlice[E]{next}
}

type scanSlice[E any] struct {
	next pgtype.ScanPlan // scans into a *pgtype.FlatArray[E]
}

func (p scanSlice[E]) Scan(src []byte, target any) error {
	dst, ok := target.(*[]E)
	if !ok {
		return pgtype.ErrScanTargetTypeChanged
	}
	// Scan into a new slice, because pgx clears its target before it reads the first
	// element.
	var elements pgtype.FlatArray[E]
	if err := p.next.Scan(src, &elements); err != nil {
		return err
	}
	*dst = elements
	return nil
}

type scanBinary[V any, W wire[V]] struct{}

func (scanBinary[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(*[]V)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	}
	ids, err := readArray[V, W](src, func(int) error { return scanNullError[V]() })
	if err == nil {
		*dst = ids
	}
	return err
}

type scanBinaryPointers[V any, W wire[V]] struct{}

func (scanBinaryPointers[V, W]) Scan(src []byte, target any) error {
	dst, ok := target.(*[]*V)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	}
	var nulls []int
	ids, err := readArray[V, W](src, func(i int) error { nulls = append(nulls, i); return nil })
	if err != nil {
		return err
	}
	pointers := make([]*V, len(ids))
	for i := range ids {
		pointers[i] = &ids[i]
	}
	for _, i := range nulls {
		pointers[i] = nil
	}
	*dst = pointers
	return nil
}

// maxDimensions is the maximum number of dimensions of a Postgres array.
const maxDimensions = 6

// readHeader returns the number of elements of an array, over all dimensions, and
// the bytes of the elements.
func readHeader(array []byte) (n int, elements []byte, err error) {
	if len(array) < 12 {
		return 0, nil, badArray(array)
	}
	dimensions, src := binary.BigEndian.Uint32(array), array[12:]
	if dimensions > maxDimensions || len(src) < int(dimensions)*8 {
		return 0, nil, badArray(array)
	}
	if dimensions == 0 {
		return 0, src, nil
	}
	product := int64(1)
	for range dimensions {
		product *= int64(int32(binary.BigEndian.Uint32(src)))
		src = src[8:]
		// An element has at least four bytes. This check also keeps the product from
		// overflowing.
		if product < 0 || product > int64(len(src)/4) {
			return 0, nil, badArray(array)
		}
	}
	return int(product), src, nil
}

// readArray reads all elements of an array. For a NULL element it calls null, and
// leaves the element zero if null returns nil.
func readArray[V any, W wire[V]](array []byte, null func(i int) error) ([]V, error) {
	n, src, err := readHeader(array)
	if err != nil {
		return nil, err
	}
	var w W
	ids := make([]V, n)
	for i := range ids {
		if len(src) < 4 {
			return nil, badArray(array)
		}
		size := binary.BigEndian.Uint32(src)
		src = src[4:]
		switch {
		case size == elementNull:
			err = null(i)
		case uint64(size) > uint64(len(src)):
			return nil, badArray(array)
		default:
			err = w.get(src[:size], &ids[i])
			src = src[size:]
		}
		if err != nil {
			return nil, elementError(i, err)
		}
	}
	if len(src) > 0 {
		return nil, badArray(array)
	}
	return ids, nil
}

func badArray(src []byte) error { return badWire("an array in the binary format", src) }
