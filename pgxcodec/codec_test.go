package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

const (
	textFormat   = int16(pgtype.TextFormatCode)
	binaryFormat = int16(pgtype.BinaryFormatCode)
)

// The caller's own ID types.
type (
	orderID    struct{ idtype.Snowflake }
	visitID    struct{ idtype.Spread64 }
	customerID struct{ idtype.Sno }
)

// Models of typed keys.
type (
	shop     struct{}
	customer struct{}
	visitor  struct{}
)

func (shop) IDPrefix() string     { return "shop" }
func (customer) IDPrefix() string { return "cus" }
func (customer) IDMeta() byte     { return customerMeta }

const customerMeta = 'c'

var taggedSno = sno.WithMeta(customerMeta)

func newMap() *pgtype.Map {
	m := pgtype.NewMap()
	pgxcodec.Register(m)
	return m
}

func encode(t *testing.T, m *pgtype.Map, oid uint32, format int16, value any) []byte {
	t.Helper()
	b, err := m.Encode(oid, format, value, []byte{})
	if err != nil {
		t.Errorf("%T into OID %d, format %d: %v", value, oid, format, err)
	}
	return b
}

// viaCodec checks that a plan is one of this package's, not one that pgx found
// without it.
func viaCodec(t *testing.T, what any, plan any) {
	t.Helper()
	if name := fmt.Sprintf("%T", plan); !strings.HasPrefix(name, "*pgxcodec.") && !strings.HasPrefix(name, "pgxcodec.") {
		t.Errorf("%T: the plan is %s", what, name)
	}
}

// A member is an ID in its column type, encoded in both wire formats.
type member struct {
	oid, array uint32
	family
	binary, text string
}

var (
	members = []member{
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(snowflake), "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(snowflakeSI), "\x00\x1f\xff\xff\xff\xff\xff\xff", "9007199254740991"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(uid60), "\x00\x27\x69\x2f\x10\x06\x1c\x62", "11093174944930914"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(spread64), "\xcb\x54\xec\xf2\x84\x0a\x00\x15", "-3795148059624996843"},
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, idFamily(sno), "brpk4q72xwf2m63l", "6272706b-3471-3732-7877-66326d36336c"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(idtype.SnowflakeOf[shop](snowflake)), "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(idtype.SnowflakeSIOf[visitor](snowflakeSI)), "\x00\x1f\xff\xff\xff\xff\xff\xff", "9007199254740991"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(idtype.UID60Of[shop](uid60)), "\x00\x27\x69\x2f\x10\x06\x1c\x62", "11093174944930914"},
		{pgtype.Int8OID, pgtype.Int8ArrayOID, idFamily(idtype.Spread64Of[visitor](spread64)), "\xcb\x54\xec\xf2\x84\x0a\x00\x15", "-3795148059624996843"},
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, idFamily(idtype.SnoOf[visitor](sno)), "brpk4q72xwf2m63l", "6272706b-3471-3732-7877-66326d36336c"},
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, idFamily(idtype.SnoOf[customer](taggedSno)), taggedSno.String(), taggedSno.UUID().String()},
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, idFamily(uuid7), "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{pgtype.UUIDOID, pgtype.UUIDArrayOID, idFamily(idtype.UUIDOf[shop](uuid7)), "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{pgtype.ByteaOID, pgtype.ByteaArrayOID, idFamily(sqltypes.SnoBytesOf(sno)), "\x4e\x6f\x21\x60\xa0\xff\x9a\x0a\x10\x33", `\x4e6f2160a0ff9a0a1033`},
	}
	texts = []struct{ oid, array uint32 }{
		{pgtype.TextOID, pgtype.TextArrayOID},
		{pgtype.VarcharOID, pgtype.VarcharArrayOID},
		{pgtype.BPCharOID, pgtype.BPCharArrayOID},
	}
)

func init() {
	inText := []family{
		idFamily(sqltypes.TextOf(snowflake)),
		idFamily(sqltypes.TextOf(snowflakeSI)),
		idFamily(sqltypes.TextOf(uid60)),
		idFamily(sqltypes.TextOf(spread64)),
		idFamily(sqltypes.TextOf(sno)),
		idFamily(sqltypes.TextOf(uuid7)),
		idFamily(sqltypes.TextOf(idtype.UUIDOf[shop](uuid7))),
		idFamily(sqltypes.TextOf(idtype.SnowflakeOf[shop](snowflake))),
		idFamily(sqltypes.TextOf(idtype.UID60Of[visitor](uid60))),
		idFamily(sqltypes.TextOf(idtype.SnoOf[customer](taggedSno))),
	}
	for _, c := range texts {
		for _, f := range inText {
			text := must(f.v.(driver.Valuer).Value()).(string) // without the prefix of a typed key
			members = append(members, member{c.oid, c.array, f, text, text})
		}
	}
}

// native reports whether the codec encodes and scans the ID itself in the binary format, not by
// its Value and Scan.
func (c member) native() bool { return c.oid == pgtype.Int8OID || c.oid == pgtype.UUIDOID }

// wire returns the encoded value in a format.
func (c member) wire(format int16) []byte {
	if format == binaryFormat {
		return []byte(c.binary)
	}
	return []byte(c.text)
}

// values returns the ID in the types that hold it: V, *V, **V, sql.Null, its pointer,
// sqltypes.Optional and its pointer.
func (f family) values() []any {
	p := ptr(f.v)
	return []any{f.v, p, ptr(p), f.null(), ptr(f.null()), f.optional(), ptr(f.optional())}
}

func TestMembers(t *testing.T) {
	for _, c := range members {
		m := newMap()
		for _, format := range []int16{binaryFormat, textFormat} {
			c.testEncode(t, m, format)
			c.testScan(t, m, format)
			c.testSlices(t, m, format)
			c.testArrays(t, m, format)
			c.testNested(t, m, format)
		}
	}
}

func (c member) testEncode(t *testing.T, m *pgtype.Map, format int16) {
	want := c.wire(format)
	for _, value := range c.values() {
		viaCodec(t, value, m.PlanEncode(c.oid, format, value))
		if got := encode(t, m, c.oid, format, value); !bytes.Equal(got, want) {
			t.Errorf("%T as %d, format %d: %q, want %q", value, c.oid, format, got, want)
		}
		// Encode appends to the buffer.
		if got, err := m.Encode(c.oid, format, value, []byte("x")); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%T as %d, format %d: appends %q, %v", value, c.oid, format, got, err)
		}
	}
	pointer, null, optional := c.none(), c.in("Null"), c.in("Optional")
	for _, value := range []any{nil, pointer, ptr(pointer), zero(reflect.TypeOf(ptr(pointer))), fill(null, c.v), ptr(zero(null)), zero(reflect.PointerTo(null)),
		zero(optional), ptr(zero(optional)), zero(reflect.PointerTo(optional))} {
		if got := encode(t, m, c.oid, format, value); got != nil {
			t.Errorf("%T as %d, format %d: %q, want NULL", value, c.oid, format, got)
		}
	}
}

func (c member) testScan(t *testing.T, m *pgtype.Map, format int16) {
	want := c.wire(format)
	pointer, noNull, noOptional := c.none(), zero(c.in("Null")), zero(c.in("Optional"))
	c.scans(t, m, format, want, zero(c.typ), c.v)
	c.scans(t, m, format, want, pointer, ptr(c.v))
	c.scans(t, m, format, want, noNull, c.null())
	c.scans(t, m, format, want, noOptional, c.optional())
	c.scans(t, m, format, nil, ptr(c.v), pointer)
	c.scans(t, m, format, nil, c.null(), noNull)
	c.scans(t, m, format, nil, c.optional(), noOptional)
	for _, v := range []any{c.v, pointer, noNull, noOptional} {
		target := newOf(v)
		viaCodec(t, target, m.PlanScan(c.oid, format, target))
	}
	// pgx dereferences other pointers and asks the codec for a plan again.
	c.scans(t, m, format, nil, ptr(ptr(c.v)), zero(reflect.TypeOf(ptr(pointer))))
	c.scans(t, m, format, want, zero(reflect.TypeOf(ptr(pointer))), ptr(ptr(c.v)))
	c.scans(t, m, format, want, zero(reflect.TypeOf(ptr(noOptional))), ptr(c.optional()))

	// Failures leave the destination unchanged.
	c.fails(t, m, format, nil, idtype.ErrNull, c.v)
	for _, src := range [][]byte{{}, {0xff}, append([]byte("##"), want...), append(want[:len(want):len(want)], '#'), bytes.Repeat([]byte{0xfe}, len(want)+3), bytes.Repeat([]byte("z"), 500)} {
		for _, before := range []any{c.v, ptr(c.v), c.null(), c.optional()} {
			c.fails(t, m, format, src, nil, before)
		}
	}
}

// scans checks that a scan changes a destination from before to want.
func (c member) scans(t *testing.T, m *pgtype.Map, format int16, src []byte, before, want any) {
	t.Helper()
	dst := ptr(before)
	if err := m.Scan(c.oid, format, src, dst); err != nil || !reflect.DeepEqual(elem(dst), want) {
		t.Errorf("%T from %q of OID %d, format %d: %v, %v, want %v", before, src, c.oid, format, elem(dst), err, want)
	}
}

// fails checks that a scan fails and leaves its destination unchanged, and what it points to.
func (c member) fails(t *testing.T, m *pgtype.Map, format int16, src []byte, want error, before any) {
	t.Helper()
	dst := ptr(before)
	err := m.Scan(c.oid, format, src, dst)
	if err == nil || want != nil && !errors.Is(err, want) || elem(dst) != before || reflect.TypeOf(before).Kind() == reflect.Pointer && elem(before) != c.v {
		t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", before, src, c.oid, format, elem(dst), err)
	}
}

func (c member) testSlices(t *testing.T, m *pgtype.Map, format int16) {
	type values = pgtype.FlatArray[any] // as pgx encodes arrays itself
	p, null, optional := ptr(c.v), c.null(), c.optional()
	none, noOptional := zero(c.in("Null")), zero(c.in("Optional"))
	ids, pointers := c.slice(c.v, nil, c.v), sliceOf(p, nil, p)
	noIDs, noPointers, noArray := zero(reflect.TypeOf(ids)), zero(reflect.TypeOf(pointers)), zero(c.in("IDs"))
	for _, x := range []struct{ value, same any }{
		{ids, values{c.v, zero(c.typ), c.v}},
		{ptr(ids), pgtype.Array[any]{Elements: values{c.v, zero(c.typ), c.v}, Dims: []pgtype.ArrayDimension{{Length: 3, LowerBound: 1}}, Valid: true}},
		{pointers, values{p, c.none(), p}},
		{ptr(pointers), values{null, none, null}},
		{pointers, values{optional, noOptional, optional}},
		{pointers, sliceOf(optional, noOptional, optional)},
		{fill(c.in("IDs"), c.v, nil, c.v), ids}, {noArray, nil}, {zero(reflect.TypeOf(ptr(noArray))), nil},
		{noIDs, nil}, {ptr(noIDs), nil}, {zero(reflect.TypeOf(ptr(noIDs))), nil},
		{noPointers, nil}, {ptr(noPointers), nil}, {zero(reflect.TypeOf(ptr(noPointers))), nil},
	} {
		if x.same != nil && c.native() && format == binaryFormat {
			viaCodec(t, x.value, m.PlanEncode(c.array, format, x.value))
		}
		got, want := encode(t, m, c.array, format, x.value), encode(t, m, c.array, format, x.same)
		if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%T as %d, format %d: %q, want %q", x.value, c.array, format, got, want)
		}
	}
	for _, v := range []any{ids, pointers, c.slice(), sliceOf(p), fill(reflect.TypeOf(pointers)), noIDs, noPointers, sliceOf(null, none), sliceOf(optional, noOptional)} {
		roundTrip(t, m, c.array, format, v)
	}

	// Arrays that []V can't hold: with a NULL, or malformed.
	withNull := encode(t, m, c.array, format, pointers)
	before := ptr(c.slice(c.v))
	for _, src := range [][]byte{withNull, encode(t, m, c.array, format, ids)[:30], []byte("{!}"), {0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff}, {}} {
		if err := m.Scan(c.array, format, src, before); err == nil || !reflect.DeepEqual(elem(before), c.slice(c.v)) {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", elem(before), src, c.array, format, elem(before), err)
		}
	}
	if err := m.Scan(c.array, format, withNull, before); !errors.Is(err, idtype.ErrNull) {
		t.Errorf("%T from an array with NULL: %v", elem(before), err)
	}
}

// A sqltypes.Array is written and read like a slice, but has one dimension.
func (c member) testArrays(t *testing.T, m *pgtype.Map, format int16) {
	array, optionals, optional := c.in("IDs"), c.in("OptionalIDs"), c.optional()
	for _, v := range []any{fill(array, c.v, c.v), fill(array), zero(array), fill(optionals, optional, nil), zero(optionals)} {
		roundTrip(t, m, c.array, format, v)
	}
	nested := encode(t, m, c.array, format, pgtype.Array[any]{Elements: []any{c.v, c.v}, Dims: []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}, {Length: 1, LowerBound: 1}}, Valid: true})
	null := encode(t, m, c.array, format, sliceOf(ptr(c.v), nil))
	for _, src := range [][]byte{nested, null, []byte("{!}"), {0, 0, 0, 1}, {}} {
		before := fill(array, c.v)
		ids, optionals := ptr(before), ptr(fill(optionals, optional))
		if err := m.Scan(c.array, format, src, ids); err == nil || !reflect.DeepEqual(elem(ids), before) {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", before, src, c.array, format, elem(ids), err)
		}
		if err := m.Scan(c.array, format, src, optionals); bytes.Equal(src, null) != (err == nil) || at(elem(optionals), 0) != optional {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v", elem(optionals), src, c.array, format, elem(optionals), err)
		}
	}
}

// roundTrip encodes a value and scans it into another of its type.
func roundTrip(t *testing.T, m *pgtype.Map, oid uint32, format int16, v any) {
	t.Helper()
	back, src := newOf(v), encode(t, m, oid, format, v)
	if err := m.Scan(oid, format, src, back); err != nil || !reflect.DeepEqual(elem(back), v) {
		t.Errorf("%T through %q of OID %d, format %d: %v, %v", v, src, oid, format, elem(back), err)
	}
}

// The binary header of an array, byte by byte.
func TestArrayWire(t *testing.T) {
	m := newMap()
	for _, c := range []struct {
		value any
		want  []uint32
	}{
		{[]idtype.Snowflake{1, 2}, []uint32{1, 0, pgtype.Int8OID, 2, 1, 8, 0, 1, 8, 0, 2}},
		{[]*idtype.Snowflake{nil}, []uint32{1, 1, pgtype.Int8OID, 1, 1, 0xffffffff}},
		{[]idtype.Snowflake{}, []uint32{0, 0, pgtype.Int8OID}},
		{[]*idtype.Snowflake{}, []uint32{0, 0, pgtype.Int8OID}},
	} {
		want, _ := binary.Append([]byte("x"), binary.BigEndian, c.want)
		got, err := m.Encode(pgtype.Int8ArrayOID, binaryFormat, c.value, []byte("x"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: % x, %v, want % x", c.value, got, err, want)
		}
	}
}

// An ID whose text is NULL is quoted in an array's text form.
func TestTextNamedNull(t *testing.T) {
	m := newMap()
	ids := []sqltypes.Text[idtype.UID60]{sqltypes.TextOf(idtype.Must(idtype.ParseUID60("NULL")))}
	if got := encode(t, m, pgtype.TextArrayOID, textFormat, ids); string(got) != `{"NULL"}` {
		t.Errorf("encoded as %s", got)
	}
	roundTrip(t, m, pgtype.TextArrayOID, textFormat, ids)
	roundTrip(t, m, pgtype.TextArrayOID, binaryFormat, ids)
}

// The codec agrees with Value and Scan about numbers at the limits of each bigint type.
func TestIntegerEdges(t *testing.T) {
	m := newMap()
	for _, f := range []family{idFamily(snowflake), idFamily(snowflakeSI), idFamily(uid60), idFamily(spread64)} {
		for _, n := range []int64{-1 << 63, -1<<63 + 1, -1 << 53, -1, 0, 1, 1<<53 - 1, 1 << 53, 1<<60 - 1, 1 << 60, 1<<63 - 1} {
			for _, format := range []int16{binaryFormat, textFormat} {
				f.encodesEdge(t, m, format, n)
				f.scansEdge(t, m, format, n)
			}
		}
		for _, s := range []string{"+1", "01", "-0", " 1", "1 ", "1_0", "0x1", "1e3", "1.0"} {
			if err := m.Scan(pgtype.Int8OID, textFormat, []byte(s), newOf(f.v)); !errors.Is(err, idtype.ErrSyntax) {
				t.Errorf("%T from %q: %v, want ErrSyntax", f.v, s, err)
			}
		}
	}
}

// encodesEdge checks that the codec rejects n if Value does, and else encodes n.
func (f family) encodesEdge(t *testing.T, m *pgtype.Map, format int16, n int64) {
	t.Helper()
	id := reflect.ValueOf(n).Convert(f.typ).Interface()
	_, wantErr := id.(driver.Valuer).Value()
	for _, value := range []any{id, ptr(id)} {
		got, err := m.Encode(pgtype.Int8OID, format, value, nil)
		if wantErr != nil {
			if !errors.Is(err, idtype.ErrRange) {
				t.Errorf("%T %d, format %d: %q, %v, want ErrRange", value, n, format, got, err)
			}
		} else if want := encode(t, m, pgtype.Int8OID, format, n); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T %d, format %d: %q, %v, want %q", value, n, format, got, err, want)
		}
	}
}

// scansEdge checks that the codec scans n if Scan does, and to the same ID.
func (f family) scansEdge(t *testing.T, m *pgtype.Map, format int16, n int64) {
	t.Helper()
	want, got, null := newOf(f.v), newOf(f.v), reflect.New(f.in("Null")).Interface()
	wantErr := want.(sql.Scanner).Scan(n)
	src := encode(t, m, pgtype.Int8OID, format, n)
	err := m.Scan(pgtype.Int8OID, format, src, got)
	if elem(got) != elem(want) || (err == nil) != (wantErr == nil) {
		t.Errorf("%T from %d, format %d: %v, %v, want %v, %v", f.v, n, format, elem(got), err, elem(want), wantErr)
	}
	if err != nil && !errors.Is(err, idtype.ErrRange) {
		t.Errorf("%T from %d, format %d: %v, want ErrRange", f.v, n, format, err)
	}
	err = m.Scan(pgtype.Int8OID, format, src, null)
	if id := first(elem(null)); id != elem(want) || (err == nil) != (wantErr == nil) || err != nil && id != zero(f.typ) {
		t.Errorf("%T from %d, format %d: %v, %v, want %v, %v", elem(null), n, format, elem(null), err, elem(want), wantErr)
	}
}

func TestNotSno(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		src := encode(t, m, pgtype.UUIDOID, format, [16]byte{0xc0, 0xff, 0xee})
		id, optional := sno, sqltypes.OptionalOf(sno)
		null, p := sql.Null[idtype.Sno]{V: sno, Valid: true}, &sno
		for _, target := range []any{&id, &optional, &null, &p} {
			if err := m.Scan(pgtype.UUIDOID, format, src, target); !errors.Is(err, idtype.ErrNotSno) {
				t.Errorf("%T, format %d: %v, want ErrNotSno", target, format, err)
			}
		}
		own := customerID{sno}
		if err := m.Scan(pgtype.UUIDOID, format, src, &own); !errors.Is(err, idtype.ErrNotSno) || own.Sno != sno {
			t.Errorf("%T, format %d: %v, %v, want ErrNotSno", own, format, own, err)
		}
		ids := []idtype.Sno{sno}
		src = encode(t, m, pgtype.UUIDArrayOID, format, [][16]byte{{}})
		if err := m.Scan(pgtype.UUIDArrayOID, format, src, &ids); !errors.Is(err, idtype.ErrNotSno) {
			t.Errorf("%T, format %d: %v, want ErrNotSno", ids, format, err)
		}
		if id != sno || optional.ID != sno || null.V != sno || !null.Valid || *p != sno || ids[0] != sno {
			t.Errorf("format %d: a failed scan changed its target", format)
		}
	}
}

// A bytea of any length but 10 is not a Sno.
func TestByteaLength(t *testing.T) {
	m := newMap()
	for _, src := range []string{`\x`, `\x4e`, `\x4e6f2160a0ff9a0a10`, `\x4e6f2160a0ff9a0a103300`, `4e6f2160a0ff9a0a1033`, `\x4e6f2160a0ff9a0a103x`, `\116o!\140`} {
		id := sqltypes.SnoBytesOf(sno)
		_, notHex := hex.DecodeString(strings.TrimPrefix(src, `\x`)) // for which pgx has an error of its own
		if err := m.Scan(pgtype.ByteaOID, textFormat, []byte(src), &id); err == nil || notHex == nil && strings.HasPrefix(src, `\x`) && !errors.Is(err, idtype.ErrSyntax) || id.ID != sno {
			t.Errorf("from %s: %v, %v, want ErrSyntax", src, id, err)
		}
	}
}

// Trailing spaces are padding, as of a char(n), which Scan doesn't tell from other texts.
func TestPadding(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, c := range texts {
			for _, s := range []string{"xinaS8QBh ", "xinaS8QBh   "} {
				var id sqltypes.Text[idtype.UID60]
				if err := m.Scan(c.oid, format, []byte(s), &id); err != nil || id.ID != uid60 {
					t.Errorf("%q from OID %d, format %d: %v, %v", s, c.oid, format, id, err)
				}
			}
			var ids []sqltypes.Text[idtype.UID60] // of a domain over char(n), which a connection doesn't know without AfterConnect
			if err := m.Scan(123456, textFormat, []byte(`{"xinaS8QBh   "}`), &ids); err != nil || len(ids) != 1 || ids[0].ID != uid60 {
				t.Errorf("an array of an unknown type: %v, %v", ids, err)
			}
			for _, s := range []string{" xinaS8QBh", "xinaS8QBh\t", "xinaS8QBh\n "} {
				var id sqltypes.Text[idtype.UID60]
				if err := m.Scan(c.oid, format, []byte(s), &id); !errors.Is(err, idtype.ErrSyntax) {
					t.Errorf("%q from OID %d, format %d: %v, want ErrSyntax", s, c.oid, format, err)
				}
			}
		}
	}
}

// Encoding an ID for another column type fails in both formats. The error names
// the type to use.
func TestRefusals(t *testing.T) {
	m := newMap()
	columns := map[uint32]string{pgtype.Int8OID: "bigint", pgtype.UUIDOID: "uuid", pgtype.ByteaOID: "bytea",
		pgtype.TextOID: "text", pgtype.VarcharOID: "text", pgtype.NameOID: "text", pgtype.BPCharOID: "text"}
	for _, c := range members {
		home := c.oid
		for oid, name := range columns {
			if name == columns[home] {
				continue
			}
			for _, value := range c.values() {
				for _, format := range []int16{binaryFormat, textFormat} {
					b, err := m.Encode(oid, format, value, nil)
					if err == nil || !strings.Contains(err.Error(), "pgxcodec: encode "+typename.OfValue(value)+": want a ") || !strings.Contains(err.Error(), " parameter, got "+name+"; ") {
						t.Errorf("%T as %s, format %d: %q, %v, want an error", value, name, format, b, err)
					}
				}
			}
		}
	}
	// One ID is not an array, as in = ANY($1) without a slice.
	for _, c := range members {
		array := c.array
		for _, value := range c.values() {
			for _, format := range []int16{binaryFormat, textFormat} {
				if b, err := m.Encode(array, format, value, nil); err == nil || !strings.Contains(err.Error(), "pgxcodec: encode "+typename.OfValue(value)+": want a slice for a ") {
					t.Errorf("%T as OID %d, format %d: %q, %v, want an error", value, array, format, b, err)
				}
			}
		}
	}
	for want, c := range map[string]struct {
		oid   uint32
		value any
	}{
		"encode []idtype.Snowflake: want one ID for a bigint parameter, got a slice; write = ANY($1)":                                                                                      {pgtype.Int8OID, []idtype.Snowflake{1}},
		"encode []*idtype.Sno: want one ID for a uuid parameter, got a slice; write = ANY($1)":                                                                                             {pgtype.UUIDOID, []*idtype.Sno{&sno}},
		"encode idtype.Sno: want a uuid parameter, got bigint[]; make the column uuid, or pass a slice of sqltypes.Text[idtype.Sno] for text columns, sqltypes.SnoBytes for bytea columns": {pgtype.Int8ArrayOID, sno},
		"encode *idtype.Sno: want a uuid parameter, got text[]; make the column uuid, or pass a slice of sqltypes.Text[idtype.Sno] for text columns, ":                                     {pgtype.TextArrayOID, &sno},
		"encode idtype.Sno: want a uuid parameter, got text; ":                                                                                                                             {pgtype.TextArrayOID, []idtype.Sno{sno}},
		"encode idtype.Sno: want a uuid parameter, got bytea; ":                                                                                                                            {pgtype.ByteaArrayOID, &[]idtype.Sno{sno}},
		"encode *idtype.Sno: want a uuid parameter, got text; ":                                                                                                                            {pgtype.VarcharArrayOID, []*idtype.Sno{&sno}},
	} {
		for _, format := range []int16{binaryFormat, textFormat} {
			if b, err := m.Encode(c.oid, format, c.value, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%T as OID %d, format %d: %q, %v, want %q", c.value, c.oid, format, b, err, want)
			}
		}
	}
	// An array is not one ID.
	for _, format := range []int16{binaryFormat, textFormat} {
		id, pointer := snowflake, &snowflake
		src := encode(t, m, pgtype.Int8ArrayOID, format, []idtype.Snowflake{1})
		for _, target := range []any{&id, &pointer, &sno} {
			err := m.Scan(pgtype.Int8ArrayOID, format, src, target)
			if !errors.Is(err, idtype.ErrSyntax) || !strings.Contains(err.Error(), "the target holds one ID; pass a pointer to a slice") || id != snowflake || pointer != &snowflake {
				t.Errorf("an array into %T, format %d: %v", target, format, err)
			}
		}
	}
	// NULL fits every column.
	if b := encode(t, m, pgtype.TextOID, textFormat, (*idtype.Sno)(nil)); b != nil {
		t.Errorf("a nil *Sno as text: %q", b)
	}
}

// A Sno can be scanned from text and bytea columns too.
func TestSnoFromTextAndBytea(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, c := range []struct {
			oid, array uint32
			value      any
		}{
			{pgtype.TextOID, pgtype.TextArrayOID, sno.String()},
			{pgtype.VarcharOID, pgtype.VarcharArrayOID, sno.UUID().String()},
			{pgtype.ByteaOID, pgtype.ByteaArrayOID, sno[:]},
		} {
			var id idtype.Sno
			if err := m.Scan(c.oid, format, encode(t, m, c.oid, format, c.value), &id); err != nil || id != sno {
				t.Errorf("from OID %d, format %d: %v, %v", c.oid, format, id, err)
			}
			var ids []idtype.Sno
			if err := m.Scan(c.array, format, encode(t, m, c.array, format, []any{c.value}), &ids); err != nil || len(ids) != 1 || ids[0] != sno {
				t.Errorf("from OID %d, format %d: %v, %v", c.array, format, ids, err)
			}
		}
	}
}

// If the OID of an argument is 0 or not in the map, the Go type decides the encoding.
func TestUnknownOID(t *testing.T) {
	for _, c := range members {
		m := newMap()
		for _, want := range []any{c.v, ptr(c.v), c.null(), c.optional()} {
			got := newOf(want)
			if err := m.Scan(123456, textFormat, []byte(c.text), got); err != nil || !reflect.DeepEqual(elem(got), want) {
				t.Errorf("%T from an unknown OID: %v, %v", want, elem(got), err)
			}
		}
		c.testUnknown(t, m)
	}
}

func (c member) testUnknown(t *testing.T, m *pgtype.Map) {
	const domain = 123456
	p := ptr(c.v)
	for _, oid := range []uint32{0, domain} {
		for i, value := range c.values() {
			if i != 2 { // pgx dereferences **V itself, with the same result
				viaCodec(t, value, m.PlanEncode(oid, textFormat, value))
			}
			if got := encode(t, m, oid, textFormat, value); string(got) != c.text {
				t.Errorf("%T as OID %d: %q, want %q", value, oid, got, c.text)
			}
		}
		ids, pointers := c.slice(c.v), sliceOf(p, nil)
		values := []any{ids, ptr(ids), pointers, ptr(pointers), fill(c.in("IDs"), c.v)}
		if flat, array := c.in("Flat"), c.in("Array"); flat != nil {
			values = append(values, fill(flat, c.v), fill(array, ids, []pgtype.ArrayDimension{{Length: 1, LowerBound: 1}}, true))
		}
		for _, value := range values {
			got, want := encode(t, m, oid, textFormat, value), encode(t, m, c.array, textFormat, value)
			if !bytes.Equal(got, want) {
				t.Errorf("%T as OID %d: %q, want %q", value, oid, got, want)
			}
		}
		_, base := m.TypeForValue(c.v)
		for _, v := range []any{c.v, ids, c.optional(), p, c.null(), pointers} {
			target := newOf(v)
			// Only base types can be registered. pgx calls the Scan method of other types.
			if _, scans := target.(sql.Scanner); base || !scans {
				viaCodec(t, target, m.PlanScan(oid, textFormat, target))
			}
		}
		for _, want := range []any{c.v, c.optional(), ids} {
			src := []byte(c.text)
			if reflect.TypeOf(want) == reflect.TypeOf(ids) {
				src = encode(t, m, c.array, textFormat, ids)
			}
			got := newOf(want)
			if err := m.Scan(oid, textFormat, src, got); err != nil || !reflect.DeepEqual(elem(got), want) {
				t.Errorf("%T from OID %d: %v, %v", want, oid, elem(got), err)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct{ lo, hi, span, spans any }{
		ends(snowflake, snowflake+1),
		ends(snowflakeSI-1, snowflakeSI),
		ends(uid60, uid60+1),
		ends(spread64, -spread64),
		ends(idtype.SnowflakeOf[shop](snowflake), idtype.SnowflakeOf[shop](snowflake+1)),
		ends(idtype.Spread64Of[visitor](spread64), idtype.Spread64Of[visitor](-spread64)),
	} {
		testRange(t, newMap(), c.lo, c.hi, reflect.TypeOf(c.span), reflect.TypeOf(c.spans))
	}
}

// ends returns the bounds of a range, with the types of ranges and multiranges.
func ends[T ~int64](lo, hi T) struct{ lo, hi, span, spans any } {
	return struct{ lo, hi, span, spans any }{lo, hi, pgtype.Range[T]{}, pgtype.Multirange[pgtype.Range[T]]{}}
}

func testRange(t *testing.T, m *pgtype.Map, lo, hi any, span, spans reflect.Type) {
	t.Helper()
	number := func(id any) int64 { return reflect.ValueOf(id).Int() }
	r := fill(span, lo, hi, pgtype.Inclusive, pgtype.Exclusive, true)
	plain := pgtype.Range[int64]{Lower: number(lo), Upper: number(hi), LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
	open := fill(span, lo, nil, pgtype.Inclusive, pgtype.Unbounded, true)
	for _, format := range []int16{binaryFormat, textFormat} {
		src := encode(t, m, pgtype.Int8rangeOID, format, r)
		if want := encode(t, m, pgtype.Int8rangeOID, format, plain); !bytes.Equal(src, want) {
			t.Errorf("%T, format %d: %q, want %q", r, format, src, want)
		}
		for _, v := range []any{r, open} {
			roundTrip(t, m, pgtype.Int8rangeOID, format, v)
		}
		if null := ptr(r); m.Scan(pgtype.Int8rangeOID, format, encode(t, m, pgtype.Int8rangeOID, format, zero(span)), null) != nil || elem(null) != zero(span) {
			t.Errorf("NULL, format %d: %v", format, elem(null))
		}
		multi := fill(spans, r, open)
		roundTrip(t, m, pgtype.Int8multirangeOID, format, multi)
		if format == textFormat {
			if got := encode(t, m, 0, format, r); !bytes.Equal(got, src) {
				t.Errorf("%T without an OID: %q, want %q", r, got, src)
			}
			if got := encode(t, m, 0, format, multi); len(got) == 0 {
				t.Errorf("%T without an OID: %q", multi, got)
			}
		}
	}
}

func TestComposite(t *testing.T) {
	m := newMap()
	types := make([]pgtype.CompositeCodecField, 3)
	for i, name := range []string{"int8", "uuid", "_text"} {
		typ, ok := m.TypeForName(name)
		if !ok {
			t.Fatal(name)
		}
		types[i] = pgtype.CompositeCodecField{Name: name, Type: typ}
	}
	const oid = 123456
	m.RegisterType(&pgtype.Type{Name: "composite", OID: oid, Codec: &pgtype.CompositeCodec{Fields: types}})
	type row struct {
		N idtype.Spread64
		U *idtype.Sno
		A []sqltypes.Text[idtype.Sno]
	}
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, want := range []row{{spread64, &sno, []sqltypes.Text[idtype.Sno]{{ID: sno}}}, {A: []sqltypes.Text[idtype.Sno]{}}} {
			var back row
			if err := m.Scan(oid, format, encode(t, m, oid, format, want), &back); err != nil || !reflect.DeepEqual(back, want) {
				t.Errorf("format %d: %+v, %v, want %+v", format, back, err, want)
			}
		}
	}
}

// Columns reject an ID of another column type in all forms.
func TestFormRefusals(t *testing.T) {
	m := newMap()
	p, text := &sno, sqltypes.TextOf(sno)
	for _, value := range []any{
		sno, p, &p, &sql.Null[idtype.Sno]{V: sno, Valid: true}, sql.Null[*idtype.Sno]{V: p, Valid: true}, sqltypes.OptionalOf(sno), &sqltypes.Optional[idtype.Sno]{ID: sno},
		sql.Null[sqltypes.Optional[idtype.Sno]]{V: sqltypes.OptionalOf(sno), Valid: true}, text, sqltypes.OptionalOf(text), sql.Null[*sqltypes.Text[idtype.Sno]]{V: &text, Valid: true},
	} {
		home := "uuid"
		if strings.Contains(typename.OfValue(value), "Text") {
			home = "text"
		}
		for oid, column := range map[uint32]string{
			pgtype.UUIDOID: "uuid", pgtype.Int8OID: "bigint", pgtype.ByteaOID: "bytea",
			pgtype.TextOID: "text", pgtype.VarcharOID: "text", pgtype.BPCharOID: "text", pgtype.NameOID: "text",
		} {
			for _, format := range []int16{binaryFormat, textFormat} {
				b, err := m.Encode(oid, format, value, nil)
				if column == home {
					if err != nil {
						t.Errorf("%T as %s, format %d: %v", value, column, format, err)
					}
				} else if want := fmt.Sprintf("pgxcodec: encode %s: want a %s parameter, got %s; ", typename.OfValue(value), home, column); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%T as %s, format %d: %q, %v, want %q", value, column, format, b, err, want)
				}
			}
		}
	}
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.VarcharArrayOID, pgtype.BPCharArrayOID, pgtype.ByteaArrayOID} {
		for _, value := range []any{[]idtype.Sno{sno}, []*idtype.Sno{p}, &[]idtype.Sno{sno}, []sql.Null[idtype.Sno]{{V: sno, Valid: true}},
			[]sqltypes.Optional[idtype.Sno]{{ID: sno}}, pgtype.FlatArray[idtype.Sno]{sno}, [1]idtype.Sno{sno}} {
			for _, format := range []int16{binaryFormat, textFormat} {
				if b, err := m.Encode(oid, format, value, nil); err == nil || !strings.Contains(err.Error(), ": want a uuid parameter, got ") {
					t.Errorf("%T as OID %d, format %d: %q, %v, want an error", value, oid, format, b, err)
				}
			}
		}
	}

	// NULL fits every column.
	for _, value := range []any{(*idtype.Sno)(nil), (*sqltypes.Optional[idtype.Sno])(nil), sqltypes.Optional[idtype.Sno]{}, sql.Null[idtype.Sno]{V: sno}} {
		if b := encode(t, m, pgtype.TextOID, textFormat, value); b != nil {
			t.Errorf("a nil %T as text: %q", value, b)
		}
	}
	// Without an OID, columns accept them.
	if got := encode(t, m, 0, textFormat, sno); string(got) != sno.UUID().String() {
		t.Errorf("without an OID: %q", got)
	}
}

// A plan that pgx caches for a column may meet another target type.
func TestTargetTypeChanged(t *testing.T) {
	m := newMap()
	for _, c := range members {
		values := c.values()
		for _, v := range []any{values[0], values[1], values[3], values[5]} { // V, *V, sql.Null, Optional
			target, slice := newOf(v), newOf(sliceOf(v))
			for _, format := range []int16{binaryFormat, textFormat} {
				plan := m.PlanScan(c.oid, format, target)
				viaCodec(t, target, plan)
				if err := plan.Scan([]byte("x"), new(int)); !errors.Is(err, pgtype.ErrScanTargetTypeChanged) {
					t.Errorf("%T, format %d: %v", target, format, err)
				}
				if v != values[0] && v != values[1] {
					continue
				}
				if err := m.PlanScan(c.array, format, slice).Scan([]byte("x"), new(int)); !errors.Is(err, pgtype.ErrScanTargetTypeChanged) {
					t.Errorf("%T, format %d: %v", slice, format, err)
				}
			}
		}
	}
}

// Arrays in the binary format, byte by byte: valid arrays of any dimensions, and
// malformed arrays, which are rejected before any allocation for their elements.
func TestArrayRead(t *testing.T) {
	m := newMap()
	wire := func(words ...uint32) []byte {
		b, _ := binary.Append(nil, binary.BigEndian, words)
		return b
	}
	const element = pgtype.Int8OID
	for _, c := range []struct {
		src  []byte
		want []idtype.Snowflake
	}{
		{wire(0, 0, element), []idtype.Snowflake{}},
		{wire(1, 0, element, 0, 1), []idtype.Snowflake{}},
		{wire(1, 0, element, 2, 1, 8, 0, 1, 8, 0, 2), []idtype.Snowflake{1, 2}},
		{wire(1, 0, element, 1, 7, 8, 0, 1), []idtype.Snowflake{1}}, // lower bound 7
		{wire(2, 0, element, 1, 1, 2, 1, 8, 0, 1, 8, 0, 2), []idtype.Snowflake{1, 2}},
		{wire(3, 0, element, 2, 1, 1, 1, 1, 1, 8, 0, 1, 8, 0, 2), []idtype.Snowflake{1, 2}},
		{wire(6, 0, element, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 8, 0, 1, 8, 0, 2), []idtype.Snowflake{1, 2}},
	} {
		var ids []idtype.Snowflake
		var pointers []*idtype.Snowflake
		err := errors.Join(m.Scan(pgtype.Int8ArrayOID, binaryFormat, c.src, &ids), m.Scan(pgtype.Int8ArrayOID, binaryFormat, c.src, &pointers))
		if err != nil || !reflect.DeepEqual(ids, c.want) || len(pointers) != len(ids) || len(ids) > 0 && *pointers[len(ids)-1] != c.want[len(ids)-1] {
			t.Errorf("% x: %v, %v, %v, want %v", c.src, ids, pointers, err, c.want)
		}
	}
	for _, src := range [][]byte{
		{}, wire(0, 0), wire(0, 0, element)[:11], wire(0, 0, element, 0), // trailing bytes
		wire(1, 0, element), wire(1, 0, element, 1), wire(1, 0, element, 1, 1), wire(1, 0, element, 1, 1, 8), wire(1, 0, element, 1, 1, 8, 0),
		wire(1, 0, element, 2, 1, 8, 0, 1), wire(1, 0, element, 1, 1, 8, 0, 1, 0), wire(1, 0, element, 1, 1, 7, 0, 1), wire(1, 0, element, 1, 1, 0),
		wire(1, 0, element, 0x7fffffff, 1, 8, 0, 1), wire(1, 0, element, 0xffffffff, 1, 8, 0, 1), wire(1, 0, element, 1, 1, 0xfffffffe, 0, 1),
		wire(2, 0, element, 0xffffffff, 1, 0xffffffff, 1, 8, 0, 1), wire(2, 0, element, 0x10000, 1, 0x10000, 1, 8, 0, 1),
		wire(7, 0, element, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 0, 1), wire(0xffffffff, 0, element, 1, 1, 8, 0, 1),
		wire(1, 0, element, 1, 1, 8, 0x80000000, 1), // negative
	} {
		ids, pointers := []idtype.Snowflake{7}, []*idtype.Snowflake{nil}
		err1 := m.Scan(pgtype.Int8ArrayOID, binaryFormat, src, &ids)
		err2 := m.Scan(pgtype.Int8ArrayOID, binaryFormat, src, &pointers)
		if err1 == nil || err2 == nil || len(ids) != 1 || ids[0] != 7 || len(pointers) != 1 || pointers[0] != nil {
			t.Errorf("% x: %v, %v and %v, %v, want errors and no change", src, ids, err1, pointers, err2)
		}
	}
}

// A NULL array sets a slice to nil. An array can consist of NULLs only.
func TestNullArrays(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		id := snowflake
		ids, pointers := []idtype.Snowflake{id}, []*idtype.Snowflake{&id}
		err := errors.Join(m.Scan(pgtype.Int8ArrayOID, format, nil, &ids), m.Scan(pgtype.Int8ArrayOID, format, nil, &pointers))
		if err != nil || ids != nil || pointers != nil {
			t.Errorf("NULL, format %d: %v, %v, %v, want nil slices", format, ids, pointers, err)
		}
		roundTrip(t, m, pgtype.Int8ArrayOID, format, []*idtype.Snowflake{nil, nil})

		ids = []idtype.Snowflake{id}
		err = m.Scan(pgtype.Int8ArrayOID, format, encode(t, m, pgtype.Int8ArrayOID, format, []*idtype.Snowflake{&id, nil}), &ids)
		if !errors.Is(err, idtype.ErrNull) || !strings.Contains(err.Error(), "scan NULL into Snowflake: NULL is not an ID; scan a nullable column into *idtype.Snowflake, sql.Null[") {
			t.Errorf("NULL among IDs, format %d: %v", format, err)
		}
		if format == binaryFormat && !strings.Contains(err.Error(), "pgxcodec: array element 1: ") {
			t.Errorf("NULL among IDs: %v, want the element's number", err)
		}
	}
}

// A scan into a pointer allocates a new ID and leaves the old one unchanged.
func TestPointerIsNew(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		before := idtype.Snowflake(7)
		p := &before
		if err := m.Scan(pgtype.Int8OID, format, encode(t, m, pgtype.Int8OID, format, snowflake), &p); err != nil || *p != snowflake || before != 7 {
			t.Errorf("format %d: got %v, %v, and the old ID is %v", format, *p, err, before)
		}
	}
}

// The error for bytes that no server sends shows the first 64 of them.
func TestBadWire(t *testing.T) {
	m := newMap()
	for _, c := range []struct {
		oid       uint32
		dst       any
		src, want string
	}{
		{pgtype.Int8OID, new(idtype.Snowflake), "abc", `pgxcodec: decode a column value: want an int8 of 8 bytes, got 3 bytes "abc"; `},
		{pgtype.UUIDOID, new(idtype.Sno), "abc", `want a uuid of 16 bytes, got 3 bytes "abc"; `},
		{pgtype.Int8ArrayOID, new([]idtype.Snowflake), "abc", `want an array in the binary format, got 3 bytes "abc"; `},
		{pgtype.Int8ArrayOID, new([]idtype.Snowflake), strings.Repeat("\x00", 16), "got 16 bytes"},
		{pgtype.Int8OID, new(idtype.Snowflake), strings.Repeat("x", 100), `got 100 bytes "` + strings.Repeat("x", 64) + `"; `},
	} {
		if err := m.Scan(c.oid, binaryFormat, []byte(c.src), c.dst); !errors.Is(err, idtype.ErrSyntax) && c.src[0] != 0 || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%T from %q: %v, want %q", c.dst, c.src, err, c.want)
		}
	}
}

// The error for a wrong column type names a remedy for that column, and the Go types
// for other columns.
func TestRefusalMessages(t *testing.T) {
	const (
		forSno       = "sqltypes.Text[idtype.Sno] for text columns, sqltypes.SnoBytes for bytea columns"
		uuidInQuery  = "write $1::uuid if the query gives the parameter no type, pass id.String() to a function that takes text, or use "
		bytesInQuery = "write $1::bytea if the query gives the parameter no type, pass id.String() to a function that takes text, or use "
	)
	m := newMap()
	for _, c := range []struct {
		oid   uint32
		value any
		want  string
	}{
		{pgtype.UUIDOID, snowflake, "encode idtype.Snowflake: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.Text[idtype.Snowflake] for text columns"},
		{pgtype.UUIDOID, snowflakeSI, "encode idtype.SnowflakeSI: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.Text[idtype.SnowflakeSI] for text columns"},
		{pgtype.UUIDOID, uid60, "encode idtype.UID60: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.Text[idtype.UID60] for text columns"},
		{pgtype.ByteaOID, spread64, "encode idtype.Spread64: want a bigint parameter, got bytea; make the column bigint, or use sqltypes.Text[idtype.Spread64] for text columns"},
		{pgtype.TextOID, spread64, "encode idtype.Spread64: want a bigint parameter, got text; write $1::bigint if the query gives the parameter no type, pass id.String() to a function that takes text, or use sqltypes.Text[idtype.Spread64] for text columns"},
		{pgtype.Int8OID, sno, "encode idtype.Sno: want a uuid parameter, got bigint; make the column uuid, or use " + forSno},
		{pgtype.BPCharOID, &sno, "encode *idtype.Sno: want a uuid parameter, got text; " + uuidInQuery + forSno},
		{pgtype.VarcharOID, sno, "encode idtype.Sno: want a uuid parameter, got text; " + uuidInQuery + forSno},
		{pgtype.Int8OID, sqltypes.SnoBytesOf(sno), "encode sqltypes.SnoBytes: want a bytea parameter, got bigint; make the column bytea, or use idtype.Sno for uuid columns, sqltypes.Text[idtype.Sno] for text columns"},
		{pgtype.TextOID, sqltypes.SnoBytesOf(sno), "got text; " + bytesInQuery + "idtype.Sno for uuid columns, sqltypes.Text[idtype.Sno] for text columns"},
		{pgtype.UUIDOID, sqltypes.TextOf(uid60), "got uuid; make the column text, or use idtype.UID60 for bigint columns"},
		{pgtype.ByteaOID, sqltypes.TextOf(sno), "got bytea; make the column text, or use idtype.Sno for uuid columns, sqltypes.SnoBytes for bytea columns"},
		{pgtype.ByteaOID, idtype.SnoOf[shop](sno), "encode idtype.SnoOf[pgxcodec_test.shop]: want a uuid parameter, got bytea; make the column uuid, or use sqltypes.Text[idtype.SnoOf[pgxcodec_test.shop]] for text columns, sqltypes.SnoBytes for bytea columns"},
		{pgtype.UUIDOID, new(sqltypes.TextOf(idtype.UID60Of[shop](7))), "encode *sqltypes.Text[idtype.UID60Of[pgxcodec_test.shop]]: want a text parameter, got uuid; make the column text, or use idtype.UID60Of[pgxcodec_test.shop] for bigint columns"},
	} {
		if _, err := m.Encode(c.oid, binaryFormat, c.value, nil); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%T as OID %d: %v, want %q", c.value, c.oid, err, c.want)
		}
	}
}

// Plans encode nil pointers as NULL. pgx's map handles nil before it calls a plan, but
// other callers may not.
func TestNilPlans(t *testing.T) {
	m := newMap()
	for _, c := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.Int8OID, (*idtype.Snowflake)(nil)}, {pgtype.Int8OID, (**idtype.Snowflake)(nil)}, {pgtype.Int8OID, (*sql.Null[idtype.Snowflake])(nil)},
		{pgtype.Int8OID, (*sqltypes.Optional[idtype.Snowflake])(nil)},
		{pgtype.Int8ArrayOID, (*[]idtype.Snowflake)(nil)}, {pgtype.Int8ArrayOID, (*[]*idtype.Snowflake)(nil)},
	} {
		if b, err := m.PlanEncode(c.oid, binaryFormat, c.value).Encode(c.value, []byte{}); b != nil || err != nil {
			t.Errorf("%T: %q, %v, want NULL", c.value, b, err)
		}
	}
}

// Almost valid text fails with the right sentinel.
func TestTextSentinels(t *testing.T) {
	m := newMap()
	id, number := sno, snowflake
	if err := m.Scan(pgtype.UUIDOID, textFormat, []byte("6272706b-3471-3732-7877-66326d3633zz"), &id); !errors.Is(err, idtype.ErrSyntax) || id != sno {
		t.Errorf("a uuid with other letters: %v, %v", id, err)
	}
	if err := m.Scan(pgtype.Int8OID, textFormat, []byte("9223372036854775808"), &number); !errors.Is(err, idtype.ErrRange) || number != snowflake {
		t.Errorf("a number past int64: %v, %v", number, err)
	}
}

// The scanner of a map for database/sql reads lists of IDs, also before the map has met one.
func TestSQLScanner(t *testing.T) {
	m := pgtype.NewMap()
	pgxcodec.Register(m)
	var numbers []idtype.Snowflake
	if err := m.SQLScanner(&numbers).Scan("{1,2}"); err != nil || !slices.Equal(numbers, []idtype.Snowflake{1, 2}) {
		t.Errorf("got %v, %v", numbers, err)
	}
	id := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	var snos []idtype.Sno
	if err := m.SQLScanner(&snos).Scan("{" + id.UUID().String() + "}"); err != nil || !slices.Equal(snos, []idtype.Sno{id}) {
		t.Errorf("got %v, %v", snos, err)
	}
}
