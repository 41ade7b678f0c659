package journal

import "time"

// The events that the minting program tells of on its standard output, one JSON
// object a line.
const (
	Acquired = "acquired" // a claim, with Number, Term, After, Until
	Renewed  = "renewed"  // a renewal
	Progress = "progress" // Minted is how many IDs there are so far
	Lost     = "lost"     // a claim was lost: Since, Error and the counts of its Stats
	Refused  = "refused"  // a call of the generator failed with ErrLeaseLost, the first one of a claim
	Failed   = "failed"   // a claim couldn't be had
	Tried    = "tried"    // after a loss: Refusals are the calls that were refused, Minted those that weren't
	Closed   = "closed"   // the generator was closed: Error is that of Close, with the counts of Stats
)

// An Event is one of them.
type Event struct {
	Event  string
	Number int
	Term   int64
	After  int64 // Unix milliseconds
	Until  int64 // Unix milliseconds
	Minted uint64
	Error  string
	// LeaseLost, Exhausted, Behind, Superseded: what the error wraps.
	LeaseLost, Exhausted, Behind, Superseded bool
	// Since the last renewal was sent that was granted.
	Since time.Duration
	Took  time.Duration // of a claim that failed
	// RetryAfter is that of the BusyError, if it is one.
	RetryAfter time.Duration
	Refusals   uint64
	Renewals   uint64
	Failures   uint64
}
