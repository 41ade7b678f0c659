package nodelease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// No format creates a duplicate ID, and each ID lies within its claim, although the
// clocks of the processes and of the store are wrong and are stepped, and calls of the
// store fail in all ways.
func TestRandomFaults(t *testing.T) {
	random(t, "Snowflake", when, func(ctx context.Context, s nodelease.Store, o nodelease.Options) (*nodelease.Generator[idtype.Snowflake], error) {
		return nodelease.NewSnowflakeGenerator(ctx, s, idtype.SnowflakeConfig{}, o)
	})
	si := idtype.SnowflakeSILayout{BaseClock: base}
	random(t, "SnowflakeSI", func(id idtype.SnowflakeSI) int64 { return si.Time(id).UnixMilli() }, func(ctx context.Context, s nodelease.Store, o nodelease.Options) (*nodelease.Generator[idtype.SnowflakeSI], error) {
		return nodelease.NewSnowflakeSIGenerator(ctx, s, idtype.SnowflakeSIConfig{Layout: si}, o)
	})
	random(t, "Spread64", func(id idtype.Spread64) int64 { return id.Time().UnixMilli() }, func(ctx context.Context, s nodelease.Store, o nodelease.Options) (*nodelease.Generator[idtype.Spread64], error) {
		return nodelease.NewSpread64Generator(ctx, s, idtype.Spread64Config{Cluster: 3}, o)
	})
	// A Sno generator continues when the clock steps back, in time that it may have
	// used already.
	sno := func(id idtype.Sno) int64 { return id.Time().UnixMilli() }
	random(t, "Sno", sno, func(ctx context.Context, s nodelease.Store, o nodelease.Options) (*nodelease.Generator[idtype.Sno], error) {
		return claimed(nodelease.NewSnoGenerator(ctx, s, idtype.SnoConfig{}, o))
	})
	random(t, "Sno ranges", sno, func(ctx context.Context, s nodelease.Store, o nodelease.Options) (*nodelease.Generator[idtype.Sno], error) {
		partition := idtype.SnoPartitionFrom(7)
		return claimed(nodelease.NewSnoGenerator(ctx, s, idtype.SnoConfig{Partition: &partition, Ranges: 2}, o))
	})
}

// claimed returns the Generator of a SnoGenerator.
func claimed(g *nodelease.SnoGenerator, err error) (*nodelease.Generator[idtype.Sno], error) {
	if err != nil {
		return nil, err
	}
	return g.Generator, nil
}

// A starter claims a number for a generator of T.
type starter[T comparable] func(context.Context, nodelease.Store, nodelease.Options) (*nodelease.Generator[T], error)

// random runs a world with one format three times.
func random[T comparable](t *testing.T, format string, when func(T) int64, start starter[T]) {
	for range 3 {
		// The seed determines the actions of the processes and the store, but not the
		// jitter of claims and renewals.
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s, seed %d", format, seed), func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				w := &world[T]{seed: seed, when: when, start: start, seen: map[T]string{}, claims: map[*nodelease.Keeper]bool{}, end: time.Now().Add(3 * time.Minute)}
				w.store.Clock = w.clock.now
				w.run(t)
			})
		})
	}
}

// A world has processes that share a store.
type world[T comparable] struct {
	seed  uint64
	when  func(T) int64
	start starter[T]
	clock wall // the store's
	store leasetest.Store
	end   time.Time

	mu     sync.Mutex
	seen   map[T]string
	claims map[*nodelease.Keeper]bool
}

func (w *world[T]) run(t *testing.T) {
	var wg sync.WaitGroup
	for i := range uint64(4) {
		r := rand.New(rand.NewPCG(w.seed, i))
		wg.Go(func() { (&process[T]{world: w, r: r, name: fmt.Sprintf("process %d", i), clock: new(wall)}).run(t) })
	}
	r := rand.New(rand.NewPCG(w.seed, 100))
	for time.Now().Before(w.end) {
		time.Sleep(time.Duration(r.Int64N(int64(10 * time.Second))))
		w.clock.step(time.Duration(r.Int64N(int64(4*time.Second))) - 2*time.Second)
	}
	wg.Wait()
	time.Sleep(time.Minute) // until all calls have ended
	t.Logf("%d IDs of %d claims", len(w.seen), len(w.claims))
	if len(w.seen) < 1000 || len(w.claims) < 10 {
		t.Error("expected at least 1000 IDs and 10 claims")
	}
}

// A process repeatedly claims a number, creates IDs, and ends: by Close, or as if it
// was killed.
type process[T comparable] struct {
	*world[T]
	r     *rand.Rand
	name  string
	clock *wall
}

func (p *process[T]) run(t *testing.T) {
	p.clock.step(p.upTo(2*time.Second) - time.Second)
	for time.Now().Before(p.end) {
		store := &erratic{Store: &p.store, r: rand.New(rand.NewPCG(p.r.Uint64(), 0)), marks: map[[2]int64]int64{}}
		g, err := p.start(t.Context(), store, nodelease.Options{TTL: time.Second, Wait: 5 * time.Second, Clock: p.clock.now, SingleClaim: p.r.IntN(2) == 0})
		if err != nil {
			time.Sleep(p.upTo(500 * time.Millisecond))
			continue
		}
		p.mint(t, g, store)
		if p.r.IntN(3) == 0 {
			store.die() // so that Close has no effect
		}
		_ = g.Close()
	}
}

// mint creates IDs for some time in three goroutines, with pauses.
func (p *process[T]) mint(t *testing.T, g *nodelease.Generator[T], store *erratic) {
	for end := time.Now().Add(p.upTo(6 * time.Second)); time.Now().Before(end); {
		var wg sync.WaitGroup
		until := time.Now().Add(p.upTo(2 * time.Second))
		for range 3 {
			one := &process[T]{world: p.world, r: rand.New(rand.NewPCG(p.r.Uint64(), 0)), name: p.name, clock: p.clock}
			wg.Go(func() { one.mintUntil(t, until, g, store) })
		}
		wg.Wait()
		if p.r.IntN(2) == 0 {
			time.Sleep(p.upTo(3 * time.Second))
		}
	}
}

// mintUntil creates IDs until the given time, and sometimes steps the clock.
func (p *process[T]) mintUntil(t *testing.T, until time.Time, g *nodelease.Generator[T], store *erratic) {
	ids := make([]T, 5)
	for time.Now().Before(until) {
		if p.r.IntN(400) == 0 {
			p.clock.step(p.upTo(6*time.Second) - 3*time.Second)
		}
		k := g.Keeper()
		n, err := 1, error(nil)
		if p.r.IntN(2) == 0 {
			n, err = g.Fill(t.Context(), ids)
		} else if ids[0], err = g.Next(); err != nil {
			n = 0
		}
		if err != nil && !errors.Is(err, idtype.ErrLeaseLost) && !errors.Is(err, idtype.ErrLeaseNotRenewed) && !errors.Is(err, idtype.ErrClockBackwards) && !errors.Is(err, idtype.ErrSequenceExhausted) {
			t.Error(err)
		}
		after, mark := k.After(), store.mark(k)
		if k != g.Keeper() {
			after, mark = 0, math.MaxInt64 // the IDs may belong to either claim
		}
		p.note(t, ids[:n], k, after, mark)
		time.Sleep(p.upTo(15 * time.Millisecond))
	}
}

// note records IDs. It expects each to be new, later than after, and no later than
// mark.
func (p *process[T]) note(t *testing.T, ids []T, k *nodelease.Keeper, after, mark int64) {
	holder := fmt.Sprintf("%s, term %d of number %d", p.name, k.Stats().Term, k.Number())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims[k] = true
	for _, id := range ids {
		if before, ok := p.seen[id]; ok {
			t.Errorf("duplicate ID %v, created by %s and by %s", id, before, holder)
		}
		p.seen[id] = holder
		if at := p.when(id); at <= after || at > mark {
			t.Errorf("ID %v of time %d was created by %s, which may use (%d, %d]", id, at, holder, after, mark)
		}
	}
}

func (p *process[T]) upTo(d time.Duration) time.Duration { return time.Duration(p.r.Int64N(int64(d))) }

// An erratic store has calls that are slow, that fail, or that take effect although
// they fail. At times all calls fail.
type erratic struct {
	nodelease.Store
	mu   sync.Mutex
	r    *rand.Rand
	dead bool
	down time.Time // all calls fail until this time
	// marks holds the highest granted high-water mark, by number and term. If the
	// clock steps back, a Keeper's Until may be lower.
	marks map[[2]int64]int64
}

func (e *erratic) granted(c nodelease.Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := [2]int64{int64(c.Number), c.Term}
	e.marks[key] = max(e.marks[key], c.Until)
}

// mark returns the highest high-water mark of a claim so far.
func (e *erratic) mark(k *nodelease.Keeper) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.marks[[2]int64{int64(k.Number()), k.Stats().Term}]
}

func (e *erratic) die() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = true
}

func (e *erratic) call(do func() error) error {
	e.mu.Lock()
	if e.r.IntN(12) == 0 {
		e.down = time.Now().Add(time.Duration(e.r.Int64N(int64(3 * time.Second))))
	}
	failing := time.Now().Before(e.down)
	done := !e.dead && (!failing || e.r.IntN(3) == 0)
	before, after := e.delay(), e.delay()
	e.mu.Unlock()
	time.Sleep(before)
	if done {
		if err := do(); err != nil {
			return err
		}
	}
	time.Sleep(after)
	if failing || !done {
		return errDown
	}
	return nil
}

func (e *erratic) delay() time.Duration {
	if e.r.IntN(4) > 0 {
		return time.Duration(e.r.Int64N(int64(5 * time.Millisecond)))
	}
	return time.Duration(e.r.Int64N(int64(400 * time.Millisecond)))
}

// few shrinks a pool to two numbers, so that processes reuse each other's numbers.
func few(p nodelease.Pool) nodelease.Pool {
	p.Size = 2
	return p
}

func (e *erratic) Claim(_ context.Context, p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, err error) {
	err = e.call(func() (err error) {
		if c, err = e.Store.Claim(context.Background(), few(p), r); err == nil {
			e.granted(c)
		}
		return err
	})
	return c, err
}

func (e *erratic) Renew(_ context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (got nodelease.Claim, err error) {
	err = e.call(func() (err error) {
		if got, err = e.Store.Renew(context.Background(), few(p), c, r); err == nil {
			e.granted(got)
		}
		return err
	})
	return got, err
}

func (e *erratic) Release(_ context.Context, p nodelease.Pool, c nodelease.Claim, mark int64) error {
	return e.call(func() error { return e.Store.Release(context.Background(), few(p), c, mark) })
}
