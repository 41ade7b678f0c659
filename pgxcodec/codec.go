package pgxcodec

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/internal/typename"
)

// An elementCodec is the codec of a column type that can hold IDs. The codec that it
// embeds goes first. It then handles the ID types that the column holds, and rejects IDs
// that belong in another column type.
//
// The codec plans scans itself: pgx's hook for scan targets, TryWrapScanPlanFuncs, is
// never called for types with a Scan method.
type elementCodec struct {
	pgtype.Codec
	column *column
	last   lastScan
}

func (c *elementCodec) wrapped() pgtype.Codec { return c.Codec }

func (c *elementCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(value))
	switch {
	case f == nil || f.own || f.shape != one && f.shape != list:
		return nil
	case f.shape == list:
		return f.refuseList(c.column)
	case f.column != c.column:
		return f.refuse(m, oid, format, value, c.column.name)
	case f.wire == nil || format != pgtype.BinaryFormatCode:
		return &encodeOne{f, encodeValue{m, oid, format}}
	case f.typ == f.idType.typ:
		return f.wire
	}
	return &encodeOne{f, f.wire}
}

func (c *elementCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if p := c.last.plan(format, target); p != nil {
		return p
	}
	if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(target))
	switch {
	case f == nil || f.own || f.shape != one || f.column != c.column || f.typ.Kind() != reflect.Pointer:
		return nil
	case f.scan == nil || format != pgtype.BinaryFormatCode:
		return &scanOne{f, scanValue{c.Codec, c.column, m, oid, format}}
	}
	return c.last.set(f)
}

// A lastScan is the form that a codec planned last for the binary format, because pgx plans
// the scan anew for each query. Comparing with it takes a fifth of the time that formOf does.
type lastScan struct{ form atomic.Pointer[form] }

func (l *lastScan) plan(format int16, target any) pgtype.ScanPlan {
	if f := l.form.Load(); f != nil && f.typ == reflect.TypeOf(target) && format == pgtype.BinaryFormatCode {
		return f.scan
	}
	return nil
}

func (l *lastScan) set(f *form) pgtype.ScanPlan {
	l.form.Store(f)
	return f.scan
}

// scanPlan returns the plan for a pointer, or nil if pgx plans the scan.
func (f *form) scanPlan() pgtype.ScanPlan {
	switch {
	case f.typ == f.pointer:
		return f.wire
	case f.shape == one:
		return &scanOne{f, f.wire}
	case f.shape == list && f.holdsIDs():
		return &scanList{f, isArray(f.typ.Elem())}
	}
	return nil
}

// encodeOne encodes a form of one ID.
type encodeOne struct {
	*form
	id pgtype.EncodePlan // encodes a T or a *T
}

func (p *encodeOne) Encode(value any, buf []byte) ([]byte, error) {
	if reflect.TypeOf(value) != p.typ {
		return nil, wrongType(value, p.typ)
	}
	v := reflect.ValueOf(value)
	for v.Type() != p.idType.typ {
		switch {
		case v.Kind() != reflect.Pointer: // a sql.Null or a sqltypes.Optional
			if isNullStruct(v) {
				return nil, nil
			}
			v = v.Field(0)
		case v.IsNil():
			return nil, nil
		default:
			v = v.Elem()
		}
	}
	return p.id.Encode(at(v), buf)
}

// isNullStruct reports whether a sql.Null or a sqltypes.Optional is NULL.
func isNullStruct(v reflect.Value) bool {
	if v.NumField() > 1 {
		return !v.Field(1).Bool()
	}
	return at(v).(interface{ IsZero() bool }).IsZero()
}

// at returns a value, or a pointer to it if it has an address. Interface would copy such a
// value to the heap.
func at(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

// wrongType returns the error for a value of another type than a plan was made for.
func wrongType(value any, planned reflect.Type) error {
	return fmt.Errorf("pgxcodec: encode %s: want a value of the planned type %s; make a plan for each type", typename.OfValue(value), typename.Of(planned))
}

// encodeValue encodes the Value of an ID.
type encodeValue struct {
	m      *pgtype.Map
	oid    uint32
	format int16
}

func (p encodeValue) Encode(id any, buf []byte) ([]byte, error) {
	v, err := id.(driver.Valuer).Value()
	if err != nil {
		return nil, err
	}
	return p.m.Encode(p.oid, p.format, v, buf)
}

// scanOne scans into a pointer to a form of one ID. If it fails, it leaves the form unchanged.
// pgx would set a pointer, and the Valid of a sql.Null, before it scans the ID.
type scanOne struct {
	*form
	id pgtype.ScanPlan // scans into a *T
}

func (p *scanOne) Scan(src []byte, target any) error {
	if reflect.TypeOf(target) != p.typ {
		return pgtype.ErrScanTargetTypeChanged
	}
	return p.scanInto(src, reflect.ValueOf(target).Elem())
}

func (p *scanOne) scanInto(src []byte, v reflect.Value) error {
	switch {
	case v.Type() == p.idType.typ:
		return p.id.Scan(src, v.Addr().Interface())
	case src == nil:
		v.SetZero()
		return nil
	case v.Kind() == reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if err := p.scanInto(src, to.Elem()); err != nil {
			return err
		}
		v.Set(to)
		return nil
	}
	// A sql.Null or a sqltypes.Optional.
	err := p.scanInto(src, v.Field(0))
	if err == nil && v.NumField() > 1 {
		v.Field(1).SetBool(true)
	}
	return err
}

// scanValue scans by the Scan of an ID, as through a database/sql driver.
type scanValue struct {
	pgtype.Codec
	column *column
	m      *pgtype.Map
	oid    uint32
	format int16
}

func (p scanValue) Scan(src []byte, id any) error {
	switch {
	case src == nil:
		return scan(id, nil)
	case p.column == &texts:
		return scan(id, src)
	case p.format == pgtype.TextFormatCode && p.column != &byteas:
		text := string(src)
		// Scan takes a number for an integer that is out of range, not for a malformed text.
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && p.column == &bigints && strconv.FormatInt(n, 10) == text {
			return scan(id, n)
		}
		return scan(id, text)
	}
	v, err := p.DecodeDatabaseSQLValue(p.m, p.oid, p.format, src)
	if err != nil {
		return err
	}
	return scan(id, v)
}
