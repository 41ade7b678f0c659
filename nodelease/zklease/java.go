package zklease

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// The pools of Spread64 have the znodes pool and clusterName of the Java program with the same
// ID format. The Java program creates the ephemeral znode of a number too, and takes the next
// number if it exists. It has a lock, in the znode queue, which only prevents such conflicts
// between its own processes. It writes no high-water marks: only the znode of a claim shows
// that the number is in use, and only while it exists.

// clusterName is the name of the znode with the cluster's number, below a pool's root.
const clusterName = "cluster-id"

// holdBack is how long a number isn't claimed after a Java process may have released
// it. The Java program requires clocks that differ by less than this, and keeps a number for
// this long before it releases it.
const holdBack = 2 * time.Second

// historyOf returns the history of a pool, or nil if the Java program doesn't share it.
func (s *Store) historyOf(p nodelease.Pool, root string) *history {
	if _, ok := p.Cluster(); !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.histories[root] == nil {
		s.histories[root] = new(history)
	}
	return s.histories[root]
}

// checkCluster creates the znode with the number of the cluster, or compares it.
func (p *pool) checkCluster(ctx context.Context) error {
	cluster, _ := p.Cluster()
	path := p.root + "/" + clusterName
	data, err := p.getOrMake(ctx, path, fmt.Append(nil, cluster))
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(data)); got != fmt.Sprint(cluster) {
		return fmt.Errorf("zklease: open pool %q: want cluster %d, got %q in %s; configure that cluster, or correct the znode: %w", p.Name, cluster, got, path, nodelease.ErrPoolMismatch)
	}
	return nil
}

// lookForJava completes a view with what depends on the Java program. The servers' clock was
// read before the claims.
func (p *pool) lookForJava(ctx context.Context, v *view, clock time.Time) error {
	v.java, v.released, v.wait = true, map[int]bool{}, p.java.note(v, p.Size)
	if v.stat.Cversion == 0 {
		clear(v.wait) // the pool has never had a claim
		return nil
	}
	all := make([]int, p.Size)
	for n := range all {
		all[n] = n
	}
	numbers, err := p.records(ctx, all)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n.stat == nil {
			continue
		}
		released := n.record.Holder == ""
		switch {
		case released && v.held[n.number]:
			znode, err := p.claimed(ctx, n.number)
			if err != nil {
				return err
			}
			v.released[n.number] = znode != nil
		case released && n.stat.Mzxid == v.stat.Pzxid:
			delete(v.wait, n.number) // its release by this package was the last change of the pool
		}
		// The record is newer than the last change of the pool's claims, and was at least
		// holdBack old before this look. So each release by a Java process is older than
		// holdBack.
		if n.stat.Mzxid > v.stat.Pzxid && clock.UnixMilli()-n.stat.Mtime >= holdBack.Milliseconds() {
			clear(v.wait)
		}
	}
	return nil
}

// stale reports whether a Java process may have claimed and released a number since the
// view's claims were read. It keeps each number for at least holdBack.
func (v *view) stale() bool { return v.java && time.Since(v.sent) >= holdBack }

// unblockLater keeps the znode of a released claim for holdBack, as the Java program does, and
// then deletes it together with a write of its record, in one transaction. The transaction
// shows that no Java process was the last holder of the number. Programs with this package
// don't wait for the deletion: the record tells them that the number is free.
func (p *pool) unblockLater(number int, r record, version int32) {
	p.mu.Lock()
	p.blocking++
	p.mu.Unlock()
	go func() {
		select {
		case <-time.After(holdBack):
		case <-p.life.Done():
		}
		err := p.persist(p.life, func() error {
			_, err := p.conn.Multi(
				&zk.DeleteRequest{Path: p.path(poolName, number), Version: claimVersion},
				&zk.SetDataRequest{Path: p.path(recordName, number), Data: encode(r), Version: version})
			return err
		})
		if err == nil || contested(err) { // contested: another holder has the number
			p.forget(number, r.Term)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.blocking--
	}()
}

// maxUnblock is how long Close waits until no released number is blocked any more.
const maxUnblock = 3 * time.Second

// unblocked waits until no released number is blocked any more, for at most maxUnblock, since
// the servers may not answer.
func (s *Store) unblocked() {
	for deadline := time.Now().Add(maxUnblock); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		n := s.blocking
		s.mu.Unlock()
		if n == 0 {
			return
		}
	}
}

// A history tracks since when numbers are free, from the claims that the store has seen
// in the pool. It is needed for releases by the Java program, which have no record.
type history struct {
	mu      sync.Mutex
	changes int32 // change counter of the claims at the last look
	present map[string]bool
	// absent has the time since which each number has been free without a break, by
	// the monotonic clock.
	absent map[int]time.Time
}

// note adds the claims of a view. It returns the rest of the time for which each number
// without a znode must be held back.
func (h *history) note(v *view, size int) map[int]time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	present := make(map[string]bool, len(v.names))
	seen := int32(0) // visible changes between the last look and this one
	for _, name := range v.names {
		present[name] = true
		if !h.present[name] {
			seen++
		}
	}
	for name := range h.present {
		if !present[name] {
			seen++
		}
	}
	// If the counter shows more changes than are visible, any number may have been held
	// in between.
	complete := h.present != nil && v.stat.Cversion-h.changes == seen
	absent := make(map[int]time.Time, size)
	wait := make(map[int]time.Duration, size)
	for n := range size {
		if present[strconv.Itoa(n)] {
			continue
		}
		absent[n] = v.received
		if since, ok := h.absent[n]; ok && complete {
			absent[n] = since
		}
		if left := holdBack - v.sent.Sub(absent[n]); left > 0 {
			wait[n] = min(left, holdBack)
		}
	}
	h.changes, h.present, h.absent = v.stat.Cversion, present, absent
	return wait
}
