package idtype

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/internal/race"
)

// scaled returns short with -short, and thorough without it.
func scaled[T any](short, thorough T) T {
	if testing.Short() {
		return short
	}
	return thorough
}

// scaledAlone is scaled for tests in which nothing runs concurrently, so that they are thorough
// only without the race detector: it finds nothing and takes ten times as long. make unit
// also runs them without it.
func scaledAlone[T any](short, thorough T) T {
	if race.Enabled {
		return short
	}
	return scaled(short, thorough)
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

// A pair is the part of an ID that a generator never repeats.
type pair struct {
	unit   int64
	tick   bool
	number int64
}

// A plan describes a format for the tests.
type plan struct {
	epoch    time.Time
	step     time.Duration // the length of a unit
	last     int64         // the last unit
	min, max int64         // the numbers of a unit
	toggles  bool          // the format has a tick-tock bit
	random   bool          // a unit begins at a number from 0 to 255, or at 0 directly after a full unit
	skips    bool          // pair (0, 0) is the zero ID
}

func (p plan) capacity() int { return int(p.max - p.min + 1) }
func (p plan) time(unit int64) time.Time {
	return time.UnixMilli(p.epoch.UnixMilli() + unit*p.step.Milliseconds())
}

// end returns the start of the last unit.
func (p plan) end() time.Time { return p.time(p.last) }

// A record is an ID of any format, so that the compiler makes the tests of generators once,
// not once per format. The zero record is the zero ID.
type record struct {
	pair
	raw [16]byte // the ID, after zeros
}

func (r record) String() string { return fmt.Sprintf("%v of %x", r.pair, r.raw) }

// in returns the record if it has its generator's node bits, and panics otherwise.
func (r record) in(node, want int) record {
	if node != want {
		panic(fmt.Sprintf("expected node bits %#x in %v, got %#x", want, r, node))
	}
	return r
}

// recordOf returns the record of an ID, given as an integer.
func recordOf(id uint64, p pair) (r record) {
	r.pair = p
	binary.BigEndian.PutUint64(r.raw[8:], id)
	return r
}

// A source is a generator of any format.
type source interface {
	Generator[record]
	Monitored
	// calls returns functions that call Next, and Fill for ten IDs, of the format's
	// generator.
	calls() (next, fill func() error)
}

// A typed is the source of a Generator[T].
type typed[T comparable] struct {
	Monitored
	of     Generator[T]
	record func(T) record
}

func (g typed[T]) Next() (record, error) {
	id, err := g.of.Next()
	if err != nil && id == *new(T) {
		return record{}, err
	}
	return g.record(id), err
}

func (g typed[T]) Fill(ctx context.Context, dst []record) (int, error) {
	ids := make([]T, len(dst))
	n, err := g.of.Fill(ctx, ids)
	for i, id := range ids {
		if i < n || id != *new(T) {
			dst[i] = g.record(id)
		}
	}
	return n, err
}

func (g typed[T]) calls() (next, fill func() error) {
	ctx, dst := context.Background(), make([]T, 10)
	return func() error { _, err := g.of.Next(); return err }, func() error { _, err := g.of.Fill(ctx, dst); return err }
}

// maker returns a constructor of sources.
func maker[T comparable, G interface {
	Generator[T]
	Monitored
	comparable
}](make func(Options) (G, error), record func(T) record) func(Options) (source, error) {
	return func(o Options) (source, error) {
		g, err := make(o)
		if g == *new(G) {
			return nil, err
		}
		return typed[T]{g, g, record}, err
	}
}

// A subject creates generators of a format for the tests.
type subject struct {
	plan
	name     string
	make     func(Options) (source, error)
	lease    int  // the lease number that gives a generator the same node bits
	anchored bool // the generator reads the wall clock only once per unit
}

func snowflakeSubject(l SnowflakeLayout, datacenter, worker int) subject {
	l = l.normal()
	nodeBits, node := l.DatacenterBits+l.WorkerBits, datacenter<<l.WorkerBits|worker
	return subject{
		name:  "Snowflake",
		plan:  plan{epoch: l.Epoch, step: time.Millisecond, last: 1<<(63-nodeBits-l.SequenceBits) - 1, max: 1<<l.SequenceBits - 1, skips: node == 0},
		lease: node,
		make: maker(func(o Options) (*SnowflakeGenerator, error) {
			c := SnowflakeConfig{Layout: l, Options: o}
			if o.Lease == nil {
				c.Datacenter, c.Worker = datacenter, worker
			}
			return NewSnowflakeGenerator(c)
		}, func(id Snowflake) record {
			p := pair{unit: int64(id) >> (nodeBits + l.SequenceBits), number: int64(id) & (1<<l.SequenceBits - 1)}
			return recordOf(uint64(id), p).in(int(id>>l.SequenceBits&(1<<nodeBits-1)), node)
		}),
	}
}

func siSubject(machineBits, indexBits, machine int) subject {
	l := SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: machineBits, IndexBits: indexBits}
	return subject{
		name:  "SnowflakeSI",
		plan:  plan{epoch: l.BaseClock, step: time.Millisecond, last: 1<<40 - 1, max: 1<<indexBits - 1, skips: machine == 0},
		lease: machine,
		make: maker(func(o Options) (*SnowflakeSIGenerator, error) {
			c := SnowflakeSIConfig{Layout: l, Options: o}
			if o.Lease == nil {
				c.Machine = machine
			}
			return NewSnowflakeSIGenerator(c)
		}, func(id SnowflakeSI) record {
			p := pair{unit: int64(id) >> 13, number: int64(id) & (1<<indexBits - 1)}
			return recordOf(uint64(id), p).in(int(id>>indexBits&(1<<machineBits-1)), machine)
		}),
	}
}

// uid60Subject returns a subject whose generators read random bits from the results of
// random, if it isn't nil.
func uid60Subject(random func() io.Reader) subject {
	return subject{
		name: "UID60",
		plan: plan{epoch: utc("2018-03-01T00:00:00Z"), step: time.Millisecond, last: 1<<42 - 1, max: 511, random: true, skips: true},
		make: maker(func(o Options) (*UID60Generator, error) {
			c := uid60Config(o)
			if random != nil {
				c.Random = random()
			}
			return NewUID60Generator(c)
		}, func(id UID60) record {
			return recordOf(uint64(id), pair{unit: int64(id) >> 18, number: int64(id) >> 9 & 511})
		}),
	}
}

func spreadSubject(generator, cluster int) subject {
	node := generator<<4 | cluster
	return subject{
		name:  "Spread64",
		plan:  plan{epoch: time.UnixMilli(0), step: time.Millisecond, last: 1<<42 - 1, max: 63, skips: node == 0},
		lease: generator,
		make: maker(func(o Options) (*Spread64Generator, error) {
			c := Spread64Config{Cluster: cluster, Options: o}
			if o.Lease == nil {
				c.Generator = generator
			}
			return NewSpread64Generator(c)
		}, func(id Spread64) record {
			p := pair{unit: int64(bits.Reverse64(uint64(id)) & (1<<42 - 1)), number: int64(id) >> 16 & 63}
			return recordOf(uint64(id), p).in(int(id&(1<<16-1)), node) // includes the reserved bits, which are 0
		}),
	}
}

func snoSubject(partition SnoPartition, lo, hi uint16) subject {
	return subject{
		name: "Sno",
		plan: plan{epoch: utc("2010-01-01T00:00:00Z"), step: 4 * time.Millisecond, last: 1<<39 - 1, min: int64(lo), max: int64(hi),
			toggles: true, skips: partition == SnoPartition{}},
		lease: int(partition.Uint16()),
		make: maker(func(o Options) (*SnoGenerator, error) {
			c := SnoConfig{SequenceMin: lo, SequenceMax: hi, Options: o}
			if o.Lease == nil {
				c.Partition = &partition
			}
			return NewSnoGenerator(c)
		}, snoRecord(partition)),
	}
}

// snoRecord returns a function that returns the record of a Sno of the partition.
func snoRecord(partition SnoPartition) func(Sno) record {
	return func(id Sno) (r record) {
		copy(r.raw[6:], id[:])
		head := binary.BigEndian.Uint64(id[:]) >> 24
		r.pair = pair{int64(head >> 1), head&1 == 1, int64(binary.BigEndian.Uint16(id[8:]))}
		return r.in(int(binary.BigEndian.Uint16(id[6:])), int(partition.Uint16()))
	}
}

// uuidSubject is a subject for the tests of uniqueness only. A UUIDGenerator has no
// sequence: the pair is the instant, which it never repeats either.
func uuidSubject() subject {
	return subject{
		name: "UUID",
		plan: plan{epoch: time.UnixMilli(0), step: time.Millisecond, last: 1<<48 - 1, max: 4095},
		make: maker(func(o Options) (*UUIDGenerator, error) { return NewUUIDGenerator(uuidConfig(o)) },
			func(id UUID) record {
				head := binary.BigEndian.Uint64(id[:])
				return record{pair{unit: int64(head >> 16), number: int64(head & 4095)}, id}
			}),
	}
}

var (
	snoPlan = snoSubject(SnoPartition{}, 0, 99).plan
	// This Sno has only 100 numbers per unit, because filling 65,536 takes too long.
	formats = []subject{
		snowflakeSubject(SnowflakeLayout{}, 21, 10), siSubject(5, 8, 21), uid60Subject(nil), spreadSubject(42, 9), snoSubject(SnoPartition{0xA5, 0x5A}, 0, 99),
	}
	// smallFormats have units with few numbers, where the format allows it. Their node bits
	// are zero, so all but the last could create the zero ID.
	smallFormats = []subject{
		snowflakeSubject(SnowflakeLayout{DatacenterBits: 9, WorkerBits: 10, SequenceBits: 3}, 0, 0), siSubject(9, 4, 0), uid60Subject(nil), spreadSubject(0, 0),
		snoSubject(SnoPartition{}, 0, 9), snoSubject(SnoPartition{'A', 10}, 60, 99),
	}
)

func each(t *testing.T, formats []subject, test func(subject, *testing.T)) {
	for _, s := range formats {
		t.Run(s.name, func(t *testing.T) { test(s, t) })
	}
}

// forget makes later generators independent of earlier ones, as in another process.
func forget() {
	sequencers.Lock()
	defer sequencers.Unlock()
	sequencers.of = nil
}

// new returns a generator that shares nothing with earlier ones.
func (s subject) new(t testing.TB, o Options) source {
	t.Helper()
	forget()
	g, err := s.make(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// scripted returns a generator with a scripted clock, and the clock.
func (s subject) scripted(t testing.TB, maxWait time.Duration) (source, *scripted) {
	t.Helper()
	c := s.clockAt(utc("2026-11-21T10:11:12.344Z"))
	return s.new(t, Options{MaxWait: maxWait, clock: c.clock()}), c
}

func (s subject) clockAt(wall time.Time) *scripted {
	return &scripted{wall: wall, anchored: s.anchored}
}

// at returns the time of an ID.
func (s subject) at(id record) time.Time { return s.time(id.unit) }

// fillUnit creates IDs until the unit has no numbers left.
func (s subject) fillUnit(t testing.TB, g source) {
	t.Helper()
	for Must(g.Next()).number < s.max {
	}
}

// increases reports whether b was created after a.
func (s subject) increases(a, b record) bool {
	return a.tick != b.tick || a.unit < b.unit || a.unit == b.unit && a.number < b.number
}

// kindOfError returns the sentinel of a constructor's error: each error has one kind, but a
// node number out of range also wraps ErrRange.
func kindOfError(err error) error {
	node, limit, config := errors.Is(err, ErrNode), errors.Is(err, ErrRange), errors.Is(err, ErrConfig)
	switch {
	case node && limit && !config:
		return ErrNode
	case limit && !config:
		return ErrRange
	case config && !limit:
		return ErrConfig
	}
	return err
}

// stats returns the Stats of a generator of any type.
func stats(g any) GeneratorStats { return g.(interface{ Stats() GeneratorStats }).Stats() }

// A scripted clock moves only when a test or a wait moves it.
type scripted struct {
	mu       sync.Mutex
	anchored bool
	wall     time.Time
	ticks    time.Duration // the monotonic clock
	frozen   bool          // waits don't move the wall
	over     time.Duration // the time by which waits are too long
	slept    int           // the number of waits
	asleep   time.Duration // the total time of waits
	onSleep  func()        // called when a wait begins, if not nil
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

// step moves the wall clock. A step back also moves the monotonic clock, so that a
// generator that reads the wall clock once per unit notices the step.
func (c *scripted) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
	if d < 0 {
		d = 4 * time.Millisecond
	}
	c.ticks += d
}

// uid60Config returns a config with the options of other formats.
func uid60Config(o Options) UID60Config {
	return UID60Config{Clock: o.Clock, MaxWait: o.MaxWait, NotBefore: o.NotBefore, clock: o.clock}
}

// uuidConfig is uid60Config for UUIDs, which never wait.
func uuidConfig(o Options) UUIDConfig {
	return UUIDConfig{Clock: o.Clock, NotBefore: o.NotBefore, clock: o.clock}
}
