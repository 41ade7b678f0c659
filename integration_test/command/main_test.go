package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// binary is the path of the built command.
var binary string

func TestMain(m *testing.M) {
	binary = pgtest.BuildCommand()
	pgtest.Main(m)
}

// A result is the output of a command.
type result struct {
	out, errs string
	code      int
}

// command returns the command with arguments, for a database or, if db is nil,
// without one.
func command(db *pgtest.DB, args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TZ=UTC"}
	if db != nil {
		c.Env = append(c.Env, "DATABASE_URL="+db.URL)
	}
	return c
}

// sortkey runs the command to its end.
func sortkey(t *testing.T, db *pgtest.DB, args ...string) result {
	t.Helper()
	return finish(t, command(db, args...))
}

// finish runs a command to its end.
func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// must runs the command and fails the test unless its exit code is 0 and it prints
// no error. It returns the output.
func must(t *testing.T, db *pgtest.DB, args ...string) string {
	t.Helper()
	r := sortkey(t, db, args...)
	if r.code != 0 || r.errs != "" {
		t.Fatalf("sortkey %s: code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.errs)
	}
	return r.out
}

// wantFailure checks that a command exits with a code and prints the parts to standard
// error, or to standard output if the code is 1.
func wantFailure(t *testing.T, r result, code int, parts ...string) {
	t.Helper()
	text, other := r.errs, r.out
	if code == 1 {
		text, other = r.out, r.errs
	}
	if r.code != code || other != "" {
		t.Errorf("code %d, output %q, errors %q; want code %d", r.code, r.out, r.errs, code)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %q, want %q", text, part)
		}
	}
}

// wantMatch fails the test unless the output matches each pattern. In a pattern, a space
// stands for any spaces.
func wantMatch(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(`(?m)` + strings.ReplaceAll(p, " ", " +")).MatchString(out) {
			t.Errorf("want a match of %q in:\n%s", p, out)
		}
	}
}

// objects parses the lines of a JSON output.
func objects(t *testing.T, out string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		var object map[string]any
		pgtest.Must(t, json.Unmarshal([]byte(line), &object))
		list = append(list, object)
	}
	return list
}

// withURL returns the database with another URL, which change makes from the URL of db.
func withURL(t *testing.T, db *pgtest.DB, change func(*url.URL)) *pgtest.DB {
	t.Helper()
	u, err := url.Parse(db.URL)
	pgtest.Must(t, err)
	change(u)
	other := *db
	other.URL = u.String()
	return &other
}

// asRole creates a role without privileges, and returns the database with the URL of
// that role.
func asRole(t *testing.T, db *pgtest.DB) (other *pgtest.DB, role string) {
	t.Helper()
	role = "reader_of_" + db.Name // roles are global
	db.Exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
	pool := db.SQL(t)
	t.Cleanup(func() {
		_, err := pool.ExecContext(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		pgtest.Must(t, err)
	})
	return withURL(t, db, func(u *url.URL) { u.User = url.UserPassword(role, "secret") }), role
}
