package pgx

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, TestTable, TestWrongParameter, TestNegativeNumbers, TestRangeTypes, TestDomainsOfAllSchemas)
}

// A suite is an ID type of package idtest, without its type parameter.
type suite struct {
	idtest.Type
	column                 string
	edges                  []any
	stored                 func(id any) string
	random                 func(*rand.Rand) any
	compare                func(a, b any) int
	binary                 func(id any) ([]byte, error)
	textOrders, bytesOrder bool
	at                     func(at time.Time, pick func(int) int) (any, error)
	window                 func(from, to time.Time) (lo, hi any, err error) // nil if IDs don't sort by time
	first, last            time.Time
	unit                   time.Duration
	refused                map[string]error
	rowTo                  pgx.RowToFunc[any]
	span, spans            any // pgtype.Range and pgtype.Multirange
	holders
	rows []row
}

func suiteOf[T idtest.ID[T]](k idtest.Kind[T]) suite {
	s := suite{
		Type: k, column: k.Column, textOrders: k.TextOrders, bytesOrder: k.BytesOrder, first: k.First, last: k.Last, unit: k.Unit, refused: k.Refused, holders: holdersOf[T](),
		stored:  func(id any) string { return k.Stored(id.(T)) },
		random:  func(r *rand.Rand) any { return k.Random(r) },
		compare: func(a, b any) int { return a.(T).Compare(b.(T)) },
		binary:  func(id any) ([]byte, error) { return id.(T).MarshalBinary() },
		at:      func(at time.Time, pick func(int) int) (any, error) { return k.At(at, pick) },
		rowTo:   func(row pgx.CollectableRow) (any, error) { return pgx.RowTo[T](row) },
	}
	if k.Layout != nil {
		s.window = func(from, to time.Time) (lo, hi any, err error) { return k.Layout.Range(from, to) }
	}
	if k.Column == "bigint" {
		s.span, s.spans = pgtype.Range[T]{}, pgtype.Multirange[pgtype.Range[T]]{}
	}
	for _, id := range k.Edges {
		s.edges = append(s.edges, id)
	}
	r := idtest.Rand(k.Name)
	ids := append([]T{}, k.Edges...)
	for range 5 {
		ids = append(ids, k.Random(r))
	}
	s.rows = []row{rowOf(k.Column, ids, k.Stored)}
	inText := rowOf("text", wrapped(ids, sqltypes.TextOf[T]), idtest.ColumnText[T])
	for _, column := range []string{"text", "varchar(40)", "char(40)"} {
		inText.column = column
		s.rows = append(s.rows, inText)
	}
	return s
}

var suites = []suite{
	suiteOf(idtest.Snowflake),
	suiteOf(idtest.SnowflakeSI),
	suiteOf(idtest.UID60),
	suiteOf(idtest.Spread64),
	suiteOf(idtest.Sno),
	suiteOf(idtest.OrderID),
	suiteOf(idtest.OrderSI),
	suiteOf(idtest.VisitID),
	suiteOf(idtest.VisitKey),
	suiteOf(idtest.VisitSno),
	suiteOf(idtest.CustomerID),
	suiteOf(idtest.UUID),
	suiteOf(idtest.OrderUUID),
}

// The tests share databases with these types and tables, because creating them takes longer than
// the tests. Each column type of the rows has a table.
var filled = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	ddl := createDomains + idtest.CreateTable() + `;
		create schema app; create extension citext;
		create domain app.order_id as sortkey.number; create domain app.code as text; create domain app.any_case as citext; create domain app.list as bigint[]; create domain app.amount as numeric;
		create type part as (n bigint, u uuid, list text[], d sortkey.number, ds sortkey.number[], raw bytea);
		create table parts (p part, ps part[]);
		create table keyed (id sortkey.number, ids sortkey.number[], code sortkey.any_text);
		create table lines (id app.order_id, ids app.order_id[], code app.code, codes app.code[], c citext, d app.any_case, n name, list app.list);
		create table records (id bigint, owner uuid, parent bigint, visit bigint, code_text text, raw bytea, related bigint[], "order" bigint, note text);
		create table uuids (id uuid, ids uuid[]);
		create table remedies (u uuid, n bigint, txt text, raw bytea, list bigint[], texts text[]);
		create table others (` + definitions(otherColumns) + ");"
	for base, domain := range domains {
		for _, column := range []string{base, domain} {
			ddl += fmt.Sprintf("create table %s (n serial, id %s, ids %[2]s[]);", tableOf(column), column)
		}
	}
	for _, s := range suites {
		ddl += fmt.Sprintf(`create table %s (id %s, txt text collate "C", raw bytea, at timestamptz);`, s.table(), s.column)
	}
	for _, c := range columnTypes {
		if strings.HasSuffix(c.name, "[]") {
			ddl += "create table " + copies(c.name).Sanitize() + " (n serial, c " + c.name + ");"
		}
	}
	db.Exec(t, ddl)
})

// tableOf returns the name of a column type's table.
func tableOf(column string) string {
	return "of_" + strings.Trim(strings.NewReplacer(".", "_", "(", "_", ")", "").Replace(column), "_")
}

func definitions(columns []struct{ name, typ string }) string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name+" "+c.typ)
	}
	return strings.Join(list, ", ")
}

// inEachMode runs f in the modes of pgtest.EachMode, on a connection with the codec. The
// connections share a database.
func inEachMode(t *testing.T, f func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode)) {
	t.Helper()
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			f(t, db.Conn(t, pgtest.Codec, pgtest.Mode(mode)), mode)
		})
	})
}

// eachType runs one test of the suites on a connection with the codec.
func eachType(t *testing.T, db *pgtest.DB, f func(s suite, t *testing.T, conn *pgx.Conn), opts ...pgtest.Option) {
	conn := db.Conn(t, append(opts, pgtest.Codec)...)
	for _, s := range suites {
		t.Run(s.TypeName(), func(t *testing.T) { f(s, t, conn) })
	}
}

// returns checks the only value of a query.
func returns(t *testing.T, conn *pgx.Conn, want any, query string, args ...any) {
	t.Helper()
	got := newOf(want)
	if err := conn.QueryRow(t.Context(), query, args...).Scan(got); err != nil || !reflect.DeepEqual(elem(got), want) {
		t.Errorf("%s with %s: got %v, %v, want %v", query, typesOf(args), elem(got), err, want)
	}
}

// collects checks the rows of a query.
func collects[T any](t *testing.T, conn *pgx.Conn, to pgx.RowToFunc[T], want []T, query string, args ...any) {
	t.Helper()
	rows, _ := conn.Query(t.Context(), query, args...)
	if got, err := pgx.CollectRows(rows, to); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s with %s: %+v, %v, want %+v", query, typesOf(args), got, err, want)
	}
}

func typesOf(values []any) string {
	var types []string
	for _, v := range values {
		types = append(types, fmt.Sprintf("%T", v))
	}
	return strings.Join(types, ", ")
}

// table returns the name of a type's table. A table named uuid would hide the type uuid.
func (s suite) table() string { return "ids_of_" + strings.ToLower(s.TypeName()) }

// Structs that embed an ID.
type (
	orderID    struct{ idtype.Snowflake }
	visitID    struct{ idtype.Spread64 }
	customerID struct{ idtype.Sno }
)

// Connections with the domains registered, and without.
var (
	loaded   = pgtest.Codec
	unloaded = pgtest.AfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		pgxcodec.Register(conn.TypeMap())
		return nil
	})
)

// domains maps column types that hold IDs to domains over them. sortkey.short_uuid is
// over another domain.
var domains = map[string]string{
	"bigint":      "sortkey.number",
	"uuid":        "sortkey.short_uuid",
	"text":        "sortkey.any_text",
	"varchar(40)": "sortkey.some_text",
	"char(40)":    "sortkey.padded",
	"char(16)":    "sortkey.exact",
	"bytea":       "sortkey.raw",
}

var createDomains = func() string {
	ddl := `create schema sortkey; create domain sortkey.long_uuid as uuid;
		create domain sortkey.short_uuid as sortkey.long_uuid check (value is not null or true);`
	for base, domain := range domains {
		if base != "uuid" {
			ddl += fmt.Sprintf("create domain %s as %s check (value is null or value = value);", domain, base)
		}
	}
	return ddl
}()

// rows lists the Go types, each in all column types that can hold it. A new ID type is a new
// suite.
func rows() []row {
	list := []row{
		rowOf("bigint", wrapped(idtest.Snowflake.Edges, func(id idtype.Snowflake) orderID { return orderID{id} }), decimalOf[orderID]),
		rowOf("bigint", wrapped(idtest.Spread64.Edges, func(id idtype.Spread64) visitID { return visitID{id} }), decimalOf[visitID]),
		rowOf("uuid", wrapped(idtest.Sno.Edges, func(id idtype.Sno) customerID { return customerID{id} }),
			func(id customerID) string { return idtest.Sno.Stored(id.Sno) }),
		rowOf("text", wrapped(idtest.Snowflake.Edges, func(id idtype.Snowflake) sqltypes.Text[orderID] { return sqltypes.TextOf(orderID{id}) }),
			sqltypes.Text[orderID].String),
		rowOf("char(16)", wrapped(idtest.Sno.Edges, func(id idtype.Sno) sqltypes.Text[customerID] { return sqltypes.TextOf(customerID{id}) }),
			sqltypes.Text[customerID].String),
		rowOf("char(16)", wrapped(idtest.Sno.Edges, sqltypes.TextOf[idtype.Sno]), sqltypes.Text[idtype.Sno].String),
		rowOf("bytea", wrapped(idtest.Sno.Edges, sqltypes.SnoBytesOf),
			func(id sqltypes.SnoBytes) string { return fmt.Sprintf("\\x%x", id.ID[:]) }),
	}
	for _, s := range suites {
		list = append(list, s.rows...)
	}
	return list
}

// wrapped wraps each ID.
func wrapped[T, V any](ids []T, wrap func(T) V) (list []V) {
	for _, id := range ids {
		list = append(list, wrap(id))
	}
	return list
}

func decimalOf[V interface{ Int64() int64 }](id V) string { return fmt.Sprint(id.Int64()) }
