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
// codec that it embeds goes first. It then handles slices of IDs, for which pgx would need
// more time, and rejects one ID.
type arrayCodec struct {
	pgtype.Codec
	column  *column
	element uint32 // the elements' OID
	scans   scanPlans
}

func (c *arrayCodec) wrapped() pgtype.Codec { return c.Codec }

func (c *arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(value))
	// In the text format, elements need quotes: the text of a UID60 can be "NULL".
	// Leave that to pgx; only the slower exec modes use the text format.
	if c.column.holdsSlice(f) && format == pgtype.BinaryFormatCode {
		return &encodeSlice{f, f.encoder(c.column, planner{c.Codec, m, c.element, format}), c.element}
	}
	if p := c.planNested(m, oid, format, value); p != nil {
		return p
	}
	if _, ok := value.(string); ok && format == pgtype.BinaryFormatCode {
		return encodeLiteral{m, oid}
	}
	if err := c.column.refuseElement(f, planner{c.Codec, m, oid, format}); err != nil {
		return refusal{err}
	}
	return nil
}

// holdsSlice reports whether a form is a slice, or a pointer to one, of IDs that are in the
// column.
func (c *column) holdsSlice(f *form) bool {
	if f == nil || f.shape != slice || !c.holds(f.leaf) {
		return false
	}
	return f.typ.Kind() == reflect.Slice || f.typ.Elem().Kind() == reflect.Slice
}

// planNested returns the plan for a slice of slices that are no elements, or nil for other
// values. pgx first tries the inner slices as elements, for which an elementCodec has a plan
// if they hold IDs, a refusal. Once pgx has encoded some other slice for the same column, it
// also takes that plan for any slice of slices.
func (c *arrayCodec) planNested(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	t := reflect.TypeOf(value)
	if t == nil || t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Slice || isArray(t.Elem()) {
		return nil
	}
	if formOf(t.Elem()) == nil && m.PlanEncode(c.element, format, reflect.Zero(t.Elem()).Interface()) != nil {
		return nil // such as a []byte
	}
	nested, next, ok := pgtype.TryWrapMultiDimSliceEncodePlan(value)
	if !ok {
		return nil
	}
	p := c.Codec.PlanEncode(m, oid, format, next)
	if p == nil {
		return nil
	}
	nested.SetNext(p)
	return nested
}

func (c *arrayCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if p := c.scans.again(format, target); p != nil {
		return p
	}
	if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
		return p
	}
	if p := c.scans.plan(format, target, c.column.planScanSlice); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(target))
	switch {
	case f == nil || f.typ.Kind() != reflect.Pointer:
		return nil
	case f.shape == one:
		return scanRefusal{fmt.Errorf("pgxcodec: scan an array into %s: the target holds one ID; pass a pointer to a slice: %w", typename.OfValue(target), idtype.ErrSyntax)}
	case f.typ.Elem().Kind() != reflect.Slice:
		return nil
	case isArray(f.typ.Elem()) && format == pgtype.BinaryFormatCode, f.shape == slice && f.typ.Elem().Name() == "":
		return c.planElements(m, oid, format, f)
	}
	return nil
}

// planScanSlice returns the plan for a slice of IDs in the binary format, or nil for other
// targets.
func (c *column) planScanSlice(f *form, format int16) pgtype.ScanPlan {
	if f == nil || f.typ.Kind() != reflect.Pointer || format != pgtype.BinaryFormatCode || !c.holdsSlice(f) {
		return nil
	}
	return &scanSlice{f, f.wire(c, format), isArray(f.typ.Elem()), c == &bigints}
}

// planElements returns the plan for a slice that pgx fills, or nil if it can't.
func (c *arrayCodec) planElements(m *pgtype.Map, oid uint32, format int16, f *form) pgtype.ScanPlan {
	// pgx has no array without a slice, and would pass a sqltypes.Array to its Scan.
	list := reflect.SliceOf(f.typ.Elem().Elem())
	fill, next, ok := pgtype.TryWrapPtrSliceScanPlan(reflect.New(list).Interface())
	if !ok {
		return nil
	}
	p := c.Codec.PlanScan(m, oid, format, next)
	if p == nil {
		return nil
	}
	fill.SetNext(p)
	return &scanElements{f, list, fill}
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

func elementError(i int, err error) error {
	return fmt.Errorf("pgxcodec: array element %d: %w", i, err)
}

// encodeSlice encodes a slice of IDs or of pointers to them.
type encodeSlice struct {
	*form
	wire    wire
	element uint32
}

func (p *encodeSlice) Encode(value any, buf []byte) ([]byte, error) {
	if reflect.TypeOf(value) != p.typ {
		return nil, wrongType(value, p.typ)
	}
	ids := reflect.ValueOf(value)
	if ids.Kind() == reflect.Pointer {
		if ids.IsNil() {
			return nil, nil
		}
		ids = ids.Elem()
	}
	if ids.IsNil() {
		return nil, nil
	}
	start, pointers := len(buf), ids.Type().Elem().Kind() == reflect.Pointer
	buf = appendHeader(buf, p.element, ids.Len())
	for i := range ids.Len() {
		id, size := ids.Index(i), len(buf)
		buf = binary.BigEndian.AppendUint32(buf, elementNull)
		var b []byte
		var err error
		switch {
		case !pointers:
			b, err = p.wire.Encode(id.Addr().Interface(), buf)
		case !id.IsNil():
			b, err = p.wire.Encode(id.Interface(), buf)
		}
		switch {
		case err != nil:
			return nil, elementError(i, err)
		case b == nil:
			binary.BigEndian.PutUint32(buf[start+hasNullsOffset:], 1)
		default:
			binary.BigEndian.PutUint32(b[size:], uint32(len(b)-size-4))
			buf = b
		}
	}
	return buf, nil
}

// scanSlice scans into a slice of IDs or of pointers to them.
type scanSlice struct {
	*form
	wire    wire
	flat    bool // the target accepts only arrays of one dimension
	numbers bool // the elements are bigints
}

func (p *scanSlice) Scan(src []byte, target any) error {
	t := reflect.TypeOf(target)
	switch {
	case t != p.typ:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		reflect.ValueOf(target).Elem().SetZero()
		return nil
	case p.flat && isNested(src):
		return nested(t.Elem())
	}
	n, elements, err := readHeader(src)
	if err != nil {
		return err
	}
	// A new slice, because a scan that fails leaves its target unchanged.
	list := reflect.MakeSlice(t.Elem(), n, n)
	ids, pointers := list, t.Elem().Elem().Kind() == reflect.Pointer
	if pointers {
		ids = reflect.MakeSlice(reflect.SliceOf(p.leaf.typ), n, n)
	}
	for i := range n {
		if len(elements) < 4 {
			return badArray(src)
		}
		size := binary.BigEndian.Uint32(elements)
		elements = elements[4:]
		switch {
		case size == elementNull && pointers:
			continue
		case size == elementNull:
			err = p.nullError()
		case uint64(size) > uint64(len(elements)):
			return badArray(src)
		default:
			err = p.scanElement(elements[:size], ids.Index(i))
			elements = elements[size:]
		}
		if err != nil {
			return elementError(i, err)
		}
		if pointers {
			list.Index(i).Set(ids.Index(i).Addr())
		}
	}
	if len(elements) > 0 {
		return badArray(src)
	}
	reflect.ValueOf(target).Elem().Set(list)
	return nil
}

// scanElement scans an element that isn't NULL. A pointer to each number would take more time
// than pgx needs for an int64.
func (p *scanSlice) scanElement(src []byte, id reflect.Value) error {
	if p.numbers && len(src) == 8 {
		if n := int64(binary.BigEndian.Uint64(src)); p.valid(n) {
			id.SetInt(n)
			return nil
		}
	}
	return p.wire.Scan(src, id.Addr().Interface())
}

// scanElements scans into a slice that pgx fills.
type scanElements struct {
	*form
	list reflect.Type
	fill pgtype.ScanPlan // scans into a slice of the type list
}

func (p *scanElements) Scan(src []byte, target any) error {
	t := reflect.TypeOf(target)
	switch {
	case t != p.typ:
		return pgtype.ErrScanTargetTypeChanged
	case isArray(t.Elem()) && isNested(src):
		return nested(t.Elem())
	}
	// A new slice, because pgx clears its target before it reads the first element.
	list := reflect.New(p.list)
	if err := p.fill.Scan(src, list.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(target).Elem().Set(list.Elem())
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

func badArray(src []byte) error { return badWire("an array in the binary format", src) }

// isNested reports whether an array in the binary format has several dimensions.
func isNested(array []byte) bool { return len(array) >= 4 && binary.BigEndian.Uint32(array) > 1 }

func nested(target reflect.Type) error {
	return fmt.Errorf("pgxcodec: scan an array of several dimensions into %s: want one dimension; scan it into a %s to get the elements in order: %w",
		typename.Of(target), typename.Of(reflect.SliceOf(target.Elem())), idtype.ErrSyntax)
}
