package examples

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Four tests at a time, since they wait for programs and for Postgres.
func TestMain(m *testing.M) { pgtest.MainParallel(m, 4) }

// The lines of the quickstart's output in order, as regular expressions.
var quickstartRows = []string{
	`Database: Postgres \d+`,
	`Created Ada with 2 orders, 3 lines and 2 visits`,
	`order +bigint column +created`,
	`ord_(\d+) +(\d+) +20.* +0 +0 +\d+\n`,
	`ord_(\d+) +(\d+) +20.* +0 +0 +\d+\n`,
	`Copied 10000 events of 20`,
	`the 417 events from 03:00 to 04:00 UTC`,
	`Index (Only )?Scan using events_pkey on events \(actual .*rows=417`,
	`Index Cond: \(\(id >= '\d+'::bigint\) AND \(id < '\d+'::bigint\)\)`,
	`table +key`,
	`order_lines +SnowflakeSI +(\d+) +bigint +\d+ +\d\d:`,
	`customers +Sno +[2-9a-x]{16} +uuid +[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} +\d\d:`,
	`visits +Spread64 +[0-9a-f]{16} +bigint +-?\d+ +\d\d:`,
	`events +UID60 +[A-Za-z0-9_-]{10} +bigint +\d+ +03:`,
}

func TestQuickstart(t *testing.T) {
	program := pgtest.Build(t, "github.com/sortkey/sortkey/examples/quickstart")
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		checkQuickstart(t, run(t, program, db.URL))
		checkQuickstart(t, run(t, program, db.URL))
		var schemas int
		if err := db.Conn(t).QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'sortkey%'").Scan(&schemas); err != nil || schemas != 0 {
			t.Errorf("schemas left over: %d, %v", schemas, err)
		}
	})
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "DATABASE_URL=")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "DATABASE_URL is unset") {
		t.Errorf("without DATABASE_URL: %v\n%s", err, out)
	}
}

// checkQuickstart looks for lines in order, and for lines that a terminal would wrap.
func checkQuickstart(t *testing.T, out string) {
	t.Helper()
	rest := out
	for _, row := range quickstartRows {
		found := regexp.MustCompile(row).FindStringIndex(rest)
		if found == nil {
			t.Errorf("no match for %q after the rows before it in:\n%s", row, out)
			break
		}
		rest = rest[found[1]:]
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns, want at most 100:\n%s", n, line)
		}
	}
}

// The tests of examples/testing run on Postgres, too, and the examples of package pgxcodec that
// need a server.
func TestOnPostgres(t *testing.T) {
	for _, c := range []struct{ pkg, run, passes string }{
		{"examples/testing", ".", "TestInsert"},
		{"pgxcodec", "^TestExamples$", "TestExamples/pgxpool"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			t.Parallel()
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", c.run, "github.com/sortkey/sortkey/"+c.pkg)
				cmd.Env = append(os.Environ(), "RUN_EXAMPLES=1", "DATABASE_URL="+db.URL)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "--- PASS: "+c.passes) || strings.Contains(string(out), "SKIP") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		})
	}
}

func run(t *testing.T, program, url string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
