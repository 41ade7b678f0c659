package idtype

import "fmt"

// A SnowflakeConfig configures a [SnowflakeGenerator].
type SnowflakeConfig struct {
	Layout     SnowflakeLayout // the zero value means [DefaultSnowflakeLayout]
	Datacenter int             // 0 to 31 in the default layout
	Worker     int             // 0 to 31; each process needs its own pair of numbers
	Options                    // with a Lease, leave Datacenter and Worker zero: its number has the bits of both
}

// A SnowflakeGenerator creates strictly increasing IDs of type [Snowflake], up to 4096 per
// millisecond in the default layout. It is safe for concurrent use.
type SnowflakeGenerator struct {
	base[Snowflake, snowflakes]
	layout SnowflakeLayout
}

// snowflakes makes the IDs of a node.
type snowflakes struct {
	node  Snowflake
	shift int
}

var _ Generator[Snowflake] = (*SnowflakeGenerator)(nil)

// NewSnowflakeGenerator returns a new generator. It fails with
//   - [ErrRange] if the layout is invalid
//   - [ErrNode] if a node number doesn't fit the layout
//   - [ErrConfig] if a node number comes from two sources, or if a generator of this process
//     with the same epoch, but other widths, creates the same IDs
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the layout's time
//   - [ErrTimeExhausted] if NotBefore or the Lease's After is past the end of the layout
//   - [ErrClockBackwards] if NotBefore is more than MaxWait, and more than a second, ahead
//
// The upper bits of a Lease's number are the datacenter, and the lower bits the worker.
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
	g := &SnowflakeGenerator{layout: l}
	g.ids = snowflakes{node, l.timeShift()}
	if err := g.seq.init(spec{
		// Layouts of the same epoch and total width can create the same IDs.
		sequence: sequenceID{layout: fmt.Sprintf("snowflake: epoch %s; %d bits below the time", stamp(l.Epoch), l.timeShift())},
		layout:   "snowflake: " + l.Fingerprint(), line: l.line(), low: int64(node), max: 1<<l.SequenceBits - 1,
	}, c.Options, nil); err != nil {
		return nil, err
	}
	return g, nil
}

// Layout returns the layout of the generator's IDs, with the defaults for fields that were
// zero.
func (g *SnowflakeGenerator) Layout() SnowflakeLayout { return g.layout }

func (f snowflakes) at(s slot) Snowflake {
	return Snowflake(s.head<<f.shift) | f.node | Snowflake(s.seq)
}

func (f snowflakes) compose(dst []Snowflake, s slot) { series(dst, f.at(s), 1) }
