package zklease

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// holdBack is how long a number isn't claimed after a process of the Java
// program may have released it. That program writes no marks, and relies on
// clocks that differ by less than this.
const holdBack = 2 * time.Second

// A history is what a store has seen of a pool's claims, for the numbers whose
// releases nobody has recorded.
type history struct {
	changes int32 // how many there had been to the claims at the last look
	present map[string]bool
	// absent is since when numbers have been free without a break, as far as was
	// seen, by the monotonic clock.
	absent map[int]time.Time
}

// note takes in what was seen in one look, which was over at the given time.
func (h *history) note(changes int32, names []string, size int, received time.Time) {
	present := make(map[string]bool, len(names))
	seen := int32(0) // claims and releases between the last look and this one
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
	// If there were more changes than one sees, any number may have been held in
	// between.
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

// left is how long a free number is still held back, for a look that began at
// the given time.
func (h *history) left(number int, sent time.Time) time.Duration {
	return min(holdBack-sent.Sub(h.absent[number]), holdBack)
}

// lookAtMarks reads the marks, and finds the numbers that were released here and
// are kept from the Java program for a while, as that keeps its own. They needn't
// be kept from us, who go by the marks.
func (s *Store) lookAtMarks(ctx context.Context, root string, p nodelease.Pool, held map[int]bool, v *view) error {
	marks, err := s.marks(ctx, root, slices.Collect(maps.Keys(held)))
	if err != nil {
		return err
	}
	v.resting = make(map[int]bool)
	for _, m := range marks {
		if !m.used {
			continue
		}
		v.marks = append(v.marks, m)
		if m.mark.Holder != "" {
			continue
		}
		err := s.persist(ctx, func() error {
			exists, stat, err := s.conn.Exists(numberPath(root, poolName, m.number))
			v.resting[m.number] = exists && stat.Version == holdVersion
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// notHeldBack gives the free numbers that the Java program can't have released
// just now. The others count as held.
func (s *Store) notHeldBack(ctx context.Context, root string, p nodelease.Pool, v view, place *place, busy *nodelease.BusyError) ([]int, error) {
	s.mu.Lock()
	h := s.histories[root]
	if h == nil {
		h = &history{}
		s.histories[root] = h
	}
	h.note(v.stat.Cversion, v.names, p.Size, v.received)
	left := make(map[int]time.Duration, len(v.free))
	for _, n := range v.free {
		left[n] = h.left(n, v.sent)
	}
	s.mu.Unlock()

	if v.stat.Cversion == 0 {
		return v.free, nil // there never was a claim
	}
	var lock *zk.Stat
	err := s.persist(ctx, func() (err error) {
		exists := false
		if exists, lock, err = s.conn.Exists(place.lockPath()); err == nil && !exists {
			err = errSessionEnded
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	marks, err := s.marks(ctx, root, v.free)
	if err != nil {
		return nil, err
	}
	ours := make(map[int]bool) // numbers whose release was the last change, and not a Java process's
	for _, m := range append(marks, v.marks...) {
		if !m.used {
			continue
		}
		// All of the pool has been at rest since before this mark was written.
		if m.stat.Mzxid > v.stat.Pzxid && lock.Ctime-m.stat.Mtime >= holdBack.Milliseconds() {
			return v.free, nil
		}
		if m.mark.Holder == "" && m.stat.Mzxid == v.stat.Pzxid {
			ours[m.number] = true
		}
	}
	var free []int
	for _, n := range v.free {
		if v.resting[n] || ours[n] || left[n] <= 0 {
			free = append(free, n)
			continue
		}
		busy.Held++
		if busy.Frees == 0 || left[n] < busy.Frees {
			busy.Frees = left[n]
		}
	}
	return free, nil
}

// rest keeps a number that was released from the Java program for a while, and
// then has it go, in one change with its mark: so one sees that no other program
// was the last to hold it.
func (s *Store) rest(path, markPath string, m mark, version int32) {
	s.mu.Lock()
	s.resting++
	s.mu.Unlock()
	go func() {
		select {
		case <-time.After(holdBack):
		case <-s.life.Done():
		}
		err := s.persist(s.life, func() error {
			_, err := s.conn.Multi(
				&zk.DeleteRequest{Path: path, Version: holdVersion},
				&zk.SetDataRequest{Path: markPath, Data: encode(m), Version: version})
			return err
		})
		s.mu.Lock()
		s.resting--
		s.mu.Unlock()
		if err == nil || contested(err) { // then someone else has the number
			s.gone(path, m.Term)
		}
	}()
}

// rested waits for the numbers that rest, but not for servers that don't answer.
func (s *Store) rested() {
	for deadline := time.Now().Add(holdBack + time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		n := s.resting
		s.mu.Unlock()
		if n == 0 {
			return
		}
	}
}
