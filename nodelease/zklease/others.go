package zklease

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// others handles programs without this package that claim numbers of a pool through the
// same znodes. Most pools have none (nobody). Pools of Spread64 may be shared with the
// Java program (javaPrograms).
type others interface {
	// prepare creates the znodes that the other programs need, and checks them.
	prepare(ctx context.Context, p *pool) error
	// released returns the released numbers whose znodes remain only to block other
	// programs. held has the numbers with a znode.
	released(ctx context.Context, p *pool, held map[int]bool) (map[int]bool, error)
	// settled returns the view's free numbers that no other program may still be
	// using, and counts the rest as held. The caller has the lock.
	settled(ctx context.Context, p *pool, v view, place *place, busy *nodelease.BusyError) ([]int, error)
	// letGo returns the request for a claim's znode in the transaction that releases
	// the claim and writes r, and a function to call after the transaction with the
	// version of the record.
	letGo(p *pool, number int, r record) (request any, after func(version int32))
}

// othersOf returns the others of a pool, with their state.
func (s *Store) othersOf(p nodelease.Pool, root string) others {
	if _, ok := p.Cluster(); !ok {
		return nobody{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sharing[root] == nil {
		s.sharing[root] = &javaPrograms{}
	}
	return s.sharing[root]
}

// nobody implements others for pools that no other programs share.
type nobody struct{}

func (nobody) prepare(context.Context, *pool) error { return nil }

func (nobody) released(context.Context, *pool, map[int]bool) (map[int]bool, error) { return nil, nil }

func (nobody) settled(_ context.Context, _ *pool, v view, _ *place, _ *nodelease.BusyError) ([]int, error) {
	return v.free, nil
}

func (nobody) letGo(p *pool, number int, r record) (any, func(int32)) {
	path := p.path(poolName, number)
	return &zk.DeleteRequest{Path: path, Version: holdVersion}, func(int32) { p.gone(path, r.Term) }
}

// inBackground continues a release in a goroutine; Close waits for it.
func (s *Store) inBackground(release func()) {
	s.mu.Lock()
	s.releases++
	s.mu.Unlock()
	go func() {
		release()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.releases--
	}()
}

// maxFinish is how long Close waits for releases in the background.
const maxFinish = 3 * time.Second

// finish waits for releases in the background, for at most maxFinish, since the servers
// may not answer.
func (s *Store) finish() {
	for deadline := time.Now().Add(maxFinish); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		n := s.releases
		s.mu.Unlock()
		if n == 0 {
			return
		}
	}
}
