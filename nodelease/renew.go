package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// keep renews the claim until it ends, and then releases the number.
func (k *Keeper) keep(ctx context.Context) {
	defer close(k.done)
	var lost error
	for lost == nil && ctx.Err() == nil {
		k.untilDue(ctx)
		lost = k.renewInTime(ctx)
	}
	if lost != nil && k.end(lost) {
		close(k.lost)
		k.o.Logger.Warn("node number lost", "pool", k.pool.Name, "number", k.number, "error", lost)
	}
	k.mu.Lock()
	c, minted := k.claim, k.minted
	k.mu.Unlock()
	highWaterMark := c.Until
	if minted != nil {
		highWaterMark = max(minted(), k.after)
	}
	err := release(ctx, k.store, k.pool, c, highWaterMark)
	if err != nil {
		err = fmt.Errorf("nodelease: release number %d of pool %q: %w", k.number, k.pool.Name, err)
		k.o.Logger.Warn("node number not released", "pool", k.pool.Name, "number", k.number, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released = err
}

// renewInTime tries to renew the claim until it succeeds. If the claim is lost, it
// returns the reason. If the context ends, it returns nil.
func (k *Keeper) renewInTime(ctx context.Context) error {
	k.mu.Lock()
	ttl, trusted := k.claim.TTL, k.trusted
	k.mu.Unlock()
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

// longestReading is the longest call that compares the clocks: the error is up to half of its
// duration.
const longestReading = time.Second

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
	if took := time.Since(sent); took <= longestReading && !c.Time.IsZero() {
		k.stats.Skew = time.UnixMilli(r.Now).Add(took / 2).Sub(c.Time)
	}
	if k.err == nil {
		// The stored high-water mark may be later than r.Until, if the clock was ahead
		// at an earlier request.
		k.until.Store(min(r.Until, c.Until))
	}
}
