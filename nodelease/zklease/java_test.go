package zklease

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A number counts as free since it was first seen free, unless the change counter shows
// a change that wasn't seen.
func TestHistory(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	var h history
	// look notes a view and checks for how long numbers must be held back.
	look := func(what string, ms int, changes int32, names []string, want map[int]int) {
		t.Helper()
		wait := h.note(&view{names: names, stat: &zk.Stat{Cversion: changes}, sent: at(ms), received: at(ms)}, 4)
		for n, want := range want {
			if got := wait[n]; got != time.Duration(want)*time.Millisecond {
				t.Errorf("%s: expected number %d to be held back for %d ms, got %v", what, n, want, got)
			}
		}
	}
	claimed := func(names ...string) []string { return names }
	look("at first", 0, 10, claimed("1", "x"), map[int]int{0: 2000, 1: 0, 2: 2000, 3: 2000})
	look("no change", 500, 10, claimed("1", "x"), map[int]int{0: 1500, 2: 1500})
	look("1 was released", 700, 11, claimed("x"), map[int]int{0: 1300, 1: 2000})
	look("3 was claimed", 900, 13, claimed("x", "3", "y"), map[int]int{0: 1100, 1: 1800, 3: 0})
	look("3 was released", 1000, 14, claimed("x", "y"), map[int]int{0: 1000, 1: 1700, 3: 2000})
	look("no change", 2050, 14, claimed("x", "y"), map[int]int{0: 0, 1: 650, 2: 0, 3: 950})
	look("a claim and a release that weren't seen", 2100, 16, claimed("x", "y"), map[int]int{0: 2000, 1: 2000, 2: 2000, 3: 2000})
	look("more changes than the claim of 0", 2200, 18, claimed("x", "y", "0"), map[int]int{1: 2000, 2: 2000})
	look("no change", 2400, 18, claimed("x", "y", "0"), map[int]int{1: 1800})
	look("an earlier look is noted late", 2450, 15, claimed("x", "y", "0"), map[int]int{1: 2000})
}
