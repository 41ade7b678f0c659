package nodelease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// NewSnowflakeGenerator claims a datacenter and worker of c.Layout, from the pool
// [ForSnowflake], and returns a generator of Snowflakes with them. The fields of c are as
// for [idtype.NewSnowflakeGenerator], but the claim determines Datacenter, Worker and
// Lease, and Options the Clock: leave these four zero. For a pool with Reserved numbers,
// use [NewGenerator].
func NewSnowflakeGenerator(ctx context.Context, store Store, c idtype.SnowflakeConfig, o Options) (*Generator[idtype.Snowflake], error) {
	if err := checkConfig("SnowflakeConfig", c.Options, "Datacenter and Worker", c.Datacenter != 0 || c.Worker != 0); err != nil {
		return nil, err
	}
	return claimed(ctx, store, ForSnowflake(c.Layout), o, &c.Options, func() (idtype.Generator[idtype.Snowflake], error) {
		return idtype.NewSnowflakeGenerator(c)
	})
}

// NewSnowflakeSIGenerator claims a machine of c.Layout, from the pool [ForSnowflakeSI], and
// returns a generator of SnowflakeSIs with it. The fields of c are as for
// [idtype.NewSnowflakeSIGenerator], but the claim determines Machine and Lease, and Options
// the Clock: leave these three zero.
func NewSnowflakeSIGenerator(ctx context.Context, store Store, c idtype.SnowflakeSIConfig, o Options) (*Generator[idtype.SnowflakeSI], error) {
	if err := checkConfig("SnowflakeSIConfig", c.Options, "Machine", c.Machine != 0); err != nil {
		return nil, err
	}
	return claimed(ctx, store, ForSnowflakeSI(c.Layout), o, &c.Options, func() (idtype.Generator[idtype.SnowflakeSI], error) {
		return idtype.NewSnowflakeSIGenerator(c)
	})
}

// NewSpread64Generator claims one of the 64 generator numbers of c.Cluster, from the pool
// [ForSpread64], and returns a generator of Spread64s with it. The fields of c are as for
// [idtype.NewSpread64Generator], but the claim determines Generator and Lease, and Options
// the Clock: leave these three zero.
func NewSpread64Generator(ctx context.Context, store Store, c idtype.Spread64Config, o Options) (*Generator[idtype.Spread64], error) {
	if err := checkConfig("Spread64Config", c.Options, "Generator", c.Generator != 0); err != nil {
		return nil, err
	}
	return claimed(ctx, store, ForSpread64(c.Cluster), o, &c.Options, func() (idtype.Generator[idtype.Spread64], error) {
		return idtype.NewSpread64Generator(c)
	})
}

// NewSnoGenerator claims a partition from the pool [ForSno] and returns a generator of
// Snos with it. If c.Ranges and c.Partition are set, it claims a range of that
// partition's sequence instead, from the pool [ForSnoRanges]. Set both or neither. The
// other fields of c are as for [idtype.NewSnoGenerator], but the claim determines
// Snapshot, Lease and, with Ranges, SequenceMin and SequenceMax, and Options the Clock:
// leave these zero. To choose the metabyte per ID, use [idtype.Sno.WithMeta].
func NewSnoGenerator(ctx context.Context, store Store, c idtype.SnoConfig, o Options) (*Generator[idtype.Sno], error) {
	if err := checkConfig("SnoConfig", c.Options, "Snapshot", c.Snapshot != nil); err != nil {
		return nil, err
	}
	pool := ForSno()
	switch {
	case (c.Partition == nil) != (c.Ranges == 0):
		return nil, fmt.Errorf("nodelease: SnoConfig: want both Partition and Ranges, to claim a range of the partition, or neither, to claim a partition, got Ranges %d: %w", c.Ranges, idtype.ErrConfig)
	case c.Partition != nil:
		if err := checkConfig("SnoConfig", c.Options, "SequenceMin and SequenceMax", c.SequenceMin != 0 || c.SequenceMax != 0); err != nil {
			return nil, err
		}
		// Copy the partition: each claim reads it, and the caller may change its
		// variable.
		p := *c.Partition
		c.Partition = &p
		pool = ForSnoRanges(p, c.Ranges)
	}
	return claimed(ctx, store, pool, o, &c.Options, func() (idtype.Generator[idtype.Sno], error) {
		return idtype.NewSnoGenerator(c)
	})
}

// claimed returns a generator whose claim determines the lease and the clock in the options of
// its config. The clock is called one goroutine at a time.
func claimed[T any](ctx context.Context, store Store, pool Pool, o Options, c *idtype.Options, build func() (idtype.Generator[T], error)) (*Generator[T], error) {
	if clock := o.Clock; clock != nil {
		var mu sync.Mutex
		o.Clock = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return clock()
		}
	}
	return newGenerator(ctx, store, pool, o, c.MaxWait, func(l idtype.Lease) (idtype.Generator[T], error) {
		c.Lease, c.Clock = l, o.Clock
		return build()
	})
}

// checkConfig returns an error if a config has what the claim determines: the clock, the
// lease, or the fields that claimed names.
func checkConfig(name string, c idtype.Options, claimed string, set bool) error {
	switch {
	case c.Lease != nil:
		claimed = "Lease"
	case c.Clock != nil:
		return fmt.Errorf("nodelease: %s: Clock is set; set nodelease.Options.Clock instead, which is also the generator's clock: %w", name, idtype.ErrConfig)
	case !set:
		return nil
	}
	return fmt.Errorf("nodelease: %s: want no %s, because the claim determines it; leave it zero: %w", name, claimed, idtype.ErrConfig)
}
