package pgxcodec

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// A nested is a slice of slices, such as a [][]T, as pgx handles arrays: the lengths of its
// dimensions, and its elements in one slice. pgx has such a type, too, but compares the lengths only
// when it plans, and scans wrong elements into a [][][]T.
type nested struct {
	typ  reflect.Type
	dims []pgtype.ArrayDimension // nil for NULL
	flat reflect.Value
}

// newNested returns a nested without elements for a slice of slices.
func newNested(typ reflect.Type) *nested {
	flat := typ
	for flat.Elem().Kind() == reflect.Slice {
		flat = flat.Elem()
	}
	return &nested{typ: typ, flat: reflect.Zero(flat)}
}

// isNested reports whether t is a type of slices of slices.
func isNested(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Slice && !isArray(t.Elem())
}

// The methods of a pgtype.ArrayGetter.

func (n *nested) Dimensions() []pgtype.ArrayDimension { return n.dims }
func (n *nested) Index(i int) any                     { return n.flat.Index(i).Interface() }
func (n *nested) IndexType() any                      { return reflect.Zero(n.flat.Type().Elem()).Interface() }

// The methods of a pgtype.ArraySetter.

func (n *nested) ScanIndex(i int) any { return n.flat.Index(i).Addr().Interface() }
func (n *nested) ScanIndexType() any  { return reflect.New(n.flat.Type().Elem()).Interface() }

// SetDimensions makes room for the elements of an array. An array without elements has no
// dimensions.
func (n *nested) SetDimensions(dims []pgtype.ArrayDimension) error {
	size, valid := int64(min(len(dims), 1)), true
	for _, d := range dims {
		size *= int64(d.Length)
		valid = valid && d.Length >= 0 && size <= math.MaxInt32
	}
	depth := 1
	for t := n.typ; t != n.flat.Type(); t = t.Elem() {
		depth++
	}
	if !valid || size > 0 && len(dims) != depth {
		return fmt.Errorf("pgxcodec: scan an array into %s: want %d dimensions, got the lengths %v; scan it into a slice with as many dimensions: %w",
			typename.Of(n.typ), depth, lengths(dims), idtype.ErrSyntax)
	}
	n.dims = dims
	if dims != nil {
		n.flat = reflect.MakeSlice(n.flat.Type(), int(size), int(size))
	}
	return nil
}

func lengths(dims []pgtype.ArrayDimension) []int32 {
	list := make([]int32, len(dims))
	for i, d := range dims {
		list[i] = d.Length
	}
	return list
}

// add appends the elements of a slice. depth is the number of slices around it.
func (n *nested) add(s reflect.Value, depth int) error {
	if len(n.dims) == depth {
		n.dims = append(n.dims, pgtype.ArrayDimension{Length: int32(s.Len()), LowerBound: 1})
	}
	if want := int(n.dims[depth].Length); s.Len() != want {
		return fmt.Errorf("pgxcodec: encode %s: want slices of %d elements in dimension %d, as the first one has, got %d; make the slices of a dimension equally long",
			typename.Of(n.typ), want, depth+1, s.Len())
	}
	if s.Type() == n.flat.Type() {
		n.flat = reflect.AppendSlice(n.flat, s)
		return nil
	}
	for i := range s.Len() {
		if err := n.add(s.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// nest returns elements as a slice of type t with these dimensions.
func nest(t reflect.Type, dims []pgtype.ArrayDimension, flat reflect.Value) reflect.Value {
	if t == flat.Type() {
		return flat
	}
	list := reflect.MakeSlice(t, int(dims[0].Length), int(dims[0].Length))
	step := flat.Len() / list.Len()
	for i := range list.Len() {
		list.Index(i).Set(nest(t.Elem(), dims[1:], flat.Slice3(i*step, (i+1)*step, (i+1)*step)))
	}
	return list
}

// planEncodeNested returns the plan for a slice of slices that are no elements, or nil for other
// values. pgx would first try the inner slices as elements, for which an elementCodec has a plan if
// they hold IDs, a refusal.
func (c *arrayCodec) planEncodeNested(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	t := reflect.TypeOf(value)
	if _, ok := value.(driver.Valuer); ok || t == nil || !isNested(t) {
		return nil
	}
	if formOf(t.Elem()) == nil && m.PlanEncode(c.element, format, reflect.Zero(t.Elem()).Interface()) != nil {
		return nil // such as a []byte
	}
	p := c.Codec.PlanEncode(m, oid, format, newNested(t))
	if p == nil {
		return nil
	}
	return encodeNested{t, p}
}

// encodeNested encodes a slice of slices.
type encodeNested struct {
	typ  reflect.Type
	next pgtype.EncodePlan // encodes a *nested
}

func (p encodeNested) Encode(value any, buf []byte) ([]byte, error) {
	if reflect.TypeOf(value) != p.typ {
		return nil, wrongType(value, p.typ)
	}
	n := newNested(p.typ)
	if v := reflect.ValueOf(value); !v.IsNil() {
		if err := n.add(v, 0); err != nil {
			return nil, err
		}
	}
	return p.next.Encode(n, buf)
}

// planScanNested returns the plan for a pointer to a slice of slices of IDs, or nil for other types.
func (c *arrayCodec) planScanNested(m *pgtype.Map, oid uint32, format int16, target reflect.Type) pgtype.ScanPlan {
	t := target.Elem()
	if !isNested(t) {
		return nil
	}
	n := newNested(t)
	if f := formOf(n.flat.Type().Elem()); f == nil || f.shape != one || isArray(n.flat.Type()) {
		return nil
	}
	p := c.Codec.PlanScan(m, oid, format, n)
	if p == nil {
		return nil
	}
	return scanNested{target, p}
}

// scanNested scans into a slice of slices. If it fails, it leaves the slice unchanged.
type scanNested struct {
	typ  reflect.Type    // of a pointer to the slice
	next pgtype.ScanPlan // scans into a *nested
}

func (p scanNested) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	n := newNested(p.typ.Elem())
	if err := p.next.Scan(src, n); err != nil {
		return err
	}
	result := reflect.Zero(n.typ)
	switch {
	case n.flat.Len() > 0:
		result = nest(n.typ, n.dims, n.flat)
	case n.dims != nil:
		result = reflect.MakeSlice(n.typ, 0, 0)
	}
	reflect.ValueOf(target).Elem().Set(result)
	return nil
}
