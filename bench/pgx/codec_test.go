package pgxbench

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

// Turns are long enough to make the cost of reading the clock negligible.
var (
	one  = figures.Duel{Operations: 1000, Unit: "op"}
	many = figures.Duel{Operations: 100, Unit: "op"}
)

// sliceLength is the length of the slices.
const sliceLength = 100

// binary is the format of the values.
const binary = pgtype.BinaryFormatCode

// BenchmarkEncode encodes an argument that is already an interface value, as in pgx,
// with a warm type map.
func BenchmarkEncode(b *testing.B) {
	for _, k := range kinds {
		want := k.encode(k.oid, k.subjects[0].value(0))
		k.versus(b, "format=binary/", one, func(b *testing.B, s subject) figures.Side {
			return encoding(b, s, k.oid, s.value(0), one.Operations, want)
		})
	}
}

// BenchmarkEncodeSlice encodes a slice of 100, such as the argument of = any($1).
func BenchmarkEncodeSlice(b *testing.B) {
	for _, k := range sliceKinds {
		want := k.encode(k.array, k.subjects[0].slice(sliceLength))
		k.versus(b, "", many, func(b *testing.B, s subject) figures.Side {
			return encoding(b, s, k.array, s.slice(sliceLength), many.Operations, want)
		})
	}
}

// encode returns a value of the yardstick as bytes.
func (k kind) encode(oid uint32, value any) []byte {
	return must(pgtype.NewMap().Encode(oid, binary, value, nil))
}

// encoding returns a side that encodes a value n times. The result must be equal to
// want, the yardstick's.
func encoding(b *testing.B, s subject, oid uint32, value any, n int, want []byte) figures.Side {
	b.Helper()
	m := pgtype.NewMap()
	s.register(m)
	buf := make([]byte, 0, 4096)
	if got, err := m.Encode(oid, binary, value, buf); err != nil || !bytes.Equal(got, want) {
		b.Fatalf("encoded as %q, want %q: %v", got, want, err)
	}
	return figures.Side{Run: func() error {
		for range n {
			if _, err := m.Encode(oid, binary, value, buf); err != nil {
				return err
			}
		}
		return nil
	}}
}

// BenchmarkScan scans a value, including planning, as for the first row of a result.
func BenchmarkScan(b *testing.B) {
	for _, k := range kinds {
		src := k.encode(k.oid, k.subjects[0].value(0))
		k.versus(b, "format=binary/", one, func(b *testing.B, s subject) figures.Side {
			return scanning(b, s, k.oid, src, s.target(), one.Operations)
		})
	}
}

// BenchmarkScanSlice scans an array of 100, including planning.
func BenchmarkScanSlice(b *testing.B) {
	for _, k := range sliceKinds {
		src := k.encode(k.array, k.subjects[0].slice(sliceLength))
		k.versus(b, "", many, func(b *testing.B, s subject) figures.Side {
			return scanning(b, s, k.array, src, s.sliceTarget(), many.Operations)
		})
	}
}

// scanning returns a side that scans src into target n times. The scanned value must
// encode to src again.
func scanning(b *testing.B, s subject, oid uint32, src []byte, target any, n int) figures.Side {
	b.Helper()
	m := pgtype.NewMap()
	s.register(m)
	if err := m.Scan(oid, binary, src, target); err != nil {
		b.Fatal(err)
	}
	back, err := m.Encode(oid, binary, reflect.ValueOf(target).Elem().Interface(), nil)
	if err != nil || !bytes.Equal(back, src) {
		b.Fatalf("scanned %q, which encodes to %q: %v", src, back, err)
	}
	return figures.Side{Run: func() error {
		for range n {
			if err := m.Scan(oid, binary, src, target); err != nil {
				return err
			}
		}
		return nil
	}}
}
