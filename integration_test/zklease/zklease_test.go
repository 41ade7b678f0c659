package zklease

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// must is pgtest.Must.
var must = pgtest.Must

// Session timeouts of the tests.
const (
	brief    = 5 * time.Second   // expires; for leasetest, which repeats tests that took too long
	expiring = 10 * time.Second  // expires; for the other tests
	lasting  = zktest.MaxSession // must not expire, even on a busy machine
)

// A client is a store whose connections the test can cut.
type client struct {
	*zklease.Store
	session time.Duration
	mu      sync.Mutex
	conns   []net.Conn
	cut     bool
	stalls  bool          // after the next write of a high-water mark, no request gets an answer
	gate    chan struct{} // until gate is closed; nil before such a write
}

// A conn is a connection whose answers can be held up.
type conn struct {
	net.Conn
	client *client
}

func (c conn) Write(b []byte) (int, error) {
	c.client.mu.Lock()
	if c.client.stalls && bytes.Contains(b, []byte(`"until"`)) && c.client.gate == nil {
		c.client.gate = make(chan struct{})
	}
	c.client.mu.Unlock()
	return c.Conn.Write(b)
}

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.client.mu.Lock()
	gate := c.client.gate
	c.client.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return n, err
}

// open returns a store on the server.
func open(t testing.TB, server *zktest.Server, c zklease.Config) *client {
	t.Helper()
	if c.SessionTimeout == 0 {
		c.SessionTimeout = lasting
	}
	cl := &client{session: c.SessionTimeout}
	c.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		if cl.cut {
			return nil, net.ErrClosed
		}
		dialed, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return nil, err
		}
		cl.conns = append(cl.conns, dialed)
		return conn{dialed, cl}, nil
	}
	var err error
	cl.Store, err = zklease.Connect([]string{server.Address}, c)
	must(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// disconnect closes the connections without ending the session, as the death of the
// process would, and prevents new connections until reconnect.
func (c *client) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

func (c *client) reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

// hold makes the store wait for all answers after its next write of a high-water mark.
func (c *client) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = true
}

// proceed ends a hold, after such a write.
func (c *client) proceed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = false
	close(c.gate)
	c.gate = nil
}

// TestServer runs the tests that don't stop or pause the server, in parallel.
func TestServer(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	for name, test := range map[string]func(*testing.T, *zktest.Server){
		"store": testStore, "expiry": testExpiry, "renewed after expiry": testRenewAfterExpiry,
		"close": testClose, "negotiated timeout": testNegotiated, "auth": testAuth, "java": testJava,
		"cut connections": testCutConnections, "many numbers": testManyNumbers,
		"renewed by another store": testMoved, "canceled claim": testGivenUp, "stores that start together": testTogether, "contention": testContention,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

func testStore(t *testing.T, server *zktest.Server) {
	leasetest.TestStore(t, leasetest.Harness{
		TTL: brief,
		Open: func(t *testing.T, lasting bool) nodelease.Store {
			if lasting {
				return modest{open(t, server, zklease.Config{})}
			}
			return modest{open(t, server, zklease.Config{SessionTimeout: brief})}
		},
		Crash: func(_ *testing.T, s nodelease.Store) { s.(modest).disconnect() },
	})
}

// A modest client requests a TTL of at most its session timeout, so that the store
// grants the requested TTL.
type modest struct{ *client }

func (m modest) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	r.TTL = min(r.TTL, m.session)
	return m.client.Claim(ctx, p, r)
}
