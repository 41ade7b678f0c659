package idtype

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// A UUIDConfig configures a [UUIDGenerator].
type UUIDConfig struct {
	// Random is the source of random bits. The generator reads ahead from it in blocks, one
	// goroutine at a time. Nil means [crypto/rand.Reader].
	Random  io.Reader
	Options // a Lease is an error, because a UUID has no node number
}

// A UUIDGenerator creates strictly increasing IDs of type [UUID], version 7. It is safe for
// concurrent use.
//
// The time of an ID is the clock's, in units of 1/4096 ms, as in method 3 of RFC 9562,
// section 6.2. If the clock didn't advance since the last ID, or stepped back, the time is
// the last ID's plus one unit. So the time of an ID can be ahead of the clock, but not by
// more than a second: Next and Fill wait if it would be. Steps back of up to a second
// therefore cost no wait, and neither do bursts of up to 4 million IDs. The sustained rate is
// 4.096 million IDs per second.
//
// A UUID has no node number. Generators in several processes create the same ID if they
// create IDs in the same unit, with the same 62 random bits: if each of a thousand processes
// creates a thousand IDs per second, on average once in 77 million years.
type UUIDGenerator struct {
	clock   clock
	maxWait time.Duration

	mu     sync.Mutex
	last   int64 // the instant of the last ID, or the last one that NotBefore excludes
	latest int64 // the latest reading of the clock, or the time that NotBefore excludes
	seen   int64 // the last reading of the clock
	random randomBytes
	stats  GeneratorStats
}

var (
	_ Generator[UUID] = (*UUIDGenerator)(nil)
	_ Monitored       = (*UUIDGenerator)(nil)
)

const (
	// uuidUnits is the number of instants per millisecond.
	uuidUnits = 4096
	// uuidAhead is how far the time of an ID can be ahead of the clock.
	uuidAhead = 1000 * uuidUnits
	// uuidBlock is the largest number of IDs that a call creates while others wait for the lock.
	uuidBlock = 4096
	// uuidEnd is the last instant of the format.
	uuidEnd = 1<<60 - 1
)

// NewUUIDGenerator returns a new generator. It fails with
//   - [ErrConfig] if Lease is set
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the format's time
//   - [ErrTimeExhausted] if NotBefore is past the end of the format
func NewUUIDGenerator(c UUIDConfig) (*UUIDGenerator, error) {
	if c.Lease != nil {
		return nil, &configError{"idtype: UUIDConfig.Lease: a UUID has no node number; leave Lease nil, or choose another format"}
	}
	g := &UUIDGenerator{clock: systemClock(c.Clock), maxWait: min(cmp.Or(c.MaxWait, defaultMaxWait), unending-1)}
	if c.Options.clock != nil {
		g.clock = *c.Options.clock
	}
	g.random.source = c.Random
	if c.Random == nil {
		g.random.source = rand.Reader
	}
	bound, err := uuidLine.bound(c.NotBefore, "NotBefore")
	if err != nil {
		return nil, err
	}
	g.last = (bound+1)*uuidUnits - 1
	g.latest = g.last
	if g.seen, _, err = g.now(); err != nil {
		return nil, err
	}
	return g, nil
}

// lock locks the generator, or panics if it is the zero value.
func (g *UUIDGenerator) lock() {
	if g.random.source == nil {
		panicZero()
	}
	g.mu.Lock()
}

// now reads the clock: the instant, and the monotonic clock.
func (g *UUIDGenerator) now() (instant int64, ticks time.Duration, err error) {
	wall, ticks := g.clock.read()
	ms, err := uuidLine.unit(wall)
	return ms*uuidUnits + int64(wall.Nanosecond()%1e6)*uuidUnits/1e6, ticks, err
}

// Next returns one new ID; see [Generator]. It also returns errors of Random.
func (g *UUIDGenerator) Next() (UUID, error) {
	var id [1]UUID
	_, err := g.fill(context.Background(), id[:], false)
	return id[0], err
}

// Fill writes len(dst) new IDs to dst, in order; see [Generator]. It also returns
// errors of Random.
func (g *UUIDGenerator) Fill(ctx context.Context, dst []UUID) (int, error) {
	return g.fill(ctx, dst, true)
}

// fill fills dst. patient means that the wait is bounded from ID to ID, not for the call.
func (g *UUIDGenerator) fill(ctx context.Context, dst []UUID, patient bool) (n int, err error) {
	since, waits := time.Duration(0), false
	for n < len(dst) {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, now, ticks, early, err := g.take(dst[n:])
		n += got
		if err != nil {
			return n, err
		}
		if !waits || patient && got > 0 {
			since, waits = ticks, true
		}
		if n == len(dst) {
			break
		}
		if early <= 0 {
			continue
		}
		left := g.maxWait - (ticks - since)
		if early > left {
			return n, g.failure(now)
		}
		// Shorter sleeps than a millisecond take a millisecond, too.
		g.clock.pause(ctx, min(max(early, time.Millisecond), left), false, nil)
	}
	return n, nil
}

// take creates IDs: a block of them, or as many as may be created now. early is how long it
// takes until the next one may be created, or not positive if it may be created now. now and
// ticks are the readings of the clocks.
func (g *UUIDGenerator) take(dst []UUID) (n int, now int64, ticks, early time.Duration, err error) {
	g.lock()
	defer g.mu.Unlock()
	if now, ticks, err = g.now(); err != nil {
		return 0, now, ticks, 0, err
	}
	if now>>12 < g.seen>>12 {
		g.stats.ClockRegressions++
	}
	g.seen, g.latest = now, max(g.latest, now)
	next, most := max(now, g.last+1), min(now+uuidAhead, uuidEnd)
	if next > uuidEnd {
		return 0, now, ticks, 0, uuidLine.outside(uuidLine.time(next/uuidUnits), ErrTimeExhausted)
	}
	for n < min(len(dst), uuidBlock) && next <= most {
		random, err := g.random.next()
		if err != nil {
			return n, now, ticks, 0, err
		}
		dst[n] = uuidOf(uint64(next), random)
		g.last = next
		g.stats.Minted++
		n++
		next++
	}
	if early = g.early(now); early > 0 && n < len(dst) {
		g.stats.Waits++
		if now == g.latest {
			g.stats.SequenceOverflows++
		}
	}
	return n, now, ticks, early, nil
}

// early returns how long it takes until the next ID may be created, if the clock runs.
func (g *UUIDGenerator) early(now int64) time.Duration {
	units := g.last + 1 - (now + uuidAhead)
	return time.Duration(units/uuidUnits)*time.Millisecond + time.Duration((units%uuidUnits*1e6+uuidUnits-1)/uuidUnits)
}

// failure returns the error for a call that would have to wait too long.
func (g *UUIDGenerator) failure(now int64) error {
	g.lock()
	defer g.mu.Unlock()
	at, within := stamp(uuidLine.time(now/uuidUnits)), max(g.maxWait, 0)
	if now < g.latest {
		return fmt.Errorf("idtype: create UUID within %v: the clock is at %s and must reach %s, a second before the last ID; check the system time, and NotBefore: %w",
			within, at, stamp(uuidLine.time((g.last+1-uuidAhead)/uuidUnits)), ErrClockBackwards)
	}
	return fmt.Errorf("idtype: create UUID within %v: the last ID is a second ahead of the clock, which is at %s; create fewer than 4096 IDs per millisecond, raise MaxWait, or check that the clock runs: %w",
		within, at, ErrSequenceExhausted)
}

// Stats returns the counters of the generator. A SequenceOverflow is a call that waited,
// because calls exceeded 4096 IDs per millisecond.
func (g *UUIDGenerator) Stats() GeneratorStats {
	g.lock()
	defer g.mu.Unlock()
	return g.stats
}

// Remaining returns the time until the end of the format, at most 292 years.
func (g *UUIDGenerator) Remaining() time.Duration {
	g.lock()
	defer g.mu.Unlock()
	wall, _ := g.clock.read()
	return max(uuidLine.end().Add(time.Millisecond).Sub(wall), 0)
}

// Ready returns nil if the clock allows a call of Next now, at once or after a wait
// within MaxWait. Otherwise it returns the error of such a call, which wraps
// [ErrClockBackwards], [ErrSequenceExhausted] or [ErrTimeExhausted]. Ready doesn't wait
// and creates no ID.
func (g *UUIDGenerator) Ready() error {
	g.lock()
	now, _, err := g.now()
	early := g.early(now)
	g.mu.Unlock()
	switch {
	case err != nil:
		return err
	case early > max(g.maxWait, 0):
		return g.failure(now)
	}
	return nil
}

// randomBytes reads random numbers from a source, in blocks.
type randomBytes struct {
	source io.Reader
	buf    [512]byte
	left   int // the bytes at the end of buf that aren't used yet
}

// next returns 64 random bits.
func (r *randomBytes) next() (uint64, error) {
	if r.left == 0 {
		if _, err := io.ReadFull(r.source, r.buf[:]); err != nil {
			return 0, fmt.Errorf("idtype: read %d random bytes for UUID: %w", len(r.buf), err)
		}
		r.left = len(r.buf)
	}
	r.left -= 8
	return binary.NativeEndian.Uint64(r.buf[len(r.buf)-r.left-8:]), nil
}
