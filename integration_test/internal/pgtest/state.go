package pgtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SearchPath sets the search_path of a connection.
func SearchPath(path string) Option {
	return Config(func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = path })
}

// SQLState returns the SQLSTATE of an error, or "" if it has none.
func SQLState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// AwaitLock waits until a statement of conn waits for a lock. It fails the test if done
// receives the statement's result before. The query runs on another connection, probe.
func AwaitLock(t testing.TB, probe, conn *pgx.Conn, done <-chan error) {
	t.Helper()
	pid := conn.PgConn().PID()
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
