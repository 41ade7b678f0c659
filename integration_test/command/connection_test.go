package command_test

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// Errors of the connection have the address and the server's reason, and not the
// password.
func TestConnectionErrors(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		u, err := url.Parse(db.URL)
		pgtest.Must(t, err)
		user := u.User
		place := "sortkey: connect to " + u.Host + " as "
		u.User = url.UserPassword(user.Username(), "hunter2")
		r := sortkey(t, nil, "migrate", "status", "--database", u.String())
		if !strings.HasPrefix(r.errs, place+user.Username()+", database "+db.Name+": FATAL: password authentication failed") ||
			strings.Contains(r.errs, "tls") || strings.Contains(r.errs, "hunter2") || r.code != 2 {
			t.Errorf("wrong password: got %+v", r)
		}
		u.User, u.Path = user, "/missing"
		r = sortkey(t, nil, "migrate", "status", "--database", u.String())
		if r.code != 2 || !strings.HasPrefix(r.errs, place+user.Username()+`, database missing: FATAL: database "missing" does not exist (SQLSTATE 3D000); check the name`) {
			t.Errorf("missing database: got %+v", r)
		}
	})
}

// A command whose connection the server ends fails.
func TestLostConnection(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate", "up")
		conn := db.SQL(t)
		tx, err := conn.BeginTx(t.Context(), nil)
		pgtest.Must(t, err)
		defer func() { _ = tx.Rollback() }()
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE sortkey.node_lease IN ACCESS EXCLUSIVE MODE")
		pgtest.Must(t, err)
		results := make(chan result)
		go func() { results <- sortkey(t, db, "nodes", "list") }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for ended := 0; ended == 0; time.Sleep(10 * time.Millisecond) {
			pgtest.Must(t, conn.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = 'sortkey' AND datname = current_database() AND wait_event_type = 'Lock'`).Scan(&ended))
		}
		if r := <-results; r.code != 2 || r.out != "" || !strings.Contains(r.errs, "terminating connection due to administrator command") {
			t.Errorf("got %+v", r)
		}
	})
}

// If the reader of its output ends, the command ends with SIGPIPE, as others do.
func TestEndOfPipe(t *testing.T) {
	r := finish(t, exec.Command("bash", "-c", `"$0" new -n 1000000 | head -1 >/dev/null; echo "${PIPESTATUS[@]}"`, binary))
	if r.out != "141 0\n" || r.errs != "" {
		t.Errorf("got %+v", r)
	}
}

// A note can't forge a row.
func TestForgedRow(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate", "up")
		must(t, db, "nodes", "reserve", "sno", "7", "--note", "x\x1b[2K\nsno  8  held")
		if out := must(t, db, "nodes", "list", "sno"); !strings.Contains(out, `x\u001b[2K\nsno  8  held`) || strings.Count(out, "\n") != 2 {
			t.Errorf("got\n%s", out)
		}
	})
}
