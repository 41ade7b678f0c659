// Package api is a program for swag.
package api

import (
	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

type Order struct {
	ID       key.OrderID                    `swaggertype:"string" example:"ord_779300444248735744"`
	Related  []key.OrderID                  `swaggertype:"array,string"`
	ParentID sqltypes.Optional[key.OrderID] `swaggertype:"string"`
	Number   idtype.Snowflake
	Event    *idtype.Sno
	Events   []idtype.Sno
}

// @Success 200 {object} Order
// @Router /order [get]
func Get() {}
