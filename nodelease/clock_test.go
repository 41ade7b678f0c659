package nodelease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A clock that is stepped while the number is held: IDs stay within the claim,
// none comes twice, and after the next renewal it goes on.
func TestClockSteps(t *testing.T) {
	for _, test := range []struct {
		name string
		step time.Duration
		// A clock that went back has to catch up with the last ID, as without a
		// claim.
		behind bool
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
				minted, refused := 0, 0
				mint := func(d time.Duration) {
					t.Helper()
					minted, refused = 0, 0
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
						id, err := g.Next()
						if err != nil {
							if !errors.Is(err, idtype.ErrLeaseLost) && !errors.Is(err, idtype.ErrClockBackwards) {
								t.Fatal(err)
							}
							refused++
							continue
						}
						minted++
						if id <= last || when(id) <= k.After() || when(id) > k.Until() {
							t.Fatalf("minted %v, for %d, after %v, with a claim from %d to %d", id, when(id), last, k.After(), k.Until())
						}
						last = id
					}
				}
				mint(time.Minute)
				if refused > 0 {
					t.Errorf("expected an ID each time, got none %d times", refused)
				}
				clock.step(test.step)
				mint(11 * time.Second)
				if test.step > 27*time.Second && (refused == 0 || refused > 72) {
					t.Errorf("expected IDs after the renewal, which comes within half a second, got none %d times", refused)
				}
				mint(time.Minute)
				if test.behind != (minted == 0) || test.behind == (refused == 0) {
					t.Errorf("got %d IDs, and none %d times", minted, refused)
				}
				if test.behind {
					clock.step(-test.step)
					mint(11 * time.Second)
					if minted == 0 {
						t.Error("expected IDs of a clock that was set right, got none")
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

// A machine that was suspended for an hour, by whose monotonic clock no time has
// passed: until the store has confirmed that the claim stands, nothing is minted
// beyond the high-water mark.
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
			if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
				t.Fatalf("expected no ID, got %v, %v", id, err)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		// Nobody else has claimed it.
		if _, err := g.Next(); err != nil {
			t.Error(err)
		}
		closes(t, k)
	})
}

// If someone else has claimed the number meanwhile, it is his.
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

		world.step(time.Hour) // for everybody else
		next := acquire(t, store, pool(1), nodelease.Options{Clock: world.now, Wait: -1})
		theirs := snowflakes(t, next, world.now)
		if next.After() != mark {
			t.Errorf("expected a claim after %d, got one after %d", mark, next.After())
		}
		// With its own clock, as it was, the old holder may still mint: in what is
		// its own.
		id, err := g.Next()
		if err != nil || when(id) > mark {
			t.Errorf("expected an ID up to %d, got %v of %d, %v", mark, id, when(id), err)
		}
		if first := must(theirs.Next()); when(first) <= mark {
			t.Errorf("expected an ID after %d, got %v of %d", mark, first, when(first))
		}
		here.step(time.Hour) // it sees the time
		if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("expected no ID, got %v, %v", id, err)
		}
		begun := time.Now()
		<-k.Lost()
		if held := time.Since(begun); held > 11*time.Second {
			t.Errorf("expected the loss with the next renewal, got it after %v", held)
		}
		expectLost(t, k, g, nodelease.ErrSuperseded)
		closes(t, k)
		time.Sleep(time.Minute)
		if _, err := theirs.Next(); err != nil || next.Err() != nil {
			t.Errorf("expected the next holder to go on, got %v, %v", err, next.Err())
		}
		closes(t, next)
	})
}

// A store whose clock is off, or is stepped, makes no difference to what may be
// minted.
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
			// After a crash the number is free again, at the latest, a TTL later.
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
