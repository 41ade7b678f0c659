package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
)

// docker returns a client of the Docker daemon, or an error that says why it can't.
//
// It stores the daemon's settings in the environment of the process for
// testcontainers-go, the scripts and the watchdog, because each of them has its own
// rules for finding a daemon. It doesn't change variables that the user has set.
var docker = sync.OnceValues(func() (*client.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	setDefault("DOCKER_HOST", func() string { return dockerContextHost(ctx) })
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("invalid Docker settings: %w", err)
	}
	if _, err := c.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("Docker doesn't answer at %s: %w", c.DaemonHost(), err)
	}
	setDefault("TESTCONTAINERS_RYUK_DISABLED", func() string { return ryukDisabled(ctx, c) })
	setDefault("TESTCONTAINERS_HOST_OVERRIDE", func() string { return hostOverride(c.DaemonHost()) })
	return c, nil
})

// setDefault sets an environment variable that is unset, unless value returns "".
func setDefault(name string, value func() string) {
	if os.Getenv(name) != "" {
		return
	}
	if v := value(); v != "" {
		_ = os.Setenv(name, v)
	}
}

// dockerContextHost returns the address of the docker command's daemon, or "".
func dockerContextHost(ctx context.Context) string {
	host, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(host))
}

// ryukDisabled returns "true" if testcontainers-go can't run Ryuk, its container that
// removes other containers: if the image is missing and no registry has it. The watchdog
// removes the containers instead.
func ryukDisabled(ctx context.Context, c *client.Client) string {
	image := testcontainers.ReaperDefaultImage //nolint:staticcheck // deprecated, but the name has no other public place
	if _, err := c.ImageInspect(ctx, image); err == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // in case the registry doesn't answer
	defer cancel()
	pull, err := c.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = pull.Wait(ctx)
	}
	if err != nil {
		return "true"
	}
	return ""
}

// hostOverride returns the address of the containers' published ports if
// testcontainers-go would get it wrong. If /.dockerenv exists, testcontainers-go assumes
// that it runs in a container and the daemon runs outside. But machines made from an
// image have that file, too, and run their own daemon.
func hostOverride(daemon string) string {
	if !strings.HasPrefix(daemon, "unix://") {
		return ""
	}
	if _, err := os.Stat("/.dockerenv"); err != nil {
		return ""
	}
	if _, err := net.InterfaceByName("docker0"); err != nil {
		return ""
	}
	return "127.0.0.1"
}

// Docker returns a client of the Docker daemon, for operations that testcontainers-go
// lacks, such as pausing a container or disconnecting it from its network.
func Docker(t testing.TB) *client.Client {
	t.Helper()
	NeedsContainers(t)
	c, err := docker()
	Must(t, err)
	return c
}

// Container starts a container for one test and removes it when the test ends. If the
// test failed, it shows the container's log.
func Container(t testing.TB, image string, opts ...testcontainers.ContainerCustomizer) testcontainers.Container {
	t.Helper()
	c := Docker(t)
	label, err := containerLabel()
	Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), imageTimeout)
	defer cancel()
	ctr, err := testcontainers.Run(ctx, image, append(opts, label)...)
	removeAtEnd(t, c, ctr)
	t.Cleanup(func() {
		if t.Failed() && containerID(ctr) != "" {
			showContainerLog(t, image, ctr)
		}
	})
	if err != nil {
		t.Fatalf("start a container of %s: %v", image, err)
	}
	return ctr
}

// Exec runs a command in a container, as one of the container's users, and returns its
// output. If the exit status isn't 0, the error contains the output too.
func Exec(t testing.TB, ctr testcontainers.Container, user string, command ...string) (string, error) {
	t.Helper()
	status, r, err := ctr.Exec(t.Context(), command, tcexec.Multiplexed(), tcexec.WithUser(user))
	if err != nil {
		return "", err
	}
	out, err := io.ReadAll(r)
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, out)
	}
	return string(out), err
}

func showContainerLog(t testing.TB, image string, ctr testcontainers.Container) {
	log, err := containerLog(ctr)
	if err != nil {
		t.Logf("reading the log of a container of %s: %v", image, err)
		return
	}
	t.Logf("log of a container of %s, which this test started:\n%s", image, lastLines(log, logLines))
}

// removeAtEnd removes a container when the test ends, even if the container was created
// but didn't start.
func removeAtEnd(t testing.TB, c *client.Client, ctr testcontainers.Container) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if id := containerID(ctr); id != "" {
			if err := removeContainer(ctx, c, id); err != nil {
				t.Error(err)
			}
		}
	})
}

// containerID returns a container's ID. It returns "" if there is no container:
// testcontainers-go may return a nil pointer in the interface.
func containerID(ctr testcontainers.Container) string {
	if c, ok := ctr.(*testcontainers.DockerContainer); ctr == nil || ok && c == nil {
		return ""
	}
	return ctr.GetContainerID()
}

func removeContainer(ctx context.Context, c *client.Client, id string) error {
	_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !isGone(err) {
		return fmt.Errorf("remove container %.12s: %w", id, err)
	}
	return nil
}

// postgresImage returns the name of an image of a Postgres server. Getting the image may
// take minutes, once per machine.
func postgresImage(ctx context.Context, version string) (string, error) {
	if !onPath("bash") || !onPath("docker") {
		return "postgres:" + version + "-alpine", nil // testcontainers-go pulls it
	}
	return imageFrom(ctx, "postgres", version)
}

// extrasImage returns the name of an image of a Postgres server with pg_partman and
// faketime. A container of it needs the options of enterExtras.
func extrasImage(ctx context.Context, version string) (string, error) {
	return imageFrom(ctx, "postgres-extras", version)
}

// DebianImage returns the name of an image with packages of a Debian release, for
// [Container]: for example DebianImage(t, "pgbouncer", "trixie", "pgbouncer"). The image
// has no entry point, so the test passes the command. Getting the image may take
// minutes, once per machine. Use each name for one list of packages.
func DebianImage(t testing.TB, name, suite string, packages ...string) string {
	t.Helper()
	NeedsContainers(t)
	ctx, cancel := context.WithTimeout(t.Context(), imageTimeout)
	defer cancel()
	image, err := imageFrom(ctx, append([]string{"debian", name, suite}, packages...)...)
	Must(t, err)
	return image
}

// imageFrom returns the name of the image that scripts/image pulls or builds.
func imageFrom(ctx context.Context, args ...string) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	show := progress()
	defer show.Close()
	var trouble bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(root, "scripts", "image")}, args...)...)
	cmd.Stderr = io.MultiWriter(&trouble, show) // the script's progress messages
	// On SIGTERM the script stops its child processes. SIGKILL would leave them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	image, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/image %s: %w: %s", strings.Join(args, " "), err, lastLines(trouble.String(), 20))
	}
	return strings.TrimSpace(string(image)), nil
}

func onPath(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// repositoryRoot returns the directory with go.work, at or above the working directory.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.work in " + start + " or a directory above it")
		}
	}
}
