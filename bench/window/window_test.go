package windowbench

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

var rows = flag.Int("rows", 3_000_000, "the number of rows per table")

// schema contains the tables.
const schema = "sortkey_bench_window"

// limit is the number of latest rows.
const limit = 50

const (
	sums   = "select count(*), coalesce(sum(total), 0) from orders where "
	newest = "select count(*), coalesce(sum(total), 0) from (select total from orders order by %s desc limit %d) o"
)

// A way is a query and a function that returns its arguments for a window.
type way struct {
	name    string
	sql     string
	args    func(from, to time.Time) ([]any, error)
	indexed bool // needs the index on created_at
}

// times returns the bounds of the window as arguments.
func times(from, to time.Time) ([]any, error) { return []any{from, to}, nil }

func none(time.Time, time.Time) ([]any, error) { return nil, nil }

// ways returns the queries for the rows of a window.
func (k kind) ways() []way {
	return []way{
		{name: "key", sql: sums + "id >= $1 and id < $2", args: func(from, to time.Time) ([]any, error) {
			lo, hi, err := k.between(from, to)
			return []any{lo, hi}, err
		}},
		{name: "key-sql", sql: fmt.Sprintf(sums+"id >= %[1]s($1) and id < %[1]s($2)", k.floor), args: times},
		{name: "created_at-indexed", sql: sums + "created_at >= $1 and created_at < $2", args: times, indexed: true},
		{name: "created_at", sql: sums + "created_at >= $1 and created_at < $2", args: times},
		{name: "time-of-key", sql: fmt.Sprintf(sums+"%[1]s(id) >= $1 and %[1]s(id) < $2", k.time), args: times},
	}
}

// latest are the queries for the latest rows.
var latest = []way{
	{name: "key", sql: fmt.Sprintf(newest, "id", limit), args: none},
	{name: "created_at-indexed", sql: fmt.Sprintf(newest, "created_at", limit), args: none, indexed: true},
	{name: "created_at", sql: fmt.Sprintf(newest, "created_at", limit), args: none},
}

// BenchmarkWindow queries tables with the same rows for time windows.
func BenchmarkWindow(b *testing.B) {
	if *rows < 1 {
		b.Fatalf("-rows is %d, want 1 or more", *rows)
	}
	s := server{figures.Install(b, "./bench/window", schema), orders(*rows)}
	// Just-in-time compilation takes longer than the queries, and depends on cost
	// estimates.
	s.Exec(b, "set jit = off")
	for _, k := range kinds {
		b.Run("kind="+k.name, func(b *testing.B) {
			s.fill(b, k)
			for _, w := range []struct {
				name  string
				hours int
			}{{"1h", 1}, {"1d", 24}} {
				for _, way := range k.ways() {
					b.Run(fmt.Sprintf("window=%s/by=%s", w.name, way.name), func(b *testing.B) {
						s.measure(b, way, func(at int) (time.Time, time.Time, answer) {
							from := start.Add(time.Duration(at) * time.Hour)
							to := from.Add(time.Duration(w.hours) * time.Hour)
							return from, to, s.orders.between(from, to)
						}, int(span/time.Hour)-w.hours+1)
					})
				}
			}
			for _, way := range latest {
				b.Run(fmt.Sprintf("window=latest/by=%s", way.name), func(b *testing.B) {
					s.measure(b, way, func(int) (from, to time.Time, _ answer) { return from, to, s.orders.latest(limit) }, 1)
				})
			}
		})
	}
}

type server struct {
	*figures.Schema
	orders orders
}

// fill creates and fills the table. It drops the table when b ends.
func (s server) fill(b *testing.B, k kind) {
	b.Helper()
	next, err := k.minter()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.DropTables(b, "orders") })
	s.Exec(b, fmt.Sprintf(`create table orders (id %s primary key, customer bigint not null, created_at timestamptz not null, total int not null)
		with (autovacuum_enabled = off)`, k.column))
	var at time.Time
	key := figures.Key{Next: func() (any, error) { return next(at) }}
	err = s.Copy(b.Context(), "orders", key, int(s.orders), []string{"customer", "created_at", "total"}, func(i int, row []any) {
		at = s.orders.at(i)
		row[0], row[1], row[2] = int64(i%100_000), at, total(i)
	})
	if err != nil {
		b.Fatal(err)
	}
	s.Exec(b, "vacuum (freeze, analyze) orders")
}

// measure runs the query for random windows and checks each answer.
func (s server) measure(b *testing.B, w way, window func(at int) (from, to time.Time, want answer), windows int) {
	if w.indexed {
		b.Cleanup(func() { s.Exec(b, "drop index orders_created_at") })
		s.Exec(b, "create index orders_created_at on orders (created_at)")
	}
	query := func(at int) (took time.Duration, args []any) {
		from, to, want := window(at)
		begin := time.Now()
		args, err := w.args(from, to)
		var got answer
		if err == nil {
			err = s.Conn.QueryRow(b.Context(), w.sql, args...).Scan(&got.count, &got.sum)
		}
		took = time.Since(begin)
		if err != nil {
			b.Fatalf("%s: %v", w.sql, err)
		}
		if got != want {
			b.Fatalf("%s with %v: expected %+v, got %+v", w.sql, args, want, got)
		}
		return took, args
	}
	// Warm up: plan the query and read the pages.
	query(0)
	query(windows - 1)
	_, args := query(windows / 2)
	buffers, err := s.buffers(b, w.sql, args)
	if err != nil {
		b.Fatalf("explain %s: %v", w.sql, err)
	}

	var took []time.Duration
	for b.Loop() {
		t, _ := query(rand.IntN(windows))
		took = append(took, t)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(figures.Median(took))/float64(time.Millisecond), "ms/query")
	b.ReportMetric(buffers, "buffers/query")
	if w.indexed {
		var size float64
		if err := s.Conn.QueryRow(b.Context(), "select pg_relation_size('orders_created_at')::float8").Scan(&size); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(size/1e6, "extra-index-MB")
	}
}

// buffers returns the number of pages that a query accesses, in shared_buffers or not.
func (s server) buffers(b *testing.B, sql string, args []any) (float64, error) {
	var text []byte
	if err := s.Conn.QueryRow(b.Context(), "explain (analyze, buffers, format json) "+sql, args...).Scan(&text); err != nil {
		return 0, err
	}
	return pages(text)
}

// pages returns the number of pages in the output of EXPLAIN.
func pages(explained []byte) (float64, error) {
	var plans []struct {
		Plan struct {
			Hit  *float64 `json:"Shared Hit Blocks"`
			Read *float64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(explained, &plans); err != nil {
		return 0, err
	}
	if len(plans) != 1 || plans[0].Plan.Hit == nil || plans[0].Plan.Read == nil {
		return 0, errors.New("plan without Shared Hit Blocks and Shared Read Blocks: " + string(explained))
	}
	return *plans[0].Plan.Hit + *plans[0].Plan.Read, nil
}
