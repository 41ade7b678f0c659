package guide

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// A Page is a page of orders, the oldest first. Next is the cursor of the next page, and missing on the last one.
type Page struct {
	Orders []Order `json:"orders"`
	Next   OrderID `json:"next,omitzero"`
}

// newPage returns the page of up to size orders. The query asked for one more.
func newPage(orders []Order, size int) (p Page) {
	if p.Orders = orders; len(orders) > size {
		p.Orders, p.Next = orders[:size], orders[size-1].ID
	}
	return p
}

// OrdersAfter returns the page after a cursor. The zero cursor selects the first page.
func OrdersAfter(ctx context.Context, db *gorm.DB, cursor OrderID, size int) (Page, error) {
	var orders []Order
	err := db.WithContext(ctx).Scopes(gormplugin.PageAfter("", cursor)).Limit(size + 1).Find(&orders).Error
	return newPage(orders, size), err
}

// OrdersBefore returns the page before a cursor, the newest order first.
func OrdersBefore(ctx context.Context, db *gorm.DB, cursor OrderID, size int) (Page, error) {
	var orders []Order
	err := db.WithContext(ctx).Scopes(gormplugin.PageBefore("", cursor)).Limit(size + 1).Find(&orders).Error
	return newPage(orders, size), err
}

// OrdersAfterInPgx is OrdersAfter with a pool that has pgxcodec.AfterConnect.
func OrdersAfterInPgx(ctx context.Context, pool *pgxpool.Pool, cursor OrderID, size int) (Page, error) {
	rows, _ := pool.Query(ctx, "SELECT * FROM orders WHERE id > $1 ORDER BY id LIMIT $2", cursor, size+1)
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Order])
	return newPage(orders, size), err
}

// OrdersBeforeInPgx is OrdersBefore with a pool that has pgxcodec.AfterConnect.
func OrdersBeforeInPgx(ctx context.Context, pool *pgxpool.Pool, cursor OrderID, size int) (Page, error) {
	if cursor.IsZero() {
		_, end, err := idtype.DefaultSnowflakeLayout().Range(time.Time{}, time.Time{})
		if err != nil {
			return Page{}, err
		}
		cursor = OrderID(end)
	}
	rows, _ := pool.Query(ctx, "SELECT * FROM orders WHERE id < $1 ORDER BY id DESC LIMIT $2", cursor, size+1)
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Order])
	return newPage(orders, size), err
}

// UploadsBefore returns the uploads with keys of version 7 before a cursor, the newest first.
func UploadsBefore(ctx context.Context, pool *pgxpool.Pool, cursor idtype.UUIDOf[Upload], size int) ([]Upload, error) {
	if cursor.IsZero() {
		// From the last possible key, the query would read all old rows first.
		_, end, err := idtype.UUIDLayout{}.Range(time.Time{}, time.Now().Add(time.Hour))
		if err != nil {
			return nil, err
		}
		cursor = idtype.UUIDOf[Upload](end)
	}
	rows, _ := pool.Query(ctx, "SELECT * FROM uploads WHERE id < $1 AND get_byte(uuid_send(id), 6) >> 4 = 7 ORDER BY id DESC LIMIT $2", cursor, size)
	return pgx.CollectRows(rows, pgx.RowToStructByNameLax[Upload])
}
