package filelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sortkey/sortkey/nodelease"
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

// A key is a number of a pool.
type key struct {
	pool   string
	number int
}

var _ nodelease.Store = (*Store)(nil)

// A hold is a claim of this Store.
type hold struct {
	tag
	mu      sync.Mutex  // held during a call
	lock    *os.File    // nil once the claim has ended
	expires time.Time   // by the monotonic clock
	timer   *time.Timer // calls expire
}

// A tag identifies a claim of a number.
type tag struct {
	term   int64
	holder string
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
	return await(ctx, s, func(finish func(nodelease.Claim, error) bool) {
		unlock, err := s.lockPool(ctx, p)
		if err != nil {
			finish(nodelease.Claim{}, explain(err))
			return
		}
		// Until the caller has the answer, calls of the same holder must wait.
		defer unlock()
		c, err := s.claim(p, r.LimitTTL(s.ttl))
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
	return await(ctx, s, func(finish func(nodelease.Claim, error) bool) {
		c, err := s.renew(p, c, r)
		finish(c, explain(err)) // a late renewal is harmless: it extends the holder's own claim, or a later one has replaced its nonce
	})
}

// Release ends a claim of this Store; see [nodelease.Store]. If its context ends, the
// release continues in the background.
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	if err := s.check(ctx, p); err != nil {
		return err
	}
	_, err := await(ctx, s, func(finish func(struct{}, error) bool) {
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

// await calls f in a goroutine, since files can't be written with a time limit. f calls
// finish with its result. finish reports whether the caller gets it, which it doesn't once
// the context has ended.
func await[T any](ctx context.Context, s *Store, f func(finish func(T, error) bool)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer) // unbuffered: an answer is either received or late
	go f(func(value T, err error) bool {
		select {
		case answers <- answer{value, err}:
			return true
		case <-ctx.Done():
			return false
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("filelease: no answer in time; check the disk of %q, and that no suspended process has locked a file there: %w", s.dir, ctx.Err())
	}
}

// path returns the path of a file of a pool.
func (s *Store) path(p nodelease.Pool, name string) string {
	return filepath.Join(s.dir, p.Name, name)
}

func (s *Store) numberPath(p nodelease.Pool, n int) string {
	return s.path(p, strconv.Itoa(n)+suffix)
}

// lockPool waits until no other process chooses a number of the pool. It creates the pool's
// directory if it is missing. It returns an error if other users can change the pool.
func (s *Store) lockPool(ctx context.Context, p nodelease.Pool) (unlock func(), err error) {
	// Don't create s.dir: if it is missing, its volume may not be mounted.
	if err := trustDir(s.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.path(p, ""), dirMode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := openOwn(s.path(p, ""), os.O_RDONLY, dirMode)
	if err != nil {
		return nil, err
	}
	_ = dir.Close()
	if err := syncDir(s.dir); err != nil {
		return nil, err
	}
	for path := s.path(p, "pool"+lockSuffix); ; {
		lock, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			if ctx.Err() != nil {
				// A later call of the holder may have claimed a number and returned. This call would
				// repeat the claim, and then release it.
				_ = lock.Close()
				return nil, ctx.Err()
			}
			return func() { _ = lock.Close() }, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claim chooses a number. The caller holds the lock of the pool.
func (s *Store) claim(p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	if err := r.CheckSkew(time.Now()); err != nil {
		return nodelease.Claim{}, fmt.Errorf("filelease: claim a number of pool %q: %w", p.Name, err)
	}
	used, err := s.records(p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if c, ok, err := s.repeat(p, r); ok {
		return c, err
	}
	busy := &nodelease.BusyError{}
	reserved := make(map[int]bool, len(p.Reserved))
	for _, n := range p.Reserved {
		reserved[n] = true
	}
	numbers := s.numbers
	if numbers == nil {
		for n := range p.Size {
			numbers = append(numbers, n)
		}
	}
	var candidates []record
	var invalid error // of a number
	for _, n := range numbers {
		rec, found := used[n]
		switch {
		case reserved[n]:
			busy.Reserved++
		case found && rec.Term == 0:
			_, invalid = s.read(p, n)
		default:
			rec.number = n
			candidates = append(candidates, rec)
		}
	}
	// The numbers that were never used come first.
	slices.SortFunc(candidates, func(a, b record) int { return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.number, b.number)) })
	for _, rec := range candidates {
		if c, ok, err := s.try(p, r, rec.number, busy); ok || err != nil {
			return c, err
		}
	}
	switch {
	case invalid != nil && busy.Held+busy.Ahead > 0:
		return nodelease.Claim{}, fmt.Errorf("%w; another number is invalid: %v", busy, invalid)
	case invalid != nil:
		return nodelease.Claim{}, invalid
	case busy.Held == 1 && len(candidates) == 1:
		holder := candidates[0].Holder
		return nodelease.Claim{}, fmt.Errorf("filelease: number %d is held by another process or Store of this machine, %q: %w", candidates[0].number, holder[:max(strings.LastIndexByte(holder, ' '), 0)], busy)
	}
	return nodelease.Claim{}, busy
}

// records returns the records of the numbers of the pool that have a file, with a zero
// record for a file that is invalid.
func (s *Store) records(p nodelease.Pool) (map[int]record, error) {
	files, err := os.ReadDir(s.path(p, ""))
	if err != nil {
		return nil, err
	}
	used := map[int]record{}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), suffix)
		n, err := strconv.Atoi(name)
		if !ok || err != nil || strconv.Itoa(n) != name {
			continue
		}
		if used[n], err = s.read(p, n); err != nil && !errors.Is(err, nodelease.ErrMisconfigured) {
			return nil, err
		}
	}
	return used, nil
}

// repeat renews and returns the holder's claim, if it has one.
func (s *Store) repeat(p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, ok bool, err error) {
	s.mu.Lock()
	claims := maps.Clone(s.held)
	s.mu.Unlock()
	for k, h := range claims {
		if k.pool == p.Name && h.holder == r.Holder {
			// A claim that was renewed since isn't repeated: its nonce isn't "".
			c, err := s.renew(p, nodelease.Claim{Number: k.number, Term: h.term, Holder: h.holder}, r)
			if !errors.Is(err, nodelease.ErrSuperseded) {
				return c, true, err
			}
		}
	}
	return c, false, nil
}

// try claims a number if it is free and its high-water mark is before the holder's clock.
// Otherwise it counts the number in busy.
func (s *Store) try(p nodelease.Pool, r nodelease.Request, n int, busy *nodelease.BusyError) (c nodelease.Claim, ok bool, err error) {
	s.expire(p, n)
	lock, err := tryLock(s.path(p, strconv.Itoa(n)+lockSuffix))
	if err != nil {
		return c, false, err
	}
	if lock == nil {
		busy.Held++
		return c, false, nil
	}
	defer func() {
		if !ok {
			_ = lock.Close()
		}
	}()
	// The number may have been released since the caller has read its record.
	rec, err := s.read(p, n)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, false, err
	}
	if err == nil && rec.Until >= r.Now {
		passed := r.TimeToPass(rec.Until)
		if busy.Ahead == 0 || passed < busy.RetryAfter {
			busy.RetryAfter = passed
		}
		busy.Ahead++
		return c, false, nil
	}
	rec = record{number: n, Size: p.Size, Layout: p.Layout, Term: rec.Term + 1, Holder: r.Holder, After: rec.Until, Until: r.Until}
	if err := s.write(p, rec); err != nil {
		return c, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key{p.Name, n}] = &hold{
		tag: rec.tag(), lock: lock, expires: time.Now().Add(r.TTL),
		timer: time.AfterFunc(abandoned*r.TTL, func() { s.expire(p, n) }),
	}
	return s.granted(rec, r), true, nil
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

func (s *Store) granted(rec record, r nodelease.Request) nodelease.Claim {
	return nodelease.Claim{Number: rec.number, Term: rec.Term, Holder: rec.Holder, After: rec.After, Until: rec.Until, TTL: min(r.TTL, s.ttl), Time: time.Now(), Nonce: rec.Nonce}
}

// holdOf returns the claim of a number by this Store, or nil.
func (s *Store) holdOf(p nodelease.Pool, n int) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key{p.Name, n}]
}

// present locks the hold of a claim and returns it with the number's record. If the claim is
// over, or a copy of its holder has renewed it, the error wraps ErrSuperseded. The caller
// unlocks the hold unless it is nil.
func (s *Store) present(p nodelease.Pool, c nodelease.Claim) (*hold, record, error) {
	n, t := c.Number, tag{c.Term, c.Holder}
	h := s.holdOf(p, n)
	if h == nil || h.tag != t {
		return nil, record{}, fmt.Errorf("filelease: renew number %d of pool %q in term %d: this store doesn't hold it; claim another: %w", n, p.Name, t.term, nodelease.ErrSuperseded)
	}
	h.mu.Lock()
	if h.lock == nil {
		h.mu.Unlock()
		return nil, record{}, fmt.Errorf("filelease: renew number %d of pool %q in term %d: the claim was released; claim another: %w", n, p.Name, t.term, nodelease.ErrSuperseded)
	}
	rec, err := s.read(p, n)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && (rec.tag() != t || !current(h.lock)):
		// Without the lock, another process may have claimed the number.
		s.forget(p, n, h)
		h.mu.Unlock()
		return nil, record{}, fmt.Errorf("filelease: renew number %d of pool %q in term %d: its files in %s were deleted or replaced; stop all programs that use the directory before changing it: %w",
			n, p.Name, t.term, s.path(p, ""), nodelease.ErrSuperseded)
	case err == nil && !c.Knows(rec.Nonce):
		// Keep the lock: the copy holds the number.
		err = fmt.Errorf("filelease: renew number %d of pool %q in term %d: a copy of this process has renewed the claim; claim another: %w", n, p.Name, t.term, nodelease.ErrSuperseded)
		fallthrough
	case err != nil:
		h.mu.Unlock()
		return nil, record{}, err
	}
	return h, rec, nil
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

func (s *Store) renew(p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	if err := r.CheckSkew(time.Now()); err != nil {
		return nodelease.Claim{}, fmt.Errorf("filelease: renew number %d of pool %q: %w", c.Number, p.Name, err)
	}
	h, rec, err := s.present(p, c)
	if err != nil {
		return nodelease.Claim{}, err
	}
	defer h.mu.Unlock()
	rec.Until, rec.Nonce = max(rec.Until, r.Until), r.Nonce
	if err := s.write(p, rec); err != nil {
		return nodelease.Claim{}, err
	}
	ttl := min(r.TTL, s.ttl)
	h.expires = time.Now().Add(ttl)
	h.timer.Reset(abandoned * ttl)
	return s.granted(rec, r), nil
}

func (s *Store) release(p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	h, rec, err := s.present(p, c)
	if errors.Is(err, nodelease.ErrSuperseded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.mu.Unlock()
	rec.Holder, rec.Until = "", max(highWaterMark, rec.After)
	if err := s.write(p, rec); err != nil {
		return err
	}
	s.forget(p, c.Number, h)
	return nil
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
