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
	// Partition keeps generators apart. Nil means the next of a series of
	// the process's own, which begins at a number taken from the time: enough
	// for one process; several need partitions that are given to them.
	Partition *SnoPartition
	// SequenceMin and SequenceMax let generators share a partition, each with
	// a range of sequence numbers of its own, at least 4 long. They may come
	// in either order. A SequenceMax of 0 means 65535, unless SequenceMin is
	// 65535.
	SequenceMin, SequenceMax uint16
	Options
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
// ([ErrRange]), and a process's 65,537th automatic partition
// ([ErrPartitionsExhausted]).
func NewSnoGenerator(c SnoConfig) (*SnoGenerator, error) {
	lo, hi := c.SequenceMin, c.SequenceMax
	if hi == 0 && lo != 65535 {
		hi = 65535
	}
	lo, hi = min(lo, hi), max(lo, hi)
	if hi-lo < snoMinSequences-1 {
		return nil, &limitError{fmt.Sprintf("idtype: expected a Sno sequence range of at least %d numbers, got %d to %d: widen SequenceMin and SequenceMax", snoMinSequences, lo, hi), ErrRange}
	}
	g := &SnoGenerator{meta: c.Meta}
	g.seq.line, g.seq.min, g.seq.max, g.seq.ticks = snoLine, uint32(lo), uint32(hi), true
	if err := g.seq.init(c.Options); err != nil {
		return nil, err
	}
	// Last, so that no failure spends one.
	if c.Partition != nil {
		g.partition = c.Partition.Uint16()
	} else {
		p, err := nextPartition()
		if err != nil {
			return nil, err
		}
		g.partition = p
	}
	g.seq.skipZero = g.partition == 0
	return g, nil
}

// Next mints one ID with the configured metabyte; see [Generator].
func (g *SnoGenerator) Next() (Sno, error) { return g.NextMeta(g.meta) }

// NextMeta mints one ID with this metabyte.
func (g *SnoGenerator) NextMeta(meta byte) (Sno, error) {
	s, err := g.seq.one()
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
	return fill(ctx, &g.seq, dst, func(s slot) (Sno, error) { return g.compose(s, meta), nil })
}

func (g *SnoGenerator) compose(s slot, meta byte) Sno {
	return sno(s.unit, s.tick, meta, g.partition, uint16(s.seq))
}

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

// The process's series of automatic partitions begins at a number taken from
// the time, so that two processes started one after another differ.
var (
	firstPartition  = sync.OnceValue(func() uint16 { return uint16(time.Now().UnixNano() >> 16) })
	partitionsGiven atomic.Uint32
)

func nextPartition() (uint16, error) {
	for {
		n := partitionsGiven.Load()
		if n > 65535 {
			return 0, fmt.Errorf("idtype: expected at most 65536 automatic Sno partitions in a process: share a generator, or set SnoConfig.Partition: %w", ErrPartitionsExhausted)
		}
		if partitionsGiven.CompareAndSwap(n, n+1) {
			return firstPartition() + uint16(n), nil
		}
	}
}

// packageSno is the generator behind NewSno.
var packageSno = sync.OnceValues(func() (*SnoGenerator, error) { return NewSnoGenerator(SnoConfig{}) })

// NewSno mints from a generator of this package's own, on an automatic
// partition. It is meant for one process alone; several need generators with
// partitions that are given to them.
func NewSno(meta byte) (Sno, error) {
	g, err := packageSno()
	if err != nil {
		return Sno{}, err
	}
	return g.NextMeta(meta)
}
