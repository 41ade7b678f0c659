package zklease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

func (p *pool) claim(ctx context.Context, r nodelease.Request) (nodelease.Claim, error) {
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
	for ctx.Err() == nil {
		v, err := p.look(ctx)
		if err != nil {
			return nodelease.Claim{}, err
		}
		candidates, err := p.candidates(ctx, r, v)
		if err != nil {
			return nodelease.Claim{}, err
		}
		// Other processes may be trying the same numbers in the same order. After each
		// conflict, choose among twice as many.
		for reach := 1; len(candidates) > 0 && !v.stale(); reach = min(2*reach, p.Size) {
			i := rand.IntN(min(reach, len(candidates)))
			c, err := p.grab(ctx, r, v, candidates[i])
			if !errors.Is(err, errTaken) {
				return c, err
			}
			candidates = slices.Delete(candidates, i, i+1)
		}
	}
	return nodelease.Claim{}, p.noAnswer(ctx.Err())
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
	if p.java != nil {
		if err := p.checkCluster(ctx); err != nil {
			return err
		}
	}
	path := p.root + "/" + layoutName
	data, _, err := read(ctx, p.Store, path, p.conn.Get)
	if errors.Is(err, zk.ErrNoNode) {
		for _, dir := range []string{poolName, recordName} {
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
	if err != nil {
		return err
	}
	return stores.CheckLayout(fmt.Sprintf("zklease: open pool %q at %s", p.Name, p.root), p.Pool, made.Size, made.Layout)
}

// checkSkew returns an error if the holder's clock is too far from the servers'. From the
// last write of this store, it knows the servers' clock to within the duration of a call. If
// it doesn't, or if that clock may have been set, it reads it.
func (p *pool) checkSkew(ctx context.Context, r nodelease.Request) error {
	p.mu.Lock()
	known, now := !p.readAt.IsZero(), p.serverTime.Add(time.Since(p.readAt))
	p.mu.Unlock()
	if r.MaxSkew <= 0 || known && r.CheckSkew(now) == nil {
		return nil
	}
	now, err := p.readClock(ctx)
	if err != nil {
		return err
	}
	if err := r.CheckSkew(now); err != nil {
		return fmt.Errorf("zklease: use pool %q: %w", p.Name, err)
	}
	return nil
}

// readClock returns the servers' time. It writes the layout znode again, which changes only
// the znode's time.
func (p *pool) readClock(ctx context.Context) (time.Time, error) {
	path := p.root + "/" + layoutName
	data, stat, err := read(ctx, p.Store, path, p.conn.Get)
	if err != nil {
		return time.Time{}, err
	}
	err = p.persist(ctx, func() error {
		written, err := p.conn.Set(path, data, stat.Version)
		if err == nil {
			stat = written
		}
		return err
	})
	if errors.Is(err, zk.ErrBadVersion) { // written a moment ago, by another process or by an attempt whose answer was lost
		_, stat, err = read(ctx, p.Store, path, p.conn.Get)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("zklease: write %s: %w", path, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serverTime, p.readAt = time.UnixMilli(stat.Mtime), time.Now()
	return p.serverTime, nil
}

// A view is the state of a pool's claims at one time.
type view struct {
	names    []string // names of the claims' znodes, including names that aren't numbers
	stat     *zk.Stat // stat of the claims' parent
	sent     time.Time
	received time.Time
	held     map[int]bool
	// The rest is for pools that the Java program may share.
	java     bool
	released map[int]bool          // released numbers whose znodes only block them for the Java program
	wait     map[int]time.Duration // for how long numbers without a znode must be held back
}

// free reports whether a number is free.
func (v *view) free(number int) bool {
	return v.wait[number] <= 0 && (!v.held[number] || v.released[number])
}

// look reads the claims of the pool.
func (p *pool) look(ctx context.Context) (*view, error) {
	v := new(view)
	var clock time.Time
	var err error
	if p.java != nil {
		if clock, err = p.readClock(ctx); err != nil {
			return nil, err
		}
	}
	v.sent = time.Now()
	if v.names, v.stat, err = read(ctx, p.Store, p.root+"/"+poolName, p.conn.Children); err != nil {
		return nil, err
	}
	v.received, v.held = time.Now(), numbers(v.names, p.Size)
	if p.java != nil {
		err = p.lookForJava(ctx, v, clock)
	}
	return v, err
}

// candidates returns the claimable numbers with the lowest high-water marks, lowest first:
// the numbers that were never used, in random order, or else the used numbers, in a large
// pool only a random part of them. If there are none, it returns a [*nodelease.BusyError].
func (p *pool) candidates(ctx context.Context, r nodelease.Request, v *view) ([]candidate, error) {
	names, _, err := read(ctx, p.Store, p.root+"/"+recordName, p.conn.Children)
	if err != nil {
		return nil, err
	}
	busy, reserved, recorded := &nodelease.BusyError{}, stores.Reserved(p.Pool), numbers(names, p.Size)
	var unused []candidate
	var used []int
	for n := range p.Size {
		switch left := v.wait[n]; {
		case reserved[n]:
			busy.Reserved++
		case !v.free(n):
			busy.Held++
			if left > 0 && (busy.RetryAfter == 0 || left < busy.RetryAfter) {
				busy.RetryAfter = left
			}
		case recorded[n]:
			used = append(used, n)
		case r.Now > 0:
			unused = append(unused, candidate{number: n})
		default:
			stores.CountAhead(busy, r.TimeToPass(0))
		}
	}
	if len(unused) > 0 {
		rand.Shuffle(len(unused), func(i, j int) { unused[i], unused[j] = unused[j], unused[i] })
		return unused, nil
	}
	// In a large pool, begin with a random part, since reading all would take long.
	rand.Shuffle(len(used), func(i, j int) { used[i], used[j] = used[j], used[i] })
	for some := range slices.Chunk(used, chunk) {
		all, err := p.records(ctx, some)
		if err != nil {
			return nil, err
		}
		var passed []candidate
		for _, c := range all {
			if c.record.Until < r.Now {
				passed = append(passed, c)
			} else {
				stores.CountAhead(busy, r.TimeToPass(c.record.Until))
			}
		}
		if len(passed) > 0 {
			slices.SortFunc(passed, byMark)
			return passed, nil
		}
	}
	return nil, busy
}

// chunk is the number of used numbers considered at a time.
const chunk = 1024

// records reads the records of some numbers.
func (p *pool) records(ctx context.Context, ns []int) ([]candidate, error) {
	const workers = 32 // to overlap the round trips
	found, errs := make([]candidate, len(ns)), make([]error, len(ns))
	var group sync.WaitGroup
	for w := range min(workers, len(ns)) {
		group.Go(func() {
			for i := w; i < len(ns); i += workers {
				found[i], errs[i] = p.record(ctx, ns[i])
			}
		})
	}
	group.Wait()
	return found, errors.Join(errs...)
}

// record reads the record of a number.
func (p *pool) record(ctx context.Context, number int) (candidate, error) {
	path := p.path(recordName, number)
	data, stat, err := read(ctx, p.Store, path, p.conn.Get)
	if errors.Is(err, zk.ErrNoNode) {
		return candidate{number: number}, nil
	}
	if err != nil {
		return candidate{}, err
	}
	m, err := decode[record](path, data)
	return candidate{number, m, stat}, err
}

// errTaken: another process claimed the number first.
var errTaken = errors.New("zklease: number taken by another process")

// grab claims a number. If the number was released and still has a znode, grab replaces the
// znode.
func (p *pool) grab(ctx context.Context, r nodelease.Request, v *view, n candidate) (nodelease.Claim, error) {
	path, recordPath := p.path(poolName, n.number), p.path(recordName, n.number)
	next := n.record.Claimed(r)
	mine := tag{next.Term, next.Holder}
	var ops []any
	if v.held[n.number] {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: claimVersion})
	}
	ops = append(ops, p.create(path, mine)...)
	if n.stat != nil {
		ops = append(ops, &zk.SetDataRequest{Path: recordPath, Data: encode(next), Version: n.stat.Version})
	} else {
		ops = append(ops, &zk.CreateRequest{Path: recordPath, Data: encode(next), Acl: p.config.ACL})
	}
	for ctx.Err() == nil {
		results, err := p.conn.Multi(ops...)
		var stat *zk.Stat
		switch {
		case err == nil:
			stat = results[len(results)-2].Stat
		case contested(err):
			return nodelease.Claim{}, errTaken
		case !transient(err):
			return nodelease.Claim{}, fmt.Errorf("zklease: claim %s: %w", path, err)
		default:
			// Find out whether the request took effect, without a time limit. Otherwise the
			// number could stay held, without a holder that knows it, until the session ends.
			var data []byte
			err = p.persist(p.life, func() (err error) {
				if _, err = p.conn.Sync(path); err != nil {
					return err
				}
				data, stat, err = p.conn.Get(path)
				return err
			})
			switch {
			case errors.Is(err, zk.ErrNoNode):
				continue
			case err != nil:
				return nodelease.Claim{}, err
			case string(data) != string(encode(mine)):
				return nodelease.Claim{}, errTaken
			}
		}
		c := p.granted(n.number, next, r, stat)
		if v.stale() {
			if err := p.release(c, c.After); err != nil {
				return nodelease.Claim{}, err
			}
			return nodelease.Claim{}, errTaken
		}
		return c, nil
	}
	return nodelease.Claim{}, p.noAnswer(ctx.Err())
}

// create returns the requests that create the znode of a claim. They give it version 1,
// to tell it from the znodes of other programs, which have version 0.
func (s *Store) create(path string, t tag) []any {
	return []any{
		&zk.CreateRequest{Path: path, Data: encode(t), Acl: s.config.ACL, Flags: zk.FlagEphemeral},
		&zk.SetDataRequest{Path: path, Data: encode(t), Version: 0},
	}
}

// claimVersion is the version of a claim's znode.
const claimVersion = 1

// granted records a claim as held and returns it. stat is the stat of a znode that was
// just written for it.
func (p *pool) granted(number int, m record, r nodelease.Request, stat *zk.Stat) nodelease.Claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[key{p.root, number}] = tag{m.Term, m.Holder}
	p.serverTime, p.readAt = time.UnixMilli(stat.Mtime), time.Now()
	return m.Claim(number, min(r.TTL, p.session()), p.serverTime)
}

// forget forgets a held claim, unless the number has another term by now.
func (p *pool) forget(number int, term int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := (key{p.root, number}); p.held[k].Term == term {
		delete(p.held, k)
	}
}

// repeat renews and returns the holder's claim, if this store has one.
func (p *pool) repeat(ctx context.Context, r nodelease.Request) (c nodelease.Claim, ok bool, err error) {
	p.mu.Lock()
	held := maps.Clone(p.held)
	p.mu.Unlock()
	for k, t := range held {
		if k.root == p.root && t.Holder == r.Holder {
			// A claim that was renewed since isn't repeated: its nonce isn't "".
			c, err := p.renew(ctx, nodelease.Claim{Number: k.number, Term: t.Term, Holder: t.Holder}, r)
			if !errors.Is(err, nodelease.ErrSuperseded) {
				return c, err == nil, err
			}
		}
	}
	return c, false, nil
}
