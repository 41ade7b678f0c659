//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"

	"github.com/sortkey/sortkey/internal/race"
)

func TestMain(m *testing.M) { Main(m) }

func TestParseVersions(t *testing.T) {
	for in, want := range map[string]string{
		"": "17", " ": "17", "15": "15", "15 17 18": "15 17 18", "18,15": "18 15", " 15, 17 ,15 ": "15 17",
	} {
		if got, err := parseVersions(in); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"17.2", "pg17", "017", "0", "-17", "15;17", "15 seventeen", "99999999999999999999"} {
		_, err := parseVersions(in)
		Fails(t, err, nil, `such as "15 17 18"`, in)
	}
}

func TestLinesAbout(t *testing.T) {
	const log = `creating subdirectories ... ok
2026-11-21 11:13:03.152 UTC [40] LOG:  database system is ready to accept connections
2026-11-21 11:13:03.218 UTC [51] sortkey_test_a_1 ERROR:  mine
2026-11-21 11:13:03.218 UTC [51] sortkey_test_a_1 STATEMENT:  select
	nonsense
2026-11-21 11:13:03.218 UTC [52] sortkey_test_a_10 ERROR:  another's
	nonsense
2026-11-21 11:13:03.218 UTC [40] LOG:  server process (PID 52) was terminated by signal 9
`
	// Without the first line, and without the two lines about the other database.
	all := strings.SplitAfter(log, "\n")
	want := strings.Join(slices.Concat(all[1:5], all[7:]), "")
	if got := linesAbout("sortkey_test_a_1", log); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := lastLines("a\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("last two lines of three: got %q", got)
	}
}

func TestHostOverride(t *testing.T) {
	if got := hostOverride("tcp://192.0.2.1:2375"); got != "" {
		t.Errorf("a remote daemon: got %q, want none", got)
	}
}

// Each call gets an empty database, which is dropped afterwards. One runs on the last version.
func TestEach(t *testing.T) {
	var names, versions, one []string
	for range 2 {
		Each(t, func(t *testing.T, db *DB) {
			db.Exec(t, "create table t (n int); insert into t values (1)")
			names, versions = append(names, db.Name), append(versions, db.Version)
			if want := "/pg" + db.Version; !strings.Contains(t.Name(), want) {
				t.Errorf("got test %s, want %s in its name", t.Name(), want)
			}
		})
	}
	Each(t, func(t *testing.T, db *DB) {
		if left := Value[int](t, db.Conn(t), "select count(*) from pg_database where datname = any($1)", names); left > 0 {
			t.Errorf("got %d databases of earlier tests, want none", left)
		}
	})
	One(t, func(_ *testing.T, db *DB) { one = append(one, db.Version) })
	if want := versions[len(versions)-1:]; !slices.Equal(one, want) {
		t.Errorf("got versions %q, want %q, the last of %q", one, want, versions)
	}
}

// A subscription is in the way of a drop, as a session that doesn't end in time is.
func TestDropInUse(t *testing.T) {
	One(t, func(t *testing.T, db *DB) {
		db.Exec(t, "create subscription s connection '' publication p with (connect = false, slot_name = none)")
		dropped := make(chan error, 1)
		go func() { dropped <- db.server.drop(db.Name) }()
		select {
		case err := <-dropped:
			t.Fatalf("drop returned %v while the database was in use", err)
		case <-time.After(100 * time.Millisecond):
		}
		_ = db.exec(t.Context(), "drop subscription s") // fails if the database is dropped before it ends
		Must(t, <-dropped)
	})
}

func TestClients(t *testing.T) {
	One(t, func(t *testing.T, db *DB) {
		EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			seen := 0
			opts := []Option{
				Mode(mode),
				AfterConnect(func(ctx context.Context, c *pgx.Conn) error {
					seen++
					_, err := c.Exec(ctx, "set application_name to 'seen'")
					return err
				}),
				Config(func(c *pgx.ConnConfig) { c.RuntimeParams["work_mem"] = "77kB" }),
			}
			const settings = "select current_setting('application_name') || current_setting('work_mem') || current_database()"
			check := func(name, got string, err error) {
				t.Helper()
				if want := "seen77kB" + db.Name; err != nil || got != want {
					t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
				}
			}
			var got string
			conn := db.Conn(t, opts...)
			err := conn.QueryRow(t.Context(), settings).Scan(&got)
			check("Conn", got, err)
			if m := conn.Config().DefaultQueryExecMode; m != mode {
				t.Errorf("Conn: got mode %v, want %v", m, mode)
			}
			err = db.Pool(t, opts...).QueryRow(t.Context(), settings).Scan(&got)
			check("Pool", got, err)
			err = db.SQL(t, opts...).QueryRow(settings).Scan(&got)
			check("SQL", got, err)
			err = db.GORM(t, nil, opts...).Raw(settings).Scan(&got).Error
			check("GORM", got, err)
			if seen != 4 {
				t.Errorf("AfterConnect was called %d times, want 4", seen)
			}
		})
	})
}

// A test can pause, disconnect, stop and start its own server, whose address stays the same. A
// paused container is also removed when the test ends.
func TestOneServer(t *testing.T) {
	t.Parallel()
	var id string
	OneServer(t, func(t *testing.T, db *DB) {
		ctr := db.Container()
		id = ctr.GetContainerID()
		db.Exec(t, "create table t as select 1 as n")
		paused := db.Conn(t)
		answer := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return db.exec(ctx, "select n from t")
		}
		during := func(fault string, begin func(), end func()) {
			t.Helper()
			begin()
			if err := answer(); err == nil {
				t.Errorf("got an answer from a %s server", fault)
			}
			end()
			Eventually(t, "the server answers again", answer)
		}
		during("paused", func() { Pause(t, ctr) }, func() { Unpause(t, ctr) })
		Must(t, paused.Ping(t.Context())) // its connection stays open
		during("disconnected", func() { Disconnect(t, ctr) }, func() { Reconnect(t, ctr) })
		during("stopped", func() { Stop(t, ctr, "INT") }, func() { Start(t, ctr) })
		Pause(t, ctr)
	})
	if id != "" && exists(t, id) {
		t.Errorf("container %.12s is still there after its test", id)
	}
}

// The containers and networks of a test process are removed in whatever way it ends.
func TestContainersAreRemoved(t *testing.T) {
	NeedsContainers(t)
	t.Parallel()
	signal := func(s syscall.Signal) func(*child) {
		return func(c *child) { _ = syscall.Kill(-c.Process.Pid, s) } // the whole group, as a terminal does
	}
	for _, c := range []struct {
		name, test string
		end        func(*child)
	}{
		{"panic", "TestPanic", func(c *child) { c.in.Close() }},
		{"exit", "TestExit", func(c *child) { c.in.Close() }},
		{"interrupt", "TestExit", signal(syscall.SIGINT)},
		{"kill", "TestExit", signal(syscall.SIGKILL)},
		{"kill with a network", "TestPair", signal(syscall.SIGKILL)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := misbehave(t, c.test)
			id := waitForLine(t, cmd, "container ")
			ctr, err := Docker(t).ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
			Must(t, err)
			networks := ctr.Container.NetworkSettings.Networks
			delete(networks, bridge)
			if len(networks) == 0 && c.test == "TestPair" {
				t.Error("the server is only in Docker's default network")
			}
			c.end(cmd)
			if err := cmd.Wait(); err == nil {
				t.Error("the process succeeded, expected a failure")
			}
			Eventually(t, "the container is removed", func() error {
				if exists(t, id) {
					return fmt.Errorf("container %.12s exists", id)
				}
				return nil
			})
			for _, n := range networks {
				Eventually(t, "the network is removed", func() error {
					_, err := Docker(t).NetworkInspect(t.Context(), n.NetworkID, client.NetworkInspectOptions{})
					if errdefs.IsNotFound(err) {
						return nil
					}
					return fmt.Errorf("network %.12s: %v", n.NetworkID, err)
				})
			}
		})
	}
}

// A server from the programs on this machine ends with the test process. If there are no
// programs, the test process fails with an error that names the package to install.
func TestLocalServerEnds(t *testing.T) {
	t.Parallel()
	cmd := misbehave(t, "TestDatabase", "DOCKER_HOST=unix:///nonexistent")
	url := waitForLine(t, cmd, "url ")
	if url == "" {
		if cmd.Wait() == nil || !strings.Contains(cmd.seen, "apt-get install postgresql") {
			t.Errorf("expected a server, or an error that names the package to install, got\n%s", cmd.seen)
		}
		return
	}
	answer := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), adminTimeout)
		defer cancel()
		return (&DB{URL: url}).exec(ctx, "select 1")
	}
	Eventually(t, "the server answers", answer)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
	Eventually(t, "the server ends", func() error {
		if answer() == nil {
			return fmt.Errorf("%s answers", url)
		}
		return nil
	})
}

// The command is in the folder of the test binary, which go test removes even if the tests panic
// or are killed.
func TestCommandIsRemoved(t *testing.T) {
	self, err := os.Executable()
	Must(t, err)
	if program := Command(t); !strings.HasPrefix(program, filepath.Dir(self)+string(filepath.Separator)) {
		t.Errorf("expected a program below %s, got %s", filepath.Dir(self), program)
	}
}

// Tests that can't succeed fail with the lines that their reader needs. The database of a
// failed test is dropped, not used again.
func TestFailures(t *testing.T) {
	const none = "DOCKER_HOST=unix:///nonexistent PATH=/nonexistent"
	OneParallel(t, func(t *testing.T, db *DB) {
		for _, c := range []struct {
			name, test string
			containers bool // whether the test needs them
			env        string
			want       []string
		}{
			{"server's log", "TestFail", true, "", []string{"STATEMENT:  select nonsense"}},
			{"log of an own container", "TestFailWithContainer", true, "", []string{"said in the container"}},
			{"image that can't be built", "TestNoImage", true, "", []string{"scripts/image debian misbehave no-such-release bash", "a Debian release such as trixie"}},
			{"no server", "TestDatabase", false, none, []string{"no Postgres server to test against", "POSTGRES_VERSIONS", "DATABASE_URL",
				"Docker doesn't answer at unix:///nonexistent", "with-postgres", "apt-get install postgresql"}},
			{"versions without Docker", "TestDatabase", false, none + " POSTGRES_VERSIONS=15,18", []string{"need Docker", "15, 18", "start Docker"}},
			{"bad versions", "TestDatabase", false, none + " POSTGRES_VERSIONS=next", []string{"parse POSTGRES_VERSIONS", `"next"`}},
			{"no server at the URL", "TestDatabase", false, none + " DATABASE_URL=postgres://localhost:1/x", []string{"DATABASE_URL", "refused"}},
			{"not a URL", "TestDatabase", false, none + " DATABASE_URL=localhost", []string{"DATABASE_URL"}},
			{"reused database", "TestFailReused", false, urlVar + "=" + db.URL, []string{"reused: false exists: false\n"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				if c.containers {
					NeedsContainers(t)
				}
				output, err := misbehave(t, c.test, strings.Fields(c.env)...).output()
				if err == nil || strings.Contains(output, "got sortkey/") {
					t.Errorf("expected a failure, got %v and\n%s", err, output)
				}
				for _, want := range c.want {
					if !strings.Contains(output, want) {
						t.Errorf("expected %q in\n%s", want, output)
					}
				}
			})
		}
	})
}

// Tests that need Docker are listed as not run if it is missing. In CI that is a failure.
func TestNotRunIsListed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	for _, ci := range []string{"", "CI=true"} {
		output, err := misbehave(t, "TestNeedsContainers", "DOCKER_HOST=unix:///nonexistent", "TESTS_NOT_RUN="+list, ci).output()
		if failed := err != nil; failed != (ci != "") ||
			!strings.Contains(output, "pgtest: not run:\nTestNeedsContainers: it needs containers, but Docker doesn't answer") {
			t.Errorf("with %q: expected a list with the test, and a failure in CI, got %v and\n%s", ci, err, output)
		}
	}
	b, err := os.ReadFile(list)
	if n := strings.Count(string(b), "TestNeedsContainers: "); err != nil || n != 2 {
		t.Errorf("expected one line per run in the file, got %v, %q", err, b)
	}
}

// With -short, the listed tests run with their subtests, unless -run names others.
func TestShortSelection(t *testing.T) {
	binary, err := misbehaving()
	Must(t, err)
	for args, want := range map[string]string{
		"-test.short": "quick\nsubtest\nPASS\n",
		"-test.short -test.run=^TestNeedsContainers$|^TestQuick$ -test.skip=Needs": "quick\nPASS\n",
	} {
		if out, err := exec.Command(binary, strings.Fields(args)...).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: got %v and\n%swant\n%s", args, err, out, want)
		}
	}
}

// A child is a run of the tests in testdata/misbehave.
type child struct {
	*exec.Cmd
	in   io.Closer // stdin; many of the tests wait until it closes
	out  *os.File
	seen string // the output that waitForLine has read
}

// misbehaving builds the tests in testdata/misbehave and returns the binary's path.
var misbehaving = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pgtest-*")
	if err != nil {
		return "", err
	}
	atEnd(func() error { return os.RemoveAll(dir) })
	name := filepath.Join(dir, "misbehave.test")
	// With the same -race flag as this binary, so that dependencies are in the build cache.
	out, err := exec.Command("go", "test", "-c", "-race="+strconv.FormatBool(race.Enabled), "-o", name, "./testdata/misbehave").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

// misbehave starts one of the tests in testdata/misbehave. Its environment has the
// settings in env, and none of the settings of this run.
func misbehave(t *testing.T, test string, env ...string) *child {
	t.Helper()
	binary, err := misbehaving()
	Must(t, err)
	r, w, err := os.Pipe()
	Must(t, err)
	defer w.Close()
	cmd := exec.Command(binary, "-test.run=^"+test+"$", "-test.v", "-test.timeout=5m")
	// Keep the provoked errors off the terminal.
	cmd.Env = append(append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{versionsVar, urlVar, "CI", "TESTS_NOT_RUN"}, name)
	}), "TESTS_PROGRESS="+os.DevNull), env...)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = detached()
	in, err := cmd.StdinPipe()
	Must(t, err)
	Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		r.Close()
	})
	return &child{Cmd: cmd, in: in, out: r}
}

// output waits for the child to end and returns its output. It also waits until no
// other process has the child's stdout open, as "go test" does.
func (c *child) output() (string, error) {
	c.in.Close()
	b, _ := io.ReadAll(c.out)
	return string(b), c.Wait()
}

// waitForLine returns the rest of the first line with a prefix, or "" if the child ends
// without such a line.
func waitForLine(t *testing.T, c *child, prefix string) string {
	t.Helper()
	lines := bufio.NewScanner(c.out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			return rest
		}
		c.seen += lines.Text() + "\n"
	}
	return ""
}

func exists(t *testing.T, id string) bool {
	t.Helper()
	_, err := Docker(t).ContainerInspect(context.Background(), id, client.ContainerInspectOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}
