package bench

import (
	"fmt"
	"runtime"
	"slices"
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

// BenchmarkNextFlatOut calls the capped peers in a plain loop.
func BenchmarkNextFlatOut(b *testing.B) {
	for _, s := range cappedPeers {
		b.Run(s.name, func(b *testing.B) {
			m := s.new(b, idtype.Options{})
			b.ReportAllocs()
			for b.Loop() {
				if err := m.next(1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNextParallel generates bursts below the cap in GOMAXPROCS goroutines.
// Its ns/op is the time of a burst divided by the IDs of all goroutines.
func BenchmarkNextParallel(b *testing.B) {
	for _, s := range minters {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, runtime.GOMAXPROCS(0)) })
	}
}

// BenchmarkGOMAXPROCS is BenchmarkNextParallel with other values of GOMAXPROCS,
// including values above the number of cores.
func BenchmarkGOMAXPROCS(b *testing.B) {
	for _, s := range slices.Concat([]subject{clockNow}, formats, []subject{peerXID, peerGoogle, peerGofrs, peerTypeID}) {
		for _, procs := range []int{1, 2, 8, 32} {
			b.Run(fmt.Sprintf("%s/procs=%d", s.name, procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				bursts(b, s, procs)
			})
		}
	}
}

// BenchmarkNextFirst generates one ID per unit of time, like a program that needs
// few IDs: after spinning until the unit begins, and after a sleep, with cold
// caches and a cold core. Its ns/op is the median, because interrupts dominate the
// mean. The subject nothing shows the overhead of the measurement.
func BenchmarkNextFirst(b *testing.B) {
	nothing := subject{"nothing", time.Millisecond, 0, 0, func(idtype.Options) (minter, error) {
		return minter{next: func(int) error { return nil }}, nil
	}}
	waits := []struct {
		name string
		wait func(time.Duration)
	}{{"spin", figures.AwaitUnit}, {"sleep", time.Sleep}}
	for _, w := range waits {
		for _, s := range slices.Concat([]subject{nothing}, minters) {
			b.Run(w.name+"/"+s.name, func(b *testing.B) {
				m := s.new(b, idtype.Options{})
				took := make([]time.Duration, 0, 1<<16)
				b.ReportAllocs()
				for b.Loop() {
					w.wait(s.unit)
					start := time.Now()
					err := m.next(1)
					took = append(took, time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(figures.Median(took).Nanoseconds()), "ns/op")
			})
		}
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
