package nodelease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// N holders get N numbers. The next holder waits, and gets a number as soon as one is
// released.
func TestAcquireWaits(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		var held []*nodelease.Keeper
		numbers := map[int]bool{}
		for range 3 {
			k := acquire(t, store, pool(3), nodelease.Options{})
			held, numbers[k.Number()] = append(held, k), true
			must(snowflakes(t, k, nil).Next())
		}
		if len(numbers) != 3 {
			t.Errorf("expected three numbers, got %v", numbers)
		}
		begun := time.Now()
		go func() {
			time.Sleep(20 * time.Second)
			closes(t, held[1])
		}()
		k := acquire(t, store, pool(3), nodelease.Options{})
		if waited := time.Since(begun); waited < 20*time.Second || waited > 21*time.Second || k.Number() != held[1].Number() {
			t.Errorf("expected number %d after 20 s, got %d after %v", held[1].Number(), k.Number(), waited)
		}
		// The interval doubles up to 500 ms, with jitter.
		looks := store.noted("Claim")[3:]
		for i, c := range looks[1:] {
			want := min(50*time.Millisecond<<i, 500*time.Millisecond)
			if i > 10 {
				want = 500 * time.Millisecond
			}
			if got := c.at.Sub(looks[i].at); got < want*9/10 || got > want*11/10 {
				t.Errorf("attempt %d: expected it after %v, give or take a tenth, got %v", i+2, want, got)
			}
		}
		for _, k := range append(held, k) {
			closes(t, k)
		}
	})
}

// A wait is bounded, and its error reports the state of the pool.
func TestAcquireBusy(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		p := pool(3)
		p.Reserved = []int{1}
		first := acquire(t, store, p, nodelease.Options{})
		second := acquire(t, store, p, nodelease.Options{})
		for _, test := range []struct {
			wait, ttl, waits time.Duration
			says             string
		}{
			{0, time.Second, 2 * time.Second, "within 2s"},
			{5 * time.Second, 0, 5 * time.Second, "within 5s"},
			{-1, 0, 0, "within 0s"},
		} {
			begun, log := time.Now(), new(strings.Builder)
			k, err := nodelease.Acquire(t.Context(), store, p, nodelease.Options{TTL: test.ttl, Wait: test.wait, Logger: slog.New(slog.NewTextHandler(log, nil))})
			if waited := time.Since(begun); waited != test.waits {
				t.Errorf("expected a wait of %v, got %v", test.waits, waited)
			}
			if logged := strings.Count(log.String(), "waiting for a node number"); logged != min(int(test.waits), 1) {
				t.Errorf("wait of %v: expected one message, or none without a wait, got %q", test.waits, log)
			}
			var busy *nodelease.BusyError
			if !errors.As(err, &busy) || !errors.Is(err, nodelease.ErrPoolExhausted) || errors.Is(err, nodelease.ErrClockBehind) {
				t.Fatalf("expected %v, got %v, %v", nodelease.ErrPoolExhausted, k, err)
			}
			if busy.Held != 2 || busy.Reserved != 1 || busy.RetryAfter <= 0 || busy.RetryAfter > 30*time.Second {
				t.Errorf("got %+v", busy)
			}
			for _, says := range []string{`pool "snowflake"`, "2 of 3 are held (the first expires in ", "1 reserved", "1 in Pool.Reserved", test.says} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("expected %q in %q", says, err)
				}
			}
		}

		// The deadline of the caller's context counts too, and the error keeps both causes.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		k, err := nodelease.Acquire(ctx, store, p, nodelease.Options{})
		if waited := time.Since(begun); waited != 3*time.Second {
			t.Errorf("expected a wait of 3 s, got %v", waited)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nodelease.ErrPoolExhausted) || !strings.Contains(err.Error(), `pool "snowflake"`) {
			t.Errorf("expected %v and %v, got %v, %v", context.DeadlineExceeded, nodelease.ErrPoolExhausted, k, err)
		}
		closes(t, first)
		closes(t, second)
	})
}

// A clock that is behind is reported even if other numbers are held, since they may
// stay held.
func TestBusyError(t *testing.T) {
	for _, test := range []struct {
		err nodelease.BusyError
		is  error
	}{
		{nodelease.BusyError{Held: 2, Reserved: 2}, nodelease.ErrPoolExhausted},
		{nodelease.BusyError{Held: 3, RetryAfter: time.Second}, nodelease.ErrPoolExhausted},
		{nodelease.BusyError{Held: 3, Ahead: 1}, nodelease.ErrClockBehind},
	} {
		if err := error(&test.err); !errors.Is(err, test.is) || !strings.HasSuffix(err.Error(), ": "+test.is.Error()) {
			t.Errorf("expected %v, got %v", test.is, err)
		}
	}
}

func TestTimeToPass(t *testing.T) {
	for _, test := range []struct {
		now, mark int64
		want      time.Duration
	}{
		{1000, 999, 0}, {1000, 1000, time.Millisecond}, {1000, 61_000, time.Minute + time.Millisecond},
		{-5, 0, 6 * time.Millisecond}, {1000, 1 << 61, math.MaxInt64}, {-1 << 62, math.MaxInt64, math.MaxInt64},
	} {
		if got := (nodelease.Request{Now: test.now}).TimeToPass(test.mark); got != test.want {
			t.Errorf("%d at %d: want %v, got %v", test.mark, test.now, test.want, got)
		}
	}
}

// The error distinguishes a clock behind the high-water marks from an exhausted pool,
// and includes the clock's time.
func TestAcquireClockBehind(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		ahead := new(wall)
		ahead.step(time.Hour)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: ahead.now})
		g := snowflakes(t, k, ahead.now)
		mark := when(must(g.Next()))
		closes(t, k)

		// The clock can't catch up within Wait, so Acquire fails at once.
		begun := time.Now()
		_, err := nodelease.Acquire(t.Context(), store, pool(1), nodelease.Options{Wait: 4 * time.Second})
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("expected no wait, got %v", waited)
		}
		var busy *nodelease.BusyError
		if !errors.As(err, &busy) || !errors.Is(err, nodelease.ErrClockBehind) || busy.RetryAfter != time.Duration(mark-time.Now().UnixMilli()+1)*time.Millisecond || busy.Ahead != 1 {
			t.Fatalf("expected a clock behind %d, got %v", mark, err)
		}
		for _, says := range []string{`pool "snowflake"`, "advance by 1h0m0.001s", "local clock 2026-11-21T10:11:12.000Z"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("expected %q in %q", says, err)
			}
		}
		// The number is usable again once the clock has passed its high-water mark.
		time.Sleep(time.Hour - 5*time.Second)
		begun = time.Now()
		k = acquire(t, store, pool(1), nodelease.Options{})
		if at := time.Now().UnixMilli(); at <= mark || at > mark+1000 || k.After() != mark {
			t.Errorf("expected a claim after %d, got one after %d at %d, after %v", mark, k.After(), at, time.Since(begun))
		}
		closes(t, k)
	})
}

// If the store fails, the same holder retries at growing intervals until Wait is over.
func TestAcquireOutlastsOutages(t *testing.T) {
	for name, outage := range map[string]fault{"down": down, "hung": hung, "answers lost": lossy} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				store.set(outage)
				begun := time.Now()
				time.AfterFunc(2*time.Second, func() { store.set(nil) })
				g := generator(t, store, pool(1), nodelease.Options{Wait: time.Minute, TTL: 2 * time.Second})
				if took := time.Since(begun); took < 2*time.Second || took > 4*time.Second {
					t.Errorf("want a number soon after the store is back, got one after %v", took)
				}
				must(g.Next())
				closes(t, g)
				claims := store.noted("Claim")
				if n := len(claims); n < 2 || n > 8 {
					t.Errorf("want a claim after 50 ms, 100 ms and so on, got %d", n)
				}
				for _, c := range claims {
					if c.r.Holder != claims[0].r.Holder {
						t.Errorf("want the same holder in each call, got %q and %q", claims[0].r.Holder, c.r.Holder)
					}
				}
			})
		})
	}
}

// Acquire fails with the last cause when Wait or its context ends, and at once if
// waiting doesn't help.
func TestAcquireGivesUp(t *testing.T) {
	misconfigured := fmt.Errorf("no schema: %w", nodelease.ErrMisconfigured)
	foreign := fmt.Errorf("pool of 5: %w", nodelease.ErrPoolMismatch)
	downThenHung := func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
		if c.at.Nanosecond() == 0 { // the first
			return down(ctx, c, do)
		}
		return hung(ctx, c, do)
	}
	fails := func(err error) fault {
		return func(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			return nodelease.Claim{}, err
		}
	}
	invalid := func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
		c, err := do()
		c.Number = -1
		return c, err
	}
	for _, test := range []struct {
		name           string
		fault          fault
		wait, context  time.Duration
		atLeast, soon  time.Duration
		are            []error
		says           string
		claims, orMore int
	}{
		{"down", down, 10 * time.Second, time.Hour, 10 * time.Second, 10 * time.Second, []error{errDown}, "within 10s: store is down", 10, 13},
		{"down by default", down, 0, time.Hour, time.Minute, time.Minute, []error{errDown}, "within 1m0s: store is down", 30, 40},
		{"not waiting", down, -1, time.Hour, 0, 0, []error{errDown}, "within 0s: store is down", 1, 1},
		{"down until the context ends", down, time.Minute, 3 * time.Second, 3 * time.Second, 3 * time.Second, []error{errDown, context.DeadlineExceeded}, "after 3s: context deadline exceeded: store is down", 6, 8},
		{"hung after it was down", downThenHung, 20 * time.Second, time.Hour, 20 * time.Second, 35 * time.Second, []error{errDown, context.DeadlineExceeded}, "context deadline exceeded; earlier error: store is down", 3, 3},
		{"hung until the context ends", downThenHung, time.Minute, 3 * time.Second, 3 * time.Second, 3 * time.Second, []error{errDown, context.DeadlineExceeded}, "after 3s: context deadline exceeded; earlier error: store is down", 2, 2},
		{"misconfigured", fails(misconfigured), time.Minute, time.Hour, 0, 0, []error{nodelease.ErrMisconfigured}, "no schema", 1, 1},
		{"layout mismatch", fails(foreign), time.Minute, time.Hour, 0, 0, []error{nodelease.ErrPoolMismatch}, "pool of 5", 1, 1},
		{"invalid answer", invalid, time.Minute, time.Hour, 0, 0, nil, "number -1", 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				store.set(only("Claim", test.fault))
				ctx, cancel := context.WithTimeout(t.Context(), test.context)
				defer cancel()
				begun := time.Now()
				k, err := nodelease.Acquire(ctx, store, pool(1), nodelease.Options{Wait: test.wait})
				if took := time.Since(begun); err == nil || took < test.atLeast || took > test.soon {
					t.Fatalf("want an error after %v to %v, got %v, %v after %v", test.atLeast, test.soon, k, err, took)
				}
				for _, is := range test.are {
					if !errors.Is(err, is) {
						t.Errorf("want %v, got %v", is, err)
					}
				}
				if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), `pool "snowflake"`) {
					t.Errorf("want %q in %q", test.says, err)
				}
				if n := len(store.noted("Claim")); n < test.claims || n > test.orMore {
					t.Errorf("want %d to %d claims, got %d", test.claims, test.orMore, n)
				}
			})
		})
	}
}

// The context bounds the call, not the claim.
func TestAcquireContext(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		ctx, cancel := context.WithCancel(t.Context())
		k, err := nodelease.Acquire(ctx, store, pool(1), nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if err := k.Err(); err != nil {
			t.Errorf("expected the claim to outlast the call's context, got %v", err)
		}
		closes(t, k)
		if k, err := nodelease.Acquire(ctx, store, pool(1), nodelease.Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("expected %v, got %v, %v", context.Canceled, k, err)
		}
		closes(t, acquire(t, store, pool(1), nodelease.Options{}))
	})
}

// Acquire doesn't wait for a store that ignores its context.
func TestAcquireLate(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		for _, test := range []struct {
			name   string
			within time.Duration
			is     error
		}{
			{"the caller's deadline", 1100 * time.Millisecond, context.DeadlineExceeded},
			{"half a TTL", 15 * time.Second, context.DeadlineExceeded},
		} {
			store := new(faulty)
			store.set(only("Claim", late(20*time.Second, 0)))
			ctx, cancel := context.WithCancel(t.Context())
			if test.within < 15*time.Second {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			lax := &heedless{store}
			begun := time.Now()
			k, err := nodelease.Acquire(ctx, lax, pool(1), nodelease.Options{Wait: time.Second})
			if waited := time.Since(begun); !errors.Is(err, test.is) || waited != test.within {
				t.Errorf("%s: expected %v after %v, got %v, %v after %v", test.name, test.is, test.within, k, err, waited)
			}
			cancel()
			// A number that the store grants later is released.
			time.Sleep(time.Until(begun.Add(20 * time.Second)))
			synctest.Wait()
			store.set(nil)
			closes(t, acquire(t, store, pool(1), nodelease.Options{Wait: -1}))
			if calls := store.noted("Release"); len(calls) != 2 {
				t.Errorf("%s: want two releases, of the late claim and of the last one, got %+v", test.name, calls)
			}
		}
	})
}

// A late answer to an earlier attempt is for the claim that a later attempt got, and doesn't
// release it. If the Keeper has renewed its claim meanwhile, the store grants another number, which
// is released.
func TestAcquireLateAttempt(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		for _, before := range []time.Duration{0, 30 * time.Second} {
			store := new(faulty)
			store.set(func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				if c.what == "Claim" && len(store.noted("Claim")) == 1 {
					return late(before, 40*time.Second-before)(ctx, c, do)
				}
				return do()
			})
			k := acquire(t, &heedless{store}, pool(2), nodelease.Options{})
			time.Sleep(30 * time.Second) // the answer has come, and no claim has expired
			if err := k.Err(); err != nil {
				t.Errorf("executed after %v: want the claim to last, got %v", before, err)
			}
			other := acquire(t, store, pool(2), nodelease.Options{Wait: -1})
			if k.Number() == other.Number() {
				t.Errorf("executed after %v: want two numbers, got %d twice", before, k.Number())
			}
			closes(t, other)
			closes(t, k)
		}
	})
}

// A heedless store ignores its context.
type heedless struct{ nodelease.Store }

func (h *heedless) Claim(_ context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	return h.Store.Claim(context.Background(), p, r)
}

// A store can grant less than Options.TTL, and answer when the claim is no longer trusted. The
// next attempt gets the claim again, and the last attempt releases it.
func TestAcquireUntrusted(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := &hesitant{delay: 900 * time.Millisecond}
		k := acquire(t, store, pool(1), nodelease.Options{TTL: 3 * time.Second})
		if left := k.Stats().Left; store.calls != 2 || left < 899*time.Millisecond || k.Err() != nil {
			t.Errorf("want a trusted claim from the second of two calls, got %d calls, %v left, %v", store.calls, left, k.Err())
		}
		must(snowflakes(t, k, nil).Next())
		closes(t, k)
		// Just in time.
		store = &hesitant{delay: 899 * time.Millisecond}
		k = acquire(t, store, pool(1), nodelease.Options{TTL: 3 * time.Second})
		if store.calls != 1 {
			t.Errorf("want one call, got %d", store.calls)
		}
		closes(t, k)
		store = &hesitant{delay: 900 * time.Millisecond}
		if _, err := nodelease.Acquire(t.Context(), store, pool(1), nodelease.Options{TTL: 3 * time.Second, Wait: -1}); err == nil || !strings.Contains(err.Error(), "no longer trusted") {
			t.Errorf("want an error for the only attempt, got %v", err)
		}
		synctest.Wait()
		closes(t, acquire(t, store, pool(1), nodelease.Options{TTL: 3 * time.Second, Wait: -1}))
	})
}

// A hesitant store grants claims for a second, and delays its first answer.
type hesitant struct {
	leasetest.Store
	delay time.Duration
	calls int
}

func (h *hesitant) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	c, err := h.Store.Claim(ctx, p, r.LimitTTL(time.Second))
	if h.calls++; h.calls == 1 {
		time.Sleep(h.delay)
	}
	return c, err
}

// Acquire rejects an invalid grant.
func TestAcquireInvalidGrant(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		p := pool(4)
		p.Reserved = []int{2}
		for _, test := range []struct {
			change func(*nodelease.Claim)
			says   string
		}{
			{func(c *nodelease.Claim) { c.Number = -1 }, "number -1; want 0 to 3"},
			{func(c *nodelease.Claim) { c.Number = 4 }, "number 4; want 0 to 3"},
			{func(c *nodelease.Claim) { c.Number = 2 }, "number 2; want 0 to 3, not in Pool.Reserved"},
			{func(c *nodelease.Claim) { c.After = time.Now().UnixMilli() }, "after 2026-11-21T10:11:12.000Z"},
			{func(c *nodelease.Claim) { c.After = math.MaxInt64 / 2 }, "after 1461"},
			{func(c *nodelease.Claim) { c.Until = time.Now().UnixMilli() }, "until 2026-11-21T10:11:12.000Z"},
			{func(c *nodelease.Claim) { c.Holder = "" }, `to ""`},
			{func(c *nodelease.Claim) { c.TTL = time.Second - 1 }, "for 999.999999ms"},
			{func(c *nodelease.Claim) { c.TTL = -1 }, "for -1ns"},
		} {
			store := new(faulty)
			store.set(only("Claim", func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				c, err := do()
				test.change(&c)
				return c, err
			}))
			if k, err := nodelease.Acquire(t.Context(), store, p, nodelease.Options{Wait: -1}); err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), `pool "snowflake"`) {
				t.Errorf("expected an error with %q, got %v, %v", test.says, k, err)
			}
		}
	})
}

// Acquire waits until a wrong clock is corrected. While the clock is years ahead, no
// high-water mark is written.
func TestAcquireSkewed(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		const years = 20 * 365 * 24 * time.Hour
		store := new(faulty)
		clock := new(wall)
		clock.step(years)
		_, err := nodelease.Acquire(t.Context(), store, pool(1), nodelease.Options{Clock: clock.now, Wait: 5 * time.Second})
		if !errors.Is(err, nodelease.ErrClockSkew) || !strings.Contains(err.Error(), "within 5s") || !strings.Contains(err.Error(), "175200h0m0s ahead of the store's") {
			t.Errorf("want %v, got %v", nodelease.ErrClockSkew, err)
		}
		begun := time.Now()
		go func() {
			time.Sleep(20 * time.Second)
			clock.step(-years)
		}()
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		if waited := time.Since(begun); waited < 20*time.Second || waited > 23*time.Second || k.After() != 0 {
			t.Errorf("want an unused number soon after 20 s, got one after %d and %v", k.After(), waited)
		}
		closes(t, k)
		// Without a limit, the clock may differ.
		clock.step(years)
		k = acquire(t, store, pool(1), nodelease.Options{Clock: clock.now, MaxSkew: -1})
		closes(t, k)
	})
}

// An attempt on a connection that never answers ends after 15 s, however long the TTL is.
func TestAcquireSilentStore(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		begun := time.Now()
		store.set(func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if time.Since(begun) < time.Second {
				return hung(ctx, c, do)
			}
			return do()
		})
		k := acquire(t, store, pool(1), nodelease.Options{TTL: time.Hour, Wait: time.Hour})
		if took := time.Since(begun); took > 16*time.Second {
			t.Errorf("want a claim within 16 s, got it after %v", took)
		}
		closes(t, k)
	})
}
