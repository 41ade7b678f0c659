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
				spec := rekey.Spec{Keys: []rekey.Key{{Table: "sortkey_bench_parent", Format: format, Node: 1, BackfillNode: 2, Times: rekey.Times{Column: "created_at"}}}}
				o := rekey.Options{Config: config}
				check(b, rekey.Expand(b.Context(), db, spec, o))
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
