package nodelease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A claim is renewed after a third of its TTL, give or take a tenth of that third.
// Each renewal moves Until to nine tenths of a TTL ahead.
func TestRenewals(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		clock.step(90 * time.Second)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		begun := time.Now()
		if got := k.Until(); got != clock.now().Add(27*time.Second).UnixMilli() {
			t.Errorf("expected a claim for 27 s, got one until %d", got)
		}
		time.Sleep(time.Hour)
		renewals := store.noted("Renew")
		least, most := time.Hour, time.Duration(0)
		for i, before := 0, begun; i < len(renewals); i++ {
			gap := renewals[i].at.Sub(before)
			least, most, before = min(least, gap), max(most, gap), renewals[i].at
			if r := renewals[i].r; r.TTL != 30*time.Second || r.Now != before.Add(90*time.Second).UnixMilli() || r.Until != r.Now+27_000 {
				t.Errorf("renewal %d: %+v", i+1, r)
			}
		}
		if least < 9*time.Second || most > 11*time.Second || most-least < time.Second {
			t.Errorf("expected renewals every 9 to 11 s, got every %v to %v", least, most)
		}
		last := store.last("Renew")
		if k.Until() != last.r.Until {
			t.Errorf("expected a claim until %d, got %d", last.r.Until, k.Until())
		}
		stats := k.Stats()
		want := nodelease.Stats{
			Pool: "snowflake", Number: 0, Term: 1, Age: time.Hour, Left: 27*time.Second - time.Since(last.at),
			Renewals: uint64(len(renewals)), Skew: 90 * time.Second,
		}
		// The time of a request is in milliseconds.
		if stats.Skew = stats.Skew.Round(2 * time.Millisecond); stats != want {
			t.Errorf("expected %+v, got %+v", want, stats)
		}
		closes(t, k)
		if got := k.Stats(); got.Left != 0 || got.Renewals != want.Renewals {
			t.Errorf("after Close: %+v", got)
		}
		time.Sleep(time.Hour)
		if n := len(store.noted("Renew")); n != len(renewals) {
			t.Errorf("expected no renewal after Close, got %d", n-len(renewals))
		}
	})
}

// Without a logger, the messages are in the default log.
func TestDefaultLogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(1), nodelease.Options{})
		store.set(only("Renew", func(context.Context, call, func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			return nodelease.Claim{}, errDown
		}))
		time.Sleep(15 * time.Second)
		closes(t, k)
	})
	if !strings.Contains(log.String(), "node number not renewed") {
		t.Errorf("got the log %q, want the failed renewal", &log)
	}
}

// Failed renewals are counted and retried at growing intervals.
func TestRenewalsFail(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		var log bytes.Buffer
		k := acquire(t, store, pool(1), nodelease.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		const fails = 4
		store.set(only("Renew", func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if len(store.noted("Renew")) <= fails {
				return nodelease.Claim{}, errDown
			}
			return do()
		}))
		time.Sleep(2 * time.Minute)
		calls := store.noted("Renew")
		for i, c := range calls[1:] {
			want := 10 * time.Second
			if i < fails {
				want = min(time.Second<<i, 5*time.Second)
			}
			if got := c.at.Sub(calls[i].at); got < want*9/10 || got > want*11/10 {
				t.Errorf("try %d: expected it after %v, give or take a tenth, got %v", i+2, want, got)
			}
		}
		if stats := k.Stats(); stats.Failures != fails || stats.Renewals != uint64(len(calls)-fails) || !errors.Is(stats.LastFailure, errDown) || k.Err() != nil {
			t.Errorf("expected %d failures of a claim that is held, got %+v, %v", fails, stats, k.Err())
		}
		if n := strings.Count(log.String(), "node number not renewed"); n != fails || !strings.Contains(log.String(), "store is down") {
			t.Errorf("expected %d warnings, got\n%s", fails, log.String())
		}
		// After a success the intervals start from the shortest again.
		store.set(only("Renew", down))
		time.Sleep(13 * time.Second)
		store.set(nil)
		time.Sleep(time.Minute)
		again := store.noted("Renew")[len(calls):]
		if gap := again[1].at.Sub(again[0].at); gap < 900*time.Millisecond || gap > 1100*time.Millisecond {
			t.Errorf("expected another try after a second, got one after %v", gap)
		}
		closes(t, k)
	})
}

// A call without an answer doesn't use up the trust window.
func TestRenewalHangs(t *testing.T) {
	for name, hang := range map[string]fault{
		"respects its context": func(ctx context.Context, _ call, _ func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			<-ctx.Done()
			return nodelease.Claim{}, errDown // more specific than the context's error
		},
		"ignores its context": late(0, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				k := acquire(t, store, pool(1), nodelease.Options{})
				store.set(only("Renew", func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
					if len(store.noted("Renew")) == 1 {
						return hang(ctx, c, do)
					}
					return do()
				}))
				time.Sleep(2 * time.Minute)
				stats := k.Stats()
				if stats.Failures != 1 || stats.Renewals < 8 || k.Err() != nil {
					t.Errorf("expected one failure of a claim that is held, got %+v, %v", stats, k.Err())
				}
				if respects := name == "respects its context"; respects != errors.Is(stats.LastFailure, errDown) {
					t.Errorf("got %v", stats.LastFailure)
				}
				closes(t, k)
			})
		})
	}
}

// A claim is trusted for nine tenths of the TTL, counted from before the last
// successful renewal was sent. Failed renewals don't extend it.
func TestLoss(t *testing.T) {
	slow := only("Renew", late(0, 4*time.Second))
	for _, test := range []struct {
		name  string
		first fault // at first
		then  fault // until the end of the test
		cause error
	}{
		{"down", nil, only("Renew", down), errDown},
		{"hung", nil, only("Renew", hung), context.DeadlineExceeded},
		{"ignores contexts", nil, only("Renew", late(0, 10*time.Minute)), context.DeadlineExceeded},
		{"answers lost", nil, only("Renew", lossy), errDown},
		{"slow answers", slow, only("Renew", down), errDown},
		{"slow writes", only("Renew", late(4*time.Second, 0)), only("Renew", hung), context.DeadlineExceeded},
		{"releases down too", nil, down, errDown},
	} {
		t.Run(test.name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				var log bytes.Buffer
				k := acquire(t, store, pool(1), nodelease.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				g := snowflakes(t, k, nil)
				store.set(test.first)
				time.Sleep(time.Minute)
				if k.Stats().Renewals < 3 {
					t.Fatalf("expected renewals, got %+v", k.Stats())
				}
				// Wait for a renewal whose answer the keeper has received.
				for renewals := k.Stats().Renewals; k.Stats().Renewals == renewals; {
					time.Sleep(time.Millisecond)
				}
				sent := store.last("Renew").at
				store.set(test.then)
				until := k.Until()
				id := must(g.Next())

				<-k.Lost()
				if held := time.Since(sent); held != 27*time.Second {
					t.Errorf("expected the loss 27 s after the last renewal, got %v", held)
				}
				if when(id) > until {
					t.Errorf("the ID's time is %d, after the claim's end %d", when(id), until)
				}
				expectLost(t, k, g, test.cause)
				// A late answer doesn't revive the claim.
				time.Sleep(11 * time.Minute)
				expectLost(t, k, g, test.cause)
				_ = k.Close()
				if n := strings.Count(log.String(), "node number lost"); n != 1 || errors.Is(k.Err(), nodelease.ErrClosed) {
					t.Errorf("after Close: want the loss logged once, got %d times, %v", n, k.Err())
				}
			})
		})
	}
}

// expectLost checks that a claim is lost because of cause.
func expectLost(t *testing.T, k *nodelease.Keeper, g *idtype.SnowflakeGenerator, cause error) {
	t.Helper()
	if k.Until() != math.MinInt64 {
		t.Errorf("expected Until to be math.MinInt64, got %d", k.Until())
	}
	if err := k.Err(); !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, cause) || errors.Is(err, nodelease.ErrClosed) ||
		!strings.Contains(err.Error(), fmt.Sprintf("number %d of pool %q", k.Number(), "snowflake")) {
		t.Errorf("expected a loss because of %v, got %v", cause, err)
	}
	if stats := k.Stats(); stats.Left != 0 {
		t.Errorf("expected no time left, got %+v", stats)
	}
	if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, cause) || errors.Is(err, nodelease.ErrClosed) || errors.Is(err, idtype.ErrLeaseNotRenewed) {
		t.Errorf("expected no ID because of %v, got %v, %v", cause, id, err)
	}
	select {
	case <-k.Lost():
	default:
		t.Error("expected Lost to be closed")
	}
}

// The error of a plain generator distinguishes a closed claim from a claim that isn't
// renewed yet. For a closed claim it doesn't advise to claim again.
func TestClosedGenerator(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		g := snowflakes(t, k, clock.now)
		synctest.Wait() // or the keeper would begin with the stepped clock
		clock.step(time.Hour)
		if id, err := g.Next(); !errors.Is(err, idtype.ErrLeaseNotRenewed) || errors.Is(err, idtype.ErrLeaseLost) || errors.Is(err, nodelease.ErrClosed) || k.Err() != nil {
			t.Errorf("want %v, got %v, %v; %v", idtype.ErrLeaseNotRenewed, id, err, k.Err())
		}
		clock.step(-time.Hour)
		must(g.Next())
		closes(t, k)
		_, err := g.Next()
		n, err2 := g.Fill(t.Context(), make([]idtype.Snowflake, 3))
		for _, err := range []error{err, err2} {
			if !errors.Is(err, nodelease.ErrClosed) || !errors.Is(err, idtype.ErrLeaseLost) || errors.Is(err, idtype.ErrLeaseNotRenewed) {
				t.Errorf("want %v, got %d, %v", nodelease.ErrClosed, n, err)
			}
			if want := `number 0 of pool "snowflake": closed`; !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "lost") {
				t.Errorf("want an error that ends in %q, got %v", want, err)
			}
		}
	})
}

// An answer that doesn't match the claim counts as a failed renewal.
func TestRenewalNonsense(t *testing.T) {
	for name, change := range map[string]func(*nodelease.Claim){
		"number": func(c *nodelease.Claim) { c.Number++ },
		"term":   func(c *nodelease.Claim) { c.Term++ },
		"until":  func(c *nodelease.Claim) { c.Until-- },
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				k := acquire(t, store, pool(1), nodelease.Options{})
				until := k.Until()
				store.set(only("Renew", func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
					c, err := do()
					change(&c)
					return c, err
				}))
				time.Sleep(20 * time.Second)
				if stats := k.Stats(); stats.Renewals != 0 || stats.Failures == 0 || !strings.Contains(stats.LastFailure.Error(), "want number 0 in term 1") {
					t.Errorf("expected failures, got %+v", stats)
				}
				if k.Until() != until {
					t.Errorf("expected a claim until %d, got %d", until, k.Until())
				}
				store.set(nil)
				time.Sleep(20 * time.Second)
				closes(t, k)
			})
		})
	}
}

// Of two copies of a process, the store refuses the one that renews the claim second, at its
// first renewal, and the first copy keeps the claim and the high-water mark.
func TestCopies(t *testing.T) {
	for name, before := range map[string]fault{"renewed": nil, "answer lost": only("Renew", lossy), "renewal lost": only("Renew", down)} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				store := new(faulty)
				k := acquire(t, store, pool(1), nodelease.Options{})
				time.Sleep(15 * time.Second) // one renewal
				store.set(before)
				time.Sleep(10 * time.Second)
				store.set(nil)
				twin := must(k.Copy(store, nodelease.Options{}, 0))
				ids, same := snowflakes(t, k, nil), snowflakes(t, twin, nil)
				time.Sleep(11 * time.Second)
				if (k.Err() == nil) == (twin.Err() == nil) {
					t.Fatalf("want one of the copies to lose the claim, got %v and %v", k.Err(), twin.Err())
				}
				if k.Err() != nil {
					k, ids, twin, same = twin, same, k, ids
				}
				if _, err := same.Next(); !errors.Is(err, idtype.ErrLeaseLost) || !errors.Is(err, nodelease.ErrSuperseded) || !strings.Contains(err.Error(), "a copy of this process has renewed the claim") {
					t.Errorf("the second copy: want %v, got %v", idtype.ErrLeaseLost, err)
				}
				closes(t, twin) // changes nothing
				time.Sleep(time.Hour)
				last := when(must(ids.Next()))
				closes(t, k)
				if next := acquire(t, store, pool(1), nodelease.Options{}); next.After() != last {
					t.Errorf("want the next claim after %d, got %d", last, next.After())
				} else {
					closes(t, next)
				}
			})
		})
	}
}

// Each attempt to renew has a new nonce. A retry presents the nonce of the last confirmed
// renewal and the nonces of the attempts since then, which are few enough for all stores.
func TestNonces(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		attempts := 0
		store.set(only("Renew", func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if attempts++; attempts <= 5 || attempts > 10 {
				return down(ctx, c, do)
			}
			return do()
		}))
		clock.step(time.Hour) // the first renewal is due at once, so that most attempts fit into the trust window
		time.Sleep(3 * time.Minute)
		if !errors.Is(k.Err(), idtype.ErrLeaseLost) || attempts <= 13 || attempts > 20 {
			t.Errorf("want %v after a few failed renewals, got %v after %d", idtype.ErrLeaseLost, k.Err(), attempts)
		}
		closes(t, k)
		sent, confirmed, past := []string(nil), "", []string(nil)
		seen := map[string]bool{}
		for i, c := range store.noted("Renew") {
			if seen[c.r.Nonce] || len(c.r.Nonce) < 26 {
				t.Errorf("renewal %d: want a new nonce, got %q", i, c.r.Nonce)
			}
			seen[c.r.Nonce] = true
			if c.claim.Nonce != confirmed || !slices.Equal(c.claim.Sent, sent) || !slices.Equal(c.claim.Past, past) {
				t.Errorf("renewal %d: want the nonces %q, %q and %q, got %q, %q and %q", i, confirmed, sent, past, c.claim.Nonce, c.claim.Sent, c.claim.Past)
			}
			if i >= 5 && i < 10 {
				past = slices.Concat(past, []string{confirmed}, sent)
				sent, confirmed = nil, c.r.Nonce
			} else {
				sent = append(sent, c.r.Nonce)
			}
		}
		if last := store.last("Release").claim; last.Nonce != confirmed || !slices.Equal(last.Sent, sent) {
			t.Errorf("release: want the nonces %q and %q, got %q and %q", confirmed, sent, last.Nonce, last.Sent)
		}
	})
}

// A holder keeps its claim if the store has lost its last renewals, as a standby that is promoted
// has. A copy of the holder, which doesn't know the renewals since it was copied, is refused.
func TestStoreThatWentBack(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(1), nodelease.Options{})
		time.Sleep(time.Minute) // some renewals
		for _, lost := range []int64{1, 3, 60} {
			var n atomic.Int64
			store.set(only("Renew", func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				if n.Add(1) > lost {
					return do()
				}
				c.claim.Until = c.r.Until // of the primary, without the standby
				return c.claim, nil
			}))
			time.Sleep(time.Duration(lost+3) * 11 * time.Second)
			if n.Load() <= lost || k.Err() != nil {
				t.Errorf("%d renewals were lost: %v after %d", lost, k.Err(), n.Load())
			}
		}
		known := store.last("Renew").claim
		copied := known
		copied.Sent, copied.Past, copied.Nonce = nil, known.Past[:len(known.Past)-1], known.Past[len(known.Past)-1]
		if _, err := store.Store.Renew(t.Context(), pool(1), copied, nodelease.Request{Holder: known.Holder, TTL: time.Minute, Nonce: "copy"}); !errors.Is(err, nodelease.ErrSuperseded) {
			t.Errorf("a copy made before the last renewal: want %v, got %v", nodelease.ErrSuperseded, err)
		}
		closes(t, k)
	})
}

// The first trust window starts before the claim was sent.
func TestLossAfterSlowClaim(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		store.set(func(_ context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			if c.what != "Claim" {
				return down(t.Context(), c, do)
			}
			time.Sleep(6 * time.Second)
			got, err := do()
			time.Sleep(6 * time.Second)
			return got, err
		})
		begun := time.Now()
		k := acquire(t, store, pool(1), nodelease.Options{})
		if stats := k.Stats(); stats.Left != 15*time.Second || stats.Age != 12*time.Second {
			t.Errorf("expected 15 s left, got %+v", stats)
		}
		<-k.Lost()
		if held := time.Since(begun); held != 27*time.Second {
			t.Errorf("expected the loss after 27 s, got %v", held)
		}
		_ = k.Close()
	})
}

// A store needn't report the TTL and the time. A TTL longer than requested isn't
// trusted.
func TestMissingTTL(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			store.set(func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				c, err := do()
				c.TTL, c.Time = ttl, time.Time{}
				return c, err
			})
			k := acquire(t, store, pool(1), nodelease.Options{})
			if stats := k.Stats(); stats.Left != 27*time.Second || stats.Skew != 0 {
				t.Errorf("a TTL of %v: expected 27 s left and no skew, got %+v", ttl, stats)
			}
			closes(t, k)
		})
	}
}

// If the store grants a shorter TTL, the claim is trusted for less time and renewed
// more often.
func TestShorterTTL(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		shorter := func(_ context.Context, _ call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
			c, err := do()
			c.TTL = 6 * time.Second
			return c, err
		}
		store.set(shorter)
		begun := time.Now()
		k := acquire(t, store, pool(1), nodelease.Options{})
		time.Sleep(time.Minute)
		for i, c := range store.noted("Renew") {
			if c.r.Until-c.r.Now != 5400 || c.r.TTL != 30*time.Second {
				t.Errorf("renewal %d: expected to ask for 30 s, and a high-water mark 5.4 s ahead, got %+v", i+1, c.r)
			}
			if gap := c.at.Sub(begun); gap < 1800*time.Millisecond || gap > 2200*time.Millisecond {
				t.Errorf("renewal %d: expected it after 1.8 to 2.2 s, got %v", i+1, gap)
			}
			begun = c.at
		}
		store.set(down)
		<-k.Lost()
		if held := time.Since(begun); held != 5400*time.Millisecond {
			t.Errorf("expected the loss after 5.4 s, got %v", held)
		}
		store.set(nil)
		time.Sleep(time.Minute)
		closes(t, k)
	})
}

// A process that didn't run for longer than the trust window has lost the claim
// before it can create an ID.
func TestLossAsleep(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		var nap atomic.Int64
		clock := func() time.Time {
			time.Sleep(time.Duration(nap.Swap(0)))
			return time.Now()
		}
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock})
		g := snowflakes(t, k, nil)
		nap.Store(int64(time.Minute))
		<-k.Lost()
		expectLost(t, k, g, idtype.ErrLeaseLost)
		closes(t, k)
	})
}

// Close sets the high-water mark to the time of the last ID.
func TestClose(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		o := nodelease.Options{Wait: -1}
		k := acquire(t, store, pool(1), o)
		g := snowflakes(t, k, nil)
		time.Sleep(25 * time.Second)
		id := must(g.Next())
		time.Sleep(time.Millisecond)
		closes(t, k)
		if k.Until() != math.MinInt64 || !errors.Is(k.Err(), nodelease.ErrClosed) || !errors.Is(k.Err(), idtype.ErrLeaseLost) || !strings.Contains(k.Err().Error(), `number 0 of pool "snowflake"`) {
			t.Errorf("expected a claim that is closed, got one until %d, %v", k.Until(), k.Err())
		}
		select {
		case <-k.Lost():
			t.Error("expected Lost to stay open after Close")
		default:
		}
		if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("expected no ID, got %v", err)
		}
		if mark := store.last("Release").mark; mark != when(id) {
			t.Errorf("expected a release at %d, got %d", when(id), mark)
		}

		// The next holder needn't wait. It creates no ID, so its high-water mark stays
		// the same.
		k = acquire(t, store, pool(1), o)
		if k.After() != when(id) || k.Number() != 0 || k.Stats().Term != 2 {
			t.Errorf("expected a claim after %d, got one after %d, %+v", when(id), k.After(), k.Stats())
		}
		g = snowflakes(t, k, nil)
		closes(t, k)
		k = acquire(t, store, pool(1), o)
		if k.After() != when(id) {
			t.Errorf("expected a claim after %d, got one after %d", when(id), k.After())
		}
		if _, err := g.Next(); !errors.Is(err, idtype.ErrLeaseLost) {
			t.Errorf("expected no ID, got %v", err)
		}
		// Without a generator, the keeper must assume that all of the range was used.
		written := k.Until()
		closes(t, k)
		if mark := store.last("Release").mark; mark != written {
			t.Errorf("expected a release at %d, got %d", written, mark)
		}
	})
}

// If the clock was ahead, the stored high-water mark is later than Until.
func TestCloseAhead(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		clock := new(wall)
		clock.step(time.Hour)
		k := acquire(t, store, pool(1), nodelease.Options{Clock: clock.now})
		written := k.Until()
		clock.step(-time.Hour)
		time.Sleep(20 * time.Second)
		if want := store.last("Renew").r.Until; k.Until() != want {
			t.Errorf("expected a claim until %d, got %d", want, k.Until())
		}
		closes(t, k)
		if mark := store.last("Release").mark; mark != written {
			t.Errorf("expected a release at %d, got %d", written, mark)
		}
	})
}

// Close returns in bounded time, and concurrent calls return the same result.
func TestCloseBounded(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault fault
		fails error
	}{
		{"up", nil, nil},
		{"down", down, errDown},
		{"hung", hung, context.DeadlineExceeded},
		{"ignores contexts", late(10*time.Minute, 0), context.DeadlineExceeded},
		{"answers lost", lossy, errDown},
	} {
		for _, at := range []time.Duration{time.Second, 15 * time.Second, 60 * time.Second} {
			t.Run(fmt.Sprintf("%s after %v", test.name, at), func(t *testing.T) {
				onFakeTime(t, func(t *testing.T) {
					store := new(faulty)
					k := acquire(t, store, pool(1), nodelease.Options{})
					store.set(test.fault)
					time.Sleep(at)
					begun := time.Now()
					errs := make([]error, 4)
					var wg sync.WaitGroup
					for i := range errs {
						wg.Go(func() { errs[i] = k.Close() })
					}
					wg.Wait()
					if took := time.Since(begun); took > 10*time.Second {
						t.Errorf("expected Close to return within 10 s, took %v", took)
					}
					for _, err := range append(errs, k.Close()) {
						if !errors.Is(err, test.fails) {
							t.Errorf("expected %v from each call, got %v", test.fails, err)
						}
					}
					time.Sleep(11 * time.Minute) // until all calls have ended
				})
			})
		}
	}
}

// Close gives a running renewal a tenth of a second to complete, even if the TTL is
// short.
func TestCloseAwaitsRenewal(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(1), nodelease.Options{TTL: time.Second})
		store.set(only("Renew", late(0, 80*time.Millisecond)))
		for len(store.noted("Renew")) == 0 {
			time.Sleep(time.Millisecond)
		}
		closes(t, k)
		if s := k.Stats(); s.Renewals != 1 {
			t.Errorf("expected the renewal to be complete, got %+v", s)
		}
	})
}

// A renewal that completes during Close doesn't revive the claim. A renewal that
// Close cancels doesn't count as a failure.
func TestCloseDuringRenewal(t *testing.T) {
	for i := range repeats() {
		onFakeTime(t, func(t *testing.T) {
			store := new(faulty)
			var log bytes.Buffer
			k := acquire(t, store, pool(1), nodelease.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			store.set(only("Renew", func(ctx context.Context, c call, do func() (nodelease.Claim, error)) (nodelease.Claim, error) {
				time.Sleep(time.Second)
				if i%2 == 0 {
					return do()
				}
				return hung(ctx, c, do)
			}))
			for len(store.noted("Renew")) == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Until(store.last("Renew").at.Add(time.Second)))
			closes(t, k)
			if k.Until() != math.MinInt64 || !errors.Is(k.Err(), nodelease.ErrClosed) {
				t.Errorf("expected a claim that is closed, got one until %d, %v", k.Until(), k.Err())
			}
			if stats := k.Stats(); stats.Failures > 0 || stats.Left > 0 || log.Len() > 0 {
				t.Errorf("expected no failure, got %+v\n%s", stats, log.String())
			}
			time.Sleep(time.Minute)
		})
	}
}

// After a loss, the keeper releases the number as soon as the store answers.
func TestReleaseAfterLoss(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(1), nodelease.Options{})
		g := snowflakes(t, k, nil)
		id := must(g.Next())
		store.set(down)
		time.Sleep(4 * time.Minute)
		if n := len(store.noted("Release")); n < 18 || n > 25 {
			t.Errorf("expected an attempt every 10 s, got %d in 4 min", n)
		}
		store.set(nil)
		time.Sleep(11 * time.Second)
		last := store.last("Release")
		if last.mark != when(id) {
			t.Errorf("expected a release at %d, got %d", when(id), last.mark)
		}
		n := len(store.noted("Release"))
		time.Sleep(10 * time.Minute)
		if more := len(store.noted("Release")) - n; more > 0 {
			t.Errorf("expected no more releases, got %d", more)
		}
		next := acquire(t, store, pool(1), nodelease.Options{Wait: -1})
		if next.After() != when(id) {
			t.Errorf("expected a claim after %d, got one after %d", when(id), next.After())
		}
		closes(t, k)
		if next.Err() != nil {
			t.Errorf("expected the next claim to stay, got %v", next.Err())
		}
		closes(t, next)
	})
}

// If the store never answers, the keeper gives the release up.
func TestReleaseGivenUp(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		k := acquire(t, store, pool(1), nodelease.Options{})
		store.set(down)
		time.Sleep(time.Hour)
		if n := len(store.noted("Release")); n != 31 {
			t.Errorf("expected 31 attempts, got %d", n)
		}
		if err := k.Close(); !errors.Is(err, errDown) || !strings.Contains(err.Error(), `release number 0 of pool "snowflake"`) {
			t.Errorf("expected %v, got %v", errDown, err)
		}
	})
}

// A claim accepts one generator of the pool's layout while it is held, and no other.
func TestAttach(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		store := new(faulty)
		attach := func(k *nodelease.Keeper) error {
			_, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: k}})
			return err
		}
		k := acquire(t, store, pool(2), nodelease.Options{})
		for _, other := range []func(idtype.Options) error{
			func(o idtype.Options) error {
				_, err := idtype.NewSpread64Generator(idtype.Spread64Config{Options: o})
				return err
			},
			func(o idtype.Options) error {
				_, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: idtype.SnowflakeLayout{Epoch: base}, Options: o})
				return err
			},
		} {
			if err := other(idtype.Options{Lease: k}); !errors.Is(err, idtype.ErrConfig) || !strings.Contains(err.Error(), "epoch 2021") {
				t.Errorf("a generator of another layout: want %v, got %v", idtype.ErrConfig, err)
			}
		}
		snowflakes(t, k, nil)
		if err := attach(k); !errors.Is(err, idtype.ErrConfig) || !strings.Contains(err.Error(), "number 0 of pool \"snowflake\"") {
			t.Errorf("a second generator: want %v, got %v", idtype.ErrConfig, err)
		}
		closes(t, k)
		k = acquire(t, store, pool(2), nodelease.Options{})
		closes(t, k)
		if err := attach(k); !errors.Is(err, nodelease.ErrClosed) {
			t.Errorf("after Close: want %v, got %v", nodelease.ErrClosed, err)
		}
		k = acquire(t, store, pool(2), nodelease.Options{})
		store.set(only("Renew", down))
		<-k.Lost()
		if err := attach(k); err != k.Err() {
			t.Errorf("after the loss: expected %v, got %v", k.Err(), err)
		}
		closes(t, k)
	})
}
