package pgxcodec

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"
)

// A jsonCodec is the codec of json or jsonb. It scans an ID, and a sqltypes.Array, with
// UnmarshalJSON. pgx would call the Scan method with the JSON text. It encodes a sqltypes.Array
// as the slice. pgx would store its Value, the literal of an array.
type jsonCodec struct{ pgtype.Codec }

func (c *jsonCodec) wrapped() pgtype.Codec { return c.Codec }

// registerJSON wraps the codec of json or jsonb and registers it, also for the elements of
// its array.
func registerJSON(m *pgtype.Map, name string, oid, arrayOID uint32) {
	element := &pgtype.Type{Name: name, OID: oid, Codec: &jsonCodec{baseCodec(m, oid)}}
	m.RegisterType(element)
	if a, ok := baseCodec(m, arrayOID).(*pgtype.ArrayCodec); ok {
		m.RegisterType(&pgtype.Type{Name: "_" + name, OID: arrayOID, Codec: &pgtype.ArrayCodec{ElementType: element, Delimiter: a.Delimiter}})
	}
}

func (c *jsonCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if v := reflect.Indirect(reflect.ValueOf(value)); v.IsValid() && isArray(v.Type()) {
		if next := c.Codec.PlanEncode(m, oid, format, sliceOf(v)); next != nil {
			return encodeJSON{next}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

// sliceOf returns a sqltypes.Array[T] as a []T.
func sliceOf(array reflect.Value) any {
	return array.Convert(reflect.SliceOf(array.Type().Elem())).Interface()
}

type encodeJSON struct{ next pgtype.EncodePlan } // of a slice

func (p encodeJSON) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(sliceOf(reflect.Indirect(reflect.ValueOf(value))), buf)
}

func (c *jsonCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	f := formOf(reflect.TypeOf(target))
	if f != nil && !f.own && f.typ.Kind() == reflect.Pointer && (f.shape == one || isArray(f.typ.Elem())) {
		if text := c.Codec.PlanScan(m, oid, format, new([]byte)); text != nil {
			return &scanJSON{f, text}
		}
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

type scanJSON struct {
	*form
	text pgtype.ScanPlan // scans into a *[]byte
}

func (p *scanJSON) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	var text []byte
	if err := p.text.Scan(src, &text); err != nil {
		return err
	}
	if string(bytes.Trim(text, " \t\r\n")) == "null" {
		text = nil
	}
	if p.shape == one {
		return (&scanOne{p.form, unmarshalJSON{}}).Scan(text, target)
	}
	list := reflect.New(p.typ.Elem())
	if err := (unmarshalJSON{}).Scan(text, list.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(target).Elem().Set(list.Elem())
	return nil
}

// unmarshalJSON scans JSON, or NULL, into a target with the methods UnmarshalJSON and Scan.
type unmarshalJSON struct{}

func (unmarshalJSON) Scan(src []byte, target any) error {
	if src == nil {
		return scan(target, nil)
	}
	return json.Unmarshal(src, target)
}
