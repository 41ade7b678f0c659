package pgx

import (
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/reflecttest"
	"github.com/sortkey/sortkey/sqltypes"
)

// named is a named slice.
type named[V any] []V

// shapes returns values of types that hold v, an ID or not. The package's own tests have more.
func shapes[V comparable](v V) []any {
	return shapesOf(v, sql.Null[V]{}, named[V]{}, pgtype.FlatArray[V]{})
}

// shapesOf gets values of the types that hold a V.
func shapesOf(v, null, named, flat any) []any {
	p, t := ptr(v), reflect.TypeOf(v)
	ids, two, none := sliceOf(v), sliceOf(v, v), fill(reflect.SliceOf(t))
	named, byName := fill(reflect.TypeOf(named), v), reflecttest.MapOf("a", v)
	return []any{
		v, ptr(p), null, fill(reflect.TypeOf(null), v, true), two, none, sliceOf(p, nil), sliceOf(two, two), ptr(sliceOf(sliceOf(p), fill(reflect.SliceOf(reflect.TypeOf(p)), nil))), sliceOf(sliceOf(ids)), reflecttest.ArrayOf(v, v), named, sliceOf(named),
		[]any{v, nil}, fill(reflect.TypeOf(flat), v), byName, sliceOf(byName), fill(reflect.StructOf([]reflect.StructField{{Name: "ID", Type: t}}), v),
	}
}

func idShapes[V sqltypes.ID](v V) []any {
	optional := reflect.TypeFor[sqltypes.Optional[V]]()
	array := fill(reflect.TypeFor[sqltypes.Array[V]](), v)
	return append(shapes(v), zero(optional), sliceOf(fill(optional, v), nil), array, sliceOf(array))
}

// A subject is a type, with the column that it belongs in.
type subject struct {
	home   string
	values []any
	stored map[string]string // what a column would hold if pgx could store the ID there
}

func subjects() []subject {
	sno := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	u := map[string]string{"uuid": sno.UUID().String(), "text": sno.String(), "bytea": fmt.Sprintf(`\x%x`, sno[:])}
	return []subject{
		{"", shapes(int64(7)), nil},
		{"", shapes(uuid.UUID(sno.UUID())), nil},
		{"bigint", idShapes(idtype.SnowflakeOf[idtest.Order](7)), nil},
		{"bigint", idShapes(idtype.Must(idtype.ParseUID60("xinaS8QBh"))), map[string]string{"text": "xinaS8QBh"}},
		{"uuid", idShapes(sno), u},
		{"uuid", idShapes(customerID{sno}), u},
		{"text", idShapes(sqltypes.TextOf(idtype.UID60Of[idtest.Visit](11093174944930914))), map[string]string{"bigint": "11093174944930914"}},
		{"bytea", idShapes(sqltypes.SnoBytesOf(sno)), u},
	}
}

// columnTypes are column types, with the ID column of the same type or of its elements.
var columnTypes = []struct{ name, home string }{
	{"integer", ""}, {"bigint", "bigint"}, {"text", "text"}, {"char(80)", "text"}, {"bytea", "bytea"}, {"uuid", "uuid"}, {"json", ""}, {"jsonb", ""}, {"int8range", "bigint"},
	{"integer[]", ""}, {"bigint[]", "bigint"}, {"text[]", "text"}, {"bytea[]", "bytea"}, {"uuid[]", "uuid"}, {"jsonb[]", ""},
}

// The codec stores the values that pgx stores without it, and refuses only IDs that pgx would
// store wrong: arrays in COPY, where pgx also encodes through the text format, and parameters of
// the other types. TestCopy has COPY of the other types. The test of the same name in package
// pgxcodec compares the bytes of parameters and scans, in all modes, for more types.
func TestDifferential(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		with, without := db.Conn(t, pgtest.Codec), db.Conn(t)
		for _, c := range columnTypes {
			store, isArray := evaluated, strings.HasSuffix(c.name, "[]")
			if isArray {
				store = copied
			}
			for _, s := range subjects() {
				for _, value := range s.values {
					var got, want sql.Null[string]
					var err, plain error
					equal := func() bool {
						got, err = store(t, with, c.name, value)
						want, plain = store(t, without, c.name, value)
						return err != nil && plain != nil || err == nil && plain == nil && got == want
					}
					if equal() {
						continue
					}
					// What pgx encoded before can decide between two plans. It forgets them when a
					// type is registered.
					with.TypeMap().RegisterDefaultPgType(struct{}{}, "text")
					without.TypeMap().RegisterDefaultPgType(struct{}{}, "text")
					switch {
					case equal():
					case err != nil && plain == nil && want.Valid && s.mayRefuse(c.home, isArray, value):
						if right := s.stored[c.home]; right == want.V {
							t.Errorf("%T in %s: the codec refuses what pgx stores right, %s", value, c.name, right)
						}
					case strings.HasPrefix(c.name, "json") && strings.HasPrefix(strings.TrimLeft(fmt.Sprintf("%T", value), "*[]"), "sqltypes.Array[") && err == nil && strings.Contains(got.V, "["):
						// The JSON of an Array. pgx encodes the literal of an array.
					default:
						t.Errorf("%T in %s: %v, %v; without the codec %v, %v", value, c.name, got, err, want, plain)
					}
				}
			}
		}
	})
}

// evaluated returns the text of a parameter of a type.
func evaluated(t *testing.T, conn *pgx.Conn, typ string, value any) (text sql.Null[string], err error) {
	defer recovered(&err)
	err = conn.QueryRow(t.Context(), fmt.Sprintf("select rtrim(($1::%s)::text)", typ), value).Scan(&text)
	return text, err
}

// copied returns the text of a column of a type after COPY.
func copied(t *testing.T, conn *pgx.Conn, typ string, value any) (text sql.Null[string], err error) {
	defer recovered(&err)
	if _, err := conn.CopyFrom(t.Context(), copies(typ), []string{"c"}, pgx.CopyFromRows([][]any{{value}})); err != nil {
		return text, err
	}
	err = conn.QueryRow(t.Context(), "select rtrim(c::text) from "+copies(typ).Sanitize()+" order by n desc limit 1").Scan(&text)
	return text, err
}

func copies(typ string) pgx.Identifier { return pgx.Identifier{"copies " + typ} }

// recovered makes a panic an error: pgx panics for some nil pointers.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}

// mayRefuse reports whether the codec may refuse a value that pgx stores: an ID that belongs
// in a column of another type, and one SnoBytes in any array, where pgx would store ten numbers.
func (s subject) mayRefuse(home string, array bool, value any) bool {
	if strings.HasPrefix(fmt.Sprintf("%T", value), "sqltypes.Array[") {
		return false
	}
	return s.home != "" && (home != "" && home != s.home || s.home == "bytea" && array && !isSeveral(value))
}

// isSeveral reports whether a value holds several.
func isSeveral(value any) bool {
	t := reflect.TypeOf(value)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, one := value.(interface{ IsZero() bool }) // a Sno is an array
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !one
}
