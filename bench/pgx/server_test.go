package pgxbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/pgxcodec"
)

const rowCount = 10_000 // rows per table

// A server holds a session for each extension. Each session has its own, equal
// temporary tables.
type server struct {
	config *pgx.ConnConfig
	conns  map[*extension]*pgx.Conn
}

func newServer(b *testing.B) *server {
	b.Helper()
	return &server{figures.Server(b, "./bench/pgx"), map[*extension]*pgx.Conn{}}
}

func (s *server) connect(b *testing.B) *pgx.Conn {
	b.Helper()
	conn, err := pgx.ConnectConfig(b.Context(), s.config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// conn returns the session of an extension. The session ends with b.
func (s *server) conn(b *testing.B, e *extension) *pgx.Conn {
	b.Helper()
	if conn := s.conns[e]; conn != nil {
		return conn
	}
	conn := s.connect(b)
	e.register(conn.TypeMap())
	s.conns[e] = conn

	exec(b, conn, "create temporary table ids (u uuid, n bigint, t text, b bytea)")
	n, err := conn.CopyFrom(b.Context(), pgx.Identifier{"ids"}, []string{"u", "n", "t", "b"},
		pgx.CopyFromSlice(rowCount, func(i int) ([]any, error) {
			return []any{pgtypeUUID(i), number(i), snoText(i), snoBytes(i)}, nil
		}))
	if err != nil || n != rowCount {
		b.Fatalf("copied %d rows: %v", n, err)
	}
	for _, k := range bases {
		exec(b, conn, fmt.Sprintf("create temporary table %s as select %s as id from ids limit 0", k.copied(), k.column))
	}
	exec(b, conn, "vacuum analyze ids")
	return conn
}

// copied returns the name of the table that BenchmarkCopyFrom writes to.
func (k kind) copied() string { return "copied_" + k.column }

func exec(b *testing.B, conn *pgx.Conn, sql string) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// BenchmarkRows reads the IDs of 10,000 rows by rows.Next and rows.Scan.
func BenchmarkRows(b *testing.B) {
	server := newServer(b)
	for _, k := range kinds {
		query := fmt.Sprintf("select %s from ids", k.column)
		k.versus(b, "", figures.Duel{Operations: rowCount, Unit: "row", CPU: true}, func(_ *testing.B, s subject) figures.Side {
			conn := server.conn(b, s.extends())
			run, result := s.query(b.Context(), conn, query)
			if err := run(); err != nil {
				b.Fatal(err)
			}
			want := must(conn.TypeMap().Encode(k.array, pgtype.BinaryFormatCode, s.slice(rowCount), nil))
			got := must(conn.TypeMap().Encode(k.array, pgtype.BinaryFormatCode, result(), nil))
			if !bytes.Equal(got, want) {
				b.Fatalf("%s: the values read differ from the table's", s.label())
			}
			return figures.Side{Run: run}
		})
	}
}

// BenchmarkCopyFrom writes 10,000 rows to an empty temporary table without an index.
// It reuses the same rows, so it measures no allocations for them.
func BenchmarkCopyFrom(b *testing.B) {
	server := newServer(b)
	for _, k := range kinds {
		table := pgx.Identifier{k.copied()}
		k.versus(b, "", figures.Duel{Operations: rowCount, Unit: "row", CPU: true}, func(_ *testing.B, s subject) figures.Side {
			conn := server.conn(b, s.extends())
			rows := make([][]any, rowCount)
			for i := range rows {
				rows[i] = []any{s.value(i)}
			}
			run := func() error {
				_, err := conn.CopyFrom(b.Context(), table, []string{"id"}, pgx.CopyFromRows(rows))
				return err
			}
			reset := func() error {
				_, err := conn.Exec(b.Context(), "truncate "+k.copied())
				return err
			}
			if err := run(); err != nil {
				b.Fatal(err)
			}
			var same int
			check := fmt.Sprintf("select count(distinct id) from %s join ids on id = %s", k.copied(), k.column)
			if err := conn.QueryRow(b.Context(), check).Scan(&same); err != nil || same != rowCount {
				b.Fatalf("%s: the table has %d of the values, want %d: %v", s.label(), same, rowCount, err)
			}
			if err := reset(); err != nil {
				b.Fatal(err)
			}
			return figures.Side{Run: run, Reset: reset}
		})
	}
}

// BenchmarkConnect opens and closes a connection. The yardstick registers nothing.
// AfterConnect queries the domains for each connection, Loader only once.
func BenchmarkConnect(b *testing.B) {
	server := newServer(b)
	schema := fmt.Sprintf("sortkey_bench_%d", os.Getpid())
	admin := server.connect(b)
	exec(b, admin, "create schema "+schema)
	defer exec(b, admin, "drop schema "+schema+" cascade")
	for _, d := range []string{"snowflake bigint", "snowflake_si bigint", "uid60 bigint", "spread64 bigint", "sno uuid", "uuid7 uuid", "sno_as_text text"} {
		name, base, _ := strings.Cut(d, " ")
		exec(b, admin, fmt.Sprintf("create domain %s.%s as %s", schema, name, base))
	}

	open := func(afterConnect func(context.Context, *pgx.Conn) error) figures.Side {
		return figures.Side{Run: func() error {
			conn, err := pgx.ConnectConfig(b.Context(), server.config)
			if err != nil {
				return err
			}
			if err := afterConnect(b.Context(), conn); err != nil {
				return err
			}
			return conn.Close(b.Context())
		}}
	}
	nothing := func(context.Context, *pgx.Conn) error { return nil }
	var loader pgxcodec.Loader
	for _, c := range []struct {
		name         string
		afterConnect func(context.Context, *pgx.Conn) error
	}{
		{"nothing", nothing},
		{"Register", func(_ context.Context, conn *pgx.Conn) error { pgxcodec.Register(conn.TypeMap()); return nil }},
		{"AfterConnect", pgxcodec.AfterConnect},
		{"Loader", loader.AfterConnect},
	} {
		b.Run("type="+c.name, func(b *testing.B) {
			figures.Duel{Operations: 1, Unit: "op", CPU: true}.Run(b, open(nothing), open(c.afterConnect))
		})
	}
}
