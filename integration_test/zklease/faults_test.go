package zklease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// newPool returns a pool with a unique name.
func newPool(size int) nodelease.Pool {
	return nodelease.Pool{Name: "test-" + strings.ToLower(crand.Text()), Size: size, Layout: "made up"}
}

func rootOf(p nodelease.Pool) string { return "/sortkey/" + p.Name }

// request returns the request of a new holder at the current time.
func request() nodelease.Request {
	now := time.Now().UnixMilli()
	return nodelease.Request{Holder: "test " + crand.Text(), TTL: time.Minute, Now: now, Until: now + 1000}
}

// patience is the time limit of calls that must succeed.
const patience = 5 * time.Minute

// within returns a context for one call.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// claim claims a number, and fails the test if it can't.
func claim(t testing.TB, s nodelease.Store, p nodelease.Pool, r nodelease.Request) nodelease.Claim {
	t.Helper()
	c, err := s.Claim(within(t, patience), p, r)
	must(t, err)
	return c
}

// release releases a claim, and fails the test if it can't.
func release(t testing.TB, s nodelease.Store, p nodelease.Pool, c nodelease.Claim, mark int64) {
	t.Helper()
	must(t, s.Release(within(t, patience), p, c, mark))
}

// renew renews a claim, and fails the test if it can't.
func renew(t testing.TB, s nodelease.Store, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) nodelease.Claim {
	t.Helper()
	c, err := s.Renew(within(t, patience), p, c, r)
	must(t, err)
	return c
}

// superseded checks that a claim can't be renewed.
func superseded(t testing.TB, s nodelease.Store, p nodelease.Pool, c nodelease.Claim) {
	t.Helper()
	_, err := s.Renew(within(t, patience), p, c, request())
	pgtest.Fails(t, err, nodelease.ErrSuperseded)
}

// isBusy checks that a claim fails because all numbers are held or ahead, and returns how long to wait.
func isBusy(t testing.TB, s nodelease.Store, p nodelease.Pool, held, ahead int) (retryAfter time.Duration) {
	t.Helper()
	got, err := s.Claim(within(t, patience), p, request())
	var busy *nodelease.BusyError
	if !errors.As(err, &busy) || busy.Held != held || busy.Ahead != ahead {
		t.Fatalf("expected %d numbers held and %d ahead, got %+v, %v", held, ahead, got, err)
	}
	return busy.RetryAfter
}

// children returns the names of a znode's children.
func children(t testing.TB, conn *zk.Conn, path string) []string {
	t.Helper()
	names, _, err := conn.Children(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return names
}

// isEmpty waits until a znode has no children.
func isEmpty(t testing.TB, conn *zk.Conn, path string) {
	t.Helper()
	pgtest.Eventually(t, path+" is empty", func() error {
		// The connection may have been lost with the server, so retry after errors.
		names, _, err := conn.Children(path)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("children %q", names)
		}
		return err
	})
}

// A minter is a claim with its generator and the last ID.
type minter struct {
	*nodelease.Keeper
	pool nodelease.Pool
	ids  *idtype.SnowflakeGenerator
	last idtype.Snowflake
}

func acquire(t testing.TB, s nodelease.Store, p nodelease.Pool, o nodelease.Options) *minter {
	t.Helper()
	o.Wait = patience
	k, err := nodelease.Acquire(within(t, patience), s, p, o)
	must(t, err)
	t.Cleanup(func() { k.Close() })
	ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: k}})
	must(t, err)
	return &minter{Keeper: k, pool: p, ids: ids}
}

func (m *minter) mint(t testing.TB) {
	t.Helper()
	for range 100 {
		id, err := m.ids.Next()
		must(t, err)
		m.last = id
	}
}

// isLost waits until the claim is lost, and checks that the generator fails.
func (m *minter) isLost(t testing.TB) {
	t.Helper()
	select {
	case <-m.Lost():
	case <-time.After(2 * time.Minute):
		t.Fatal("expected the claim to be lost")
	}
	if err := m.Err(); !errors.Is(err, idtype.ErrLeaseLost) || errors.Is(err, nodelease.ErrClosed) {
		t.Errorf("expected %v, got %v", idtype.ErrLeaseLost, err)
	}
	_, err := m.ids.Next()
	pgtest.Fails(t, err, idtype.ErrLeaseLost)
}

// lives checks that the znode of the claim exists, so that its session is alive.
// meaning says why that matters.
func (m *minter) lives(t testing.TB, conn *zk.Conn, meaning string) {
	t.Helper()
	path := fmt.Sprintf("%s/pool/%d", rootOf(m.pool), m.Number())
	if exists, _, err := conn.Exists(path); err != nil || !exists {
		t.Errorf("want %s to exist, since that shows that %s; got %v, %v", path, meaning, exists, err)
	}
}

// follows checks that m, a later holder of the number, starts after the IDs of before.
func (m *minter) follows(t testing.TB, before *minter) {
	t.Helper()
	if m.Number() != before.Number() || m.Stats().Term <= before.Stats().Term {
		t.Errorf("expected number %d in a term after %d, got %d in term %d", before.Number(), before.Stats().Term, m.Number(), m.Stats().Term)
	}
	if last := (idtype.SnowflakeLayout{}).Time(before.last).UnixMilli(); m.After() < last {
		t.Errorf("expected a claim after %d, got %d", last, m.After())
	}
	m.mint(t)
}

// A session expires if its client is cut off for the session timeout.
func testExpiry(t *testing.T, server *zktest.Server) {
	p := newPool(1)
	s := open(t, server, zklease.Config{SessionTimeout: expiring})
	first := acquire(t, s, p, nodelease.Options{TTL: expiring})
	first.mint(t)
	s.disconnect()
	first.isLost(t)
	isEmpty(t, server.Conn(t), rootOf(p)+"/pool")

	second := acquire(t, open(t, server, zklease.Config{}), p, nodelease.Options{})
	second.follows(t, first)
	// The first store gets a new session. Its late release changes nothing.
	s.reconnect()
	_, err := s.Claim(within(t, patience), p, request())
	pgtest.Fails(t, err, nodelease.ErrPoolExhausted)
	must(t, first.Close())
	second.mint(t)
	must(t, second.Close())
	third := acquire(t, s, p, nodelease.Options{TTL: expiring})
	third.follows(t, second)
}

// A claim can't be renewed after its session has expired.
func testRenewAfterExpiry(t *testing.T, server *zktest.Server) {
	p := newPool(1)
	s := open(t, server, zklease.Config{SessionTimeout: expiring})
	c := claim(t, s, p, request())
	s.disconnect()
	isEmpty(t, server.Conn(t), rootOf(p)+"/pool")
	s.reconnect()
	superseded(t, s, p, c)
	// A release still writes the high-water mark.
	release(t, s, p, c, c.Until-500)
	r := request()
	r.Now = c.Until
	if next := claim(t, s, p, r); next.After != c.Until-500 || next.Term <= c.Term {
		t.Errorf("expected a claim after %d, got %+v", c.Until-500, next)
	}
}

// A claim that is granted after its call was canceled is released.
func testGivenUp(t *testing.T, server *zktest.Server) {
	p := newPool(1)
	s := open(t, server, zklease.Config{})
	first := claim(t, s, p, request())
	release(t, s, p, first, first.After+7)
	s.hold()
	ctx, cancel := context.WithCancel(t.Context())
	r := request()
	claimed := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, p, r)
		claimed <- err
	}()
	conn := server.Conn(t)
	pgtest.Eventually(t, "the claim has a znode", func() error {
		if names := children(t, conn, rootOf(p)+"/pool"); len(names) != 1 {
			return fmt.Errorf("the pool has %q", names)
		}
		return nil
	})
	cancel()
	pgtest.Fails(t, <-claimed, context.Canceled)
	// A repeated call of the holder waits until the canceled claim is released.
	var next nodelease.Claim
	again := within(t, patience)
	go func() {
		var err error
		next, err = s.Claim(again, p, r)
		claimed <- err
	}()
	s.proceed()
	must(t, <-claimed)
	if next.After != first.After+7 || next.Term != first.Term+2 {
		t.Errorf("expected a claim after %d in term %d, got %+v", first.After+7, first.Term+2, next)
	}
	release(t, s, p, next, next.After)
	isEmpty(t, conn, rootOf(p)+"/pool")
}

// A claim that another store renews moves to the session of that store.
func testMoved(t *testing.T, server *zktest.Server) {
	p := newPool(1)
	from, to := open(t, server, zklease.Config{}), open(t, server, zklease.Config{})
	conn := server.Conn(t)
	c := claim(t, from, p, request())
	path := rootOf(p) + "/pool/0"
	_, before, err := conn.Exists(path)
	must(t, err)
	moved, err := to.Renew(within(t, patience), p, c, request())
	if err != nil || moved.Term != c.Term {
		t.Fatalf("expected a renewal of %+v, got %+v, %v", c, moved, err)
	}
	if exists, after, err := conn.Exists(path); err != nil || !exists || after.EphemeralOwner == before.EphemeralOwner {
		t.Errorf("expected another session than 0x%x, got %+v, %v", before.EphemeralOwner, after, err)
	}
	if again := claim(t, to, p, nodelease.Request{Holder: c.Holder, TTL: time.Minute, Now: c.Until, Until: c.Until + 1000}); again.Term != c.Term {
		t.Errorf("expected the holder's claim %+v, got %+v", c, again)
	}
}

// If the server restarts within the session timeout, claims stay.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	p := newPool(1)
	s := open(t, server, zklease.Config{})
	m := acquire(t, s, p, nodelease.Options{TTL: lasting})
	m.mint(t)
	short := acquire(t, open(t, server, zklease.Config{SessionTimeout: expiring}), newPool(1), nodelease.Options{TTL: expiring})
	short.mint(t)
	q := newPool(1)
	c := claim(t, s, q, request())

	server.Stop(t)
	m.mint(t)
	released := make(chan error, 1)
	go func() { released <- s.Release(within(t, expiring/2), q, c, c.After+7) }()
	short.isLost(t)
	pgtest.Fails(t, <-released, context.DeadlineExceeded)
	server.Start(t)

	m.mint(t)
	// The release continues once the server is back.
	conn := server.Conn(t)
	isEmpty(t, conn, rootOf(q)+"/pool")
	m.lives(t, conn, "the number was released while its session was alive")
	if next := claim(t, s, q, request()); next.After != c.After+7 {
		t.Errorf("expected a claim after %d, got %+v", c.After+7, next)
	}
	must(t, m.Close())
	if stats := m.Stats(); stats.Term != 1 || m.Err() == nil || !errors.Is(m.Err(), nodelease.ErrClosed) {
		t.Errorf("expected the claim to last until Close, in term 1, got %+v, %v", stats, m.Err())
	}
	acquire(t, open(t, server, zklease.Config{}), p, nodelease.Options{}).follows(t, m)
}

// A number that was lost while the server didn't answer is released when the server
// answers again, even if the session is still alive.
func TestLostInALongSession(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	conn := server.Conn(t)
	p := newPool(1)
	s := open(t, server, zklease.Config{})
	other := acquire(t, s, newPool(1), nodelease.Options{TTL: lasting})
	m := acquire(t, s, p, nodelease.Options{TTL: expiring})
	m.mint(t)
	server.Pause(t)
	m.isLost(t)
	server.Unpause(t)
	isEmpty(t, conn, rootOf(p)+"/pool")
	other.lives(t, conn, "the number was released while its session was alive")
	acquire(t, s, p, nodelease.Options{}).follows(t, m)
}

// Calls end with their contexts, even if the server doesn't answer. Their goroutines
// end when the store is closed. Their effects are undone when the server answers.
func TestPaused(t *testing.T) {
	server := zktest.Run(t)
	conn := server.Conn(t)
	p, q, never := newPool(1), newPool(1), newPool(1)
	s := open(t, server, zklease.Config{})
	held := claim(t, s, q, request())
	released := claim(t, s, p, request())
	release(t, s, p, released, released.After+7)
	fresh := open(t, server, zklease.Config{})

	server.Pause(t)
	doomed := open(t, server, zklease.Config{SessionTimeout: brief}) // never connects
	// bounded cancels a call once it has sent a request, or waits for another call that
	// has, and checks that the call returns.
	bounded := func(what string, call func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		before := waiting()
		go func() { ended <- call(ctx) }()
		pgtest.Eventually(t, what+" waits", func() error {
			if waiting() <= before {
				return errors.New("it isn't waiting")
			}
			return nil
		})
		cancel()
		pgtest.Fails(t, fmt.Errorf("%s: %w", what, <-ended), context.Canceled)
	}
	for _, s := range []nodelease.Store{s, fresh, doomed} {
		for _, p := range []nodelease.Pool{p, never} {
			bounded("Claim", func(ctx context.Context) error {
				_, err := s.Claim(ctx, p, request())
				return err
			})
		}
		bounded("Renew", func(ctx context.Context) error {
			_, err := s.Renew(ctx, q, held, request())
			return err
		})
		// Twice: the second call waits for the goroutine of the first.
		for range 2 {
			bounded("Release", func(ctx context.Context) error { return s.Release(ctx, q, held, held.After) })
		}
	}
	// Each connected store has three goroutines: the first claim, a renewal and the first
	// release. The third store has one, for its release.
	if got := underWay(); got < 2*3+1 {
		t.Errorf("expected at least 7 goroutines of the three stores, got %d", got)
	}
	atMost := func(most int) func() error {
		return func() error {
			if got := underWay(); got > most {
				return fmt.Errorf("%d goroutines are left", got)
			}
			return nil
		}
	}
	doomed.Close()
	pgtest.Eventually(t, "the goroutines of the closed store have ended", atMost(2*3))
	server.Unpause(t)

	for _, p := range []nodelease.Pool{p, q} {
		isEmpty(t, conn, rootOf(p)+"/pool")
	}
	pgtest.Eventually(t, "the goroutines of the stores have ended", atMost(0))
	if next := claim(t, s, p, request()); next.After != released.After+7 {
		t.Errorf("expected the unchanged high-water mark %d, got %+v", released.After+7, next)
	}
	if err := doomed.Release(within(t, patience), p, held, 0); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a closed store: expected an error at once, got %v", err)
	}
}

// underWay returns the number of running goroutines that stores have started.
func underWay() int {
	all := stacks()
	return strings.Count(all, "created by github.com/sortkey/sortkey/nodelease/zklease.") + strings.Count(all, "created by github.com/sortkey/sortkey/nodelease/internal/stores.Await")
}

// waiting returns the number of goroutines that wait for an answer or for another call.
func waiting() int {
	all := stacks()
	return strings.Count(all, "zk.(*Conn).request(") + strings.Count(all, "zklease.(*Store).turn(")
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

// Close ends the session. If a claim is left, whose generator may still create IDs, the
// session stays until its timeout.
func testClose(t *testing.T, server *zktest.Server) {
	p := newPool(2)
	conn := server.Conn(t)
	s := open(t, server, zklease.Config{})
	released := claim(t, s, p, request())
	exists, znode, err := conn.Exists(fmt.Sprintf("%s/pool/%d", rootOf(p), released.Number))
	if err != nil || !exists || !server.HasSession(t, znode.EphemeralOwner) {
		t.Fatalf("expected a claim in a session, got %+v, %v", znode, err)
	}
	release(t, s, p, released, 0)
	s.Close()
	if server.HasSession(t, znode.EphemeralOwner) {
		t.Errorf("expected a store to end its session %#x", znode.EphemeralOwner)
	}

	settings := zklease.Config{SessionTimeout: expiring} // the test waits for this long
	s = open(t, server, settings)
	sent := time.Now()
	c := claim(t, s, p, request())
	if c.TTL != settings.SessionTimeout {
		t.Errorf("expected a TTL of %v, the session timeout, got %v", settings.SessionTimeout, c.TTL)
	}
	s.Close()
	s.Close()
	isEmpty(t, conn, rootOf(p)+"/pool")
	if held := time.Since(sent); held < settings.SessionTimeout-10*time.Millisecond {
		t.Errorf("expected the number to be held for %v, got %v", settings.SessionTimeout, held)
	}
}

// The session timeout that the servers grant limits the TTL of a claim.
func testNegotiated(t *testing.T, server *zktest.Server) {
	s := open(t, server, zklease.Config{SessionTimeout: 10 * zktest.MaxSession})
	r := request()
	r.TTL = 5 * zktest.MaxSession
	p := newPool(1)
	c := claim(t, s, p, r)
	if c.TTL != zktest.MaxSession || c.Until != r.Now+(r.Until-r.Now)/5 {
		t.Errorf("expected a claim of %v until %d, got %+v", zktest.MaxSession, r.Now+(r.Until-r.Now)/5, c)
	}
	if c, err := s.Renew(within(t, patience), p, c, r); err != nil || c.TTL != zktest.MaxSession || c.Until != r.Until {
		t.Errorf("expected a renewal for %v until %d, got %+v, %v", zktest.MaxSession, r.Until, c, err)
	}
	r.TTL = 2 * time.Second
	if c, err := s.Renew(within(t, patience), p, c, r); err != nil || c.TTL != r.TTL {
		t.Errorf("expected a renewal for %v, got %+v, %v", r.TTL, c, err)
	}
	if skew := time.Since(c.Time); skew < -patience || skew > patience {
		t.Errorf("expected a time within %v of this clock's, got %v", patience, c.Time)
	}
}

// If connections are lost with requests and answers, no number is granted twice, and
// none stays held without a holder that knows it.
func testCutConnections(t *testing.T, server *zktest.Server) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := newPool(6)
	type stretch struct{ after, end int64 }
	var (
		mu    sync.Mutex
		terms = map[[2]int64]string{}
		last  = map[int]stretch{} // the stretch of each number's latest term
		count atomic.Int64
	)
	const enough = 200
	gaveUp := time.Now().Add(10 * patience) // a claim can wait a second for its connection
	goesOn := func() bool { return count.Load() < enough && time.Now().Before(gaveUp) && !t.Failed() }
	var group sync.WaitGroup
	for i := range uint64(6) {
		s := open(t, server, zklease.Config{})
		var answers atomic.Int64 // to claims of s
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, i))
			// On a machine so slow that no claim gets an answer between two cuts, they become rarer.
			const usual, rarest = 200 * time.Millisecond, 20 * time.Second
			longest := usual
			for seen := int64(0); goesOn(); {
				time.Sleep(time.Duration(r.Int64N(int64(longest))))
				s.disconnect()
				s.reconnect()
				if n := answers.Load(); n > seen {
					seen, longest = n, usual
				} else {
					longest = min(longest*5/4, rarest)
				}
			}
		})
		for range 2 {
			group.Go(func() {
				for goesOn() {
					q := request()
					c, err := s.Claim(within(t, patience), p, q)
					if busy := (*nodelease.BusyError)(nil); errors.As(err, &busy) {
						answers.Add(1)
						time.Sleep(5 * time.Millisecond)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					answers.Add(1)
					mu.Lock()
					count.Add(1)
					if other, ok := terms[[2]int64{int64(c.Number), c.Term}]; ok && other != c.Holder {
						t.Errorf("term %d of number %d was granted twice", c.Term, c.Number)
					}
					terms[[2]int64{int64(c.Number), c.Term}] = c.Holder
					if c.After < last[c.Number].end {
						t.Errorf("expected a claim after %d, got %+v", last[c.Number].end, c)
					}
					last[c.Number] = stretch{c.After, c.Until}
					mu.Unlock()
					q.Until += 3
					renewed, err := s.Renew(within(t, patience), p, c, q)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					last[c.Number] = stretch{c.After, c.After + 1}
					mu.Unlock()
					if err := s.Release(within(t, patience), p, renewed, c.After+1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	if got := count.Load(); got < enough {
		t.Errorf("expected at least %d claims, got %d", enough, got)
	}
	conn := server.Conn(t)
	isEmpty(t, conn, rootOf(p)+"/pool")
}

// In a large pool a claim finds the only claimable number, although it reads the
// high-water marks in parts.
func testManyNumbers(t *testing.T, server *zktest.Server) {
	p := newPool(3000)
	s := open(t, server, zklease.Config{})
	first := claim(t, s, p, request())
	conn := server.Conn(t)
	var marks []any
	for n := range p.Size {
		until := time.Now().Add(time.Hour).UnixMilli()
		switch n {
		case first.Number:
			continue
		case 1234:
			until = 77
		}
		marks = append(marks, &zk.CreateRequest{Path: fmt.Sprintf("%s/high-water-mark/%d", rootOf(p), n), Acl: anyone,
			Data: fmt.Appendf(nil, `{"term":5,"holder":"","nonce":"","after":0,"until":%d}`, until)})
	}
	for some := range slices.Chunk(marks, 500) {
		_, err := conn.Multi(some...)
		must(t, err)
	}
	if c := claim(t, s, p, request()); c.Number != 1234 || c.After != 77 || c.Term != 6 {
		t.Errorf("expected number 1234 after 77 in term 6, got %+v", c)
	}
	isBusy(t, s, p, 2, 2998)
	// The error names a high-water mark with invalid content.
	_, err := conn.Set(rootOf(p)+"/high-water-mark/77", []byte("{}"), -1)
	must(t, err)
	_, err = s.Claim(within(t, patience), p, request())
	pgtest.Fails(t, err, nil, rootOf(p)+"/high-water-mark/77")
}

// Stores that start at once all write the layout znode, to compare their clocks with the
// servers'. That doesn't make their claims fail.
func testTogether(t *testing.T, server *zktest.Server) {
	const size = 12
	p := newPool(size)
	claim(t, open(t, server, zklease.Config{}), p, request()) // creates the pool
	var group sync.WaitGroup
	for range size - 1 {
		s, r := open(t, server, zklease.Config{}), request()
		r.MaxSkew = time.Hour
		group.Go(func() {
			if _, err := s.Claim(within(t, patience), p, r); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	data, stat, err := server.Conn(t).Get(rootOf(p) + "/layout")
	if err != nil || stat.Version == 0 || !strings.Contains(string(data), `"size":12`) {
		t.Errorf("expected the layout to be written again, got %s in version %d, %v", data, stat.Version, err)
	}
}

// The ACL applies to all znodes of the store. It includes the root, which the first
// program creates, so this test doesn't use the root of the other tests.
func testAuth(t *testing.T, server *zktest.Server) {
	p := newPool(1)
	root := "/closed"
	c := zklease.Config{Root: root, AuthScheme: "digest", Auth: []byte("ids:secret"), ACL: zk.AuthACL(zk.PermAll)}
	s := open(t, server, c)
	got := claim(t, s, p, request())
	// The client authenticates on each new connection.
	s.disconnect()
	s.reconnect()
	renew(t, s, p, got, request())
	stranger := server.Conn(t)
	for _, path := range []string{"", "/pool", "/pool/0", "/high-water-mark", "/high-water-mark/0", "/layout"} {
		_, _, err := stranger.Get(root + "/" + p.Name + path)
		pgtest.Fails(t, fmt.Errorf("%s: %w", path, err), zk.ErrNoAuth)
	}
	misconfigured := func(c zklease.Config, p nodelease.Pool, reason error) {
		t.Helper()
		_, err := open(t, server, c).Claim(within(t, patience), p, request())
		pgtest.Fails(t, err, reason)
		pgtest.Fails(t, err, nodelease.ErrMisconfigured)
	}
	for _, pool := range []nodelease.Pool{p, newPool(1)} {
		misconfigured(zklease.Config{Root: root}, pool, zk.ErrNoAuth)
	}
	c.AuthScheme = "unheard-of"
	misconfigured(c, p, zk.ErrAuthFailed)
}
