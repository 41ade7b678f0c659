package idtype

import (
	"context"
	"time"
)

// A SnowflakeSIConfig says how a [SnowflakeSIGenerator] mints.
type SnowflakeSIConfig struct {
	Layout  SnowflakeSILayout // its BaseClock is required
	Machine int               // 0 to 31 in the default split; no two generators may share it
	Options                   // the number of a Lease is the machine's, which is left zero here
}

// A SnowflakeSIGenerator mints strictly increasing [SnowflakeSI]s: 256 a
// millisecond in the default split. It is safe for concurrent use.
type SnowflakeSIGenerator struct {
	seq  sequencer
	node SnowflakeSI
}

var _ Generator[SnowflakeSI] = (*SnowflakeSIGenerator)(nil)

// NewSnowflakeSIGenerator makes a generator. It refuses an invalid layout, one that
// has no ID for the time that the clock shows ([ErrBeforeEpoch],
// [ErrTimeExhausted]), and a machine number that doesn't fit it ([ErrNode]).
func NewSnowflakeSIGenerator(c SnowflakeSIConfig) (*SnowflakeSIGenerator, error) {
	l, err := c.Layout.checked()
	if err != nil {
		return nil, err
	}
	if c.Lease != nil {
		if c.Machine, err = leaseNumber(c.Lease, snowflakeSIKind.name, "Machine", c.Machine != 0, 1<<l.MachineBits); err != nil {
			return nil, err
		}
	}
	node, err := l.node(c.Machine)
	if err != nil {
		return nil, err
	}
	g := &SnowflakeSIGenerator{node: node}
	if err := g.seq.init(spec{line: l.line(), max: 1<<l.IndexBits - 1, skipZero: node == 0, layout: "snowflake_si: " + l.String()}, c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator].
func (g *SnowflakeSIGenerator) Next() (SnowflakeSI, error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return 0, err
	}
	return g.at(s), nil
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *SnowflakeSIGenerator) Fill(ctx context.Context, dst []SnowflakeSI) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

// at is the ID of a slot's first number.
func (g *SnowflakeSIGenerator) at(s slot) SnowflakeSI {
	return SnowflakeSI(s.head<<snowflakeSILowBits) | g.node | SnowflakeSI(s.seq)
}

func (g *SnowflakeSIGenerator) compose(dst []SnowflakeSI, s slot) {
	series(dst, g.at(s), 1)
}

// Stats tells what the generator has done so far.
func (g *SnowflakeSIGenerator) Stats() GeneratorStats { return g.seq.report() }

// Remaining is how long the layout's time still lasts.
func (g *SnowflakeSIGenerator) Remaining() time.Duration { return g.seq.remaining() }
