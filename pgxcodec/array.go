package pgxcodec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// An arrayCodec is the codec of an array type whose elements have an elementCodec. The
// codec that it embeds goes first, and does most of the work. The arrayCodec handles slices
// of IDs in the binary formats of bigint[] and uuid[], for which pgx would need more time.
type arrayCodec struct {
	pgtype.Codec
	column  *column
	element uint32 // the elements' OID
	last    lastScan
}

func (c *arrayCodec) wrapped() pgtype.Codec { return c.Codec }

func (c *arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
		return p
	}
	f, binary := formOf(reflect.TypeOf(value)), format == pgtype.BinaryFormatCode
	switch {
	case f != nil && f.shape == one && !f.own:
		return f.refuse(m, oid, format, value, c.column.name+"[]")
	case f != nil && f.shape == list && f.wire != nil && f.column == c.column && f.holdsIDs() && binary:
		return &encodeList{f, c.element}
	}
	if _, ok := value.(string); ok && binary {
		return encodeLiteral{m, oid}
	}
	return c.planEncodeNested(m, oid, format, value)
}

func (c *arrayCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if p := c.last.plan(format, target); p != nil {
		return p
	}
	if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
		return p
	}
	t, f := reflect.TypeOf(target), formOf(reflect.TypeOf(target))
	switch {
	case t == nil || t.Kind() != reflect.Pointer:
		return nil
	case f != nil && f.shape == one && !f.own:
		err := fmt.Errorf("pgxcodec: scan an array into %s: the target holds one ID; pass a pointer to a slice: %w", typename.OfValue(target), idtype.ErrSyntax)
		return &scanOne{f, scanRefusal{err}}
	case f != nil && f.scan != nil && f.column == c.column && format == pgtype.BinaryFormatCode:
		return c.last.set(f)
	case isArray(t.Elem()):
		return scanLiteral{m, oid, format}
	case f == nil:
		return c.planScanNested(m, oid, format, t)
	}
	fill, next, ok := pgtype.TryWrapPtrSliceScanPlan(target)
	if !ok {
		return nil
	}
	p := c.Codec.PlanScan(m, oid, format, next)
	if p == nil {
		return nil
	}
	fill.SetNext(p)
	return &scanSlice{t, fill}
}

// scanLiteral scans by the Scan of a target, such as [sqltypes.Array.Scan], which expects the
// literal of an array. pgx would pass the bytes of the binary format.
type scanLiteral struct {
	m      *pgtype.Map
	oid    uint32
	format int16
}

func (p scanLiteral) Scan(src []byte, target any) error {
	if src == nil {
		return scan(target, nil)
	}
	if p.format == pgtype.BinaryFormatCode {
		var a pgtype.Array[any]
		if err := p.m.Scan(p.oid, p.format, src, &a); err != nil {
			return err
		}
		var err error
		if src, err = p.m.Encode(p.oid, pgtype.TextFormatCode, a, nil); err != nil {
			return err
		}
	}
	return scan(target, string(src))
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

// The binary format of an array: the number of dimensions, a flag for NULLs, the elements' OID,
// and per dimension the length and the lower bound; then, per element, its size (-1 for NULL)
// and its bytes.
const (
	hasNullsOffset = 4
	elementNull    = 0xffffffff
	maxDimensions  = 6
)

func appendUint32(buf []byte, values ...uint32) []byte {
	for _, v := range values {
		buf = binary.BigEndian.AppendUint32(buf, v)
	}
	return buf
}

func elementError(i int, err error) error {
	return fmt.Errorf("pgxcodec: array element %d: %w", i, err)
}

// encodeList encodes a slice of IDs or of pointers to them.
type encodeList struct {
	*form
	element uint32
}

func (p *encodeList) Encode(value any, buf []byte) ([]byte, error) {
	if reflect.TypeOf(value) != p.typ {
		return nil, wrongType(value, p.typ)
	}
	ids := reflect.ValueOf(value)
	if ids.Kind() == reflect.Pointer && !ids.IsNil() {
		ids = ids.Elem()
	}
	switch {
	case ids.IsNil():
		return nil, nil
	case ids.Len() == 0:
		return appendUint32(buf, 0, 0, p.element), nil
	}
	start, pointers := len(buf), ids.Type().Elem() == p.pointer
	buf = appendUint32(buf, 1, 0, p.element, uint32(ids.Len()), 1)
	for i := range ids.Len() {
		id, size := ids.Index(i), len(buf)
		buf = appendUint32(buf, elementNull)
		if !pointers {
			id = id.Addr()
		}
		if id.IsNil() {
			binary.BigEndian.PutUint32(buf[start+hasNullsOffset:], 1)
			continue
		}
		b, err := p.wire.Encode(id.Interface(), buf)
		if err != nil {
			return nil, elementError(i, err)
		}
		binary.BigEndian.PutUint32(b[size:], uint32(len(b)-size-4))
		buf = b
	}
	return buf, nil
}

// scanList scans into a slice of IDs or of pointers to them.
type scanList struct {
	*form
	flat bool // the list is a sqltypes.Array, which has one dimension
}

func (p *scanList) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	list := p.typ.Elem()
	if src == nil {
		reflect.ValueOf(target).Elem().SetZero()
		return nil
	}
	n, elements, err := readHeader(src)
	switch {
	case err != nil:
		return err
	case p.flat && binary.BigEndian.Uint32(src) > 1:
		return fmt.Errorf("pgxcodec: scan an array of several dimensions into %s: want one dimension; scan it into a %s to get the elements in order: %w",
			typename.Of(list), typename.Of(reflect.SliceOf(list.Elem())), idtype.ErrSyntax)
	}
	// A new slice, because a scan that fails leaves its target unchanged.
	result := reflect.MakeSlice(list, n, n)
	ids, pointers := result, list.Elem() == p.pointer
	if pointers {
		ids = reflect.MakeSlice(reflect.SliceOf(p.idType.typ), n, n)
	}
	for i := range n {
		if len(elements) < 4 {
			return badArray(src)
		}
		size := binary.BigEndian.Uint32(elements)
		elements = elements[4:]
		var element []byte // nil for NULL
		switch {
		case size == elementNull && pointers:
			continue
		case size == elementNull:
		case uint64(size) > uint64(len(elements)):
			return badArray(src)
		default:
			element, elements = elements[:size], elements[size:]
		}
		if err := p.scanElement(element, ids.Index(i)); err != nil {
			return elementError(i, err)
		}
		if pointers {
			result.Index(i).Set(ids.Index(i).Addr())
		}
	}
	if len(elements) > 0 {
		return badArray(src)
	}
	reflect.ValueOf(target).Elem().Set(result)
	return nil
}

// scanElement scans an element. A pointer to each number would take more time than pgx needs for
// an int64.
func (p *scanList) scanElement(src []byte, id reflect.Value) error {
	if w, ok := p.wire.(*bigint); ok && len(src) == 8 {
		if n := binary.BigEndian.Uint64(src); n&w.invalid == 0 {
			id.SetInt(int64(n))
			return nil
		}
	}
	return p.wire.Scan(src, id.Addr().Interface())
}

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

func badArray(src []byte) error { return badWire("an array in the binary format", src) }

// scanSlice scans into a slice that pgx fills. If it fails, it leaves the slice unchanged. pgx
// would clear it before it reads the first element.
type scanSlice struct {
	typ  reflect.Type // of a pointer to the slice
	fill pgtype.ScanPlan
}

func (p *scanSlice) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	list := reflect.New(p.typ.Elem())
	if err := p.fill.Scan(src, list.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(target).Elem().Set(list.Elem())
	return nil
}
