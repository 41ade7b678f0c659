package figures

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/pgxcodec"
)

// SILayout is the layout that a SnowflakeSI must be given, of keys in Go and
// of those that an installation makes.
var SILayout = idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}

// A Schema is one on the server that is a benchmark's own, with an installation
// of the SQL functions in it. All sessions find it first.
type Schema struct {
	Name    string
	Conn    *pgx.Conn
	Version int // server_version_num
	config  *pgx.ConnConfig
}

// Install makes the schema, for as long as b runs. The benchmark, which is in
// that folder, is skipped without a server.
//
// The schema is dropped with all that is in it, however b ends; and before it is
// made, since a run that was killed leaves it behind.
func Install(b *testing.B, folder, name string) *Schema {
	b.Helper()
	config := Server(b, folder)
	config.RuntimeParams["search_path"] = name + ",public"
	s := &Schema{Name: name, config: config}
	s.Conn = s.Connect(b)
	b.Cleanup(func() { s.drop(b) })
	s.drop(b)

	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := migrations.Up(b.Context(), db, migrations.Config{Schema: name, SnowflakeSI: SILayout}); err != nil {
		b.Fatal(err)
	}
	if err := s.Conn.QueryRow(b.Context(), "select current_setting('server_version_num')::int").Scan(&s.Version); err != nil {
		b.Fatal(err)
	}
	if err := s.describe(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// drop has a session of its own: what ended the benchmark may have ended others.
func (s *Schema) drop(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "drop schema if exists "+s.Name+" cascade"); err != nil {
		b.Fatal(err)
	}
}

// Connect opens a further session, which knows the types of this project, for
// as long as b runs.
func (s *Schema) Connect(b *testing.B) *pgx.Conn {
	b.Helper()
	conn, err := pgx.ConnectConfig(b.Context(), s.config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	pgxcodec.Register(conn.TypeMap())
	return conn
}

// Exec executes a statement, also when b has ended, to clean up.
func (s *Schema) Exec(b *testing.B, sql string) {
	b.Helper()
	if _, err := s.Conn.Exec(context.WithoutCancel(b.Context()), sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// DropTables drops those of the tables that there are, and forgets statements:
// the next tables may have the same names and other columns.
func (s *Schema) DropTables(b *testing.B, tables ...string) {
	b.Helper()
	s.Exec(b, "drop table if exists "+strings.Join(tables, ", "))
	if err := s.Conn.DeallocateAll(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}

// WAL is how much write-ahead log there was since the server was made.
func (s *Schema) WAL(b *testing.B) (bytes float64) {
	b.Helper()
	if err := s.Conn.QueryRow(b.Context(), "select (pg_current_wal_insert_lsn() - '0/0')::float8").Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// Needs skips b if the server is too old for the key.
func (s *Schema) Needs(b *testing.B, k Key) {
	b.Helper()
	if s.Version < k.Needs {
		b.Skipf("expected a server of version %d for this key, got %d", k.Needs/10000, s.Version/10000)
	}
}

// Copy copies n rows to a table: those columns, of which fill gives the values,
// and the key's, unless the server makes that one.
func (s *Schema) Copy(ctx context.Context, table string, k Key, n int, columns []string, fill func(i int, row []any)) error {
	row := make([]any, len(columns), len(columns)+1)
	if k.Next != nil {
		columns, row = append(columns[:len(columns):len(columns)], "id"), row[:len(columns)+1]
	}
	i := 0
	copied, err := s.Conn.CopyFrom(ctx, pgx.Identifier{s.Name, table}, columns, pgx.CopyFromFunc(func() (_ []any, err error) {
		if i == n {
			return nil, nil
		}
		fill(i, row)
		if k.Next != nil {
			row[len(row)-1], err = k.Next()
		}
		i++
		return row, err
	}))
	if err == nil && copied != int64(n) {
		err = fmt.Errorf("expected %d rows to be copied, got %d", n, copied)
	}
	return err
}

// settings are those of the server without which the figures say little.
var settings = []string{"server_version", "shared_buffers", "full_page_writes", "fsync", "synchronous_commit", "max_wal_size", "max_parallel_workers_per_gather"}

var described sync.Once

// describe prints them once, as lines that benchstat takes for the configuration
// of what follows. It must not be called in a benchmark that is measured itself,
// whose line has begun.
func (s *Schema) describe(ctx context.Context) (err error) {
	described.Do(func() {
		for _, name := range settings {
			var value string
			if err = s.Conn.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
				return
			}
			fmt.Printf("%s: %s\n", name, value)
		}
	})
	return err
}
