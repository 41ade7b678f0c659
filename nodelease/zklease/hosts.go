package zklease

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// hosts is the list of servers, which the client tries in turn. The client's own list
// resolves host names only once. With a single server the client's list also waits a
// second before each new connection, and a claim may last only a second. The client calls the
// methods in one goroutine.
type hosts struct {
	servers []string
	next    int
	tried   int // servers tried since the last answer
}

var _ zk.HostProvider = (*hosts)(nil)

// Init sets the servers, which the client passes in random order.
func (h *hosts) Init(servers []string) error {
	if len(servers) == 0 {
		return errors.New("no servers")
	}
	h.servers = servers
	return nil
}

// Len returns the number of servers.
func (h *hosts) Len() int { return len(h.servers) }

// Next returns the server to try next. pause is true if all servers have been tried
// since the last pause or answer.
func (h *hosts) Next() (server string, pause bool) {
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	pause = h.tried >= len(h.servers)
	if pause {
		h.tried = 0
	}
	h.tried++
	return server, pause
}

// Connected records that the server of the last call of Next answered.
func (h *hosts) Connected() { h.tried = 0 }
