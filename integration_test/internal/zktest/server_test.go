package zktest

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// What is there stays there, and the server is found again where it was.
func TestServer(t *testing.T) {
	server := Run(t)
	if _, err := server.Conn(t).Create("/there", []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		name       string
		begin, end func(testing.TB)
	}{
		{"paused", server.Pause, server.Unpause},
		{"cut off", server.Disconnect, server.Reconnect},
		{"stopped", server.Stop, server.Start},
	} {
		fault.begin(t)
		if server.Answers(300 * time.Millisecond) {
			t.Errorf("expected no answer of a server that is %s, got one", fault.name)
		}
		fault.end(t)
		pgtest.Eventually(t, "a server that was "+fault.name+" answers", func() error {
			if !server.Answers(time.Second) {
				return errors.New("it doesn't")
			}
			return nil
		})
		// With another client: one that has tried to connect meanwhile may have got
		// through to Docker's proxy, and waits a minute for an answer.
		if _, _, err := server.Conn(t).Get("/there"); err != nil {
			t.Errorf("expected a server that was %s to have its data, got %v", fault.name, err)
		}
	}
}
