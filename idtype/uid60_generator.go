package idtype

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
)

// A UID60Config says how a [UID60Generator] mints.
type UID60Config struct {
	// Random gives the random bits. Nil means [crypto/rand.Reader].
	Random io.Reader
	Options
}

// A UID60Generator mints strictly increasing [UID60]s, 512 a millisecond. It is
// safe for concurrent use.
//
// A UID60 has no node number. Generators in different processes are kept apart
// by chance: each millisecond begins at a random sequence number from 0 to
// 255, and each ID has 9 random bits. The chance that two processes mint a same
// ID in a millisecond in which both mint n:
//
//	n        1             10           100     256    the full rate, 512
//	chance   1 in 131072   1 in 1335    6.2 %   28 %   63 %
//
// So UID60 suits processes that mint now and then, with a unique index to catch
// the rest. Don't mint in bulk in several processes at once.
type UID60Generator struct {
	seq    sequencer
	random randomBits
}

var _ Generator[UID60] = (*UID60Generator)(nil)

// uid60Starts is how many sequence numbers a millisecond may begin with: half
// of them, so that the other half can follow.
const uid60Starts = 256

// NewUID60Generator makes a generator. It refuses a NotBefore past the end of
// the format.
func NewUID60Generator(c UID60Config) (*UID60Generator, error) {
	g := &UID60Generator{}
	g.random.source = c.Random
	if g.random.source == nil {
		g.random.source = rand.Reader
	}
	g.seq.line, g.seq.max, g.seq.skipZero = uid60Line, 1<<uid60SequenceBits-1, true
	g.seq.first = func(full bool) (uint32, error) {
		if full {
			// Whoever needs the full rate gets all 512.
			return 0, nil
		}
		r, err := g.random.next()
		return uint32(r % uid60Starts), err
	}
	if err := g.seq.init(c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator]. An error of Random is returned.
func (g *UID60Generator) Next() (UID60, error) {
	s, err := g.seq.one()
	if err != nil {
		return 0, err
	}
	return g.compose(s)
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *UID60Generator) Fill(ctx context.Context, dst []UID60) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

func (g *UID60Generator) compose(s slot) (UID60, error) {
	r, err := g.random.next()
	if err != nil {
		return 0, err
	}
	return uid60Floor(s.unit) | UID60(s.seq)<<uid60RandomBits | UID60(r&(1<<uid60RandomBits-1)), nil
}

// randomBits reads a source in blocks.
type randomBits struct {
	mu     sync.Mutex
	source io.Reader
	buf    [512]byte
	unread int // at the end of buf
}

// next gives 16 random bits.
func (r *randomBits) next() (uint16, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread == 0 {
		if _, err := io.ReadFull(r.source, r.buf[:]); err != nil {
			return 0, fmt.Errorf("idtype: expected %d random bytes for UID60: %w", len(r.buf), err)
		}
		r.unread = len(r.buf)
	}
	b := r.buf[len(r.buf)-r.unread:]
	r.unread -= 2
	return uint16(b[0])<<8 | uint16(b[1]), nil
}
