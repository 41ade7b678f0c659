package nodelease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Store records which process holds which number. Package pglease implements it in
// Postgres, package zklease in ZooKeeper, package filelease in a directory. Programs pass a Store to [Acquire] or a
// constructor of a [Generator], and don't call its methods. Package leasetest has the
// tests that each implementation must pass.
//
// A Store is safe for concurrent use. Each call is atomic: it makes all of its
// changes or none. It makes none if its context ended before the call, and it returns
// when its context ends. Confirmed changes survive a crash of the service that stores
// them. A failed call may still take effect, even later: a process may hold a number
// without knowing it, and the stored high-water mark may be higher than the Claim's
// Until.
type Store interface {
	// Claim grants a number of the pool that isn't held, isn't reserved, and has a
	// high-water mark before r.Now. Among several it chooses the number with the lowest
	// high-water mark. A store may prefer released numbers to numbers with expired
	// claims, and may compare only a random part of a large pool. Unless the holder
	// releases it, no other holder gets the number for r.TTL, by the store's clock.
	// Claim writes r.Until as the new high-water mark. A store may grant a shorter TTL
	// ([Request.LimitTTL]).
	//
	// A call with the Holder of an earlier call repeats that call. If the earlier
	// claim was granted, and was neither renewed nor released, Claim returns its number,
	// term and After, even if the high-water mark has moved since, and extends it as
	// Renew does. A claim whose holder never receives the answer expires like any other.
	//
	// If no number can be granted, the error wraps a [*BusyError]; use errors.As. If the
	// holder's clock is too far from the store's, the error is that of
	// [Request.CheckSkew], and Claim writes no high-water mark. If the pool was created with another Size or Layout, it wraps [ErrPoolMismatch]. If
	// no call can succeed until the setup changes, it wraps [ErrMisconfigured].
	//
	// The numbers in p.Reserved apply to this call only: the store doesn't grant
	// them to this caller, doesn't store them for later calls, and doesn't take them
	// from their holders.
	Claim(ctx context.Context, p Pool, r Request) (Claim, error)

	// Renew raises the high-water mark to r.Until, if that is later, and extends the
	// claim to r.TTL from now, by the store's clock. It stores r.Nonce, and returns a
	// claim with it. It may renew an expired claim if no other holder has claimed the
	// number since. If the number has another term or holder or a nonce that c doesn't
	// know ([Claim.Knows]), or was released, Renew changes nothing, and its error wraps
	// [ErrSuperseded]. If the holder's clock is too far from the store's, Renew changes
	// nothing, and its error is that of [Request.CheckSkew].
	Renew(ctx context.Context, p Pool, c Claim, r Request) (Claim, error)

	// Release ends a claim and sets the high-water mark to highWaterMark, which lies
	// between c.After and the stored high-water mark. The holder has created IDs up
	// to it, and creates no more. A concurrent Renew must not undo the release. If
	// the number has another term or holder or a nonce that c doesn't know, or was
	// released before, Release changes nothing and returns nil.
	Release(ctx context.Context, p Pool, c Claim, highWaterMark int64) error
}

// A Request holds a holder's arguments to [Store.Claim] and [Store.Renew].
type Request struct {
	Holder string        // unique to one claim and not empty; the part before the last space is for people to read
	TTL    time.Duration // duration of the claim
	Now    int64         // the holder's clock, in Unix milliseconds
	Until  int64         // the high-water mark to write: the end of the range to use, in Unix milliseconds
	// MaxSkew is the largest difference between Now and the store's clock at which the
	// store grants the request. 0 means no limit.
	MaxSkew time.Duration
	// Nonce is the random value of one call of Renew. It is empty in calls of Claim.
	Nonce string
}

// CheckSkew returns an error that wraps [ErrClockSkew] if the store's clock, which shows the
// time now, differs from r.Now by more than r.MaxSkew.
func (r Request) CheckSkew(now time.Time) error {
	skew := time.UnixMilli(r.Now).Sub(now)
	if r.MaxSkew <= 0 || -r.MaxSkew <= skew && skew <= r.MaxSkew {
		return nil
	}
	return r.SkewError(now, fmt.Sprintf("want at most %v; correct the clock that is wrong, or raise Options.MaxSkew", r.MaxSkew))
}

// SkewError returns an error that wraps [ErrClockSkew]. It has the times of both clocks, and
// the reason and remedy of a store with a limit of its own.
func (r Request) SkewError(now time.Time, reason string) error {
	skew, side := time.UnixMilli(r.Now).Sub(now), "ahead of"
	text := max(skew, -math.MaxInt64).Round(time.Millisecond)
	if skew < 0 {
		text, side = -text, "behind"
	}
	return &skewError{skew, fmt.Errorf("this machine's clock, at %s, is %v %s the store's, at %s; %s: %w",
		stamp(r.Now), text, side, stamp(now.UnixMilli()), reason, ErrClockSkew)}
}

// A skewError is the error of SkewError.
type skewError struct {
	skew time.Duration // of this machine's clock
	error
}

func (e *skewError) Unwrap() error { return e.error }

// LimitTTL returns the request that a store grants if it can't grant r.TTL. Its TTL
// is at most ttl, and the distance from Now to Until shrinks in proportion.
func (r Request) LimitTTL(ttl time.Duration) Request {
	if ttl < r.TTL {
		r.Until = r.Now + int64(float64(r.Until-r.Now)*float64(ttl)/float64(r.TTL))
		r.TTL = ttl
	}
	return r
}

// TimeToPass returns how long the holder's clock takes, from r.Now, to pass a
// high-water mark. Stores use it for the RetryAfter of a [BusyError].
func (r Request) TimeToPass(highWaterMark int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms := highWaterMark - r.Now
	if highWaterMark < r.Now {
		return 0
	}
	if ms < 0 || ms >= most { // ms < 0: overflow
		return math.MaxInt64
	}
	return time.Duration(ms+1) * time.Millisecond
}

// A Claim is a store's grant of a number to a holder.
type Claim struct {
	Number int
	// Term increases each time the number is claimed. Number, Term and Holder
	// identify the claim.
	Term   int64
	Holder string
	// After is the high-water mark of the previous holder, in Unix milliseconds; 0
	// if the number was never used.
	After int64
	// Until is the stored high-water mark, in Unix milliseconds.
	Until int64
	// TTL is the granted duration, at least a second. 0 means the requested TTL.
	TTL time.Duration
	// Time is the time of the store's clock, or zero if the store doesn't report it.
	Time time.Time
	// Nonce is the nonce of the last confirmed renewal; "" before the first one. It tells
	// copies of one process apart, which have the same number, term and holder: the
	// first copy that renews the claim changes the stored nonce.
	Nonce string
	// Sent has the nonces of later renewals that failed. One of them may have taken
	// effect.
	Sent []string
	// Past has the nonces before Nonce, oldest first, of the last 70 renewals or so. A store that
	// went back in time has one of them: a standby that was promoted without the last
	// changes of its primary. A copy of the process doesn't know the nonces of renewals
	// since it was copied.
	Past []string
}

// maxPast is the length of Past. A store takes up to 100 nonces per call, and a Keeper sends about
// 20 renewals without an answer before its trust window ends.
const maxPast = 70

// past returns Past after the last renewal in Sent.
func (c Claim) past() []string {
	all := slices.Concat(c.Past, []string{c.Nonce}, c.Sent[:max(len(c.Sent)-1, 0)])
	return all[max(len(all)-maxPast, 0):]
}

// Knows reports whether the claim's holder is the one that stored a nonce. Stores call
// it before they renew or release a claim.
func (c Claim) Knows(nonce string) bool {
	return nonce == c.Nonce || slices.Contains(c.Sent, nonce) || slices.Contains(c.Past, nonce)
}

// Errors of this package and of stores wrap these, so compare with [errors.Is].
var (
	// ErrPoolExhausted: all numbers of the pool are held or reserved.
	ErrPoolExhausted = errors.New("pool exhausted")
	// ErrClockBehind: the pool has free numbers, but the clock hasn't passed the
	// high-water marks that their holders left.
	ErrClockBehind = errors.New("clock behind the high-water marks")
	// ErrClockSkew: this machine's clock and the store's differ by more than
	// Options.MaxSkew.
	ErrClockSkew = errors.New("clock skew")
	// ErrSuperseded: the number has another holder, the claim was released, or a copy of
	// this process has renewed it.
	ErrSuperseded = errors.New("claim superseded")
	// ErrPoolMismatch: the pool was created with another size or layout.
	ErrPoolMismatch = errors.New("pool layout mismatch")
	// ErrMisconfigured: the store can't be used as it is set up, and a retry doesn't
	// help. Causes are a wrong config, a missing schema or privilege, and a closed
	// store. Acquire fails at once with this error and ErrPoolMismatch. After most
	// other errors of a store it retries until Options.Wait is over.
	ErrMisconfigured = errors.New("unusable store")
	// ErrClosed: Close ended the claim. After that, the errors of the claim's generator
	// wrap ErrClosed, and also idtype.ErrLeaseLost.
	ErrClosed error = closed{}
)

type closed struct{}

func (closed) Error() string { return "closed" }
func (closed) Unwrap() error { return idtype.ErrLeaseLost }

// A BusyError reports that no number could be claimed. Its counts describe the pool
// at some time during the call. It wraps [ErrClockBehind] if the pool has free
// numbers, but the clock hasn't passed their high-water marks. Otherwise it wraps
// [ErrPoolExhausted].
type BusyError struct {
	// RetryAfter is how long the clock takes to pass the lowest high-water mark of the
	// free numbers. If no number is free, it is the time until the first claim expires,
	// unless that claim is renewed. It is 0 if the store doesn't know.
	RetryAfter time.Duration
	Held       int // held numbers
	Ahead      int // free numbers whose high-water mark the clock hasn't passed
	Reserved   int // numbers in Pool.Reserved, or reserved in the store
}

func (e *BusyError) Error() string {
	size := e.Held + e.Ahead + e.Reserved
	if e.Ahead > 0 {
		return fmt.Sprintf("the clock must advance by %v to pass the lowest high-water mark of the free numbers (%d of %d; %d are held and %d reserved); check the system time here and where the numbers were used, or wait if another server of the store has just taken over: %v",
			e.RetryAfter, e.Ahead, size, e.Held, e.Reserved, ErrClockBehind)
	}
	expiry := ""
	if e.RetryAfter > 0 {
		expiry = fmt.Sprintf(" (the first expires in %v unless renewed)", e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("no number is free: %d of %d are held%s and %d reserved; wait longer, close unused generators, or use a layout with more numbers, in a schema of its own, for new tables: %v",
		e.Held, size, expiry, e.Reserved, ErrPoolExhausted)
}

// Unwrap returns [ErrClockBehind] or [ErrPoolExhausted].
func (e *BusyError) Unwrap() error {
	if e.Ahead > 0 {
		return ErrClockBehind
	}
	return ErrPoolExhausted
}
