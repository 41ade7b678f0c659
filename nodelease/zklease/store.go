package zklease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// Config is what a [Store] can be told. The zero value is what most programs
// want.
type Config struct {
	// Root is the znode under which each pool has one of its own, named after
	// the pool. By default /sortkey.
	Root string
	// Roots are the znodes of the pools that don't have Root/Name, by the pool's
	// name.
	Roots map[string]string
	// SessionTimeout is how long the numbers of a process that was killed stay
	// held, and the longest TTL that a claim gets: 1 s to 1 h, by default 30 s, as
	// the TTL of nodelease.Options. The servers have limits of their own, by
	// default 4 s and 40 s, and have the last word.
	SessionTimeout time.Duration
	// ACL is for the znodes that are created. Nil means that everybody may do
	// everything. Programs with different ACLs need different Roots, since the first
	// one to come creates it with its own.
	ACL []zk.ACL
	// AuthScheme and Auth are what the client identifies itself with, such as
	// "digest" and "user:password". By default it doesn't.
	AuthScheme string
	Auth       []byte
	// Dial opens connections. Nil means TCP without TLS.
	Dial zk.Dialer
	// Logger gets what the client of ZooKeeper has to say on its connection. Nil
	// means that nothing is logged.
	Logger *slog.Logger
}

const (
	defaultRoot    = "/sortkey"
	defaultSession = 30 * time.Second
	minSession     = time.Second
	maxSession     = time.Hour
)

func (c Config) normal() (Config, error) {
	if c.Root == "" {
		c.Root = defaultRoot
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSession
	}
	if c.SessionTimeout < minSession || c.SessionTimeout > maxSession {
		return c, fmt.Errorf("zklease: expected a session timeout from %v to %v, got %v", minSession, maxSession, c.SessionTimeout)
	}
	if err := checkPath(c.Root); err != nil {
		return c, err
	}
	for _, root := range c.Roots {
		if err := checkPath(root); err != nil {
			return c, err
		}
	}
	if c.ACL == nil {
		c.ACL = zk.WorldACL(zk.PermAll)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// A Store is a [nodelease.Store] in a ZooKeeper ensemble. Its claims live as long
// as its session, so one Store is for the whole life of a process. It is safe for
// concurrent use.
type Store struct {
	config  Config
	servers string // for errors
	conn    *zk.Conn
	timeout atomic.Int64 // of the session, as negotiated, in milliseconds

	ready   chan struct{} // closed once the client has identified itself
	authErr error         // why it hasn't, once ready is closed

	life  context.Context // until Close
	close context.CancelFunc
	once  sync.Once

	mu        sync.Mutex
	busy      map[string]chan struct{} // calls under way: see turn
	held      map[string]int64         // the terms of the claims that were granted here, by the path of the number
	searched  map[string]bool          // holders that have no claim
	sharing   map[string]others        // of the pools, by root
	wires     map[*wire]bool
	releases  int   // that go on in the background
	abandoned bool  // no more connections
	down      error // why there is no connection; nil once a server has answered, and before the first attempt
}

var _ nodelease.Store = (*Store)(nil)

// errStoreClosed is what calls after Close get.
var errStoreClosed = fmt.Errorf("zklease: expected an open store, got a closed one: %w", nodelease.ErrMisconfigured)

// Connect gives a store on an ensemble, of which it is told some or all servers,
// such as "zk1.example.com:2181". It returns at once: a call of the store waits
// for the connection for as long as its context allows.
func Connect(servers []string, c Config) (*Store, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	s := &Store{
		config: c, servers: strings.Join(servers, ", "), ready: make(chan struct{}), busy: map[string]chan struct{}{}, held: map[string]int64{},
		searched: map[string]bool{}, sharing: map[string]others{}, wires: map[*wire]bool{},
	}
	s.life, s.close = context.WithCancel(context.Background())
	s.conn, _, err = zk.Connect(servers, c.SessionTimeout, zk.WithDialer(s.dial), zk.WithHostProvider(&hosts{}),
		zk.WithLogger(connectionLog{c.Logger}), zk.WithLogInfo(c.Logger.Enabled(context.Background(), slog.LevelInfo)))
	if err != nil {
		s.close()
		return nil, fmt.Errorf("zklease: %w", err)
	}
	go s.identify()
	return s, nil
}

type connectionLog struct{ *slog.Logger }

func (l connectionLog) Printf(format string, args ...any) {
	l.Info("zookeeper: " + fmt.Sprintf(format, args...))
}

// identify tells the servers who we are, if we are anybody. The client repeats
// it on other connections once it has worked.
func (s *Store) identify() {
	defer close(s.ready)
	if s.config.AuthScheme == "" {
		return
	}
	s.authErr = s.persist(s.life, func() error { return s.conn.AddAuth(s.config.AuthScheme, s.config.Auth) })
}

// Close ends the session, and is to be called after the Close of the Keepers and
// Generators. If there are claims still, the session is left to its timeout: the
// numbers stay held for that long, as if the process had been killed, since
// something may go on minting with them. Where other programs may use a pool, it
// waits until two seconds after the last release.
func (s *Store) Close() {
	s.once.Do(func() {
		s.finish()
		s.close()
		if s.abandon() {
			go s.conn.Close() // it would wait for an answer
		} else {
			s.conn.Close()
		}
	})
}

// abandon leaves the session to its timeout if there are claims.
func (s *Store) abandon() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = len(s.held) > 0
	if s.abandoned {
		for w := range s.wires {
			w.Conn.Close()
		}
	}
	return s.abandoned
}

// A pool is one of the pools of a store.
type pool struct {
	*Store
	nodelease.Pool
	root   string // its znode
	others others
}

// open returns a pool once requests can be sent.
func (s *Store) open(ctx context.Context, p nodelease.Pool) (*pool, error) {
	if err := s.begin(ctx, p); err != nil {
		return nil, err
	}
	root, ok := s.config.Roots[p.Name]
	if !ok {
		root = strings.TrimSuffix(s.config.Root, "/") + "/" + p.Name
	}
	return &pool{Store: s, Pool: p, root: root, others: s.othersOf(p, root)}, nil
}

// session is the session's timeout, and so the longest that a claim stands. It
// is known once there was an answer.
func (s *Store) session() time.Duration {
	return time.Duration(s.timeout.Load()) * time.Millisecond
}

// begin waits until requests can be sent.
func (s *Store) begin(ctx context.Context, p nodelease.Pool) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return s.noAnswer(ctx, nil)
	}
	switch {
	case s.life.Err() != nil:
		return errStoreClosed
	case s.authErr != nil:
		return fmt.Errorf("zklease: expected the servers to accept the authentication by %q: %w: %w", s.config.AuthScheme, s.authErr, nodelease.ErrMisconfigured)
	}
	return nil
}

// turn has calls of one name wait for each other. The returned function lets the
// next one go on.
func (s *Store) turn(ctx context.Context, name string) (func(), error) {
	for {
		s.mu.Lock()
		other := s.busy[name]
		if other == nil {
			mine := make(chan struct{})
			s.busy[name] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, name)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, s.noAnswer(ctx, nil)
		}
	}
}

// await calls f in a goroutine of its own, and waits no longer than the context,
// since requests of the client know none: they wait for a connection as long as
// it takes. late gets the answer that comes after that, and done is called when
// nothing is left to do.
func await[T any](ctx context.Context, s *Store, done func(), f func() (T, error), late func(T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer) // without a buffer: either is it taken or it is late
	go func() {
		defer done()
		value, err := f()
		select {
		case answers <- answer{value, err}:
		case <-ctx.Done():
			late(value, err)
		}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, s.noAnswer(ctx, nil)
	}
}

// noAnswer is the error of a call whose context has ended. It names the servers,
// and why there is no connection if there is none, else the error that the call
// met on its way.
func (s *Store) noAnswer(ctx context.Context, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		err = s.down
	}
	if err != nil {
		return fmt.Errorf("zklease: no answer in time from %s: %w: %w", s.servers, err, ctx.Err())
	}
	return fmt.Errorf("zklease: no answer in time from %s: %w", s.servers, ctx.Err())
}

// explain adds [nodelease.ErrMisconfigured] to errors that last until somebody
// changes the setup.
func explain(err error) error {
	for _, e := range []error{zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: give the Config the Auth and ACL that the znodes were made with: %w", err, nodelease.ErrMisconfigured)
		}
	}
	return err
}

// persist repeats a request that may not have got to a server, until the context
// ends. What it asks for may have been done already when it is sent again.
func (s *Store) persist(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !transient(err) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.life.Done():
			return errStoreClosed
		case <-ctx.Done():
			return s.noAnswer(ctx, err)
		}
	}
}

// transient says whether a request may have been done or not, because of the
// connection.
func transient(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
