package idtype

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Users test with testing/synctest, where time passes only while all goroutines
// sleep, and channels and timers belong to a bubble.
func TestBubble(t *testing.T) { each(t, formats, suite.testBubble) }

// bubble runs a test in a bubble, from some time on.
func bubble(t *testing.T, from time.Time, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(from))
		f(t)
	})
}

func (s subject[T]) testBubble(t *testing.T) {
	start := utc("2100-01-01T00:00:00Z")
	if start.After(s.end()) {
		start = s.end().AddDate(-1, 0, 0)
	}
	// One generator of each bubble, and one of the process, which is used in all
	// of them: each waits when its unit is full.
	var shared Generator[T]
	seen := map[T]bool{}
	for i := range 3 {
		bubble(t, start.Add(time.Duration(i)*time.Hour), func(t *testing.T) {
			own := s.new(t, Options{})
			if shared == nil {
				shared = s.new(t, Options{NotBefore: start.Add(-time.Hour)})
			}
			s.mintInBubble(t, own, map[T]bool{})
			s.mintInBubble(t, shared, seen)
		})
	}
	bubble(t, start.Add(4*time.Hour), s.testBubbleWaits)
	s.testBubbleBehind(t, start)

	// One that was made outside, and is used there again.
	for _, o := range []Options{{}, {Clock: time.Now}} {
		g := s.new(t, o)
		seen := map[T]bool{must(g.Next()): true}
		bubble(t, start, func(t *testing.T) { s.mintInBubble(t, g, seen) })
		bubble(t, start.Add(time.Second), func(t *testing.T) { must(g.Next()) }) // the unit isn't full
		if id, ok := s.nextBehind(t, g); ok {
			seen[id] = true
		}
		dst := make([]T, 3*s.capacity())
		n, err := g.Fill(t.Context(), dst)
		if err != nil && !errors.Is(err, ErrClockBackwards) {
			t.Error(err)
		}
		for _, id := range dst[:n] {
			if seen[id] {
				t.Fatalf("%v was minted twice", id)
			}
			seen[id] = true
		}
	}
}

// testBubbleBehind: a generator is used in a bubble of an earlier time than the
// one before.
func (s subject[T]) testBubbleBehind(t *testing.T, start time.Time) {
	for _, behind := range []time.Duration{2 * time.Second, 24 * time.Hour} {
		var g Generator[T]
		bubble(t, start, func(t *testing.T) {
			g = s.new(t, Options{})
			must(g.Next())
		})
		bubble(t, start.Add(-behind), func(t *testing.T) {
			began := time.Now()
			s.nextBehind(t, g)
			if took := time.Since(began); took != 0 {
				t.Errorf("%v behind: Next took %v", behind, took)
			}
		})
	}
}

// nextBehind calls Next while the clock is far behind the last ID. Only a format
// with a tick-tock bit creates an ID then, with the time that the clock shows.
func (s subject[T]) nextBehind(t *testing.T, g Generator[T]) (id T, ok bool) {
	t.Helper()
	began := time.Now()
	id, err := g.Next()
	switch {
	case !s.toggles && errors.Is(err, ErrClockBackwards):
	case s.toggles && err == nil:
		if at := s.at(id); at.Before(began.Add(-s.step)) || at.After(time.Now()) {
			t.Errorf("at %v: Next = %v, of %v", began.UTC(), id, at)
		}
		return id, true
	default:
		t.Errorf("at %v: Next = %v, %v", began.UTC(), id, err)
	}
	return id, false
}

// mintInBubble has goroutines mint ten units' IDs at once.
func (s subject[T]) mintInBubble(t *testing.T, g Generator[T], seen map[T]bool) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := len(seen)
	for w := range 8 {
		wg.Go(func() {
			ids := make([]T, 10*s.capacity()/8)
			n, err := len(ids), error(nil)
			switch w % 4 {
			case 0:
				n, err = g.Fill(ctx, ids) // with a context that may end
			case 1:
				n, err = g.Fill(context.Background(), ids)
			default:
				for i := range ids {
					if ids[i], err = g.Next(); err != nil {
						n = i
						break
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%d of %d IDs: %v", n, len(ids), err)
			}
			for _, id := range ids[:n] {
				if seen[id] {
					t.Errorf("%v was minted twice", id)
				}
				seen[id] = true
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if want := 8 * (10 * s.capacity() / 8); len(seen)-before != want || took < 8*s.step || took > 30*s.step {
		t.Errorf("%d IDs took %v, want %d in about ten units of %v", len(seen)-before, took, want, s.step)
	}
}

// testBubbleWaits: waits end when they would on another clock.
func (s subject[T]) testBubbleWaits(t *testing.T) {
	within := func(what string, want error, took time.Duration, call func() error) {
		t.Helper()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				began := time.Now()
				if err := call(); !errors.Is(err, want) || time.Since(began) != took {
					t.Errorf("%s: %v after %v, want %v after %v", what, err, time.Since(began), want, took)
				}
			})
		}
		wg.Wait()
	}
	// The default clock, for what is left of a wait and for one that ends.
	bound := time.Now().Add(300 * time.Millisecond).Truncate(s.step)
	g := s.new(t, Options{NotBefore: bound})
	within("up to a start bound", nil, time.Until(bound.Add(s.step)), func() error {
		_, err := g.Next()
		return err
	})
	g = s.new(t, Options{NotBefore: bound.Add(time.Hour), MaxWait: 2 * time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	within("Fill with a deadline", context.DeadlineExceeded, time.Minute, func() error {
		_, err := g.Fill(ctx, make([]T, 5))
		return err
	})
	// A clock of the caller's that stands still.
	now := time.Now()
	g = s.new(t, Options{Clock: func() time.Time { return now }})
	s.fillUnit(t, g)
	within("MaxWait", ErrSequenceExhausted, time.Second, func() error {
		_, err := g.Next()
		return err
	})
	now = now.Add(s.step - time.Microsecond) // a pause that is spent spinning
	within("MaxWait, spinning", ErrSequenceExhausted, time.Second, func() error {
		_, err := g.Next()
		return err
	})
}

// NewSno works once the clock does: a bubble begins before the format's time.
func TestBubbleNewSno(t *testing.T) {
	was := packageSno.made.Swap(nil)
	defer packageSno.made.Store(was)
	synctest.Test(t, func(t *testing.T) {
		if id, err := NewSno(1); !errors.Is(err, ErrBeforeEpoch) {
			t.Errorf("in %d: %v, %v", time.Now().Year(), id, err)
		}
	})
	for i := range 2 {
		bubble(t, snoStart.Add(time.Duration(i)*time.Hour), func(t *testing.T) {
			if id, err := NewSno(1); err != nil || time.Since(id.Time()) >= 4*time.Millisecond {
				t.Errorf("%v, %v", id, err)
			}
		})
	}
}
