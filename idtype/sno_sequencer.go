package idtype

import (
	"fmt"
	"slices"
	"time"
)

// toggle begins an earlier unit, with the other tick-tock bit.
func (s *sequencer) toggle(unit int64) error {
	from := s.unit
	if err := s.toUnit(unit, !s.tick); err != nil {
		return err
	}
	s.safe = from
	s.drifts++
	s.stats.TickTocks++
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

// A backfilled is the next unit and number for backfill.
type backfilled struct {
	unit int64
	next uint32
}

// backfill takes a number from the unit of t, for [SnoGenerator.At]. The unit must be in
// the past.
func (h *handle) backfill(t time.Time) (slot, error) {
	s := h.use().sequencer
	unit, err := s.line.unit(t)
	if err != nil {
		return slot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	if err != nil {
		return slot{}, err
	}
	end, limit := now, "the current time"
	if s.origin >= 0 {
		end, limit = s.origin, "the first ID of Next and Fill"
	}
	switch {
	case unit >= end:
		return slot{}, &limitError{fmt.Sprintf("idtype: create %s at %s: want a time before %s, %s; call At before Next and Fill, or use a generator with another partition",
			s.line.format, stamp(t), stamp(s.line.time(end)), limit), ErrRange}
	case unit < s.past.unit:
		return slot{}, &limitError{fmt.Sprintf("idtype: create %s at %s: want a time from %s, which the last call of At, NotBefore or the lease determines; sort the rows by time, and use a generator without NotBefore and Lease",
			s.line.format, stamp(t), stamp(s.line.time(s.past.unit))), ErrRange}
	}
	if b, covered := s.leased(unit); !covered {
		return slot{}, s.failure(b, h.maxWait)
	}
	next := s.past.next
	if unit > s.past.unit {
		next = s.min
	}
	next = s.notZero(unit, next)
	if next > s.max {
		return slot{}, fmt.Errorf("idtype: create %s at %s: all %d sequence numbers of the 4 ms from %s are used; use a time 4 ms later, or another generator: %w",
			s.line.format, stamp(t), s.capacity(), stamp(s.line.time(unit)), ErrSequenceExhausted)
	}
	s.past = backfilled{unit, next + 1}
	s.stats.Minted++
	if s.origin < 0 {
		// Next and Fill must use later units, even if the clock steps back.
		s.useUp(unit)
	}
	return slot{uint64(unit) << 1, next}, nil
}

// A stall is a period in which calls of a generator wait because all numbers of a unit are
// used.
type stall struct {
	overflow    chan<- SnoOverflow // nil: none
	calls       int                // the waiting calls of the generator
	going       bool
	began, told time.Duration // its start and its last message, by the monotonic clock
}

// tellEvery is the minimum time between two messages of a stall. It is slightly less than
// a unit of Sno, because the leader reads the clock once per unit.
const tellEvery = 3 * time.Millisecond

// tellStalls sends a message at the start, during and at the end of each stall.
func (s *sequencer) tellStalls() {
	if len(s.stalls) == 0 {
		return
	}
	s.stalls = slices.DeleteFunc(s.stalls, func(t *stall) bool {
		s.tell(t)
		return t.calls == 0
	})
}

func (s *sequencer) tell(t *stall) {
	switch {
	case !t.going && t.calls > 0 && s.blocked.reason == reasonFull:
		t.going, t.began = true, s.reading
	case t.going && t.calls == 0:
		t.going = false
	case !t.going || s.reading-t.told < tellEvery:
		return
	}
	t.told = s.reading
	select {
	case t.overflow <- SnoOverflow{s.wall, t.calls, int((s.reading - t.began).Milliseconds())}:
	default:
	}
}
