package frameworks

import (
	"errors"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/sortkey/sortkey/examples/frameworks/bunshop"
	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

func TestBun(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		var err error
		bunshop.Keys, err = key.NewGenerators(7)
		must(t, err)
		b := bun.NewDB(db.SQL(t), pgdialect.New())
		for _, model := range []any{(*bunshop.Customer)(nil), (*bunshop.Order)(nil)} {
			_, err := b.NewCreateTable().Model(model).Exec(ctx)
			must(t, err)
		}
		pgtest.CheckColumns(t, db, map[string]string{
			"customers.id": "uuid", "orders.id": "bigint", "orders.customer_id": "uuid", "orders.replaces_id": "bigint",
		})

		ada, bob := &bunshop.Customer{Name: "Ada"}, &bunshop.Customer{Name: "Bob"}
		orders := []bunshop.Order{{Total: 100}, {Total: 200}}
		must(t, bunshop.Add(ctx, b, ada, orders))
		more := []bunshop.Order{{Total: 300, ReplacesID: &orders[0].ID}}
		must(t, bunshop.Add(ctx, b, bob, more))
		if ada.ID.IsZero() || orders[0].ID.IsZero() || orders[0].ID >= orders[1].ID || orders[1].ID >= more[0].ID {
			t.Errorf("expected ascending keys, got %v, %v, %v", ada, orders, more)
		}
		// The hook keeps a key that is set, and an UPDATE doesn't get a key.
		given := &bunshop.Customer{ID: key.CustomerID(idtype.Must(idtype.SnoLayout{}.Floor(time.Now())).WithMeta(ada.ID.Untyped().Meta())), Name: "Cleo"}
		must(t, bunshop.Add(ctx, b, given, []bunshop.Order{{Total: 400}}))
		_, err = b.NewUpdate().Model(&bunshop.Customer{Name: "Ada"}).Where("name = 'Ada'").Column("name").Exec(ctx)
		must(t, err)

		found, err := bunshop.Find(ctx, b, more[0].ID)
		want := more[0]
		want.Customer = bob
		same(t, *found, err, want)
		list, err := bunshop.Orders(ctx, b, []key.OrderID{more[0].ID, orders[0].ID})
		same(t, list, err, []bunshop.Order{orders[0], more[0]})
		list, err = bunshop.Orders(ctx, b, []key.OrderID{})
		same(t, list, err, nil)
		customers, err := bunshop.Customers(ctx, b, []key.CustomerID{bob.ID, given.ID})
		if err != nil || len(customers) != 2 {
			t.Errorf("expected %v and %v, got %v, %v", given, bob, customers, err)
		}
		customers, err = bunshop.Customers(ctx, b, nil)
		same(t, customers, err, nil)
	})
}

// TestBunColumns checks the columns that bun creates for fields without a tag.
func TestBunColumns(t *testing.T) {
	type untagged struct {
		ID       idtype.Sno `bun:",pk"`
		ParentID sqltypes.Optional[idtype.Snowflake]
	}
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		_, err := bun.NewDB(db.SQL(t), pgdialect.New()).NewCreateTable().Model((*untagged)(nil)).Exec(t.Context())
		must(t, err)
		pgtest.CheckColumns(t, db, map[string]string{"untaggeds.id": "bytea", "untaggeds.parent_id": "jsonb"})
	})
}

// A nullable key is a pointer or an Optional. With nullzero, bun stores NULL for a zero ID, and
// reads it back into the ID, so the call fails although the row is stored.
func TestBunNull(t *testing.T) {
	type note struct {
		ID         key.OrderID `bun:",pk"`
		OrderID    *key.OrderID
		ParentID   sqltypes.Optional[key.OrderID]    `bun:",type:bigint"`
		CustomerID sqltypes.Optional[key.CustomerID] `bun:",type:uuid"`
	}
	type nullZero struct {
		bun.BaseModel `bun:"table:notes"`
		ID            key.OrderID `bun:",pk"`
		OrderID       key.OrderID `bun:",nullzero"`
	}
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx, b := t.Context(), bun.NewDB(db.SQL(t), pgdialect.New())
		_, err := b.NewCreateTable().Model((*note)(nil)).Exec(ctx)
		must(t, err)
		pgtest.CheckColumns(t, db, map[string]string{"notes.id": "bigint", "notes.order_id": "bigint", "notes.parent_id": "bigint", "notes.customer_id": "uuid"})
		order := key.OrderID(7)
		notes := []note{{ID: 1}, {ID: 2, OrderID: &order, ParentID: sqltypes.OptionalOf(order)}}
		notes[1].CustomerID.ID = key.CustomerID(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta('c'))
		_, err = b.NewInsert().Model(&notes).Exec(ctx)
		must(t, err)
		var got []note
		err = b.NewSelect().Model(&got).Order("id").Scan(ctx)
		same(t, got, err, notes)
		if n, err := b.NewSelect().Model((*note)(nil)).Where("order_id IS NULL AND parent_id IS NULL AND customer_id IS NULL").Count(ctx); n != 1 || err != nil {
			t.Errorf("expected one row of NULLs, got %d, %v", n, err)
		}

		if _, err := b.NewInsert().Model(&nullZero{ID: 3}).Exec(ctx); !errors.Is(err, idtype.ErrNull) {
			t.Errorf("nullzero: expected %v, got %v", idtype.ErrNull, err)
		}
		if n, err := b.NewSelect().Model((*nullZero)(nil)).Count(ctx); n != 3 || err != nil {
			t.Errorf("expected 3 rows, got %d, %v", n, err)
		}
	})
}
