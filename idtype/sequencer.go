package idtype

import (
	"cmp"
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
	spec
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
	bound   int64         // the start bound: the first ID is of a later unit
	unit    int64         // the unit last minted in; before that, the start bound
	begin   uint32        // the number with which that unit began
	tick    bool          // the tick-tock bit
	drifts  uint32        // how often it changed
	safe    int64         // the last unit in which the other tick-tock bit was used
	past    backfilled    // where backfill goes on
	seen    int64         // the unit that the clock showed when it was last read
	wall    time.Time     // the wall clock then
	reading time.Duration // the monotonic clock then
	full    bool          // the unit was found to be full
	blocked block         // why takeNow last got no numbers
	queue   queue
	stall   stall
	stats   GeneratorStats // but for what was minted in the present unit
}

// A spec describes a sequencer: what its format and its generator's config
// determine.
type spec struct {
	line     timeline
	min, max uint32 // the sequence numbers of a unit
	// first returns the number with which a unit begins, min to max, given the
	// range of the numbers that the one before used. Nil: min.
	first func(used numbers) (uint32, error)
	// skipZero: the very first pair would make the zero ID, so that
	// unit 0 begins at 1.
	skipZero bool
	// ticks: a step back toggles a bit instead of waiting.
	ticks    bool
	from     *SnoSnapshot       // where to go on; nil: nowhere
	overflow chan<- SnoOverflow // nil: none
	// claim takes the generator's node number, after everything that can fail except
	// the lease's Attach. Nil: there is nothing to take.
	claim  func() error
	layout string // for the lease's Attach
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
	// unending is the length of a block that has no end: longer than any call waits.
	unending = math.MaxInt64
)

// init makes the sequencer. It counts the units up to the start bounds as used. It
// refuses a clock that shows a time outside the format's: the layout has expired, or
// its epoch is yet to come.
func (s *sequencer) init(p spec, o Options) error {
	s.spec, s.lease = p, o.Lease
	s.maxWait = min(cmp.Or(o.MaxWait, defaultMaxWait), unending-1)
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
	s.origin, s.bound, s.safe, s.seen = -1, -1, -1, -1
	s.continueAt(-1, s.max+1)
	if err := s.startAfter(o.NotBefore, "NotBefore"); err != nil {
		return err
	}
	if s.lease != nil {
		if err := s.startAfter(time.UnixMilli(s.lease.After()), "Lease.After"); err != nil {
			return err
		}
	}
	s.past = backfilled{s.unit + 1, s.min}
	if s.from != nil {
		s.resume(s.from)
	}
	if s.claim != nil {
		if err := s.claim(); err != nil {
			return err
		}
	}
	if l, ok := s.lease.(attacher); ok {
		return l.Attach(s.layout, s.minted)
	}
	return nil
}

// startAfter makes t a start bound: the generator uses only later units. It ignores a time
// before the epoch, such as the zero Time. Errors call the bound by its name.
func (s *sequencer) startAfter(t time.Time, bound string) error {
	unit, outside := s.line.place(t)
	switch {
	case outside == ErrTimeExhausted:
		return &limitError{fmt.Sprintf("idtype: start %s generator after %s %s: want a time before the end of the format, %s: %v",
			s.line.format, bound, stamp(t), stamp(s.line.end()), outside), outside}
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
		s.bound = unit
		s.continueAt(unit, s.max+1)
	}
}

// continueAt goes on in a unit, with this number.
func (s *sequencer) continueAt(unit int64, next uint32) {
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

// takeOne takes a single number.
func (s *sequencer) takeOne() (slot, error) {
	if got, ok := s.takeFast(); ok {
		return got, nil
	}
	c := call{begun: -1}
	got, _, err := s.take(context.Background(), &c, 1)
	return got, err
}

// takeFast takes a single number if the fast path is open and the unit has one.
func (s *sequencer) takeFast() (slot, bool) {
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

// take takes up to n numbers of a unit, and returns how many it took. It waits while
// there are none.
func (s *sequencer) take(ctx context.Context, c *call, n int) (slot, int, error) {
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
		got, count, err := s.takeNow(c, n, n, now)
		switch {
		case count > 0 || err != nil:
			return got, count, err
		case s.maxWait < 0 || s.blocked.least > s.maxWait:
			return slot{}, 0, s.failure(s.blocked)
		}
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

// takeNow takes up to n numbers of a unit for a call, without waiting. The calls in the
// queue together want wanted numbers. If count is 0 without an error, s.blocked is the
// reason.
func (s *sequencer) takeNow(c *call, n, wanted int, now int64) (got slot, count int, err error) {
	if b, covered := s.leased(now); !covered {
		s.blocked = b
		return slot{}, 0, nil
	}
	if now < s.unit {
		if !s.ticks || now <= s.safe {
			s.blocked = s.behind()
			return slot{}, 0, nil
		}
		if err := s.toggle(now); err != nil {
			return slot{}, 0, err
		}
	}
	for unit := s.firstUnit(c, wanted, now); unit <= now; unit = s.unit + 1 {
		if unit > s.unit {
			if err := s.toUnit(unit, s.tick); err != nil {
				return slot{}, 0, err
			}
		}
		if got, count = s.takeFromUnit(n); count > 0 {
			if s.origin < 0 {
				s.origin = unit
			}
			return got, count, nil
		}
	}
	if s.unit == s.bound {
		s.blocked = s.behind()
	} else {
		s.blocked = s.usedUp()
	}
	return slot{}, 0, nil
}

// firstUnit returns the first unit of which a call may take numbers. A call that waited
// may use the units that passed meanwhile, because they lie after the last ID and within
// the call. It uses no more of them than the wanted numbers need.
func (s *sequencer) firstUnit(c *call, wanted int, now int64) int64 {
	if !c.waited {
		return now
	}
	passed := int64(wanted-1) / s.capacity()
	return min(max(now-passed, c.begun, s.unit), now)
}

// takeFromUnit takes up to n numbers of the unit.
func (s *sequencer) takeFromUnit(n int) (slot, int) {
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

// used returns the numbers of the unit that were given away.
func (s *sequencer) used(word uint64) numbers {
	return numbers{begin: s.begin, end: uint32(min(word&s.mask, uint64(s.max)+1))}
}

// toggle begins an earlier unit, in the other half of the IDs.
func (s *sequencer) toggle(unit int64) error {
	from := s.unit
	if err := s.toUnit(unit, !s.tick); err != nil {
		return err
	}
	s.safe = from
	s.drifts++
	s.stats.TickTocks++
	return nil
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
	if s.overflow != nil {
		s.tellOverflow()
	}
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
		if got, ok := s.takeFast(); ok {
			compose(dst, got)
			return 1, nil
		}
	}
	c := call{begun: -1, patient: true}
	for n < len(dst) {
		got, count, err := s.take(ctx, &c, len(dst)-n)
		if err != nil {
			return n, err
		}
		compose(dst[n:n+count], got)
		n += count
	}
	return n, nil
}

// series fills dst with the IDs from id on, step apart.
func series[T ~int64](dst []T, id, step T) {
	if len(dst) == 1 {
		dst[0] = id
		return
	}
	longSeries(dst, id, step)
}

// longSeries is not inlined, because its loop takes 1.7 times as long if it
// crosses a cache line. At the beginning of a function, which is aligned, it
// crosses none.
//
//go:noinline
func longSeries[T ~int64](dst []T, id, step T) {
	for i := range dst {
		dst[i] = id
		id += step
	}
}

// snapshot returns what resume needs to go on where this sequencer stopped.
func (s *sequencer) snapshot() SnoSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used(s.word.Load())
	now, err := s.now()
	if err != nil {
		// A clock outside the format's time says nothing.
		now = s.seen
	}
	return SnoSnapshot{
		SequenceMin: uint16(s.min), SequenceMax: uint16(s.max), Sequence: uint16(used.end - 1),
		Now: now, WallHi: s.unit, WallSafe: s.safe, Drifts: s.drifts,
		First: s.origin, AtUnit: s.past.unit, AtNext: s.past.next,
	}
}

// resume goes on where a snapshot was taken, unless the start bound lies later.
func (s *sequencer) resume(p *SnoSnapshot) {
	s.drifts, s.tick = p.Drifts, p.Drifts&1 == 1
	s.origin, s.seen = p.First, p.Now
	s.safe = max(s.safe, p.WallSafe)
	switch {
	case p.First < 0:
		s.useUp(p.WallHi) // a start bound too
	case p.WallHi > s.unit:
		s.continueAt(p.WallHi, uint32(p.Sequence)+1)
	}
	if p.AtUnit >= s.past.unit {
		s.past = backfilled{p.AtUnit, max(p.AtNext, s.min)}
	}
}

// A backfilled is where backfill goes on.
type backfilled struct {
	unit int64
	next uint32
}

// backfill takes a number of the unit of t for [SnoGenerator.At]. The unit must have
// passed.
func (s *sequencer) backfill(t time.Time) (slot, error) {
	unit, err := s.line.unit(t)
	if err != nil {
		return slot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	if err != nil {
		return slot{}, err
	}
	end, limit := now, "the current time"
	if s.origin >= 0 {
		end, limit = s.origin, "the first ID of Next and Fill"
	}
	switch {
	case unit >= end:
		return slot{}, &limitError{fmt.Sprintf("idtype: create %s at %s: want a time before %s, %s; call At before Next and Fill, or use a generator with another partition",
			s.line.format, stamp(t), stamp(s.line.time(end)), limit), ErrRange}
	case unit < s.past.unit:
		return slot{}, &limitError{fmt.Sprintf("idtype: create %s at %s: want a time from %s, which the last call of At, NotBefore or the lease determines; sort the rows by time, and use a generator without NotBefore and Lease",
			s.line.format, stamp(t), stamp(s.line.time(s.past.unit))), ErrRange}
	}
	if b, covered := s.leased(unit); !covered {
		return slot{}, s.failure(b)
	}
	next := s.past.next
	if unit > s.past.unit {
		next = s.min
	}
	next = s.notZero(unit, next)
	if next > s.max {
		return slot{}, fmt.Errorf("idtype: create %s at %s: all %d sequence numbers of the 4 ms from %s are used; use a time 4 ms later, or another generator: %w",
			s.line.format, stamp(t), s.capacity(), stamp(s.line.time(unit)), ErrSequenceExhausted)
	}
	s.past = backfilled{unit, next + 1}
	s.stats.Minted++
	if s.origin < 0 {
		// What comes live comes later, whatever the clock does.
		s.useUp(unit)
	}
	return slot{uint64(unit) << 1, next}, nil
}
