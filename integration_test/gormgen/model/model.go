// Package model has the models from which gorm.io/gen generates package query.
package model

import (
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A Customer has an ID in a uuid column.
type Customer struct {
	ID     idtype.Sno
	Email  string `gorm:"unique"`
	Name   string
	Orders []Order
}

// An Order has an ID in a bigint column, and foreign keys in all forms.
type Order struct {
	ID         idtype.Snowflake
	Number     string `gorm:"unique"`
	State      string
	CustomerID idtype.Sno
	Customer   *Customer
	ReplacesID *idtype.Snowflake
	ParentID   sqltypes.Optional[idtype.Snowflake]
	Code       sqltypes.Text[idtype.Sno]
	Lines      []Line
}

// A Line has a named generator.
type Line struct {
	ID      idtype.UID60 `gorm:"idgen:lines"`
	OrderID idtype.Snowflake
	Item    string
}
