package idtype

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBubble uses generators in bubbles of testing/synctest. There, time passes only while
// all goroutines sleep, and channels and timers belong to one bubble.
func TestBubble(t *testing.T) { each(t, formats, subject.testBubble) }

// bubble runs a test in a bubble whose time starts at from.
func bubble(t *testing.T, from time.Time, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(from))
		f(t)
	})
}

func (s subject) testBubble(t *testing.T) {
	start := utc("2100-01-01T00:00:00Z")
	if start.After(s.end()) {
		start = s.end().AddDate(-1, 0, 0)
	}
	// Each bubble has its own generator and uses a shared one. Both wait when a unit is
	// full.
	var shared source
	seen := map[record]bool{}
	for i := range 3 {
		bubble(t, start.Add(time.Duration(i)*time.Hour), func(t *testing.T) {
			own := s.new(t, Options{})
			if shared == nil {
				shared = s.new(t, Options{NotBefore: start.Add(-time.Hour)})
			}
			s.mintInBubble(t, own, map[record]bool{})
			s.mintInBubble(t, shared, seen)
		})
	}
	bubble(t, start.Add(4*time.Hour), s.testBubbleWaits)
	s.testBubbleBehind(t, start)

	// A generator from outside is used in bubbles, and then outside again.
	for _, o := range []Options{{}, {Clock: time.Now}} {
		g := s.new(t, o)
		seen := map[record]bool{Must(g.Next()): true}
		bubble(t, start, func(t *testing.T) { s.mintInBubble(t, g, seen) })
		bubble(t, start.Add(time.Second), func(t *testing.T) { Must(g.Next()) }) // without a wait
		if id, ok := s.nextBehind(t, g); ok {
			seen[id] = true
		}
		dst := make([]record, 3*s.capacity())
		n, err := g.Fill(t.Context(), dst)
		if err != nil && !errors.Is(err, ErrClockBackwards) {
			t.Error(err)
		}
		for _, id := range dst[:n] {
			if seen[id] {
				t.Fatalf("duplicate %v", id)
			}
			seen[id] = true
		}
	}
}

// testBubbleBehind uses a generator in a bubble whose time is before the last ID.
func (s subject) testBubbleBehind(t *testing.T, start time.Time) {
	for _, behind := range []time.Duration{2 * time.Second, 24 * time.Hour} {
		var g source
		bubble(t, start, func(t *testing.T) {
			g = s.new(t, Options{})
			Must(g.Next())
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

// nextBehind calls Next while the clock is far behind the last ID. Only a format with a
// tick-tock bit creates an ID then, with the clock's time.
func (s subject) nextBehind(t *testing.T, g source) (id record, ok bool) {
	t.Helper()
	began := time.Now()
	id, err := g.Next()
	switch {
	case !s.toggles && errors.Is(err, ErrClockBackwards):
	case s.toggles && err == nil:
		if at := s.at(id); at.Before(began.Add(-s.step)) || at.After(time.Now()) {
			t.Errorf("at %v: Next = %v with time %v", began.UTC(), id, at)
		}
		return id, true
	default:
		t.Errorf("at %v: Next = %v, %v", began.UTC(), id, err)
	}
	return id, false
}

// mintInBubble creates the IDs of ten units in several goroutines.
func (s subject) mintInBubble(t *testing.T, g source, seen map[record]bool) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := len(seen)
	for w := range 8 {
		wg.Go(func() {
			ids := make([]record, 10*s.capacity()/8)
			n, err := len(ids), error(nil)
			switch w % 4 {
			case 0:
				n, err = g.Fill(ctx, ids) // with a context that can end
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
					t.Errorf("duplicate %v", id)
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

// testBubbleWaits checks that waits in a bubble end after the expected time.
func (s subject) testBubbleWaits(t *testing.T) {
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
	// The default clock: a wait until the start bound, and one until the context ends.
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
		_, err := g.Fill(ctx, make([]record, 5))
		return err
	})
	// A caller's clock that is stopped.
	now := time.Now()
	g = s.new(t, Options{Clock: func() time.Time { return now }})
	s.fillUnit(t, g)
	within("MaxWait", ErrSequenceExhausted, time.Second, func() error {
		_, err := g.Next()
		return err
	})
	now = now.Add(s.step - time.Microsecond) // a pause that spins
	within("MaxWait, spinning", ErrSequenceExhausted, time.Second, func() error {
		_, err := g.Next()
		return err
	})
}

// NewSno fails before the format's epoch, and works after it.
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
