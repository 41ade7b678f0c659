package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

const (
	// startTimeout bounds the start of a server, which usually takes two seconds.
	startTimeout = 5 * time.Minute
	// imageTimeout bounds pulling or building an image.
	imageTimeout = 30 * time.Minute

	// dataDirectory is the data directory in all containers.
	dataDirectory = "/pgdata"
)

// A server is a shared server. It starts when the first test needs it.
type server struct {
	name  string // of the subtests that use it, such as pg17
	start func() (*running, error)

	once sync.Once
	r    *running
	err  error
}

func (s *server) running() (*running, error) {
	s.once.Do(func() { s.r, s.err = s.start() })
	return s.r, s.err
}

// A running is a server that has started.
type running struct {
	url       string        // of some database on it
	admin     *pgxpool.Pool // connects to url
	version   string        // major version
	own       bool          // for one test, and removed with it
	container *postgres.PostgresContainer
	log       func() (string, error) // nil if the log's location is unknown
}

// connect waits until the server answers, or until doomed returns the reason why it never
// will. If doomed is nil, the server must answer at once.
func (r *running) connect(ctx context.Context, doomed func(context.Context) error) error {
	config, err := pgxpool.ParseConfig(r.url)
	if err != nil {
		return err
	}
	config.MaxConns = 4
	config.ConnConfig.ConnectTimeout = adminTimeout
	if r.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	for {
		var number int
		err := r.admin.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&number)
		if err == nil {
			r.version = strconv.Itoa(number / 10000)
			return nil
		}
		if doomed == nil {
			return err
		}
		if reason := doomed(ctx); reason != nil {
			return errors.Join(reason, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *running) close() error {
	if r.admin != nil {
		r.admin.Close()
	}
	return nil
}

// A kind is a way to run a server in a container.
type kind struct {
	image    func(ctx context.Context, version string) (string, error)
	settings []string // arguments of the server, in addition to serverSettings
	own      bool     // for one test, and removed with it
	durable  bool     // keeps its data across restarts; otherwise the data is in memory
	options  func(version string) ([]testcontainers.ContainerCustomizer, error)
}

var (
	// shared is a server for all tests of a package.
	shared = kind{image: postgresImage}
	// stoppable is a server that its test can stop and start. It keeps its port.
	stoppable = kind{image: postgresImage, own: true, durable: true}
	// extended is a shared server with pg_partman.
	extended = kind{image: extrasImage, options: enterExtras}
	// clocked is a server whose clock its test can step.
	clocked = kind{image: extrasImage, own: true, options: fakeClock}
	// logical is a server with wal_level = logical. It detects a broken replication
	// connection within seconds.
	logical = kind{image: postgresImage, own: true, settings: []string{"-c", "wal_level=logical",
		"-c", "wal_sender_timeout=12s", "-c", "wal_receiver_timeout=12s", "-c", "wal_retrieve_retry_interval=200ms"}}
	// sharded is a shared server that is a node of a Citus cluster.
	sharded = kind{image: citusImage, settings: citusSettings, options: citusNode}
)

// serverSettings are arguments of every server. Tests don't need durability: with these
// settings a killed server loses no data, but a machine that loses power does.
var serverSettings = []string{
	"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off",
	"-c", "max_connections=300", "-c", "jit=off", "-c", "log_checkpoints=off", "-c", "log_line_prefix=" + logPrefix,
}

// runContainer starts a server in a container. If it fails, the result may still hold a
// container to remove.
func runContainer(version string, k kind) (*running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTimeout)
	defer cancel()
	image, err := k.image(ctx, version)
	if err != nil {
		return nil, err
	}
	opts, err := k.containerOptions(version)
	if err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := postgres.Run(ctx, image, opts...)
	r := &running{container: c, own: k.own, log: func() (string, error) { return containerLog(c) }}
	if err != nil {
		return r, fmt.Errorf("start a container of %s: %w", image, err)
	}
	if err := r.connectContainer(ctx, !k.durable); err != nil {
		log, _ := r.log()
		return r, fmt.Errorf("start a server in a container of %s: %w; its log:\n%s", image, err, lastLines(log, logLines))
	}
	if !r.own {
		atEnd(r.close)
	}
	return r, nil
}

// containerOptions returns the options for a container of this kind.
func (k kind) containerOptions(version string) ([]testcontainers.ContainerCustomizer, error) {
	label, err := containerLabel()
	if err != nil {
		return nil, err
	}
	command := slices.Concat([]string{"postgres"}, serverSettings, k.settings)
	opts := []testcontainers.ContainerCustomizer{
		label,
		testcontainers.WithCmd(command...),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--no-sync", "PGDATA": dataDirectory}),
	}
	if k.durable {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		opts = append(opts, outliveRestart(port))
	} else {
		opts = append(opts, testcontainers.WithTmpfs(map[string]string{dataDirectory: "rw"}))
	}
	if k.options == nil {
		return opts, nil
	}
	more, err := k.options(version)
	return append(opts, more...), err
}

// connectContainer waits until the server in the container answers. It fails if the
// container stops. If direct is set, it prefers the container's own address, which may
// change when the container restarts.
func (r *running) connectContainer(ctx context.Context, direct bool) error {
	var err error
	if r.url, err = r.container.ConnectionString(ctx, "sslmode=disable"); err != nil {
		return err
	}
	if direct {
		u, err := url.Parse(r.url)
		if err != nil {
			return err
		}
		if ip, err := r.container.ContainerIP(ctx); err == nil && isReachable(ip) {
			u.Host = net.JoinHostPort(ip, "5432")
			r.url = u.String()
		}
	}
	return r.connect(ctx, func(ctx context.Context) error {
		state, err := r.container.State(ctx)
		if err == nil && !state.Running {
			err = fmt.Errorf("its container stopped with status %d", state.ExitCode)
		}
		return err
	})
}

// isReachable reports whether this machine reaches a container of a local daemon by its
// address. A connection to the published port instead goes through a proxy of Docker,
// which takes a tenth of the CPU time of the tests. The daemon of Docker Desktop runs in a
// virtual machine.
func isReachable(ip string) bool {
	if c, err := docker(); err != nil || !strings.HasPrefix(c.DaemonHost(), "unix://") {
		return false
	}
	if _, err := net.InterfaceByName("docker0"); err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, "5432"), time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil || errors.Is(err, syscall.ECONNREFUSED)
}

// outliveRestart makes a container keep its data, in an anonymous volume, and its
// published port.
func outliveRestart(port string) testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
		c.Mounts = append(c.Mounts, mount.Mount{Type: mount.TypeVolume, Target: dataDirectory})
		c.PortBindings = PublishedAs("5432/tcp", port)
	})
}

// PublishedAs publishes a container's port, such as 5432/tcp, as a fixed port, which stays
// the same when the container restarts.
func PublishedAs(containerPort, port string) network.PortMap {
	return network.PortMap{network.MustParsePort(containerPort): {{HostIP: netip.IPv4Unspecified(), HostPort: port}}}
}

// FreePort returns a port of this machine on which no process listens.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func containerLog(c testcontainers.Container) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	r, err := c.Logs(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}
