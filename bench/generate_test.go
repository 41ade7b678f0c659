package bench

import (
	"flag"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// BenchmarkNext generates bursts below the cap in one goroutine.
func BenchmarkNext(b *testing.B) {
	for _, s := range minters {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, 1) })
	}
}

// BenchmarkNextParallel generates bursts below the cap in GOMAXPROCS goroutines.
// Its ns/op is the time of a burst divided by the IDs of all goroutines.
func BenchmarkNextParallel(b *testing.B) {
	for _, s := range minters {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, runtime.GOMAXPROCS(0)) })
	}
}

// BenchmarkFill generates 1000 IDs with a clock that advances by a unit at each
// reading, so that Fill never waits and the clock costs nothing.
func BenchmarkFill(b *testing.B) {
	const ids = 1000
	for _, s := range formats {
		b.Run(s.name, func(b *testing.B) {
			now := time.Now()
			m := s.new(b, idtype.Options{Clock: func() time.Time {
				now = now.Add(s.unit)
				return now
			}})
			b.ReportAllocs()
			for b.Loop() {
				if n, err := m.fill(ids); err != nil {
					b.Fatalf("Fill returned %d, %v", n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ids, "ns/ID")
		})
	}
}

var capTime = flag.Duration("captime", 5*time.Second, "the duration of each benchmark of BenchmarkAtCap")

// BenchmarkAtCap generates IDs as fast as possible for captime, with Next in 8 goroutines
// or with Fill in one, and reports the percentage of the format's cap and the number of
// cores used. The cap of Sno, 61 ns per ID, may exceed the speed of Next. A UUID generator
// has no cap: its percentage is of the rate at which the time of its IDs keeps up with the
// clock.
func BenchmarkAtCap(b *testing.B) {
	for _, s := range slices.Concat(formats, cappedPeers) {
		b.Run(s.name+"/Next/goroutines=8", func(b *testing.B) {
			m := s.new(b, idtype.Options{MaxWait: time.Minute})
			atCap(b, s, 8, func() (int, error) { return 1, m.next(1) })
		})
	}
	for _, s := range formats {
		b.Run(s.name+"/Fill", func(b *testing.B) {
			m := s.new(b, idtype.Options{MaxWait: time.Minute})
			atCap(b, s, 1, func() (int, error) { return m.fill(10_000) })
		})
	}
}

// atCap calls mint, which returns a number of IDs, until captime is over. That is
// one iteration. There is a second one only if -benchtime is longer than captime.
func atCap(b *testing.B, s subject, goroutines int, mint func() (int, error)) {
	var minted atomic.Int64
	cpuBefore := figures.CPUTime()
	t := newTally()
	for b.Loop() {
		var stop atomic.Bool
		var all sync.WaitGroup
		start := time.Now()
		time.AfterFunc(*capTime, func() { stop.Store(true) })
		for range goroutines {
			all.Go(func() {
				ids := 0
				for !stop.Load() {
					n, err := mint()
					if err != nil {
						b.Error(err)
						return
					}
					ids += n
				}
				minted.Add(int64(ids))
			})
		}
		all.Wait()
		t.took += time.Since(start)
	}
	t.minted, t.timed = int(minted.Load()), int(minted.Load())
	cpu := figures.CPUTime() - cpuBefore
	t.report(b)
	b.ReportMetric(100*float64(t.minted)/(float64(s.limit)*float64(t.took)/float64(s.unit)), "%cap")
	b.ReportMetric(float64(cpu)/float64(t.took), "cores")
}
