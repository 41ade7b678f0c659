package pgxcodec

import (
	"database/sql"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

type order struct{ _ [512]int64 }

// The Postgres type of a form follows from its ID's column and its shape.
func TestForms(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[idtype.SnowflakeOf[order]]():                               "int8",
		reflect.TypeFor[**idtype.SnoOf[order]]():                                   "uuid",
		reflect.TypeFor[*sql.Null[idtype.Sno]]():                                   "uuid",
		reflect.TypeFor[sqltypes.Optional[sqltypes.Text[idtype.UID60Of[order]]]](): "text",
		reflect.TypeFor[[]*idtype.UID60Of[order]]():                                "_int8",
		reflect.TypeFor[*[]sql.Null[sqltypes.SnoBytes]]():                          "_bytea",
		reflect.TypeFor[pgtype.Range[idtype.UID60Of[order]]]():                     "int8range",
		reflect.TypeFor[pgtype.Range[idtype.Sno]]():                                "",
		reflect.TypeFor[pgtype.Multirange[pgtype.Range[idtype.UID60Of[order]]]]():  "int8multirange",
		reflect.TypeFor[pgtype.Array[idtype.SnoOf[order]]]():                       "_uuid",
		reflect.TypeFor[struct{ idtype.Spread64Of[order] }]():                      "int8",
		reflect.TypeFor[[]sqltypes.Text[struct{ idtype.Sno }]]():                   "_text",
		reflect.TypeFor[sql.Null[*idtype.Sno]]():                                   "uuid",
		reflect.TypeFor[pgtype.FlatArray[*idtype.Sno]]():                           "_uuid",
	} {
		f := formOf(typ)
		if f == nil || f.pgType() != want || f != formOf(typ) {
			t.Errorf("the form of %v is %+v, want a %q", typ, f, want)
		}
	}
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[int64](), reflect.TypeFor[[10]byte](), reflect.TypeFor[order](), reflect.TypeFor[idtype.SnoPartition](), reflect.TypeFor[error](),
		reflect.TypeFor[map[string]idtype.Sno](), reflect.TypeFor[[][]idtype.Sno](), reflect.TypeFor[[][]*idtype.Sno](), reflect.TypeFor[sql.Null[[]idtype.Sno]](),
		reflect.TypeFor[pgtype.Range[int64]]()} {
		if f := formOf(typ); f != nil {
			t.Errorf("%v is a form of %v", typ, f.idType.typ)
		}
	}
}
