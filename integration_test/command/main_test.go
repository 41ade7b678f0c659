package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

func TestMain(m *testing.M) {
	pgtest.MainParallel(m, 6, TestConnectionErrors, TestPrivileges, TestIDsInSQL, TestMigrate, TestNodesReserve, TestPartitionsRun, TestAuditFindings, TestDoctor, TestDoctorWithoutInstallation, TestRekeyText)
}

// installed is a database with an installation.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
})

// A result is the output of a command.
type result struct {
	out, errs string
	code      int
}

// command returns the command for a line of arguments, and more arguments that may contain
// spaces, with a database or, if db is nil, without one.
func command(t *testing.T, db *pgtest.DB, line string, more ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(pgtest.Command(t), append(strings.Fields(line), more...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TZ=UTC"}
	if db != nil {
		c.Env = append(c.Env, "DATABASE_URL="+db.URL)
	}
	return c
}

// sortkey runs the command to its end.
func sortkey(t *testing.T, db *pgtest.DB, line string, more ...string) result {
	t.Helper()
	return finish(t, command(t, db, line, more...))
}

// start starts a command. The function that it returns waits for the end.
func start(t *testing.T, c *exec.Cmd) (end func() result) {
	t.Helper()
	var out, errs bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	c.Stderr = &errs
	pgtest.Must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return func() result {
		t.Helper()
		err := c.Wait()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
	}
}

// finish runs a command to its end.
func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	return start(t, c)()
}

// must runs the command and fails the test unless its exit code is 0 and it prints
// no error. It returns the output.
func must(t *testing.T, db *pgtest.DB, line string, more ...string) string {
	t.Helper()
	r := succeed(t, db, line, more...)
	if r.errs != "" {
		t.Fatalf("sortkey %s %q: code %d\n%s%s", line, more, r.code, r.out, r.errs)
	}
	return r.out
}

// succeed runs a command that must succeed, but can report its progress on stderr: on a slow
// machine, the steps of rekey do.
func succeed(t *testing.T, db *pgtest.DB, line string, more ...string) result {
	t.Helper()
	r := sortkey(t, db, line, more...)
	if r.code != 0 {
		t.Fatalf("sortkey %s %q: code %d\n%s%s", line, more, r.code, r.out, r.errs)
	}
	return r
}

// wantSame checks a value, such as the whole output of a command.
func wantSame[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// wantParts checks that a text contains each part.
func wantParts(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("got %q, want %q", got, part)
		}
	}
}

// wantFields checks those fields of an object that want, an object in JSON, has. Null also
// stands for a missing field.
func wantFields(t *testing.T, got map[string]any, want string) {
	t.Helper()
	var fields map[string]any
	pgtest.Must(t, json.Unmarshal([]byte(want), &fields))
	for name, value := range fields {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("field %s: got %v, want %v, in %v", name, got[name], value, got)
		}
	}
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
	wantParts(t, text, parts...)
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

// withSetting returns the database with a setting in its URL.
func withSetting(t *testing.T, db *pgtest.DB, name, value string) *pgtest.DB {
	t.Helper()
	return withURL(t, db, func(u *url.URL) {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // as in libpq, + is no space
	})
}

// asRole creates a role without privileges, and returns the database with the URL of
// that role.
func asRole(t *testing.T, db *pgtest.DB) (other *pgtest.DB, role string) {
	t.Helper()
	role = db.NewRole(t, "reader_of", pgtest.LoginPassword)
	return withURL(t, db, func(u *url.URL) { u.User = url.UserPassword(role, "secret") }), role
}

// sessions returns the state and the query of each session of the command that meets a
// condition.
func sessions(t *testing.T, probe *pgx.Conn, condition string) []string {
	t.Helper()
	return pgtest.Value[[]string](t, probe, `SELECT coalesce(array_agg(concat(state, ': ', query)), '{}') FROM pg_stat_activity
		WHERE application_name = 'sortkey' AND datname = current_database() AND `+condition)
}

// waits is the condition for a session that waits for a lock.
const waits = "wait_event_type = 'Lock'"

// awaitSession waits until a session of the command meets a condition.
func awaitSession(t *testing.T, probe *pgx.Conn, condition string) {
	t.Helper()
	pgtest.Eventually(t, "the command has a session with "+condition, func() error {
		if len(sessions(t, probe, condition)) == 0 {
			return fmt.Errorf("sessions %q", sessions(t, probe, "true"))
		}
		return nil
	})
}

// hold runs a statement in a transaction. The function that it returns ends it.
func hold(t *testing.T, db *pgtest.DB, statement string) (release func()) {
	t.Helper()
	tx, err := db.Conn(t).Begin(t.Context())
	pgtest.Must(t, err)
	_, err = tx.Exec(t.Context(), statement)
	pgtest.Must(t, err)
	return func() { pgtest.Must(t, tx.Rollback(t.Context())) }
}

const ctrlC, ctrlD = "\x03", "\x04"

// onTerminal runs a command on a terminal, and types an answer after a prompt. It returns
// what the terminal shows.
func onTerminal(t *testing.T, c *exec.Cmd, prompt, answer string) (shown string, code int) {
	t.Helper()
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	pgtest.Must(t, err)
	defer terminal.Close()
	var b strings.Builder
	for buffer, answered := make([]byte, 4096), false; ; {
		n, err := terminal.Read(buffer)
		if b.Write(buffer[:n]); err != nil { // on Linux, EIO instead of EOF
			break
		}
		if !answered && strings.Contains(b.String(), prompt) {
			answered = true
			_, err := io.WriteString(terminal, answer)
			pgtest.Must(t, err)
		}
	}
	_ = c.Wait()
	return strings.ReplaceAll(b.String(), "\r\n", "\n"), c.ProcessState.ExitCode()
}
