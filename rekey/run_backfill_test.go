package rekey

import (
	"testing"
	"time"
)

// The lag of a replica is the age of the oldest position that it hasn't reached, also while
// it hangs.
func TestLag(t *testing.T) {
	var l guard
	start := time.Now()
	for _, step := range []struct{ second, position, replayed, want int64 }{
		{0, 100, 100, 0},
		{1, 200, 150, 0},
		{2, 300, 150, 1},
		{9, 400, 150, 8},
		{10, 400, 200, 8}, // 300 was reached in second 2
		{11, 400, 399, 2},
		{12, 400, 400, 0},
		{20, 400, 400, 0},
		{21, 500, 400, 0},
		{25, 500, 400, 4},
	} {
		at := start.Add(time.Duration(step.second) * time.Second)
		if got := l.lag(walPosition{at, step.position}, step.replayed); got != time.Duration(step.want)*time.Second {
			t.Errorf("second %d: expected a lag of %d s, got %v", step.second, step.want, got)
		}
	}
}
