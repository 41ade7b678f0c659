package zktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A Server is a single ZooKeeper server, which a test can pause, disconnect, stop and
// start. It keeps its data and its port across restarts.
type Server struct {
	// Address is host:port, for clients.
	Address   string
	container testcontainers.Container
}

// MinSession and MaxSession bound the session timeouts that a server grants. The server
// checks for expired sessions every 100 ms.
const (
	MinSession = 200 * time.Millisecond
	MaxSession = 5 * time.Minute
)

const settings = `tickTime=100
minSessionTimeout=200
maxSessionTimeout=300000
dataDir=/zookeeper
clientPort=2181
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
`

// startTimeout bounds the start of a server, which usually takes a second or two.
const startTimeout = 5 * time.Minute

// Run starts a server for one test and removes it when the test ends.
func Run(t testing.TB) *Server {
	t.Helper()
	image := pgtest.DebianImage(t, "zookeeper", "trixie", "openjdk-21-jre-headless", "libzookeeper-java")
	port, err := pgtest.FreePort()
	pgtest.Must(t, err)
	var path []string
	for _, jar := range []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all", "metrics-core", "snappy-java", "commons-cli"} {
		path = append(path, "/usr/share/java/"+jar+".jar")
	}
	s := &Server{container: pgtest.Container(t, image,
		testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: strings.NewReader(settings), ContainerFilePath: "/zoo.cfg", FileMode: 0o644,
		}),
		testcontainers.WithEntrypoint("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-cp", strings.Join(path, ":"),
			"-Dzookeeper.forceSync=no", // tests don't need durability
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", "/zoo.cfg"),
		testcontainers.WithExposedPorts("2181/tcp"),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings = pgtest.PublishedAs("2181/tcp", port)
		}),
	)}
	host, err := s.container.Host(t.Context())
	pgtest.Must(t, err)
	s.Address = net.JoinHostPort(host, port)
	s.wait(t)
	return s
}

// wait waits until the server answers.
func (s *Server) wait(t testing.TB) {
	t.Helper()
	var state string
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if s.answers(time.Second) {
			return
		}
		if st, err := s.container.State(t.Context()); err == nil {
			if state = string(st.Status); !st.Running {
				break
			}
		}
	}
	t.Fatalf("no answer from ZooKeeper at %s within %v (container state: %s)", s.Address, startTimeout, state)
}

// answers reports whether the server answers within limit.
func (s *Server) answers(limit time.Duration) bool {
	// The output contains "Mode: standalone" once the server accepts sessions.
	state, err := s.command("srvr", limit)
	return err == nil && strings.Contains(state, "Mode:")
}

// HasSession reports whether the server has a session, connected or not.
func (s *Server) HasSession(t testing.TB, id int64) bool {
	t.Helper()
	all, err := s.command("dump", 2*time.Minute)
	if err != nil || !strings.Contains(all, "expire at") {
		t.Fatalf("expected sessions in the output of dump, got %q, %v", all, err)
	}
	return slices.Contains(strings.Fields(all), fmt.Sprintf("%#x", id))
}

// command runs one of ZooKeeper's four-letter commands and returns its output.
func (s *Server) command(name string, limit time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Address, limit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, name); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Conn returns a plain client, for inspecting data or acting as another program.
func (s *Server) Conn(t testing.TB) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.Address}, MaxSession, zk.WithLogger(silent{}))
	pgtest.Must(t, err)
	t.Cleanup(conn.Close)
	pgtest.Eventually(t, "a client has a session", func() error {
		if state := conn.State(); state != zk.StateHasSession {
			return fmt.Errorf("its state is %v", state)
		}
		return nil
	})
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Pause stops all processes of the server but keeps its connections open.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	pgtest.Pause(t, s.container)
}

// Unpause ends a Pause. The server's clock kept running.
func (s *Server) Unpause(t testing.TB) {
	t.Helper()
	pgtest.Unpause(t, s.container)
}

// Disconnect disconnects the server from its network.
func (s *Server) Disconnect(t testing.TB) {
	t.Helper()
	pgtest.Disconnect(t, s.container)
}

// Reconnect ends a Disconnect.
func (s *Server) Reconnect(t testing.TB) {
	t.Helper()
	pgtest.Reconnect(t, s.container)
}

// Stop stops the server.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.do(t, "stop", func(ctx context.Context) error {
		patience := 10 * time.Second
		return s.container.Stop(ctx, &patience)
	})
}

// Start starts a stopped server and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.do(t, "start", s.container.Start)
	s.wait(t)
}

func (s *Server) do(t testing.TB, what string, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatal(fmt.Errorf("%s the server: %w", what, err))
	}
}
