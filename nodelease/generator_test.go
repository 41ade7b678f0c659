package nodelease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// build returns a generator that fails instead of waiting.
func build(l idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l, MaxWait: -1}})
}

func generator(t *testing.T, s nodelease.Store, p nodelease.Pool, o nodelease.Options) *nodelease.Generator[idtype.Snowflake] {
	t.Helper()
	g, err := nodelease.NewGenerator(t.Context(), s, p, o, build)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A Generator claims a number, creates IDs, and releases the number.
func TestGenerator(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(1), nodelease.Options{})
		id := must(g.Next())
		ids := make([]idtype.Snowflake, 10)
		if n, err := g.Fill(t.Context(), ids); n != 10 || err != nil || ids[0] <= id {
			t.Errorf("Fill: got %d IDs, the first %v, %v", n, ids[0], err)
		}
		if k := g.Keeper(); k.Number() != 0 || k.Err() != nil {
			t.Errorf("got number %d, %v", k.Number(), k.Err())
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { closes(t, g) })
		}
		wg.Wait()
		closes(t, g)
		begun := time.Now()
		_, err := g.Next()
		n, err2 := g.Fill(t.Context(), ids)
		if !errors.Is(err, nodelease.ErrClosed) || n != 0 || !errors.Is(err2, nodelease.ErrClosed) || time.Since(begun) > 0 {
			t.Errorf("after Close: %v; %d, %v; after %v", err, n, err2, time.Since(begun))
		}
		if releases := store.noted("Release"); len(releases) != 1 || releases[0].mark != when(ids[9]) {
			t.Errorf("expected a release at %d, got %+v", when(ids[9]), releases)
		}
	})
}

// A call takes the next claim if it is there, even if its time is over or its context done.
func TestReadySuccessor(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(2), nodelease.Options{})
		lost := acquire(t, store, pool(2), nodelease.Options{})
		store.set(func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if c.what == "Renew" && c.claim.Number == lost.Number() {
				return nodelease.Claim{}, errDown
			}
			return do()
		})
		<-lost.Lost()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 50 {
			if err := g.ReadySuccessor(ctx, lost, time.Now().Add(-time.Second)); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		closes(t, g)
	})
}

// For a generator with a single claim, a loss is permanent, and the error has its reason.
func TestSingleClaimLoss(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(2), nodelease.Options{})
		g := snowflakes(t, k, nil)
		must(g.Next())
		store.set(only("Renew", down))
		<-k.Lost()
		begun := time.Now()
		_, err := g.Next()
		n, err2 := g.Fill(t.Context(), make([]idtype.Snowflake, 3))
		for _, err := range []error{err, err2} {
			if !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, errDown) {
				t.Errorf("expected %v and %v, got %v", idtype.ErrLeaseLost, errDown, err)
			}
		}
		if n != 0 || time.Since(begun) > 0 {
			t.Errorf("expected calls to fail at once, got %d IDs after %v", n, time.Since(begun))
		}
		time.Sleep(time.Hour)
		if n := len(store.noted("Claim")); n != 1 {
			t.Errorf("expected one claim, got %d", n)
		}
		closes(t, k)
	})
}

// After a loss, a call waits for the next claim, for up to a second.
func TestGeneratorReacquires(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(2), nodelease.Options{})
		for i := range 3 {
			last := must(g.Next())
			old := g.Keeper()
			store.set(only("Renew", down))
			<-old.Lost()
			store.set(nil)
			begun := time.Now()
			id, err := g.Next()
			if err != nil || id == last || time.Since(begun) > time.Second {
				t.Errorf("loss %d: got %v, %v after %v", i+1, id, err, time.Since(begun))
			}
			if k := g.Keeper(); k == old || k.Err() != nil {
				t.Errorf("loss %d: expected a new claim, got %v", i+1, k.Err())
			}
			if n, err := g.Fill(t.Context(), make([]idtype.Snowflake, 5)); n != 5 || err != nil {
				t.Errorf("loss %d: Fill: got %d, %v", i+1, n, err)
			}
		}
		// No number is available for longer than a call waits.
		old := g.Keeper()
		store.set(down)
		<-old.Lost()
		begun := time.Now()
		if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, errDown) || !strings.Contains(err.Error(), "no other number within 1s") || time.Since(begun) != time.Second {
			t.Errorf("expected an error after 1 s, got %v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begun = time.Now()
		if n, err := g.Fill(ctx, make([]idtype.Snowflake, 5)); n != 0 || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 300*time.Millisecond {
			t.Errorf("expected %v, got %d, %v after %v", context.DeadlineExceeded, n, err, time.Since(begun))
		}
		time.Sleep(time.Hour)
		store.set(nil)
		// The generator has kept retrying, and gets a number soon after the store is back.
		begun = time.Now()
		for _, err := g.Next(); err != nil; _, err = g.Next() {
			if time.Since(begun) > 12*time.Second {
				t.Fatalf("expected IDs again, got %v", err)
			}
		}
		closes(t, g)
	})
}

// While a Generator finds no number for long, it warns once a minute.
func TestGeneratorWarns(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store, log := new(faulty), new(strings.Builder)
		g := generator(t, store, pool(1), nodelease.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		store.set(func(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			return nodelease.Claim{}, &nodelease.BusyError{Held: 1}
		})
		<-g.Keeper().Lost()
		time.Sleep(5*time.Minute + time.Second)
		_ = g.Close()
		for level, want := range map[string]int{"INFO": 1, "WARN": 4} {
			if got := strings.Count(log.String(), "level="+level+` msg="waiting for a node number"`); got < want || got > want+1 {
				t.Errorf("want %d to %d messages of level %s, got %d in\n%s", want, want+1, level, got, log)
			}
		}
	})
}

// Concurrent calls all get an ID from the next claim.
func TestGeneratorWaiters(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(2), nodelease.Options{})
		must(g.Next())
		store.set(func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			switch c.what {
			case "Renew":
				return nodelease.Claim{}, errDown
			case "Claim":
				time.Sleep(500 * time.Millisecond)
			}
			return do()
		})
		<-g.Keeper().Lost()
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[idtype.Snowflake]bool{}
		for range 8 {
			wg.Go(func() {
				id, err := g.Next()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
			})
		}
		wg.Wait()
		if len(ids) != 8 {
			t.Errorf("expected 8 IDs, got %d", len(ids))
		}
		store.set(nil)
		closes(t, g)
	})
}

// Close during a search for the next number ends the search and the waiting calls.
func TestGeneratorClosesMeanwhile(t *testing.T) {
	for name, fault := range map[string]fault{
		"down":             down,
		"hung":             hung,
		"ignores contexts": late(0, 10*time.Minute),
		"busy": only("Claim", func(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			return nodelease.Claim{}, &nodelease.BusyError{Held: 2}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				g := generator(t, store, pool(2), nodelease.Options{})
				must(g.Next())
				store.set(func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
					if c.what == "Renew" {
						return nodelease.Claim{}, errDown
					}
					return fault(ctx, c, do)
				})
				<-g.Keeper().Lost()
				time.Sleep(20 * time.Second)
				old := g.Keeper()
				failed := make(chan error, 1)
				go func() {
					_, err := g.Next()
					failed <- err
				}()
				time.Sleep(100 * time.Millisecond)
				begun := time.Now()
				_ = g.Close()
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("expected Close to return within 10 s, took %v", took)
				}
				if err := <-failed; !errors.Is(err, idtype.ErrLeaseLost) {
					t.Errorf("expected the waiting call to fail, got %v", err)
				}
				if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
					t.Errorf("expected no ID, got %v", err)
				}
				if old.Err() == nil || g.Keeper().Err() == nil {
					t.Error("expected no claim")
				}
				time.Sleep(11 * time.Minute) // until all calls have ended
				synctest.Wait()
				n := len(store.noted("Claim"))
				time.Sleep(time.Hour)
				if more := len(store.noted("Claim")) - n; more > 0 {
					t.Errorf("expected no claim after Close, got %d", more)
				}
				// A number that was granted meanwhile isn't held any more.
				store.set(nil)
				for range 2 {
					k := acquire(t, store, pool(2), nodelease.Options{Wait: -1})
					defer closes(t, k)
				}
			})
		})
	}
}

// A claim that is granted during Close is released.
func TestGeneratorClosesAtOnce(t *testing.T) {
	for range repeats() {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			g := generator(t, store, pool(1), nodelease.Options{})
			store.set(func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				switch c.what {
				case "Renew":
					return nodelease.Claim{}, errDown
				case "Claim":
					time.Sleep(time.Second)
				}
				return do()
			})
			<-g.Keeper().Lost()
			time.Sleep(time.Second)
			closes(t, g)
			if g.Keeper().Err() == nil {
				t.Error("expected no claim")
			}
			time.Sleep(10 * time.Second)
			k := acquire(t, &store.Store, pool(1), nodelease.Options{Wait: -1})
			closes(t, k)
		})
	}
}

// After Close, the generator doesn't retry the release of numbers that it lost before.
func TestGeneratorClosesLost(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(8), nodelease.Options{})
		store.set(func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if c.what == "Claim" {
				return do()
			}
			return nodelease.Claim{}, errDown
		})
		for range 3 {
			<-g.Keeper().Lost()
			time.Sleep(2 * time.Second)
		}
		begun := time.Now()
		if err := g.Close(); !errors.Is(err, errDown) || time.Since(begun) > 10*time.Second {
			t.Errorf("expected %v within 10 s, got %v after %v", errDown, err, time.Since(begun))
		}
		n := len(store.noted("Release"))
		time.Sleep(time.Hour)
		if more := len(store.noted("Release")) - n; more > 0 {
			t.Errorf("expected no more releases, got %d", more)
		}
	})
}

// Errors other than the loss of a claim are returned at once, without a wait for the
// next claim.
func TestGeneratorOtherErrors(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		broken := false
		g, err := nodelease.NewGenerator(t.Context(), store, pool(2), nodelease.Options{Clock: clock.now},
			func(l idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
				inner := snowflakes(t, l, clock.now)
				return &breakable{inner, &broken}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		synctest.Wait() // or the keeper would begin with the stepped clock
		clock.step(time.Hour)
		if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseNotRenewed) || !strings.Contains(err.Error(), "2026-11-21T10:11:39.000Z") {
			t.Errorf("expected %v with the claim's end, got %v", idtype.ErrLeaseNotRenewed, err)
		}
		clock.step(-time.Hour)
		broken = true
		store.set(down)
		for range 2 {
			if _, err := g.Next(); err != errBroken {
				t.Errorf("expected %v, got %v", errBroken, err)
			}
			if n, err := g.Fill(t.Context(), make([]idtype.Snowflake, 3)); n != 0 || err != errBroken {
				t.Errorf("expected %v, got %d, %v", errBroken, n, err)
			}
			if since := time.Since(begun); since > 0 {
				t.Errorf("expected errors at once, got an error after %v", since)
			}
			<-g.Keeper().Lost()
			begun = time.Now()
		}
		_ = g.Close()
	})
}

// A breakable generator fails with errBroken once broken is set.
type breakable struct {
	idtype.Generator[idtype.Snowflake]
	broken *bool
}

var errBroken = errors.New("broken")

func (b *breakable) Next() (idtype.Snowflake, error) {
	if *b.broken {
		return 0, errBroken
	}
	return b.Generator.Next()
}

func (b *breakable) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	if *b.broken {
		return 0, errBroken
	}
	return b.Generator.Fill(ctx, dst)
}

// If the store's answers are lost while a generator reacquires a number, the attempts
// use up one number in total, not one each.
func TestGeneratorLostAnswers(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(3), nodelease.Options{})
		must(g.Next())
		store.set(only("Renew", down))
		time.Sleep(20 * time.Second)
		store.set(lossy)
		<-g.Keeper().Lost()
		time.Sleep(2 * time.Minute)
		holders := map[string]bool{}
		for _, c := range store.noted("Claim")[1:] {
			holders[c.r.Holder] = true
		}
		if len(holders) != 1 {
			t.Errorf("expected one holder, got %v", holders)
		}
		store.set(nil)
		time.Sleep(time.Minute)
		id, err := g.Next()
		if stats := g.Keeper().Stats(); err != nil || stats.Number != 1 || stats.Term != 1 {
			t.Errorf("expected the number that was granted without an answer, got %+v, %v", g.Keeper().Stats(), err)
		}
		if current, ok := g.Current().(*idtype.SnowflakeGenerator); !ok || current.Stats().Minted != 1 {
			t.Errorf("expected the generator that created %v, got %v", id, g.Current())
		}
		closes(t, g)
	})
}

var errBuild = errors.New("can't be built")

// If building the generator fails, the number is released.
func TestGeneratorNotBuilt(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g, err := nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{Wait: -1}, func(idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
			return nil, errBuild
		})
		if !errors.Is(err, errBuild) || len(store.noted("Release")) != 1 {
			t.Errorf("expected a release and %v, got %v, %v", errBuild, g, err)
		}
		if mark := store.last("Release").mark; mark != 0 {
			t.Errorf("expected the high-water mark to stay 0, got %d", mark)
		}
		// A generator without the lease would keep using the number after its loss.
		g, err = nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{Wait: -1}, func(l idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: l.Number()})
		})
		if !errors.Is(err, idtype.ErrConfig) || !strings.Contains(err.Error(), "pass it the lease") || len(store.noted("Release")) != 2 {
			t.Errorf("a generator without the lease: want %v, got %v, %v", idtype.ErrConfig, g, err)
		}
		if g, err := nodelease.NewGenerator(t.Context(), store, nodelease.Pool{}, nodelease.Options{}, build); !errors.Is(err, idtype.ErrConfig) {
			t.Errorf("an invalid pool: want %v, got %v, %v", idtype.ErrConfig, g, err)
		}
		none := (func(idtype.Lease) (idtype.Generator[idtype.Snowflake], error))(nil)
		if g, err := nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{}, none); !errors.Is(err, idtype.ErrConfig) || len(store.noted("Claim")) != 2 {
			t.Errorf("no function to build a generator: want %v without a claim, got %v, %v", idtype.ErrConfig, g, err)
		}
		// After a loss, a failed build is retried.
		time.Sleep(time.Minute)
		tries := 0
		g, err = nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{}, func(l idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
			if tries++; tries == 2 || tries == 3 {
				return nil, errBuild
			}
			return build(l)
		})
		if err != nil {
			t.Fatal(err)
		}
		must(g.Next())
		store.set(only("Renew", down))
		<-g.Keeper().Lost()
		store.set(nil)
		time.Sleep(2 * time.Minute)
		if id, err := g.Next(); err != nil || tries != 4 {
			t.Errorf("expected an ID after the third attempt, got %v, %v after %d", id, err, tries-1)
		}
		closes(t, g)
		if claims, releases := len(store.noted("Claim")), len(store.noted("Release")); releases != 6 {
			t.Errorf("expected each number to be released, got %d releases of %d claims", releases, claims)
		}
	})
}

// A Fill uses one claim. After a loss it returns the IDs created so far, and the error.
func TestGeneratorFillLoss(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		// Spread64 has few IDs per millisecond, so that the Fill outlasts the claim.
		g, err := nodelease.NewSpread64Generator(t.Context(), store, idtype.Spread64Config{}, nodelease.Options{TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		store.set(only("Renew", down))
		ids := make([]idtype.Spread64, 64*3000)
		begun := time.Now()
		n, err := g.Fill(t.Context(), ids)
		if n == 0 || n == len(ids) || !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("expected some IDs and a loss, got %d of %d, %v", n, len(ids), err)
		}
		layout := idtype.Spread64Layout{}
		first := must(layout.Parts(ids[0])).Generator
		if at := ids[0].Time(); at.Sub(begun) > 10*time.Millisecond {
			t.Errorf("expected the first ID to have the time %v, got %v", begun, at)
		}
		for _, id := range ids[:n] {
			if must(layout.Parts(id)).Generator != first {
				t.Fatalf("expected all IDs to have number %d, got %v", first, id)
			}
		}
		store.set(nil)
		m, err := g.Fill(t.Context(), ids[:100])
		if m != 100 || err != nil {
			t.Errorf("expected 100 IDs from the next claim, got %d, %v", m, err)
		}
		closes(t, g)
	})
}

// A partial generator fills dst under the first claim. Under later claims its Fill
// creates one ID and fails.
type partial struct {
	idtype.Generator[idtype.Snowflake]
	first bool
}

func (p *partial) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	if p.first {
		return p.Generator.Fill(ctx, dst)
	}
	n, _ := p.Generator.Fill(ctx, dst[:1])
	return n, errBroken
}

// A Fill that creates too few IDs returns an error, also under a new claim.
func TestGeneratorFillPart(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		first := true
		g, err := nodelease.NewGenerator(t.Context(), store, pool(2), nodelease.Options{}, func(l idtype.Lease) (*partial, error) {
			p := &partial{snowflakes(t, l, nil), first}
			first = false
			return p, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		store.set(func(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			return nodelease.Claim{}, errDown
		})
		<-g.Keeper().Lost()
		store.set(nil)
		if n, err := g.Fill(t.Context(), make([]idtype.Snowflake, 5)); n != 1 || err != errBroken {
			t.Errorf("expected 1 ID and %v, got %d, %v", errBroken, n, err)
		}
		closes(t, g)
	})
}

// A late release of an earlier claim doesn't release the generator's next claim.
func TestGeneratorLateRelease(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		var fails atomic.Bool
		g, err := nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{}, func(l idtype.Lease) (idtype.Generator[idtype.Snowflake], error) {
			if fails.Swap(false) {
				return nil, errBuild
			}
			return build(l)
		})
		if err != nil {
			t.Fatal(err)
		}
		store.set(down)
		<-g.Keeper().Lost()
		time.Sleep(40 * time.Second) // the number is free by now
		fails.Store(true)
		var late atomic.Pointer[call]
		store.set(func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if c.what == "Release" && !fails.Load() && late.CompareAndSwap(nil, &c) {
				return hung(ctx, c, do)
			}
			return do()
		})
		for g.Keeper().Err() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err := store.Store.Release(t.Context(), pool(1), late.Load().claim, late.Load().mark); err != nil {
			t.Fatal(err)
		}
		if other, err := nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{Wait: -1}, build); !errors.Is(err, nodelease.ErrPoolExhausted) {
			t.Errorf("expected the number to be held, got IDs %v and %v from two holders, %v", must(g.Next()), must(other.Next()), err)
		}
		closes(t, g)
	})
}

// A claim that is granted after the generator has given up waiting for it is released. The
// generator claims again as another holder, so that the release can't end its next claim.
func TestGeneratorLateClaim(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(3), nodelease.Options{Wait: -1})
		store.set(down)
		<-g.Keeper().Lost()
		store.set(only("Claim", late(0, 20*time.Second)))
		time.Sleep(14 * time.Second)
		store.set(nil) // for the second attempt, after 15 s
		time.Sleep(time.Minute)
		if stats := g.Keeper().Stats(); g.Keeper().Err() != nil || stats.Age < 55*time.Second {
			t.Errorf("want a claim that lasts since the store answered in time, got %+v, %v", stats, g.Keeper().Err())
		}
		for range 2 {
			defer closes(t, acquire(t, store, pool(3), nodelease.Options{Wait: -1}))
		}
		closes(t, g)
	})
}

// The MaxWait of the config also limits the wait for the next claim.
func TestGeneratorMaxWait(t *testing.T) {
	for _, maxWait := range []time.Duration{-1, 0, 3 * time.Second} {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			c := idtype.SnowflakeConfig{Options: idtype.Options{MaxWait: maxWait}}
			g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, c, nodelease.Options{})
			if err != nil {
				t.Fatal(err)
			}
			must(g.Next())
			store.set(down)
			<-g.Keeper().Lost()
			want := maxWait
			switch {
			case maxWait == 0:
				want = time.Second
			case maxWait < 0:
				want = 0
			}
			begun := time.Now()
			if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) || time.Since(begun) != want {
				t.Errorf("MaxWait %v: want %v after %v, got %v after %v", maxWait, idtype.ErrLeaseLost, want, err, time.Since(begun))
			}
			begun = time.Now()
			if n, err := g.Fill(t.Context(), make([]idtype.Snowflake, 2)); n != 0 || !errors.Is(err, idtype.ErrLeaseLost) || time.Since(begun) != want {
				t.Errorf("MaxWait %v: want %v after %v, got %d, %v after %v", maxWait, idtype.ErrLeaseLost, want, n, err, time.Since(begun))
			}
			_ = g.Close()
		})
	}
}

// The generator of a format has the fields of its config, under each claim.
func TestGeneratorConfig(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		notBefore := time.Now().Add(500 * time.Millisecond)
		layout := idtype.SnowflakeLayout{Epoch: base}
		c := idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{NotBefore: notBefore}}
		g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, c, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if at := layout.Time(must(g.Next())); !at.After(notBefore) || time.Since(at) > time.Second {
				t.Errorf("want an ID after %v, got one of %v", notBefore, at)
			}
			store.set(only("Renew", down))
			<-g.Keeper().Lost()
			store.set(nil)
		}
		closes(t, g)
	})
}

// The metabyte can be chosen for each ID and for a view, under each claim.
func TestSnoGeneratorMeta(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g, err := nodelease.NewSnoGenerator(t.Context(), store, idtype.SnoConfig{Meta: 'a'}, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		view := idtype.MapGenerator(g, func(id idtype.Sno) idtype.Sno { return id.WithMeta('c') })
		ids := map[idtype.Sno]bool{}
		for range 2 {
			some := make([]idtype.Sno, 3)
			if n, err := view.Fill(t.Context(), some); n != 3 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
			for i, id := range append([]idtype.Sno{must(g.Next()), must(g.Next()).WithMeta('b'), must(view.Next())}, some...) {
				if want := "abcccc"[i]; id.Meta() != want || int(id.Partition().Uint16()) != g.Keeper().Number() || ids[id.WithMeta(0)] {
					t.Errorf("ID %d: want a new one with metabyte %c and partition %d, got %v", i, want, g.Keeper().Number(), id)
				}
				ids[id.WithMeta(0)] = true
			}
			store.set(only("Renew", down))
			<-g.Keeper().Lost()
			store.set(nil)
		}
		must(g.Next())
		closes(t, g)
		if _, err := g.Next(); !errors.Is(err, nodelease.ErrClosed) {
			t.Errorf("want %v, got %v", nodelease.ErrClosed, err)
		}
		if err := view.(interface{ Ready() error }).Ready(); !errors.Is(err, nodelease.ErrClosed) {
			t.Errorf("the view: want %v, got %v", nodelease.ErrClosed, err)
		}
	})
}

// The constructors reject a config that conflicts with the claim, before they claim.
func TestConfigOfClaim(t *testing.T) {
	ctx, store, o := t.Context(), new(faulty), nodelease.Options{}
	clock, lease := idtype.Options{Clock: time.Now}, idtype.Options{Lease: new(nodelease.Keeper)}
	errs := map[string]error{}
	for _, c := range []idtype.SnowflakeConfig{{Options: clock}, {Options: lease}, {Datacenter: 1}, {Worker: 1}} {
		_, errs[fmt.Sprintf("%+v", c)] = nodelease.NewSnowflakeGenerator(ctx, store, c, o)
	}
	for _, c := range []idtype.SnowflakeSIConfig{{Options: clock}, {Options: lease}, {Machine: 1}} {
		c.Layout.BaseClock = base
		_, errs[fmt.Sprintf("%+v", c)] = nodelease.NewSnowflakeSIGenerator(ctx, store, c, o)
	}
	for _, c := range []idtype.Spread64Config{{Options: clock}, {Options: lease}, {Generator: 1}} {
		_, errs[fmt.Sprintf("%+v", c)] = nodelease.NewSpread64Generator(ctx, store, c, o)
	}
	for c, err := range errs {
		if !errors.Is(err, idtype.ErrConfig) || !strings.HasPrefix(err.Error(), "nodelease: S") {
			t.Errorf("%s: want %v, got %v", c, idtype.ErrConfig, err)
		}
	}
	if len(errs) != 10 || len(store.calls) > 0 {
		t.Errorf("want 10 errors without a claim, got %d after %d calls", len(errs), len(store.calls))
	}
}

// NewSnoGenerator rejects a config that conflicts with the claim.
func TestSnoGeneratorConfig(t *testing.T) {
	partition := idtype.SnoPartitionFrom(7)
	for _, test := range []struct {
		c    idtype.SnoConfig
		want error
	}{
		{idtype.SnoConfig{Options: idtype.Options{Clock: time.Now}}, idtype.ErrConfig},
		{idtype.SnoConfig{Options: idtype.Options{Lease: new(nodelease.Keeper)}}, idtype.ErrConfig},
		{idtype.SnoConfig{Snapshot: new(idtype.SnoSnapshot)}, idtype.ErrConfig},
		{idtype.SnoConfig{Ranges: 8}, idtype.ErrConfig},
		{idtype.SnoConfig{Partition: &partition}, idtype.ErrConfig},
		{idtype.SnoConfig{Partition: &partition, Ranges: 8, SequenceMin: 4}, idtype.ErrConfig},
		{idtype.SnoConfig{Partition: &partition, Ranges: 8, SequenceMax: 8191}, idtype.ErrConfig},
		{idtype.SnoConfig{Partition: &partition, Ranges: -1}, idtype.ErrRange},
		{idtype.SnoConfig{Partition: &partition, Ranges: 16385}, idtype.ErrRange},
	} {
		store := new(faulty)
		if g, err := nodelease.NewSnoGenerator(t.Context(), store, test.c, nodelease.Options{}); !errors.Is(err, test.want) || len(store.calls) > 0 {
			t.Errorf("%+v: want %v and no claim, got %v, %v after %d calls", test.c, test.want, g, err, len(store.calls))
		}
	}
}
