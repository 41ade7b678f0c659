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
	"github.com/segmentio/ksuid"
	"go.jetify.com/typeid"
	typeid2 "go.jetify.com/typeid/v2"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
)

// The IDs have the length of current ones, and the same time where the library
// allows to set it. Each benchmark has its own loop over these variables: calling a
// function value in a shared loop would add 2 ns, the entire time of some of them.
var (
	when = time.Date(2026, 7, 1, 12, 34, 56, 789e6, time.UTC)

	snowflakeID  = must(idtype.SnowflakeLayout{}.Compose(idtype.SnowflakeParts{Time: when, Datacenter: 3, Worker: 7, Sequence: 1234}))
	siID         = must(siLayout.Compose(idtype.SnowflakeSIParts{Time: when, Machine: 7, Index: 123}))
	uid60ID      = must(idtype.UID60Layout{}.Compose(idtype.UID60Parts{Time: when, Sequence: 123, Random: 345}))
	spread64ID   = must(idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: when, Sequence: 12, Generator: 3, Cluster: 7}))
	snoID        = must(idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: when, Meta: 'A', Partition: idtype.SnoPartition{'A', 10}, Sequence: 1234}))
	xidID        = xid.NewWithTime(when)
	typedID      = idtype.SnowflakeOf[row](snowflakeID)
	prefixedID   = idtype.SnowflakeOf[prefixedRow](snowflakeID)
	typedSno     = idtype.SnoOf[row](snoID)
	uuidID       = idtype.UUID(googleID)
	typedUUID    = idtype.UUIDOf[row](uuidID)
	prefixedUUID = idtype.UUIDOf[prefixedRow](uuidID)
	ulidID       = ulid.MustNewDefault(when)
	googleID     = must(google.NewV7())
	gofrsID      = must(gofrs.NewV7AtTime(when))
	typeID       = must(typeid.FromUUID[rowTypeID](googleText))
	typeID2      = must(typeid2.FromUUID("row", googleText))
	ksuidID      = must(ksuid.NewRandomWithTime(when))
	bwmarrinID   = bwmarrin.ParseInt64(snowflakeID.Int64())

	snowflakeText = snowflakeID.String()
	siText        = siID.String()
	uid60Text     = uid60ID.String()
	spread64Text  = spread64ID.String()
	snoText       = snoID.String()
	xidText       = xidID.String()
	uuidText      = uuidID.String()
	prefixedText  = prefixedID.String()
	typeIDText    = prefixedUUID.String()
	ulidText      = ulidID.String()
	googleText    = googleID.String()
	gofrsText     = gofrsID.String()
	ksuidText     = ksuidID.String()
	bwmarrinText  = bwmarrinID.String()

	sealer = must(seal.New([]byte{31: 1, 1: 2, 3, 4, 5, 6, 7, 8}))

	// sink makes an inlined String allocate, as in a program that keeps the result.
	sink string
)

// A row is a model of typed keys, and a prefixedRow one that declares a prefix.
type (
	row         struct{}
	prefixedRow struct{}
)

func (prefixedRow) IDPrefix() string { return "row" }
func (prefixedRow) Prefix() string   { return "row" }

// A rowTypeID is the TypeID of jetify's package for a prefixedRow.
type rowTypeID struct{ typeid.TypeID[prefixedRow] }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// measure runs a benchmark. The function loop contains the loop.
func measure(b *testing.B, name string, loop func(b *testing.B)) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		loop(b)
	})
}

// BenchmarkAppendText formats into a buffer. strconv is the baseline for numbers.
func BenchmarkAppendText(b *testing.B) {
	buf := make([]byte, 0, 64)
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			_, _ = snowflakeID.AppendText(buf[:0])
		}
	})
	measure(b, "SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			_, _ = siID.AppendText(buf[:0])
		}
	})
	measure(b, "UID60", func(b *testing.B) {
		for b.Loop() {
			_, _ = uid60ID.AppendText(buf[:0])
		}
	})
	measure(b, "Spread64", func(b *testing.B) {
		for b.Loop() {
			_, _ = spread64ID.AppendText(buf[:0])
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			_, _ = snoID.AppendText(buf[:0])
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			_, _ = uuidID.AppendText(buf[:0])
		}
	})
	measure(b, "SnowflakeOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = typedID.AppendText(buf[:0])
		}
	})
	measure(b, "SnowflakeOf,prefix", func(b *testing.B) {
		for b.Loop() {
			_, _ = prefixedID.AppendText(buf[:0])
		}
	})
	measure(b, "SnoOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = typedSno.AppendText(buf[:0])
		}
	})
	measure(b, "UUIDOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = typedUUID.AppendText(buf[:0])
		}
	})
	measure(b, "UUIDOf,prefix", func(b *testing.B) {
		for b.Loop() {
			_, _ = prefixedUUID.AppendText(buf[:0])
		}
	})
	measure(b, "rs/xid", func(b *testing.B) {
		for b.Loop() {
			_ = xidID.Encode(buf[:20])
		}
	})
	measure(b, "oklog/ulid", func(b *testing.B) {
		for b.Loop() {
			_ = ulidID.MarshalTextTo(buf[:ulid.EncodedSize])
		}
	})
	measure(b, "segmentio/ksuid", func(b *testing.B) {
		for b.Loop() {
			_ = ksuidID.Append(buf[:0])
		}
	})
	measure(b, "strconv/Snowflake", func(b *testing.B) {
		for b.Loop() {
			_ = strconv.AppendInt(buf[:0], snowflakeID.Int64(), 10)
		}
	})
	measure(b, "strconv/SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			_ = strconv.AppendInt(buf[:0], siID.Int64(), 10)
		}
	})
	measure(b, "strconv/Spread64", func(b *testing.B) {
		for b.Loop() {
			_ = strconv.AppendUint(buf[:0], uint64(spread64ID), 16)
		}
	})
}

// BenchmarkString formats into a new string, with one allocation.
func BenchmarkString(b *testing.B) {
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			sink = snowflakeID.String()
		}
	})
	measure(b, "SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			sink = siID.String()
		}
	})
	measure(b, "UID60", func(b *testing.B) {
		for b.Loop() {
			sink = uid60ID.String()
		}
	})
	measure(b, "Spread64", func(b *testing.B) {
		for b.Loop() {
			sink = spread64ID.String()
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			sink = snoID.String()
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			sink = uuidID.String()
		}
	})
	measure(b, "SnowflakeOf", func(b *testing.B) {
		for b.Loop() {
			sink = typedID.String()
		}
	})
	measure(b, "SnowflakeOf,prefix", func(b *testing.B) {
		for b.Loop() {
			sink = prefixedID.String()
		}
	})
	measure(b, "SnoOf", func(b *testing.B) {
		for b.Loop() {
			sink = typedSno.String()
		}
	})
	measure(b, "UUIDOf", func(b *testing.B) {
		for b.Loop() {
			sink = typedUUID.String()
		}
	})
	measure(b, "UUIDOf,prefix", func(b *testing.B) {
		for b.Loop() {
			sink = prefixedUUID.String()
		}
	})
	measure(b, "rs/xid", func(b *testing.B) {
		for b.Loop() {
			sink = xidID.String()
		}
	})
	measure(b, "oklog/ulid", func(b *testing.B) {
		for b.Loop() {
			sink = ulidID.String()
		}
	})
	measure(b, "google/uuid", func(b *testing.B) {
		for b.Loop() {
			sink = googleID.String()
		}
	})
	measure(b, "gofrs/uuid", func(b *testing.B) {
		for b.Loop() {
			sink = gofrsID.String()
		}
	})
	measure(b, "jetify/typeid", func(b *testing.B) {
		for b.Loop() {
			sink = typeID.String()
		}
	})
	measure(b, "jetify/typeid/v2", func(b *testing.B) {
		for b.Loop() {
			sink = typeID2.String()
		}
	})
	measure(b, "segmentio/ksuid", func(b *testing.B) {
		for b.Loop() {
			sink = ksuidID.String()
		}
	})
	measure(b, "bwmarrin/snowflake", func(b *testing.B) {
		for b.Loop() {
			sink = bwmarrinID.String()
		}
	})
	measure(b, "strconv/Snowflake", func(b *testing.B) {
		for b.Loop() {
			sink = strconv.FormatInt(snowflakeID.Int64(), 10)
		}
	})
	measure(b, "strconv/SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			sink = strconv.FormatInt(siID.Int64(), 10)
		}
	})
}

// BenchmarkParse parses and validates the strings of BenchmarkString.
func BenchmarkParse(b *testing.B) {
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseSnowflake(snowflakeText)
		}
	})
	measure(b, "SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseSnowflakeSI(siText)
		}
	})
	measure(b, "UID60", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseUID60(uid60Text)
		}
	})
	measure(b, "Spread64", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseSpread64(spread64Text)
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseSno(snoText)
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseUUID(uuidText)
		}
	})
	measure(b, "SnowflakeOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.Parse[idtype.SnowflakeOf[row]](snowflakeText)
		}
	})
	measure(b, "SnowflakeOf,prefix", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.Parse[idtype.SnowflakeOf[prefixedRow]](prefixedText)
		}
	})
	measure(b, "SnoOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.Parse[idtype.SnoOf[row]](snoText)
		}
	})
	measure(b, "UUIDOf", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.Parse[idtype.UUIDOf[row]](uuidText)
		}
	})
	measure(b, "UUIDOf,prefix", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.Parse[idtype.UUIDOf[prefixedRow]](typeIDText)
		}
	})
	measure(b, "rs/xid", func(b *testing.B) {
		for b.Loop() {
			_, _ = xid.FromString(xidText)
		}
	})
	measure(b, "oklog/ulid", func(b *testing.B) {
		for b.Loop() {
			_, _ = ulid.ParseStrict(ulidText)
		}
	})
	measure(b, "google/uuid", func(b *testing.B) {
		for b.Loop() {
			_, _ = google.Parse(googleText)
		}
	})
	measure(b, "gofrs/uuid", func(b *testing.B) {
		for b.Loop() {
			_, _ = gofrs.FromString(gofrsText)
		}
	})
	measure(b, "jetify/typeid", func(b *testing.B) {
		for b.Loop() {
			_, _ = typeid.Parse[rowTypeID](typeIDText)
		}
	})
	measure(b, "jetify/typeid/v2", func(b *testing.B) {
		for b.Loop() {
			_, _ = typeid2.Parse(typeIDText)
		}
	})
	measure(b, "segmentio/ksuid", func(b *testing.B) {
		for b.Loop() {
			_, _ = ksuid.Parse(ksuidText)
		}
	})
	measure(b, "bwmarrin/snowflake", func(b *testing.B) {
		for b.Loop() {
			_, _ = bwmarrin.ParseString(bwmarrinText)
		}
	})
	measure(b, "strconv/Snowflake", func(b *testing.B) {
		for b.Loop() {
			_, _ = strconv.ParseInt(snowflakeText, 10, 64)
		}
	})
	measure(b, "strconv/SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			_, _ = strconv.ParseInt(siText, 10, 64)
		}
	})
	measure(b, "strconv/Spread64", func(b *testing.B) {
		for b.Loop() {
			_, _ = strconv.ParseUint(spread64Text, 16, 64)
		}
	})
}

// BenchmarkSeal creates the sealed text of an ID.
func BenchmarkSeal(b *testing.B) {
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			sink = seal.Text(sealer, snowflakeID)
		}
	})
	measure(b, "SnowflakeOf,prefix", func(b *testing.B) {
		for b.Loop() {
			sink = seal.Text(sealer, prefixedID)
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			sink = seal.Text(sealer, snoID)
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			sink = seal.Text(sealer, uuidID)
		}
	})
}

// BenchmarkUnseal parses the texts of BenchmarkSeal.
func BenchmarkUnseal(b *testing.B) {
	text, prefixed, sno, uuid := seal.Text(sealer, snowflakeID), seal.Text(sealer, prefixedID), seal.Text(sealer, snoID), seal.Text(sealer, uuidID)
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			_, _ = seal.Parse[idtype.Snowflake](sealer, text)
		}
	})
	measure(b, "SnowflakeOf,prefix", func(b *testing.B) {
		for b.Loop() {
			_, _ = seal.Parse[idtype.SnowflakeOf[prefixedRow]](sealer, prefixed)
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			_, _ = seal.Parse[idtype.Sno](sealer, sno)
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			_, _ = seal.Parse[idtype.UUID](sealer, uuid)
		}
	})
}
