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

// A Generator generates IDs with a claimed node number. Close releases the number. With
// Options.Reacquire, the Generator claims another number after it has lost one. Under
// one claim, its IDs are in the same order as the IDs of the generator that it wraps.
// The first IDs under the next claim may sort before the last IDs under this one, for
// example because the number is lower. A Generator is safe for concurrent use.
type Generator[T any] struct {
	store   Store
	pool    Pool
	o       Options
	build   func(idtype.Lease) (idtype.Generator[T], error)
	current atomic.Pointer[tenure[T]]
	closing context.Context
	close   context.CancelFunc
	done    chan struct{} // closed when the background goroutine has ended
	lost    []*Keeper     // still trying to release their numbers; owned by Close once done is closed

	mu      sync.Mutex     // held while current changes
	past    GeneratorStats // the counters of earlier claims, without the generators in earlier
	earlier []*tenure[T]   // the last few tenures before the current one
}

// A tenure is one claim with its generator.
type tenure[T any] struct {
	keeper    *Keeper
	generator idtype.Generator[T]
	next      chan struct{} // closed when the next tenure is current
}

var _ idtype.Generator[int64] = (*Generator[int64])(nil)

// NewGenerator claims a number, as [Acquire] does, and calls build to build the
// generator that uses it. [NewSnowflakeGenerator], [NewSnowflakeSIGenerator],
// [NewSpread64Generator] and [NewSnoGenerator] do this for one format each.
//
// NewGenerator rejects a generator that wasn't built with the lease. A generator from
// outside package idtype must call the lease's Attach ([Keeper.Attach]). With
// Options.Reacquire, a background goroutine calls build for each new claim. build
// should return quickly, since calls of Next and Fill wait for it.
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
		err = fmt.Errorf("nodelease: build a generator for number %d of pool %q: it doesn't use the lease; pass it the lease in idtype.Options.Lease: %w",
			k.number, k.pool.Name, idtype.ErrNode)
	}
	if err != nil {
		if !k.attached() {
			// No generator has used the number: release it with the high-water mark that the
			// claim found.
			_ = k.Attach(k.pool.Layout, func() int64 { return k.after })
		}
		return nil, spentError{errors.Join(err, k.Close())}
	}
	return &tenure[T]{k, built, make(chan struct{})}, nil
}

// replace claims another number after each loss, until the generator is closed.
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
		g.succeed(next)
	}
}

// A spentError means that its holder got a number and released or rejected it. The
// holder must not claim again: if a Release is late, the holder would get the same
// claim, and the Release would end it.
type spentError struct{ error }

func (e spentError) Unwrap() error { return e.error }

// again claims until it gets a number. It returns nil once the generator is closed.
func (g *Generator[T]) again() *tenure[T] {
	holder := g.o.unique()
	for poll := firstPoll; g.closing.Err() == nil; poll = min(2*poll, g.o.TTL/3) {
		next, err := g.begin(g.closing, holder)
		if err == nil {
			g.o.Logger.Info("node number reacquired", "pool", g.pool.Name, "number", next.keeper.Number())
			return next
		}
		var spent spentError
		if errors.As(err, &spent) {
			holder = g.o.unique()
		}
		if g.closing.Err() == nil {
			g.o.Logger.Warn("node number not reacquired", "pool", g.pool.Name, "error", err)
		}
		pause(g.closing, jitter(poll))
	}
	return nil
}

// now returns the current tenure.
func (g *Generator[T]) now() *tenure[T] {
	t := g.current.Load()
	if t == nil {
		panic("nodelease: the Generator is a zero value; create it with NewGenerator or the constructor of a format")
	}
	return t
}

// maxSwap is how long a call waits for the next claim after a loss.
const maxSwap = time.Second

// Next creates one ID. If the claim is lost, Next waits up to a second for the next
// claim. After that, or at once without Options.Reacquire, it returns the reason for
// the loss, an error that wraps [idtype.ErrLeaseLost].
func (g *Generator[T]) Next() (T, error) {
	t := g.now()
	id, err := t.generator.Next()
	if err != nil && g.ended(t, err) {
		err = g.retry(context.Background(), t, func(t *tenure[T]) (err error) {
			id, err = t.generator.Next()
			return err
		})
	}
	return id, err
}

// Fill creates len(dst) IDs in order, under one claim. If the claim is lost meanwhile,
// Fill returns the number of IDs created so far and an error that wraps
// [idtype.ErrLeaseLost]. If the claim was lost before the first ID, Fill waits for
// the next claim as Next does.
func (g *Generator[T]) Fill(ctx context.Context, dst []T) (n int, err error) {
	t := g.now()
	n, err = t.generator.Fill(ctx, dst)
	if err != nil && g.ended(t, err) {
		if n > 0 {
			return n, t.keeper.Err()
		}
		var partial error
		err = g.retry(ctx, t, func(t *tenure[T]) (err error) {
			if n, err = t.generator.Fill(ctx, dst); n > 0 {
				partial, err = err, nil // keeps retry from calling again
			}
			return err
		})
		if n > 0 {
			err = partial
		}
	}
	return n, err
}

// ended reports whether a call failed because of its claim, which has ended meanwhile.
func (g *Generator[T]) ended(t *tenure[T], err error) bool {
	return (errors.Is(err, idtype.ErrLeaseLost) || errors.Is(err, idtype.ErrLeaseNotRenewed)) && t.keeper.Err() != nil
}

// retry waits for the next claim and repeats the call with it, until the call succeeds
// or fails for a reason other than the end of a claim. It waits for at most maxSwap in
// total.
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

// Keeper returns the Keeper of the current claim. Don't close it; close the Generator.
func (g *Generator[T]) Keeper() *Keeper { return g.now().keeper }

// Current returns the wrapped generator, for methods that Generator lacks. With
// Options.Reacquire, each new claim has a new generator, so don't keep the result.
func (g *Generator[T]) Current() idtype.Generator[T] { return g.now().generator }

// Ready returns nil if calls of Next can succeed now and in the near future. It fails
//
//   - from when the claim is close to its end until it is renewed or another number is
//     claimed ([Keeper.Ready])
//   - while the clock is behind, or past the lease, if the wrapped generator has a method
//     Ready() error, as the generators of package idtype have
//   - after Close
//
// It doesn't call the store. Package [github.com/sortkey/sortkey/nodelease/ready] makes
// an HTTP handler of it.
func (g *Generator[T]) Ready() error {
	t := g.now()
	if err := t.keeper.Ready(); err != nil {
		return err
	}
	if r, ok := t.generator.(interface{ Ready() error }); ok {
		return r.Ready()
	}
	return nil
}

// Close releases the number; see [Keeper.Close]. Calls of Next and Fill that wait for
// another number fail. Further calls of Close return the same result.
func (g *Generator[T]) Close() error {
	g.now()
	g.close()
	<-g.done
	var rest sync.WaitGroup
	defer rest.Wait()
	for _, k := range g.lost {
		rest.Go(func() { _ = k.Close() }) // the loss was already reported
	}
	return g.Keeper().Close()
}
