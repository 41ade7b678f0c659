package audit

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// Keys compare as the column's values do.
func TestAuditKeyOrder(t *testing.T) {
	compare := func(a, b idKey) int { return bytes.Compare(a[:], b[:]) }
	numbers := []int64{math.MinInt64, -2, -1, 0, 1, math.MaxInt64}
	for i, n := range numbers {
		if k := bigintKey(n); k.bigint() != n || i > 0 && compare(bigintKey(numbers[i-1]), k) >= 0 {
			t.Errorf("key of %d: got %v", n, k)
		}
	}
}

// Days before 1970 are days, too.
func TestFloorDay(t *testing.T) {
	for day, at := range map[int64]string{-1: "1969-12-31T23:59:59.999Z", 0: "1970-01-01T00:00:00Z", 20000: "2024-10-04T23:59:59Z"} {
		parsed, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := floorDay(parsed.UnixMilli()); got != day {
			t.Errorf("%s: got day %d, want %d", at, got, day)
		}
	}
}

// Each batch takes the time of its rows.
func TestAuditRate(t *testing.T) {
	begun := time.Now()
	for range 2 {
		if err := pause(t.Context(), 100, 1000); err != nil {
			t.Error(err)
		}
	}
	if waited := time.Since(begun); waited < 200*time.Millisecond {
		t.Errorf("waited %v, want 200 ms", waited)
	}
}
