package nodelease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// If the clock is stepped while the number is held, IDs stay within the claim and
// increase, and the generator continues after the next renewal.
func TestClockSteps(t *testing.T) {
	for _, test := range []struct {
		name   string
		step   time.Duration
		behind bool // the clock must catch up with the last ID, as without a claim
	}{
		{"an hour forward", time.Hour, false},
		{"an hour back", -time.Hour, true},
		{"within the claim", 5 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				clock := new(wall)
				k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
				g := snowflakes(t, k, clock.now)
				var last idtype.Snowflake
				created, failed := 0, 0
				create := func(d time.Duration) {
					t.Helper()
					created, failed = 0, 0
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
						id, err := g.Next()
						if err != nil {
							if !errors.Is(err, idtype.ErrLeaseNotRenewed) && !errors.Is(err, idtype.ErrLeaseLost) && !errors.Is(err, idtype.ErrClockBackwards) {
								t.Fatal(err)
							}
							failed++
							continue
						}
						created++
						if id <= last || when(id) <= k.After() || when(id) > k.Until() {
							t.Fatalf("got ID %v of time %d after ID %v, with a claim from %d to %d", id, when(id), last, k.After(), k.Until())
						}
						last = id
					}
				}
				create(time.Minute)
				if failed > 0 {
					t.Errorf("expected no failed calls, got %d", failed)
				}
				clock.step(test.step)
				create(11 * time.Second)
				if test.step > 27*time.Second && (failed == 0 || failed > 72) {
					t.Errorf("expected calls to fail for at most half a second, until the renewal, got %d failed calls", failed)
				}
				create(time.Minute)
				if test.behind != (created == 0) || test.behind == (failed == 0) {
					t.Errorf("got %d IDs and %d failed calls", created, failed)
				}
				if test.behind {
					clock.step(-test.step)
					create(11 * time.Second)
					if created == 0 {
						t.Error("expected IDs after the clock was corrected, got none")
					}
				}
				if stats := k.Stats(); stats.Failures > 0 || k.Err() != nil {
					t.Errorf("expected a claim that is held, got %+v, %v", stats, k.Err())
				}
				closes(t, k)
				if mark := store.last("Release").mark; mark != when(last) {
					t.Errorf("expected a release at %d, got %d", when(last), mark)
				}
			})
		})
	}
}

// The machine is suspended for an hour, and its monotonic clock stands still. The
// generator creates no ID beyond the high-water mark until the store has renewed the
// claim.
func TestSuspended(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		g := snowflakes(t, k, clock.now)
		time.Sleep(time.Minute)
		must(g.Next())
		renewals := k.Stats().Renewals
		clock.step(time.Hour)
		for k.Stats().Renewals == renewals {
			if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseNotRenewed) {
				t.Fatalf("expected no ID, got %v, %v", id, err)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		// No other process has claimed the number.
		if _, err := g.Next(); err != nil {
			t.Error(err)
		}
		closes(t, k)
	})
}

// Another process has claimed the number while this machine was suspended.
func TestSuspendedForTooLong(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		world, here := new(wall), new(wall)
		store.Clock = world.now
		k := acquire(t, store, pool(1), nodelease.Options{Clock: here.now})
		g := snowflakes(t, k, here.now)
		time.Sleep(time.Minute)
		must(g.Next())
		mark := k.Until()

		world.step(time.Hour) // for all others
		next := acquire(t, store, pool(1), nodelease.Options{Clock: world.now, Wait: -1})
		theirs := snowflakes(t, next, world.now)
		if next.After() != mark {
			t.Errorf("expected a claim after %d, got one after %d", mark, next.After())
		}
		// While its clock is unchanged, the old holder may create IDs within its range.
		id, err := g.Next()
		if err != nil || when(id) > mark {
			t.Errorf("expected an ID up to %d, got %v of %d, %v", mark, id, when(id), err)
		}
		if first := must(theirs.Next()); when(first) <= mark {
			t.Errorf("expected an ID after %d, got %v of %d", mark, first, when(first))
		}
		here.step(time.Hour) // the machine's clock is corrected
		if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseNotRenewed) {
			t.Errorf("expected no ID, got %v, %v", id, err)
		}
		begun := time.Now()
		<-k.Lost()
		if held := time.Since(begun); held > 11*time.Second {
			t.Errorf("expected the loss at the next renewal, got it after %v", held)
		}
		expectLost(t, k, g, nodelease.ErrSuperseded)
		closes(t, k)
		time.Sleep(time.Minute)
		if _, err := theirs.Next(); err != nil || next.Err() != nil {
			t.Errorf("expected the next holder to keep its claim, got %v, %v", err, next.Err())
		}
		closes(t, next)
	})
}

// The store's clock doesn't affect which IDs a generator may create.
func TestStoreClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			world := new(wall)
			store.Clock = world.now
			k := acquire(t, store, pool(1), nodelease.Options{})
			g := snowflakes(t, k, nil)
			time.Sleep(time.Minute)
			world.step(step)
			for range 10_000 {
				id, err := g.Next()
				if err != nil || when(id) > k.Until() {
					t.Fatalf("expected an ID up to %d, got %v of %d, %v", k.Until(), id, when(id), err)
				}
				time.Sleep(13 * time.Millisecond)
			}
			if skew := k.Stats().Skew.Round(2 * time.Millisecond); skew != -step {
				t.Errorf("expected this clock to be %v ahead, got %v", -step, skew)
			}
			// After a crash the number is free within a TTL.
			store.set(down)
			<-k.Lost()
			next := &store.Store
			claimed := time.Now()
			other := acquire(t, next, pool(1), nodelease.Options{})
			if waited := time.Since(claimed); waited > 30*time.Second {
				t.Errorf("expected the number within 30 s, got it after %v", waited)
			}
			closes(t, other)
			_ = k.Close()
		})
	}
}

// The duration of calls doesn't count as skew: the store reads its clock within a call. A call
// that takes longer than a second leaves the last skew.
func TestSkewOfSlowCalls(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		slow := func(each time.Duration) fault { return late(each, each) }
		store, world := new(faulty), new(wall)
		store.Clock = world.now
		store.set(slow(400 * time.Millisecond))
		k := acquire(t, store, pool(1), nodelease.Options{})
		expect := func(want time.Duration) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := k.Stats().Skew.Round(2 * time.Millisecond); got != want {
				t.Errorf("want a skew of %v, got %v", want, got)
			}
		}
		expect(0)
		world.step(-time.Minute)
		expect(time.Minute)
		store.set(slow(2 * time.Second))
		time.Sleep(10 * time.Second) // a call with the old delay has ended
		world.step(time.Minute)
		expect(time.Minute)
		store.set(slow(time.Millisecond))
		expect(0)
		closes(t, k)
	})
}

// While the clock is further from the store's than MaxSkew, the claim isn't renewed, so its
// high-water mark stays. The errors report the skew.
func TestRenewalsSkewed(t *testing.T) {
	for _, step := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			clock := new(wall)
			k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
			g := snowflakes(t, k, clock.now)
			time.Sleep(time.Minute)
			must(g.Next())
			until := k.Until()
			clock.step(step)
			for k.Ready() == nil {
				time.Sleep(100 * time.Millisecond)
			}
			if err := k.Ready(); !errors.Is(err, nodelease.ErrClockSkew) || errors.Is(err, idtype.ErrLeaseLost) {
				t.Errorf("want %v before the loss, got %v", nodelease.ErrClockSkew, err)
			}
			if skew := k.Stats().Skew; skew.Round(time.Second) != step {
				t.Errorf("want a skew of %v in Stats, got %v", step, skew)
			}
			<-k.Lost()
			expectLost(t, k, g, nodelease.ErrClockSkew)
			if err := k.Ready(); !errors.Is(err, nodelease.ErrClockSkew) || !errors.Is(err, idtype.ErrLeaseLost) {
				t.Errorf("want %v, got %v", nodelease.ErrClockSkew, err)
			}
			closes(t, k)
			next := acquire(t, store, pool(1), nodelease.Options{Wait: -1})
			if next.After() > until {
				t.Errorf("want a high-water mark up to %d, got %d", until, next.After())
			}
			closes(t, next)
		})
	}
}
