package idtype

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// A UUIDConfig configures a [UUIDGenerator]. The zero value suits most programs.
type UUIDConfig struct {
	// Clock returns the current time. The constructor and every call read it, one goroutine
	// at a time. Nil means the system clock.
	Clock func() time.Time
	// Random is the source of random bits. Each call reads its own, one goroutine at a time. Nil
	// means [crypto/rand.Reader].
	Random io.Reader
	// NotBefore is a time up to which an earlier run of the program may have created UUIDs, for
	// strictly increasing keys also across a restart. The generator creates UUIDs only of later
	// milliseconds. The zero Time sets no bound.
	NotBefore time.Time

	clock *clock // replaces Clock in tests
}

// A UUIDGenerator creates strictly increasing IDs of type [UUID], version 7. It is safe for
// concurrent use. It never waits, and fails only if Random fails or the format has ended.
//
// The time of an ID is the clock's, in units of 1/4096 ms, as in method 3 of RFC 9562,
// section 6.2. If the clock didn't advance since the last ID, or stepped back, the time is
// the last ID's plus one unit. So the time of an ID is ahead of the clock after a step back, and
// while more than 4.096 million IDs per second are created.
//
// A UUID has no node number. Generators in several processes create the same ID if they
// create IDs in the same unit, with the same 62 random bits: if each of a thousand processes
// creates a thousand IDs per second, on average once in 1.2 million years. Each call reads
// random bits when it uses them, so copies of a process that was copied while it ran, such as a
// virtual machine whose snapshot is resumed twice, don't share any.
type UUIDGenerator struct {
	clock  clock
	source io.Reader // nil for crypto/rand.Reader

	mu    sync.Mutex
	valid bool  // false in the zero value
	last  int64 // the instant of the last ID, or the last one that NotBefore excludes
	seen  int64 // the last reading of the clock, in milliseconds
	stats GeneratorStats
}

var (
	_ Generator[UUID] = (*UUIDGenerator)(nil)
	_ Monitored       = (*UUIDGenerator)(nil)
)

const (
	// uuidUnits is the number of instants per millisecond.
	uuidUnits = 4096
	// uuidBlock is the largest number of IDs that a call creates while others wait for the lock.
	uuidBlock = 256
	// uuidEnd is the last instant of the format.
	uuidEnd = 1<<60 - 1
)

// NewUUIDGenerator returns a new generator. It fails with
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the format's time
//   - [ErrTimeExhausted] if NotBefore is past the end of the format
func NewUUIDGenerator(c UUIDConfig) (*UUIDGenerator, error) {
	g := &UUIDGenerator{clock: systemClock(c.Clock), source: c.Random, valid: true}
	if c.clock != nil {
		g.clock = *c.clock
	}
	bound, err := uuidLine.bound(c.NotBefore, "NotBefore")
	if err != nil {
		return nil, err
	}
	g.last = (bound+1)*uuidUnits - 1
	wall, _ := g.clock.read()
	g.seen, err = uuidLine.unit(wall)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// lock locks the generator, or panics if it is the zero value.
func (g *UUIDGenerator) lock() {
	g.mu.Lock()
	if !g.valid {
		g.mu.Unlock()
		panicZero()
	}
}

// Next returns one new ID; see [Generator]. It also returns errors of Random.
func (g *UUIDGenerator) Next() (UUID, error) {
	var id [1]UUID
	var random [8]byte
	_, err := g.create(id[:], random[:])
	return id[0], err
}

// Fill writes len(dst) new IDs to dst, in order; see [Generator]. It also returns
// errors of Random.
func (g *UUIDGenerator) Fill(ctx context.Context, dst []UUID) (n int, err error) {
	var random [8 * uuidBlock]byte
	for n < len(dst) && err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var got int
		size := min(len(dst)-n, uuidBlock)
		got, err = g.create(dst[n:n+size], random[:8*size])
		n += got
	}
	return n, err
}

// create creates the IDs of dst, with the random bits that it reads into bits, 8 bytes per ID.
func (g *UUIDGenerator) create(dst []UUID, bits []byte) (n int, err error) {
	g.lock()
	defer g.mu.Unlock()
	if err := g.read(bits); err != nil {
		return 0, err
	}
	wall, _ := g.clock.read()
	ms, outside := uuidLine.place(wall)
	if outside == ErrTimeExhausted {
		return 0, uuidLine.outside(wall, outside)
	}
	if ms < g.seen {
		g.stats.ClockRegressions++
	}
	g.seen = ms
	next := max(instantOf(ms, wall), g.last+1)
	for n < len(dst) && next <= uuidEnd {
		dst[n] = uuidOf(uint64(next), binary.NativeEndian.Uint64(bits[8*n:]))
		g.last = next
		next++
		n++
	}
	g.stats.Minted += uint64(n)
	if n < len(dst) {
		return n, uuidLine.outside(uuidLine.time(next/uuidUnits), ErrTimeExhausted)
	}
	return n, nil
}

// read reads random bytes. The caller holds the lock.
func (g *UUIDGenerator) read(bits []byte) error {
	if g.source == nil {
		_, _ = rand.Read(bits) // never fails
		return nil
	}
	// A copy, because the compiler would allocate bits if an interface got them.
	b := make([]byte, len(bits))
	if _, err := io.ReadFull(g.source, b); err != nil {
		return fmt.Errorf("idtype: read %d random bytes for UUID: %w", len(b), err)
	}
	copy(bits, b)
	return nil
}

// Stats returns the counters of the generator. It counts no waits and no overflows.
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

// Ready returns nil, or an error that wraps [ErrTimeExhausted] if the format has ended. It
// creates no ID and reads no random bits.
func (g *UUIDGenerator) Ready() error {
	g.lock()
	defer g.mu.Unlock()
	wall, _ := g.clock.read()
	if _, outside := uuidLine.place(wall); outside == ErrTimeExhausted {
		return uuidLine.outside(wall, outside)
	}
	if g.last == uuidEnd {
		return uuidLine.outside(uuidLine.end().Add(time.Millisecond), ErrTimeExhausted)
	}
	return nil
}
