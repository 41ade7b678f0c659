package idtype

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/internal/race"
)

// uniqueCount is the number of IDs that TestUnique creates per format. The environment
// variable uniqueVariable overrides it, as in make soak.
const (
	uniqueCount    = 5_000_000
	uniqueVariable = "SORTKEY_UNIQUE"
)

// minters is the number of concurrent goroutines, and of processors, that create IDs.
const minters = 8

// A tally holds the IDs of one goroutine, for both values of the tick-tock bit.
type tally [2][]uint64

// add adds a pair, and reports whether it is greater than the previous one.
func (y *tally) add(p pair) bool {
	keys := &y[0]
	if p.tick {
		keys = &y[1]
	}
	key := uint64(p.unit)<<16 | uint64(p.number)
	*keys = append(*keys, key)
	n := len(*keys)
	return n < 2 || (*keys)[n-2] < key
}

// A ledger counts keys and finds duplicates, round by round. A generator's keys increase,
// over all goroutines and for each value of the tick-tock bit: SnoGenerator returns to a bit
// only in a unit after the last one of this bit. So each key of a round must be greater than
// all keys of the rounds before, and only the keys of one round are in memory.
type ledger struct {
	count   int
	last    [2]uint64 // the greatest key, for both values of the tick-tock bit
	began   [2]bool
	repeats []string // duplicates, and keys less than one of an earlier round
}

// add adds a round. It merges the tallies, which are sorted.
func (l *ledger) add(tallies []tally) {
	for tick := range 2 {
		var lists [][]uint64
		for _, y := range tallies {
			lists = append(lists, y[tick])
			l.count += len(y[tick])
		}
		for ; ; l.began[tick] = true {
			least := -1
			for i, keys := range lists {
				if len(keys) > 0 && (least < 0 || keys[0] < lists[least][0]) {
					least = i
				}
			}
			if least < 0 {
				break
			}
			key := lists[least][0]
			if l.began[tick] && key <= l.last[tick] && len(l.repeats) < 10 {
				l.repeats = append(l.repeats, fmt.Sprint(pair{int64(key >> 16), tick == 1, int64(key & (1<<16 - 1))}))
			}
			l.last[tick], lists[least] = max(l.last[tick], key), lists[least][1:]
		}
	}
}

// TestLedger tests that the ledger finds duplicates within a round and across rounds.
func TestLedger(t *testing.T) {
	var l ledger
	for i, c := range []struct {
		round   []tally
		repeats int
	}{
		{[]tally{{{0, 3}, {3}}, {{1, 2}}}, 0},
		{[]tally{{{7}}, {{4, 5, 7}}}, 1}, // within the round
		{[]tally{{{8}, {4}}, {{9}}}, 1},
		{[]tally{{{9, 10}}}, 2},      // of the round before
		{[]tally{{{11}}, {{5}}}, 3},  // of an earlier round
		{[]tally{{{12}, {4, 5}}}, 4}, // with the other tick-tock bit
	} {
		if l.add(c.round); len(l.repeats) != c.repeats {
			t.Errorf("after round %d: duplicates %v, want %d", i, l.repeats, c.repeats)
		}
	}
	if l.count != 19 {
		t.Errorf("counted %d keys, want 19", l.count)
	}
}

// mintFor creates IDs for some time; see mint.
func (s subject) mintFor(t *testing.T, o Options, d time.Duration) GeneratorStats {
	t.Helper()
	start := time.Now()
	o.MaxWait = time.Hour // the clock of a busy machine may stand for long
	return s.mint(t, s.new(t, o), func(int) bool { return time.Since(start) < d })
}

// roundSize is the number of IDs of a round, after which mint checks them.
const roundSize = 10_000_000

// mint calls Next and Fill in several goroutines. Each goroutine continues as long as more
// returns true for the number of IDs it has requested. mint checks that there are no
// duplicates and no errors except the tolerated ones, that each goroutine's IDs increase,
// and that Stats counts them all.
func (s subject) mint(t *testing.T, g source, more func(asked int) bool, tolerated ...error) GeneratorStats {
	t.Helper()
	var book ledger
	tallies := make([]tally, minters)
	asked := make([]int, minters)
	for round := uint64(0); !t.Failed() && slices.ContainsFunc(asked, more); round++ {
		var wg sync.WaitGroup
		for w := range tallies {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), round))
				mine, total := tally{tallies[w][0][:0], tallies[w][1][:0]}, asked[w]
				end := total + roundSize/minters
				defer func() { tallies[w], asked[w] = mine, total }()
				block := make([]record, min(200, 3*s.capacity()))
				for total < end && more(total) {
					ids := block[:1+r.IntN(len(block))]
					total += len(ids)
					n, err := 0, error(nil)
					if r.IntN(2) == 0 {
						n, err = g.Fill(t.Context(), ids)
					} else {
						for n < len(ids) && err == nil {
							if ids[n], err = g.Next(); err == nil {
								n++
							}
						}
					}
					if err != nil && !slices.Contains(tolerated, sentinel(err)) || err == nil && n < len(ids) {
						t.Errorf("%d of %d IDs, %v", n, len(ids), err)
						return
					}
					for _, id := range ids[:n] {
						if p := id.pair; !mine.add(p) {
							t.Errorf("a goroutine got %v after a greater pair", p)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		book.add(tallies)
		if len(book.repeats) > 0 {
			t.Errorf("round %d: pairs that repeat, or are less than a pair of an earlier round: %v", round, book.repeats)
		}
	}
	stats := stats(g)
	if !t.Failed() && stats.Minted != uint64(book.count) {
		t.Errorf("Stats().Minted = %d, want %d", stats.Minted, book.count)
	}
	return stats
}

// second returns the maximum number of IDs per second.
func (p plan) second() float64 { return float64(p.capacity()) / p.step.Seconds() }

var uniqueStart = utc("2026-11-21T10:11:12.344Z")

// runningClock returns a clock that runs at a multiple of real time. Its wall clock is off
// by the result of off.
func runningClock(factor float64, anchored bool, off func(time.Duration) time.Duration) *clock {
	start := time.Now()
	ticks := func() time.Duration { return time.Duration(float64(time.Since(start)) * factor) }
	return &clock{
		anchored:  anchored,
		monotonic: ticks,
		wall: func() time.Time {
			now := ticks()
			if off != nil {
				now += off(now)
			}
			return uniqueStart.Add(now)
		},
		sleep: func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
			for end := ticks() + d; ticks() < end && ctx.Err() == nil; runtime.Gosched() {
				select {
				case <-wake:
					return
				default:
				}
			}
		},
	}
}

// countingClock returns a clock that advances by a step with each reading.
func countingClock(step time.Duration, anchored bool) *clock {
	var now atomic.Int64
	ticks := func() time.Duration { return time.Duration(now.Add(int64(step))) }
	return &clock{
		anchored:  anchored,
		monotonic: ticks,
		wall:      func() time.Time { return uniqueStart.Add(ticks()) },
		sleep:     func(_ context.Context, d time.Duration, _ <-chan struct{}) { now.Add(int64(d)) },
	}
}

// TestUnique creates IDs on running clocks, at rates below, at and above the maximum rate
// of the format.
func TestUnique(t *testing.T) {
	old := runtime.GOMAXPROCS(minters)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) }) // after the parallel subtests
	each(t, append(formats[:4:4], snoSubject(SnoPartition{0xA5, 0x5A}, 0, 65535), uuidSubject()), subject.testUnique)
}

func (s subject) testUnique(t *testing.T) {
	n := uniqueCount
	if v, err := strconv.Atoi(os.Getenv(uniqueVariable)); err == nil {
		n = v
	} else if race.Enabled || testing.Short() {
		n /= scaled(20, 5)
	}
	mint := func(t *testing.T, o Options, n int) {
		t.Parallel()          // some clocks make their callers sleep most of the time
		o.MaxWait = time.Hour // the clock of a busy machine may stand for long
		s.mint(t, s.new(t, o), func(asked int) bool { return asked < n/minters })
	}
	variants := map[string]Options{}
	for i, load := range []string{"below", "at", "past"} {
		// Two processors create about 20 million IDs per second. The clocks have room for
		// 20 times this rate, for this rate, and for a tenth of it.
		factor := []float64{400e6, 20e6, 2e6}[i] / s.second()
		// One reading of the clock yields about 3 IDs.
		step := time.Duration([]float64{30, 3, 0.3}[i] * float64(s.step) / float64(s.capacity()))
		variants[load+", own clock"] = Options{Clock: runningClock(factor, false, nil).wall}
		variants[load+", running"] = Options{clock: runningClock(factor, false, nil)}
		variants[load+", running, anchored"] = Options{clock: runningClock(factor, true, nil)}
		variants[load+", counting"] = Options{clock: countingClock(step, false)}
		variants[load+", counting, anchored"] = Options{clock: countingClock(step, true)}
	}
	// Other goroutines run between a reading and its use, and units are short.
	late := countingClock(s.step/4, true)
	ticks := late.monotonic
	late.monotonic = func() time.Duration { defer runtime.Gosched(); return ticks() }
	t.Run("late", func(t *testing.T) { mint(t, Options{clock: late}, n/4) })
	for name, o := range variants {
		t.Run(name, func(t *testing.T) { mint(t, o, n*3/4/len(variants)) })
	}
}

// TestUniqueOnSteppingWall uses a wall clock that steps back and forth all the time.
func TestUniqueOnSteppingWall(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minters))
	each(t, append(formats[:len(formats):len(formats)], uuidSubject()), subject.testSteppingWall)
}

func (s subject) testSteppingWall(t *testing.T) {
	off := func(now time.Duration) time.Duration { // a different offset for each 40 units
		r := rand.NewPCG(uint64(now/(40*s.step)), 0)
		return -time.Duration(r.Uint64() % uint64(30*s.step))
	}
	for _, anchored := range []bool{false, true} {
		t.Run(fmt.Sprint("anchored=", anchored), func(t *testing.T) {
			await(t, "a step back", func() bool { // a busy machine may miss the steps
				o := Options{clock: runningClock(max(4e6/s.second(), 10), anchored, off)}
				stats := s.mintFor(t, o, scaled[time.Duration](25, 300)*time.Millisecond)
				return t.Failed() || stats.ClockRegressions > 0 && (!s.toggles || stats.TickTocks > 0)
			})
		})
	}
}

// TestUniqueOnJumpingWall tests that time, tick-tock bit and number change together. In
// the reference implementation of Sno they change one after another, so it creates
// duplicates if several goroutines use all its numbers. In this test, each reading of the
// wall clock jumps to units that were used before, while other calls take numbers of the
// current unit.
func TestUniqueOnJumpingWall(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minters))
	for _, anchored := range []bool{false, true} {
		unit, reading := 0, 0
		c := systemClock(func() time.Time {
			unit += []int{2, 1, -1}[reading%3]
			reading++
			return snoTime(unit)
		})
		c.anchored = anchored
		s := snoSubject(SnoPartition{0xA5, 0x5A}, 0, 63)
		g := s.new(t, Options{MaxWait: -1, clock: &c})
		toggles := scaled(2000, 10_000)
		more := func(asked int) bool {
			// There are up to 170 IDs per toggle, in all goroutines together.
			return asked < 500*toggles && stats(g).TickTocks < uint64(toggles)
		}
		if got := s.mint(t, g, more, ErrSequenceExhausted, ErrClockBackwards); got.TickTocks < uint64(toggles) {
			t.Errorf("expected %d toggles, got %d", toggles, got.TickTocks)
		}
	}
}

// TestUniqueOnRealClock creates IDs of all formats concurrently, for some seconds, at their
// maximum rates.
func TestUniqueOnRealClock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minters))
	var wg sync.WaitGroup
	d := scaled(time.Second/4, 5*time.Second)
	for _, o := range []Options{{}, {Clock: time.Now}} {
		wg.Go(func() { snowflakeSubject(SnowflakeLayout{}, 21, 10).mintFor(t, o, d) })
		wg.Go(func() { siSubject(5, 8, 21).mintFor(t, o, d) })
		wg.Go(func() { uid60Subject(nil).mintFor(t, o, d) })
		wg.Go(func() { spreadSubject(42, 9).mintFor(t, o, d) })
		wg.Go(func() { uuidSubject().mintFor(t, o, d) })
		// With all 65,536 numbers, two processors could not reach a Sno's maximum rate.
		wg.Go(func() { snoSubject(SnoPartition{0xA5, 0x5A}, 0, 999).mintFor(t, o, d) })
	}
	wg.Wait()
}
