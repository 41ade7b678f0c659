package rekeybench

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

var rows = flag.Int("rows", 200_000, "the number of rows per table")

// config has schemas of their own, so that the benchmark changes no other tables.
var config = migrations.Config{Schema: "sortkey_bench_rekey"}

const tables = `
DROP TABLE IF EXISTS sortkey_bench_child, sortkey_bench_parent;
CREATE TABLE sortkey_bench_parent (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL, note text);
INSERT INTO sortkey_bench_parent (created_at, note) SELECT now() - n * interval '1 s', repeat('x', 80) FROM generate_series(%[1]d, 1, -1) n;
CREATE TABLE sortkey_bench_child (id bigserial PRIMARY KEY, parent_id bigint NOT NULL REFERENCES sortkey_bench_parent, note text);
CREATE INDEX ON sortkey_bench_child (parent_id);
INSERT INTO sortkey_bench_child (parent_id, note) SELECT n, repeat('x', 80) FROM generate_series(1, %[1]d) n;
VACUUM ANALYZE sortkey_bench_parent;
VACUUM ANALYZE sortkey_bench_child;`

// BenchmarkBackfill gives the rows of a table another key, and the rows of another table
// another reference. The ratio is the time against one UPDATE per table that sets a new
// bigint column to a constant.
func BenchmarkBackfill(b *testing.B) {
	db := open(b)
	for _, format := range []rekey.Format{rekey.Snowflake, rekey.UID60, rekey.Sno} {
		b.Run("format="+string(format), func(b *testing.B) {
			var backfill, update time.Duration
			for b.Loop() {
				b.StopTimer()
				run(b, db, fmt.Sprintf(tables, *rows))
				run(b, db, "ALTER TABLE sortkey_bench_parent ADD x bigint; ALTER TABLE sortkey_bench_child ADD x bigint")
				begun := time.Now()
				run(b, db, "UPDATE sortkey_bench_parent SET x = 1")
				run(b, db, "UPDATE sortkey_bench_child SET x = 1")
				update += time.Since(begun)

				run(b, db, fmt.Sprintf(tables, *rows))
				o := rekey.Options{Config: config}
				check(b, rekey.Expand(b.Context(), db, spec(format), o))
				begun = time.Now()
				b.StartTimer()
				check(b, rekey.Backfill(b.Context(), db, o))
				b.StopTimer()
				backfill += time.Since(begun)
				check(b, rekey.Abort(b.Context(), db, o))
				b.StartTimer()
			}
			b.ReportMetric(float64(2**rows*b.N)/backfill.Seconds(), "rows/s")
			b.ReportMetric(backfill.Seconds()/update.Seconds(), "ratio")
		})
	}
}

// BenchmarkTriggers runs statements of a program before and after Expand. The metric µs/row is
// the additional time.
func BenchmarkTriggers(b *testing.B) {
	db := open(b)
	for _, c := range []struct{ name, sql string }{
		{"insert-key", "INSERT INTO sortkey_bench_parent (created_at) SELECT now() FROM generate_series(1, %d)"},
		{"insert-reference", "INSERT INTO sortkey_bench_child (parent_id) SELECT n FROM generate_series(1, %d) n"},
		{"delete-key", "DELETE FROM sortkey_bench_parent WHERE id > 1000000000 - %d"},
	} {
		b.Run("statement="+c.name, func(b *testing.B) {
			var before, after time.Duration
			for b.Loop() {
				b.StopTimer()
				run(b, db, fmt.Sprintf(tables, *rows))
				run(b, db, fmt.Sprintf("INSERT INTO sortkey_bench_parent SELECT 1000000000 - n, now() FROM generate_series(0, 2 * %d) n", *rows))
				statement := fmt.Sprintf(c.sql, *rows)
				begun := time.Now()
				run(b, db, statement)
				before += time.Since(begun)
				if c.name == "delete-key" {
					statement = fmt.Sprintf(c.sql, 2**rows)
				}
				o := rekey.Options{Config: config}
				check(b, rekey.Expand(b.Context(), db, spec(rekey.Snowflake), o))
				begun = time.Now()
				b.StartTimer()
				run(b, db, statement)
				b.StopTimer()
				after += time.Since(begun)
				check(b, rekey.Abort(b.Context(), db, o))
				b.StartTimer()
			}
			b.ReportMetric(float64((after-before).Microseconds())/float64(*rows*b.N), "µs/row")
		})
	}
}

// open installs the SQL functions, and removes them and the tables at the end.
func open(b *testing.B) *sql.DB {
	db := stdlib.OpenDB(*figures.Server(b, "./bench/rekey"))
	b.Cleanup(func() { db.Close() })
	run(b, db, "DROP TABLE IF EXISTS sortkey_bench_child, sortkey_bench_parent; DROP SCHEMA IF EXISTS rekeyed CASCADE")
	check(b, migrations.Up(b.Context(), db, config))
	b.Cleanup(func() {
		ctx := context.Background() // the benchmark's context has ended
		if _, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS sortkey_bench_child, sortkey_bench_parent"); err != nil {
			b.Error(err)
		}
		if err := migrations.Down(ctx, db, config); err != nil {
			b.Error(err)
		}
	})
	return db
}

// spec replaces the key of the parent table.
func spec(format rekey.Format) rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{{Table: "sortkey_bench_parent", Format: format, Node: 1, BackfillNode: 2, Times: rekey.Times{Column: "created_at"}}}}
}

func run(b *testing.B, db *sql.DB, statements string) {
	b.Helper()
	for s := range strings.SplitSeq(statements, ";") { // VACUUM needs a statement of its own
		if _, err := db.ExecContext(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
