package nodelease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Store keeps who holds which number, for all processes. Package pglease has
// one in Postgres, zklease one in ZooKeeper. Programs give it to [Acquire] and
// needn't call it; package leasetest has the tests that each must pass.
//
// A store is safe for concurrent use. Each call changes everything it has to or
// nothing, does nothing if its context ended before, and ends with its context.
// Confirmed changes survive a crash of the service that keeps them. A failed call
// may still take effect, even later: a number may be held by a process that doesn't
// know it, and the high-water mark written may be higher than the Claim's Until.
type Store interface {
	// Claim gives a number of the pool that isn't held, isn't reserved, and
	// whose high-water mark is behind r.Now. If there is a choice, it takes the
	// one with the lowest high-water mark; a store may prefer released numbers
	// to those whose claims have expired. Until r.TTL later by the store's
	// clock nobody else gets the number, unless it is released. Claim writes
	// r.Until as the new high-water mark. A store may grant less than the TTL
	// ([Request.LimitTTL]).
	//
	// A call with the Holder of an earlier call repeats that call. If the earlier
	// claim was granted and isn't released, Claim returns its number, term and
	// After, even if the high-water mark has moved since, and renews it as Renew
	// does. A claim whose holder never gets the answer ends like any other.
	//
	// If there is no such number, the error wraps a [*BusyError]; use errors.As. If
	// the pool was made with another Size or Layout, the error wraps
	// [ErrPoolMismatch]. If no call can succeed until the setup changes, it wraps
	// [ErrMisconfigured].
	//
	// The numbers in p.Reserved count for this call alone: the store doesn't grant
	// one of them to this caller, keeps none for later calls, and takes none from
	// its holder.
	Claim(ctx context.Context, p Pool, r Request) (Claim, error)

	// Renew moves the high-water mark on to r.Until, never back, and the
	// claim's end to r.TTL later by the store's clock. A claim that was over
	// may be renewed as long as nobody else has got the number. If the number's
	// term or holder is another, or it was released, nothing changes, and the
	// error wraps [ErrSuperseded].
	Renew(ctx context.Context, p Pool, c Claim, r Request) (Claim, error)

	// Release ends a claim, and sets the high-water mark to a value between
	// c.After and the one written: up to there the holder has minted, and it
	// won't mint any more. A Renew that is still under way mustn't undo that.
	// If the number's term or holder is another, or it was released, nothing
	// changes, and that is no error.
	Release(ctx context.Context, p Pool, c Claim, highWaterMark int64) error
}

// A Request is what a holder asks of a store.
type Request struct {
	Holder string        // unique to one claim, and never empty; up to its last space it is for people
	TTL    time.Duration // how long the number is to be the holder's
	Now    int64         // the holder's clock, in Unix milliseconds
	Until  int64         // up to where it wants to mint: the high-water mark to write, in Unix milliseconds
}

// LimitTTL returns the request that a store grants if it can't grant r.TTL: its TTL
// is at most ttl, and its Until is nearer to Now in proportion.
func (r Request) LimitTTL(ttl time.Duration) Request {
	if ttl < r.TTL {
		r.Until = r.Now + int64(float64(r.Until-r.Now)*float64(ttl)/float64(r.TTL))
		r.TTL = ttl
	}
	return r
}

// TimeToPass returns how long the holder's clock takes, from r.Now on, to pass a
// high-water mark: the RetryAfter of a [BusyError] with numbers ahead.
func (r Request) TimeToPass(highWaterMark int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms := highWaterMark - r.Now
	if highWaterMark < r.Now {
		return 0
	}
	if ms < 0 || ms >= most { // ms < 0: it has overflowed
		return math.MaxInt64
	}
	return time.Duration(ms+1) * time.Millisecond
}

// A Claim is what a store has granted.
type Claim struct {
	Number int
	// Term is larger with each time that the number is claimed. Together with
	// Holder it is what a claim is known by.
	Term   int64
	Holder string
	// After is the high-water mark that the one before left, in Unix milliseconds; 0
	// for a number that was never used.
	After int64
	// Until is the high-water mark as it is written now.
	Until int64
	// TTL is how long the claim stands, if that is less than was asked for; at
	// least a second.
	TTL time.Duration
	// Time is what the store's clock showed. Zero if the store doesn't tell.
	Time time.Time
}

// What errors of this package and of stores wrap.
var (
	// ErrPoolExhausted: all numbers of the pool are held or reserved.
	ErrPoolExhausted = errors.New("pool exhausted")
	// ErrClockBehind: there are free numbers, but the clock is behind the
	// high-water marks that their holders left.
	ErrClockBehind = errors.New("clock behind the high-water marks")
	// ErrSuperseded: the number has another holder, or the claim was released.
	ErrSuperseded = errors.New("claim superseded")
	// ErrPoolMismatch: the pool was made with another size or layout.
	ErrPoolMismatch = errors.New("pool of another layout")
	// ErrMisconfigured: the store can't be used the way it is set up, and trying
	// again doesn't help: a wrong config, a missing schema or privilege, a store
	// after its Close. Acquire fails with it at once; any other error of a store may
	// be over soon, and Acquire tries again until Options.Wait is over.
	ErrMisconfigured = errors.New("store not set up for this")
	// ErrClosed: the claim was given back by Close. Errors of its generator wrap it.
	// Errors that wrap it wrap idtype.ErrLeaseLost too.
	ErrClosed error = closed{}
)

type closed struct{}

func (closed) Error() string { return "closed" }
func (closed) Unwrap() error { return idtype.ErrLeaseLost }

// A BusyError tells why no number could be claimed, with the counts of the pool as
// they were at some time during the call. It is an [ErrClockBehind] if the clock
// hasn't passed the high-water marks of the free numbers, else an
// [ErrPoolExhausted].
type BusyError struct {
	// RetryAfter is how long the clock takes to pass the lowest high-water mark of
	// the free numbers. If no number is free, it is how long until the first claim
	// ends, unless it is renewed. It is 0 if the store doesn't know.
	RetryAfter time.Duration
	Held       int // numbers that are held
	Ahead      int // free numbers whose high-water mark the clock hasn't passed
	Reserved   int // numbers in Pool.Reserved, or reserved in the store
}

func (e *BusyError) Error() string {
	size := e.Held + e.Ahead + e.Reserved
	if e.Ahead > 0 {
		return fmt.Sprintf("expected the clock to be past the high-water marks of the free numbers (%d of %d; %d are held and %d reserved), got one that needs %v more: check the system's time here and where the numbers were used, or wait, if another server of the store has just taken over: %v",
			e.Ahead, size, e.Held, e.Reserved, e.RetryAfter, ErrClockBehind)
	}
	frees := ""
	if e.RetryAfter > 0 {
		frees = fmt.Sprintf(" (the first for %v more, if it isn't renewed)", e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("expected a free number, got %d of %d held%s and %d reserved: wait longer, close what isn't needed, or choose a layout with more numbers: %v",
		e.Held, size, frees, e.Reserved, ErrPoolExhausted)
}

// Unwrap returns [ErrClockBehind] or [ErrPoolExhausted].
func (e *BusyError) Unwrap() error {
	if e.Ahead > 0 {
		return ErrClockBehind
	}
	return ErrPoolExhausted
}
