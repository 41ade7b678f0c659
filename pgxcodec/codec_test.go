package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
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
	parcelID   struct{ idtype.UUID }
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

// A member tests a Go type in its column type, with one value in both wire formats.
type member interface {
	test(t *testing.T, m *pgtype.Map)
	allocations(t *testing.T, m *pgtype.Map)
	unknown(t *testing.T, m *pgtype.Map)
	fuzz(t *testing.T, m *pgtype.Map, format int16, src []byte)
	column() (oid, array uint32)
	values() []any
}

type of[V sqltypes.ID] struct {
	oid, array   uint32
	v            V
	binary, text string
}

var (
	members = []member{
		of[idtype.Snowflake]{pgtype.Int8OID, pgtype.Int8ArrayOID, snowflake, "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		of[idtype.SnowflakeSI]{pgtype.Int8OID, pgtype.Int8ArrayOID, snowflakeSI, "\x00\x1f\xff\xff\xff\xff\xff\xff", "9007199254740991"},
		of[idtype.UID60]{pgtype.Int8OID, pgtype.Int8ArrayOID, uid60, "\x00\x27\x69\x2f\x10\x06\x1c\x62", "11093174944930914"},
		of[idtype.Spread64]{pgtype.Int8OID, pgtype.Int8ArrayOID, spread64, "\xcb\x54\xec\xf2\x84\x0a\x00\x15", "-3795148059624996843"},
		of[idtype.Sno]{pgtype.UUIDOID, pgtype.UUIDArrayOID, sno, "brpk4q72xwf2m63l", "6272706b-3471-3732-7877-66326d36336c"},
		of[orderID]{pgtype.Int8OID, pgtype.Int8ArrayOID, orderID{snowflake}, "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		of[visitID]{pgtype.Int8OID, pgtype.Int8ArrayOID, visitID{spread64}, "\xcb\x54\xec\xf2\x84\x0a\x00\x15", "-3795148059624996843"},
		of[customerID]{pgtype.UUIDOID, pgtype.UUIDArrayOID, customerID{sno}, "brpk4q72xwf2m63l", "6272706b-3471-3732-7877-66326d36336c"},
		of[idtype.SnowflakeOf[shop]]{pgtype.Int8OID, pgtype.Int8ArrayOID, idtype.SnowflakeOf[shop](snowflake), "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		of[idtype.SnowflakeSIOf[visitor]]{pgtype.Int8OID, pgtype.Int8ArrayOID, idtype.SnowflakeSIOf[visitor](snowflakeSI), "\x00\x1f\xff\xff\xff\xff\xff\xff", "9007199254740991"},
		of[idtype.UID60Of[shop]]{pgtype.Int8OID, pgtype.Int8ArrayOID, idtype.UID60Of[shop](uid60), "\x00\x27\x69\x2f\x10\x06\x1c\x62", "11093174944930914"},
		of[idtype.Spread64Of[visitor]]{pgtype.Int8OID, pgtype.Int8ArrayOID, idtype.Spread64Of[visitor](spread64), "\xcb\x54\xec\xf2\x84\x0a\x00\x15", "-3795148059624996843"},
		of[idtype.SnoOf[visitor]]{pgtype.UUIDOID, pgtype.UUIDArrayOID, idtype.SnoOf[visitor](sno), "brpk4q72xwf2m63l", "6272706b-3471-3732-7877-66326d36336c"},
		of[idtype.SnoOf[customer]]{pgtype.UUIDOID, pgtype.UUIDArrayOID, idtype.SnoOf[customer](taggedSno), taggedSno.String(), taggedSno.UUID().String()},
		of[idtype.UUID]{pgtype.UUIDOID, pgtype.UUIDArrayOID, uuid7, "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		of[parcelID]{pgtype.UUIDOID, pgtype.UUIDArrayOID, parcelID{uuid7}, "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		of[idtype.UUIDOf[shop]]{pgtype.UUIDOID, pgtype.UUIDArrayOID, idtype.UUIDOf[shop](uuid7), "\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		of[typedID]{pgtype.Int8OID, pgtype.Int8ArrayOID, typedID{idtype.SnowflakeOf[shop](snowflake)}, "\x01\xd5\xec\x4b\x00\x04\x30\x00", "132271570944274432"},
		of[sqltypes.SnoBytes]{pgtype.ByteaOID, pgtype.ByteaArrayOID, sqltypes.SnoBytesOf(sno), "\x4e\x6f\x21\x60\xa0\xff\x9a\x0a\x10\x33", `\x4e6f2160a0ff9a0a1033`},
	}
	texts = []struct{ oid, array uint32 }{
		{pgtype.TextOID, pgtype.TextArrayOID},
		{pgtype.VarcharOID, pgtype.VarcharArrayOID},
		{pgtype.BPCharOID, pgtype.BPCharArrayOID},
	}
)

func init() {
	for _, c := range texts {
		members = append(members,
			textOf(c.oid, c.array, snowflake),
			textOf(c.oid, c.array, snowflakeSI),
			textOf(c.oid, c.array, uid60),
			textOf(c.oid, c.array, spread64),
			textOf(c.oid, c.array, sno),
			textOf(c.oid, c.array, uuid7),
			textOf(c.oid, c.array, idtype.UUIDOf[shop](uuid7)),
			textOf(c.oid, c.array, orderID{snowflake}),
			textOf(c.oid, c.array, customerID{sno}),
			textOf(c.oid, c.array, idtype.SnowflakeOf[shop](snowflake)),
			textOf(c.oid, c.array, idtype.UID60Of[visitor](uid60)),
			textOf(c.oid, c.array, idtype.SnoOf[customer](taggedSno)),
			textOf(c.oid, c.array, typedID{idtype.SnowflakeOf[shop](snowflake)}))
	}
}

func textOf[T sqltypes.ID](oid, array uint32, id T) member {
	v := sqltypes.TextOf(id)
	text := must(v.Value()).(string) // without the prefix of a typed key
	return of[sqltypes.Text[T]]{oid, array, v, text, text}
}

func (o of[V]) column() (oid, array uint32) { return o.oid, o.array }

// wire returns the encoded value in a format.
func (o of[V]) wire(format int16) []byte {
	if format == binaryFormat {
		return []byte(o.binary)
	}
	return []byte(o.text)
}

func (o of[V]) values() []any {
	p := &o.v
	return []any{o.v, p, &p, sql.Null[V]{V: o.v, Valid: true}, &sql.Null[V]{V: o.v, Valid: true},
		sqltypes.OptionalOf(o.v), &sqltypes.Optional[V]{ID: o.v}}
}

func TestMembers(t *testing.T) {
	for _, c := range members {
		c.test(t, newMap())
	}
}

func (o of[V]) test(t *testing.T, m *pgtype.Map) {
	var null *V
	for _, format := range []int16{binaryFormat, textFormat} {
		want := o.wire(format)
		for _, value := range o.values() {
			viaCodec(t, value, m.PlanEncode(o.oid, format, value))
			if got := encode(t, m, o.oid, format, value); !bytes.Equal(got, want) {
				t.Errorf("%T as %d, format %d: %q, want %q", value, o.oid, format, got, want)
			}
			// Encode appends to the buffer.
			if got, err := m.Encode(o.oid, format, value, []byte("x")); err != nil || string(got) != "x"+string(want) {
				t.Errorf("%T as %d, format %d: appends %q, %v", value, o.oid, format, got, err)
			}
		}
		for _, value := range []any{nil, null, &null, (**V)(nil), sql.Null[V]{V: o.v}, &sql.Null[V]{}, (*sql.Null[V])(nil),
			sqltypes.Optional[V]{}, &sqltypes.Optional[V]{}, (*sqltypes.Optional[V])(nil)} {
			if got := encode(t, m, o.oid, format, value); got != nil {
				t.Errorf("%T as %d, format %d: %q, want NULL", value, o.oid, format, got)
			}
		}

		scanned(t, m, o, format, want, *new(V), o.v)
		scanned(t, m, o, format, want, null, &o.v)
		scanned(t, m, o, format, want, sql.Null[V]{}, sql.Null[V]{V: o.v, Valid: true})
		scanned(t, m, o, format, want, sqltypes.Optional[V]{}, sqltypes.OptionalOf(o.v))
		scanned(t, m, o, format, nil, &o.v, null)
		scanned(t, m, o, format, nil, sql.Null[V]{V: o.v, Valid: true}, sql.Null[V]{})
		scanned(t, m, o, format, nil, sqltypes.OptionalOf(o.v), sqltypes.Optional[V]{})
		for _, target := range []any{new(V), &null, new(sql.Null[V]), new(sqltypes.Optional[V])} {
			viaCodec(t, target, m.PlanScan(o.oid, format, target))
		}
		// pgx dereferences other pointers and asks the codec for a plan again.
		p := &null
		scanned(t, m, o, format, nil, p, nil)
		var ppp **V
		if err := m.Scan(o.oid, format, want, &ppp); err != nil || **ppp != o.v {
			t.Errorf("%T: %v", ppp, err)
		}
		var optional *sqltypes.Optional[V]
		if err := m.Scan(o.oid, format, want, &optional); err != nil || optional.ID != o.v {
			t.Errorf("%T: %v", optional, err)
		}

		// Failures leave the destination unchanged.
		failed(t, m, o, format, nil, idtype.ErrNull, o.v)
		for _, src := range [][]byte{{}, {0xff}, append([]byte("##"), want...), append(want[:len(want):len(want)], '#'), bytes.Repeat([]byte{0xfe}, len(want)+3), bytes.Repeat([]byte("z"), 500)} {
			failed(t, m, o, format, src, nil, o.v)
			failed(t, m, o, format, src, nil, &o.v)
			failed(t, m, o, format, src, nil, sql.Null[V]{V: o.v, Valid: true})
			failed(t, m, o, format, src, nil, sqltypes.OptionalOf(o.v))
		}

		o.testSlices(t, m, format)
	}
}

// scanned checks that a scan changes a destination from before to want.
func scanned[V sqltypes.ID, D any](t *testing.T, m *pgtype.Map, o of[V], format int16, src []byte, before, want D) {
	t.Helper()
	if err := m.Scan(o.oid, format, src, &before); err != nil || !reflect.DeepEqual(before, want) {
		t.Errorf("%T from %q of OID %d, format %d: %v, %v, want %v", before, src, o.oid, format, before, err, want)
	}
}

// failed checks that a scan fails and leaves its destination unchanged.
func failed[V sqltypes.ID, D any](t *testing.T, m *pgtype.Map, o of[V], format int16, src []byte, want error, before D) {
	t.Helper()
	after := before
	err := m.Scan(o.oid, format, src, &after)
	if err == nil || want != nil && !errors.Is(err, want) || !reflect.DeepEqual(after, before) {
		t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", before, src, o.oid, format, after, err)
	}
}

func (o of[V]) testSlices(t *testing.T, m *pgtype.Map, format int16) {
	var zero V
	ids, pointers := []V{o.v, zero, o.v}, []*V{&o.v, nil, &o.v}
	var none []V
	var nonePointers []*V
	// pgx encodes pgtype's own array types itself. The results must agree.
	for _, c := range []struct{ value, same any }{
		{ids, pgtype.FlatArray[V](ids)},
		{&ids, pgtype.Array[V]{Elements: ids, Dims: []pgtype.ArrayDimension{{Length: 3, LowerBound: 1}}, Valid: true}},
		{pointers, pgtype.FlatArray[*V](pointers)},
		{&pointers, pgtype.FlatArray[sql.Null[V]]{{V: o.v, Valid: true}, {}, {V: o.v, Valid: true}}},
		{pointers, pgtype.FlatArray[sqltypes.Optional[V]]{{ID: o.v}, {}, {ID: o.v}}},
		{pointers, []sqltypes.Optional[V]{{ID: o.v}, {}, {ID: o.v}}},
		{sqltypes.ArrayOf(ids), ids}, {sqltypes.Array[V](nil), nil}, {(*sqltypes.Array[V])(nil), nil},
		{none, nil}, {&none, nil}, {(*[]V)(nil), nil},
		{nonePointers, nil}, {&nonePointers, nil}, {(*[]*V)(nil), nil},
	} {
		if c.same != nil && format == binaryFormat {
			viaCodec(t, c.value, m.PlanEncode(o.array, format, c.value))
		}
		got, want := encode(t, m, o.array, format, c.value), encode(t, m, o.array, format, c.same)
		if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%T as %d, format %d: %q, want %q", c.value, o.array, format, got, want)
		}
	}
	roundTrip(t, m, o, format, ids)
	roundTrip(t, m, o, format, pointers)
	roundTrip(t, m, o, format, []V{})
	roundTrip(t, m, o, format, []*V{})
	roundTrip(t, m, o, format, none)
	roundTrip(t, m, o, format, nonePointers)
	roundTrip(t, m, o, format, []sql.Null[V]{{V: o.v, Valid: true}, {}})
	roundTrip(t, m, o, format, []sqltypes.Optional[V]{{ID: o.v}, {}})
	o.testArrays(t, m, format)

	// Arrays that []V can't hold: with a NULL, or malformed.
	before := []V{o.v}
	for _, src := range [][]byte{
		encode(t, m, o.array, format, pointers),
		encode(t, m, o.array, format, ids)[:30],
		[]byte("{!}"), {0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff}, {},
	} {
		if err := m.Scan(o.array, format, src, &before); err == nil || len(before) != 1 || before[0] != o.v {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", before, src, o.array, format, before, err)
		}
	}
	err := m.Scan(o.array, format, encode(t, m, o.array, format, pointers), &before)
	if !errors.Is(err, idtype.ErrNull) {
		t.Errorf("%T from an array with NULL: %v", before, err)
	}
}

// A sqltypes.Array is written and read like a slice, but has one dimension.
func (o of[V]) testArrays(t *testing.T, m *pgtype.Map, format int16) {
	roundTrip(t, m, o, format, sqltypes.Array[V]{o.v, o.v})
	roundTrip(t, m, o, format, sqltypes.Array[V]{})
	roundTrip(t, m, o, format, sqltypes.Array[V](nil))
	roundTrip(t, m, o, format, sqltypes.Array[sqltypes.Optional[V]]{{ID: o.v}, {}})
	roundTrip(t, m, o, format, sqltypes.Array[sqltypes.Optional[V]](nil))
	nested := encode(t, m, o.array, format, pgtype.Array[V]{Elements: []V{o.v, o.v}, Dims: []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}, {Length: 1, LowerBound: 1}}, Valid: true})
	null := encode(t, m, o.array, format, []*V{&o.v, nil})
	for _, src := range [][]byte{nested, null, []byte("{!}"), {0, 0, 0, 1}, {}} {
		ids, optional := sqltypes.Array[V]{o.v}, sqltypes.Array[sqltypes.Optional[V]]{{ID: o.v}}
		if err := m.Scan(o.array, format, src, &ids); err == nil || len(ids) != 1 || ids[0] != o.v {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v, want no change and an error", ids, src, o.array, format, ids, err)
		}
		if err := m.Scan(o.array, format, src, &optional); bytes.Equal(src, null) != (err == nil) || optional[0].ID != o.v {
			t.Errorf("%T from %q of OID %d, format %d: %v, %v", optional, src, o.array, format, optional, err)
		}
	}
}

func roundTrip[V sqltypes.ID, S any](t *testing.T, m *pgtype.Map, o of[V], format int16, ids S) {
	t.Helper()
	back := ids
	reflect.ValueOf(&back).Elem().SetZero()
	src := encode(t, m, o.array, format, ids)
	if err := m.Scan(o.array, format, src, &back); err != nil || !reflect.DeepEqual(back, ids) {
		t.Errorf("%T through %q of OID %d, format %d: %v, %v", ids, src, o.array, format, back, err)
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
	ids := []sqltypes.UID60Text{sqltypes.TextOf(idtype.MustParseUID60("NULL"))}
	if got := encode(t, m, pgtype.TextArrayOID, textFormat, ids); string(got) != `{"NULL"}` {
		t.Errorf("encoded as %s", got)
	}
	o := of[sqltypes.UID60Text]{array: pgtype.TextArrayOID}
	roundTrip(t, m, o, textFormat, ids)
	roundTrip(t, m, o, binaryFormat, ids)
}

// The codec and Scan agree about numbers at the limits of each bigint type.
func TestIntegerEdges(t *testing.T) {
	m := newMap()
	for _, n := range []int64{-1 << 63, -1<<63 + 1, -1 << 53, -1, 0, 1, 1<<53 - 1, 1 << 53, 1<<60 - 1, 1 << 60, 1<<63 - 1} {
		integerEdge[idtype.Snowflake](t, m, n)
		integerEdge[idtype.SnowflakeSI](t, m, n)
		integerEdge[idtype.UID60](t, m, n)
		integerEdge[idtype.Spread64](t, m, n)
		encodeEdge[idtype.Snowflake](t, m, n)
		encodeEdge[idtype.SnowflakeSI](t, m, n)
		encodeEdge[idtype.UID60](t, m, n)
		encodeEdge[idtype.Spread64](t, m, n)
	}
}

// encodeEdge checks that the codec rejects n if Value does, and else encodes n.
func encodeEdge[T interface {
	~int64
	driver.Valuer
}](t *testing.T, m *pgtype.Map, n int64) {
	t.Helper()
	id := T(n)
	_, wantErr := id.Value()
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, value := range []any{id, &id} {
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
}

func integerEdge[T comparable](t *testing.T, m *pgtype.Map, n int64) {
	t.Helper()
	var want T
	wantErr := any(&want).(sql.Scanner).Scan(n)
	for _, format := range []int16{binaryFormat, textFormat} {
		src := encode(t, m, pgtype.Int8OID, format, n)
		var got, none T
		var optional sql.Null[T]
		err := m.Scan(pgtype.Int8OID, format, src, &got)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("%T from %d, format %d: %v, %v, want %v, %v", got, n, format, got, err, want, wantErr)
		}
		if err != nil && !errors.Is(err, idtype.ErrRange) {
			t.Errorf("%T from %d, format %d: %v, want ErrRange", got, n, format, err)
		}
		err = m.Scan(pgtype.Int8OID, format, src, &optional)
		if optional.V != want || (err == nil) != (wantErr == nil) || err != nil && optional.V != none {
			t.Errorf("%T from %d, format %d: %v, %v, want %v, %v", optional, n, format, optional, err, want, wantErr)
		}
	}
	for _, s := range []string{"+1", "01", "-0", " 1", "1 ", "1_0", "0x1", "1e3", "1.0"} {
		var id T
		if err := m.Scan(pgtype.Int8OID, textFormat, []byte(s), &id); !errors.Is(err, idtype.ErrSyntax) {
			t.Errorf("%T from %q: %v, want ErrSyntax", id, s, err)
		}
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
		if err := m.Scan(pgtype.ByteaOID, textFormat, []byte(src), &id); !errors.Is(err, idtype.ErrSyntax) || id.ID != sno {
			t.Errorf("from %s: %v, %v, want ErrSyntax", src, id, err)
		}
	}
}

// Trailing spaces are padding in char(n), and data in text and varchar.
func TestPadding(t *testing.T) {
	m := newMap()
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, c := range texts {
			var id sqltypes.UID60Text
			err := m.Scan(c.oid, format, []byte("xinaS8QBh "), &id)
			if c.oid == pgtype.BPCharOID {
				if err != nil || id.ID != uid60 {
					t.Errorf("char(10), format %d: %v, %v", format, id, err)
				}
				if err := m.Scan(c.oid, format, []byte("xinaS8QBh   "), &id); err != nil {
					t.Errorf("char(12), format %d: %v", format, err)
				}
				for _, s := range []string{" xinaS8QBh", "xinaS8QBh\t", "xinaS8QBh\n "} {
					if err := m.Scan(c.oid, format, []byte(s), &id); !errors.Is(err, idtype.ErrSyntax) {
						t.Errorf("char(n) %q, format %d: %v, want ErrSyntax", s, format, err)
					}
				}
			} else if !errors.Is(err, idtype.ErrSyntax) {
				t.Errorf("OID %d, format %d: %v, want ErrSyntax", c.oid, format, err)
			}
		}
	}
}

// Encoding an ID for another column type fails in both formats. The error names
// the type to use.
func TestRefusals(t *testing.T) {
	m := newMap()
	columns := map[uint32]string{pgtype.Int8OID: "bigint", pgtype.UUIDOID: "uuid", pgtype.ByteaOID: "bytea",
		pgtype.TextOID: "text", pgtype.VarcharOID: "text", pgtype.NameOID: "text", pgtype.BPCharOID: "char(n)"}
	isText := func(oid uint32) bool { return strings.Contains("text char(n)", columns[oid]) }
	for _, c := range members {
		home, _ := c.column()
		for oid, name := range columns {
			if oid == home || isText(oid) && isText(home) {
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
		_, array := c.column()
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
		"encode []idtype.Snowflake: want one ID for a bigint parameter, got a slice; write = ANY($1)":                                                                             {pgtype.Int8OID, []idtype.Snowflake{1}},
		"encode []*idtype.Sno: want one ID for a uuid parameter, got a slice; write = ANY($1)":                                                                                    {pgtype.UUIDOID, []*idtype.Sno{&sno}},
		"encode idtype.Sno: want a uuid parameter, got bigint[]; make the column uuid, or pass a slice of sqltypes.SnoText for text columns, sqltypes.SnoBytes for bytea columns": {pgtype.Int8ArrayOID, sno},
		"encode *idtype.Sno: want a uuid parameter, got text[]; make the column uuid, or pass a slice of sqltypes.SnoText for text columns, ":                                     {pgtype.TextArrayOID, &sno},
		"encode pgxcodec_test.customerID: want a uuid parameter, got text[]; make the column uuid, or pass a slice of sqltypes.Text[pgxcodec_test.customerID] for text columns, ": {pgtype.TextArrayOID, customerID{sno}},
		"encode idtype.Sno: want a uuid parameter, got text; ":                                                                                                                    {pgtype.TextArrayOID, []idtype.Sno{sno}},
		"encode idtype.Sno: want a uuid parameter, got bytea; ":                                                                                                                   {pgtype.ByteaArrayOID, &[]idtype.Sno{sno}},
		"encode *idtype.Sno: want a uuid parameter, got text; ":                                                                                                                   {pgtype.VarcharArrayOID, []*idtype.Sno{&sno}},
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
		c.unknown(t, newMap())
	}
}

func (o of[V]) unknown(t *testing.T, m *pgtype.Map) {
	const domain = 123456
	for _, oid := range []uint32{0, domain} {
		for i, value := range o.values() {
			if i != 2 { // pgx dereferences **V itself, with the same result
				viaCodec(t, value, m.PlanEncode(oid, textFormat, value))
			}
			if got := encode(t, m, oid, textFormat, value); string(got) != o.text {
				t.Errorf("%T as OID %d: %q, want %q", value, oid, got, o.text)
			}
		}
		for _, value := range []any{[]V{o.v}, &[]V{o.v}, []*V{&o.v, nil}, &[]*V{&o.v, nil},
			pgtype.FlatArray[V]{o.v}, pgtype.Array[V]{Elements: []V{o.v}, Dims: []pgtype.ArrayDimension{{Length: 1, LowerBound: 1}}, Valid: true}} {
			got, want := encode(t, m, oid, textFormat, value), encode(t, m, o.array, textFormat, value)
			if !bytes.Equal(got, want) {
				t.Errorf("%T as OID %d: %q, want %q", value, oid, got, want)
			}
		}
		var id V
		var ids []V
		var optional sqltypes.Optional[V]
		_, base := m.TypeForValue(o.v)
		for _, target := range []any{&id, &ids, &optional, new(*V), new(sql.Null[V]), new([]*V)} {
			// Only base types can be registered. pgx calls the Scan method of other types.
			if _, scans := target.(sql.Scanner); base || !scans {
				viaCodec(t, target, m.PlanScan(oid, textFormat, target))
			}
		}
		err := errors.Join(
			m.Scan(oid, textFormat, []byte(o.text), &id),
			m.Scan(oid, textFormat, []byte(o.text), &optional),
			m.Scan(oid, textFormat, encode(t, m, o.array, textFormat, []V{o.v}), &ids))
		if err != nil || id != o.v || optional.ID != o.v || len(ids) != 1 || ids[0] != o.v {
			t.Errorf("%T from OID %d: %v, %v, %v, %v", id, oid, id, optional, ids, err)
		}
	}
}

func TestRanges(t *testing.T) {
	m := newMap()
	testRange(t, m, snowflake, snowflake+1)
	testRange(t, m, snowflakeSI-1, snowflakeSI)
	testRange(t, m, uid60, uid60+1)
	testRange(t, m, spread64, -spread64)
}

func testRange[T ~int64](t *testing.T, m *pgtype.Map, lo, hi T) {
	t.Helper()
	r := pgtype.Range[T]{Lower: lo, Upper: hi, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
	plain := pgtype.Range[int64]{Lower: int64(lo), Upper: int64(hi), LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
	open := pgtype.Range[T]{Lower: lo, LowerType: pgtype.Inclusive, UpperType: pgtype.Unbounded, Valid: true}
	for _, format := range []int16{binaryFormat, textFormat} {
		src := encode(t, m, pgtype.Int8rangeOID, format, r)
		if want := encode(t, m, pgtype.Int8rangeOID, format, plain); !bytes.Equal(src, want) {
			t.Errorf("%T, format %d: %q, want %q", r, format, src, want)
		}
		for _, want := range []pgtype.Range[T]{r, open, {}} {
			var back pgtype.Range[T]
			if err := m.Scan(pgtype.Int8rangeOID, format, encode(t, m, pgtype.Int8rangeOID, format, want), &back); err != nil || back != want {
				t.Errorf("%T, format %d: %v, %v, want %v", r, format, back, err, want)
			}
		}
		multi := pgtype.Multirange[pgtype.Range[T]]{r, open}
		var back pgtype.Multirange[pgtype.Range[T]]
		if err := m.Scan(pgtype.Int8multirangeOID, format, encode(t, m, pgtype.Int8multirangeOID, format, multi), &back); err != nil || !reflect.DeepEqual(back, multi) {
			t.Errorf("%T, format %d: %v, %v", multi, format, back, err)
		}
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
		A []sqltypes.SnoText
	}
	for _, format := range []int16{binaryFormat, textFormat} {
		for _, want := range []row{{spread64, &sno, []sqltypes.SnoText{{ID: sno}}}, {A: []sqltypes.SnoText{}}} {
			var back row
			if err := m.Scan(oid, format, encode(t, m, oid, format, want), &back); err != nil || !reflect.DeepEqual(back, want) {
				t.Errorf("format %d: %+v, %v, want %+v", format, back, err, want)
			}
		}
	}
}

// Columns that reject an ID reject structs that embed it, in all forms. A struct with its
// own storage format is never rejected.
func TestStructRefusals(t *testing.T) {
	type (
		tenant   struct{ Tenant int }
		tenantID struct {
			tenant
			idtype.Sno
		}
		pointers struct{ *customerID }
	)
	m := newMap()
	own := customerID{sno}
	p := &own
	for _, c := range []struct {
		value any
		want  string // of the value's type
	}{
		{own, "uuid"}, {p, "uuid"}, {&p, "uuid"}, {sql.Null[customerID]{V: own, Valid: true}, "uuid"}, {&sql.Null[customerID]{V: own, Valid: true}, "uuid"},
		{sql.Null[*customerID]{V: p, Valid: true}, "uuid"}, {sql.Null[*idtype.Sno]{V: &sno, Valid: true}, "uuid"},
		{sqltypes.OptionalOf(own), "uuid"}, {&sqltypes.Optional[customerID]{ID: own}, "uuid"}, {sql.Null[sqltypes.Optional[customerID]]{V: sqltypes.OptionalOf(own), Valid: true}, "uuid"},
		{tenantID{Sno: sno}, "uuid"}, {deepID{orderID{snowflake}}, "bigint"}, {machineID{snowflakeSI}, "bigint"}, {pageID{uid60}, "bigint"}, {visitID{spread64}, "bigint"},
		{sqltypes.TextOf(own), "text"}, {sqltypes.OptionalOf(sqltypes.TextOf(own)), "text"},
	} {
		for oid, column := range map[uint32]string{
			pgtype.UUIDOID: "uuid", pgtype.Int8OID: "bigint", pgtype.ByteaOID: "bytea",
			pgtype.TextOID: "text", pgtype.VarcharOID: "text", pgtype.BPCharOID: "char(n)", pgtype.NameOID: "text",
		} {
			for _, format := range []int16{binaryFormat, textFormat} {
				b, err := m.Encode(oid, format, c.value, nil)
				if column == c.want || column == "char(n)" && c.want == "text" {
					if err != nil {
						t.Errorf("%T as %s, format %d: %v", c.value, column, format, err)
					}
				} else if want := fmt.Sprintf("pgxcodec: encode %s: want a %s parameter, got %s; ", typename.OfValue(c.value), c.want, column); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%T as %s, format %d: %q, %v, want %q", c.value, column, format, b, err, want)
				}
			}
		}
	}
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.VarcharArrayOID, pgtype.BPCharArrayOID, pgtype.ByteaArrayOID} {
		for _, value := range []any{[]customerID{own}, []*customerID{p}, &[]customerID{own}, []sql.Null[customerID]{{V: own, Valid: true}},
			[]sqltypes.Optional[customerID]{{ID: own}}, pgtype.FlatArray[customerID]{own}, [1]customerID{own}} {
			for _, format := range []int16{binaryFormat, textFormat} {
				if b, err := m.Encode(oid, format, value, nil); err == nil || !strings.Contains(err.Error(), ": want a uuid parameter, got ") {
					t.Errorf("%T as OID %d, format %d: %q, %v, want an error", value, oid, format, b, err)
				}
			}
		}
	}
	for _, value := range []any{own, p, sqltypes.OptionalOf(own)} {
		for oid, want := range map[uint32]string{pgtype.UUIDArrayOID: "; pass []" + typename.OfValue(value), pgtype.TextArrayOID: "pass a slice of "} {
			if b, err := m.Encode(oid, textFormat, value, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%T as OID %d: %q, %v, want %q", value, oid, b, err, want)
			}
		}
	}

	// NULL fits every column.
	var none *customerID
	for _, value := range []any{none, (*sqltypes.Optional[customerID])(nil)} {
		if b := encode(t, m, pgtype.TextOID, textFormat, value); b != nil {
			t.Errorf("a nil %T as text: %q", value, b)
		}
	}
	// Types with their own storage format, or none.
	for _, c := range []struct {
		value any
		want  string
	}{
		{prefixedID{sno}, "c_" + sno.String()}, {&prefixedID{sno}, "c_" + sno.String()}, {oddID{sno}, "c_" + sno.String()},
		{uuidTextID{sno}, sno.UUID().String()}, {stringID{snowflake}, snowflake.String()},
		{cachedID{sno, func() string { return "cached" }}, "cached"},
		{pointers{&own}, sno.UUID().String()}, // an ID embedded by pointer is not recognized
	} {
		if got := encode(t, m, pgtype.TextOID, textFormat, c.value); string(got) != c.want {
			t.Errorf("%T as text: %q, want %q", c.value, got, c.want)
		}
	}
	if b, err := m.Encode(pgtype.TextOID, textFormat, neverID{sno}, nil); !errors.Is(err, errNever) {
		t.Errorf("a struct whose Value fails, as text: %q, %v", b, err)
	}
	// Without an OID, columns accept them.
	if got := encode(t, m, 0, textFormat, own); string(got) != sno.UUID().String() {
		t.Errorf("without an OID: %q", got)
	}
}

// A plan that pgx caches for a column may meet another target type.
func TestTargetTypeChanged(t *testing.T) {
	m := newMap()
	for _, c := range members {
		oid, array := c.column()
		values := c.values()
		for _, v := range []any{values[0], values[1], values[3], values[5]} { // V, *V, sql.Null, Optional
			target := reflect.New(reflect.TypeOf(v)).Interface()
			slice := reflect.New(reflect.SliceOf(reflect.TypeOf(v))).Interface()
			for _, format := range []int16{binaryFormat, textFormat} {
				plan := m.PlanScan(oid, format, target)
				viaCodec(t, target, plan)
				if err := plan.Scan([]byte("x"), new(int)); !errors.Is(err, pgtype.ErrScanTargetTypeChanged) {
					t.Errorf("%T, format %d: %v", target, format, err)
				}
				if v != values[0] && v != values[1] {
					continue
				}
				if err := m.PlanScan(array, format, slice).Scan([]byte("x"), new(int)); !errors.Is(err, pgtype.ErrScanTargetTypeChanged) {
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
		roundTrip(t, m, of[idtype.Snowflake]{array: pgtype.Int8ArrayOID}, format, []*idtype.Snowflake{nil, nil})

		ids = []idtype.Snowflake{id}
		err = m.Scan(pgtype.Int8ArrayOID, format, encode(t, m, pgtype.Int8ArrayOID, format, []*idtype.Snowflake{&id, nil}), &ids)
		if !errors.Is(err, idtype.ErrNull) || !strings.Contains(err.Error(), "scan NULL into idtype.Snowflake; scan a nullable column into *idtype.Snowflake, sql.Null[") {
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
		forSno       = "sqltypes.SnoText for text columns, sqltypes.SnoBytes for bytea columns"
		uuidInQuery  = "write $1::uuid if the query gives the parameter no type, pass id.String() to a function that takes text, or use "
		bytesInQuery = "write $1::bytea if the query gives the parameter no type, pass id.String() to a function that takes text, or use "
	)
	m := newMap()
	for _, c := range []struct {
		oid   uint32
		value any
		want  string
	}{
		{pgtype.UUIDOID, snowflake, "encode idtype.Snowflake: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.SnowflakeText for text columns"},
		{pgtype.UUIDOID, snowflakeSI, "encode idtype.SnowflakeSI: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.SnowflakeSIText for text columns"},
		{pgtype.UUIDOID, uid60, "encode idtype.UID60: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.UID60Text for text columns"},
		{pgtype.ByteaOID, spread64, "encode idtype.Spread64: want a bigint parameter, got bytea; make the column bigint, or use sqltypes.Spread64Text for text columns"},
		{pgtype.TextOID, spread64, "encode idtype.Spread64: want a bigint parameter, got text; write $1::bigint if the query gives the parameter no type, pass id.String() to a function that takes text, or use sqltypes.Spread64Text for text columns"},
		{pgtype.Int8OID, sno, "encode idtype.Sno: want a uuid parameter, got bigint; make the column uuid, or use " + forSno},
		{pgtype.BPCharOID, &sno, "encode *idtype.Sno: want a uuid parameter, got char(n); make the column uuid, or use " + forSno},
		{pgtype.VarcharOID, sno, "encode idtype.Sno: want a uuid parameter, got text; " + uuidInQuery + forSno},
		{pgtype.Int8OID, sqltypes.SnoBytesOf(sno), "encode sqltypes.SnoBytes: want a bytea parameter, got bigint; make the column bytea, or use idtype.Sno for uuid columns, sqltypes.SnoText for text columns"},
		{pgtype.TextOID, sqltypes.SnoBytesOf(sno), "got text; " + bytesInQuery + "idtype.Sno for uuid columns, sqltypes.SnoText for text columns"},
		{pgtype.UUIDOID, sqltypes.TextOf(uid60), "got uuid; make the column text, or use idtype.UID60 for bigint columns"},
		{pgtype.ByteaOID, sqltypes.TextOf(sno), "got bytea; make the column text, or use idtype.Sno for uuid columns, sqltypes.SnoBytes for bytea columns"},
		{pgtype.UUIDOID, orderID{snowflake}, "encode pgxcodec_test.orderID: want a bigint parameter, got uuid; make the column bigint, or use sqltypes.Text[pgxcodec_test.orderID] for text columns"},
		{pgtype.ByteaOID, idtype.SnoOf[shop](sno), "encode idtype.SnoOf[pgxcodec_test.shop]: want a uuid parameter, got bytea; make the column uuid, or use sqltypes.Text[idtype.SnoOf[pgxcodec_test.shop]] for text columns, sqltypes.SnoBytes for bytea columns"},
		{pgtype.UUIDOID, new(sqltypes.TextOf(idtype.UID60Of[shop](7))), "encode *sqltypes.Text[idtype.UID60Of[pgxcodec_test.shop]]: want a text parameter, got uuid; make the column text, or use idtype.UID60Of[pgxcodec_test.shop] for bigint columns"},
		{pgtype.TextOID, customerID{sno}, "encode pgxcodec_test.customerID: want a uuid parameter, got text; " + uuidInQuery + "sqltypes.Text[pgxcodec_test.customerID] for text columns, sqltypes.SnoBytes for bytea columns"},
		{pgtype.UUIDOID, sqltypes.TextOf(customerID{sno}), "got uuid; make the column text, or use pgxcodec_test.customerID for uuid columns, sqltypes.SnoBytes for bytea columns"},
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
		{pgtype.Int8OID, (*sqltypes.OptionalSnowflake)(nil)},
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
