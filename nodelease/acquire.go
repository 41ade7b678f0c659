package nodelease

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
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
	return acquire(ctx, store, pool, o, o.unique())
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

// unique returns the name of a holder for one claim.
func (o Options) unique() string { return o.Holder + " " + crand.Text() }

// acquire claims a number for a holder. If an earlier call with the same holder
// failed although the store had granted a number, acquire gets that number.
func acquire(ctx context.Context, store Store, pool Pool, o Options, holder string) (*Keeper, error) {
	g := &grants{store: store, pool: pool}
	k, err := g.acquire(ctx, o, holder)
	if g.end(k) && err != nil {
		err = rejectedError{err}
	}
	return k, err
}

// grants are the claims that a store grants to one holder. Attempts that fail may have got one,
// and further attempts then get the same claim.
type grants struct {
	store Store
	pool  Pool

	mu      sync.Mutex
	pending int // calls that haven't returned
	claims  []Claim
	ended   bool
	used    *Keeper // with the claim that is used
}

// acquire claims a number, and leaves it to end to release other claims.
func (g *grants) acquire(ctx context.Context, o Options, holder string) (*Keeper, error) {
	pool := g.pool
	begun, wait := time.Now(), max(o.Wait, 0)
	var cause error // the last error that isn't a timeout, reported together with a later timeout
	var logBusy, logFailure sync.Once
	for poll := firstPoll; ; poll *= 2 {
		sent := time.Now()
		r := o.request(holder, o.TTL)
		c, err := g.claim(ctx, r)
		if err == nil {
			return newKeeper(g.store, pool, o, r, c, sent).start(), nil
		}
		left := wait - time.Since(begun)
		if permanent(err, left) {
			return nil, fmt.Errorf("nodelease: claim a number of pool %q: %w", pool.Name, err)
		}
		if busy := (*BusyError)(nil); errors.As(err, &busy) {
			poll = min(poll, lastPoll)
			if left > 0 {
				logBusy.Do(func() { o.Logger.Info("waiting for a node number", "pool", pool.Name, "left", left, "error", err) })
			}
		} else {
			poll = min(poll, lastRetry)
			if left > 0 {
				logFailure.Do(func() { o.Logger.Warn("claim failed; retrying", "pool", pool.Name, "left", left, "error", err) })
			}
		}
		if left > 0 {
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

// claim calls the store once and checks its answer.
func (g *grants) claim(ctx context.Context, r Request) (Claim, error) {
	sent := time.Now()
	g.mu.Lock()
	g.pending++
	g.mu.Unlock()
	c, err := bounded(ctx, r.TTL/2, func(ctx context.Context) (Claim, error) {
		c, err := g.store.Claim(ctx, g.pool, r)
		g.returned(r, c, err)
		return c, err
	})
	took := time.Since(sent)
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		return c, fmt.Errorf("%w (local clock %s, %d in Pool.Reserved)", err, stamp(r.Now), len(g.pool.Reserved))
	case err != nil:
		return c, err
	case c.Number < 0 || c.Number >= g.pool.Size || g.pool.reserves(c.Number):
		err = fmt.Errorf("store granted number %d; want 0 to %d, not in Pool.Reserved", c.Number, g.pool.Size-1)
	case c.Holder != r.Holder || c.TTL < 0 || c.TTL > 0 && c.TTL < minTTL:
		err = fmt.Errorf("store granted number %d to %q for %v; want holder %q and at least %v", c.Number, c.Holder, c.TTL, r.Holder, minTTL)
	case c.After >= r.Now || c.Until <= r.Now:
		err = fmt.Errorf("store granted number %d after %s until %s; want a range that contains the clock's %s", c.Number, stamp(c.After), stamp(c.Until), stamp(r.Now))
	case took >= window(r.grantedTTL(c.TTL)):
		// The store grants less than half of Options.TTL. The next attempt gets the same claim.
		return c, fmt.Errorf("store granted number %d for %v, but answered after %v, when the claim is no longer trusted; check the connection to the store", c.Number, r.grantedTTL(c.TTL), took.Round(time.Millisecond))
	default:
		return c, nil
	}
	return c, rejectedError{err}
}

// returned records the result of a call, which can be late.
func (g *grants) returned(r Request, c Claim, err error) {
	c.TTL = r.grantedTTL(c.TTL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending--
	if err != nil || c.Holder != r.Holder {
		return
	}
	g.claims = append(g.claims, c)
	if g.ended {
		g.releaseUnused()
	}
}

// end releases all claims but that of a Keeper, which can be nil, now and when calls return
// later. It reports whether there are any, or can be.
func (g *grants) end(used *Keeper) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended, g.used = true, used
	return g.releaseUnused() || g.pending > 0
}

// releaseUnused releases all claims but the used one, and reports whether there are any. The
// caller holds g.mu.
func (g *grants) releaseUnused() (found bool) {
	for _, c := range g.claims {
		if k := g.used; k == nil || k.number != c.Number || k.term != c.Term {
			found = true
			go func() {
				_ = untilReleased(context.Background(), c.TTL, func() error { return release(g.store, g.pool, c, c.After) })
			}()
		}
	}
	g.claims = nil
	return found
}

// maxGrace is the longest time that a store's call may take to return after its
// context has ended.
const maxGrace = 100 * time.Millisecond

// bounded calls f with a context that ends a little before the limit. If f ignores
// its context, bounded returns an error without waiting for f: at the limit, or
// maxGrace after the caller's context has ended.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	grace := min(limit/10, maxGrace)
	inner, cancel := context.WithTimeout(ctx, limit-grace)
	go func() {
		defer cancel()
		value, err := f(inner)
		answers <- answer{value, err}
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
	return a.value, a.err
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
// together don't call the store at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.New(kernel{}).Float64()*2-1)*float64(d)/10)
}

// kernel is a source of random numbers. Copies of a virtual machine would continue with
// the same numbers of a generator in the process. A test can determine the numbers of
// crypto/rand.
type kernel struct{}

func (kernel) Uint64() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
