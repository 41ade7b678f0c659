package idtype

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// A sequencer hands out (unit, sequence) pairs, each once: it is what all
// generators have in common.
//
// What is next is one word, since unit, tick-tock bit and number have to change
// together, or they would repeat:
//
//	 63                                  shift                               0
//	+------------------------------------+------------------------------------+
//	| unit, then the tick-tock bit       | the number that is next            |
//	| if the format has one              |                                    |
//	+------------------------------------+------------------------------------+
//
// While a unit lasts, a call adds 1 to the word, and what was there before is
// its own, if the number isn't past the last. All else is done under a lock: a
// new unit, a clock that stepped back, calls that have to wait. The number has
// more bits than it needs, so that calls which come too late, and are bound to
// find their number past the last, don't count up the unit; whoever finds the
// unit full closes the fast path.
//
// How long a unit lasts is told by the monotonic clock, which takes half the
// time to read. It is anchored to the wall clock in each unit anew. That is
// safe: no pair can repeat, whatever the clocks say, since the word only
// changes to what was never there. A step of the wall shows at the next unit,
// and until then IDs are off by less than a unit.
type sequencer struct {
	line     timeline
	min, max uint32 // the sequence numbers of a unit
	// first gives the number with which a unit begins, min to max, given the
	// range of the numbers that the one before used. Nil: min.
	first func(used numbers) (uint32, error)
	// skipZero: the very first pair would make the zero ID, so that
	// unit 0 begins at 1.
	skipZero bool
	// ticks: a step back toggles a bit instead of waiting.
	ticks   bool
	shift   int
	mask    uint64
	maxWait time.Duration
	spin    time.Duration // the longest pause that isn't slept
	length  time.Duration // of a unit
	lease   Lease         // nil: none
	clock   clock

	// The fast path is open until the monotonic clock reaches open: the word has
	// the unit that the clock shows, the unit has numbers, and no call waits. If
	// open is more than a unit ahead, it was set in another bubble of
	// testing/synctest, and the fast path is closed. The unit's time, in Unix
	// milliseconds, is for the lease.
	open  atomic.Int64
	milli atomic.Int64
	_     cacheLine
	word  atomic.Uint64
	_     cacheLine

	mu      sync.Mutex
	origin  int64         // the unit first minted in; -1: nothing was minted yet
	mark    int64         // the start mark
	unit    int64         // the unit last minted in; before that, the start mark
	begin   uint32        // the number with which that unit began
	tick    bool          // the tick-tock bit
	drifts  uint32        // how often it changed
	safe    int64         // the last unit in which the other tick-tock bit was used
	seen    int64         // the unit that the clock showed when it was last read
	wall    time.Time     // the wall clock then
	reading time.Duration // the monotonic clock then
	full    bool          // the unit was found to be full
	queue   queue
	stall   stall
	stats   GeneratorStats // but for what was minted in the present unit
}

// A cacheLine keeps what all calls write from what they only read. Some
// processors fetch two lines at a time.
type cacheLine [128]byte

// closed is when the fast path closed: before all time.
const closed = 0

// minRoom is how many goroutines may come too late for a unit before they would
// count it up. Each does so once, and then has to take the lock: it would need a
// million of them, all in the time in which one closes the fast path. Layouts
// that leave less room don't use it.
const minRoom = 1 << 20

// A slot is a run of numbers in a unit, which begins at seq. The head is the
// unit with, in a format that has one, the tick-tock bit below it.
type slot struct {
	head uint64
	seq  uint32
}

// numbers is a range of sequence numbers, without its end. Full: none is left
// after them, and the unit that begins is the next one.
type numbers struct {
	begin, end uint32
	full       bool
}

const (
	// defaultMaxWait is Options.MaxWait's.
	defaultMaxWait = time.Second
	// longPause is how long a call sleeps at the most before it looks again
	// whether a clock that is behind was set right, or a lease renewed.
	longPause = 10 * time.Millisecond
)

// init takes the options over, and counts what came up to their start marks as
// used. It refuses a clock that shows a time outside the format's: the layout has
// expired, or its epoch is yet to come.
func (s *sequencer) init(o Options) error {
	s.maxWait = o.MaxWait
	if s.maxWait == 0 {
		s.maxWait = defaultMaxWait
	}
	s.clock = systemClock(o.Clock)
	if o.clock != nil {
		s.clock = *o.clock
	}
	wall, _ := s.clock.read()
	if _, err := s.line.unit(wall); err != nil {
		return err
	}
	s.spin = spinBelow(s.capacity())
	s.length = time.Duration(s.line.step) * time.Millisecond
	s.shift = bits.LeadingZeros64(uint64(s.line.last))
	if s.ticks {
		s.shift--
	}
	s.mask = 1<<s.shift - 1
	if s.mask-uint64(s.max) < minRoom {
		s.clock.anchored = false
	}
	s.origin, s.mark, s.safe, s.seen = -1, -1, -1, -1
	s.resume(-1, s.max+1)
	if err := s.notBefore(o.NotBefore, "NotBefore"); err != nil {
		return err
	}
	if s.lease = o.Lease; s.lease == nil {
		return nil
	}
	return s.notBefore(time.UnixMilli(s.lease.After()), "a lease that begins")
}

// attach tells the lease, if it wants to know, of the generator. The layout is in
// words.
func (s *sequencer) attach(layout string) error {
	if l, ok := s.lease.(AttachableLease); ok {
		return l.Attach(layout, s.minted)
	}
	return nil
}

// notBefore leaves only the units after a start mark. A mark before the epoch,
// as the zero Time is, is none.
func (s *sequencer) notBefore(mark time.Time, what string) error {
	unit, outside := s.line.place(mark)
	switch {
	case outside == ErrTimeExhausted:
		return &limitError{fmt.Sprintf("idtype: expected %s before the end of %s, %s, got %s: no ID is left: %v",
			what, s.line.format, stamp(s.line.end()), stamp(mark), outside), outside}
	case outside == nil:
		s.useUp(unit)
	}
	return nil
}

// useUp counts the units up to this one as used up, and lets no toggle lead
// back behind it.
func (s *sequencer) useUp(unit int64) {
	s.safe = max(s.safe, unit)
	if unit > s.unit {
		s.mark = unit
		s.resume(unit, s.max+1)
	}
}

// resume goes on in a unit, with this number.
func (s *sequencer) resume(unit int64, next uint32) {
	s.unit, s.begin = unit, next
	s.word.Store(s.head()<<s.shift | uint64(next))
}

// capacity is how many numbers a unit has.
func (s *sequencer) capacity() int64 { return int64(s.max-s.min) + 1 }

// head is the upper part of the word.
func (s *sequencer) head() uint64 {
	h := uint64(s.unit)
	if s.ticks {
		h <<= 1
		if s.tick {
			h |= 1
		}
	}
	return h
}

// split takes a word apart.
func (s *sequencer) split(word uint64) slot { return slot{word >> s.shift, uint32(word & s.mask)} }

// one gives a slot of a single number.
func (s *sequencer) one() (slot, error) {
	if got, ok := s.quick(); ok {
		return got, nil
	}
	c := call{begun: -1}
	got, _, err := s.reserve(context.Background(), &c, 1)
	return got, err
}

// quick is one for as long as a unit lasts.
func (s *sequencer) quick() (slot, bool) {
	open := s.open.Load()
	if open == closed {
		return slot{}, false
	}
	// Unsigned, a left of 0 or less is too long as well.
	left := open - int64(s.clock.ticks())
	if uint64(left-1) >= uint64(s.length) || s.lease != nil && s.lease.Until() < s.milli.Load() {
		return slot{}, false
	}
	// By now the word may be of a later unit. Then a call that came after this
	// one has found that the clock and the lease allow it.
	got := s.split(s.word.Add(1) - 1)
	return got, got.seq <= s.max
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
	s.mu.Lock()
	defer s.mu.Unlock()
	// Read under the lock: a reading that waited for it would look like a
	// clock that went back.
	now, err := s.now()
	if err != nil {
		return slot{}, 0, err
	}
	defer s.settle()
	if c.begun < 0 {
		c.begun = max(now, 0) // before the epoch nothing passes that it could use
	}
	// Those that wait already come first, or the patient would starve.
	if s.serve(now); s.queue.head == nil {
		got, count, b, err := s.take(c, n, n, now)
		switch {
		case count > 0 || err != nil:
			return got, count, err
		case s.maxWait < 0 || b.least > s.maxWait:
			return slot{}, 0, s.failure(b)
		}
		s.queue.blocked = b
	}
	return s.wait(ctx, c, n)
}

// now is the clock's unit. A clock that fell from the format's time to before
// its epoch is one that went back.
func (s *sequencer) now() (int64, error) {
	wall, reading := s.clock.read()
	now, outside := s.line.place(wall)
	switch {
	case outside == nil:
	case outside == ErrBeforeEpoch && s.unit >= 0:
		now = -1
	default:
		return 0, s.line.outside(wall, outside)
	}
	if now < s.seen {
		s.stats.ClockRegressions++
	}
	s.seen, s.wall, s.reading = now, wall, reading
	return now, nil
}

// take gives a slot, if there is one now, for a call that wants n numbers of
// all that are wanted; count is 0 if there is none.
func (s *sequencer) take(c *call, n, wanted int, now int64) (got slot, count int, b block, err error) {
	if b, covered := s.leased(now); b.lost() {
		return slot{}, 0, block{}, s.failure(b)
	} else if !covered {
		return slot{}, 0, b, nil
	}
	if now < s.unit {
		if !s.ticks || now <= s.safe {
			return slot{}, 0, s.behind(), nil
		}
		from := s.unit
		if err := s.toUnit(now, !s.tick); err != nil {
			return slot{}, 0, block{}, err
		}
		s.safe = from
		s.drifts++
		s.stats.TickTocks++
	}
	unit := now
	if c.waited {
		// What passed during a call that waited may be used: it lies after the
		// last ID and within the call. No more of it than it takes.
		passed := int64(wanted-1) / s.capacity()
		unit = min(max(now-passed, c.begun, s.unit), now)
	}
	for ; unit <= now; unit = s.unit + 1 {
		if unit > s.unit {
			if err := s.toUnit(unit, s.tick); err != nil {
				return slot{}, 0, block{}, err
			}
		}
		if got, count = s.grab(n); count > 0 {
			if s.origin < 0 {
				s.origin = unit
			}
			return got, count, block{}, nil
		}
	}
	if s.unit == s.mark {
		return slot{}, 0, s.behind(), nil
	}
	if !s.full {
		s.full = true
		s.stats.SequenceOverflows++
	}
	return slot{}, 0, block{reason: reasonFull, unit: s.unit, pause: s.left()}, nil
}

// grab takes up to n numbers of the unit.
func (s *sequencer) grab(n int) (slot, int) {
	for {
		word := s.word.Load()
		next := word & s.mask
		if next > uint64(s.max) {
			return slot{}, 0
		}
		count := min(uint64(n), uint64(s.max)-next+1)
		// The fast path may have taken some meanwhile.
		if s.word.CompareAndSwap(word, word+count) {
			return s.split(word), int(count)
		}
	}
}

// used gives the numbers of the unit that were given away.
func (s *sequencer) used(word uint64) numbers {
	return numbers{begin: s.begin, end: uint32(min(word&s.mask, uint64(s.max)+1))}
}

// toUnit begins a unit.
func (s *sequencer) toUnit(unit int64, tick bool) error {
	first := s.min
	if s.first != nil {
		used := s.used(s.word.Load())
		used.full = s.origin >= 0 && used.end > s.max && unit == s.unit+1
		var err error
		if first, err = s.first(used); err != nil {
			return err
		}
	}
	first = s.notZero(unit, first)
	s.unit, s.tick = unit, tick
	used := s.used(s.word.Swap(s.head()<<s.shift | uint64(first)))
	s.stats.Minted += uint64(used.end - used.begin)
	s.begin, s.full = first, false
	return nil
}

// notZero is the number with which to go on in a unit, so that it doesn't make
// the zero ID.
func (s *sequencer) notZero(unit int64, next uint32) uint32 {
	if unit == 0 && s.skipZero {
		return max(next, 1)
	}
	return next
}

// left is how long the clock's unit still lasts.
func (s *sequencer) left() time.Duration { return s.until(s.seen + 1) }

// until is how long the clock takes to a unit, at its normal rate.
func (s *sequencer) until(unit int64) time.Duration {
	// It may be more milliseconds than a Duration holds.
	gap := min(s.line.milli(unit)-unixMilli(s.wall), math.MaxInt64/int64(time.Millisecond))
	return time.Duration(gap)*time.Millisecond - time.Duration(s.wall.Nanosecond())%time.Millisecond
}

// settle opens or closes the fast path, as it is to be for what comes next.
func (s *sequencer) settle() {
	s.notify()
	if !s.clock.anchored {
		return
	}
	if s.queue.head != nil || s.unit != s.seen || s.origin < 0 || s.word.Load()&s.mask > uint64(s.max) {
		s.open.Store(closed)
		return
	}
	s.milli.Store(s.line.milli(s.unit))
	s.open.Store(int64(s.reading + s.left()))
}

// fill gives dst the IDs that compose makes of runs of numbers.
func fill[T any](ctx context.Context, s *sequencer, dst []T, compose func([]T, slot)) (n int, err error) {
	// One ID is minted as Next does: that is what a request with a context takes.
	if len(dst) == 1 && ctx.Err() == nil {
		if got, ok := s.quick(); ok {
			compose(dst, got)
			return 1, nil
		}
	}
	c := call{begun: -1, patient: true}
	for n < len(dst) {
		got, count, err := s.reserve(ctx, &c, len(dst)-n)
		if err != nil {
			return n, err
		}
		compose(dst[n:n+count], got)
		n += count
	}
	return n, nil
}
