package queries

import (
	"context"
	"database/sql"

	pg "github.com/go-jet/jet/v2/postgres"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// The tables, as jet's generator writes them.
var (
	customersID   = pg.StringColumn("id")
	customersName = pg.StringColumn("name")
	customers     = pg.NewTable("public", "customers", "", customersID, customersName)

	ordersID         = pg.IntegerColumn("id")
	ordersCustomerID = pg.StringColumn("customer_id")
	ordersReplacesID = pg.IntegerColumn("replaces_id")
	ordersTotal      = pg.IntegerColumn("total")
	orders           = pg.NewTable("public", "orders", "", ordersID, ordersCustomerID, ordersReplacesID, ordersTotal)
	ordersColumns    = pg.ColumnList{ordersID, ordersCustomerID, ordersReplacesID, ordersTotal}
)

// Orders is jet's destination for rows of the table orders, and finds its columns by its name.
type Orders struct {
	ID         key.OrderID `sql:"primary_key"`
	CustomerID key.CustomerID
	ReplacesID *key.OrderID
	Total      int64
}

// Customers is jet's destination for rows of the table customers.
type Customers struct {
	ID   key.CustomerID `sql:"primary_key"`
	Name string
}

// A Jet stores rows with go-jet.
type Jet struct {
	DB   *sql.DB
	Keys key.Generators
}

// AddCustomer sets the customer's key and inserts the customer.
func (s Jet) AddCustomer(ctx context.Context, c *Customer) (err error) {
	if c.ID, err = s.Keys.Customers.Next(); err != nil {
		return err
	}
	_, err = customers.INSERT(customersID, customersName).MODEL(c).ExecContext(ctx, s.DB)
	return err
}

// AddOrders sets the keys of the orders and inserts the orders.
func (s Jet) AddOrders(ctx context.Context, list []Order) error {
	if err := fill(s.Keys, list); err != nil {
		return err
	}
	_, err := orders.INSERT(ordersColumns).MODELS(list).ExecContext(ctx, s.DB)
	return err
}

// Order returns an order.
func (s Jet) Order(ctx context.Context, id key.OrderID) (Order, error) {
	var row Orders
	err := orders.SELECT(ordersColumns).WHERE(ordersID.EQ(pg.Int64(id.Int64()))).QueryContext(ctx, s.DB, &row)
	return Order(row), err
}

// Orders returns the orders with these keys. ids may be empty.
func (s Jet) Orders(ctx context.Context, ids []key.OrderID) (list []Order, err error) {
	if len(ids) == 0 { // jet would write IN (), which is a syntax error
		return nil, nil
	}
	in := make([]pg.Expression, len(ids))
	for i, id := range ids {
		in[i] = pg.Int64(id.Int64())
	}
	var rows []Orders
	err = orders.SELECT(ordersColumns).WHERE(ordersID.IN(in...)).ORDER_BY(ordersID).QueryContext(ctx, s.DB, &rows)
	for _, row := range rows {
		list = append(list, Order(row))
	}
	return list, err
}

// Customers returns the customers with these keys. ids may be empty.
func (s Jet) Customers(ctx context.Context, ids []key.CustomerID) (list []Customer, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	in := make([]pg.Expression, len(ids))
	for i, id := range ids {
		in[i] = pg.UUID(id.UUID()) // not UUID(id), which takes the 16 characters of String
	}
	var rows []Customers
	err = customers.SELECT(customersID, customersName).WHERE(customersID.IN(in...)).ORDER_BY(customersID).QueryContext(ctx, s.DB, &rows)
	for _, row := range rows {
		list = append(list, Customer(row))
	}
	return list, err
}
