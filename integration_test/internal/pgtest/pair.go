package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"testing"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// pairVersion is the first version with the subscription option origin = none. Without
// it, two servers that replicate both ways would send each other's rows back.
const pairVersion = 16

// OnePair is [OneServer] with two servers. Each server has an empty database and wal_level =
// logical. The servers reach each other over link. If only versions before 16 are requested,
// OnePair runs on 17. The servers' data is in memory.
func OnePair(t *testing.T, f func(t *testing.T, a, b *DB, link *Link)) {
	t.Helper()
	NeedsContainers(t)
	v := choosePair(need(t, containerVersions))
	t.Run("pg"+v, func(t *testing.T) {
		link := newLink(t)
		a, b := ownServer(t, v, logical).newDB(t), ownServer(t, v, logical).newDB(t)
		link.join(t, a)
		link.join(t, b)
		f(t, a, b, link)
	})
}

// choosePair returns the last requested version that is at least pairVersion, or the
// default version.
func choosePair(asked []string) string {
	chosen := defaultVersion
	for _, v := range asked {
		if n, err := strconv.Atoi(v); err == nil && n >= pairVersion {
			chosen = v
		}
	}
	return chosen
}

// A Link is a network between servers, separate from the network through which the test
// reaches them. If a server is cut from the link, the other servers can't reach it, but
// clients can.
type Link struct {
	id string
}

// newLink creates a link and removes it when the test ends, after the containers in it.
func newLink(t testing.TB) *Link {
	t.Helper()
	docker := Docker(t)
	session, err := watchedSession()
	Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), adminTimeout)
	defer cancel()
	// An internal network never becomes a container's default route, which its published
	// ports use.
	n, err := docker.NetworkCreate(ctx, fmt.Sprintf("sortkey-test-%s-%d", session, databases.Add(1)), client.NetworkCreateOptions{
		Internal: true,
		Labels:   map[string]string{sessionLabel: session},
	})
	if err != nil {
		t.Fatalf("create a network: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
		defer cancel()
		if err := removeNetwork(ctx, docker, n.ID); err != nil {
			t.Error(err)
		}
	})
	return &Link{id: n.ID}
}

func removeNetwork(ctx context.Context, c *client.Client, id string) error {
	if _, err := c.NetworkRemove(ctx, id, client.NetworkRemoveOptions{}); err != nil && !isGone(err) {
		return fmt.Errorf("remove network %.12s: %w", id, err)
	}
	return nil
}

// join adds a server to the link under a name, which stays the same if the server's
// address changes.
func (l *Link) join(t testing.TB, db *DB) {
	t.Helper()
	mustFault(t, "link", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkConnect(ctx, l.id, client.NetworkConnectOptions{
			Container:      db.Container().GetContainerID(),
			EndpointConfig: &network.EndpointSettings{Aliases: []string{linkName(db)}},
		})
		return err
	})
}

// linkName returns the name of a server in its link.
func linkName(db *DB) string { return "pg-" + db.Container().GetContainerID()[:12] }

// URL returns the URL of a database for other servers in the link.
func (l *Link) URL(t testing.TB, db *DB) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	Must(t, err)
	u.Host = linkName(db) + ":5432"
	return u.String()
}

// Cut disconnects a server from the link. Connections between the servers stay open, but
// transfer nothing.
func (l *Link) Cut(t testing.TB, db *DB) {
	t.Helper()
	mustFault(t, "cut", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkDisconnect(ctx, l.id, client.NetworkDisconnectOptions{Container: db.Container().GetContainerID(), Force: true})
		return err
	})
}

// Heal ends a [Link.Cut]. The server's address may change.
func (l *Link) Heal(t testing.TB, db *DB) {
	t.Helper()
	l.join(t, db)
}
