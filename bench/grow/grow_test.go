package growbench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

var (
	rows       = flag.Int("rows", 10_000_000, "the number of rows per table")
	steps      = flag.Int("steps", 20, "the number of steps")
	only       = flag.String("keys", "", "a comma-separated list of keys; all if empty")
	pace       = flag.Int("pace", 1, "the number of keys of this project per millisecond, 1 to 64")
	checkpoint = flag.Bool("checkpoint", true, "checkpoint before each table's step, if the role is allowed to")
)

// schema contains the tables.
const schema = "sortkey_bench_grow"

// newKeys returns the keys of the tables.
//
// The generators of this project have simulated clocks that advance by a millisecond
// per pace keys, however fast the rows are inserted, so no cap applies. The pace
// matters only for Spread64, which places keys of one millisecond next to each other.
func newKeys(tb testing.TB, start time.Time, pace int) []figures.Key {
	return []figures.Key{
		figures.Bigserial,
		figures.Snowflake(tb, figures.Paced(start, pace)),
		figures.SnowflakeSI(tb, figures.Paced(start, pace)),
		figures.UID60(tb, figures.Paced(start, pace)),
		figures.Spread64(tb, figures.Paced(start, pace)),
		figures.Sno(tb, figures.Paced(start, pace)),
		figures.UUID(tb, figures.Paced(start, pace)),
		figures.GoogleV4,
		figures.UUIDv7,
		{Name: "next_snowflake", Column: "bigint default " + schema + ".next_snowflake()"},
		figures.GoogleV7,
		figures.ULID,
		figures.XID,
	}
}

// choose returns the keys that a list names, or all if the list is empty.
func choose(keys []figures.Key, list string) ([]figures.Key, error) {
	if list == "" {
		return keys, nil
	}
	var chosen []figures.Key
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(keys, func(k figures.Key) bool { return k.Name == name })
		if i < 0 {
			var known []string
			for _, k := range keys {
				known = append(known, k.Name)
			}
			return nil, fmt.Errorf("unknown key %q in -keys; want some of %s", name, strings.Join(known, ","))
		}
		chosen = append(chosen, keys[i])
	}
	return chosen, nil
}

// totals returns the number of rows in a table after each step.
func totals(rows, steps int) []int {
	steps = max(1, min(steps, rows))
	all := make([]int, steps)
	for i := range all {
		all[i] = rows / steps * (i + 1)
	}
	all[steps-1] = rows
	return all
}

// BenchmarkGrow fills tables side by side and reports each step of each table as a
// benchmark. All tables grow during the first of these benchmarks, because only then
// can they take turns.
func BenchmarkGrow(b *testing.B) {
	s := &server{Schema: figures.Install(b, "./bench/grow", schema)}
	if *pace < 1 || *pace > 64 {
		b.Fatalf("-pace is %d, want 1 to 64", *pace)
	}
	keys, err := choose(newKeys(b, time.Now(), *pace), *only)
	if err != nil {
		b.Fatal(err)
	}
	s.canCheckpoint = *checkpoint && s.checkpoint(b)
	fmt.Printf("checkpoints: %t\n", s.canCheckpoint)

	after := totals(*rows, *steps)
	var grown []map[place]figure // one per run of -count
	var broken bool
	for _, k := range keys {
		b.Run("key="+k.Name, func(b *testing.B) {
			s.Needs(b, k)
			// measured runs a benchmark that reports a figure.
			measured := func(name string, report func(b *testing.B, grown map[place]figure)) {
				runs := 0
				b.Run(name, func(b *testing.B) {
					if broken {
						b.Skip("growing the tables failed before")
					}
					// The framework starts each run of -count with one iteration. More follow
					// unless -benchtime is 1x.
					if b.N == 1 {
						runs++
					}
					if runs > len(grown) {
						broken = true // in case grow fails
						grown = append(grown, s.grow(b, keys, after))
						broken = false
					}
					report(b, grown[runs-1])
				})
			}
			for _, total := range after {
				measured(fmt.Sprintf("rows=%d", total), func(b *testing.B, grown map[place]figure) { grown[place{k.Name, total}].report(b) })
			}
			measured("total", func(b *testing.B, grown map[place]figure) {
				last := grown[place{k.Name, after[len(after)-1]}]
				last.report(b)
				b.ReportMetric(float64(last.rows)/last.took.Seconds(), "last-rows/s")
				var took time.Duration
				var wal float64
				var images int64
				for _, total := range after {
					images += grown[place{k.Name, total}].images
					took += grown[place{k.Name, total}].took
					wal += grown[place{k.Name, total}].wal
				}
				b.ReportMetric(float64(*rows), "rows")
				b.ReportMetric(float64(*rows)/took.Seconds(), "rows/s")
				b.ReportMetric(wal/1e6, "wal-MB")
				b.ReportMetric(wal/float64(*rows), "wal-B/row")
				b.ReportMetric(float64(images)/float64(*rows), "images/row")
				if last.density > 0 {
					b.ReportMetric(last.density, "leaf-%")
				}
				b.ReportMetric(last.newest, "newest-pages")
			})
		})
	}
}

// A place identifies a table and a step.
type place struct {
	key   string
	total int // rows after the step
}

// A figure holds the cost of a step and the size of the table after it.
type figure struct {
	rows         int // inserted in the step
	took         time.Duration
	wal          float64
	images       int64 // full pages in the log
	hit, read    int64 // blocks of the index
	index, table int64

	// After the last step:
	density float64 // of the leaf pages of the index, in percent; 0 without pgstattuple
	newest  float64 // pages that reading the newest 1,000 rows by their keys accesses
}

func (f figure) report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // drops the time of reporting
	b.ReportMetric(float64(f.rows)/f.took.Seconds(), "rows/s")
	b.ReportMetric(float64(f.index)/1e6, "index-MB")
	b.ReportMetric(float64(f.table)/1e6, "table-MB")
	b.ReportMetric(f.wal/1e6, "wal-MB")
	b.ReportMetric(float64(f.images)/float64(f.rows), "images/row")
	if all := f.hit + f.read; all > 0 {
		b.ReportMetric(100*float64(f.hit)/float64(all), "hit-%")
	}
	b.ReportMetric(float64(f.read)/float64(f.rows), "reads/row")
}

type server struct {
	*figures.Schema
	canCheckpoint bool
}

// checkpoint runs CHECKPOINT and reports whether the role is allowed to.
func (s *server) checkpoint(b *testing.B) bool {
	b.Helper()
	_, err := s.Conn.Exec(b.Context(), "checkpoint")
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42501" {
		return false
	}
	if err != nil {
		b.Fatal(err)
	}
	return true
}

// table returns the name of a key's table. It has a prefix because some keys are
// named like types.
func table(k figures.Key) string {
	return "by_" + strings.ReplaceAll(strings.ToLower(k.Name), "-", "_")
}

// grow creates the tables and fills them. It drops them when b ends.
func (s *server) grow(b *testing.B, keys []figures.Key, after []int) map[place]figure {
	b.Helper()
	keys = slices.DeleteFunc(slices.Clone(keys), func(k figures.Key) bool { return s.Version < k.Needs })
	for _, k := range keys {
		b.Cleanup(func() { s.DropTables(b, table(k)) })
		s.Exec(b, fmt.Sprintf("create table %s (id %s primary key, customer bigint not null, total int not null) with (autovacuum_enabled = off)",
			table(k), k.Column))
	}
	took := make(map[place]figure)
	had := 0
	for _, total := range after {
		for _, i := range rand.Perm(len(keys)) {
			f, err := s.step(b, keys[i], had, total)
			if err != nil {
				b.Fatalf("%s from %d to %d rows: %v", keys[i].Name, had, total, err)
			}
			took[place{keys[i].Name, total}] = f
		}
		had = total
	}
	s.Exec(b, "vacuum") // so that reading writes no hints
	for _, k := range keys {
		last := place{k.Name, had}
		f := took[last]
		f.density, f.newest = s.density(b, k), s.newest(b, k)
		took[last] = f
	}
	return took
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
	var plan []struct {
		Plan struct {
			Hit  float64 `json:"Shared Hit Blocks"`
			Read float64 `json:"Shared Read Blocks"`
		}
	}
	if err := s.Conn.QueryRow(b.Context(), fmt.Sprintf("explain (analyze, buffers, format json) select customer, total from %s where id = any('%s'::%s)", table(k), ids, list)).
		Scan(&plan); err != nil {
		b.Fatal(err)
	}
	return plan[0].Plan.Hit + plan[0].Plan.Read
}

// images returns the number of full pages that the server has ever written to its write-ahead log.
func (s *server) images(b *testing.B) (n int64) {
	b.Helper()
	// Otherwise the session reports its statistics up to a second later.
	s.Exec(b, "select pg_stat_force_next_flush()")
	if err := s.Conn.QueryRow(b.Context(), "select wal_fpi from pg_stat_wal").Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// step inserts rows until the table has to rows.
func (s *server) step(b *testing.B, k figures.Key, from, to int) (f figure, err error) {
	if s.canCheckpoint {
		s.checkpoint(b)
	}
	hit, read, err := s.blocks(b.Context(), k)
	if err != nil {
		return f, err
	}
	wal, images := s.WAL(b), s.images(b)
	start := time.Now()
	err = s.Copy(b.Context(), table(k), k, to-from, []string{"customer", "total"}, func(i int, row []any) {
		row[0], row[1] = int64((from+i)%100_000), int32(i%1000)
	})
	f = figure{rows: to - from, took: time.Since(start)}
	if err != nil {
		return f, err
	}
	f.wal, f.images = s.WAL(b)-wal, s.images(b)-images
	if f.hit, f.read, err = s.blocks(b.Context(), k); err != nil {
		return f, err
	}
	f.hit, f.read = f.hit-hit, f.read-read
	return f, s.Conn.QueryRow(b.Context(), "select pg_relation_size($1::text::regclass), pg_relation_size(($1 || '_pkey')::regclass)", table(k)).
		Scan(&f.table, &f.index)
}

// blocks returns the number of index blocks found in shared_buffers and the number
// read from outside.
func (s *server) blocks(ctx context.Context, k figures.Key) (hit, read int64, err error) {
	// Otherwise the session reports its statistics up to a second later.
	if _, err = s.Conn.Exec(ctx, "select pg_stat_force_next_flush()"); err != nil {
		return 0, 0, err
	}
	err = s.Conn.QueryRow(ctx, "select idx_blks_hit, idx_blks_read from pg_statio_all_indexes where indexrelid = ($1::text || '_pkey')::regclass", table(k)).
		Scan(&hit, &read)
	return hit, read, err
}
