package zklease

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// Renew extends a claim; see [nodelease.Store]. A claim whose session has expired
// is over.
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	own, err := s.open(ctx, p)
	if err != nil {
		return nodelease.Claim{}, err
	}
	return await(ctx, s, func() {},
		func() (nodelease.Claim, error) { return own.extend(ctx, c.Number, tag{c.Term, c.Holder}, r) },
		// Whatever was done late is the holder's own, and no harm.
		func(nodelease.Claim, error) {})
}

// extend has a claim live on with our session, and moves its high-water mark on.
func (p *pool) extend(ctx context.Context, number int, t tag, r nodelease.Request) (nodelease.Claim, error) {
	path, recordPath := p.path(poolName, number), p.path(recordName, number)
	for {
		if ctx.Err() != nil {
			return nodelease.Claim{}, p.noAnswer(ctx, nil)
		}
		m, version, holds, err := p.claimed(ctx, path, recordPath, t)
		if err == nil && holds == nil {
			p.gone(path, t.Term)
			err = fmt.Errorf("zklease: expected %s to be ours in term %d, got none or another program's: the session has expired, or somebody has deleted it: %w", path, t.Term, nodelease.ErrSuperseded)
		}
		if err != nil {
			return nodelease.Claim{}, err
		}
		ops := []any{&zk.CheckVersionRequest{Path: path, Version: holdVersion}}
		if holds.EphemeralOwner != p.conn.SessionID() {
			// It was claimed in another session, and would go with that.
			ops = append([]any{&zk.DeleteRequest{Path: path, Version: holdVersion}}, p.hold(path, t)...)
		}
		m.Until = max(m.Until, r.Until)
		results, err := p.conn.Multi(append(ops, &zk.SetDataRequest{Path: recordPath, Data: encode(m), Version: version})...)
		switch {
		case err == nil:
			return p.granted(path, number, m, r, results[len(results)-1].Stat), nil
		case !transient(err) && !contested(err):
			return nodelease.Claim{}, fmt.Errorf("zklease: expected to renew %s: %w", path, err)
		}
		// Our own request may have been done although its answer got lost: if the
		// term is still ours, it is asked for once more.
	}
}

// claimed reads the record of a claim, if its term isn't over, and what is known
// of its znode, nil if that is gone.
func (s *Store) claimed(ctx context.Context, path, recordPath string, t tag) (m record, version int32, holds *zk.Stat, err error) {
	data, stat, err := s.get(ctx, recordPath)
	if errors.Is(err, zk.ErrNoNode) {
		return m, 0, nil, fmt.Errorf("zklease: expected %s, got none: somebody has deleted it: %w", recordPath, nodelease.ErrSuperseded)
	}
	if err != nil {
		return m, 0, nil, err
	}
	if m, err = decode[record](recordPath, data); err != nil {
		return m, 0, nil, err
	}
	if m.Term != t.Term || m.Holder != t.Holder {
		if m.Term > t.Term {
			s.gone(path, t.Term)
		}
		holder := fmt.Sprintf("held by %q", m.Holder)
		if m.Holder == "" {
			holder = "released"
		}
		return m, 0, nil, fmt.Errorf("zklease: expected %s in term %d, got term %d, %s: %w", path, t.Term, m.Term, holder, nodelease.ErrSuperseded)
	}
	err = s.persist(ctx, func() error {
		exists, found, err := s.conn.Exists(path)
		if exists && found.Version == holdVersion {
			holds = found
		}
		return err
	})
	return m, stat.Version, holds, err
}

// contested says whether a request failed since something has changed since we
// looked.
func contested(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}

// Release ends a claim; see [nodelease.Store]. It goes on after its context has
// ended, until it has got through or the store is closed.
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
		m, version, holds, err := p.claimed(p.life, path, recordPath, tag{c.Term, c.Holder})
		if errors.Is(err, nodelease.ErrSuperseded) {
			return nil
		}
		if err != nil {
			return err
		}
		m.Holder, m.Until = "", highWaterMark
		ops := []any{&zk.SetDataRequest{Path: recordPath, Data: encode(m), Version: version}}
		after := func(int32) { p.gone(path, c.Term) }
		if holds != nil {
			var request any
			request, after = p.others.letGo(p, c.Number, m)
			ops = append(ops, request)
		}
		results, err := p.conn.Multi(ops...)
		switch {
		case err == nil:
			after(results[0].Stat.Version)
			return nil
		case !transient(err) && !contested(err):
			return fmt.Errorf("zklease: expected to release %s: %w", path, err)
		case p.life.Err() != nil:
			return errStoreClosed
		}
	}
}
