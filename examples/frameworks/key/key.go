// Package key declares the keys that the recipes for frameworks share. A program that uses
// one framework can declare them next to its models.
package key

import (
	"fmt"

	"github.com/sortkey/sortkey/idtype"
)

// A CustomerID is a key of the table customers, in a uuid column.
type CustomerID = idtype.SnoOf[Customer]

// An OrderID is a key of the table orders, in a bigint column.
type OrderID = idtype.SnowflakeOf[Order]

// A Customer distinguishes CustomerIDs.
type Customer struct{}

// IDMeta returns the metabyte of all CustomerIDs.
func (Customer) IDMeta() byte { return 'c' }

// An Order distinguishes OrderIDs.
type Order struct{}

// IDPrefix returns the prefix of OrderIDs in text and JSON.
func (Order) IDPrefix() string { return "ord" }

// Generators create the keys.
type Generators struct {
	Customers idtype.Generator[CustomerID]
	Orders    idtype.Generator[OrderID]
}

// NewGenerators returns generators with a node number that no other instance has.
func NewGenerators(node int) (Generators, error) {
	partition := idtype.SnoPartitionFrom(uint16(node))
	customers, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition})
	if err != nil {
		return Generators{}, fmt.Errorf("generator of customers: %w", err)
	}
	orders, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: node})
	if err != nil {
		return Generators{}, fmt.Errorf("generator of orders: %w", err)
	}
	return Generators{idtype.GeneratorOf[idtype.SnoOf[Customer]](customers), idtype.GeneratorOf[idtype.SnowflakeOf[Order]](orders)}, nil
}
