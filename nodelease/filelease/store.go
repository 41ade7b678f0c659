package filelease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// A Config restricts the numbers of a [Store].
type Config struct {
	// Numbers lists the numbers that the store grants, such as the result of
	// [nodelease.Ordinal]. Nil means all numbers of the pool.
	Numbers []int
}

// A Store is a [nodelease.Store] in a directory. Its claims last until they are released,
// until they weren't renewed for ten TTLs, or until the process ends. After one TTL, another call
// of Claim can take a claim of the Store. A Store is safe for concurrent use, and needs no Close.
type Store struct {
	dir     string
	numbers []int
	ttl     time.Duration // the longest TTL of a claim

	mu   sync.Mutex
	held map[key]*hold
}

var _ nodelease.Store = (*Store)(nil)

// A key is a number of a pool.
type key struct {
	pool   string
	number int
}

// A hold is a claim of this Store.
type hold struct {
	term    int64
	holder  string
	mu      sync.Mutex  // held during a call, which writes to the disk
	lock    *os.File    // nil once the claim has ended
	expires time.Time   // by the monotonic clock
	timer   *time.Timer // calls expire
}

// maxTTL is the longest TTL of a claim. After a crash, the next holder must wait until its
// clock has passed the high-water mark, nine tenths of a TTL after the last renewal.
const maxTTL = 3 * time.Second

// abandoned is the number of TTLs after which the Store gives up a claim that isn't renewed.
// Until then, a holder that could not write to the disk in time can still renew it.
const abandoned = 10

// New returns a store in a directory on a local disk, which must exist. If it doesn't, or dir
// is empty, calls of the store fail.
func New(dir string, c Config) *Store {
	if abs, err := filepath.Abs(dir); err == nil && dir != "" {
		dir = abs // the program may change its working directory
	}
	return &Store{dir: dir, numbers: slices.Clone(c.Numbers), ttl: maxTTL, held: map[key]*hold{}}
}

// Claim grants a number for up to 3 s; see [nodelease.Store].
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	if err := s.check(ctx, p); err != nil {
		return nodelease.Claim{}, err
	}
	return stores.Await(ctx, s.noAnswer, func(finish func(nodelease.Claim, error) bool) {
		unlock, err := s.lockPool(ctx, p)
		if err != nil {
			finish(nodelease.Claim{}, explain(err))
			return
		}
		// Until the caller has the answer, calls of the same holder must wait.
		defer unlock()
		c, err := s.choose(p, r.LimitTTL(s.ttl))
		if !finish(c, explain(err)) && err == nil {
			_ = s.release(p, c, c.After) // unused: set the high-water mark back
		}
	})
}

// Renew extends a claim of this Store; see [nodelease.Store].
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	if err := s.check(ctx, p); err != nil {
		return nodelease.Claim{}, err
	}
	return stores.Await(ctx, s.noAnswer, func(finish func(nodelease.Claim, error) bool) {
		c, err := s.renew(p, c, r)
		// A late renewal is harmless: it extends the holder's own claim, or a later one has
		// replaced its nonce.
		finish(c, explain(err))
	})
}

// Release ends a claim of this Store; see [nodelease.Store]. If its context ends, the
// release continues in the background.
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	if err := s.check(ctx, p); err != nil {
		return err
	}
	_, err := stores.Await(ctx, s.noAnswer, func(finish func(struct{}, error) bool) {
		finish(struct{}{}, explain(s.release(p, c, highWaterMark)))
	})
	return err
}

// check returns an error if a call can't succeed.
func (s *Store) check(ctx context.Context, p nodelease.Pool) error {
	if err := errors.Join(p.Validate(), unsupported); err != nil {
		return err
	}
	if s.held == nil {
		return fmt.Errorf("filelease: the Store is a zero value; create it with New: %w", nodelease.ErrMisconfigured)
	}
	if s.dir == "" {
		return fmt.Errorf("filelease: the directory is empty; pass New the path of a directory, or \".\": %w", nodelease.ErrMisconfigured)
	}
	if s.numbers != nil && len(s.numbers) == 0 {
		return fmt.Errorf("filelease: Config.Numbers is empty; list the numbers of this machine, or leave it nil for all numbers of the pool: %w", nodelease.ErrMisconfigured)
	}
	for _, n := range s.numbers {
		if n < 0 || n >= p.Size {
			return fmt.Errorf("filelease: Config.Numbers: %d is not a number of pool %q; want 0 to %d: %w", n, p.Name, p.Size-1, nodelease.ErrMisconfigured)
		}
	}
	return ctx.Err()
}

// noAnswer returns the error of a call whose context has ended: files can't be written with a
// time limit.
func (s *Store) noAnswer(ended error) error {
	return fmt.Errorf("filelease: no answer in time; check the disk of %q, and that no suspended process has locked a file there: %w", s.dir, ended)
}

// path returns the path of a file of a pool.
func (s *Store) path(p nodelease.Pool, name string) string {
	return filepath.Join(s.dir, p.Name, name)
}

func (s *Store) numberPath(p nodelease.Pool, n int, suffix string) string {
	return s.path(p, strconv.Itoa(n)+suffix)
}

// holdOf returns the claim of a number by this Store, or nil.
func (s *Store) holdOf(p nodelease.Pool, n int) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key{p.Name, n}]
}

// change replaces the record of a claim by the result of f, and calls done. If the claim is
// over, or a copy of its holder has renewed it, the error wraps ErrSuperseded.
func (s *Store) change(p nodelease.Pool, c nodelease.Claim, f func(stores.Record) stores.Record, done func(*hold, stores.Record)) error {
	superseded := func(reason string) error {
		return fmt.Errorf("filelease: renew number %d of pool %q in term %d: %s: %w", c.Number, p.Name, c.Term, reason, nodelease.ErrSuperseded)
	}
	h := s.holdOf(p, c.Number)
	if h == nil || h.term != c.Term || h.holder != c.Holder {
		return superseded("this store doesn't hold it; claim another")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock == nil {
		return superseded("the claim was released; claim another")
	}
	rec, err := s.read(p, c.Number)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && (!rec.Of(c) || !current(h.lock)):
		s.forget(p, c.Number, h) // without the lock, another process may have claimed the number
		return superseded(fmt.Sprintf("its files in %s were deleted or replaced; stop all programs that use the directory before changing it", s.path(p, "")))
	case err != nil:
		return err
	}
	if err := rec.Check(c); err != nil { // keep the lock: the copy holds the number
		return fmt.Errorf("filelease: renew number %d of pool %q in term %d: %w", c.Number, p.Name, c.Term, err)
	}
	rec.Record = f(rec.Record)
	if err := s.write(p, rec); err != nil {
		return err
	}
	done(h, rec.Record)
	return nil
}

func (s *Store) renew(p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (renewed nodelease.Claim, err error) {
	if err := r.CheckSkew(time.Now()); err != nil {
		return nodelease.Claim{}, fmt.Errorf("filelease: renew number %d of pool %q: %w", c.Number, p.Name, err)
	}
	err = s.change(p, c, func(m stores.Record) stores.Record { return m.Renewed(r) }, func(h *hold, m stores.Record) {
		ttl, now := min(r.TTL, s.ttl), time.Now()
		h.expires = now.Add(ttl)
		h.timer.Reset(abandoned * ttl)
		renewed = m.Claim(c.Number, ttl, now)
	})
	return renewed, err
}

func (s *Store) release(p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	err := s.change(p, c, func(m stores.Record) stores.Record { return m.Released(highWaterMark) }, func(h *hold, _ stores.Record) {
		s.forget(p, c.Number, h)
	})
	if errors.Is(err, nodelease.ErrSuperseded) {
		return nil
	}
	return err
}

// expire ends the claim of a number by this Store if it wasn't renewed within its TTL. The
// holder may not have received it, or may have given up releasing it while the disk failed.
func (s *Store) expire(p nodelease.Pool, n int) {
	h := s.holdOf(p, n)
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lock != nil && !time.Now().Before(h.expires) {
		s.forget(p, n, h)
	}
}

// forget ends a claim of this Store. The caller holds h.mu.
func (s *Store) forget(p nodelease.Pool, n int, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, key{p.Name, n})
	_ = h.lock.Close()
	h.lock = nil
	h.timer.Stop()
}

// explain adds the remedy and [nodelease.ErrMisconfigured] to errors that persist until the
// setup changes.
func explain(err error) error {
	var remedy string
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotDir):
		remedy = "create the directory once, on a local disk that is kept across restarts, or mount its volume"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnly):
		remedy = "let the program's user read and write the directory and its files"
	default:
		return err
	}
	return fmt.Errorf("filelease: %w; %s: %w", err, remedy, nodelease.ErrMisconfigured)
}
