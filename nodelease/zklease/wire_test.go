package zklease

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// The timeout is read from the first answer, even if it arrives in pieces.
func TestWire(t *testing.T) {
	answer := []byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0x10, 0x04, 9, 9, 9, 9}
	for piece := 1; piece <= len(answer); piece++ {
		s := &Store{}
		ours, theirs := net.Pipe()
		s.config.Dial = func(string, string, time.Duration) (net.Conn, error) { return ours, nil }
		conn, err := s.dial("tcp", "x", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := theirs.Write(append(answer[:len(answer):len(answer)], make([]byte, len(answer))...))
			if err != nil {
				t.Error(err)
			}
		}()
		var got []byte
		for b := make([]byte, piece); len(got) < 2*len(answer); {
			n, err := conn.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b[:n]...)
		}
		if string(got[:len(answer)]) != string(answer) {
			t.Errorf("expected %v, got %v", answer, got)
		}
		if ms := s.timeout.Load(); ms != 0x1004 {
			t.Errorf("in pieces of %d: expected a timeout of %d ms, got %d", piece, 0x1004, ms)
		}
		// A store that was closed with claims sends nothing more, so that the session isn't ended.
		s.abandoned.Store(true)
		if n, err := conn.Write(answer); n != len(answer) || err != nil {
			t.Errorf("after Close: got %d, %v", n, err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("after Close: expected a closed connection")
		}
		if _, err := s.dial("tcp", "x", time.Second); !errors.Is(err, errStoreClosed) {
			t.Errorf("after Close: expected no new connection, got %v", err)
		}
	}
}

// The wait for a server that accepts the connection and doesn't answer is bounded, so
// that the client opens a new connection. The bound lasts until the answer is read.
func TestWireBoundsFirstAnswer(t *testing.T) {
	for session, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 6 * time.Second: 4 * time.Second, time.Hour: maxFirstAnswer,
	} {
		ours := &patient{}
		w := &wire{Conn: ours, store: &Store{config: Config{SessionTimeout: session}}}
		begun := time.Now()
		if err := w.SetReadDeadline(begun.Add(10 * session)); err != nil {
			t.Fatal(err)
		}
		got := ours.deadline
		if begun.Add(want).After(got) || time.Now().Add(want).Before(got) {
			t.Errorf("session timeout %v: want a wait of %v, got %v", session, want, got.Sub(begun))
		}
		w.head = make([]byte, 4)
		if err := w.SetReadDeadline(time.Time{}); err != nil || ours.deadline != got {
			t.Errorf("within the answer: want the deadline %v, got %v, %v", got, ours.deadline, err)
		}
		w.head = make([]byte, headLength)
		if err := w.SetReadDeadline(time.Time{}); err != nil || !ours.deadline.IsZero() {
			t.Errorf("after the answer: want no deadline, got %v, %v", ours.deadline, err)
		}
	}
}

// A patient connection records its deadline.
type patient struct {
	net.Conn
	deadline time.Time
}

func (p *patient) SetReadDeadline(t time.Time) error {
	p.deadline = t
	return nil
}

// The client connects again if the connection is lost while it repeats the
// authentication.
func TestLostWhileAuthenticating(t *testing.T) {
	dials := make(chan int, 1000)
	n := 0
	s, err := Connect([]string{"x:1"}, Config{AuthScheme: "digest", Auth: []byte("ids:secret"), Dial: func(string, string, time.Duration) (net.Conn, error) {
		n++
		dials <- n
		ours, theirs := net.Pipe()
		go serve(theirs, n == 1)
		if n == 1 {
			return ours, nil
		}
		return &fragile{Conn: ours}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	limit := time.After(30 * time.Second)
	for want := 1; want <= 3; want++ {
		select {
		case <-dials:
		case <-limit:
			t.Fatalf("want at least 3 connections, got %d", want-1)
		}
	}
}

// serve opens a session. It then answers a request if once is set, and closes the
// connection.
func serve(conn net.Conn, once bool) {
	defer conn.Close()
	request := func() (body []byte, ok bool) {
		length := make([]byte, 4)
		if _, err := io.ReadFull(conn, length); err != nil {
			return nil, false
		}
		body = make([]byte, binary.BigEndian.Uint32(length))
		_, err := io.ReadFull(conn, body)
		return body, err == nil
	}
	if _, ok := request(); !ok {
		return
	}
	session := binary.BigEndian.AppendUint32(nil, 36)        // length
	session = binary.BigEndian.AppendUint32(session, 0)      // protocol version
	session = binary.BigEndian.AppendUint32(session, 30_000) // session timeout
	session = binary.BigEndian.AppendUint64(session, 1)      // session ID
	session = binary.BigEndian.AppendUint32(session, 16)     // length of the password
	if _, err := conn.Write(append(session, make([]byte, 16)...)); err != nil {
		return
	}
	body, ok := request()
	if !ok || !once {
		return
	}
	answer := append([]byte{0, 0, 0, 16}, body[:4]...) // length, number of the request
	_, _ = conn.Write(append(answer, make([]byte, 12)...))
}

// A fragile connection fails after its first Write.
type fragile struct {
	net.Conn
	writes int
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, io.ErrClosedPipe
	}
	return f.Conn.Write(b)
}
