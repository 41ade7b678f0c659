package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// For any bytes from the server, the codec accepts the same values as the type's Scan
// does through a database/sql driver. If it fails, it leaves the destination unchanged.
func FuzzWire(f *testing.F) {
	for _, c := range members {
		for _, v := range c.values()[:1] {
			m := newMap()
			oid, array := c.column()
			for _, format := range []int16{binaryFormat, textFormat} {
				src, err := m.Encode(oid, format, v, nil)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(src)
				slice := reflect.Append(reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 0, 1), reflect.ValueOf(v)).Interface()
				if src, err = m.Encode(array, format, slice, nil); err != nil {
					f.Fatal(err)
				}
				f.Add(src)
			}
		}
	}
	f.Add([]byte("00"))                                            // a leading zero
	f.Add([]byte("+1"))                                            // ParseInt takes a sign
	f.Add([]byte("{NULL}"))                                        //
	f.Add([]byte("{6272706b-3471-3732-7877-66326d36336c"))         // uuid.ParseBytes accepts any character before and after
	f.Add([]byte("urn:uuid:6272706b-3471-3732-7877-66326d36336c")) // uuid.ParseBytes accepts this
	f.Add([]byte("6272706B-3471-3732-7877-66326D36336C"))          // upper case
	f.Fuzz(func(t *testing.T, src []byte) {
		m := newMap()
		for _, c := range members {
			c.fuzz(t, m, src)
		}
	})
}

func (o of[V]) fuzz(t *testing.T, m *pgtype.Map, src []byte) {
	for _, format := range []int16{binaryFormat, textFormat} {
		var got, want, zero V
		err := m.Scan(o.oid, format, src, &got)
		wantErr := driverScan(o.oid, format, src, &want)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Fatalf("%T from %q of OID %d, format %d: %v, %v; through a driver %v, %v", got, src, o.oid, format, got, err, want, wantErr)
		}
		if err != nil && got != zero {
			t.Fatalf("%T from %q: failed with %v, but changed its destination", got, src, err)
		}
		if err == nil {
			// The ID is written back as it was read, except for notations that no server uses.
			back, err := m.Encode(o.oid, format, got, nil)
			if err != nil {
				t.Fatal(err)
			}
			var again V
			if err := m.Scan(o.oid, format, back, &again); err != nil || again != got {
				t.Fatalf("%T from %q, then %q: %v, %v", got, src, back, again, err)
			}
			if format == binaryFormat && o.oid == pgtype.Int8OID && !bytes.Equal(back, src) {
				t.Fatalf("%T from %q: written back as %q", got, src, back)
			}
		}
		// Types that hold a V accept the same bytes, or stay unchanged.
		valid := err == nil
		whole(t, m, o.oid, format, src, valid, &o.v, &got)
		whole(t, m, o.oid, format, src, valid, sql.Null[V]{V: o.v, Valid: true}, sql.Null[V]{V: got, Valid: true})
		whole(t, m, o.oid, format, src, valid, sqltypes.OptionalOf(o.v), sqltypes.OptionalOf(got))

		var ids []V
		valid = m.Scan(o.array, format, src, &ids) == nil
		whole(t, m, o.array, format, src, valid, []V{o.v}, ids)
		// pgx's own array code reads the same IDs.
		var flat pgtype.FlatArray[V]
		flatErr := m.Scan(o.array, format, src, &flat)
		if valid && (flatErr != nil || !slices.Equal(ids, flat)) {
			t.Fatalf("%T from %q: %v, pgx reads %v, %v", ids, src, ids, flat, flatErr)
		}
		if !valid && flatErr == nil && len(flat) > 0 {
			t.Fatalf("%T from %q: an error, pgx reads %v", ids, src, flat)
		}
		// An Array reads the same IDs, if there is one dimension.
		var array sqltypes.Array[V]
		if arrayErr := m.Scan(o.array, format, src, &array); arrayErr == nil && !slices.Equal(array, ids) || arrayErr != nil && array != nil {
			t.Fatalf("%T from %q: %v, %v, want %v", array, src, array, arrayErr, ids)
		}
		var pointers []*V
		valid = m.Scan(o.array, format, src, &pointers) == nil
		whole(t, m, o.array, format, src, valid, []*V{&o.v, nil}, pointers)
		if valid {
			back, err := m.Encode(o.array, format, pointers, nil)
			var again []*V
			if err == nil {
				err = m.Scan(o.array, format, back, &again)
			}
			if err != nil || len(again) != len(pointers) || len(pointers) > 0 && !reflect.DeepEqual(again, pointers) {
				t.Fatalf("%T from %q, then %q: %v, %v", pointers, src, back, again, err)
			}
		}
	}
}

// whole checks that scanning src changes a destination from before to after, or leaves
// it unchanged if src isn't valid.
func whole[D any](t *testing.T, m *pgtype.Map, oid uint32, format int16, src []byte, valid bool, before, after D) {
	t.Helper()
	dst, want := before, before
	err := m.Scan(oid, format, src, &dst)
	if valid {
		want = after
	}
	if (err == nil) != valid || !reflect.DeepEqual(dst, want) {
		t.Fatalf("%T from %q of OID %d, format %d: %v, %v, want %v", dst, src, oid, format, dst, err, want)
	}
}

// driverScan calls dst.Scan with the value that a driver makes of a column's bytes.
func driverScan(oid uint32, format int16, src []byte, dst any) error {
	scanner := dst.(sql.Scanner)
	bad := errors.New("not of this column")
	switch {
	case oid == pgtype.Int8OID && format == binaryFormat:
		if len(src) != 8 {
			return bad
		}
		n, _ := strconv.ParseUint(hex.EncodeToString(src), 16, 64)
		return scanner.Scan(int64(n))
	case oid == pgtype.UUIDOID && format == binaryFormat:
		if len(src) != 16 {
			return bad
		}
		return scanner.Scan(uuid.UUID(src))
	case oid == pgtype.ByteaOID && format == textFormat:
		digits, ok := bytes.CutPrefix(src, []byte(`\x`))
		b, err := hex.DecodeString(string(digits))
		if !ok || err != nil {
			return bad
		}
		return scanner.Scan(b)
	case oid == pgtype.ByteaOID:
		return scanner.Scan(bytes.Clone(src))
	case oid == pgtype.TextOID || oid == pgtype.VarcharOID:
		if bytes.HasSuffix(src, []byte(" ")) { // Scan would drop them as padding
			return bad
		}
	}
	return scanner.Scan(string(src))
}
