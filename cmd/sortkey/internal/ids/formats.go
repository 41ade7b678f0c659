package ids

import (
	"context"
	"encoding"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
)

// Names returns the names of the formats on the command line.
func Names() []string {
	return []string{"snowflake", "snowflake-si", "uid60", "spread64", "sno", "uuid7"}
}

// Layouts are the layouts of the formats that have several.
type Layouts struct {
	Snowflake   idtype.SnowflakeLayout
	SnowflakeSI idtype.SnowflakeSILayout // without a base clock, the format is undated
}

// Formats returns all formats, in the order of Names.
func Formats(l Layouts) []*Format {
	return []*Format{newSnowflake(l.Snowflake), newSnowflakeSI(l.SnowflakeSI), newUID60(), newSpread64(), newSno(), newUUID7()}
}

// ByName returns the format with a name, or nil.
func ByName(name string, l Layouts) *Format {
	if i := slices.Index(Names(), name); i >= 0 {
		return Formats(l)[i]
	}
	return nil
}

// A definition holds the functions of a type.
type definition[T ID] struct {
	window    func(from, to time.Time) (lo, hi T, err error) // nil if the IDs don't sort by time
	parts     func(T) (Parts, error)
	compose   func(Parts) (T, error)
	generator func(Parts) (idtype.Generator[T], error)
}

// define sets the functions of f.
func define[T ID, B interface {
	*T
	encoding.TextUnmarshaler
	encoding.BinaryUnmarshaler
}](f *Format, d definition[T]) *Format {
	f.FromText = func(s string) (ID, error) {
		var id T
		err := B(&id).UnmarshalText([]byte(s))
		return id, err
	}
	f.FromBinary = func(b []byte) (ID, error) {
		var id T
		err := B(&id).UnmarshalBinary(b)
		return id, err
	}
	f.Parts = func(id ID) (Parts, error) {
		p, err := d.parts(id.(T))
		if f.Undated {
			p.Time = time.Time{}
		}
		return p, err
	}
	f.Compose = func(p Parts) (ID, error) { return d.compose(p) }
	if d.window != nil {
		f.Window = func(from, to time.Time) (lo, hi ID, err error) { return d.window(from, to) }
	}
	f.Generate = func(ctx context.Context, p Parts, n int, emit func(ID) error) error {
		g, err := d.generator(p)
		if err != nil {
			return err
		}
		block := make([]T, min(n, 1<<14))
		for ; n > 0; n -= len(block) {
			block = block[:min(n, len(block))]
			if _, err := g.Fill(ctx, block); err != nil {
				return err
			}
			for _, id := range block {
				if err := emit(id); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return f
}

// width returns the number of bits of a field whose bits are all set.
func width(ones int) int { return bits.Len(uint(ones)) }

func newSnowflake(l idtype.SnowflakeLayout) *Format {
	ones, _ := l.Parts(idtype.MaxSnowflake)
	f := &Format{
		Name: "snowflake", Title: "Snowflake", Column: "bigint",
		Nodes:     []Field{{"datacenter", width(ones.Datacenter)}, {"worker", width(ones.Worker)}},
		Sequences: ones.Sequence + 1,
		FromInt64: func(n int64) ID { return idtype.Snowflake(n) },
	}
	return define(f, definition[idtype.Snowflake]{
		window: l.Range,
		parts: func(id idtype.Snowflake) (Parts, error) {
			p, err := l.Parts(id)
			return Parts{Time: p.Time, Node: f.join(p.Datacenter, p.Worker), Sequence: p.Sequence}, err
		},
		compose: func(p Parts) (idtype.Snowflake, error) {
			node := f.split(p.Node)
			return l.Compose(idtype.SnowflakeParts{Time: p.Time, Datacenter: node[0], Worker: node[1], Sequence: p.Sequence})
		},
		generator: func(p Parts) (idtype.Generator[idtype.Snowflake], error) {
			node := f.split(p.Node)
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: l, Datacenter: node[0], Worker: node[1]})
		},
	})
}

func newSnowflakeSI(l idtype.SnowflakeSILayout) *Format {
	undated := l.BaseClock.IsZero()
	if undated {
		l.BaseClock = time.Unix(0, 0) // for the other parts
	}
	ones, _ := l.Parts(idtype.MaxSnowflakeSI)
	return define(&Format{
		Name: "snowflake-si", Title: "SnowflakeSI", Column: "bigint",
		Nodes:     []Field{{"machine", width(ones.Machine)}},
		Sequences: ones.Index + 1,
		Undated:   undated,
		FromInt64: func(n int64) ID { return idtype.SnowflakeSI(n) },
	}, definition[idtype.SnowflakeSI]{
		window: l.Range,
		parts: func(id idtype.SnowflakeSI) (Parts, error) {
			p, err := l.Parts(id)
			return Parts{Time: p.Time, Node: p.Machine, Sequence: p.Index}, err
		},
		compose: func(p Parts) (idtype.SnowflakeSI, error) {
			return l.Compose(idtype.SnowflakeSIParts{Time: p.Time, Machine: p.Node, Index: p.Sequence})
		},
		generator: func(p Parts) (idtype.Generator[idtype.SnowflakeSI], error) {
			return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: l, Machine: p.Node})
		},
	})
}

func newUID60() *Format {
	l := idtype.UID60Layout{}
	return define(&Format{
		Name: "uid60", Title: "UID60", Column: "bigint", RandomBits: 9,
		Sequences: idtype.UID60(idtype.MaxUID60).Sequence() + 1,
		FromInt64: func(n int64) ID { return idtype.UID60(n) },
	}, definition[idtype.UID60]{
		window: l.Range,
		parts: func(id idtype.UID60) (Parts, error) {
			p, err := l.Parts(id)
			return Parts{Time: p.Time, Sequence: p.Sequence, Random: int64(p.Random)}, err
		},
		compose: func(p Parts) (idtype.UID60, error) {
			return l.Compose(idtype.UID60Parts{Time: p.Time, Sequence: p.Sequence, Random: int(p.Random)})
		},
		generator: func(Parts) (idtype.Generator[idtype.UID60], error) {
			return idtype.NewUID60Generator(idtype.UID60Config{})
		},
	})
}

func newSpread64() *Format {
	l := idtype.Spread64Layout{}
	f := &Format{
		Name: "spread64", Title: "Spread64", Column: "bigint",
		Nodes:     []Field{{"generator", 6}, {"cluster", 4}},
		Sequences: 1 << 6,
		FromInt64: func(n int64) ID { return idtype.Spread64(n) },
	}
	return define(f, definition[idtype.Spread64]{
		parts: func(id idtype.Spread64) (Parts, error) {
			p, err := l.Parts(id)
			return Parts{Time: p.Time, Node: f.join(p.Generator, p.Cluster), Sequence: p.Sequence}, err
		},
		compose: func(p Parts) (idtype.Spread64, error) {
			node := f.split(p.Node)
			return l.Compose(idtype.Spread64Parts{Time: p.Time, Generator: node[0], Cluster: node[1], Sequence: p.Sequence})
		},
		generator: func(p Parts) (idtype.Generator[idtype.Spread64], error) {
			node := f.split(p.Node)
			return idtype.NewSpread64Generator(idtype.Spread64Config{Generator: node[0], Cluster: node[1]})
		},
	})
}

func newSno() *Format {
	l := idtype.SnoLayout{}
	return define(&Format{
		Name: "sno", Title: "Sno", Column: "uuid",
		Nodes:     []Field{{"partition", 16}},
		Sequences: math.MaxUint16 + 1,
		FromUUID:  func(u uuid.UUID) (ID, error) { return idtype.SnoFromUUID(u) },
	}, definition[idtype.Sno]{
		window: l.Range,
		parts: func(id idtype.Sno) (Parts, error) {
			p, err := l.Parts(id)
			return Parts{Time: p.Time, TickTock: p.TickTock, Meta: p.Meta, Node: int(p.Partition.Uint16()), Sequence: int(p.Sequence)}, err
		},
		compose: func(p Parts) (idtype.Sno, error) {
			return l.Compose(idtype.SnoParts{
				Time: p.Time, TickTock: p.TickTock, Meta: p.Meta,
				Partition: idtype.SnoPartitionFrom(uint16(p.Node)), Sequence: uint16(p.Sequence),
			})
		},
		generator: func(p Parts) (idtype.Generator[idtype.Sno], error) {
			partition := idtype.SnoPartitionFrom(uint16(p.Node))
			return idtype.NewSnoGenerator(idtype.SnoConfig{Meta: p.Meta, Partition: &partition})
		},
	})
}

// errNotUUID: the 16 bytes have no version of RFC 9562, and thus no Parts.
var errNotUUID = errors.New("not a UUID of RFC 9562")

// newUUID7 returns the format of UUID keys. UUIDs of all versions of RFC 9562 are IDs,
// since tables can have them beside version 7. The sequence number of version 7 is the
// fraction of the millisecond.
func newUUID7() *Format {
	l := idtype.UUIDLayout{}
	return define(&Format{
		Name: "uuid7", Title: "UUIDv7", Column: "uuid",
		Sequences: 1 << 12, RandomBits: 62,
		FromUUID: func(u uuid.UUID) (ID, error) { return idtype.UUID(u), nil },
	}, definition[idtype.UUID]{
		window: l.Range,
		parts:  uuidParts,
		compose: func(p Parts) (idtype.UUID, error) {
			id, err := l.Floor(p.Time)
			if err == nil {
				binary.BigEndian.PutUint16(id[6:], binary.BigEndian.Uint16(id[6:])|uint16(p.Sequence))
				binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])|uint64(p.Random))
			}
			return id, err
		},
		generator: func(Parts) (idtype.Generator[idtype.UUID], error) {
			return idtype.NewUUIDGenerator(idtype.UUIDConfig{})
		},
	})
}

func uuidParts(id idtype.UUID) (p Parts, err error) {
	p.Version = id.Version()
	head := binary.BigEndian.Uint64(id[:8])
	switch p.Version {
	case 0:
		err = errNotUUID
	case 1:
		p.Time = time.Unix(uuid.UUID(id).Time().UnixTime()).UTC()
	case 6: // Time of google/uuid v1.6.0 includes the version in the time
		p.Time = time.Unix(uuid.Time(head>>16<<12 | head&0xfff).UnixTime()).UTC()
	case 7:
		p.Time, _ = id.Time()
		p.Sequence = int(head & 0xfff)
		p.Random = int64(binary.BigEndian.Uint64(id[8:]) &^ (3 << 62))
	}
	return p, err
}
