package zklease

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// Without a connection, the error of each call names all servers and the reason. So
// does the error of a call that waits for an earlier call of the same holder, or for
// the authentication.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	errDial := errors.New("dial says no")
	for _, test := range []struct {
		name  string
		dial  func() (net.Conn, error)
		cause error
	}{
		{"refused", func() (net.Conn, error) { return nil, errDial }, errDial},
		{"closed at once", func() (net.Conn, error) {
			ours, theirs := net.Pipe()
			theirs.Close()
			return ours, nil
		}, io.ErrClosedPipe},
		{"closed without an answer", func() (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = theirs.Read(make([]byte, 1024))
				theirs.Close()
			}()
			return ours, nil
		}, io.EOF},
	} {
		for _, scheme := range []string{"", "digest"} {
			t.Run(test.name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				dialed := make(chan struct{}, 1000)
				s, err := Connect([]string{"zk1.example:2181", "zk2.example:2182"}, Config{
					AuthScheme: scheme, Auth: []byte("ids:secret"),
					Dial: func(string, string, time.Duration) (net.Conn, error) {
						dialed <- struct{}{}
						return test.dial()
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				<-dialed
				<-dialed // the first has failed
				p := nodelease.Pool{Name: "p", Size: 1}
				r := nodelease.Request{Holder: "x", TTL: time.Second, Now: 1, Until: 2}
				c := nodelease.Claim{Term: 1, Holder: "x"}
				for name, call := range map[string]func(context.Context) error{
					"Claim": func(ctx context.Context) error {
						_, err := s.Claim(ctx, p, r)
						return err
					},
					"Renew": func(ctx context.Context) error {
						_, err := s.Renew(ctx, p, c, r)
						return err
					},
					"Release": func(ctx context.Context) error { return s.Release(ctx, p, c, 2) },
				} {
					for i := range 3 {
						err := unanswered(t, call)
						if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, test.cause) || errors.Is(err, nodelease.ErrMisconfigured) {
							t.Errorf("%s, call %d: want %v and %v, got %v", name, i+1, test.cause, context.DeadlineExceeded, err)
						} else if !strings.Contains(err.Error(), "zk1.example:2181, zk2.example:2182") && !strings.Contains(err.Error(), "zk2.example:2182, zk1.example:2181") {
							t.Errorf("%s, call %d: want both servers in %v", name, i+1, err)
						}
					}
				}
			})
		}
	}
}

// unanswered returns the error of a call whose context ends while it waits. On a busy machine,
// a short limit may be over before the call begins to wait; then the error is only that of the
// context.
func unanswered(t *testing.T, call func(context.Context) error) (err error) {
	for limit := 30 * time.Millisecond; limit < time.Minute; limit *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = call(ctx)
		if cancel(); err != context.DeadlineExceeded {
			break
		}
	}
	return err
}

// The error also names a server that accepts the connection and doesn't answer.
func TestNoAnswerOfSilentServer(t *testing.T) {
	t.Parallel()
	s, err := Connect([]string{"zk1.example:2181"}, Config{Dial: func(string, string, time.Duration) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = unanswered(t, func(ctx context.Context) error {
		_, err := s.Claim(ctx, nodelease.Pool{Name: "p", Size: 1}, nodelease.Request{Holder: "x", TTL: time.Second, Now: 1, Until: 2})
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "zk1.example:2181") {
		t.Errorf("want an error that names the server, got %v", err)
	}
	s.Close()
	if _, err := s.Claim(t.Context(), nodelease.Pool{Name: "p", Size: 1}, nodelease.Request{}); !errors.Is(err, nodelease.ErrMisconfigured) {
		t.Errorf("a closed store: want %v, got %v", nodelease.ErrMisconfigured, err)
	}
}
