package zklease

import (
	"context"
	"errors"
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

	mu        sync.Mutex
	busy      map[string]chan struct{} // running calls; see turn
	held      map[key]tag              // the claims of this store
	histories map[string]*history      // of the pools that the Java program may share, by root
	wires     map[*wire]bool
	blocking  int  // number of released claims whose znodes block the Java program
	abandoned bool // dial refuses new connections
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
		config: c, servers: strings.Join(servers, ", "), ready: make(chan struct{}), busy: map[string]chan struct{}{}, held: map[key]tag{},
		histories: map[string]*history{}, wires: map[*wire]bool{},
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
		if s.abandon() {
			go s.conn.Close() // in the background, since it waits for an answer
		} else {
			s.conn.Close()
		}
	})
}

// abandon closes the connections without ending the session, if the store has claims.
// It reports whether it did.
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
		return nil, s.noAnswer(ctx, nil)
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

// turn serializes calls with the same name. The returned function ends the caller's
// turn.
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

// await calls f in a goroutine and waits until f returns or the context ends. The
// requests of the client ignore contexts and may wait for a connection forever. If f
// returns after the context has ended, await passes the result to late. It calls done
// after f and late.
func await[T any](ctx context.Context, s *Store, done func(), f func() (T, error), late func(T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer) // unbuffered: an answer is either received or late
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

// noAnswer returns the error of a call whose context has ended. It names the servers,
// and the reason why the store isn't connected. If the store is connected, it wraps
// err, the last error of the call, instead.
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

// explain adds the remedy and [nodelease.ErrMisconfigured] to errors that persist until
// the setup changes.
func explain(err error) error {
	for _, e := range []error{zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w; set Config.AuthScheme, Config.Auth and Config.ACL as in the program that created the znodes: %w", err, nodelease.ErrMisconfigured)
		}
	}
	return err
}

// persist repeats a request after errors of the connection, until the context ends.
// When it sends the request again, an earlier attempt may already have taken effect.
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

// transient reports whether err is an error of the connection, so that the request may
// or may not have taken effect.
func transient(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// getOrMake reads a znode, and creates it if it doesn't exist.
func (s *Store) getOrMake(ctx context.Context, path string, data []byte) ([]byte, error) {
	for {
		found, _, err := s.get(ctx, path)
		if !errors.Is(err, zk.ErrNoNode) {
			return found, err
		}
		if err := s.make(ctx, path, data); err != nil {
			return nil, err
		}
	}
}

// make creates a persistent znode and its parents, unless they exist.
func (s *Store) make(ctx context.Context, path string, data []byte) error {
	err := s.persist(ctx, func() error {
		exists, _, err := s.conn.Exists(path)
		if exists || err != nil {
			return err
		}
		_, err = s.conn.Create(path, data, 0, s.config.ACL)
		return err
	})
	switch parent := path[:strings.LastIndexByte(path, '/')]; {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode) && parent != "":
		if err := s.make(ctx, parent, nil); err != nil {
			return err
		}
		return s.make(ctx, path, data)
	case err != nil:
		return fmt.Errorf("zklease: create %s: %w", path, err)
	}
	return nil
}

// get reads a znode.
func (s *Store) get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = s.persist(ctx, func() (err error) {
		data, stat, err = s.conn.Get(path)
		return err
	})
	if err != nil {
		err = fmt.Errorf("zklease: read %s: %w", path, err)
	}
	return data, stat, err
}
