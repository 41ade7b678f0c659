package zklease

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// renew moves a claim to the current session if necessary, and advances its
// high-water mark.
func (p *pool) renew(ctx context.Context, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	if err := p.checkSkew(ctx, r); err != nil {
		return nodelease.Claim{}, err
	}
	number, t := c.Number, tag{c.Term, c.Holder}
	path, recordPath := p.path(poolName, number), p.path(recordName, number)
	for {
		if ctx.Err() != nil {
			return nodelease.Claim{}, p.noAnswer(ctx.Err())
		}
		m, version, znode, err := p.present(ctx, c)
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
		m = m.Renewed(r)
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

// present reads the record of a claim and the stat of its znode, which is nil if the znode is
// gone. If the term is over, or a copy of the holder has renewed the claim, the error wraps
// ErrSuperseded.
func (p *pool) present(ctx context.Context, c nodelease.Claim) (m record, version int32, znode *zk.Stat, err error) {
	n, err := p.record(ctx, c.Number)
	if err != nil {
		return m, 0, nil, err
	}
	if n.stat == nil {
		return m, 0, nil, fmt.Errorf("zklease: read %s: the znode was deleted: %w", p.path(recordName, c.Number), nodelease.ErrSuperseded)
	}
	if n.record.Term > c.Term {
		p.forget(c.Number, c.Term)
	}
	if err := n.record.Check(c); err != nil {
		return m, 0, nil, fmt.Errorf("zklease: renew %s in term %d: %w", p.path(poolName, c.Number), c.Term, err)
	}
	znode, err = p.claimed(ctx, c.Number)
	return n.record, n.stat.Version, znode, err
}

// claimed returns the stat of the znode of a number, or nil if the znode doesn't exist or
// belongs to another program.
func (p *pool) claimed(ctx context.Context, number int) (*zk.Stat, error) {
	exists, znode, err := read(ctx, p.Store, p.path(poolName, number), p.conn.Exists)
	if !exists || znode.Version != claimVersion {
		znode = nil
	}
	return znode, err
}

// release ends a claim, without a time limit.
func (p *pool) release(c nodelease.Claim, highWaterMark int64) error {
	path, recordPath := p.path(poolName, c.Number), p.path(recordName, c.Number)
	for {
		m, version, znode, err := p.present(p.life, c)
		if errors.Is(err, nodelease.ErrSuperseded) {
			return nil
		}
		if err != nil {
			return err
		}
		m = m.Released(highWaterMark)
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
