package pgxcodec_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// Planning, encoding and scanning in the binary format of bigint and uuid columns don't allocate.
func TestAllocations(t *testing.T) {
	m := newMap()
	for _, c := range members {
		if c.native() {
			c.testAllocations(t, m)
		}
	}
}

func (c member) testAllocations(t *testing.T, m *pgtype.Map) {
	// allocates checks the allocations of f, which gets values that are allocated already.
	allocates := func(what any, oid uint32, most float64, f func() error) {
		t.Helper()
		n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		})
		if n > most {
			t.Errorf("%T and OID %d: %v allocations, want %v at most", what, oid, n, most)
		}
	}
	buf := make([]byte, 0, 1024)
	holders := []any{newOf(c.v), newOf(c.null()), newOf(c.optional())}
	src := c.wire(binaryFormat)
	for _, value := range c.values() {
		allocates(value, c.oid, 0, func() error {
			_, err := m.Encode(c.oid, binaryFormat, value, buf)
			return err
		})
	}
	for _, target := range holders {
		allocates(target, c.oid, 0, func() error { return m.Scan(c.oid, binaryFormat, src, target) })
	}
	one, array, pointers := c.slice(c.v), fill(c.in("IDs"), c.v), sliceOf(ptr(c.v), nil)
	for _, value := range []any{c.slice(c.v, c.v), ptr(one), array, ptr(array), pointers, ptr(pointers)} {
		allocates(value, c.array, 0, func() error {
			_, err := m.Encode(c.array, binaryFormat, value, buf)
			return err
		})
	}

	// Scans into targets of several types in turn don't allocate either.
	allocates(holders, c.oid, 0, func() error {
		var errs error
		for _, target := range holders {
			errs = errors.Join(errs, m.Scan(c.oid, binaryFormat, src, target))
		}
		return errs
	})

	// A scan into a slice allocates the slice and its header, and both once more for the
	// pointers' targets.
	ids := encode(t, m, c.array, binaryFormat, c.slice(c.v, c.v, c.v))
	for target, want := range map[any]float64{newOf(one): 2, newOf(array): 2, newOf(pointers): 4} {
		allocates(target, c.array, want, func() error { return m.Scan(c.array, binaryFormat, ids, target) })
	}

	// A scan into **V allocates the new V.
	target := newOf(ptr(c.v))
	n := testing.AllocsPerRun(100, func() {
		if err := m.Scan(c.oid, binaryFormat, src, target); err != nil {
			t.Fatal(err)
		}
	})
	if n != 1 {
		t.Errorf("%T: %v allocations, want 1", target, n)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
