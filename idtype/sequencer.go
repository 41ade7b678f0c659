package idtype

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// defaultMaxWait is Options.MaxWait's.
	defaultMaxWait = time.Second
	// fullPause is how long a call sleeps when a unit's numbers are used up.
	// Sleeps are a millisecond coarse, so shorter ones wouldn't wake earlier;
	// the units that pass meanwhile are used all the same.
	fullPause = 2 * time.Millisecond
	// behindPause is how long a call sleeps at the most before it looks again
	// whether a clock that is behind was set right.
	behindPause = 10 * time.Millisecond
)

// A sequencer hands out (unit, sequence) pairs, each once: it is what all
// generators have in common.
type sequencer struct {
	line     timeline
	min, max uint32 // the sequence numbers of a unit
	// first gives the sequence number with which a unit begins, min to max.
	// Nil: min. It is told whether the unit before was used up.
	first func(full bool) (uint32, error)
	// skipZero: the very first pair would make the zero ID, so that
	// unit 0 begins at 1.
	skipZero bool
	// ticks: a step back toggles a bit instead of waiting.
	ticks   bool
	clock   *clock
	maxWait time.Duration

	// Unit, number and toggle change together, or they would repeat.
	mu      sync.Mutex
	started bool   // something was minted
	unit    int64  // the unit last minted in; before that, the start mark
	next    uint32 // the number that is next there; max+1 when it is used up
	tick    bool   // the tick-tock bit
	safe    int64  // the last unit in which the other tick-tock bit was used
}

// A slot is a unit with a run of sequence numbers that begins at seq.
type slot struct {
	unit int64
	seq  uint32
	tick bool
}

// init takes the options and the start mark over.
func (s *sequencer) init(o Options) error {
	s.maxWait = o.MaxWait
	if s.maxWait == 0 {
		s.maxWait = defaultMaxWait
	}
	s.clock = o.clock
	if s.clock == nil {
		now := o.Clock
		if now == nil {
			now = time.Now
		}
		s.clock = systemClock(now)
	}
	// The unit before the first, or that of the mark, counts as used up, and
	// no toggle leads back behind it.
	s.unit = -1
	if !o.NotBefore.IsZero() && unixMilli(o.NotBefore) >= s.line.epoch {
		mark, err := s.line.unit(o.NotBefore)
		if err != nil {
			return fmt.Errorf("NotBefore: %w", err)
		}
		s.unit = mark
	}
	s.safe = s.unit
	s.next = s.max + 1
	return nil
}

// A wait is how a call that can't have a slot at once passes the time.
type wait struct {
	begun  int64         // the unit in which the call began; -1 before it looked
	waited bool          // it has slept since
	left   time.Duration // how long it may yet, for the slot it wants now
}

// reserve gives a slot of 1 to n numbers, and how many they are. It waits no
// longer than maxWait.
func (s *sequencer) reserve(ctx context.Context, w *wait, n int) (slot, int, error) {
	w.left = s.maxWait
	for {
		if err := ctx.Err(); err != nil {
			return slot{}, 0, err
		}
		got, count, b, err := s.take(w, n)
		if count > 0 || err != nil {
			return got, count, err
		}
		if w.left <= 0 {
			return slot{}, 0, b.err(s)
		}
		before := s.clock.ticks()
		if err := s.clock.sleep(ctx, min(b.pause, w.left)); err != nil {
			return slot{}, 0, err
		}
		w.waited = true
		w.left -= s.clock.ticks() - before
	}
}

// A block is why there was no slot.
type block struct {
	now, unit int64
	full      bool // the clock is at the unit, whose numbers are used up
	pause     time.Duration
}

func (b block) err(s *sequencer) error {
	if b.full {
		return fmt.Errorf("idtype: expected the clock to pass %s within %v, whose %d sequence numbers of %s are used up, got %s: %w",
			stamp(s.line.time(b.unit)), max(s.maxWait, 0), s.max-s.min+1, s.line.format, stamp(s.line.time(b.now)), ErrSequenceExhausted)
	}
	return fmt.Errorf("idtype: expected the clock to catch up within %v with %s, up to which %s may have minted, got %s: check the system's time: %w",
		max(s.maxWait, 0), stamp(s.line.time(b.unit)), s.line.format, stamp(s.line.time(b.now)), ErrClockBackwards)
}

// take gives a slot if there is one now.
func (s *sequencer) take(w *wait, n int) (got slot, count int, b block, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Read under the lock: a reading that waited for it would look like a
	// clock that went back.
	now, err := s.line.unit(s.clock.now())
	if err != nil {
		return slot{}, 0, block{}, err
	}
	if w.begun < 0 {
		w.begun = now
	}
	switch {
	case now > s.unit:
		open := now
		if w.waited {
			// What passed during the call may be used: it lies after the last
			// ID and within the call.
			open = min(max(s.unit+1, w.begun), now)
		}
		err = s.open(open)
	case now == s.unit:
	case s.ticks && now > s.safe:
		behind := s.unit
		if err = s.open(now); err == nil {
			s.safe, s.tick = behind, !s.tick
		}
	default:
		return slot{}, 0, s.behind(now), nil
	}
	if err != nil {
		return slot{}, 0, block{}, err
	}
	if s.next > s.max {
		if !s.started {
			return slot{}, 0, s.behind(now), nil
		}
		return slot{}, 0, block{now, s.unit, true, fullPause}, nil
	}
	count = min(n, int(s.max-s.next)+1)
	got = slot{s.unit, s.next, s.tick}
	s.next += uint32(count)
	s.started = true
	return got, count, block{}, nil
}

// behind is the block of a clock that has to get past a unit first.
func (s *sequencer) behind(now int64) block {
	until := s.unit
	if s.ticks {
		until = min(s.unit, s.safe+1)
	}
	gap := time.Duration(min(max(until-now, 1)*s.line.step, behindPause.Milliseconds())) * time.Millisecond
	return block{now, until, false, gap}
}

// open begins a unit.
func (s *sequencer) open(unit int64) error {
	next := s.min
	if s.first != nil {
		var err error
		if next, err = s.first(s.started && s.next > s.max); err != nil {
			return err
		}
	}
	if unit == 0 && s.skipZero {
		next = max(next, 1)
	}
	s.unit, s.next = unit, next
	return nil
}

// one gives a slot of a single number.
func (s *sequencer) one() (slot, error) {
	w := wait{begun: -1}
	got, _, err := s.reserve(context.Background(), &w, 1)
	return got, err
}

// fill gives dst the IDs that compose makes of consecutive slots.
func fill[T any](ctx context.Context, s *sequencer, dst []T, compose func(slot) (T, error)) (n int, err error) {
	w := wait{begun: -1}
	for n < len(dst) {
		got, count, err := s.reserve(ctx, &w, len(dst)-n)
		if err != nil {
			return n, err
		}
		for range count {
			if dst[n], err = compose(got); err != nil {
				return n, err
			}
			got.seq++
			n++
		}
	}
	return n, nil
}
