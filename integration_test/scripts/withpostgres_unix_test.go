//go:build unix

package scripts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"

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

// daemon is a stand-in for docker. Its container publishes PUBLISHED_PORT.
var daemon = map[string]string{"docker": `case "$1 $2" in
'version '* | 'image inspect') ;;
'context inspect') echo "$ADDRESS" ;;
'run '*)
	echo "$@" >"$ARGUMENTS"
	echo 'listening on IPv4 address'
	cat >/dev/null
	;;
'port '*) echo "0.0.0.0:$PUBLISHED_PORT" ;;
*) exit 1 ;;
esac`}

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

// start starts the script with a command that runs until stdin closes, and waits until it runs.
func start(t *testing.T, env []string) (cmd *exec.Cmd, end func() error) {
	t.Helper()
	cmd = withPostgres(t, env, "sh", "-c", "echo started; exec cat")
	in, err := cmd.StdinPipe()
	pgtest.Must(t, err)
	out, err := cmd.StdoutPipe()
	pgtest.Must(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	pgtest.Must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the script didn't start its command: %q, %v, %v\n%s", line, err, cmd.Wait(), &errs)
	}
	return cmd, func() error {
		in.Close()
		return cmd.Wait()
	}
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

// The command reaches a container where Docker runs. If that isn't possible, the script says why.
func TestDockerHost(t *testing.T) {
	server, err := net.Listen("tcp", ":0")
	pgtest.Must(t, err)
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_, _ = conn.Write([]byte("R"))
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(server.Addr().String())
	pgtest.Must(t, err)
	outside := outsideAddress(t)
	path := install(t, daemon)
	for _, c := range []struct{ address, port, url, publish, errs string }{
		{"unix:///socket", port, "127.0.0.1:" + port, "127.0.0.1::5432", ""},
		{"tcp://127.0.0.1:2375", port, "127.0.0.1:" + port, "127.0.0.1::5432", ""},
		{"tcp://" + outside + ":2375", port, outside + ":" + port, "0.0.0.0::5432", ""},
		{"ssh://me@" + outside, port, outside + ":" + port, "0.0.0.0::5432", ""},
		{"ssh://me@" + outside + ":22/run/docker.sock", port, outside + ":" + port, "0.0.0.0::5432", ""},
		{"tcp://" + outside, "1", "", "", "accepted no connection on " + outside + ":1"},
		{"tcp://[::1]:2375", port, "", "", "Docker is at 'tcp://[::1]:2375': want unix://SOCKET"},
		{"vsock://1", port, "", "", "Docker is at 'vsock://1': want unix://SOCKET"},
	} {
		arguments := filepath.Join(folder(t), "arguments")
		out, errs, status := run(t, []string{path, "TMPDIR=" + folder(t), "POSTGRES_VERSION=99", "ADDRESS=" + c.address, "PUBLISHED_PORT=" + c.port, "ARGUMENTS=" + arguments},
			"sh", "-c", `echo "$DATABASE_URL"`)
		got, _ := os.ReadFile(arguments)
		if c.url == "" && (status != 69 || !strings.Contains(errs, c.errs)) ||
			c.url != "" && (status != 0 || !strings.Contains(out, "@"+c.url+"/postgres?") || !strings.Contains(string(got), " --publish "+c.publish+" ")) {
			t.Errorf("%s: expected %+v, got status %d, %q, arguments %q and\n%s", c.address, c, status, out, got, errs)
		}
	}
}

// outsideAddress returns an address of this machine at which others reach it.
func outsideAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	pgtest.Must(t, err)
	for _, a := range addresses {
		if a, ok := a.(*net.IPNet); ok && a.IP.To4() != nil && a.IP.IsGlobalUnicast() {
			return a.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 network")
	return ""
}

// A run that was killed together with its guard is removed by the next one, and only that.
func TestLeftovers(t *testing.T) {
	tmp := folder(t)
	env := []string{install(t, programs), noDocker, "TMPDIR=" + tmp}
	folders := func() []string {
		found, err := filepath.Glob(filepath.Join(tmp, "sortkey-with-postgres.*"))
		pgtest.Must(t, err)
		return found
	}
	killed, _ := start(t, env)
	left := folders()
	kill(t, killed, func(string) bool { return true })
	if len(left) != 1 || !slices.Equal(folders(), left) {
		t.Fatalf("expected one folder, which outlives the run, got %q and then %q", left, folders())
	}
	b, err := os.ReadFile(filepath.Join(left[0], "server", "data", "postmaster.pid"))
	pgtest.Must(t, err)
	server, err := strconv.Atoi(strings.TrimSpace(string(b)))
	pgtest.Must(t, err)

	foreign := filepath.Join(tmp, "sortkey-with-postgres.foreign")
	pgtest.Must(t, os.Mkdir(foreign, 0o755))
	pgtest.Must(t, os.WriteFile(filepath.Join(foreign, "owner"), []byte("1 another machine\n"), 0o644))
	_, end := start(t, env)
	for _, name := range folders() {
		if name == left[0] {
			t.Errorf("expected %s to be removed", name)
		}
	}
	// The server removes its files before it ends. Without a proper init, it remains as a zombie.
	pgtest.Eventually(t, "the server of the killed run ends", func() error {
		state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(server)).Output()
		if s := strings.TrimSpace(string(state)); s != "" && !strings.HasPrefix(s, "Z") {
			return fmt.Errorf("process %d has state %s", server, s)
		}
		return nil
	})
	if _, errs, status := run(t, env, "true"); status != 0 || strings.Contains(errs, "removing") || len(folders()) != 2 {
		t.Errorf("expected the folders of the run and of the other machine, got %q, status %d and\n%s", folders(), status, errs)
	}
	if err := end(); err != nil || !slices.Equal(folders(), []string{foreign}) {
		t.Errorf("expected only the folder of the other machine, got %q, %v", folders(), err)
	}
}

// The container is removed with the script, even if all of its processes are killed.
func TestKilledContainer(t *testing.T) {
	docker := pgtest.Docker(t)
	for name, selected := range map[string]func(command string) bool{
		"script and guard": func(command string) bool { return !strings.Contains(command, "docker") },
		"all processes":    func(string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _ := start(t, []string{"TMPDIR=" + folder(t)})
			ours := make(client.Filters).Add("name", fmt.Sprintf("sortkey-with-postgres-%d-", cmd.Process.Pid))
			count := func() int {
				list, err := docker.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: ours})
				pgtest.Must(t, err)
				return len(list.Items)
			}
			if n := count(); n != 1 {
				t.Fatalf("expected one container, got %d", n)
			}
			kill(t, cmd, selected)
			pgtest.Eventually(t, "the container is removed", func() error {
				if n := count(); n != 0 {
					return fmt.Errorf("%d containers", n)
				}
				return nil
			})
		})
	}
}

// kill kills a process, and its descendants whose command line is selected. It stops
// the process first, so that it can't react to the end of a descendant.
func kill(t *testing.T, cmd *exec.Cmd, selected func(command string) bool) {
	t.Helper()
	pgtest.Must(t, cmd.Process.Signal(syscall.SIGSTOP))
	list, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=").Output()
	pgtest.Must(t, err)
	ended := []int{cmd.Process.Pid}
	for range 3 { // generations
		for line := range strings.Lines(string(list)) {
			f := strings.Fields(line)
			pid, _ := strconv.Atoi(f[0])
			parent, _ := strconv.Atoi(f[1])
			if slices.Contains(ended, parent) && !slices.Contains(ended, pid) && selected(strings.Join(f[2:], " ")) {
				ended = append(ended, pid)
			}
		}
	}
	for _, pid := range ended {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = cmd.Wait()
}

// By default, a crash of the machine can lose the data of the server. With --durable, it can't.
func TestDurable(t *testing.T) {
	pgtest.NeedsContainers(t)
	for _, c := range []struct{ option, want string }{{"--", "off off off"}, {"--durable", "on on on"}} {
		cmd := withPostgres(t, []string{"TMPDIR=" + folder(t)}, c.option, "sh", "-c", "echo $DATABASE_URL; exec cat")
		in, err := cmd.StdinPipe()
		pgtest.Must(t, err)
		out, err := cmd.StdoutPipe()
		pgtest.Must(t, err)
		pgtest.Must(t, cmd.Start())
		url, err := bufio.NewReader(out).ReadString('\n')
		pgtest.Must(t, err)
		conn, err := pgx.Connect(t.Context(), strings.TrimSpace(url))
		pgtest.Must(t, err)
		got := pgtest.Value[string](t, conn, "SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'))")
		if got != c.want {
			t.Errorf("%s: expected the settings %s, got %s", c.option, c.want, got)
		}
		pgtest.Must(t, conn.Close(t.Context()))
		in.Close()
		pgtest.Must(t, cmd.Wait())
	}
}
