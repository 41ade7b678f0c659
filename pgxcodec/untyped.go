package pgxcodec

import (
	"database/sql/driver"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// If pgx knows the column type, it asks the codecs of this package, which plan typed keys
// and structs that embed an ID. Otherwise, as in the modes exec and simple_protocol, pgx
// looks up the Go type, and only base types are registered. The hooks in this file show
// pgx the other types as their base types.

func registerUntyped(m *pgtype.Map) {
	m.TryWrapEncodePlanFuncs = withFirst(m.TryWrapEncodePlanFuncs, encodeUntyped)
	m.TryWrapScanPlanFuncs = withFirst(m.TryWrapScanPlanFuncs, scanUntyped)
}

// withFirst returns hooks with one more at the beginning, unless they already contain it.
func withFirst[F any](hooks []F, hook F) []F {
	same := func(other F) bool { return reflect.ValueOf(other).Pointer() == reflect.ValueOf(hook).Pointer() }
	if slices.ContainsFunc(hooks, same) {
		return hooks
	}
	return slices.Insert(slices.Clone(hooks), 0, hook)
}

// untypedForm returns the form of a value whose type has a base type other than itself,
// or nil.
func untypedForm(value any) *form {
	f := formOf(reflect.TypeOf(value))
	if f == nil || f.same == nil || f.same == f.typ {
		return nil
	}
	return f
}

func encodeUntyped(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	f := untypedForm(value)
	if f == nil {
		return nil, nil, false
	}
	return &encodeView{form: f}, f.view(value), true
}

type encodeView struct {
	*form
	next pgtype.EncodePlan
}

func (p *encodeView) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *encodeView) Encode(value any, buf []byte) ([]byte, error) {
	if _, ok := in[byte](value, p.id); !ok {
		return nil, p.wrongType(value)
	}
	if err := p.check(value, false); err != nil {
		return nil, err
	}
	b, err := p.next.Encode(p.view(value), buf)
	if v, ok := value.(driver.Valuer); ok && err != nil {
		if _, named := v.Value(); named != nil {
			return nil, named // names the value's own type
		}
	}
	return b, err
}

func scanUntyped(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	f := untypedForm(target)
	if f == nil || f.typ.Kind() != reflect.Pointer {
		return nil, nil, false
	}
	return &scanView{form: f}, f.view(target), true
}

type scanView struct {
	*form
	next pgtype.ScanPlan
}

func (p *scanView) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *scanView) Scan(src []byte, target any) error {
	if _, ok := in[byte](target, p.id); !ok {
		return pgtype.ErrScanTargetTypeChanged
	}
	if !p.tagged {
		return p.next.Scan(src, p.view(target))
	}
	// The view could be set to an ID that the model doesn't have.
	scanned := reflect.New(p.typ.Elem())
	if err := p.next.Scan(src, p.view(scanned.Interface())); err != nil {
		return err
	}
	if err := p.check(scanned.Interface(), true); err != nil {
		return err
	}
	reflect.ValueOf(target).Elem().Set(scanned.Elem())
	return nil
}
