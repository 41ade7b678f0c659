//go:build unix

package scripts

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// noDocker is a setting with which Docker doesn't answer.
const noDocker = "DOCKER_HOST=unix:///nonexistent"

// programs are stand-ins for the programs of a server. The server is a process that ends as
// Postgres does.
var programs = map[string]string{
	"postgres": `echo 'postgres (PostgreSQL) 15.18'`,
	"initdb":   ``,
	"pg_ctl": `for option; do case $option in --pgdata=*) file=${option#*=}/postmaster.pid ;; esac; done
set -m # otherwise a job in the background ignores SIGQUIT
bash -c 'echo $$ >"$0"; trap "rm \"\$0\"; exit" QUIT; while [ -e "$0" ]; do sleep 0.1; done' "$file" >/dev/null 2>&1 </dev/null &
until [ -s "$file" ]; do sleep 0.1; done`,
}

// folder returns a new folder that all users may enter, since a server doesn't run as root.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pgtest.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}

// install writes stand-ins into a new folder and returns a PATH that starts with it.
func install(t *testing.T, standIns map[string]string) string {
	t.Helper()
	dir := folder(t)
	for name, body := range standIns {
		pgtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\n"+body+"\n"), 0o755))
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// withPostgres returns a command that runs the script with the settings in env, and without the
// settings of this run that concern it.
func withPostgres(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"../../scripts/with-postgres"}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "PG") || strings.HasPrefix(s, "POSTGRES_") || strings.HasPrefix(s, "DATABASE_URL=")
	}), env...)
	return cmd
}

// run runs the script to its end.
func run(t *testing.T, env []string, args ...string) (out, errs string, status int) {
	t.Helper()
	cmd := withPostgres(t, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// The programs on this machine are a server only if they have the requested version.
func TestVersion(t *testing.T) {
	path := install(t, programs)
	for _, c := range []struct {
		version, options string
		status           int
		out, errs        string
	}{
		{"", "", 0, "postgres://", "using Postgres 15.18"},
		{"15", "", 0, "postgres://", "using Postgres 15.18"},
		{"99", "", 69, "", "wants Postgres 99, but the programs in "},
		{"99", "", 69, "", "are 15.18; set DATABASE_URL, install Docker, or run 'apt-get install postgresql-99'"},
		{"99", "--or-none", 0, "none", "are 15.18); running the command without DATABASE_URL"},
		{"9.6", "--or-none", 64, "", "want a major version"},
	} {
		args := append(strings.Fields(c.options), "sh", "-c", "echo ${DATABASE_URL:-none}")
		out, errs, status := run(t, []string{path, noDocker, "TMPDIR=" + folder(t), "POSTGRES_VERSION=" + c.version}, args...)
		if status != c.status || !strings.HasPrefix(out, c.out) || c.out == "" && out != "" || !strings.Contains(errs, c.errs) {
			t.Errorf("version %q %s: expected status %d, output %q and error %q, got %d, %q and %q", c.version, c.options, c.status, c.out, c.errs, status, out, errs)
		}
	}
}

// The settings of a client that are for another server don't reach the command.
func TestEnvironment(t *testing.T) {
	env := []string{install(t, programs), noDocker, "TMPDIR=" + folder(t), "PGSERVICE=other", "PGSERVICEFILE=/nonexistent", "PGHOSTADDR=192.0.2.1"}
	const list = "env | grep -E '^(PG|DATABASE_URL=)'"
	out, errs, _ := run(t, env, "sh", "-c", list)
	if !strings.HasPrefix(out, "DATABASE_URL=postgres://") || strings.Count(out, "\n") != 1 {
		t.Errorf("expected DATABASE_URL and no variables PG…, got\n%s%s", out, errs)
	}
	// They belong to the caller's DATABASE_URL.
	out, errs, _ = run(t, append(env, "DATABASE_URL=postgres:///x"), "sh", "-c", list)
	if strings.Count(out, "PG") != 3 {
		t.Errorf("expected the variables PG… beside the caller's DATABASE_URL, got\n%s%s", out, errs)
	}
}
