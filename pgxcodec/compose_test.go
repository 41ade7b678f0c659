package pgxcodec_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

type (
	namedUUID   [16]byte
	namedBigint int64
	namedString string
)

// Values that aren't IDs are encoded and scanned as without this package: the same
// bytes, the same errors.
func TestDelegation(t *testing.T) {
	n, s := int64(-7), "6272706b-3471-3732-7877-66326d36336c"
	values := []any{
		int64(-7), &n, int(7), int32(7), uint64(7), uint64(1 << 63), namedBigint(-7), pgtype.Int8{Int64: -7, Valid: true}, pgtype.Int8{},
		[16]byte{1, 2}, namedUUID{3}, uuid.UUID{4}, &uuid.UUID{4}, uuid.NullUUID{}, pgtype.UUID{Bytes: [16]byte{5}, Valid: true}, pgtype.UUID{},
		s, &s, namedString(s), pgtype.Text{String: s, Valid: true}, []byte("raw"), []byte(nil), [10]byte{1},
		1.5, true, time.Time{}, (*int64)(nil), struct{}{}, idtype.SnoPartition{'A', 10},
		[]int64{1, 2}, []*int64{&n, nil}, []string{"NULL", `a"b`}, [][16]byte{{1}}, []uuid.UUID{{1}}, [][]byte{{0}, nil},
		[][]int64{{1, 2}, {3, 4}}, []int64{}, []int64(nil), []any{"a", nil}, [2]int64{1, 2}, []namedBigint{1},
		// Literals that pgx and the server parse differently.
		namedString("{1, 2}"), namedString("{ a , b }"), namedString(`{"a" , "b"}`), namedString(`{a\"b}`), namedString("{null}"),
	}
	for _, c := range []struct{ oid, array uint32 }{
		{pgtype.Int8OID, pgtype.Int8ArrayOID}, {pgtype.UUIDOID, pgtype.UUIDArrayOID}, {pgtype.ByteaOID, pgtype.ByteaArrayOID},
		{pgtype.TextOID, pgtype.TextArrayOID}, {pgtype.VarcharOID, pgtype.VarcharArrayOID}, {pgtype.BPCharOID, pgtype.BPCharArrayOID},
	} {
		for _, oid := range []uint32{c.oid, c.array} {
			for _, format := range []int16{binaryFormat, textFormat} {
				for _, value := range values {
					ours, plain := newMap(), pgtype.NewMap()
					got, err := ours.Encode(oid, format, value, []byte{})
					want, wantErr := plain.Encode(oid, format, value, []byte{})
					sameError := fmt.Sprint(err) == fmt.Sprint(wantErr)
					if oid == c.array && format == binaryFormat { // a string that isn't an array literal fails with another text
						sameError = (err == nil) == (wantErr == nil)
					}
					if !bytes.Equal(got, want) || (got == nil) != (want == nil) || !sameError {
						t.Errorf("%T as OID %d, format %d: %q, %v, want %q, %v", value, oid, format, got, err, want, wantErr)
						continue
					}
					if err != nil {
						continue
					}
					src := want
					for _, target := range append(values, new(any)) {
						if target == nil {
							continue
						}
						got, want := reflect.New(reflect.TypeOf(target)), reflect.New(reflect.TypeOf(target))
						if _, ok := target.(*any); ok { // as Rows.Values does
							got, want = reflect.ValueOf(new(any)), reflect.ValueOf(new(any))
						}
						_, scanner := got.Interface().(sql.Scanner)
						if src == nil && !scanner && got.Elem().Kind() != reflect.Interface {
							continue // pgx scans NULL into such types in random order
						}
						err := ours.Scan(oid, format, src, got.Interface())
						wantErr := plain.Scan(oid, format, src, want.Interface())
						if !reflect.DeepEqual(got.Elem().Interface(), want.Elem().Interface()) || (err == nil) != (wantErr == nil) {
							t.Errorf("%T from OID %d, format %d: %v, %v, want %v, %v", target, oid, format, got.Elem(), err, want.Elem(), wantErr)
						}
					}
				}
			}
		}
	}
}

// COPY accepts the text form of an array and keeps its dimensions, as it does without
// this package. pgx does this only for its own array codec.
func TestArrayLiteral(t *testing.T) {
	m := newMap()
	for _, literal := range []string{"{{1,2},{3,4}}", "{{1},{NULL}}", "[2:3]={1,2}", `{{"1"}}`} {
		var a pgtype.Array[any]
		plain := pgtype.NewMap()
		if err := plain.Scan(pgtype.Int8ArrayOID, textFormat, []byte(literal), &a); err != nil {
			t.Fatal(err)
		}
		want := encode(t, plain, pgtype.Int8ArrayOID, binaryFormat, a)
		for _, value := range []any{literal, &literal, namedString(literal)} {
			if got := encode(t, m, pgtype.Int8ArrayOID, binaryFormat, value); !bytes.Equal(got, want) {
				t.Errorf("%T %s: %q, want %q", value, literal, got, want)
			}
		}
	}
	// Literals that have one dimension, or that the server may parse differently, are
	// left to pgx, which sends them as text.
	for _, literal := range []string{"{x}", "{1,2}", "{}", "", "{{1, 2}}", "{{1,\t2}}", "{{1,\n2}}", "{{1,\v2}}", "{{1,\f2}}", "{{1,\r2}}", "{{1,null}}", "[1:1]={Null}", `{{\1}}`, "{{x}}"} {
		for _, oid := range []uint32{pgtype.Int8ArrayOID, pgtype.TextArrayOID} {
			if b, err := m.Encode(oid, binaryFormat, literal, nil); err == nil && literal != "{{x}}" {
				t.Errorf("%q as OID %d: %q, want an error", literal, oid, b)
			}
		}
	}
}

// A googleCodec is a short form of the codecs for google/uuid. It replaces pgx's uuid
// codec and decodes to a uuid.UUID if the caller asks for no type.
type googleCodec struct{ pgtype.UUIDCodec }

func (googleCodec) DecodeValue(m *pgtype.Map, oid uint32, format int16, src []byte) (any, error) {
	var u uuid.UUID
	err := m.PlanScan(oid, format, &u).Scan(src, &u)
	return u, err
}

type googleUUID uuid.UUID

func (u googleUUID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: u, Valid: true}, nil }

func (u *googleUUID) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("NULL")
	}
	*u = v.Bytes
	return nil
}

type googleEncodePlan struct{ next pgtype.EncodePlan }

func (p *googleEncodePlan) SetNext(next pgtype.EncodePlan) { p.next = next }
func (p *googleEncodePlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(googleUUID(value.(uuid.UUID)), buf)
}

type googleScanPlan struct{ next pgtype.ScanPlan }

func (p *googleScanPlan) SetNext(next pgtype.ScanPlan) { p.next = next }
func (p *googleScanPlan) Scan(src []byte, dst any) error {
	return p.next.Scan(src, (*googleUUID)(dst.(*uuid.UUID)))
}

func registerGoogle(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{
		func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
			u, ok := value.(uuid.UUID)
			return &googleEncodePlan{}, googleUUID(u), ok
		}}, m.TryWrapEncodePlanFuncs...)
	m.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{
		func(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
			u, ok := target.(*uuid.UUID)
			return &googleScanPlan{}, (*googleUUID)(u), ok
		}}, m.TryWrapScanPlanFuncs...)
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: googleCodec{}})
}

func TestWithGoogleCodec(t *testing.T) {
	for name, register := range map[string][]func(*pgtype.Map){
		"before":  {registerGoogle, pgxcodec.Register},
		"after":   {pgxcodec.Register, registerGoogle},
		"between": {pgxcodec.Register, registerGoogle, pgxcodec.Register},
		"twice":   {registerGoogle, pgxcodec.Register, pgxcodec.Register},
	} {
		t.Run(name, func(t *testing.T) {
			m := pgtype.NewMap()
			for _, f := range register {
				f(m)
			}
			u, own := uuid.UUID{0xc0, 0xff, 0xee}, sno.UUID()
			for _, format := range []int16{binaryFormat, textFormat} {
				for _, c := range []struct {
					oid         uint32
					value, same any
				}{
					{pgtype.UUIDOID, u, [16]byte(u)},
					{pgtype.UUIDOID, sno, [16]byte(own)},
					{pgtype.UUIDOID, &sno, [16]byte(own)},
					{pgtype.UUIDOID, sqltypes.OptionalOf(sno), [16]byte(own)},
					{pgtype.UUIDArrayOID, []uuid.UUID{u, own}, [][16]byte{u, own}},
					{pgtype.UUIDArrayOID, []idtype.Sno{sno, sno}, [][16]byte{own, own}},
					{pgtype.Int8OID, snowflake, int64(snowflake)},
				} {
					want := encode(t, pgtype.NewMap(), c.oid, format, c.same)
					if got := encode(t, m, c.oid, format, c.value); !bytes.Equal(got, want) {
						t.Errorf("%T, format %d: %q, want %q", c.value, format, got, want)
					}
					back := newOf(c.value)
					if err := m.Scan(c.oid, format, want, back); err != nil || !reflect.DeepEqual(elem(back), c.value) {
						t.Errorf("%T, format %d: %v, %v", c.value, format, elem(back), err)
					}
				}
				src := encode(t, m, pgtype.UUIDOID, format, u)
				var v any
				if err := m.Scan(pgtype.UUIDOID, format, src, &v); err != nil || v != any(u) {
					t.Errorf("format %d: got value %T %v, %v", format, v, v, err)
				}
				var id idtype.Sno
				if err := m.Scan(pgtype.UUIDOID, format, src, &id); !errors.Is(err, idtype.ErrNotSno) {
					t.Errorf("format %d: %v, want ErrNotSno", format, err)
				}
				if err := m.Scan(pgtype.UUIDOID, format, nil, &id); !errors.Is(err, idtype.ErrNull) {
					t.Errorf("format %d: %v, want ErrNull", format, err)
				}
			}
		})
	}
}

// A caller's hook for an ID goes before the check of column types.
func TestCallersHook(t *testing.T) {
	m := newMap()
	m.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{
		func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
			id, ok := value.(idtype.Snowflake)
			return &encodeOrder{}, "order " + id.String(), ok
		}}, m.TryWrapEncodePlanFuncs...)
	id := idtype.Snowflake(7)
	for _, c := range []struct {
		oid   uint32
		value any
		want  string
	}{
		{pgtype.TextOID, id, "order 7"}, {pgtype.TextArrayOID, []idtype.Snowflake{7}, `{"order 7"}`}, {pgtype.Int8OID, id, "7"}, {pgtype.Int8OID, &id, "7"},
	} {
		if got := encode(t, m, c.oid, textFormat, c.value); string(got) != c.want {
			t.Errorf("%T as OID %d: %q, want %q", c.value, c.oid, got, c.want)
		}
	}
	if b, err := m.Encode(pgtype.ByteaOID, binaryFormat, sno, nil); err == nil || !strings.Contains(err.Error(), "want a uuid parameter") {
		t.Errorf("a type without a hook: %q, %v", b, err)
	}
}

type encodeOrder struct{ next pgtype.EncodePlan }

func (p *encodeOrder) SetNext(next pgtype.EncodePlan) { p.next = next }
func (p *encodeOrder) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode("order "+value.(idtype.Snowflake).String(), buf)
}

// Registering twice doesn't nest codecs of this package.
func TestRegisterTwice(t *testing.T) {
	m := newMap()
	pgxcodec.Register(m)
	for _, name := range []string{"int8", "uuid", "text", "varchar", "bpchar", "name", "bytea", "_int8", "_uuid", "_text", "_varchar", "_bpchar", "_name", "_bytea", "json", "jsonb"} {
		typ, ok := m.TypeForName(name)
		if !ok || !strings.HasPrefix(fmt.Sprintf("%T", typ.Codec), "*pgxcodec.") {
			t.Fatalf("%s is %v", name, typ)
		}
		inner := reflect.ValueOf(typ.Codec).Elem().FieldByName("Codec").Elem().Type().String()
		if strings.Contains(inner, "pgxcodec.") {
			t.Errorf("%s: wraps %s", name, inner)
		}
	}
}

// Scanning an array whose codec can't read IDs fails and doesn't panic.
func TestForeignArray(t *testing.T) {
	m := pgtype.NewMap()
	m.RegisterType(&pgtype.Type{Name: "_int8", OID: pgtype.Int8ArrayOID, Codec: pgtype.TextCodec{}})
	pgxcodec.Register(m)
	var ids []idtype.Snowflake
	if err := m.Scan(pgtype.Int8ArrayOID, textFormat, []byte("{1}"), &ids); err == nil {
		t.Errorf("got %v, want an error", ids)
	}
}
