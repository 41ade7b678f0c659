package nodelease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Store keeps who holds which number, for all processes. Package pglease has
// one in Postgres, zklease one in ZooKeeper. Programs give it to [Acquire] and
// needn't call it; package leasetest has the tests that each must pass.
//
// A store is safe for concurrent use. Each call changes all it has to or
// nothing, does nothing if its context has ended before, and ends when that does.
// What a call has confirmed outlasts a crash of the service that keeps it. What was
// asked for in a call that failed may have been done all the same, also later: a
// claim may stand of which nobody knows, and Until may lag behind what is written.
type Store interface {
	// Claim gives a number of the pool that isn't held, isn't reserved, and whose
	// mark is behind r.Now. If there is a choice, it takes the one with the lowest
	// mark; a store may prefer released numbers to those whose claims have expired. Until
	// r.TTL later by the store's clock nobody else gets the number, unless it is
	// released. Claim writes r.Until as the new mark. A store may grant less than the
	// TTL ([Request.Shorten]).
	//
	// A call with the Holder of an earlier one is that call's repetition: if that
	// was granted, and not released, it gives the same number, term and After,
	// whatever the mark is by now, and otherwise does as Renew. A claim of which its
	// holder never learns ends like any other.
	//
	// If there is no such number, it gives a [*BusyError]. If the pool was made
	// with another Size or Layout, the error wraps [ErrPoolMismatch]. If no call can
	// succeed until somebody changes the setup, it wraps [ErrMisconfigured].
	//
	// The numbers in p.Reserved count for this call alone: the store doesn't grant
	// one of them to this caller, keeps none for later calls, and takes none from
	// its holder.
	Claim(ctx context.Context, p Pool, r Request) (Claim, error)

	// Renew moves the mark on to r.Until, never back, and the claim's end to r.TTL
	// later by the store's clock. A claim that was over may be renewed as long as
	// nobody else has got the number. If the number's term or holder is
	// another, or it was released, nothing changes, and the error wraps [ErrTermOver].
	Renew(ctx context.Context, p Pool, c Claim, r Request) (Claim, error)

	// Release ends a claim, and sets the mark to a value between c.After and
	// the one written: up to there the holder has minted, and it won't
	// mint any more. A Renew that is still under way mustn't undo that. If the
	// number's term or holder is another, or it was released, nothing changes, and
	// that is no error.
	Release(ctx context.Context, p Pool, c Claim, mark int64) error
}

// A Request is what a holder asks of a store.
type Request struct {
	Holder string        // unique to one claim, and never empty; up to its last space it is for people
	TTL    time.Duration // how long the number is to be the holder's
	Now    int64         // the holder's clock, in Unix milliseconds
	Until  int64         // up to where it wants to mint: the mark to write, in Unix milliseconds
}

// Shorten gives the request to be granted by a store that can't grant the TTL:
// with one of at most ttl, and a mark that is nearer to Now in proportion.
func (r Request) Shorten(ttl time.Duration) Request {
	if ttl < r.TTL {
		r.Until = r.Now + int64(float64(r.Until-r.Now)*float64(ttl)/float64(r.TTL))
		r.TTL = ttl
	}
	return r
}

// A Claim is what a store has granted.
type Claim struct {
	Number int
	// Term is larger with each time that the number is claimed. Together with
	// Holder it is what a claim is known by.
	Term   int64
	Holder string
	// After is the mark that the one before left, in Unix milliseconds; 0
	// for a number that was never used.
	After int64
	// Until is the mark as it is written now.
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
	// ErrClockBehind: there are free numbers, but the clock is behind the marks
	// that their holders left.
	ErrClockBehind = errors.New("clock behind the marks")
	// ErrTermOver: someone else has got the number, or it was released.
	ErrTermOver = errors.New("term over")
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

// A BusyError tells why no number could be claimed. It is an [ErrClockBehind] if
// there were free ones that the clock is behind, else an [ErrPoolExhausted].
// A store fills in Held, Reserved, Ahead, Frees, Mark and Reservations, as they were at some
// time during the call.
type BusyError struct {
	Pool     Pool
	Held     int           // numbers that are held
	Reserved int           // numbers in Pool.Reserved, or reserved in the store
	Ahead    int           // numbers that are free, but whose mark the clock is behind
	Frees    time.Duration // until the first of the held ones is free if it isn't renewed; 0 if unknown
	Mark     int64         // the lowest mark of those ahead, in Unix milliseconds
	Now      int64         // the holder's clock
	Within   time.Duration // the time that there was for it
	// Reservations tells people of the reservations that the store keeps: the
	// first numbers, what each is for, and how to give one back. "" if there are none.
	Reservations string
}

func (e *BusyError) Error() string {
	if e.Ahead > 0 {
		return fmt.Sprintf("nodelease: expected the clock to pass %s within %v, up to which the free numbers of pool %q (%d of %d; %d are held and %d reserved%s) may have been used, got %s: check the system's time here and where the numbers were used, or wait, if another server of the store has just taken over: %v",
			stamp(e.Mark), e.Within, e.Pool.Name, e.Ahead, e.Pool.Size, e.Held, e.Reserved, e.reservedBy(), stamp(e.Now), ErrClockBehind)
	}
	frees := ""
	if e.Frees > 0 {
		frees = fmt.Sprintf(" (the first for %v more, if it isn't renewed)", e.Frees.Round(time.Millisecond))
	}
	return fmt.Sprintf("nodelease: expected a free number in pool %q within %v, got %d of %d held%s and %d reserved%s: wait longer, close what isn't needed, or choose a layout with more numbers: %v",
		e.Pool.Name, e.Within, e.Held, e.Pool.Size, frees, e.Reserved, e.reservedBy(), ErrPoolExhausted)
}

// reservedBy names the two places where numbers are reserved.
func (e *BusyError) reservedBy() string {
	var by []string
	if len(e.Pool.Reserved) > 0 {
		by = append(by, "by Pool.Reserved of this process")
	}
	if e.Reservations != "" {
		by = append(by, "in the store: "+e.Reservations)
	}
	if len(by) == 0 {
		return ""
	}
	return " (" + strings.Join(by, "; ") + ")"
}

// Unwrap gives [ErrClockBehind] or [ErrPoolExhausted].
func (e *BusyError) Unwrap() error {
	if e.Ahead > 0 {
		return ErrClockBehind
	}
	return ErrPoolExhausted
}
