//go:build unix

package nodelease

import (
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
)

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	pgtest.NeedsContainers(t)
	program := pgtest.Build(t, "./minter")
	type zookeeper struct {
		scenarios
		*server
	}
	// each starts a server and warms it up, since its first answers are slow.
	each := func(t *testing.T, f func(*testing.T, zookeeper)) {
		t.Helper()
		zk := zktest.Run(t)
		s := scenarios{program, []string{"-zookeeper", zk.Address, "-root", "/sortkey"}}
		s.begin(t)
		f(t, zookeeper{s, &server{
			pause: zk.Pause, unpause: zk.Unpause, cut: zk.Disconnect, join: zk.Reconnect,
			ends: []ending{{"stop", zk.Stop}}, start: zk.Start,
		}})
	}
	t.Run("outages", func(t *testing.T) {
		t.Parallel()
		started(t, each, func(t *testing.T, zk zookeeper) { outages(t, zk.scenarios, zk.server) })
	})
	t.Run("chaos", func(t *testing.T) {
		t.Parallel()
		started(t, each, func(t *testing.T, zk zookeeper) {
			chaos(t, zk.scenarios, zk.server)
			t.Run("interruptions", func(t *testing.T) { interruptions(t, zk.scenarios, zk.server) })
		})
	})
	each(t, func(t *testing.T, zk zookeeper) {
		for _, p := range processes {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				zk.run(t, p.f)
			})
		}
	})
}
