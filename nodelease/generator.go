package nodelease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A Generator generates IDs with a claimed node number. Close releases the number. After
// a loss, the Generator claims another number. Under one claim, its IDs are in the same
// order as the IDs of the generator that it wraps. The first IDs under the next claim may
// sort before the last IDs under this one, for example because the number is lower. A
// Generator is safe for concurrent use.
type Generator[T any] struct {
	store   Store
	pool    Pool
	o       Options
	maxWait time.Duration // limits the wait for the next claim
	build   func(idtype.Lease) (idtype.Generator[T], error)
	current atomic.Pointer[tenure[T]]
	closing context.Context
	close   context.CancelFunc
	done    chan struct{}  // closed when reacquireAfterLosses has ended
	losses  sync.WaitGroup // goroutines that release the numbers of lost claims

	mu      sync.Mutex   // held while current changes
	past    TotalStats   // the counters of earlier claims, without the generators in earlier
	earlier []*tenure[T] // the last few tenures before the current one
}

var _ idtype.Generator[int64] = (*Generator[int64])(nil)

// NewGenerator claims a number, as [Acquire] does, and calls build to build the
// generator that uses it. [NewSnowflakeGenerator], [NewSnowflakeSIGenerator],
// [NewSpread64Generator] and [NewSnoGenerator] do this for one format each.
//
// NewGenerator rejects a generator that wasn't built with the lease. A generator from
// outside package idtype must call the lease's Attach ([Keeper.Attach]). After a loss, a
// background goroutine calls build for each new claim. build should return quickly, since
// calls of Next and Fill wait for it, for up to a second.
func NewGenerator[T any, G idtype.Generator[T]](ctx context.Context, store Store, pool Pool, o Options, build func(idtype.Lease) (G, error)) (*Generator[T], error) {
	if build == nil {
		return nil, fmt.Errorf("nodelease: NewGenerator: build is nil; pass a function that builds a generator with the lease: %w", idtype.ErrConfig)
	}
	return newGenerator(ctx, store, pool, o, 0, func(l idtype.Lease) (idtype.Generator[T], error) { return build(l) })
}

// defaultMaxWait is the default of idtype.Options.MaxWait.
const defaultMaxWait = time.Second

func newGenerator[T any](ctx context.Context, store Store, pool Pool, o Options, maxWait time.Duration, build func(idtype.Lease) (idtype.Generator[T], error)) (*Generator[T], error) {
	o, err := check(store, pool, o)
	if err != nil {
		return nil, err
	}
	if maxWait == 0 {
		maxWait = defaultMaxWait
	}
	g := &Generator[T]{store: store, pool: pool, o: o, maxWait: max(maxWait, 0), build: build, done: make(chan struct{})}
	first, err := g.begin(ctx, o)
	if err != nil {
		return nil, err
	}
	g.current.Store(first)
	g.closing, g.close = context.WithCancel(context.Background())
	go g.reacquireAfterLosses()
	return g, nil
}

// now returns the current tenure.
func (g *Generator[T]) now() *tenure[T] {
	t := g.current.Load()
	if t == nil {
		panic("nodelease: the Generator is a zero value; create it with NewGenerator or the constructor of a format")
	}
	return t
}

// Next creates one ID. If the claim is lost, Next waits for the next claim, for up to the
// MaxWait of the config, by default a second. After that, it returns the reason for the
// loss, an error that wraps [idtype.ErrLeaseLost].
func (g *Generator[T]) Next() (T, error) {
	t := g.now()
	id, err := t.generator.Next()
	if err == nil {
		return id, nil
	}
	for deadline := time.Now().Add(g.maxWait); err != nil && t.ended(err); {
		if t, err = g.successor(context.Background(), t, deadline); err != nil {
			break
		}
		id, err = t.generator.Next()
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
	if err == nil {
		return n, nil
	}
	for deadline := time.Now().Add(g.maxWait); err != nil && n == 0 && t.ended(err); {
		if t, err = g.successor(ctx, t, deadline); err != nil {
			break
		}
		n, err = t.generator.Fill(ctx, dst)
	}
	if n > 0 && err != nil && t.ended(err) {
		err = t.keeper.Err()
	}
	return n, err
}

// Keeper returns the Keeper of the current claim. Don't close it; close the Generator.
func (g *Generator[T]) Keeper() *Keeper { return g.now().keeper }

// Current returns the wrapped generator, for methods that Generator lacks. Each new claim
// has a new generator, so don't keep the result.
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
	defer g.losses.Wait()
	return g.Keeper().Close()
}
