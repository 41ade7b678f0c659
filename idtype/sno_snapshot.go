package idtype

import (
	"fmt"
	"time"
)

// A SnoSnapshot is what a generator has to remember, so that another can go on
// exactly where it stopped: it mints nothing that the first did, wherever the
// clock is by then. It is meant to be stored, as JSON or otherwise, when a
// program ends, and to be used once. Times are in units of 4 ms since 2010.
type SnoSnapshot struct {
	Partition   SnoPartition `json:"partition"`
	SequenceMin uint16       `json:"sequenceMin"`
	SequenceMax uint16       `json:"sequenceMax"`
	Sequence    uint16       `json:"sequence"` // the last that was used of WallHi
	Now         int64        `json:"now"`      // the clock
	WallHi      int64        `json:"wallHi"`   // the highest unit under the current tick-tock bit
	WallSafe    int64        `json:"wallSafe"` // the highest unit under the other one
	Drifts      uint32       `json:"drifts"`   // how often the tick-tock bit changed; the lowest bit is the current one

	First  int64  `json:"first"`  // the first unit that Next and Fill minted in; -1: they didn't yet
	AtUnit int64  `json:"atUnit"` // the first unit that At may mint in
	AtNext uint32 `json:"atNext"` // the sequence number with which it goes on there
}

// Snapshot is the state of the generator after all calls that have returned.
// Take it after the last of them: what is minted later, a generator that is
// made from the snapshot mints again. It is of no use to a generator with a
// Lease, whose partition is another's by then.
func (g *SnoGenerator) Snapshot() SnoSnapshot {
	partitions.Lock()
	partitions.handed.add(g.partition)
	partitions.Unlock()
	p := g.seq.snapshot()
	p.Partition = SnoPartitionFrom(g.partition)
	return p
}

// check refuses what is out of range.
func (p *SnoSnapshot) check() error {
	lo, hi, err := snoBounds(p.SequenceMin, p.SequenceMax)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name      string
		v, lo, hi int64
	}{
		{"sequence", int64(p.Sequence), int64(lo), int64(hi)},
		{"now", p.Now, -1, snoLine.last},
		{"wallHi", p.WallHi, -1, snoLine.last},
		{"wallSafe", p.WallSafe, -1, snoLine.last},
		{"first", p.First, -1, max(p.WallHi, p.WallSafe)},
		{"atUnit", p.AtUnit, 0, snoLine.last + 1},
		{"atNext", int64(p.AtNext), 0, int64(hi) + 1},
	} {
		if f.v < f.lo || f.v > f.hi {
			return &limitError{fmt.Sprintf("idtype: SnoConfig.Snapshot: %s is %d; want %d to %d; pass the snapshot unchanged", f.name, f.v, f.lo, f.hi), ErrRange}
		}
	}
	return nil
}

// At mints an ID of a time that has passed, for rows that are moved over from
// another kind of key. Times must not decrease from call to call, so sort the
// rows by time first, and must lie after NotBefore and a Lease's After, and
// before the first unit of the generator's own time: [ErrRange]. It has no
// other numbers for a unit than Next would have had; when they are used up that
// is an [ErrSequenceExhausted].
func (g *SnoGenerator) At(meta byte, t time.Time) (Sno, error) {
	s, err := g.seq.backfill(t)
	if err != nil {
		return Sno{}, err
	}
	return g.compose(s, meta), nil
}
