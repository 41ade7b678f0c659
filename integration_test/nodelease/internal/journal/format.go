package journal

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A Format is a format of IDs with few node numbers.
type Format struct {
	Pool nodelease.Pool
	// Unit is the resolution of an ID's time.
	Unit time.Duration
	// Increasing reports whether a generator's IDs increase even if its clock steps
	// back.
	Increasing bool
	// Build returns a generator with a lease and a clock.
	Build func(idtype.Lease, func() time.Time) (idtype.Generator[ID], error)
	// Decode returns the start of an ID's unit, in Unix milliseconds, and its node
	// number.
	Decode func(ID) (milli int64, number int)
}

// ParseFormat parses the name of a format. The layout of "snowflake:2" has 2 bits for
// the worker, so its pool has 4 numbers. "sno:3" is a partition in 3 ranges.
func ParseFormat(s string) (Format, error) {
	name, size, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(size)
	switch {
	case err != nil || n < 0:
	case name == "snowflake":
		return snowflake(n), nil
	case name == "sno":
		return sno(n), nil
	}
	return Format{}, fmt.Errorf("want a format such as snowflake:2 or sno:3, got %q", s)
}

func snowflake(workerBits int) Format {
	layout := idtype.SnowflakeLayout{WorkerBits: workerBits, SequenceBits: 12}
	return Format{
		Pool: nodelease.ForSnowflake(layout), Unit: time.Millisecond, Increasing: true,
		Build: func(l idtype.Lease, clock func() time.Time) (idtype.Generator[ID], error) {
			g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{Lease: l, Clock: clock}})
			return plain(g, func(id idtype.Snowflake) (p ID) {
				binary.BigEndian.PutUint64(p[2:], uint64(id))
				return p
			}), err
		},
		Decode: func(id ID) (int64, int) {
			parts, err := layout.Parts(idtype.Snowflake(binary.BigEndian.Uint64(id[2:])))
			if err != nil {
				return -1, -1
			}
			return parts.Time.UnixMilli(), parts.Worker
		},
	}
}

func sno(ranges int) Format {
	partition := idtype.SnoPartitionFrom(7)
	return Format{
		Pool: nodelease.ForSnoRanges(partition, ranges), Unit: 4 * time.Millisecond,
		Build: func(l idtype.Lease, clock func() time.Time) (idtype.Generator[ID], error) {
			g, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition, Ranges: ranges, Options: idtype.Options{Lease: l, Clock: clock}})
			return plain(g, func(id idtype.Sno) ID { return ID(id) }), err
		},
		Decode: func(id ID) (int64, int) {
			return idtype.Sno(id).Time().UnixMilli(), int(idtype.Sno(id).Sequence()) / (1 << 16 / ranges)
		},
	}
}

// A mapped generator converts the IDs of another generator to IDs of this package.
type mapped[T any] struct {
	idtype.Generator[T]
	bytes func(T) ID
	buf   []T
}

func plain[T any](g idtype.Generator[T], bytes func(T) ID) idtype.Generator[ID] {
	return &mapped[T]{Generator: g, bytes: bytes}
}

// Next creates one ID.
func (m *mapped[T]) Next() (ID, error) {
	id, err := m.Generator.Next()
	return m.bytes(id), err
}

// Fill creates len(dst) IDs, for one goroutine at a time.
func (m *mapped[T]) Fill(ctx context.Context, dst []ID) (int, error) {
	if len(m.buf) < len(dst) {
		m.buf = make([]T, len(dst))
	}
	n, err := m.Generator.Fill(ctx, m.buf[:len(dst)])
	for i, id := range m.buf[:n] {
		dst[i] = m.bytes(id)
	}
	return n, err
}
