package idtype

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// A UID60Config says how a [UID60Generator] mints.
type UID60Config struct {
	// Random gives the random bits, in blocks that are read ahead. Nil means
	// [crypto/rand.Reader]. It is read by one goroutine at a time.
	Random  io.Reader
	Options // without a Lease: there is no node number to claim
}

// A UID60Generator mints strictly increasing [UID60]s, 512 a millisecond. It is
// safe for concurrent use.
//
// A UID60 has no node number. Generators in different processes are kept apart
// by chance: each millisecond begins at a random sequence number from 0 to
// 255, or at 0 if it directly follows a full one, and each ID has 9 random bits.
// The chance that two processes mint a same ID in a millisecond in which both mint
// n, after one that wasn't full:
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

// NewUID60Generator makes a generator. It refuses a Lease ([ErrNode]), a NotBefore
// past the end of the format, and a clock outside of the format's time
// ([ErrBeforeEpoch], [ErrTimeExhausted]).
func NewUID60Generator(c UID60Config) (*UID60Generator, error) {
	if c.Lease != nil {
		return nil, &limitError{"idtype: UID60Config.Lease: a UID60 has no node number; leave Lease nil, or choose another format", ErrNode}
	}
	g := &UID60Generator{}
	g.random.init(c.Random)
	if err := g.seq.init(spec{line: uid60Line, max: 1<<uid60SequenceBits - 1, skipZero: true, first: g.random.first}, c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator]. An error of Random is returned.
func (g *UID60Generator) Next() (UID60, error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return 0, err
	}
	return g.at(s), nil
}

// Fill mints len(dst) IDs in order; see [Generator]. An error of Random is
// returned.
func (g *UID60Generator) Fill(ctx context.Context, dst []UID60) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

// at is the ID of a slot's first number.
func (g *UID60Generator) at(s slot) UID60 {
	bits, _ := g.random.from(s.seq)
	return uid60Floor(int64(s.head)) | UID60(s.seq)<<uid60RandomBits | UID60(bits&randomMask)
}

func (g *UID60Generator) compose(dst []UID60, s slot) {
	id := uid60Floor(int64(s.head)) | UID60(s.seq)<<uid60RandomBits
	for len(dst) > 0 {
		bits, n := g.random.from(s.seq)
		n = min(n, len(dst))
		for i := range dst[:n] {
			dst[i] = id | UID60(bits&randomMask)
			id += 1 << uid60RandomBits
			bits >>= uid60RandomBits
		}
		dst = dst[n:]
		s.seq += uint32(n)
	}
}

// Stats tells what the generator has done so far.
func (g *UID60Generator) Stats() GeneratorStats { return g.seq.report() }

// Remaining is how long the format's time still lasts.
func (g *UID60Generator) Remaining() time.Duration { return g.seq.remaining() }

// randomBits has random bits for each sequence number of a millisecond. Those
// that a millisecond used are renewed before the next begins, so that the fast
// path only reads them. A slow call may find those of the next millisecond:
// then two IDs of this process share them, which no other process can tell.
type randomBits struct {
	source *bufio.Reader
	filled bool
	words  [randomWords]atomic.Uint64
	buf    [1 + 8*randomWords]byte
}

const (
	randomMask     = 1<<uid60RandomBits - 1
	numbersPerWord = 64 / uid60RandomBits
	randomWords    = (1<<uid60SequenceBits + numbersPerWord - 1) / numbersPerWord
)

func (r *randomBits) init(source io.Reader) {
	if source == nil {
		source = rand.Reader
	}
	r.source = bufio.NewReaderSize(source, 512) // less than a microsecond's worth
}

// from gives the random bits of a sequence number, and above them those of the
// ones after it: how many these are altogether.
func (r *randomBits) from(seq uint32) (bits uint64, numbers int) {
	skip := seq % numbersPerWord
	return r.words[seq/numbersPerWord].Load() >> (skip * uid60RandomBits), numbersPerWord - int(skip)
}

// first gives the number with which a millisecond begins.
func (r *randomBits) first(used numbers) (uint32, error) {
	if !r.filled {
		used.begin, used.end = 0, 1<<uid60SequenceBits
	}
	words := r.words[used.begin/numbersPerWord : (used.end+numbersPerWord-1)/numbersPerWord]
	buf := r.buf[:len(words)*8+1]
	if _, err := io.ReadFull(r.source, buf); err != nil {
		return 0, fmt.Errorf("idtype: read %d random bytes for UID60: %w", len(buf), err)
	}
	for i := range words {
		words[i].Store(binary.NativeEndian.Uint64(buf[1+8*i:]))
	}
	r.filled = true
	if used.full {
		// Whoever needs the full rate gets all 512.
		return 0, nil
	}
	return uint32(buf[0]), nil // a byte has uid60Starts values
}
