package idtype

import (
	"fmt"
	"time"
)

// A SnoSnapshot is the state of a generator. A generator made from it continues exactly
// where the first one stopped, and creates no duplicates, even if the clock stepped back
// in between. Store it, as JSON or otherwise, when a program ends, and use it once. Times
// are in units of 4 ms since 2010.
type SnoSnapshot struct {
	Partition   SnoPartition `json:"partition"`
	SequenceMin uint16       `json:"sequenceMin"`
	SequenceMax uint16       `json:"sequenceMax"`
	Sequence    uint16       `json:"sequence"` // the last used number of WallHi
	Now         int64        `json:"now"`      // the clock's unit
	WallHi      int64        `json:"wallHi"`   // the highest unit used with the current tick-tock bit
	WallSafe    int64        `json:"wallSafe"` // the highest unit used with the other bit
	Drifts      uint32       `json:"drifts"`   // the number of changes of the tick-tock bit; the lowest bit is the current one

	First  int64  `json:"first"`  // the first unit used by Next and Fill; -1 if they have created no ID
	AtUnit int64  `json:"atUnit"` // the first unit that At can use
	AtNext uint32 `json:"atNext"` // the next sequence number of AtUnit
}

// Snapshot returns the state of the generator after all calls that have returned. Take the
// snapshot after the last call of Next, Fill or At. In another process, a generator made
// from it repeats the IDs that the old generator creates after the snapshot. The snapshot of a generator with
// a Lease is not usable, because another generator may have the partition by then.
func (g *SnoGenerator) Snapshot() SnoSnapshot {
	p := g.seq.snapshot()
	p.Partition = SnoPartitionFrom(g.ids.partition)
	return p
}

// check returns an error if a field is out of range.
func (p *SnoSnapshot) check() error {
	if p.SequenceMin == 0 && p.SequenceMax == 0 {
		return &configError{"idtype: SnoConfig.Snapshot: sequenceMin and sequenceMax are 0, so the snapshot is empty; pass the result of SnoGenerator.Snapshot, or leave Snapshot nil for a new generator"}
	}
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

// At returns a new ID for a time in the past, for rows that migrate from another kind of
// key. Times must not decrease from call to call, so sort the rows by time first. They
// must be after NotBefore and the Lease's After, and before the unit of the first ID from
// Next or Fill; otherwise At returns [ErrRange]. A unit has as many numbers for At as for
// Next. If all are used, At returns [ErrSequenceExhausted].
func (g *SnoGenerator) At(meta byte, t time.Time) (Sno, error) {
	s, err := g.seq.backfill(t)
	if err != nil {
		return Sno{}, err
	}
	return g.ids.at(s).WithMeta(meta), nil
}
