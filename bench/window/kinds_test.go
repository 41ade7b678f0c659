package windowbench

import (
	"encoding/binary"
	"time"

	"github.com/gofrs/uuid/v5"

	"github.com/sortkey/sortkey/idtype"
)

// A kind is one of keys that have their time in them.
type kind struct {
	name   string
	column string
	// minter gives what mints a key for each time, in their order.
	minter func() (func(at time.Time) (any, error), error)
	// between gives the bounds lo <= id < hi of the keys of a window.
	between func(from, to time.Time) (lo, hi any, err error)
	floor   string // the function of the server that does, given a time; "": there is none
	time    string // that which gives a key's time
	needs   int    // server_version_num, for that one
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
		// The bounds are made by hand: Postgres has no function for them.
		name: "uuidv7", column: "uuid", time: "uuid_extract_timestamp", needs: 170000,
		minter: func() (func(time.Time) (any, error), error) {
			return func(at time.Time) (any, error) { id, err := uuid.NewV7AtTime(at); return [16]byte(id), err }, nil
		},
		between: func(from, to time.Time) (any, any, error) { return v7Floor(from), v7Floor(to), nil },
	},
}

func anys[T any](lo, hi T, err error) (any, any, error) { return lo, hi, err }

// v7Floor is a UUID before all of version 7 that are of t's millisecond or later,
// and after all that are of an earlier one.
func v7Floor(t time.Time) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16)
	return id
}
