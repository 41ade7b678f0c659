package pgtest

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// The containers of a test process are removed by a second process, the
// watchdog. The two share a pipe, which breaks when the first one ends,
// whatever its end: a panic, os.Exit, SIGKILL. The watchdog is the test binary
// once more, so that it needs no docker command, and it finds the containers
// by their label, so that none is missed that was being created just then. So
// it is with networks.

const (
	// watchdogVar makes a test binary the watchdog of the session it names.
	watchdogVar = "PGTEST_WATCHDOG"
	// sessionLabel is the label, on every container, that names the session.
	sessionLabel = "io.github.sortkey.pgtest"

	watchdogReady = "ready\n"
	// watchdogDone tells the watchdog that nothing can be under way any more.
	watchdogDone = "done\n"
	// watchdogPatience is how long it looks for late containers if not told.
	watchdogPatience = 5 * time.Second
	// watchdogErrors is how much longer it goes on trying if something fails.
	watchdogErrors = time.Minute
)

// watchedSession is the value of the label of this process's containers and
// networks. When it has returned, there is a watchdog that will remove what has
// the label.
var watchedSession = sync.OnceValues(func() (string, error) {
	session := strings.ToLower(rand.Text())
	if err := startWatchdog(session); err != nil {
		return "", fmt.Errorf("expected a second process of the test binary, which removes containers, got %w", err)
	}
	return session, nil
})

// containerLabel labels a container.
func containerLabel() (testcontainers.CustomizeRequestOption, error) {
	session, err := watchedSession()
	if err != nil {
		return nil, err
	}
	return testcontainers.WithLabels(map[string]string{sessionLabel: session}), nil
}

func startWatchdog(session string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), watchdogVar+"="+session)
	cmd.SysProcAttr = detached()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Pipes, never the process's own stdout or stderr: "go test" waits until
	// nobody has those open.
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	output := bufio.NewReader(out)
	if line, err := output.ReadString('\n'); line != watchdogReady {
		in.Close()
		rest, _ := io.ReadAll(output)
		return errors.Join(fmt.Errorf("%q", line+string(rest)), err, cmd.Wait())
	}
	atEnd(func() error {
		_, _ = io.WriteString(in, watchdogDone) // if it fails, so does Wait
		in.Close()
		trouble, _ := io.ReadAll(output)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("removing containers: %w: %s", err, trouble)
		}
		return nil
	})
	return nil
}

// watch is the main function of the watchdog. Its result is the exit status.
func watch(session string) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	fmt.Print(watchdogReady)
	last, _ := io.ReadAll(os.Stdin)

	// The daemon may still be creating a container for a process that has died.
	deadline := time.Now().Add(watchdogPatience)
	if string(last) == watchdogDone {
		deadline = time.Now()
	}
	for {
		err := sweep(session)
		switch late := time.Since(deadline); {
		case err == nil && late > 0:
			return 0
		case late > watchdogErrors: // for what somebody else is removing
			fmt.Println(err)
			return 1
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// sweep removes the containers of a session, and then its networks.
func sweep(session string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	defer c.Close()
	ours := make(client.Filters).Add("label", sessionLabel+"="+session)
	list, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return err
	}
	var errs []error
	for _, ctr := range list.Items {
		errs = append(errs, removeContainer(ctx, c, ctr.ID))
	}
	networks, err := c.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, n := range networks.Items {
		errs = append(errs, removeNetwork(ctx, c, n.ID))
	}
	return errors.Join(errs...)
}

// isGone reports whether a container couldn't be removed because somebody else
// has, or is at it.
func isGone(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsConflict(err) && strings.Contains(err.Error(), "in progress")
}
