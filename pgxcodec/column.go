package pgxcodec

import (
	"database/sql"
	"reflect"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A column is a column type that can hold IDs.
type column struct {
	name string // in error messages
	// The Postgres types of arguments whose OID is unknown.
	pgName, pgRange, pgMultirange string
}

// The columns.
var (
	bigints = column{name: "bigint", pgName: "int8", pgRange: "int8range", pgMultirange: "int8multirange"}
	uuids   = column{name: "uuid", pgName: "uuid"}
	texts   = column{name: "text", pgName: "text"}
	chars   = column{name: "char(n)"}
	byteas  = column{name: "bytea", pgName: "bytea"}
)

// holds reports whether c stores the IDs of a leaf: c is their own column, or it is char(n)
// and their own column is text.
func (c *column) holds(l *leaf) bool {
	return l.column == c || l.column == &texts && c == &chars
}

// A base is an ID type without a model.
type base struct {
	typ     reflect.Type
	invalid uint64 // of an integer: the bits that are zero in all IDs
}

// leaves are the leaves of the base types, and of sqltypes.SnoBytes.
var leaves = map[reflect.Type]*leaf{}

func init() {
	add[idtype.Snowflake](&bigints, 1<<63)
	add[idtype.SnowflakeSI](&bigints, ^uint64(idtype.MaxSnowflakeSI))
	add[idtype.UID60](&bigints, ^uint64(idtype.MaxUID60))
	add[idtype.Spread64](&bigints, 0)
	add[idtype.Sno](&uuids, 0)
	add[idtype.UUID](&uuids, 0)
	add[sqltypes.SnoBytes](&byteas, 0)
}

func add[V sqltypes.ID](c *column, invalid uint64) {
	t := reflect.TypeFor[V]()
	leaves[t] = &leaf{typ: t, pointer: reflect.PointerTo(t), column: c, base: &base{t, invalid}, uuid: t == reflect.TypeFor[idtype.UUID]()}
}

// registerDefaults sets the Postgres types of arguments and targets whose OID is unknown,
// for the types that have no model. The hooks do so for other types.
func registerDefaults(m *pgtype.Map) {
	registerDefaultsOf[idtype.Snowflake](m)
	registerDefaultsOf[idtype.SnowflakeSI](m)
	registerDefaultsOf[idtype.UID60](m)
	registerDefaultsOf[idtype.Spread64](m)
	registerDefaultsOf[idtype.Sno](m)
	registerDefaultsOf[idtype.UUID](m)
	registerDefaultsOf[sqltypes.SnowflakeText](m)
	registerDefaultsOf[sqltypes.SnowflakeSIText](m)
	registerDefaultsOf[sqltypes.UID60Text](m)
	registerDefaultsOf[sqltypes.Spread64Text](m)
	registerDefaultsOf[sqltypes.SnoText](m)
	registerDefaultsOf[sqltypes.UUIDText](m)
	registerDefaultsOf[sqltypes.SnoBytes](m)
}

func registerDefaultsOf[V sqltypes.ID](m *pgtype.Map) {
	for _, t := range []reflect.Type{
		reflect.TypeFor[V](), reflect.TypeFor[*V](), reflect.TypeFor[sql.Null[V]](), reflect.TypeFor[sqltypes.Optional[V]](),
		reflect.TypeFor[[]V](), reflect.TypeFor[[]*V](),
	} {
		registerDefault(m, formOf(t))
	}
}

// registerDefault sets the Postgres type of a form and of a pointer to it.
func registerDefault(m *pgtype.Map, f *form) {
	name := f.pgType()
	m.RegisterDefaultPgType(reflect.Zero(f.typ).Interface(), name)
	m.RegisterDefaultPgType(reflect.Zero(reflect.PointerTo(f.typ)).Interface(), name)
}
