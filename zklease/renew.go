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
	if err := s.begin(ctx, p); err != nil {
		return nodelease.Claim{}, err
	}
	return await(ctx, s, func() {},
		func() (nodelease.Claim, error) {
			return s.extend(ctx, s.root(p), c.Number, tag{c.Term, c.Holder}, r)
		},
		// Whatever was done late is the holder's own, and no harm.
		func(nodelease.Claim, error) {})
}

// extend has a claim live on with our session, and moves its mark on.
func (s *Store) extend(ctx context.Context, root string, number int, t tag, r nodelease.Request) (nodelease.Claim, error) {
	path, markPath := numberPath(root, poolName, number), numberPath(root, markName, number)
	for {
		if ctx.Err() != nil {
			return nodelease.Claim{}, s.noAnswer(ctx, nil)
		}
		m, version, holds, err := s.claimed(ctx, path, markPath, t)
		if err == nil && holds == nil {
			s.gone(path, t.Term)
			err = fmt.Errorf("zklease: expected %s to be ours in term %d, got none or another program's: the session has expired, or somebody has deleted it: %w", path, t.Term, nodelease.ErrTermOver)
		}
		if err != nil {
			return nodelease.Claim{}, err
		}
		ops := []any{&zk.CheckVersionRequest{Path: path, Version: holdVersion}}
		if holds.EphemeralOwner != s.conn.SessionID() {
			// It was claimed in another session, and would go with that.
			ops = append([]any{&zk.DeleteRequest{Path: path, Version: holdVersion}}, s.hold(path, t)...)
		}
		m.Until = max(m.Until, r.Until)
		results, err := s.conn.Multi(append(ops, &zk.SetDataRequest{Path: markPath, Data: encode(m), Version: version})...)
		switch {
		case err == nil:
			return s.granted(path, number, m, r, results[len(results)-1].Stat), nil
		case !transient(err) && !contested(err):
			return nodelease.Claim{}, fmt.Errorf("zklease: expected to renew %s: %w", path, err)
		}
		// Our own request may have been done although its answer got lost: if the
		// term is still ours, it is asked for once more.
	}
}

// claimed reads the mark of a claim, if its term isn't over, and what is known
// of its znode, nil if that is gone.
func (s *Store) claimed(ctx context.Context, path, markPath string, t tag) (m mark, version int32, holds *zk.Stat, err error) {
	data, stat, err := s.get(ctx, markPath)
	if errors.Is(err, zk.ErrNoNode) {
		return m, 0, nil, fmt.Errorf("zklease: expected %s, got none: somebody has deleted it: %w", markPath, nodelease.ErrTermOver)
	}
	if err != nil {
		return m, 0, nil, err
	}
	if m, err = decode[mark](markPath, data); err != nil {
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
		return m, 0, nil, fmt.Errorf("zklease: expected %s in term %d, got term %d, %s: %w", path, t.Term, m.Term, holder, nodelease.ErrTermOver)
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
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, mark int64) error {
	if err := s.begin(ctx, p); err != nil {
		return err
	}
	root := s.root(p)
	done, err := s.turn(ctx, fmt.Sprintf("release %s %d %d", root, c.Number, c.Term))
	if err != nil {
		return err
	}
	_, err = await(ctx, s, done,
		func() (struct{}, error) { return struct{}{}, s.release(root, p, c, mark) },
		func(struct{}, error) {})
	return err
}

func (s *Store) release(root string, p nodelease.Pool, c nodelease.Claim, until int64) error {
	path, markPath := numberPath(root, poolName, c.Number), numberPath(root, markName, c.Number)
	for {
		m, version, holds, err := s.claimed(s.life, path, markPath, tag{c.Term, c.Holder})
		if errors.Is(err, nodelease.ErrTermOver) {
			return nil
		}
		if err != nil {
			return err
		}
		_, rests := p.Cluster()
		rests = rests && holds != nil
		var ops []any
		switch {
		case rests:
			ops = append(ops, &zk.CheckVersionRequest{Path: path, Version: holdVersion})
		case holds != nil:
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: holdVersion})
		}
		m.Holder, m.Until = "", until
		results, err := s.conn.Multi(append(ops, &zk.SetDataRequest{Path: markPath, Data: encode(m), Version: version})...)
		switch {
		case err == nil && rests:
			s.rest(path, markPath, m, results[1].Stat.Version)
			return nil
		case err == nil:
			s.gone(path, c.Term)
			return nil
		case !transient(err) && !contested(err):
			return fmt.Errorf("zklease: expected to release %s: %w", path, err)
		case s.life.Err() != nil:
			return errStoreClosed
		}
	}
}
