package idtype

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"
)

// scaled returns the thorough count in CI, where CI=true, and the short one elsewhere.
func scaled[T any](short, thorough T) T {
	if os.Getenv("CI") == "true" {
		return thorough
	}
	return short
}

// await waits until cond holds, for at most two minutes.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("expected %s within two minutes", what)
		}
	}
}

// A pair is what a generator gives away once.
type pair struct {
	unit   int64
	tick   bool
	number int64
}

// A plan is what the tests know of a format.
type plan struct {
	epoch    time.Time
	step     time.Duration // of a unit
	last     int64         // unit
	min, max int64         // numbers of a unit
	toggles  bool          // has a tick-tock bit
	random   bool          // a unit begins at a number from 0 to 255, but at 0 right after a full one
	skips    bool          // the very first pair would make the zero ID
}

func (p plan) capacity() int { return int(p.max - p.min + 1) }
func (p plan) time(unit int64) time.Time {
	return time.UnixMilli(p.epoch.UnixMilli() + unit*p.step.Milliseconds())
}

// end is the beginning of the last unit.
func (p plan) end() time.Time { return p.time(p.last) }

// A subject is a format's generator as the tests need it.
type subject[T comparable] struct {
	plan
	make     func(Options) (Generator[T], error)
	lease    int          // the number for a lease, which gives its generator the same node bits
	pair     func(T) pair // by the bits of an ID; panics if the node bits are not the generator's
	anchored bool         // on a clock of which the wall is read once a unit
}

// checkNode panics if the node bits of an ID differ from its generator's.
func checkNode[T fmt.Stringer](id T, got, want int) {
	if got != want {
		panic(fmt.Sprintf("expected node bits %#x in %v, got %#x", want, id, got))
	}
}

func snowflakeSubject(l SnowflakeLayout, datacenter, worker int) subject[Snowflake] {
	l = l.normal()
	nodeBits, node := l.DatacenterBits+l.WorkerBits, datacenter<<l.WorkerBits|worker
	return subject[Snowflake]{
		plan:  plan{epoch: l.Epoch, step: time.Millisecond, last: 1<<(63-nodeBits-l.SequenceBits) - 1, max: 1<<l.SequenceBits - 1, skips: node == 0},
		lease: node,
		make: func(o Options) (Generator[Snowflake], error) {
			c := SnowflakeConfig{Layout: l, Options: o}
			if o.Lease == nil {
				c.Datacenter, c.Worker = datacenter, worker
			}
			return NewSnowflakeGenerator(c)
		},
		pair: func(id Snowflake) pair {
			checkNode(id, int(id>>l.SequenceBits&(1<<nodeBits-1)), node)
			return pair{unit: int64(id) >> (nodeBits + l.SequenceBits), number: int64(id) & (1<<l.SequenceBits - 1)}
		},
	}
}

func siSubject(machineBits, indexBits, machine int) subject[SnowflakeSI] {
	l := SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: machineBits, IndexBits: indexBits}
	return subject[SnowflakeSI]{
		plan:  plan{epoch: l.BaseClock, step: time.Millisecond, last: 1<<40 - 1, max: 1<<indexBits - 1, skips: machine == 0},
		lease: machine,
		make: func(o Options) (Generator[SnowflakeSI], error) {
			c := SnowflakeSIConfig{Layout: l, Options: o}
			if o.Lease == nil {
				c.Machine = machine
			}
			return NewSnowflakeSIGenerator(c)
		},
		pair: func(id SnowflakeSI) pair {
			checkNode(id, int(id>>indexBits&(1<<machineBits-1)), machine)
			return pair{unit: int64(id) >> 13, number: int64(id) & (1<<indexBits - 1)}
		},
	}
}

func uid60Subject() subject[UID60] {
	return subject[UID60]{
		plan: plan{epoch: utc("2018-03-01T00:00:00Z"), step: time.Millisecond, last: 1<<42 - 1, max: 511, random: true, skips: true},
		make: func(o Options) (Generator[UID60], error) { return NewUID60Generator(UID60Config{Options: o}) },
		pair: func(id UID60) pair { return pair{unit: int64(id) >> 18, number: int64(id) >> 9 & 511} },
	}
}

func spreadSubject(generator, cluster int) subject[Spread64] {
	node := generator<<4 | cluster
	return subject[Spread64]{
		plan:  plan{epoch: time.UnixMilli(0), step: time.Millisecond, last: 1<<42 - 1, max: 63, skips: node == 0},
		lease: generator,
		make: func(o Options) (Generator[Spread64], error) {
			c := Spread64Config{Cluster: cluster, Options: o}
			if o.Lease == nil {
				c.Generator = generator
			}
			return NewSpread64Generator(c)
		},
		pair: func(id Spread64) pair {
			checkNode(id, int(id&(1<<16-1)), node) // with the reserved bits, which are 0
			return pair{unit: int64(bits.Reverse64(uint64(id)) & (1<<42 - 1)), number: int64(id) >> 16 & 63}
		},
	}
}

func snoSubject(partition SnoPartition, lo, hi uint16) subject[Sno] {
	return subject[Sno]{
		plan: plan{epoch: utc("2010-01-01T00:00:00Z"), step: 4 * time.Millisecond, last: 1<<39 - 1, min: int64(lo), max: int64(hi),
			toggles: true, skips: partition == SnoPartition{}},
		lease: int(partition.Uint16()),
		make: func(o Options) (Generator[Sno], error) {
			c := SnoConfig{SequenceMin: lo, SequenceMax: hi, Options: o}
			if o.Lease == nil {
				c.Partition = &partition
			}
			return NewSnoGenerator(c)
		},
		pair: func(id Sno) pair {
			checkNode(id, int(binary.BigEndian.Uint16(id[6:])), int(partition.Uint16()))
			head := binary.BigEndian.Uint64(id[:]) >> 24
			return pair{int64(head >> 1), head&1 == 1, int64(binary.BigEndian.Uint16(id[8:]))}
		},
	}
}

// A suite is the tests that all formats have in common.
type suite interface {
	testClocks(*testing.T)
	testLease(*testing.T)
	testBubble(*testing.T)
	testModel(*testing.T)
	testNeverZero(*testing.T)
	testMovingClock(*testing.T)
	testUnique(*testing.T)
	testSteppingWall(*testing.T)
	name() string
}

var (
	snoPlan = snoSubject(SnoPartition{}, 0, 99).plan
	// Of a Sno's numbers, a unit has too many to be filled often.
	formats = []suite{
		snowflakeSubject(SnowflakeLayout{}, 21, 10), siSubject(5, 8, 21), uid60Subject(), spreadSubject(42, 9), snoSubject(SnoPartition{0xA5, 0x5A}, 0, 99),
	}
	// smallFormats have units that are soon full, where the format allows that. Their node
	// bits are zero, so that all but the last could make the zero ID.
	smallFormats = []suite{
		snowflakeSubject(SnowflakeLayout{DatacenterBits: 9, WorkerBits: 10, SequenceBits: 3}, 0, 0), siSubject(9, 4, 0), uid60Subject(), spreadSubject(0, 0),
		snoSubject(SnoPartition{}, 0, 9), snoSubject(SnoPartition{'A', 10}, 60, 99),
	}
)

func each(t *testing.T, formats []suite, test func(suite, *testing.T)) {
	for _, s := range formats {
		t.Run(s.name(), func(t *testing.T) { test(s, t) })
	}
}

func (s subject[T]) name() string { return reflect.TypeFor[T]().Name() }

func (s subject[T]) new(t testing.TB, o Options) Generator[T] {
	t.Helper()
	g, err := s.make(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// scripted makes a generator on a scripted clock.
func (s subject[T]) scripted(t testing.TB, maxWait time.Duration) (Generator[T], *scripted) {
	t.Helper()
	c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	return s.new(t, Options{MaxWait: maxWait, clock: c.clock()}), c
}

func (s subject[T]) clockAt(wall time.Time) *scripted {
	return &scripted{wall: wall, anchored: s.anchored}
}

// at is the time of an ID.
func (s subject[T]) at(id T) time.Time { return s.time(s.pair(id).unit) }

// fillUnit mints until the unit has no numbers left.
func (s subject[T]) fillUnit(t testing.TB, g Generator[T]) {
	t.Helper()
	for s.pair(must(g.Next())).number < s.max {
	}
}

// increases reports whether b was minted after a.
func (s subject[T]) increases(a, b T) bool {
	p, q := s.pair(a), s.pair(b)
	return p.tick != q.tick || p.unit < q.unit || p.unit == q.unit && p.number < q.number
}

// stats are the Stats of a generator of any type.
func stats(g any) GeneratorStats { return g.(interface{ Stats() GeneratorStats }).Stats() }

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
	onSleep  func()        // called when a wait begins; nil: nothing is
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
			if c.onSleep != nil {
				c.onSleep()
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
