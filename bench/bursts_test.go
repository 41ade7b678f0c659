package bench

import (
	"cmp"
	"runtime"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// bursts measures the time per ID below the format's cap. At the beginning of a
// unit of time the goroutines start together and share a burst. Its time runs from
// the first start to the last end. A burst that takes longer than the unit is
// counted as late and excluded, because a Next may have waited, or the machine was
// busy.
//
// The time includes two clock readings and the synchronization of the goroutines:
// about 50 ns per burst with one goroutine, 300 ns with several, and tens of µs
// when goroutines outnumber the cores and must be woken. In a Snowflake burst of
// 2048 IDs only the last case matters. In a Spread64 burst of 32 IDs they add 2 ns,
// 10 ns, and several times the time of Next to each ID.
func bursts(b *testing.B, s subject, goroutines int) {
	part := s.burst / goroutines
	if part == 0 {
		b.Skipf("a burst of %d IDs is too small for %d goroutines", s.burst, goroutines)
	}
	ids := part * goroutines
	m := s.new(b, idtype.Options{})

	// Spinning goroutines start at the same time. With fewer cores than goroutines,
	// however, a spinning one delays another by a time slice of the operating system,
	// a few ms, even if it yields to Go's scheduler. In that case they block instead.
	spin := goroutines <= runtime.NumCPU()
	begin := make([]chan int, goroutines-1) // number of IDs to generate; closed at the end
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
		b.ReportMetric(0, "ns/op") // replaces the framework's time per iteration
		b.Log("all bursts were late")
		return
	}
	t.report(b)
	b.ReportMetric(float64(figures.Median(each).Nanoseconds())/float64(ids), "median-ns/op")
}

// receive receives from c. It spins or blocks until there is a value.
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

// A tally replaces the framework's figures per iteration with figures per ID.
type tally struct {
	minted int // all IDs
	timed  int // IDs generated during took
	took   time.Duration
	before runtime.MemStats
}

func newTally() *tally {
	t := new(tally)
	runtime.ReadMemStats(&t.before)
	return t
}

// report reports the figures per ID.
func (t *tally) report(b *testing.B) {
	b.Helper()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	b.ReportMetric(float64(t.took.Nanoseconds())/float64(t.timed), "ns/op")
	b.ReportMetric(float64(after.Mallocs-t.before.Mallocs)/float64(t.minted), "allocs/op")
	b.ReportMetric(float64(after.TotalAlloc-t.before.TotalAlloc)/float64(t.minted), "B/op")
}
