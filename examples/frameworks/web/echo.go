package web

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// Echo serves orders with echo.
func Echo(s Store) http.Handler {
	e := echo.New()
	e.GET("/orders/:id", EchoOrder(s))
	e.GET("/orders", func(c *echo.Context) error {
		var in struct {
			IDs      []key.OrderID                     `query:"id"`
			Customer sqltypes.Optional[key.CustomerID] `query:"customer"`
		}
		if err := c.Bind(&in); err != nil {
			return c.String(http.StatusBadRequest, idtype.PublicMessage(err))
		}
		return c.JSON(http.StatusOK, s.Orders(in.IDs, in.Customer.ID))
	})
	return e
}

// EchoOrder handles GET /orders/:id with echo.
func EchoOrder(s Store) echo.HandlerFunc {
	return func(c *echo.Context) error {
		var in struct {
			ID key.OrderID `param:"id"`
		}
		if err := c.Bind(&in); err != nil {
			return c.String(http.StatusBadRequest, idtype.PublicMessage(err))
		}
		return c.JSON(http.StatusOK, s.Order(in.ID))
	}
}
