package pgxcodec

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A registry has the Go types that a connection knows, by the column that
// holds them. All codecs of a connection share one.
type registry struct{ bigint, uuid, text, char, bytea column }

// A column is a kind of column that can hold IDs.
type column struct {
	name     string // for people
	pgName   string // of the type that an argument has where its OID is unknown
	registry *registry

	// members is replaced as a whole: types that were loaded on one connection
	// and registered on others have those others read it.
	members atomic.Pointer[[]member]
}

func (c *column) all() []member {
	if p := c.members.Load(); p != nil {
		return *p
	}
	return nil
}

// A member is a Go type V that a column holds, together with the types made of
// V. The plans it gives are nil for types that have nothing to do with it.
type member interface {
	goType() any // the zero V
	holds(value any) bool
	encode(format int16, value any) pgtype.EncodePlan
	scan(format int16, target any) pgtype.ScanPlan
	encodeSlice(element uint32, value any) pgtype.EncodePlan // binary format
	scanSlice(s sliceScanner, target any) pgtype.ScanPlan
	registerDefaults(m *pgtype.Map, name string)
	elsewhere() string // the Go types for other columns
}

func newRegistry() *registry {
	r := &registry{}
	r.bigint.name, r.bigint.pgName = "bigint", "int8"
	r.uuid.name, r.uuid.pgName = "uuid", "uuid"
	r.text.name, r.text.pgName = "text", "text"
	r.char.name = "char(n)"
	r.bytea.name, r.bytea.pgName = "bytea", "bytea"
	for _, c := range r.columns() {
		c.registry = r
	}
	// A Sno is what is most often kept as text.
	addUUID[idtype.Sno](r, "sqltypes.SnoText for text columns"+bytesElsewhere)
	addBigint[idtype.Snowflake](r, "sqltypes.SnowflakeText for text columns")
	addBigint[idtype.SnowflakeSI](r, "sqltypes.SnowflakeSIText for text columns")
	addBigint[idtype.UID60](r, "sqltypes.UID60Text for text columns")
	addBigint[idtype.Spread64](r, "sqltypes.Spread64Text for text columns")
	r.bytea.add(of[sqltypes.SnoBytes, byteaBinary, byteaText]{"idtype.Sno for uuid columns, sqltypes.SnoText for text columns"})
	return r
}

func (r *registry) columns() []*column {
	return []*column{&r.bigint, &r.uuid, &r.text, &r.char, &r.bytea}
}

// addBigint adds a type whose column is bigint, and its text.
func addBigint[T plainID](r *registry, elsewhere string) {
	r.bigint.add(of[T, bigintBinary[T], bigintText[T]]{elsewhere})
	addText[T](r, textElsewhere(reflect.TypeFor[T](), &r.bigint))
}

// addUUID adds a type whose column is uuid, and its text.
func addUUID[T plainID](r *registry, elsewhere string) {
	r.uuid.add(of[T, uuidBinary[T], uuidText[T]]{elsewhere})
	addText[T](r, textElsewhere(reflect.TypeFor[T](), &r.uuid))
}

// bytesElsewhere is the Go type of Snos in bytea columns.
const bytesElsewhere = ", sqltypes.SnoBytes for bytea columns"

// textElsewhere names the Go types for other columns of the text of a T, whose
// own column is c.
func textElsewhere(t reflect.Type, c *column) string {
	elsewhere := fmt.Sprintf("%v for %s columns", t, c.name)
	if c == &c.registry.uuid {
		elsewhere += bytesElsewhere
	}
	return elsewhere
}

func addText[T plainID](r *registry, elsewhere string) {
	r.text.add(of[sqltypes.Text[T], chars[T], chars[T]]{elsewhere})
	r.char.add(of[sqltypes.Text[T], paddedChars[T], paddedChars[T]]{elsewhere})
}

// add adds a member, unless the column has it.
func (c *column) add(m member) {
	for {
		old, members := c.members.Load(), c.all()
		if slices.ContainsFunc(members, func(other member) bool { return other.goType() == m.goType() }) {
			return
		}
		members = append(slices.Clip(members), m)
		if c.members.CompareAndSwap(old, &members) {
			return
		}
	}
}

// first is the first plan that a member of the column gives, nil if none does.
func first[P any](c *column, plan func(member) P) (none P) {
	for _, m := range c.all() {
		if p := plan(m); any(p) != nil {
			return p
		}
	}
	return none
}

// A place is the column where a Go type belongs, and the Go types for others.
type place struct {
	*column
	elsewhere string
	own       bool // for an unregistered struct of the caller's that embeds an ID
}

// home is where a value belongs, nil if its type isn't known as one of IDs.
func (r *registry) home(value any) *place {
	for _, c := range r.columns() {
		for _, m := range c.all() {
			if m.holds(value) {
				return &place{column: c, elsewhere: m.elsewhere()}
			}
		}
	}
	return nil
}

// takes reports whether the column takes what belongs in another: char(n)
// takes text.
func (c *column) takes(p *place) bool {
	return p.column == c || p.column == &c.registry.text && c == &c.registry.char
}

// refuse is the error of an ID that belongs in another column, and of a slice
// where one ID is meant, nil for values that aren't IDs or that the wrapped codec
// encodes.
func (c *column) refuse(value any, wrapped planner) error {
	if p := c.registry.homeOf(reflect.TypeOf(value)); p != nil && !c.takes(p) && !(p.own && wrapped.takes(reflect.TypeOf(value))) {
		remedy := "make the column " + p.name
		if c == &c.registry.text {
			// Postgres takes a parameter for text if the query gives it no type.
			remedy = fmt.Sprintf("write $1::%s if the query gives the parameter no type, pass id.String() to a function", p.name)
		}
		return fmt.Errorf("pgxcodec: expected a %s parameter for %T, got %s: %s, or use %s", p.name, value, c.name, remedy, p.elsewhere)
	}
	if first(c, func(m member) pgtype.EncodePlan { return m.encodeSlice(0, value) }) != nil {
		return fmt.Errorf("pgxcodec: expected one ID for a %s parameter, got %T: write = ANY($1) to find several", c.name, value)
	}
	return nil
}

// refuseElement is the error of an ID where an array of the column's type is
// meant, nil for values that aren't IDs or that the wrapped codec encodes.
func (c *column) refuseElement(value any, wrapped planner) error {
	switch p := c.registry.homeOf(reflect.TypeOf(value)); {
	case p == nil, p.own && wrapped.takes(reflect.TypeOf(value)):
		return nil
	case c.takes(p):
		return fmt.Errorf("pgxcodec: expected a slice for a parameter of type %s[], got %T: pass a slice of it", c.name, value)
	default:
		return fmt.Errorf("pgxcodec: expected a %s parameter for %T, got %s[]: make the column %[1]s, or pass a slice of %[4]s", p.name, value, c.name, p.elsewhere)
	}
}

// A planner is the method PlanEncode of a codec, for one OID and format.
type planner func(value any) pgtype.EncodePlan

// takes reports whether a codec encodes values of type t, such as a struct with
// a method TextValue, or the values that pointers of type t point to.
func (plan planner) takes(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Name() != "" {
		return plan(reflect.Zero(t).Interface()) != nil
	}
	return plan(reflect.New(t.Elem()).Interface()) != nil || plan.takes(t.Elem())
}

// of is the member V: B is its wire in the binary format, T in text.
type of[V sqltypes.ID, B, T wire[V]] struct{ other string }

func (of[V, B, T]) goType() any         { return *new(V) }
func (o of[V, B, T]) elsewhere() string { return o.other }

func (of[V, B, T]) holds(value any) bool { return encodePlan[V, B](value) != nil }

func (of[V, B, T]) encode(format int16, value any) pgtype.EncodePlan {
	switch format {
	case pgtype.BinaryFormatCode:
		return encodePlan[V, B](value)
	case pgtype.TextFormatCode:
		return encodePlan[V, T](value)
	}
	return nil
}

func (of[V, B, T]) scan(format int16, target any) pgtype.ScanPlan {
	switch format {
	case pgtype.BinaryFormatCode:
		return scanPlan[V, B](target)
	case pgtype.TextFormatCode:
		return scanPlan[V, T](target)
	}
	return nil
}

func (of[V, B, T]) encodeSlice(element uint32, value any) pgtype.EncodePlan {
	return encodeSlicePlan[V, B](element, value)
}

func (of[V, B, T]) scanSlice(s sliceScanner, target any) pgtype.ScanPlan {
	return scanSlicePlan[V, B](s, target)
}

func (of[V, B, T]) registerDefaults(m *pgtype.Map, name string) {
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

// registerDefault names the Postgres type of T and *T where its OID is unknown.
func registerDefault[T any](m *pgtype.Map, name string) {
	m.RegisterDefaultPgType(*new(T), name)
	m.RegisterDefaultPgType((*T)(nil), name)
}
