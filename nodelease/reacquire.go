package nodelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A tenure is one claim of a Generator, with the generator that uses it.
type tenure[T any] struct {
	keeper    *Keeper
	generator idtype.Generator[T]
	next      chan struct{} // closed when the next tenure is current
}

// ended reports whether a call failed because of its claim, which has ended meanwhile.
func (t *tenure[T]) ended(err error) bool {
	return (errors.Is(err, idtype.ErrLeaseLost) || errors.Is(err, idtype.ErrLeaseNotRenewed)) && t.keeper.Err() != nil
}

// begin claims a number and builds the generator for it.
func (g *Generator[T]) begin(ctx context.Context, holder string) (*tenure[T], error) {
	k, err := acquire(ctx, g.store, g.pool, g.o, holder)
	if err != nil {
		return nil, err
	}
	built, err := g.build(k)
	if err == nil && !k.attached() {
		err = fmt.Errorf("nodelease: build a generator for number %d of pool %q: it doesn't use the lease; pass it the lease in idtype.Options.Lease: %w",
			k.number, k.pool.Name, idtype.ErrConfig)
	}
	if err != nil {
		if !k.attached() {
			// No generator has used the number: release it with the high-water mark that the
			// claim found.
			_ = k.Attach(k.pool.Layout, func() int64 { return k.after })
		}
		return nil, rejectedError{errors.Join(err, k.Close())}
	}
	return &tenure[T]{k, built, make(chan struct{})}, nil
}

// A rejectedError means that the store granted a number to its holder, or still may, and this
// process rejects or releases it. The holder must not claim again: if a Release is late, the
// holder would get the same claim, and the Release would end it.
type rejectedError struct{ error }

func (e rejectedError) Unwrap() error { return e.error }

// permanent reports whether another attempt to claim a number would fail too, if the
// attempts may go on for the time left.
func permanent(err error, left time.Duration) bool {
	if busy := (*BusyError)(nil); errors.As(err, &busy) {
		// No number is held, and the clock can't pass a high-water mark in time.
		return busy.Held == 0 && busy.Ahead > 0 && busy.RetryAfter > left
	}
	rejected := rejectedError{}
	return errors.Is(err, ErrPoolMismatch) || errors.Is(err, ErrMisconfigured) || errors.As(err, &rejected)
}

// reacquireAfterLosses claims another number after each loss, until the generator is closed.
func (g *Generator[T]) reacquireAfterLosses() {
	defer close(g.done)
	for {
		old := g.current.Load()
		select {
		case <-old.keeper.Lost():
		case <-g.closing.Done():
			return
		}
		next := g.reacquire()
		if next == nil {
			return
		}
		g.lost = slices.DeleteFunc(append(g.lost, old.keeper), (*Keeper).finished)
		g.swap(next)
	}
}

// reacquire claims until it gets a number. It also retries permanent errors, since an
// operator may correct their cause. It returns nil once the generator is closed.
func (g *Generator[T]) reacquire() *tenure[T] {
	holder := g.o.unique()
	for poll := firstPoll; g.closing.Err() == nil; poll = min(2*poll, g.o.TTL/3) {
		next, err := g.begin(g.closing, holder)
		if err == nil {
			g.o.Logger.Info("node number reacquired", "pool", g.pool.Name, "number", next.keeper.Number())
			return next
		}
		if rejected := (rejectedError{}); errors.As(err, &rejected) {
			holder = g.o.unique()
		}
		if g.closing.Err() == nil {
			g.o.Logger.Warn("node number not reacquired", "pool", g.pool.Name, "error", err)
		}
		pause(g.closing, jitter(poll))
	}
	return nil
}

// swap makes the next tenure current and keeps the counters of the present one.
func (g *Generator[T]) swap(next *tenure[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.current.Load()
	g.past.addClaim(old.keeper)
	g.past.Reacquisitions++
	g.earlier = append(g.earlier, old)
	if len(g.earlier) > maxEarlier {
		g.past.addIDs(g.earlier[0].generator)
		g.earlier = append([]*tenure[T](nil), g.earlier[1:]...)
	}
	g.current.Store(next)
	close(old.next)
}

// successor waits until the next tenure is current, and returns it. If there is none by the
// deadline, it returns the reason for the loss.
func (g *Generator[T]) successor(ctx context.Context, t *tenure[T], deadline time.Time) (*tenure[T], error) {
	why := t.keeper.Err()
	if g.o.SingleClaim || errors.Is(why, ErrClosed) {
		return nil, why
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	select {
	case <-t.next:
	case <-g.closing.Done():
		return nil, fmt.Errorf("nodelease: generator of pool %q: %w", g.pool.Name, ErrClosed)
	case <-timer.C:
		err = fmt.Errorf("%w (no other number within %v)", why, g.maxWait)
	case <-ctx.Done():
		err = ctx.Err()
	}
	// If several channels are ready, select chooses one at random.
	select {
	case <-t.next:
		return g.current.Load(), nil
	default:
		return nil, err
	}
}
