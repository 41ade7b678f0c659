package idtype

import (
	"context"
	"time"
)

// A SnowflakeConfig says how a [SnowflakeGenerator] mints.
type SnowflakeConfig struct {
	Layout     SnowflakeLayout // zero: [DefaultSnowflakeLayout]
	Datacenter int             // 0 to 31 in the default layout
	Worker     int             // 0 to 31; no two generators may share both numbers
	Options                    // a Lease has the bits of both as one number, and leaves them zero here
}

// A SnowflakeGenerator mints strictly increasing [Snowflake]s: 4096 a
// millisecond in the default layout. It is safe for concurrent use.
type SnowflakeGenerator struct {
	seq   sequencer
	shift int
	node  Snowflake
}

var _ Generator[Snowflake] = (*SnowflakeGenerator)(nil)

// NewSnowflakeGenerator makes a generator. It refuses an invalid layout, one that
// has no ID for the time that the clock shows ([ErrBeforeEpoch],
// [ErrTimeExhausted]), and node numbers that don't fit it ([ErrNode]). The number of
// a Lease is split into datacenter, the upper bits, and worker.
func NewSnowflakeGenerator(c SnowflakeConfig) (*SnowflakeGenerator, error) {
	l, err := c.Layout.checked()
	if err != nil {
		return nil, err
	}
	if c.Lease != nil {
		n, err := leaseNumber(c.Lease, snowflakeKind.name, "Datacenter and Worker", c.Datacenter != 0 || c.Worker != 0, 1<<(l.DatacenterBits+l.WorkerBits))
		if err != nil {
			return nil, err
		}
		c.Datacenter, c.Worker = n>>l.WorkerBits, n&(1<<l.WorkerBits-1)
	}
	node, err := l.node(c.Datacenter, c.Worker)
	if err != nil {
		return nil, err
	}
	g := &SnowflakeGenerator{shift: l.timeShift(), node: node}
	if err := g.seq.init(spec{line: l.line(), max: 1<<l.SequenceBits - 1, skipZero: node == 0, layout: "snowflake: " + l.String()}, c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator].
func (g *SnowflakeGenerator) Next() (Snowflake, error) {
	s, err := g.seq.takeOne()
	if err != nil {
		return 0, err
	}
	return g.at(s), nil
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *SnowflakeGenerator) Fill(ctx context.Context, dst []Snowflake) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

// at is the ID of a slot's first number.
func (g *SnowflakeGenerator) at(s slot) Snowflake {
	return Snowflake(s.head<<g.shift) | g.node | Snowflake(s.seq)
}

func (g *SnowflakeGenerator) compose(dst []Snowflake, s slot) {
	series(dst, g.at(s), 1)
}

// Stats tells what the generator has done so far.
func (g *SnowflakeGenerator) Stats() GeneratorStats { return g.seq.report() }

// Remaining is how long the layout's time still lasts.
func (g *SnowflakeGenerator) Remaining() time.Duration { return g.seq.remaining() }
