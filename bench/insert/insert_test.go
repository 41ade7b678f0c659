package insertbench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/pgxcodec"
)

var rows = flag.Int("rows", 3_000_000, "how many rows each table gets")

// turns is in how many parts they are inserted.
const turns = 30

// The schema of the tables, and of an installation for the defaults.
const schema = "sortkey_bench_insert"

// A key is a way for rows to get their primary key.
type key struct {
	name   string
	column string              // its type, and the default
	needs  int                 // server_version_num
	next   func() (any, error) // nil: the server makes them
}

// yardstick is what the others are compared with.
var yardstick = key{name: "bigserial", column: "bigserial"}

// onServer are the keys that a server makes. The other formats aren't among
// them: they mint fewer in a millisecond than are inserted here.
var onServer = []key{
	yardstick, // against itself: the noise
	{name: "gen_random_uuid", column: "uuid default gen_random_uuid()"},
	{name: "uuidv7", column: "uuid default uuidv7()", needs: 180000},
	{name: "next_snowflake", column: "bigint default " + schema + ".next_snowflake(0, 0)"},
	{name: "next_sno", column: "uuid default " + schema + ".next_sno(0, 0)"},
}

func inGo(b *testing.B) []key {
	snowflake, err1 := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1})
	sno, err2 := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &idtype.SnoPartition{0, 1}})
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	return []key{
		{name: "Snowflake", column: "bigint", next: func() (any, error) { return snowflake.Next() }},
		{name: "Sno", column: "uuid", next: func() (any, error) { return sno.Next() }},
		{name: "google-v4", column: "uuid", next: func() (any, error) { id, err := uuid.NewRandom(); return [16]byte(id), err }},
		{name: "google-v7", column: "uuid", next: func() (any, error) { id, err := uuid.NewV7(); return [16]byte(id), err }},
	}
}

// BenchmarkInsert inserts by INSERT … SELECT from generate_series, in which the
// server makes the keys: next to nothing else takes time.
func BenchmarkInsert(b *testing.B) {
	s := newServer(b)
	for _, k := range onServer {
		s.compare(b, k, func(ctx context.Context, table string, _ key, n int) error {
			_, err := s.conn.Exec(ctx, "insert into "+table+" (n) select generate_series(1, $1::int)", n)
			return err
		})
	}
}

// BenchmarkCopy inserts by COPY from this process, which makes the keys, or
// leaves them to the server.
func BenchmarkCopy(b *testing.B) {
	s := newServer(b)
	for _, k := range append(onServer, inGo(b)...) {
		s.compare(b, k, func(ctx context.Context, table string, k key, n int) error {
			columns, row := []string{"n"}, make([]any, 1, 2)
			if k.next != nil {
				columns, row = []string{"n", "id"}, row[:2]
			}
			i := 0
			_, err := s.conn.CopyFrom(ctx, pgx.Identifier{schema, table}, columns, pgx.CopyFromFunc(func() (_ []any, err error) {
				if i == n {
					return nil, nil
				}
				row[0] = int32(i)
				if k.next != nil {
					row[1], err = k.next()
				}
				i++
				return row, err
			}))
			return err
		})
	}
}

type server struct {
	conn    *pgx.Conn
	version int
}

// newServer connects, and installs what the defaults need for as long as b runs.
func newServer(b *testing.B) *server {
	b.Helper()
	config := figures.Server(b, "./bench/insert")
	config.RuntimeParams["search_path"] = schema + ",public"
	conn, err := pgx.ConnectConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(migrations.Down(ctx, db, migrations.Config{Schema: schema}), db.Close(), conn.Close(ctx)); err != nil {
			b.Error(err)
		}
	})
	if err := migrations.Up(b.Context(), db, migrations.Config{Schema: schema}); err != nil {
		b.Fatal(err)
	}
	pgxcodec.Register(conn.TypeMap())
	s := &server{conn: conn}
	if err := conn.QueryRow(b.Context(), "select current_setting('server_version_num')::int").Scan(&s.version); err != nil {
		b.Fatal(err)
	}
	return s
}

// compare measures a key next to the yardstick. Each has a table, and they take
// turns until both are full.
func (s *server) compare(b *testing.B, k key, insert func(ctx context.Context, table string, k key, n int) error) {
	b.Run("key="+k.name, func(b *testing.B) {
		if s.version < k.needs {
			b.Skipf("expected a server of version %d for this key, got %d", k.needs/10000, s.version/10000)
		}
		var took, wal [2]float64
		var size int64
		var ratios []float64
		b.Cleanup(func() { s.drop(b) })
		n := max(*rows/turns, 1)
		for b.Loop() {
			s.drop(b)
			keys := [2]key{yardstick, k}
			tables := [2]string{"yardstick", "subject"}
			for i, table := range tables {
				s.exec(b, fmt.Sprintf("create table %s (id %s primary key, n int not null)", table, keys[i].column))
			}
			for range turns {
				var turn [2]time.Duration
				first := rand.IntN(2)
				for _, i := range [2]int{first, 1 - first} {
					before := s.lsn(b)
					start := time.Now()
					if err := insert(b.Context(), tables[i], keys[i], n); err != nil {
						b.Fatal(err)
					}
					turn[i] = time.Since(start)
					took[i] += float64(turn[i])
					wal[i] += s.lsn(b) - before
				}
				ratios = append(ratios, float64(turn[1])/float64(turn[0]))
			}
			if err := s.conn.QueryRow(b.Context(), "select pg_relation_size('subject_pkey')").Scan(&size); err != nil {
				b.Fatal(err)
			}
		}
		all := float64(b.N * turns * n)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took[1]/all, "ns/row")
		b.ReportMetric(took[1]/took[0], "ratio")
		b.ReportMetric(figures.Median(ratios), "median-ratio")
		b.ReportMetric(float64(size)/float64(turns*n), "index-B/row")
		b.ReportMetric(wal[1]/all, "wal-B/row")
	})
}

func (s *server) drop(b *testing.B) {
	s.exec(b, "drop table if exists yardstick, subject")
	// The next tables have the same names and other columns.
	if err := s.conn.DeallocateAll(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}

func (s *server) exec(b *testing.B, sql string) {
	b.Helper()
	if _, err := s.conn.Exec(context.WithoutCancel(b.Context()), sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// lsn is how much write-ahead log there was since the server was made.
func (s *server) lsn(b *testing.B) (bytes float64) {
	b.Helper()
	if err := s.conn.QueryRow(b.Context(), "select (pg_current_wal_insert_lsn() - '0/0')::float8").Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}
