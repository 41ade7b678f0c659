package queries

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// A SQLX stores rows with sqlx.
type SQLX struct {
	DB   *sqlx.DB
	Keys key.Generators
}

// AddCustomer sets the customer's key and inserts the customer.
func (s SQLX) AddCustomer(ctx context.Context, c *Customer) (err error) {
	if c.ID, err = s.Keys.Customers.Next(); err != nil {
		return err
	}
	_, err = s.DB.NamedExecContext(ctx, "INSERT INTO customers (id, name) VALUES (:id, :name)", c)
	return err
}

// AddOrders sets the keys of the orders and inserts the orders.
func (s SQLX) AddOrders(ctx context.Context, orders []Order) error {
	if err := fill(s.Keys, orders); err != nil {
		return err
	}
	_, err := s.DB.NamedExecContext(ctx,
		"INSERT INTO orders (id, customer_id, replaces_id, total) VALUES (:id, :customer_id, :replaces_id, :total)", orders)
	return err
}

// Order returns an order.
func (s SQLX) Order(ctx context.Context, id key.OrderID) (o Order, err error) {
	err = s.DB.GetContext(ctx, &o, "SELECT * FROM orders WHERE id = $1", id)
	return o, err
}

// Orders returns the orders with these keys. ids may be empty.
func (s SQLX) Orders(ctx context.Context, ids []key.OrderID) (orders []Order, err error) {
	err = s.DB.SelectContext(ctx, &orders, "SELECT * FROM orders WHERE id = ANY($1) ORDER BY id", ids)
	return orders, err
}

// Customers returns the customers with these keys. It works with every driver, but
// sqlx.In rejects an empty slice.
func (s SQLX) Customers(ctx context.Context, ids []key.CustomerID) (customers []Customer, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	query, args, err := sqlx.In("SELECT * FROM customers WHERE id IN (?) ORDER BY id", ids)
	if err != nil {
		return nil, err
	}
	err = s.DB.SelectContext(ctx, &customers, s.DB.Rebind(query), args...)
	return customers, err
}
