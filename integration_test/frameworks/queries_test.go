package frameworks

import (
	"reflect"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/examples/frameworks/queries"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// TestQueries inserts rows and reads them by one key and by slices of keys. The database
// has rows that the slices don't name.
func TestQueries(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, queries.Schema)
		keys, err := key.NewGenerators(7)
		must(t, err)
		exercise(t, queries.SQLX{DB: sqlx.NewDb(db.SQL(t, pgtest.Codec), "pgx"), Keys: keys})
	})
}

func exercise(t *testing.T, s queries.SQLX) {
	ctx := t.Context()
	customers := []queries.Customer{{Name: "Ada"}, {Name: "Bob"}, {Name: "Cleo"}}
	for i := range customers {
		must(t, s.AddCustomer(ctx, &customers[i]))
		if customers[i].ID.Untyped().Meta() != 'c' {
			t.Errorf("customer %v has no key of a customer", customers[i])
		}
	}
	first := []queries.Order{{CustomerID: customers[0].ID, Total: 100}}
	must(t, s.AddOrders(ctx, first))
	more := []queries.Order{
		{CustomerID: customers[0].ID, ReplacesID: &first[0].ID, Total: 200},
		{CustomerID: customers[1].ID, Total: 300},
	}
	must(t, s.AddOrders(ctx, more))

	for _, want := range append(first, more...) {
		got, err := s.Order(ctx, want.ID)
		same(t, got, err, want)
	}
	for _, want := range [][]queries.Order{{first[0], more[1]}, more, {more[0]}, nil} {
		ids := make([]key.OrderID, 0, 2)
		for _, o := range slices.Backward(want) {
			ids = append(ids, o.ID)
		}
		got, err := s.Orders(ctx, ids)
		same(t, got, err, want)
	}
	for _, want := range [][]queries.Customer{customers[1:], customers[:1], nil} {
		ids := make([]key.CustomerID, 0, 2)
		for _, c := range slices.Backward(want) {
			ids = append(ids, c.ID)
		}
		got, err := s.Customers(ctx, ids)
		same(t, got, err, want)
	}
}

// same compares values deeply, because nullable keys are pointers.
func same[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("expected %+v, got %+v, %v", want, got, err)
	}
}
