package figures

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// A Side is one of the two that a [Duel] compares.
type Side struct {
	Run   func() error // one turn
	Reset func() error // undoes it, and isn't measured; may be nil
}

// A Duel compares a subject with its yardstick in one run. The two take short
// turns, each of so many operations, in rounds: one, the other twice, the one
// again. What disturbs one of them, be it another process or a slower clock of
// the core, disturbs the other at the same moment. Who begins is left to chance,
// so that nothing that recurs meets the same one every time.
//
// ns/op is the median of the subject's turns, and ratio that of the subject's two
// turns divided by the yardstick's two of the same round. The framework's own
// figures, which are by the round, aren't reported. CPU time can be had of long
// turns only.
//
// Garbage is collected between rounds: left to itself it falls into step with
// them, and is found in the turns of one side.
type Duel struct {
	Operations int    // in a turn
	Unit       string // what one of them is called
	CPU        bool   // whether to report CPU time, of the process
}

// Run runs the duel as a benchmark, and reports its figures. It gives the
// nanoseconds of the subject's operation, for what else is to be reported.
func (d Duel) Run(b *testing.B, yardstick, subject Side) (each float64) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	d.turn(b, yardstick) // whatever is planned or parsed at first
	d.turn(b, subject)
	_, garbage := d.allocations(b, yardstick)
	allocs, bytes := d.allocations(b, subject)
	garbage = 2 * float64(d.Operations) * (garbage + bytes) // of a round

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
		if d.CPU && y[0].cpu+y[1].cpu > 0 { // else the system doesn't say, or not so finely
			cpu = append(cpu, s[0].cpu, s[1].cpu)
			cpuRatios = append(cpuRatios, float64(s[0].cpu+s[1].cpu)/float64(y[0].cpu+y[1].cpu))
		}
	}

	if d.Unit == "op" {
		b.ReportAllocs()
	} else {
		b.ReportMetric(0, "ns/op") // which the framework would report of the round
	}
	each = d.each(took)
	b.ReportMetric(each, "ns/"+d.Unit)
	b.ReportMetric(Median(ratios), "ratio")
	if len(cpu) > 0 {
		b.ReportMetric(d.each(cpu), "cpu-ns/"+d.Unit)
		b.ReportMetric(Median(cpuRatios), "cpu-ratio")
	}
	b.ReportMetric(allocs, "allocs/"+d.Unit)
	b.ReportMetric(bytes, "B/"+d.Unit)
	return each
}

// each is the median of turns, by the operation.
func (d Duel) each(turns []time.Duration) float64 {
	return float64(Median(turns).Nanoseconds()) / float64(d.Operations)
}

// maxGarbage is how many bytes of garbage are left for the next round.
const maxGarbage = 16 << 20

// spent is what a turn took.
type spent struct{ wall, cpu time.Duration }

func (d Duel) turn(b *testing.B, s Side) spent {
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
	if err == nil && s.Reset != nil {
		err = s.Reset()
	}
	if err != nil {
		b.Fatal(err)
	}
	return spent{wall, after - before}
}

// allocations counts those of a turn, by the operation.
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
