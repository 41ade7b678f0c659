package pgx

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Compare sorts IDs as the column does. So do the text and bytes of formats that
// document it.
func TestOrder(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) { eachType(t, db, suite.order) })
}

func (s suite) order(t *testing.T, conn *pgx.Conn) {
	ctx, r := t.Context(), idtest.Rand(t.Name())
	ids := append([]any{}, s.edges...)
	for range 2000 {
		ids = append(ids, s.random(r))
	}
	// Pairs in adjacent units of time, which differ in few bits.
	for range 1000 {
		at := randomTime(r, s.first, s.last.Add(-s.unit))
		for _, at := range []time.Time{at, at.Add(s.unit)} {
			ids = append(ids, s.idAt(t, at, func(largest int) int { return r.IntN(largest + 1) }))
		}
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })

	_, err := conn.CopyFrom(ctx, pgx.Identifier{s.table()}, []string{"id", "txt", "raw"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) {
			raw, err := s.binary(ids[i])
			return []any{ids[i], fmt.Sprint(ids[i]), raw}, err
		}))
	pgtest.Must(t, err)
	orderBy := func(column string) []any {
		rows, _ := conn.Query(ctx, "select id from "+s.table()+" order by "+column)
		got, err := pgx.CollectRows(rows, s.rowTo)
		pgtest.Must(t, err)
		return got
	}

	want := slices.SortedFunc(slices.Values(ids), s.compare)
	if !slices.Equal(orderBy("id"), want) {
		t.Error("the column and Compare sort differently")
	}
	if same := slices.Equal(orderBy("raw"), want); same != s.bytesOrder {
		t.Errorf("bytes sort as the column does: got %v, want %v", same, s.bytesOrder)
	}
	if same := slices.Equal(orderBy("txt"), want); same != s.textOrders {
		t.Errorf("texts sort as the column does: got %v, want %v", same, s.textOrders)
	}
}

// A query between the bounds of a time window finds exactly the IDs created in it.
func TestRange(t *testing.T) {
	t.Parallel()
	filled.OneReused(t, func(t *testing.T, db *pgtest.DB) { eachType(t, db, suite.ranges) })
}

func (s suite) ranges(t *testing.T, conn *pgx.Conn) {
	if s.window == nil {
		return // IDs that don't sort by time have no ranges
	}
	ctx, r := t.Context(), idtest.Rand(t.Name())

	// The lowest, the highest and a random ID of each unit of time around some
	// instants, but not the last ID of the format, which no upper bound exceeds.
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	instants := []time.Time{s.first.Add(2 * s.unit), start, start.Add(time.Hour), s.last.Add(-2 * s.unit)}
	var rows [][]any
	for _, instant := range instants {
		for n := -2; n <= 2; n++ {
			at := instant.Add(time.Duration(n) * s.unit)
			picks := []func(int) int{
				func(int) int { return 0 },
				func(largest int) int { return largest },
				func(largest int) int { return r.IntN(largest + 1) },
			}
			if at.Equal(s.last) {
				picks = picks[:1]
			}
			for _, pick := range picks {
				rows = append(rows, []any{s.idAt(t, at, pick), at})
			}
		}
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{s.table()}, []string{"id", "at"}, pgx.CopyFromRows(rows))
	pgtest.Must(t, err)

	count := func(from, to time.Time) int {
		lo, hi, err := s.window(from, to)
		if err != nil {
			t.Fatalf("%v to %v: %v", from, to, err)
		}
		return pgtest.Value[int](t, conn, "select count(*) from "+s.table()+" where id >= $1 and id < $2", lo, hi)
	}
	// Bounds at the start and end of units, and outside the format's range.
	bounds := []time.Time{{}, s.first.Add(-time.Hour), s.last.Add(time.Hour)}
	for _, instant := range instants {
		for n := -3; n <= 3; n++ {
			at := instant.Add(time.Duration(n) * s.unit)
			bounds = append(bounds, at, at.Add(s.unit-1))
		}
	}
	for _, from := range bounds {
		for _, to := range bounds {
			if !from.IsZero() && !to.IsZero() && to.Before(from) {
				continue
			}
			want := 0
			for _, row := range rows {
				if s.within(row[1].(time.Time), from, to) {
					want++
				}
			}
			if got := count(from, to); got != want {
				t.Errorf("%v to %v: got %d rows, want %d", from, to, got, want)
			}
		}
	}

	// Adjacent windows together contain each row once.
	for range 20 {
		var cuts []time.Time
		for range 5 {
			cuts = append(cuts, randomTime(r, s.first, s.last), instants[r.IntN(len(instants))].Add(time.Duration(r.IntN(int(s.unit)))))
		}
		slices.SortFunc(cuts, time.Time.Compare)
		cuts = append(append([]time.Time{{}}, cuts...), time.Time{})
		total := 0
		for i := range cuts[1:] {
			total += count(cuts[i], cuts[i+1])
		}
		if total != len(rows) {
			t.Errorf("windows between %v contain %d rows in total, want %d", cuts, total, len(rows))
		}
	}
}

// within reports whether the unit of time that contains at lies in a window. It computes
// the expected result from times alone.
func (s suite) within(at, from, to time.Time) bool {
	unit := func(t time.Time) int64 {
		us, unit := t.UnixMicro()-s.first.UnixMicro(), s.unit.Microseconds()
		return (us - (us%unit+unit)%unit) / unit
	}
	return (from.IsZero() || cmp.Compare(unit(at), unit(from)) >= 0) && (to.IsZero() || unit(at) < unit(to))
}

func (s suite) idAt(t *testing.T, at time.Time, pick func(int) int) any {
	t.Helper()
	id, err := s.at(at, pick)
	pgtest.Must(t, err)
	return id
}

func randomTime(r *rand.Rand, first, last time.Time) time.Time {
	// A time.Duration is too short for the times of a UUID.
	return time.UnixMicro(first.UnixMicro() + r.Int64N(last.UnixMicro()-first.UnixMicro()+1)).UTC()
}
