package idtype

import (
	"math"
	"testing"
	"time"
)

// collisionOdds returns the chance that two generators create the same ID if each creates
// n IDs in the same millisecond, after an idle one. n is at most 256, so the IDs fit after
// every start. If two starts differ by d, they share n-d sequence numbers, and each shared
// number collides if the random bits are equal.
func collisionOdds(n int) (p float64) {
	for a := range uid60Starts {
		for b := range uid60Starts {
			shared := max(n-max(a-b, b-a), 0)
			p += 1 - math.Pow(1-1.0/(1<<uid60RandomBits), float64(shared))
		}
	}
	return p / (uid60Starts * uid60Starts)
}

// TestUID60Odds checks the odds in the documentation of UID60Generator by formula and by
// simulation.
func TestUID60Odds(t *testing.T) {
	for n, want := range map[int]float64{1: 1.0 / 131072, 10: 1.0 / 1335, 100: 0.0622, 256: 0.279} {
		if got := collisionOdds(n); math.Abs(got/want-1) > 0.01 {
			t.Errorf("%d IDs each: 1 in %.0f, or %.4f; want %.4f", n, 1/got, got, want)
		}
	}
	if full := 1 - math.Pow(511.0/512, 512); math.Abs(full-0.63) > 0.005 {
		t.Errorf("at the full rate: %.4f", full)
	}

	// A millisecond begins at a random number, unless it directly follows a full one.
	s := uid60Subject(nil)
	g, c := s.scripted(t, 0)
	starts := map[int64]int{}
	for range 200 {
		s.fillUnit(t, g)
		c.step(time.Millisecond)
		if id := Must(g.Next()); id.number != 0 {
			t.Fatalf("the millisecond after a full one begins at %d, want 0", id.number)
		}
		s.fillUnit(t, g)
		c.step(2 * time.Millisecond)
		starts[Must(g.Next()).number]++
	}
	if len(starts) < 80 { // 139 are expected
		t.Errorf("200 milliseconds, each 2 ms after a full one, begin at %d numbers, want at least 80: %v", len(starts), starts)
	}

	c = &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
	a := Must(NewUID60Generator(UID60Config{clock: c.clock()}))
	b := Must(NewUID60Generator(UID60Config{clock: c.clock()}))
	const trials = 8000
	for _, n := range []int{100, 256} {
		collided := 0
		as, bs := make([]UID60, n), make([]UID60, n)
		for range trials {
			c.step(2 * time.Millisecond)
			Must(a.Fill(t.Context(), as))
			Must(b.Fill(t.Context(), bs))
			// Both slices are sorted, so one walk finds a shared ID.
			for i, j := 0, 0; i < n && j < n; {
				if as[i] == bs[j] {
					collided++
					break
				}
				if as[i] < bs[j] {
					i++
				} else {
					j++
				}
			}
		}
		p := collisionOdds(n)
		// Six standard deviations: a false failure once in 500 million runs.
		if spread := 6 * math.Sqrt(p*(1-p)/trials); math.Abs(float64(collided)/trials-p) > spread {
			t.Errorf("%d IDs each: %d of %d trials collided, want about %.0f", n, collided, trials, p*trials)
		}
	}
}
