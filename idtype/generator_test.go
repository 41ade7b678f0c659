package idtype

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// A scripted clock moves only when a test or a wait moves it.
type scripted struct {
	mu       sync.Mutex
	anchored bool
	wall     time.Time
	ticks    time.Duration // the monotonic clock
	frozen   bool          // waits don't move the wall
	over     time.Duration // how much longer a wait takes than asked for
	slept    int           // waits
	asleep   time.Duration // how long they took
}

func (c *scripted) clock() *clock {
	return &clock{
		anchored:  c.anchored,
		wall:      func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.wall },
		monotonic: func() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.ticks },
		sleep: func(_ context.Context, d time.Duration, _ <-chan struct{}) {
			if d <= 0 {
				panic(fmt.Sprint("slept for ", d))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.slept++
			d += c.over
			c.asleep += d
			c.ticks += d
			if !c.frozen {
				c.wall = c.wall.Add(d)
			}
		},
	}
}

// step moves the wall. A step back takes some time, or a generator that looks
// at the wall once a unit wouldn't see it.
func (c *scripted) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
	if d < 0 {
		d = 4 * time.Millisecond
	}
	c.ticks += d
}

// wander moves the wall at random, by so many grains of time or an hour, or
// leaves it; and lets waits move it or not.
func (c *scripted) wander(r *rand.Rand, unit, grain time.Duration) {
	grains := int(unit / grain)
	c.frozen = r.IntN(4) == 0
	switch r.IntN(8) {
	case 0:
		c.step(-unit)
	case 1:
		c.step(-time.Duration(r.IntN(20*grains)) * grain)
	case 2:
		c.step(-time.Hour)
	case 3, 4:
		c.step(time.Duration(r.IntN(30*grains)) * grain)
	case 5:
		c.step(time.Hour)
	}
}

// A minter is a format's generator as the suite below needs it.
type minter[T comparable] struct {
	make func(Options) (Generator[T], error)
	// small, if there is one, makes a generator whose units are soon full.
	small func(Options) (Generator[T], error)
	// key orders IDs as they are minted.
	key  func(T) (time.Time, int)
	tick func(T) bool
	cap  int // IDs of a unit; for UID60 the first unit has fewer
	unit time.Duration
	// from is the first instant of the format, end the last unit's.
	from, end time.Time
	freeStart bool // a unit may begin above 0
	anchored  bool // on a clock of which the wall is read once a unit
}

var (
	snowflakeMinter = minter[Snowflake]{
		make: func(o Options) (Generator[Snowflake], error) {
			return NewSnowflakeGenerator(SnowflakeConfig{Options: o})
		},
		key: func(id Snowflake) (time.Time, int) {
			p, err := SnowflakeLayout{}.Parts(id)
			return must(p.Time, err), p.Sequence
		},
		cap: 4096, unit: time.Millisecond, from: utc("2021-01-01T00:00:00Z"), end: utc("2090-09-07T15:47:35.551Z"),
	}
	siMinter = minter[SnowflakeSI]{
		make: func(o Options) (Generator[SnowflakeSI], error) {
			return NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Options: o})
		},
		key: func(id SnowflakeSI) (time.Time, int) {
			p, err := siLayout.Parts(id)
			return must(p.Time, err), p.Index
		},
		cap: 256, unit: time.Millisecond, from: siLayout.BaseClock, end: siLayout.BaseClock.Add((1<<40 - 1) * time.Millisecond),
	}
	uid60Minter = minter[UID60]{
		make: func(o Options) (Generator[UID60], error) { return NewUID60Generator(UID60Config{Options: o}) },
		key: func(id UID60) (time.Time, int) {
			p, err := UID60Layout{}.Parts(id)
			return must(p.Time, err), p.Sequence
		},
		cap: 512, unit: time.Millisecond, from: utc("2018-03-01T00:00:00Z"), end: utc("2157-07-13T07:35:11.103Z"), freeStart: true,
	}
	spreadMinter = minter[Spread64]{
		make: func(o Options) (Generator[Spread64], error) {
			return NewSpread64Generator(Spread64Config{Options: o})
		},
		key: func(id Spread64) (time.Time, int) {
			p, err := Spread64Layout{}.Parts(id)
			return must(p.Time, err), p.Sequence
		},
		cap: 64, unit: time.Millisecond, from: time.UnixMilli(0), end: utc("2109-05-15T07:35:11.103Z"),
	}
	snoMinter = minter[Sno]{
		make: func(o Options) (Generator[Sno], error) {
			return NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, Options: o})
		},
		small: func(o Options) (Generator[Sno], error) {
			return NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, SequenceMax: 99, Options: o})
		},
		key:  func(id Sno) (time.Time, int) { return id.Time(), int(id.Sequence()) },
		tick: Sno.TickTock,
		cap:  65536, unit: 4 * time.Millisecond, from: utc("2010-01-01T00:00:00Z"), end: utc("2079-09-07T15:47:35.548Z"),
	}
)

func TestGenerators(t *testing.T) {
	t.Run("Snowflake", snowflakeMinter.testClocks)
	t.Run("SnowflakeSI", siMinter.testClocks)
	t.Run("UID60", uid60Minter.testClocks)
	t.Run("Spread64", spreadMinter.testClocks)
	t.Run("Sno", snoMinter.testClocks)
}

// testClocks is the suite on a clock of the caller's, and on one like the
// system's.
func (m minter[T]) testClocks(t *testing.T) {
	t.Run("own clock", m.test)
	m.anchored = true
	t.Run("anchored clock", m.test)
}

func (m minter[T]) test(t *testing.T) {
	t.Run("parts", m.testParts)
	t.Run("full unit", m.testFullUnit)
	t.Run("frozen clock", m.testFrozen)
	t.Run("clock steps back", m.testBack)
	t.Run("start mark", m.testNotBefore)
	t.Run("ends of the format", m.testEnds)
	t.Run("never zero", m.testNeverZero)
	t.Run("fill", m.testFill)
	t.Run("fill is cancelled", m.testFillCancelled)
	t.Run("random scripts", m.testScripts)
	t.Run("keeps time", m.testTime)
	t.Run("concurrent", m.testConcurrent)
	t.Run("crowd", m.testCrowd)
	t.Run("waits", m.testWaits)
	t.Run("allocations", m.testAllocations)
}

func (m minter[T]) new(t testing.TB, o Options) Generator[T] {
	t.Helper()
	g, err := m.make(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// scripted makes a generator on a scripted clock.
func (m minter[T]) scripted(t testing.TB, maxWait time.Duration) (Generator[T], *scripted) {
	c := m.clockAt(utc("2026-11-21T10:11:12.344Z"))
	return m.new(t, Options{MaxWait: maxWait, clock: c.clock()}), c
}

func (m minter[T]) clockAt(wall time.Time) *scripted {
	return &scripted{wall: wall, anchored: m.anchored}
}

// options are those of a generator on the real clock.
func (m minter[T]) options() Options {
	if m.anchored {
		return Options{}
	}
	return Options{Clock: time.Now}
}

// increases reports whether b was minted after a, by its bits.
func (m minter[T]) increases(a, b T) bool {
	if m.tick != nil && m.tick(a) != m.tick(b) {
		return true
	}
	at, as := m.key(a)
	bt, bs := m.key(b)
	return at.Before(bt) || at.Equal(bt) && as < bs
}

func (m minter[T]) testParts(t *testing.T) {
	g, c := m.scripted(t, 0)
	at, seq := m.key(must(g.Next()))
	if !at.Equal(c.wall) || seq != 0 && !m.freeStart || seq >= 256 {
		t.Errorf("the first ID is of %v, %d", at, seq)
	}
	at2, seq2 := m.key(must(g.Next()))
	if !at2.Equal(at) || seq2 != seq+1 {
		t.Errorf("the second ID is of %v, %d, after %d", at2, seq2, seq)
	}
	c.step(m.unit)
	at3, seq3 := m.key(must(g.Next()))
	if !at3.Equal(at.Add(m.unit)) || seq3 != 0 && !m.freeStart || seq3 >= 256 {
		t.Errorf("the third ID is of %v, %d", at3, seq3)
	}
}

// fillUnit mints until the unit has no numbers left, and gives the last ID.
func (m minter[T]) fillUnit(t testing.TB, g Generator[T]) (last T) {
	t.Helper()
	for {
		last = must(g.Next())
		if _, seq := m.key(last); seq == m.cap-1 {
			return last
		}
	}
}

func (m minter[T]) testFullUnit(t *testing.T) {
	g, c := m.scripted(t, 0)
	last := m.fillUnit(t, g)
	if c.slept != 0 {
		t.Errorf("waited %d times within a unit", c.slept)
	}
	next := must(g.Next())
	at, seq := m.key(next)
	if c.slept == 0 || seq != 0 || !m.increases(last, next) {
		t.Errorf("after a full unit: %d waits, then number %d", c.slept, seq)
	}
	// It was the unit after that, though the wait went on for longer.
	was, _ := m.key(last)
	if !at.Equal(was.Add(m.unit)) {
		t.Errorf("after the full unit %v came %v", was, at)
	}
}

func (m minter[T]) testFrozen(t *testing.T) {
	g, c := m.scripted(t, 50*time.Millisecond)
	c.frozen = true
	m.fillUnit(t, g)
	_, err := g.Next()
	if !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("on a frozen clock: %v", err)
	}
	if c.asleep != 50*time.Millisecond {
		t.Errorf("waited %v, want 50 ms", c.asleep)
	}
	n, err := g.Fill(t.Context(), make([]T, 3))
	if n != 0 || !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("Fill on a frozen clock: %d, %v", n, err)
	}
	c.step(m.unit)
	if _, err := g.Next(); err != nil {
		t.Errorf("when the clock runs again: %v", err)
	}

	// Just before the unit's end too, a call sleeps and doesn't burn a core.
	g, c = m.scripted(t, 50*time.Millisecond)
	c.frozen = true
	c.wall = c.wall.Add(m.unit - time.Microsecond)
	m.fillUnit(t, g)
	if _, err := g.Next(); !errors.Is(err, ErrSequenceExhausted) || c.slept > 60 {
		t.Errorf("frozen before the end of a unit: %v after %d waits", err, c.slept)
	}

	impatient, c := m.scripted(t, -1)
	c.frozen = true
	m.fillUnit(t, impatient)
	if _, err := impatient.Next(); !errors.Is(err, ErrSequenceExhausted) || c.slept != 0 {
		t.Errorf("without waiting: %v after %d waits", err, c.slept)
	}
}

func (m minter[T]) testBack(t *testing.T) {
	g, c := m.scripted(t, 100*time.Millisecond)
	first := must(g.Next())
	c.step(-3 * m.unit)
	second := must(g.Next())
	if !m.increases(first, second) || second == first {
		t.Errorf("after a step back: %v after %v", second, first)
	}
	if m.tick != nil {
		// A toggle instead of a wait; the next step back has to wait.
		if at, _ := m.key(second); c.slept != 0 || m.tick(first) == m.tick(second) || !at.Equal(c.wall) {
			t.Errorf("after a step back: %d waits, tick-tock %v, %v", c.slept, m.tick(second), at)
		}
		c.step(-m.unit)
		third := must(g.Next())
		if c.slept == 0 || m.tick(third) != m.tick(second) || !m.increases(second, third) {
			t.Errorf("after another step back: %d waits, then %v", c.slept, third)
		}
	} else if c.slept == 0 {
		t.Error("didn't wait for the clock")
	}

	// A wait that can't end in time isn't begun.
	c.step(-time.Hour)
	c.asleep = 0
	before := stats(g).Waits
	for range 1000 {
		if _, err := g.Next(); !errors.Is(err, ErrClockBackwards) || !strings.Contains(err.Error(), "within 100ms") {
			t.Fatalf("an hour back: %v", err)
		}
	}
	if n, err := g.Fill(t.Context(), make([]T, 3)); n != 0 || !errors.Is(err, ErrClockBackwards) {
		t.Errorf("Fill an hour back: %d, %v", n, err)
	}
	if waits := stats(g).Waits - before; c.asleep != 0 || waits != 0 {
		t.Errorf("waited %d times, %v altogether", waits, c.asleep)
	}
	// One that could is ended when it can't any more, or after MaxWait.
	m.testKnownGap(t)

	impatient, c := m.scripted(t, -1)
	must(impatient.Next())
	c.step(-time.Hour)
	_, err := impatient.Next()
	if m.tick != nil {
		if err != nil {
			t.Errorf("the first step back: %v", err)
		}
		c.step(-time.Hour)
		_, err = impatient.Next()
	}
	if !errors.Is(err, ErrClockBackwards) || c.slept != 0 {
		t.Errorf("without waiting: %v after %d waits", err, c.slept)
	}
}

// testKnownGap looks at the gaps that are just as long as a call waits, or longer.
func (m minter[T]) testKnownGap(t *testing.T) {
	t.Helper()
	const maxWait = 100 * time.Millisecond
	for _, tt := range []struct {
		gap    time.Duration // from the clock to the first time that may be used
		frozen bool
		over   time.Duration // how much the clock is further behind after the first pause
		want   error
		asleep time.Duration
	}{
		{gap: maxWait, asleep: maxWait},
		{gap: maxWait - time.Microsecond, asleep: maxWait - time.Microsecond},
		{gap: maxWait + 1, want: ErrClockBackwards},
		{gap: maxWait + m.unit, want: ErrClockBackwards},
		{gap: 3 * time.Millisecond, frozen: true, want: ErrClockBackwards, asleep: maxWait},
		{gap: maxWait / 2, over: time.Hour, want: ErrClockBackwards, asleep: longPause},
	} {
		c := m.clockAt(utc("2026-11-21T10:11:12.344Z"))
		clock := c.clock()
		pause := clock.sleep
		clock.sleep = func(ctx context.Context, d time.Duration, wake <-chan struct{}) {
			pause(ctx, d, wake)
			c.wall, tt.over = c.wall.Add(-tt.over), 0
		}
		g := m.new(t, Options{MaxWait: maxWait, NotBefore: c.wall, clock: clock})
		c.wall, c.frozen = c.wall.Add(m.unit-tt.gap), tt.frozen
		// A frozen clock keeps the gap, and the wait its end: it is given up when what
		// is left of it is less.
		least := tt.asleep
		if tt.frozen {
			least -= tt.gap
		}
		if _, err := g.Next(); !errors.Is(err, tt.want) || c.asleep > tt.asleep || c.asleep < least {
			t.Errorf("%+v: %v after %v", tt, err, c.asleep)
		}
	}
}

func (m minter[T]) testNotBefore(t *testing.T) {
	c := m.clockAt(utc("2026-11-21T10:11:12.344Z"))
	mark := c.wall.Add(5 * m.unit).Add(m.unit - 1)
	g := m.new(t, Options{NotBefore: mark, clock: c.clock()})
	at, _ := m.key(must(g.Next()))
	if !at.Equal(c.wall.Truncate(m.unit)) && !at.After(mark) || !at.After(mark) {
		t.Errorf("minted at %v, mark %v", at, mark)
	}
	// Within the unit of the mark, and before it, nothing is minted: not even
	// by a toggle.
	for _, wall := range []time.Time{mark, mark.Add(1 - m.unit), mark.Add(-time.Hour), m.from.Add(-time.Hour)} {
		c := m.clockAt(mark)
		c.frozen = true
		g := m.new(t, Options{NotBefore: mark, clock: c.clock()})
		c.wall = wall
		if id, err := g.Next(); !errors.Is(err, ErrClockBackwards) || !strings.Contains(err.Error(), "NotBefore") || !strings.Contains(err.Error(), "got "+stamp(wall)) {
			t.Errorf("minted %v at %v, mark %v: %v", id, wall, mark, err)
		}
	}
	// A mark before the epoch is none; one past the end leaves nothing.
	g = m.new(t, Options{NotBefore: m.from.Add(-time.Hour), clock: m.clockAt(m.from.Add(time.Hour)).clock()})
	if _, err := g.Next(); err != nil {
		t.Errorf("with a mark before the epoch: %v", err)
	}
	given := partitions.passed
	if g, err := m.make(Options{NotBefore: m.end.Add(m.unit)}); !errors.Is(err, ErrTimeExhausted) || !reflect.ValueOf(g).IsNil() {
		t.Errorf("with a mark past the end: %v, %v", g, err)
	}
	if partitions.passed != given {
		t.Error("a generator that wasn't made took a partition")
	}
}

func (m minter[T]) testEnds(t *testing.T) {
	// A layout that has expired, or an epoch that is yet to come, shows at once.
	for wall, want := range map[time.Time]error{
		m.from.Add(-1): ErrBeforeEpoch, m.from.Add(-time.Hour): ErrBeforeEpoch, {}: ErrBeforeEpoch,
		m.end.Add(m.unit): ErrTimeExhausted, m.end.AddDate(1000, 0, 0): ErrTimeExhausted,
	} {
		given := partitions.passed
		g, err := m.make(Options{clock: m.clockAt(wall).clock()})
		if !reflect.ValueOf(g).IsNil() || !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("from %s to ", stamp(m.from))) || !strings.Contains(err.Error(), ", got "+stamp(wall)+": ") {
			t.Errorf("made at %v: %v", wall, err)
		}
		if _, err := m.make(Options{Clock: func() time.Time { return wall }}); !errors.Is(err, want) {
			t.Errorf("made at %v by a clock of the caller's: %v", wall, err)
		}
		if partitions.passed != given {
			t.Error("a generator that wasn't made took a partition")
		}
	}
	m.new(t, Options{clock: m.clockAt(m.from).clock()})
	m.new(t, Options{clock: m.clockAt(m.end.Add(m.unit - 1)).clock()})

	c := m.clockAt(m.from)
	g := m.new(t, Options{clock: c.clock()})
	c.wall = m.from.Add(-1)
	if _, err := g.Next(); !errors.Is(err, ErrBeforeEpoch) || c.slept != 0 {
		t.Errorf("before the epoch: %v after %d waits", err, c.slept)
	}
	// Once it has minted, a clock before the epoch is one that went back.
	c.step(time.Hour)
	must(g.Next())
	c.step(-2 * time.Hour)
	if _, err := g.Next(); !errors.Is(err, ErrClockBackwards) || c.slept != 0 {
		t.Errorf("back to before the epoch: %v after %d waits", err, c.slept)
	}
	c.step(m.end.Sub(m.from) / 2)
	c.step(m.end.Sub(c.wall))
	last := m.fillUnit(t, g)
	if at, _ := m.key(last); !at.Equal(m.end) {
		t.Errorf("the last unit is %v, want %v", at, m.end)
	}
	if _, err := g.Next(); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("past the end: %v", err)
	}
}

func (m minter[T]) testNeverZero(t *testing.T) {
	var zero T
	for range 20 { // UID60 begins at random
		c := m.clockAt(m.from)
		g := m.new(t, Options{clock: c.clock()})
		id := must(g.Next())
		if at, seq := m.key(id); id == zero || !at.Equal(m.from) || seq == 0 {
			t.Fatalf("the format's first ID is %v", id)
		}
	}
}

func (m minter[T]) testFill(t *testing.T) {
	g, c := m.scripted(t, 0)
	if n, err := g.Fill(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("Fill of nothing: %d, %v", n, err)
	}
	dst := make([]T, 3*m.cap+m.cap/2)
	last := must(g.Next())
	n, err := g.Fill(t.Context(), dst)
	if n != len(dst) || err != nil {
		t.Fatalf("Fill = %d, %v", n, err)
	}
	seen := map[T]bool{last: true}
	for i, id := range dst {
		if seen[id] || !m.increases(last, id) {
			t.Fatalf("ID %d, %v, comes after %v", i, id, last)
		}
		seen[id], last = true, id
	}
	// What passed during a wait is used: no more units than it takes.
	began, _ := m.key(dst[0])
	ended, _ := m.key(last)
	if units := int(ended.Sub(began)/m.unit) + 1; units > 5 {
		t.Errorf("%d IDs took %d units of %d", len(dst)+1, units, m.cap)
	}
	if c.slept == 0 {
		t.Error("no waits at all")
	}
}

func (m minter[T]) testFillCancelled(t *testing.T) {
	g, c := m.scripted(t, time.Hour)
	c.frozen = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([]T, 10)
	if n, err := g.Fill(ctx, dst); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Fill after the end = %d, %v", n, err)
	}
	// On the real clock, so that there is a wait to be cut short.
	wall := time.Now()
	g = m.new(t, Options{MaxWait: time.Hour, Clock: func() time.Time { return wall }})
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	dst = make([]T, 2*m.cap)
	n, err := g.Fill(ctx, dst)
	if n == 0 || n > m.cap || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Fill until the deadline = %d of %d in a unit, %v", n, m.cap, err)
	}
	var zero T
	if slices.Contains(dst[:n], zero) || dst[n] != zero {
		t.Error("n isn't the number of IDs that were minted")
	}
}

// testScripts runs random clocks: forward, standing, a step back, an hour back.
func (m minter[T]) testScripts(t *testing.T) {
	if m.small != nil {
		m.make, m.cap = m.small, 100
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		wait := []time.Duration{-1, 3 * time.Millisecond, 0}[r.IntN(3)]
		g, c := m.scripted(t, wait)
		seen := map[T]bool{}
		var last T
		started := false
		for step := range 60 {
			c.wander(r, m.unit, m.unit)
			dst := make([]T, 1+r.IntN(100))
			if r.IntN(20) == 0 {
				dst = make([]T, m.cap+r.IntN(m.cap)) // more than a unit has
			}
			c.asleep = 0
			n, err := g.Fill(t.Context(), dst)
			if err != nil && !errors.Is(err, ErrClockBackwards) && !errors.Is(err, ErrSequenceExhausted) {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if limit := max(wait, 0); wait != 0 && n == 0 && c.asleep > limit {
				t.Fatalf("seed %d, step %d: waited %v, at most %v allowed", seed, step, c.asleep, limit)
			}
			for _, id := range dst[:n] {
				if seen[id] || started && !m.increases(last, id) {
					t.Fatalf("seed %d, step %d: %v after %v, repeated: %v", seed, step, id, last, seen[id])
				}
				if at, _ := m.key(id); at.After(c.wall) {
					t.Fatalf("seed %d, step %d: minted for %v at %v", seed, step, at, c.wall)
				}
				seen[id], last, started = true, id, true
			}
		}
	}
}

func (m minter[T]) testConcurrent(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	g := m.new(t, m.options())
	const workers = 8
	each := min(m.cap*30, 50_000)
	minted := make([][]T, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			ids := make([]T, 0, each)
			for len(ids) < each {
				if w%2 == 0 {
					id, err := g.Next()
					if err != nil {
						t.Error(err)
						return
					}
					ids = append(ids, id)
					continue
				}
				block := make([]T, min(100, each-len(ids)))
				if _, err := g.Fill(t.Context(), block); err != nil {
					t.Error(err)
					return
				}
				ids = append(ids, block...)
			}
			minted[w] = ids
		})
	}
	wg.Wait()
	seen := make(map[T]bool, workers*each)
	for _, ids := range minted {
		for i, id := range ids {
			if seen[id] {
				t.Fatalf("%v was minted twice", id)
			}
			seen[id] = true
			if i > 0 && !m.increases(ids[i-1], id) {
				t.Fatalf("a goroutine got %v after %v", id, ids[i-1])
			}
		}
	}
	if len(seen) != workers*each && !t.Failed() {
		t.Errorf("%d IDs, want %d", len(seen), workers*each)
	}
	if n := stats(g).Minted; n != workers*uint64(each) && !t.Failed() {
		t.Errorf("the stats have %d IDs, want %d", n, workers*each)
	}
}

// stats are the Stats of a generator of any type.
func stats(g any) GeneratorStats { return g.(interface{ Stats() GeneratorStats }).Stats() }

// testTime has the generator's IDs keep up with the real clock.
func (m minter[T]) testTime(t *testing.T) {
	g := m.new(t, m.options())
	for range 20 {
		time.Sleep(2 * time.Millisecond)
		before := time.Now()
		at, _ := m.key(must(g.Next()))
		if after := time.Now(); at.Before(before.Add(-m.unit)) || at.After(after) {
			t.Errorf("minted for %v between %v and %v", at, before, after)
		}
	}
}

// testCrowd has more goroutines at once than a unit has numbers. They queue:
// nobody fails while the clock runs, and numbers that passed meanwhile are used.
func (m minter[T]) testCrowd(t *testing.T) {
	if m.small != nil {
		m.make, m.cap = m.small, 100
	}
	o := m.options()
	o.MaxWait = 5 * time.Second
	g := m.new(t, o)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[T]bool{}
	add := func(ids ...T) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%v was minted twice", id)
			}
			seen[id] = true
		}
	}
	const callers, calls = 500, 8
	block := max(m.cap/20, 1)
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
				ids := make([]T, block)
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

// testWaits looks at what a wait is measured by, and what it may use.
func (m minter[T]) testWaits(t *testing.T) {
	// By what the sleep took, not by what was asked for.
	g, c := m.scripted(t, 50*time.Millisecond)
	c.frozen, c.over = true, 20*time.Millisecond
	m.fillUnit(t, g)
	if _, err := g.Next(); !errors.Is(err, ErrSequenceExhausted) || c.asleep > 80*time.Millisecond {
		t.Errorf("sleeps that take longer: %v after %v", err, c.asleep)
	}

	// A Fill may take longer than MaxWait, as long as the clock runs.
	g, c = m.scripted(t, 5*time.Millisecond)
	dst := make([]T, 10*m.cap)
	if n, err := g.Fill(t.Context(), dst); n != len(dst) || err != nil || c.asleep < 9*time.Millisecond {
		t.Errorf("Fill for %v: %d of %d, %v", c.asleep, n, len(dst), err)
	}

	// Sleeps that take longer lose nothing: the units that passed are used.
	g, c = m.scripted(t, 0)
	c.over = 5 * m.unit
	began := c.wall
	if n, err := g.Fill(t.Context(), dst); n != len(dst) || err != nil {
		t.Errorf("Fill: %d of %d, %v", n, len(dst), err)
	}
	if units := int(c.wall.Sub(began) / m.unit); units > 16 {
		t.Errorf("%d IDs took %d units of %d", len(dst), units, m.cap)
	}

	// Units that passed before the call began stay unused.
	g, c = m.scripted(t, 0)
	m.fillUnit(t, g)
	c.step(10 * m.unit)
	began = c.wall
	for range 2 {
		for _, id := range dst[:must(g.Fill(t.Context(), dst[:m.cap+1]))] {
			if at, _ := m.key(id); at.Before(began.Truncate(m.unit)) && at.Before(began.Add(-m.unit)) {
				t.Fatalf("minted for %v in a call that began at %v", at, began)
			}
		}
		c.step(10 * m.unit)
		began = c.wall
	}
}

// Nothing but the zero ID is left out: with a node number the first unit is
// whole.
func TestFirstUnit(t *testing.T) {
	clock := func(from time.Time) Options { return Options{clock: (&scripted{wall: from}).clock()} }
	sf := must(must(NewSnowflakeGenerator(SnowflakeConfig{Worker: 1, Options: clock(snowflakeMinter.from)})).Next())
	si := must(must(NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 1, Options: clock(siMinter.from)})).Next())
	sp := must(must(NewSpread64Generator(Spread64Config{Cluster: 1, Options: clock(spreadMinter.from)})).Next())
	sn := must(must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{0, 1}, Options: clock(snoMinter.from)})).Next())
	if sf != 1<<12 || si != 1<<8 || sp != 1 || sn != (Sno{7: 1}) {
		t.Errorf("the first IDs are %d, %d, %d and %v", sf, si, sp, sn)
	}
}

func (m minter[T]) testAllocations(t *testing.T) {
	// A clock that runs on with every reading, so that no call waits.
	wall := utc("2026-11-21T10:11:12.344Z")
	g := m.new(t, Options{Clock: func() time.Time { wall = wall.Add(100 * time.Microsecond); return wall }})
	if n := testing.AllocsPerRun(500, func() {
		if _, err := g.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Next: %v allocations, want 0", n)
	}
	dst := make([]T, 10)
	ctx := context.Background()
	if n := testing.AllocsPerRun(500, func() {
		if _, err := g.Fill(ctx, dst); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Fill: %v allocations, want 0", n)
	}
}

func TestGeneratorNodes(t *testing.T) {
	s, err := NewSnowflakeGenerator(SnowflakeConfig{Datacenter: 2, Worker: 3})
	p, _ := SnowflakeLayout{}.Parts(must(must(s, err).Next()))
	if p.Datacenter != 2 || p.Worker != 3 {
		t.Errorf("%+v, want datacenter 2, worker 3", p)
	}
	twitter := SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), DatacenterBits: 2, WorkerBits: 6, SequenceBits: 14}
	s, err = NewSnowflakeGenerator(SnowflakeConfig{Layout: twitter, Datacenter: 3, Worker: 63})
	id := must(must(s, err).Next())
	p, _ = twitter.Parts(id)
	if p.Datacenter != 3 || p.Worker != 63 || time.Since(p.Time).Abs() > time.Minute {
		t.Errorf("%+v in another layout", p)
	}
	si, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 31})
	q, _ := siLayout.Parts(must(must(si, err).Next()))
	if q.Machine != 31 || time.Since(q.Time).Abs() > time.Minute {
		t.Errorf("%+v, want machine 31", q)
	}
	sp, err := NewSpread64Generator(Spread64Config{Generator: 63, Cluster: 15})
	r, _ := Spread64Layout{}.Parts(must(must(sp, err).Next()))
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

// All 13 adjustable bits of a SnowflakeSI can go to the index, or to the
// machine.
func TestSISplits(t *testing.T) {
	for _, bits := range []int{0, 1, 12, 13} {
		layout := SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: bits, IndexBits: 13 - bits}
		c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
		g := must(NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: layout, Machine: 1<<bits - 1, Options: Options{clock: c.clock(), MaxWait: -1}}))
		dst := make([]SnowflakeSI, 1<<(13-bits)+1)
		n, err := g.Fill(t.Context(), dst)
		if n != len(dst)-1 || !errors.Is(err, ErrSequenceExhausted) {
			t.Errorf("%d machine bits: %d IDs in a millisecond, %v", bits, n, err)
		}
		for i, id := range dst[:n] {
			if p := must(layout.Parts(id)); !p.Time.Equal(c.wall) || p.Machine != 1<<bits-1 || p.Index != i || id > 1<<53-1 {
				t.Fatalf("%d machine bits, ID %d: %+v", bits, i, p)
			}
		}
	}
}

func TestLocalSpread64(t *testing.T) {
	a, b := must(LocalSpread64Generator(7, 3)), must(LocalSpread64Generator(7, 3))
	c := must(LocalSpread64Generator(3, 7))
	if a != b || a == c {
		t.Error("a pair doesn't have one generator of its own")
	}
	p, _ := Spread64Layout{}.Parts(must(a.Next()))
	if p.Generator != 7 || p.Cluster != 3 {
		t.Errorf("%+v, want generator 7, cluster 3", p)
	}
}

func TestUID60Random(t *testing.T) {
	c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
	bits := "\x07" + strings.Repeat("\xff", 600)
	g, err := NewUID60Generator(UID60Config{Random: strings.NewReader(bits), Options: Options{clock: c.clock()}})
	// The first byte is the start.
	p, _ := UID60Layout{}.Parts(must(must(g, err).Next()))
	if p.Sequence != 7 || p.Random != 511 {
		t.Errorf("%+v of the bytes 07 ff ff", p)
	}

	// Milliseconds begin anywhere in 0 to 255, and each ID has random bits of
	// its own: another than its neighbour's, and than those of the same
	// number before.
	starts, randoms, same := map[int]bool{}, map[int]bool{}, 0
	before := make([]int, 512)
	g = must(NewUID60Generator(UID60Config{Options: Options{clock: c.clock()}}))
	const rounds = 1000
	for range rounds {
		a, b := must(g.Next()), must(g.Next())
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
		t.Errorf("%d milliseconds began with %d numbers, the largest %d", rounds, len(starts), most)
	}
	// Some 430 of 512 are expected, and 4 that are the same by chance.
	if len(randoms) < 350 || same > 25 {
		t.Errorf("%d IDs had %d random numbers, %d times the same as a neighbour", rounds, len(randoms), same)
	}

	broken := must(NewUID60Generator(UID60Config{Random: iotest.ErrReader(io.ErrClosedPipe)}))
	if id, err := broken.Next(); !errors.Is(err, io.ErrClosedPipe) || id != 0 {
		t.Errorf("without randomness: %v, %v", id, err)
	}
	short := must(NewUID60Generator(UID60Config{Random: strings.NewReader("abc")}))
	if n, err := short.Fill(t.Context(), make([]UID60, 5)); !errors.Is(err, io.ErrUnexpectedEOF) || n != 0 {
		t.Errorf("with too little randomness: %d, %v", n, err)
	}
	if _, err := NewUID60Generator(UID60Config{Options: Options{Lease: &fakeLease{}}}); !errors.Is(err, ErrNode) {
		t.Errorf("with a lease: %v", err)
	}
}

func TestSnoGenerator(t *testing.T) {
	c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
	part := SnoPartition{'A', 10}
	g := must(NewSnoGenerator(SnoConfig{Meta: 5, Partition: &part, SequenceMin: 100, SequenceMax: 103, Options: Options{clock: c.clock()}}))
	view := g.WithMeta(7)
	dst := make([]Sno, 1)
	if n, err := view.Fill(t.Context(), dst); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	ids := []Sno{must(g.Next()), must(g.NextMeta(6)), must(view.Next()), dst[0]}
	for i, want := range []struct {
		meta byte
		seq  uint16
	}{{5, 101}, {6, 102}, {7, 103}, {7, 100}} {
		if id := ids[i]; id.Meta() != want.meta || id.Sequence() != want.seq || id.Partition() != part {
			t.Errorf("ID %d: meta %d, sequence %d, partition %v; want %v", i, id.Meta(), id.Sequence(), id.Partition(), want)
		}
	}
	if next := must(g.Next()); next.Sequence() != 100 || !next.Time().Equal(ids[3].Time().Add(4*time.Millisecond)) {
		t.Errorf("after the range is full: %+v", next)
	}

	for _, r := range []struct {
		min, max uint16
		lo, hi   uint16 // 0, 0: refused
	}{
		{0, 0, 0, 65535}, {10, 0, 10, 65535}, {65535, 0, 0, 65535}, {20, 10, 10, 20}, {0, 3, 0, 3}, {0, 2, 0, 0}, {7, 7, 0, 0}, {65535, 65532, 65532, 65535},
		{65533, 0, 0, 0}, {65532, 0, 65532, 65535},
	} {
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

// The series begins where no test has a partition of its own.
func init() { partitions.first, partitions.begun = 30_000, true }

// partitionsAt has the series go on at a number, as if no generator had been
// made, until the test ends.
func partitionsAt(t *testing.T, first uint16) {
	t.Helper()
	was := partitions.partitionSeries
	t.Cleanup(func() { partitions.partitionSeries = was })
	partitions.partitionSeries = partitionSeries{first: first, begun: true}
}

// explicitly are the ways in which a generator gets a partition of the caller's.
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
	partitionsAt(t, 65_000) // it goes on at 0
	seen := map[SnoPartition]bool{}
	for range 1000 {
		p := must(must(NewSnoGenerator(SnoConfig{})).Next()).Partition()
		if seen[p] {
			t.Fatalf("partition %v was given twice", p)
		}
		seen[p] = true
	}
	partitions.passed = 65535
	if _, err := NewSnoGenerator(SnoConfig{}); err != nil {
		t.Errorf("the last partition: %v", err)
	}
	if _, err := NewSnoGenerator(SnoConfig{}); !errors.Is(err, ErrPartitionsExhausted) {
		t.Errorf("one partition too many: %v", err)
	}
}

// The series skips the partitions that generators of the process have from their
// callers, or have had.
func TestSnoPartitionsSkipped(t *testing.T) {
	for name, explicit := range explicitly {
		t.Run(name, func(t *testing.T) {
			partitionsAt(t, 65_530)
			seen := map[Sno]bool{}
			fill := func(g *SnoGenerator) SnoPartition {
				dst := make([]Sno, 1000)
				must(g.Fill(t.Context(), dst))
				for _, id := range dst {
					if seen[id] {
						t.Fatalf("partition %v: %v was minted twice", id.Partition(), id)
					}
					seen[id] = true
				}
				return dst[0].Partition()
			}
			var own []uint16
			for _, n := range []uint16{65_530, 65_531, 65_533, 65_535, 0, 2, 3} {
				own = append(own, fill(must(explicit(SnoPartitionFrom(n)))).Uint16())
			}
			for _, want := range []uint16{65_532, 65_534, 1, 4, 5} {
				if got := fill(must(NewSnoGenerator(SnoConfig{}))).Uint16(); got != want {
					t.Errorf("an automatic partition is %d, want %d; explicit ones are %d", got, want, own)
				}
			}
			// If all that is left is taken, none is left.
			partitions.passed = 0xffff
			must(explicit(SnoPartitionFrom(65_529)))
			if _, err := NewSnoGenerator(SnoConfig{}); !errors.Is(err, ErrPartitionsExhausted) {
				t.Errorf("with no partition left: %v", err)
			}
		})
	}
}

// A partition that the series has given away is refused to all others.
func TestSnoPartitionsGiven(t *testing.T) {
	for name, explicit := range explicitly {
		t.Run(name, func(t *testing.T) {
			partitionsAt(t, 0x410a)
			p := must(must(NewSnoGenerator(SnoConfig{})).Next()).Partition()
			if g, err := explicit(p); g != nil || !errors.Is(err, ErrNode) || !strings.Contains(err.Error(), "partition 16650 was already assigned") || !strings.Contains(err.Error(), "set Partition on every") {
				t.Errorf("a partition that was given away: %v", err)
			}
			if _, err := explicit(SnoPartitionFrom(p.Uint16() + 1)); err != nil {
				t.Errorf("the next partition: %v", err)
			}
			if p := must(must(NewSnoGenerator(SnoConfig{})).Next()).Partition(); p.Uint16() != 0x410c {
				t.Errorf("the series goes on with %d", p.Uint16())
			}
		})
	}

	// NewSno has one too.
	was := packageSno.made.Swap(nil)
	defer packageSno.made.Store(was)
	partitionsAt(t, 7)
	must(explicitly["Partition"](SnoPartitionFrom(7)))
	if id := must(NewSno(1)); id.Partition().Uint16() != 8 {
		t.Errorf("NewSno has partition %d, want 8", id.Partition().Uint16())
	}
	if g, err := explicitly["Partition"](SnoPartitionFrom(8)); g != nil || !errors.Is(err, ErrNode) {
		t.Errorf("the partition of NewSno: %v", err)
	}

	// A generator goes on from an automatic one's snapshot, which hands the partition over.
	partitionsAt(t, 7)
	c := &scripted{wall: snoStart}
	g := must(NewSnoGenerator(SnoConfig{Options: Options{clock: c.clock()}}))
	first := must(g.Next())
	for range 2 {
		g = handOver(t, g, c, Options{})
		if id := must(g.Next()); id.Partition() != first.Partition() || id.Compare(first) <= 0 {
			t.Errorf("%v after %v", id, first)
		}
	}
	if g, err := explicitly["Partition"](first.Partition()); g != nil || !errors.Is(err, ErrNode) {
		t.Errorf("given and handed over: %v, %v", g, err)
	}

	// A config that is refused, or a lease, takes no partition.
	partitionsAt(t, 7)
	p := SnoPartitionFrom(7)
	l := &attachedLease{fakeLease: newLease(7, snoTime(-1), snoTime(100)), minted: func() int64 { return 0 }}
	for _, c := range []SnoConfig{
		{SequenceMin: 7, SequenceMax: 7}, {Partition: &p, SequenceMin: 7, SequenceMax: 7}, {Options: Options{NotBefore: snoMinter.end.Add(time.Hour)}},
		{Partition: &p, Options: Options{NotBefore: snoMinter.end.Add(time.Hour)}},
	} {
		if g, err := NewSnoGenerator(c); g != nil || err == nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	must(NewSnoGenerator(SnoConfig{}))
	if g, err := NewSnoGenerator(SnoConfig{Options: Options{Lease: l}}); g != nil || !errors.Is(err, ErrNode) {
		t.Errorf("a lease of a number that is given away, %v: it is attached before it is refused", err)
	}
}

// Generators of both kinds are made at the same time.
func TestSnoPartitionsConcurrent(t *testing.T) {
	partitionsAt(t, 0)
	var mu sync.Mutex
	kinds := map[SnoPartition][2]bool{}
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
				g, err := NewSnoGenerator(c)
				if errors.Is(err, ErrNode) {
					continue
				}
				mu.Lock()
				k := kinds[must(g.Next()).Partition()]
				if explicit {
					k[1] = true
				} else if k[0] {
					t.Error("the series gave a partition twice")
				} else {
					k[0] = true
				}
				kinds[must(g.Next()).Partition()] = k
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for p, k := range kinds {
		if k[0] && k[1] {
			t.Errorf("partition %v is both automatic and explicit", p)
		}
	}
}

func TestNewSno(t *testing.T) {
	a, b := must(NewSno(1)), must(NewSno(2))
	if a.Meta() != 1 || b.Meta() != 2 || a.Partition() != b.Partition() || a.WithMeta(2).Compare(b) >= 0 {
		t.Errorf("%v, then %v", a, b)
	}
}
