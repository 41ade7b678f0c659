// Package bunshop has a recipe for bun.
package bunshop

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
)

// A Customer is a row of the table customers.
type Customer struct {
	ID   key.CustomerID `bun:",pk,type:uuid"`
	Name string
}

// An Order is a row of the table orders.
type Order struct {
	ID         key.OrderID    `bun:",pk"`
	CustomerID key.CustomerID `bun:",type:uuid,notnull"`
	ReplacesID *key.OrderID   // nil is NULL
	Total      int64          `bun:",notnull"`
	Customer   *Customer      `bun:"rel:belongs-to"`
}

// Keys are the generators. The program sets them before its first insert.
var Keys key.Generators

// BeforeAppendModel fills the key before an insert.
func (c *Customer) BeforeAppendModel(_ context.Context, q bun.Query) error {
	return fill(q, &c.ID, Keys.Customers)
}

// BeforeAppendModel fills the key before an insert.
func (o *Order) BeforeAppendModel(_ context.Context, q bun.Query) error {
	return fill(q, &o.ID, Keys.Orders)
}

// fill sets the key of a row that an INSERT adds, if the key isn't set.
func fill[T interface{ IsZero() bool }](q bun.Query, id *T, keys idtype.Generator[T]) (err error) {
	if _, ok := q.(*bun.InsertQuery); ok && (*id).IsZero() {
		*id, err = keys.Next()
	}
	return err
}

// Add inserts a customer and orders of the customer.
func Add(ctx context.Context, db bun.IDB, c *Customer, orders []Order) error {
	if _, err := db.NewInsert().Model(c).Exec(ctx); err != nil {
		return err
	}
	for i := range orders {
		orders[i].CustomerID = c.ID
	}
	_, err := db.NewInsert().Model(&orders).Exec(ctx)
	return err
}

// Find returns an order with its customer.
func Find(ctx context.Context, db bun.IDB, id key.OrderID) (*Order, error) {
	order := &Order{ID: id}
	err := db.NewSelect().Model(order).Relation("Customer").WherePK().Scan(ctx)
	return order, err
}

// Orders returns the orders with these keys. ids may be empty.
func Orders(ctx context.Context, db bun.IDB, ids []key.OrderID) (orders []Order, err error) {
	err = db.NewSelect().Model(&orders).Where("id IN ?", bun.Tuple(ids)).Order("id").Scan(ctx)
	return orders, err
}

// Customers returns the customers with these keys. ids may be empty.
func Customers(ctx context.Context, db bun.IDB, ids []key.CustomerID) (customers []Customer, err error) {
	err = db.NewSelect().Model(&customers).Where("id IN ?", bun.Tuple(ids)).Order("id").Scan(ctx)
	return customers, err
}
