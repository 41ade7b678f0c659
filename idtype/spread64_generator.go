package idtype

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Spread64Config says how a [Spread64Generator] mints.
type Spread64Config struct {
	Generator int // 0 to 63
	Cluster   int // 0 to 15; no two generators may share both numbers
	Options       // the number of a Lease is the generator's, which is left zero here
}

// A Spread64Generator mints [Spread64]s, 64 a millisecond, which increase in
// (time, sequence). It is safe for concurrent use.
type Spread64Generator struct {
	seq  sequencer
	node Spread64
}

var _ Generator[Spread64] = (*Spread64Generator)(nil)

// NewSpread64Generator makes a generator. It refuses a generator or cluster
// number out of range ([ErrNode]), and a clock outside of the format's time
// ([ErrBeforeEpoch], [ErrTimeExhausted]).
func NewSpread64Generator(c Spread64Config) (*Spread64Generator, error) {
	if c.Lease != nil {
		var err error
		if c.Generator, err = leaseNumber(c.Lease, spread64Kind.name, "Generator", c.Generator != 0, 1<<spread64GeneratorBits); err != nil {
			return nil, err
		}
	}
	node, err := spread64Node(c.Generator, c.Cluster)
	if err != nil {
		return nil, err
	}
	g := &Spread64Generator{node: node}
	if err := g.seq.init(spec{line: spread64Line, max: 1<<spread64SequenceBits - 1, skipZero: node == 0, layout: fmt.Sprintf("spread64: cluster %d", c.Cluster)}, c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// localSpread64 has the process's own generators by the bits of their numbers.
var localSpread64 struct {
	sync.Mutex
	made map[Spread64]*Spread64Generator
}

// LocalSpread64Generator gives the process's one generator of this pair, with
// default options: two callers can't mint under one identity, not knowing of
// each other. It refuses a generator or cluster number out of range ([ErrNode]).
func LocalSpread64Generator(generator, cluster int) (*Spread64Generator, error) {
	node, err := spread64Node(generator, cluster)
	if err != nil {
		return nil, err
	}
	localSpread64.Lock()
	defer localSpread64.Unlock()
	g := localSpread64.made[node]
	if g == nil {
		if g, err = NewSpread64Generator(Spread64Config{Generator: generator, Cluster: cluster}); err != nil {
			return nil, err
		}
		if localSpread64.made == nil {
			localSpread64.made = map[Spread64]*Spread64Generator{}
		}
		localSpread64.made[node] = g
	}
	return g, nil
}

// Next mints one ID; see [Generator].
func (g *Spread64Generator) Next() (Spread64, error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return 0, err
	}
	return g.at(s), nil
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *Spread64Generator) Fill(ctx context.Context, dst []Spread64) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

// at is the ID of a slot's first number.
func (g *Spread64Generator) at(s slot) Spread64 {
	return spread64(int64(s.head), int(s.seq)) | g.node
}

func (g *Spread64Generator) compose(dst []Spread64, s slot) {
	series(dst, g.at(s), 1<<spread64SequenceShift)
}

// Stats tells what the generator has done so far.
func (g *Spread64Generator) Stats() GeneratorStats { return g.seq.report() }

// Remaining is how long the format's time still lasts.
func (g *Spread64Generator) Remaining() time.Duration { return g.seq.remaining() }
