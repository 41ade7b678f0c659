package pgxcodec_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// Planning, encoding and scanning don't allocate.
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
		if n > 0 {
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
	for _, value := range []any{[]V{o.v, o.v}, &[]V{o.v}, sqltypes.Array[V]{o.v}, &sqltypes.Array[V]{o.v}, []*V{&o.v, nil}, &[]*V{&o.v}} {
		none(value, o.array, binaryFormat, func() error {
			_, err := m.Encode(o.array, binaryFormat, value, buf)
			return err
		})
	}

	// A scan into a slice allocates the slice, and once more for pointers' targets.
	src := must(m.Encode(o.array, binaryFormat, []V{o.v, o.v, o.v}, nil))
	for target, want := range map[any]float64{new([]V): 1, new(sqltypes.Array[V]): 1, new([]*V): 2} {
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
