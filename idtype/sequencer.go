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
	spec
	shift  int
	mask   uint64
	spin   time.Duration // the longest pause that spins
	length time.Duration // the length of a unit
	lease  Lease         // nil: none
	clock  clock

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

// A spec holds the parameters that a sequencer takes from its format and from the config
// of its generator.
type spec struct {
	number   number
	line     timeline
	min, max uint32 // the sequence numbers of a unit
	// random chooses the first number of a unit. If it is nil, units begin at min.
	random *randomBits
	// ticks means that a step back of the clock toggles a bit instead of waiting.
	ticks bool
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
	s := &sequencer{spec: p, clock: c, lease: l}
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
	if s.ticks {
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
	left := open - int64(s.clock.ticks())
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
	if now < s.unit && (!s.ticks || now <= s.safe) || now == s.unit && now == s.bound {
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

// notZero returns the first number from next on that doesn't make the zero ID. The zero ID
// is the pair (0, 0) of node 0.
func (s *sequencer) notZero(unit int64, next uint32) uint32 {
	if unit == 0 && s.number.node == 0 {
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

// series fills dst with id, id+step, id+2*step, and so on.
func series[T ~int64](dst []T, id, step T) {
	if len(dst) == 1 {
		dst[0] = id
		return
	}
	longSeries(dst, id, step)
}

// longSeries is not inlined, because its loop takes 1.7 times as long if it crosses a
// cache line. At the start of a function, which is aligned, the loop doesn't cross one.
//
//go:noinline
func longSeries[T ~int64](dst []T, id, step T) {
	for i := range dst {
		dst[i] = id
		id += step
	}
}

// snapshot returns the state from which resume continues.
func (h *handle) snapshot() SnoSnapshot {
	s := h.use().sequencer
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used(s.word.Load())
	now, err := s.now()
	if err != nil {
		// The clock is outside the format's time.
		now = s.seen
	}
	return SnoSnapshot{
		SequenceMin: uint16(s.min), SequenceMax: uint16(s.max), Sequence: uint16(used.end - 1),
		Now: now, WallHi: s.unit, WallSafe: s.safe, Drifts: s.drifts,
		First: s.origin, AtUnit: s.past.unit, AtNext: s.past.next,
	}
}

// resume continues from a snapshot, unless the start bound is later.
func (s *sequencer) resume(p *SnoSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.origin >= 0: // a generator that shares the sequencer has created IDs
		if !s.passed(p) {
			s.useUp(max(p.WallHi, p.WallSafe))
		}
		if p.First >= 0 {
			s.origin = min(s.origin, p.First)
		}
	default:
		s.drifts, s.tick = p.Drifts, p.Drifts&1 == 1
		s.origin, s.seen = p.First, p.Now
		s.safe = max(s.safe, p.WallSafe)
		if p.First < 0 {
			s.useUp(p.WallHi) // without an ID, WallHi is a start bound
		} else if p.WallHi > s.unit {
			s.continueAt(p.WallHi, uint32(p.Sequence)+1)
		}
	}
	if next := (backfilled{p.AtUnit, max(p.AtNext, s.min)}); next.unit > s.past.unit || next.unit == s.past.unit && next.next > s.past.next {
		s.past = next
	}
}

// passed reports whether the sequencer has passed all pairs that a snapshot may have used,
// as it has if the snapshot is one of its own.
func (s *sequencer) passed(p *SnoSnapshot) bool {
	if s.tick != (p.Drifts&1 == 1) {
		return p.WallHi <= s.safe && p.WallSafe < s.unit
	}
	next := uint32(s.word.Load() & s.mask)
	return p.WallSafe <= s.safe && (p.WallHi < s.unit || p.WallHi == s.unit && uint32(p.Sequence) < next)
}

// A backfilled is the next unit and number for backfill.
type backfilled struct {
	unit int64
	next uint32
}

// backfill takes a number from the unit of t, for [SnoGenerator.At]. The unit must be in
// the past.
func (h *handle) backfill(t time.Time) (slot, error) {
	s := h.use().sequencer
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
		return slot{}, s.failure(b, h.maxWait)
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
		// Next and Fill must use later units, even if the clock steps back.
		s.useUp(unit)
	}
	return slot{uint64(unit) << 1, next}, nil
}
