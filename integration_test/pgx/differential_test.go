package pgx

import (
	"context"
	"database/sql"
	"errors"
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
	"github.com/sortkey/sortkey/sqltypes"
)

// named is a named slice.
type named[V any] []V

// shapes returns values of types that hold v, an ID or not. The package's own tests have more.
func shapes[V comparable](v V) []any {
	p := &v
	return []any{
		v, &p, sql.Null[V]{}, sql.Null[V]{V: v, Valid: true}, []V{v, v}, []V{}, []*V{p, nil}, [][]V{{v, v}, {v, v}}, &[][]*V{{p}, {nil}}, [][][]V{{{v}}}, [2]V{v, v}, named[V]{v}, []named[V]{{v}},
		[]any{v, nil}, pgtype.FlatArray[V]{v}, map[string]V{"a": v}, []map[string]V{{"a": v}}, struct{ ID V }{v},
	}
}

func idShapes[V sqltypes.ID](v V) []any {
	return append(shapes(v), sqltypes.Optional[V]{}, []sqltypes.Optional[V]{{ID: v}, {}}, sqltypes.Array[V]{v}, []sqltypes.Array[V]{{v}})
}

// A subject is a type, with the column that it belongs in.
type subject struct {
	home   string
	values []any
	stored map[string]string // what a column would hold if pgx could store the ID there
}

func subjects() []subject {
	sno := idtype.MustParseSno("brpk4q72xwf2m63l")
	u := map[string]string{"uuid": sno.UUID().String(), "text": sno.String(), "bytea": fmt.Sprintf(`\x%x`, sno[:])}
	return []subject{
		{"", shapes(int64(7)), nil},
		{"", shapes(uuid.UUID(sno.UUID())), nil},
		{"bigint", idShapes(idtype.SnowflakeOf[idtest.Order](7)), nil},
		{"bigint", idShapes(idtype.MustParseUID60("xinaS8QBh")), map[string]string{"text": "xinaS8QBh"}},
		{"uuid", idShapes(sno), u},
		{"uuid", idShapes(customerID{sno}), u},
		{"text", idShapes(sqltypes.TextOf(idtype.UID60Of[idtest.Visit](11093174944930914))), map[string]string{"bigint": "11093174944930914"}},
		{"bytea", idShapes(sqltypes.SnoBytesOf(sno)), u},
	}
}

// columnTypes are column types, with the ID column of the same type or of its elements, and a
// value.
var columnTypes = []struct{ name, home, literal string }{
	{"integer", "", "7"}, {"bigint", "bigint", "7"}, {"text", "text", "brpk4q72xwf2m63l"}, {"char(80)", "text", "xinaS8QBh"}, {"bytea", "bytea", `\x4e6f2160a0ff9a0a1033`},
	{"uuid", "uuid", "6272706b-3471-3732-7877-66326d36336c"}, {"json", "", `"brpk4q72xwf2m63l"`}, {"jsonb", "", `{"a": 7}`}, {"int8range", "bigint", "[7,9)"},
	{"integer[]", "", "{7}"}, {"bigint[]", "bigint", "{{7},{8}}"}, {"text[]", "text", "{brpk4q72xwf2m63l}"}, {"bytea[]", "bytea", `{"\\x4e6f2160a0ff9a0a1033",NULL}`},
	{"uuid[]", "uuid", "{6272706b-3471-3732-7877-66326d36336c}"}, {"jsonb[]", "", `{"[\"ord_7\"]"}`},
}

// The codec stores and reads the values that pgx does without it, in all modes and in COPY.
// The test of the same name in package pgxcodec has more types, and no server.
func TestDifferential(t *testing.T) {
	one(t, func(t *testing.T, db *pgtest.DB) {
		copies, literals := "n serial primary key", []string{}
		for i, c := range columnTypes {
			copies += fmt.Sprintf(", c%d %s", i, c.name)
			literals = append(literals, fmt.Sprintf("'%s'::%s c%d", c.literal, c.name, i))
		}
		db.Exec(t, "create unlogged table copies ("+copies+"); create table source as select "+strings.Join(literals, ", "))
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			d := differential{byOID(mode), evaluated, db.Conn(t, pgtest.Codec, pgtest.Mode(mode)), db.Conn(t, pgtest.Mode(mode))}
			d.encode(t, "")
			d.scan(t)
			if mode == pgx.QueryExecModeCacheStatement {
				d.store = copied
				d.encode(t, "[]") // TestCopy has the other columns
			}
		})
	})
}

// A differential compares connections with the codec and without it.
type differential struct {
	known         bool // pgx knows the types of parameters
	store         func(ctx context.Context, conn *pgx.Conn, column int, value any) (*string, error)
	with, without *pgx.Conn
}

// evaluated returns the text of a parameter of the type of a column.
func evaluated(ctx context.Context, conn *pgx.Conn, column int, value any) (text *string, err error) {
	err = recovered(func() error {
		return conn.QueryRow(ctx, fmt.Sprintf("select rtrim(($1::%s)::text)", columnTypes[column].name), value).Scan(&text)
	})
	return text, err
}

// copied returns the text of a column after COPY.
func copied(ctx context.Context, conn *pgx.Conn, column int, value any) (text *string, err error) {
	name := fmt.Sprintf("c%d", column)
	err = recovered(func() error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"copies"}, []string{name}, pgx.CopyFromRows([][]any{{value}}))
		return err
	})
	if err == nil {
		err = conn.QueryRow(ctx, "select rtrim("+name+"::text) from copies order by n desc limit 1").Scan(&text)
	}
	return text, err
}

// recovered returns a panic of f as an error: pgx panics for some nil pointers.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// encode compares the columns whose type has a suffix.
func (d differential) encode(t *testing.T, suffix string) {
	for i, c := range columnTypes {
		if !strings.HasSuffix(c.name, suffix) {
			continue
		}
		for _, s := range subjects() {
			for _, value := range s.values {
				got, err := d.store(t.Context(), d.with, i, value)
				want, plain := d.store(t.Context(), d.without, i, value)
				equal := func() bool {
					return err != nil && plain != nil || err == nil && plain == nil && reflect.DeepEqual(got, want)
				}
				if !equal() {
					// What pgx encoded before can decide between two plans. It forgets them when a
					// type is registered.
					d.with.TypeMap().RegisterDefaultPgType(struct{}{}, "text")
					d.without.TypeMap().RegisterDefaultPgType(struct{}{}, "text")
					got, err = d.store(t.Context(), d.with, i, value)
					want, plain = d.store(t.Context(), d.without, i, value)
				}
				switch {
				case equal():
				case err == nil && plain != nil && s.home != "" && !d.known && isSeveral(value): // pgx knows no arrays of IDs
				case err != nil && plain == nil && want != nil && d.known && s.mayRefuse(c.home, strings.HasSuffix(c.name, "[]"), value):
					if right := s.stored[c.home]; right == *want {
						t.Errorf("%T in %s: the codec refuses what pgx stores right, %s", value, c.name, right)
					}
				default:
					t.Errorf("%T in %s: %s, %v; without the codec %s, %v", value, c.name, show(got), err, show(want), plain)
				}
			}
		}
	}
}

func show(s *string) string {
	if s == nil {
		return "nothing"
	}
	return *s
}

// mayRefuse reports whether the codec may refuse a value that pgx stores: an ID that belongs
// in a column of another type, and a SnoBytes in any array, where pgx would store ten numbers.
func (s subject) mayRefuse(home string, array bool, value any) bool {
	if s.home == "" || isArray(value) {
		return false
	}
	return home != "" && home != s.home || s.home == "bytea" && array && !isSeveral(value)
}

func isArray(value any) bool { return strings.HasPrefix(fmt.Sprintf("%T", value), "sqltypes.Array[") }

// isSeveral reports whether a value holds several.
func isSeveral(value any) bool {
	t := reflect.TypeOf(value)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, one := value.(interface{ IsZero() bool }) // a Sno is an array
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && !one
}

func (d differential) scan(t *testing.T) {
	for i, c := range columnTypes {
		for _, s := range subjects() {
			for _, value := range s.values {
				scan := func(conn *pgx.Conn) (any, error) {
					target := reflect.New(reflect.TypeOf(value))
					err := conn.QueryRow(t.Context(), fmt.Sprintf("select c%d from source", i)).Scan(target.Interface())
					return target.Elem().Interface(), err
				}
				want, plain := scan(d.without)
				got, err := scan(d.with)
				switch {
				case err != nil && plain != nil, err == nil && plain == nil && reflect.DeepEqual(got, want):
				case err == nil && plain != nil && s.home != "" && (strings.HasPrefix(c.name, "json") || strings.HasSuffix(c.name, "[]") && isArray(value)):
					// IDs from JSON, and a sqltypes.Array from the binary format.
				case plain == nil && c.name == "jsonb[]" && errors.Is(err, idtype.ErrSyntax):
					// pgx takes JSON of ten bytes for the bytes of a Sno.
				default:
					t.Errorf("%s into %T: %v, %v; without the codec %v, %v", c.name, value, got, err, want, plain)
				}
			}
		}
	}
}
