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

// A second process, the watchdog, removes the containers and networks of a test process.
// The two processes share a pipe, which breaks when the test process ends, even by a
// panic, os.Exit or SIGKILL. The watchdog is another run of the test binary, so it needs
// no docker command. It finds containers by their label, so it doesn't miss a container
// that was being created when the test process ended.

const (
	// watchdogVar names the session whose watchdog a test binary is to be.
	watchdogVar = "PGTEST_WATCHDOG"
	// sessionLabel is the label of every container. Its value is the session.
	sessionLabel = "io.github.sortkey.pgtest"

	watchdogReady = "ready\n"
	// watchdogDone tells the watchdog that no container is being created any more.
	watchdogDone = "done\n"
	// watchdogPatience is the time for which the watchdog looks for late containers
	// without watchdogDone.
	watchdogPatience = 5 * time.Second
	// watchdogErrors is the additional time for which it retries after errors.
	watchdogErrors = time.Minute
)

// watchedSession returns the label's value for the containers and networks of this
// process. It starts the watchdog, which removes everything with that label.
var watchedSession = sync.OnceValues(func() (string, error) {
	session := strings.ToLower(rand.Text())
	if err := startWatchdog(session); err != nil {
		return "", fmt.Errorf("start the watchdog, which removes containers: %w", err)
	}
	return session, nil
})

// containerLabel returns the option that labels a container with the session.
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
	// Pipes, never this process's stdout or stderr: "go test" waits until no process
	// has them open.
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
		_, _ = io.WriteString(in, watchdogDone) // if this fails, Wait fails too
		in.Close()
		trouble, _ := io.ReadAll(output)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("removing containers: %w: %s", err, trouble)
		}
		return nil
	})
	return nil
}

// watch is the main function of the watchdog. It returns the exit status.
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
		case late > watchdogErrors: // until then, another process may be removing a container
			fmt.Println(err)
			return 1
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// sweep removes the containers of a session and then its networks.
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

// isGone reports whether a container couldn't be removed because another process has
// removed it or is removing it.
func isGone(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsConflict(err) && strings.Contains(err.Error(), "in progress")
}
