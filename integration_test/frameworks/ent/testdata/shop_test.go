// Package uses tests the recipe for ent. It compiles only with package shop, which TestEnt
// generates.
package uses

import (
	"errors"
	"slices"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sortkey/sortkey/examples/frameworks/entshop"
	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/shop"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/shop/customer"
	"github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/shop/order"
	_ "github.com/sortkey/sortkey/integration_test/frameworks/ent/testdata/shop/runtime"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

func TestShop(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		var err error
		entshop.Keys, err = key.NewGenerators(7)
		must(t, err)
		c := shop.NewClient(shop.Driver(entsql.OpenDB(dialect.Postgres, db.SQL(t))))
		must(t, c.Schema.Create(ctx))
		must(t, c.Schema.Create(ctx)) // finds nothing to change
		pgtest.CheckColumns(t, db, map[string]string{
			"customers.id": "uuid", "orders.id": "bigint", "orders.customer_id": "uuid", "orders.replaces_id": "bigint",
		})

		ada, err := c.Customer.Create().SetName("Ada").Save(ctx)
		must(t, err)
		if ada.ID.Untyped().Meta() != 'c' {
			t.Errorf("expected the key of a customer, got %v", ada)
		}
		first, err := c.Order.Create().SetCustomer(ada).SetTotal(100).Save(ctx)
		must(t, err)
		more, err := c.Order.CreateBulk(
			c.Order.Create().SetCustomer(ada).SetReplacesID(first.ID).SetTotal(200),
			c.Order.Create().SetCustomerID(ada.ID).SetTotal(300),
		).Save(ctx)
		must(t, err)
		if first.ID.IsZero() || first.ID >= more[0].ID || more[0].ID >= more[1].ID {
			t.Errorf("expected ascending keys, got %v, %v", first, more)
		}
		given := key.CustomerID(idtype.Must(idtype.SnoLayout{}.Floor(time.Now())).WithMeta(ada.ID.Untyped().Meta()))
		bob, err := c.Customer.Create().SetID(given).SetName("Bob").Save(ctx)
		if err != nil || bob.ID != given {
			t.Errorf("expected the given key %v, got %v, %v", given, bob, err)
		}

		got, err := c.Order.Get(ctx, more[0].ID)
		if err != nil || got.CustomerID != ada.ID || got.ReplacesID == nil || *got.ReplacesID != first.ID || got.Total != 200 {
			t.Errorf("expected %v, got %v, %v", more[0], got, err)
		}
		if got, err := c.Order.Get(ctx, more[1].ID); err != nil || got.ReplacesID != nil {
			t.Errorf("expected NULL, got %v, %v", got, err)
		}
		for _, want := range [][]key.OrderID{{first.ID, more[1].ID}, {more[0].ID}, nil} {
			ids, err := c.Order.Query().Where(order.IDIn(want...)).Order(shop.Asc(order.FieldID)).IDs(ctx)
			if err != nil || !slices.Equal(ids, want) {
				t.Errorf("expected %v, got %v, %v", want, ids, err)
			}
		}
		names, err := c.Customer.Query().Where(customer.IDIn(given, ada.ID)).Order(shop.Asc(customer.FieldName)).Select(customer.FieldName).Strings(ctx)
		if err != nil || !slices.Equal(names, []string{"Ada", "Bob"}) {
			t.Errorf("got %v, %v", names, err)
		}

		// Relations, and NULL in conditions.
		orders, err := ada.QueryOrders().Where(order.ReplacesIDIsNil()).Count(ctx)
		if err != nil || orders != 2 {
			t.Errorf("expected 2 orders that replace none, got %d, %v", orders, err)
		}
		replaced, err := more[0].QueryReplaces().Only(ctx)
		if err != nil || replaced.ID != first.ID {
			t.Errorf("expected %v, got %v, %v", first, replaced, err)
		}
		loaded, err := c.Customer.Query().Where(customer.ID(ada.ID)).WithOrders().Only(ctx)
		if err != nil || len(loaded.Edges.Orders) != 3 {
			t.Errorf("expected 3 orders, got %v, %v", loaded, err)
		}
		must(t, got.Update().ClearReplacesID().Exec(ctx))
		if n, err := c.Order.Query().Where(order.ReplacesIDNotNil()).Count(ctx); err != nil || n != 0 {
			t.Errorf("expected no order that replaces another, got %d, %v", n, err)
		}

		// The error of a generator reaches the caller.
		entshop.Keys.Orders = failing{}
		if _, err := c.Order.Create().SetCustomer(ada).SetTotal(1).Save(ctx); !errors.Is(err, idtype.ErrSequenceExhausted) {
			t.Errorf("got %v", err)
		}
	})
}

// A failing generator returns an error.
type failing struct{ idtype.Generator[key.OrderID] }

func (failing) Next() (key.OrderID, error) { return 0, idtype.ErrSequenceExhausted }
