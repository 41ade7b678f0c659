package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// For any bytes from the server, the codec accepts the same values as the type's Scan
// does through a database/sql driver. If it fails, it leaves the destination unchanged.
func FuzzWire(f *testing.F) {
	for i, c := range members {
		m := newMap()
		for _, format := range []int16{binaryFormat, textFormat} {
			src, err := m.Encode(c.oid, format, c.v, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), format == binaryFormat, src)
			if src, err = m.Encode(c.array, format, c.slice(c.v), nil); err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), format == binaryFormat, src)
		}
		f.Add(uint8(i), false, []byte("00"))                                            // a leading zero
		f.Add(uint8(i), false, []byte("+1"))                                            // ParseInt takes a sign
		f.Add(uint8(i), false, []byte("0 "))                                            // padding of text
		f.Add(uint8(i), false, []byte("{NULL}"))                                        //
		f.Add(uint8(i), false, []byte("{6272706b-3471-3732-7877-66326d36336c"))         // uuid.ParseBytes accepts any character before and after
		f.Add(uint8(i), false, []byte("urn:uuid:6272706b-3471-3732-7877-66326d36336c")) // uuid.ParseBytes accepts this
		f.Add(uint8(i), false, []byte("6272706B-3471-3732-7877-66326D36336C"))          // upper case
	}
	m := newMap()
	f.Fuzz(func(t *testing.T, i uint8, isBinary bool, src []byte) {
		format := textFormat
		if isBinary {
			format = binaryFormat
		}
		members[int(i)%len(members)].fuzz(t, m, format, src)
	})
}

func (c member) fuzz(t *testing.T, m *pgtype.Map, format int16, src []byte) {
	target, wantTarget := newOf(c.v), newOf(c.v)
	err := m.Scan(c.oid, format, src, target)
	wantErr := driverScan(c.oid, format, src, wantTarget)
	got, want := elem(target), elem(wantTarget)
	if got != want || (err == nil) != (wantErr == nil) {
		t.Fatalf("%T from %q of OID %d, format %d: %v, %v; through a driver %v, %v", got, src, c.oid, format, got, err, want, wantErr)
	}
	if err != nil && got != zero(c.typ) {
		t.Fatalf("%T from %q: failed with %v, but changed its destination", got, src, err)
	}
	if err == nil {
		// The ID is written back as it was read, except for notations that no server uses.
		back, err := m.Encode(c.oid, format, got, nil)
		if err != nil {
			t.Fatal(err)
		}
		again := newOf(c.v)
		if err := m.Scan(c.oid, format, back, again); err != nil || elem(again) != got {
			t.Fatalf("%T from %q, then %q: %v, %v", got, src, back, elem(again), err)
		}
		if format == binaryFormat && c.oid == pgtype.Int8OID && !bytes.Equal(back, src) {
			t.Fatalf("%T from %q: written back as %q", got, src, back)
		}
	}
	// Types that hold a V accept the same bytes, or stay unchanged.
	p := ptr(c.v)
	scan := func(after any) (any, bool) {
		dst := newOf(after)
		err := m.Scan(c.array, format, src, dst)
		return elem(dst), err == nil
	}
	valid := err == nil
	whole(t, m, c.oid, format, src, valid, p, ptr(got))
	whole(t, m, c.oid, format, src, valid, c.null(), fill(c.in("Null"), got, true))
	whole(t, m, c.oid, format, src, valid, c.optional(), fill(c.in("Optional"), got))

	ids, valid := scan(c.slice())
	whole(t, m, c.array, format, src, valid, c.slice(c.v), ids)
	// pgx's own array code reads the same IDs.
	named, namedValid := scan(fill(c.in("List")))
	if valid && (!namedValid || !sameIDs(ids, named)) {
		t.Fatalf("%T from %q: %v, pgx reads %v", ids, src, ids, named)
	}
	if !valid && namedValid && length(named) > 0 {
		t.Fatalf("%T from %q: an error, pgx reads %v", ids, src, named)
	}
	// An Array reads the same IDs, if there is one dimension.
	if array, arrayValid := scan(fill(c.in("IDs"))); arrayValid && !sameIDs(array, ids) || !arrayValid && !isNil(array) {
		t.Fatalf("%T from %q: %v, want %v", array, src, array, ids)
	}
	pointers, valid := scan(sliceOf(p))
	whole(t, m, c.array, format, src, valid, sliceOf(p, nil), pointers)
	if valid {
		back, err := m.Encode(c.array, format, pointers, nil)
		again := newOf(pointers)
		if err == nil {
			err = m.Scan(c.array, format, back, again)
		}
		if err != nil || length(elem(again)) != length(pointers) || length(pointers) > 0 && !reflect.DeepEqual(elem(again), pointers) {
			t.Fatalf("%T from %q, then %q: %v, %v", pointers, src, back, elem(again), err)
		}
	}
}

// sameIDs reports whether two slices have equal elements.
func sameIDs(a, b any) bool {
	if length(a) != length(b) {
		return false
	}
	for i := range length(a) {
		if at(a, i) != at(b, i) {
			return false
		}
	}
	return true
}

// whole checks that scanning src changes a destination from before to after, or leaves
// it unchanged if src isn't valid.
func whole(t *testing.T, m *pgtype.Map, oid uint32, format int16, src []byte, valid bool, before, after any) {
	t.Helper()
	dst, want := ptr(before), before
	err := m.Scan(oid, format, src, dst)
	if valid {
		want = after
	}
	if (err == nil) != valid || !reflect.DeepEqual(elem(dst), want) {
		t.Fatalf("%T from %q of OID %d, format %d: %v, %v, want %v", before, src, oid, format, elem(dst), err, want)
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
	}
	return scanner.Scan(string(src))
}

// Of any bytes, the codec reads what pgx does without it, into any shape of IDs, but for the
// differences in allowed.
func FuzzNested(f *testing.F) { fuzzShapes(f, 1, "int8[]", "uuid[]", "text[]", "bytea[]") }
func FuzzRange(f *testing.F)  { fuzzShapes(f, 12, "int8range", "int8multirange") }
func FuzzJSON(f *testing.F)   { fuzzShapes(f, 1, "json", "jsonb") }

// fuzzShapes seeds the fuzzer with each value of the columns, for this number of types and for
// the shapes that can hold the value: not for more, since go test runs all seeds.
func fuzzShapes(f *testing.F, types int, names ...string) {
	ours, plain := newMap(), pgtype.NewMap()
	var columns []columnType
	v := 0
	for _, c := range columnTypes {
		if !slices.Contains(names, c.name) {
			continue
		}
		for _, src := range wires(f, c) {
			if src.bytes == nil {
				continue // a seed can't be nil
			}
			for range types {
				for v = (v + 1) % len(differentialValues); c.home != "" && differentialValues[v].home != c.home; v = (v + 1) % len(differentialValues) {
				}
				for i, shape := range differentialValues[v].values {
					if d, _ := scanDifference(ours, plain, c, c.home, reflect.TypeOf(shape), src); d.err == nil {
						f.Add(uint8(len(columns)), uint8(v), uint8(i), src.format == binaryFormat, src.bytes)
					}
				}
			}
		}
		columns = append(columns, c)
	}
	for _, text := range []string{"0000", "-1", "\vnull", "{}", "1000 "} { // found differences
		f.Add(uint8(0), uint8(v), uint8(0), false, []byte(text))
	}
	digits := slices.IndexFunc(differentialValues, func(v differentialValue) bool {
		return reflect.TypeOf(v.values[0]) == reflect.TypeFor[sqltypes.Text[idtype.UID60Of[shop]]]()
	})
	for shape := range differentialValues[digits].values {
		for _, text := range []string{"1000", "null "} { // 1000 is an integer in JSON, and base 64 in text
			f.Add(uint8(0), uint8(digits), uint8(shape), false, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, column, value, shape uint8, isBinary bool, src []byte) {
		c := columns[int(column)%len(columns)]
		v := differentialValues[int(value)%len(differentialValues)]
		target := reflect.TypeOf(v.values[int(shape)%len(v.values)])
		s := source{textFormat, src}
		if isBinary {
			if s.format = binaryFormat; c.array && hollow(src) {
				return
			}
		}
		differs := func(ours, plain *pgtype.Map) bool {
			d, same := scanDifference(ours, plain, c, v.home, target, s)
			text := bytes.TrimPrefix(src, []byte{1}) // the version of jsonb
			switch {
			case same:
				return false
			case d.isJSON() && d.err == nil:
				// The codec reads an ID from its JSON.
				got := reflect.ValueOf(d.value)
				for got.Elem().Kind() == reflect.Pointer && !got.Elem().IsNil() && strings.Contains(target.String(), "*sql.Null[") {
					got = got.Elem()
				}
				if strings.HasPrefix(got.Type().String(), "*sql.Null[") { // which json doesn't know
					got = got.Elem().Field(0).Addr()
				}
				want := reflect.New(got.Type().Elem())
				return json.Unmarshal(text, want.Interface()) != nil || !reflect.DeepEqual(got.Interface(), want.Interface())
			case slices.ContainsFunc(allowed, func(a allowance) bool { return a.is(d) }):
				return false
			case d.isJSON() && d.refuses():
				return json.Unmarshal(text, newOf(v.values[0])) == nil // the ID's own JSON
			}
			return d.isJSON() && json.Valid(text) || !d.refuses() && !d.adds() || written(plain, d)
		}
		// A map remembers plans.
		if differs(ours, plain) && differs(newMap(), pgtype.NewMap()) {
			d, _ := scanDifference(newMap(), pgtype.NewMap(), c, v.home, target, s)
			t.Error(d)
		}
	})
}

// written reports whether pgx writes the same bytes for the value that it reads from them. Of
// others, which no server writes, pgx and the codec don't read the same.
func written(plain *pgtype.Map, d difference) bool {
	var v any
	if plain.Scan(d.column.oid, d.format, d.src, &v) != nil {
		return false
	}
	back, err := plain.Encode(d.column.oid, d.format, v, nil)
	return err == nil && bytes.Equal(back, d.src)
}

// hollow reports whether an array in the binary format has a dimension that is longer than its
// bytes, or a dimension of length 0 beside another one, which no server sends. If another dimension
// isn't positive, pgx makes slices of this length for [][]T, until memory ends.
func hollow(src []byte) bool {
	for i := 12; i+4 <= len(src) && i < 12+8*6; i += 8 {
		n, dims := binary.BigEndian.Uint32(src[i:]), int(binary.BigEndian.Uint32(src))
		if i < 12+8*dims && (n > uint32(len(src)) || n == 0 && dims > 1) {
			return true
		}
	}
	return false
}
