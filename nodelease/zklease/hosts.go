package zklease

import (
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Hosts are the servers to connect to, one after the other. The client's own
// list looks their names up once and for all, and has it wait for a second
// before it connects again to the only server that there is, which may be as
// long as a claim stands.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last that answered
}

var _ zk.HostProvider = (*hosts)(nil)

// Init is given them in random order.
func (h *hosts) Init(servers []string) error {
	if len(servers) == 0 {
		return errors.New("expected servers, got none")
	}
	h.servers = servers
	return nil
}

// Len is how many there are.
func (h *hosts) Len() int { return len(h.servers) }

// Next is the one to try now. Pause says that all have been tried.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	pause = h.tried >= len(h.servers)
	if pause {
		h.tried = 0
	}
	h.tried++
	return server, pause
}

// Connected says that the last one answered.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
