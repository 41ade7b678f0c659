package bench

import (
	"strconv"
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

// order keeps the compiler from removing Compare.
var order int

// BenchmarkCompare compares an ID with itself, which compares all bits.
func BenchmarkCompare(b *testing.B) {
	measure(b, "Snowflake", func(b *testing.B) {
		for b.Loop() {
			order = snowflakeID.Compare(snowflakeID)
		}
	})
	measure(b, "SnowflakeSI", func(b *testing.B) {
		for b.Loop() {
			order = siID.Compare(siID)
		}
	})
	measure(b, "UID60", func(b *testing.B) {
		for b.Loop() {
			order = uid60ID.Compare(uid60ID)
		}
	})
	measure(b, "Spread64", func(b *testing.B) {
		for b.Loop() {
			order = spread64ID.Compare(spread64ID)
		}
	})
	measure(b, "Sno", func(b *testing.B) {
		for b.Loop() {
			order = snoID.Compare(snoID)
		}
	})
	measure(b, "UUID", func(b *testing.B) {
		for b.Loop() {
			order = uuidID.Compare(uuidID)
		}
	})
	measure(b, "SnowflakeOf", func(b *testing.B) {
		for b.Loop() {
			order = typedID.Compare(typedID)
		}
	})
	measure(b, "SnoOf", func(b *testing.B) {
		for b.Loop() {
			order = typedSno.Compare(typedSno)
		}
	})
	measure(b, "UUIDOf", func(b *testing.B) {
		for b.Loop() {
			order = typedUUID.Compare(typedUUID)
		}
	})
}

// BenchmarkScanValue scans values of database/sql drivers: an int64 or a string for
// a bigint column, a string for a uuid column.
func BenchmarkScanValue(b *testing.B) {
	var (
		snowflake idtype.Snowflake
		si        idtype.SnowflakeSI
		uid60     idtype.UID60
		spread64  idtype.Spread64
		sno       idtype.Sno
		typed     idtype.SnowflakeOf[row]
		uuid      idtype.UUID
		snoOf     idtype.SnoOf[row]
		uuidOf    idtype.UUIDOf[row]
	)
	for _, s := range []struct {
		name string
		src  any
		scan func(any) error
	}{
		{"Snowflake/int64", must(snowflakeID.Value()), snowflake.Scan},
		{"Snowflake/string", snowflakeText, snowflake.Scan},
		{"SnowflakeSI/int64", must(siID.Value()), si.Scan},
		{"SnowflakeSI/string", siText, si.Scan},
		{"UID60/int64", must(uid60ID.Value()), uid60.Scan},
		{"UID60/string", strconv.FormatInt(uid60ID.Int64(), 10), uid60.Scan},
		{"Spread64/int64", must(spread64ID.Value()), spread64.Scan},
		{"Spread64/string", strconv.FormatInt(spread64ID.Int64(), 10), spread64.Scan},
		{"Sno/string", must(snoID.Value()), sno.Scan},
		{"UUID/string", must(uuidID.Value()), uuid.Scan},
		{"SnowflakeOf/int64", must(typedID.Value()), typed.Scan},
		{"SnowflakeOf/string", snowflakeText, typed.Scan},
		{"SnoOf/string", must(typedSno.Value()), snoOf.Scan},
		{"UUIDOf/string", must(typedUUID.Value()), uuidOf.Scan},
	} {
		measure(b, s.name, func(b *testing.B) {
			for b.Loop() {
				if err := s.scan(s.src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
