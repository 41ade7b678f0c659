//go:build unix

package service

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A proxy forwards TCP connections. A cut proxy forwards no bytes, as a network that
// drops all packets.
type proxy struct {
	address string
	gate    sync.RWMutex // a cut holds the lock
}

// newProxy starts a proxy to an address until the test ends.
func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	p := &proxy{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client, to)
		}
	}()
	return p
}

func (p *proxy) cut()  { p.gate.Lock() }
func (p *proxy) join() { p.gate.Unlock() }

// serve forwards the bytes of a connection in both directions until one side closes it.
func (p *proxy) serve(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var forwarding sync.WaitGroup
	for _, way := range []struct{ from, to net.Conn }{{client, server}, {server, client}} {
		forwarding.Go(func() {
			_, _ = io.Copy(gated{way.to, p}, way.from)
			client.Close()
			server.Close()
		})
	}
	forwarding.Wait()
}

// A gated connection delays writes while its proxy is cut.
type gated struct {
	net.Conn
	p *proxy
}

func (g gated) Write(b []byte) (int, error) {
	g.p.gate.RLock()
	defer g.p.gate.RUnlock()
	return g.Conn.Write(b)
}
