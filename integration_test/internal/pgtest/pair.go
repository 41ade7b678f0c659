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

// pairVersion is the first version whose subscriptions can leave out what the
// publisher has from elsewhere, without which two servers that replicate both
// ways would send each other's rows back.
const pairVersion = 16

// OnePair is [EachServer] with two servers, on the last of the versions only.
// Each has an empty database of its own, and its write-ahead log is fit for
// logical replication. They reach one another by a link. Where only versions
// before 16 are asked for, it runs on 17. Their data is in memory.
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

// choosePair gives the last version that two servers can be had of.
func choosePair(asked []string) string {
	chosen := defaultVersion
	for _, v := range asked {
		if n, err := strconv.Atoi(v); err == nil && n >= pairVersion {
			chosen = v
		}
	}
	return chosen
}

// A Link is a network that servers have for themselves, beside the one through
// which the test reaches them. When a server is cut from it, the others don't
// reach that server any more, and clients do.
type Link struct {
	id string
}

// newLink makes one that goes when the test ends, after the containers in it.
func newLink(t testing.TB) *Link {
	t.Helper()
	docker := Docker(t)
	session, err := watchedSession()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), adminTimeout)
	defer cancel()
	// An internal network never becomes a container's way to the outside, through
	// which its ports are published.
	n, err := docker.NetworkCreate(ctx, fmt.Sprintf("sortkey-test-%s-%d", session, databases.Add(1)), client.NetworkCreateOptions{
		Internal: true,
		Labels:   map[string]string{sessionLabel: session},
	})
	if err != nil {
		t.Fatalf("expected a network: %v", err)
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
		return fmt.Errorf("network %.12s stays behind: %w", id, err)
	}
	return nil
}

// join has the others in the link find a server by a name, which stays the same
// when the server's address changes.
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

// linkName is the name of a server in its link.
func linkName(db *DB) string { return "pg-" + db.Container().GetContainerID()[:12] }

// URL is the URL of a database as other servers in the link see it.
func (l *Link) URL(t testing.TB, db *DB) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = linkName(db) + ":5432"
	return u.String()
}

// Cut cuts a server from the others. Their connections stay as they were, and
// nothing comes through them any more.
func (l *Link) Cut(t testing.TB, db *DB) {
	t.Helper()
	mustFault(t, "cut", func(ctx context.Context, c *client.Client) error {
		_, err := c.NetworkDisconnect(ctx, l.id, client.NetworkDisconnectOptions{Container: db.Container().GetContainerID(), Force: true})
		return err
	})
}

// Heal ends a [Link.Cut]. The server's address may be another one.
func (l *Link) Heal(t testing.TB, db *DB) {
	t.Helper()
	l.join(t, db)
}
