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
// per round aren't reported. CPU time is available for long turns only.
//
// Duel collects garbage between rounds. Otherwise the collector tends to
// synchronize with the rounds and runs in the turns of one side only.
type Duel struct {
	Operations int    // per turn
	Unit       string // name of an operation
	CPU        bool   // whether to report the CPU time of the process
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

// Run runs the duel as a benchmark and reports its figures. It returns the
// subject's nanoseconds per operation, for further figures.
func (d Duel) Run(b *testing.B, yardstick, subject Side) (each float64) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	d.turn(b, yardstick) // warm up: plan and parse
	d.turn(b, subject)
	_, garbage := d.allocations(b, yardstick)
	allocs, bytes := d.allocations(b, subject)
	garbage = 2 * float64(d.Operations) * (garbage + bytes) // per round

	idle := d.idle(b)
	used := [2][]float64{make([]float64, len(d.Meters)), make([]float64, len(d.Meters))} // by the yardstick and the subject

	took := make([]time.Duration, 0, 1<<14)
	cpu := make([]time.Duration, 0, 1<<14)
	ratios := make([]float64, 0, 1<<14)
	cpuRatios := make([]float64, 0, 1<<14)
	heap := 0.0
	for b.Loop() {
		if heap += garbage; heap > maxGarbage {
			runtime.GC()
			heap = 0
		}
		var y, s [2]spent
		if rand.IntN(2) == 0 {
			y[0] = d.turn(b, yardstick)
			s[0], s[1] = d.turn(b, subject), d.turn(b, subject)
			y[1] = d.turn(b, yardstick)
		} else {
			s[0] = d.turn(b, subject)
			y[0], y[1] = d.turn(b, yardstick), d.turn(b, yardstick)
			s[1] = d.turn(b, subject)
		}
		took = append(took, s[0].wall, s[1].wall)
		ratios = append(ratios, float64(s[0].wall+s[1].wall)/float64(y[0].wall+y[1].wall))
		if d.CPU && y[0].cpu+y[1].cpu > 0 { // otherwise the system has no CPU time, or only a coarse one
			cpu = append(cpu, s[0].cpu, s[1].cpu)
			cpuRatios = append(cpuRatios, float64(s[0].cpu+s[1].cpu)/float64(y[0].cpu+y[1].cpu))
		}
		for i := range d.Meters {
			used[0][i] += y[0].used[i] + y[1].used[i] - 2*idle[i]
			used[1][i] += s[0].used[i] + s[1].used[i] - 2*idle[i]
		}
	}

	if d.Unit == "op" {
		b.ReportAllocs()
	} else {
		b.ReportMetric(0, "ns/op") // replaces the framework's time per round
	}
	each = d.each(took)
	b.ReportMetric(each, "ns/"+d.Unit)
	b.ReportMetric(Median(ratios), "ratio")
	if len(cpu) > 0 {
		b.ReportMetric(d.each(cpu), "cpu-ns/"+d.Unit)
		b.ReportMetric(Median(cpuRatios), "cpu-ratio")
	}
	for i, m := range d.Meters {
		b.ReportMetric(used[1][i]/float64(len(took)*d.Operations), m.Unit+"/"+d.Unit)
		if m.Ratio != "" {
			b.ReportMetric(used[1][i]/used[0][i], m.Ratio)
		}
	}
	b.ReportMetric(allocs, "allocs/"+d.Unit)
	b.ReportMetric(bytes, "B/"+d.Unit)
	return each
}

// each returns the median of the turns per operation.
func (d Duel) each(turns []time.Duration) float64 {
	return float64(Median(turns).Nanoseconds()) / float64(d.Operations)
}

// maxGarbage is the number of bytes of garbage that triggers a collection.
const maxGarbage = 16 << 20

// spent is the time of a turn, and its use by meter.
type spent struct {
	wall, cpu time.Duration
	used      []float64
}

// idle returns the use of a turn without operations, by meter.
func (d Duel) idle(b *testing.B) []float64 {
	nothing := Side{Run: func() error { return nil }}
	turns := make([][]float64, len(d.Meters))
	for range 21 {
		for i, used := range d.turn(b, nothing).used {
			turns[i] = append(turns[i], used)
		}
	}
	medians := make([]float64, len(d.Meters))
	for i := range turns {
		medians[i] = Median(turns[i])
	}
	return medians
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

func (d Duel) turn(b *testing.B, s Side) spent {
	read := d.readings(b)
	var before, after time.Duration
	if d.CPU {
		before, _ = CPUTime()
	}
	start := time.Now()
	err := s.Run()
	wall := time.Since(start)
	if d.CPU {
		after, _ = CPUTime()
	}
	used := d.readings(b)
	for i := range used {
		used[i] -= read[i]
	}
	if err == nil && s.Reset != nil {
		err = s.Reset()
	}
	if err != nil {
		b.Fatal(err)
	}
	return spent{wall, after - before, used}
}

// allocations returns the allocations of a turn per operation.
func (d Duel) allocations(b *testing.B, s Side) (number, bytes float64) {
	const turns = 3
	for range turns {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Run()
		runtime.ReadMemStats(&after)
		if err == nil && s.Reset != nil {
			err = s.Reset()
		}
		if err != nil {
			b.Fatal(err)
		}
		number += float64(after.Mallocs - before.Mallocs)
		bytes += float64(after.TotalAlloc - before.TotalAlloc)
	}
	all := float64(turns * d.Operations)
	return number / all, bytes / all
}
