package pgxcodec_test

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// Planning, encoding and scanning don't allocate, except for a struct: its Value and Scan
// box the ID.
func TestAllocations(t *testing.T) {
	m := newMap()
	for _, c := range members {
		c.allocations(t, m)
	}
}

func (o of[V]) allocations(t *testing.T, m *pgtype.Map) {
	none := func(what any, oid uint32, format int16, f func() error) {
		t.Helper()
		n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 && !o.embeds() || n > 7 {
			t.Errorf("%T and OID %d, format %d: %v allocations", what, oid, format, n)
		}
	}
	buf := make([]byte, 0, 1024)
	for _, format := range []int16{binaryFormat, textFormat} {
		src := o.wire(format)
		for _, value := range o.values() {
			none(value, o.oid, format, func() error {
				_, err := m.Encode(o.oid, format, value, buf)
				return err
			})
		}
		for _, target := range []any{new(V), new(sql.Null[V]), new(sqltypes.Optional[V])} {
			none(target, o.oid, format, func() error { return m.Scan(o.oid, format, src, target) })
		}
	}
	if o.embeds() {
		return
	}
	for _, value := range []any{[]V{o.v, o.v}, &[]V{o.v}, sqltypes.Array[V]{o.v}, &sqltypes.Array[V]{o.v}, []*V{&o.v, nil}, &[]*V{&o.v}} {
		none(value, o.array, binaryFormat, func() error {
			_, err := m.Encode(o.array, binaryFormat, value, buf)
			return err
		})
	}

	// Scans into targets of several types in turn don't allocate either.
	src := o.wire(binaryFormat)
	targets := []any{new(V), new(sql.Null[V]), new(sqltypes.Optional[V])}
	none(targets, o.oid, binaryFormat, func() error {
		var errs error
		for _, target := range targets {
			errs = errors.Join(errs, m.Scan(o.oid, binaryFormat, src, target))
		}
		return errs
	})

	// A scan into a slice allocates the slice and its header, and both once more for the
	// pointers' targets.
	src = must(m.Encode(o.array, binaryFormat, []V{o.v, o.v, o.v}, nil))
	for target, want := range map[any]float64{new([]V): 2, new(sqltypes.Array[V]): 2, new([]*V): 4} {
		n := testing.AllocsPerRun(100, func() {
			if err := m.Scan(o.array, binaryFormat, src, target); err != nil {
				t.Fatal(err)
			}
		})
		if n > want {
			t.Errorf("%T: %v allocations, want %v", target, n, want)
		}
	}

	// A scan into **V allocates the new V.
	var p *V
	src = o.wire(binaryFormat)
	n := testing.AllocsPerRun(100, func() {
		if err := m.Scan(o.oid, binaryFormat, src, &p); err != nil {
			t.Fatal(err)
		}
	})
	if n != 1 {
		t.Errorf("%T: %v allocations, want 1", p, n)
	}
}

// embeds reports whether V is a struct that embeds an ID, or sqltypes.Text of one.
func (o of[V]) embeds() bool {
	t := reflect.TypeFor[V]()
	for t.Kind() == reflect.Struct && !t.Field(0).Anonymous {
		t = t.Field(0).Type
	}
	return t.Kind() == reflect.Struct
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
