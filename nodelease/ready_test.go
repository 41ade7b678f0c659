package nodelease_test

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// An alone generator has a single claim.
type alone struct {
	*idtype.SnowflakeGenerator
	k *nodelease.Keeper
}

func (a alone) Ready() error { return cmp.Or(a.k.Ready(), a.SnowflakeGenerator.Ready()) }
func (a alone) Close() error { return a.k.Close() }

// While the store fails, Ready fails well before the first call does. Once the store
// answers, Ready recovers by itself.
func TestReady(t *testing.T) {
	for _, single := range []bool{false, true} {
		for _, recovers := range []bool{false, true} {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				var g interface {
					Next() (idtype.Snowflake, error)
					Ready() error
					Close() error
				}
				if single {
					k := acquire(t, store, pool(2), nodelease.Options{})
					g = alone{snowflakes(t, k, nil), k}
				} else {
					g = generator(t, store, pool(2), nodelease.Options{})
				}
				time.Sleep(time.Minute)
				var early error
				var since time.Time
				store.set(down)
				for ; ; time.Sleep(500 * time.Millisecond) {
					if _, err := g.Next(); err != nil {
						break
					}
					if err := g.Ready(); err != nil && early == nil {
						early, since = err, time.Now()
						if recovers {
							break
						}
					}
				}
				if early == nil || !errors.Is(early, errDown) || errors.Is(early, idtype.ErrLeaseLost) || !strings.Contains(early.Error(), `number 0 of pool "snowflake": not renewed, and the claim ends in `) {
					t.Fatalf("want the error of the renewal, got %v", early)
				}
				if !recovers {
					if left := time.Since(since); left < 9*time.Second || left > 11*time.Second {
						t.Errorf("want Ready to fail 10 s before Next, got %v", left)
					}
					if err := g.Ready(); !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, errDown) {
						t.Errorf("after the loss: want %v, got %v", idtype.ErrLeaseLost, err)
					}
				}
				store.set(nil)
				time.Sleep(15 * time.Second)
				if err := g.Ready(); (err == nil) != (!single || recovers) {
					t.Errorf("a single claim: %v, renewed in time %v: got %v", single, recovers, err)
				}
				_ = g.Close()
				if err := g.Ready(); err == nil || (!single || recovers) && !errors.Is(err, nodelease.ErrClosed) {
					t.Errorf("after Close: want %v, got %v", nodelease.ErrClosed, err)
				}
			})
		}
	}
}

// Ready doesn't fail while renewals succeed at the first attempt and take less than a tenth
// of the TTL.
func TestReadyWithSlowRenewals(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		store.set(only("Renew", late(0, 2900*time.Millisecond)))
		k := acquire(t, store, pool(1), nodelease.Options{})
		for range 36_000 {
			if err := k.Ready(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		store.set(nil)
		time.Sleep(15 * time.Second) // until no slow call runs
		closes(t, k)
	})
}

// If the process was suspended, Ready doesn't report the failure of an earlier outage.
func TestReadyAfterSuspension(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		var nap atomic.Int64
		k := acquire(t, store, pool(1), nodelease.Options{Clock: func() time.Time {
			time.Sleep(time.Duration(nap.Swap(0)))
			return time.Now()
		}})
		store.set(only("Renew", down))
		time.Sleep(12 * time.Second)
		store.set(nil)
		time.Sleep(time.Minute)
		if stats := k.Stats(); stats.Failures == 0 || stats.Renewals == 0 {
			t.Fatalf("want a failure and renewals, got %+v", stats)
		}
		for renewals := k.Stats().Renewals; k.Stats().Renewals == renewals; {
			time.Sleep(time.Millisecond)
		}
		nap.Store(int64(20 * time.Second)) // the Keeper doesn't run
		time.Sleep(19 * time.Second)
		if err := k.Ready(); err == nil || errors.Is(err, errDown) || !strings.Contains(err.Error(), "may have been suspended") {
			t.Errorf("want no failure of a renewal, got %v", err)
		}
		time.Sleep(3 * time.Second)
		if err := k.Ready(); err != nil {
			t.Errorf("after the renewal: %v", err)
		}
		closes(t, k)
	})
}

// Ready fails while the clock is behind or past the claim. The wrapped generator's Ready
// determines that.
func TestReadyClock(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			must(g.Next())
			for _, test := range []struct {
				step time.Duration
				want error
			}{
				{0, nil},
				{-time.Second, nil}, // calls wait
				{-time.Hour, idtype.ErrClockBackwards},
				{time.Second, nil},
				{time.Hour, idtype.ErrLeaseNotRenewed},
			} {
				synctest.Wait()
				clock.step(test.step)
				if err := g.Ready(); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Errorf("a step of %v: want %v, got %v", test.step, test.want, err)
				}
				if err := g.Keeper().Ready(); err != nil {
					t.Errorf("a step of %v: want a claim that is held, got %v", test.step, err)
				}
				clock.step(-test.step)
			}
			time.Sleep(time.Minute)
		}
		clock.step(time.Hour)
		time.Sleep(time.Second)
		if err := g.Ready(); err != nil {
			t.Errorf("after the renewal: %v", err)
		}
		closes(t, g)
	})
}

// Close ends calls that wait for the clock, and releases the number after their last ID.
func TestCloseEndsWaits(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{Clock: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		last := must(g.Next())
		clock.step(-900 * time.Millisecond)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if id, err := g.Next(); !errors.Is(err, nodelease.ErrClosed) {
					t.Errorf("want %v, got %v, %v", nodelease.ErrClosed, id, err)
				}
				if n, err := g.Fill(t.Context(), make([]idtype.Snowflake, 3)); n != 0 || !errors.Is(err, nodelease.ErrClosed) {
					t.Errorf("want %v, got %d IDs, %v", nodelease.ErrClosed, n, err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		closes(t, g)
		wg.Wait()
		if took := time.Since(begun); took > 50*time.Millisecond {
			t.Errorf("want the calls to end at once, took %v", took)
		}
		if mark := store.last("Release").mark; mark != when(last) {
			t.Errorf("want a release at %d, got %d", when(last), mark)
		}
	})
}
