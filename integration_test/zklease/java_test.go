package zklease

import (
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

// holdBack is how long the Java program keeps a number blocked after its release.
const holdBack = 2 * time.Second

// A java acts as a process of the Java program in ZooKeeper.
type java struct {
	*zk.Conn
	t    testing.TB
	root string
}

var (
	anyone     = zk.WorldACL(zk.PermAll)
	lockTicket = "nr-00000000000000"
)

// begin creates the znodes that the Java program creates at its first start.
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

// take creates an ephemeral znode.
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

// atLeisure claims a number of a pool that the Java program may share. If a call takes more
// than holdBack, on a busy machine, the next one may have to wait.
func atLeisure(t testing.TB, s nodelease.Store, p nodelease.Pool) (c nodelease.Claim) {
	t.Helper()
	pgtest.Eventually(t, "a number is granted", func() (err error) {
		c, err = s.Claim(within(t, patience), p, request())
		return err
	})
	return c
}

// testJava tests both programs on one root.
func testJava(t *testing.T, server *zktest.Server) {
	p := nodelease.ForSpread64(3)
	at := func(t *testing.T, root string) *client {
		t.Helper()
		return open(t, server, zklease.Config{Roots: map[string]string{p.Name: root}})
	}
	// setup gives each test a root of its own.
	setup := func(t *testing.T) (java, *client) {
		t.Helper()
		root := "/org/example/" + strings.ToLower(crand.Text())
		return java{server.Conn(t), t, root}, at(t, root)
	}

	t.Run("the cluster is written and compared", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		atLeisure(t, s, p)
		if data, _, err := j.Get(j.root + "/cluster-id"); err != nil || string(data) != "3" {
			t.Errorf("expected cluster 3, got %q, %v", data, err)
		}
		other, s := setup(t)
		other.begin("4")
		_, err := s.Claim(within(t, patience), p, request())
		pgtest.Fails(t, err, nodelease.ErrPoolMismatch, "cluster 3", `"4"`)
		if names := children(t, other.Conn, other.root); len(names) != 3 {
			t.Errorf("expected no new znodes, got %q", names)
		}
	})

	t.Run("other pools have no cluster", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("4")
		claim(t, s, nodelease.Pool{Name: p.Name, Size: 64, Layout: "not of clusters"}, request())
	})

	t.Run("the Java program's claims are respected", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		for n := range 63 {
			j.take(fmt.Sprintf("/pool/%d", n))
		}
		if left := isBusy(t, s, p, 64, 0); left <= 0 || left > holdBack {
			t.Errorf("expected number 63 within %v, got %v", holdBack, left)
		}
		c := atLeisure(t, s, p)
		if c.Number != 63 || c.After != 0 {
			t.Errorf("expected number 63, got %+v", c)
		}
		isEmpty(t, j.Conn, j.root+"/queue")
		if names := children(t, j.Conn, j.root+"/pool"); len(names) != 64 {
			t.Errorf("expected the Java program to see 64 numbers held, got %q", names)
		}
		if left := isBusy(t, s, p, 64, 0); left != 0 {
			t.Errorf("expected an unknown RetryAfter, got %v", left)
		}
	})

	t.Run("the Java program's releases block a number for two seconds", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		for n := range 64 {
			j.take(fmt.Sprintf("/pool/%d", n))
		}
		isBusy(t, s, p, 64, 0)
		begun := time.Now()
		j.giveBack("/pool/5")
		k, err := nodelease.Acquire(within(t, patience), s, p, nodelease.Options{Wait: patience})
		must(t, err)
		if rested := time.Since(begun); k.Number() != 5 || rested < holdBack {
			t.Errorf("expected number 5 after %v, got %d after %v", holdBack, k.Number(), rested)
		}
		must(t, k.Close())
	})

	t.Run("no wait if no Java process can have released a number", func(t *testing.T) {
		t.Parallel()
		// prompt reports whether a call that claims a number took less than holdBack. Then the
		// claim must have succeeded.
		prompt := func(s *client) (c nodelease.Claim, ok bool) {
			t.Helper()
			sent := time.Now()
			c, err := s.Claim(within(t, patience), p, request())
			if time.Since(sent) >= holdBack {
				return c, false
			}
			must(t, err)
			return c, true
		}
		// scenario returns false if the machine was too busy for it.
		scenario := func() bool {
			j, s := setup(t)
			j.begin("3")
			// The pool has never had a claim.
			first, ok := prompt(s)
			if !ok {
				return false
			}
			// Our own release was the last change.
			release(t, s, p, first, first.After)
			isEmpty(t, j.Conn, j.root+"/pool")
			other := at(t, j.root)
			again, ok := prompt(other)
			if !ok {
				return false
			}
			if again.Number != first.Number {
				t.Errorf("expected number %d again, got %+v", first.Number, again)
			}
			// A renewal more than two seconds ago, and no change since.
			renew(t, other, p, again, request())
			time.Sleep(holdBack + 100*time.Millisecond)
			if _, ok := prompt(at(t, j.root)); !ok {
				return false
			}
			// That claim was a change, so the next claim waits, even after a new renewal.
			begun := time.Now()
			renew(t, other, p, again, request())
			_, err := at(t, j.root).Claim(within(t, patience), p, request())
			if time.Since(begun) >= holdBack {
				return false // the claim may have succeeded after two seconds
			}
			var busy *nodelease.BusyError
			if !errors.As(err, &busy) || busy.Held != 64 {
				t.Errorf("want 64 numbers to be held, got %v", err)
			}
			return true
		}
		for begun := time.Now(); !scenario(); {
			if time.Since(begun) > 5*patience {
				t.Fatalf("the machine is too busy: a claim takes more than %v", holdBack)
			}
		}
	})

	t.Run("a release blocks the number for the Java program only", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		c := atLeisure(t, s, p)
		// Release doesn't wait for the two seconds, and another session claims the number at
		// once. Repeat both if the machine was so busy that they took as long anyway, with a
		// session that hasn't seen other numbers free for two seconds.
		var other *client
		var next nodelease.Claim
		for {
			other = at(t, j.root)
			sent := time.Now()
			release(t, s, p, c, c.After)
			superseded(t, s, p, c)
			var err error
			next, err = other.Claim(within(t, patience), p, request())
			if time.Since(sent) < holdBack {
				if err != nil || next.Number != c.Number || next.Term <= c.Term {
					t.Fatalf("expected number %d at once, got %+v, %v", c.Number, next, err)
				}
				break
			}
			if err == nil {
				release(t, other, p, next, next.After)
			}
			c = atLeisure(t, s, p)
		}
		// It holds the number for more than two seconds.
		time.Sleep(holdBack + 300*time.Millisecond)
		next = renew(t, other, p, next, request())
		s.Close()
		// Close waits until the two seconds are over.
		sent := time.Now()
		release(t, other, p, next, next.After)
		go other.Close()
		pgtest.Eventually(t, "the number is free for the Java program", func() error {
			exists, _, err := j.Exists(fmt.Sprintf("%s/pool/%d", j.root, next.Number))
			if exists {
				err = errors.New("its znode still exists")
			}
			return err
		})
		if rested := time.Since(sent); rested < holdBack {
			t.Errorf("expected the number to stay blocked for %v, got %v", holdBack, rested)
		}
	})

	t.Run("the Java program claims a number after its session expired", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		c := atLeisure(t, s, p)
		path := fmt.Sprintf("/pool/%d", c.Number)
		j.giveBack(path) // as at the end of the session
		j.take(path)
		superseded(t, s, p, c)
		release(t, s, p, c, c.After)
		if exists, _, err := j.Exists(j.root + path); err != nil || !exists {
			t.Errorf("expected the Java program's claim to stay, got %v, %v", exists, err)
		}
		for n := range 64 {
			if n != c.Number {
				j.take(fmt.Sprintf("/pool/%d", n))
			}
		}
		isBusy(t, s, p, 64, 0)
	})

	t.Run("the Java program's lock doesn't delay a claim", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		j.begin("3")
		// One process has the lock, and another one waits.
		j.take("/queue/" + lockTicket)
		j.take(fmt.Sprintf("/queue/nr-%014d-0000", time.Now().UnixMilli()))
		c := atLeisure(t, s, p)
		// The process with the lock takes the next number if the znode of one exists.
		_, err := j.Create(fmt.Sprintf("%s/pool/%d", j.root, c.Number), nil, zk.FlagEphemeral, anyone)
		pgtest.Fails(t, err, zk.ErrNodeExists)
		if names := children(t, j.Conn, j.root+"/queue"); len(names) != 2 {
			t.Errorf("expected an unchanged queue, got %q", names)
		}
	})

	t.Run("a claim that took two seconds is undone and made again", func(t *testing.T) {
		t.Parallel()
		j, s := setup(t)
		s.hold()
		claimed := make(chan nodelease.Claim, 1)
		ctx := within(t, patience)
		go func() {
			c, err := s.Claim(ctx, p, request())
			if err != nil {
				t.Error(err)
			}
			claimed <- c
		}()
		// The claim has a znode, and its process doesn't get the answer.
		var first string
		pgtest.Eventually(t, "the claim has a znode", func() error {
			names, _, err := j.Children(j.root + "/pool")
			if err == nil && len(names) != 1 {
				err = fmt.Errorf("the pool has %q", names)
			}
			if err == nil {
				first = names[0]
			}
			return err
		})
		time.Sleep(holdBack)
		s.proceed()
		if c := <-claimed; fmt.Sprint(c.Number) == first {
			t.Errorf("expected another number than %s, which a Java process may have had meanwhile, got %+v", first, c)
		}
		if data, _, err := j.Get(j.root + "/high-water-mark/" + first); err != nil || !strings.Contains(string(data), `"holder":"","nonce":"","after":0,"until":0`) {
			t.Errorf("expected number %s to be released at its earlier high-water mark, got %s, %v", first, data, err)
		}
	})
}
