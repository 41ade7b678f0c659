package nodelease

import (
	"context"
	"errors"
	"fmt"
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
func (g *Generator[T]) begin(ctx context.Context, o Options) (*tenure[T], error) {
	k, err := acquire(ctx, g.store, g.pool, o)
	if err != nil {
		return nil, err
	}
	built, err := g.build(k)
	if err == nil && !k.attached() {
		err = fmt.Errorf("nodelease: build a generator for number %d of pool %q: it doesn't use the lease; pass it the lease in idtype.Options.Lease: %w",
			k.number, k.pool.Name, idtype.ErrConfig)
	}
	if err != nil {
		// If no generator has used the number, release it with the high-water mark that the
		// claim found. Otherwise Attach does nothing.
		_ = k.Attach(k.pool.Layout, func() int64 { return k.after })
		return nil, errors.Join(err, k.Close())
	}
	return &tenure[T]{k, built, make(chan struct{})}, nil
}

// reacquireAfterLosses claims another number after each loss, until the generator is closed. It
// also retries permanent errors, since an operator may correct their cause.
func (g *Generator[T]) reacquireAfterLosses() {
	defer close(g.done)
	o := g.o
	o.Wait = forever
	for {
		lost := g.current.Load().keeper
		select {
		case <-lost.Lost():
		case <-g.closing.Done():
			return
		}
		g.losses.Go(func() {
			select {
			case <-lost.done: // the number is released
			case <-g.closing.Done():
			}
			_ = lost.Close() // the loss was already reported
		})
		for poll := firstPoll; ; poll = min(2*poll, o.TTL/3) {
			next, err := g.begin(g.closing, o)
			if err == nil {
				o.Logger.Info("node number reacquired", "pool", g.pool.Name, "number", next.keeper.Number())
				g.swap(next)
				break
			}
			if g.closing.Err() != nil {
				return
			}
			o.Logger.Warn("node number not reacquired", "pool", g.pool.Name, "error", err)
			pause(g.closing, jitter(poll))
		}
	}
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
	if errors.Is(why, ErrClosed) {
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
