package zklease

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// The timeout is read from the first answer, even if it arrives in pieces.
func TestWire(t *testing.T) {
	answer := []byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0x10, 0x04, 9, 9, 9, 9}
	for piece := 1; piece <= len(answer); piece++ {
		s := &Store{wires: map[*wire]bool{}}
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
		conn.Close()
		if len(s.wires) != 0 {
			t.Error("expected the store to drop the closed connection")
		}
	}
}

// The wait for a server that accepts the connection and doesn't answer is bounded, so
// that the client can try the next server.
func TestWireBoundsFirstAnswer(t *testing.T) {
	s := &Store{wires: map[*wire]bool{}, config: Config{SessionTimeout: time.Second}}
	ours, _ := net.Pipe()
	s.config.Dial = func(string, string, time.Duration) (net.Conn, error) { return ours, nil }
	conn, err := s.dial("tcp", "x", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if err := conn.SetReadDeadline(begun.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(30*time.Second, func() { conn.Close() })
	defer timer.Stop()
	if _, err := conn.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("expected %v, got %v after %v", os.ErrDeadlineExceeded, err, time.Since(begun))
	}
}
