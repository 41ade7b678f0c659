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
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// A Store is a [nodelease.Store] in memory, for the tests of one process. The zero
// value is ready to use.
type Store struct {
	// Clock is the store's clock. Nil means the system clock.
	Clock func() time.Time

	mu     sync.Mutex
	pools  map[string]*pool
	writes []write
	fence  time.Time
}

// A write is a change of a number, for [Store.LoseWrites].
type write struct {
	at     time.Time
	of     *number
	before number
}

type pool struct {
	size    int
	layout  string
	numbers []number
}

type number struct {
	stores.Record
	expires time.Time
	ttl     time.Duration
}

var _ nodelease.Store = (*Store)(nil)

// open returns a pool, which it creates if it doesn't exist, and the time. The caller holds s.mu.
func (s *Store) open(ctx context.Context, p nodelease.Pool) (*pool, time.Time, error) {
	if err := cmp.Or(ctx.Err(), p.Validate()); err != nil {
		return nil, time.Time{}, err
	}
	if s.pools == nil {
		s.pools = map[string]*pool{}
	}
	if s.pools[p.Name] == nil {
		s.pools[p.Name] = &pool{p.Size, p.Layout, make([]number, p.Size)}
	}
	got := s.pools[p.Name]
	return got, s.now(), stores.CheckLayout(fmt.Sprintf("leasetest: open pool %q", p.Name), p, got.size, got.layout)
}

// LoseWrites undoes the changes since a time by the store's clock, as a standby lacks the last
// writes when it takes over. As a store must, it then grants no number until the longest TTL
// has passed, and later claims start after that time.
func (s *Store) LoseWrites(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ttl := s.now(), time.Duration(0)
	for _, p := range s.pools {
		for _, n := range p.numbers {
			ttl = max(ttl, n.ttl)
		}
	}
	for i := len(s.writes) - 1; i >= 0 && !s.writes[i].at.Before(since); i-- {
		*s.writes[i].of, s.writes = s.writes[i].before, s.writes[:i]
	}
	if fence := now.Add(ttl); fence.After(s.fence) {
		s.fence = fence
	}
}

// fencedUntil returns the end of the fence in Unix milliseconds, or 0 without one.
func (s *Store) fencedUntil() int64 {
	if s.fence.IsZero() {
		return 0
	}
	return s.fence.UnixMilli() + 1
}

func (s *Store) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// Claim grants a number; see [nodelease.Store].
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pool, now, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if err := r.CheckSkew(now); err != nil {
		return nodelease.Claim{}, fmt.Errorf("leasetest: claim a number of pool %q: %w", p.Name, err)
	}
	for i := range pool.numbers {
		if n := &pool.numbers[i]; n.Holder == r.Holder && n.Nonce == "" && s.fencedUntil() < r.Now {
			m := n.Renewed(r)
			m.After = max(m.After, s.fencedUntil())
			return s.grant(n, i, m, r, now), nil
		}
	}
	busy, reserved := &nodelease.BusyError{}, stores.Reserved(p)
	var frees time.Duration // the shortest time until a claim expires
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
		case n.Holder != "" && left > 0:
			if busy.Held == 0 || left < frees {
				frees = left
			}
			busy.Held++
		case max(n.Until, s.fencedUntil()) >= r.Now:
			stores.CountAhead(busy, r.TimeToPass(max(n.Until, s.fencedUntil())))
		default:
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		if busy.Ahead == 0 {
			busy.RetryAfter = frees
		}
		return nodelease.Claim{}, busy
	}
	i := slices.MinFunc(free, func(a, b int) int { return cmp.Compare(pool.numbers[a].Until, pool.numbers[b].Until) })
	n := &pool.numbers[i]
	m := n.Claimed(r)
	m.After = max(m.After, s.fencedUntil())
	return s.grant(n, i, m, r, now), nil
}

// grant stores the record of a request that is granted, and returns the claim.
func (s *Store) grant(n *number, i int, m stores.Record, r nodelease.Request, now time.Time) nodelease.Claim {
	s.writes = append(s.writes, write{now, n, *n})
	n.Record, n.expires, n.ttl = m, now.Add(r.TTL), r.TTL
	return m.Claim(i, r.TTL, now)
}

// held returns the number of a claim and the time, or an error that wraps ErrSuperseded if the
// claim is over or a copy of its holder has renewed it. The caller holds s.mu.
func (s *Store) held(ctx context.Context, p nodelease.Pool, c nodelease.Claim) (*number, time.Time, error) {
	pool, now, err := s.open(ctx, p)
	if err != nil {
		return nil, now, err
	}
	n := new(number) // of a claim that is out of range
	if c.Number >= 0 && c.Number < pool.size {
		n = &pool.numbers[c.Number]
	}
	if err := n.Check(c); err != nil {
		return nil, now, fmt.Errorf("leasetest: renew number %d of pool %q in term %d: %w", c.Number, p.Name, c.Term, err)
	}
	return n, now, nil
}

// Renew extends a claim; see [nodelease.Store].
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := s.held(ctx, p, c)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if err := r.CheckSkew(now); err != nil {
		return nodelease.Claim{}, fmt.Errorf("leasetest: renew number %d of pool %q: %w", c.Number, p.Name, err)
	}
	return s.grant(n, c.Number, n.Renewed(r), r, now), nil
}

// Release ends a claim; see [nodelease.Store].
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := s.held(ctx, p, c)
	if errors.Is(err, nodelease.ErrSuperseded) {
		return nil
	}
	if err == nil {
		s.writes = append(s.writes, write{now, n, *n})
		n.Record = n.Released(highWaterMark)
	}
	return err
}
