package leasetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A Store is a [nodelease.Store] in memory, for the tests of one process. The zero
// value is ready to use.
type Store struct {
	// Clock is the store's clock. Nil means the system clock.
	Clock func() time.Time

	mu    sync.Mutex
	pools map[string]*pool
}

type pool struct {
	size    int
	layout  string
	numbers []number
}

type number struct {
	holder        string // "" if released or never held
	nonce         string // of the last renewal; "" before it
	term          int64
	after         int64 // the high-water mark when the claim was granted
	highWaterMark int64
	expires       time.Time
	ttl           time.Duration
}

var _ nodelease.Store = (*Store)(nil)

func (s *Store) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// open returns a pool, and creates it if it doesn't exist.
func (s *Store) open(p nodelease.Pool) (*pool, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if s.pools[p.Name] == nil {
		if s.pools == nil {
			s.pools = map[string]*pool{}
		}
		s.pools[p.Name] = &pool{p.Size, p.Layout, make([]number, p.Size)}
	}
	got := s.pools[p.Name]
	if got.size != p.Size || got.layout != p.Layout {
		return nil, fmt.Errorf("leasetest: open pool %q: created with %d numbers and layout %q, but this program has %d and %q; use the same size and layout, or another pool name: %w",
			p.Name, got.size, got.layout, p.Size, p.Layout, nodelease.ErrPoolMismatch)
	}
	return got, nil
}

// Claim grants a number; see [nodelease.Store].
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nodelease.Claim{}, err
	}
	pool, err := s.open(p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	now := s.now()
	if err := r.CheckSkew(now); err != nil {
		return nodelease.Claim{}, fmt.Errorf("leasetest: claim a number of pool %q: %w", p.Name, err)
	}
	for i := range pool.numbers {
		if n := &pool.numbers[i]; n.holder == r.Holder && n.nonce == "" {
			n.extend(r, now)
			return n.claim(i, now), nil
		}
	}
	reserved := make([]bool, pool.size)
	for _, i := range p.Reserved {
		reserved[i] = true
	}
	busy := &nodelease.BusyError{}
	var frees, passed time.Duration // the shortest times until a claim expires and until the clock passes a high-water mark
	var free []int
	for i := range pool.numbers {
		n := &pool.numbers[i]
		// If the clock was set back, the claim would last too long: end it a TTL from
		// now.
		if latest := now.Add(n.ttl); n.expires.After(latest) {
			n.expires = latest
		}
		switch left := n.expires.Sub(now); {
		case reserved[i]:
			busy.Reserved++
		case n.holder != "" && left > 0:
			busy.Held++
			frees = shorter(frees, left)
		case n.highWaterMark >= r.Now:
			busy.Ahead++
			passed = shorter(passed, r.TimeToPass(n.highWaterMark))
		default:
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		if busy.RetryAfter = frees; busy.Ahead > 0 {
			busy.RetryAfter = passed
		}
		return nodelease.Claim{}, busy
	}
	i := slices.MinFunc(free, func(a, b int) int { return cmp.Compare(pool.numbers[a].highWaterMark, pool.numbers[b].highWaterMark) })
	n := &pool.numbers[i]
	n.holder, n.nonce, n.after, n.term = r.Holder, "", n.highWaterMark, n.term+1
	n.extend(r, now)
	return n.claim(i, now), nil
}

// shorter returns the shorter of two durations, or b if a is 0.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

func (n *number) extend(r nodelease.Request, now time.Time) {
	n.highWaterMark, n.expires, n.ttl = max(n.highWaterMark, r.Until), now.Add(r.TTL), r.TTL
}

func (n *number) claim(i int, now time.Time) nodelease.Claim {
	return nodelease.Claim{Number: i, Term: n.term, Holder: n.holder, After: n.after, Until: n.highWaterMark, TTL: n.ttl, Time: now, Nonce: n.nonce}
}

// held returns the number of a claim, or an error that wraps ErrSuperseded if the
// claim's term is over or a copy of its holder has renewed it.
func (s *Store) held(p nodelease.Pool, c nodelease.Claim) (*number, error) {
	pool, err := s.open(p)
	if err != nil {
		return nil, err
	}
	if c.Number < 0 || c.Number >= pool.size {
		return nil, fmt.Errorf("leasetest: renew number %d of pool %q: out of range; want 0 to %d: %w", c.Number, p.Name, pool.size-1, nodelease.ErrSuperseded)
	}
	n := &pool.numbers[c.Number]
	if n.term != c.Term || n.holder != c.Holder {
		return nil, fmt.Errorf("leasetest: renew number %d of pool %q in term %d: the number is in term %d, held by %q: %w",
			c.Number, p.Name, c.Term, n.term, n.holder, nodelease.ErrSuperseded)
	}
	if !c.Knows(n.nonce) {
		return nil, fmt.Errorf("leasetest: renew number %d of pool %q in term %d: a copy of this process has renewed the claim: %w", c.Number, p.Name, c.Term, nodelease.ErrSuperseded)
	}
	return n, nil
}

// Renew extends a claim; see [nodelease.Store].
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nodelease.Claim{}, err
	}
	n, err := s.held(p, c)
	if err != nil {
		return nodelease.Claim{}, err
	}
	now := s.now()
	if err := r.CheckSkew(now); err != nil {
		return nodelease.Claim{}, fmt.Errorf("leasetest: renew number %d of pool %q: %w", c.Number, p.Name, err)
	}
	n.extend(r, now)
	n.nonce = r.Nonce
	return n.claim(c.Number, now), nil
}

// Release ends a claim; see [nodelease.Store].
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := s.held(p, c)
	switch {
	case errors.Is(err, nodelease.ErrSuperseded):
		return nil
	case err != nil:
		return err
	}
	n.holder, n.highWaterMark = "", max(highWaterMark, n.after)
	return nil
}
