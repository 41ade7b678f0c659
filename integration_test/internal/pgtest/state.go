package pgtest

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// SearchPath sets the search_path of a connection.
func SearchPath(path string) Option {
	return Config(func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = path })
}

// AwaitLock waits until a statement of a session waits for a lock. It fails the test if done,
// unless it is nil, receives the statement's result before. The query runs on probe.
func AwaitLock(t testing.TB, probe *pgx.Conn, pid uint32, done <-chan error) {
	t.Helper()
	Eventually(t, "the statement waits for a lock", func() error {
		if len(done) > 0 {
			t.Fatalf("expected the statement to wait for a lock, got its end: %v", <-done)
		}
		if Value[int](t, probe, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", pid) == 0 {
			return fmt.Errorf("session %d waits for no lock", pid)
		}
		return nil
	})
}
