package guide

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The functions of docs/paging.md return each row once, also if rows are inserted and deleted
// between two pages.
func TestPaging(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, nil)
		must(t, g.Use(gormplugin.New(gormplugin.For(idtest.Sequence[idtype.Snowflake]()))))
		must(t, g.AutoMigrate(&guide.Order{}))
		orders := make([]guide.Order, 10)
		for i := range orders {
			orders[i].CustomerID = idtest.ID[idtype.SnoOf[guide.Customer]](int64(i + 1))
		}
		must(t, g.Create(&orders).Error)
		pool := db.Pool(t, pgtest.Codec)
		for name, next := range map[string]func(cursor guide.OrderID) (guide.Page, error){
			"after":        func(c guide.OrderID) (guide.Page, error) { return guide.OrdersAfter(t.Context(), g, c, 4) },
			"after in pgx": func(c guide.OrderID) (guide.Page, error) { return guide.OrdersAfterInPgx(t.Context(), pool, c, 4) },
			"before":       func(c guide.OrderID) (guide.Page, error) { return guide.OrdersBefore(t.Context(), g, c, 4) },
		} {
			var got []guide.Order
			var cursor guide.OrderID
			for pages := 0; pages == 0 || !cursor.IsZero(); pages++ {
				page, err := next(cursor)
				must(t, err)
				got, cursor = append(got, page.Orders...), page.Next
				if text, err := json.Marshal(page); err != nil || strings.Contains(string(text), `"next":"ord_`) == cursor.IsZero() {
					t.Errorf("%s: page %d: got the JSON %s, %v", name, pages, text, err)
				}
				if len(page.Orders) > 4 || pages > 2 {
					t.Fatalf("%s: page %d has %d orders", name, pages, len(page.Orders))
				}
			}
			if name == "before" {
				slices.Reverse(got)
			}
			if !slices.Equal(got, orders) {
				t.Errorf("%s: got %v, want %v", name, got, orders)
			}
		}
	})
}
