package pgxcodec

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
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
	if c.callers {
		if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
			return p
		}
	}
	f := formOf(reflect.TypeOf(value))
	// In the text format, elements need quotes: the text of a UID60 can be "NULL".
	// Leave that to pgx; only the slower exec modes use the text format.
	if member := c.column.memberFor(f); member != nil && format == pgtype.BinaryFormatCode && !c.callers {
		if p := member.encodeSlice(f, c.element); p != nil {
			return p
		}
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
	return c.Codec.PlanEncode(m, oid, format, value)
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
	if c.callers {
		if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
			return p
		}
	}
	if format == pgtype.BinaryFormatCode && !c.callers {
		if p := c.column.arrays.plan(target, c.column.planScanSlice); p != nil {
			return p
		}
	}
	if p := c.planScanArray(m, oid, format, target); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(target))
	if member := c.column.memberFor(f); member != nil {
		if p := member.scanElements(f, func(target any) pgtype.ScanPlan { return c.Codec.PlanScan(m, oid, format, target) }); p != nil {
			return p
		}
	}
	if f != nil && !f.many && f.same != nil {
		return scanRefusal{fmt.Errorf("pgxcodec: scan an array into %s: the target holds one ID; pass a pointer to a slice: %w", typename.OfValue(target), idtype.ErrSyntax)}
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

func (m memberOf[V]) encodeSlice(f *form, element uint32) pgtype.EncodePlan {
	t := f.same
	if t.Kind() == reflect.Pointer {
		t = t.Elem() // the plans take both a slice and a pointer to it
	}
	switch t {
	case reflect.TypeFor[[]V]():
		return &encodeSlice[V]{f, element, m.binary(f.leaf)}
	case reflect.TypeFor[[]*V]():
		return &encodePointerSlice[V]{f, element, m.binary(f.leaf)}
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

func putElement[V any](buf []byte, w wire[V], id *V) ([]byte, error) {
	start := len(buf) + 4
	buf, err := w.put(append(buf, 0, 0, 0, 0), id)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(buf[start-4:], uint32(len(buf)-start))
	return buf, nil
}

func elementError(i int, err error) error {
	return fmt.Errorf("pgxcodec: array element %d: %w", i, err)
}

type encodeSlice[V any] struct {
	*form
	element uint32
	w       wire[V]
}

func (p *encodeSlice[V]) Encode(value any, buf []byte) ([]byte, error) {
	ids, ok := in[[]V](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case ids == nil, *ids == nil:
		return nil, nil
	}
	buf = appendHeader(buf, p.element, len(*ids))
	for i := range *ids {
		var err error
		if buf, err = putElement(buf, p.w, &(*ids)[i]); err != nil {
			return nil, elementError(i, err)
		}
	}
	return buf, nil
}

type encodePointerSlice[V any] struct {
	*form
	element uint32
	w       wire[V]
}

func (p *encodePointerSlice[V]) Encode(value any, buf []byte) ([]byte, error) {
	ids, ok := in[[]*V](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case ids == nil, *ids == nil:
		return nil, nil
	}
	start := len(buf)
	buf = appendHeader(buf, p.element, len(*ids))
	for i, id := range *ids {
		if id == nil {
			binary.BigEndian.PutUint32(buf[start+hasNullsOffset:], 1)
			buf = binary.BigEndian.AppendUint32(buf, elementNull)
			continue
		}
		var err error
		if buf, err = putElement(buf, p.w, id); err != nil {
			return nil, elementError(i, err)
		}
	}
	return buf, nil
}

// planScanSlice returns the plan for a slice in the binary format, or nil for other targets.
func (c *column) planScanSlice(f *form) pgtype.ScanPlan {
	if member := c.memberFor(f); member != nil {
		return member.scanSlice(f)
	}
	return nil
}

func (m memberOf[V]) scanSlice(f *form) pgtype.ScanPlan {
	switch f.same {
	case reflect.TypeFor[*[]V]():
		return &scanBinary[V]{f, m.binary(f.leaf), isArray(f.typ.Elem())}
	case reflect.TypeFor[*[]*V]():
		return &scanBinaryPointers[V]{f, m.binary(f.leaf)}
	}
	return nil
}

func (memberOf[V]) scanElements(f *form, array func(target any) pgtype.ScanPlan) pgtype.ScanPlan {
	switch f.same {
	case reflect.TypeFor[*[]V]():
		return planElements[V](f, array)
	case reflect.TypeFor[*[]*V]():
		return planElements[*V](f, array)
	}
	return nil
}

// planElements returns a plan for *[]E, or nil if the array's codec has none.
func planElements[E any](f *form, array func(target any) pgtype.ScanPlan) pgtype.ScanPlan {
	next := array(new(pgtype.FlatArray[E]))
	if next == nil {
		return nil
	}
	return scanFlatArray[E]{f, next}
}

type scanFlatArray[E any] struct {
	*form
	next pgtype.ScanPlan // scans into a *pgtype.FlatArray[E]
}

func (p scanFlatArray[E]) Scan(src []byte, target any) error {
	dst, ok := in[[]E](target, p.id)
	if !ok {
		return pgtype.ErrScanTargetTypeChanged
	}
	// Scan into a new slice, because pgx clears its target before it reads the first
	// element.
	var elements pgtype.FlatArray[E]
	if err := p.next.Scan(src, &elements); err != nil {
		return err
	}
	ids := []E(elements)
	if p.tagged {
		if err := p.check(reflect.NewAt(p.typ.Elem(), unsafe.Pointer(&ids)).Interface(), true); err != nil {
			return err
		}
	}
	*dst = ids
	return nil
}

type scanBinary[V any] struct {
	*form
	w    wire[V]
	flat bool // the target accepts only arrays of one dimension
}

func (p *scanBinary[V]) Scan(src []byte, target any) error {
	dst, ok := in[[]V](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	case p.flat && isNested(src):
		return nested(p.typ.Elem())
	}
	ids, err := readArray(src, p.w, func(int) error { return p.nullError() })
	if err == nil {
		*dst = ids
	}
	return err
}

type scanBinaryPointers[V any] struct {
	*form
	w wire[V]
}

func (p *scanBinaryPointers[V]) Scan(src []byte, target any) error {
	dst, ok := in[[]*V](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	}
	var nulls []int
	ids, err := readArray(src, p.w, func(i int) error { nulls = append(nulls, i); return nil })
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
func readArray[V any](array []byte, w wire[V], null func(i int) error) ([]V, error) {
	n, src, err := readHeader(array)
	if err != nil {
		return nil, err
	}
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

// planScanArray returns the plan for a sqltypes.Array that has no plan of its own, and nil
// for other targets. pgx would pass it arrays in the binary format, as to any sql.Scanner.
func (c *arrayCodec) planScanArray(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	t := reflect.TypeOf(target)
	switch {
	case t.Kind() != reflect.Pointer || !isArray(t.Elem()):
		return nil
	case format == pgtype.TextFormatCode:
		return scanLiteral{}
	}
	slice := reflect.SliceOf(t.Elem().Elem())
	return &scanArray{slice, m.PlanScan(oid, format, reflect.New(slice).Interface())}
}

// scanLiteral scans the text format.
type scanLiteral struct{}

func (scanLiteral) Scan(src []byte, target any) error { return target.(sql.Scanner).Scan(src) }

// scanArray scans the binary format into a slice first.
type scanArray struct {
	slice reflect.Type
	next  pgtype.ScanPlan
}

func (p *scanArray) Scan(src []byte, target any) error {
	if isNested(src) {
		return nested(reflect.TypeOf(target).Elem())
	}
	slice := reflect.New(p.slice)
	err := p.next.Scan(src, slice.Interface())
	if err == nil {
		reflect.ValueOf(target).Elem().Set(slice.Elem())
	}
	return err
}

// isNested reports whether an array in the binary format has several dimensions.
func isNested(array []byte) bool { return len(array) >= 4 && binary.BigEndian.Uint32(array) > 1 }

func nested(target reflect.Type) error {
	return fmt.Errorf("pgxcodec: scan an array of several dimensions into %s: want one dimension; scan it into a %s to get the elements in order: %w",
		typename.Of(target), typename.Of(reflect.SliceOf(target.Elem())), idtype.ErrSyntax)
}
