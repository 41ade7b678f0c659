package pgxcodec

import (
	"database/sql/driver"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// pgx calls hooks for values that the column's codec has no plan for. It knows better than
// they whether a slice is an array, a dimension of one, or a document in a json[] column,
// with the prefixes of its IDs. So the hooks of this package come after pgx's own. Only the
// one that scans a single ID comes first, because pgx's hook for pointers would change the
// target of a scan that fails.

func registerHooks(m *pgtype.Map) {
	h := hooks{m}
	m.TryWrapEncodePlanFuncs = withHooks(m.TryWrapEncodePlanFuncs, nil, h.encode)
	m.TryWrapScanPlanFuncs = withHooks(m.TryWrapScanPlanFuncs, h.scanOne, h.scanSeveral)
}

// withHooks returns hooks with first, unless it is nil, and last at their ends. It returns
// them unchanged if they already contain last.
func withHooks[F any](hooks []F, first, last F) []F {
	pointer := func(hook F) uintptr { return reflect.ValueOf(hook).Pointer() }
	if slices.ContainsFunc(hooks, func(hook F) bool { return pointer(hook) == pointer(last) }) {
		return hooks
	}
	hooks = append(slices.Clone(hooks), last)
	if pointer(first) != 0 {
		hooks = slices.Insert(hooks, 0, first)
	}
	return hooks
}

// hooks are the hooks of a map. If pgx doesn't know the column type, as in the modes exec and
// simple_protocol, it looks up the Go type. Typed keys and structs are registered in the map
// when they first occur.
type hooks struct{ m *pgtype.Map }

// register registers a form as a default type, and reports whether it wasn't yet.
func (h hooks) register(f *form) bool {
	if f.pgType() == "" {
		return false
	}
	if _, known := h.m.TypeForValue(reflect.Zero(f.typ).Interface()); known {
		return false
	}
	registerDefault(h.m, f)
	return true
}

func (h hooks) encode(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(value))
	_, encodes := value.(driver.Valuer)
	switch {
	case f == nil, f.many && encodes: // a sqltypes.Array encodes itself
		return nil, nil, false
	case f.column == &byteas && !f.many:
		return &encodeNumbers{form: f}, numbers{f}, true
	}
	return &encodeRegistered{}, value, h.register(f)
}

func (h hooks) scanOne(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	return h.scan(target, false)
}

func (h hooks) scanSeveral(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	return h.scan(target, true)
}

func (h hooks) scan(target any, many bool) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(target))
	if f == nil || f.many != many || f.typ.Kind() != reflect.Pointer {
		return nil, nil, false
	}
	return &scanRegistered{}, target, h.register(f)
}

// encodeRegistered and scanRegistered are the plans for the first value of a type.
type (
	encodeRegistered struct{ pgtype.EncodePlan }
	scanRegistered   struct{ pgtype.ScanPlan }
)

func (p *encodeRegistered) SetNext(next pgtype.EncodePlan) { p.EncodePlan = next }
func (p *scanRegistered) SetNext(next pgtype.ScanPlan)     { p.ScanPlan = next }

// numbers stands for one SnoBytes. pgx would encode its bytes as an array of ten numbers, so
// this is an array, for which only the codecs of arrays have a plan, and its element fails.
type numbers struct{ *form }

func (numbers) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: 1, LowerBound: 1}}
}
func (n numbers) Index(int) any  { return failing{n.refusal("an array", "make the column bytea")} }
func (n numbers) IndexType() any { return n.Index(0) }

// A failing is a driver.Valuer without a Value.
type failing struct{ err error }

func (f failing) Value() (driver.Value, error) { return nil, f.err }

type encodeNumbers struct {
	*form
	next pgtype.EncodePlan
}

func (p *encodeNumbers) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *encodeNumbers) Encode(value any, buf []byte) ([]byte, error) {
	if isNull(reflect.ValueOf(value)) {
		return nil, nil
	}
	return p.next.Encode(numbers{p.form}, buf)
}
