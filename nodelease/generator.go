package nodelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Generator is a generator under a claim, as one value: it claims the number,
// mints, and gives the number back on Close. With Options.Reacquire it goes on
// with a new claim after it has lost one. Its IDs are in order as those of the
// generator that it was built from, under one claim: the next one may have a
// lower number. It is safe for concurrent use.
type Generator[T any] struct {
	store   Store
	pool    Pool
	o       Options
	build   func(idtype.Lease) (idtype.Generator[T], error)
	current atomic.Pointer[tenure[T]]
	closing context.Context
	close   context.CancelFunc
	done    chan struct{} // closed when the background is at rest
	lost    []*Keeper     // that still try to give their number back; Close's once done is closed
}

// A tenure is the time under one claim.
type tenure[T any] struct {
	keeper    *Keeper
	generator idtype.Generator[T]
	next      chan struct{} // closed when there is another one
}

var _ idtype.Generator[int64] = (*Generator[int64])(nil)

// NewGenerator claims a number, as [Acquire] does, and builds a generator that
// mints with it. [NewSnowflakeGenerator] and its like do so for one format.
//
// A generator that wasn't given the lease is refused. One that isn't of package
// idtype has to call the lease's Attach itself ([Keeper.Attach]). With
// Options.Reacquire, build is called for each new claim, in a goroutine of the
// generator's; it should return soon.
func NewGenerator[T any, G idtype.Generator[T]](ctx context.Context, store Store, pool Pool, o Options, build func(idtype.Lease) (G, error)) (*Generator[T], error) {
	reacquire := o.Reacquire
	o, err := check(pool, o)
	if err != nil {
		return nil, err
	}
	g := &Generator[T]{
		store: store, pool: pool, o: o, done: make(chan struct{}),
		build: func(l idtype.Lease) (idtype.Generator[T], error) { return build(l) },
	}
	first, err := g.begin(ctx, o.unique())
	if err != nil {
		return nil, err
	}
	g.current.Store(first)
	g.closing, g.close = context.WithCancel(context.Background())
	if reacquire {
		go g.replace()
	} else {
		close(g.done)
	}
	return g, nil
}

// begin claims a number and builds the generator for it.
func (g *Generator[T]) begin(ctx context.Context, holder string) (*tenure[T], error) {
	k, err := acquire(ctx, g.store, g.pool, g.o, holder)
	if err != nil {
		return nil, err
	}
	built, err := g.build(k)
	if err == nil && !k.attached() {
		err = fmt.Errorf("nodelease: expected a generator that mints under the lease of number %d of pool %q, got one that doesn't know it: pass the lease on in idtype.Options: %w",
			k.number, k.pool.Name, idtype.ErrNode)
	}
	if err != nil {
		if !k.attached() {
			// Nothing mints, so the number can go to the next one as it came.
			_ = k.Attach(k.pool.Layout, func() int64 { return k.after })
		}
		return nil, spentError{errors.Join(err, k.Close())}
	}
	return &tenure[T]{k, built, make(chan struct{})}, nil
}

// replace claims anew what is lost.
func (g *Generator[T]) replace() {
	defer close(g.done)
	for {
		old := g.current.Load()
		select {
		case <-old.keeper.Lost():
		case <-g.closing.Done():
			return
		}
		next := g.again()
		if next == nil {
			return
		}
		g.lost = slices.DeleteFunc(append(g.lost, old.keeper), (*Keeper).atRest)
		g.current.Store(next)
		close(old.next)
	}
}

// A spentError is of a holder that got a number, and gave it back or didn't want
// it: another claim of that holder could be released by a call that is late.
type spentError struct{ error }

func (e spentError) Unwrap() error { return e.error }

// again claims until it gets a number; nil when the generator is closed.
func (g *Generator[T]) again() *tenure[T] {
	holder := g.o.unique()
	for poll := firstPoll; g.closing.Err() == nil; poll = min(2*poll, g.o.TTL/3) {
		next, err := g.begin(g.closing, holder)
		if err == nil {
			g.o.Logger.Info("node number claimed anew", "pool", g.pool.Name, "number", next.keeper.Number())
			return next
		}
		var spent spentError
		if errors.As(err, &spent) {
			holder = g.o.unique()
		}
		if g.closing.Err() == nil {
			g.o.Logger.Warn("no node number claimed anew", "pool", g.pool.Name, "error", err)
		}
		pause(g.closing, jitter(poll))
	}
	return nil
}

// maxSwap is how long a call waits for the next claim.
const maxSwap = time.Second

// Next mints one ID. Between a claim that was lost and the next one it waits,
// for up to a second; then, or without Reacquire at once, it fails with an
// error that says why the claim was lost, and wraps [idtype.ErrLeaseLost].
func (g *Generator[T]) Next() (T, error) {
	t := g.current.Load()
	id, err := t.generator.Next()
	if err != nil && g.ended(t, err) {
		err = g.retry(context.Background(), t, func(t *tenure[T]) (err error) {
			id, err = t.generator.Next()
			return err
		})
	}
	return id, err
}

// Fill mints len(dst) IDs in order, under one claim: if that is lost on the way,
// it gives the IDs so far and an error that wraps [idtype.ErrLeaseLost]. A claim
// that was lost before is waited for as in Next.
func (g *Generator[T]) Fill(ctx context.Context, dst []T) (n int, err error) {
	t := g.current.Load()
	n, err = t.generator.Fill(ctx, dst)
	if err != nil && g.ended(t, err) {
		if n > 0 {
			return n, t.keeper.Err()
		}
		var partial error
		err = g.retry(ctx, t, func(t *tenure[T]) (err error) {
			if n, err = t.generator.Fill(ctx, dst); n > 0 {
				partial, err = err, nil // not to be called again
			}
			return err
		})
		if n > 0 {
			err = partial
		}
	}
	return n, err
}

// ended says whether a call failed since the claim has ended.
func (g *Generator[T]) ended(t *tenure[T], err error) bool {
	return errors.Is(err, idtype.ErrLeaseLost) && t.keeper.Err() != nil
}

// retry calls again under the claims that come, as long as they end at once.
func (g *Generator[T]) retry(ctx context.Context, t *tenure[T], call func(*tenure[T]) error) error {
	timer := time.NewTimer(maxSwap)
	defer timer.Stop()
	for {
		why := t.keeper.Err()
		if !g.o.Reacquire || errors.Is(why, ErrClosed) {
			return why
		}
		select {
		case <-t.next:
		case <-g.closing.Done():
			return fmt.Errorf("nodelease: generator of pool %q: %w", g.pool.Name, ErrClosed)
		case <-timer.C:
			return fmt.Errorf("%w (no other number within %v)", why, maxSwap)
		case <-ctx.Done():
			return ctx.Err()
		}
		t = g.current.Load()
		if err := call(t); err == nil || !g.ended(t, err) {
			return err
		}
	}
}

// Keeper gives the claim under which the generator mints now. To close the
// claim, close the Generator.
func (g *Generator[T]) Keeper() *Keeper { return g.current.Load().keeper }

// Current gives the generator that was built last, for what it can do besides;
// with Reacquire it is another one after each loss.
func (g *Generator[T]) Current() idtype.Generator[T] { return g.current.Load().generator }

// Close gives the number back; see [Keeper.Close]. Calls that wait for another
// one fail. Further Closes give the same.
func (g *Generator[T]) Close() error {
	g.close()
	<-g.done
	var rest sync.WaitGroup
	defer rest.Wait()
	for _, k := range g.lost {
		rest.Go(func() { _ = k.Close() }) // who lost a number needn't hear of it
	}
	return g.Keeper().Close()
}
