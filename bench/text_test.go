package bench

import (
	"strconv"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"go.jetify.com/typeid"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
)

// The IDs have the length of current ones, and the same time where the library
// allows to set it.
var (
	when = time.Date(2026, 7, 1, 12, 34, 56, 789e6, time.UTC)

	snowflakeID  = must(idtype.SnowflakeLayout{}.Compose(idtype.SnowflakeParts{Time: when, Datacenter: 3, Worker: 7, Sequence: 1234}))
	uid60ID      = must(idtype.UID60Layout{}.Compose(idtype.UID60Parts{Time: when, Sequence: 123, Random: 345}))
	spread64ID   = must(idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: when, Sequence: 12, Generator: 3, Cluster: 7}))
	snoID        = must(idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: when, Meta: 'A', Partition: idtype.SnoPartition{'A', 10}, Sequence: 1234}))
	uuidID       = idtype.UUID(googleID)
	prefixedID   = idtype.SnowflakeOf[row](snowflakeID)
	prefixedUUID = idtype.UUIDOf[row](uuidID)
	xidID        = xid.NewWithTime(when)
	ulidID       = ulid.MustNewDefault(when)
	googleID     = must(google.NewV7())
	gofrsID      = must(gofrs.NewV7AtTime(when))
	typeID       = must(typeid.FromUUID[rowTypeID](googleText))
	bwmarrinID   = bwmarrin.ParseInt64(snowflakeID.Int64())

	snowflakeText, uid60Text, spread64Text, snoText, uuidText = snowflakeID.String(), uid60ID.String(), spread64ID.String(), snoID.String(), uuidID.String()
	prefixedText, typeIDText                                  = prefixedID.String(), prefixedUUID.String()
	xidText, ulidText, googleText, gofrsText, bwmarrinText    = xidID.String(), ulidID.String(), googleID.String(), gofrsID.String(), bwmarrinID.String()

	sealer = must(seal.New([]byte{31: 1, 1: 2, 3, 4, 5, 6, 7, 8}))

	// sink makes an inlined String allocate, as in a program that keeps the result.
	sink string
)

// A row is a model of typed keys with a prefix.
type row struct{}

func (row) IDPrefix() string { return "row" }
func (row) Prefix() string   { return "row" }

// A rowTypeID is the TypeID of jetify's package for a row.
type rowTypeID struct{ typeid.TypeID[row] }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// measure runs a benchmark of a function that calls [loop].
func measure(b *testing.B, name string, times func(n int)) {
	b.Run(name, func(b *testing.B) {
		const n = 1000
		t := newTally()
		for b.Loop() {
			times(n)
		}
		t.minted, t.timed, t.took = n*b.N, n*b.N, b.Elapsed()
		t.report(b)
	})
}

// loop calls f n times. The compiler inlines loop and a function literal passed to it, so
// that benchmarks measure direct calls, as in a program. Calling a function value takes
// 2 ns more, the entire time of some of them.
func loop(n int, f func()) {
	for range n {
		f()
	}
}

// BenchmarkAppendText formats into a buffer. strconv is the baseline for numbers.
func BenchmarkAppendText(b *testing.B) {
	buf := make([]byte, 0, 64)
	measure(b, "Snowflake", func(n int) { loop(n, func() { _, _ = snowflakeID.AppendText(buf[:0]) }) })
	measure(b, "UID60", func(n int) { loop(n, func() { _, _ = uid60ID.AppendText(buf[:0]) }) })
	measure(b, "Spread64", func(n int) { loop(n, func() { _, _ = spread64ID.AppendText(buf[:0]) }) })
	measure(b, "Sno", func(n int) { loop(n, func() { _, _ = snoID.AppendText(buf[:0]) }) })
	measure(b, "UUID", func(n int) { loop(n, func() { _, _ = uuidID.AppendText(buf[:0]) }) })
	measure(b, "SnowflakeOf,prefix", func(n int) { loop(n, func() { _, _ = prefixedID.AppendText(buf[:0]) }) })
	measure(b, "UUIDOf,prefix", func(n int) { loop(n, func() { _, _ = prefixedUUID.AppendText(buf[:0]) }) })
	measure(b, "rs/xid", func(n int) { loop(n, func() { _ = xidID.Encode(buf[:20]) }) })
	measure(b, "oklog/ulid", func(n int) { loop(n, func() { _ = ulidID.MarshalTextTo(buf[:ulid.EncodedSize]) }) })
	measure(b, "strconv/Snowflake", func(n int) { loop(n, func() { _ = strconv.AppendInt(buf[:0], snowflakeID.Int64(), 10) }) })
}

// BenchmarkString formats into a new string, with one allocation.
func BenchmarkString(b *testing.B) {
	measure(b, "Snowflake", func(n int) { loop(n, func() { sink = snowflakeID.String() }) })
	measure(b, "UID60", func(n int) { loop(n, func() { sink = uid60ID.String() }) })
	measure(b, "Spread64", func(n int) { loop(n, func() { sink = spread64ID.String() }) })
	measure(b, "Sno", func(n int) { loop(n, func() { sink = snoID.String() }) })
	measure(b, "UUID", func(n int) { loop(n, func() { sink = uuidID.String() }) })
	measure(b, "SnowflakeOf,prefix", func(n int) { loop(n, func() { sink = prefixedID.String() }) })
	measure(b, "UUIDOf,prefix", func(n int) { loop(n, func() { sink = prefixedUUID.String() }) })
	measure(b, "rs/xid", func(n int) { loop(n, func() { sink = xidID.String() }) })
	measure(b, "oklog/ulid", func(n int) { loop(n, func() { sink = ulidID.String() }) })
	measure(b, "google/uuid", func(n int) { loop(n, func() { sink = googleID.String() }) })
	measure(b, "gofrs/uuid", func(n int) { loop(n, func() { sink = gofrsID.String() }) })
	measure(b, "jetify/typeid", func(n int) { loop(n, func() { sink = typeID.String() }) })
	measure(b, "bwmarrin/snowflake", func(n int) { loop(n, func() { sink = bwmarrinID.String() }) })
	measure(b, "strconv/Snowflake", func(n int) { loop(n, func() { sink = strconv.FormatInt(snowflakeID.Int64(), 10) }) })
}

// BenchmarkParse parses and validates the strings of BenchmarkString.
func BenchmarkParse(b *testing.B) {
	measure(b, "Snowflake", func(n int) { loop(n, func() { _, _ = idtype.ParseSnowflake(snowflakeText) }) })
	measure(b, "UID60", func(n int) { loop(n, func() { _, _ = idtype.ParseUID60(uid60Text) }) })
	measure(b, "Spread64", func(n int) { loop(n, func() { _, _ = idtype.ParseSpread64(spread64Text) }) })
	measure(b, "Sno", func(n int) { loop(n, func() { _, _ = idtype.ParseSno(snoText) }) })
	measure(b, "UUID", func(n int) { loop(n, func() { _, _ = idtype.ParseUUID(uuidText) }) })
	measure(b, "SnowflakeOf,prefix", func(n int) { loop(n, func() { _, _ = idtype.Parse[idtype.SnowflakeOf[row]](prefixedText) }) })
	measure(b, "UUIDOf,prefix", func(n int) { loop(n, func() { _, _ = idtype.Parse[idtype.UUIDOf[row]](typeIDText) }) })
	measure(b, "rs/xid", func(n int) { loop(n, func() { _, _ = xid.FromString(xidText) }) })
	measure(b, "oklog/ulid", func(n int) { loop(n, func() { _, _ = ulid.ParseStrict(ulidText) }) })
	measure(b, "google/uuid", func(n int) { loop(n, func() { _, _ = google.Parse(googleText) }) })
	measure(b, "gofrs/uuid", func(n int) { loop(n, func() { _, _ = gofrs.FromString(gofrsText) }) })
	measure(b, "jetify/typeid", func(n int) { loop(n, func() { _, _ = typeid.Parse[rowTypeID](typeIDText) }) })
	measure(b, "bwmarrin/snowflake", func(n int) { loop(n, func() { _, _ = bwmarrin.ParseString(bwmarrinText) }) })
	measure(b, "strconv/Snowflake", func(n int) { loop(n, func() { _, _ = strconv.ParseInt(snowflakeText, 10, 64) }) })
}

// BenchmarkSeal creates the sealed text of an ID.
func BenchmarkSeal(b *testing.B) {
	measure(b, "Snowflake", func(n int) { loop(n, func() { sink = seal.Text(sealer, snowflakeID) }) })
	measure(b, "SnowflakeOf,prefix", func(n int) { loop(n, func() { sink = seal.Text(sealer, prefixedID) }) })
	measure(b, "Sno", func(n int) { loop(n, func() { sink = seal.Text(sealer, snoID) }) })
	measure(b, "UUID", func(n int) { loop(n, func() { sink = seal.Text(sealer, uuidID) }) })
}

// BenchmarkUnseal parses the texts of BenchmarkSeal.
func BenchmarkUnseal(b *testing.B) {
	text, prefixed, sno, uuid := seal.Text(sealer, snowflakeID), seal.Text(sealer, prefixedID), seal.Text(sealer, snoID), seal.Text(sealer, uuidID)
	measure(b, "Snowflake", func(n int) { loop(n, func() { _, _ = seal.Parse[idtype.Snowflake](sealer, text) }) })
	measure(b, "SnowflakeOf,prefix", func(n int) { loop(n, func() { _, _ = seal.Parse[idtype.SnowflakeOf[row]](sealer, prefixed) }) })
	measure(b, "Sno", func(n int) { loop(n, func() { _, _ = seal.Parse[idtype.Sno](sealer, sno) }) })
	measure(b, "UUID", func(n int) { loop(n, func() { _, _ = seal.Parse[idtype.UUID](sealer, uuid) }) })
}
