package idtype

import (
	"fmt"
	"time"
)

// A block is why there is no slot now.
type block struct {
	reason reason
	unit   int64         // that the clock has to pass, or the lease to reach
	until  int64         // where the lease ends, in Unix milliseconds
	pause  time.Duration // after which to look again
	least  time.Duration // the block's minimum duration at the clock's normal rate
}

type reason int

const (
	reasonFull      reason = iota // the clock is at the unit, whose numbers are used up
	reasonBehind                  // the clock is behind the unit, in which the last ID was minted
	reasonBound                   // the unit is that of the start bound, in which nothing was minted
	reasonUnleased                // the lease doesn't reach the unit
	reasonEnded                   // the lease has ended
	reasonOvertaken               // others in the queue got what there was
)

// behind is the block of a clock that has to get to a unit first, or past the
// start bound.
func (s *sequencer) behind() block {
	b := block{reason: reasonBehind, unit: s.unit}
	next := s.unit // the first that the clock can go on with
	switch {
	case s.unit == s.bound:
		b.reason = reasonBound
		next++
	case s.ticks:
		b.unit = min(s.unit, s.safe+1)
		next = b.unit
	}
	b.least = s.until(next)
	b.pause = min(b.least, longPause)
	return b
}

// usedUp is the block of a unit whose numbers are used up.
func (s *sequencer) usedUp() block {
	if !s.full {
		s.full = true
		s.stats.SequenceOverflows++
	}
	return block{reason: reasonFull, unit: s.unit, pause: s.left()}
}

// failure is the error of a call that could wait no longer.
func (s *sequencer) failure(b block) error {
	format, within := s.line.format, max(s.maxWait, 0)
	now, unit := stamp(s.wall), stamp(s.line.time(b.unit))
	switch b.reason {
	case reasonFull:
		return fmt.Errorf("idtype: expected the clock to pass %s within %v, whose %d sequence numbers of %s are used up, got %s: %w",
			unit, within, s.capacity(), format, now, ErrSequenceExhausted)
	case reasonOvertaken:
		return fmt.Errorf("idtype: expected a sequence number of %s within %v, got none behind the other calls that wait: mint with fewer goroutines, with Fill, or with more generators: %w",
			format, within, ErrSequenceExhausted)
	case reasonEnded:
		return endedError(s.lease, format)
	case reasonUnleased:
		return fmt.Errorf("idtype: expected a lease of %s number %d that reaches %s, got one until %s: wait for its renewal, and see that it is renewed by the same clock: %w",
			format, s.lease.Number(), unit, stamp(time.UnixMilli(b.until)), ErrLeaseNotRenewed)
	case reasonBound:
		return fmt.Errorf("idtype: expected the clock to pass %s, up to which %s IDs of this node may have been minted before, within %v, got %s: check the system's time, and NotBefore or the lease: %w",
			unit, format, within, now, ErrClockBackwards)
	default:
		return fmt.Errorf("idtype: expected the clock to catch up with %s, up to which %s has minted, within %v, got %s: check the system's time: %w",
			unit, format, within, now, ErrClockBackwards)
	}
}
