package nodelease_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The pool of a layout has one number per value of its node fields. Its name and
// Layout distinguish it from other pools.
func TestPools(t *testing.T) {
	partition := idtype.SnoPartitionFrom(0xab01)
	for _, test := range []struct {
		pool   nodelease.Pool
		name   string
		size   int
		layout string
	}{
		{nodelease.ForSnowflake(idtype.SnowflakeLayout{}), "snowflake", 1024, "snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12"},
		{nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout()), "snowflake", 1024, "snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12"},
		{nodelease.ForSnowflake(idtype.SnowflakeLayout{Epoch: base, DatacenterBits: 0, WorkerBits: 3, SequenceBits: 19}), "snowflake", 8, "snowflake: epoch 2026-01-01T00:00:00.000Z; bits: datacenter 0, worker 3, sequence 19"},
		{nodelease.ForSnowflakeSI(idtype.SnowflakeSILayout{BaseClock: base}), "snowflake-si", 32, "snowflake_si: base clock 2026-01-01T00:00:00.000Z; bits: machine 5, index 8"},
		{nodelease.ForSnowflakeSI(idtype.SnowflakeSILayout{BaseClock: base, MachineBits: 13}), "snowflake-si", 8192, "snowflake_si: base clock 2026-01-01T00:00:00.000Z; bits: machine 13, index 0"},
		{nodelease.ForSpread64(0), "spread64-0", 64, "spread64: cluster 0"},
		{nodelease.ForSpread64(15), "spread64-15", 64, "spread64: cluster 15"},
		{nodelease.ForSno(), "sno", 65536, "sno: partitions"},
		{nodelease.ForSnoRanges(partition, 1), "sno-ab01", 1, "sno: partition 43777 in 1 ranges of its sequence"},
		{nodelease.ForSnoRanges(partition, 16384), "sno-ab01", 16384, "sno: partition 43777 in 16384 ranges of its sequence"},
	} {
		if p := test.pool; p.Name != test.name || p.Size != test.size || p.Layout != test.layout || p.Validate() != nil {
			t.Errorf("expected %q of %d for %q, got %+v, %v", test.name, test.size, test.layout, p, p.Validate())
		}
	}
	if c, ok := nodelease.ForSpread64(7).Cluster(); c != 7 || !ok {
		t.Errorf("cluster: expected 7, got %d, %t", c, ok)
	}
	if c, ok := nodelease.ForSno().Cluster(); ok {
		t.Errorf("cluster: expected none, got %d", c)
	}
}

// The error for an invalid pool names the invalid value, and the store isn't called.
func TestInvalidPools(t *testing.T) {
	valid := nodelease.Pool{Name: "a-z_09", Size: 4, Layout: "any"}
	with := func(change func(*nodelease.Pool)) nodelease.Pool {
		p := valid
		change(&p)
		return p
	}
	for _, p := range []nodelease.Pool{
		valid,
		with(func(p *nodelease.Pool) { p.Name = strings.Repeat("a", 63) }),
		with(func(p *nodelease.Pool) { p.Size = 1 }),
		with(func(p *nodelease.Pool) { p.Size = 65536 }),
		with(func(p *nodelease.Pool) { p.Reserved = []int{0, 3} }),
		with(func(p *nodelease.Pool) { p.Layout = "" }),
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("expected %+v to be valid, got %v", p, err)
		}
	}
	for _, test := range []struct {
		pool nodelease.Pool
		says string
		is   error
	}{
		{with(func(p *nodelease.Pool) { p.Name = "" }), `got ""`, idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Name = strings.Repeat("a", 64) }), "up to 63", idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Name = "0a" }), `got "0a"`, idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Name = "A" }), `got "A"`, idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Name = "a/b" }), `got "a/b"`, idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Name = "a\n" }), `got "a\n"`, idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Size = 0 }), "1 to 65536, got 0", idtype.ErrNode},
		{with(func(p *nodelease.Pool) { p.Size = 65537 }), "got 65537", idtype.ErrNode},
		{with(func(p *nodelease.Pool) { p.Layout = "a\x00" }), "printable UTF-8", idtype.ErrConfig},
		{with(func(p *nodelease.Pool) { p.Reserved = []int{4} }), "number 4 is out of range; want 0 to 3", idtype.ErrNode},
		{with(func(p *nodelease.Pool) { p.Reserved = []int{-1} }), "number -1 is out of range; want 0 to 3", idtype.ErrNode},
		{nodelease.ForSnowflake(idtype.SnowflakeLayout{WorkerBits: 70}), "", idtype.ErrRange},
		{nodelease.ForSnowflakeSI(idtype.SnowflakeSILayout{}), "", idtype.ErrConfig},
		{nodelease.ForSpread64(16), "16", idtype.ErrNode},
		{nodelease.ForSpread64(-1), "-1", idtype.ErrNode},
		{nodelease.ForSnoRanges(idtype.SnoPartition{}, 0), "1 to 16384 ranges of the sequence, got 0", idtype.ErrRange},
		{nodelease.ForSnoRanges(idtype.SnoPartition{}, 16385), "got 16385", idtype.ErrRange},
	} {
		store := new(faulty)
		k, err := nodelease.Acquire(t.Context(), store, test.pool, nodelease.Options{})
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "nodelease: ") {
			t.Errorf("%+v: expected an error with %q, got %v, %v", test.pool, test.says, k, err)
		}
		if len(store.calls) > 0 {
			t.Errorf("%+v: the store was called", test.pool)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		o    nodelease.Options
		says string
	}{
		{nodelease.Options{TTL: time.Second - 1}, "Options.TTL: 999.999999ms is out of range; want 1s to 1h0m0s"},
		{nodelease.Options{TTL: time.Hour + 1}, "1h0m0.000000001s is out of range"},
		{nodelease.Options{TTL: -time.Second}, "-1s is out of range"},
		{nodelease.Options{Holder: strings.Repeat("é", 100) + "x"}, "at most 200 bytes of printable UTF-8, got 201"},
		{nodelease.Options{MaxSkew: time.Second - 1}, "Options.MaxSkew: 999.999999ms is too short"},
		{nodelease.Options{Holder: "a\nb"}, `"a\nb"`},
		{nodelease.Options{Holder: "a\xff"}, `"a\xff"`},
	} {
		store := new(faulty)
		if k, err := nodelease.Acquire(t.Context(), store, pool(1), test.o); !errors.Is(err, idtype.ErrConfig) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("expected an error with %q, got %v, %v", test.says, k, err)
		}
		if len(store.calls) > 0 {
			t.Errorf("%q: the store was called", test.says)
		}
	}
}

// A nil store is an error, also in a generator.
func TestNilStore(t *testing.T) {
	for _, store := range []nodelease.Store{nil, (*faulty)(nil)} {
		_, err1 := nodelease.Acquire(t.Context(), store, pool(1), nodelease.Options{})
		_, err2 := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{})
		for _, err := range []error{err1, err2} {
			if !errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), "the Store is nil; create one") {
				t.Errorf("%T: %v", store, err)
			}
		}
	}
}

// The generator and the renewals of its claim read the clock one at a time.
func TestClockOneAtATime(t *testing.T) {
	var reading, both atomic.Int32
	clock := func() time.Time {
		if reading.Add(1) > 1 {
			both.Add(1)
		}
		time.Sleep(time.Millisecond)
		reading.Add(-1)
		return time.Now()
	}
	store := new(leasetest.Store)
	o := nodelease.Options{Clock: clock, TTL: time.Second, Wait: -1}
	g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for g.Keeper().Stats().Renewals < 3 && t.Context().Err() == nil {
				if _, err := g.Next(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := both.Load(); n > 0 {
		t.Errorf("%d readings of the clock during another one", n)
	}
}

// The request contains the options or their defaults.
func TestRequest(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		clock := new(wall)
		clock.step(time.Minute)
		store := new(faulty)
		now := time.Now()
		closes(t, acquire(t, store, pool(9), nodelease.Options{}))
		closes(t, acquire(t, store, pool(9), nodelease.Options{TTL: time.Second, Holder: "worker é", Clock: clock.now, MaxSkew: -1}))
		closes(t, acquire(t, store, pool(9), nodelease.Options{TTL: time.Hour, Holder: strings.Repeat("é", 100), MaxSkew: time.Second}))
		claims := store.noted("Claim")
		for i, want := range []nodelease.Request{
			{Holder: ", process ", TTL: 30 * time.Second, Now: now.UnixMilli(), Until: now.UnixMilli() + 27_000, MaxSkew: 24 * time.Hour},
			{Holder: "worker é ", TTL: time.Second, Now: now.UnixMilli() + 60_000, Until: now.UnixMilli() + 60_900},
			{Holder: strings.Repeat("é", 100) + " ", TTL: time.Hour, Now: now.UnixMilli(), Until: now.UnixMilli() + 54*60_000, MaxSkew: time.Second},
		} {
			got := claims[i].r
			if !strings.Contains(got.Holder, want.Holder) {
				t.Errorf("expected a holder with %q, got %q", want.Holder, got.Holder)
			}
			if got.Holder = want.Holder; got != want {
				t.Errorf("expected %+v, got %+v", want, got)
			}
		}
		// Two claims with the same Options.Holder have different holders.
		for range 2 {
			closes(t, acquire(t, store, pool(9), nodelease.Options{Holder: "same"}))
		}
		claims = store.noted("Claim")
		if a, b := claims[3].r.Holder, claims[4].r.Holder; a == b || len(a) > 300 {
			t.Errorf("expected unique holders, got %q and %q", a, b)
		}
	})
}

func TestLimitTTL(t *testing.T) {
	r := nodelease.Request{Holder: "a", TTL: 30 * time.Second, Now: 1000, Until: 28_000}
	for _, ttl := range []time.Duration{30 * time.Second, time.Hour} {
		if got := r.LimitTTL(ttl); got != r {
			t.Errorf("%v: expected %+v, got %+v", ttl, r, got)
		}
	}
	want := nodelease.Request{Holder: "a", TTL: 10 * time.Second, Now: 1000, Until: 10_000}
	if got := r.LimitTTL(10 * time.Second); got != want {
		t.Errorf("expected %+v, got %+v", want, got)
	}
}
