package idtype

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// A sequencer hands out each (unit, number) pair once. All generators use one.
//
// The state is one word, because unit, tick-tock bit and number must change together.
// Otherwise pairs could repeat.
//
//	 63                                  shift                               0
//	+------------------------------------+------------------------------------+
//	| unit, then the tick-tock bit       | next number                        |
//	| if the format has one              |                                    |
//	+------------------------------------+------------------------------------+
//
// Fast path: within a unit, a call adds 1 to the word. The previous value is its pair,
// unless the number is past the last one. Everything else happens under a lock: new units,
// clocks that stepped back, calls that wait. The number field is wider than needed, so
// that concurrent calls that find the unit full don't carry into the unit field. The
// first call that finds the unit full closes the fast path.
//
// The monotonic clock determines the end of a unit, because reading it takes half as long
// as reading the wall clock. Each unit anchors it to the wall clock again. Even if the
// clocks are wrong, no pair repeats, because the word never returns to an earlier value. A
// step of the wall clock takes effect at the next unit; until then the times of IDs are
// wrong, for less than a unit.
type sequencer struct {
	setup

	// The fast path is open until the monotonic clock reaches open. While it is open, the
	// word has the clock's unit, the unit has unused numbers, and no call waits. If open
	// is more than a unit ahead, another bubble of testing/synctest set it, and the fast
	// path is closed. milli is the unit's time in Unix milliseconds, for the lease.
	open  atomic.Int64
	milli atomic.Int64
	_     cacheLine
	word  atomic.Uint64
	_     cacheLine

	mu      sync.Mutex
	origin  int64         // the first unit with an ID; -1: no ID exists yet
	bound   int64         // the start bound: only later units have IDs
	unit    int64         // the unit of the last ID; before the first ID, the start bound
	begin   uint32        // the first number used of that unit
	tick    bool          // the tick-tock bit
	drifts  uint32        // the number of its changes
	safe    int64         // the last unit with IDs of the other tick-tock bit
	past    backfilled    // the next pair for backfill
	seen    int64         // the clock's unit at the last reading
	wall    time.Time     // the wall clock at the last reading
	reading time.Duration // the monotonic clock at the last reading
	full    bool          // a call found the unit full
	blocked block         // the reason why takeNow last got no numbers
	queue   queue
	stalls  []*stall       // of the generators with waiting calls and an overflow channel
	stats   GeneratorStats // Minted excludes the current unit
}

// A setup holds what newSequencer sets and nothing changes.
type setup struct {
	spec
	shift  int           // of the unit and the tick-tock bit in the word
	mask   uint64        // of the number in the word
	spin   time.Duration // the longest pause that spins
	length time.Duration // the length of a unit
	lease  Lease         // nil: none
	clock  clock
}

// A spec holds the parameters that a sequencer takes from its format and from the config
// of its generator.
type spec struct {
	sequence sequenceID
	layout   string // for the lease's Attach, if not that of sequence
	line     timeline
	low      int64  // the node number's bits below the time, if layouts can divide these bits
	min, max uint32 // the sequence numbers of a unit
	// random chooses the first number of a unit. If it is nil, units begin at min.
	random *randomBits
	// toggles means that a step back of the clock toggles the tick-tock bit instead of waiting.
	toggles bool
}

// bits returns the first and the last value that the bits below the time can have in IDs of
// the same number.
func (p *spec) bits() (first, last int64) {
	return p.low + int64(p.min), p.low + int64(p.max)
}

// A cacheLine separates the word that all calls write from fields that they only read.
// Some processors fetch two lines of 64 bytes at a time.
type cacheLine [128]byte

// closed is the value of open while the fast path is closed.
const closed = 0

// minRoom is the minimum number of concurrent calls that can find a unit full before the
// number field would carry into the unit field. Each call adds 1 at most once, and then
// takes the lock. A carry would need a million such calls before one of them closes the
// fast path. Layouts with less room don't use the fast path.
const minRoom = 1 << 20

// A slot is a run of numbers in a unit, starting with seq. The head is the unit, followed
// by the tick-tock bit if the format has one.
type slot struct {
	head uint64
	seq  uint32
}

// numbers is a half-open range of sequence numbers. full means that the range ends with the
// unit's last number and that the new unit directly follows.
type numbers struct {
	begin, end uint32
	full       bool
}

const (
	// defaultMaxWait is the default of Options.MaxWait.
	defaultMaxWait = time.Second
	// longPause is the longest sleep of a call before it checks again whether a clock
	// was set right or a lease renewed.
	longPause = 10 * time.Millisecond
	// unending is the duration of a permanent block. No call waits that long.
	unending = math.MaxInt64
)

// newSequencer returns a sequencer that has used no unit.
func newSequencer(p spec, c clock, l Lease) *sequencer {
	s := &sequencer{setup: setup{spec: p, clock: c, lease: l}}
	s.spin = spinBelow(s.capacity())
	s.length = time.Duration(s.line.step) * time.Millisecond
	s.shift = bits.LeadingZeros64(uint64(s.line.last))
	if s.toggles {
		s.shift--
	}
	s.mask = 1<<s.shift - 1
	if s.mask-uint64(s.max) < minRoom {
		s.clock.anchored = false
	}
	s.origin, s.bound, s.safe, s.seen = -1, -1, -1, -1
	s.continueAt(-1, s.max+1)
	s.past = backfilled{0, s.min}
	return s
}

// startAfter makes a unit a start bound: from now on, only later units have IDs. For -1 it
// does nothing.
func (s *sequencer) startAfter(unit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useUp(unit)
	if s.past.unit <= unit {
		s.past = backfilled{unit + 1, s.min}
	}
}

// useUp marks all units up to this one as used, for both values of the tick-tock bit.
func (s *sequencer) useUp(unit int64) {
	s.safe = max(s.safe, unit)
	if unit >= s.unit {
		s.bound = unit
		s.continueAt(unit, s.max+1)
	}
}

// continueAt sets the unit and the next number. The fast path may take numbers of the
// earlier unit concurrently.
func (s *sequencer) continueAt(unit int64, next uint32) {
	s.unit = unit
	used := s.used(s.word.Swap(s.head()<<s.shift | uint64(next)))
	s.stats.Minted += uint64(used.end - used.begin)
	s.begin = next
}

// capacity returns the number of sequence numbers per unit.
func (s *sequencer) capacity() int64 { return int64(s.max-s.min) + 1 }

// head returns the upper part of the word.
func (s *sequencer) head() uint64 {
	h := uint64(s.unit)
	if s.toggles {
		h <<= 1
		if s.tick {
			h |= 1
		}
	}
	return h
}

// split returns the parts of a word.
func (s *sequencer) split(word uint64) slot { return slot{word >> s.shift, uint32(word & s.mask)} }

// takeFast takes a single number if the fast path is open and the unit has one left.
func (s *sequencer) takeFast() (slot, bool) {
	open := s.open.Load()
	if open == closed {
		return slot{}, false
	}
	// As unsigned, left-1 is also too large if left is 0 or less.
	left := open - int64(s.clock.elapsed())
	if uint64(left-1) >= uint64(s.length) || s.lease != nil && s.lease.Until() < s.milli.Load() {
		return slot{}, false
	}
	// The word may already have a later unit. In that case another call has checked
	// that the clock and the lease allow that unit.
	got := s.split(s.word.Add(1) - 1)
	return got, got.seq <= s.max
}

// A call is the state of a call of Next or Fill.
type call struct {
	by     *handle // of the generator
	begun  int64   // the unit in which the call began; -1 before it has read the clock
	waited bool    // the call has waited
	// patient means that MaxWait limits only the time in which no call gets numbers, not
	// the time behind other calls. Fill is patient.
	patient bool
}

// take takes up to n numbers of a unit, and returns their count. It waits until there is at
// least one, or fails.
func (s *sequencer) take(ctx context.Context, c *call, n int) (slot, int, error) {
	if err := ctx.Err(); err != nil {
		return slot{}, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The clock is read under the lock, because a reading from before the lock could look
	// like a step back.
	now, err := s.now()
	if err != nil {
		return slot{}, 0, err
	}
	defer s.settle()
	if c.begun < 0 {
		c.begun = max(now, 0) // the units before the epoch have no numbers
	}
	// Waiting calls come first, because otherwise patient calls would starve.
	if s.serve(now); s.queue.head == nil {
		got, count, err := s.takeNow(c, n, n, now)
		if count > 0 || err != nil {
			return got, count, err
		}
	}
	if maxWait := c.by.maxWait; maxWait < 0 || s.blocked.least > maxWait {
		return slot{}, 0, s.failure(s.blocked, maxWait)
	}
	return s.wait(ctx, c, n)
}

// unitOf returns the unit of a reading of the clock. It returns -1 if the clock stepped back
// to before the epoch.
func (s *sequencer) unitOf(wall time.Time) (int64, error) {
	now, outside := s.line.place(wall)
	switch {
	case outside == nil:
		return now, nil
	case outside == ErrBeforeEpoch && s.unit >= 0:
		return -1, nil
	}
	return 0, s.line.outside(wall, outside)
}

// now reads the clock and returns its unit.
func (s *sequencer) now() (int64, error) {
	wall, reading := s.clock.read()
	now, err := s.unitOf(wall)
	if err != nil {
		return 0, err
	}
	if now < s.seen {
		s.stats.ClockRegressions++
	}
	s.seen, s.wall, s.reading = now, wall, reading
	return now, nil
}

// takeNow takes up to n numbers of a unit for a call, without waiting. wanted is the sum of
// numbers that all calls in the queue want. If count is 0 without an error, s.blocked is
// the reason.
func (s *sequencer) takeNow(c *call, n, wanted int, now int64) (got slot, count int, err error) {
	if b, barred := s.barred(now); barred {
		s.blocked = b
		return slot{}, 0, nil
	}
	if now < s.unit {
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
	s.blocked = s.usedUp()
	return slot{}, 0, nil
}

// barred reports whether the lease or the clock allows no number at all in the clock's unit.
// b is the reason.
func (s *sequencer) barred(now int64) (b block, barred bool) {
	if b, covered := s.leased(now); !covered {
		return b, true
	}
	if now < s.unit && (!s.toggles || now <= s.safe) || now == s.unit && now == s.bound {
		return s.behind(), true
	}
	return block{}, false
}

// firstUnit returns the first unit from which a call may take numbers. A call that waited
// may use the units that passed during the wait, because they are after the last ID and
// within the duration of the call. It uses only as many of them as the wanted numbers need.
func (s *sequencer) firstUnit(c *call, wanted int, now int64) int64 {
	if !c.waited {
		return now
	}
	passed := int64(wanted-1) / s.capacity()
	return min(max(now-passed, c.begun, s.unit), now)
}

// takeFromUnit takes up to n numbers of the current unit.
func (s *sequencer) takeFromUnit(n int) (slot, int) {
	for {
		word := s.word.Load()
		next := word & s.mask
		if next > uint64(s.max) {
			return slot{}, 0
		}
		count := min(uint64(n), uint64(s.max)-next+1)
		// The fast path may have taken numbers concurrently.
		if s.word.CompareAndSwap(word, word+count) {
			return s.split(word), int(count)
		}
	}
}

// used returns the used numbers of the current unit.
func (s *sequencer) used(word uint64) numbers {
	return numbers{begin: s.begin, end: uint32(min(word&s.mask, uint64(s.max)+1))}
}

// toUnit begins a unit.
func (s *sequencer) toUnit(unit int64, tick bool) error {
	first := s.min
	if s.random != nil {
		used := s.used(s.word.Load())
		used.full = s.unit != s.bound && used.end > s.max && unit == s.unit+1
		var err error
		if first, err = s.random.first(used); err != nil {
			return err
		}
	}
	s.tick, s.full = tick, false
	s.continueAt(unit, s.notZero(unit, first))
	return nil
}

// toggle begins an earlier unit, with the other tick-tock bit.
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

// notZero returns the first number from next on that doesn't make the zero ID. The zero ID
// is the pair (0, 0) of node 0.
func (s *sequencer) notZero(unit int64, next uint32) uint32 {
	if unit == 0 && s.sequence.node == 0 && s.low == 0 {
		return max(next, 1)
	}
	return next
}

// left returns the time until the end of the clock's unit.
func (s *sequencer) left() time.Duration { return s.until(s.seen + 1) }

// until returns the time until the start of a unit, if the clock runs at its normal rate.
func (s *sequencer) until(unit int64) time.Duration {
	// A Duration can't hold all gaps.
	gap := min(s.line.milli(unit)-unixMilli(s.wall), math.MaxInt64/int64(time.Millisecond))
	return time.Duration(gap)*time.Millisecond - time.Duration(s.wall.Nanosecond())%time.Millisecond
}

// settle opens or closes the fast path for the next calls.
func (s *sequencer) settle() {
	s.tellStalls()
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

// leased reports whether the generator has no lease or its lease covers a unit. If not, b
// is the reason.
func (s *sequencer) leased(unit int64) (b block, covered bool) {
	if s.lease == nil {
		return block{}, true
	}
	switch until := s.lease.Until(); {
	case until == math.MinInt64:
		return block{reason: reasonEnded, least: unending}, false
	case s.line.milli(unit) > until:
		return block{reason: reasonUnleased, unit: unit, until: until, pause: longPause}, false
	}
	return block{}, true
}

// minted returns the high-water mark for a lease's Attach. The mark also covers a
// concurrent call on the fast path that checked the lease before it ended: that call takes
// its number from the unit of the word.
func (s *sequencer) minted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.origin < 0 && s.stats.Minted == 0 {
		return math.MinInt64
	}
	// After a toggle, s.unit is earlier than the last unit before the toggle, s.safe.
	return s.line.milli(max(s.unit, s.safe))
}

// report returns the counters, including the IDs of the current unit.
func (h *handle) report() GeneratorStats {
	s := h.use().sequencer
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	used := s.used(s.word.Load())
	stats.Minted += uint64(used.end - used.begin)
	stats.OverflowTime = time.Duration(stats.SequenceOverflows) * s.length
	return stats
}

// ready returns the error of a call that begins now and that the clock or the lease makes
// fail. It changes nothing, so a step of the clock is counted by the next call.
func (h *handle) ready() error {
	s := h.use().sequencer
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func(wall time.Time) { s.wall = wall }(s.wall) // settle needs it together with s.reading
	s.wall, _ = s.clock.read()
	now, err := s.unitOf(s.wall)
	if err != nil {
		return err
	}
	b, barred := s.barred(now)
	// The end of a wait for a renewal is unknown, so a call that waits for one may fail.
	if !barred || b.reason != reasonUnleased && b.least <= h.maxWait {
		return nil
	}
	return s.failure(b, h.maxWait)
}

// remaining returns the time until the end of the format.
func (h *handle) remaining() time.Duration {
	s := h.use().sequencer
	s.mu.Lock()
	defer s.mu.Unlock()
	wall, _ := s.clock.read()
	return max(s.line.end().Add(time.Millisecond).Sub(wall), 0)
}
