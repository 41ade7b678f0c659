package idtype

import (
	"context"
	"errors"
	"testing"
	"time"
)

// four is a sequencer with four numbers in a millisecond.
func four(t *testing.T, maxWait time.Duration) (*sequencer, *scripted) {
	t.Helper()
	c := &scripted{wall: utc("2026-11-21T10:11:12.344Z")}
	s := &sequencer{line: uid60Line, max: 3}
	if err := s.init(Options{MaxWait: maxWait, clock: c.clock()}); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// A new call doesn't go before those that wait, even if there are numbers.
func TestQueueIsKept(t *testing.T) {
	s, _ := four(t, time.Minute)
	s.turn <- struct{}{} // somebody waits for the clock
	s.waiting.Add(1)
	minted := make(chan error, 1)
	go func() {
		_, err := s.one()
		minted <- err
	}()
	select {
	case err := <-minted:
		t.Errorf("a new call went first: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if n := s.waiting.Load(); n != 2 {
		t.Errorf("%d calls wait, want 2", n)
	}
	s.waiting.Add(-1)
	<-s.turn
	if err := <-minted; err != nil {
		t.Error(err)
	}
	if n := s.waiting.Load(); n != 0 || len(s.turn) != 0 {
		t.Errorf("%d calls wait when all is done, turn taken: %d", n, len(s.turn))
	}

	// It gives up in time, and by its context.
	s, _ = four(t, 20*time.Millisecond)
	s.turn <- struct{}{}
	s.waiting.Add(1)
	if _, err := s.one(); !errors.Is(err, ErrSequenceExhausted) {
		t.Errorf("behind a queue that doesn't move: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := s.reserve(ctx, &call{begun: -1, patient: true}, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: %v", err)
	}
	if n := s.waiting.Load(); n != 1 {
		t.Errorf("%d calls wait, want 1", n)
	}
	// Who isn't to wait doesn't queue.
	s, _ = four(t, -1)
	s.turn <- struct{}{}
	s.waiting.Add(1)
	if _, err := s.one(); err != nil {
		t.Errorf("without waiting: %v", err)
	}
}

// Calls that waited use all numbers of the units that passed meanwhile, those
// that did not only what the clock shows.
func TestPassedUnitsAreUsed(t *testing.T) {
	s, c := four(t, 0)
	began, _ := s.now()
	for range 4 {
		if _, err := s.one(); err != nil {
			t.Fatal(err)
		}
	}
	c.step(5 * time.Millisecond)
	for i := range int64(5) {
		got, count, _, err := s.take(&call{begun: began, waited: true}, 9, true)
		if err != nil || count != 4 || got.unit != began+1+i || got.seq != 0 {
			t.Errorf("unit %d after the full one: %+v of %d, %v", i+1, got, count, err)
		}
	}
	if got, count, b, err := s.take(&call{begun: began, waited: true}, 9, true); count != 0 || !b.full || err != nil {
		t.Errorf("past the clock: %+v of %d, %v", got, count, err)
	}

	s, c = four(t, 0)
	if _, err := s.one(); err != nil {
		t.Fatal(err)
	}
	c.step(5 * time.Millisecond)
	got, count, _, err := s.take(&call{begun: began, waited: true}, 9, true)
	if err != nil || count != 3 || got.unit != began || got.seq != 1 {
		t.Errorf("the rest of a unit that passed: %+v of %d, %v", got, count, err)
	}
	got, _, _, err = s.take(&call{begun: -1}, 1, true)
	if err != nil || got.unit != began+5 {
		t.Errorf("a new call: %+v, %v; want unit %d", got, err, began+5)
	}
}

// For a Fill only a clock that stands still counts as waiting in vain.
func TestFillIsPatient(t *testing.T) {
	for _, patient := range []bool{true, false} {
		s, c := four(t, 250*time.Millisecond) // longer than a busy machine keeps a goroutine waiting
		for range 4 {
			if _, err := s.one(); err != nil {
				t.Fatal(err)
			}
		}
		s.turn <- struct{}{}
		got := make(chan error, 1)
		go func() {
			_, _, err := s.reserve(t.Context(), &call{begun: -1, patient: patient}, 1)
			got <- err
		}()
		for s.waiting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		// The queue takes longer than MaxWait, but others mint. A Next gives up
		// meanwhile.
		for i := 0; i < 150 || !patient && len(got) == 0; i++ {
			if i == 1000 {
				t.Fatal("a Next waits on behind the queue")
			}
			time.Sleep(5 * time.Millisecond)
			c.step(time.Millisecond)
			if _, count, _, err := s.take(&call{begun: -1}, 4, true); err != nil || count != 4 {
				t.Fatal(count, err)
			}
		}
		c.mu.Lock()
		c.ticks += time.Hour
		c.mu.Unlock()
		<-s.turn
		if err := <-got; patient != (err == nil) || err != nil && !errors.Is(err, ErrSequenceExhausted) {
			t.Errorf("patient %v: %v", patient, err)
		}
	}
}
