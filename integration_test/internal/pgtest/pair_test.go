//go:build unix

package pgtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

func TestChoosePair(t *testing.T) {
	for asked, want := range map[string]string{"17": "17", "15 17 18": "18", "18 15": "18", "15": "17", "15 16": "16"} {
		if got := choosePair(strings.Fields(asked)); got != want {
			t.Errorf("choosePair(%s): expected %s, got %s", asked, want, got)
		}
	}
}

// The networks of a killed test process are removed after its containers.
func TestNetworksAreRemoved(t *testing.T) {
	ThoroughOnly(t)
	NeedsContainers(t)
	t.Parallel()
	cmd := misbehave(t, "TestPair")
	server, err := Docker(t).ContainerInspect(t.Context(), waitForLine(t, cmd, "container "), client.ContainerInspectOptions{})
	Must(t, err)
	var link string
	for name, n := range server.Container.NetworkSettings.Networks {
		if name != bridge {
			link = n.NetworkID
		}
	}
	if link == "" {
		t.Fatal("the server is only in Docker's default network")
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err := cmd.Wait(); err == nil {
		t.Error("the process succeeded, expected a failure")
	}
	Eventually(t, "the network is removed", func() error {
		_, err := Docker(t).NetworkInspect(t.Context(), link, client.NetworkInspectOptions{})
		if err == nil {
			return fmt.Errorf("network %.12s exists", link)
		}
		if !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	})
}
