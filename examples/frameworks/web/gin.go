package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// Gin serves orders with gin.
func Gin(s Store) http.Handler {
	r := gin.New()
	r.GET("/orders/:id", func(c *gin.Context) {
		var in struct {
			ID key.OrderID `uri:"id"`
		}
		if err := c.ShouldBindUri(&in); err != nil {
			c.String(http.StatusBadRequest, idtype.PublicMessage(err))
			return
		}
		c.JSON(http.StatusOK, s.Order(in.ID))
	})
	r.GET("/orders", GinOrders(s))
	return r
}

// GinOrders handles GET /orders?id=…&id=…&customer=… with gin.
func GinOrders(s Store) gin.HandlerFunc {
	return func(c *gin.Context) {
		var in struct {
			IDs      []key.OrderID                     `form:"id"`
			Customer sqltypes.Optional[key.CustomerID] `form:"customer"` // accepts an empty parameter
		}
		if err := c.ShouldBindQuery(&in); err != nil {
			c.String(http.StatusBadRequest, idtype.PublicMessage(err))
			return
		}
		c.JSON(http.StatusOK, s.Orders(in.IDs, in.Customer.ID))
	}
}
