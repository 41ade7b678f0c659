//go:build unix

package pgtest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"
)

func TestChoosePair(t *testing.T) {
	for asked, want := range map[string]string{"17": "17", "15 17 18": "18", "18 15": "18", "15": "17", "15 16": "16"} {
		if got := choosePair(strings.Fields(asked)); got != want {
			t.Errorf("of %s: expected %s, got %s", asked, want, got)
		}
	}
}

// A cut is one between the servers: no new connection gets through, nor, as the
// tests of package multiwriter have it, do those that there are. Clients go on.
func TestOnePair(t *testing.T) {
	ThoroughOnly(t) // elsewhere the tests of package multiwriter show it
	t.Parallel()
	OnePair(t, func(t *testing.T, a, b *DB, link *Link) {
		remote := fmt.Sprintf("'%s&connect_timeout=2'", link.URL(t, b))
		at := func(db *DB, statement string) error {
			conn, err := pgx.Connect(t.Context(), db.URL)
			if err != nil {
				return err
			}
			defer conn.Close(t.Context())
			_, err = conn.Exec(t.Context(), statement)
			return err
		}
		a.Exec(t, "CREATE EXTENSION dblink; CREATE TABLE here AS SELECT 1; SELECT * FROM dblink("+remote+", 'CREATE TABLE there AS SELECT 1') AS t(tag text)")
		b.Exec(t, "SELECT * FROM there")
		level := func(db *DB) (v string) {
			if err := db.Conn(t).QueryRow(t.Context(), "SHOW wal_level").Scan(&v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		if got := level(a) + " " + level(b); got != "logical logical" {
			t.Errorf("expected both servers to have logs for logical replication, got %s", got)
		}
		for range 2 {
			link.Cut(t, b)
			if err := at(a, "SELECT dblink_connect("+remote+")"); err == nil {
				t.Error("expected no connection through the cut, got one")
			}
			for _, db := range []*DB{a, b} {
				if err := at(db, "SELECT 1"); err != nil {
					t.Errorf("expected both servers to answer clients meanwhile, got %v", err)
				}
			}
			link.Heal(t, b)
			Eventually(t, "one server reaches the other", func() error { return at(a, "SELECT dblink_connect("+remote+")") })
		}
	})
}

// Networks go as containers do, when these have gone.
func TestNoNetworkStaysBehind(t *testing.T) {
	ThoroughOnly(t)
	NeedsContainers(t)
	t.Parallel()
	cmd := misbehave(t, "TestPair")
	server, err := Docker(t).ContainerInspect(t.Context(), waitForLine(t, cmd, "container "), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var link string
	for name, n := range server.Container.NetworkSettings.Networks {
		if name != bridge {
			link = n.NetworkID
		}
	}
	if link == "" {
		t.Fatal("expected the server to be in a network besides the one of all containers, got none")
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err := cmd.Wait(); err == nil {
		t.Error("expected the process to fail, it didn't")
	}
	Eventually(t, "the network goes", func() error {
		_, err := Docker(t).NetworkInspect(t.Context(), link, client.NetworkInspectOptions{})
		if err == nil {
			return fmt.Errorf("network %.12s is there", link)
		}
		if !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	})
}
