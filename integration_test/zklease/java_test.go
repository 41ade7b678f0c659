package zklease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// holdBack is how long the Java program wants its numbers to rest.
const holdBack = 2 * time.Second

// A java is what a process of the Java program is to ZooKeeper.
type java struct {
	*zk.Conn
	t    testing.TB
	root string
}

var (
	anyone     = zk.WorldACL(zk.PermAll)
	lockTicket = "nr-00000000000000"
)

// begin makes what the Java program does when it is first started.
func (j java) begin(cluster string) {
	j.t.Helper()
	path := ""
	for _, name := range strings.Split(j.root[1:], "/") {
		path += "/" + name
		j.keep(path, "")
	}
	j.keep(j.root+"/cluster-id", cluster)
	j.keep(j.root+"/queue", "")
	j.keep(j.root+"/pool", "")
}

func (j java) keep(path, data string) {
	j.t.Helper()
	if _, err := j.Create(path, []byte(data), 0, anyone); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		j.t.Fatal(err)
	}
}

// take makes an ephemeral znode.
func (j java) take(path string) {
	j.t.Helper()
	if _, err := j.Create(j.root+path, nil, zk.FlagEphemeral, anyone); err != nil {
		j.t.Fatalf("%s: %v", path, err)
	}
}

func (j java) giveBack(path string) {
	j.t.Helper()
	if err := j.Delete(j.root+path, -1); err != nil {
		j.t.Fatalf("%s: %v", path, err)
	}
}

// testJava: both programs on one root.
func testJava(t *testing.T, server *zktest.Server) {
	p := nodelease.ForSpread64(3)
	// each test has a root of its own.
	setup := func(t *testing.T) (java, *client) {
		t.Helper()
		root := "/org/example/" + strings.ToLower(crand.Text())
		s := open(t, server, zklease.Config{Roots: map[string]string{p.Name: root}})
		return java{server.Conn(t), t, root}, s
	}
	// frees claims where there is no number yet, and gives for how long.
	frees := func(t *testing.T, s nodelease.Store, held int) time.Duration {
		t.Helper()
		got, err := s.Claim(within(t, patience), p, request())
		var busy *nodelease.BusyError
		if !errors.As(err, &busy) || busy.Held != held {
			t.Fatalf("expected %d numbers to be held, got %+v, %v", held, got, err)
		}
		return busy.RetryAfter
	}

	t.Run("the cluster is written and compared", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		claim(t, s, p, request())
		if data, _, err := j.Get(j.root + "/cluster-id"); err != nil || string(data) != "3" {
			t.Errorf("expected cluster 3, got %q, %v", data, err)
		}
		other, s := setup(t)
		other.begin("4")
		got, err := s.Claim(within(t, patience), p, request())
		if !errors.Is(err, nodelease.ErrPoolMismatch) || !strings.Contains(err.Error(), "cluster 3") || !strings.Contains(err.Error(), `"4"`) {
			t.Errorf("expected %v for clusters 3 and 4, got %+v, %v", nodelease.ErrPoolMismatch, got, err)
		}
		if names := children(t, other.Conn, other.root); len(names) != 3 {
			t.Errorf("expected nothing to be made, got %q", names)
		}
	})

	t.Run("other pools have no cluster", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("4")
		claim(t, s, nodelease.Pool{Name: p.Name, Size: 64, Layout: "not of clusters"}, request())
	})

	t.Run("its root, its queue, its numbers", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		for n := range 63 {
			j.take(fmt.Sprintf("/pool/%d", n))
		}
		if left := frees(t, s, 64); left <= 0 || left > holdBack {
			t.Errorf("expected number 63 within %v, got %v", holdBack, left)
		}
		var c nodelease.Claim
		pgtest.Eventually(t, "number 63 is free", func() (err error) {
			c, err = s.Claim(within(t, patience), p, request())
			return err
		})
		if c.Number != 63 || c.After != 0 {
			t.Errorf("expected number 63, got %+v", c)
		}
		isEmpty(t, j.Conn, j.root+"/queue")
		if names := children(t, j.Conn, j.root+"/pool"); len(names) != 64 {
			t.Errorf("expected that program to see 64 numbers held, got %q", names)
		}
		if left := frees(t, s, 64); left != 0 {
			t.Errorf("expected no guess when a number is free, got %v", left)
		}
	})

	t.Run("its release is respected", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		for n := range 64 {
			j.take(fmt.Sprintf("/pool/%d", n))
		}
		frees(t, s, 64)
		begun := time.Now()
		j.giveBack("/pool/5")
		k, err := nodelease.Acquire(within(t, patience), s, p, nodelease.Options{Wait: patience})
		if err != nil {
			t.Fatal(err)
		}
		if rested := time.Since(begun); k.Number() != 5 || rested < holdBack {
			t.Errorf("expected number 5 after %v, got %d after %v", holdBack, k.Number(), rested)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})

	t.Run("nothing to respect", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		// There never was a claim.
		first := claim(t, s, p, request())
		// Our own release was the last change.
		if err := s.Release(within(t, patience), p, first, first.After); err != nil {
			t.Fatal(err)
		}
		isEmpty(t, j.Conn, j.root+"/pool")
		other := open(t, server, zklease.Config{Roots: map[string]string{p.Name: j.root}})
		again := claim(t, other, p, request())
		if again.Number != first.Number {
			t.Errorf("expected number %d again, got %+v", first.Number, again)
		}
		// A renewal shows that nothing has changed for long.
		if _, err := other.Renew(within(t, patience), p, again, request()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(holdBack + 100*time.Millisecond)
		claim(t, open(t, server, zklease.Config{Roots: map[string]string{p.Name: j.root}}), p, request())
		// After which there was a change. Nor does a renewal help that came later.
		for begun := time.Now(); ; begun = time.Now() {
			if _, err := other.Renew(within(t, patience), p, again, request()); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, server, zklease.Config{Roots: map[string]string{p.Name: j.root}}).Claim(within(t, patience), p, request())
			if time.Since(begun) >= holdBack {
				continue // that claim may have been late enough
			}
			var busy *nodelease.BusyError
			if !errors.As(err, &busy) || busy.Held != 64 {
				t.Errorf("want 64 numbers to be held, got %v", err)
			}
			break
		}
	})

	t.Run("our release rests for it, and not for us", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		c := claim(t, s, p, request())
		path := fmt.Sprintf("%s/pool/%d", j.root, c.Number)
		// The release is for others to wait for. On a busy machine it may take as long
		// by itself.
		for sent := time.Now(); ; sent = time.Now() {
			if err := s.Release(within(t, patience), p, c, c.After); err != nil {
				t.Fatal(err)
			}
			if time.Since(sent) < holdBack {
				break
			}
			c = claim(t, s, p, request())
		}
		if got, err := s.Renew(within(t, patience), p, c, request()); !errors.Is(err, nodelease.ErrSuperseded) {
			t.Errorf("expected %v, got %+v, %v", nodelease.ErrSuperseded, got, err)
		}
		// In another session, and for longer than it would have rested.
		other := open(t, server, zklease.Config{Roots: map[string]string{p.Name: j.root}})
		next := claim(t, other, p, request())
		if next.Number != c.Number || next.Term <= c.Term {
			t.Errorf("expected number %d at once, got %+v", c.Number, next)
		}
		time.Sleep(holdBack + 300*time.Millisecond)
		next, err := other.Renew(within(t, patience), p, next, request())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		// At the end the store waits for the rest.
		sent := time.Now()
		if err := other.Release(within(t, patience), p, next, next.After); err != nil {
			t.Fatal(err)
		}
		go other.Close()
		pgtest.Eventually(t, "the number is free for that program", func() error {
			exists, _, err := j.Exists(path)
			if exists {
				err = errors.New("it isn't")
			}
			return err
		})
		if rested := time.Since(sent); rested < holdBack {
			t.Errorf("expected the number to rest for %v, got %v", holdBack, rested)
		}
	})

	t.Run("a number that it took after an expiry", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		c := claim(t, s, p, request())
		path := fmt.Sprintf("/pool/%d", c.Number)
		j.giveBack(path) // as the end of the session does
		j.take(path)
		if got, err := s.Renew(within(t, patience), p, c, request()); !errors.Is(err, nodelease.ErrSuperseded) {
			t.Errorf("expected %v, got %+v, %v", nodelease.ErrSuperseded, got, err)
		}
		if err := s.Release(within(t, patience), p, c, c.After); err != nil {
			t.Error(err)
		}
		if exists, _, err := j.Exists(j.root + path); err != nil || !exists {
			t.Errorf("expected its claim to stand, got %v, %v", exists, err)
		}
		for n := range 64 {
			if n != c.Number {
				j.take(fmt.Sprintf("/pool/%d", n))
			}
		}
		frees(t, s, 64)
	})

	t.Run("its lock", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		j.take("/queue/" + lockTicket)
		// Without a deadline it waits for half the TTL.
		begun, r := time.Now(), request()
		r.TTL = 4 * time.Second
		got, err := s.Claim(context.Background(), p, r)
		var busy *nodelease.BusyError
		if !errors.As(err, &busy) || !strings.Contains(err.Error(), j.root+"/queue/"+lockTicket) {
			t.Errorf("expected an error that names the lock, got %+v, %v", got, err)
		}
		if took := time.Since(begun); took < r.TTL/2 {
			t.Errorf("expected to wait for %v, got %v", r.TTL/2, took)
		}
		pgtest.Eventually(t, "nothing of ours is left", func() error {
			if names := children(t, j.Conn, j.root+"/queue"); len(names) != 1 || names[0] != lockTicket {
				return fmt.Errorf("there is %q", names)
			}
			return nil
		})
		// Acquire goes on trying.
		time.AfterFunc(1500*time.Millisecond, func() { _ = j.Delete(j.root+"/queue/"+lockTicket, -1) })
		k, err := nodelease.Acquire(within(t, patience), s, p, nodelease.Options{Wait: patience})
		if err != nil {
			t.Fatal(err)
		}
		isEmpty(t, j.Conn, j.root+"/queue")
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})

	t.Run("places in the queue", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		ahead := fmt.Sprintf("/queue/nr-%014d-0000", time.Now().Add(-time.Minute).UnixMilli())
		j.take(ahead)
		claimed := make(chan error, 1)
		go func() {
			_, err := s.Claim(within(t, patience), p, request())
			claimed <- err
		}()
		pgtest.Eventually(t, "there are two in the queue", func() error {
			if names := children(t, j.Conn, j.root+"/queue"); len(names) != 2 {
				return fmt.Errorf("there is %q", names)
			}
			return nil
		})
		// Who is first takes the lock and gives the ticket back.
		j.take("/queue/" + lockTicket)
		j.giveBack(ahead)
		select {
		case err := <-claimed:
			t.Errorf("expected to wait for the lock, got %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		j.giveBack("/queue/" + lockTicket)
		if err := <-claimed; err != nil {
			t.Error(err)
		}
	})
}

// The ticket of a process that died while it was in the queue goes with its
// session.
func testDeadInTheQueue(t *testing.T, server *zktest.Server) {
	p := newPool(2)
	conn := server.Conn(t)
	claim(t, open(t, server, zklease.Config{}), p, request()) // so that the pool is there
	lock := rootOf(p) + "/queue/" + lockTicket
	if _, err := conn.Create(lock, nil, zk.FlagEphemeral, anyone); err != nil {
		t.Fatal(err)
	}
	dead := open(t, server, zklease.Config{SessionTimeout: brief})
	within := within(t, patience)
	go func() { _, _ = dead.Claim(within, p, request()) }()
	pgtest.Eventually(t, "it is in the queue", func() error {
		if names := children(t, conn, rootOf(p)+"/queue"); len(names) != 2 {
			return fmt.Errorf("there is %q", names)
		}
		return nil
	})
	dead.disconnect()
	if err := conn.Delete(lock, -1); err != nil {
		t.Fatal(err)
	}
	claim(t, open(t, server, zklease.Config{}), p, request())
}
