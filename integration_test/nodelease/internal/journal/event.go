package journal

import "time"

// The minter reports these events on its standard output, one JSON object per line.
const (
	Acquired = "acquired" // a number was claimed: Number, Term, After, Until
	Renewed  = "renewed"  // a claim was renewed
	Progress = "progress" // Minted counts the IDs so far
	Lost     = "lost"     // a claim was lost: Since, Error and the counts of its Stats
	Refused  = "refused"  // the first call of the generator failed with ErrLeaseLost under this claim
	Failed   = "failed"   // no number could be claimed
	Tried    = "tried"    // after a loss: Refusals counts the failed calls, Minted the successful ones
	Closed   = "closed"   // the generator was closed: Error from Close, and the counts of its Stats
)

// An Event is a report of the minter.
type Event struct {
	Event  string
	Number int
	Term   int64
	After  int64 // Unix milliseconds
	Until  int64 // Unix milliseconds
	Minted uint64
	Error  string
	// These report whether the error wraps ErrLeaseLost, ErrPoolExhausted,
	// ErrClockBehind and ErrSuperseded.
	LeaseLost, Exhausted, Behind, Superseded bool
	// NoAnswer reports whether the store didn't answer in time: the error wraps
	// context.DeadlineExceeded.
	NoAnswer bool
	// Since is the time since the last granted claim or renewal was sent.
	Since time.Duration
	Took  time.Duration // duration of the failed claim
	// RetryAfter is the RetryAfter of a BusyError.
	RetryAfter time.Duration
	Refusals   uint64
	Renewals   uint64
	Failures   uint64
}
