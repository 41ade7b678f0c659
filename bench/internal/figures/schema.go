package figures

import (
	"context"
	"fmt"
	"os"
	"strconv"
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

// SILayout is the layout of SnowflakeSI keys, in Go and in the schema.
var SILayout = idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}

// A Schema is a benchmark's own schema on the server, with the SQL functions
// installed. It comes first in the search_path of all sessions.
type Schema struct {
	Name    string
	Conn    *pgx.Conn
	Version int // server_version_num
	config  *pgx.ConnConfig
}

// Node is the node number that the defaults of a [Schema] take from the setting of
// their session. All formats have it.
const Node = 31

// Server returns the configuration of the server of DATABASE_URL. It skips b if
// DATABASE_URL is unset. folder is the package of the benchmark, for the message.
func Server(b *testing.B, folder string) *pgx.ConnConfig {
	b.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		b.Skipf("DATABASE_URL is unset; run scripts/with-postgres go test %s -bench ...", folder)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	return config
}

// Install creates the schema and drops it with everything in it when b ends. First
// it drops a schema that a killed run has left behind. Without a server it skips b.
// folder is the package of the benchmark, for the message.
func Install(b *testing.B, folder, name string) *Schema {
	b.Helper()
	config := Server(b, folder)
	config.RuntimeParams["search_path"] = name + ",public"
	config.RuntimeParams[name+".node"] = strconv.Itoa(Node)
	s := &Schema{Name: name, config: config}
	s.Conn = s.Connect(b)
	b.Cleanup(func() { s.drop(b) })
	s.drop(b)

	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := migrations.Up(b.Context(), db, migrations.Config{Schema: name, SnowflakeSI: SILayout}); err != nil {
		b.Fatal(err)
	}
	for _, pool := range []string{"snowflake", "snowflake-si", "spread64", "sno"} {
		s.Exec(b, fmt.Sprintf("select %s.reserve_node('%s', %d, 'defaults')", name, pool, Node))
	}
	if err := s.Conn.QueryRow(b.Context(), "select current_setting('server_version_num')::int").Scan(&s.Version); err != nil {
		b.Fatal(err)
	}
	if err := s.describe(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// drop opens its own session, because an error may have ended the others.
func (s *Schema) drop(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	// The second schema has the internal objects of the migrations.
	if _, err := conn.Exec(ctx, fmt.Sprintf("drop schema if exists %[1]s, %[1]s_internal cascade", s.Name)); err != nil {
		b.Fatal(err)
	}
}

// Connect opens another session, with the codecs of this project, and closes it when
// b ends.
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

// Exec executes a statement. Cleanup functions can call it after b has ended.
func (s *Schema) Exec(b *testing.B, sql string) {
	b.Helper()
	if _, err := s.Conn.Exec(context.WithoutCancel(b.Context()), sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// DropTables drops the tables that exist. It also deallocates prepared statements,
// because later tables may have the same names with other columns.
func (s *Schema) DropTables(b *testing.B, tables ...string) {
	b.Helper()
	s.Exec(b, "drop table if exists "+strings.Join(tables, ", "))
	if err := s.Conn.DeallocateAll(context.WithoutCancel(b.Context())); err != nil {
		b.Fatal(err)
	}
}

// WAL returns the number of bytes that the server has ever written to its
// write-ahead log.
func (s *Schema) WAL(b *testing.B) (bytes float64) {
	b.Helper()
	if err := s.Conn.QueryRow(b.Context(), "select (pg_current_wal_insert_lsn() - '0/0')::float8").Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}

// WALMeter returns a meter of the write-ahead log.
func (s *Schema) WALMeter(b *testing.B) Meter {
	return Meter{Unit: "wal-B", Read: func() (float64, error) { return s.WAL(b), nil }}
}

// CPUMeter returns a meter of the CPU time of sessions on the server. It excludes
// background processes, such as the checkpointer. If ok is false, the server isn't on
// Linux, or the role can't read its files.
func (s *Schema) CPUMeter(ctx context.Context, sessions []*pgx.Conn) (m Meter, ok bool) {
	m = Meter{Unit: "server-cpu-ns", Ratio: "server-cpu-ratio", Read: func() (sum float64, err error) {
		for _, conn := range sessions {
			var each float64
			if err := conn.QueryRow(ctx, "select split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8").Scan(&each); err != nil {
				return 0, err
			}
			sum += each
		}
		return sum, nil
	}}
	used, err := m.Read()
	return m, err == nil && used > 0
}

// Pages returns the number of pages that a query accesses, in shared_buffers or not.
func (s *Schema) Pages(b *testing.B, sql string, args ...any) float64 {
	b.Helper()
	var plan []struct {
		Plan struct {
			Hit  *float64 `json:"Shared Hit Blocks"`
			Read *float64 `json:"Shared Read Blocks"`
		}
	}
	if err := s.Conn.QueryRow(b.Context(), "explain (analyze, buffers, format json) "+sql, args...).Scan(&plan); err != nil {
		b.Fatalf("explain %s: %v", sql, err)
	}
	if len(plan) != 1 || plan[0].Plan.Hit == nil || plan[0].Plan.Read == nil {
		b.Fatalf("the plan of %s has no number of pages", sql)
	}
	return *plan[0].Plan.Hit + *plan[0].Plan.Read
}

// Needs skips b if the server is too old for the key.
func (s *Schema) Needs(b *testing.B, k Key) {
	b.Helper()
	if s.Version < k.Needs {
		b.Skipf("this key needs Postgres %d or later, the server is Postgres %d", k.Needs/10000, s.Version/10000)
	}
}

// Copy copies n rows to a table. fill sets the values of the columns. Copy also adds
// the column of the key, unless the server creates the key.
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
		err = fmt.Errorf("copied %d rows, want %d", copied, n)
	}
	return err
}

// settings are the server settings that influence the figures most.
var settings = []string{"server_version", "shared_buffers", "full_page_writes", "fsync", "synchronous_commit", "max_wal_size", "max_parallel_workers_per_gather"}

var described sync.Once

// describe prints the settings once, as configuration lines for benchstat. Don't
// call it in a measured benchmark: the framework has already printed the start of
// the result line.
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
