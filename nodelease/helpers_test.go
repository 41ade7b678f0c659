package nodelease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// TestMain discards the default log: the tests provoke hundreds of messages, and the simulation
// many more.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}

// onFakeTime runs a test with synctest's fake clock, which starts at a time that all
// formats can represent.
func onFakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC)))
		f(t)
	})
}

// repeats returns the number of runs of a test of an order that differs between runs.
func repeats() int {
	if testing.Short() {
		return 20
	}
	return 100
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A call is a recorded call of a store.
type call struct {
	what  string // Claim, Renew or Release
	at    time.Time
	r     nodelease.Request
	claim nodelease.Claim
	mark  int64
}

// A faulty store records its calls, and passes them to the fault of the test.
type faulty struct {
	leasetest.Store
	mu    sync.Mutex
	calls []call
	fault fault
}

// A fault replaces a call. It may call do, which makes the call.
type fault func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error)

var errDown = errors.New("store is down")

func (f *faulty) set(fault fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *faulty) pass(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
	c.at = time.Now()
	f.mu.Lock()
	f.calls = append(f.calls, c)
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		return do()
	}
	return fault(ctx, c, do)
}

// noted returns the calls of one method.
func (f *faulty) noted(what string) (calls []call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.what == what {
			calls = append(calls, c)
		}
	}
	return calls
}

// last returns the last call of a method.
func (f *faulty) last(what string) call {
	calls := f.noted(what)
	return calls[len(calls)-1]
}

func (f *faulty) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	return f.pass(ctx, call{what: "Claim", r: r}, func() (nodelease.Claim, error) { return f.Store.Claim(ctx, p, r) })
}

func (f *faulty) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	return f.pass(ctx, call{what: "Renew", r: r, claim: c}, func() (nodelease.Claim, error) { return f.Store.Renew(ctx, p, c, r) })
}

func (f *faulty) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, mark int64) error {
	_, err := f.pass(ctx, call{what: "Release", claim: c, mark: mark}, func() (nodelease.Claim, error) {
		return nodelease.Claim{}, f.Store.Release(ctx, p, c, mark)
	})
	return err
}

// only applies a fault to one method.
func only(what string, f fault) fault {
	return func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
		if c.what != what {
			return do()
		}
		return f(ctx, c, do)
	}
}

// down fails at once.
func down(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
	return nodelease.Claim{}, errDown
}

// hung returns when its context ends, without making the call.
func hung(ctx context.Context, _ call, _ func() (nodelease.Claim, error)) (nodelease.Claim, error) {
	<-ctx.Done()
	return nodelease.Claim{}, ctx.Err()
}

// late sleeps before and after making the call, and ignores its context.
func late(before, after time.Duration) fault {
	return func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
		time.Sleep(before)
		c, err := do()
		time.Sleep(after)
		return c, err
	}
}

// lossy makes the call and loses the answer.
func lossy(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
	_, _ = do()
	return nodelease.Claim{}, errDown
}

// A wall is a clock that can be stepped.
type wall struct{ off atomic.Int64 }

func (w *wall) now() time.Time       { return time.Now().Add(time.Duration(w.off.Load())) }
func (w *wall) step(d time.Duration) { w.off.Add(int64(d)) }

// pool returns a pool of Snowflake numbers of the given size.
func pool(size int) nodelease.Pool {
	p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
	p.Size = size
	return p
}

// snowflakes returns a generator with the lease that fails instead of waiting.
func snowflakes(t *testing.T, l idtype.Lease, clock func() time.Time) *idtype.SnowflakeGenerator {
	t.Helper()
	g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l, Clock: clock, MaxWait: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// when returns the time of an ID, in Unix milliseconds.
func when(id idtype.Snowflake) int64 { return idtype.SnowflakeLayout{}.Time(id).UnixMilli() }

// acquire claims a number, and fails the test if it can't.
func acquire(t *testing.T, s nodelease.Store, p nodelease.Pool, o nodelease.Options) *nodelease.Keeper {
	t.Helper()
	k, err := nodelease.Acquire(t.Context(), s, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// closes closes k, and fails the test if that fails.
func closes(t *testing.T, k interface{ Close() error }) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
