package guide

import (
	"context"
	"hash/fnv"
	"math/bits"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// SitePool returns the pool of a site, whose number is the datacenter of its IDs.
// It has 32 node numbers; the numbers of the other sites are reserved.
func SitePool(site int) nodelease.Pool {
	pool := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
	for n := range pool.Size {
		if n>>5 != site {
			pool.Reserved = append(pool.Reserved, n)
		}
	}
	return pool
}

// SiteIDs returns a generator with a number of a site. It calls the function for each number
// that it claims: at first, and after a loss.
func SiteIDs(ctx context.Context, store nodelease.Store, site int) (*nodelease.Generator[idtype.Snowflake], error) {
	return nodelease.NewGenerator(ctx, store, SitePool(site), nodelease.Options{}, func(l idtype.Lease) (*idtype.SnowflakeGenerator, error) {
		return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: l}})
	})
}

// ShardGenerators returns a generator for each of 32 logical shards. The number
// of the shard is the datacenter of its IDs. Each instance has its own worker.
func ShardGenerators(worker int) (gens [32]*idtype.SnowflakeGenerator, err error) {
	for shard := range gens {
		gens[shard], err = idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: shard, Worker: worker})
		if err != nil {
			return gens, err
		}
	}
	return gens, nil
}

// ShardOf returns the shard in an ID.
func ShardOf(id idtype.Snowflake) (int, error) {
	p, err := idtype.DefaultSnowflakeLayout().Parts(id)
	return p.Datacenter, err
}

// ByHash returns the shard of a key among n, by a hash of all its bits.
func ByHash(id idtype.Snowflake, n int) (shard int, err error) {
	key, err := id.MarshalBinary()
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(key)
	high, _ := bits.Mul64(h.Sum64(), uint64(n)) // the upper bits of the hash depend on most of the key
	return int(high), nil
}

// ByRemainder shows the wrong way: it uses only the low bits of a key.
func ByRemainder(id idtype.Snowflake, n int) int { return int(id.Int64() % int64(n)) }
