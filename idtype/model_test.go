package idtype

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelChecks is the number of random scripts for each format and each kind of clock. The
// flag -rapid.checks overrides it.
var modelChecks = scaled("200", "500")

// A tape is a clock that only scripts and waits move. It records readings and waits.
type tape struct {
	anchored bool
	wall     time.Time
	ticks    time.Duration   // the monotonic clock
	frozen   bool            // waits don't move the wall
	over     time.Duration   // the time by which waits are too long
	steps    []time.Duration // steps of the wall during the next waits
	log      []moment
}

// A moment is a reading of the clocks or, if wait isn't 0, a wait.
type moment struct {
	wall  time.Time
	ticks time.Duration
	wait  time.Duration
}

func (c *tape) clock() *clock {
	return &clock{
		anchored: c.anchored,
		wall: func() time.Time {
			c.log = append(c.log, moment{wall: c.wall, ticks: c.ticks})
			return c.wall
		},
		monotonic: func() time.Duration { return c.ticks },
		sleep: func(_ context.Context, d time.Duration, _ <-chan struct{}) {
			if d <= 0 {
				panic(fmt.Sprint("slept for ", d))
			}
			c.log = append(c.log, moment{wait: d})
			c.ticks += d + c.over
			if !c.frozen {
				c.wall = c.wall.Add(d + c.over)
			}
			if len(c.steps) > 0 {
				c.wall, c.steps = c.wall.Add(c.steps[0]), c.steps[1:]
			}
		},
	}
}

// A model predicts the IDs of a generator from its readings of the clock.
type model struct {
	plan
	anchored bool
	patience time.Duration // negative: none

	unit  int64 // the highest unit used with the current tick-tock bit, or the start bound
	next  int64 // the next number of unit
	tick  bool
	safe  int64         // the highest unit used with the other bit
	first int64         // the first unit with an ID; -1: no ID exists
	bound int64         // the start bound, a unit without IDs
	shown int64         // the clock's unit at the last reading
	until time.Duration // the end of the unit on the monotonic clock, if the generator doesn't read the wall before

	atUnit, atNext int64 // the next unit and number of At
	drifts         uint32
	wanting        bool // a call found the unit full
	stats          GeneratorStats
}

func newModel(p plan, anchored bool, patience time.Duration, bound int64) *model {
	m := &model{plan: p, anchored: anchored, patience: patience, unit: -1, next: p.max + 1, bound: -1, safe: -1, first: -1, shown: -1}
	m.useUp(bound)
	m.atUnit, m.atNext = bound+1, p.min
	return m
}

// useUp marks all units up to this one as used.
func (m *model) useUp(unit int64) {
	m.safe = max(m.safe, unit)
	if unit >= m.unit {
		m.unit, m.next, m.bound = unit, m.max+1, unit
	}
}

// look returns the clock's unit.
func (m *model) look(wall time.Time) (int64, error) {
	passed := wall.UnixMilli() - m.epoch.UnixMilli()
	now := passed / m.step.Milliseconds()
	switch {
	case passed < 0 && m.unit < 0:
		return 0, ErrBeforeEpoch
	case passed < 0: // the clock stepped back
		now = -1
	case now > m.last:
		return 0, ErrTimeExhausted
	}
	if now < m.shown {
		m.stats.ClockRegressions++
	}
	m.shown = now
	return now, nil
}

// open begins a unit. If its first number is random, open takes it from was, the actual
// IDs.
func (m *model) open(unit int64, was []pair) {
	start, most := m.min, m.min
	if m.random && !(m.first >= 0 && m.next > m.max && unit == m.unit+1) {
		most = 255
	}
	if unit == 0 && m.skips {
		start, most = max(start, 1), max(most, 1)
	}
	if len(was) > 0 && start <= was[0].number && was[0].number <= most {
		start = was[0].number
	}
	m.unit, m.next, m.wanting = unit, start, false
	if m.first < 0 {
		m.first = unit
	}
}

// A request is the state of a call of Next or Fill.
type request struct {
	begun  int64 // unit
	waited bool
}

// unknown is the unit of a call that has not read the clock.
const unknown = -2

// try takes up to n numbers from one unit.
func (m *model) try(now int64, r request, n int64, was []pair) ([]pair, error) {
	unit := now
	if r.waited {
		// The units that passed since the call began, but only as many as it needs.
		unit = min(max(now-(n-1)/int64(m.capacity()), r.begun, m.unit), now)
	}
	switch {
	case now < m.unit && m.toggles && now > m.safe:
		m.safe, m.tick = m.unit, !m.tick
		m.drifts++
		m.stats.TickTocks++
		m.open(now, was)
	case now < m.unit:
		return nil, ErrClockBackwards
	case unit > m.unit:
		m.open(unit, was)
	case m.next <= m.max:
	case m.unit < now:
		m.open(m.unit+1, was)
	case m.unit == m.bound:
		return nil, ErrClockBackwards // the clock has not passed the start bound
	default:
		if !m.wanting {
			m.stats.SequenceOverflows++
		}
		m.wanting = true
		return nil, ErrSequenceExhausted
	}
	return m.take(min(n, m.max-m.next+1)), nil
}

func (m *model) take(n int64) (ids []pair) {
	for range n {
		ids = append(ids, pair{m.unit, m.tick, m.next})
		m.next++
	}
	m.stats.Minted += uint64(n)
	return ids
}

// reserve replays the recorded readings and waits of a call until the call gets numbers or
// fails.
func (m *model) reserve(t *rapid.T, r *request, n int64, was []pair, log *[]moment) ([]pair, error) {
	var began time.Duration
	for first := true; ; first = false {
		at := pop(t, log, false)
		if first {
			began = at.ticks
		}
		now, err := m.look(at.wall)
		if err != nil {
			return nil, err
		}
		if r.begun == unknown {
			r.begun = now
		}
		ids, err := m.try(now, *r, n, was)
		m.until = 0
		if err == nil && m.unit == now {
			m.until = at.ticks + m.time(now+1).Sub(at.wall)
		}
		left := m.patience - (at.ticks - began)
		if err == nil || left <= 0 || err == ErrClockBackwards && m.ahead().Sub(at.wall) > left {
			return ids, err
		}
		if first {
			m.stats.Waits++
		}
		r.waited = true
		if wait := pop(t, log, true).wait; wait > left {
			t.Fatalf("waits for %v, with %v left of %v", wait, left, m.patience)
		}
	}
}

// ahead returns the time that a clock which is behind must reach.
func (m *model) ahead() time.Time {
	switch {
	case m.unit == m.bound:
		return m.time(m.unit + 1)
	case m.toggles:
		return m.time(min(m.unit, m.safe+1))
	}
	return m.time(m.unit)
}

// pop returns the next recorded reading or wait of the generator.
func pop(t *rapid.T, log *[]moment, wait bool) moment {
	if len(*log) == 0 || (*log)[0].wait > 0 != wait {
		t.Fatalf("want next: wait %v, reading %v; got the record %v", wait, !wait, *log)
	}
	next := (*log)[0]
	*log = (*log)[1:]
	return next
}

// A trial runs a generator against its model.
type trial[T comparable] struct {
	subject[T]
	c    *tape
	g    Generator[T]
	m    *model
	seen map[pair]bool
	prev *pair // the last pair of this generator
	high int64 // the highest unit that any generator used or marked as used
}

// TestModel compares each format's generator with a simple model, in random scripts of
// clock changes and calls.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == "100" { // rapid's default
		_ = f.Value.Set(modelChecks)
		t.Cleanup(func() { _ = f.Value.Set("100") })
	}
	each(t, smallFormats, suite.testModel)
}

func (s subject[T]) testModel(t *testing.T) {
	if u, ok := any(&s).(*subject[UID60]); ok {
		u.make = func(o Options) (Generator[UID60], error) {
			return NewUID60Generator(UID60Config{Random: rand.NewChaCha8([32]byte{}), Options: o}) // equal in each run of a script
		}
	}
	for _, anchored := range []bool{false, true} {
		t.Run(fmt.Sprint("anchored=", anchored), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				x := &trial[T]{subject: s, c: &tape{anchored: anchored}, seen: map[pair]bool{}, high: -1}
				x.jump(t)
				x.high = rapid.SampledFrom([]int64{-1, x.shown() - 1, x.shown(), x.shown() + 1, x.shown() + 50}).Draw(t, "bound")
				x.high = min(max(x.high, -1), s.last)
				x.restart(t)
				actions := map[string]func(*rapid.T){
					"next": x.next, "fill": x.fill, "pass": x.pass, "step": x.shift, "jump": x.jump, "waits": x.waits,
					"next again": x.next, "fill again": x.fill, "pass again": x.pass, // half of all actions
					"restart": x.restart,
					"":        x.check,
				}
				if x, ok := any(x).(*trial[Sno]); ok {
					actions["snapshot"] = func(t *rapid.T) { snapshot(t, x) }
					actions["at"] = func(t *rapid.T) { at(t, x) }
				}
				t.Repeat(actions)
			})
		})
	}
}

// span returns a duration, from less than a unit to an hour.
func (x *trial[T]) span(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{x.step / 4, x.step / 2, x.step, 2 * x.step, 7*x.step + x.step/4, 50 * x.step, time.Hour}).Draw(t, "span")
}

// either returns a positive or negative span.
func (x *trial[T]) either(t *rapid.T) time.Duration {
	if rapid.Bool().Draw(t, "back") {
		return -x.span(t)
	}
	return x.span(t)
}

// shown returns the clock's unit, or the nearest value outside the format's units.
func (x *trial[T]) shown() int64 {
	since := x.c.wall.Sub(x.epoch)
	if since < 0 {
		return -1
	}
	return min(int64(since/x.step), x.last+1)
}

// outside returns the error for a clock outside the format's time.
func (x *trial[T]) outside() error {
	switch unit := x.shown(); {
	case unit < 0:
		return ErrBeforeEpoch
	case unit > x.last:
		return ErrTimeExhausted
	}
	return nil
}

// pass lets time pass.
func (x *trial[T]) pass(t *rapid.T) {
	d := x.span(t)
	if rapid.IntRange(0, 20).Draw(t, "year") == 20 {
		d = 365 * 24 * time.Hour
	}
	x.c.wall, x.c.ticks = x.c.wall.Add(d), x.c.ticks+d
}

// shift steps the wall clock and lets some time pass.
func (x *trial[T]) shift(t *rapid.T) {
	x.c.wall = x.c.wall.Add(x.either(t))
	x.c.ticks += rapid.SampledFrom([]time.Duration{0, x.step / 4, x.step}).Draw(t, "ticks")
}

// jump sets the wall clock.
func (x *trial[T]) jump(t *rapid.T) {
	to := map[string]time.Time{
		"home": utc("2026-11-21T10:11:12.344Z"), "back": x.time(x.high),
		"epoch": x.epoch, "before": x.epoch.Add(-time.Hour),
		"end": x.time(x.last - 3), "past": x.time(x.last + 1),
	}
	where := []string{"home", "home", "home", "epoch", "before", "end", "past"}
	if x.high >= 0 {
		where = []string{"back", "back", "back", "before", "epoch", "past"}
	}
	x.c.wall = to[rapid.SampledFrom(where).Draw(t, "to")].Add(x.step / 4)
}

// waits sets the effect of the next waits.
func (x *trial[T]) waits(t *rapid.T) {
	x.c.frozen = rapid.Bool().Draw(t, "frozen")
	x.c.over = rapid.SampledFrom([]time.Duration{0, 0, x.step / 4, 20 * x.step, time.Hour}).Draw(t, "over")
	x.c.steps = nil
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		x.c.steps = append(x.c.steps, x.either(t))
	}
}

// options returns random options for the next generator.
func (x *trial[T]) options(t *rapid.T) Options {
	wait := rapid.SampledFrom([]time.Duration{0, -1, 3 * time.Millisecond, 50 * time.Millisecond}).Draw(t, "MaxWait")
	return Options{clock: x.c.clock(), MaxWait: wait}
}

func patience(o Options) time.Duration {
	if o.MaxWait == 0 {
		return time.Second
	}
	return o.MaxWait
}

// restart continues with a new generator whose NotBefore is the last unit used.
func (x *trial[T]) restart(t *rapid.T) {
	o := x.options(t)
	if x.high >= 0 {
		o.NotBefore = x.time(x.high).Add(x.step - 1)
	}
	g, err := x.make(o)
	if want := x.outside(); want != nil {
		if !errors.Is(err, want) {
			t.Fatalf("constructor outside the format's time: %v, want %v", err, want)
		}
		x.c.wall = x.time(max(x.high, 0))
		g, err = x.make(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.g, x.m, x.prev = g, newModel(x.plan, x.c.anchored, patience(o), x.high), nil
}

// next calls Next several times.
func (x *trial[T]) next(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "calls") {
		x.c.log = nil
		quick := x.quick()
		id, err := x.g.Next()
		var was, want []pair
		if err == nil {
			was = []pair{x.pair(id)}
		} else if id != *new(T) {
			t.Fatalf("%v with an error", id)
		}
		var wantErr error
		if quick {
			want = x.m.take(1)
		} else {
			want, wantErr = x.m.reserve(t, &request{begun: unknown}, 1, was, &x.c.log)
		}
		x.compare(t, was, want, err, wantErr)
		if err != nil {
			return
		}
	}
}

// quick reports whether the next call uses the fast path, without a reading of the wall
// clock.
func (x *trial[T]) quick() bool {
	return x.m.anchored && x.c.ticks < x.m.until && x.m.next <= x.m.max
}

// fill calls Fill.
func (x *trial[T]) fill(t *rapid.T) {
	dst := make([]T, rapid.IntRange(0, 7*x.capacity()/2).Draw(t, "n"))
	x.c.log = nil
	quick := len(dst) == 1 && x.quick()
	n, err := x.g.Fill(t.Context(), dst)
	var was, want []pair
	for i, id := range dst {
		if i < n {
			was = append(was, x.pair(id))
		} else if id != *new(T) {
			t.Fatalf("Fill returned %d, but also wrote %v", n, id)
		}
	}
	var wantErr error
	if quick {
		want = x.m.take(1)
	}
	for r := (request{begun: unknown}); len(want) < len(dst) && wantErr == nil; {
		var some []pair
		some, wantErr = x.m.reserve(t, &r, int64(len(dst)-len(want)), was[min(len(want), n):], &x.c.log)
		want = append(want, some...)
	}
	x.compare(t, was, want, err, wantErr)
}

// compare compares the result of a call with the model's.
func (x *trial[T]) compare(t *rapid.T, was, want []pair, err, wantErr error) {
	if got := sentinel(err); got != wantErr {
		t.Fatalf("error %v, want %v", err, wantErr)
	}
	if !slices.Equal(was, want) {
		t.Fatalf("created %v, want %v", was, want)
	}
	if len(x.c.log) > 0 {
		t.Fatalf("unexpected readings and waits: %v", x.c.log)
	}
	for _, p := range was {
		if x.seen[p] {
			t.Fatalf("duplicate %v", p)
		}
		if l := x.prev; l != nil && l.tick == p.tick && (p.unit < l.unit || p.unit == l.unit && p.number <= l.number) {
			t.Fatalf("%v after %v", p, *l)
		}
		x.seen[p], x.prev, x.high = true, &p, max(x.high, p.unit)
	}
}

// sentinel returns the sentinel that an error wraps, or the error itself.
func sentinel(err error) error {
	for _, s := range []error{ErrClockBackwards, ErrSequenceExhausted, ErrBeforeEpoch, ErrTimeExhausted, ErrRange} {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// check compares the counters.
func (x *trial[T]) check(t *rapid.T) {
	if got := stats(x.g); got != x.m.stats {
		t.Fatalf("Stats = %+v, want %+v", got, x.m.stats)
	}
}

// snapshot continues with a generator made from the snapshot of the last one.
func snapshot(t *rapid.T, x *trial[Sno]) {
	m := x.m
	x.c.log = nil
	s := x.g.(*SnoGenerator).Snapshot()
	_, _ = m.look(x.c.wall) // keeps m.shown if the clock is outside the format
	want := SnoSnapshot{
		Partition: s.Partition, SequenceMin: uint16(m.min), SequenceMax: uint16(m.max), Sequence: uint16(m.next - 1),
		Now: m.shown, WallHi: m.unit, WallSafe: m.safe, Drifts: m.drifts, First: m.first, AtUnit: m.atUnit, AtNext: uint32(m.atNext),
	}
	if s != want {
		t.Fatalf("snapshot %+v, want %+v", s, want)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	s = SnoSnapshot{}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	if want := x.outside(); want != nil {
		if _, err := NewSnoGenerator(SnoConfig{Snapshot: &s, Options: Options{clock: x.c.clock()}}); !errors.Is(err, want) {
			t.Fatalf("constructor outside the format's time: %v, want %v", err, want)
		}
		return
	}
	if m.first >= 0 {
		m.bound = -1 // a snapshot doesn't distinguish a start bound from a full unit
	}
	o := x.options(t)
	if ahead := rapid.Int64Range(-1, 9).Draw(t, "bound"); ahead >= 0 && x.high+ahead <= m.last {
		x.high += ahead
		o.NotBefore = x.time(x.high)
		m.useUp(x.high)
		if x.high >= m.atUnit {
			m.atUnit, m.atNext = x.high+1, m.min
		}
	}
	g, err := NewSnoGenerator(SnoConfig{Snapshot: &s, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	m.stats, m.until, m.wanting, m.patience = GeneratorStats{}, 0, false, patience(o)
	x.g, x.prev = g, nil
}

// at calls At several times.
func at(t *rapid.T, x *trial[Sno]) {
	m := x.m
	from := rapid.SampledFrom([]int64{m.atUnit, m.first, x.shown(), 0, -1, m.last + 1}).Draw(t, "from")
	unit := from - rapid.Int64Range(-1, 3).Draw(t, "less")
	for range rapid.IntRange(1, 12).Draw(t, "calls") {
		x.c.log = nil
		id, err := x.g.(*SnoGenerator).At(5, x.time(unit).Add(x.step-1))
		var was []pair
		if err == nil {
			was = []pair{x.pair(id)}
		} else if id != (Sno{}) {
			t.Fatalf("%v with an error", id)
		}
		want, wantErr := m.at(unit, x.c.wall)
		x.c.log = nil
		live := x.prev
		x.prev = nil
		x.compare(t, was, want, err, wantErr)
		x.prev = live
	}
}

// at takes a number of a past unit.
func (m *model) at(unit int64, wall time.Time) ([]pair, error) {
	switch {
	case unit < 0:
		return nil, ErrBeforeEpoch
	case unit > m.last:
		return nil, ErrTimeExhausted
	}
	end, err := m.look(wall)
	if err != nil {
		return nil, err
	}
	if m.first >= 0 {
		end = m.first
	}
	if unit >= end || unit < m.atUnit {
		return nil, ErrRange
	}
	if unit > m.atUnit {
		m.atUnit, m.atNext = unit, m.min
	}
	if unit == 0 && m.skips {
		m.atNext = max(m.atNext, 1)
	}
	if m.atNext > m.max {
		return nil, ErrSequenceExhausted
	}
	m.atNext++
	m.stats.Minted++
	if m.first < 0 {
		m.useUp(unit)
	}
	return []pair{{unit: unit, number: m.atNext - 1}}, nil
}

// TestMovingClock creates IDs in several goroutines while another one moves the clock.
func TestMovingClock(t *testing.T) { each(t, smallFormats, suite.testMovingClock) }

func (s subject[T]) testMovingClock(t *testing.T) {
	for seed := range scaled[uint64](8, 40) {
		c := &scripted{wall: utc("2026-11-21T10:11:12.344Z"), anchored: seed%2 == 1}
		clock := c.clock()
		monotonic := clock.monotonic
		clock.monotonic = func() time.Duration {
			defer runtime.Gosched() // other goroutines run between a reading and its use
			return monotonic()
		}
		g := s.new(t, Options{clock: clock, MaxWait: 5 * s.step})
		var moving sync.WaitGroup
		done := make(chan struct{})
		moving.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for {
				select {
				case <-done:
					return
				default:
				}
				d := s.step / 4
				switch r.IntN(20) {
				case 0:
					d = -time.Duration(r.IntN(20)) * s.step
				case 1, 2:
					d = -s.step
				case 3:
					d = time.Duration(r.IntN(30)) * s.step
				case 4, 5:
					d = s.step
				}
				c.step(d)
				runtime.Gosched()
			}
		})
		s.mint(t, g, func(asked int) bool { return asked < 1000 }, ErrClockBackwards, ErrSequenceExhausted)
		close(done)
		moving.Wait()
	}
}
