package pgxcodec_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// cube returns a slice of slices of slices with these lengths.
func (c member) cube(lengths [3]int, element func(i int) any) any {
	var planes []any
	n := 0
	for range lengths[0] {
		var rows []any
		for range lengths[1] {
			var ids []any
			for range lengths[2] {
				ids = append(ids, element(n))
				n++
			}
			rows = append(rows, sliceOf(ids...))
		}
		planes = append(planes, sliceOf(rows...))
	}
	return sliceOf(planes...)
}

// Slices of slices are arrays of several dimensions, with the elements in their order.
func (c member) testNested(t *testing.T, m *pgtype.Map, format int16) {
	p := ptr(c.v)
	// either returns one of two elements, so that the order matters.
	either := func(a, b any) func(i int) any {
		return func(i int) any {
			if i*i%7 < 3 {
				return a
			}
			return b
		}
	}
	for _, lengths := range [][3]int{{2, 3, 2}, {1, 2, 4}, {3, 1, 2}, {2, 2, 3}, {1, 1, 1}} {
		roundTrip(t, m, c.array, format, c.cube(lengths, either(c.optional(), zero(c.in("Optional")))))
		roundTrip(t, m, c.array, format, c.cube(lengths, either(p, c.none())))
	}
	ids := c.slice(c.v, c.v)
	for _, v := range []any{sliceOf(ids, ids, ids), ptr(sliceOf(ids)), sliceOf(sliceOf(p, nil), sliceOf(p, p)), fill(c.in("Matrix"), ids, ids), fill(c.in("Slices"), ids),
		fill(reflect.TypeOf(sliceOf(ids))), zero(reflect.TypeOf(sliceOf(ids)))} {
		roundTrip(t, m, c.array, format, v)
	}

	// A failed scan leaves its target unchanged.
	square := encode(t, m, c.array, format, sliceOf(sliceOf(p, p), sliceOf(p, nil)))
	for _, before := range []any{sliceOf(ids), c.cube([3]int{1, 1, 1}, func(int) any { return c.v })} {
		for _, src := range [][]byte{square, square[:len(square)-1], encode(t, m, c.array, format, ids), []byte("{!}"), {0, 0, 0, 1}, {}} {
			target := ptr(before)
			if err := m.Scan(c.array, format, src, target); err == nil || !reflect.DeepEqual(elem(target), before) {
				t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", before, src, c.array, format, elem(target), err)
			}
		}
	}

	// The lengths are compared each time.
	for _, v := range []any{sliceOf(ids, ids), sliceOf(ids, c.slice(c.v)), sliceOf(c.slice(c.v), ids), sliceOf(ids, ids, c.slice()), sliceOf(c.slice(), ids),
		sliceOf(sliceOf(ids, ids), sliceOf(ids)), sliceOf(sliceOf(ids), sliceOf(c.slice(c.v)))} {
		for _, m := range []*pgtype.Map{m, newMap()} {
			b, err := m.Encode(c.array, format, v, nil)
			if isRegular := reflect.DeepEqual(v, sliceOf(ids, ids)); isRegular != (err == nil) || err != nil && !strings.Contains(err.Error(), "make the slices of a dimension equally long") {
				t.Errorf("%v as OID %d, format %d: %q, %v", v, c.array, format, b, err)
			}
		}
	}
}

// The error for slices of different lengths, and for another number of dimensions.
func TestNestedErrors(t *testing.T) {
	m := newMap()
	_, err := m.Encode(pgtype.Int8ArrayOID, binaryFormat, [][][]idtype.Snowflake{{{1, 2}}, {{3}}}, nil)
	const ragged = "pgxcodec: encode [][][]idtype.Snowflake: want slices of 2 elements in dimension 3, as the first one has, got 1; make the slices of a dimension equally long"
	if err == nil || !strings.HasSuffix(err.Error(), ragged) {
		t.Errorf("got  %v\nwant %s", err, ragged)
	}
	var ids [][]idtype.Snowflake
	err = m.Scan(pgtype.Int8ArrayOID, textFormat, []byte("{{{1},{2}}}"), &ids)
	const dimensions = "pgxcodec: scan an array into [][]idtype.Snowflake: want 2 dimensions, got the lengths [1 2 1]; scan it into a slice with as many dimensions: invalid syntax"
	if !errors.Is(err, idtype.ErrSyntax) || !strings.Contains(err.Error(), dimensions) {
		t.Errorf("got  %v\nwant %s", err, dimensions)
	}
}

// No header of an array makes the codec reserve memory without elements.
func TestNestedHeader(t *testing.T) {
	m := newMap()
	for _, lengths := range [][]uint32{{1 << 30, 0}, {0, 1 << 30}, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, {0xffffffff, 0xffffffff}, {0xffffffff, 0}, {1 << 31, 2}} {
		src := []uint32{uint32(len(lengths)), 0, pgtype.Int8OID}
		for _, l := range lengths {
			src = append(src, l, 1)
		}
		var b []byte
		for _, v := range append(src, 8, 0, 1) { // one element
			b = append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
		ids := [][]idtype.Snowflake{{9}}
		if err := m.Scan(pgtype.Int8ArrayOID, binaryFormat, b, &ids); err == nil || !reflect.DeepEqual(ids, [][]idtype.Snowflake{{9}}) {
			t.Errorf("lengths %v: %v, %v, want an error", lengths, ids, err)
		}
	}
}
