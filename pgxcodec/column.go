package pgxcodec

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// A column is a column type that can hold IDs.
type column struct {
	name    string // in error messages
	pgName  string // the Postgres type of an argument whose OID is unknown
	members map[reflect.Type]member
	scans   [2]scanPlans // for targets that hold one ID, by format
	arrays  scanPlans    // for slices in the binary format
}

// The columns.
var (
	bigints = column{name: "bigint", pgName: "int8", members: map[reflect.Type]member{}}
	uuids   = column{name: "uuid", pgName: "uuid", members: map[reflect.Type]member{}}
	texts   = column{name: "text", pgName: "text", members: map[reflect.Type]member{}}
	chars   = column{name: "char(n)", members: map[reflect.Type]member{}}
	byteas  = column{name: "bytea", pgName: "bytea", members: map[reflect.Type]member{}}

	columns = []*column{&bigints, &uuids, &texts, &chars, &byteas}
)

func init() {
	addInteger[idtype.Snowflake](1 << 63)
	addInteger[idtype.SnowflakeSI](^uint64(idtype.MaxSnowflakeSI))
	addInteger[idtype.UID60](^uint64(idtype.MaxUID60))
	addInteger[idtype.Spread64](0)
	add(&uuids, memberOf[idtype.Sno]{
		binary: func(l *leaf) wire[idtype.Sno] { return uuidBinary{l} },
		text:   func(l *leaf) wire[idtype.Sno] { return uuidText{l} },
		fast:   fastUUID{},
	})
	addText[idtype.Sno]()
	add(&byteas, memberOf[sqltypes.SnoBytes]{
		binary: func(*leaf) wire[sqltypes.SnoBytes] { return byteaBinary{} },
		text:   func(*leaf) wire[sqltypes.SnoBytes] { return byteaText{} },
	})
}

// An integer is one of idtype's integer types.
type integer interface {
	~int64
	sqltypes.ID
}

// addInteger adds an integer type, and Text of it. The bits in invalid are zero in all IDs.
func addInteger[T integer](invalid uint64) {
	add(&bigints, memberOf[T]{
		binary: func(l *leaf) wire[T] { return bigintBinary[T]{l, invalid} },
		text:   func(l *leaf) wire[T] { return bigintText[T]{l, invalid} },
		fast:   fastBigint{invalid},
	})
	addText[T]()
}

func addText[T sqltypes.ID]() {
	text := func(l *leaf) wire[sqltypes.Text[T]] { return textChars[T]{l} }
	add(&texts, memberOf[sqltypes.Text[T]]{binary: text, text: text})
	padded := func(l *leaf) wire[sqltypes.Text[T]] { return paddedChars[T]{textChars[T]{l}} }
	t := reflect.TypeFor[sqltypes.Text[T]]()
	chars.members[t] = memberOf[sqltypes.Text[T]]{binary: padded, text: padded}
	addInstance[T, sqltypes.Text[T]]()
	leaves[t].of = leaves[reflect.TypeFor[T]()]
}

func add[V sqltypes.ID](c *column, m memberOf[V]) {
	t := reflect.TypeFor[V]()
	c.members[t] = m
	leaves[t] = &leaf{typ: t, base: t, column: c}
	addInstances[V]()
}

// A member plans the forms of one base type V in a column type. Its methods return a nil
// plan for forms that they don't handle.
type member interface {
	encode(f *form, format int16) pgtype.EncodePlan
	scan(f *form, format int16) pgtype.ScanPlan
	encodeSlice(f *form, element uint32) pgtype.EncodePlan // binary format
	scanSlice(f *form) pgtype.ScanPlan                     // binary format
	// scanElements plans with the codec of the array.
	scanElements(f *form, array func(target any) pgtype.ScanPlan) pgtype.ScanPlan
	registerDefaults(m *pgtype.Map, name string)
}

// memberOf is the member for V. binary and text return V's wire for a leaf.
type memberOf[V sqltypes.ID] struct {
	binary, text func(*leaf) wire[V]
	fast         fast // plans for V and *V in the binary format; nil if there are none
}

// memberFor returns the member that plans a form, or nil if the column is not the column
// of the form's leaf, or if the form's type stores itself by its own methods.
func (c *column) memberFor(f *form) member {
	if f == nil || f.same == nil || !c.holds(f.leaf) {
		return nil
	}
	return c.members[f.base]
}

// holds reports whether c stores the IDs of a leaf: c is their own column, or it is char(n)
// and their own column is text.
func (c *column) holds(l *leaf) bool {
	return l.column == c || l.column == &texts && c == &chars
}

// refuse returns an error for an ID that belongs in another column type, and for a slice
// in place of one ID. It returns nil for values that aren't IDs or that pgx encodes without
// their Value.
func (c *column) refuse(f *form, value any, plan planner) error {
	switch {
	case f == nil:
		return nil
	case f.many:
		m := c.memberFor(f)
		if _, isArray := value.(driver.Valuer); m == nil || isArray || m.encodeSlice(f, 0) == nil {
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

func (memberOf[V]) registerDefaults(m *pgtype.Map, name string) {
	scalar, array := name, "_"+name
	registerDefault[V](m, scalar)
	registerDefault[*V](m, scalar)
	registerDefault[sql.Null[V]](m, scalar)
	registerDefault[sqltypes.Optional[V]](m, scalar)
	registerDefault[[]V](m, array)
	registerDefault[[]*V](m, array)
	registerDefault[[]sql.Null[V]](m, array)
	registerDefault[[]sqltypes.Optional[V]](m, array)
	registerDefault[pgtype.FlatArray[V]](m, array)
	registerDefault[pgtype.Array[V]](m, array)
	if name == "int8" {
		registerDefault[pgtype.Range[V]](m, "int8range")
		registerDefault[pgtype.Multirange[pgtype.Range[V]]](m, "int8multirange")
	}
}

// registerDefault sets the Postgres type of T and *T for arguments whose OID is
// unknown.
func registerDefault[T any](m *pgtype.Map, name string) {
	m.RegisterDefaultPgType(*new(T), name)
	m.RegisterDefaultPgType((*T)(nil), name)
}
