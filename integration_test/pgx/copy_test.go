package pgx

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// COPY accepts values, pointers, NULL and slices for all column types and domains over
// them, whether or not the connection has the domains registered.
func TestCopy(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		createDomains(t, db)
		known, unknown := db.Conn(t, loaded), db.Conn(t, unloaded)
		for _, r := range rows() {
			t.Run(r.name(), func(t *testing.T) {
				r.copies(t, known, r.columnType())
				r.copies(t, known, domains[r.columnType()])
				if r.columnType() != "char(40)" {
					r.copies(t, unknown, domains[r.columnType()])
				}
			})
		}
	})
}

func (e entry[V]) copies(t *testing.T, conn *pgx.Conn, column string) {
	t.Helper()
	s := e.open(t, conn, column)
	ids := s.two()
	p := &ids[0]
	source := [][]any{
		{0, ids[0], ids}, {1, p, &ids}, {2, &p, []*V{p, nil}}, {3, nil, nil}, {4, (*V)(nil), []V(nil)},
		{5, sqltypes.OptionalOf(ids[1]), []sqltypes.Optional[V]{{ID: ids[1]}, {}}}, {6, sqltypes.Optional[V]{}, []V{}},
	}
	n, err := conn.CopyFrom(t.Context(), pgx.Identifier{s.table}, []string{"n", "id", "ids"}, pgx.CopyFromRows(source))
	if err != nil || n != int64(len(source)) {
		s.Errorf("%s: %d rows, %v", column, n, err)
		return
	}
	type stored struct {
		ID  *V
		IDs []*V
	}
	collects(t, conn, pgx.RowToStructByPos, []stored{
		{p, []*V{&ids[0], &ids[1]}}, {p, []*V{&ids[0], &ids[1]}}, {p, []*V{p, nil}}, {nil, nil}, {nil, nil}, {&ids[1], []*V{&ids[1], nil}}, {nil, []*V{}},
	}, s.sql("select id, ids from {t} order by n"))
}

// COPY allocates per buffer, not per row: at most once per 100 rows. Only the Value of a struct
// that embeds an ID allocates per row. The test doesn't run in parallel, because allocations of other tests would count.
func TestCopyAllocations(t *testing.T) {
	const n = 10_000
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t, loaded)
		for _, r := range rows() {
			most := n / 100.
			if strings.Contains(r.name(), "pgx.") { // a struct of this package
				most += 5 * n
			}
			if allocated := r.copyAllocations(t, conn, n); allocated > most {
				t.Errorf("%s: %.0f allocations for %d rows, want %.0f at most", r.name(), allocated, n, most)
			}
		}
	})
}

func (e entry[V]) copyAllocations(t *testing.T, conn *pgx.Conn, n int) float64 {
	s := e.open(t, conn, e.column)
	// Rows that are allocated once.
	byValue, byPointer := []any{e.ids[1]}, []any{&e.ids[2]}
	return testing.AllocsPerRun(1, func() {
		left := n
		copied, err := conn.CopyFrom(t.Context(), pgx.Identifier{s.table}, []string{"id"}, pgx.CopyFromFunc(func() ([]any, error) {
			left--
			switch {
			case left < 0:
				return nil, nil
			case left%2 == 0:
				return byPointer, nil
			}
			return byValue, nil
		}))
		if err != nil || copied != int64(n) {
			t.Fatalf("%s: %d rows, %v", e.name(), copied, err)
		}
	})
}
