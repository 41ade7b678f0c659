package pgxbench

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

// Operations per turn, enough to make the cost of reading the clock negligible.
const (
	scalarTurn = 1000
	sliceTurn  = 100
)

// sliceLength is the length of the slices.
const sliceLength = 100

var formats = []struct {
	name string
	code int16
}{{"binary", pgtype.BinaryFormatCode}, {"text", pgtype.TextFormatCode}}

// versus runs a benchmark of each subject of a kind against the first one.
func (k kind) versus(b *testing.B, prefix string, d figures.Duel, open func(b *testing.B, s subject) figures.Side) {
	b.Helper()
	for _, s := range k.subjects {
		b.Run(fmt.Sprintf("%skind=%s/type=%s", prefix, k.name, s.label()), func(b *testing.B) {
			yardstick := open(b, k.subjects[0])
			d.Run(b, yardstick, open(b, s))
		})
	}
}

// BenchmarkEncode encodes an argument that is already an interface value, as in pgx,
// with a warm type map. The text format is that of the modes exec and
// simple_protocol, without the OID.
func BenchmarkEncode(b *testing.B) {
	for _, f := range formats {
		for _, k := range kinds {
			want := must(none.newMap().Encode(k.oid, f.code, k.subjects[0].value(0), nil))
			oid := k.oid
			if f.code == pgtype.TextFormatCode {
				oid, k = 0, k.named()
			}
			k.versus(b, "format="+f.name+"/", figures.Duel{Operations: scalarTurn, Unit: "op"}, func(b *testing.B, s subject) figures.Side {
				return encoding(b, s, oid, f.code, s.value(0), scalarTurn, want)
			})
		}
	}
}

// BenchmarkEncodeSlice encodes a slice of 100, such as the argument of = any($1).
func BenchmarkEncodeSlice(b *testing.B) {
	for _, k := range sliceKinds {
		want := must(none.newMap().Encode(k.array, pgtype.BinaryFormatCode, k.subjects[0].slice(sliceLength), nil))
		k.versus(b, "", figures.Duel{Operations: sliceTurn, Unit: "op"}, func(b *testing.B, s subject) figures.Side {
			return encoding(b, s, k.array, pgtype.BinaryFormatCode, s.slice(sliceLength), sliceTurn, want)
		})
	}
}

// encoding returns a side that encodes a value n times. The result must be equal to
// want, the yardstick's.
func encoding(b *testing.B, s subject, oid uint32, format int16, value any, n int, want []byte) figures.Side {
	b.Helper()
	m := s.extends().newMap()
	buf := make([]byte, 0, 4096)
	got, err := m.Encode(oid, format, value, buf)
	if err != nil {
		b.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		b.Fatalf("encoded as %q, want %q", got, want)
	}
	return figures.Side{Run: func() error {
		for range n {
			if _, err := m.Encode(oid, format, value, buf); err != nil {
				return err
			}
		}
		return nil
	}}
}

// BenchmarkScan scans a value, including planning, as for the first row of a result.
func BenchmarkScan(b *testing.B) {
	for _, f := range formats {
		for _, k := range kinds {
			src := must(none.newMap().Encode(k.oid, f.code, k.subjects[0].value(0), nil))
			k.versus(b, "format="+f.name+"/", figures.Duel{Operations: scalarTurn, Unit: "op"}, func(b *testing.B, s subject) figures.Side {
				return scanning(b, s, k.oid, f.code, src, s.target(), scalarTurn)
			})
		}
	}
}

// BenchmarkScanSlice scans an array of 100, including planning.
func BenchmarkScanSlice(b *testing.B) {
	for _, k := range sliceKinds {
		src := must(none.newMap().Encode(k.array, pgtype.BinaryFormatCode, k.subjects[0].slice(sliceLength), nil))
		k.versus(b, "", figures.Duel{Operations: sliceTurn, Unit: "op"}, func(b *testing.B, s subject) figures.Side {
			return scanning(b, s, k.array, pgtype.BinaryFormatCode, src, s.sliceTarget(), sliceTurn)
		})
	}
}

// scanning returns a side that scans src into target n times. The scanned value must
// encode to src again.
func scanning(b *testing.B, s subject, oid uint32, format int16, src []byte, target any, n int) figures.Side {
	b.Helper()
	m := s.extends().newMap()
	if err := m.Scan(oid, format, src, target); err != nil {
		b.Fatal(err)
	}
	back, err := m.Encode(oid, format, reflect.ValueOf(target).Elem().Interface(), nil)
	if err != nil {
		b.Fatal(err)
	}
	if !bytes.Equal(back, src) {
		b.Fatalf("scanned %q, which encodes to %q", src, back)
	}
	return figures.Side{Run: func() error {
		for range n {
			if err := m.Scan(oid, format, src, target); err != nil {
				return err
			}
		}
		return nil
	}}
}
