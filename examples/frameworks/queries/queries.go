// Package queries has a recipe for sqlx, which inserts rows and reads them by a key and by a slice of keys.
package queries

import "github.com/sortkey/sortkey/examples/frameworks/key"

// A Customer is a row of the table customers.
type Customer struct {
	ID   key.CustomerID
	Name string
}

// An Order is a row of the table orders.
type Order struct {
	ID         key.OrderID
	CustomerID key.CustomerID `db:"customer_id"`
	ReplacesID *key.OrderID   `db:"replaces_id"` // nil is NULL
	Total      int64
}

// Schema creates the tables.
const Schema = `
CREATE TABLE customers (id uuid PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
    id bigint PRIMARY KEY,
    customer_id uuid NOT NULL REFERENCES customers,
    replaces_id bigint REFERENCES orders,
    total bigint NOT NULL
);`

// fill sets the keys of new orders.
func fill(keys key.Generators, orders []Order) (err error) {
	for i := range orders {
		if orders[i].ID, err = keys.Orders.Next(); err != nil {
			return err
		}
	}
	return nil
}
