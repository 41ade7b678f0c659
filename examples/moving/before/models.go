// Package before has models whose keys come from sequences.
package before

import "gorm.io/gorm"

// A Customer has a number, which is in gorm.Model.
type Customer struct {
	gorm.Model
	Name   string
	Orders []Order
}

// An Order has a number as well.
type Order struct {
	ID         int64
	CustomerID uint
	Total      int64
}
