package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

const (
	// startTimeout bounds the start of a server. Two seconds are usual.
	startTimeout = 5 * time.Minute
	// imageTimeout bounds getting an image, which may be a build.
	imageTimeout = 30 * time.Minute

	// dataDirectory is the same in all images' containers.
	dataDirectory = "/pgdata"
)

// A server is one that tests share. It starts when the first test needs it.
type server struct {
	name  string // of the subtests that it is used for: pg17
	start func() (*running, error)

	once sync.Once
	r    *running
	err  error
}

func (s *server) running() (*running, error) {
	s.once.Do(func() { s.r, s.err = s.start() })
	return s.r, s.err
}

// A running server is one that answers.
type running struct {
	url       string        // of some database on it
	admin     *pgxpool.Pool // connected to that
	version   string        // major
	own       bool          // a test's own, which goes with it
	container *postgres.PostgresContainer
	log       func() (string, error) // nil if there is no telling where the log is
}

// connect waits until the server answers, unless doomed says that it never
// will. A nil doomed means that it has to answer at once.
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
	settings []string // arguments of the server, besides those of all kinds
	own      bool     // one test's own: it goes with the test
	durable  bool     // its data outlives a restart; otherwise the data is in memory
	options  func(version string) ([]testcontainers.ContainerCustomizer, error)
}

var (
	// shared is a server for all tests of a package.
	shared = kind{image: postgresImage}
	// stoppable is a server that its test may stop and start. Its port stays the same.
	stoppable = kind{image: postgresImage, own: true, durable: true}
	// extended is a shared server with the extensions that the plain image lacks.
	extended = kind{image: extrasImage, options: enterExtras}
	// clocked is a server whose clock its test steps.
	clocked = kind{image: extrasImage, own: true, options: fakeClock}
	// logical is a server whose write-ahead log is fit for logical replication. It
	// notices a broken connection within seconds.
	logical = kind{image: postgresImage, own: true, settings: []string{"-c", "wal_level=logical",
		"-c", "wal_sender_timeout=12s", "-c", "wal_receiver_timeout=12s", "-c", "wal_retrieve_retry_interval=200ms"}}
	// sharded is a shared server that is a node of a Citus cluster.
	sharded = kind{image: citusImage, settings: citusSettings, options: citusNode}
)

// serverSettings are arguments of every server. Durability is not what is tested
// here: with these settings a server that is killed loses nothing, only a machine
// that loses power does.
var serverSettings = []string{
	"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off",
	"-c", "max_connections=300", "-c", "jit=off", "-c", "log_checkpoints=off", "-c", "log_line_prefix=" + logPrefix,
}

// runContainer starts a container with a server. If it fails, it may still return
// a container to remove.
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
		return r, fmt.Errorf("expected a container of %s: %w", image, err)
	}
	if err := r.connectContainer(ctx); err != nil {
		log, _ := r.log()
		return r, fmt.Errorf("expected a server in a container of %s: %w; its log:\n%s", image, err, lastLines(log, logLines))
	}
	if !r.own {
		atEnd(r.close)
	}
	return r, nil
}

// containerOptions returns what a container of this kind is run with.
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

// connectContainer waits until the server in the container answers, or the
// container ends.
func (r *running) connectContainer(ctx context.Context) error {
	var err error
	if r.url, err = r.container.ConnectionString(ctx, "sslmode=disable"); err != nil {
		return err
	}
	return r.connect(ctx, func(ctx context.Context) error {
		state, err := r.container.State(ctx)
		if err == nil && !state.Running {
			err = fmt.Errorf("its container has ended with status %d", state.ExitCode)
		}
		return err
	})
}

// outliveRestart has a container keep its data, in an anonymous volume, and the
// port that its server's is published as.
func outliveRestart(port string) testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
		c.Mounts = append(c.Mounts, mount.Mount{Type: mount.TypeVolume, Target: dataDirectory})
		c.PortBindings = PublishedAs("5432/tcp", port)
	})
}

// PublishedAs has a container's port, such as 5432/tcp, published as one that
// stays the same when the container is started again.
func PublishedAs(containerPort, port string) network.PortMap {
	return network.PortMap{network.MustParsePort(containerPort): {{HostIP: netip.IPv4Unspecified(), HostPort: port}}}
}

// FreePort is a port of this machine that nobody listens on.
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
