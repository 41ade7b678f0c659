package pgxcodec

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/internal/typename"
)

// A planner plans as a codec does, for one OID and format.
type planner struct {
	pgtype.Codec
	m      *pgtype.Map
	oid    uint32
	format int16
}

// encodes reports whether pgx encodes the type t, or the type that it points to, without
// its Value: the codec has a plan, as for a struct with a TextValue method, or a hook has.
func (p planner) encodes(t reflect.Type) bool {
	value := reflect.Zero(t)
	pointer := t.Kind() == reflect.Pointer && t.Name() == ""
	if pointer {
		value = reflect.New(t.Elem())
	}
	return p.PlanEncode(p.m, p.oid, p.format, value.Interface()) != nil || p.hooked(value.Interface()) || pointer && p.encodes(t.Elem())
}

// hooked reports whether a hook makes something else of an ID, which pgx encodes.
func (p planner) hooked(value any) bool {
	return slices.ContainsFunc(p.m.TryWrapEncodePlanFuncs, func(hook pgtype.TryWrapEncodePlanFunc) bool {
		_, next, ok := hook(value)
		_, own := next.(numbers)
		return ok && !own && formOf(reflect.TypeOf(next)) == nil && p.m.PlanEncode(p.oid, p.format, next) != nil
	})
}

// refuse returns an error for an ID that belongs in another column type, and for a slice
// in place of one ID. It returns nil for values that aren't IDs or that pgx encodes without
// their Value.
func (c *column) refuse(f *form, value any, plan planner) error {
	switch {
	case f == nil:
		return nil
	case f.many:
		if _, isArray := value.(driver.Valuer); !c.holds(f.leaf) || isArray || f.shape != slice {
			return nil // a sqltypes.Array is its literal, which a text column can hold
		}
		return fmt.Errorf("pgxcodec: encode %s: want one ID for a %s parameter, got a slice; write = ANY($1) to match several", typename.Of(f.typ), c.name)
	case c.holds(f.leaf), plan.encodes(f.typ):
		return nil
	}
	remedy := "make the column " + f.column.name
	if c == &texts {
		// Postgres types a parameter as text if the query gives it no type.
		remedy = fmt.Sprintf("write $1::%s if the query gives the parameter no type, pass id.String() to a function that takes text", f.column.name)
	}
	return f.refusal(c.name, remedy)
}

// refuseElement returns an error for an ID in place of an array of the column's type. It
// returns nil for values that aren't IDs or that pgx encodes without their Value.
func (c *column) refuseElement(f *form, plan planner) error {
	switch {
	case f == nil, f.many, plan.encodes(f.typ):
		return nil
	case c.holds(f.leaf):
		return fmt.Errorf("pgxcodec: encode %s: want a slice for a %s[] parameter, got one ID; pass []%[1]s", typename.Of(f.typ), c.name)
	default:
		return fmt.Errorf("pgxcodec: encode %s: want a %s parameter, got %s[]; make the column %[2]s, or pass a slice of %[4]s", typename.Of(f.typ), f.column.name, c.name, f.alternatives())
	}
}

// refusal returns the error for an ID in a parameter of another type.
func (f *form) refusal(parameter, remedy string) error {
	return fmt.Errorf("pgxcodec: encode %s: want a %s parameter, got %s; %s, or use %s", typename.Of(f.typ), f.column.name, parameter, remedy, f.alternatives())
}

// alternatives returns the Go types for other columns, for errors.
func (l *leaf) alternatives() string {
	switch {
	case l.column == &byteas:
		return "idtype.Sno for uuid columns, sqltypes.SnoText for text columns"
	case l.of != nil:
		return fmt.Sprintf("%s for %s columns%s", typename.Of(l.of.typ), l.of.column.name, l.of.snoBytes())
	case l.own(), l.typed():
		return "sqltypes.Text[" + typename.Of(l.typ) + "] for text columns" + l.snoBytes()
	}
	return "sqltypes." + l.typ.Name() + "Text for text columns" + l.snoBytes()
}

func (l *leaf) snoBytes() string {
	if l.column != &uuids || l.uuid {
		return ""
	}
	return ", sqltypes.SnoBytes for bytea columns"
}

// A refusal is the plan for an ID in a wrong column type. Encode returns err. But NULL, such
// as an Optional without an ID, fits every column.
type refusal struct{ err error }

func (r refusal) Encode(value any, _ []byte) ([]byte, error) {
	if isNull(reflect.ValueOf(value)) {
		return nil, nil
	}
	return nil, r.err
}

// isNull reports whether a value is NULL: a nil pointer, or a driver.Valuer, behind any
// pointers, whose Value is nil.
func isNull(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	valuer, ok := v.Interface().(driver.Valuer)
	if !ok {
		return false
	}
	value, err := valuer.Value()
	return value == nil && err == nil
}

// A scanRefusal is the plan for a target that can hold one ID and NULL, but no array.
type scanRefusal struct{ err error }

func (r scanRefusal) Scan(src []byte, target any) error {
	if src != nil {
		return r.err
	}
	if s, ok := target.(sql.Scanner); ok {
		return s.Scan(nil)
	}
	reflect.ValueOf(target).Elem().SetZero() // a pointer
	return nil
}
