package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/sortkey/sortkey/examples/frameworks/key"
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
			c.String(http.StatusBadRequest, err.Error())
			return
		}
		c.JSON(http.StatusOK, s.Order(in.ID))
	})
	r.GET("/orders", func(c *gin.Context) {
		var in struct {
			IDs      []key.OrderID                     `form:"id"`
			Customer sqltypes.Optional[key.CustomerID] `form:"customer"`
		}
		if err := c.ShouldBindQuery(&in); err != nil {
			c.String(http.StatusBadRequest, err.Error())
			return
		}
		c.JSON(http.StatusOK, s.Orders(in.IDs, in.Customer.ID))
	})
	return r
}
