package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

const (
	// citusVersion is the version of Postgres that scripts/image citus offers.
	citusVersion = "17"
	citusWorkers = 2

	// exUnavailable, from sysexits.h, is the exit status of a script that can't get an
	// image on this machine.
	exUnavailable = 69
)

// citusSettings are arguments of a node's server. The nodes trust each other and
// connect without TLS. Moving a shard needs logical replication. It also loses rows of
// concurrent commits that don't wait for the disk.
var citusSettings = []string{
	"-c", "shared_preload_libraries=citus", "-c", "wal_level=logical", "-c", "citus.node_conninfo=sslmode=disable",
	"-c", "synchronous_commit=on",
}

// A Cluster is a database on a Citus cluster.
type Cluster struct {
	*DB           // on the coordinator
	Workers []*DB // the same database on each worker
}

// Citus runs f as the subtest citus, with an empty database on a cluster of a
// coordinator and two workers. Tests of a package share the cluster. If no Citus image
// is available on this machine, Citus lists the test as not run.
func Citus(t *testing.T, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	NeedsContainers(t)
	t.Run("citus", func(t *testing.T) {
		nodes, err := citusNodes()
		var script *exec.ExitError
		if errors.As(err, &script) && script.ExitCode() == exUnavailable {
			notRun(t, err)
		}
		Must(t, err)
		f(t, newCluster(t, nodes))
	})
}

// citusNodes are the servers of the cluster: the coordinator, then the workers.
var citusNodes = sync.OnceValues(func() ([]*running, error) {
	nodes := make([]*running, 1+citusWorkers)
	for i := range nodes {
		var err error
		if nodes[i], err = runContainer(citusVersion, sharded); err != nil {
			return nil, err
		}
	}
	return nodes, nil
})

// citusImage returns the name of an image of Postgres with Citus. A container of it
// needs the options of enterExtras.
func citusImage(ctx context.Context, version string) (string, error) {
	return imageFrom(ctx, "citus", version)
}

// citusNode is enterExtras for a server that accepts connections from the other nodes.
func citusNode(version string) ([]testcontainers.ContainerCustomizer, error) {
	opts, err := enterExtras(version)
	return append(opts, testcontainers.WithEnv(map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust"})), err
}

// addingNodes is held while a database gets its nodes: Citus then alters the roles of all
// databases of a worker, which fails if two sessions do it at once.
var addingNodes sync.Mutex

// newCluster creates a database with the same name on all nodes, and adds the workers
// to the coordinator.
func newCluster(t *testing.T, nodes []*running) *Cluster {
	t.Helper()
	name := newDatabaseName()
	var dbs []*DB
	// The workers first, so that the coordinator's database is dropped first.
	for _, node := range slices.Backward(nodes) {
		db := node.newDBNamed(t, name)
		db.Exec(t, "create extension citus")
		dbs = append(dbs, db)
	}
	slices.Reverse(dbs)
	c := &Cluster{DB: dbs[0], Workers: dbs[1:]}
	c.Exec(t, fmt.Sprintf("select citus_set_coordinator_host('%s', 5432)", c.host(t)))
	addingNodes.Lock()
	defer addingNodes.Unlock()
	for _, w := range c.Workers {
		c.Exec(t, fmt.Sprintf("select citus_add_node('%s', 5432)", w.host(t)))
	}
	return c
}

// Host returns the address by which the other nodes reach a worker.
func (c *Cluster) Host(t testing.TB, worker int) string {
	t.Helper()
	return c.Workers[worker].host(t)
}

// host returns the address of the server's container for other containers.
func (db *DB) host(t testing.TB) string {
	t.Helper()
	ip, err := db.server.container.ContainerIP(t.Context())
	Must(t, err)
	return ip
}
