package pgx

import (
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// COPY accepts values, pointers, NULL and slices for all column types and domains over
// them, whether or not the connection has the domains registered.
func TestCopy(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		known, unknown := db.Conn(t, loaded), db.Conn(t, unloaded)
		for _, r := range rows() {
			t.Run(r.name(), func(t *testing.T) {
				r.copies(t, known, r.column)
				r.copies(t, known, domains[r.column])
				if r.column != "char(40)" {
					r.copies(t, unknown, domains[r.column])
				}
			})
		}
	})
}

func (r row) copies(t *testing.T, conn *pgx.Conn, column string) {
	t.Helper()
	s := r.open(t, conn, column)
	a, b := s.two()[0], s.two()[1]
	p, both, noSlice := ptr(a), r.slice(a, b), zero(reflect.SliceOf(r.id))
	optionals := reflect.SliceOf(r.optional)
	source := [][]any{
		{0, a, both}, {1, p, ptr(both)}, {2, ptr(p), r.pointers(p, nil)}, {3, nil, nil}, {4, zero(reflect.PointerTo(r.id)), noSlice},
		{5, fill(r.optional, b), fill(optionals, fill(r.optional, b), nil)}, {6, zero(r.optional), r.slice()},
	}
	n, err := conn.CopyFrom(t.Context(), pgx.Identifier{s.table}, []string{"n", "id", "ids"}, pgx.CopyFromRows(source))
	if err != nil || n != int64(len(source)) {
		s.Errorf("%s: %d rows, %v", column, n, err)
		return
	}
	stored := reflect.StructOf([]reflect.StructField{{Name: "ID", Type: reflect.PointerTo(r.id)}, {Name: "IDs", Type: reflect.SliceOf(reflect.PointerTo(r.id))}})
	pointers := r.pointers(p, ptr(b))
	want := []any{
		fill(stored, p, pointers), fill(stored, p, pointers), fill(stored, p, r.pointers(p, nil)), zero(stored), zero(stored), fill(stored, ptr(b), r.pointers(ptr(b), nil)), fill(stored, nil, r.pointers()),
	}
	toStruct := func(row pgx.CollectableRow) (any, error) {
		dst := reflect.New(stored)
		err := row.Scan(dst.Elem().Field(0).Addr().Interface(), dst.Elem().Field(1).Addr().Interface())
		return dst.Elem().Interface(), err
	}
	collects(t, conn, toStruct, want, s.sql("select id, ids from {t} order by n"))
}

// COPY of the types of bigint and uuid columns allocates per buffer, not per row: at most once per
// 100 rows. Other types, and structs that embed an ID, allocate in Value. The test doesn't run in parallel, because allocations of other tests would count.
func TestCopyAllocations(t *testing.T) {
	const n = 10_000
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t, loaded)
		for _, r := range rows() {
			most := n / 100.
			switch column, _, _ := strings.Cut(r.column, "("); {
			case strings.Contains(r.name(), "pgx."): // a struct of this package
				most += 20 * n
			case column != "bigint" && column != "uuid":
				most += 10 * n
			}
			if allocated := r.copyAllocations(t, conn, n); allocated > most {
				t.Errorf("%s: %.0f allocations for %d rows, want %.0f at most", r.name(), allocated, n, most)
			}
		}
	})
}

func (r row) copyAllocations(t *testing.T, conn *pgx.Conn, n int) float64 {
	s := r.open(t, conn, r.column)
	// Rows that are allocated once.
	byValue, byPointer := []any{r.ids[1]}, []any{ptr(r.ids[2])}
	allocated := testing.AllocsPerRun(1, func() {
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
			t.Fatalf("%s: %d rows, %v", r.name(), copied, err)
		}
	})
	s.exec("truncate {t}")
	return allocated
}
