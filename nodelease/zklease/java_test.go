package zklease

import (
	"testing"
	"time"
)

// A number counts as free since it was first seen free, unless the change counter shows
// a change that wasn't seen.
func TestHistory(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	var h history
	look := func(ms int, changes int32, names ...string) {
		h.note(changes, names, 4, at(ms))
	}
	expect := func(what string, ms int, left map[int]int) {
		t.Helper()
		for n, want := range left {
			if got := h.left(n, at(ms)); got != time.Duration(want)*time.Millisecond {
				t.Errorf("%s: expected number %d to be held back for %d ms, got %v", what, n, want, got)
			}
		}
	}
	look(0, 10, "1", "x")
	expect("at first", 0, map[int]int{0: 2000, 2: 2000, 3: 2000})
	look(500, 10, "1", "x")
	expect("no change", 600, map[int]int{0: 1400, 2: 1400})
	look(700, 11, "x")
	expect("1 was released", 700, map[int]int{0: 1300, 1: 2000})
	look(900, 13, "x", "3", "y")
	look(1000, 14, "x", "y")
	expect("3 was claimed and released", 1000, map[int]int{0: 1000, 1: 1700, 3: 2000})
	look(1100, 14, "x", "y")
	expect("no change", 2000, map[int]int{0: 0, 1: 700, 2: 0, 3: 1000})
	look(2100, 16, "x", "y")
	expect("a claim and a release that weren't seen", 2100, map[int]int{0: 2000, 1: 2000, 2: 2000, 3: 2000})
	look(2200, 18, "x", "y", "0")
	expect("more changes than the claim of 0", 2300, map[int]int{1: 1900, 2: 1900})
	look(2400, 18, "x", "y", "0")
	expect("no change", 2400, map[int]int{1: 1800})
	look(2450, 15, "x", "y", "0")
	expect("an earlier look is noted late", 2450, map[int]int{1: 2000})
}
