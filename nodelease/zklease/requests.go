package zklease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// noAnswer returns the error of a call whose context has ended. It names the servers,
// and the reason why the store isn't connected.
func (s *Store) noAnswer(ended error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		ended = fmt.Errorf("%w: %w", s.down, ended)
	}
	return fmt.Errorf("zklease: no answer in time from %s: %w", s.servers, ended)
}

// explain adds the remedy and [nodelease.ErrMisconfigured] to errors that persist until
// the setup changes.
func explain(err error) error {
	for _, e := range []error{zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w; set Config.AuthScheme, Config.Auth and Config.ACL as in the program that created the znodes: %w", err, nodelease.ErrMisconfigured)
		}
	}
	return err
}

// persist repeats a request after errors of the connection, until the context ends.
// When it sends the request again, an earlier attempt may already have taken effect.
func (s *Store) persist(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !transient(err) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.life.Done():
			return errStoreClosed
		case <-ctx.Done():
			return s.noAnswer(fmt.Errorf("%w: %w", err, ctx.Err()))
		}
	}
}

// transient reports whether err is an error of the connection, so that the request may
// or may not have taken effect.
func transient(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// contested reports whether a request failed because another client changed a znode
// meanwhile.
func contested(err error) bool {
	return errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}

// getOrMake reads a znode, which it creates if it doesn't exist.
func (s *Store) getOrMake(ctx context.Context, path string, data []byte) ([]byte, error) {
	if err := s.make(ctx, path, data); err != nil {
		return nil, err
	}
	data, _, err := read(ctx, s, path, s.conn.Get)
	return data, err
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

// read makes a request of the client that reads a znode.
func read[T any](ctx context.Context, s *Store, path string, request func(path string) (T, *zk.Stat, error)) (v T, stat *zk.Stat, err error) {
	err = s.persist(ctx, func() (err error) {
		v, stat, err = request(path)
		return err
	})
	if err != nil {
		err = fmt.Errorf("zklease: read %s: %w", path, err)
	}
	return v, stat, err
}
