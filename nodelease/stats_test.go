package nodelease_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
	"github.com/sortkey/sortkey/nodelease/ready"
)

// The counters of a Generator continue when it changes its number.
func TestGeneratorStats(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(3), nodelease.Options{})
		store.set(only("Renew", late(0, 200*time.Millisecond)))
		ids := make([]idtype.Snowflake, 10)
		var want nodelease.TotalStats
		for i := range 12 {
			if n, err := g.Fill(t.Context(), ids); n != 10 || err != nil {
				t.Fatal(n, err)
			}
			want.Minted += 10
			time.Sleep(25 * time.Second)
			claim := g.Keeper().Stats()
			if claim.RenewalTime != time.Duration(claim.Renewals)*200*time.Millisecond || claim.Renewals < 2 {
				t.Errorf("want renewals of 200 ms, got %+v", claim)
			}
			store.set(down) // also for the next claim
			<-g.Keeper().Lost()
			lost := g.Stats()
			claim = g.Keeper().Stats()
			want.Losses++
			want.Renewals += claim.Renewals
			want.Failures += claim.Failures
			want.RenewalTime += claim.RenewalTime
			want.Claim = claim
			if lost != want || claim.Failures == 0 {
				t.Errorf("loss %d: want %+v, got %+v", i+1, want, lost)
			}
			store.set(only("Renew", late(0, 200*time.Millisecond)))
			must(g.Next())
			want.Minted++
			want.Reacquisitions++
			want.Claim = g.Keeper().Stats()
			if got := g.Stats(); got != want {
				t.Errorf("reacquisition %d: want %+v, got %+v", i+1, want, got)
			}
		}
		if r := g.Remaining(); r != g.Current().(*idtype.SnowflakeGenerator).Remaining() || r < time.Hour {
			t.Errorf("got %v until the end of the layout", r)
		}
		closes(t, g)
		want.Claim = g.Keeper().Stats()
		if got := g.Stats(); got != want {
			t.Errorf("after Close: want %+v, got %+v", want, got)
		}
	})
}

// A counting generator reports the counters that the test sets.
type counting struct {
	idtype.Generator[idtype.Snowflake]
	stats *idtype.GeneratorStats
}

func (c counting) Stats() idtype.GeneratorStats { return *c.stats }

// Each counter of the wrapped generators is summed, also if it changes after the loss.
func TestGeneratorStatsOfEarlierClaims(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		number := func(v reflect.Value) uint64 { return v.Convert(reflect.TypeFor[uint64]()).Uint() } // of a counter or a duration
		store := new(faulty)
		var all []*idtype.GeneratorStats
		g, err := nodelease.NewGenerator(t.Context(), store, pool(3), nodelease.Options{},
			func(l idtype.Lease) (counting, error) {
				plain, err := build(l)
				all = append(all, new(idtype.GeneratorStats))
				return counting{plain, all[len(all)-1]}, err
			})
		if err != nil {
			t.Fatal(err)
		}
		const losses = 20
		for range losses {
			store.set(only("Renew", down))
			old := g.Keeper()
			<-old.Lost()
			store.set(nil)
			must(g.Next())
			for _, stats := range all[len(all)-2:] {
				counters := reflect.ValueOf(stats).Elem()
				for i := range counters.NumField() {
					field := counters.Field(i)
					field.Set(reflect.ValueOf(number(field) + 1).Convert(field.Type()))
				}
			}
		}
		got := reflect.ValueOf(g.Stats().GeneratorStats)
		for i := range got.NumField() {
			if n := number(got.Field(i)); n != 2*losses {
				t.Errorf("%s: want %d, got %d", got.Type().Field(i).Name, 2*losses, n)
			}
		}
		closes(t, g)
	})
}

// A wrapped generator may lack the methods Stats and Remaining.
func TestGeneratorStatsMissing(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g, err := nodelease.NewGenerator(t.Context(), store, pool(1), nodelease.Options{},
			func(l idtype.Lease) (struct {
				idtype.Generator[idtype.Snowflake]
			}, error) {
				plain, err := build(l)
				return struct {
					idtype.Generator[idtype.Snowflake]
				}{plain}, err
			})
		if err != nil {
			t.Fatal(err)
		}
		must(g.Next())
		time.Sleep(time.Minute)
		stats := g.Stats()
		if stats.GeneratorStats != (idtype.GeneratorStats{}) || stats.Renewals < 5 || g.Remaining() != 0 {
			t.Errorf("want renewals alone, got %+v, %v", stats, g.Remaining())
		}
		store.set(down)
		<-g.Keeper().Lost()
		if got := g.Stats(); got.Losses != 1 || got.Reacquisitions != 0 {
			t.Errorf("want a loss, got %+v", got)
		}
		store.set(nil)
		time.Sleep(time.Minute) // until the number is released
		closes(t, g)
	})
}

// No counter goes back, also while the number changes.
func TestGeneratorStatsConcurrently(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		g := generator(t, store, pool(3), nodelease.Options{TTL: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = g.Next()
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				var last nodelease.TotalStats
				for ctx.Err() == nil {
					s := g.Stats()
					if s.Minted < last.Minted || s.Waits < last.Waits || s.Losses < last.Losses || s.Reacquisitions < last.Reacquisitions || s.Renewals < last.Renewals || s.Failures < last.Failures ||
						s.RenewalTime < last.RenewalTime || s.Losses-s.Reacquisitions > 1 {
						t.Errorf("%+v after %+v", s, last)
					}
					last = s
					_ = g.Remaining()
					time.Sleep(time.Millisecond)
				}
				if last.Losses < 5 {
					t.Errorf("want more losses, got %+v", last)
				}
			})
		}
		for ctx.Err() == nil {
			store.set(only("Renew", down))
			time.Sleep(3 * time.Second)
			store.set(nil)
			time.Sleep(3 * time.Second)
		}
		wg.Wait()
		closes(t, g)
	})
}

// The methods for monitoring also work through idtype.MapGenerator.
func TestMappedGenerator(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		clock := new(wall)
		g, err := nodelease.NewGenerator(t.Context(), new(leasetest.Store), pool(1), nodelease.Options{Clock: clock.now},
			func(l idtype.Lease) (idtype.Generator[string], error) {
				return idtype.MapGenerator[idtype.Snowflake](snowflakes(t, l, clock.now), idtype.Snowflake.String), nil
			})
		if err != nil {
			t.Fatal(err)
		}
		must(g.Next())
		if s := g.Stats(); s.Minted != 1 || g.Remaining() <= 0 {
			t.Errorf("want the counters of the wrapped generator, got %+v and %v left", s, g.Remaining())
		}
		orders, ok := idtype.MapGenerator[string](g, func(id string) string { return "ord_" + id }).(ready.Checker)
		if !ok {
			t.Fatal("a mapped generator has no method Ready")
		}
		if err := orders.Ready(); err != nil {
			t.Error(err)
		}
		clock.step(-time.Hour)
		for _, err := range []error{g.Ready(), orders.Ready()} {
			if !errors.Is(err, idtype.ErrClockBackwards) {
				t.Errorf("want %v, got %v", idtype.ErrClockBackwards, err)
			}
		}
		clock.step(time.Hour)
		closes(t, g)
	})
}
