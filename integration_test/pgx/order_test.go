package pgx

import (
	"cmp"
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
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) { eachType(t, db, suite.order) })
}

func (k of[T]) order(t *testing.T, conn *pgx.Conn) {
	ctx, r := t.Context(), idtest.Rand(t.Name())
	ids := append([]T{}, k.Edges...)
	for range 2000 {
		ids = append(ids, k.Random(r))
	}
	// Pairs in adjacent units of time, which differ in few bits.
	for range 1000 {
		at := randomTime(r, k.First, k.Last.Add(-k.Unit))
		for _, at := range []time.Time{at, at.Add(k.Unit)} {
			ids = append(ids, k.at(t, at, func(largest int) int { return r.IntN(largest + 1) }))
		}
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })

	_, err := conn.Exec(ctx, `create temporary table `+k.table()+` (id `+k.Column+`, txt text collate "C", raw bytea)`)
	pgtest.Must(t, err)
	_, err = conn.CopyFrom(ctx, pgx.Identifier{k.table()}, []string{"id", "txt", "raw"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) {
			raw, err := ids[i].MarshalBinary()
			return []any{ids[i], ids[i].String(), raw}, err
		}))
	pgtest.Must(t, err)
	orderBy := func(column string) []T {
		rows, _ := conn.Query(ctx, "select id from "+k.table()+" order by "+column)
		got, err := pgx.CollectRows(rows, pgx.RowTo[T])
		pgtest.Must(t, err)
		return got
	}

	want := slices.SortedFunc(slices.Values(ids), T.Compare)
	if !slices.Equal(orderBy("id"), want) {
		t.Error("the column and Compare sort differently")
	}
	if same := slices.Equal(orderBy("raw"), want); same != k.BytesOrder {
		t.Errorf("bytes sort as the column does: got %v, want %v", same, k.BytesOrder)
	}
	if same := slices.Equal(orderBy("txt"), want); same != k.TextOrders {
		t.Errorf("texts sort as the column does: got %v, want %v", same, k.TextOrders)
	}
}

// A query between the bounds of a time window finds exactly the IDs created in it.
func TestRange(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) { eachType(t, db, suite.ranges) })
}

func (k of[T]) ranges(t *testing.T, conn *pgx.Conn) {
	if k.Layout == nil {
		return // IDs that don't sort by time have no ranges
	}
	ctx, r := t.Context(), idtest.Rand(t.Name())
	_, err := conn.Exec(ctx, "create temporary table "+k.table()+" (id "+k.Column+", at timestamptz)")
	pgtest.Must(t, err)

	// The lowest, the highest and a random ID of each unit of time around some
	// instants, but not the last ID of the format, which no upper bound exceeds.
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	instants := []time.Time{k.First.Add(2 * k.Unit), start, start.Add(time.Hour), k.Last.Add(-2 * k.Unit)}
	var rows [][]any
	for _, instant := range instants {
		for n := -2; n <= 2; n++ {
			at := instant.Add(time.Duration(n) * k.Unit)
			picks := []func(int) int{
				func(int) int { return 0 },
				func(largest int) int { return largest },
				func(largest int) int { return r.IntN(largest + 1) },
			}
			if at.Equal(k.Last) {
				picks = picks[:1]
			}
			for _, pick := range picks {
				rows = append(rows, []any{k.at(t, at, pick), at})
			}
		}
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{k.table()}, []string{"id", "at"}, pgx.CopyFromRows(rows))
	pgtest.Must(t, err)

	count := func(from, to time.Time) int {
		lo, hi, err := k.Layout.Range(from, to)
		if err != nil {
			t.Fatalf("%v to %v: %v", from, to, err)
		}
		return pgtest.Value[int](t, conn, "select count(*) from "+k.table()+" where id >= $1 and id < $2", lo, hi)
	}
	// Bounds at the start and end of units, and outside the format's range.
	bounds := []time.Time{{}, k.First.Add(-time.Hour), k.Last.Add(time.Hour)}
	for _, instant := range instants {
		for n := -3; n <= 3; n++ {
			at := instant.Add(time.Duration(n) * k.Unit)
			bounds = append(bounds, at, at.Add(k.Unit-1))
		}
	}
	for _, from := range bounds {
		for _, to := range bounds {
			if !from.IsZero() && !to.IsZero() && to.Before(from) {
				continue
			}
			want := 0
			for _, row := range rows {
				if k.within(row[1].(time.Time), from, to) {
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
			cuts = append(cuts, randomTime(r, k.First, k.Last), instants[r.IntN(len(instants))].Add(time.Duration(r.IntN(int(k.Unit)))))
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
func (k of[T]) within(at, from, to time.Time) bool {
	unit := func(t time.Time) int64 {
		us, unit := t.UnixMicro()-k.First.UnixMicro(), k.Unit.Microseconds()
		return (us - (us%unit+unit)%unit) / unit
	}
	return (from.IsZero() || cmp.Compare(unit(at), unit(from)) >= 0) && (to.IsZero() || unit(at) < unit(to))
}

func (k of[T]) at(t *testing.T, at time.Time, pick func(int) int) T {
	t.Helper()
	id, err := k.At(at, pick)
	pgtest.Must(t, err)
	return id
}

func randomTime(r *rand.Rand, first, last time.Time) time.Time {
	// A time.Duration is too short for the times of a UUID.
	return time.UnixMicro(first.UnixMicro() + r.Int64N(last.UnixMicro()-first.UnixMicro()+1)).UTC()
}
