package idtype

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

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

// A trial runs a generator and records what it did.
type trial struct {
	subject
	c        *tape
	g        source
	patience time.Duration  // MaxWait; negative: none
	seen     map[pair]bool  // the pairs of all generators
	high     int64          // the highest unit that any generator used or marked as used
	bound    int64          // the start bound of the generator
	marked   int64          // the bound of a snapshot's generator: a snapshot doesn't distinguish a bound from a full unit
	first    int64          // the first unit of Next and Fill; -1: none
	prev     *pair          // the last pair of Next and Fill
	tick     bool           // its tick-tock bit
	past     int64          // the last unit of At; later calls can't use earlier ones
	shown    int64          // the clock's unit at the last reading of the generator
	waited   bool           // a call of the generator has waited
	want     GeneratorStats // Waits, SequenceOverflows and OverflowTime excluded
}

// A script makes the choices of a trial, from bytes that the fuzzer or a random source has
// chosen.
type script struct{ bytes []byte }

// upTo returns a number from 0 to n, which is at most 65,535. It is 0 after the last byte.
func (s *script) upTo(n int) int {
	v := 0
	for rest := n; rest > 0 && len(s.bytes) > 0; rest >>= 8 {
		v, s.bytes = v<<8|int(s.bytes[0]), s.bytes[1:]
	}
	return v % (n + 1)
}

// pick returns one of the values.
func pick[T any](s *script, values []T) T { return values[s.upTo(len(values)-1)] }

// A broken is a promise that a generator broke.
type broken string

func (s *script) Fatal(args ...any)                 { panic(broken(fmt.Sprint(args...))) }
func (s *script) Fatalf(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// TestModel runs each format's generator through random scripts of clock changes and calls,
// and checks what the generator promises after each call.
func TestModel(t *testing.T) { each(t, smallFormats, subject.testModel) }

func (s subject) testModel(t *testing.T) {
	for _, anchored := range []bool{false, true} {
		t.Run(fmt.Sprint("anchored=", anchored), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range scaledAlone(400, 1000) {
				b := make([]byte, 10+r.IntN(200))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				if err := s.play(anchored, b); err != nil {
					b, err = shorten(b, func(b []byte) error { return s.play(anchored, b) })
					t.Fatalf("script %#v: %v", b, err)
				}
			}
		})
	}
}

// FuzzModel is TestModel with the scripts of the fuzzer.
func FuzzModel(f *testing.F) {
	for i := range smallFormats {
		f.Add(uint8(i), false, []byte("next, fill, pass, step"))
	}
	f.Fuzz(func(t *testing.T, format uint8, anchored bool, b []byte) {
		s := smallFormats[int(format)%len(smallFormats)]
		if err := s.play(anchored, b); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	})
}

// play runs a script and returns the promise that the generator broke.
func (s subject) play(anchored bool, b []byte) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			err = errors.New(string(r))
		default:
			panic(r)
		}
	}()
	if s.name == "UID60" {
		s.make = uid60Subject(func() io.Reader { return rand.NewChaCha8([32]byte{}) }).make // equal in each run of a script
	}
	x := &trial{subject: s, c: &tape{anchored: anchored}, seen: map[pair]bool{}, high: -1, first: -1}
	t := &script{b}
	x.jump(t)
	x.high = pick(t, []int64{-1, x.clockUnit() - 1, x.clockUnit(), x.clockUnit() + 1, x.clockUnit() + 50})
	x.high = min(max(x.high, -1), s.last)
	x.restart(t)
	actions := []func(*script){x.next, x.fill, x.pass, x.next, x.fill, x.pass, x.shift, x.jump, x.waits, x.restart}
	if s.name == "Sno" {
		actions = append(actions, x.snapshot, x.at)
	}
	for len(t.bytes) > 0 {
		pick(t, actions)(t)
		x.check(t)
	}
	return nil
}

// shorten removes bytes from a script as long as it still fails.
func shorten(b []byte, play func([]byte) error) ([]byte, error) {
	err := play(b)
	for n := len(b) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(b); {
			shorter := slices.Delete(slices.Clone(b), i, i+n)
			if e := play(shorter); e != nil {
				b, err = shorter, e
			} else {
				i += n
			}
		}
	}
	return b, err
}

// span returns a duration, from less than a unit to an hour.
func (x *trial) span(t *script) time.Duration {
	return pick(t, []time.Duration{x.step / 4, x.step / 2, x.step, 2 * x.step, 7*x.step + x.step/4, 50 * x.step, time.Hour})
}

// either returns a positive or negative span.
func (x *trial) either(t *script) time.Duration {
	if t.upTo(1) == 1 {
		return -x.span(t)
	}
	return x.span(t)
}

// clockUnit returns the clock's unit, or the nearest value outside the format's units.
func (x *trial) clockUnit() int64 { return x.unitAt(x.c.wall) }

func (x *trial) unitAt(wall time.Time) int64 {
	since := wall.UnixMilli() - x.epoch.UnixMilli()
	if since < 0 {
		return -1
	}
	return min(since/x.step.Milliseconds(), x.last+1)
}

// outside returns the error for a clock outside the format's time.
func (x *trial) outside() error {
	switch unit := x.clockUnit(); {
	case unit < 0:
		return ErrBeforeEpoch
	case unit > x.last:
		return ErrTimeExhausted
	}
	return nil
}

// pass lets time pass.
func (x *trial) pass(t *script) {
	d := x.span(t)
	if t.upTo(20) == 20 {
		d = 365 * 24 * time.Hour
	}
	x.c.wall, x.c.ticks = x.c.wall.Add(d), x.c.ticks+d
}

// shift steps the wall clock and lets some time pass.
func (x *trial) shift(t *script) {
	x.c.wall = x.c.wall.Add(x.either(t))
	x.c.ticks += pick(t, []time.Duration{0, x.step / 4, x.step})
}

// jump sets the wall clock.
func (x *trial) jump(t *script) {
	to := map[string]time.Time{
		"home": utc("2026-11-21T10:11:12.344Z"), "back": x.time(x.high),
		"epoch": x.epoch, "before": x.epoch.Add(-time.Hour),
		"end": x.time(x.last - 3), "past": x.time(x.last + 1),
	}
	where := []string{"home", "home", "home", "epoch", "before", "end", "past"}
	if x.high >= 0 {
		where = []string{"back", "back", "back", "before", "epoch", "past"}
	}
	x.c.wall = to[pick(t, where)].Add(x.step / 4)
}

// waits sets the effect of the next waits.
func (x *trial) waits(t *script) {
	x.c.frozen = t.upTo(1) == 1
	x.c.over = pick(t, []time.Duration{0, 0, x.step / 4, 20 * x.step, time.Hour})
	x.c.steps = nil
	for range t.upTo(4) {
		x.c.steps = append(x.c.steps, x.either(t))
	}
}

// options returns random options for the next generator.
func (x *trial) options(t *script) Options {
	wait := pick(t, []time.Duration{0, -1, 3 * time.Millisecond, 50 * time.Millisecond})
	return Options{clock: x.c.clock(), MaxWait: wait}
}

func patience(o Options) time.Duration {
	if o.MaxWait == 0 {
		return time.Second
	}
	return o.MaxWait
}

// restart continues with a new generator whose NotBefore is the last unit used.
func (x *trial) restart(t *script) {
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
	} else if x.high >= 0 && x.time(x.high).Sub(x.c.wall) > max(patience(o), time.Second) {
		if !errors.Is(err, ErrClockBackwards) {
			t.Fatalf("constructor with NotBefore %v at %v: %v, want %v", o.NotBefore, x.c.wall, err, ErrClockBackwards)
		}
		x.c.wall = x.time(x.high)
		g, err = x.make(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.begin(g, o, x.high)
	x.first, x.past, x.prev, x.tick, x.shown, x.marked = -1, x.high+1, nil, false, -1, -1
}

// begin replaces the generator.
func (x *trial) begin(g source, o Options, bound int64) {
	x.g, x.bound, x.patience = g, bound, patience(o)
	x.want, x.waited, x.c.log = GeneratorStats{}, false, nil
}

// next calls Next several times.
func (x *trial) next(t *script) {
	for range 1 + t.upTo(11) {
		x.c.log = nil
		began, fresh := x.c.ticks, x.fresh()
		id, err := x.g.Next()
		if err != nil && id != (record{}) {
			t.Fatalf("%v with an error", id)
		}
		lo, hi := x.readings(t, 0)
		x.bounded(t, began, err)
		if err != nil {
			x.failed(t, err, fresh)
			return
		}
		x.created(t, []record{id}, lo, hi)
	}
}

// fill calls Fill.
func (x *trial) fill(t *script) {
	dst := make([]record, t.upTo(7*x.capacity()/2))
	x.c.log = nil
	fresh := x.fresh() && len(dst) == 1
	n, err := x.g.Fill(context.Background(), dst)
	for _, id := range dst[n:] {
		if id != (record{}) {
			t.Fatalf("Fill returned %d, but also wrote %v", n, id)
		}
	}
	if (err == nil) != (n == len(dst)) {
		t.Fatalf("Fill of %d IDs returned %d, %v", len(dst), n, err)
	}
	lo, hi := x.readings(t, n)
	x.created(t, dst[:n], lo, hi)
	if err != nil {
		x.failed(t, err, fresh)
	}
}

// fresh reports whether the clock shows a unit that no generator has used or marked. Next then
// returns an ID at once.
func (x *trial) fresh() bool { return x.outside() == nil && x.clockUnit() > x.high }

// created checks the IDs of a call: none repeats, they increase, and their units are later than
// the start bound and neither before nor after lo and hi, the clock's units during the call.
func (x *trial) created(t *script, ids []record, lo, hi int64) {
	for _, id := range ids {
		p := id.pair
		if x.seen[p] {
			t.Fatalf("duplicate %v", p)
		}
		if l := x.prev; l != nil && l.tick == p.tick && (p.unit < l.unit || p.unit == l.unit && p.number <= l.number) {
			t.Fatalf("%v after %v", p, *l)
		}
		switch {
		case p.number < x.min || p.number > x.max || p.unit <= x.bound:
			t.Fatalf("%v, after the bound %d and with numbers %d to %d", p, x.bound, x.min, x.max)
		case len(x.c.log) == 0 && (!x.c.anchored || x.prev == nil || p.unit != x.prev.unit || p.tick != x.prev.tick):
			t.Fatalf("%v after %v without a reading of the clock", p, x.prev)
		case len(x.c.log) > 0 && (p.unit < lo || p.unit > hi):
			t.Fatalf("%v while the clock was in units %d to %d", p, lo, hi)
		case p == (pair{}) && x.skips:
			t.Fatalf("%v makes the zero ID", p)
		}
		if p.tick != x.tick {
			x.want.TickTocks++
		}
		if x.first < 0 {
			x.first = p.unit
		}
		x.seen[p], x.prev, x.tick, x.high = true, &p, p.tick, max(x.high, p.unit)
	}
	x.want.Minted += uint64(len(ids))
}

// readings counts the steps back in the clock's readings during a call that created n IDs, and
// returns the lowest and the highest unit that the clock showed.
func (x *trial) readings(t *script, n int) (lo, hi int64) {
	lo, hi = x.last+1, -1
	for _, at := range x.c.log {
		switch {
		case at.wait > 0 && x.patience < 0 || at.wait > max(x.patience, 0):
			t.Fatalf("waited for %v with a MaxWait of %v", at.wait, x.patience)
		case at.wait > 0:
			x.waited = true
			continue
		}
		unit := x.unitAt(at.wall)
		if unit > x.last || unit < 0 && x.high < 0 && n == 0 {
			continue // the generator rejects such a reading
		}
		if unit < x.shown {
			x.want.ClockRegressions++
		}
		x.shown = unit
		lo, hi = min(lo, max(unit, 0)), max(hi, unit)
	}
	return lo, hi
}

// bounded checks that the waits of a call of Next stay within MaxWait, and that it failed only
// when no time was left.
func (x *trial) bounded(t *script, began time.Duration, err error) {
	var now time.Time
	elapsed := time.Duration(0)
	for _, at := range x.c.log {
		if at.wait == 0 {
			now, elapsed = at.wall, at.ticks-began
		} else if at.wait > x.patience-elapsed {
			t.Fatalf("waits for %v, %v after the start, with a MaxWait of %v", at.wait, elapsed, x.patience)
		}
	}
	switch {
	case errors.Is(err, ErrSequenceExhausted) && elapsed < x.patience:
		t.Fatalf("%v after %v, with a MaxWait of %v", err, elapsed, x.patience)
	case errors.Is(err, ErrClockBackwards) && elapsed+x.time(x.high+1).Sub(now) <= x.patience:
		t.Fatalf("%v after %v, at %v, with a MaxWait of %v", err, elapsed, now, x.patience)
	}
}

// failed checks that the error of a call is the one that the clock calls for.
func (x *trial) failed(t *script, err error, fresh bool) {
	if fresh {
		t.Fatalf("%v, although the clock shows unit %d after %d", err, x.clockUnit(), x.high)
	}
	shown, last := int64(-2), pair{-1, x.tick, x.max}
	for _, at := range x.c.log {
		if at.wait == 0 {
			shown = x.unitAt(at.wall)
		}
	}
	last.unit = shown
	because := map[error]bool{
		ErrBeforeEpoch:       shown < 0 && x.high < 0,
		ErrTimeExhausted:     shown > x.last,
		ErrClockBackwards:    shown <= x.high && x.high >= 0,
		ErrSequenceExhausted: x.seen[last] || shown >= 0 && shown == x.marked,
	}
	if !because[sentinel(err)] {
		t.Fatalf("%v, with the clock in unit %d after unit %d", err, shown, x.high)
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
func (x *trial) check(t *script) {
	got := stats(x.g)
	if (got.Waits > 0) != x.waited {
		t.Fatalf("Stats = %+v, but a call waited: %v", got, x.waited)
	}
	got.Waits, got.SequenceOverflows, got.OverflowTime = 0, 0, 0
	if got != x.want {
		t.Fatalf("Stats = %+v, want %+v", got, x.want)
	}
}

// sno returns the generator of the trial of a Sno.
func (x *trial) sno() *SnoGenerator { return x.g.(typed[Sno]).of.(*SnoGenerator) }

// snapshot continues with a generator made from the snapshot of the last one.
func (x *trial) snapshot(t *script) {
	x.c.log = nil
	s := x.sno().Snapshot()
	x.readings(t, 0)
	if s.SequenceMin != uint16(x.min) || s.SequenceMax != uint16(x.max) || s.Drifts&1 == 1 != x.tick || s.First != x.first || max(s.WallHi, s.WallSafe) != x.high {
		t.Fatalf("snapshot %+v of %+v", s, *x)
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
	o, bound := x.options(t), int64(-1)
	if ahead := int64(t.upTo(10) - 1); ahead >= 0 && x.high+ahead <= x.last {
		x.high += ahead
		bound = x.high
		o.NotBefore = x.time(x.high)
		x.past = max(x.past, bound+1)
	}
	g, err := NewSnoGenerator(SnoConfig{Snapshot: &s, Options: o})
	if bound >= 0 && x.time(bound).Sub(x.c.wall) > max(patience(o), time.Second) {
		if !errors.Is(err, ErrClockBackwards) {
			t.Fatalf("constructor with NotBefore %v at %v: %v, want %v", o.NotBefore, x.c.wall, err, ErrClockBackwards)
		}
		x.c.wall = x.time(bound)
		g, err = NewSnoGenerator(SnoConfig{Snapshot: &s, Options: o})
	}
	if err != nil {
		t.Fatal(err)
	}
	x.marked = max(x.marked, x.bound)
	x.begin(typed[Sno]{g, g, x.g.(typed[Sno]).record}, o, max(bound, x.bound))
}

// at calls At several times.
func (x *trial) at(t *script) {
	from := pick(t, []int64{x.past, x.first, x.clockUnit(), 0, -1, x.last + 1})
	unit := from - int64(t.upTo(4)-1)
	for range 1 + t.upTo(11) {
		x.c.log = nil
		id, err := x.sno().At(5, x.time(unit).Add(x.step-1))
		x.readings(t, 0)
		end := x.clockUnit()
		if x.first >= 0 {
			end = x.first
		}
		if err != nil {
			because := map[error]bool{
				ErrBeforeEpoch:       unit < 0 || x.clockUnit() < 0,
				ErrTimeExhausted:     unit > x.last || x.clockUnit() > x.last,
				ErrRange:             unit >= end || unit < x.past,
				ErrSequenceExhausted: x.seen[pair{unit, false, x.max}],
			}
			if id != (Sno{}) || !because[sentinel(err)] {
				t.Fatalf("%v, %v in unit %d, with %d to %d allowed", id, err, unit, x.past, end-1)
			}
			continue
		}
		p := x.g.(typed[Sno]).record(id).pair
		if x.seen[p] || p.unit != unit || p.tick || unit >= end || unit < x.past || p.number < x.min || p.number > x.max {
			t.Fatalf("%v at unit %d, with %d to %d allowed", p, unit, x.past, end-1)
		}
		if x.past = unit; x.first < 0 {
			x.bound = max(x.bound, unit) // Next and Fill continue after it
		}
		x.seen[p], x.high = true, max(x.high, unit)
		x.want.Minted++
	}
}

// TestMovingClock creates IDs in several goroutines while another one moves the clock.
func TestMovingClock(t *testing.T) { each(t, smallFormats, subject.testMovingClock) }

func (s subject) testMovingClock(t *testing.T) {
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
