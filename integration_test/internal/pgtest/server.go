package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
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
	startTimeout = 2 * time.Minute
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
	config.ConnConfig.ConnectTimeout = 5 * time.Second
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

// What a container's server is for decides where its data lies, which image it
// is of, and whether tests share it.
const (
	// shared: its data is in memory, lost when the container stops.
	shared = iota
	// stoppable: a test's own, its data where a restart finds it. The server's
	// port stays the same.
	stoppable
	// extended: shared, with the extensions that the plain image lacks.
	extended
	// clocked: a test's own, its data in memory, with a clock that can be stepped.
	clocked
	// logical: a test's own, its data in memory, with a write-ahead log that tells
	// subscribers of rows. What a cut has broken it notices within seconds.
	logical
	// sharded: shared, a node of a Citus cluster.
	sharded
)

// runContainer starts a container with a server.
func runContainer(version string, purpose int) (*running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTimeout)
	defer cancel()
	getImage := postgresImage
	switch purpose {
	case extended, clocked:
		getImage = extrasImage
	case sharded:
		getImage = citusImage
	}
	image, err := getImage(ctx, version)
	if err != nil {
		return nil, err
	}
	label, err := containerLabel()
	if err != nil {
		return nil, err
	}
	// Durability is not what is tested here. A server that is killed loses
	// nothing by these settings, only a machine that loses power.
	command := []string{"postgres",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off",
		"-c", "max_connections=300", "-c", "jit=off", "-c", "log_checkpoints=off", "-c", "log_line_prefix=" + logPrefix}
	if purpose == logical {
		command = append(command, "-c", "wal_level=logical",
			"-c", "wal_sender_timeout=12s", "-c", "wal_receiver_timeout=12s", "-c", "wal_retrieve_retry_interval=200ms")
	}
	if purpose == sharded {
		command = append(command, citusSettings...)
	}
	opts := []testcontainers.ContainerCustomizer{
		label,
		testcontainers.WithCmd(command...),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--no-sync", "PGDATA": dataDirectory}),
	}
	if purpose == stoppable {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		opts = append(opts, outliveRestart(port))
	} else {
		opts = append(opts, testcontainers.WithTmpfs(map[string]string{dataDirectory: "rw"}))
	}
	if purpose == extended || purpose == clocked || purpose == sharded {
		entry, err := enterExtras(version)
		if err != nil {
			return nil, err
		}
		opts = append(opts, entry...)
	}
	switch purpose {
	case clocked:
		opts = append(opts, fakeClock(version))
	case sharded:
		opts = append(opts, testcontainers.WithEnv(map[string]string{"POSTGRES_HOST_AUTH_METHOD": "trust"}))
	}

	ctx, cancel = context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := postgres.Run(ctx, image, opts...)
	if err != nil {
		return &running{container: c}, fmt.Errorf("expected a container of %s: %w", image, err)
	}
	r := &running{container: c, own: purpose == stoppable || purpose == clocked || purpose == logical, log: func() (string, error) { return containerLog(c) }}
	if r.url, err = c.ConnectionString(ctx, "sslmode=disable"); err != nil {
		return r, err
	}
	err = r.connect(ctx, func(ctx context.Context) error {
		state, err := c.State(ctx)
		if err == nil && !state.Running {
			err = fmt.Errorf("its container has ended with status %d", state.ExitCode)
		}
		return err
	})
	if err != nil {
		log, _ := r.log()
		return r, fmt.Errorf("expected a server in a container of %s: %w; its log:\n%s", image, err, lastLines(log, logLines))
	}
	if !r.own {
		atEnd(r.close)
	}
	return r, nil
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
