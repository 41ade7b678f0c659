package pgxcodec

import (
	"database/sql"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/sqltypes"
)

// If pgx doesn't know the column type, as in the modes exec and simple_protocol, it looks up
// the Go type. A form is registered in the map when it first occurs, by a hook that pgx calls
// for values and targets without a plan.

func registerHooks(m *pgtype.Map) {
	h := hooks{m}
	if slices.ContainsFunc(m.TryWrapEncodePlanFuncs, func(hook pgtype.TryWrapEncodePlanFunc) bool {
		return reflect.ValueOf(hook).Pointer() == reflect.ValueOf(h.encode).Pointer()
	}) {
		return
	}
	// The last hook to encode, because a caller's hook or one of pgx may know better. The first
	// to scan, because pgx's hook for pointers would change the target of a scan that fails.
	m.TryWrapEncodePlanFuncs = append(slices.Clone(m.TryWrapEncodePlanFuncs), h.encode)
	m.TryWrapScanPlanFuncs = slices.Insert(slices.Clone(m.TryWrapScanPlanFuncs), 0, h.scan)

	// pgx doesn't call a hook for targets with a Scan method. It passes them the text of a
	// column of unknown type, which all IDs accept but SnoBytes.
	h.register(formOf(reflect.TypeFor[sqltypes.SnoBytes]()))
	h.register(formOf(reflect.TypeFor[sqltypes.Optional[sqltypes.SnoBytes]]()))
	h.register(formOf(reflect.TypeFor[sql.Null[sqltypes.SnoBytes]]()))
	// Nor does the SQLScanner of the map call one.
	for t := range baseTypes {
		h.register(formOf(reflect.SliceOf(t)))
	}
}

type hooks struct{ m *pgtype.Map }

// register registers a form and a pointer to it, and reports whether it wasn't yet.
func (h hooks) register(f *form) bool {
	if f.pgType() == "" {
		return false
	}
	value := reflect.Zero(f.typ).Interface()
	if _, known := h.m.TypeForValue(value); known {
		return false
	}
	h.m.RegisterDefaultPgType(value, f.pgType())
	h.m.RegisterDefaultPgType(reflect.Zero(reflect.PointerTo(f.typ)).Interface(), f.pgType())
	return true
}

// A digit is an element of the array that pgx would make of a SnoBytes.
type digit byte

func (h hooks) encode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(value))
	switch {
	case f == nil:
		return nil, nil, false
	case h.register(f):
		return &encodeRegistered{}, value, true
	case f.column == &byteas && f.shape == one:
		// pgx has a plan for the next value if the column is an array of numbers.
		return refusal{f.refusal("an array", "make the column bytea", "use ")}, pgtype.Array[digit]{}, true
	}
	return nil, nil, false
}

func (h hooks) scan(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(target))
	if f == nil || f.typ.Kind() != reflect.Pointer || !h.register(f) {
		return nil, nil, false
	}
	return &scanRegistered{}, target, true
}

// encodeRegistered and scanRegistered are the plans for the first value of a type.
type (
	encodeRegistered struct{ pgtype.EncodePlan }
	scanRegistered   struct{ pgtype.ScanPlan }
)

func (p *encodeRegistered) SetNext(next pgtype.EncodePlan) { p.EncodePlan = next }
func (p *scanRegistered) SetNext(next pgtype.ScanPlan)     { p.ScanPlan = next }
