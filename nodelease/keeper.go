package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
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
	// Skew is how far this machine's clock is ahead of the store's, to within the
	// duration of a call. It is negative if this machine's clock is behind, and 0 if
	// the store doesn't report its time.
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

// maxRelease is the time limit of a release.
const maxRelease = 5 * time.Second

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

// finished reports whether the release has succeeded or has been given up.
func (k *Keeper) finished() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// keep renews the claim until it ends, and then releases the number.
func (k *Keeper) keep(ctx context.Context) {
	defer close(k.done)
	if err := k.renewals(ctx); err != nil && k.end(err) {
		close(k.lost)
		k.o.Logger.Warn("node number lost", "pool", k.pool.Name, "number", k.number, "error", err)
	}
	ttl, _ := k.trust()
	err := untilReleased(ctx, ttl, k.release)
	if err != nil {
		err = fmt.Errorf("nodelease: release number %d of pool %q: %w", k.number, k.pool.Name, err)
		k.o.Logger.Warn("node number not released", "pool", k.pool.Name, "number", k.number, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released = err
}

// renewals renews the claim whenever a renewal is due. If the claim is lost, it
// returns the reason. If the context ends, it returns nil.
func (k *Keeper) renewals(ctx context.Context) error {
	for ctx.Err() == nil {
		k.untilDue(ctx)
		if err := k.renewInTime(ctx); err != nil {
			return err
		}
	}
	return nil
}

// renewInTime tries to renew the claim until it succeeds. If the claim is lost, it
// returns the reason. If the context ends, it returns nil.
func (k *Keeper) renewInTime(ctx context.Context) error {
	ttl, trusted := k.trust()
	failure := errors.New("this process was suspended")
	for retry := ttl / 30; ctx.Err() == nil; retry = min(2*retry, ttl/6) {
		left := time.Until(trusted)
		if left <= 0 {
			return fmt.Errorf("nodelease: renew number %d of pool %q: not renewed within %v; claim a number again: %w: %w",
				k.number, k.pool.Name, window(ttl), failure, idtype.ErrLeaseLost)
		}
		failure = k.renew(ctx, min(ttl/6, left))
		switch {
		case failure == nil || ctx.Err() != nil:
			return nil
		case errors.Is(failure, ErrSuperseded):
			return fmt.Errorf("nodelease: renew number %d of pool %q: the claim is over; claim a number again: %w: %w",
				k.number, k.pool.Name, failure, idtype.ErrLeaseLost)
		}
		left = time.Until(trusted)
		k.o.Logger.Warn("node number not renewed", "pool", k.pool.Name, "number", k.number, "left", left, "error", failure)
		pause(ctx, min(jitter(retry), left))
	}
	return nil
}

// untilDue waits until a renewal is due. It also watches the wall clock. If that clock
// was set forward, or the machine was suspended, it may be past Until long before a
// renewal is due by the monotonic clock. The generator can't create IDs until the
// renewal.
func (k *Keeper) untilDue(ctx context.Context) {
	k.mu.Lock()
	ttl, trusted := k.claim.TTL, k.trusted
	due := k.asked + (ttl / 2).Milliseconds()
	k.mu.Unlock()
	for end := time.Now().Add(min(jitter(ttl/3), time.Until(trusted))); ; {
		if ctx.Err() != nil || k.o.Clock().UnixMilli() >= due {
			return
		}
		left := time.Until(end) // after the call, in which the process may have been suspended
		if left <= 0 {
			return
		}
		pause(ctx, min(left, ttl/10, 500*time.Millisecond))
	}
}

// window returns how long a claim with this TTL is trusted, counted from before the
// request was sent. The remaining tenth allows for clocks of different speeds.
func window(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// grantedTTL returns the TTL of a claim that a store has granted for ttl: the requested one, if
// the store doesn't name a shorter one.
func (r Request) grantedTTL(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return r.TTL
	}
	return min(ttl, r.TTL)
}

// request returns a request of a holder. Its range, from Now to Until, is the trust
// window of a claim with this TTL that is granted now.
func (o Options) request(holder string, ttl time.Duration) Request {
	now := o.Clock().UnixMilli()
	return Request{Holder: holder, TTL: o.TTL, Now: now, Until: now + window(ttl).Milliseconds(), MaxSkew: max(o.MaxSkew, 0)}
}

// renew renews the claim once.
func (k *Keeper) renew(ctx context.Context, limit time.Duration) error {
	// Each attempt has a nonce of its own, drawn now: if a copy of this process makes the
	// same attempt, the store must see two holders. If the answer is lost, a later call
	// presents this nonce too.
	nonce := crand.Text()
	k.mu.Lock()
	c, trusted := k.claim, k.trusted
	k.claim.Sent = append(slices.Clone(c.Sent), nonce)
	k.mu.Unlock()
	// Take the time before sending: the store counts the TTL from when it receives
	// the request.
	sent := time.Now()
	r := k.o.request(k.holder, c.TTL)
	r.Nonce = nonce
	// The process may have been suspended since the caller chose the limit. The call must not
	// outlast the trust window: the generator creates IDs until it ends.
	limit = min(limit, time.Until(trusted))
	renewed, err := bounded(ctx, limit, func(ctx context.Context) (Claim, error) { return k.store.Renew(ctx, k.pool, c, r) })
	if err == nil && (renewed.Number != k.number || renewed.Term != k.term || renewed.Holder != k.holder || renewed.Until < r.Until) {
		err = fmt.Errorf("the store's answer doesn't match the claim: want number %d in term %d for %q until %s, got number %d in term %d for %q until %s",
			k.number, k.term, k.holder, stamp(r.Until), renewed.Number, renewed.Term, renewed.Holder, stamp(renewed.Until))
	}
	took := time.Since(sent)
	if err == nil {
		k.granted(r, renewed, sent)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.stats.Renewals++
		k.stats.RenewalTime += took
		k.failing = nil
	} else if ctx.Err() == nil {
		k.stats.Failures++
		k.stats.LastFailure = err
		if skewed := (*skewError)(nil); errors.As(err, &skewed) {
			k.stats.Skew = skewed.skew
		}
		k.failing = err
	}
	return err
}

// granted records a claim that the store granted or renewed.
func (k *Keeper) granted(r Request, c Claim, sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.TTL = r.grantedTTL(c.TTL)
	c.Nonce, c.Sent, c.Past = r.Nonce, nil, nil
	if r.Nonce != "" { // a renewal
		c.Past = k.claim.past()
	}
	k.claim, k.asked = c, r.Now
	k.trusted = sent.Add(window(c.TTL))
	if !c.Time.IsZero() {
		k.stats.Skew = time.UnixMilli(r.Now).Sub(c.Time)
	}
	if k.err == nil {
		// The stored high-water mark may be later than r.Until, if the clock was ahead
		// at an earlier request.
		k.until.Store(min(r.Until, c.Until))
	}
}

// trust returns the claim's TTL and the end of its trust window.
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

// release releases the number after the claim has ended.
func (k *Keeper) release() error {
	k.mu.Lock()
	c, minted := k.claim, k.minted
	k.mu.Unlock()
	highWaterMark := c.Until
	if minted != nil {
		highWaterMark = max(minted(), k.after)
	}
	return release(k.store, k.pool, c, highWaterMark)
}

// untilReleased retries the release of a lost number. In a store whose claims live as long as a
// connection, the number would otherwise stay held. In other stores the claim expires anyway.
func untilReleased(ctx context.Context, ttl time.Duration, release func() error) error {
	err := release()
	for tries := 0; err != nil && ctx.Err() == nil && tries < 30; tries++ {
		pause(ctx, jitter(ttl/3))
		err = release()
	}
	return err
}

func release(store Store, pool Pool, c Claim, highWaterMark int64) error {
	_, err := bounded(context.Background(), min(c.TTL/3, maxRelease), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, store.Release(ctx, pool, c, highWaterMark)
	})
	return err
}
