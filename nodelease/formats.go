package nodelease

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortkey/sortkey/idtype"
)

// NewSnowflakeGenerator claims one of the layout's numbers, from [ForSnowflake],
// and returns a generator that creates Snowflakes with it. Options.Clock is the
// generator's clock too. For other settings, and for a pool with Reserved numbers,
// call [NewGenerator].
func NewSnowflakeGenerator(ctx context.Context, store Store, layout idtype.SnowflakeLayout, o Options) (*Generator[idtype.Snowflake], error) {
	return NewGenerator(ctx, store, ForSnowflake(layout), o, func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
		return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: layout, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSnowflakeSIGenerator is [NewSnowflakeGenerator] for SnowflakeSIs, whose
// numbers are the machines of [ForSnowflakeSI].
func NewSnowflakeSIGenerator(ctx context.Context, store Store, layout idtype.SnowflakeSILayout, o Options) (*Generator[idtype.SnowflakeSI], error) {
	return NewGenerator(ctx, store, ForSnowflakeSI(layout), o, func(l idtype.Lease) (*idtype.SnowflakeSIGenerator, error) {
		return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: layout, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSpread64Generator is [NewSnowflakeGenerator] for the Spread64s of a cluster,
// 0 to 15, whose numbers are the generators of [ForSpread64].
func NewSpread64Generator(ctx context.Context, store Store, cluster int, o Options) (*Generator[idtype.Spread64], error) {
	return NewGenerator(ctx, store, ForSpread64(cluster), o, func(l idtype.Lease) (*idtype.Spread64Generator, error) {
		return idtype.NewSpread64Generator(idtype.Spread64Config{Cluster: cluster, Options: idtype.Options{Lease: l, Clock: o.Clock}})
	})
}

// NewSnoGenerator is [NewSnowflakeGenerator] for Snos. It claims a partition from
// [ForSno]. If c.Ranges and c.Partition are set, it claims a range of that
// partition's sequence, from [ForSnoRanges]. It sets c.Lease and c.Clock, which must
// be nil, as must c.Snapshot; the other fields of c are as for
// [idtype.NewSnoGenerator].
func NewSnoGenerator(ctx context.Context, store Store, c idtype.SnoConfig, o Options) (*Generator[idtype.Sno], error) {
	if err := checkSno(c); err != nil {
		return nil, fmt.Errorf("nodelease: %w: %w", err, idtype.ErrNode)
	}
	pool := ForSno()
	if c.Partition != nil {
		// A copy, since each claim reads it, and the caller may change its own.
		p := *c.Partition
		c.Partition = &p
		pool = ForSnoRanges(p, c.Ranges)
	}
	return NewGenerator(ctx, store, pool, o, func(l idtype.Lease) (*idtype.SnoGenerator, error) {
		c.Lease, c.Clock = l, o.Clock
		return idtype.NewSnoGenerator(c)
	})
}

// checkSno returns an error if a generator of the config can't mint under any
// claim.
func checkSno(c idtype.SnoConfig) error {
	switch {
	case c.Lease != nil || c.Clock != nil:
		return errors.New("expected a Sno config without a Lease and a Clock, got one: the claim is the lease, and the clock goes into Options.Clock")
	case c.Snapshot != nil:
		return errors.New("expected a Sno config without a Snapshot, got one: leave it nil, the claim determines the partition and the time to start from")
	case c.Ranges != 0 && c.Partition == nil:
		return fmt.Errorf("expected a Sno config with both Ranges and a Partition or neither, got %d Ranges alone: set Partition to the one that is divided, or Ranges to 0 to claim a whole partition", c.Ranges)
	case c.Ranges == 0 && c.Partition != nil:
		return fmt.Errorf("expected a Sno config with both Ranges and a Partition or neither, got partition %d alone: leave Partition nil to claim one, or set Ranges to claim a range of it", c.Partition.Uint16())
	case c.Ranges != 0 && (c.SequenceMin != 0 || c.SequenceMax != 0):
		return fmt.Errorf("expected a Sno config with Ranges or with SequenceMin and SequenceMax, got %d Ranges and sequence numbers %d to %d: leave SequenceMin and SequenceMax zero, the claimed range determines them", c.Ranges, c.SequenceMin, c.SequenceMax)
	}
	return nil
}
