package pgxcodec

import (
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"
)

// planEncode returns the plan for a form that holds one ID of the column, or nil for other
// forms.
func (c *column) planEncode(f *form, p planner) pgtype.EncodePlan {
	if f == nil || f.shape != one || !c.holds(f.leaf) {
		return nil
	}
	w := f.encoder(c, p)
	if w == nil || f.isLeaf() {
		return w
	}
	return &encodeOne{f, w}
}

// planScan returns the plan for a target of a form that holds one ID of the column, or nil
// for other forms.
func (c *column) planScan(f *form, format int16) pgtype.ScanPlan {
	if f == nil || f.shape != one || !c.holds(f.leaf) || f.typ.Kind() != reflect.Pointer {
		return nil
	}
	w := f.wire(c, format)
	if w == nil || f.typ == f.pointer {
		return w
	}
	return &scanOne{f, w}
}

// encodeOne encodes a form around one ID.
type encodeOne struct {
	*form
	wire wire
}

func (p *encodeOne) Encode(value any, buf []byte) ([]byte, error) {
	if reflect.TypeOf(value) != p.typ {
		return nil, wrongType(value, p.typ)
	}
	id := p.id(reflect.ValueOf(value))
	if id == nil {
		return nil, nil
	}
	return p.wire.Encode(id, buf)
}

// scanOne scans into a form around one ID.
type scanOne struct {
	*form
	wire wire
}

func (p *scanOne) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	return p.scan(src, reflect.ValueOf(target).Elem())
}

// scan sets a value of a type in the form. If it fails, it leaves the value unchanged.
func (p *scanOne) scan(src []byte, v reflect.Value) error {
	switch {
	case v.Type() == p.leaf.typ:
		return p.wire.Scan(src, v.Addr().Interface())
	case src == nil:
		v.SetZero()
		return nil
	case v.Kind() == reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if err := p.scan(src, to.Elem()); err != nil {
			return err
		}
		v.Set(to)
		return nil
	}
	// A sql.Null or a sqltypes.Optional.
	err := p.scan(src, v.Field(0))
	if err == nil && v.NumField() > 1 {
		v.Field(1).SetBool(true)
	}
	return err
}
