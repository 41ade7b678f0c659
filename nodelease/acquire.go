package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// How often Acquire tries again: while no number is free, and while the store
// fails, possibly because every waiting process is calling it.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = 500 * time.Millisecond
	lastRetry = 2 * time.Second
)

// Acquire claims a number of a pool for one generator, and keeps it until
// Close. If no number is free, or the store fails, it tries again until
// Options.Wait is over (and half a TTL, if the store doesn't answer), so that a
// process can start while the store fails over. Then it fails with the last cause.
// If the store has answered that no number is free, that is an error that wraps a
// [*BusyError]; use errors.As. It is an [ErrPoolExhausted], or an [ErrClockBehind]
// if there are numbers, but this machine's clock is behind the time up to which
// they were used. Acquire fails at once with errors that waiting doesn't mend,
// [ErrMisconfigured] and [ErrPoolMismatch].
// The context is for Acquire alone, not for the claim.
func Acquire(ctx context.Context, store Store, pool Pool, o Options) (*Keeper, error) {
	if o.Reacquire {
		return nil, errors.New("nodelease: expected Reacquire for NewGenerator alone, got it for Acquire: a Keeper is one claim")
	}
	o, err := check(pool, o)
	if err != nil {
		return nil, err
	}
	return acquire(ctx, store, pool, o, o.unique())
}

// check tells whether numbers can be claimed so, and fills in the defaults.
func check(pool Pool, o Options) (Options, error) {
	if err := pool.Validate(); err != nil {
		return o, err
	}
	return o.normal()
}

// unique is a holder for one claim.
func (o Options) unique() string { return o.Holder + " " + crand.Text() }

// acquire claims for a holder. Given the same one again after it has failed, it
// gets what may have been granted without its knowing.
func acquire(ctx context.Context, store Store, pool Pool, o Options, holder string) (*Keeper, error) {
	begun, wait := time.Now(), max(o.Wait, 0)
	var cause error // the last failure that wasn't a timeout; a later timeout would hide it
	var logBusy, logFailure sync.Once
	for poll := firstPoll; ; poll *= 2 {
		sent := time.Now()
		r := o.request(holder, o.TTL)
		c, err := claim(ctx, store, pool, r)
		if err == nil {
			return newKeeper(store, pool, o, r, c, sent), nil
		}
		left := wait - time.Since(begun)
		switch judge(err, left) {
		case hopeless:
			return nil, fmt.Errorf("nodelease: no number of pool %q claimed: %w", pool.Name, err)
		case poolBusy:
			if left > 0 {
				logBusy.Do(func() { o.Logger.Info("waiting for a node number", "pool", pool.Name, "for", left, "since", err) })
			}
			poll = min(poll, lastPoll)
		case storeFailing:
			if left > 0 {
				logFailure.Do(func() { o.Logger.Warn("claim failed, trying again", "pool", pool.Name, "left", left, "error", err) })
			}
			poll = min(poll, lastRetry)
		}
		if left > 0 {
			pause(ctx, min(jitter(poll), left))
		}
		if timeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled); !timeout {
			cause = err
		} else if cause != nil {
			err = fmt.Errorf("%w; before that: %w", err, cause)
		}
		if ended := ctx.Err(); ended != nil {
			if !errors.Is(err, ended) {
				err = fmt.Errorf("%w: %w", ended, err)
			}
			return nil, fmt.Errorf("nodelease: gave up on a number of pool %q after %v: %w", pool.Name, time.Since(begun).Round(time.Millisecond), err)
		}
		if left <= 0 {
			return nil, fmt.Errorf("nodelease: no number of pool %q claimed within %v: %w", pool.Name, wait, err)
		}
	}
}

// A verdict is what an attempt that failed means for the next one.
type verdict int

const (
	storeFailing verdict = iota // it may answer soon
	poolBusy                    // a number may be free soon
	hopeless                    // the next attempt would fail, too
)

// judge returns the verdict on an error, given how long Acquire may still wait.
func judge(err error, left time.Duration) verdict {
	var busy *BusyError
	var spent spentError
	switch {
	case errors.As(err, &busy):
		// A clock that is behind all numbers by an hour won't catch up.
		if busy.Held == 0 && busy.Ahead > 0 && busy.RetryAfter > left {
			return hopeless
		}
		return poolBusy
	case errors.Is(err, ErrPoolMismatch), errors.Is(err, ErrMisconfigured), errors.As(err, &spent):
		return hopeless
	}
	return storeFailing
}

// claim asks once, and doesn't trust the answer.
func claim(ctx context.Context, store Store, pool Pool, r Request) (Claim, error) {
	c, err := bounded(ctx, r.TTL/2, func(ctx context.Context) (Claim, error) { return store.Claim(ctx, pool, r) })
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		return c, fmt.Errorf("%w (the clock here shows %s; %d in Pool.Reserved)", err, stamp(r.Now), len(pool.Reserved))
	case err != nil:
		return c, err
	case c.Number < 0 || c.Number >= pool.Size || pool.reserves(c.Number):
		err = fmt.Errorf("expected the store to grant one of %d numbers that isn't reserved, got %d", pool.Size, c.Number)
	case c.Holder != r.Holder || c.TTL < 0 || c.TTL > 0 && c.TTL < minTTL:
		err = fmt.Errorf("expected the store to grant a number to %q for at least %v, got %q for %v", r.Holder, minTTL, c.Holder, c.TTL)
	case c.After >= r.Now || c.Until <= r.Now:
		err = fmt.Errorf("expected the store to grant a number from before %s until after that, got from %s until %s", stamp(r.Now), stamp(c.After), stamp(c.Until))
	default:
		return c, nil
	}
	return c, spentError{err}
}

// maxGrace is the most that a call of a store may take to end after its context
// did.
const maxGrace = 100 * time.Millisecond

// bounded calls a function with a context that ends a little before the limit.
// If the function ignores its context, bounded returns without an answer: at the
// limit, or maxGrace after the caller's context has ended.
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
		// The answer may be there too, in a process that was stopped.
		select {
		case a = <-answers:
		case <-time.After(grace):
			a.err = inner.Err()
		}
	}
	if a.err != nil && ctx.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded) {
		a.err = fmt.Errorf("expected an answer of the store within %v, got none: %w", limit.Round(time.Millisecond), a.err)
	}
	return a.value, a.err
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jitter spreads what would happen at the same time in many processes: by up to
// a tenth in both directions.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()*2-1)*float64(d)/10)
}
