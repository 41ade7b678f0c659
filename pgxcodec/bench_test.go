package pgxcodec_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// The figures that count are ratios in one run: Sno to pgtype.UUID, the
// integer types to int64, each on the map that its users have.
//
//	go test ./pgxcodec -run - -bench 'Encode|Scan' -count 10 | benchstat -col /type -
var benchmarks = []struct {
	name   string
	oid    uint32
	ours   bool
	value  any
	target any
}{
	{"pgtype.UUID", pgtype.UUIDOID, false, pgtype.UUID{Bytes: sno.UUID(), Valid: true}, new(pgtype.UUID)},
	{"pgtype.UUID/registered", pgtype.UUIDOID, true, pgtype.UUID{Bytes: sno.UUID(), Valid: true}, new(pgtype.UUID)},
	{"Sno", pgtype.UUIDOID, true, sno, new(idtype.Sno)},
	{"int64", pgtype.Int8OID, false, int64(snowflake), new(int64)},
	{"int64/registered", pgtype.Int8OID, true, int64(snowflake), new(int64)},
	{"Snowflake", pgtype.Int8OID, true, snowflake, new(idtype.Snowflake)},
	{"SnowflakeSI", pgtype.Int8OID, true, snowflakeSI, new(idtype.SnowflakeSI)},
	{"UID60", pgtype.Int8OID, true, uid60, new(idtype.UID60)},
	{"Spread64", pgtype.Int8OID, true, spread64, new(idtype.Spread64)},
	{"string", pgtype.TextOID, false, sno.String(), new(string)},
	{"SnoText", pgtype.TextOID, true, sqltypes.TextOf(sno), new(sqltypes.SnoText)},
	{"SnoBytes", pgtype.ByteaOID, true, sqltypes.SnoBytesOf(sno), new(sqltypes.SnoBytes)},
	{"[]int64/100", pgtype.Int8ArrayOID, false, make([]int64, 100), new([]int64)},
	{"[]Snowflake/100", pgtype.Int8ArrayOID, true, make([]idtype.Snowflake, 100), new([]idtype.Snowflake)},
}

func benchmarkMap(ours bool) *pgtype.Map {
	m := pgtype.NewMap()
	if ours {
		pgxcodec.Register(m)
	}
	return m
}

func BenchmarkEncode(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run("type="+bm.name, func(b *testing.B) {
			m := benchmarkMap(bm.ours)
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Encode(bm.oid, pgtype.BinaryFormatCode, bm.value, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, bm := range benchmarks {
		b.Run("type="+bm.name, func(b *testing.B) {
			m := benchmarkMap(bm.ours)
			src, err := m.Encode(bm.oid, pgtype.BinaryFormatCode, bm.value, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := m.Scan(bm.oid, pgtype.BinaryFormatCode, src, bm.target); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRegister(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		pgxcodec.Register(pgtype.NewMap())
	}
}
