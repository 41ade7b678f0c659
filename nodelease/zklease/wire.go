package zklease

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// dial opens a connection.
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

// connected notes what became of the last connection.
func (s *Store) connected(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// A wire is a connection to a server. It reads along what the client of
// ZooKeeper keeps to itself, the timeout that a server has set for the session.
type wire struct {
	net.Conn
	store  *Store
	server string
	head   []byte // of the first answer
}

// The first answer begins with its length, the version of the protocol and the
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

// Write has the client give the error that it has for lost connections: a
// request that could be written in part only may have been done or not, as one
// whose answer got lost.
func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if err != nil {
		w.store.config.Logger.Info("zookeeper: connection lost", "error", err)
		w.store.connected(fmt.Errorf("connection to %s: %w", w.server, err))
		err = zk.ErrConnectionClosed
	}
	return n, err
}

// SetReadDeadline bounds the wait for the first answer. The client would wait
// for a server that hangs until the session is long over, instead of trying
// another one.
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
