package zklease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// Claim grants a number; see [nodelease.Store]. It waits in the pool's queue for at
// most three quarters of the time until the context's deadline, or half the TTL if the
// context has no deadline.
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	own, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	// Wait until an earlier call of the same holder has cleaned up.
	done, err := s.turn(ctx, "claim "+own.root+" "+r.Holder)
	if err != nil {
		return nodelease.Claim{}, err
	}
	c, err := await(ctx, s, done,
		func() (nodelease.Claim, error) { return own.claim(ctx, r) },
		func(c nodelease.Claim, err error) {
			if err == nil {
				_ = own.release(c, c.After) // unused: set the high-water mark back
			}
		})
	return c, explain(err)
}

func (p *pool) claim(ctx context.Context, r nodelease.Request) (nodelease.Claim, error) {
	for {
		c, err := p.claimOnce(ctx, r)
		if !errors.Is(err, errSessionEnded) {
			return c, err
		}
		if ctx.Err() != nil {
			return c, p.noAnswer(ctx, err)
		}
	}
}

func (p *pool) claimOnce(ctx context.Context, r nodelease.Request) (nodelease.Claim, error) {
	begun, wait := time.Now(), r.TTL/2
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline) * 3 / 4
	}
	if err := p.prepare(ctx); err != nil {
		return nodelease.Claim{}, err
	}
	if err := p.checkSkew(ctx, r); err != nil {
		return nodelease.Claim{}, err
	}
	r = r.LimitTTL(p.session())
	if c, ok, err := p.repeat(ctx, r); ok || err != nil {
		return c, err
	}
	// If no number is free, don't enter the queue, so that others aren't blocked.
	v, err := p.look(ctx)
	if err != nil {
		return nodelease.Claim{}, err
	}
	if len(v.free) == 0 {
		return nodelease.Claim{}, v.busy()
	}
	place, err := p.enter(ctx, p.root, r.Holder, begun.Add(wait))
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
		if v, err = p.look(ctx); err != nil {
			return nodelease.Claim{}, err
		}
		sp, err := p.choose(ctx, r, v, place)
		if err != nil {
			return nodelease.Claim{}, err
		}
		c, err := p.grab(ctx, r, place, sp, v.released[sp.number])
		if !errors.Is(err, errTaken) {
			return c, err
		}
	}
}

// prepare creates the pool's znodes if they are missing, and checks its layout.
func (p *pool) prepare(ctx context.Context) error {
	err := p.persist(ctx, func() error {
		// See all changes that were made before this call.
		_, err := p.conn.Sync(p.root)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.others.prepare(ctx, p); err != nil {
		return err
	}
	path := p.root + "/" + layoutName
	data, _, err := p.get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		for _, dir := range []string{queueName, poolName, recordName} {
			if err := p.make(ctx, p.root+"/"+dir, nil); err != nil {
				return err
			}
		}
		// The layout comes last: a pool that has it is complete.
		data, err = p.getOrMake(ctx, path, encode(layout{p.Size, p.Layout}))
	}
	if err != nil {
		return err
	}
	made, err := decode[layout](path, data)
	if err == nil && (made.Size != p.Size || made.Layout != p.Layout) {
		err = fmt.Errorf("zklease: open pool %q at %s: created with %d numbers and layout %q, but this program has %d and %q; use the same size and layout, or another pool name: %w",
			p.Name, p.root, made.Size, made.Layout, p.Size, p.Layout, nodelease.ErrPoolMismatch)
	}
	return err
}

// checkSkew returns an error if the holder's clock is too far from the servers'. From the
// last write of this store, it knows the servers' clock to within the duration of a call. If
// it doesn't, or if that clock may have been set, it writes the layout znode again, which
// changes only its time.
func (p *pool) checkSkew(ctx context.Context, r nodelease.Request) error {
	p.mu.Lock()
	known, now := !p.readAt.IsZero(), p.serverTime.Add(time.Since(p.readAt))
	p.mu.Unlock()
	if r.MaxSkew <= 0 || known && r.CheckSkew(now) == nil {
		return nil
	}
	path := p.root + "/" + layoutName
	data, stat, err := p.get(ctx, path)
	if err != nil {
		return err
	}
	err = p.persist(ctx, func() error {
		written, err := p.conn.Set(path, data, stat.Version)
		if err == nil {
			stat = written
		}
		return err
	})
	if errors.Is(err, zk.ErrBadVersion) { // written a moment ago, by another process or by an attempt whose answer was lost
		_, stat, err = p.get(ctx, path)
	}
	if err != nil {
		return fmt.Errorf("zklease: write %s: %w", path, err)
	}
	now = time.UnixMilli(stat.Mtime)
	p.mu.Lock()
	p.serverTime, p.readAt = now, time.Now()
	p.mu.Unlock()
	if err := r.CheckSkew(now); err != nil {
		return fmt.Errorf("zklease: use pool %q: %w", p.Name, err)
	}
	return nil
}

// path returns the path of a number's znode in a directory of the pool.
func (p *pool) path(dir string, number int) string {
	return p.root + "/" + dir + "/" + strconv.Itoa(number)
}

// getOrMake reads a znode, and creates it if it doesn't exist.
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

// make creates a persistent znode and its parents, unless they exist.
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
		return fmt.Errorf("zklease: create %s: %w", path, err)
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
		err = fmt.Errorf("zklease: read %s: %w", path, err)
	}
	return data, stat, err
}

// A view is the state of a pool's claims at one time.
type view struct {
	names    []string // names of the claims' znodes, including names that aren't numbers
	stat     *zk.Stat // stat of the claims' parent
	sent     time.Time
	received time.Time
	free     []int
	held     int
	reserved int
	released map[int]bool // free numbers that still have a znode
}

func (p *pool) look(ctx context.Context) (view, error) {
	var v view
	err := p.persist(ctx, func() (err error) {
		v.sent = time.Now()
		v.names, v.stat, err = p.conn.Children(p.root + "/" + poolName)
		v.received = time.Now()
		return err
	})
	if err != nil {
		return v, err
	}
	held := numbers(v.names, p.Size)
	if v.released, err = p.others.released(ctx, p, held); err != nil {
		return v, err
	}
	reserved := make(map[int]bool, len(p.Reserved))
	for _, n := range p.Reserved {
		reserved[n] = true
	}
	for n := range p.Size {
		switch {
		case reserved[n]:
			v.reserved++
		case held[n] && !v.released[n]:
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

// choose returns the claimable number with the lowest high-water mark, in a large pool
// the lowest of a random part. If no number is claimable, it returns a
// [*nodelease.BusyError].
func (p *pool) choose(ctx context.Context, r nodelease.Request, v view, place *place) (spot, error) {
	busy := v.busy()
	var names []string
	err := p.persist(ctx, func() (err error) {
		names, _, err = p.conn.Children(p.root + "/" + recordName)
		return err
	})
	if err != nil {
		return spot{}, err
	}
	free, err := p.others.settled(ctx, p, v, place, busy)
	if err != nil {
		return spot{}, err
	}
	recorded := numbers(names, p.Size)
	var old []int
	for _, n := range free {
		switch {
		case recorded[n]:
			old = append(old, n)
		case r.Now > 0:
			return spot{number: n}, nil
		default:
			ahead(busy, r.TimeToPass(0))
		}
	}
	// In a large pool, begin with a random part, since reading all would take long.
	if len(old) > chunk {
		rand.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
	}
	for some := range slices.Chunk(old, chunk) {
		found, err := p.spots(ctx, some)
		if err != nil {
			return spot{}, err
		}
		var spots []spot
		for _, sp := range found {
			if sp.record.Until < r.Now {
				spots = append(spots, sp)
			} else {
				ahead(busy, r.TimeToPass(sp.record.Until))
			}
		}
		if len(spots) > 0 {
			return slices.MinFunc(spots, byAge), nil
		}
	}
	return spot{}, busy
}

// chunk is the number of records read at a time.
const chunk = 1024

// ahead counts a free number whose high-water mark the clock hasn't passed. The
// parameter passed is how long that takes.
func ahead(busy *nodelease.BusyError, passed time.Duration) {
	if busy.Ahead == 0 || passed < busy.RetryAfter {
		busy.RetryAfter = passed
	}
	busy.Ahead++
}

// spots reads the records of some numbers.
func (p *pool) spots(ctx context.Context, ns []int) ([]spot, error) {
	spots := make([]spot, len(ns))
	err := each(len(ns), func(i int) error {
		path := p.path(recordName, ns[i])
		data, stat, err := p.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			spots[i] = spot{number: ns[i]}
			return nil
		}
		if err != nil {
			return err
		}
		r, err := decode[record](path, data)
		spots[i] = spot{ns[i], true, r, stat}
		return err
	})
	return spots, err
}

// each calls f for 0 to n-1, several at a time, to overlap the round trips.
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

// errTaken: another process claimed the number first.
var errTaken = errors.New("zklease: number taken by another process")

// grab claims a number and leaves the queue. If the number was released and still has
// a znode, grab replaces the znode.
func (p *pool) grab(ctx context.Context, r nodelease.Request, place *place, sp spot, released bool) (nodelease.Claim, error) {
	path, recordPath := p.path(poolName, sp.number), p.path(recordName, sp.number)
	next := record{Term: sp.record.Term + 1, Holder: r.Holder, After: sp.record.Until, Until: max(sp.record.Until, r.Until)}
	mine := tag{next.Term, next.Holder}
	ops := place.unlock()
	leaving := len(ops)
	if released {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: holdVersion})
	}
	ops = append(ops, p.hold(path, mine)...)
	if sp.used {
		ops = append(ops, &zk.SetDataRequest{Path: recordPath, Data: encode(next), Version: sp.stat.Version})
	} else {
		ops = append(ops, &zk.CreateRequest{Path: recordPath, Data: encode(next), Acl: p.config.ACL})
	}
	p.mu.Lock()
	delete(p.searched, p.root+" "+r.Holder)
	p.mu.Unlock()
	for ctx.Err() == nil {
		results, err := p.conn.Multi(ops...)
		switch {
		case err == nil:
			place.left = true
			return p.granted(path, sp.number, next, r, results[len(results)-2].Stat), nil
		case contested(err) && failed(results) < leaving:
			return nodelease.Claim{}, errSessionEnded
		case contested(err):
			return nodelease.Claim{}, errTaken
		case !transient(err):
			return nodelease.Claim{}, fmt.Errorf("zklease: claim %s: %w", path, err)
		}
		// Find out whether the request took effect, without a time limit. Otherwise the
		// number could stay held, without a holder that knows it, until the session ends.
		var data []byte
		var stat *zk.Stat
		err = p.persist(p.life, func() (err error) {
			if _, err = p.conn.Sync(path); err != nil {
				return err
			}
			data, stat, err = p.conn.Get(path)
			return err
		})
		switch {
		case err == nil && string(data) == string(encode(mine)):
			place.left = true
			return p.granted(path, sp.number, next, r, stat), nil
		case err == nil:
			return nodelease.Claim{}, errTaken
		case !errors.Is(err, zk.ErrNoNode):
			return nodelease.Claim{}, err
		}
	}
	return nodelease.Claim{}, p.noAnswer(ctx, nil)
}

// hold returns the requests that create the znode of a claim. They give it version 1,
// to tell it from the znodes of other programs, which have version 0.
func (s *Store) hold(path string, t tag) []any {
	return []any{
		&zk.CreateRequest{Path: path, Data: encode(t), Acl: s.config.ACL, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: path, Data: encode(t), Version: 0},
	}
}

// holdVersion is the version of a claim's znode.
const holdVersion = 1

// failed returns the index of the request that made the transaction fail.
func failed(results []zk.MultiResponse) int {
	return slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
}

// granted records a claim as held and returns it. stat is the stat of a znode that was
// just written for it.
func (s *Store) granted(path string, number int, m record, r nodelease.Request, stat *zk.Stat) nodelease.Claim {
	s.mu.Lock()
	s.held[path] = m.Term
	s.serverTime, s.readAt = time.UnixMilli(stat.Mtime), time.Now()
	s.mu.Unlock()
	return nodelease.Claim{Number: number, Term: m.Term, Holder: m.Holder, After: m.After, Until: m.Until, TTL: min(r.TTL, s.session()), Time: time.UnixMilli(stat.Mtime)}
}

// gone forgets a held claim, unless the number has another term by now.
func (s *Store) gone(path string, term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[path] == term {
		delete(s.held, path)
	}
}

// repeat renews and returns the holder's claim, if it has one.
func (p *pool) repeat(ctx context.Context, r nodelease.Request) (c nodelease.Claim, ok bool, err error) {
	name := p.root + " " + r.Holder
	p.mu.Lock()
	searched := p.searched[name]
	p.mu.Unlock()
	if searched {
		return c, false, nil
	}
	v, err := p.look(ctx)
	if err != nil {
		return c, false, err
	}
	held := make([]int, 0, len(v.names))
	for n := range numbers(v.names, p.Size) {
		held = append(held, n)
	}
	tags := make([]tag, len(held))
	err = each(len(held), func(i int) error {
		path := p.path(poolName, held[i])
		data, stat, err := p.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil && stat.Version == holdVersion {
			tags[i], _ = decode[tag](path, data) // invalid content belongs to another program
		}
		return err
	})
	if err != nil {
		return c, false, err
	}
	for i, t := range tags {
		if t.Holder == r.Holder && t.Term > 0 {
			c, err := p.extend(ctx, held[i], t, r)
			if !errors.Is(err, nodelease.ErrSuperseded) {
				return c, err == nil, err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.searched) >= maxSearched {
		clear(p.searched)
	}
	p.searched[name] = true
	return c, false, nil
}

// maxSearched limits the number of remembered holders without a claim.
const maxSearched = 1024
