package zklease

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// dial opens a connection for the client.
func (s *Store) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if s.abandoned.Load() {
		return nil, errStoreClosed
	}
	dial := s.config.Dial
	if dial == nil {
		dial = net.DialTimeout
	}
	conn, err := dial(network, address, timeout)
	if err != nil {
		s.connected(err)
		return nil, err
	}
	return &wire{Conn: conn, store: s, server: address}, nil
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
	head   []byte    // the start of the first answer
	failed sync.Once // keeps the first error, which is the reason for the later ones
}

func (w *wire) fail(err error) {
	w.failed.Do(func() { w.store.connected(fmt.Errorf("connection to %s: %w", w.server, err)) })
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
		w.fail(err)
	}
	return n, err
}

// Write reports no errors. If it fails, it closes the connection, and the client's next
// read fails. The client then fails all pending requests with zk.ErrConnectionClosed. A
// request that was written in part may have taken effect, just like a request whose
// answer was lost. After an error of Write, the client would fail the request twice. If
// it is repeating the authentication, it would block forever, because the channel for
// that answer holds only one.
func (w *wire) Write(b []byte) (int, error) {
	if w.store.abandoned.Load() {
		w.Conn.Close()
		return len(b), nil
	}
	if _, err := w.Conn.Write(b); err != nil {
		w.store.config.Logger.Info("zookeeper: connection lost", "error", err)
		w.fail(err)
		w.Conn.Close()
	}
	return len(b), nil
}

// maxFirstAnswer limits the wait for the first answer. By default, a server that is
// slower than that has lost its quorum (syncLimit, 5 ticks of 2 s).
const maxFirstAnswer = 10 * time.Second

// SetReadDeadline limits the wait for the first answer, until the answer has been read.
// A server may accept a connection and then neither answer nor close it, as a single
// ZooKeeper server does in some of its starts (ZOOKEEPER-5051). The client would wait
// until long after the session has expired, instead of opening a new connection.
func (w *wire) SetReadDeadline(t time.Time) error {
	if len(w.head) < headLength {
		if t.IsZero() {
			return nil
		}
		if latest := time.Now().Add(min(maxFirstAnswer, max(time.Second, w.store.config.SessionTimeout*2/3))); t.After(latest) {
			t = latest
		}
	}
	return w.Conn.SetReadDeadline(t)
}
