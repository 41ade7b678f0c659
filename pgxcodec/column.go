package pgxcodec

import (
	"database/sql"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A column is a kind of column that can hold IDs.
type column struct {
	name    string // for people
	pgName  string // of the type that an argument has where its OID is unknown
	members []member
}

// A member is a Go type V that a column holds, together with the types made of
// V. The plans it gives are nil for types that have nothing to do with it.
type member interface {
	holds(value any) bool
	encode(format int16, value any) pgtype.EncodePlan
	scan(format int16, target any) pgtype.ScanPlan
	encodeSlice(element uint32, value any) pgtype.EncodePlan // binary format
	scanSlice(s sliceScanner, target any) pgtype.ScanPlan
	registerDefaults(m *pgtype.Map, name string)
	elsewhere() string // what to use in other columns
}

var (
	bigintColumn = &column{"bigint", "int8", []member{
		bigint[idtype.Snowflake]("sqltypes.SnowflakeText for text columns"),
		bigint[idtype.SnowflakeSI]("sqltypes.SnowflakeSIText for text columns"),
		bigint[idtype.UID60]("sqltypes.UID60Text for text columns"),
		bigint[idtype.Spread64]("sqltypes.Spread64Text for text columns"),
	}}
	uuidColumn = &column{"uuid", "uuid", []member{
		of[idtype.Sno, uuidBinary, uuidText]{"sqltypes.SnoText for text columns, sqltypes.SnoBytes for bytea"},
	}}
	textColumn = &column{"text", "text", []member{
		text[idtype.Snowflake]("idtype.Snowflake for bigint columns"),
		text[idtype.SnowflakeSI]("idtype.SnowflakeSI for bigint columns"),
		text[idtype.UID60]("idtype.UID60 for bigint columns"),
		text[idtype.Spread64]("idtype.Spread64 for bigint columns"),
		text[idtype.Sno]("idtype.Sno for uuid columns, sqltypes.SnoBytes for bytea"),
	}}
	charColumn = &column{"char(n)", "", []member{
		char[idtype.Snowflake](),
		char[idtype.SnowflakeSI](),
		char[idtype.UID60](),
		char[idtype.Spread64](),
		char[idtype.Sno](),
	}}
	byteaColumn = &column{"bytea", "bytea", []member{
		of[sqltypes.SnoBytes, byteaBinary, byteaText]{"idtype.Sno for uuid columns, sqltypes.SnoText for text"},
	}}

	// homes has every member once.
	homes = []*column{bigintColumn, uuidColumn, textColumn, byteaColumn}
)

func bigint[T interface {
	integer
	sqltypes.ID
}](elsewhere string) member {
	return of[T, bigintBinary[T], bigintText[T]]{elsewhere}
}

func text[T sqltypes.ID](elsewhere string) member {
	return of[sqltypes.Text[T], chars[T], chars[T]]{elsewhere}
}

func char[T sqltypes.ID]() member {
	return of[sqltypes.Text[T], paddedChars[T], paddedChars[T]]{}
}

func (c *column) encode(format int16, value any) pgtype.EncodePlan {
	for _, v := range c.members {
		if p := v.encode(format, value); p != nil {
			return p
		}
	}
	return nil
}

func (c *column) scan(format int16, target any) pgtype.ScanPlan {
	for _, v := range c.members {
		if p := v.scan(format, target); p != nil {
			return p
		}
	}
	return nil
}

func (c *column) encodeSlice(element uint32, value any) pgtype.EncodePlan {
	for _, v := range c.members {
		if p := v.encodeSlice(element, value); p != nil {
			return p
		}
	}
	return nil
}

func (c *column) scanSlice(s sliceScanner, target any) pgtype.ScanPlan {
	for _, v := range c.members {
		if p := v.scanSlice(s, target); p != nil {
			return p
		}
	}
	return nil
}

// of is the member V: B is its wire in the binary format, T in text.
type of[V sqltypes.ID, B, T wire[V]] struct{ other string }

func (o of[V, B, T]) elsewhere() string { return o.other }

func (of[V, B, T]) holds(value any) bool {
	switch value.(type) {
	case V, *V, **V, sql.Null[V], *sql.Null[V], sqltypes.Optional[V], *sqltypes.Optional[V]:
		return true
	}
	return false
}

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
	return scanSlicePlan[V](s, target)
}

func (of[V, B, T]) registerDefaults(m *pgtype.Map, name string) {
	scalar, array := name, "_"+name
	registerDefault[V](m, scalar)
	registerDefault[*V](m, scalar)
	registerDefault[sql.Null[V]](m, scalar)
	registerDefault[sqltypes.Optional[V]](m, scalar)
	registerDefault[[]V](m, array)
	registerDefault[[]*V](m, array)
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
