package bench

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

var capTime = flag.Duration("captime", 5*time.Second, "the duration of each benchmark of BenchmarkAtCap")

// BenchmarkAtCap generates IDs as fast as possible for captime, and reports the
// percentage of the format's cap and the number of cores used. The cap of Sno, 61 ns
// per ID, may exceed the speed of Next. A UUID generator has no cap: its percentage is of the
// rate at which the time of its IDs keeps up with the clock.
func BenchmarkAtCap(b *testing.B) {
	for _, s := range slices.Concat(formats, cappedPeers) {
		for _, goroutines := range []int{1, 8, 200} {
			b.Run(fmt.Sprintf("%s/Next/goroutines=%d", s.name, goroutines), func(b *testing.B) {
				m := s.new(b, idtype.Options{})
				atCap(b, s, goroutines, func() (int, error) {
					if err := m.next(1); err != nil {
						return 0, err
					}
					return 1, nil
				})
			})
		}
	}
	for _, s := range formats {
		b.Run(s.name+"/Fill", func(b *testing.B) {
			m := s.new(b, idtype.Options{})
			atCap(b, s, 1, func() (int, error) { return m.fill(10_000) })
		})
	}
}

// atCap calls mint, which returns a number of IDs, until captime is over. That is
// one iteration. There is a second one only if -benchtime is longer than captime.
func atCap(b *testing.B, s subject, goroutines int, mint func() (int, error)) {
	var minted, failed atomic.Int64
	cpuBefore, hasCPU := figures.CPUTime()
	t := newTally()
	for b.Loop() {
		var stop atomic.Bool
		var all sync.WaitGroup
		start := time.Now()
		time.AfterFunc(*capTime, func() { stop.Store(true) })
		for range goroutines {
			all.Go(func() {
				var ids, errs int
				for !stop.Load() {
					n, err := mint()
					ids += n
					if err != nil {
						errs++
					}
				}
				minted.Add(int64(ids))
				failed.Add(int64(errs))
			})
		}
		all.Wait()
		t.took += time.Since(start)
	}
	t.minted, t.timed = int(minted.Load()), int(minted.Load())
	cpuAfter, _ := figures.CPUTime()
	t.report(b)
	b.ReportMetric(100*float64(t.minted)/(float64(s.limit)*float64(t.took)/float64(s.unit)), "%cap")
	b.ReportMetric(float64(failed.Load()), "errors")
	if hasCPU {
		b.ReportMetric(float64(cpuAfter-cpuBefore)/float64(t.took), "cores")
	}
}
