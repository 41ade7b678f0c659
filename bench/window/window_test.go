package windowbench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

var rows = flag.Int("rows", 1_000_000, "the number of rows per table")

// schema contains the tables.
const schema = "sortkey_bench_window"

// limit is the number of latest rows.
const limit = 50

const (
	sums   = "select count(*), sum(total) from orders where "
	newest = "select count(*), sum(total) from (select total from orders order by %s desc limit %d) o"
)

// The keys of a table have times at equal intervals, from start over span.
var start = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)

const span = 30 * 24 * time.Hour

// orders is the number of rows in a table. The total of a row is its number.
type orders int

// at returns the time of a row, in the resolution of timestamptz.
func (n orders) at(row int) time.Time { return start.Add(time.Duration(row) * n.step()) }

func (n orders) step() time.Duration { return (span / time.Duration(n)).Truncate(time.Microsecond) }

// first returns the number of the first row at t or later.
func (n orders) first(t time.Time) int { return min(int((t.Sub(start)+n.step()-1)/n.step()), int(n)) }

// An answer is the result of a query: the number of rows and the sum of their totals.
type answer struct{ count, sum int }

// between returns the answer for the rows from one number to another.
func between(from, to int) answer { return answer{to - from, (from + to - 1) * (to - from) / 2} }

// A kind is a kind of key that contains its time.
type kind struct {
	name string
	key  func(testing.TB, idtype.Options) figures.Key
	// between returns the bounds lo <= id < hi of the keys of a window.
	between     func(from, to time.Time) (lo, hi any, err error)
	floor, time string // SQL functions that return the lower bound for a time, and the time of a key
}

var kinds = []kind{
	{"snowflake", figures.Snowflake, func(from, to time.Time) (any, any, error) { return anys(idtype.SnowflakeLayout{}.Range(from, to)) }, "snowflake_floor", "snowflake_time"},
	{"sno", figures.Sno, func(from, to time.Time) (any, any, error) { return anys(idtype.SnoLayout{}.Range(from, to)) }, "sno_floor", "sno_time"},
	{"uuid", figures.UUID, func(from, to time.Time) (any, any, error) { return anys(idtype.UUIDLayout{}.Range(from, to)) }, "uuid7_floor", "uuid7_time"},
}

func anys[T any](lo, hi T, err error) (any, any, error) { return lo, hi, err }

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
	if *rows < limit {
		b.Fatalf("-rows is %d, want %d or more", *rows, limit)
	}
	s := server{figures.Install(b, "./bench/window", schema), orders(*rows)}
	// Just-in-time compilation takes longer than the queries, and depends on cost
	// estimates.
	s.Exec(b, "set jit = off")
	for _, k := range kinds {
		b.Run("kind="+k.name, func(b *testing.B) {
			s.fill(b, k)
			for _, way := range k.ways() {
				b.Run("window=1d/by="+way.name, func(b *testing.B) {
					s.measure(b, way, func(at int) (from, to time.Time, want answer) {
						from = start.Add(time.Duration(at) * time.Hour)
						to = from.Add(24 * time.Hour)
						return from, to, between(s.orders.first(from), s.orders.first(to))
					}, int((span-24*time.Hour)/time.Hour)+1)
				})
			}
			for _, way := range latest {
				b.Run("window=latest/by="+way.name, func(b *testing.B) {
					s.measure(b, way, func(int) (from, to time.Time, want answer) { return from, to, between(*rows-limit, *rows) }, 1)
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
	at := start
	key := k.key(b, idtype.Options{MaxWait: -1, Clock: func() time.Time { return at }})
	b.Cleanup(func() { s.DropTables(b, "orders") })
	s.Exec(b, fmt.Sprintf(`create table orders (id %s primary key, customer bigint not null, created_at timestamptz not null, total int not null)
		with (autovacuum_enabled = off)`, key.Column))
	err := s.Copy(b.Context(), "orders", key, int(s.orders), []string{"customer", "created_at", "total"}, func(i int, row []any) {
		at = s.orders.at(i)
		row[0], row[1], row[2] = int64(i%100_000), at, int32(i)
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
	buffers := s.Pages(b, w.sql, args...)

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
