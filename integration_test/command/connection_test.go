package command_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Errors of the connection have the server's reason, and not the password.
func TestConnectionErrors(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		u, err := url.Parse(db.URL)
		pgtest.Must(t, err)
		for _, tt := range []struct {
			change func(*url.URL)
			want   []string
		}{
			{func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "hunter2") }, []string{"FATAL: password authentication failed", "; check the user and the password"}},
			{func(u *url.URL) { u.Path = "/missing" }, []string{`FATAL: database "missing" does not exist (SQLSTATE 3D000)`}},
		} {
			r := sortkey(t, withURL(t, db, tt.change), "migrate status")
			wantFailure(t, r, 2, append(tt.want, u.Host)...)
			if strings.Contains(r.errs, "hunter2") {
				t.Errorf("got %+v", r)
			}
		}
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	pgtest.Must(t, err)
	pgtest.Must(t, listener.Close())
	down := "postgres://shop:hunter2@" + listener.Addr().String() + "/shop"
	began := time.Now()
	for _, line := range []string{ // each fails at once, without retries
		"migrate up", "migrate down --yes", "migrate status", "migrate check", "partitions list", "partitions run --dry-run", "partitions run", "nodes list", "doctor",
	} {
		r := sortkey(t, nil, line, "-d", down)
		wantFailure(t, r, 2, "connect", "connection refused")
		if strings.Contains(r.errs, "hunter2") {
			t.Errorf("%s: the password is in %q", line, r.errs)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%s, want at most a minute", took)
	}
}

// With --strict, a warning makes migrate check and doctor fail. Here, a role can insert rows, but
// not with their default.
func TestStrict(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		wantSame(t, must(t, db, "migrate check --strict"), "ok: the installation in schema sortkey has no problems\n")
		_, role := asRole(t, db)
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1023, 'x'); CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1023), n int); GRANT INSERT ON t TO "+role)
		wantParts(t, must(t, db, "migrate check"), "[default-denied]", "ok: the installation in schema sortkey has no problems, but 1 warning\n")
		wantFailure(t, sortkey(t, db, "migrate check --strict"), 1)
		must(t, db, "doctor")
		wantFailure(t, sortkey(t, db, "doctor --strict"), 1)
		must(t, db, "doctor --strict --ignore default-denied")
	})
}

// Errors of a role without privileges name the GRANT. For migrate check, status and an up
// without work, the role needs only USAGE on the schema.
func TestPrivileges(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		wantFailure(t, sortkey(t, db, "nodes list"), 2, `schema "sortkey" of this database has no installation; run sortkey migrate up`)
		must(t, db, "migrate up --schema keys --epoch 2026-01-01")
		wantParts(t, must(t, db, "nodes reserve sno --schema keys"), "SET keys.node = 65535")
		wantFailure(t, sortkey(t, db, "nodes reserve sno 65535 --schema keys --note other"), 2, "run sortkey nodes release sno 65535 --schema keys\n")
		reader, role := asRole(t, db)
		denied := func(line string, parts ...string) {
			t.Helper()
			wantFailure(t, sortkey(t, reader, line), 2, append(parts, "permission denied")...)
		}
		for _, line := range []string{"migrate status", "migrate check", "migrate up", "migrate down --yes", "partitions list"} {
			denied(line+" --schema keys", "connect as the owner of schema keys, or run GRANT USAGE ON SCHEMA keys")
		}
		denied("nodes list --schema keys", "GRANT USAGE ON SCHEMA keys TO "+role+"\n")
		db.Exec(t, "GRANT USAGE ON SCHEMA keys TO "+role)
		for _, line := range []string{"migrate check", "migrate status", "migrate up"} {
			must(t, reader, line+" --schema keys")
		}
		wantFailure(t, sortkey(t, reader, "migrate down --yes --schema keys"), 2, "must be owner", "connect as the owner of schema keys\n")
		denied("migrate up", "permission denied for database", "or run GRANT CREATE ON DATABASE "+db.Name+" TO "+role+"\n")
		must(t, db, "migrate check --schema keys")

		denied("nodes list --schema keys", "GRANT SELECT ON keys.node_pool, keys.node_status TO "+role)
		db.Exec(t, "GRANT SELECT ON keys.node_pool, keys.node_status TO "+role)
		wantMatch(t, must(t, reader, "nodes list sno --schema keys"), `^sno 65535 reserved`)
		denied("nodes reserve sno --schema keys", "GRANT EXECUTE ON FUNCTION keys.reserve_node TO "+role)
		denied("nodes release sno 65535 --schema keys", "GRANT EXECUTE ON FUNCTION keys.unreserve_node TO "+role)
	})
}

// A session that the server ends is an error of the command, not a problem of the
// database.
func TestTerminated(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		probe := db.Conn(t)
		for line, table := range map[string]string{"nodes list": "sortkey.node_lease", "doctor": "sortkey.layout"} {
			release := hold(t, db, "LOCK TABLE "+table)
			end := start(t, command(t, db, line))
			awaitSession(t, probe, waits)
			db.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sortkey' AND datname = current_database()")
			wantFailure(t, end(), 2, "terminating connection due to administrator command")
			release()
		}
	})
}

// interrupt interrupts a command and checks that it leaves nothing on the server.
func interrupt(t *testing.T, probe *pgx.Conn, c *exec.Cmd, end func() result) {
	t.Helper()
	pgtest.Must(t, c.Process.Signal(syscall.SIGINT))
	r := end()
	wantFailure(t, r, 130)
	wantSame(t, r.errs, "sortkey: interrupted\n")
	pgtest.Eventually(t, "the command has no session", func() error {
		if s := sessions(t, probe, "true"); len(s) > 0 {
			return fmt.Errorf("sessions %q", s)
		}
		return nil
	})
}

// An interrupt ends a command that waits for another session, and holds no locks.
func TestInterrupt(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		probe := db.Conn(t)
		t.Run("migrate", func(t *testing.T) {
			defer hold(t, db, "SELECT pg_advisory_lock(hashtextextended('sortkey migrations of keys', 0))")()
			up := command(t, db, "migrate up --schema keys")
			end := start(t, up)
			awaitSession(t, probe, waits)
			interrupt(t, probe, up, end)
		})

		// Run prints each step when it is done.
		t.Run("partitions", func(t *testing.T) {
			db.Exec(t, managedEvents("events", ", default_partition => false, retention => '1 day'")+oldPartition("events"))
			defer hold(t, db, "SELECT FROM events")()
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			pgtest.Must(t, err)
			defer out.Close()
			run := command(t, db, "partitions run --lock-timeout 24h")
			run.Stdout = out
			end := start(t, run)
			awaitSession(t, probe, waits)
			wantSteps := func() {
				t.Helper()
				text, err := os.ReadFile(out.Name())
				pgtest.Must(t, err)
				wantMatch(t, string(text), `\A(create public\.events_p.*\n){5}\z`)
			}
			wantSteps()
			interrupt(t, probe, run, end)
			wantSteps()
		})

		t.Run("audit", func(t *testing.T) {
			db.Exec(t, "CREATE TABLE big (id bigint PRIMARY KEY)")
			defer hold(t, db, "LOCK TABLE big")()
			c := command(t, db, "audit big --type snowflake")
			end := start(t, c)
			awaitSession(t, probe, waits)
			interrupt(t, probe, c, end)
		})
	})
}

// If the reader of its output ends, the command ends with SIGPIPE, as others do.
func TestEndOfPipe(t *testing.T) {
	r := finish(t, exec.Command("bash", "-c", `"$0" new -n 1000000 | head -1 >/dev/null; echo "${PIPESTATUS[@]}"`, pgtest.Command(t)))
	wantSame(t, r, result{out: "141 0\n"})
}
