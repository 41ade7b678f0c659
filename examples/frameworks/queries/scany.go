package queries

import (
	"context"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// A Scany stores rows with pgx and reads them with scany.
type Scany struct {
	Pool *pgxpool.Pool // with pgxcodec.AfterConnect
	Keys key.Generators
}

// AddCustomer sets the customer's key and inserts the customer.
func (s Scany) AddCustomer(ctx context.Context, c *Customer) (err error) {
	if c.ID, err = s.Keys.Customers.Next(); err != nil {
		return err
	}
	_, err = s.Pool.Exec(ctx, "INSERT INTO customers (id, name) VALUES ($1, $2)", c.ID, c.Name)
	return err
}

// AddOrders sets the keys of the orders and copies the orders to the table.
func (s Scany) AddOrders(ctx context.Context, orders []Order) error {
	if err := fill(s.Keys, orders); err != nil {
		return err
	}
	_, err := s.Pool.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "customer_id", "replaces_id", "total"},
		pgx.CopyFromSlice(len(orders), func(i int) ([]any, error) {
			o := orders[i]
			return []any{o.ID, o.CustomerID, o.ReplacesID, o.Total}, nil
		}))
	return err
}

// Order returns an order.
func (s Scany) Order(ctx context.Context, id key.OrderID) (o Order, err error) {
	err = pgxscan.Get(ctx, s.Pool, &o, "SELECT * FROM orders WHERE id = $1", id)
	return o, err
}

// Orders returns the orders with these keys. ids may be empty.
func (s Scany) Orders(ctx context.Context, ids []key.OrderID) (orders []Order, err error) {
	err = pgxscan.Select(ctx, s.Pool, &orders, "SELECT * FROM orders WHERE id = ANY($1) ORDER BY id", ids)
	return orders, err
}

// Customers returns the customers with these keys. ids may be empty.
func (s Scany) Customers(ctx context.Context, ids []key.CustomerID) (customers []Customer, err error) {
	err = pgxscan.Select(ctx, s.Pool, &customers, "SELECT * FROM customers WHERE id = ANY($1) ORDER BY id", ids)
	return customers, err
}
