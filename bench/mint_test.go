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

// BenchmarkNext mints in bursts below the cap, in one goroutine.
func BenchmarkNext(b *testing.B) {
	for _, s := range minters {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, 1) })
	}
}

// BenchmarkNextFlatOut mints in a plain loop with the peers that have a cap.
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

// BenchmarkNextParallel mints in bursts below the cap, in GOMAXPROCS
// goroutines: its ns/op are the time a burst takes over the IDs of all.
func BenchmarkNextParallel(b *testing.B) {
	for _, s := range minters {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, runtime.GOMAXPROCS(0)) })
	}
}

// BenchmarkGOMAXPROCS is BenchmarkNextParallel with other numbers of cores, be
// they more than the machine has.
func BenchmarkGOMAXPROCS(b *testing.B) {
	for _, s := range slices.Concat([]subject{clockNow}, formats, []subject{peerXID, peerGoogle}) {
		for _, procs := range []int{1, 2, 8, 32} {
			b.Run(fmt.Sprintf("%s/procs=%d", s.name, procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				bursts(b, s, procs)
			})
		}
	}
}

// BenchmarkNextFirst mints one ID in a unit, as a program does that mints now
// and then: after spinning to the unit's beginning, and after a sleep, which
// leaves the caches and the core cold. Its ns/op are the median, since a mean
// would be one of interrupts. What the measuring takes is the figure of nothing.
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

// BenchmarkFill mints 1000 IDs with a clock that moves on by a unit at each
// reading, so that nothing waits and the clock costs nothing.
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
					b.Fatalf("minted %d: %v", n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ids, "ns/ID")
		})
	}
}
