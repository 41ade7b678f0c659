package idtype

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// A UID60Config configures a [UID60Generator]. The zero value suits most programs.
type UID60Config struct {
	// Clock, MaxWait and NotBefore are as in [Options].
	Clock     func() time.Time
	MaxWait   time.Duration
	NotBefore time.Time
	// Random is the source of random bits. The generator reads ahead from it in blocks,
	// one goroutine at a time. Nil means [crypto/rand.Reader]. A generator with a Random
	// shares its sequence with no other generator.
	Random io.Reader

	clock *clock // as in Options
}

// A UID60Generator creates strictly increasing IDs of type [UID60], up to 512 per
// millisecond. It is safe for concurrent use. Next and Fill also return errors of
// [UID60Config.Random].
//
// A UID60 has no node number, so generators in different processes can create the same ID.
// The generators of one process share one sequence, and never do.
// Two random choices keep the chance small. Each millisecond begins at a random sequence
// number from 0 to 255, or at 0 if it directly follows a full millisecond. Each ID has 9
// random bits.
//
// The table shows the chance that two processes create the same ID in a millisecond in
// which each creates n IDs. In the last column, both processes run at the full rate. In the
// other columns, the previous millisecond was not full.
//
//	n        1             10           100     256    512, the full rate
//	chance   1 in 131072   1 in 1335    6.2 %   28 %   63 %
//
// UID60 therefore suits processes that create IDs occasionally, with a unique index to
// reject the remaining duplicates. Don't create IDs in bulk in several processes at once.
type UID60Generator struct{ base[UID60, uid60s] }

// uid60s makes IDs with random bits.
type uid60s struct{ random *randomBits }

var _ Generator[UID60] = (*UID60Generator)(nil)

// uid60Starts is the number of possible first sequence numbers of a millisecond. It is
// half of all numbers, so that at least the other half can follow.
const uid60Starts = 256

// NewUID60Generator returns a new generator. It fails with
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the format's time
//   - [ErrTimeExhausted] if NotBefore is past the end of the format
//   - [ErrClockBackwards] if NotBefore is more than MaxWait, and more than a second, ahead
func NewUID60Generator(c UID60Config) (*UID60Generator, error) {
	o := Options{Clock: c.Clock, MaxWait: c.MaxWait, NotBefore: c.NotBefore, clock: c.clock}
	g := new(UID60Generator)
	if err := g.seq.init(spec{sequence: sequenceID{layout: "uid60"}, line: uid60Line, max: 1<<uid60SequenceBits - 1, random: newRandomBits(c.Random)}, o, nil); err != nil {
		return nil, err
	}
	g.ids = uid60s{g.seq.random} // of the shared sequence
	return g, nil
}

func (f uid60s) at(s slot) UID60 {
	bits, _ := f.random.from(s.seq)
	return uid60Floor(int64(s.head)) | UID60(s.seq)<<uid60RandomBits | UID60(bits&randomMask)
}

func (f uid60s) compose(dst []UID60, s slot) {
	id := uid60Floor(int64(s.head)) | UID60(s.seq)<<uid60RandomBits
	for len(dst) > 0 {
		bits, n := f.random.from(s.seq)
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

// randomBits holds random bits for each sequence number of a millisecond. At the start of a
// millisecond, the method first replaces the bits that the previous millisecond used, so
// the fast path only reads bits. A slow call may read bits that the next millisecond uses
// too. Two IDs of this process then have the same random bits, but different times.
type randomBits struct {
	source *bufio.Reader
	own    bool // the caller's source
	filled bool
	words  [randomWords]atomic.Uint64
	buf    [1 + 8*randomWords]byte
}

const (
	randomMask     = 1<<uid60RandomBits - 1
	numbersPerWord = 64 / uid60RandomBits
	randomWords    = (1<<uid60SequenceBits + numbersPerWord - 1) / numbersPerWord
)

func newRandomBits(source io.Reader) *randomBits {
	r := &randomBits{own: source != nil}
	if !r.own {
		source = rand.Reader
	}
	r.source = bufio.NewReaderSize(source, 512) // reading them takes less than a microsecond
	return r
}

// from returns the random bits of a sequence number and, above them, the bits of the
// numbers that follow it in the same word. numbers is their count.
func (r *randomBits) from(seq uint32) (bits uint64, numbers int) {
	skip := seq % numbersPerWord
	return r.words[seq/numbersPerWord].Load() >> (skip * uid60RandomBits), numbersPerWord - int(skip)
}

// first returns the first sequence number of a millisecond, and replaces the used bits.
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
		// A caller at the full rate gets all 512 numbers.
		return 0, nil
	}
	return uint32(buf[0]), nil // a byte has uid60Starts values
}
