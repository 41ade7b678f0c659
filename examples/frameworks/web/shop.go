// Package web has recipes for libraries around HTTP: routers, JSON, logs, GraphQL, OpenAPI,
// validation and protocol buffers.
package web

import (
	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// An Order is an order in JSON.
type Order struct {
	ID         key.OrderID    `json:"id"`
	CustomerID key.CustomerID `json:"customer_id"`
	ReplacesID *key.OrderID   `json:"replaces_id,omitempty"`
}

// A Store reads orders.
type Store interface {
	Order(key.OrderID) Order
	// Orders returns the orders of the customer, or of all customers if the ID is zero, that
	// have one of the keys, or all of them if there are none.
	Orders(ids []key.OrderID, customer key.CustomerID) []Order
}
