package idtype

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A fakeLease is a Lease controlled by a test.
type fakeLease struct {
	number int
	after  time.Time
	until  atomic.Int64
}

func newLease(number int, after, until time.Time) *fakeLease {
	l := &fakeLease{number: number, after: after}
	l.until.Store(until.UnixMilli())
	return l
}

func (l *fakeLease) Number() int  { return l.number }
func (l *fakeLease) After() int64 { return l.after.UnixMilli() }
func (l *fakeLease) Until() int64 { return l.until.Load() }
func (l *fakeLease) lose()        { l.until.Store(math.MinInt64) }

func (l *fakeLease) Attach(string, func() int64) error { return nil }
func (l *fakeLease) Err() error                        { return nil }

// A generator takes its number from its lease, and rejects a second source of numbers.
func TestLeaseNumber(t *testing.T) {
	now := utc("2026-11-21T10:11:12.344Z")
	long := func(n int) Options {
		return Options{Lease: newLease(n, now.Add(-time.Hour), now.Add(time.Hour)), clock: (&scripted{wall: now}).clock()}
	}
	snowflake, err := NewSnowflakeGenerator(SnowflakeConfig{Options: long(2<<5 | 3)})
	if p := Must(SnowflakeLayout{}.Parts(Must(Must(snowflake, err).Next()))); p.Datacenter != 2 || p.Worker != 3 {
		t.Errorf("Snowflake: %+v, want datacenter 2, worker 3", p)
	}
	si, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Options: long(31)})
	if p := Must(siLayout.Parts(Must(Must(si, err).Next()))); p.Machine != 31 {
		t.Errorf("SnowflakeSI: %+v, want machine 31", p)
	}
	spread, err := NewSpread64Generator(Spread64Config{Cluster: 5, Options: long(63)})
	if p := Must(Spread64Layout{}.Parts(Must(Must(spread, err).Next()))); p.Generator != 63 || p.Cluster != 5 {
		t.Errorf("Spread64: %+v, want generator 63, cluster 5", p)
	}
	sno, err := NewSnoGenerator(SnoConfig{Options: long(65535)})
	if id := Must(Must(sno, err).Next()); id.Partition().Uint16() != 65535 {
		t.Errorf("Sno: partition %v, want 65535", id.Partition())
	}

	wide := SnowflakeLayout{Epoch: now, DatacenterBits: 2, WorkerBits: 6, SequenceBits: 12}
	snowflake, err = NewSnowflakeGenerator(SnowflakeConfig{Layout: wide, Options: long(3<<6 | 63)})
	if p := Must(wide.Parts(Must(Must(snowflake, err).Next()))); p.Datacenter != 3 || p.Worker != 63 {
		t.Errorf("Snowflake: %+v, want datacenter 3, worker 63", p)
	}
	_, err1 := NewSnowflakeGenerator(SnowflakeConfig{Worker: 1, Options: long(1)})
	_, err2 := NewSnowflakeGenerator(SnowflakeConfig{Datacenter: 1, Options: long(1)})
	_, err3 := NewSnowflakeGenerator(SnowflakeConfig{Options: long(1024)})
	_, err4 := NewSnowflakeGenerator(SnowflakeConfig{Layout: wide, Options: long(256)})
	_, err5 := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Machine: 1, Options: long(1)})
	_, err6 := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Options: long(32)})
	_, err7 := NewSpread64Generator(Spread64Config{Generator: 1, Options: long(1)})
	_, err8 := NewSpread64Generator(Spread64Config{Options: long(64)})
	_, err9 := NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, Options: long(1)})
	_, err10 := NewSnoGenerator(SnoConfig{Options: long(-1)})
	for i, err := range []error{err3, err4, err6, err8, err10} {
		if kindOfError(err) != ErrNode {
			t.Errorf("number out of range, constructor %d: %v, want ErrNode", i+1, err)
		}
	}
	for i, err := range []error{err1, err2, err5, err7, err9} {
		if kindOfError(err) != ErrConfig {
			t.Errorf("second number, constructor %d: %v, want ErrConfig", i+1, err)
		}
	}
}

func TestLease(t *testing.T) {
	each(t, slices.DeleteFunc(slices.Clone(formats), func(s subject) bool { return s.name == "UID60" }), subject.testLease)
}

func (s subject) testLease(t *testing.T) {
	for _, s.anchored = range []bool{false, true} {
		name := "own clock"
		if s.anchored {
			name = "anchored clock"
		}
		t.Run(name, func(t *testing.T) {
			t.Run("bounds", s.testLeaseBounds)
			t.Run("lost", s.testLeaseLost)
			t.Run("renewed", s.testLeaseRenewed)
			t.Run("passed units", s.testLeasePassed)
			t.Run("attached", s.testLeaseAttached)
			t.Run("reasons", s.testLeaseReasons)
		})
	}
}

func (s subject) leased(t *testing.T, after, until, maxWait time.Duration) (source, *scripted, *fakeLease) {
	c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	l := newLease(s.lease, c.wall.Add(after), c.wall.Add(until))
	return s.new(t, Options{Lease: l, MaxWait: maxWait, clock: c.clock()}), c, l
}

// testLeaseBounds checks that the generator creates IDs only after the unit of After, and
// up to and including the unit of Until.
func (s subject) testLeaseBounds(t *testing.T) {
	g, c, l := s.leased(t, 2*s.step, 5*s.step, -1)
	for i := range 10 {
		id, err := g.Next()
		switch {
		case i <= 2:
			// The error names both times.
			if !errors.Is(err, ErrClockBackwards) || !strings.Contains(err.Error(), stamp(c.wall)) || !strings.Contains(err.Error(), stamp(l.after)) {
				t.Errorf("unit %d, not after the lease's After: %v, %v", i, id, err)
			}
		case i <= 5:
			if err != nil || !s.at(id).Equal(c.wall) {
				t.Errorf("unit %d, within the lease: %v at %v, %v", i, id, c.wall, err)
			}
		default:
			if errors.Is(err, ErrLeaseLost) || !errors.Is(err, ErrLeaseNotRenewed) || !strings.Contains(err.Error(), stamp(c.wall)) || !strings.Contains(err.Error(), stamp(time.UnixMilli(l.Until()))) {
				t.Errorf("unit %d, past the lease's end: %v, %v", i, id, err)
			}
		}
		c.step(s.step)
	}
	// A toggle doesn't allow units up to After either.
	c.step(-8 * s.step)
	if id, err := g.Next(); !errors.Is(err, ErrClockBackwards) {
		t.Errorf("back in the unit of After: %v, %v", id, err)
	}

	// The later of the two start bounds applies.
	c = s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	for _, bounds := range [][2]time.Duration{{3 * s.step, 0}, {0, 3 * s.step}} {
		g := s.new(t, Options{Lease: newLease(s.lease, c.wall.Add(bounds[0]), c.wall.Add(time.Hour)), NotBefore: c.wall.Add(bounds[1]), clock: c.clock()})
		start := c.wall
		if at := s.at(Must(g.Next())); !at.After(start.Add(3*s.step)) || at.After(c.wall) {
			t.Errorf("bounds %v: ID with time %v, start %v", bounds, at, start)
		}
	}
	// A lease can begin before the epoch, but not past the end of the format.
	g = s.new(t, Options{Lease: newLease(s.lease, s.epoch.Add(-time.Hour), c.wall.Add(time.Hour)), clock: c.clock()})
	Must(g.Next())
	if _, err := s.make(Options{Lease: newLease(s.lease, s.end().Add(s.step), s.end().Add(time.Hour))}); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("a lease that begins past the end: %v", err)
	}
}

// testLeaseLost checks that a lost lease stops the generator at once, without a wait.
func (s subject) testLeaseLost(t *testing.T) {
	g, c, l := s.leased(t, -time.Hour, time.Hour, math.MaxInt64)
	Must(g.Next())
	l.lose()
	for range 2 {
		if id, err := g.Next(); !errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrLeaseNotRenewed) || !strings.Contains(err.Error(), "claim a number again: lease lost") {
			t.Errorf("in the same unit: %v, %v", id, err)
		}
		if n, err := g.Fill(t.Context(), make([]record, 5)); n != 0 || !errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrLeaseNotRenewed) {
			t.Errorf("Fill: %d, %v", n, err)
		}
		c.step(s.step)
	}
	if c.slept != 0 {
		t.Error("a call waited for a lost lease")
	}

	// Waiting calls fail too.
	g, c, l = s.leased(t, -time.Hour, time.Hour, time.Minute)
	c.frozen = true
	s.fillUnit(t, g)
	lost := make(chan struct{})
	c.onSleep = func() { <-lost }
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if id, err := g.Next(); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("waiting: %v, %v", id, err)
			}
		})
	}
	await(t, "three calls to wait", func() bool { return stats(g).Waits == 3 })
	l.lose()
	close(lost)
	wg.Wait()
}

// testLeaseRenewed checks that the generator continues after a late renewal.
func (s subject) testLeaseRenewed(t *testing.T) {
	g, c, l := s.leased(t, -time.Hour, 0, 50*time.Millisecond)
	Must(g.Next())
	c.step(time.Second)
	if id, err := g.Next(); !errors.Is(err, ErrLeaseNotRenewed) || c.asleep != 50*time.Millisecond {
		t.Errorf("past the lease: %v, %v after %v; want 50 ms", id, err, c.asleep)
	}
	l.until.Store(c.wall.Add(s.step - 1).UnixMilli())
	at := s.at(Must(g.Next()))
	if at.After(c.wall) || c.wall.Sub(at) >= s.step {
		t.Errorf("renewed: ID with time %v at %v", at, c.wall)
	}
}

// testLeasePassed checks that units that passed during a wait are within the lease too.
func (s subject) testLeasePassed(t *testing.T) {
	g, c, l := s.leased(t, 0, time.Hour, 0)
	c.over = 5 * s.step
	l.until.Store(c.wall.Add(9 * s.step).UnixMilli())
	after := c.wall
	dst := make([]record, 30*s.capacity())
	n, err := g.Fill(t.Context(), dst)
	if !errors.Is(err, ErrLeaseNotRenewed) || n == 0 {
		t.Fatalf("Fill past the lease: %d, %v", n, err)
	}
	for _, id := range dst[:n] {
		if at := s.at(id); !at.After(after.Truncate(s.step)) || at.UnixMilli() > l.Until() {
			t.Fatalf("ID with time %v under a lease from %v to %v", at, after, time.UnixMilli(l.Until()))
		}
	}
}

// A lease ends while several goroutines create IDs on the real clock. No ID has a time past
// the end of the lease.
func TestLeaseEnds(t *testing.T) {
	start := time.Now()
	l := newLease(7, start.Add(-time.Second), start.Add(time.Hour))
	g := Must(NewSnowflakeGenerator(SnowflakeConfig{Options: Options{Lease: l, MaxWait: 5 * time.Millisecond}}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				id, err := g.Next()
				if errors.Is(err, ErrLeaseNotRenewed) {
					return
				}
				if at := (SnowflakeLayout{}).Time(id).UnixMilli(); err != nil || at > l.Until() {
					t.Errorf("ID with time %d under a lease until %d: %v", at, l.Until(), err)
					return
				}
			}
		})
	}
	await(t, "an ID", func() bool { return g.Stats().Minted > 0 })
	l.until.Store(time.Now().UnixMilli() + 30)
	wg.Wait()
}

// An attachedLease records the arguments of Attach, and accepts one generator.
type attachedLease struct {
	*fakeLease
	layout string
	minted func() int64
}

var errAttached = errors.New("has a generator")

func (l *attachedLease) Attach(layout string, minted func() int64) error {
	l.layout = layout
	if l.minted != nil {
		return errAttached
	}
	l.minted = minted
	return nil
}

// testLeaseAttached checks the high-water mark of the generator, and that Attach can reject
// a generator.
func (s subject) testLeaseAttached(t *testing.T) {
	c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	start := c.wall
	l := &attachedLease{fakeLease: newLease(s.lease, start.Add(-time.Hour), start.Add(time.Hour))}
	o := Options{Lease: l, MaxWait: -1, clock: c.clock()}
	g := s.new(t, o)
	if got := l.minted(); got != math.MinInt64 {
		t.Errorf("high-water mark %d without an ID, want math.MinInt64", got)
	}
	if _, err := s.make(o); !errors.Is(err, errAttached) {
		t.Errorf("a second generator: %v", err)
	}
	for i := range 5 {
		Must(g.Next())
		if want := start.Add(time.Duration(i) * s.step).UnixMilli(); l.minted() != want {
			t.Errorf("high-water mark %d, want %d", l.minted(), want)
		}
		c.step(s.step)
	}
	want := l.minted()
	// A step back doesn't lower the high-water mark, even after a toggle.
	c.step(-3 * s.step)
	if _, err := g.Next(); err != nil && !errors.Is(err, ErrClockBackwards) {
		t.Error(err)
	}
	if got := l.minted(); got != want {
		t.Errorf("after a step back: high-water mark %d, want %d", got, want)
	}
	l.lose()
	if _, err := g.Next(); !errors.Is(err, ErrLeaseLost) || l.minted() != want {
		t.Errorf("after the loss: %v, high-water mark %d, want %d", err, l.minted(), want)
	}
}

// A reasonedLease is a lease with an Err method.
type reasonedLease struct {
	*fakeLease
	reason error
}

func (l reasonedLease) Err() error { return l.reason }

// testLeaseReasons checks that the error contains the reason for the end of a lease, once.
// Before the end, the error doesn't contain it.
func (s subject) testLeaseReasons(t *testing.T) {
	cause := errors.New("released")
	for _, test := range []struct {
		reason error
		says   string
	}{
		{fmt.Errorf("example: %w: %w", cause, ErrLeaseLost), "example: released: lease lost"},
		{fmt.Errorf("example: %w", cause), "example: released: lease lost"},
		{nil, "the lease of the number has ended; claim a number again: lease lost"},
	} {
		c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
		l := reasonedLease{newLease(s.lease, c.wall.Add(-time.Hour), c.wall), test.reason}
		g := s.new(t, Options{Lease: l, MaxWait: -1, clock: c.clock()})
		Must(g.Next())
		c.step(time.Second)
		if _, err := g.Next(); !errors.Is(err, ErrLeaseNotRenewed) || errors.Is(err, ErrLeaseLost) || errors.Is(err, cause) {
			t.Errorf("not renewed: want %v, got %v", ErrLeaseNotRenewed, err)
		}
		l.lose()
		_, err := g.Next()
		n, err2 := g.Fill(t.Context(), make([]record, 5))
		for _, err := range []error{err, err2} {
			if !errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrLeaseNotRenewed) || errors.Is(err, cause) != (test.reason != nil) || !strings.HasSuffix(err.Error(), fmt.Sprintf("with number %d: %s", s.lease, test.says)) {
				t.Errorf("ended: want %q, got %d, %v", test.says, n, err)
			}
		}
	}
}

// The high-water mark includes IDs from At.
func TestLeaseAttachedAt(t *testing.T) {
	now := utc("2026-11-21T10:11:12.344Z")
	l := &attachedLease{fakeLease: newLease(7, now.Add(-time.Hour), now.Add(time.Hour))}
	g := Must(NewSnoGenerator(SnoConfig{Options: Options{Lease: l, clock: (&scripted{wall: now}).clock()}}))
	Must(g.At(0, now.Add(-4*time.Second)))
	if got, want := l.minted(), now.Add(-4*time.Second).UnixMilli(); got != want {
		t.Errorf("high-water mark %d, want %d", got, want)
	}
}

// Attach gets the layout, so that a pool can reject generators with different layouts.
func TestLeaseLayout(t *testing.T) {
	now := utc("2026-11-21T10:11:12.344Z")
	p := SnoPartition{1, 2}
	for want, make := range map[string]func(Options) error{
		"snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12": func(o Options) error {
			_, err := NewSnowflakeGenerator(SnowflakeConfig{Options: o})
			return err
		},
		"snowflake: epoch 2026-11-21T10:11:12.344Z; bits: datacenter 0, worker 6, sequence 12": func(o Options) error {
			_, err := NewSnowflakeGenerator(SnowflakeConfig{Layout: SnowflakeLayout{Epoch: now, WorkerBits: 6, SequenceBits: 12}, Options: o})
			return err
		},
		"snowflake_si: base clock 2024-01-01T00:00:00.000Z; bits: machine 5, index 8": func(o Options) error {
			_, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: SnowflakeSILayout{BaseClock: utc("2024-01-01T00:00:00Z")}, Options: o})
			return err
		},
		"spread64: cluster 5": func(o Options) error {
			_, err := NewSpread64Generator(Spread64Config{Cluster: 5, Options: o})
			return err
		},
		"sno: partitions": func(o Options) error {
			_, err := NewSnoGenerator(SnoConfig{Options: o})
			return err
		},
		"sno: partition 258 in 8 ranges of its sequence": func(o Options) error {
			_, err := NewSnoGenerator(SnoConfig{Partition: &p, Ranges: 8, Options: o})
			return err
		},
	} {
		l := &attachedLease{fakeLease: newLease(0, now.Add(-time.Hour), now.Add(time.Hour))}
		if err := make(Options{Lease: l}); err != nil || l.layout != want {
			t.Errorf("%q, %v; want %q", l.layout, err, want)
		}
	}
}
