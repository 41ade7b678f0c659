package pgtest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// A Bouncer is a PgBouncer in transaction mode.
type Bouncer struct {
	Suite    string // the Debian release that has the version
	Version  string // such as 1.24
	Backends int    // the number of connections to the server
	Settings string // further settings, one per line
}

// Start starts PgBouncer in front of a database, and returns a DB that connects through
// it. With server_round_robin, a client's next transaction uses another backend if one is
// free. With query_wait_timeout, a test fails instead of hanging if a client blocks the
// others.
func (b Bouncer) Start(t testing.TB, db *DB) DB {
	t.Helper()
	image := DebianImage(t, "pgbouncer", b.Suite, "pgbouncer")
	const port, config = "6432", "/etc/pgbouncer/test.ini"
	server, err := url.Parse(db.URLFromContainers(t))
	Must(t, err)
	password, _ := server.User.Password()
	ini := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = *
listen_port = %s
auth_type = any
pool_mode = transaction
default_pool_size = %d
server_round_robin = 1
query_wait_timeout = 120
log_connections = 0
log_disconnections = 0
%s
`, db.Name, server.Hostname(), server.Port(), server.User.Username(), password, port, b.Backends, b.Settings)
	ctr := Container(t, image,
		testcontainers.WithCmd("pgbouncer", config),
		testcontainers.WithConfigModifier(func(c *container.Config) { c.User = "postgres" }), // PgBouncer doesn't run as root
		testcontainers.WithExposedPorts(port+"/tcp"),
		testcontainers.WithFiles(testcontainers.ContainerFile{Reader: strings.NewReader(ini), ContainerFilePath: config, FileMode: 0o644}),
		testcontainers.WithWaitStrategy(wait.ForLog("process up: PgBouncer "+b.Version+".")))
	host, err := ctr.PortEndpoint(t.Context(), port+"/tcp", "")
	Must(t, err)
	u, err := url.Parse(db.URL)
	Must(t, err)
	u.Host = host
	pooled := *db
	pooled.URL = u.String()
	return pooled
}
