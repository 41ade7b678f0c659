package idtype

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A SnoConfig configures a [SnoGenerator].
type SnoConfig struct {
	// Meta is the metabyte of IDs from Next and Fill.
	Meta byte
	// Partition is the partition of the generator. If it is nil, the generator gets the
	// next automatic partition. Automatic partitions are consecutive, start at a number
	// derived from the time, and skip partitions that other generators of this process
	// use. They suit a single process; several processes need configured partitions.
	//
	// The constructor returns [ErrConfig] if the partition of a Lease, or of a generator with
	// a Clock, was already assigned automatically. Create these generators first.
	Partition *SnoPartition
	// SequenceMin and SequenceMax are the bounds of the sequence numbers, in either
	// order. Generators can divide a partition into ranges that don't overlap. Generators
	// of the same range share its sequence. A range has at least 4 numbers. A SequenceMax of 0 means 65535, unless SequenceMin is 65535: the
	// range is then 0 to 65535.
	SequenceMin, SequenceMax uint16
	// Snapshot is the state of an earlier generator. The new generator continues exactly
	// where the earlier one stopped, with its partition and sequence bounds; leave those
	// fields zero. If generators of this process have used the partition since, the new one
	// continues after them. A Snapshot can't be combined with a Lease, which determines the start
	// itself.
	Snapshot *SnoSnapshot
	// Overflow receives a message about every 4 ms while calls of this generator wait
	// because all sequence numbers of a unit are used, and one message when no call waits
	// any longer. The
	// generator drops messages that don't fit the channel's buffer.
	Overflow chan<- SnoOverflow
	// Ranges lets generators with leases share a partition. It divides the sequence
	// numbers of Partition into this many ranges of equal size, 1 to 16384. The lease's
	// number, 0 to Ranges-1, selects the range of this generator. All generators of the
	// partition must have the same Ranges. If Ranges is 0, the lease's number is the
	// partition; leave Partition nil.
	Ranges int
	Options
}

// A SnoGenerator creates IDs of type [Sno], up to 65,536 per 4 ms if it shares its partition
// with no other generator. The IDs of one metabyte increase strictly, unless the clock steps back. In that
// case the generator toggles the tick-tock bit and continues at the clock's time. A
// SnoGenerator is safe for concurrent use.
type SnoGenerator struct{ base[Sno, snos] }

// snos makes the IDs of a partition.
type snos struct {
	partition uint16
	meta      byte
}

var _ Generator[Sno] = (*SnoGenerator)(nil)

const (
	// snoMinSequences is the minimum number of sequence numbers in a range.
	snoMinSequences = 4
	// snoPartitions is the layout in which the node number is a partition.
	snoPartitions = "sno: partitions"
)

// NewSnoGenerator returns a new generator. It fails with
//   - [ErrRange] if a sequence range has fewer than 4 numbers, or a value of the Snapshot
//     or Ranges is out of range
//   - [ErrNode] if the number of the Lease doesn't fit
//   - [ErrConfig] if the sequence range overlaps another one of the partition in this
//     process, the partition of a Lease was assigned to another generator automatically, a
//     number comes from two sources, such as a Partition and a Lease, the Snapshot is empty,
//     or Ranges is set without a Lease and a Partition
//   - [ErrPartitionsExhausted] if no automatic partition is left in this process
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the format's time
//   - [ErrTimeExhausted] if NotBefore or the Lease's After is past the end of the format
//   - [ErrClockBackwards] if NotBefore is more than MaxWait, and more than a second, ahead
func NewSnoGenerator(c SnoConfig) (*SnoGenerator, error) {
	c, err := c.resolved()
	if err != nil {
		return nil, err
	}
	layout := snoPartitions
	if c.Ranges > 0 {
		layout = fmt.Sprintf("sno: partition %d in %d ranges of its sequence", c.Partition.Uint16(), c.Ranges)
	}
	g := new(SnoGenerator)
	g.seq.stall.overflow = c.Overflow
	if err := g.seq.init(spec{
		sequence: sequenceID{layout: layout}, line: snoLine, min: uint32(c.SequenceMin), max: uint32(c.SequenceMax), toggles: true,
	}, c.Options, c.claim); err != nil {
		return nil, err
	}
	g.ids = snos{uint16(g.seq.sequence.node), c.Meta}
	if c.Snapshot != nil {
		g.seq.resume(c.Snapshot)
	}
	return g, nil
}

// resolved returns the config with the values of its lease or snapshot, and with the
// sequence bounds in order.
func (c SnoConfig) resolved() (SnoConfig, error) {
	bounds := c.SequenceMin != 0 || c.SequenceMax != 0
	switch {
	case c.Ranges < 0 || c.Ranges > 1<<16/snoMinSequences:
		return c, &limitError{fmt.Sprintf("idtype: SnoConfig.Ranges: %d is out of range; want 0 to %d, because each range needs at least %d sequence numbers", c.Ranges, 1<<16/snoMinSequences, snoMinSequences), ErrRange}
	case c.Ranges > 0:
		if c.Lease == nil || c.Partition == nil {
			return c, &configError{"idtype: SnoConfig.Ranges: requires Lease and Partition; set both, because the lease's number selects a range of the partition"}
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
			return c, &configError{"idtype: SnoConfig.Snapshot: cannot be combined with Lease; leave Snapshot nil, because the lease determines the start"}
		}
		if c.Partition != nil || bounds {
			return c, &configError{"idtype: SnoConfig.Snapshot: cannot be combined with Partition, SequenceMin and SequenceMax; leave them zero, because the snapshot has them"}
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

// snoBounds returns the bounds of a sequence range in order.
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

// NextMeta returns one new ID with this metabyte.
func (g *SnoGenerator) NextMeta(meta byte) (Sno, error) {
	id, err := g.Next()
	if err != nil {
		return Sno{}, err
	}
	return id.WithMeta(meta), nil
}

func (f snos) at(s slot) Sno { return snoOf(s.head, f.meta, f.partition, uint16(s.seq)) }

func (f snos) compose(dst []Sno, s slot) {
	for i := range dst {
		dst[i] = f.at(s)
		s.seq++
	}
}

// WithMeta returns a view of the generator that uses another metabyte. All views share
// the generator's sequence.
func (g *SnoGenerator) WithMeta(meta byte) Generator[Sno] { return snoView{g, g, meta} }

type snoView struct {
	Monitored
	g    *SnoGenerator
	meta byte
}

func (v snoView) Next() (Sno, error) { return v.g.NextMeta(v.meta) }

func (v snoView) Fill(ctx context.Context, dst []Sno) (int, error) {
	return fill(ctx, &v.g.seq, dst, snos{v.g.ids.partition, v.meta}.compose)
}

// partitions assigns consecutive automatic partitions. The lock of sequencers guards it.
var partitions partitionSeries

// A partitionSeries starts at a number derived from the time, so that processes started one
// after another differ.
type partitionSeries struct {
	next uint16
	// automatic has an entry for each partition of a generator in this process: whether it
	// was assigned automatically.
	automatic map[uint16]bool
}

// assign returns a partition that no generator of the process has used.
func (s *partitionSeries) assign() (uint16, error) {
	for len(s.automatic) < 1<<16 {
		p := s.next
		s.next++
		if _, used := s.automatic[p]; !used {
			s.automatic[p] = true
			return p, nil
		}
	}
	return 0, fmt.Errorf("idtype: assign a Sno partition: all 65536 are used in this process; share a generator, or set SnoConfig.Partition: %w", ErrPartitionsExhausted)
}

// claim returns the partition of a new generator. A configured partition must not have been
// assigned automatically, unless the new generator shares its sequencer or has a snapshot.
func (c SnoConfig) claim(alone bool) (int64, error) {
	if partitions.automatic == nil {
		partitions = partitionSeries{uint16(time.Now().UnixNano() >> 16), map[uint16]bool{}}
	}
	if c.Partition == nil {
		p, err := partitions.assign()
		return int64(p), err
	}
	p := c.Partition.Uint16()
	shares := !alone && sequencers.of[sequenceID{snoPartitions, int64(p)}] != nil
	if partitions.automatic[p] && !shares && c.Snapshot == nil {
		return 0, &configError{fmt.Sprintf("idtype: use Sno partition %d: already assigned automatically in this process; set Partition on every generator, or create the generators with a Partition first, before any call of NewSno", p)}
	}
	if _, used := partitions.automatic[p]; !used {
		partitions.automatic[p] = false
	}
	return int64(p), nil
}

// packageSno is the generator of NewSno.
var packageSno struct {
	sync.Mutex
	made atomic.Pointer[SnoGenerator]
}

// NewSno returns a new ID from a package-level generator with an automatic partition. It
// suits a single process. With several processes, create generators with configured
// partitions.
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

// makePackageSno returns the generator of NewSno, and creates it if there is none. It
// doesn't store an error, because the clock may be corrected later.
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
