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
			"before in pgx": func(c guide.OrderID) (guide.Page, error) {
				return guide.OrdersBeforeInPgx(t.Context(), pool, c, 4)
			},
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
			if strings.HasPrefix(name, "before") {
				slices.Reverse(got)
			}
			if !slices.Equal(got, orders) {
				t.Errorf("%s: got %v, want %v", name, got, orders)
			}
		}
	})
}

// A table that also has keys of version 4 returns the others in order, and no old ones.
func TestPagingOldUUIDs(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE uploads (id uuid PRIMARY KEY); INSERT INTO uploads SELECT gen_random_uuid() FROM generate_series(1, 5000); ANALYZE uploads")
		pool := db.Pool(t, pgtest.Codec)
		gen, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
		must(t, err)
		want := make([]guide.Upload, 10)
		for i := range want {
			want[i], err = guide.NewUpload(gen, "")
			must(t, err)
			_, err = pool.Exec(t.Context(), "INSERT INTO uploads VALUES ($1)", want[i].ID)
			must(t, err)
		}
		slices.Reverse(want)
		var got []guide.Upload
		var cursor idtype.UUIDOf[guide.Upload]
		for {
			page, err := guide.UploadsBefore(t.Context(), pool, cursor, 5)
			must(t, err)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			cursor = page[len(page)-1].ID
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}

		// The cast to a domain, which sqlc needs, finds old keys, too.
		db.Exec(t, "CREATE DOMAIN upload_id AS uuid")
		var old idtype.UUIDOf[guide.Upload]
		var n int
		must(t, pool.QueryRow(t.Context(), "SELECT id FROM uploads ORDER BY id LIMIT 1").Scan(&old))
		must(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM uploads WHERE id = ANY($1::upload_id[])", []idtype.UUIDOf[guide.Upload]{old, want[0].ID}).Scan(&n))
		if n != 2 {
			t.Errorf("got %d of an old and a new row", n)
		}
	})
}
