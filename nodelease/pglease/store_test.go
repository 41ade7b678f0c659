package pglease

import (
	"slices"
	"testing"
	"time"
)

func TestMultirange(t *testing.T) {
	for want, numbers := range map[string][]int{
		"{}": nil, "{[7,7]}": {7}, "{[0,0],[31,31],[65535,65535]}": {65535, 0, 31}, "{[1,4],[6,6]}": {3, 1, 6, 2, 2, 4},
	} {
		if got := multirange(numbers); got != want {
			t.Errorf("%v: want %s, got %s", numbers, want, got)
		}
	}
	numbers := []int{3, 1, 2}
	if multirange(numbers); !slices.Equal(numbers, []int{3, 1, 2}) {
		t.Errorf("want the caller's numbers unchanged, got %v", numbers)
	}
}

// If milliseconds rounded down, a holder would trust its claim too long.
func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		time.Second: 1000, time.Second + 1: 1001, time.Second - 1: 1000, time.Hour: 3_600_000,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%v: expected %d ms, got %d", d, want, got)
		}
	}
}
