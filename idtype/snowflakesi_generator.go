package idtype

import "context"

// A SnowflakeSIConfig says how a [SnowflakeSIGenerator] mints.
type SnowflakeSIConfig struct {
	Layout  SnowflakeSILayout // its BaseClock is required
	Machine int               // 0 to 31 in the default split; no two generators may share it
	Options
}

// A SnowflakeSIGenerator mints strictly increasing [SnowflakeSI]s: 256 a
// millisecond in the default split. It is safe for concurrent use.
type SnowflakeSIGenerator struct {
	seq  sequencer
	node SnowflakeSI
}

var _ Generator[SnowflakeSI] = (*SnowflakeSIGenerator)(nil)

// NewSnowflakeSIGenerator makes a generator. It refuses an invalid layout and
// a machine number that doesn't fit it ([ErrNode]).
func NewSnowflakeSIGenerator(c SnowflakeSIConfig) (*SnowflakeSIGenerator, error) {
	l, err := c.Layout.checked()
	if err != nil {
		return nil, err
	}
	node, err := l.node(c.Machine)
	if err != nil {
		return nil, err
	}
	g := &SnowflakeSIGenerator{node: node}
	g.seq.line, g.seq.max, g.seq.skipZero = l.line(), 1<<l.IndexBits-1, node == 0
	if err := g.seq.init(c.Options); err != nil {
		return nil, err
	}
	return g, nil
}

// Next mints one ID; see [Generator].
func (g *SnowflakeSIGenerator) Next() (SnowflakeSI, error) {
	s, err := g.seq.one()
	if err != nil {
		return 0, err
	}
	return g.compose(s)
}

// Fill mints len(dst) IDs in order; see [Generator].
func (g *SnowflakeSIGenerator) Fill(ctx context.Context, dst []SnowflakeSI) (int, error) {
	return fill(ctx, &g.seq, dst, g.compose)
}

func (g *SnowflakeSIGenerator) compose(s slot) (SnowflakeSI, error) {
	return SnowflakeSI(s.unit<<snowflakeSILowBits) | g.node | SnowflakeSI(s.seq), nil
}
