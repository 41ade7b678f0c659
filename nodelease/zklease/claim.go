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
)

// Claim grants a number; see [nodelease.Store].
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
	return nodelease.Claim{}, p.noAnswer(ctx, nil)
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
	data, _, err := p.get(ctx, path)
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
	if err == nil && (made.Size != p.Size || made.Layout != p.Layout) {
		err = fmt.Errorf("zklease: open pool %q at %s: created with %d numbers and layout %q, but this program has %d and %q; use the same size and layout, or another pool name: %w",
			p.Name, p.root, made.Size, made.Layout, p.Size, p.Layout, nodelease.ErrPoolMismatch)
	}
	return err
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
	data, stat, err := p.get(ctx, path)
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
		_, stat, err = p.get(ctx, path)
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
	java     *javaView // nil if the Java program doesn't share the pool
}

// free reports whether a number is free. If it must be held back, it returns for how long.
func (v *view) free(number int) (left time.Duration, free bool) {
	if v.java != nil {
		return v.java.wait[number], v.java.wait[number] <= 0 && (!v.held[number] || v.java.released[number])
	}
	return 0, !v.held[number]
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
	err = p.persist(ctx, func() (err error) {
		v.sent = time.Now()
		v.names, v.stat, err = p.conn.Children(p.root + "/" + poolName)
		v.received = time.Now()
		return err
	})
	if err != nil {
		return nil, err
	}
	v.held = numbers(v.names, p.Size)
	if p.java != nil {
		v.java, err = p.lookForJava(ctx, v, clock)
	}
	return v, err
}

// candidates returns the claimable numbers with the lowest high-water marks, lowest first:
// the numbers that were never used, in random order, or else the used numbers, in a large
// pool only a random part of them. If there are none, it returns a [*nodelease.BusyError].
func (p *pool) candidates(ctx context.Context, r nodelease.Request, v *view) ([]candidate, error) {
	var names []string
	err := p.persist(ctx, func() (err error) {
		names, _, err = p.conn.Children(p.root + "/" + recordName)
		return err
	})
	if err != nil {
		return nil, err
	}
	busy := &nodelease.BusyError{}
	ahead := func(mark int64) {
		if left := r.TimeToPass(mark); busy.Ahead == 0 || left < busy.RetryAfter {
			busy.RetryAfter = left
		}
		busy.Ahead++
	}
	reserved := make(map[int]bool, len(p.Reserved))
	for _, n := range p.Reserved {
		reserved[n] = true
	}
	recorded := numbers(names, p.Size)
	var unused, used []int
	for n := range p.Size {
		switch left, free := v.free(n); {
		case reserved[n]:
			busy.Reserved++
		case !free:
			busy.Held++
			if left > 0 && (busy.RetryAfter == 0 || left < busy.RetryAfter) {
				busy.RetryAfter = left
			}
		case recorded[n]:
			used = append(used, n)
		case r.Now > 0:
			unused = append(unused, n)
		default:
			ahead(0)
		}
	}
	shuffle := func(ns []int) { rand.Shuffle(len(ns), func(i, j int) { ns[i], ns[j] = ns[j], ns[i] }) }
	if len(unused) > 0 {
		shuffle(unused)
		candidates := make([]candidate, min(len(unused), chunk))
		for i := range candidates {
			candidates[i].number = unused[i]
		}
		return candidates, nil
	}
	shuffle(used) // in a large pool, begin with a random part, since reading all would take long
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
				ahead(c.record.Until)
			}
		}
		if len(passed) > 0 {
			slices.SortFunc(passed, byMark)
			return passed, nil
		}
	}
	return nil, busy
}

// chunk is the number of candidates considered at a time.
const chunk = 1024

// records reads the records of some numbers.
func (p *pool) records(ctx context.Context, ns []int) ([]candidate, error) {
	const workers = 32 // to overlap the round trips
	found, errs := make([]candidate, len(ns)), make([]error, len(ns))
	var group sync.WaitGroup
	for w := range min(workers, len(ns)) {
		group.Go(func() {
			for i := w; i < len(ns); i += workers {
				path := p.path(recordName, ns[i])
				data, stat, err := p.get(ctx, path)
				if errors.Is(err, zk.ErrNoNode) {
					found[i] = candidate{number: ns[i]}
				} else if err != nil {
					errs[i] = err
				} else {
					found[i] = candidate{number: ns[i], stat: stat}
					found[i].record, errs[i] = decode[record](path, data)
				}
			}
		})
	}
	group.Wait()
	return found, errors.Join(errs...)
}

// errTaken: another process claimed the number first.
var errTaken = errors.New("zklease: number taken by another process")

// grab claims a number. If the number was released and still has a znode, grab replaces the
// znode.
func (p *pool) grab(ctx context.Context, r nodelease.Request, v *view, n candidate) (nodelease.Claim, error) {
	path, recordPath := p.path(poolName, n.number), p.path(recordName, n.number)
	next := record{Term: n.record.Term + 1, Holder: r.Holder, After: n.record.Until, Until: max(n.record.Until, r.Until)}
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
	return nodelease.Claim{}, p.noAnswer(ctx, nil)
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
	return nodelease.Claim{Number: number, Term: m.Term, Holder: m.Holder, After: m.After, Until: m.Until, TTL: min(r.TTL, p.session()), Time: p.serverTime, Nonce: m.Nonce}
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
			c, err := p.extend(ctx, nodelease.Claim{Number: k.number, Term: t.Term, Holder: t.Holder}, r)
			if !errors.Is(err, nodelease.ErrSuperseded) {
				return c, err == nil, err
			}
		}
	}
	return c, false, nil
}
