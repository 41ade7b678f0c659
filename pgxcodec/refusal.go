package pgxcodec

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/internal/typename"
)

// A refusal is the plan for an ID in a wrong column type. Encode returns err. But NULL, such
// as an Optional without an ID, fits every column.
type refusal struct{ err error }

func (r refusal) Encode(value any, _ []byte) ([]byte, error) {
	if isNull(reflect.ValueOf(value)) {
		return nil, nil
	}
	return nil, r.err
}

func (refusal) SetNext(pgtype.EncodePlan) {}

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

// refuse returns the refusal for one ID in a parameter of another type, or in an array of its
// own type. It returns nil if a hook makes something else of the ID, which pgx encodes.
func (f *form) refuse(m *pgtype.Map, oid uint32, format int16, value any, parameter string) pgtype.EncodePlan {
	if slices.ContainsFunc(m.TryWrapEncodePlanFuncs, func(hook pgtype.TryWrapEncodePlanFunc) bool {
		_, next, ok := hook(value)
		return ok && formOf(reflect.TypeOf(next)) == nil && m.PlanEncode(oid, format, next) != nil
	}) {
		return nil
	}
	remedy, or := "make the column "+f.column.name, "use "
	switch {
	case parameter == f.column.name+"[]":
		return refusal{fmt.Errorf("pgxcodec: encode %s: want a slice for a %s parameter, got one ID; pass []%[1]s", typename.Of(f.typ), parameter)}
	case parameter == texts.name:
		// Postgres types a parameter as text if the query gives it no type.
		remedy = fmt.Sprintf("write $1::%s if the query gives the parameter no type, pass id.String() to a function that takes text", f.column.name)
	case strings.HasSuffix(parameter, "[]"):
		or = "pass a slice of "
	}
	return refusal{f.refusal(parameter, remedy, or)}
}

// refuseList returns the refusal for a slice in place of one ID of the column, or nil for other
// lists.
func (f *form) refuseList(c *column) pgtype.EncodePlan {
	if f.column != c || f.typ.Kind() != reflect.Slice || !f.holdsIDs() || isArray(f.typ) { // a sqltypes.Array is its literal, which a text column can hold
		return nil
	}
	return refusal{fmt.Errorf("pgxcodec: encode %s: want one ID for a %s parameter, got a slice; write = ANY($1) to match several", typename.Of(f.typ), c.name)}
}

// refusal returns the error for an ID in a parameter of another type.
func (f *form) refusal(parameter, remedy, or string) error {
	return fmt.Errorf("pgxcodec: encode %s: want a %s parameter, got %s; %s, or %s%s", typename.Of(f.typ), f.column.name, parameter, remedy, or, f.alternatives())
}

// alternatives returns the Go types for other columns, for errors.
func (id *idType) alternatives() string {
	switch {
	case id.column == &byteas:
		return "idtype.Sno for uuid columns, sqltypes.Text[idtype.Sno] for text columns"
	case id.of != nil:
		return fmt.Sprintf("%s for %s columns%s", typename.Of(id.of.typ), id.of.column.name, id.of.snoBytes())
	}
	return "sqltypes.Text[" + typename.Of(id.typ) + "] for text columns" + id.snoBytes()
}

func (id *idType) snoBytes() string {
	if _, ok := id.wire.(*sno); !ok {
		return ""
	}
	return ", sqltypes.SnoBytes for bytea columns"
}

// A scanRefusal scans NULL into an ID, but no array.
type scanRefusal struct{ err error }

func (r scanRefusal) Scan(src []byte, id any) error {
	if src == nil {
		return scan(id, nil)
	}
	return r.err
}
