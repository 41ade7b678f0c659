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
	rows       = flag.Int("rows", 10_000_000, "how many rows each table gets")
	steps      = flag.Int("steps", 20, "in how many steps")
	only       = flag.String("keys", "", "which keys' tables grow, with commas between: all if empty")
	pace       = flag.Int("pace", 1, "how many keys of this project have one millisecond, 64 at most")
	checkpoint = flag.Bool("checkpoint", true, "write what is dirty before each table's step, if the role may")
)

// schema is the benchmark's own.
const schema = "sortkey_bench_grow"

// newKeys are the keys by which tables grow.
//
// Those of this project are minted by clocks of their own, at a pace that each
// format has, however fast they are inserted. To the formats in time order it
// makes no difference. Keys of Spread64 lie together if they are of the same
// millisecond, so there are to be few.
func newKeys(tb testing.TB, start time.Time, pace int) []figures.Key {
	return []figures.Key{
		figures.Bigserial,
		figures.Snowflake(tb, figures.Paced(start, pace)),
		figures.SnowflakeSI(tb, figures.Paced(start, pace)),
		figures.UID60(tb, figures.Paced(start, pace)),
		figures.Spread64(tb, figures.Paced(start, pace)),
		figures.Sno(tb, figures.Paced(start, pace)),
		figures.GoogleV4,
		figures.UUIDv7,
		figures.GoogleV7,
		figures.ULID,
		figures.XID,
	}
}

// choose gives those of the keys that a list names, or all.
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
			return nil, fmt.Errorf("expected -keys of %s, got %q", strings.Join(known, ","), name)
		}
		chosen = append(chosen, keys[i])
	}
	return chosen, nil
}

// totals are how many rows a table has after each step.
func totals(rows, steps int) []int {
	steps = max(1, min(steps, rows))
	all := make([]int, steps)
	for i := range all {
		all[i] = rows / steps * (i + 1)
	}
	all[steps-1] = rows
	return all
}

// BenchmarkGrow has tables grow side by side, and reports each step of each as a
// benchmark. All of them grow while the first that is asked for runs, since that
// is the only way to have them take turns.
func BenchmarkGrow(b *testing.B) {
	s := &server{Schema: figures.Install(b, "./bench/grow", schema)}
	if *pace < 1 || *pace > 64 {
		b.Fatalf("expected a -pace of 1 to 64, got %d", *pace)
	}
	keys, err := choose(newKeys(b, time.Now(), *pace), *only)
	if err != nil {
		b.Fatal(err)
	}
	s.canCheckpoint = *checkpoint && s.checkpoint(b)
	fmt.Printf("checkpoints: %t\n", s.canCheckpoint)

	after := totals(*rows, *steps)
	var grown []map[place]figure // each time anew
	var broken bool
	for _, k := range keys {
		b.Run("key="+k.Name, func(b *testing.B) {
			s.Needs(b, k)
			// measured runs the benchmark of a figure of each growth.
			measured := func(name string, report func(b *testing.B, grown map[place]figure)) {
				runs := 0
				b.Run(name, func(b *testing.B) {
					if broken {
						b.Skip("expected tables to have grown, got an error before")
					}
					// The framework begins each of -count with an iteration, and goes on with
					// more of them unless -benchtime is 1x.
					if b.N == 1 {
						runs++
					}
					if runs > len(grown) {
						broken = true // unless it comes to its end
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
				for _, total := range after {
					took += grown[place{k.Name, total}].took
					wal += grown[place{k.Name, total}].wal
				}
				b.ReportMetric(float64(*rows), "rows")
				b.ReportMetric(float64(*rows)/took.Seconds(), "rows/s")
				b.ReportMetric(wal/1e6, "wal-MB")
			})
		})
	}
}

// A place is where in a growth a figure was taken.
type place struct {
	key   string
	total int // rows
}

// A figure is what a step of a table took, and how large the table was then.
type figure struct {
	rows         int // of the step
	took         time.Duration
	wal          float64
	hit, read    int64 // blocks of the index
	index, table int64
}

func (f figure) report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // that of reporting
	b.ReportMetric(float64(f.rows)/f.took.Seconds(), "rows/s")
	b.ReportMetric(float64(f.index)/1e6, "index-MB")
	b.ReportMetric(float64(f.table)/1e6, "table-MB")
	b.ReportMetric(f.wal/1e6, "wal-MB")
	if all := f.hit + f.read; all > 0 {
		b.ReportMetric(100*float64(f.hit)/float64(all), "hit-%")
	}
	b.ReportMetric(float64(f.read)/float64(f.rows), "reads/row")
}

type server struct {
	*figures.Schema
	canCheckpoint bool
}

// checkpoint tells whether the role may.
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

// table is that of a key; there are types with the names of some.
func table(k figures.Key) string {
	return "by_" + strings.ReplaceAll(strings.ToLower(k.Name), "-", "_")
}

// grow makes the tables, has them grow, and drops them.
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
	return took
}

// step has a table grow from some rows to more.
func (s *server) step(b *testing.B, k figures.Key, from, to int) (f figure, err error) {
	if s.canCheckpoint {
		s.checkpoint(b)
	}
	hit, read, err := s.blocks(b.Context(), k)
	if err != nil {
		return f, err
	}
	wal := s.WAL(b)
	start := time.Now()
	err = s.Copy(b.Context(), table(k), k, to-from, []string{"customer", "total"}, func(i int, row []any) {
		row[0], row[1] = int64((from+i)%100_000), int32(i%1000)
	})
	f = figure{rows: to - from, took: time.Since(start)}
	if err != nil {
		return f, err
	}
	f.wal = s.WAL(b) - wal
	if f.hit, f.read, err = s.blocks(b.Context(), k); err != nil {
		return f, err
	}
	f.hit, f.read = f.hit-hit, f.read-read
	return f, s.Conn.QueryRow(b.Context(), "select pg_relation_size($1::text::regclass), pg_relation_size(($1 || '_pkey')::regclass)", table(k)).
		Scan(&f.table, &f.index)
}

// blocks are those of the index that were found in shared_buffers, and those that
// weren't.
func (s *server) blocks(ctx context.Context, k figures.Key) (hit, read int64, err error) {
	// Else this session would tell of them when a second has passed.
	if _, err = s.Conn.Exec(ctx, "select pg_stat_force_next_flush()"); err != nil {
		return 0, 0, err
	}
	err = s.Conn.QueryRow(ctx, "select idx_blks_hit, idx_blks_read from pg_statio_all_indexes where indexrelid = ($1::text || '_pkey')::regclass", table(k)).
		Scan(&hit, &read)
	return hit, read, err
}
