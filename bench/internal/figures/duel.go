package figures

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// A Side is one of the two sides of a [Duel].
type Side struct {
	Run   func() error // runs one turn
	Reset func() error // undoes the turn, unmeasured; may be nil
}

// A Duel compares a subject with its baseline, the yardstick, in one run. The two
// sides take short turns of equally many operations. In a round, one side takes the
// first and the last turn and the other the two between, so that a disturbance,
// such as another process or a slower clock rate, affects both. A random side
// starts each round, so that periodic disturbances don't always hit the same side.
//
// ns/op is the median over the subject's turns. ratio is the median over the rounds
// of the subject's two turns divided by the yardstick's. The framework's own figures
// per round aren't reported.
//
// Duel collects garbage between rounds. Otherwise the collector tends to
// synchronize with the rounds and runs in the turns of one side only.
type Duel struct {
	Operations int    // per turn
	Unit       string // name of an operation
	Meters     []Meter
}

// A Meter counts something else that turns use, such as CPU time of the server. [Duel]
// reads it before and after each turn, and subtracts what a reading uses. It reports the
// use per operation over all of the subject's turns.
type Meter struct {
	Unit  string // of the use; Duel adds the operation, as in "wal-B/row"
	Ratio string // unit of the use divided by the yardstick's, or "" to not report it
	Read  func() (float64, error)
}

// ProcessCPU is a meter of the CPU time of this process, for turns of some milliseconds.
var ProcessCPU = Meter{"cpu-ns", "cpu-ratio", func() (float64, error) { return float64(CPUTime()), nil }}

// Run runs the duel as a benchmark and reports its figures. It returns the
// subject's nanoseconds per operation, for further figures.
func (d Duel) Run(b *testing.B, yardstick, subject Side) (each float64) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	sides := [2]Side{yardstick, subject}
	var allocs, bytes, garbage float64 // of the subject, and of both per round
	for _, side := range sides {
		d.turn(b, side) // warm up: plan and parse
		allocs, bytes = d.allocations(b, side)
		garbage += 2 * float64(d.Operations) * bytes
	}
	idle := d.idle(b)

	var used [2][]float64 // by side, per meter
	used[0], used[1] = make([]float64, len(d.Meters)), make([]float64, len(d.Meters))
	took, ratios := make([]time.Duration, 0, 1<<14), make([]float64, 0, 1<<14)
	heap := 0.0
	for b.Loop() {
		if heap += garbage; heap > maxGarbage {
			runtime.GC()
			heap = 0
		}
		var round [2]time.Duration // by side
		outer := rand.IntN(2)
		for _, side := range [4]int{outer, 1 - outer, 1 - outer, outer} {
			wall, use := d.turn(b, sides[side])
			round[side] += wall
			if side == 1 {
				took = append(took, wall)
			}
			for i := range use {
				used[side][i] += use[i] - idle[i]
			}
		}
		ratios = append(ratios, float64(round[1])/float64(round[0]))
	}

	if d.Unit == "op" {
		b.ReportAllocs()
	} else {
		b.ReportMetric(0, "ns/op") // replaces the framework's time per round
	}
	turns := float64(len(took) * d.Operations)
	each = float64(Median(took).Nanoseconds()) / float64(d.Operations)
	b.ReportMetric(each, "ns/"+d.Unit)
	b.ReportMetric(Median(ratios), "ratio")
	for i, m := range d.Meters {
		b.ReportMetric(used[1][i]/turns, m.Unit+"/"+d.Unit)
		if m.Ratio != "" {
			b.ReportMetric(used[1][i]/used[0][i], m.Ratio)
		}
	}
	b.ReportMetric(allocs, "allocs/"+d.Unit)
	b.ReportMetric(bytes, "B/"+d.Unit)
	return each
}

// maxGarbage is the number of bytes of garbage that triggers a collection.
const maxGarbage = 16 << 20

// idle returns the use of a turn without operations, by meter.
func (d Duel) idle(b *testing.B) (medians []float64) {
	turns := make([][]float64, len(d.Meters))
	for range 21 {
		_, used := d.turn(b, Side{Run: func() error { return nil }})
		for i := range used {
			turns[i] = append(turns[i], used[i])
		}
	}
	for i := range turns {
		medians = append(medians, Median(turns[i]))
	}
	return medians
}

// turn runs a turn of a side, and returns its time and its use by meter.
func (d Duel) turn(b *testing.B, s Side) (wall time.Duration, used []float64) {
	read := d.readings(b)
	start := time.Now()
	err := s.Run()
	wall = time.Since(start)
	used = d.readings(b)
	for i := range used {
		used[i] -= read[i]
	}
	s.end(b, err)
	return wall, used
}

// readings returns the readings of the meters.
func (d Duel) readings(b *testing.B) []float64 {
	all := make([]float64, len(d.Meters))
	for i, m := range d.Meters {
		var err error
		if all[i], err = m.Read(); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// allocations returns the allocations of a turn per operation.
func (d Duel) allocations(b *testing.B, s Side) (number, bytes float64) {
	const turns = 3
	for range turns {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Run()
		runtime.ReadMemStats(&after)
		s.end(b, err)
		number += float64(after.Mallocs - before.Mallocs)
		bytes += float64(after.TotalAlloc - before.TotalAlloc)
	}
	all := float64(turns * d.Operations)
	return number / all, bytes / all
}

// end undoes a turn that returned err.
func (s Side) end(b *testing.B, err error) {
	if err == nil && s.Reset != nil {
		err = s.Reset()
	}
	if err != nil {
		b.Fatal(err)
	}
}
