package zktest

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// After each fault, the server has the same data and answers at the same address.
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
			t.Errorf("got an answer from a server that is %s", fault.name)
		}
		fault.end(t)
		pgtest.Eventually(t, "a server that was "+fault.name+" answers", func() error {
			if !server.Answers(time.Second) {
				return errors.New("no answer")
			}
			return nil
		})
		// Use a new client: one that tried to connect during the fault may have reached
		// Docker's proxy, and would wait a minute for an answer.
		if _, _, err := server.Conn(t).Get("/there"); err != nil {
			t.Errorf("reading the data of a server that was %s: %v", fault.name, err)
		}
	}
}
