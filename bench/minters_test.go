package bench

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake/v2"
	"go.jetify.com/typeid"
	typeid2 "go.jetify.com/typeid/v2"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// A minter generates IDs.
type minter struct {
	next func(n int) error        // generates n IDs, one by one
	fill func(n int) (int, error) // generates n IDs with one Fill; nil for peers
}

// A subject is a format or a library to measure.
type subject struct {
	name  string
	unit  time.Duration // unit of time, to which limit and burst apply
	limit int           // maximum of IDs per unit; 0 means no limit
	burst int           // IDs per burst
	open  func(idtype.Options) (minter, error)
}

// formats are the formats of this module. A burst is half of the IDs that a unit
// always has: a UID60 generator may start a unit at sequence 255, which leaves 256
// of 512.
var formats = []subject{
	{"Snowflake", time.Millisecond, 4096, 2048, openSnowflake},
	{"SnowflakeSI", time.Millisecond, 256, 128, openSnowflakeSI},
	{"UID60", time.Millisecond, 512, 128, openUID60},
	{"Spread64", time.Millisecond, 64, 32, openSpread64},
	{"Sno", 4 * time.Millisecond, 65536, 32768, openSno},
	{"UUID", time.Millisecond, 4096, 2048, openUUID},
}

// cappedPeers are the libraries with a cap.
var cappedPeers = []subject{
	{"bwmarrin/snowflake", time.Millisecond, 4096, 2048, openBwmarrin},
	{"sony/sonyflake", 10 * time.Millisecond, 256, 128, openSonyflake},
}

// minters are all subjects. Those without a cap have bursts of the same size as
// Snowflake. time.Now is the minimum cost of a generator that reads the clock.
var minters = slices.Concat([]subject{
	{"time.Now", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (time.Time, error) { return time.Now(), nil }) })},
}, formats, []subject{
	{"rs/xid", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (xid.ID, error) { return xid.New(), nil }) })},
	{"oklog/ulid", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (ulid.ULID, error) { return ulid.Make(), nil }) })},
	{"google/uuid", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (google.UUID, error) { return google.NewV7() }) })},
	{"gofrs/uuid", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (gofrs.UUID, error) { return gofrs.NewV7() }) })},
	{"jetify/typeid", 4 * time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (rowTypeID, error) { return typeid.New[rowTypeID]() }) })},
	{"jetify/typeid/v2", 4 * time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (typeid2.TypeID, error) { return typeid2.Generate("row") }) })},
	{"segmentio/ksuid", time.Millisecond, 0, 2048, each(func(n int) error { return repeat(n, func() (ksuid.KSUID, error) { return ksuid.NewRandom() }) })},
}, cappedPeers)

// each is the open function of a library without generators. next generates n IDs.
func each(next func(n int) error) func(idtype.Options) (minter, error) {
	return func(idtype.Options) (minter, error) { return minter{next: next}, nil }
}

// new opens a generator.
func (s subject) new(b *testing.B, o idtype.Options) minter {
	b.Helper()
	m, err := s.open(o)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// repeat calls next n times. The compiler inlines repeat and a function literal
// passed to it, so benchmarks measure direct calls, as in a program. Calls through
// a method value take 7 ns more.
func repeat[T any](n int, next func() (T, error)) error {
	var id T
	var err error
	for range n {
		if id, err = next(); err != nil {
			return err
		}
	}
	runtime.KeepAlive(id)
	return nil
}

// filler returns a function that fills a slice, which it allocates once.
func filler[T any](g idtype.Generator[T]) func(int) (int, error) {
	var dst []T
	return func(n int) (int, error) {
		if len(dst) < n {
			dst = make([]T, n)
		}
		return g.Fill(context.Background(), dst[:n])
	}
}

func openSnowflake(o idtype.Options) (minter, error) {
	g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: o})
	return minter{func(n int) error { return repeat(n, func() (idtype.Snowflake, error) { return g.Next() }) }, filler(g)}, err
}

func openSnowflakeSI(o idtype.Options) (minter, error) {
	g, err := idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: figures.SILayout, Options: o})
	return minter{func(n int) error { return repeat(n, func() (idtype.SnowflakeSI, error) { return g.Next() }) }, filler(g)}, err
}

func openUID60(o idtype.Options) (minter, error) {
	g, err := idtype.NewUID60Generator(idtype.UID60Config{Clock: o.Clock, MaxWait: o.MaxWait})
	return minter{func(n int) error { return repeat(n, func() (idtype.UID60, error) { return g.Next() }) }, filler(g)}, err
}

func openSpread64(o idtype.Options) (minter, error) {
	g, err := idtype.NewSpread64Generator(idtype.Spread64Config{Options: o})
	return minter{func(n int) error { return repeat(n, func() (idtype.Spread64, error) { return g.Next() }) }, filler(g)}, err
}

func openSno(o idtype.Options) (minter, error) {
	g, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{'A', 10}, Options: o})
	return minter{func(n int) error { return repeat(n, func() (idtype.Sno, error) { return g.Next() }) }, filler(g)}, err
}

func openUUID(o idtype.Options) (minter, error) {
	g, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{Clock: o.Clock})
	return minter{func(n int) error { return repeat(n, func() (idtype.UUID, error) { return g.Next() }) }, filler(g)}, err
}

func openBwmarrin(idtype.Options) (minter, error) {
	g, err := bwmarrin.NewNode(1)
	return minter{next: func(n int) error { return repeat(n, func() (bwmarrin.ID, error) { return g.Generate(), nil }) }}, err
}

func openSonyflake(idtype.Options) (minter, error) {
	g, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	return minter{next: func(n int) error { return repeat(n, func() (int64, error) { return g.NextID() }) }}, err
}
