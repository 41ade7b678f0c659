package zklease

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// Config configures a [Store]. The zero value suits most programs.
type Config struct {
	// Root is the parent of the pools' znodes, which have the names of the pools. The
	// default is /sortkey.
	Root string
	// Roots maps the names of pools to the paths of their znodes, for pools that aren't
	// at Root/Name.
	Roots map[string]string
	// SessionTimeout is how long the numbers of a killed process stay held: 1 s to 1 h,
	// 30 s by default, like the TTL of nodelease.Options. It also limits the TTL of a
	// claim. The servers limit it to a range of their own, 4 s to 40 s by default.
	SessionTimeout time.Duration
	// ACL is the access control list of the znodes that the store creates. Nil allows
	// everything to all clients. Programs with different ACLs need different Roots,
	// since the first program creates the Root with its ACL.
	ACL []zk.ACL
	// AuthScheme and Auth are the client's credentials, such as "digest" and
	// "user:password". By default the client doesn't authenticate.
	AuthScheme string
	Auth       []byte
	// Dial opens connections. Nil means TCP without TLS.
	Dial zk.Dialer
	// Logger logs the messages of the ZooKeeper client about its connection. Nil means
	// [slog.Default] at the call of [Connect]; slog.New(slog.DiscardHandler) discards them.
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
		return c, fmt.Errorf("zklease: Config.SessionTimeout: %v is out of range; want %v to %v: %w", c.SessionTimeout, minSession, maxSession, nodelease.ErrMisconfigured)
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
		c.Logger = slog.Default()
	}
	return c, nil
}

// A Store is a [nodelease.Store] in a ZooKeeper ensemble. Its claims live as long as
// its session, so a process uses one Store for its whole life. A Store is safe for
// concurrent use.
type Store struct {
	config  Config
	servers string // for errors
	conn    *zk.Conn
	timeout atomic.Int64 // the negotiated session timeout, in milliseconds

	ready   chan struct{} // closed once the client has authenticated, or failed to
	authErr error         // the error of the authentication, once ready is closed

	life  context.Context // ends with Close
	close context.CancelFunc
	once  sync.Once
	// abandoned means that wires send nothing, so that the session isn't ended.
	abandoned atomic.Bool

	claiming, releasing chan struct{} // see turn

	mu        sync.Mutex
	held      map[key]tag         // the claims of this store
	histories map[string]*history // of the pools that the Java program may share, by root
	blocking  int                 // number of released claims whose znodes block the Java program
	// The servers' clock at the last write, and this machine's clock then.
	serverTime, readAt time.Time
	down               error // why the store isn't connected; nil while it is, and before the first attempt
}

var _ nodelease.Store = (*Store)(nil)

// errStoreClosed is the error of calls after Close.
var errStoreClosed = fmt.Errorf("zklease: store is closed: %w", nodelease.ErrMisconfigured)

// Connect returns a store on an ensemble. servers lists some or all of its servers,
// such as "zk1.example.com:2181". If servers or c is invalid, the error wraps
// [nodelease.ErrMisconfigured]. Connect doesn't wait for a connection: each call of
// the store waits for it until the call's context ends.
func Connect(servers []string, c Config) (*Store, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 || slices.Contains(servers, "") {
		return nil, fmt.Errorf("zklease: connect to servers %q: want at least one address, and no empty one, such as zk1.example.com:2181: %w", servers, nodelease.ErrMisconfigured)
	}
	s := &Store{
		config: c, servers: strings.Join(servers, ", "), ready: make(chan struct{}), claiming: make(chan struct{}, 1), releasing: make(chan struct{}, 1), held: map[key]tag{},
		histories: map[string]*history{},
	}
	s.life, s.close = context.WithCancel(context.Background())
	s.conn, _, err = zk.Connect(servers, c.SessionTimeout, zk.WithDialer(s.dial), zk.WithHostProvider(&hosts{}),
		zk.WithLogger(connectionLog{c.Logger}), zk.WithLogInfo(c.Logger.Enabled(context.Background(), slog.LevelInfo)))
	if err != nil {
		s.close()
		return nil, fmt.Errorf("zklease: connect to %q: %w", s.servers, err)
	}
	go s.identify()
	return s, nil
}

type connectionLog struct{ *slog.Logger }

func (l connectionLog) Printf(format string, args ...any) {
	l.Info("zookeeper: " + fmt.Sprintf(format, args...))
}

// identify authenticates the client if the config has credentials. After a success the
// client repeats the authentication on each new connection.
func (s *Store) identify() {
	defer close(s.ready)
	if s.config.AuthScheme == "" {
		return
	}
	s.authErr = s.persist(s.life, func() error { return s.conn.AddAuth(s.config.AuthScheme, s.config.Auth) })
}

// Close closes the connection and ends the session. Close all Keepers and Generators
// first. If the store still has claims, their generators may still create IDs, so Close
// doesn't end the session: until it expires, the numbers stay held, as if the process
// had been killed. If the Java program may share a pool, Close waits until two seconds
// after the last release.
func (s *Store) Close() {
	if s.conn == nil {
		return // a zero value
	}
	s.once.Do(func() {
		s.unblocked()
		s.close()
		s.mu.Lock()
		s.abandoned.Store(len(s.held) > 0)
		s.mu.Unlock()
		if s.abandoned.Load() {
			go s.conn.Close() // in the background, since it waits for an answer
		} else {
			s.conn.Close()
		}
	})
}

// Claim grants a number; see [nodelease.Store].
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	own, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	// An earlier call of the same holder may still have to release its claim.
	done, err := s.turn(ctx, s.claiming)
	if err != nil {
		return nodelease.Claim{}, err
	}
	return stores.Await(ctx, s.noAnswer, func(finish func(nodelease.Claim, error) bool) {
		defer done()
		c, err := own.claim(ctx, r)
		if !finish(c, explain(err)) && err == nil {
			_ = own.release(c, c.After) // unused: set the high-water mark back
		}
	})
}

// Renew extends a claim; see [nodelease.Store]. It fails if the claim's session has
// expired.
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	own, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	return stores.Await(ctx, s.noAnswer, func(finish func(nodelease.Claim, error) bool) {
		c, err := own.renew(ctx, c, r)
		// A late renewal is harmless: it extends the holder's own claim, or a later one has
		// replaced its nonce.
		finish(c, err)
	})
}

// Release ends a claim; see [nodelease.Store]. If its context ends, the release
// continues in the background until it succeeds or the store is closed.
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	own, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	done, err := s.turn(ctx, s.releasing) // or each retry would leave a goroutine
	if err != nil {
		return err
	}
	_, err = stores.Await(ctx, s.noAnswer, func(finish func(struct{}, error) bool) {
		defer done()
		finish(struct{}{}, own.release(c, highWaterMark))
	})
	return err
}

// turn waits until an earlier call has ended that continues in the background: slot has room
// for one call. The returned function ends the caller's turn.
func (s *Store) turn(ctx context.Context, slot chan struct{}) (done func(), err error) {
	select {
	case slot <- struct{}{}:
		if ctx.Err() == nil {
			return func() { <-slot }, nil
		}
		<-slot // select chose at random
	case <-ctx.Done():
	}
	return nil, s.noAnswer(ctx.Err())
}

// A pool is one of the pools of a store.
type pool struct {
	*Store
	nodelease.Pool
	root string   // the path of its znode
	java *history // nil if the Java program doesn't share the pool
}

// A key is a number of a pool.
type key struct {
	root   string
	number int
}

// open waits until requests can be sent, and returns the pool.
func (s *Store) open(ctx context.Context, p nodelease.Pool) (*pool, error) {
	switch {
	case s.conn == nil:
		return nil, fmt.Errorf("zklease: the Store is a zero value; create it with Connect: %w", nodelease.ErrMisconfigured)
	case p.Validate() != nil:
		return nil, p.Validate()
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, s.noAnswer(ctx.Err())
	}
	switch {
	case s.life.Err() != nil:
		return nil, errStoreClosed
	case s.authErr != nil:
		return nil, fmt.Errorf("zklease: authenticate with Config.AuthScheme %q: %w: %w", s.config.AuthScheme, s.authErr, nodelease.ErrMisconfigured)
	}
	root, ok := s.config.Roots[p.Name]
	if !ok {
		root = strings.TrimSuffix(s.config.Root, "/") + "/" + p.Name
	}
	return &pool{Store: s, Pool: p, root: root, java: s.historyOf(p, root)}, nil
}

// path returns the path of a number's znode in a directory of the pool.
func (p *pool) path(dir string, number int) string {
	return p.root + "/" + dir + "/" + strconv.Itoa(number)
}

// session returns the session timeout, the maximum TTL of a claim. It is 0 before the
// first answer of a server.
func (s *Store) session() time.Duration {
	return time.Duration(s.timeout.Load()) * time.Millisecond
}
