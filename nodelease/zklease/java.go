package zklease

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// The pools of Spread64 have the znodes of the Java program with the same ID format:
// queue, pool and clusterName. The Java program writes no high-water marks. Only the
// znode of a claim shows that the number is in use, and only while it exists.

// clusterName is the name of the znode with the cluster's number, below a pool's root.
const clusterName = "cluster-id"

// holdBack is how long a number isn't claimed after a Java process may have released
// it. The Java program requires clocks that differ by less than this.
const holdBack = 2 * time.Second

// javaPrograms implements others for a pool of Spread64.
type javaPrograms struct {
	mu      sync.Mutex
	history history
}

func (j *javaPrograms) prepare(ctx context.Context, p *pool) error {
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

// released returns the numbers that letGo is blocking for the Java program.
func (j *javaPrograms) released(ctx context.Context, p *pool, held map[int]bool) (map[int]bool, error) {
	spots, err := p.spots(ctx, slices.Collect(maps.Keys(held)))
	if err != nil {
		return nil, err
	}
	released := make(map[int]bool)
	for _, sp := range spots {
		if !sp.used || sp.record.Holder != "" {
			continue
		}
		err := p.persist(ctx, func() error {
			exists, stat, err := p.conn.Exists(p.path(poolName, sp.number))
			released[sp.number] = exists && stat.Version == holdVersion
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return released, nil
}

// settled returns the free numbers without the numbers that a Java process may have
// released within holdBack.
func (j *javaPrograms) settled(ctx context.Context, p *pool, v view, place *place, busy *nodelease.BusyError) ([]int, error) {
	j.mu.Lock()
	j.history.note(v.stat.Cversion, v.names, p.Size, v.received)
	left := make(map[int]time.Duration, len(v.free))
	for _, n := range v.free {
		left[n] = j.history.left(n, v.sent)
	}
	j.mu.Unlock()

	if v.stat.Cversion == 0 {
		return v.free, nil // the pool has never had a claim
	}
	var lock *zk.Stat
	err := p.persist(ctx, func() (err error) {
		exists := false
		if exists, lock, err = p.conn.Exists(place.lockPath()); err == nil && !exists {
			err = errSessionEnded
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]int, p.Size)
	for n := range all {
		all[n] = n
	}
	spots, err := p.spots(ctx, all)
	if err != nil {
		return nil, err
	}
	ours := make(map[int]bool) // numbers whose release by this package was the last change of the pool
	for _, sp := range spots {
		if !sp.used {
			continue
		}
		// The record is newer than the last change of the pool's claims, and was at
		// least holdBack old when this process got the lock. So each release by a Java
		// process is older than holdBack.
		if sp.stat.Mzxid > v.stat.Pzxid && lock.Ctime-sp.stat.Mtime >= holdBack.Milliseconds() {
			return v.free, nil
		}
		if sp.record.Holder == "" && sp.stat.Mzxid == v.stat.Pzxid {
			ours[sp.number] = true
		}
	}
	var free []int
	for _, n := range v.free {
		if v.released[n] || ours[n] || left[n] <= 0 {
			free = append(free, n)
			continue
		}
		busy.Held++
		if busy.RetryAfter == 0 || left[n] < busy.RetryAfter {
			busy.RetryAfter = left[n]
		}
	}
	return free, nil
}

// letGo keeps the znode for holdBack, as the Java program does, and then deletes it
// together with a write of its record, in one transaction. The transaction shows that
// no Java process was the last holder of the number. Programs with this package don't
// wait for the deletion: the record tells them that the number is free.
func (j *javaPrograms) letGo(p *pool, number int, r record) (any, func(version int32)) {
	path := p.path(poolName, number)
	return &zk.CheckVersionRequest{Path: path, Version: holdVersion}, func(version int32) {
		p.inBackground(func() {
			select {
			case <-time.After(holdBack):
			case <-p.life.Done():
			}
			err := p.persist(p.life, func() error {
				_, err := p.conn.Multi(
					&zk.DeleteRequest{Path: path, Version: holdVersion},
					&zk.SetDataRequest{Path: p.path(recordName, number), Data: encode(r), Version: version})
				return err
			})
			if err == nil || contested(err) { // contested: another holder has the number
				p.gone(path, r.Term)
			}
		})
	}
}

// A history tracks since when numbers are free, from the claims that the store has seen
// in the pool. It is needed for releases by the Java program, which have no record.
type history struct {
	changes int32 // change counter of the claims at the last look
	present map[string]bool
	// absent has the time since which each number has been free without a break, by
	// the monotonic clock.
	absent map[int]time.Time
}

// note adds the claims that a look has found. The look ended at received.
func (h *history) note(changes int32, names []string, size int, received time.Time) {
	present := make(map[string]bool, len(names))
	seen := int32(0) // visible changes between the last look and this one
	for _, name := range names {
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
	complete := h.present != nil && changes-h.changes == seen
	absent := make(map[int]time.Time, size)
	for n := range size {
		if present[strconv.Itoa(n)] {
			continue
		}
		absent[n] = received
		if since, ok := h.absent[n]; ok && complete {
			absent[n] = since
		}
	}
	h.changes, h.present, h.absent = changes, present, absent
}

// left returns how long a free number must still be held back, for a look that began
// at sent.
func (h *history) left(number int, sent time.Time) time.Duration {
	return min(holdBack-sent.Sub(h.absent[number]), holdBack)
}
