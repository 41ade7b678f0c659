package bench

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// BenchmarkLease generates Snowflakes like BenchmarkNext: with a configured node
// number, with a claimed one, and through a nodelease.Generator.
func BenchmarkLease(b *testing.B) {
	var store leasetest.Store
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	claim := func(o idtype.Options) (minter, error) {
		k, err := nodelease.Acquire(b.Context(), &store, pool, nodelease.Options{})
		if err != nil {
			return minter{}, err
		}
		b.Cleanup(func() { k.Close() })
		o.Lease = k
		return openSnowflake(o)
	}
	generator := func(o idtype.Options) (minter, error) {
		g, err := nodelease.NewGenerator(b.Context(), &store, pool, nodelease.Options{},
			func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
				o.Lease = l
				return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: o})
			})
		if err != nil {
			return minter{}, err
		}
		b.Cleanup(func() { g.Close() })
		return minter{next: func(n int) error { return repeat(n, g.Next) }}, nil
	}
	for _, s := range []subject{
		{"configured", time.Millisecond, 4096, 2048, openSnowflake},
		{"claimed", time.Millisecond, 4096, 2048, claim},
		{"Generator", time.Millisecond, 4096, 2048, generator},
	} {
		b.Run(s.name, func(b *testing.B) { bursts(b, s, 1) })
	}
}
