package zklease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// Claim grants a number; see [nodelease.Store]. It waits for its turn in the
// pool's queue for three quarters of the time that the context has left, or for
// half the TTL if the context doesn't end.
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	if err := s.begin(ctx, p); err != nil {
		return nodelease.Claim{}, err
	}
	root := s.root(p)
	// A repetition waits for what the earlier call has left to do.
	done, err := s.turn(ctx, "claim "+root+" "+r.Holder)
	if err != nil {
		return nodelease.Claim{}, err
	}
	c, err := await(ctx, s, done,
		func() (nodelease.Claim, error) { return s.claim(ctx, root, p, r) },
		func(c nodelease.Claim, err error) {
			if err == nil {
				_ = s.release(root, p, c, c.After) // nobody has minted with it
			}
		})
	return c, explain(err)
}

func (s *Store) claim(ctx context.Context, root string, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	for {
		c, err := s.claimOnce(ctx, root, p, r)
		if !errors.Is(err, errSessionEnded) {
			return c, err
		}
		if ctx.Err() != nil {
			return c, s.noAnswer(ctx, err)
		}
	}
}

func (s *Store) claimOnce(ctx context.Context, root string, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	begun, wait := time.Now(), r.TTL/2
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline) * 3 / 4
	}
	if err := s.open(ctx, root, p); err != nil {
		return nodelease.Claim{}, err
	}
	r = r.Shorten(s.session())
	if c, ok, err := s.repeat(ctx, root, p, r); ok || err != nil {
		return c, err
	}
	// Who waits for a number doesn't stand in the way of others.
	v, err := s.look(ctx, root, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if len(v.free) == 0 {
		return nodelease.Claim{}, v.busy()
	}
	place, err := s.enter(ctx, root, r.Holder, begun.Add(wait))
	var blocked *queueError
	switch {
	case errors.As(err, &blocked):
		blocked.busy = v.busy()
		return nodelease.Claim{}, err
	case err != nil:
		return nodelease.Claim{}, err
	}
	defer place.leave()
	for {
		if v, err = s.look(ctx, root, p); err != nil {
			return nodelease.Claim{}, err
		}
		spots, busy, err := s.choose(ctx, root, p, r, v, place)
		if err != nil {
			return nodelease.Claim{}, err
		}
		if len(spots) == 0 {
			return nodelease.Claim{}, busy
		}
		c, err := s.grab(ctx, root, p, r, place, spots[0], v.resting[spots[0].number])
		if !errors.Is(err, errTaken) {
			return c, err
		}
	}
}

// open sees to it that the pool is there, and is what the caller takes it for.
func (s *Store) open(ctx context.Context, root string, p nodelease.Pool) error {
	err := s.persist(ctx, func() error {
		// What others did before this call was made has to count.
		_, err := s.conn.Sync(root)
		return err
	})
	if err != nil {
		return err
	}
	if cluster, ok := p.Cluster(); ok {
		path := root + "/" + clusterName
		data, err := s.getOrMake(ctx, path, fmt.Append(nil, cluster))
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(string(data)); got != fmt.Sprint(cluster) {
			return fmt.Errorf("zklease: expected cluster %d for pool %q, got %q in %s: configure the one or change the other: %w", cluster, p.Name, got, path, nodelease.ErrPoolMismatch)
		}
	}
	path := root + "/" + layoutName
	data, _, err := s.get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		for _, dir := range []string{queueName, poolName, markName} {
			if err := s.make(ctx, root+"/"+dir, nil); err != nil {
				return err
			}
		}
		// Last of all: what has it has all.
		data, err = s.getOrMake(ctx, path, encode(layout{p.Size, p.Layout}))
	}
	if err != nil {
		return err
	}
	made, err := decode[layout](path, data)
	if err == nil && (made.Size != p.Size || made.Layout != p.Layout) {
		err = fmt.Errorf("zklease: expected pool %q as it was made at %s, with %d numbers for %q, got %d for %q: %w",
			p.Name, root, made.Size, made.Layout, p.Size, p.Layout, nodelease.ErrPoolMismatch)
	}
	return err
}

// getOrMake reads a znode, and makes it if it isn't there.
func (s *Store) getOrMake(ctx context.Context, path string, data []byte) ([]byte, error) {
	for {
		found, _, err := s.get(ctx, path)
		if !errors.Is(err, zk.ErrNoNode) {
			return found, err
		}
		if err := s.make(ctx, path, data); err != nil {
			return nil, err
		}
	}
}

// make makes a znode that stays, and those above it, if they aren't there.
func (s *Store) make(ctx context.Context, path string, data []byte) error {
	err := s.persist(ctx, func() error {
		exists, _, err := s.conn.Exists(path)
		if exists || err != nil {
			return err
		}
		_, err = s.conn.Create(path, data, 0, s.config.ACL)
		return err
	})
	switch parent := path[:strings.LastIndexByte(path, '/')]; {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode) && parent != "":
		if err := s.make(ctx, parent, nil); err != nil {
			return err
		}
		return s.make(ctx, path, data)
	case err != nil:
		return fmt.Errorf("zklease: expected to make %s: %w", path, err)
	}
	return nil
}

// get reads a znode.
func (s *Store) get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = s.persist(ctx, func() (err error) {
		data, stat, err = s.conn.Get(path)
		return err
	})
	if err != nil {
		err = fmt.Errorf("zklease: expected to read %s: %w", path, err)
	}
	return data, stat, err
}

// A view is what of a pool can be seen at one glance.
type view struct {
	names    []string // of the claims, whatever they are
	stat     *zk.Stat // of the claims' parent
	sent     time.Time
	received time.Time
	free     []int
	held     int
	reserved int
	// Of a pool that the Java program may use, too:
	marks   []spot       // of the numbers that have one
	resting map[int]bool // of the free numbers, those that are kept from that program
}

func (s *Store) look(ctx context.Context, root string, p nodelease.Pool) (view, error) {
	var v view
	err := s.persist(ctx, func() (err error) {
		v.sent = time.Now()
		v.names, v.stat, err = s.conn.Children(root + "/" + poolName)
		v.received = time.Now()
		return err
	})
	if err != nil {
		return v, err
	}
	held := numbers(v.names, p.Size)
	if _, ok := p.Cluster(); ok {
		if err := s.lookAtMarks(ctx, root, p, held, &v); err != nil {
			return v, err
		}
	}
	reserved := make(map[int]bool, len(p.Reserved))
	for _, n := range p.Reserved {
		reserved[n] = true
	}
	for n := range p.Size {
		switch {
		case reserved[n]:
			v.reserved++
		case held[n] && !v.resting[n]:
			v.held++
		default:
			v.free = append(v.free, n)
		}
	}
	return v, nil
}

func (v view) busy() *nodelease.BusyError {
	return &nodelease.BusyError{Held: v.held, Reserved: v.reserved}
}

// choose gives the numbers that can be claimed, best first. If there are none it
// says why.
func (s *Store) choose(ctx context.Context, root string, p nodelease.Pool, r nodelease.Request, v view, place *place) ([]spot, *nodelease.BusyError, error) {
	busy := v.busy()
	var marked []string
	err := s.persist(ctx, func() (err error) {
		marked, _, err = s.conn.Children(root + "/" + markName)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	used := numbers(marked, p.Size)
	free := v.free
	if _, ok := p.Cluster(); ok {
		if free, err = s.notHeldBack(ctx, root, p, v, place, busy); err != nil {
			return nil, nil, err
		}
	}
	var spots []spot
	var old []int
	for _, n := range free {
		switch {
		case used[n]:
			old = append(old, n)
		case r.Now > 0:
			spots = append(spots, spot{number: n})
		default:
			ahead(busy, 0)
		}
	}
	if len(spots) > 0 {
		return spots, nil, nil
	}
	// One of some, if reading all would take too long.
	if len(old) > chunk {
		rand.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
	}
	for some := range slices.Chunk(old, chunk) {
		found, err := s.marks(ctx, root, some)
		if err != nil {
			return nil, nil, err
		}
		for _, sp := range found {
			if sp.mark.Until < r.Now {
				spots = append(spots, sp)
			} else {
				ahead(busy, sp.mark.Until)
			}
		}
		if len(spots) > 0 {
			slices.SortFunc(spots, byAge)
			return spots, nil, nil
		}
	}
	return nil, busy, nil
}

// chunk is how many marks are read at a time.
const chunk = 1024

func ahead(busy *nodelease.BusyError, until int64) {
	if busy.Ahead == 0 || until < busy.Mark {
		busy.Mark = until
	}
	busy.Ahead++
}

// marks reads the marks of some numbers.
func (s *Store) marks(ctx context.Context, root string, ns []int) ([]spot, error) {
	spots := make([]spot, len(ns))
	err := each(len(ns), func(i int) error {
		path := numberPath(root, markName, ns[i])
		data, stat, err := s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			spots[i] = spot{number: ns[i]}
			return nil
		}
		if err != nil {
			return err
		}
		m, err := decode[mark](path, data)
		spots[i] = spot{ns[i], true, m, stat}
		return err
	})
	return spots, err
}

// each calls f for 0 to n-1, several at a time, since answers take longer than
// questions.
func each(n int, f func(int) error) error {
	const workers = 32
	errs := make([]error, n)
	var group sync.WaitGroup
	for w := range min(workers, n) {
		group.Go(func() {
			for i := w; i < n; i += workers {
				errs[i] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// errTaken: someone was faster.
var errTaken = errors.New("zklease: the number was taken meanwhile")

// grab takes a number, and leaves the queue.
func (s *Store) grab(ctx context.Context, root string, p nodelease.Pool, r nodelease.Request, place *place, sp spot, resting bool) (nodelease.Claim, error) {
	path, markPath := numberPath(root, poolName, sp.number), numberPath(root, markName, sp.number)
	next := mark{Term: sp.mark.Term + 1, Holder: r.Holder, After: sp.mark.Until, Until: max(sp.mark.Until, r.Until)}
	mine := tag{next.Term, next.Holder}
	ops := place.unlock()
	leaving := len(ops)
	if resting {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: holdVersion})
	}
	ops = append(ops, s.hold(path, mine)...)
	if sp.used {
		ops = append(ops, &zk.SetDataRequest{Path: markPath, Data: encode(next), Version: sp.stat.Version})
	} else {
		ops = append(ops, &zk.CreateRequest{Path: markPath, Data: encode(next), Acl: s.config.ACL})
	}
	s.mu.Lock()
	delete(s.searched, root+" "+r.Holder)
	s.mu.Unlock()
	for ctx.Err() == nil {
		results, err := s.conn.Multi(ops...)
		if err == nil {
			place.left = true
			return s.granted(path, sp.number, next, r, results[len(results)-2].Stat), nil
		}
		if !transient(err) {
			switch {
			case !contested(err):
			case failed(results) < leaving:
				return nodelease.Claim{}, errSessionEnded
			default:
				return nodelease.Claim{}, errTaken
			}
			return nodelease.Claim{}, fmt.Errorf("zklease: expected to claim %s: %w", path, err)
		}
		// Was it done? There is no giving up on that: a number that nobody knows
		// of would be held for as long as the session lives.
		var data []byte
		var stat *zk.Stat
		err = s.persist(s.life, func() (err error) {
			if _, err = s.conn.Sync(path); err != nil {
				return err
			}
			data, stat, err = s.conn.Get(path)
			return err
		})
		switch {
		case err == nil && string(data) == string(encode(mine)):
			place.left = true
			return s.granted(path, sp.number, next, r, stat), nil
		case err == nil:
			return nodelease.Claim{}, errTaken
		case !errors.Is(err, zk.ErrNoNode):
			return nodelease.Claim{}, err
		}
	}
	return nodelease.Claim{}, s.noAnswer(ctx, nil)
}

// hold is what makes the znode of a claim. Its version is 1: that of one which
// the Java program has made is 0.
func (s *Store) hold(path string, t tag) []any {
	return []any{
		&zk.CreateRequest{Path: path, Data: encode(t), Acl: s.config.ACL, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: path, Data: encode(t), Version: 0},
	}
}

// holdVersion is the version of the znode of a claim.
const holdVersion = 1

// failed is the index of the request that had all of them fail.
func failed(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
}

// granted makes the claim known. Stat is of a znode that was written for it.
func (s *Store) granted(path string, number int, m mark, r nodelease.Request, stat *zk.Stat) nodelease.Claim {
	s.mu.Lock()
	s.held[path] = m.Term
	s.mu.Unlock()
	return nodelease.Claim{Number: number, Term: m.Term, Holder: m.Holder, After: m.After, Until: m.Until, TTL: min(r.TTL, s.session()), Time: time.UnixMilli(stat.Mtime)}
}

// gone has the store forget a claim.
func (s *Store) gone(path string, term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[path] == term {
		delete(s.held, path)
	}
}

// repeat gives the claim that the holder has, if it has one.
func (s *Store) repeat(ctx context.Context, root string, p nodelease.Pool, r nodelease.Request) (c nodelease.Claim, ok bool, err error) {
	name := root + " " + r.Holder
	s.mu.Lock()
	searched := s.searched[name]
	s.mu.Unlock()
	if searched {
		return c, false, nil
	}
	v, err := s.look(ctx, root, p)
	if err != nil {
		return c, false, err
	}
	held := make([]int, 0, len(v.names))
	for n := range numbers(v.names, p.Size) {
		held = append(held, n)
	}
	tags := make([]tag, len(held))
	err = each(len(held), func(i int) error {
		path := numberPath(root, poolName, held[i])
		data, stat, err := s.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil && stat.Version == holdVersion {
			tags[i], _ = decode[tag](path, data) // of another program, if it makes no sense
		}
		return err
	})
	if err != nil {
		return c, false, err
	}
	for i, t := range tags {
		if t.Holder == r.Holder && t.Term > 0 {
			c, err := s.extend(ctx, root, held[i], t, r)
			if !errors.Is(err, nodelease.ErrTermOver) {
				return c, err == nil, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.searched) >= maxSearched {
		clear(s.searched)
	}
	s.searched[name] = true
	return c, false, nil
}

// maxSearched bounds what is remembered of calls that got no number.
const maxSearched = 1024
