package pgxcodec_test

import (
	"database/sql"
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
	scanJSON(t, snowflake, `"132271570944274432"`, `132271570944274432`)
	scanJSON(t, snowflakeSI, `9007199254740991`, `"9007199254740991"`)
	scanJSON(t, uid60, `"xinaS8QBh"`, `11093174944930914`)
	scanJSON(t, spread64, `"cb54ecf2840a0015"`, `-3795148059624996843`)
	scanJSON(t, sno, `"brpk4q72xwf2m63l"`, `"6272706b-3471-3732-7877-66326d36336c"`)
	scanJSON(t, idtype.SnowflakeOf[shop](7), `"shop_7"`, `7`)
	scanJSON(t, idtype.SnoOf[customer](taggedSno), `"cus_`+taggedSno.String()+`"`, `"`+taggedSno.UUID().String()+`"`)
	scanJSON(t, orderID{7}, `"7"`, ` 7 `)
	scanJSON(t, customerID{sno}, `"brpk4q72xwf2m63l"`)
	scanJSON(t, sqltypes.TextOf(sno), `"brpk4q72xwf2m63l"`)
	scanJSON(t, sqltypes.TextOf(idtype.SnowflakeOf[shop](7)), `"shop_7"`, `"7"`)
	scanJSON(t, sqltypes.SnoBytesOf(sno), `"brpk4q72xwf2m63l"`, `"\\x4e6f2160a0ff9a0a1033"`)
}

func scanJSON[V sqltypes.ID](t *testing.T, id V, texts ...string) {
	t.Helper()
	m := newMap()
	for _, c := range []struct{ oid, array uint32 }{{pgtype.JSONOID, pgtype.JSONArrayOID}, {pgtype.JSONBOID, pgtype.JSONBArrayOID}} {
		for _, format := range []int16{textFormat, binaryFormat} {
			scan := func(src, target any) error {
				return m.Scan(c.oid, format, encode(t, m, c.oid, format, src), target)
			}
			other := *new(V)
			for _, text := range texts {
				got, p, null, optional := other, &other, sql.Null[V]{}, sqltypes.Optional[V]{}
				pp, list, array, nullable := &p, []V{}, sqltypes.Array[V]{}, sqltypes.Array[sqltypes.Optional[V]]{}
				pairs := "[" + text + "," + text + "]"
				err := errors.Join(scan(text, &got), scan(text, &p), scan(text, &pp), scan(text, &null), scan(text, &optional), scan(pairs, &list), scan(pairs, &array), scan("["+text+", null]", &nullable))
				if err != nil || got != id || *p != id || **pp != id || null != (sql.Null[V]{V: id, Valid: true}) || optional.ID != id || p == &other ||
					!reflect.DeepEqual(list, []V{id, id}) || !reflect.DeepEqual(array, sqltypes.Array[V]{id, id}) || !reflect.DeepEqual(nullable, sqltypes.Array[sqltypes.Optional[V]]{{ID: id}, {}}) {
					t.Errorf("%s from %s as OID %d, format %d: %v, %v, %v, %v, %v, %v, %v, %v", typename.OfValue(id), text, c.oid, format, got, p, null, optional, list, array, nullable, err)
				}
				var elements []V
				if err := m.Scan(c.array, format, encode(t, m, c.array, format, []string{text}), &elements); err != nil || !reflect.DeepEqual(elements, []V{id}) {
					t.Errorf("%s from %s in OID %d, format %d: %v, %v", typename.OfValue(id), text, c.array, format, elements, err)
				}
			}
			// The JSON null and NULL, and JSON that is no ID.
			for _, src := range []any{"null", nil, `"!"`, `{}`, `1.5`, `[]`} {
				isNull := src == "null" || src == nil
				got, p, null, optional, array := id, &id, sql.Null[V]{V: id, Valid: true}, sqltypes.OptionalOf(id), sqltypes.Array[V]{id}
				if err := scan(src, &got); err == nil || isNull != errors.Is(err, idtype.ErrNull) || got != id {
					t.Errorf("%s from %v as OID %d, format %d: %v, %v", typename.OfValue(id), src, c.oid, format, got, err)
				}
				err := errors.Join(scan(src, &p), scan(src, &null), scan(src, &optional))
				changed := p == nil && null == (sql.Null[V]{}) && optional.IsZero()
				same := p == &id && null.V == id && null.Valid && optional.ID == id
				if isNull && (err != nil || !changed) || !isNull && (err == nil || !same) {
					t.Errorf("forms of %s from %v as OID %d, format %d: %v, %v, %v, %v", typename.OfValue(id), src, c.oid, format, p, null, optional, err)
				}
				err = scan(src, &array)
				if isNull && (err != nil || array != nil) || !isNull && src != `[]` && (err == nil || len(array) != 1) {
					t.Errorf("%s from %v as OID %d, format %d: %v, %v", typename.OfValue(array), src, c.oid, format, array, err)
				}
			}
			if plan := m.PlanScan(c.oid, format, new(V)); !errors.Is(plan.Scan([]byte("7"), new(int)), pgtype.ErrScanTargetTypeChanged) {
				t.Errorf("a plan for %s scans into an int", typename.OfValue(id))
			}
		}
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
