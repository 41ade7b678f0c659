package pgtest

import (
	"context"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// bridge is the network that containers are in by default.
const bridge = "bridge"

// Pause has all processes of a container stand still, with all connections as
// they were. On a busy machine the system may not get to stop all of them in
// time; then it is tried again.
func Pause(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	Eventually(t, "the container is paused", func() error {
		return fault(t, func(ctx context.Context, c *client.Client) error {
			_, err := c.ContainerPause(ctx, ctr.GetContainerID(), client.ContainerPauseOptions{})
			return err
		})
	})
}

// Unpause ends a [Pause]. The container's clock has gone on.
func Unpause(t testing.TB, ctr testcontainers.Container) {
	t.Helper()
	mustFault(t, "unpause", func(ctx context.Context, c *client.Client) error {
		_, err := c.ContainerUnpause(ctx, ctr.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Disconnect cuts a container from its network.
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

// fault does something to a container. It doesn't depend on the test's context,
// since faults are undone when tests end.
func fault(t testing.TB, f func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return f(ctx, Docker(t))
}

func mustFault(t testing.TB, what string, f func(context.Context, *client.Client) error) {
	t.Helper()
	if err := fault(t, f); err != nil {
		t.Fatalf("expected to %s the container: %v", what, err)
	}
}
