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

// A Keeper holds a claim, and renews it in the background until Close. It is an
// [idtype.Lease], for one generator: a second one is refused. It is safe for
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

	until atomic.Int64 // math.MinInt64: ended
	lost  chan struct{}
	close context.CancelFunc
	done  chan struct{} // closed when the background is at rest

	mu       sync.Mutex
	claim    Claim
	asked    int64        // the holder's clock when the claim was last asked for
	trusted  time.Time    // the end of the trust window, by the monotonic clock
	minted   func() int64 // of the generator; nil: there is none yet
	err      error        // why the claim ended
	released error        // what became of the release, once done is closed
	stats    Stats
}

// A Keeper has the optional methods of a Lease too.
var _ interface {
	idtype.Lease
	Attach(layout string, minted func() int64) error
	Err() error
} = (*Keeper)(nil)

// Stats tell how a claim is doing.
type Stats struct {
	Number   int
	Term     int64
	Age      time.Duration // since it was claimed
	Left     time.Duration // of the trust window; 0 if the claim has ended
	Renewals uint64
	Failures uint64 // renewals that failed
	// LastFailure is why the last one did that failed.
	LastFailure error
	// Skew is by how much this machine's clock is ahead of the store's, give or
	// take the time of a call. 0 if the store doesn't tell.
	Skew time.Duration
}

func newKeeper(store Store, pool Pool, o Options, r Request, c Claim, sent time.Time) *Keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{
		store: store, pool: pool, o: o, number: c.Number, term: c.Term, holder: r.Holder, after: c.After, begun: sent,
		lost: make(chan struct{}), close: cancel, done: make(chan struct{}),
	}
	k.granted(r, c, sent)
	go k.keep(ctx)
	return k
}

// Number is the number that is held.
func (k *Keeper) Number() int { return k.number }

// After is in Unix milliseconds: up to there the number may have been used.
func (k *Keeper) After() int64 { return k.after }

// Until is in Unix milliseconds: up to there the number may be used now. It is
// [math.MinInt64] once the claim has ended.
func (k *Keeper) Until() int64 { return k.until.Load() }

// Attach is called by the generator that mints under the claim. It refuses a
// second one, which would repeat the first one's IDs, and one of another layout
// than the pool's ([idtype.ErrNode]).
func (k *Keeper) Attach(layout string, minted func() int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.err != nil:
		return k.err
	case k.minted != nil:
		return fmt.Errorf("nodelease: expected one generator for number %d of pool %q, got a second one, which would repeat the IDs of the first: acquire a number for each: %w",
			k.number, k.pool.Name, idtype.ErrNode)
	case k.pool.checked && layout != k.pool.Layout:
		return fmt.Errorf("nodelease: expected a generator for the numbers of pool %q (%s), got one for others (%s): make the pool from the generator's layout: %w",
			k.pool.Name, k.pool.Layout, layout, idtype.ErrNode)
	}
	k.minted = minted
	return nil
}

// attached says whether there is a generator.
func (k *Keeper) attached() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.minted != nil
}

// Lost is closed when the claim is lost. A claim that is closed before stays
// open here.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Err tells why the claim has ended, and wraps [idtype.ErrLeaseLost]; if it was
// by Close, [ErrClosed] too. It is nil while the claim is held.
func (k *Keeper) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Stats tells how the claim is doing.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Number, s.Term, s.Age = k.number, k.term, time.Since(k.begun)
	if k.err == nil {
		s.Left = max(time.Until(k.trusted), 0)
	}
	return s
}

// maxRelease is how long giving a number back takes at the most.
const maxRelease = 5 * time.Second

// Close gives the number back: from the last unit on in which its generator has
// minted, so that the next holder needn't wait, or without a generator of package
// idtype from Until on. A Keeper that has lost its claim has to be closed, too. It
// takes some 5 s at the most. An error tells that the store didn't take
// the number back: then it is held until the TTL is over. Further calls give the
// same.
func (k *Keeper) Close() error {
	k.end(fmt.Errorf("nodelease: number %d of pool %q given back: %w", k.number, k.pool.Name, ErrClosed))
	k.close()
	<-k.done
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.released
}

// atRest says whether the number was given back, or that was given up.
func (k *Keeper) atRest() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// keep renews the claim until it ends, and then gives the number back.
func (k *Keeper) keep(ctx context.Context) {
	defer close(k.done)
	if err := k.renewals(ctx); err != nil && k.end(err) {
		close(k.lost)
		k.o.Logger.Warn("node number lost", "pool", k.pool.Name, "number", k.number, "error", err)
	}
	err := k.release()
	// Where a claim lives as long as a connection, a number that was lost would
	// be held on. Elsewhere it is free by now.
	for tries := 0; err != nil && ctx.Err() == nil && tries < 30; tries++ {
		ttl, _ := k.trust()
		pause(ctx, jitter(ttl/3))
		err = k.release()
	}
	if err != nil {
		err = fmt.Errorf("nodelease: number %d of pool %q not given back: %w", k.number, k.pool.Name, err)
		k.o.Logger.Warn("node number not given back", "pool", k.pool.Name, "number", k.number, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released = err
}

// renewals renews the claim whenever that is due, until it is lost: then it
// returns why. It returns nil when the context ends.
func (k *Keeper) renewals(ctx context.Context) error {
	for ctx.Err() == nil {
		k.untilDue(ctx)
		if err := k.renewInTime(ctx); err != nil {
			return err
		}
	}
	return nil
}

// renewInTime tries to renew the claim until that works, or the claim is lost:
// then it returns why. It returns nil when the context ends.
func (k *Keeper) renewInTime(ctx context.Context) error {
	ttl, trusted := k.trust()
	failure := errors.New("this process didn't run meanwhile")
	for retry := ttl / 30; ctx.Err() == nil; retry = min(2*retry, ttl/6) {
		left := time.Until(trusted)
		if left <= 0 {
			return fmt.Errorf("nodelease: expected a renewal of number %d of pool %q within %v, got none: claim a number again: %w: %w",
				k.number, k.pool.Name, window(ttl), failure, idtype.ErrLeaseLost)
		}
		failure = k.renew(ctx, min(ttl/6, left))
		switch {
		case failure == nil || ctx.Err() != nil:
			return nil
		case errors.Is(failure, ErrSuperseded):
			return fmt.Errorf("nodelease: expected to hold number %d of pool %q, got it taken away: claim a number again: %w: %w",
				k.number, k.pool.Name, failure, idtype.ErrLeaseLost)
		}
		left = time.Until(trusted)
		k.o.Logger.Warn("node number not renewed", "pool", k.pool.Name, "number", k.number, "left", left, "error", failure)
		pause(ctx, min(jitter(retry), left))
	}
	return nil
}

// untilDue waits until the claim is to be renewed. The wall clock of a machine
// that was suspended, or whose clock was set forward, shows that before the
// monotonic clock does; until then the generator wouldn't mint.
func (k *Keeper) untilDue(ctx context.Context) {
	k.mu.Lock()
	ttl, trusted := k.claim.TTL, k.trusted
	due := k.asked + (ttl / 2).Milliseconds()
	k.mu.Unlock()
	for end := time.Now().Add(min(jitter(ttl/3), time.Until(trusted))); ; {
		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil || k.o.Clock().UnixMilli() >= due {
			return
		}
		pause(ctx, min(left, ttl/10, 500*time.Millisecond))
	}
}

// renew renews the claim once.
func (k *Keeper) renew(ctx context.Context, limit time.Duration) error {
	k.mu.Lock()
	c := k.claim
	k.mu.Unlock()
	// Before anything is sent: the store counts from when it gets it.
	sent := time.Now()
	r := k.o.request(k.holder, c.TTL)
	renewed, err := bounded(ctx, limit, func(ctx context.Context) (Claim, error) { return k.store.Renew(ctx, k.pool, c, r) })
	if err == nil && (renewed.Number != k.number || renewed.Term != k.term || renewed.Holder != k.holder || renewed.Until < r.Until) {
		err = fmt.Errorf("nodelease: expected the store to renew number %d in term %d for %q up to %s, got number %d in term %d for %q up to %s",
			k.number, k.term, k.holder, stamp(r.Until), renewed.Number, renewed.Term, renewed.Holder, stamp(renewed.Until))
	}
	if err == nil {
		k.granted(r, renewed, sent)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.stats.Renewals++
	} else if ctx.Err() == nil {
		k.stats.Failures++
		k.stats.LastFailure = err
	}
	return err
}

// granted takes over what the store wrote.
func (k *Keeper) granted(r Request, c Claim, sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.TTL <= 0 || c.TTL > r.TTL {
		c.TTL = r.TTL
	}
	k.claim, k.asked = c, r.Now
	k.trusted = sent.Add(window(c.TTL))
	if !c.Time.IsZero() {
		k.stats.Skew = time.UnixMilli(r.Now).Sub(c.Time)
	}
	if k.err == nil {
		// What was written may reach further, if the clock was ahead.
		k.until.Store(min(r.Until, c.Until))
	}
}

// trust is how long the claim stands, and until when it is trusted.
func (k *Keeper) trust() (ttl time.Duration, until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.claim.TTL, k.trusted
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

// release gives the number back after the claim has ended.
func (k *Keeper) release() error {
	k.mu.Lock()
	c, minted := k.claim, k.minted
	k.mu.Unlock()
	highWaterMark := c.Until
	if minted != nil {
		highWaterMark = max(minted(), k.after)
	}
	_, err := bounded(context.Background(), min(c.TTL/3, maxRelease), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, k.store.Release(ctx, k.pool, c, highWaterMark)
	})
	return err
}
