package idtype

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// four returns the handle of a sequencer with four numbers per millisecond.
func four(t *testing.T, c *scripted, maxWait time.Duration) *handle {
	t.Helper()
	if c.wall.IsZero() {
		c.wall = utc("2026-11-21T10:11:12.344Z")
	}
	s := &handle{}
	if err := s.init(spec{line: uid60Line, max: 3}, Options{MaxWait: maxWait, clock: c.clock()}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// A gate is a clock whose waits end on a signal from the test.
type gate struct {
	scripted
	naps chan struct{} // each value ends one wait
}

func (g *gate) sequencer(t *testing.T, maxWait time.Duration) *handle {
	s := four(t, &g.scripted, maxWait)
	g.naps = make(chan struct{})
	s.clock.sleep = func(ctx context.Context, _ time.Duration, wake <-chan struct{}) {
		select {
		case <-g.naps:
		case <-wake:
		case <-ctx.Done():
		}
	}
	return s
}

// until ends waits until a call returns, and returns its result.
func (g *gate) until(got chan minted) minted {
	for {
		select {
		case g.naps <- struct{}{}:
		case m := <-got:
			return m
		}
	}
}

// queued blocks until the queue has this many calls.
func (s *sequencer) queued(t *testing.T, calls int) {
	t.Helper()
	await(t, fmt.Sprintf("a queue of %d calls", calls), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.queue.calls == calls
	})
}

// minted is the result of a call of take.
type minted struct {
	slot  slot
	count int
	err   error
}

// goes calls take in the background.
func (h *handle) goes(ctx context.Context, n int, patient bool) chan minted {
	got := make(chan minted, 1)
	go func() {
		slot, count, err := h.take(ctx, &call{by: h, begun: -1, patient: patient}, n)
		got <- minted{slot, count, err}
	}()
	return got
}

// crowd uses all numbers of the unit, and starts six calls that wait for numbers.
func (h *handle) crowd(t *testing.T) (calls []chan minted) {
	t.Helper()
	for range 4 {
		Must(h.takeOne())
	}
	for i := range 6 {
		calls = append(calls, h.goes(t.Context(), 1, false))
		h.queued(t, i+1)
	}
	return calls
}

// Waiting calls are served in order of arrival, before new calls. The first call that
// reads the clock in a new unit serves the others.
func TestQueue(t *testing.T) {
	for _, anchored := range []bool{false, true} {
		c := &gate{scripted: scripted{anchored: anchored}}
		s := c.sequencer(t, time.Hour)
		unit := uint64(Must(s.line.unit(c.wall)))
		calls := s.crowd(t)
		// No call gets a number before the end of the unit.
		c.step(time.Millisecond / 2)
		late := s.goes(t.Context(), 1, false)
		s.queued(t, 7)
		for i, got := range append(calls, late) {
			if len(got) != 0 {
				t.Fatalf("call %d got %+v", i, <-got)
			}
		}
		// In the next unit, a new call serves the others, and queues behind them.
		c.step(time.Millisecond / 2)
		newest := s.goes(t.Context(), 1, false)
		s.queued(t, 4)
		for i, got := range calls[:4] {
			if m := <-got; m.err != nil || m.slot != (slot{unit + 1, uint32(i)}) {
				t.Errorf("call %d got %+v", i, m)
			}
		}
		// In the unit after that, the leader serves the others.
		c.step(time.Millisecond)
		for i, got := range []chan minted{calls[4], calls[5], late, newest} {
			if m := c.until(got); m.err != nil || m.slot != (slot{unit + 2, uint32(i)}) {
				t.Errorf("call %d got %+v", i+4, m)
			}
		}
		s.queued(t, 0)
	}
}

// If several units passed before a call read the clock, the queue uses as many of them as
// it needs.
func TestQueueUsesPassedUnits(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, time.Hour)
	unit := uint64(Must(s.line.unit(c.wall)))
	calls := s.crowd(t)
	c.step(5 * time.Millisecond)
	// The current unit has four numbers, so two calls get numbers of the previous unit.
	want := []slot{{unit + 4, 0}, {unit + 4, 1}, {unit + 5, 0}, {unit + 5, 1}, {unit + 5, 2}, {unit + 5, 3}}
	for i, got := range calls {
		if m := c.until(got); m.err != nil || m.slot != want[i] {
			t.Errorf("call %d got %+v, want %+v", i, m, want[i])
		}
	}
}

// The fast path is open while the unit lasts, has unused numbers, and no call waits.
func TestFastPath(t *testing.T) {
	c := &gate{scripted: scripted{anchored: true}}
	s := c.sequencer(t, time.Hour)
	Must(s.takeOne())
	if _, ok := s.takeFast(); !ok {
		t.Fatal("the fast path is closed after the first number")
	}
	Must(s.takeOne())
	Must(s.takeOne())
	if got, ok := s.takeFast(); ok {
		t.Errorf("the fast path returns a fifth number of four: %+v", got)
	}
	waits := s.goes(t.Context(), 1, false)
	s.queued(t, 1)
	c.step(time.Millisecond)
	if _, ok := s.takeFast(); ok {
		t.Error("the fast path is open after the end of the unit")
	}
	Must(s.takeOne())
	if m := <-waits; m.slot.seq != 0 || m.err != nil {
		t.Errorf("the waiting call got %+v", m)
	}
	if got, ok := s.takeFast(); !ok || got.seq != 2 {
		t.Errorf("the fast path then returns %+v, %v", got, ok)
	}

	// A lease ends while the unit still has numbers. After its renewal, the waiting call
	// comes first.
	c = &gate{scripted: scripted{anchored: true}}
	s = c.sequencer(t, time.Hour)
	l := newLease(0, c.wall.Add(-time.Hour), c.wall)
	s.lease = l
	Must(s.takeOne())
	l.until.Add(-1)
	if got, ok := s.takeFast(); ok {
		t.Errorf("the fast path returns %+v past the lease's end", got)
	}
	waits = s.goes(t.Context(), 1, false)
	s.queued(t, 1)
	l.until.Add(1)
	if got, ok := s.takeFast(); ok {
		t.Errorf("the fast path returns %+v before the waiting call", got)
	}
	if m := c.until(waits); m.slot.seq != 1 || m.err != nil {
		t.Errorf("the waiting call got %+v", m)
	}
	if got, ok := s.takeFast(); !ok || got.seq != 2 {
		t.Errorf("the fast path then returns %+v, %v", got, ok)
	}
}

// A call whose context ends leaves the queue. If it was the leader, the next call leads.
func TestQueueIsLeft(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, time.Hour)
	for range 4 {
		Must(s.takeOne())
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := s.goes(ctx, 1, false), s.goes(t.Context(), 1, false)
	s.queued(t, 2)
	third := s.goes(ctx, 3, true)
	s.queued(t, 3)
	cancel()
	for _, got := range []chan minted{first, third} {
		if m := <-got; !errors.Is(m.err, context.Canceled) || m.count != 0 {
			t.Errorf("cancelled: %+v", m)
		}
	}
	s.queued(t, 1)
	c.step(time.Millisecond)
	if m := c.until(second); m.err != nil || m.slot.seq != 0 {
		t.Errorf("the remaining call got %+v", m)
	}
	if s.queue.wanted != 0 || s.queue.head != nil || s.queue.tail != nil {
		t.Errorf("the queue isn't empty: %+v", &s.queue)
	}
}

// A call that fails doesn't extend the time that patient calls wait.
func TestErrorIsNotServed(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, time.Hour)
	for range 4 {
		Must(s.takeOne())
	}
	waits := s.goes(t.Context(), 1, false)
	s.queued(t, 1)
	s.random = newRandomBits(iotest.ErrReader(io.ErrUnexpectedEOF))
	c.step(time.Millisecond)
	if m := c.until(waits); !errors.Is(m.err, io.ErrUnexpectedEOF) || s.queue.served != 0 {
		t.Errorf("got %+v, and served is %v; want an error and 0", m, s.queue.served)
	}
}

// If a caller's clock panics, only the call that read it fails. Waiting and later calls
// still work.
func TestClockPanics(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, time.Hour)
	for range 4 {
		Must(s.takeOne())
	}
	broken := false
	wall := s.clock.wall
	s.clock.wall = func() time.Time {
		if broken {
			broken = false
			panic("broken clock")
		}
		return wall()
	}
	panicked := make(chan minted, 1)
	go func() {
		defer func() { panicked <- minted{err: fmt.Errorf("%v", recover())} }()
		_, _ = s.takeOne()
	}()
	s.queued(t, 1)
	waits := s.goes(t.Context(), 1, false)
	s.queued(t, 2)
	s.mu.Lock()
	broken = true
	s.mu.Unlock()
	if m := c.until(panicked); m.err.Error() != "broken clock" {
		t.Errorf("the first call: %v", m.err)
	}
	c.step(time.Millisecond)
	if m := c.until(waits); m.err != nil || m.slot.seq != 0 {
		t.Errorf("the call behind it got %+v", m)
	}
	broken = true
	func() {
		defer func() { _ = recover() }()
		s.remaining()
	}()
	if got := Must(s.takeOne()); got.seq != 1 {
		t.Errorf("the next call got %+v", got)
	}
}

// MaxWait of Next starts when its wait begins. MaxWait of Fill starts again whenever any
// call gets numbers.
func TestQueuePatience(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, 3*time.Millisecond)
	for range 4 {
		Must(s.takeOne())
	}
	// Each of five Fills takes all numbers of a unit.
	var fills []chan minted
	for i := range 5 {
		fills = append(fills, s.goes(t.Context(), 4, true))
		s.queued(t, i+1)
	}
	next := s.goes(t.Context(), 1, false)
	s.queued(t, 6)
	for i := range fills {
		c.step(time.Millisecond)
		if m := c.until(fills[i]); m.err != nil || m.count != 4 {
			t.Fatalf("Fill %d after %d ms: %+v", i, i+1, m)
		}
		if i < 2 && len(next) != 0 {
			t.Fatalf("Next gave up after %d ms: %+v", i+1, <-next)
		}
	}
	if m := c.until(next); !errors.Is(m.err, ErrSequenceExhausted) || !strings.Contains(m.err.Error(), "other calls") {
		t.Errorf("Next behind the others: %+v", m)
	}
	// If no call gets numbers, Fill also fails.
	alone := s.goes(t.Context(), 4, true)
	s.queued(t, 1)
	c.mu.Lock()
	c.ticks += 3 * time.Millisecond
	c.mu.Unlock()
	if m := c.until(alone); !errors.Is(m.err, ErrSequenceExhausted) || strings.Contains(m.err.Error(), "other calls") {
		t.Errorf("Fill on a stopped clock: %+v", m)
	}
	// All waiting calls fail if the clock passes the end of the format.
	a, b := s.goes(t.Context(), 1, false), s.goes(t.Context(), 1, true)
	s.queued(t, 2)
	c.step(200 * 365 * 24 * time.Hour)
	for _, got := range []chan minted{a, b} {
		if m := c.until(got); !errors.Is(m.err, ErrTimeExhausted) {
			t.Errorf("past the end: %+v", m)
		}
	}
}

// A call that waited can use the units that passed during its wait, as many as it needs. A
// call that didn't wait uses only the clock's unit.
func TestPassedUnits(t *testing.T) {
	for _, test := range []struct {
		n      int
		waited bool
		want   []int64 // units after the full one; the call uses all their numbers
	}{
		{1, true, []int64{5}}, {4, true, []int64{5}}, {5, true, []int64{4, 5}}, {9, true, []int64{3, 4, 5}},
		{20, true, []int64{1, 2, 3, 4, 5}}, {1000, true, []int64{1, 2, 3, 4, 5}}, {1000, false, []int64{5}},
	} {
		c := &scripted{}
		s := four(t, c, 0)
		began := Must(s.line.unit(c.wall))
		for range 4 {
			Must(s.takeOne())
		}
		c.step(5 * time.Millisecond)
		now := Must(s.now())
		cl := &call{begun: began, waited: test.waited}
		left := test.n
		for i, unit := range test.want {
			got, count, err := s.takeNow(cl, left, left, now)
			if err != nil || count != min(left, 4) || got != (slot{uint64(began + unit), 0}) {
				t.Errorf("%d numbers, block %d: %d of %+v, %v; want unit %d", test.n, i, count, got, err, unit)
			}
			left -= count
		}
		if left > 0 {
			if got, count, err := s.takeNow(cl, left, left, now); err != nil || count != 0 || s.blocked.reason != reasonFull {
				t.Errorf("%d numbers, past the clock: %d of %+v, %+v, %v", test.n, count, got, s.blocked, err)
			}
		}
	}

	// A call uses the rest of a past unit, but no unit from before the call.
	c := &scripted{}
	s := four(t, c, 0)
	unit := Must(s.line.unit(c.wall))
	Must(s.takeOne())
	c.step(5 * time.Millisecond)
	now := Must(s.now())
	if got, count, err := s.takeNow(&call{begun: unit, waited: true}, 100, 100, now); err != nil || count != 3 || got != (slot{uint64(unit), 1}) {
		t.Errorf("the rest of the unit: %d of %+v, %v", count, got, err)
	}
	if got, count, err := s.takeNow(&call{begun: unit + 3, waited: true}, 100, 100, now); err != nil || count != 4 || got != (slot{uint64(unit + 3), 0}) {
		t.Errorf("a call that began later: %d of %+v, %v", count, got, err)
	}
}

// The clock can step back to before the unit in which a call began.
func TestBegunLater(t *testing.T) {
	c := &scripted{}
	s := four(t, c, 0)
	unit := Must(s.line.unit(c.wall))
	if got, count, err := s.takeNow(&call{begun: unit + 9, waited: true}, 1, 1, unit); err != nil || count != 1 || got != (slot{uint64(unit), 0}) {
		t.Errorf("%d of %+v, %v", count, got, err)
	}
}

// Within a unit, the generator reads only the monotonic clock. A step of the wall clock
// takes effect in the next unit.
func TestAnchor(t *testing.T) {
	c := &scripted{anchored: true}
	s := four(t, c, -1)
	read := 0
	wall := s.clock.wall
	s.clock.wall = func() time.Time { read++; return wall() }
	unit := uint64(Must(s.line.unit(c.wall)))
	c.wall = c.wall.Add(300 * time.Microsecond)
	Must(s.takeOne())
	c.wall = c.wall.Add(time.Hour)
	c.ticks = 700*time.Microsecond - 1
	if got := Must(s.takeOne()); got != (slot{unit, 1}) || read != 1 {
		t.Errorf("before the unit's end: %+v, wall read %d times", got, read)
	}
	c.ticks++
	if got := Must(s.takeOne()); got != (slot{unit + 3600_000, 0}) || read != 2 {
		t.Errorf("at the unit's end: %+v, wall read %d times", got, read)
	}
	c.wall = c.wall.Add(-time.Hour)
	if got := Must(s.takeOne()); got != (slot{unit + 3600_000, 1}) || read != 2 {
		t.Errorf("a step back, within the unit: %+v, wall read %d times", got, read)
	}
	c.ticks += time.Millisecond
	if got, err := s.takeOne(); !errors.Is(err, ErrClockBackwards) || read != 3 {
		t.Errorf("a step back, after the unit: %+v, %v, wall read %d times", got, err, read)
	}

	// A reading outside the format's time doesn't change the fast path.
	c = &scripted{anchored: true}
	s = four(t, c, -1)
	Must(s.takeOne())
	open := s.open.Load()
	c.wall = time.Unix(1<<43, 0)
	c.ticks += time.Millisecond
	if _, err := s.takeOne(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("in the year 280000: %v", err)
	}
	if s.settle(); s.open.Load() != open {
		t.Errorf("in the year 280000 the fast path is open until %v", time.Duration(s.open.Load()))
	}

	// A caller's clock is read in each call.
	c = &scripted{}
	s = four(t, c, -1)
	Must(s.takeOne())
	c.wall = c.wall.Add(time.Hour)
	if got := Must(s.takeOne()); got.seq != 0 {
		t.Errorf("after a step: %+v", got)
	}
}

// If a wide time leaves too few spare bits for the number, each call takes the lock.
func TestWideTime(t *testing.T) {
	for _, test := range []struct {
		layout   SnowflakeLayout
		anchored bool
	}{
		{SnowflakeLayout{}, true},
		{SnowflakeLayout{Epoch: siLayout.BaseClock, DatacenterBits: 5, WorkerBits: 3, SequenceBits: 12}, true},
		{SnowflakeLayout{Epoch: siLayout.BaseClock, DatacenterBits: 4, WorkerBits: 3, SequenceBits: 12}, false},
		{SnowflakeLayout{Epoch: time.Now().Truncate(time.Hour), SequenceBits: 31}, true},
		{SnowflakeLayout{Epoch: siLayout.BaseClock, SequenceBits: 1}, false},
	} {
		g := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: test.layout}))
		if g.seq.clock.anchored != test.anchored {
			t.Errorf("%+v: anchored %v, want %v", test.layout, !test.anchored, test.anchored)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		seen := map[Snowflake]bool{}
		for range 4 {
			wg.Go(func() {
				for range 10 {
					id := Must(g.Next())
					p, err := test.layout.Parts(id)
					mu.Lock()
					if err != nil || seen[id] || time.Since(p.Time).Abs() > time.Minute {
						t.Errorf("%+v: duplicate or wrong ID %v with parts %v, %v", test.layout, id, p, err)
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

func TestStats(t *testing.T) {
	c := &scripted{wall: utc("2090-09-07T15:47:35.544Z")}
	layout := SnowflakeLayout{Epoch: DefaultSnowflakeLayout().Epoch, DatacenterBits: 5, WorkerBits: 15, SequenceBits: 2}
	g := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: layout, Options: Options{clock: c.clock(), MaxWait: 20 * time.Millisecond}}))
	if got := g.Stats(); got != (GeneratorStats{}) {
		t.Errorf("at first: %+v", got)
	}
	for range 5 {
		Must(g.Next()) // the fifth call waits
	}
	if n := Must(g.Fill(t.Context(), make([]Snowflake, 8))); n != 8 { // waits twice
		t.Fatal(n)
	}
	c.step(-time.Millisecond)
	Must(g.Next()) // waits
	c.step(-time.Hour)
	if _, err := g.Next(); !errors.Is(err, ErrClockBackwards) {
		t.Error(err)
	}
	if got, want := g.Stats(), (GeneratorStats{Minted: 14, Waits: 4, SequenceOverflows: 3, OverflowTime: 3 * time.Millisecond, ClockRegressions: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// A unit counts as one overflow, even if several calls find it full.
	c.wall, c.frozen = utc("2090-09-07T15:47:35.500Z"), true
	impatient := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: layout, Options: Options{clock: c.clock(), MaxWait: -1}}))
	for range 10 {
		_, _ = impatient.Next()
	}
	if got, want := impatient.Stats(), (GeneratorStats{Minted: 4, SequenceOverflows: 1, OverflowTime: time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A pause that spins doesn't sleep if the clock has coarse ticks. It sleeps if the clock is
// stopped.
func TestSpinCoarse(t *testing.T) {
	for _, test := range []struct {
		tick  time.Duration // in 10,000 readings of 50 ns
		sleep bool
	}{{500 * time.Microsecond, false}, {0, true}} {
		readings := 0
		c := clock{monotonic: func() time.Duration {
			readings++
			return time.Duration(readings/10_000) * test.tick
		}}
		wake := make(chan struct{}, 1)
		wake <- struct{}{} // only a sleep receives it
		c.pause(t.Context(), 400*time.Microsecond, true, wake)
		if slept := len(wake) == 0; slept != test.sleep {
			t.Errorf("ticks of %v: slept %v after %d readings, want %v", test.tick, slept, readings, test.sleep)
		}
	}
}
