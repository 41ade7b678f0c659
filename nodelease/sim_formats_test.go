package nodelease_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A format starts the generators of a process.
type format interface {
	start(p *process) (source, error)
}

// A source is a generator of a process.
type source interface {
	create(r *rand.Rand) ([]minted, error)
	copy(to *process, newest int64) (source, error)
	close() error
}

// A minted is an ID of any format.
type minted struct {
	id     any
	number int    // the node number
	at     int64  // the start of its unit of time, in Unix milliseconds
	key    uint64 // increases on each track
	track  int    // the tick-tock bit of a Sno
}

// formats returns a format for a pool with up to 16 numbers.
var formats = map[string]func(size int) format{
	"Snowflake": func(size int) format {
		return formatOf[idtype.Snowflake]{sized(nodelease.ForSnowflake(idtype.SnowflakeLayout{}), size),
			func(o idtype.Options) (idtype.Generator[idtype.Snowflake], error) {
				return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: o})
			},
			func(id idtype.Snowflake) minted {
				p := must(idtype.SnowflakeLayout{}.Parts(id))
				return minted{id, p.Datacenter<<5 | p.Worker, p.Time.UnixMilli(), uint64(id), 0}
			}}
	},
	"SnowflakeSI": func(size int) format {
		l := idtype.SnowflakeSILayout{BaseClock: base}
		return formatOf[idtype.SnowflakeSI]{sized(nodelease.ForSnowflakeSI(l), size),
			func(o idtype.Options) (idtype.Generator[idtype.SnowflakeSI], error) {
				return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: l, Options: o})
			},
			func(id idtype.SnowflakeSI) minted {
				p := must(l.Parts(id))
				return minted{id, p.Machine, p.Time.UnixMilli(), uint64(id), 0}
			}}
	},
	"Spread64": func(size int) format {
		return formatOf[idtype.Spread64]{sized(nodelease.ForSpread64(3), size),
			func(o idtype.Options) (idtype.Generator[idtype.Spread64], error) {
				return idtype.NewSpread64Generator(idtype.Spread64Config{Cluster: 3, Options: o})
			},
			func(id idtype.Spread64) minted {
				p := must(idtype.Spread64Layout{}.Parts(id))
				return minted{id, p.Generator, p.Time.UnixMilli(), uint64(p.Time.UnixMilli())<<6 | uint64(p.Sequence), 0}
			}}
	},
	"Sno": func(size int) format {
		return formatOf[idtype.Sno]{sized(nodelease.ForSno(), size),
			func(o idtype.Options) (idtype.Generator[idtype.Sno], error) {
				return idtype.NewSnoGenerator(idtype.SnoConfig{Options: o})
			},
			func(id idtype.Sno) minted { return ofSno(id, int(id.Partition().Uint16())) }}
	},
	"Sno ranges": func(size int) format {
		partition := idtype.SnoPartitionFrom(7)
		return formatOf[idtype.Sno]{sized(nodelease.ForSnoRanges(partition, 16), size),
			func(o idtype.Options) (idtype.Generator[idtype.Sno], error) {
				return idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition, Ranges: 16, Options: o})
			},
			func(id idtype.Sno) minted { return ofSno(id, int(id.Sequence()>>12)) }}
	},
}

var formatNames = []string{"Snowflake", "SnowflakeSI", "Spread64", "Sno", "Sno ranges"}

func sized(p nodelease.Pool, size int) nodelease.Pool {
	p.Size = size
	return p
}

func ofSno(id idtype.Sno, number int) minted {
	m := minted{id: id, number: number, at: id.Time().UnixMilli()}
	m.key = uint64(m.at)<<16 | uint64(id.Sequence())
	if id.TickTock() {
		m.track = 1
	}
	return m
}

// formatOf is a format with IDs of type T.
type formatOf[T comparable] struct {
	pool  nodelease.Pool
	build func(idtype.Options) (idtype.Generator[T], error)
	read  func(T) minted
}

func (f formatOf[T]) start(p *process) (source, error) {
	o := p.options()
	g, err := nodelease.NewGenerator(p.ctx, p, f.pool, o, f.builder(p, time.Time{}))
	return stream[T]{f, g}, err
}

// builder returns the function that builds a generator for each claim of a process.
func (f formatOf[T]) builder(p *process, notBefore time.Time) func(idtype.Lease) (idtype.Generator[T], error) {
	return func(l idtype.Lease) (idtype.Generator[T], error) {
		o := idtype.Options{Lease: l, Clock: p.reading, MaxWait: -1, NotBefore: notBefore}
		if p.index%2 == 1 {
			o.MaxWait = 50 * time.Millisecond
		}
		return f.build(o)
	}
}

// A stream is the Generator of a process.
type stream[T comparable] struct {
	formatOf[T]
	g *nodelease.Generator[T]
}

func (s stream[T]) create(r *rand.Rand) ([]minted, error) {
	ids := make([]T, 1+r.IntN(3))
	n, err := s.g.Fill(context.Background(), ids)
	var made []minted
	for _, id := range ids[:n] {
		made = append(made, s.read(id))
	}
	return slices.Clip(made), err
}

// copy copies the generator. The copy continues after the newest ID, because a copied
// generator knows it.
func (s stream[T]) copy(to *process, newest int64) (source, error) {
	o := to.options()
	g, err := s.g.Copy(to, o, to.serial, newest, s.builder(to, time.UnixMilli(newest)))
	return stream[T]{s.formatOf, g}, err
}

func (s stream[T]) close() error { return s.g.Close() }
