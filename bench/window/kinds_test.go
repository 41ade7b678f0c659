package windowbench

import (
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// A kind is a kind of key that contains its time.
type kind struct {
	name   string
	column string
	// minter returns a function that generates a key for a given time. The times must
	// ascend.
	minter func() (func(at time.Time) (any, error), error)
	// between returns the bounds lo <= id < hi of the keys of a window.
	between func(from, to time.Time) (lo, hi any, err error)
	floor   string // SQL function that returns the lower bound for a time
	time    string // SQL function that returns the time of a key
}

var kinds = []kind{
	{
		name: "snowflake", column: "bigint", floor: schema + ".snowflake_floor", time: schema + ".snowflake_time",
		minter: func() (func(time.Time) (any, error), error) {
			now := start
			g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1, Options: idtype.Options{
				MaxWait: -1, Clock: func() time.Time { return now },
			}})
			return func(at time.Time) (any, error) { now = at; return g.Next() }, err
		},
		between: func(from, to time.Time) (any, any, error) { return anys(idtype.SnowflakeLayout{}.Range(from, to)) },
	},
	{
		name: "sno", column: "uuid", floor: schema + ".sno_floor", time: schema + ".sno_time",
		minter: func() (func(time.Time) (any, error), error) {
			g, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{0, 1}})
			return func(at time.Time) (any, error) { return g.At(0, at) }, err
		},
		between: func(from, to time.Time) (any, any, error) { return anys(idtype.SnoLayout{}.Range(from, to)) },
	},
	{
		name: "uuid", column: "uuid", floor: schema + ".uuid7_floor", time: schema + ".uuid7_time",
		minter: func() (func(time.Time) (any, error), error) {
			now := start
			g, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{Clock: func() time.Time { return now }})
			return func(at time.Time) (any, error) { now = at; return g.Next() }, err
		},
		between: func(from, to time.Time) (any, any, error) { return anys(idtype.UUIDLayout{}.Range(from, to)) },
	},
}

func anys[T any](lo, hi T, err error) (any, any, error) { return lo, hi, err }
