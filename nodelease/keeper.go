package nodelease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Keeper holds a claim and renews it in the background until Close. It is an
// [idtype.Lease] for one generator, and rejects a second one. It is safe for
// concurrent use.
type Keeper struct {
	store  Store
	pool   Pool
	o      Options
	number int
	term   int64
	holder string
	after  int64
	begun  time.Time

	until atomic.Int64 // math.MinInt64 once the claim has ended
	lost  chan struct{}
	close context.CancelFunc
	done  chan struct{} // closed when the background goroutine has ended

	mu       sync.Mutex
	claim    Claim
	asked    int64        // Request.Now of the last granted request
	trusted  time.Time    // the end of the trust window, by the monotonic clock
	minted   func() int64 // from Attach: the time up to which the generator has created IDs; nil before
	err      error        // why the claim ended
	failing  error        // the error of the last renewal; nil if it succeeded
	released error        // the result of the release, once done is closed
	stats    Stats
}

var _ idtype.Lease = (*Keeper)(nil)

// Stats holds the state of a claim.
type Stats struct {
	Pool     string // the name of the pool
	Number   int
	Term     int64
	Age      time.Duration // time since the claim was requested
	Left     time.Duration // time left in the trust window; 0 if the claim has ended
	Renewals uint64        // successful renewals
	Failures uint64        // failed renewals
	// RenewalTime is the total duration of the successful renewals, from the request to
	// the answer. RenewalTime divided by Renewals is the mean.
	RenewalTime time.Duration
	// LastFailure is the error of the last failed renewal.
	LastFailure error
	// Skew is how far this machine's clock is ahead of the store's, to within half the
	// duration of a call. Calls that take more than a second leave it unchanged, unless
	// the store refuses them for their skew. It is negative if this machine's clock is
	// behind, and 0 if the store doesn't report its time.
	Skew time.Duration
}

// newKeeper returns a Keeper that doesn't renew the claim before start.
func newKeeper(store Store, pool Pool, o Options, r Request, c Claim, sent time.Time) *Keeper {
	k := &Keeper{
		store: store, pool: pool, o: o, number: c.Number, term: c.Term, holder: r.Holder, after: c.After, begun: sent,
		lost: make(chan struct{}), done: make(chan struct{}),
	}
	k.granted(r, c, sent)
	return k
}

// start begins to renew the claim, and returns k.
func (k *Keeper) start() *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k.close = cancel
	go k.keep(ctx)
	return k
}

// use returns k, or panics if it is the zero value.
func (k *Keeper) use() *Keeper {
	if k.done == nil {
		panic("nodelease: the Keeper is a zero value; create it with Acquire")
	}
	return k
}

// Number returns the claimed number.
func (k *Keeper) Number() int { return k.use().number }

// After returns the high-water mark that the claim found, in Unix milliseconds.
// Earlier holders may have used the number up to this time.
func (k *Keeper) After() int64 { return k.use().after }

// Until returns the time up to which the number may be used, in Unix milliseconds. It
// returns [math.MinInt64] once the claim has ended.
func (k *Keeper) Until() int64 { return k.until.Load() }

// Attach registers the generator that uses the number; generators of package idtype
// call it. [idtype.Lease] describes the arguments. Attach rejects a second generator,
// which would create the same IDs as the first, and a generator with another layout
// than the pool's ([Pool.Layout]). Both errors wrap [idtype.ErrConfig]. Once the claim
// has ended, Attach returns the error of Err.
func (k *Keeper) Attach(layout string, minted func() int64) error {
	k.use().mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.err != nil:
		return k.err
	case k.minted != nil:
		return fmt.Errorf("nodelease: attach a generator to number %d of pool %q: another generator is attached, and both would create the same IDs; acquire a number for each: %w",
			k.number, k.pool.Name, idtype.ErrConfig)
	case k.pool.checked && layout != k.pool.Layout:
		return fmt.Errorf("nodelease: attach a generator to number %d of pool %q: want layout %q, got %q; make the pool from the generator's layout: %w",
			k.number, k.pool.Name, k.pool.Layout, layout, idtype.ErrConfig)
	}
	k.minted = minted
	return nil
}

// attached reports whether the claim has a generator.
func (k *Keeper) attached() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.minted != nil
}

// Lost returns a channel that is closed when the claim is lost. If Close ends the
// claim first, the channel stays open.
func (k *Keeper) Lost() <-chan struct{} { return k.use().lost }

// Err returns nil while the claim is held, and then the reason why it ended. The
// error wraps [idtype.ErrLeaseLost], and [ErrClosed] if Close ended the claim.
func (k *Keeper) Err() error {
	k.use().mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Ready returns nil if the claim is held and at least a third of its TTL is left in the
// trust window. Otherwise it returns the error of Err, or the error of the last failed
// renewal. It doesn't call the store.
//
// If the renewals succeed at the first attempt, each within a tenth of the TTL, more than
// a third of the TTL is always left. While they fail, with the default TTL of 30 s, Ready
// fails from 17 s after the last successful renewal, 10 s before calls of the generator
// fail. Ready doesn't check the clock; the generator's Ready does.
func (k *Keeper) Ready() error {
	k.use().mu.Lock()
	defer k.mu.Unlock()
	left, failure := time.Until(k.trusted), k.failing
	switch {
	case k.err != nil:
		return k.err
	case left >= k.claim.TTL/3:
		return nil
	case failure == nil:
		failure = errors.New("no renewal has failed, so this process may have been suspended")
	}
	return fmt.Errorf("nodelease: number %d of pool %q: not renewed, and the claim ends in %v; check the store: %w",
		k.number, k.pool.Name, left.Round(time.Millisecond), failure)
}

// Stats returns the state of the claim.
func (k *Keeper) Stats() Stats {
	k.use().mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Pool, s.Number, s.Term, s.Age = k.pool.Name, k.number, k.term, time.Since(k.begun)
	if k.err == nil {
		s.Left = max(time.Until(k.trusted), 0)
	}
	return s
}

// Close ends the claim and releases the number. With an attached generator, it sets
// the high-water mark to the last unit of time in which the generator created an ID,
// so that the next holder needn't wait. Without one, the high-water mark stays at
// Until. A Keeper that has lost its claim must be closed too. Close takes about 5 s at
// most. If the store fails to release the number, Close returns an error, and the
// number stays held until the TTL is over. Further calls return the same result.
func (k *Keeper) Close() error {
	k.use().end(fmt.Errorf("nodelease: number %d of pool %q: %w", k.number, k.pool.Name, ErrClosed))
	k.close()
	<-k.done
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.released
}

// end marks the claim ended and reports whether this call did.
func (k *Keeper) end(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return false
	}
	k.err = err
	k.until.Store(math.MinInt64)
	return true
}
