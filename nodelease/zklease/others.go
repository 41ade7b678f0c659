package zklease

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// others are programs without this package that claim numbers of a pool by the
// same znodes. Most pools have nobody else; java.go has the others of Spread64.
type others interface {
	// prepare makes the znodes that the others need, and checks them.
	prepare(ctx context.Context, p *pool) error
	// released returns those of the numbers with a znode whose claim was released,
	// and whose znode is there for the others alone.
	released(ctx context.Context, p *pool, held map[int]bool) (map[int]bool, error)
	// settled returns those of the view's free numbers that can be claimed without
	// harm to the others, and counts the rest as held. The caller has the lock.
	settled(ctx context.Context, p *pool, v view, place *place, busy *nodelease.BusyError) ([]int, error)
	// letGo returns what is done with a claim's znode in the transaction that
	// releases the claim and writes r, and what to do after that, given the version
	// of the record.
	letGo(p *pool, number int, r record) (request any, after func(version int32))
}

// othersOf returns the others of a pool, with what is known of them.
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

// nobody is for pools that no other programs share.
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

// inBackground goes on with a release, for which Close waits.
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

// maxFinish is how long Close waits for them.
const maxFinish = 3 * time.Second

// finish waits for releases that go on in the background, but not for servers
// that don't answer.
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
