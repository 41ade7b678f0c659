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

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
)

// partmanVersions are those that scripts/postgres-extras-image has pg_partman
// for. Debian's for 15 is 4.7, which has no encoders and decoders of time.
var partmanVersions = []string{"17", "18"}

// EachPartman is [EachContainer] on servers where pg_partman, 5.2 or later, can
// be created as an extension. It leaves out the versions that Debian has no such
// pg_partman for. Where only those are asked for it runs on 17: pg_partman is
// tested wherever tests are run.
func EachPartman(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Helper()
	NeedsContainers(t)
	versions, without := choosePartman(need(t, containerVersions))
	if len(without) > 0 {
		t.Logf("on Postgres %s, not on %s: Debian has no pg_partman of 5.2 or later for that",
			strings.Join(versions, ", "), strings.Join(without, ", "))
	}
	servers := partmanServers()
	var chosen []*server
	for _, v := range versions {
		chosen = append(chosen, servers[v])
	}
	each(t, chosen, f)
}

// choosePartman gives the versions to test pg_partman on, never none, and those
// of the asked for that it leaves out.
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

// partmanServers are the servers of all versions that have it, not started yet.
var partmanServers = sync.OnceValue(func() map[string]*server {
	servers := make(map[string]*server)
	for _, v := range partmanVersions {
		servers[v] = &server{name: "pg" + v, start: func() (*running, error) { return runContainer(v, extended) }}
	}
	return servers
})

// enterExtras makes a server of an image that has the programs of one: with the
// environment and the entry point that images made to be servers have.
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
		testcontainers.WithEnv(map[string]string{
			// Before /usr/bin, where Debian has other programs of the same names.
			"PATH": "/usr/local/sbin:/usr/local/bin:" + programs(version) + ":/usr/sbin:/usr/bin:/sbin:/bin",
			"LANG": "C.UTF-8",
		}),
	}, nil
}

// programs is the folder of the server's programs in Debian.
func programs(version string) string { return "/usr/lib/postgresql/" + version + "/bin" }

// OneFaketime is [EachServer] on the last of the versions only, with a clock that
// the test steps. The server can't be stopped and started again: its data is in
// memory.
func OneFaketime(t *testing.T, f func(t *testing.T, db *DB, clock *Clock)) {
	t.Helper()
	v := lastVersion(t)
	t.Run("pg"+v, func(t *testing.T) {
		r := ownServer(t, v, clocked)
		f(t, r.newDB(t), &Clock{server: r})
	})
}

// A Clock is the time of day as a server sees it, all its processes alike: what
// now() and clock_timestamp() tell, and the times in its log. It goes as fast as
// the real one.
//
// How long something takes the server measures with another clock, which can't
// be stepped, but some deadlines are times of day: a pg_sleep or a timeout, such
// as statement_timeout, under way ends later by as much as the clock is stepped
// back meanwhile. Even pg_sleep(0) may. What begins after the step lasts as long
// as it should.
type Clock struct {
	server *running
}

// clockFile has what the clock differs from the real one by. It is in memory
// because each look at the clock reads it, for which a file in the container's
// layers takes twenty times as long.
const clockFile = "/dev/shm/clock"

// Step steps the clock to d after the real time, or before it if d is negative:
// steps don't add up, and Step(t, 0) ends them. When it returns, no process of
// the server sees another time any more.
func (c *Clock) Step(t testing.TB, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	// A new file, so that nobody reads half of one.
	code, out, err := c.server.container.Exec(ctx, []string{"sh", "-ec",
		fmt.Sprintf("echo %+.6f >%[2]s.new; mv %[2]s.new %[2]s", d.Seconds(), clockFile)}, exec.Multiplexed())
	if err != nil {
		t.Fatalf("expected to step the clock by %s: %v", d, err)
	}
	if code != 0 {
		said, _ := io.ReadAll(out)
		t.Fatalf("expected to step the clock by %s, got status %d: %s", d, code, said)
	}
}

// fakeClock is enterExtras for a server that asks a library for the time. The
// other programs in its container don't.
func fakeClock(version string) ([]testcontainers.ContainerCustomizer, error) {
	opts, err := enterExtras(version)
	// This is the postgres that PATH finds first.
	return append(opts, testcontainers.WithFiles(testcontainers.ContainerFile{
		Reader:            strings.NewReader(fmt.Sprintf(fakingServer, clockFile, programs(version))),
		ContainerFilePath: "/usr/local/bin/postgres",
		FileMode:          0o755,
	})), err
}

// fakingServer is a script.
//
// The library also takes the place of the functions that wait, as it can have
// clocks go faster, and whatever runs while one of them waits sees the real
// time: the handlers of signals, and processes that these start. With the clock
// ahead no lock_timeout would end a wait, and parallel workers of version 15
// would see the real time for good. So those functions get names in capitals,
// which nobody calls.
//
// Without NO_CACHE a process would go on for seconds with the time that it had.
// Intervals stay real, or else a step back would stop whatever waits.
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
