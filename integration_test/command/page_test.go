package command_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

var update = flag.Bool("update", false, "write the output of the commands to docs/command.md, docs/rekey.md and testdata/sqlc")

// The commands in docs/command.md and docs/rekey.md print what the pages show. They run after
// the SQL on the pages, and find the JSON in files. To update the pages:
//
//	go test ./command -run TestPages -update
func TestPages(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		checkPage(t, db, "../../docs/command.md")
	})
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) { checkPage(t, db, "../../docs/rekey.md") })
}

func checkPage(t *testing.T, db *pgtest.DB, page string) {
	t.Helper()
	text, err := os.ReadFile(page)
	pgtest.Must(t, err)
	dir := t.TempDir()
	commands := 0
	got := block.ReplaceAllStringFunc(string(text), func(b string) string {
		m := block.FindStringSubmatch(b)
		switch language, script := m[1], m[2]; {
		case language == "sql":
			for statement := range strings.SplitAfterSeq(script, ";\n") { // each in a session with the settings of the database
				db.Exec(t, strings.ReplaceAll(statement, "DATABASE shop", "DATABASE "+db.Name))
			}
		case language == "json":
			if table := specTable.FindStringSubmatch(script); table != nil {
				pgtest.Must(t, os.WriteFile(filepath.Join(dir, table[1]+".json"), []byte(script), 0o644))
			}
		case language == "console":
			commands++
			return "```console\n" + session(t, db, dir, script) + "```\n"
		}
		return b
	})
	if commands == 0 {
		t.Errorf("%s shows no command", page)
	}
	if *update {
		pgtest.Must(t, os.WriteFile(page, []byte(got), 0o644))
		return
	}
	want, have := strings.Split(masked(string(text)), "\n"), strings.Split(masked(got), "\n")
	for i := range max(len(want), len(have)) {
		if i >= len(want) || i >= len(have) || want[i] != have[i] {
			t.Fatalf("%s shows other output than the commands, first in\n%s\ngot\n%s",
				page, strings.Join(want[i:min(i+8, len(want))], "\n"), strings.Join(have[i:min(i+8, len(have))], "\n"))
		}
	}
}

// specTable finds the first table of a Spec, whose file has its name.
var specTable = regexp.MustCompile(`"keys": \[\s*\{\s*"table": "(\w+)"`)

// block matches a fenced block of the page.
var block = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```\n")

// session runs the lines that begin with a prompt and returns them, each with the
// output and the exit code, unless that is 0.
func session(t *testing.T, db *pgtest.DB, dir, script string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(script) {
		prompted, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue // output
		}
		b.WriteString(line)
		c := exec.Command("bash", "-c", prompted)
		c.Dir = dir
		c.Env = []string{"PATH=" + filepath.Dir(pgtest.Command(t)) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TZ=UTC", "DATABASE_URL=" + db.URL}
		out, _ := c.CombinedOutput()
		out = bytes.ReplaceAll(out, []byte(db.Name), []byte("shop"))
		b.Write(out)
		if len(out) > 0 && out[len(out)-1] != '\n' {
			b.WriteByte('\n')
		}
		if strings.Contains(string(out), "panic:") || c.ProcessState.ExitCode() > 2 {
			t.Errorf("%s%s", line, out)
		}
	}
	return b.String()
}

// masked replaces what differs between runs: spaces, and words with a digit. It drops
// the progress that an action prints once a second.
func masked(s string) string {
	s = regexp.MustCompile(`(?m)^fill .* of about .*\n`).ReplaceAllString(s, "")
	s = regexp.MustCompile(`[^\s"(),]*\d[^\s"(),]*`).ReplaceAllString(s, "#")
	s = regexp.MustCompile(`# (nanoseconds?|milliseconds?|seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b`).ReplaceAllString(s, "# s")
	s = regexp.MustCompile(`\bnow\b`).ReplaceAllString(s, "# s ago")
	s = strings.ReplaceAll(s, "behind this machine", "ahead of this machine")
	return regexp.MustCompile(`[ \t]+|-{3,}`).ReplaceAllString(s, " ")
}
