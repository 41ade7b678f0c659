package idtype

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A SnoConfig says how a [SnoGenerator] mints.
type SnoConfig struct {
	// Meta is the metabyte of Next and Fill.
	Meta byte
	// Partition keeps generators apart. Nil takes the next automatic partition: a
	// series that starts at a number taken from the time and skips partitions that
	// other generators of this process use. That suffices for one process; several
	// processes need configured partitions. A partition that was assigned
	// automatically is an [ErrNode] here, in a Snapshot and in a Lease, except in a
	// Snapshot of the generator that has it. Create generators with a configured
	// partition first.
	Partition *SnoPartition
	// SequenceMin and SequenceMax let generators share a partition, each with
	// a range of sequence numbers of its own, at least 4 long. They may come
	// in either order. A SequenceMax of 0 means 65535, unless SequenceMin is
	// 65535.
	SequenceMin, SequenceMax uint16
	// Snapshot is what another generator left behind: this one takes over its
	// partition and bounds, which are left zero here, and goes on exactly where
	// it stopped. Not with a Lease, which says itself where to go on.
	Snapshot *SnoSnapshot
	// Overflow gets a message about every 4 ms while calls wait because the
	// sequence numbers of a unit are used up, and one when none waits any more.
	// A message that the channel has no room for is dropped: give it some.
	Overflow chan<- SnoOverflow
	// Ranges has generators share one partition by a Lease: the sequence
	// numbers of Partition are divided into so many ranges of the same size, 1 to
	// 16384, and the lease's number, 0 to Ranges-1, says which is this
	// generator's. All that share the partition must give the same Ranges. 0: the
	// lease's number is the partition, which is left nil here.
	Ranges int
	Options
}

// A SnoOverflow tells that calls wait for sequence numbers.
type SnoOverflow struct {
	Now   time.Time // by the generator's clock
	Count int       // calls that wait now; 0 in the last message of a stall
	Ticks int       // milliseconds since the stall began
}

// A SnoGenerator mints [Sno]s, 65,536 in 4 ms with a partition of its own. They
// increase strictly, except when the clock steps back: then the tick-tock bit
// changes, and the generator goes on in the time that the clock shows. It is
// safe for concurrent use.
type SnoGenerator struct {
	seq       sequencer
	partition uint16
	meta      byte
}

var _ Generator[Sno] = (*SnoGenerator)(nil)

// snoMinSequences is how few sequence numbers a range may have.
const snoMinSequences = 4

// NewSnoGenerator makes a generator. It refuses sequence ranges shorter than 4
// ([ErrRange]), an automatic partition if the process has used all
// ([ErrPartitionsExhausted]), a partition that another generator got automatically
// ([ErrNode]), a Snapshot with a value out of range ([ErrRange]), numbers from two
// sources, such as a Partition and a Lease ([ErrNode]), and a clock outside of the
// format's time ([ErrBeforeEpoch], [ErrTimeExhausted]).
func NewSnoGenerator(c SnoConfig) (*SnoGenerator, error) {
	c, err := c.resolved()
	if err != nil {
		return nil, err
	}
	layout := "sno: partitions"
	if c.Ranges > 0 {
		layout = fmt.Sprintf("sno: partition %d in %d ranges of its sequence", c.Partition.Uint16(), c.Ranges)
	}
	g := &SnoGenerator{meta: c.Meta}
	if err := g.seq.init(spec{
		line: snoLine, min: uint32(c.SequenceMin), max: uint32(c.SequenceMax), ticks: true,
		from: c.Snapshot, overflow: c.Overflow, layout: layout,
		claim: func() (err error) {
			g.partition, err = c.partition()
			g.seq.skipZero = g.partition == 0 // an automatic one is known only now
			return err
		},
	}, c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// partition takes the partition of a generator that is about to be made.
func (c SnoConfig) partition() (uint16, error) {
	partitions.Lock()
	defer partitions.Unlock()
	if c.Partition == nil {
		return partitions.next()
	}
	p := c.Partition.Uint16()
	return p, partitions.take(p, c.Snapshot != nil)
}

// resolved puts what a lease or a snapshot has into the config, and the bounds
// in order.
func (c SnoConfig) resolved() (SnoConfig, error) {
	bounds := c.SequenceMin != 0 || c.SequenceMax != 0
	switch {
	case c.Ranges < 0 || c.Ranges > 1<<16/snoMinSequences:
		return c, &limitError{fmt.Sprintf("idtype: SnoConfig.Ranges: %d is out of range; want 0 to %d, because each range needs at least %d sequence numbers", c.Ranges, 1<<16/snoMinSequences, snoMinSequences), ErrRange}
	case c.Ranges > 0:
		if c.Lease == nil || c.Partition == nil {
			return c, &limitError{"idtype: SnoConfig.Ranges: Lease or Partition is not set; set both, because the lease's number selects a range of the partition", ErrNode}
		}
		n, err := leaseNumber(c.Lease, snoName, "SequenceMin and SequenceMax", bounds, c.Ranges)
		if err != nil {
			return c, err
		}
		width := 1 << 16 / c.Ranges
		c.SequenceMin, c.SequenceMax = uint16(n*width), uint16((n+1)*width-1)
	case c.Lease != nil:
		n, err := leaseNumber(c.Lease, snoName, "Partition", c.Partition != nil, 1<<16)
		if err != nil {
			return c, err
		}
		p := SnoPartitionFrom(uint16(n))
		c.Partition = &p
	}
	if s := c.Snapshot; s != nil {
		if c.Lease != nil {
			return c, &limitError{"idtype: SnoConfig.Snapshot: Lease set too; leave Snapshot nil, because the lease determines the start", ErrNode}
		}
		if c.Partition != nil || bounds {
			return c, &limitError{"idtype: SnoConfig.Snapshot: Partition, SequenceMin or SequenceMax set too; leave them zero, because the snapshot has them", ErrNode}
		}
		if err := s.check(); err != nil {
			return c, err
		}
		c.Partition, c.SequenceMin, c.SequenceMax = &s.Partition, s.SequenceMin, s.SequenceMax
	}
	var err error
	c.SequenceMin, c.SequenceMax, err = snoBounds(c.SequenceMin, c.SequenceMax)
	return c, err
}

// snoBounds gives a range of sequence numbers in order.
func snoBounds(lo, hi uint16) (uint16, uint16, error) {
	if hi == 0 && lo != 65535 {
		hi = 65535
	}
	lo, hi = min(lo, hi), max(lo, hi)
	if hi-lo < snoMinSequences-1 {
		return 0, 0, &limitError{fmt.Sprintf("idtype: SnoConfig.SequenceMin and SequenceMax: %d to %d is too short; want at least %d numbers", lo, hi, snoMinSequences), ErrRange}
	}
	return lo, hi, nil
}

// Next mints one ID with the configured metabyte; see [Generator].
func (g *SnoGenerator) Next() (Sno, error) { return g.NextMeta(g.meta) }

// NextMeta mints one ID with this metabyte.
func (g *SnoGenerator) NextMeta(meta byte) (Sno, error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return Sno{}, err
	}
	return g.compose(s, meta), nil
}

// Fill mints len(dst) IDs in order, with the configured metabyte; see
// [Generator].
func (g *SnoGenerator) Fill(ctx context.Context, dst []Sno) (int, error) {
	return g.fillMeta(ctx, dst, g.meta)
}

func (g *SnoGenerator) fillMeta(ctx context.Context, dst []Sno, meta byte) (int, error) {
	return fill(ctx, &g.seq, dst, func(dst []Sno, s slot) {
		for i := range dst {
			dst[i] = g.compose(s, meta)
			s.seq++
		}
	})
}

func (g *SnoGenerator) compose(s slot, meta byte) Sno {
	return snoOf(s.head, meta, g.partition, uint16(s.seq))
}

// Stats tells what the generator has done so far; its views count as well.
func (g *SnoGenerator) Stats() GeneratorStats { return g.seq.report() }

// Remaining is how long the format's time still lasts.
func (g *SnoGenerator) Remaining() time.Duration { return g.seq.remaining() }

// WithMeta is a view of the generator that mints with another metabyte. All
// views share the generator's sequence.
func (g *SnoGenerator) WithMeta(meta byte) Generator[Sno] { return snoView{g, meta} }

type snoView struct {
	g    *SnoGenerator
	meta byte
}

func (v snoView) Next() (Sno, error) { return v.g.NextMeta(v.meta) }

func (v snoView) Fill(ctx context.Context, dst []Sno) (int, error) {
	return v.g.fillMeta(ctx, dst, v.meta)
}

// partitions records the partitions that this process uses. A configured and an
// automatic partition are never the same.
var partitions struct {
	sync.Mutex
	partitionSeries
}

// A partitionSeries gives automatic partitions, one after another, beginning at
// a number taken from the time, so that two processes started one after another
// differ.
type partitionSeries struct {
	begun  bool
	first  uint16
	passed int // how many partitions, from first on, were given away or skipped

	automatic partitionSet // given away
	handed    partitionSet // of these, the ones of which there is a Snapshot
	explicit  partitionSet // of the caller's
}

// A partitionSet is a set of partitions, a bit for each.
type partitionSet [1 << 16 / 64]uint64

func (s *partitionSet) add(p uint16)      { s[p/64] |= 1 << (p % 64) }
func (s *partitionSet) has(p uint16) bool { return s[p/64]>>(p%64)&1 == 1 }

// next gives a partition away.
func (s *partitionSeries) next() (uint16, error) {
	if !s.begun {
		s.begun, s.first = true, uint16(time.Now().UnixNano()>>16)
	}
	for s.passed < 1<<16 {
		p := s.first + uint16(s.passed)
		s.passed++
		if !s.explicit.has(p) {
			s.automatic.add(p)
			return p, nil
		}
	}
	return 0, fmt.Errorf("idtype: assign a Sno partition: all 65536 are used in this process; share a generator, or set SnoConfig.Partition: %w", ErrPartitionsExhausted)
}

// take reserves a partition of the caller's. One that was given away is refused,
// except to a snapshot if there is one of the generator that got it.
func (s *partitionSeries) take(p uint16, snapshot bool) error {
	if s.automatic.has(p) && !(snapshot && s.handed.has(p)) {
		return &limitError{fmt.Sprintf("idtype: use Sno partition %d: already assigned automatically in this process; set Partition on every generator, or create the generators with a Partition first, before any call of NewSno", p), ErrNode}
	}
	s.explicit.add(p)
	return nil
}

// packageSno is the generator behind NewSno.
var packageSno struct {
	sync.Mutex
	made atomic.Pointer[SnoGenerator]
}

// NewSno mints from a generator of this package's own, on an automatic
// partition. It is meant for one process alone; several need generators with
// partitions that are given to them.
func NewSno(meta byte) (Sno, error) {
	g := packageSno.made.Load()
	if g == nil {
		var err error
		if g, err = makePackageSno(); err != nil {
			return Sno{}, err
		}
	}
	return g.NextMeta(meta)
}

// makePackageSno keeps no error: the clock may be set right later.
func makePackageSno() (*SnoGenerator, error) {
	packageSno.Lock()
	defer packageSno.Unlock()
	if g := packageSno.made.Load(); g != nil {
		return g, nil
	}
	g, err := NewSnoGenerator(SnoConfig{})
	if err == nil {
		packageSno.made.Store(g)
	}
	return g, err
}
