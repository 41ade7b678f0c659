package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// window returns how long a claim with this TTL is trusted, counted from before the
// request was sent. The remaining tenth allows for clocks of different speeds.
func window(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// request returns a request of a holder. Its range, from Now to Until, is the trust
// window of a claim with this TTL that is granted now.
func (o Options) request(holder string, ttl time.Duration) Request {
	now := o.Clock().UnixMilli()
	return Request{Holder: holder, TTL: o.TTL, Now: now, Until: now + window(ttl).Milliseconds(), MaxSkew: max(o.MaxSkew, 0)}
}

// grantedTTL returns the TTL of a claim that a store has granted for ttl: the requested one, if
// the store doesn't name a shorter one.
func (r Request) grantedTTL(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return r.TTL
	}
	return min(ttl, r.TTL)
}

// The limits of a release: the time for a call, and the number of calls.
const (
	maxRelease  = 5 * time.Second
	maxReleases = 31
)

// release releases a number. If a call fails, it retries until the context ends. In a store
// whose claims live as long as a connection, the number would otherwise stay held. In other
// stores the claim expires anyway.
func release(ctx context.Context, store Store, pool Pool, c Claim, highWaterMark int64) error {
	for calls := 1; ; calls++ {
		_, err := bounded(context.Background(), min(c.TTL/3, maxRelease), func(ctx context.Context) (Claim, error) {
			return Claim{}, store.Release(ctx, pool, c, highWaterMark)
		})
		if err == nil || ctx.Err() != nil || calls == maxReleases {
			return err
		}
		pause(ctx, jitter(c.TTL/3))
	}
}

// maxGrace is the longest time that a store's call may take to return after its
// context has ended.
const maxGrace = 100 * time.Millisecond

// bounded makes a call with a context that ends a little before the limit. If the call ignores
// its context, bounded returns an error without waiting for it: at the limit, or
// maxGrace after the caller's context has ended.
func bounded(ctx context.Context, limit time.Duration, call func(context.Context) (Claim, error)) (Claim, error) {
	type answer struct {
		claim Claim
		err   error
	}
	answers := make(chan answer, 1)
	grace := min(limit/10, maxGrace)
	inner, cancel := context.WithTimeout(ctx, limit-grace)
	go func() {
		defer cancel()
		c, err := call(inner)
		answers <- answer{c, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-inner.Done():
		if ctx.Err() != nil {
			grace = maxGrace
		}
		// If the process was paused meanwhile, the answer may have arrived as well.
		select {
		case a = <-answers:
		case <-time.After(grace):
			a.err = inner.Err()
		}
	}
	if a.err != nil && ctx.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded) {
		a.err = fmt.Errorf("no answer within %v; check the connection to the store: %w", limit.Round(time.Millisecond), a.err)
	}
	return a.claim, a.err
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jitter changes d by up to a tenth, either way, so that processes that started
// together don't call the store at the same moment. The random number is the kernel's: copies
// of a virtual machine would continue with the same numbers of a generator in the process.
func jitter(d time.Duration) time.Duration {
	n, _ := crand.Int(crand.Reader, big.NewInt(int64(d)/5+1)) // never fails
	return d - d/10 + time.Duration(n.Int64())
}
