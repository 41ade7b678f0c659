package growbench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

var (
	rows  = flag.Int("rows", 10_000_000, "the number of rows per table")
	steps = flag.Int("steps", 10, "the number of steps")
)

// schema contains the tables.
const schema = "sortkey_bench_grow"

// newKeys returns the keys of the tables.
//
// The generators of this project have simulated clocks that advance by a millisecond
// per key, however fast the rows are inserted, so no cap applies.
func newKeys(tb testing.TB, start time.Time) []figures.Key {
	return []figures.Key{
		figures.Bigserial,
		figures.Snowflake(tb, figures.Paced(start)),
		figures.Spread64(tb, figures.Paced(start)),
		figures.Sno(tb, figures.Paced(start)),
		figures.UUID(tb, figures.Paced(start)),
		figures.GoogleV4,
		figures.UUIDv7,
		{Name: "next_snowflake", Column: "bigint default " + schema + ".next_snowflake()"},
		figures.GoogleV7,
		figures.ULID,
		figures.XID,
	}
}

// BenchmarkGrow fills tables side by side and reports each step of each table as a
// benchmark.
func BenchmarkGrow(b *testing.B) {
	s := &server{figures.Install(b, "./bench/grow", schema)}
	keys := slices.DeleteFunc(newKeys(b, time.Now()), func(k figures.Key) bool { return s.Version < k.Needs })
	if *steps < 1 || *rows < *steps {
		b.Fatalf("-steps is %d and -rows is %d, want a row per step or more", *steps, *rows)
	}
	for key, taken := range s.grow(b, keys) {
		name := "key=" + keys[key].Name
		var sum step
		for _, t := range taken {
			b.Run(fmt.Sprintf("%s/rows=%d", name, t.total), func(b *testing.B) { t.report(b) })
			sum.rows, sum.took, sum.wal, sum.images = sum.rows+t.rows, sum.took+t.took, sum.wal+t.wal, sum.images+t.images
		}
		b.Run(name+"/total", func(b *testing.B) {
			last := taken[len(taken)-1]
			last.report(b)
			b.ReportMetric(last.rate(), "last-rows/s")
			b.ReportMetric(float64(sum.rows), "rows")
			b.ReportMetric(sum.rate(), "rows/s")
			b.ReportMetric(sum.wal/1e6, "wal-MB")
			b.ReportMetric(sum.wal/float64(sum.rows), "wal-B/row")
			b.ReportMetric(sum.images/float64(sum.rows), "images/row")
			if density := s.density(b, keys[key]); density > 0 {
				b.ReportMetric(density, "leaf-%")
			}
			b.ReportMetric(s.newest(b, keys[key]), "newest-pages")
		})
	}
}

// A step holds the cost of a step and the size of the table after it.
type step struct {
	total, rows  int // in the table, and inserted in the step
	took         time.Duration
	wal, images  float64 // bytes and full pages in the log
	hit, read    float64 // blocks of the index
	index, table float64
}

func (s step) rate() float64 { return float64(s.rows) / s.took.Seconds() }

func (s step) report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // drops the time of reporting
	b.ReportMetric(s.rate(), "rows/s")
	b.ReportMetric(s.index/1e6, "index-MB")
	b.ReportMetric(s.table/1e6, "table-MB")
	b.ReportMetric(s.wal/1e6, "wal-MB")
	b.ReportMetric(s.images/float64(s.rows), "images/row")
	if all := s.hit + s.read; all > 0 {
		b.ReportMetric(100*s.hit/all, "hit-%")
	}
}

type server struct{ *figures.Schema }

// table returns the name of a key's table. It has a prefix because some keys are
// named like types.
func table(k figures.Key) string {
	return "by_" + strings.ReplaceAll(strings.ToLower(k.Name), "-", "_")
}

// grow creates the tables and fills them, in steps in which all tables take turns. It drops
// them when b ends. It returns the steps of each key.
func (s *server) grow(b *testing.B, keys []figures.Key) [][]step {
	b.Helper()
	for _, k := range keys {
		b.Cleanup(func() { s.DropTables(b, table(k)) })
		s.Exec(b, fmt.Sprintf("create table %s (id %s primary key, customer bigint not null, total int not null) with (autovacuum_enabled = off)",
			table(k), k.Column))
	}
	taken := make([][]step, len(keys))
	for i := range *steps {
		for _, key := range rand.Perm(len(keys)) {
			taken[key] = append(taken[key], s.step(b, keys[key], *rows*i / *steps, *rows*(i+1) / *steps))
		}
	}
	s.Exec(b, "vacuum") // so that reading writes no hints
	return taken
}

// step inserts rows until the table has to rows. A checkpoint precedes it, so that no step
// writes the pages of another one.
func (s *server) step(b *testing.B, k figures.Key, from, to int) step {
	s.Exec(b, "checkpoint")
	before, start := s.read(b, k), time.Now()
	err := s.Copy(b.Context(), table(k), k, to-from, []string{"customer", "total"}, func(i int, row []any) {
		row[0], row[1] = int64((from+i)%100_000), int32(i%1000)
	})
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%s from %d to %d rows: %v", k.Name, from, to, err)
	}
	after := s.read(b, k)
	after.total, after.rows, after.took = to, to-from, took
	after.wal, after.images = after.wal-before.wal, after.images-before.images
	after.hit, after.read = after.hit-before.hit, after.read-before.read
	return after
}

// read returns the size of a table, and the server's counters for it.
func (s *server) read(b *testing.B, k figures.Key) step {
	b.Helper()
	// Otherwise the session reports its statistics up to a second later.
	s.Exec(b, "select pg_stat_force_next_flush()")
	f := step{wal: s.WAL(b)}
	if err := s.Conn.QueryRow(b.Context(), `select w.wal_fpi, i.idx_blks_hit, i.idx_blks_read, pg_relation_size(i.relid), pg_relation_size(i.indexrelid)
		from pg_stat_wal w, pg_statio_all_indexes i where i.indexrelid = ($1::text || '_pkey')::regclass`, table(k)).
		Scan(&f.images, &f.hit, &f.read, &f.table, &f.index); err != nil {
		b.Fatal(err)
	}
	return f
}

// density returns how full the leaf pages of an index are, in percent, or 0 if the role can't install
// the extension pgstattuple.
func (s *server) density(b *testing.B, k figures.Key) (percent float64) {
	b.Helper()
	if _, err := s.Conn.Exec(b.Context(), "create extension if not exists pgstattuple"); err != nil {
		return 0
	}
	if err := s.Conn.QueryRow(b.Context(), "select avg_leaf_density from pgstatindex($1::text)", table(k)+"_pkey").Scan(&percent); err != nil {
		b.Fatal(err)
	}
	return percent
}

// newest returns the number of pages of index and table that a query for the 1,000 rows that were
// inserted last accesses.
func (s *server) newest(b *testing.B, k figures.Key) float64 {
	b.Helper()
	var ids, list string
	if err := s.Conn.QueryRow(b.Context(), fmt.Sprintf("select array_agg(id)::text, pg_typeof(array_agg(id))::text from (select id from %s order by ctid desc limit 1000) s", table(k))).
		Scan(&ids, &list); err != nil {
		b.Fatal(err)
	}
	return s.Pages(b, fmt.Sprintf("select customer, total from %s where id = any('%s'::%s)", table(k), ids, list))
}
