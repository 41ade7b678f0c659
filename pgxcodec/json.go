package pgxcodec

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"
)

// A jsonCodec is the codec of json or jsonb. It scans an ID, and a sqltypes.Array, with
// UnmarshalJSON. pgx would call the Scan method with the JSON text. It encodes a sqltypes.Array
// with MarshalJSON. pgx would store its Value, the literal of an array.
type jsonCodec struct{ pgtype.Codec }

func (c *jsonCodec) wrapped() pgtype.Codec { return c.Codec }

func (c *jsonCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	p := c.Codec.PlanScan(m, oid, format, target)
	f := formOf(reflect.TypeOf(target))
	if f == nil || f.shape == other || f.many && !isArray(f.typ.Elem()) {
		return p
	}
	text := c.Codec.PlanScan(m, oid, format, new([]byte))
	if p == nil || text == nil {
		return p
	}
	return &scanJSON{f, text, p}
}

func (c *jsonCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if v := reflect.Indirect(reflect.ValueOf(value)); v.IsValid() && isArray(v.Type()) {
		if text := c.Codec.PlanEncode(m, oid, format, []byte(nil)); text != nil {
			return encodeJSON{text}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type encodeJSON struct{ text pgtype.EncodePlan } // of a []byte

func (p encodeJSON) Encode(value any, buf []byte) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return p.text.Encode(text, buf)
}

// registerJSON wraps the codec of json or jsonb and registers it, also for the elements of
// its array.
func registerJSON(m *pgtype.Map, name string, oid, arrayOID uint32) {
	element := &pgtype.Type{Name: name, OID: oid, Codec: &jsonCodec{baseCodec(m, oid)}}
	m.RegisterType(element)
	if a, ok := baseCodec(m, arrayOID).(*pgtype.ArrayCodec); ok {
		m.RegisterType(&pgtype.Type{Name: "_" + name, OID: arrayOID, Codec: &pgtype.ArrayCodec{ElementType: element, Delimiter: a.Delimiter}})
	}
}

type scanJSON struct {
	*form
	text pgtype.ScanPlan // scans into a *[]byte
	null pgtype.ScanPlan // scans NULL
}

func (p *scanJSON) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	var text []byte
	if err := p.text.Scan(src, &text); err != nil {
		return err
	}
	if text == nil || string(bytes.Trim(text, " \t\r\n")) == "null" {
		return p.null.Scan(nil, target)
	}
	t := p.leaf.typ
	if p.many {
		t = p.typ.Elem()
	}
	value := reflect.New(t)
	if err := json.Unmarshal(text, value.Interface()); err != nil {
		return err
	}
	if p.many {
		reflect.ValueOf(target).Elem().Set(value.Elem())
		return nil
	}
	v, err := value.Interface().(driver.Valuer).Value()
	if err != nil {
		return err
	}
	return scanValueInto(reflect.ValueOf(target), v)
}

// scanValueInto scans the Value of an ID into a form of it, allocating pointers.
func scanValueInto(target reflect.Value, v driver.Value) error {
	if s, ok := target.Interface().(sql.Scanner); ok {
		return s.Scan(v)
	}
	next := reflect.New(target.Type().Elem().Elem())
	if err := scanValueInto(next, v); err != nil {
		return err
	}
	target.Elem().Set(next)
	return nil
}
