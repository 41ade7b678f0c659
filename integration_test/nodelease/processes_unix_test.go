//go:build unix

package nodelease

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// A process scenario is one in which processes end or stop while the server is up.
type processScenario struct {
	name string
	f    func(testing.TB, *scenario)
}

// processes lists the scenarios in which the store decides when a number is free.
var processes = []processScenario{{"full pool", fullPool}, {"kill", killed}, {"stop", stopped}}

// clocks lists the scenarios that need only high-water marks, which leasetest tests with each
// store, and the scenario that tests the checks.
var clocks = []processScenario{
	{"duplicates are found", repeatsFound},
	{"clock ahead", clockAhead},
	{"clock behind", clockBehind},
	{"clock set back", clockSetBack},
}

// N processes hold N numbers. One more process waits until its time limit, or until
// another process releases its number.
func fullPool(t testing.TB, s *scenario) {
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
	if !e.Exhausted || !strings.Contains(e.Error, strconv.Quote(s.pool)) || !strings.Contains(e.Error, "4 of 4 are held") || e.Took < 500*time.Millisecond {
		t.Errorf("expected ErrPoolExhausted with the pool's name and counts after half a second, got this after %v: %s", e.Took, e.Error)
	}
	// Renewals keep the numbers for longer than a TTL.
	s.minters[0].renews(t, 4)
	for _, m := range s.minters[:4] {
		m.keeps(t)
	}
	if n := waiting.count(journal.Acquired); n > 0 {
		t.Fatal("expected the process to wait while all numbers are held, but it got a number")
	}
	given := s.minters[2]
	given.close(t)
	got := waiting.acquired(t)
	if got.Number != given.acquired(t).Number {
		t.Errorf("expected the waiting process to get number %d, got number %d", given.acquired(t).Number, got.Number)
	}
	waiting.mints(t)
	for _, m := range []*minter{s.minters[0], s.minters[1], s.minters[3], waiting} {
		m.close(t)
		if e := m.told(t, journal.Closed, 1, patience); e.Error != "" {
			t.Errorf("expected process %s to release its number, got %s", m.name, e.Error)
		}
	}
	c := s.check(t)
	if c.handovers() != 1 {
		t.Errorf("expected one number to change hands, got %d", c.handovers())
	}
	// The number was released, and didn't just expire.
	if of := c.with(got.Number); len(of) == 2 && of[1].after != of[0].last {
		t.Errorf("expected the second term to start after %d, the time of the first term's last ID, got %d", of[0].last, of[1].after)
	}
}

// Processes are killed while they create IDs. Waiting processes get their numbers when
// the claims have expired, and start after the high-water marks.
func killed(t testing.TB, s *scenario) {
	s.format = "snowflake:1"
	a, b := s.start(t), s.start(t)
	a.acquired(t)
	b.acquired(t)
	const rounds = 2
	for range rounds {
		c, d := s.start(t, "-wait", "10m"), s.start(t, "-wait", "10m")
		// Wait until IDs lie beyond the first high-water marks.
		a.renews(t, 3)
		b.renews(t, 3)
		a.mints(t)
		b.mints(t)
		a.kill(t)
		b.kill(t)
		numbers := []int{c.acquired(t).Number, d.acquired(t).Number}
		if slices.Sort(numbers); !slices.Equal(numbers, []int{0, 1}) {
			t.Errorf("expected the waiting processes to get numbers 0 and 1, got %v", numbers)
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
				t.Errorf("expected term %d of number %d to start at or after %d, got %d", of[i].term, n, of[i-1].last, of[i].after)
			}
		}
	}
}

// A process is stopped for longer than its claim lasts, and another process gets its
// number. When the first process continues, it creates no more IDs, or with -reacquire
// only IDs of a new claim.
func stopped(t testing.TB, s *scenario) {
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
	if !e.Superseded && !strings.Contains(e.Error, "within") {
		t.Errorf("expected the error to have the reason of the loss, got %q", e.Error)
	}
	once.tries(t)
	s.lost(t, again, 1)
	others[0].close(t)
	second := again.told(t, journal.Acquired, 2, patience)
	if second.Number == first.Number && second.Term <= first.Term {
		t.Errorf("expected a new claim after term %d of number %d, got term %d of number %d", first.Term, first.Number, second.Term, second.Number)
	}
	again.mints(t)
	again.close(t)
	others[1].close(t)
	c := s.check(t)
	if c.handovers() < 3 {
		t.Errorf("expected 3 handovers, got %d", c.handovers())
	}
}

// A process that ignores the loss of its claim duplicates another process's IDs, and the
// checks detect the duplicates.
func repeatsFound(t testing.TB, s *scenario) {
	s.format = "snowflake:0"
	s.repeats = true
	deaf := s.start(t, "-deaf")
	deaf.mints(t)
	deaf.signal(t, syscall.SIGSTOP)
	other := s.start(t, "-wait", "10m", "-reacquire")
	other.mints(t)
	deaf.signal(t, syscall.SIGCONT)
	deaf.told(t, journal.Tried, 1, patience)
	other.close(t)
	c := s.collect(t)
	for _, kind := range []string{"duplicate ID", "overlapping terms", "beyond the high-water mark"} {
		if c.problems[kind] == 0 {
			t.Errorf("expected problems of kind %q, got %v", kind, c.problems)
		}
	}
	t.Logf("%d IDs of two processes with the same number: %v", len(c.ids), c.problems)
}
