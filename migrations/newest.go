package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/typename"
)

// ErrFuture means that a table has IDs that a generator has yet to issue: its layout differs
// from the one with which they were created, or a clock is wrong. Only CheckNewest returns it.
var ErrFuture = errors.New("ID of the future")

// aheadOfNow is how far the clocks of programs may differ.
const aheadOfNow = time.Minute

// CheckNewest returns [ErrFuture] if the newest ID of a column is more than a minute ahead of
// the clock in a layout. A generator with that layout could create the IDs of existing rows
// again. Call it when a process starts, before it creates IDs, with the layout of its
// generator. It needs no installation: a program whose tables only GORM creates can't call
// [Check].
//
//	err := migrations.CheckNewest(ctx, db, layout, "orders", "id")
//
// The layouts of package idtype implement the interface, except for the layout of Spread64,
// whose IDs don't sort by time. The name of the table may have a schema, as in "shop.orders".
// CheckNewest reads one row, for which the column needs an index. It finds a layout whose
// epoch is later than the IDs'. With an earlier epoch, new IDs are ahead of all existing ones,
// and repeat none.
func CheckNewest[T any](ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, layout interface {
	Time(T) time.Time
	Range(from, to time.Time) (lo, hi T, err error)
}, table, column string) error {
	var newest T
	// Postgres has max(uuid) since version 18. An index isn't read backwards for NULLS LAST.
	query := fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s IS NOT NULL ORDER BY %[1]s DESC LIMIT 1", quoted(column), strings.Join(strings.Split(quoted(table), "."), `"."`))
	switch err := db.QueryRowContext(ctx, query).Scan(&newest); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("migrations: read the newest ID of %s.%s as %s: %w", table, column, typename.Of(reflect.TypeFor[T]()), err)
	}
	now := time.Now()
	if created := layout.Time(newest); created.Sub(now) > aheadOfNow {
		return fmt.Errorf("migrations: check the newest ID of %s.%s: %v was created at %s in this layout, but the clock is at %s; use the layout (epoch and bits) of the existing IDs, or correct the clock: new IDs could repeat existing ones: %w",
			table, column, newest, created.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), ErrFuture)
	}
	return nil
}

// quoted returns a quoted SQL identifier.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
