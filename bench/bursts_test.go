package bench

import (
	"cmp"
	"runtime"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// bursts measures what an ID costs that doesn't have to wait for the format's
// cap: at the beginning of a unit so many goroutines begin together and share
// a burst, which is timed from the first's start to the last's end. A burst
// that took longer than the unit is left out of the figures, and counted: a
// Next may have waited in it, or the machine had something else to do.
//
// The two readings of the clock and the goroutines' meeting are in the time:
// some 50 ns a burst with one goroutine, 300 ns with several, and tens of µs
// when these outnumber the cores and have to be woken. By the ID that is
// nothing for a Snowflake's burst of 2048, except for the last. For a Spread64's
// of 32 it is 2 ns, 10 ns, and several times what minting takes.
func bursts(b *testing.B, s subject, goroutines int) {
	part := s.burst / goroutines
	if part == 0 {
		b.Skipf("a burst of %d IDs is too small for %d goroutines", s.burst, goroutines)
	}
	ids := part * goroutines
	m := s.new(b, idtype.Options{})

	// Goroutines that spin begin at the same time. But without cores of their
	// own they keep others from beginning for a time slice of the system's, a
	// few ms, and yielding to Go's scheduler doesn't end that; so then they sleep.
	spin := goroutines <= runtime.NumCPU()
	begin := make([]chan int, goroutines-1) // how many to mint; closed: no more
	done := make(chan error, goroutines-1)
	for i := range begin {
		c := make(chan int, 1)
		begin[i] = c
		defer close(c)
		go func() {
			for n := receive(c, spin); n > 0; n = receive(c, spin) {
				done <- m.next(n)
			}
		}()
	}

	each := make([]time.Duration, 0, 1<<14)
	late := 0
	t := newTally()
	for b.Loop() {
		figures.AwaitUnit(s.unit)
		start := time.Now()
		for _, c := range begin {
			c <- part
		}
		err := m.next(part)
		for range begin {
			err = cmp.Or(err, receive(done, spin))
		}
		took := time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		t.minted += ids
		if took > s.unit {
			late++
			continue
		}
		t.timed += ids
		t.took += took
		each = append(each, took)
	}
	b.ReportMetric(100*float64(late)/float64(b.N), "late-%")
	if t.timed == 0 {
		b.ReportMetric(0, "ns/op") // which the framework would report of the iteration
		b.Log("no burst was in time")
		return
	}
	t.report(b)
	b.ReportMetric(float64(figures.Median(each).Nanoseconds())/float64(ids), "median-ns/op")
}

// receive is <-c, which may spin.
func receive[T any](c <-chan T, spin bool) T {
	for spin {
		select {
		case v := <-c:
			return v
		default:
		}
	}
	return <-c
}

// A tally turns the framework's figures, which are by the iteration, into
// figures by the ID.
type tally struct {
	minted int // all IDs
	timed  int // those that were minted in the time took
	took   time.Duration
	before runtime.MemStats
}

func newTally() *tally {
	t := new(tally)
	runtime.ReadMemStats(&t.before)
	return t
}

// report takes the place of the framework's report.
func (t *tally) report(b *testing.B) {
	b.Helper()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	b.ReportMetric(float64(t.took.Nanoseconds())/float64(t.timed), "ns/op")
	b.ReportMetric(float64(after.Mallocs-t.before.Mallocs)/float64(t.minted), "allocs/op")
	b.ReportMetric(float64(after.TotalAlloc-t.before.TotalAlloc)/float64(t.minted), "B/op")
}
