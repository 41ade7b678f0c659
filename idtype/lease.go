package idtype

import (
	"errors"
	"fmt"
	"math"
)

// A Lease is a node number that was claimed for a time, and may be lost. Given
// one, a generator takes its node number from it and mints only for the time
// that the claim covers: what is after After, and not after Until. So the next
// holder of the number, whose After is the last Until of this one, can't repeat
// an ID, whatever the clocks of both do.
//
// A claim is for one generator: two with the same Lease repeat each other's IDs,
// also if one is made after the other. Claim a number for each.
//
// A Lease may also have the method
//
//	Attach(layout string, minted func() int64) error
//
// The constructor of a generator calls Attach last of all, and returns its error. So a
// lease can refuse a second generator, or one of another layout, and can hand the number
// on from where the generator stopped instead of from Until. The layout describes how the
// format uses the number, such as "spread64: cluster 5". Two generators of the same
// layout with different numbers never create the same ID. minted returns the generator's
// high-water mark: the start of the last unit in which it created an ID, in Unix
// milliseconds, or [math.MinInt64] if it created none. Once Until is math.MinInt64, the
// mark is final.
//
// A Lease may also have the method
//
//	Err() error
//
// Err returns the reason why the lease ended, and nil before that. The generator wraps
// the reason in its error, so that its caller can tell a closed lease from a lost one. It
// calls Err only after Until has returned math.MinInt64. Err must not call the generator.
type Lease interface {
	// Number is the node number, the same for the whole claim.
	Number() int
	// After is in Unix milliseconds: mint only in later units. It is the
	// same for the whole claim.
	After() int64
	// Until is in Unix milliseconds: mint up to and including its unit. It
	// moves on with each renewal, and is [math.MinInt64] once the claim is lost.
	// It is called for every ID, so let it be an atomic load.
	Until() int64
}

// The optional methods of a Lease.
type (
	attacher interface {
		Attach(layout string, minted func() int64) error
	}
	reasoner interface{ Err() error }
)

// endedError is the error of a call under a lease that has ended.
func endedError(l Lease, format string) error {
	var reason error
	if r, ok := l.(reasoner); ok {
		reason = r.Err()
	}
	switch {
	case reason == nil:
		return fmt.Errorf("idtype: create %s with number %d: the lease of the number has ended; claim a number again: %w", format, l.Number(), ErrLeaseLost)
	case errors.Is(reason, ErrLeaseLost):
		return fmt.Errorf("idtype: create %s with number %d: %w", format, l.Number(), reason)
	default:
		return fmt.Errorf("idtype: create %s with number %d: %w: %w", format, l.Number(), reason, ErrLeaseLost)
	}
}

// leaseNumber is the number of a lease, for a generator that was given no
// numbers of its own.
func leaseNumber(l Lease, typeName, fields string, own bool, count int) (int, error) {
	if own {
		return 0, &limitError{fmt.Sprintf("idtype: expected a %s config with either a Lease or its own %s, got both: leave %[2]s zero, the lease has the number", typeName, fields), ErrNode}
	}
	n := l.Number()
	if n < 0 || n >= count {
		return 0, &limitError{fmt.Sprintf("idtype: expected a lease with a number for %s from 0 to %d, got %d: claim one from a pool of that size", typeName, count-1, n), ErrNode}
	}
	return n, nil
}

// leased reports whether the lease, if there is one, covers a unit. If it doesn't, b is
// the reason.
func (s *sequencer) leased(unit int64) (b block, covered bool) {
	if s.lease == nil {
		return block{}, true
	}
	switch until := s.lease.Until(); {
	case until == math.MinInt64:
		return block{reason: reasonEnded, least: unending}, false
	case s.line.milli(unit) > until:
		return block{reason: reasonUnleased, unit: unit, until: until, pause: longPause}, false
	}
	return block{}, true
}

// minted returns the high-water mark for a lease's Attach. A call on the fast path
// may be under way that found the lease to hold: it mints in the word's unit, too.
func (s *sequencer) minted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.origin < 0 && s.stats.Minted == 0 {
		return math.MinInt64
	}
	// After a toggle the last unit is an earlier one than the last before it.
	return s.line.milli(max(s.unit, s.safe))
}
