package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Acquire retries at intervals that start at firstPoll and double. The longest interval
// is lastPoll while no number is free. While the store fails it is lastRetry, since the
// calls of all waiting processes may be overloading the store.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = 500 * time.Millisecond
	lastRetry = 2 * time.Second
	// maxClaim is the longest time for an attempt, if half of the TTL is longer: a connection
	// to a store that was replaced may never answer.
	maxClaim = 15 * time.Second
	// logEvery is the interval between messages about the same kind of failure.
	logEvery = time.Minute
	// forever is the Options.Wait of a Generator that has lost its claim.
	forever = time.Duration(math.MaxInt64)
)

// Acquire claims a number of a pool for one generator. The returned [Keeper] renews
// the claim until Close.
//
// If no number is free, or the store fails, Acquire retries until Options.Wait is over,
// plus half a TTL if the store doesn't answer. So a process can start while the store
// fails over. After that, Acquire returns the last error:
//
//   - If all numbers are held or reserved, the error wraps [ErrPoolExhausted].
//   - If numbers are free, but this machine's clock is behind their high-water
//     marks, the error wraps [ErrClockBehind].
//   - Both errors wrap a [*BusyError] with the counts of the pool; use errors.As.
//
// Acquire fails at once if waiting doesn't help: with [ErrMisconfigured], with
// [ErrPoolMismatch], and with [ErrClockBehind] if no number is held and the clock can't
// pass a high-water mark within Options.Wait. ctx limits the call of Acquire, not the
// life of the claim. If the store grants a number after Acquire has failed, the number is
// released in the background.
func Acquire(ctx context.Context, store Store, pool Pool, o Options) (*Keeper, error) {
	o, err := check(store, pool, o)
	if err != nil {
		return nil, err
	}
	return acquire(ctx, store, pool, o)
}

// check validates the store, the pool and the options, and returns the options with
// defaults filled in.
func check(store Store, pool Pool, o Options) (Options, error) {
	if v := reflect.ValueOf(store); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return o, fmt.Errorf("nodelease: the Store is nil; create one, for example with pglease.New: %w", ErrMisconfigured)
	}
	if err := pool.Validate(); err != nil {
		return o, err
	}
	return o.normal()
}

// acquire claims a number for a new holder, until o.Wait is over. All attempts are for the
// same holder: if the answer to one is lost, the next one gets the same claim.
func acquire(ctx context.Context, store Store, pool Pool, o Options) (k *Keeper, err error) {
	a := &attempts{store: store, pool: pool, holder: o.Holder + " " + crand.Text()}
	defer func() { a.finish(k) }()
	begun, wait := time.Now(), max(o.Wait, 0)
	var cause error // the last error that isn't a timeout, reported together with a later timeout
	var logged string
	var loggedAt time.Time
	for poll := firstPoll; ; poll *= 2 {
		sent := time.Now()
		r := o.request(a.holder, o.TTL)
		c, err := a.try(ctx, r)
		if err == nil {
			return newKeeper(store, pool, o, r, c, sent).start(), nil
		}
		left := wait - time.Since(begun)
		if permanent(err, left) {
			return nil, fmt.Errorf("nodelease: claim a number of pool %q: %w", pool.Name, err)
		}
		longest, level, message := lastRetry, slog.LevelWarn, "claim failed; retrying"
		if busy := (*BusyError)(nil); errors.As(err, &busy) {
			longest, message = lastPoll, "waiting for a node number"
			if time.Since(begun) < logEvery {
				level = slog.LevelInfo
			}
		}
		poll = min(poll, longest)
		if left > 0 {
			if message != logged || time.Since(loggedAt) >= logEvery {
				logged, loggedAt = message, time.Now()
				o.Logger.Log(context.Background(), level, message, "pool", pool.Name, "waited", time.Since(begun), "error", err)
			}
			pause(ctx, min(jitter(poll), left))
		}
		if timeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled); !timeout {
			cause = err
		} else if cause != nil {
			err = fmt.Errorf("%w; earlier error: %w", err, cause)
		}
		if ended := ctx.Err(); ended != nil {
			if !errors.Is(err, ended) {
				err = fmt.Errorf("%w: %w", ended, err)
			}
			return nil, fmt.Errorf("nodelease: claim a number of pool %q: gave up after %v: %w", pool.Name, time.Since(begun).Round(time.Millisecond), err)
		}
		if left <= 0 {
			return nil, fmt.Errorf("nodelease: claim a number of pool %q: none within %v: %w", pool.Name, wait, err)
		}
	}
}

// errInvalid is the error of a store that grants a claim other than the requested one.
var errInvalid = errors.New("invalid answer of the store")

// permanent reports whether another attempt to claim a number would fail too, if the
// attempts may go on for the time left.
func permanent(err error, left time.Duration) bool {
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		// No number is held, and the clock can't pass a high-water mark in time.
		return busy.Held == 0 && busy.Ahead > 0 && busy.RetryAfter > left
	}
	return errors.Is(err, ErrPoolMismatch) || errors.Is(err, ErrMisconfigured) || errors.Is(err, errInvalid)
}

// attempts are the calls of Store.Claim for one holder. Each may be granted a claim, also after
// its caller has stopped waiting for the answer.
type attempts struct {
	store  Store
	pool   Pool
	holder string

	mu     sync.Mutex
	claims []Claim // granted so far
	ended  bool    // add releases further claims
	used   *Keeper // has one of the claims; nil if none is used
}

// try calls the store once and checks its answer.
func (a *attempts) try(ctx context.Context, r Request) (Claim, error) {
	sent := time.Now()
	c, err := bounded(ctx, min(r.TTL/2, maxClaim), func(ctx context.Context) (Claim, error) {
		c, err := a.store.Claim(ctx, a.pool, r)
		if err == nil && c.Holder == r.Holder {
			granted := c
			granted.TTL = r.grantedTTL(c.TTL)
			a.add(granted)
		}
		return c, err
	})
	took := time.Since(sent)
	var busy *BusyError
	switch ttl := r.grantedTTL(c.TTL); {
	case errors.As(err, &busy):
		return c, fmt.Errorf("%w (local clock %s, %d in Pool.Reserved)", err, stamp(r.Now), len(a.pool.Reserved))
	case err != nil:
		return c, err
	case c.Number < 0 || c.Number >= a.pool.Size || a.pool.reserves(c.Number):
		return c, fmt.Errorf("store granted number %d; want 0 to %d, not in Pool.Reserved: %w", c.Number, a.pool.Size-1, errInvalid)
	case c.Holder != r.Holder || c.TTL < 0 || c.TTL > 0 && c.TTL < minTTL:
		return c, fmt.Errorf("store granted number %d to %q for %v; want holder %q and at least %v: %w", c.Number, c.Holder, c.TTL, r.Holder, minTTL, errInvalid)
	case c.After >= r.Now || c.Until <= r.Now:
		return c, fmt.Errorf("store granted number %d after %s until %s; want a range that contains the clock's %s: %w", c.Number, stamp(c.After), stamp(c.Until), stamp(r.Now), errInvalid)
	case took >= window(ttl):
		// The store grants less than half of Options.TTL. The next attempt gets the same claim.
		return c, fmt.Errorf("store granted number %d for %v, but answered after %v, when the claim is no longer trusted; check the connection to the store", c.Number, ttl, took.Round(time.Millisecond))
	}
	return c, nil
}

// add records a claim, or releases it if the attempts have ended.
func (a *attempts) add(c Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Attempts are usually granted the same claim.
	a.claims = slices.DeleteFunc(a.claims, func(old Claim) bool { return old.Number == c.Number && old.Term == c.Term })
	if a.claims = append(a.claims, c); a.ended {
		a.releaseUnused()
	}
}

// finish ends the attempts and releases all claims but that of a Keeper, which can be nil: now,
// and when they are granted later.
func (a *attempts) finish(used *Keeper) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.used = true, used
	a.releaseUnused()
}

// releaseUnused releases the claims in the background, but for the used one. The caller holds
// a.mu.
func (a *attempts) releaseUnused() {
	for _, c := range a.claims {
		if k := a.used; k == nil || k.number != c.Number || k.term != c.Term {
			go func() { _ = release(context.Background(), a.store, a.pool, c, c.After) }()
		}
	}
	a.claims = nil
}
