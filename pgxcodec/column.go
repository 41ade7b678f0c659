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

// A registry holds the Go types that a connection knows, by column type. All codecs
// of a connection share one registry.
type registry struct{ bigint, uuid, text, char, bytea column }

// A column is a column type that can hold IDs.
type column struct {
	name     string // in error messages
	pgName   string // the Postgres type of an argument whose OID is unknown
	registry *registry

	// members is replaced as a whole, because other connections may read it: a
	// pgtype.Type loaded on one connection can be registered on others.
	members atomic.Pointer[[]member]
}

func (c *column) all() []member {
	if p := c.members.Load(); p != nil {
		return *p
	}
	return nil
}

// A member is a Go type V that a column type holds, with the types built from V.
// Its methods return a nil plan for all other types.
type member interface {
	goType() any // the zero V
	holds(value any) bool
	encode(format int16, value any) pgtype.EncodePlan
	scan(format int16, target any) pgtype.ScanPlan
	encodeSlice(element uint32, value any) pgtype.EncodePlan // binary format
	scanSlice(s sliceScanner, target any) pgtype.ScanPlan
	registerDefaults(m *pgtype.Map, name string)
	alternatives() string // the Go types for other column types
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
	// First, because a Sno is the ID type most often stored as text.
	addUUID[idtype.Sno](r, "sqltypes.SnoText for text columns"+snoBytesToo)
	addBigint[idtype.Snowflake](r, "sqltypes.SnowflakeText for text columns")
	addBigint[idtype.SnowflakeSI](r, "sqltypes.SnowflakeSIText for text columns")
	addBigint[idtype.UID60](r, "sqltypes.UID60Text for text columns")
	addBigint[idtype.Spread64](r, "sqltypes.Spread64Text for text columns")
	r.bytea.add(memberOf[sqltypes.SnoBytes, byteaBinary, byteaText]{"idtype.Sno for uuid columns, sqltypes.SnoText for text columns"})
	return r
}

func (r *registry) columns() []*column {
	return []*column{&r.bigint, &r.uuid, &r.text, &r.char, &r.bytea}
}

// addBigint adds a type whose column is bigint, and Text of that type.
func addBigint[T plainID](r *registry, alternatives string) {
	r.bigint.add(memberOf[T, bigintBinary[T], bigintText[T]]{alternatives})
	addText[T](r, textAlternatives(reflect.TypeFor[T](), &r.bigint))
}

// addUUID adds a type whose column is uuid, and Text of that type.
func addUUID[T plainID](r *registry, alternatives string) {
	r.uuid.add(memberOf[T, uuidBinary[T], uuidText[T]]{alternatives})
	addText[T](r, textAlternatives(reflect.TypeFor[T](), &r.uuid))
}

// snoBytesToo is appended to the alternatives for a Sno.
const snoBytesToo = ", sqltypes.SnoBytes for bytea columns"

// textAlternatives returns the alternatives to Text of t, an ID type whose own column
// is c.
func textAlternatives(t reflect.Type, c *column) string {
	alternatives := fmt.Sprintf("%v for %s columns", t, c.name)
	if c == &c.registry.uuid {
		alternatives += snoBytesToo
	}
	return alternatives
}

func addText[T plainID](r *registry, alternatives string) {
	r.text.add(memberOf[sqltypes.Text[T], chars[T], chars[T]]{alternatives})
	r.char.add(memberOf[sqltypes.Text[T], paddedChars[T], paddedChars[T]]{alternatives})
}

// add adds a member, unless the column already has it.
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

// first returns the first plan that is not nil, over the members of a column, or nil.
func first[P any](c *column, plan func(member) P) (none P) {
	for _, m := range c.all() {
		if p := plan(m); any(p) != nil {
			return p
		}
	}
	return none
}

// An ownColumn is the column type for a Go type of IDs.
type ownColumn struct {
	*column
	alternatives string // the Go types for other column types
	unregistered bool   // the Go type is an unregistered struct that embeds an ID
}

// columnOf returns the column of a value's type, or nil if the type isn't a known ID
// type.
func (r *registry) columnOf(value any) *ownColumn {
	for _, c := range r.columns() {
		for _, m := range c.all() {
			if m.holds(value) {
				return &ownColumn{column: c, alternatives: m.alternatives()}
			}
		}
	}
	return nil
}

// takes reports whether c holds the IDs of own: c is their own column, or it is char(n)
// and their own column is text.
func (c *column) takes(own *ownColumn) bool {
	return own.column == c || own.column == &c.registry.text && c == &c.registry.char
}

// refuse returns an error for an ID that belongs in another column type, and for a
// slice in place of one ID. It returns nil for values that aren't IDs or that the
// wrapped codec encodes.
func (c *column) refuse(value any, wrapped planner) error {
	if own := c.registry.columnOfType(reflect.TypeOf(value)); own != nil && !c.takes(own) && !(own.unregistered && wrapped.takes(reflect.TypeOf(value))) {
		remedy := "make the column " + own.name
		if c == &c.registry.text {
			// Postgres types a parameter as text if the query gives it no type.
			remedy = fmt.Sprintf("write $1::%s if the query gives the parameter no type, pass id.String() to a function that takes text", own.name)
		}
		return fmt.Errorf("pgxcodec: encode %T: want a %s parameter, got %s; %s, or use %s", value, own.name, c.name, remedy, own.alternatives)
	}
	if first(c, func(m member) pgtype.EncodePlan { return m.encodeSlice(0, value) }) != nil {
		return fmt.Errorf("pgxcodec: encode %T: want one ID for a %s parameter, got a slice; write = ANY($1) to match several", value, c.name)
	}
	return nil
}

// refuseElement returns an error for an ID in place of an array of the column's type.
// It returns nil for values that aren't IDs or that the wrapped codec encodes.
func (c *column) refuseElement(value any, wrapped planner) error {
	switch own := c.registry.columnOfType(reflect.TypeOf(value)); {
	case own == nil, own.unregistered && wrapped.takes(reflect.TypeOf(value)):
		return nil
	case c.takes(own):
		return fmt.Errorf("pgxcodec: encode %T: want a slice for a %s[] parameter, got one ID; pass []%[1]T", value, c.name)
	default:
		return fmt.Errorf("pgxcodec: encode %T: want a %s parameter, got %s[]; make the column %[2]s, or pass a slice of %[4]s", value, own.name, c.name, own.alternatives)
	}
}

// A planner is a codec's PlanEncode method for one OID and format.
type planner func(value any) pgtype.EncodePlan

// takes reports whether a codec encodes values of type t, such as a struct with a
// TextValue method, or, if t is a pointer type, the values it points to.
func (plan planner) takes(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Name() != "" {
		return plan(reflect.Zero(t).Interface()) != nil
	}
	return plan(reflect.New(t.Elem()).Interface()) != nil || plan.takes(t.Elem())
}

// memberOf is the member for V. B is its wire for the binary format, T for text.
type memberOf[V sqltypes.ID, B, T wire[V]] struct{ others string }

func (memberOf[V, B, T]) goType() any            { return *new(V) }
func (m memberOf[V, B, T]) alternatives() string { return m.others }

func (memberOf[V, B, T]) holds(value any) bool { return encodePlan[V, B](value) != nil }

func (memberOf[V, B, T]) encode(format int16, value any) pgtype.EncodePlan {
	switch format {
	case pgtype.BinaryFormatCode:
		return encodePlan[V, B](value)
	case pgtype.TextFormatCode:
		return encodePlan[V, T](value)
	}
	return nil
}

func (memberOf[V, B, T]) scan(format int16, target any) pgtype.ScanPlan {
	switch format {
	case pgtype.BinaryFormatCode:
		return scanPlan[V, B](target)
	case pgtype.TextFormatCode:
		return scanPlan[V, T](target)
	}
	return nil
}

func (memberOf[V, B, T]) encodeSlice(element uint32, value any) pgtype.EncodePlan {
	return encodeSlicePlan[V, B](element, value)
}

func (memberOf[V, B, T]) scanSlice(s sliceScanner, target any) pgtype.ScanPlan {
	return scanSlicePlan[V, B](s, target)
}

func (memberOf[V, B, T]) registerDefaults(m *pgtype.Map, name string) {
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
