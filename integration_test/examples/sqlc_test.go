package examples

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/examples/sqlc/key"
	"github.com/sortkey/sortkey/examples/sqlc/shop"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/sqltypes"
)

// Without an override, sqlc maps a domain to any, which would accept every value
// of the test.
var (
	_ sqltypes.Optional[idtype.SnoOf[key.Customer]] = shop.Customer{}.InvitedBy
	_ *idtype.SnowflakeOf[key.Order]                = shop.Order{}.Replaces
	_ *idtype.SnoOf[key.Customer]                   = shop.Visit{}.CustomerID
	_ sqltypes.Text[idtype.Sno]                     = shop.Voucher{}.Code
	_ *idtype.SnowflakeOf[key.Order]                = shop.Voucher{}.OrderID
	_ *idtype.SnowflakeOf[key.Order]                = shop.CustomersAndOrdersRow{}.OrderID
)

// TestSqlc checks the arguments and results of the generated queries in all modes.
func TestSqlc(t *testing.T) {
	eachSqlcMode(t, func(t *testing.T, db shop.DBTX, k sqlcKeys) {
		ctx, q := t.Context(), shop.New(db)

		ada := shop.Customer{ID: k.customers[0], Email: "ada"}
		bob := shop.Customer{ID: k.customers[1], Email: "bob", InvitedBy: sqltypes.OptionalOf(ada.ID)}
		eve := shop.Customer{ID: k.customers[2], Email: "eve"} // has no orders
		for _, c := range []shop.Customer{ada, bob, eve} {
			got, err := q.CreateCustomer(ctx, shop.CreateCustomerParams(c))
			same(t, got, err, c)
		}

		orders := []shop.Order{
			{ID: k.orders[0], CustomerID: bob.ID, Cents: 100},
			{ID: k.orders[1], CustomerID: ada.ID, Cents: 200, Replaces: &k.orders[0]},
			{ID: k.orders[2], CustomerID: ada.ID, Cents: 300},
			{ID: k.orders[3], CustomerID: bob.ID, Cents: 400, Replaces: &k.orders[2]},
		}
		for _, o := range orders[:2] {
			got, err := q.CreateOrder(ctx, shop.CreateOrderParams(o))
			same(t, got, err, o)
		}
		var ids []key.OrderID
		q.CreateOrders(ctx, []shop.CreateOrdersParams{
			shop.CreateOrdersParams(orders[2]), shop.CreateOrdersParams(orders[3]),
		}).QueryRow(func(i int, id key.OrderID, err error) {
			same(t, id, err, orders[2+i].ID)
			ids = append(ids, id)
		})
		same(t, ids, nil, k.orders[2:])

		page, err := q.ListOrders(ctx, shop.ListOrdersParams{Size: 3}) // every order is after the zero ID
		same(t, page, err, orders[:3])
		page, err = q.ListOrders(ctx, shop.ListOrdersParams{After: page[2].ID, Size: 3})
		same(t, page, err, orders[3:])
		window, err := q.OrdersBetween(ctx, shop.OrdersBetweenParams{Lo: k.orderWindow[0], Hi: k.orderWindow[1]})
		same(t, window, err, orders[1:3])
		window, err = q.OrdersByID(ctx, []key.OrderID{orders[3].ID, orders[0].ID})
		same(t, window, err, []shop.Order{orders[0], orders[3]})
		window, err = q.OrdersByID(ctx, nil)
		same(t, window, err, nil)
		ids, err = q.OrdersReplacing(ctx, &k.orders[0])
		same(t, ids, err, k.orders[1:2])

		joined, err := q.CustomersAndOrders(ctx)
		same(t, joined, err, []shop.CustomersAndOrdersRow{
			{ID: ada.ID, OrderID: &k.orders[1]}, {ID: ada.ID, OrderID: &k.orders[2]},
			{ID: bob.ID, OrderID: &k.orders[0]}, {ID: bob.ID, OrderID: &k.orders[3]}, {ID: eve.ID},
		})
		groups, err := q.OrdersOfCustomers(ctx)
		same(t, groups, err, []shop.OrdersOfCustomersRow{
			{CustomerID: ada.ID, Last: k.orders[2], Ids: k.orders[1:3]},
			{CustomerID: bob.ID, Last: k.orders[3], Ids: []key.OrderID{k.orders[0], k.orders[3]}},
		})

		visits := []shop.Visit{
			{ID: k.visits[0], Page: "/"},
			{ID: k.visits[1], CustomerID: &bob.ID, Page: "/login"},
			{ID: k.visits[2], CustomerID: &bob.ID, Page: "/cart"},
		}
		var rows []shop.CopyVisitsParams
		for _, v := range visits {
			rows = append(rows, shop.CopyVisitsParams(v))
		}
		n, err := q.CopyVisits(ctx, rows)
		same(t, n, err, int64(len(visits)))
		seen, err := q.VisitsByID(ctx, k.visits[1:])
		same(t, seen, err, visits[1:])
		seen, err = q.VisitsOfCustomers(ctx, []key.CustomerID{ada.ID, bob.ID})
		same(t, seen, err, visits[1:])

		vouchers := []shop.Voucher{
			{Code: sqltypes.TextOf(k.codes[0]), Cents: 500},
			{Code: sqltypes.TextOf(k.codes[1]), OrderID: &k.orders[2]},
		}
		for _, v := range vouchers {
			got, err := q.CreateVoucher(ctx, shop.CreateVoucherParams(v))
			same(t, got, err, v)
		}
		spent, err := q.VouchersOfOrders(ctx, k.orders)
		same(t, spent, err, vouchers[1:])
		k.stored(t, db)
	})
}

// TestSqlcOverrides checks that the README has the right Go type for each domain,
// and that sqlc.yaml uses these types.
func TestSqlcOverrides(t *testing.T) {
	readme, err := os.ReadFile("../../examples/sqlc/README.md")
	must(t, err)
	config, err := os.ReadFile("../../examples/sqlc/sqlc.yaml")
	must(t, err)
	types := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `sortkey\\.(\\w+)` \\| `github.com/sortkey/sortkey/(\\w+\\.[\\w.\\[\\]]+)`(?:, by an alias)? \\|$").FindAllSubmatch(readme, -1) {
		types[string(row[1])] = string(row[2])
	}
	for _, override := range regexp.MustCompile(`db_type: sortkey\.(\w+)\n +go_type: github.com/sortkey/sortkey/(\S+)`).FindAllSubmatch(config, -1) {
		if domain, typ := string(override[1]), string(override[2]); types[domain] != typ {
			t.Errorf("sqlc.yaml has %s for %s, the README %q", typ, domain, types[domain])
		}
	}
	type typed struct {
		name  string
		value any
	}
	want := map[string]typed{
		"snowflake": {"idtype.Snowflake", idtype.Snowflake(1)}, "snowflake_si": {"idtype.SnowflakeSI", idtype.SnowflakeSI(1)},
		"uid60": {"idtype.UID60", idtype.UID60(1)}, "spread64": {"idtype.Spread64", idtype.Spread64(-65536)},
		"sno": {"idtype.Sno", idtype.Sno{9: 1}}, "sno_as_text": {"sqltypes.Text[idtype.Sno]", sqltypes.TextOf(idtype.Sno{9: 1})},
		"uuid7": {"idtype.UUID", idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))},
	}
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		conn := db.Conn(t, pgtest.Codec)
		rows, _ := conn.Query(t.Context(), "SELECT typname::text FROM pg_type WHERE typtype = 'd' AND typnamespace = 'sortkey'::regnamespace")
		domains, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(domains) != len(types) {
			t.Errorf("got domains %v, %v, want those in the README: %v", domains, err, types)
		}
		for _, domain := range domains {
			typ := want[domain]
			if typ.value == nil || typ.name != types[domain] {
				t.Errorf("%s: the README says %q, want %q", domain, types[domain], typ.name)
				continue
			}
			got := reflect.New(reflect.TypeOf(typ.value))
			if err := conn.QueryRow(t.Context(), "SELECT $1::sortkey."+domain, typ.value).Scan(got.Interface()); err != nil || got.Elem().Interface() != typ.value {
				t.Errorf("%s as %s: got %v, %v, want %v", domain, typ.name, got.Elem(), err, typ.value)
			}
		}
	})
}

// sqlcKeys holds the keys that a test inserts, in order.
type sqlcKeys struct {
	customers   []key.CustomerID
	orders      []key.OrderID // one per minute
	orderWindow [2]key.OrderID
	visits      []idtype.UID60
	codes       []idtype.Sno
}

// stored checks the stored form of the IDs in each column.
func (k sqlcKeys) stored(t *testing.T, db shop.DBTX) {
	t.Helper()
	for _, c := range []struct{ query, want string }{
		{"SELECT min(id::text) FROM customers", k.customers[0].UUID().String()},
		{"SELECT min(id)::text FROM orders", k.orders[0].String()},
		{"SELECT min(replaces)::text FROM orders", k.orders[0].String()},
		{"SELECT id::text FROM visits WHERE customer_id IS NULL", strconv.FormatInt(int64(k.visits[0]), 10)},
		{"SELECT code::text FROM vouchers WHERE order_id IS NULL", k.codes[0].String()},
		{"SELECT count(*)::text FROM customers WHERE invited_by IS NULL", "2"},
	} {
		var got string
		err := db.QueryRow(t.Context(), c.query).Scan(&got)
		same(t, got, err, c.want)
	}
}

func newSqlcKeys(t *testing.T) (k sqlcKeys) {
	t.Helper()
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return began.Add(time.Duration(n) * time.Minute) }
	layout := idtype.DefaultSnowflakeLayout()
	for n := range 4 {
		id, err := layout.Compose(idtype.SnowflakeParts{Time: minute(n), Sequence: n})
		must(t, err)
		k.orders = append(k.orders, key.OrderID(id))
	}
	lo, hi, err := layout.Range(minute(1), minute(3))
	must(t, err)
	k.orderWindow = [2]key.OrderID{key.OrderID(lo), key.OrderID(hi)}
	k.customers, k.codes, k.visits = make([]key.CustomerID, 3), make([]idtype.Sno, 2), make([]idtype.UID60, 3)
	snos := idtype.Must(idtype.NewSnoGenerator(idtype.SnoConfig{}))
	visits := idtype.Must(idtype.NewUID60Generator(idtype.UID60Config{}))
	_, err1 := idtype.GeneratorOf[idtype.SnoOf[key.Customer]](snos).Fill(t.Context(), k.customers)
	_, err2 := snos.Fill(t.Context(), k.codes)
	_, err3 := visits.Fill(t.Context(), k.visits)
	must(t, errors.Join(err1, err2, err3))
	return k
}

// eachSqlcMode runs f in each mode with empty tables.
func eachSqlcMode(t *testing.T, f func(t *testing.T, db shop.DBTX, k sqlcKeys)) {
	tables, err := os.ReadFile("../../examples/sqlc/schema.sql")
	must(t, err)
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		db.Exec(t, string(tables))
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			pool := db.Pool(t, pgtest.Codec, pgtest.Mode(mode))
			if _, err := pool.Exec(context.Background(), "TRUNCATE customers, orders, visits, vouchers"); err != nil {
				t.Fatal(err)
			}
			f(t, pool, newSqlcKeys(t))
		})
	})
}

func same[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}
