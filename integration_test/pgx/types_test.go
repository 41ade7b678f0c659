package pgx

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A suite holds the tests that depend on the Go type.
type suite interface {
	TypeName() string
	rows() []row
	order(t *testing.T, conn *pgx.Conn)
	ranges(t *testing.T, conn *pgx.Conn)
	rangeTypes(t *testing.T, conn *pgx.Conn)
	badInput(t *testing.T, conn *pgx.Conn)
}

type of[T idtest.ID[T]] struct{ idtest.Kind[T] }

var suites = []suite{
	of[idtype.Snowflake]{idtest.Snowflake},
	of[idtype.SnowflakeSI]{idtest.SnowflakeSI},
	of[idtype.UID60]{idtest.UID60},
	of[idtype.Spread64]{idtest.Spread64},
	of[idtype.Sno]{idtest.Sno},
	of[idtype.SnowflakeOf[idtest.Order]]{idtest.OrderID},
	of[idtype.SnowflakeSIOf[idtest.Order]]{idtest.OrderSI},
	of[idtype.UID60Of[idtest.Visit]]{idtest.VisitID},
	of[idtype.Spread64Of[idtest.Visit]]{idtest.VisitKey},
	of[idtype.SnoOf[idtest.Visit]]{idtest.VisitSno},
	of[idtype.SnoOf[idtest.Customer]]{idtest.CustomerID},
	of[idtype.UUID]{idtest.UUID},
	of[idtype.UUIDOf[idtest.Order]]{idtest.OrderUUID},
}

// inEachMode runs f in each query exec mode, on a connection with the codec. The
// connections share a database.
func inEachMode(t *testing.T, ddl string, f func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode)) {
	t.Helper()
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, ddl)
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
	got := reflect.New(reflect.TypeOf(want))
	if err := conn.QueryRow(t.Context(), query, args...).Scan(got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), want) {
		t.Errorf("%s with %s: got %v, %v, want %v", query, typesOf(args), got.Elem(), err, want)
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
func (k of[T]) table() string { return "ids_of_" + strings.ToLower(k.Name) }

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

func createDomains(t *testing.T, db *pgtest.DB) {
	t.Helper()
	ddl := `create schema sortkey; create domain sortkey.long_uuid as uuid;
		create domain sortkey.short_uuid as sortkey.long_uuid check (value is not null or true);`
	for base, domain := range domains {
		if base != "uuid" {
			ddl += fmt.Sprintf("create domain %s as %s check (value is null or value = value);", domain, base)
		}
	}
	db.Exec(t, ddl)
}

// rows lists the Go types, each in all column types that can hold it. A new ID type is a new
// suite.
func rows() []row {
	list := []row{
		entry[orderID]{"bigint", wrapped(idtest.Snowflake.Edges, func(id idtype.Snowflake) orderID { return orderID{id} }), decimalOf[orderID]},
		entry[visitID]{"bigint", wrapped(idtest.Spread64.Edges, func(id idtype.Spread64) visitID { return visitID{id} }), decimalOf[visitID]},
		entry[customerID]{"uuid", wrapped(idtest.Sno.Edges, func(id idtype.Sno) customerID { return customerID{id} }),
			func(id customerID) string { return idtest.Sno.Stored(id.Sno) }},
		entry[sqltypes.Text[orderID]]{"text", wrapped(idtest.Snowflake.Edges, func(id idtype.Snowflake) sqltypes.Text[orderID] { return sqltypes.TextOf(orderID{id}) }),
			sqltypes.Text[orderID].String},
		entry[sqltypes.Text[customerID]]{"char(16)", wrapped(idtest.Sno.Edges, func(id idtype.Sno) sqltypes.Text[customerID] { return sqltypes.TextOf(customerID{id}) }),
			sqltypes.Text[customerID].String},
		entry[sqltypes.SnoText]{"char(16)", wrapped(idtest.Sno.Edges, sqltypes.TextOf[idtype.Sno]), sqltypes.SnoText.String},
		entry[sqltypes.SnoBytes]{"bytea", wrapped(idtest.Sno.Edges, sqltypes.SnoBytesOf),
			func(id sqltypes.SnoBytes) string { return fmt.Sprintf("\\x%x", id.ID[:]) }},
	}
	for _, s := range suites {
		list = append(list, s.rows()...)
	}
	return list
}

func (k of[T]) rows() []row {
	r := idtest.Rand(k.Name)
	ids := append([]T{}, k.Edges...)
	for range 5 {
		ids = append(ids, k.Random(r))
	}
	list := []row{entry[T]{k.Column, ids, k.Stored}}
	for _, column := range []string{"text", "varchar(40)", "char(40)"} {
		list = append(list, entry[sqltypes.Text[T]]{column, wrapped(ids, sqltypes.TextOf[T]), idtest.ColumnText[T]})
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
