package guide

import (
	"hash/fnv"
	"math/bits"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// SitePool is the pool of a site whose number is the datacenter of its IDs: 32
// numbers, and none of another site's.
func SitePool(site int) nodelease.Pool {
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	for n := range pool.Size {
		if n>>5 != site {
			pool.Reserved = append(pool.Reserved, n)
		}
	}
	return pool
}

// ShardGenerators makes a generator for each of 32 logical shards, whose number
// is the datacenter of its IDs. The worker is this process's own.
func ShardGenerators(worker int) (gens [32]*idtype.SnowflakeGenerator, err error) {
	for shard := range gens {
		gens[shard], err = idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: shard, Worker: worker})
		if err != nil {
			return gens, err
		}
	}
	return gens, nil
}

// ShardOf reads the shard off an ID.
func ShardOf(id idtype.Snowflake) (int, error) {
	p, err := idtype.DefaultSnowflakeLayout().Parts(id)
	return p.Datacenter, err
}

// ByHash spreads keys over n shards by all of their bits.
func ByHash(id idtype.Snowflake, n int) (shard int, err error) {
	key, err := id.MarshalBinary()
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(key)
	high, _ := bits.Mul64(h.Sum64(), uint64(n)) // by the upper bits, which depend on most of the key
	return int(high), nil
}

// ByRemainder is what not to do.
func ByRemainder(id idtype.Snowflake, n int) int { return int(id.Int64() % int64(n)) }
