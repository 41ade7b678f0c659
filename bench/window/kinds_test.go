package windowbench

import (
	"encoding/binary"
	"time"

	"github.com/gofrs/uuid/v5"

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
	floor   string // SQL function that returns the lower bound for a time; "" if there is none
	time    string // SQL function that returns the time of a key
	needs   int    // minimum server_version_num for time
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
		// Postgres has no function for the bounds, so v7Floor computes them.
		name: "uuidv7", column: "uuid", time: "uuid_extract_timestamp", needs: 180000,
		minter: func() (func(time.Time) (any, error), error) {
			return func(at time.Time) (any, error) { id, err := uuid.NewV7AtTime(at); return [16]byte(id), err }, nil
		},
		between: func(from, to time.Time) (any, any, error) { return v7Floor(from), v7Floor(to), nil },
	},
}

func anys[T any](lo, hi T, err error) (any, any, error) { return lo, hi, err }

// v7Floor returns a UUID that sorts before all version 7 UUIDs of t's millisecond or
// later, and after all earlier ones.
func v7Floor(t time.Time) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16)
	return id
}
