package audit

import (
	"math"
	"testing"
	"time"
)

// Keys compare as the column's values do.
func TestAuditKeyOrder(t *testing.T) {
	numbers := []int64{math.MinInt64, -2, -1, 0, 1, math.MaxInt64}
	for i, n := range numbers {
		if k := bigintKey(n); k.bigint() != n || i > 0 && bigintKey(numbers[i-1]).compare(k) >= 0 {
			t.Errorf("key of %d: got %v", n, k)
		}
	}
	low, high := uuidKey([]byte("2222222222222222")), uuidKey([]byte("22222222222222x2"))
	if low.compare(high) >= 0 || uuidKey([]byte("z222222222222222")).compare(high) <= 0 {
		t.Error("want uuids in the order of their bytes")
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

// The rate counts the rows that a statement returned, which can be more than a batch.
func TestAuditRate(t *testing.T) {
	turn := &limiter{rate: 1000}
	begun := time.Now()
	turn.took(100, begun)
	turn.took(100, begun)
	if err := turn.wait(t.Context()); err != nil || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("waited %v (%v), want 200 ms", time.Since(begun), err)
	}
}
