package idtype

// A SnowflakeSIConfig configures a [SnowflakeSIGenerator].
type SnowflakeSIConfig struct {
	Layout  SnowflakeSILayout // its BaseClock is required
	Machine int               // 0 to 31 in the default split; each process needs its own number
	Options                   // with a Lease, leave Machine zero: the lease has the number
}

// A SnowflakeSIGenerator creates strictly increasing IDs of type [SnowflakeSI], up to 256
// per millisecond in the default split. It is safe for concurrent use.
type SnowflakeSIGenerator struct {
	base[SnowflakeSI, snowflakeSIs]
	layout SnowflakeSILayout
}

// snowflakeSIs makes the IDs of a machine.
type snowflakeSIs struct{ node SnowflakeSI }

var _ Generator[SnowflakeSI] = (*SnowflakeSIGenerator)(nil)

// NewSnowflakeSIGenerator returns a new generator. It fails with
//   - [ErrRange] if the layout is invalid
//   - [ErrNode] if the machine number doesn't fit the layout
//   - [ErrConfig] if the layout has no base clock, if the machine number comes from two
//     sources, or if a generator of this process with the same base clock, but other widths,
//     creates the same IDs
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the layout's time
//   - [ErrTimeExhausted] if NotBefore or the Lease's After is past the end of the layout
//   - [ErrClockBackwards] if NotBefore is more than MaxWait, and more than a second, ahead
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
	g := &SnowflakeSIGenerator{layout: l}
	g.ids = snowflakeSIs{node}
	if err := g.seq.init(spec{
		// Layouts of the same base clock can create the same IDs.
		sequence: sequenceID{layout: "snowflake_si: base clock " + stamp(l.BaseClock)},
		layout:   "snowflake_si: " + l.Fingerprint(), line: l.line(), low: int64(node), max: 1<<l.IndexBits - 1,
	}, c.Options, nil); err != nil {
		return nil, err
	}
	return g, nil
}

// Layout returns the layout of the generator's IDs, with the defaults for fields that were
// zero.
func (g *SnowflakeSIGenerator) Layout() SnowflakeSILayout { return g.layout }

func (f snowflakeSIs) at(s slot) SnowflakeSI {
	return SnowflakeSI(s.head<<snowflakeSILowBits) | f.node | SnowflakeSI(s.seq)
}

func (f snowflakeSIs) compose(dst []SnowflakeSI, s slot) { series(dst, f.at(s), 1) }
