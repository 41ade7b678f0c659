package zklease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// Renew extends a claim; see [nodelease.Store]. It fails if the claim's session has
// expired.
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	own, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	return await(ctx, s, func() {},
		func() (nodelease.Claim, error) {
			if err := own.checkSkew(ctx, r); err != nil {
				return nodelease.Claim{}, err
			}
			return own.extend(ctx, c, r)
		},
		// A late renewal is harmless: it extends the holder's own claim, or a later one has
		// replaced its nonce.
		func(nodelease.Claim, error) {})
}

// extend moves a claim to the current session if necessary, and advances its
// high-water mark.
func (p *pool) extend(ctx context.Context, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	number, t := c.Number, tag{c.Term, c.Holder}
	path, recordPath := p.path(poolName, number), p.path(recordName, number)
	for {
		if ctx.Err() != nil {
			return nodelease.Claim{}, p.noAnswer(ctx, nil)
		}
		m, version, znode, err := p.read(ctx, c)
		if err == nil && znode == nil {
			p.forget(number, t.Term)
			err = fmt.Errorf("zklease: renew %s in term %d: the znode is missing or belongs to another program, because the session expired or the znode was deleted: %w", path, t.Term, nodelease.ErrSuperseded)
		}
		if err != nil {
			return nodelease.Claim{}, err
		}
		ops := []any{&zk.CheckVersionRequest{Path: path, Version: claimVersion}}
		if znode.EphemeralOwner != p.conn.SessionID() {
			// The znode was created in an earlier session, and would disappear with it.
			ops = append([]any{&zk.DeleteRequest{Path: path, Version: claimVersion}}, p.create(path, t)...)
		}
		m.Until, m.Nonce = max(m.Until, r.Until), r.Nonce
		results, err := p.conn.Multi(append(ops, &zk.SetDataRequest{Path: recordPath, Data: encode(m), Version: version})...)
		switch {
		case err == nil:
			return p.granted(number, m, r, results[len(results)-1].Stat), nil
		case !transient(err) && !contested(err):
			return nodelease.Claim{}, fmt.Errorf("zklease: renew %s: %w", path, err)
		}
		// The request may have taken effect although its answer was lost. Repeat it if the
		// claim still has this term, and a nonce that its holder knows.
		if transient(err) && !c.Knows(r.Nonce) {
			c.Sent = append(slices.Clone(c.Sent), r.Nonce)
		}
	}
}

// read reads the record of a claim and the stat of its znode, which is nil if the znode is
// gone. If the term is over, or a copy of the holder has renewed the claim, the error wraps
// ErrSuperseded.
func (p *pool) read(ctx context.Context, c nodelease.Claim) (m record, version int32, znode *zk.Stat, err error) {
	number, t := c.Number, tag{c.Term, c.Holder}
	path, recordPath := p.path(poolName, number), p.path(recordName, number)
	data, stat, err := p.get(ctx, recordPath)
	if errors.Is(err, zk.ErrNoNode) {
		return m, 0, nil, fmt.Errorf("zklease: read %s: the znode was deleted: %w", recordPath, nodelease.ErrSuperseded)
	}
	if err != nil {
		return m, 0, nil, err
	}
	if m, err = decode[record](recordPath, data); err != nil {
		return m, 0, nil, err
	}
	if m.Term != t.Term || m.Holder != t.Holder {
		if m.Term > t.Term {
			p.forget(number, t.Term)
		}
		now := fmt.Sprintf("held by %q", m.Holder)
		if m.Holder == "" {
			now = "released"
		}
		return m, 0, nil, fmt.Errorf("zklease: renew %s in term %d: the number is %s in term %d: %w", path, t.Term, now, m.Term, nodelease.ErrSuperseded)
	}
	if !c.Knows(m.Nonce) {
		return m, 0, nil, fmt.Errorf("zklease: renew %s in term %d: a copy of this process has renewed the claim: %w", path, t.Term, nodelease.ErrSuperseded)
	}
	znode, err = p.claimed(ctx, number)
	return m, stat.Version, znode, err
}

// claimed returns the stat of the znode of a number, or nil if the znode doesn't exist or
// belongs to another program.
func (p *pool) claimed(ctx context.Context, number int) (znode *zk.Stat, err error) {
	err = p.persist(ctx, func() error {
		exists, found, err := p.conn.Exists(p.path(poolName, number))
		if exists && found.Version == claimVersion {
			znode = found
		}
		return err
	})
	return znode, err
}

// contested reports whether a request failed because another client changed a znode
// meanwhile.
func contested(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}

// Release ends a claim; see [nodelease.Store]. If its context ends, the release
// continues in the background until it succeeds or the store is closed.
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	own, err := s.open(ctx, p)
	if err != nil {
		return err
	}
	done, err := s.turn(ctx, fmt.Sprintf("release %s %d %d", own.root, c.Number, c.Term))
	if err != nil {
		return err
	}
	_, err = await(ctx, s, done,
		func() (struct{}, error) { return struct{}{}, own.release(c, highWaterMark) },
		func(struct{}, error) {})
	return err
}

func (p *pool) release(c nodelease.Claim, highWaterMark int64) error {
	path, recordPath := p.path(poolName, c.Number), p.path(recordName, c.Number)
	for {
		m, version, znode, err := p.read(p.life, c)
		if errors.Is(err, nodelease.ErrSuperseded) {
			return nil
		}
		if err != nil {
			return err
		}
		m.Holder, m.Until = "", max(highWaterMark, m.After)
		ops := []any{&zk.SetDataRequest{Path: recordPath, Data: encode(m), Version: version}}
		blocks := znode != nil && p.java != nil
		switch {
		case blocks:
			ops = append(ops, &zk.CheckVersionRequest{Path: path, Version: claimVersion})
		case znode != nil:
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: claimVersion})
		}
		results, err := p.conn.Multi(ops...)
		switch {
		case err == nil && blocks:
			p.unblockLater(c.Number, m, results[0].Stat.Version)
			return nil
		case err == nil:
			p.forget(c.Number, c.Term)
			return nil
		case !transient(err) && !contested(err):
			return fmt.Errorf("zklease: release %s: %w", path, err)
		case p.life.Err() != nil:
			return errStoreClosed
		}
	}
}
