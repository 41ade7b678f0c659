package pgxcodec

import (
	"database/sql"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

func (m memberOf[V]) encode(f *form, format int16) pgtype.EncodePlan {
	w := m.wire(f.leaf, format)
	if w == nil {
		return nil
	}
	t := f.same
	if t.Kind() == reflect.Pointer {
		t = t.Elem() // the plans take both a type and a pointer to it
	}
	switch t {
	case reflect.TypeFor[V]():
		p := &encodeValue[V]{f, w}
		if m.fast != nil && format == pgtype.BinaryFormatCode {
			return m.fast.encode(f, p)
		}
		return p
	case reflect.TypeFor[*V]():
		return &encodePointer[V]{f, w}
	case reflect.TypeFor[sql.Null[V]]():
		return &encodeNull[V]{f, w}
	case reflect.TypeFor[sqltypes.Optional[V]]():
		return &encodeOptional[V]{f, w}
	}
	return nil
}

// scan plans the scan into a target of the form. pgx itself dereferences pointers to other
// pointers and then asks for a plan again.
func (m memberOf[V]) scan(f *form, format int16) pgtype.ScanPlan {
	w := m.wire(f.leaf, format)
	if w == nil {
		return nil
	}
	switch f.same {
	case reflect.TypeFor[*V]():
		p := &scanValue[V]{f, w}
		if m.fast != nil && format == pgtype.BinaryFormatCode {
			return m.fast.scan(f, p)
		}
		return p
	case reflect.TypeFor[**V]():
		return &scanPointer[V]{f, w}
	case reflect.TypeFor[*sql.Null[V]]():
		return &scanNull[V]{f, w}
	case reflect.TypeFor[*sqltypes.Optional[V]]():
		return &scanOptional[V]{f, w}
	}
	return nil
}

// wire returns the wire for a format, or nil if there is no such format.
func (m memberOf[V]) wire(l *leaf, format int16) wire[V] {
	switch format {
	case pgtype.BinaryFormatCode:
		return m.binary(l)
	case pgtype.TextFormatCode:
		return m.text(l)
	}
	return nil
}

// wrongType returns the error for a value of another type than the plan was made for.
func (f *form) wrongType(value any) error {
	return fmt.Errorf("pgxcodec: encode %s: want a value of the planned type %s; make a plan for each type", typename.OfValue(value), typename.Of(f.typ))
}

type encodeValue[V any] struct {
	*form
	w wire[V]
}

func (p *encodeValue[V]) Encode(value any, buf []byte) ([]byte, error) {
	v, ok := in[V](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case v == nil:
		return nil, nil
	}
	return p.w.put(buf, v)
}

type encodePointer[V any] struct {
	*form
	w wire[V]
}

func (p *encodePointer[V]) Encode(value any, buf []byte) ([]byte, error) {
	v, ok := in[*V](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case v == nil, *v == nil:
		return nil, nil
	}
	return p.w.put(buf, *v)
}

type encodeNull[V any] struct {
	*form
	w wire[V]
}

func (p *encodeNull[V]) Encode(value any, buf []byte) ([]byte, error) {
	v, ok := in[sql.Null[V]](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case v == nil, !v.Valid:
		return nil, nil
	}
	return p.w.put(buf, &v.V)
}

type encodeOptional[V sqltypes.ID] struct {
	*form
	w wire[V]
}

func (p *encodeOptional[V]) Encode(value any, buf []byte) ([]byte, error) {
	v, ok := in[sqltypes.Optional[V]](value, p.id)
	switch {
	case !ok:
		return nil, p.wrongType(value)
	case v == nil, v.IsZero():
		return nil, nil
	}
	return p.w.put(buf, &v.ID)
}

type scanValue[V any] struct {
	*form
	w wire[V]
}

func (p *scanValue[V]) Scan(src []byte, target any) error {
	dst, ok := in[V](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		return fmt.Errorf("pgxcodec: %w", p.nullError())
	}
	return p.w.get(src, dst)
}

// nullError returns the error for a NULL that is scanned into an ID.
func (l *leaf) nullError() error {
	return fmt.Errorf("scan NULL into %[1]s; scan a nullable column into *%[1]s, sql.Null[%[1]s] or sqltypes.Optional[%[1]s]: %[2]w", typename.Of(l.typ), idtype.ErrNull)
}

type scanPointer[V any] struct {
	*form
	w wire[V]
}

func (p *scanPointer[V]) Scan(src []byte, target any) error {
	dst, ok := in[*V](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = nil
		return nil
	}
	v := new(V)
	if err := p.w.get(src, v); err != nil {
		return err
	}
	*dst = v
	return nil
}

type scanNull[V any] struct {
	*form
	w wire[V]
}

func (p *scanNull[V]) Scan(src []byte, target any) error {
	dst, ok := in[sql.Null[V]](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = sql.Null[V]{}
		return nil
	}
	if err := p.w.get(src, &dst.V); err != nil {
		return err
	}
	dst.Valid = true
	return nil
}

type scanOptional[V sqltypes.ID] struct {
	*form
	w wire[V]
}

func (p *scanOptional[V]) Scan(src []byte, target any) error {
	dst, ok := in[sqltypes.Optional[V]](target, p.id)
	switch {
	case !ok:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		*dst = sqltypes.Optional[V]{}
		return nil
	}
	return p.w.get(src, &dst.ID)
}
