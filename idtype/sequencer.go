package idtype

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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

	// Calls that have to wait queue for the turn, and whoever has it waits for
	// the clock. New calls queue too while there is a queue: else the patient
	// would starve.
	turn    chan struct{}
	waiting atomic.Int32

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
	// no toggle leads back behind it. A mark before the epoch, as the zero Time
	// is, is none.
	s.unit = -1
	switch mark, outside := s.line.place(o.NotBefore); outside {
	case nil:
		s.unit = mark
	case ErrTimeExhausted:
		return fmt.Errorf("NotBefore: %w", s.line.outside(o.NotBefore, outside))
	}
	s.safe = s.unit
	s.next = s.max + 1
	s.turn = make(chan struct{}, 1)
	return nil
}

// A call is what has to be known of a Next or a Fill while it goes on.
type call struct {
	begun  int64 // the unit in which it began; -1 before it looked at the clock
	waited bool  // it has waited since
	// patient: MaxWait is for a clock that stands still, not for the others in
	// the queue. A Fill takes as long as the format's rate demands.
	patient bool
}

// reserve gives a slot of 1 to n numbers, and how many they are.
func (s *sequencer) reserve(ctx context.Context, c *call, n int) (slot, int, error) {
	if err := ctx.Err(); err != nil {
		return slot{}, 0, err
	}
	got, count, b, err := s.take(c, n, false)
	switch {
	case count > 0 || err != nil:
		return got, count, err
	case s.maxWait < 0:
		return slot{}, 0, b.err(s)
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	return s.wait(ctx, c, n)
}

// wait is reserve for a call that has to wait.
func (s *sequencer) wait(ctx context.Context, c *call, n int) (slot, int, error) {
	c.waited = true
	began := s.clock.ticks()
	if err := s.queue(ctx, c); err != nil {
		return slot{}, 0, err
	}
	defer func() { <-s.turn }()
	if c.patient {
		began = s.clock.ticks()
	}
	for {
		got, count, b, err := s.take(c, n, true)
		if count > 0 || err != nil {
			return got, count, err
		}
		left := s.maxWait - (s.clock.ticks() - began)
		if left <= 0 {
			return slot{}, 0, b.err(s)
		}
		if err := s.clock.sleep(ctx, min(b.pause, left)); err != nil {
			return slot{}, 0, err
		}
	}
}

// queue waits for the turn.
func (s *sequencer) queue(ctx context.Context, c *call) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	// The others in the queue wait by the system's clock, whatever Clock is.
	timeout := time.NewTimer(s.maxWait)
	defer timeout.Stop()
	for at := s.at(); ; at = s.at() {
		select {
		case s.turn <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
		}
		if !c.patient || at == s.at() {
			return fmt.Errorf("idtype: expected a sequence number of %s within %v, got none behind the %d other calls that wait: mint with fewer goroutines, with Fill, or with more generators: %w",
				s.line.format, s.maxWait, s.waiting.Load()-1, ErrSequenceExhausted)
		}
		timeout.Reset(s.maxWait)
	}
}

// at is the unit last minted in.
func (s *sequencer) at() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unit
}

// A block is why there was no slot.
type block struct {
	now, unit int64
	full      bool // the clock is at the unit, whose numbers are used up
	marked    bool // nothing was minted: the unit is that of the start mark
	pause     time.Duration
}

func (b block) err(s *sequencer) error {
	unit, now, within := stamp(s.line.time(b.unit)), stamp(s.line.time(b.now)), max(s.maxWait, 0)
	switch {
	case b.full:
		return fmt.Errorf("idtype: expected the clock to pass %s within %v, whose %d sequence numbers of %s are used up, got %s: %w",
			unit, within, s.max-s.min+1, s.line.format, now, ErrSequenceExhausted)
	case b.marked:
		return fmt.Errorf("idtype: expected the clock to pass %s, the NotBefore of %s, within %v, got %s: check the system's time: %w",
			unit, s.line.format, within, now, ErrClockBackwards)
	}
	return fmt.Errorf("idtype: expected the clock to catch up with %s, up to which %s has minted, within %v, got %s: check the system's time: %w",
		unit, s.line.format, within, now, ErrClockBackwards)
}

// take gives a slot if there is one now, and the call is the first in the queue
// or there is none.
func (s *sequencer) take(c *call, n int, first bool) (got slot, count int, b block, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Read under the lock: a reading that waited for it would look like a
	// clock that went back.
	now, err := s.now()
	if err != nil {
		return slot{}, 0, block{}, err
	}
	if c.begun < 0 {
		c.begun = now
	}
	if !first && s.maxWait >= 0 && s.waiting.Load() > 0 {
		return slot{}, 0, block{}, nil
	}
	switch {
	case now > s.unit:
		// What passed during a call that waited may be used: it lies after the
		// last ID and within the call.
		switch passed := c.waited && s.unit >= c.begun; {
		case passed && s.next <= s.max:
		case passed:
			err = s.open(s.unit + 1)
		default:
			err = s.open(now)
		}
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
		return slot{}, 0, block{now: now, unit: s.unit, full: true, pause: fullPause}, nil
	}
	count = min(n, int(s.max-s.next)+1)
	got = slot{s.unit, s.next, s.tick}
	s.next += uint32(count)
	s.started = true
	return got, count, block{}, nil
}

// now is the clock's unit. A clock that fell from the format's time to before
// its epoch is one that went back.
func (s *sequencer) now() (int64, error) {
	t := s.clock.now()
	now, outside := s.line.place(t)
	switch {
	case outside == nil:
		return now, nil
	case outside == ErrBeforeEpoch && s.unit >= 0:
		return -1, nil
	}
	return 0, s.line.outside(t, outside)
}

// behind is the block of a clock that has to get past a unit first.
func (s *sequencer) behind(now int64) block {
	until := s.unit
	if s.ticks {
		until = min(s.unit, s.safe+1)
	}
	gap := time.Duration(min(max(until-now, 1)*s.line.step, behindPause.Milliseconds())) * time.Millisecond
	return block{now: now, unit: until, marked: !s.started, pause: gap}
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
	c := call{begun: -1}
	got, _, err := s.reserve(context.Background(), &c, 1)
	return got, err
}

// fill gives dst the IDs that compose makes of consecutive slots.
func fill[T any](ctx context.Context, s *sequencer, dst []T, compose func(slot) (T, error)) (n int, err error) {
	c := call{begun: -1, patient: true}
	for n < len(dst) {
		got, count, err := s.reserve(ctx, &c, len(dst)-n)
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
