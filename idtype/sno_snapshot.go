package idtype

import "fmt"

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

// snapshot returns the state from which resume continues.
func (h *handle) snapshot() SnoSnapshot {
	s := h.use().sequencer
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used(s.word.Load())
	now, err := s.now()
	if err != nil {
		// The clock is outside the format's time.
		now = s.seen
	}
	return SnoSnapshot{
		SequenceMin: uint16(s.min), SequenceMax: uint16(s.max), Sequence: uint16(used.end - 1),
		Now: now, WallHi: s.unit, WallSafe: s.safe, Drifts: s.drifts,
		First: s.origin, AtUnit: s.past.unit, AtNext: s.past.next,
	}
}

// resume continues from a snapshot, unless the start bound is later.
func (s *sequencer) resume(p *SnoSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.origin >= 0: // a generator that shares the sequencer has created IDs
		if !s.passed(p) {
			s.useUp(max(p.WallHi, p.WallSafe))
		}
		if p.First >= 0 {
			s.origin = min(s.origin, p.First)
		}
	default:
		s.drifts, s.tick = p.Drifts, p.Drifts&1 == 1
		s.origin, s.seen = p.First, p.Now
		s.safe = max(s.safe, p.WallSafe)
		if p.First < 0 {
			s.useUp(p.WallHi) // without an ID, WallHi is a start bound
		} else if p.WallHi > s.unit {
			s.continueAt(p.WallHi, uint32(p.Sequence)+1)
		}
	}
	if next := (backfilled{p.AtUnit, max(p.AtNext, s.min)}); next.unit > s.past.unit || next.unit == s.past.unit && next.next > s.past.next {
		s.past = next
	}
}

// passed reports whether the sequencer has passed all pairs that a snapshot may have used,
// as it has if the snapshot is one of its own.
func (s *sequencer) passed(p *SnoSnapshot) bool {
	if s.tick != (p.Drifts&1 == 1) {
		return p.WallHi <= s.safe && p.WallSafe < s.unit
	}
	next := uint32(s.word.Load() & s.mask)
	return p.WallSafe <= s.safe && (p.WallHi < s.unit || p.WallHi == s.unit && uint32(p.Sequence) < next)
}
