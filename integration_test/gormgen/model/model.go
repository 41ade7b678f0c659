// Package model has the models that gorm.io/gen makes package query from.
package model

import (
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A Customer has an ID that is stored as a uuid.
type Customer struct {
	ID     idtype.Sno
	Email  string `gorm:"unique"`
	Name   string
	Orders []Order
}

// An Order has one that is stored as a bigint, and IDs of others in all forms.
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

// A Line has a generator of a name.
type Line struct {
	ID      idtype.UID60 `gorm:"idgen:lines"`
	OrderID idtype.Snowflake
	Item    string
}
