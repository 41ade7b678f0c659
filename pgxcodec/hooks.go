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
	m.TryWrapEncodePlanFuncs = withHooks(m.TryWrapEncodePlanFuncs, nil, encodeHook)
	m.TryWrapScanPlanFuncs = withHooks(m.TryWrapScanPlanFuncs, scanOne, scanSeveral)
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

func encodeHook(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(value))
	_, encodes := value.(driver.Valuer)
	switch {
	case f == nil, f.many && encodes: // a sqltypes.Array encodes itself
		return nil, nil, false
	case f.column == &byteas && !f.many:
		return &encodeNumbers{form: f}, numbers{f}, true
	case f.hasView():
		return &encodeView{form: f}, f.view(value), true
	}
	return nil, nil, false
}

func scanOne(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	return scanHook(target, false)
}

func scanSeveral(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	return scanHook(target, true)
}

func scanHook(target any, many bool) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	f := formOf(reflect.TypeOf(target))
	if f == nil || f.many != many || !f.hasView() || f.typ.Kind() != reflect.Pointer {
		return nil, nil, false
	}
	return &scanView{form: f}, f.view(target), true
}

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

// If pgx doesn't know the column type, as in the modes exec and simple_protocol, it looks up
// the Go type, and only base types are registered. The views show pgx the other types, typed
// keys and structs that embed an ID, as their base types.

func (f *form) hasView() bool { return f.same != nil && f.same != f.typ }

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
