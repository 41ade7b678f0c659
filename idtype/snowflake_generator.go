package idtype

import "context"

// A SnowflakeConfig says how a [SnowflakeGenerator] mints.
type SnowflakeConfig struct {
	Layout     SnowflakeLayout // zero: [DefaultSnowflakeLayout]
	Datacenter int             // 0 to 31 in the default layout
	Worker     int             // 0 to 31; no two generators may share both numbers
	Options
}

// A SnowflakeGenerator mints strictly increasing [Snowflake]s: 4096 a
// millisecond in the default layout. It is safe for concurrent use.
type SnowflakeGenerator struct {
	seq   sequencer
	shift int
	node  Snowflake
}

var _ Generator[Snowflake] = (*SnowflakeGenerator)(nil)

// NewSnowflakeGenerator makes a generator. It refuses an invalid layout and
// node numbers that don't fit it ([ErrNode]).
func NewSnowflakeGenerator(c SnowflakeConfig) (*SnowflakeGenerator, error) {
	l, err := c.Layout.checked()
	if err != nil {
		return nil, err
	}
	node, err := l.node(c.Datacenter, c.Worker)
	if err != nil {
		return nil, err
	}
	g := &SnowflakeGenerator{shift: l.timeShift(), node: node}
	g.seq.line, g.seq.max, g.seq.skipZero = l.line(), 1<<l.SequenceBits-1, node == 0
	if err := g.seq.init(c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator].
func (g *SnowflakeGenerator) Next() (Snowflake, error) {
	s, err := g.seq.one()
	if err != nil {
		return 0, err
	}
	return g.compose(s)
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *SnowflakeGenerator) Fill(ctx context.Context, dst []Snowflake) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

func (g *SnowflakeGenerator) compose(s slot) (Snowflake, error) {
	return Snowflake(s.unit<<g.shift) | g.node | Snowflake(s.seq), nil
}
