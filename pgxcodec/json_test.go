package pgxcodec_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// An ID in a json or jsonb column is read from its own JSON and from JSON of its column.
func TestScanJSON(t *testing.T) {
	for _, c := range []struct {
		family
		texts []string
	}{
		{idFamily(snowflake), []string{`"132271570944274432"`, `132271570944274432`}},
		{idFamily(snowflakeSI), []string{`9007199254740991`, `"9007199254740991"`}},
		{idFamily(uid60), []string{`"xinaS8QBh"`, `11093174944930914`}},
		{idFamily(spread64), []string{`"cb54ecf2840a0015"`, `-3795148059624996843`}},
		{idFamily(sno), []string{`"brpk4q72xwf2m63l"`, `"6272706b-3471-3732-7877-66326d36336c"`}},
		{idFamily(idtype.SnowflakeOf[shop](7)), []string{`"shop_7"`, `7`}},
		{idFamily(idtype.SnoOf[customer](taggedSno)), []string{`"cus_` + taggedSno.String() + `"`, `"` + taggedSno.UUID().String() + `"`}},
		{idFamily(idtype.Snowflake(7)), []string{`"7"`, ` 7 `}},
		{idFamily(sqltypes.TextOf(sno)), []string{`"brpk4q72xwf2m63l"`}},
		{idFamily(sqltypes.TextOf(idtype.SnowflakeOf[shop](7))), []string{`"shop_7"`, `"7"`}},
		{idFamily(sqltypes.SnoBytesOf(sno)), []string{`"brpk4q72xwf2m63l"`, `"\\x4e6f2160a0ff9a0a1033"`}},
	} {
		for _, column := range []struct{ oid, array uint32 }{{pgtype.JSONOID, pgtype.JSONArrayOID}, {pgtype.JSONBOID, pgtype.JSONBArrayOID}} {
			for _, format := range []int16{textFormat, binaryFormat} {
				c.scansJSON(t, newMap(), column.oid, column.array, format, c.texts)
			}
		}
	}
}

func (f family) scansJSON(t *testing.T, m *pgtype.Map, oid, array uint32, format int16, texts []string) {
	t.Helper()
	// scan scans JSON, or NULL, into a destination that has the value before.
	scan := func(src, before any) (any, error) {
		dst := ptr(before)
		err := m.Scan(oid, format, encode(t, m, oid, format, src), dst)
		return elem(dst), err
	}
	id, p := f.v, ptr(f.v)
	zeroID, optional, noArray := zero(f.typ), f.optional(), zero(f.in("IDs"))
	for _, text := range texts {
		pair, nullable := "["+text+","+text+"]", "["+text+", null]"
		for _, c := range []struct {
			src          string
			before, want any
		}{
			{text, zeroID, id}, {text, ptr(zeroID), p}, {text, ptr(ptr(zeroID)), ptr(p)}, {text, zero(f.in("Null")), f.null()}, {text, zero(f.in("Optional")), optional},
			{pair, f.slice(), f.slice(id, id)}, {pair, noArray, fill(f.in("IDs"), id, id)}, {nullable, fill(f.in("OptionalIDs")), fill(f.in("OptionalIDs"), optional, nil)},
		} {
			got, err := scan(c.src, c.before)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s from %s as OID %d, format %d: %v, %v", typename.OfValue(c.want), c.src, oid, format, got, err)
			}
			if reflect.TypeOf(c.before) == reflect.TypeOf(p) && (got == c.before || elem(c.before) != zeroID) {
				t.Errorf("%s from %s as OID %d, format %d: the old ID changed", typename.OfValue(p), c.src, oid, format)
			}
		}
		elements := newOf(f.slice())
		if err := m.Scan(array, format, encode(t, m, array, format, []string{text}), elements); err != nil || !reflect.DeepEqual(elem(elements), f.slice(id)) {
			t.Errorf("%s from %s in OID %d, format %d: %v, %v", typename.OfValue(id), text, array, format, elem(elements), err)
		}
	}
	// The JSON null and NULL, and JSON that is no ID.
	for _, src := range []any{"null", nil, `"!"`, `{}`, `1.5`, `[]`} {
		isNull := src == "null" || src == nil
		if got, err := scan(src, id); err == nil || isNull != errors.Is(err, idtype.ErrNull) || got != id {
			t.Errorf("%s from %v as OID %d, format %d: %v, %v", typename.OfValue(id), src, oid, format, got, err)
		}
		for _, before := range []any{p, f.null(), optional} {
			want := before
			if isNull {
				want = zero(reflect.TypeOf(before))
			}
			if got, err := scan(src, before); got != want || isNull != (err == nil) || elem(p) != id {
				t.Errorf("%s from %v as OID %d, format %d: %v, %v, want %v", typename.OfValue(before), src, oid, format, got, err, want)
			}
		}
		got, err := scan(src, fill(f.in("IDs"), id))
		if isNull && (err != nil || !isNil(got)) || !isNull && src != `[]` && (err == nil || length(got) != 1) {
			t.Errorf("%s from %v as OID %d, format %d: %v, %v", typename.OfValue(got), src, oid, format, got, err)
		}
	}
	if plan := m.PlanScan(oid, format, newOf(id)); !errors.Is(plan.Scan([]byte("7"), new(int)), pgtype.ErrScanTargetTypeChanged) {
		t.Errorf("a plan for %s scans into an int", typename.OfValue(id))
	}
}

// The codec keeps the functions of a caller's JSON codec.
func TestCallersJSON(t *testing.T) {
	m := pgtype.NewMap()
	called := 0
	m.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{
		Marshal:   func(v any) ([]byte, error) { return fmt.Append(nil, v), nil },
		Unmarshal: func(_ []byte, v any) error { called++; *v.(*map[string]int) = nil; return nil },
	}})
	pgxcodec.Register(m)
	var v map[string]int
	id := snowflake
	err := errors.Join(m.Scan(pgtype.JSONBOID, textFormat, []byte(`{}`), &v), m.Scan(pgtype.JSONBOID, textFormat, []byte(`7`), &id))
	if err != nil || called != 1 || id != 7 {
		t.Errorf("%d calls, %v, %v", called, id, err)
	}
	if b := encode(t, m, pgtype.JSONBOID, textFormat, []int{1}); string(b) != "[1]" {
		t.Errorf("encoded as %s", b)
	}
}
