// Package before has the models with keys from sequences.
package before

import "gorm.io/gorm"

// A Customer has the integer key of gorm.Model.
type Customer struct {
	gorm.Model
	Name   string
	Orders []Order
}

// An Order has an integer key of its own.
type Order struct {
	ID         int64
	CustomerID uint
	Total      int64
}
