package zklease

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// dial opens a connection for the client.
func (s *Store) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	dial := s.config.Dial
	if dial == nil {
		dial = net.DialTimeout
	}
	conn, err := dial(network, address, timeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.down = err
		return nil, err
	}
	w := &wire{Conn: conn, store: s, server: address}
	if s.abandoned {
		conn.Close()
		return nil, errStoreClosed
	}
	s.wires[w] = true
	return w, nil
}

// connected records the state of the connection: nil, or the reason why it was lost.
func (s *Store) connected(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// A wire is a connection to a server. It reads the session timeout from the server's
// first answer, because the ZooKeeper client doesn't report it.
type wire struct {
	net.Conn
	store  *Store
	server string
	head   []byte // the start of the first answer
}

// The first answer starts with its length, the protocol version and the session
// timeout in milliseconds, four bytes each. The timeout is 0 if the session has
// expired.
const headLength = 12

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if missing := headLength - len(w.head); missing > 0 {
		w.head = append(w.head, b[:min(n, missing)]...)
		if len(w.head) == headLength {
			if ms := int32(binary.BigEndian.Uint32(w.head[8:])); ms > 0 {
				w.store.timeout.Store(int64(ms))
			}
			w.store.connected(nil)
		}
	}
	if err != nil {
		w.store.connected(fmt.Errorf("connection to %s: %w", w.server, err))
	}
	return n, err
}

// Write replaces each error with zk.ErrConnectionClosed, the client's error for a lost
// connection. A request that was written in part may have taken effect, just like a
// request whose answer was lost.
func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if err != nil {
		w.store.config.Logger.Info("zookeeper: connection lost", "error", err)
		w.store.connected(fmt.Errorf("connection to %s: %w", w.server, err))
		err = zk.ErrConnectionClosed
	}
	return n, err
}

// SetReadDeadline limits the wait for the first answer. Otherwise the client would wait
// for a hanging server until long after the session has expired, instead of trying the
// next server.
func (w *wire) SetReadDeadline(t time.Time) error {
	if len(w.head) == 0 && !t.IsZero() {
		if latest := time.Now().Add(max(time.Second, w.store.config.SessionTimeout*2/3)); t.After(latest) {
			t = latest
		}
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *wire) Close() error {
	w.store.mu.Lock()
	delete(w.store.wires, w)
	w.store.mu.Unlock()
	return w.Conn.Close()
}
