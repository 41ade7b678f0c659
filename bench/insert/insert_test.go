package insertbench

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

var rows = flag.Int("rows", 1_000_000, "the number of rows per table")

// turns is the number of turns that insert them.
const turns = 30

// schema contains the tables and the functions for the defaults.
const schema = "sortkey_bench_insert"

// yardstick is the baseline.
var yardstick = figures.Bigserial

// onServer are the keys that a server creates. The other formats are missing,
// because these benchmarks insert more rows per millisecond than their caps allow.
var onServer = []figures.Key{
	yardstick, // against itself, to show the noise
	{Name: "gen_random_uuid", Column: "uuid default gen_random_uuid()"},
	figures.UUIDv7,
	nextSnowflake, nextSnowflakeOfNode,
	nextSno, nextSnoOfNode,
	nextUUID7,
}

// Defaults with the node number in the setting, and with an explicit one.
var (
	nextSnowflake       = byFunction("next_snowflake", "bigint", "()")
	nextSnowflakeOfNode = byFunction("next_snowflake", "bigint", "(node)")
	nextSno             = byFunction("next_sno", "uuid", "()")
	nextSnoOfNode       = byFunction("next_sno", "uuid", "(node)")
	nextUUID7           = byFunction("next_uuid7", "uuid", "()")
)

// byFunction returns a key whose default is a call of the function. The word node in the
// arguments stands for a node number.
func byFunction(function, column, arguments string) figures.Key {
	call := strings.Replace(function+arguments, "node", strconv.Itoa(figures.Node), 1)
	return figures.Key{Name: function + arguments, Column: fmt.Sprintf("%s default %s.%s", column, schema, call)}
}

// BenchmarkInsert inserts by INSERT … SELECT from generate_series. The server
// creates the keys and does little else.
func BenchmarkInsert(b *testing.B) {
	s := newServer(b)
	for _, k := range onServer {
		s.compare(b, k, func(ctx context.Context, table string, _ figures.Key, n int) error {
			_, err := s.Conn.Exec(ctx, "insert into "+table+" (n) select generate_series(1, $1::int)", n)
			return err
		})
	}
}

// BenchmarkCopy inserts by COPY from this process. The process or the server creates
// the keys.
func BenchmarkCopy(b *testing.B) {
	s := newServer(b)
	for _, k := range slices.Concat(onServer, []figures.Key{
		figures.Snowflake(b, idtype.Options{}), figures.Sno(b, idtype.Options{}), figures.UUID(b, idtype.Options{}),
		figures.GoogleV4, figures.GoogleV7, figures.ULID,
	}) {
		s.compare(b, k, func(ctx context.Context, table string, k figures.Key, n int) error {
			return s.Copy(ctx, table, k, n, []string{"n"}, func(i int, row []any) { row[0] = int32(i) })
		})
	}
}

type server struct{ *figures.Schema }

func newServer(b *testing.B) server {
	b.Helper()
	return server{figures.Install(b, "./bench/insert", schema)}
}

// compare measures a key next to the yardstick. It fills a table for each in
// alternating turns.
func (s server) compare(b *testing.B, k figures.Key, insert func(ctx context.Context, table string, k figures.Key, n int) error) {
	b.Run("key="+k.Name, func(b *testing.B) {
		s.Needs(b, k)
		var took, wal, cpu [2]float64
		var size int64
		b.Cleanup(func() { s.drop(b) })
		n := max(*rows/turns, 1)
		meter, metered := s.CPUMeter(b.Context(), []*pgx.Conn{s.Conn})
		cpuTime := func() float64 {
			if !metered {
				return 0
			}
			used, err := meter.Read()
			if err != nil {
				b.Fatal(err)
			}
			return used
		}
		for b.Loop() {
			s.drop(b)
			keys := [2]figures.Key{yardstick, k}
			tables := [2]string{"yardstick", "subject"}
			for i, table := range tables {
				s.Exec(b, fmt.Sprintf("create table %s (id %s primary key, n int not null)", table, keys[i].Column))
			}
			for range turns {
				first := rand.IntN(2)
				for _, i := range [2]int{first, 1 - first} {
					walBefore, cpuBefore := s.WAL(b), cpuTime()
					start := time.Now()
					if err := insert(b.Context(), tables[i], keys[i], n); err != nil {
						b.Fatal(err)
					}
					took[i] += float64(time.Since(start))
					cpu[i] += cpuTime() - cpuBefore
					wal[i] += s.WAL(b) - walBefore
				}
			}
			if err := s.Conn.QueryRow(b.Context(), "select pg_relation_size('subject_pkey')").Scan(&size); err != nil {
				b.Fatal(err)
			}
		}
		all := float64(b.N * turns * n)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took[1]/all, "ns/row")
		b.ReportMetric(took[1]/took[0], "ratio")
		if metered {
			b.ReportMetric(cpu[1]/all, meter.Unit+"/row")
			b.ReportMetric(cpu[1]/cpu[0], meter.Ratio)
		}
		b.ReportMetric(float64(size)/float64(turns*n), "index-B/row")
		b.ReportMetric(wal[1]/all, "wal-B/row")
	})
}

func (s server) drop(b *testing.B) { s.DropTables(b, "yardstick", "subject") }
