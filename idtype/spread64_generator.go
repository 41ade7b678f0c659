package idtype

import "fmt"

// A Spread64Config configures a [Spread64Generator].
type Spread64Config struct {
	Generator int // 0 to 63
	Cluster   int // 0 to 15; each process needs its own pair of numbers
	Options       // with a Lease, leave Generator zero: the lease has the number
}

// A Spread64Generator creates IDs of type [Spread64], up to 64 per millisecond. Their
// (time, sequence) pairs increase strictly. It is safe for concurrent use.
type Spread64Generator struct{ base[Spread64, spread64s] }

// spread64s makes the IDs of a node.
type spread64s struct{ node Spread64 }

var _ Generator[Spread64] = (*Spread64Generator)(nil)

// NewSpread64Generator returns a new generator. It fails with
//   - [ErrNode] if the generator or cluster number is out of range
//   - [ErrConfig] if the generator number comes from two sources
//   - [ErrBeforeEpoch] or [ErrTimeExhausted] if the clock is outside the format's time
//   - [ErrTimeExhausted] if NotBefore or the Lease's After is past the end of the format
//   - [ErrClockBackwards] if NotBefore is more than MaxWait, and more than a second, ahead
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
	g := new(Spread64Generator)
	g.ids = spread64s{node}
	if err := g.seq.init(spec{sequence: sequenceID{fmt.Sprintf("spread64: cluster %d", c.Cluster), int64(node)}, line: spread64Line, max: 1<<spread64SequenceBits - 1}, c.Options, nil); err != nil {
		return nil, err
	}
	return g, nil
}

// LocalSpread64Generator returns a generator for this pair of numbers, with default
// options. As with all such generators, independent callers with the same pair don't create
// duplicates. If a number is out of range, it returns [ErrNode].
func LocalSpread64Generator(generator, cluster int) (*Spread64Generator, error) {
	return NewSpread64Generator(Spread64Config{Generator: generator, Cluster: cluster})
}

func (f spread64s) at(s slot) Spread64 { return spread64(int64(s.head), int(s.seq)) | f.node }

func (f spread64s) compose(dst []Spread64, s slot) { series(dst, f.at(s), 1<<spread64SequenceShift) }
