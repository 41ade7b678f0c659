//go:build unix

package nodelease

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// processes has scenarios of processes that end and stop, while the server is
// there.
var processes = []struct {
	name string
	f    func(*testing.T, *scenario)
}{
	{"full pool", fullPool},
	{"kill", killed},
	{"stop", stopped},
	{"repeats are found", repeatsFound},
	{"clock ahead", clockAhead},
	{"clock behind", clockBehind},
	{"clock set back", clockSetBack},
}

// As many processes as numbers have one each. One more waits, for as long as
// it may, and gets a number when another process gives its back.
func fullPool(t *testing.T, s *scenario) {
	var numbers []int
	for range 4 {
		s.start(t)
	}
	for _, m := range s.minters {
		numbers = append(numbers, m.acquired(t).Number)
	}
	if slices.Sort(numbers); !slices.Equal(numbers, []int{0, 1, 2, 3}) {
		t.Errorf("expected four processes to have the numbers 0 to 3, got %v", numbers)
	}
	hasty := s.start(t, "-wait", "500ms")
	waiting := s.start(t, "-wait", "10m")
	e := hasty.fails(t)
	if !e.Exhausted || !strings.Contains(e.Error, strconv.Quote(s.pool)) || !strings.Contains(e.Error, "4 of 4 held") || e.Took > 500*time.Millisecond+s.ttl/2+late(s.ttl) {
		t.Errorf("expected an error, after half a second, that names the pool and says that all numbers are held, got one after %v: %s", e.Took, e.Error)
	}
	// They hold on to their numbers for longer than a claim that isn't renewed.
	s.minters[0].renews(t, 4)
	for _, m := range s.minters[:4] {
		m.keeps(t)
	}
	if n := waiting.count(journal.Acquired); n > 0 {
		t.Fatal("expected a process to wait while all numbers are held, got one that holds a number")
	}
	given := s.minters[2]
	given.close(t)
	got := waiting.acquired(t)
	if got.Number != given.acquired(t).Number {
		t.Errorf("expected number %d to go to the process that waits, got number %d", given.acquired(t).Number, got.Number)
	}
	waiting.mints(t)
	for _, m := range []*minter{s.minters[0], s.minters[1], s.minters[3], waiting} {
		m.close(t)
		if e := m.told(t, journal.Closed, 1, patience); e.Error != "" {
			t.Errorf("expected process %s to give its number back, got %s", m.name, e.Error)
		}
	}
	c := s.check(t)
	if c.handovers() != 1 {
		t.Errorf("expected one number to change hands, got %d", c.handovers())
	}
	// It was given back, and isn't just over.
	if of := c.with(got.Number); len(of) == 2 && of[1].after != of[0].last {
		t.Errorf("expected the second term to begin after the last ID of the first, %d, got %d", of[0].last, of[1].after)
	}
}

// Processes are killed while they mint. Those who wait get the numbers when the
// claims are over, and begin above the high-water marks.
func killed(t *testing.T, s *scenario) {
	s.format = "snowflake:1"
	a, b := s.start(t), s.start(t)
	a.acquired(t)
	b.acquired(t)
	rounds := pgtest.Scaled(1, 2)
	for range rounds {
		c, d := s.start(t, "-wait", "10m"), s.start(t, "-wait", "10m")
		// They have minted past what was granted first.
		a.renews(t, 3)
		b.renews(t, 3)
		a.mints(t)
		b.mints(t)
		a.kill(t)
		b.kill(t)
		numbers := []int{c.acquired(t).Number, d.acquired(t).Number}
		if slices.Sort(numbers); !slices.Equal(numbers, []int{0, 1}) {
			t.Errorf("expected both numbers to go to who waits, got %v", numbers)
		}
		a, b = c, d
	}
	a.mints(t)
	b.mints(t)
	a.close(t)
	b.close(t)
	c := s.check(t)
	if c.handovers() != 2*rounds {
		t.Errorf("expected %d handovers, got %d", 2*rounds, c.handovers())
	}
	for n := range 2 {
		for i, of := 1, c.with(n); i < len(of); i++ {
			if of[i].after < of[i-1].last || of[i].after == 0 {
				t.Errorf("expected term %d of number %d to begin after a high-water mark past %d, got %d", of[i].term, n, of[i-1].last, of[i].after)
			}
		}
	}
}

// A process is stopped for longer than its claim lasts, and another gets its
// number. When it goes on it mints nothing more; or, if it may claim again, with
// another claim.
func stopped(t *testing.T, s *scenario) {
	s.format = "snowflake:1"
	once, again := s.start(t), s.start(t, "-reacquire")
	first := again.acquired(t)
	once.mints(t)
	again.mints(t)
	once.signal(t, syscall.SIGSTOP)
	again.signal(t, syscall.SIGSTOP)
	others := []*minter{s.start(t, "-wait", "10m"), s.start(t, "-wait", "10m")}
	for _, m := range others {
		m.acquired(t)
		m.mints(t)
	}
	once.signal(t, syscall.SIGCONT)
	again.signal(t, syscall.SIGCONT)
	e := s.lost(t, once, 1)
	if !strings.Contains(e.Error, "term") && !strings.Contains(e.Error, "didn't run meanwhile") && !strings.Contains(e.Error, "within") {
		t.Errorf("expected a loss that says why, got %q", e.Error)
	}
	once.tries(t)
	s.lost(t, again, 1)
	others[0].close(t)
	second := again.told(t, journal.Acquired, 2, patience)
	if second.Number == first.Number && second.Term <= first.Term {
		t.Errorf("expected another claim than term %d of number %d, got term %d of number %d", first.Term, first.Number, second.Term, second.Number)
	}
	again.mints(t)
	again.close(t)
	others[1].close(t)
	c := s.check(t)
	if c.handovers() < 3 {
		t.Errorf("expected 3 handovers, got %d", c.handovers())
	}
}

// A process that doesn't heed the loss of its claim repeats another one's IDs,
// and the checks see that.
func repeatsFound(t *testing.T, s *scenario) {
	s.format = "snowflake:0"
	deaf := s.start(t, "-deaf")
	deaf.mints(t)
	deaf.signal(t, syscall.SIGSTOP)
	other := s.start(t, "-wait", "10m", "-reacquire")
	other.mints(t)
	deaf.signal(t, syscall.SIGCONT)
	deaf.told(t, journal.Tried, 1, patience)
	other.close(t)
	c := s.collect(t)
	for _, kind := range []string{"an ID twice", "terms that overlap", "beyond the high-water mark"} {
		if c.problems[kind] == 0 {
			t.Errorf("expected to find %s of processes whose claim is broken, found %v", kind, c.problems)
		}
	}
	t.Logf("of %d IDs of two processes that mint with one number: %v", len(c.ids), c.problems)
}
