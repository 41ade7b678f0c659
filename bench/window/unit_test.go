package windowbench

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// TestBetween compares the expected answers with sums over all rows.
func TestBetween(t *testing.T) {
	for _, n := range []orders{1, 7, 999, 3001} {
		for _, c := range []struct{ from, to time.Duration }{
			{0, span}, {0, time.Hour}, {time.Hour, 25 * time.Hour}, {span - time.Hour, span}, {-time.Hour, time.Microsecond},
			{n.step(), 2 * n.step()}, {n.step() + 1, 2*n.step() + 1}, {3 * time.Hour, 3 * time.Hour},
		} {
			from, to := start.Add(c.from), start.Add(c.to)
			var want answer
			for i := range int(n) {
				if at := n.at(i); !at.Before(from) && at.Before(to) {
					want.count++
					want.sum += int64(total(i))
				}
			}
			if got := n.between(from, to); got != want {
				t.Errorf("%d rows, from %v to %v: expected %+v, got %+v", n, c.from, c.to, want, got)
			}
		}
	}
}

// TestSpan checks that the rows cover the span and stay within it.
func TestSpan(t *testing.T) {
	for _, n := range []orders{1, 7, 999, 3_000_000} {
		if got := n.between(start, start.Add(span)).count; got != int64(n) {
			t.Errorf("%d rows: expected all of them within the span, got %d", n, got)
		}
		if last := n.at(int(n) - 1); last.Add(2 * n.step()).Before(start.Add(span)) {
			t.Errorf("%d rows: expected the last row at the end of the span, got %v", n, last)
		}
	}
}

func TestLatest(t *testing.T) {
	for _, n := range []orders{1, 50, 1020, 3001} {
		var want answer
		for i := max(0, int(n)-50); i < int(n); i++ {
			want.count++
			want.sum += int64(total(i))
		}
		if got := n.latest(50); got != want {
			t.Errorf("%d rows: expected %+v, got %+v", n, want, got)
		}
	}
}

// TestKeys checks that the key range of a window contains the window's first key, but
// not the last key before it.
func TestKeys(t *testing.T) {
	for _, k := range kinds {
		next, err := k.minter()
		if err != nil {
			t.Fatal(err)
		}
		for at := start.Add(time.Hour); at.Before(start.Add(4 * time.Hour)); at = at.Add(time.Hour) {
			last, err1 := next(at.Add(-4 * time.Millisecond))
			first, err2 := next(at)
			lo, hi, err3 := k.between(at, at.Add(time.Hour))
			for _, err := range []error{err1, err2, err3} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !less(last, lo) || less(first, lo) || !less(first, hi) {
				t.Errorf("%s: expected %v < %v <= %v < %v", k.name, last, lo, first, hi)
			}
		}
	}
}

// less reports whether a sorts before b in their column.
func less(a, b any) bool {
	switch a := a.(type) {
	case idtype.Snowflake:
		return a < b.(idtype.Snowflake)
	case idtype.Sno:
		return a.Compare(b.(idtype.Sno)) < 0
	default:
		return a.(idtype.UUID).Compare(b.(idtype.UUID)) < 0
	}
}

func TestPages(t *testing.T) {
	got, err := pages([]byte(`[{"Plan": {"Node Type": "Aggregate", "Shared Hit Blocks": 40, "Shared Read Blocks": 2,
		"Plans": [{"Node Type": "Index Scan", "Shared Hit Blocks": 39, "Shared Read Blocks": 2}]},
		"Planning": {"Shared Hit Blocks": 7, "Shared Read Blocks": 1}}]`))
	if err != nil || got != 42 {
		t.Errorf("expected 42, got %v, %v", got, err)
	}
	if got, err := pages([]byte(`[{"Plan": {"Node Type": "Aggregate"}}]`)); err == nil {
		t.Errorf("expected an error for a plan without buffers, got %v", got)
	}
}
