package pgtest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
)

// partmanVersions are the versions of Postgres for which scripts/image postgres-extras
// has pg_partman. Debian's pg_partman for 15 is 4.7, which has no time encoders and
// decoders.
var partmanVersions = []string{"17", "18"}

// EachPartman is [EachContainer] on servers with the extension pg_partman, 5.2 or later.
// It leaves out versions for which Debian has no such pg_partman. If only such versions
// are requested, it runs on 17, so that pg_partman is always tested.
func EachPartman(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	versions, without := choosePartman(need(t, containerVersions))
	if len(without) > 0 {
		t.Logf("on Postgres %s, not on %s: Debian has no pg_partman 5.2 or later for it",
			strings.Join(versions, ", "), strings.Join(without, ", "))
	}
	servers := partmanServers()
	var chosen []*server
	for _, v := range versions {
		chosen = append(chosen, servers[v])
	}
	each(t, chosen, f)
}

// choosePartman returns the versions to test pg_partman on, at least one, and the
// requested versions that it leaves out.
func choosePartman(asked []string) (chosen, without []string) {
	for _, v := range asked {
		if slices.Contains(partmanVersions, v) {
			chosen = append(chosen, v)
		} else {
			without = append(without, v)
		}
	}
	if len(chosen) == 0 {
		chosen = []string{defaultVersion}
	}
	return chosen, without
}

// partmanServers returns a server for each version with pg_partman, not started yet.
var partmanServers = sync.OnceValue(func() map[string]*server {
	servers := make(map[string]*server)
	for _, v := range partmanVersions {
		servers[v] = &server{name: "pg" + v, start: func() (*running, error) { return runContainer(v, extended) }}
	}
	return servers
})

// enterExtras returns options that run an image with Postgres programs as a server: they
// add the entry point and the environment of the official images.
func enterExtras(version string) ([]testcontainers.ContainerCustomizer, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	const entryPoint = "/usr/local/bin/docker-entrypoint.sh"
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithFiles(testcontainers.ContainerFile{
			HostFilePath:      filepath.Join(root, "scripts", "postgres-entrypoint.sh"),
			ContainerFilePath: entryPoint,
			FileMode:          0o755,
		}),
		testcontainers.WithEntrypoint(entryPoint),
		testcontainers.WithConfigModifier(func(c *container.Config) { c.StopSignal = "SIGINT" }), // disconnects clients
		testcontainers.WithEnv(map[string]string{
			// Before /usr/bin, where Debian has wrappers with the same names.
			"PATH": "/usr/local/sbin:/usr/local/bin:" + programs(version) + ":/usr/sbin:/usr/bin:/sbin:/bin",
			"LANG": "C.UTF-8",
		}),
	}, nil
}

// programs returns the directory of the server's programs in Debian.
func programs(version string) string { return "/usr/lib/postgresql/" + version + "/bin" }

// OneFaketime is [OneServer] with a clock that the test can step. The test can't stop and
// restart the server, whose data is in memory.
func OneFaketime(t *testing.T, f func(t *testing.T, db *DB, clock *Clock)) {
	t.Helper()
	v := lastVersion(t)
	t.Run("pg"+v, func(t *testing.T) {
		r := ownServer(t, v, clocked)
		f(t, r.newDB(t), &Clock{server: r})
	})
}

// A Clock is the wall clock of a server and all its processes: now(), clock_timestamp()
// and the times in the server's log. It runs at the real rate.
//
// The server measures durations with a monotonic clock, which the test can't step. But
// some deadlines use the wall clock: if the clock is stepped back during a pg_sleep or
// while a timeout such as statement_timeout runs, it ends later by that amount. Even
// pg_sleep(0) may. Sleeps and timeouts that begin after the step are not affected.
type Clock struct {
	server *running
}

// clockFile contains the clock's offset from real time. It is in memory because each
// reading of the clock reads the file, which takes twenty times as long on the
// container's file system.
const clockFile = "/dev/shm/clock"

// Step sets the clock to d after real time, or before it if d is negative. Steps don't
// add up; Step(t, 0) restores real time. When Step returns, all processes of the server
// see the new time.
func (c *Clock) Step(t testing.TB, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	// Replace the file, so that no process reads a partial one.
	code, out, err := c.server.container.Exec(ctx, []string{"sh", "-ec",
		fmt.Sprintf("echo %+.6f >%[2]s.new; mv %[2]s.new %[2]s", d.Seconds(), clockFile)}, exec.Multiplexed())
	if err != nil {
		t.Fatalf("step the clock by %s: %v", d, err)
	}
	if code != 0 {
		said, _ := io.ReadAll(out)
		t.Fatalf("step the clock by %s: status %d: %s", d, code, said)
	}
}

// fakeClock is enterExtras for a server that gets the time from libfaketime. Other
// programs in the container use real time.
func fakeClock(version string) ([]testcontainers.ContainerCustomizer, error) {
	opts, err := enterExtras(version)
	// PATH finds this postgres first.
	return append(opts, testcontainers.WithFiles(testcontainers.ContainerFile{
		Reader:            strings.NewReader(fmt.Sprintf(fakingServer, clockFile, programs(version))),
		ContainerFilePath: "/usr/local/bin/postgres",
		FileMode:          0o755,
	})), err
}

// fakingServer is a shell script that runs postgres with libfaketime.
//
// libfaketime also replaces functions that wait, such as poll and sleep, because it can
// change the rate of clocks. While such a function waits, signal handlers, and processes
// that they start, see real time. With the clock ahead, lock_timeout would never end a
// wait, and parallel workers of version 15 would see real time permanently. So the script
// renames those functions to upper case, and the server calls the real ones.
//
// Without FAKETIME_NO_CACHE, a process would use its old time for seconds. The monotonic
// clock stays real, because otherwise a step back would stop every wait.
const fakingServer = `#!/bin/sh
set -e
echo +0 >%[1]s
LC_ALL=C sed -E 's/\b(epoll_p?wait2?|p?select|p?poll|(clock_)?(nano|u)?sleep)\b/\U\1/g' \
	/usr/lib/*/faketime/libfaketime.so.1 >/tmp/clock.so.new
mv /tmp/clock.so.new /tmp/clock.so
export LD_PRELOAD=/tmp/clock.so FAKETIME_TIMESTAMP_FILE=%[1]s
export FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1 NO_FAKE_STAT=1
exec %[2]s/postgres "$@"
`
