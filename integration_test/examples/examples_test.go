// Package examples runs the code of examples and of README.md.
package examples

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The lines of the quickstart's output, as regular expressions.
var (
	quickstartRows = []string{
		`customers +Sno +[2-9a-x]{16} +uuid +[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} +20.*meta 'c'`,
		`orders +Snowflake +ord_(\d+) +bigint +\d+ +20.*datacenter 0, worker 0`,
		`order_lines +SnowflakeSI +(\d+) +bigint +\d+ +20.*machine 0`,
		`visits +Spread64 +[0-9a-f]{16} +bigint +-?\d+ +20.*generator 0, cluster 0`,
		`events +UID60 +[A-Za-z0-9_-]{10} +bigint +\d+ +20.*sequence`,
		`Created Ada with 2 orders, 3 lines and 2 visits`,
		`10000 events of 20`,
		`the 417 events from 03:00 to 04:00 UTC`,
	}
	postgresRows = []string{
		`Database: Postgres \d+`, `Copied 10000`,
		`Index (Only )?Scan using events_pkey on events \(actual .*rows=417`,
		`Index Cond: \(\(id >= '\d+'::bigint\) AND \(id < '\d+'::bigint\)\)`,
	}
	sqliteRows = []string{`Database: SQLite`, `Inserted 10000`, `SEARCH events USING .*\(id>\? AND id<\?\)`, `Not shown without Postgres`}
)

func TestQuickstart(t *testing.T) {
	program := pgtest.Build(t, "github.com/sortkey/sortkey/examples/quickstart")
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		run(t, program, db.URL, append(quickstartRows, postgresRows...))
		if out := run(t, program, db.URL, nil); strings.Contains(out, "SQLite") {
			t.Errorf("a second run used SQLite:\n%s", out)
		}
		var schemas int
		if err := db.Conn(t).QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'sortkey%'").Scan(&schemas); err != nil || schemas != 0 {
			t.Errorf("schemas left over: %d, %v", schemas, err)
		}
	})
	t.Run("sqlite", func(t *testing.T) { run(t, program, "", append(quickstartRows, sqliteRows...)) })
}

// The tests of examples/testing run on Postgres, too.
func TestTesting(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "github.com/sortkey/sortkey/examples/testing")
		cmd.Env = append(os.Environ(), "DATABASE_URL="+db.URL)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestInsert") || strings.Contains(string(out), "--- SKIP") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func run(t *testing.T, program, url string, want []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, w := range want {
		if !regexp.MustCompile(w).Match(out) {
			t.Errorf("no match for %q in:\n%s", w, out)
		}
	}
	return string(out)
}
