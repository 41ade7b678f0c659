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

// docker gives a client of the Docker daemon, or says why there is none.
//
// What it finds out about the daemon it leaves in the environment of the
// process, for testcontainers-go, the scripts and the watchdog, which would
// otherwise each look for a daemon by rules of their own. What the user has
// set stays as it is.
var docker = sync.OnceValues(func() (*client.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	setDefault("DOCKER_HOST", func() string { return dockerContextHost(ctx) })
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("the settings of Docker make no sense: %w", err)
	}
	if _, err := c.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("Docker doesn't answer at %s: %w", c.DaemonHost(), err)
	}
	setDefault("TESTCONTAINERS_RYUK_DISABLED", func() string { return ryukDisabled(ctx, c) })
	setDefault("TESTCONTAINERS_HOST_OVERRIDE", func() string { return hostOverride(c.DaemonHost()) })
	return c, nil
})

// setDefault sets an environment variable that isn't set, unless to "".
func setDefault(name string, value func() string) {
	if os.Getenv(name) != "" {
		return
	}
	if v := value(); v != "" {
		_ = os.Setenv(name, v)
	}
}

// dockerContextHost is the daemon that the docker command talks to, or "".
func dockerContextHost(ctx context.Context) string {
	host, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(host))
}

// ryukDisabled is "true" where testcontainers-go couldn't have the container
// that it has remove the others: where there is neither its image nor a
// registry to pull that from. The watchdog does the same work.
func ryukDisabled(ctx context.Context, c *client.Client) string {
	image := testcontainers.ReaperDefaultImage //nolint:staticcheck // deprecated, but the name has no other public place
	if _, err := c.ImageInspect(ctx, image); err == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // registries that don't answer
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

// hostOverride is the address of the containers' published ports where
// testcontainers-go would get it wrong. It takes a machine with a /.dockerenv
// for a container whose daemon is somewhere outside. But machines made from an
// image have that file, too, and run a daemon of their own.
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

// Docker gives a client of the Docker daemon, for what testcontainers-go has
// no methods for: pausing a container, cutting it from its network.
func Docker(t testing.TB) *client.Client {
	t.Helper()
	NeedsContainers(t)
	c, err := docker()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Container starts a container of the test's own, which goes when the test
// ends. If the test failed it shows what the container logged.
func Container(t testing.TB, image string, opts ...testcontainers.ContainerCustomizer) testcontainers.Container {
	t.Helper()
	c := Docker(t)
	label, err := containerLabel()
	if err != nil {
		t.Fatal(err)
	}
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
		t.Fatalf("expected a container of %s: %v", image, err)
	}
	return ctr
}

// Exec runs a command in a container, as a user that it has, and returns what the
// command wrote. A status other than 0 is an error that has it, too.
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
		t.Logf("the log of a container of %s can't be had: %v", image, err)
		return
	}
	t.Logf("a container of %s, which this test started, logged:\n%s", image, lastLines(log, logLines))
}

// removeAtEnd removes a container when the test ends. It is there even if it
// couldn't be started.
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

// containerID is "" if there is no container, which testcontainers-go may
// express as nil in an interface.
func containerID(ctr testcontainers.Container) string {
	if c, ok := ctr.(*testcontainers.DockerContainer); ctr == nil || ok && c == nil {
		return ""
	}
	return ctr.GetContainerID()
}

func removeContainer(ctx context.Context, c *client.Client, id string) error {
	_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !isGone(err) {
		return fmt.Errorf("container %.12s stays behind: %w", id, err)
	}
	return nil
}

// postgresImage is the name of an image of a Postgres server. It may take
// minutes to get it, once on a machine.
func postgresImage(ctx context.Context, version string) (string, error) {
	if !onPath("bash") || !onPath("docker") {
		return "postgres:" + version + "-alpine", nil // testcontainers-go pulls it
	}
	return imageFrom(ctx, "postgres-image", version)
}

// extrasImage is the name of an image of a Postgres server with what some tests
// need beside it. It takes enterExtras to run.
func extrasImage(ctx context.Context, version string) (string, error) {
	return imageFrom(ctx, "postgres-extras-image", version)
}

// DebianImage is the name of an image with packages of a Debian release, such
// as DebianImage(t, "pgbouncer", "trixie", "pgbouncer"), for [Container]. It has
// no entry point: the test gives the command. It may take minutes to get it,
// once on a machine. A name stands for one list of packages.
func DebianImage(t testing.TB, name, suite string, packages ...string) string {
	t.Helper()
	NeedsContainers(t)
	ctx, cancel := context.WithTimeout(t.Context(), imageTimeout)
	defer cancel()
	image, err := imageFrom(ctx, "debian-image", append([]string{name, suite}, packages...)...)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// imageFrom is the name of the image that a script has seen to.
func imageFrom(ctx context.Context, script string, args ...string) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	show := progress()
	defer show.Close()
	var trouble bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(root, "scripts", script)}, args...)...)
	cmd.Stderr = io.MultiWriter(&trouble, show) // what the script waits for
	// With TERM the script ends what it has started; killed, it couldn't.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	image, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("expected an image from scripts/%s %s, got %w: %s",
			script, strings.Join(args, " "), err, lastLines(trouble.String(), 20))
	}
	return strings.TrimSpace(string(image)), nil
}

func onPath(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// repositoryRoot is the folder with go.work, at or above the working directory.
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
			return "", errors.New("expected go.work, with scripts beside it, in a folder above " + start + ", found none")
		}
	}
}
