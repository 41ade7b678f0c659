package pgtest

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// bridge is Docker's default network for containers.
const bridge = "bridge"

// Pause suspends all processes of a container and leaves its connections open. On a busy
// machine, Docker may fail to suspend all processes in time. Pause then tries again.
func Pause(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	Eventually(t, "the container is paused", func() error {
		return fault(t, func(ctx context.Context, c *client.Client) error {
			_, err := c.ContainerPause(ctx, ctr.GetContainerID(), client.ContainerPauseOptions{})
			return err
		})
	})
}

// Unpause ends a [Pause]. The container's clock kept running.
func Unpause(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	mustFault(t, "unpause", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerUnpause(ctx, ctr.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Disconnect disconnects a container from its network.
func Disconnect(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	mustFault(t, "disconnect", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkDisconnect(ctx, bridge, client.NetworkDisconnectOptions{Container: ctr.GetContainerID(), Force: true})
		return err
	})
}

// Reconnect ends a [Disconnect].
func Reconnect(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	mustFault(t, "reconnect", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkConnect(ctx, bridge, client.NetworkConnectOptions{Container: ctr.GetContainerID()})
		return err
	})
}

// Stop ends a container with a signal, such as KILL or, for a fast shutdown of Postgres,
// INT, and waits for the end.
func Stop(t testing.TB, ctr testcontainers.Container, signal string) {
	t.Helper()
	mustFault(t, "stop", func(ctx context.Context, c *client.Client) error {
		if _, err := c.ContainerKill(ctx, ctr.GetContainerID(), client.ContainerKillOptions{Signal: signal}); err != nil {
			return err
		}
		wait := c.ContainerWait(ctx, ctr.GetContainerID(), client.ContainerWaitOptions{})
		select {
		case err := <-wait.Error:
			return err
		case <-wait.Result:
			return nil
		}
	})
}

// Start ends a [Stop]. It doesn't wait until the server answers.
func Start(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	mustFault(t, "start", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerStart(ctx, ctr.GetContainerID(), client.ContainerStartOptions{})
		return err
	})
}

// fault calls f with a Docker client. The context is not the test's, because tests undo
// faults in cleanup functions.
func fault(t testing.TB, f func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return f(ctx, Docker(t))
}

func mustFault(t testing.TB, what string, f func(context.Context, *client.Client) error) {
	t.Helper()
	if err := fault(t, f); err != nil {
		t.Fatalf("%s the container: %v", what, err)
	}
}
