package leasetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sortkey/sortkey/leasetest"
	"github.com/sortkey/sortkey/nodelease"
)

func TestStore(t *testing.T) {
	t.Parallel()
	store := new(leasetest.Store)
	leasetest.Exercise(t, leasetest.Harness{Open: func(*testing.T) nodelease.Store { return store }})
}

// Where a claim lives as long as a connection, whatever time it was asked for.
func TestStoreOfSessions(t *testing.T) {
	t.Parallel()
	store := new(leasetest.Store)
	leasetest.Exercise(t, leasetest.Harness{
		Open: func(t *testing.T) nodelease.Store {
			s := &session{store: store, claims: map[string]claim{}, crashed: make(chan struct{})}
			go s.keep()
			t.Cleanup(s.crash)
			return s
		},
		Crash: func(_ *testing.T, client nodelease.Store) { client.(*session).crash() },
	})
}

// A session keeps its claims until it crashes, and then for another second.
type session struct {
	store   *leasetest.Store
	mu      sync.Mutex
	claims  map[string]claim // by their holders
	once    sync.Once
	crashed chan struct{}
}

type claim struct {
	nodelease.Claim
	pool nodelease.Pool
}

const expires = time.Second

var errCrashed = errors.New("crashed")

func (s *session) crash() { s.once.Do(func() { close(s.crashed) }) }

func (s *session) keep() {
	for {
		select {
		case <-s.crashed:
			return
		case <-time.After(expires / 10):
		}
		s.mu.Lock()
		for _, c := range s.claims {
			_, _ = s.store.Renew(context.Background(), c.pool, c.Claim, nodelease.Request{TTL: expires})
		}
		s.mu.Unlock()
	}
}

// do makes a call of a session that is still there.
func (s *session) do(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.crashed:
		return errCrashed
	default:
		return f()
	}
}

func (s *session) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, err error) {
	r.TTL = expires
	err = s.do(func() error {
		if c, err = s.store.Claim(ctx, p, r); err == nil {
			s.claims[r.Holder] = claim{c, p}
		}
		return err
	})
	return c, err
}

func (s *session) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (got nodelease.Claim, err error) {
	r.TTL = expires
	err = s.do(func() error {
		got, err = s.store.Renew(ctx, p, c, r)
		return err
	})
	return got, err
}

func (s *session) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, mark int64) error {
	return s.do(func() error {
		err := s.store.Release(ctx, p, c, mark)
		if own := s.claims[c.Holder]; err == nil && own.Number == c.Number && own.Term == c.Term {
			delete(s.claims, c.Holder)
		}
		return err
	})
}
