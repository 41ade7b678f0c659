package frameworks

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/Masterminds/squirrel"
	pg "github.com/go-jet/jet/v2/postgres"
	"github.com/jmoiron/sqlx"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/examples/frameworks/queries"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// A store is a recipe of package queries.
type store interface {
	AddCustomer(context.Context, *queries.Customer) error
	AddOrders(context.Context, []queries.Order) error
	Order(context.Context, key.OrderID) (queries.Order, error)
	Orders(context.Context, []key.OrderID) ([]queries.Order, error)
	Customers(context.Context, []key.CustomerID) ([]queries.Customer, error)
}

// TestQueries inserts rows and reads them by one key and by slices of keys. Each database
// has rows that the slices don't name.
func TestQueries(t *testing.T) {
	for name, open := range map[string]func(*testing.T, *pgtest.DB, key.Generators) store{
		"sqlx": func(t *testing.T, db *pgtest.DB, keys key.Generators) store {
			return queries.SQLX{DB: sqlx.NewDb(db.SQL(t, pgtest.Codec), "pgx"), Keys: keys}
		},
		"scany": func(t *testing.T, db *pgtest.DB, keys key.Generators) store {
			return queries.Scany{Pool: db.Pool(t, pgtest.Codec), Keys: keys}
		},
		"squirrel": func(t *testing.T, db *pgtest.DB, keys key.Generators) store {
			return queries.Squirrel{DB: db.SQL(t), Keys: keys}
		},
		"jet": func(t *testing.T, db *pgtest.DB, keys key.Generators) store {
			return queries.Jet{DB: db.SQL(t), Keys: keys}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, queries.Schema)
				keys, err := key.NewGenerators(7)
				must(t, err)
				exercise(t, open(t, db, keys))
			})
		})
	}
}

func exercise(t *testing.T, s store) {
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

// squirrel passes a key in Eq as one value, and a zero Optional as NULL. It calls Value on a
// nil pointer, which panics.
func TestSquirrelEq(t *testing.T) {
	id := idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63l"))
	for _, test := range []struct {
		value any
		sql   string
		args  []any
	}{
		{id, "id = ?", []any{"6272706b-3471-3732-6567-66326d36336c"}},
		{sqltypes.Optional[key.CustomerID]{}, "id IS NULL", nil},
		{[]key.CustomerID{id}, "id IN (?)", []any{id}},
		{[]key.CustomerID{}, "(1=0)", nil},
	} {
		sql, args, err := squirrel.Eq{"id": test.value}.ToSql()
		if err != nil || sql != test.sql || len(args) != len(test.args) || len(args) == 1 && args[0] != test.args[0] {
			t.Errorf("%v: expected %s with %v, got %s with %v, %v", test.value, test.sql, test.args, sql, args, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("squirrel accepts a nil pointer: correct the page")
		}
	}()
	_, _, _ = squirrel.Eq{"id": (*key.CustomerID)(nil)}.ToSql()
}

// jet's UUID takes the text of a Sno for a UUID, which Postgres rejects.
func TestJetUUID(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, queries.Schema)
		id := idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63l"))
		customers, column := pg.NewTable("public", "customers", ""), pg.StringColumn("id")
		for _, test := range []struct {
			uuid fmt.Stringer
			fits bool
		}{{id, false}, {id.UUID(), true}} {
			var rows []queries.Customers
			err := customers.SELECT(column).WHERE(column.EQ(pg.UUID(test.uuid))).QueryContext(t.Context(), db.SQL(t), &rows)
			if (err == nil) != test.fits {
				t.Errorf("%v: got %v", test.uuid, err)
			}
		}
	})
}

// same compares values deeply, because nullable keys are pointers.
func same[T any](t *testing.T, got T, err error, want T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("expected %+v, got %+v, %v", want, got, err)
	}
}
