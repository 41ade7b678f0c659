package nodelease

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
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
// process can start while the store fails over. Then it fails with the last cause,
// which is a [*BusyError] if the store has answered that no number is free: an
// [ErrPoolExhausted], or an [ErrClockBehind] if there are numbers, but this
// machine's clock is behind the time up to which they were used. It fails at once
// with errors that waiting doesn't mend, [ErrMisconfigured] and [ErrPoolMismatch].
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
	begun := time.Now()
	var cause error // the last failure that wasn't a timeout; a later timeout would hide it
	failing, waiting := false, false
	for poll := firstPoll; ; poll *= 2 {
		sent := time.Now()
		r := o.request(holder, o.TTL)
		c, err := claim(ctx, store, pool, r)
		left := max(o.Wait, 0) - time.Since(begun)
		var busy *BusyError
		var spent spentError
		switch {
		case err == nil:
			return newKeeper(store, pool, o, r, c, sent), nil
		case errors.As(err, &busy):
			busy.Pool, busy.Now, busy.Within = pool, r.Now, max(o.Wait, 0)
			// A clock that is behind all numbers by an hour won't catch up.
			if left <= 0 || busy.Held == 0 && busy.Ahead > 0 && busy.Mark-r.Now > left.Milliseconds() {
				return nil, err
			}
			if !waiting {
				o.Logger.Info("waiting for a node number", "pool", pool.Name, "for", left, "since", err)
			}
			waiting = true
			poll = min(poll, lastPoll)
		case errors.Is(err, ErrPoolMismatch) || errors.Is(err, ErrMisconfigured) || errors.As(err, &spent):
			return nil, fmt.Errorf("nodelease: no number of pool %q claimed: %w", pool.Name, err)
		default:
			if !failing {
				o.Logger.Warn("claim failed, trying again", "pool", pool.Name, "left", left, "error", err)
			}
			failing = true
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
			return nil, fmt.Errorf("nodelease: no number of pool %q claimed within %v: %w", pool.Name, max(o.Wait, 0), err)
		}
	}
}

// claim asks once, and doesn't trust the answer.
func claim(ctx context.Context, store Store, pool Pool, r Request) (Claim, error) {
	c, err := bounded(ctx, r.TTL/2, func(ctx context.Context) (Claim, error) { return store.Claim(ctx, pool, r) })
	switch {
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

// grace is how long a call of a store may take to end after its context did.
const grace = 100 * time.Millisecond

// bounded calls a function with a context that ends a little before the time is
// up, and waits no longer, also if the function doesn't heed its context.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	inner, cancel := context.WithTimeout(ctx, limit*9/10)
	go func() {
		defer cancel()
		value, err := f(inner)
		answers <- answer{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case a := <-answers:
		if a.err == nil || ctx.Err() != nil || !errors.Is(inner.Err(), context.DeadlineExceeded) {
			return a.value, a.err
		}
		err = a.err
	case <-timer.C:
	case <-ctx.Done():
		timer.Reset(grace)
		select {
		case a := <-answers:
			return a.value, a.err
		case <-timer.C:
			var none T
			return none, ctx.Err()
		}
	}
	// In a process that was stopped both may have come.
	select {
	case a := <-answers:
		return a.value, a.err
	default:
		var none T
		return none, fmt.Errorf("expected an answer of the store within %v, got none: %w", limit.Round(time.Millisecond), err)
	}
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
