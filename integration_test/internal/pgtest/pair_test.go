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
			t.Errorf("choosePair(%s): expected %s, got %s", asked, want, got)
		}
	}
}

// A cut blocks new connections between the servers, but clients can still connect. The
// tests of package multiwriter show that it blocks existing connections too.
func TestOnePair(t *testing.T) {
	ThoroughOnly(t) // otherwise the tests of package multiwriter cover it
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
			t.Errorf("expected wal_level logical on both servers, got %s", got)
		}
		for range 2 {
			link.Cut(t, b)
			if err := at(a, "SELECT dblink_connect("+remote+")"); err == nil {
				t.Error("connected through the cut, expected an error")
			}
			for _, db := range []*DB{a, b} {
				if err := at(db, "SELECT 1"); err != nil {
					t.Errorf("a server doesn't answer a client during the cut: %v", err)
				}
			}
			link.Heal(t, b)
			Eventually(t, "one server reaches the other", func() error { return at(a, "SELECT dblink_connect("+remote+")") })
		}
	})
}

// The networks of a killed test process are removed after its containers.
func TestNetworksAreRemoved(t *testing.T) {
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
		t.Fatal("the server is only in Docker's default network")
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err := cmd.Wait(); err == nil {
		t.Error("the process succeeded, expected a failure")
	}
	Eventually(t, "the network is removed", func() error {
		_, err := Docker(t).NetworkInspect(t.Context(), link, client.NetworkInspectOptions{})
		if err == nil {
			return fmt.Errorf("network %.12s exists", link)
		}
		if !errdefs.IsNotFound(err) {
			return err
		}
		return nil
	})
}
