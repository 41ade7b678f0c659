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

// An AttachableLease is a Lease that wants to know its generator: to refuse a
// second one, or one of another layout, and to hand the number on, when the claim
// ends, from how far the generator got instead of from Until.
type AttachableLease interface {
	Lease
	// Attach is called by the constructor of a generator, last of all. An
	// error refuses the generator.
	//
	// The layout is what makes numbers of two generators mean the same, in words,
	// such as "spread64: cluster 5". minted gives the begin of the last unit in which
	// the generator has minted, in Unix milliseconds, or [math.MinInt64] if it minted
	// nothing. Once Until is math.MinInt64, what minted gives is final.
	Attach(layout string, minted func() int64) error
}

// A ReasonedLease is a Lease that knows why it ended. The generator wraps the
// reason in its error, so that its caller can tell a lease that was closed from
// one that was lost.
type ReasonedLease interface {
	Lease
	// Err returns nil until the lease ends. The generator calls it only after Until
	// has returned math.MinInt64, to build its error. Err must not call the generator.
	Err() error
}

// endedError is the error of a call under a lease that has ended.
func endedError(l Lease, format string) error {
	var reason error
	if r, ok := l.(ReasonedLease); ok {
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

// leased says whether the lease, if there is one, covers a unit.
func (s *sequencer) leased(unit int64) (b block, covered bool) {
	if s.lease == nil {
		return block{}, true
	}
	until := s.lease.Until()
	return block{reason: reasonUnleased, unit: unit, until: until, pause: longPause}, s.line.milli(unit) <= until
}

// minted is what an [AttachableLease] is told. A call on the fast path may be
// under way that found the lease to hold: it mints in the word's unit, too.
func (s *sequencer) minted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.origin < 0 && s.stats.Minted == 0 {
		return math.MinInt64
	}
	// After a toggle the last unit is an earlier one than the last before it.
	return s.line.milli(max(s.unit, s.safe))
}
