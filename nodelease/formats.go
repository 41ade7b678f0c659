package nodelease

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortkey/sortkey/idtype"
)

// NewSnowflakeGenerator claims a datacenter and worker of the layout, from the pool
// [ForSnowflake], and returns a generator of Snowflakes with them. Options.Clock is
// also the generator's clock. For other settings, or a pool with Reserved numbers,
// use [NewGenerator].
func NewSnowflakeGenerator(ctx context.Context, store Store, layout idtype.SnowflakeLayout, o Options) (*Generator[idtype.Snowflake], error) {
	return NewGenerator(ctx, store, ForSnowflake(layout), o, func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
		return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSnowflakeSIGenerator claims a machine of the layout, from the pool
// [ForSnowflakeSI], and returns a generator of SnowflakeSIs with it. Options.Clock is
// also the generator's clock.
func NewSnowflakeSIGenerator(ctx context.Context, store Store, layout idtype.SnowflakeSILayout, o Options) (*Generator[idtype.SnowflakeSI], error) {
	return NewGenerator(ctx, store, ForSnowflakeSI(layout), o, func(l idtype.Lease) (*idtype.SnowflakeSIGenerator, error) {
		return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: layout, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSpread64Generator claims one of the 64 generator numbers of a cluster, from the
// pool [ForSpread64], and returns a generator of Spread64s with it. The cluster is 0 to
// 15. Options.Clock is also the generator's clock.
func NewSpread64Generator(ctx context.Context, store Store, cluster int, o Options) (*Generator[idtype.Spread64], error) {
	return NewGenerator(ctx, store, ForSpread64(cluster), o, func(l idtype.Lease) (*idtype.Spread64Generator, error) {
		return idtype.NewSpread64Generator(idtype.Spread64Config{Cluster: cluster, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSnoGenerator claims a partition from the pool [ForSno] and returns a generator of
// Snos with it. If c.Ranges and c.Partition are set, it claims a range of that
// partition's sequence instead, from the pool [ForSnoRanges]. Set both or neither. With
// both, c.SequenceMin and c.SequenceMax must be zero. c.Lease, c.Clock and c.Snapshot
// must be nil: the claim is the lease, and Options.Clock the clock. The other fields of
// c are as for [idtype.NewSnoGenerator].
func NewSnoGenerator(ctx context.Context, store Store, c idtype.SnoConfig, o Options) (*Generator[idtype.Sno], error) {
	if err := checkSno(c); err != nil {
		return nil, fmt.Errorf("nodelease: %w: %w", err, idtype.ErrNode)
	}
	pool := ForSno()
	if c.Partition != nil {
		// Copy the partition: each claim reads it, and the caller may change its
		// variable.
		p := *c.Partition
		c.Partition = &p
		pool = ForSnoRanges(p, c.Ranges)
	}
	return NewGenerator(ctx, store, pool, o, func(l idtype.Lease) (*idtype.SnoGenerator, error) {
		c.Lease, c.Clock = l, o.Clock
		return idtype.NewSnoGenerator(c)
	})
}

// checkSno returns an error if the config can't be used with a claim.
func checkSno(c idtype.SnoConfig) error {
	switch {
	case c.Lease != nil || c.Clock != nil:
		return errors.New("SnoConfig: Lease or Clock is set; leave both nil: the claim is the lease, and the clock goes into Options.Clock")
	case c.Snapshot != nil:
		return errors.New("SnoConfig: Snapshot is set; leave it nil: the claim determines the partition and the start time")
	case c.Ranges != 0 && c.Partition == nil:
		return fmt.Errorf("SnoConfig: Ranges is %d without a Partition; set Partition to the partition to divide, or Ranges to 0 to claim a whole partition", c.Ranges)
	case c.Ranges == 0 && c.Partition != nil:
		return fmt.Errorf("SnoConfig: Partition is %d without Ranges; leave Partition nil to claim a partition, or set Ranges to claim a range of this one", c.Partition.Uint16())
	case c.Ranges != 0 && (c.SequenceMin != 0 || c.SequenceMax != 0):
		return fmt.Errorf("SnoConfig: %d Ranges together with SequenceMin %d and SequenceMax %d; leave SequenceMin and SequenceMax zero: the claimed range determines them", c.Ranges, c.SequenceMin, c.SequenceMax)
	}
	return nil
}
