package idtype

import (
	"fmt"
	"time"
)

// A block describes why a call can't take a number now.
type block struct {
	reason reason
	unit   int64         // the unit that the clock must pass or reach, or that the lease must cover
	until  int64         // the end of the lease, in Unix milliseconds
	pause  time.Duration // the time to wait before the next attempt
	least  time.Duration // the block's minimum duration if the clock runs at its normal rate
}

type reason int

const (
	reasonFull      reason = iota // all numbers of the clock's unit are used
	reasonBehind                  // the clock is behind the unit of the last ID
	reasonBound                   // the clock has not passed the start bound
	reasonUnleased                // the lease doesn't cover the unit
	reasonEnded                   // the lease has ended
	reasonOvertaken               // other calls in the queue took all numbers
)

// behind returns the block for a clock that must first reach a unit, or pass the start
// bound.
func (s *sequencer) behind() block {
	b := block{reason: reasonBehind, unit: s.unit}
	next := s.unit // the first unit in which the generator can continue
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

// usedUp returns the block for a unit without unused numbers.
func (s *sequencer) usedUp() block {
	if !s.full {
		s.full = true
		s.stats.SequenceOverflows++
	}
	return block{reason: reasonFull, unit: s.unit, pause: s.left()}
}

// failure returns the error for a call that may not wait longer.
func (s *sequencer) failure(b block, maxWait time.Duration) error {
	format, within := s.line.format, max(maxWait, 0)
	now, unit := stamp(s.wall), stamp(s.line.time(b.unit))
	switch b.reason {
	case reasonFull:
		return fmt.Errorf("idtype: create %s within %v: all %d sequence numbers of %s are used, and the clock is at %s; raise MaxWait, or check that the clock runs: %w",
			format, within, s.capacity(), unit, now, ErrSequenceExhausted)
	case reasonOvertaken:
		return fmt.Errorf("idtype: create %s within %v: other calls took all sequence numbers; use fewer goroutines, Fill, or more generators: %w",
			format, within, ErrSequenceExhausted)
	case reasonEnded:
		return endedError(s.lease, format)
	case reasonUnleased:
		return fmt.Errorf("idtype: create %s with number %d: the lease ends at %s, before %s; wait for its renewal, and check that the lease uses the generator's clock: %w",
			format, s.lease.Number(), stamp(time.UnixMilli(b.until)), unit, ErrLeaseNotRenewed)
	case reasonBound:
		return fmt.Errorf("idtype: create %s within %v: the clock is at %s and must pass %s, because this node may have created IDs up to then; check the system time, and NotBefore or the lease: %w",
			format, within, now, unit, ErrClockBackwards)
	default:
		return fmt.Errorf("idtype: create %s within %v: the clock is at %s and must reach %s, because this node created IDs up to then; check the system time: %w",
			format, within, now, unit, ErrClockBackwards)
	}
}
