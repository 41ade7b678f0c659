package queries

import (
	"context"
	"database/sql"

	"github.com/Masterminds/squirrel"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// A Squirrel stores rows with statements that squirrel builds.
type Squirrel struct {
	DB   *sql.DB
	Keys key.Generators
}

func (s Squirrel) build() squirrel.StatementBuilderType {
	return squirrel.StatementBuilder.PlaceholderFormat(squirrel.Dollar).RunWith(s.DB)
}

// AddCustomer sets the customer's key and inserts the customer.
func (s Squirrel) AddCustomer(ctx context.Context, c *Customer) (err error) {
	if c.ID, err = s.Keys.Customers.Next(); err != nil {
		return err
	}
	_, err = s.build().Insert("customers").Columns("id", "name").Values(c.ID, c.Name).ExecContext(ctx)
	return err
}

// AddOrders sets the keys of the orders and inserts the orders.
func (s Squirrel) AddOrders(ctx context.Context, orders []Order) error {
	if err := fill(s.Keys, orders); err != nil {
		return err
	}
	insert := s.build().Insert("orders").Columns("id", "customer_id", "replaces_id", "total")
	for _, o := range orders {
		insert = insert.Values(o.ID, o.CustomerID, o.ReplacesID, o.Total)
	}
	_, err := insert.ExecContext(ctx)
	return err
}

// Order returns an order.
func (s Squirrel) Order(ctx context.Context, id key.OrderID) (o Order, err error) {
	err = s.orders(squirrel.Eq{"id": id}).ScanContext(ctx, &o.ID, &o.CustomerID, &o.ReplacesID, &o.Total)
	return o, err
}

func (s Squirrel) orders(where squirrel.Eq) squirrel.SelectBuilder {
	return s.build().Select("id", "customer_id", "replaces_id", "total").From("orders").Where(where).OrderBy("id")
}

// Orders returns the orders with these keys. ids may be empty.
func (s Squirrel) Orders(ctx context.Context, ids []key.OrderID) ([]Order, error) {
	rows, err := s.orders(squirrel.Eq{"id": ids}).QueryContext(ctx)
	return scan(rows, err, func(o *Order) []any { return []any{&o.ID, &o.CustomerID, &o.ReplacesID, &o.Total} })
}

// Customers returns the customers with these keys. ids may be empty.
func (s Squirrel) Customers(ctx context.Context, ids []key.CustomerID) ([]Customer, error) {
	rows, err := s.build().Select("id", "name").From("customers").Where(squirrel.Eq{"id": ids}).OrderBy("id").QueryContext(ctx)
	return scan(rows, err, func(c *Customer) []any { return []any{&c.ID, &c.Name} })
}

// scan reads all rows of a result.
func scan[T any](rows *sql.Rows, err error, fields func(*T) []any) (list []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.Scan(fields(&row)...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}
