package figures

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"

	"github.com/sortkey/sortkey/idtype"
)

// A Key is a way for rows to get their primary key.
type Key struct {
	Name   string
	Column string              // type and default
	Needs  int                 // minimum server_version_num
	Next   func() (any, error) // nil if the server creates the keys
}

// Bigserial is the baseline.
var Bigserial = Key{Name: "bigserial", Column: "bigserial"}

// UUIDv7 is the server's uuidv7().
var UUIDv7 = Key{Name: "uuidv7", Column: "uuid default uuidv7()", Needs: 180000}

// Keys of other libraries, in the column types that they recommend.
var (
	GoogleV4 = Key{Name: "google-v4", Column: "uuid", Next: func() (any, error) { id, err := uuid.NewRandom(); return [16]byte(id), err }}
	GoogleV7 = Key{Name: "google-v7", Column: "uuid", Next: func() (any, error) { id, err := uuid.NewV7(); return [16]byte(id), err }}
	ULID     = Key{Name: "ulid-text", Column: `text collate "C"`, Next: func() (any, error) { return ulid.Make().String(), nil }}
	XID      = Key{Name: "xid-text", Column: `text collate "C"`, Next: func() (any, error) { return xid.New().String(), nil }}
)

// Snowflake is a key in a bigint.
func Snowflake(b testing.TB, o idtype.Options) Key {
	g, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1, Options: o})
	return own(b, "Snowflake", "bigint", g, err)
}

// Spread64 is a key in a bigint, without order.
func Spread64(b testing.TB, o idtype.Options) Key {
	g, err := idtype.NewSpread64Generator(idtype.Spread64Config{Generator: 1, Options: o})
	return own(b, "Spread64", "bigint", g, err)
}

// Sno is a key in a uuid.
func Sno(b testing.TB, o idtype.Options) Key {
	g, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{0, 1}, Options: o})
	return own(b, "Sno", "uuid", g, err)
}

// UUID is a UUIDv7 of this project.
func UUID(b testing.TB, o idtype.Options) Key {
	g, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{Clock: o.Clock})
	return own(b, "UUID", "uuid", g, err)
}

func own[T any](b testing.TB, name, column string, g idtype.Generator[T], err error) Key {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return Key{Name: name, Column: column, Next: func() (any, error) { return g.Next() }}
}

// Paced returns options for a generator whose clock advances by a millisecond per ID, so
// that the generator never waits.
func Paced(start time.Time) idtype.Options {
	now := start
	return idtype.Options{MaxWait: -1, Clock: func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}}
}
