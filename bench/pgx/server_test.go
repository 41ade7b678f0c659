package pgxbench

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/bench/internal/figures"
)

const rowCount = 10_000 // rows per table

var rows = figures.Duel{Operations: rowCount, Unit: "row", Meters: []figures.Meter{figures.ProcessCPU}}

// connect opens a session with the codecs of a subject and a temporary table that holds
// the values of a kind.
func (k kind) connect(b *testing.B, config *pgx.ConnConfig, s subject) *pgx.Conn {
	b.Helper()
	conn, err := pgx.ConnectConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec(b, conn, "create temporary table ids (id "+k.name+"); create temporary table copied (id "+k.name+")")
	n, err := conn.CopyFrom(b.Context(), pgx.Identifier{"ids"}, []string{"id"},
		pgx.CopyFromSlice(rowCount, func(i int) ([]any, error) { return []any{k.subjects[0].value(i)}, nil }))
	if err != nil || n != rowCount {
		b.Fatalf("copied %d rows: %v", n, err)
	}
	exec(b, conn, "vacuum analyze ids")
	s.register(conn.TypeMap())
	return conn
}

func exec(b *testing.B, conn *pgx.Conn, sql string) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), sql); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

// BenchmarkRows reads the IDs of 10,000 rows by rows.Next and rows.Scan.
func BenchmarkRows(b *testing.B) {
	config := figures.Server(b, "./bench/pgx")
	for _, k := range kinds {
		k.versus(b, "", rows, func(b *testing.B, s subject) figures.Side {
			conn := k.connect(b, config, s)
			run, result := s.query(b.Context(), conn, "select id from ids")
			if err := run(); err != nil {
				b.Fatal(err)
			}
			want := must(conn.TypeMap().Encode(k.array, binary, s.slice(rowCount), nil))
			if got := must(conn.TypeMap().Encode(k.array, binary, result(), nil)); !bytes.Equal(got, want) {
				b.Fatalf("%s: the values read differ from the table's", s.label())
			}
			return figures.Side{Run: run}
		})
	}
}

// BenchmarkCopyFrom writes 10,000 rows to an empty temporary table without an index.
// It reuses the same rows, so it measures no allocations for them.
func BenchmarkCopyFrom(b *testing.B) {
	config := figures.Server(b, "./bench/pgx")
	for _, k := range kinds {
		k.versus(b, "", rows, func(b *testing.B, s subject) figures.Side {
			conn := k.connect(b, config, s)
			values := make([][]any, rowCount)
			for i := range values {
				values[i] = []any{s.value(i)}
			}
			side := figures.Side{
				Run: func() error {
					_, err := conn.CopyFrom(b.Context(), pgx.Identifier{"copied"}, []string{"id"}, pgx.CopyFromRows(values))
					return err
				},
				Reset: func() error {
					_, err := conn.Exec(b.Context(), "truncate copied")
					return err
				},
			}
			if err := side.Run(); err != nil {
				b.Fatal(err)
			}
			var same int
			if err := conn.QueryRow(b.Context(), "select count(distinct id) from copied join ids using (id)").Scan(&same); err != nil || same != rowCount {
				b.Fatalf("%s: the table has %d of the values, want %d: %v", s.label(), same, rowCount, err)
			}
			if err := side.Reset(); err != nil {
				b.Fatal(err)
			}
			return side
		})
	}
}
