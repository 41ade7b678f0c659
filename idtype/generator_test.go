package idtype

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestGenerators(t *testing.T) { each(t, formats, subject.testClocks) }

// testClocks runs the suite on a clock like a caller's Clock, and on one like the system
// clock.
func (s subject) testClocks(t *testing.T) {
	t.Run("own clock", s.test)
	s.anchored = true
	t.Run("anchored clock", s.test)
}

func (s subject) test(t *testing.T) {
	t.Run("frozen clock", s.testFrozen)
	t.Run("clock steps back", s.testBack)
	t.Run("start bound", s.testNotBefore)
	t.Run("ends of the format", s.testEnds)
	t.Run("readiness", s.testReady)
	t.Run("fill is cancelled", s.testFillCancelled)
	t.Run("keeps time", s.testTime)
	t.Run("crowd", s.testCrowd)
	t.Run("allocations", s.testAllocations)
}

// options returns the options of a generator on the real clock.
func (s subject) options() Options {
	if s.anchored {
		return Options{}
	}
	return Options{Clock: time.Now}
}

func (s subject) testFrozen(t *testing.T) {
	g, c := s.scripted(t, 50*time.Millisecond)
	c.frozen = true
	s.fillUnit(t, g)
	_, err := g.Next()
	if !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("on a stopped clock: %v, want ErrSequenceExhausted", err)
	}
	if c.asleep != 50*time.Millisecond {
		t.Errorf("waited %v, want 50 ms", c.asleep)
	}
	n, err := g.Fill(t.Context(), make([]record, 3))
	if n != 0 || !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("Fill on a stopped clock: %d, %v, want ErrSequenceExhausted", n, err)
	}
	c.step(s.step)
	if _, err := g.Next(); err != nil {
		t.Errorf("after the clock has advanced: %v", err)
	}

	// Also just before the end of a unit, a call sleeps instead of spinning.
	g, c = s.scripted(t, 50*time.Millisecond)
	c.frozen = true
	c.wall = c.wall.Add(s.step - time.Microsecond)
	s.fillUnit(t, g)
	if _, err := g.Next(); !errors.Is(err, ErrSequenceExhausted) || c.slept > 60 {
		t.Errorf("clock stopped before the end of a unit: %v after %d waits", err, c.slept)
	}

	impatient, c := s.scripted(t, -1)
	c.frozen = true
	s.fillUnit(t, impatient)
	if _, err := impatient.Next(); !errors.Is(err, ErrSequenceExhausted) || c.slept != 0 {
		t.Errorf("with a negative MaxWait: %v after %d waits", err, c.slept)
	}
}

func (s subject) testBack(t *testing.T) {
	g, c := s.scripted(t, 100*time.Millisecond)
	first := Must(g.Next())
	c.step(-3 * s.step)
	second := Must(g.Next())
	if !s.increases(first, second) || second == first {
		t.Errorf("after a step back: %v after %v", second, first)
	}
	if s.toggles {
		// The first step back toggles the bit; the next one waits.
		if at := s.at(second); c.slept != 0 || first.tick == second.tick || !at.Equal(c.wall) {
			t.Errorf("after a step back: %d waits, tick-tock %v, %v", c.slept, second.tick, at)
		}
		c.step(-s.step)
		third := Must(g.Next())
		if c.slept == 0 || third.tick != second.tick || !s.increases(second, third) {
			t.Errorf("after another step back: %d waits, then %v", c.slept, third)
		}
	} else if c.slept == 0 {
		t.Error("Next didn't wait for the clock")
	}

	// Next doesn't begin a wait that can't end in time.
	c.step(-time.Hour)
	c.asleep = 0
	before := stats(g).Waits
	for range 1000 {
		if _, err := g.Next(); !errors.Is(err, ErrClockBackwards) || !strings.Contains(err.Error(), "within 100ms") {
			t.Fatalf("after a step back by an hour: %v", err)
		}
	}
	if n, err := g.Fill(t.Context(), make([]record, 3)); n != 0 || !errors.Is(err, ErrClockBackwards) {
		t.Errorf("Fill after a step back by an hour: %d, %v", n, err)
	}
	if waits := stats(g).Waits - before; c.asleep != 0 || waits != 0 {
		t.Errorf("%d waits, %v in total, want none", waits, c.asleep)
	}
	s.testKnownGap(t)

	impatient, c := s.scripted(t, -1)
	Must(impatient.Next())
	c.step(-time.Hour)
	_, err := impatient.Next()
	if s.toggles {
		if err != nil {
			t.Errorf("the first step back: %v", err)
		}
		c.step(-time.Hour)
		_, err = impatient.Next()
	}
	if !errors.Is(err, ErrClockBackwards) || c.slept != 0 {
		t.Errorf("with a negative MaxWait: %v after %d waits", err, c.slept)
	}
}

// testKnownGap tests waits for a clock that is behind by about MaxWait. A wait ends when it
// can no longer succeed, or after MaxWait.
func (s subject) testKnownGap(t *testing.T) {
	t.Helper()
	const maxWait = 100 * time.Millisecond
	for _, tt := range []struct {
		gap    time.Duration // from the clock to the first usable time
		frozen bool
		over   time.Duration // a step back during the first pause
		want   error
		asleep time.Duration
	}{
		{gap: maxWait, asleep: maxWait},
		{gap: maxWait - time.Microsecond, asleep: maxWait - time.Microsecond},
		{gap: maxWait + 1, want: ErrClockBackwards},
		{gap: maxWait + s.step, want: ErrClockBackwards},
		{gap: 3 * time.Millisecond, frozen: true, want: ErrClockBackwards, asleep: maxWait},
		{gap: maxWait / 2, over: time.Hour, want: ErrClockBackwards, asleep: longPause},
	} {
		c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
		clock := c.clock()
		pause := clock.sleep
		clock.sleep = func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
			pause(ctx, d, wake)
			c.wall, tt.over = c.wall.Add(-tt.over), 0
		}
		g := s.new(t, Options{MaxWait: maxWait, NotBefore: c.wall, clock: clock})
		c.wall, c.frozen = c.wall.Add(s.step-tt.gap), tt.frozen
		// If the clock is stopped, the gap stays. The wait ends when its remaining time is
		// shorter than the gap.
		least := tt.asleep
		if tt.frozen {
			least -= tt.gap
		}
		if _, err := g.Next(); !errors.Is(err, tt.want) || c.asleep > tt.asleep || c.asleep < least {
			t.Errorf("%+v: %v after %v", tt, err, c.asleep)
		}
	}
}

func (s subject) testNotBefore(t *testing.T) {
	c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	bound := c.wall.Add(5 * s.step).Add(s.step - 1)
	g := s.new(t, Options{NotBefore: bound, clock: c.clock()})
	at := s.at(Must(g.Next()))
	if !at.After(bound) {
		t.Errorf("an ID of %v, want one after the bound %v", at, bound)
	}
	// In the unit of the bound and before it, the generator creates no ID, not even with a
	// toggle.
	for _, wall := range []time.Time{bound, bound.Add(1 - s.step), bound.Add(-time.Hour), s.epoch.Add(-time.Hour)} {
		c := s.clockAt(bound)
		c.frozen = true
		g := s.new(t, Options{NotBefore: bound, clock: c.clock()})
		c.wall = wall
		if id, err := g.Next(); !errors.Is(err, ErrClockBackwards) || !strings.Contains(err.Error(), "NotBefore") || !strings.Contains(err.Error(), "the clock is at "+stamp(wall)) {
			t.Errorf("ID %v at %v, bound %v: %v", id, wall, bound, err)
		}
	}
	// A bound before the epoch is ignored. A bound past the end is an error.
	g = s.new(t, Options{NotBefore: s.epoch.Add(-time.Hour), clock: s.clockAt(s.epoch.Add(time.Hour)).clock()})
	if _, err := g.Next(); err != nil {
		t.Errorf("with a bound before the epoch: %v", err)
	}
	given := len(partitions.automatic)
	if g, err := s.make(Options{NotBefore: s.end().Add(s.step)}); !errors.Is(err, ErrTimeExhausted) || g != nil {
		t.Errorf("with a bound past the end: %v, %v", g, err)
	}
	if len(partitions.automatic) != given {
		t.Error("a failed constructor took a partition")
	}
}

// readiness returns the result of Ready, and fails the test if Ready changes a counter.
func readiness(t *testing.T, g any) error {
	t.Helper()
	before := stats(g)
	err := g.(interface{ Ready() error }).Ready()
	if after := stats(g); after != before {
		t.Errorf("Ready changed the counters from %+v to %+v", before, after)
	}
	return err
}

// testReady checks that Ready returns the error of the next call, or nil if the call
// succeeds, and that a generator that isn't asked creates the same IDs.
func (s subject) testReady(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	start := s.epoch.Add(time.Hour)
	o := Options{NotBefore: start.Add(s.step), MaxWait: -1}
	var l *fakeLease
	if s.name != "UID60" {
		l = newLease(s.lease, start.Add(2*s.step), start.Add(200*s.step))
		o.Lease = l
	}
	c := s.clockAt(start)
	o.clock = c.clock()
	g, silent := s.new(t, o), s.new(t, o)
	failures := map[error]int{}
	for i := range 5000 {
		switch {
		case i == 4990:
			c.wall = s.end().Add(s.step)
		case i == 4995:
			c.wall = start
		case i == 4998 && l != nil:
			l.lose()
		case r.IntN(100) == 0:
			c.step(s.epoch.Add(-time.Hour).Sub(c.wall))
		case r.IntN(2) == 0:
			c.step(time.Duration(r.IntN(20)-5) * s.step)
		}
		if i%100 == 0 && l != nil && i < 4990 {
			l.until.Store(c.wall.Add(100 * s.step).UnixMilli())
		}
		said := readiness(t, g)
		id, err := g.Next()
		other, err2 := silent.Next()
		if fmt.Sprint(said) != fmt.Sprint(err) && !errors.Is(err, ErrSequenceExhausted) || said != nil && errors.Is(err, ErrSequenceExhausted) {
			t.Fatalf("call %d at %v: want the error of Next, %v, got %v", i, c.wall, err, said)
		}
		// The sequence of a UID60 begins at a random number.
		if fmt.Sprint(err) != fmt.Sprint(err2) || !s.random && id != other {
			t.Fatalf("call %d: want %v, %v as without Ready, got %v, %v", i, other, err2, id, err)
		}
		for _, e := range []error{ErrClockBackwards, ErrTimeExhausted, ErrLeaseNotRenewed, ErrLeaseLost} {
			if errors.Is(said, e) {
				failures[e]++
				break
			}
		}
	}
	if got, want := stats(g), stats(silent); got != want {
		t.Errorf("want the counters %+v as without Ready, got %+v", want, got)
	}
	if failures[ErrClockBackwards] == 0 || failures[ErrTimeExhausted] == 0 || l != nil && (failures[ErrLeaseNotRenewed] == 0 || failures[ErrLeaseLost] == 0) {
		t.Errorf("want all errors, got %v", failures)
	}

	// A call can wait while the clock is behind for less than MaxWait.
	bound := c.wall.Add(time.Minute)
	c = s.clockAt(bound.Add(-time.Second))
	g = s.new(t, Options{NotBefore: bound, MaxWait: time.Second, clock: c.clock()})
	if err := readiness(t, g); !errors.Is(err, ErrClockBackwards) {
		t.Errorf("more than a second before the bound: want %v, got %v", ErrClockBackwards, err)
	}
	c.step(s.step)
	if err := readiness(t, g); err != nil || c.slept > 0 {
		t.Errorf("a second before the bound: want no error and no wait, got %v, %d waits", err, c.slept)
	}
	if l != nil {
		l.until.Store(c.wall.Add(-s.step).UnixMilli())
		g := s.new(t, Options{Lease: l, MaxWait: time.Hour, clock: c.clock()})
		if err := readiness(t, g); !errors.Is(err, ErrLeaseNotRenewed) {
			t.Errorf("past the lease: want %v, got %v", ErrLeaseNotRenewed, err)
		}
	}
	// A full unit doesn't count.
	c.step(time.Second + s.step)
	s.fillUnit(t, g)
	if err := readiness(t, g); err != nil {
		t.Errorf("with a full unit: want no error, got %v", err)
	}
}

func (s subject) testEnds(t *testing.T) {
	// The constructor rejects a clock past the end or before the epoch.
	for wall, want := range map[time.Time]error{
		s.epoch.Add(-1): ErrBeforeEpoch, s.epoch.Add(-time.Hour): ErrBeforeEpoch, {}: ErrBeforeEpoch,
		s.end().Add(s.step): ErrTimeExhausted, s.end().AddDate(1000, 0, 0): ErrTimeExhausted,
	} {
		given := len(partitions.automatic)
		g, err := s.make(Options{clock: s.clockAt(wall).clock()})
		if g != nil || !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("want %s to ", stamp(s.epoch))) || !strings.Contains(err.Error(), "time "+stamp(wall)+" to ") {
			t.Errorf("constructor at %v: %v", wall, err)
		}
		if _, err := s.make(Options{Clock: func() time.Time { return wall }}); !errors.Is(err, want) {
			t.Errorf("constructor at %v with Options.Clock: %v", wall, err)
		}
		if len(partitions.automatic) != given {
			t.Error("a failed constructor took a partition")
		}
	}
	s.new(t, Options{clock: s.clockAt(s.epoch).clock()})
	s.new(t, Options{clock: s.clockAt(s.end().Add(s.step - 1)).clock()})

	c := s.clockAt(s.epoch)
	g := s.new(t, Options{clock: c.clock()})
	c.wall = s.epoch.Add(-1)
	if _, err := g.Next(); !errors.Is(err, ErrBeforeEpoch) || c.slept != 0 {
		t.Errorf("before the epoch: %v after %d waits", err, c.slept)
	}
	// After the first ID, a clock before the epoch is a clock that stepped back.
	c.step(time.Hour)
	Must(g.Next())
	c.step(-2 * time.Hour)
	if _, err := g.Next(); !errors.Is(err, ErrClockBackwards) || c.slept != 0 {
		t.Errorf("back to before the epoch: %v after %d waits", err, c.slept)
	}
	c.step(s.end().Sub(s.epoch) / 2)
	c.step(s.end().Sub(c.wall))
	s.fillUnit(t, g)
	if _, err := g.Next(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("past the end: %v", err)
	}
}

func TestNeverZero(t *testing.T) { each(t, smallFormats, subject.testNeverZero) }

func (s subject) testNeverZero(t *testing.T) {
	var zero record
	for range 20 { // UID60 begins at random numbers
		c := s.clockAt(s.epoch)
		g := s.new(t, Options{clock: c.clock()})
		id := Must(g.Next())
		if p := id.pair; id.raw == zero.raw || p.unit != 0 || p.number == 0 {
			t.Fatalf("the format's first ID is %v, want the smallest that isn't zero", id)
		}
	}
}

func (s subject) testFillCancelled(t *testing.T) {
	g, c := s.scripted(t, time.Hour)
	c.frozen = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([]record, 10)
	if n, err := g.Fill(ctx, dst); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Fill with a cancelled context = %d, %v", n, err)
	}
	ctx, c.onSleep = context.WithCancel(t.Context())
	dst = make([]record, 2*s.capacity())
	n, err := g.Fill(ctx, dst)
	if n == 0 || n > s.capacity() || !errors.Is(err, context.Canceled) {
		t.Errorf("Fill cancelled during a wait = %d, %v; want at most %d IDs", n, err, s.capacity())
	}
	var zero record
	if slices.Contains(dst[:n], zero) || dst[n] != zero {
		t.Error("Fill returned another count than the number of IDs written")
	}
}

// testTime checks that the IDs have the time of the real clock.
func (s subject) testTime(t *testing.T) {
	g := s.new(t, s.options())
	for range scaled(5, 20) {
		time.Sleep(2 * time.Millisecond)
		before := time.Now()
		at := s.at(Must(g.Next()))
		if after := time.Now(); at.Before(before.Add(-s.step)) || at.After(after) {
			t.Errorf("an ID of %v, created between %v and %v", at, before, after)
		}
	}
}

// testCrowd runs more goroutines than a unit has numbers. Their calls queue, and no call
// fails while the clock runs.
func (s subject) testCrowd(t *testing.T) {
	o := s.options()
	o.MaxWait = time.Hour
	g := s.new(t, o)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[record]bool{}
	add := func(ids ...record) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if seen[id] {
				t.Errorf("duplicate %v", id)
			}
			seen[id] = true
		}
	}
	callers, calls := 500, scaled(2, 8)
	block := max(s.capacity()/20, 1)
	for w := range callers {
		wg.Go(func() {
			for range calls {
				if w%2 == 0 {
					id, err := g.Next()
					if err != nil {
						t.Errorf("Next: %v", err)
						return
					}
					add(id)
					continue
				}
				ids := make([]record, block)
				if n, err := g.Fill(t.Context(), ids); err != nil {
					t.Errorf("Fill: %v after %d", err, n)
					return
				}
				add(ids...)
			}
		})
	}
	wg.Wait()
	if want := callers / 2 * calls * (1 + block); len(seen) != want && !t.Failed() {
		t.Errorf("%d IDs, want %d", len(seen), want)
	}
}

// The first unit is complete, except for the zero ID. So with a node number, it begins at
// number 0.
func TestFirstUnit(t *testing.T) {
	clock := func(from time.Time) Options { return Options{clock: (&scripted{wall: from}).clock()} }
	sf := Must(Must(NewSnowflakeGenerator(SnowflakeConfig{Worker: 1, Options: clock(DefaultSnowflakeLayout().Epoch)})).Next())
	si := Must(Must(NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 1, Options: clock(siLayout.BaseClock)})).Next())
	sp := Must(Must(NewSpread64Generator(Spread64Config{Cluster: 1, Options: clock(time.UnixMilli(0))})).Next())
	sn := Must(Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{0, 1}, Options: clock(snoPlan.epoch)})).Next())
	if sf != 1<<12 || si != 1<<8 || sp != 1 || sn != (Sno{7: 1}) {
		t.Errorf("the first IDs are %d, %d, %d and %v", sf, si, sp, sn)
	}
}

func (s subject) testAllocations(t *testing.T) {
	// The clock advances with every reading, so that no call waits.
	wall := utc("2026-11-21T10:11:12.344Z")
	g := s.new(t, Options{Clock: func() time.Time { wall = wall.Add(s.step / 4); return wall }})
	next, fill := g.calls()
	for name, call := range map[string]func() error{"Next": next, "Fill": fill} {
		if n := testing.AllocsPerRun(500, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestGeneratorNodes(t *testing.T) {
	s, err := NewSnowflakeGenerator(SnowflakeConfig{Datacenter: 2, Worker: 3})
	p, _ := SnowflakeLayout{}.Parts(Must(Must(s, err).Next()))
	if p.Datacenter != 2 || p.Worker != 3 {
		t.Errorf("%+v, want datacenter 2, worker 3", p)
	}
	twitter := SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), DatacenterBits: 2, WorkerBits: 6, SequenceBits: 14}
	s, err = NewSnowflakeGenerator(SnowflakeConfig{Layout: twitter, Datacenter: 3, Worker: 63})
	id := Must(Must(s, err).Next())
	p, _ = twitter.Parts(id)
	if p.Datacenter != 3 || p.Worker != 63 || time.Since(p.Time).Abs() > time.Minute {
		t.Errorf("%+v in a layout of 2, 6 and 14 bits, want datacenter 3, worker 63 and the current time", p)
	}
	si, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 31})
	q, _ := siLayout.Parts(Must(Must(si, err).Next()))
	if q.Machine != 31 || time.Since(q.Time).Abs() > time.Minute {
		t.Errorf("%+v, want machine 31", q)
	}
	sp, err := NewSpread64Generator(Spread64Config{Generator: 63, Cluster: 15})
	r, _ := Spread64Layout{}.Parts(Must(Must(sp, err).Next()))
	if r.Generator != 63 || r.Cluster != 15 || time.Since(r.Time).Abs() > time.Minute {
		t.Errorf("%+v, want generator 63, cluster 15", r)
	}

	_, err1 := NewSnowflakeGenerator(SnowflakeConfig{Datacenter: 32})
	_, err2 := NewSnowflakeGenerator(SnowflakeConfig{Worker: -1})
	_, err3 := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 32})
	_, err4 := NewSpread64Generator(Spread64Config{Generator: 64})
	_, err5 := NewSpread64Generator(Spread64Config{Cluster: 16})
	_, err6 := LocalSpread64Generator(-1, 0)
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, ErrNode) {
			t.Errorf("constructor %d: %v, want ErrNode", i+1, err)
		}
	}
}

// The index or the machine of a SnowflakeSI can have all 13 adjustable bits.
func TestSISplits(t *testing.T) {
	for _, bits := range []int{0, 1, 12, 13} {
		layout := SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: bits, IndexBits: 13 - bits}
		c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
		g := Must(NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: layout, Machine: 1<<bits - 1, Options: Options{clock: c.clock(), MaxWait: -1}}))
		dst := make([]SnowflakeSI, 1<<(13-bits)+1)
		n, err := g.Fill(t.Context(), dst)
		if n != len(dst)-1 || !errors.Is(err, ErrSequenceExhausted) {
			t.Errorf("%d machine bits: %d IDs in a millisecond, %v", bits, n, err)
		}
		for i, id := range dst[:n] {
			if p := Must(layout.Parts(id)); !p.Time.Equal(c.wall) || p.Machine != 1<<bits-1 || p.Index != i || id > 1<<53-1 {
				t.Fatalf("%d machine bits, ID %d: %+v", bits, i, p)
			}
		}
	}
}

func TestLocalSpread64(t *testing.T) {
	a, b := Must(LocalSpread64Generator(7, 3)), Must(LocalSpread64Generator(7, 3))
	c := Must(LocalSpread64Generator(3, 7))
	if a.seq.sequencer != b.seq.sequencer || a.seq.sequencer == c.seq.sequencer {
		t.Error("want one sequence per pair of numbers")
	}
	continueEachOther(t, a, b, Must(NewSpread64Generator(Spread64Config{Generator: 7, Cluster: 3})))
	p, _ := Spread64Layout{}.Parts(Must(a.Next()))
	if p.Generator != 7 || p.Cluster != 3 {
		t.Errorf("%+v, want generator 7, cluster 3", p)
	}
}

func TestUID60Random(t *testing.T) {
	c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
	bits := "\x07" + strings.Repeat("\xff", 600)
	g, err := NewUID60Generator(UID60Config{Random: strings.NewReader(bits), clock: c.clock()})
	// The first byte is the first sequence number.
	p, _ := UID60Layout{}.Parts(Must(Must(g, err).Next()))
	if p.Sequence != 7 || p.Random != 511 {
		t.Errorf("%+v from the bytes 07 ff ff, want sequence 7, random 511", p)
	}

	// Milliseconds begin at all numbers from 0 to 255. Each ID has its own random bits:
	// they rarely equal the bits of its neighbour or of the previous ID with the same
	// number.
	starts, randoms, same := map[int]bool{}, map[int]bool{}, 0
	before := make([]int, 512)
	g = Must(NewUID60Generator(UID60Config{clock: c.clock()}))
	const rounds = 1000
	for range rounds {
		a, b := Must(g.Next()), Must(g.Next())
		if a.Random() == b.Random() {
			same++
		}
		if before[a.Sequence()] == a.Random()+1 {
			same++
		}
		before[a.Sequence()] = a.Random() + 1
		starts[a.Sequence()], randoms[a.Random()] = true, true
		c.step(time.Millisecond)
	}
	if most := slices.Max(slices.Collect(maps.Keys(starts))); len(starts) < 200 || most > 255 {
		t.Errorf("%d milliseconds began at %d numbers, the largest is %d; want at least 200, at most 255", rounds, len(starts), most)
	}
	// The expected values are about 430 of 512 numbers, and 4 equal ones.
	if len(randoms) < 350 || same > 25 {
		t.Errorf("%d IDs had %d different random numbers, and %d equal neighbours; want at least 350 and at most 25", rounds, len(randoms), same)
	}

	broken := Must(NewUID60Generator(UID60Config{Random: iotest.ErrReader(io.ErrClosedPipe)}))
	if id, err := broken.Next(); !errors.Is(err, io.ErrClosedPipe) || id != 0 {
		t.Errorf("with a failing Random: %v, %v", id, err)
	}
	short := Must(NewUID60Generator(UID60Config{Random: strings.NewReader("abc")}))
	if n, err := short.Fill(t.Context(), make([]UID60, 5)); !errors.Is(err, io.ErrUnexpectedEOF) || n != 0 {
		t.Errorf("with a short Random: %d, %v", n, err)
	}
}

func TestSnoBounds(t *testing.T) {
	t.Cleanup(forget)
	part := SnoPartition{'A', 10}
	for _, r := range []struct {
		min, max uint16
		lo, hi   uint16 // 0, 0: an error
	}{
		{0, 0, 0, 65535}, {10, 0, 10, 65535}, {65535, 0, 0, 65535}, {20, 10, 10, 20}, {0, 3, 0, 3}, {0, 2, 0, 0}, {7, 7, 0, 0}, {65535, 65532, 65532, 65535},
		{65533, 0, 0, 0}, {65532, 0, 65532, 65535},
	} {
		forget()
		g, err := NewSnoGenerator(SnoConfig{Partition: &part, SequenceMin: r.min, SequenceMax: r.max})
		if r.hi == 0 {
			if !errors.Is(err, ErrRange) {
				t.Errorf("range %d to %d: %v", r.min, r.max, err)
			}
			continue
		}
		if err != nil || g.seq.min != uint32(r.lo) || g.seq.max != uint32(r.hi) {
			t.Errorf("range %d to %d: %v", r.min, r.max, err)
		}
	}
}

// Automatic partitions begin at a number that no test configures.
func init() { partitions = partitionSeries{30_000, map[uint16]bool{}} }

// partitionsAt makes automatic partitions start at first, as in a new process, until the
// end of the test.
func partitionsAt(t *testing.T, first uint16) {
	t.Helper()
	was := partitions
	t.Cleanup(func() { partitions = was; forget() })
	partitions = partitionSeries{first, map[uint16]bool{}}
	forget()
}

// assignAllBut marks all partitions except one as used.
func assignAllBut(last SnoPartition) {
	for p := range 1 << 16 {
		partitions.automatic[uint16(p)] = true
	}
	delete(partitions.automatic, last.Uint16())
}

// explicitly lists the ways to configure a partition.
var explicitly = map[string]func(p SnoPartition) (*SnoGenerator, error){
	"Partition": func(p SnoPartition) (*SnoGenerator, error) { return NewSnoGenerator(SnoConfig{Partition: &p}) },
	"Snapshot": func(p SnoPartition) (*SnoGenerator, error) {
		return NewSnoGenerator(SnoConfig{Snapshot: &SnoSnapshot{Partition: p, SequenceMax: 65535, WallHi: -1, WallSafe: -1, First: -1}})
	},
	"Lease": func(p SnoPartition) (*SnoGenerator, error) {
		return NewSnoGenerator(SnoConfig{Options: Options{Lease: newLease(int(p.Uint16()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour))}})
	},
	"Ranges": func(p SnoPartition) (*SnoGenerator, error) {
		return NewSnoGenerator(SnoConfig{Partition: &p, Ranges: 2, Options: Options{Lease: newLease(0, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))}})
	},
}

func TestSnoPartitions(t *testing.T) {
	partitionsAt(t, 65_000) // wraps to 0
	seen := map[SnoPartition]bool{}
	for range 1000 {
		p := Must(Must(NewSnoGenerator(SnoConfig{})).Next()).Partition()
		if seen[p] {
			t.Fatalf("partition %v was assigned twice", p)
		}
		seen[p] = true
	}
	assignAllBut(SnoPartitionFrom(7))
	if _, err := NewSnoGenerator(SnoConfig{}); err != nil {
		t.Errorf("the last partition: %v", err)
	}
	if _, err := NewSnoGenerator(SnoConfig{}); !errors.Is(err, ErrPartitionsExhausted) {
		t.Errorf("after the last partition: %v", err)
	}
}

// Automatic partitions skip the configured partitions of all generators that the process
// has created.
func TestSnoPartitionsSkipped(t *testing.T) {
	for name, explicit := range explicitly {
		t.Run(name, func(t *testing.T) {
			partitionsAt(t, 65_530)
			seen := map[Sno]bool{}
			fill := func(g *SnoGenerator) SnoPartition {
				dst := make([]Sno, 1000)
				Must(g.Fill(t.Context(), dst))
				for _, id := range dst {
					if seen[id] {
						t.Fatalf("partition %v: duplicate %v", id.Partition(), id)
					}
					seen[id] = true
				}
				return dst[0].Partition()
			}
			var own []uint16
			for _, n := range []uint16{65_530, 65_531, 65_533, 65_535, 0, 2, 3} {
				own = append(own, fill(Must(explicit(SnoPartitionFrom(n)))).Uint16())
			}
			for _, want := range []uint16{65_532, 65_534, 1, 4, 5} {
				if got := fill(Must(NewSnoGenerator(SnoConfig{}))).Uint16(); got != want {
					t.Errorf("automatic partition %d, want %d; configured partitions are %d", got, want, own)
				}
			}
			// The last partition is configured, so no automatic one is left.
			assignAllBut(SnoPartitionFrom(65_529))
			Must(explicit(SnoPartitionFrom(65_529)))
			if _, err := NewSnoGenerator(SnoConfig{}); !errors.Is(err, ErrPartitionsExhausted) {
				t.Errorf("with no partition left: %v", err)
			}
		})
	}
}

// If an automatic partition is configured for another generator, the two share its sequence.
// A generator with a lease can't share it, so the partition is rejected.
func TestSnoPartitionsGiven(t *testing.T) {
	for name, explicit := range explicitly {
		t.Run(name, func(t *testing.T) {
			partitionsAt(t, 0x410a)
			automatic := Must(NewSnoGenerator(SnoConfig{}))
			p := Must(automatic.Next()).Partition()
			g, err := explicit(p)
			if name == "Lease" || name == "Ranges" {
				if g != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "partition 16650: already assigned") || !strings.Contains(err.Error(), "set Partition on every") {
					t.Errorf("configuring an automatic partition: %v", err)
				}
			} else {
				continueEachOther(t, automatic, Must(g, err))
			}
			if _, err := explicit(SnoPartitionFrom(p.Uint16() + 1)); err != nil {
				t.Errorf("the next partition: %v", err)
			}
			if p := Must(Must(NewSnoGenerator(SnoConfig{})).Next()).Partition(); p.Uint16() != 0x410c {
				t.Errorf("the next automatic partition is %d, want 0x410c", p.Uint16())
			}
		})
	}

	// NewSno has an automatic partition too.
	was := packageSno.made.Swap(nil)
	defer packageSno.made.Store(was)
	partitionsAt(t, 7)
	Must(explicitly["Partition"](SnoPartitionFrom(7)))
	if id := Must(NewSno(1)); id.Partition().Uint16() != 8 {
		t.Errorf("NewSno has partition %d, want 8", id.Partition().Uint16())
	}
	continueEachOther(t, packageSno.made.Load(), Must(explicitly["Partition"](SnoPartitionFrom(8))))

	// A generator with its own clock shares nothing. A snapshot hands its automatic
	// partition over to the next generator.
	partitionsAt(t, 7)
	c := &scripted{wall: snoStart}
	g := Must(NewSnoGenerator(SnoConfig{Options: Options{clock: c.clock()}}))
	first := Must(g.Next())
	for range 2 {
		g = handOver(t, g, c, Options{})
		if id := Must(g.Next()); id.Partition() != first.Partition() || id.Compare(first) <= 0 {
			t.Errorf("%v after %v", id, first)
		}
	}
	if g, err := explicitly["Partition"](first.Partition()); g != nil || !errors.Is(err, ErrConfig) {
		t.Errorf("configuring an automatic partition that was handed over: %v, %v", g, err)
	}

	// A constructor that fails takes no partition.
	partitionsAt(t, 7)
	p := SnoPartitionFrom(7)
	l := &attachedLease{fakeLease: newLease(7, snoTime(-1), snoTime(100)), minted: func() int64 { return 0 }}
	for _, c := range []SnoConfig{
		{SequenceMin: 7, SequenceMax: 7}, {Partition: &p, SequenceMin: 7, SequenceMax: 7}, {Options: Options{NotBefore: snoPlan.end().Add(time.Hour)}},
		{Partition: &p, Options: Options{NotBefore: snoPlan.end().Add(time.Hour)}},
	} {
		if g, err := NewSnoGenerator(c); g != nil || err == nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	Must(NewSnoGenerator(SnoConfig{}))
	if g, err := NewSnoGenerator(SnoConfig{Options: Options{Lease: l}}); g != nil || !errors.Is(err, ErrConfig) {
		t.Errorf("a lease with the number of an automatic partition: %v, want ErrConfig before Attach", err)
	}
}

// Several goroutines create generators with automatic and configured partitions, also of
// the same numbers.
func TestSnoPartitionsConcurrent(t *testing.T) {
	partitionsAt(t, 0)
	var mu sync.Mutex
	automatic, seen := map[SnoPartition]bool{}, map[Sno]bool{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := range 200 {
				var c SnoConfig
				explicit := w%2 == 0
				if explicit {
					p := SnoPartitionFrom(uint16(3 * n))
					c.Partition = &p
				}
				g := Must(NewSnoGenerator(c))
				ids := make([]Sno, 10)
				Must(g.Fill(t.Context(), ids))
				mu.Lock()
				if p := ids[0].Partition(); !explicit {
					if automatic[p] {
						t.Errorf("automatic partition %v was assigned twice", p)
					}
					automatic[p] = true
				}
				for _, id := range ids {
					if seen[id] {
						t.Errorf("duplicate %v", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestNewSno(t *testing.T) {
	a, b := Must(NewSno(1)), Must(NewSno(2))
	if a.Meta() != 1 || b.Meta() != 2 || a.Partition() != b.Partition() || a.WithMeta(2).Compare(b) >= 0 {
		t.Errorf("%v, then %v", a, b)
	}
}
