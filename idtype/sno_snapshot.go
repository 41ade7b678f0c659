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
	s := &g.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	partitions.Lock()
	partitions.handed.add(g.partition)
	partitions.Unlock()
	used := s.used(s.word.Load())
	now, err := s.now()
	if err != nil {
		// A clock outside the format's time says nothing.
		now = s.seen
	}
	return SnoSnapshot{
		Partition: SnoPartitionFrom(g.partition), SequenceMin: uint16(s.min), SequenceMax: uint16(s.max),
		Sequence: uint16(used.end - 1), Now: now, WallHi: s.unit, WallSafe: s.safe, Drifts: s.drifts,
		First: s.origin, AtUnit: g.at.unit, AtNext: g.at.next,
	}
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
			return &limitError{fmt.Sprintf("idtype: expected a Sno snapshot whose %s is from %d to %d, got %d: give it as Snapshot gave it", f.name, f.lo, f.hi, f.v), ErrRange}
		}
	}
	return nil
}

// restore goes on where a snapshot was taken, unless the start mark lies
// later.
func (g *SnoGenerator) restore(p *SnoSnapshot) {
	s := &g.seq
	s.drifts, s.tick = p.Drifts, p.Drifts&1 == 1
	s.origin, s.seen = p.First, p.Now
	s.safe = max(s.safe, p.WallSafe)
	switch {
	case p.First < 0:
		s.useUp(p.WallHi) // a start mark too
	case p.WallHi > s.unit:
		s.resume(p.WallHi, uint32(p.Sequence)+1)
	}
	if p.AtUnit >= g.at.unit {
		g.at = backfill{p.AtUnit, max(p.AtNext, s.min)}
	}
}

// A backfill is where At goes on.
type backfill struct {
	unit int64
	next uint32
}

// At mints an ID of a time that has passed, for rows that are moved over from
// another kind of key. Times must not decrease from call to call, so sort the
// rows by time first, and must lie after NotBefore and a Lease's After, and
// before the first unit of the generator's own time: [ErrRange]. It has no
// other numbers for a unit than Next would have had; when they are used up that
// is an [ErrSequenceExhausted].
func (g *SnoGenerator) At(meta byte, t time.Time) (Sno, error) {
	unit, err := snoLine.unit(t)
	if err != nil {
		return Sno{}, err
	}
	s := &g.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	if err != nil {
		return Sno{}, err
	}
	end, what := now, "now"
	if s.origin >= 0 {
		end, what = s.origin, "the first ID of Next or Fill"
	}
	switch {
	case unit >= end:
		return Sno{}, &limitError{fmt.Sprintf("idtype: expected a time for At before the unit of %s, %s, got %s: backfill before you mint, or with a generator of another partition", what, stamp(snoLine.time(end)), stamp(t)), ErrRange}
	case unit < g.at.unit:
		return Sno{}, &limitError{fmt.Sprintf("idtype: expected a time for At from %s on, which is where the last one, NotBefore or the lease's begin lead, got %s: sort the rows by time first, and use a generator without these two", stamp(snoLine.time(g.at.unit)), stamp(t)), ErrRange}
	}
	if b, covered := s.leased(unit); !covered {
		return Sno{}, s.failure(b)
	}
	next := g.at.next
	if unit > g.at.unit {
		next = s.min
	}
	next = s.notZero(unit, next)
	if next > s.max {
		return Sno{}, fmt.Errorf("idtype: expected at most %d rows for At in the 4 ms from %s, got one more: give it a time 4 ms later, or another generator: %w",
			s.capacity(), stamp(snoLine.time(unit)), ErrSequenceExhausted)
	}
	g.at = backfill{unit, next + 1}
	s.stats.Minted++
	if s.origin < 0 {
		// What comes live comes later, whatever the clock does.
		s.useUp(unit)
	}
	return snoOf(uint64(unit)<<1, meta, g.partition, uint16(next)), nil
}
