package idtype

import (
	"fmt"
	"time"
)

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
