package nodelease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/leasetest"
	"github.com/sortkey/sortkey/nodelease"
)

// Processes with clocks that are off and are stepped, and whose store fails in
// all ways, while its own clock is stepped as well: no ID comes twice, and each
// lies within its claim.
func TestRandomFaults(t *testing.T) {
	for range 6 {
		// It says what the processes and the store do; the jitter of the claims is
		// their own.
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("Snowflake, seed %d", seed), func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				newWorld(seed, pool(2), when, func(o idtype.Options) (idtype.Generator[idtype.Snowflake], error) {
					return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: o})
				}).run(t)
			})
		})
		// Its generators go on when the clock steps back, in time that they may
		// have used already.
		t.Run(fmt.Sprintf("Sno, seed %d", seed), func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				p := nodelease.ForSno()
				p.Size = 2
				newWorld(seed, p, func(id idtype.Sno) int64 { return id.Time().UnixMilli() }, func(o idtype.Options) (idtype.Generator[idtype.Sno], error) {
					return idtype.NewSnoGenerator(idtype.SnoConfig{Options: o})
				}).run(t)
			})
		})
	}
}

// A world has processes that share a store.
type world[T comparable] struct {
	seed  uint64
	pool  nodelease.Pool
	when  func(T) int64
	build func(idtype.Options) (idtype.Generator[T], error)
	clock wall // the store's
	store leasetest.Store
	end   time.Time

	mu     sync.Mutex
	seen   map[T]string
	claims int
}

func newWorld[T comparable](seed uint64, p nodelease.Pool, when func(T) int64, build func(idtype.Options) (idtype.Generator[T], error)) *world[T] {
	w := &world[T]{seed: seed, pool: p, when: when, build: build, seen: map[T]string{}, end: time.Now().Add(3 * time.Minute)}
	w.store.Clock = w.clock.now
	return w
}

func (w *world[T]) run(t *testing.T) {
	var wg sync.WaitGroup
	for i := range uint64(4) {
		r := rand.New(rand.NewPCG(w.seed, i))
		wg.Go(func() { (&process[T]{world: w, r: r, name: fmt.Sprintf("process %d", i)}).run(t) })
	}
	r := rand.New(rand.NewPCG(w.seed, 100))
	for time.Now().Before(w.end) {
		time.Sleep(time.Duration(r.Int64N(int64(10 * time.Second))))
		w.clock.step(time.Duration(r.Int64N(int64(4*time.Second))) - 2*time.Second)
	}
	wg.Wait()
	time.Sleep(time.Minute) // until all calls have ended
	t.Logf("%d IDs of %d claims", len(w.seen), w.claims)
	if len(w.seen) < 1000 || w.claims < 10 {
		t.Error("expected more of both")
	}
}

// A process claims numbers, mints, and ends, by Close or without a word, again
// and again.
type process[T comparable] struct {
	*world[T]
	r     *rand.Rand
	name  string
	clock wall
}

func (p *process[T]) run(t *testing.T) {
	p.clock.step(p.upTo(2*time.Second) - time.Second)
	for time.Now().Before(p.end) {
		store := &erratic{Store: &p.store, r: rand.New(rand.NewPCG(p.r.Uint64(), 0))}
		k, err := nodelease.Acquire(t.Context(), store, p.pool, nodelease.Options{TTL: time.Second, Wait: 5 * time.Second, Clock: p.clock.now})
		if err != nil {
			time.Sleep(p.upTo(500 * time.Millisecond))
			continue
		}
		p.mu.Lock()
		p.claims++
		p.mu.Unlock()
		p.mint(t, k)
		if p.r.IntN(3) == 0 {
			store.die() // and is never heard of again
		}
		_ = k.Close()
	}
}

// mint mints for some time, in which the clock may be stepped, or nothing is
// minted for a while.
func (p *process[T]) mint(t *testing.T, k *nodelease.Keeper) {
	g, err := p.build(idtype.Options{Lease: k, Clock: p.clock.now, MaxWait: -1})
	if err != nil {
		if !errors.Is(err, idtype.ErrLeaseLost) {
			t.Error(err)
		}
		return
	}
	for end := time.Now().Add(p.upTo(6 * time.Second)); time.Now().Before(end) && k.Err() == nil; {
		switch p.r.IntN(400) {
		case 0:
			p.clock.step(p.upTo(6*time.Second) - 3*time.Second)
		case 1:
			time.Sleep(p.upTo(3 * time.Second))
		}
		id, err := g.Next()
		switch {
		case err == nil:
			p.note(t, id, k)
		case !errors.Is(err, idtype.ErrLeaseLost) && !errors.Is(err, idtype.ErrClockBackwards):
			t.Error(err)
		}
		time.Sleep(p.upTo(5 * time.Millisecond))
	}
}

func (p *process[T]) note(t *testing.T, id T, k *nodelease.Keeper) {
	who := fmt.Sprintf("%s, term %d of number %d", p.name, k.Stats().Term, k.Number())
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.seen[id]; ok {
		t.Errorf("%v was minted by %s and by %s", id, before, who)
	}
	p.seen[id] = who
	if p.when(id) <= k.After() {
		t.Errorf("%v was minted for %d by %s, after %d", id, p.when(id), who, k.After())
	}
}

func (p *process[T]) upTo(d time.Duration) time.Duration { return time.Duration(p.r.Int64N(int64(d))) }

// An erratic store is one whose calls may be slow, fail, or be done without an
// answer; for some time they all do.
type erratic struct {
	nodelease.Store
	mu   sync.Mutex
	r    *rand.Rand
	dead bool
	down time.Time // until then
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

func (e *erratic) Claim(_ context.Context, p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, err error) {
	err = e.call(func() (err error) {
		c, err = e.Store.Claim(context.Background(), p, r)
		return err
	})
	return c, err
}

func (e *erratic) Renew(_ context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (got nodelease.Claim, err error) {
	err = e.call(func() (err error) {
		got, err = e.Store.Renew(context.Background(), p, c, r)
		return err
	})
	return got, err
}

func (e *erratic) Release(_ context.Context, p nodelease.Pool, c nodelease.Claim, mark int64) error {
	return e.call(func() error { return e.Store.Release(context.Background(), p, c, mark) })
}
