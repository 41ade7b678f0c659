package idtype

import (
	"errors"
	"fmt"
)

// A Lease is a node number claimed for a limited time. A generator with a Lease takes its
// node number from the Lease, and creates IDs only for times after After and up to Until.
// The After of the next holder is the last Until of this one, so the two never create the
// same ID, even if their clocks differ.
//
// A Lease serves one generator. Two generators with the same Lease can create duplicates,
// even if one stops before the other starts. Claim a number for each.
type Lease interface {
	// Number returns the node number. It never changes.
	Number() int
	// After returns a time in Unix milliseconds. The generator creates IDs only in
	// later units. After never changes.
	After() int64
	// Until returns a time in Unix milliseconds. The generator creates IDs up to and
	// including the unit of that time. Each renewal advances Until. Once the lease has
	// ended, Until returns [math.MinInt64]. The generator calls Until for every ID, so
	// it should be an atomic load.
	Until() int64
	// Attach registers the generator. The constructor of the generator calls it as the last
	// step, and returns its error: for a second generator, or for another layout.
	//
	// The layout describes how the format uses the number, such as "spread64: cluster 5",
	// or "snowflake: " followed by [SnowflakeLayout.Fingerprint]. Two generators of the
	// same layout with different numbers never create the same ID.
	//
	// minted returns the generator's high-water mark: the start of the last unit in which
	// it created an ID, in Unix milliseconds, or [math.MinInt64] if it created none. Once
	// Until is math.MinInt64, the mark is final. The next holder's After can then be the
	// mark instead of the last Until.
	Attach(layout string, minted func() int64) error
	// Err returns the reason why the lease ended, or nil if it has none. The generator calls
	// it only after Until has returned [math.MinInt64], and wraps the reason in its error, so
	// that its caller can distinguish a closed lease from a lost one. Err must not call the
	// generator.
	Err() error
}

// endedError returns the error for a call under a lease that has ended.
func endedError(l Lease, format string) error {
	switch reason := l.Err(); {
	case reason == nil:
		return fmt.Errorf("idtype: create %s with number %d: the lease of the number has ended; claim a number again: %w", format, l.Number(), ErrLeaseLost)
	case errors.Is(reason, ErrLeaseLost):
		return fmt.Errorf("idtype: create %s with number %d: %w", format, l.Number(), reason)
	default:
		return fmt.Errorf("idtype: create %s with number %d: %w: %w", format, l.Number(), reason, ErrLeaseLost)
	}
}

// leaseNumber returns the number of a lease. own reports whether the config also has
// numbers of its own, which is an error.
func leaseNumber(l Lease, typeName, fields string, own bool, count int) (int, error) {
	if own {
		return 0, &configError{fmt.Sprintf("idtype: %sConfig.Lease: cannot be combined with %s; leave %[2]s zero, because the lease has the number", typeName, fields)}
	}
	n := l.Number()
	if n < 0 || n >= count {
		return 0, &limitError{fmt.Sprintf("idtype: %sConfig.Lease: number %d is out of range; want 0 to %d; claim a number from a pool of that size", typeName, n, count-1), ErrNode}
	}
	return n, nil
}
