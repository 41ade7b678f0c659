package idtype

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/sortkey/sortkey/internal/typename"
)

// A Lease is a node number claimed for a limited time. A generator with a Lease takes its
// node number from the Lease, and creates IDs only for times after After and up to Until.
// The After of the next holder is the last Until of this one, so the two never create the
// same ID, even if their clocks differ.
//
// A Lease serves one generator. Two generators with the same Lease can create duplicates,
// even if one stops before the other starts. Claim a number for each.
//
// A Lease can also be a [LeaseAttacher] or a [LeaseReasoner]. Assert at compile time that
// yours is one, because a misspelt method would have no effect:
//
//	var _ idtype.LeaseAttacher = (*Claim)(nil)
//
// A Lease that wraps another one must have these methods too. If a Lease has a method Attach
// or Err with another signature, or only for its pointer, the constructor of the generator
// returns [ErrConfig].
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
}

// A LeaseAttacher is a [Lease] that registers its generator. It can reject a second generator
// or another layout, and it learns the generator's high-water mark.
type LeaseAttacher interface {
	Lease
	// Attach registers a generator. The constructor of the generator calls it as the last
	// step, and returns its error.
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
}

// A LeaseReasoner is a [Lease] that knows why it ended.
type LeaseReasoner interface {
	Lease
	// Err returns the reason why the lease ended, or nil before that. The generator wraps
	// the reason in its error, so that its caller can distinguish a closed lease from a
	// lost one. The generator calls Err only after Until has returned [math.MinInt64]. Err
	// must not call the generator.
	Err() error
}

// checkMethods returns an error if a lease seems to be a LeaseAttacher or a LeaseReasoner,
// but isn't one.
func checkMethods(l Lease, typeName string) error {
	t := reflect.TypeOf(l)
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t) // has the methods of both receivers
	}
	// The names are constants, so that the linker can drop other methods of the program.
	_, hasAttach := t.MethodByName("Attach")
	_, hasErr := t.MethodByName("Err")
	_, attaches := l.(LeaseAttacher)
	_, reasons := l.(LeaseReasoner)
	switch {
	case hasAttach && !attaches:
		return &configError{fmt.Sprintf("idtype: %sConfig.Lease: method Attach of %s doesn't make it an idtype.LeaseAttacher; correct its signature, or pass a pointer", typeName, typename.OfValue(l))}
	case hasErr && !reasons:
		return &configError{fmt.Sprintf("idtype: %sConfig.Lease: method Err of %s doesn't make it an idtype.LeaseReasoner; correct its signature, or pass a pointer", typeName, typename.OfValue(l))}
	}
	return nil
}

// endedError returns the error for a call under a lease that has ended.
func endedError(l Lease, format string) error {
	var reason error
	if r, ok := l.(LeaseReasoner); ok {
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

// leaseNumber returns the number of a lease. own reports whether the config also has
// numbers of its own, which is an error.
func leaseNumber(l Lease, typeName, fields string, own bool, count int) (int, error) {
	if err := checkMethods(l, typeName); err != nil {
		return 0, err
	}
	if own {
		return 0, &configError{fmt.Sprintf("idtype: %sConfig.Lease: cannot be combined with %s; leave %[2]s zero, because the lease has the number", typeName, fields)}
	}
	n := l.Number()
	if n < 0 || n >= count {
		return 0, &limitError{fmt.Sprintf("idtype: %sConfig.Lease: number %d is out of range; want 0 to %d; claim a number from a pool of that size", typeName, n, count-1), ErrNode}
	}
	return n, nil
}
