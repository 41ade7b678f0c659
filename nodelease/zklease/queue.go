package zklease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// A place is a process's place in a pool's queue. The first in the queue takes the
// lock, claims a number and leaves. The Java program deletes its ticket when it has the
// lock. This package keeps the ticket and deletes it in the transaction that claims the
// number. So the transaction fails if the session has ended and another process may
// have the lock.
type place struct {
	store  *Store
	queue  string
	ticket string
	left   bool
}

func (p *place) ticketPath() string { return p.queue + "/" + p.ticket }
func (p *place) lockPath() string   { return p.queue + "/" + lockName }

// A queueError names the znode that was in front of this process until the deadline. It
// wraps a BusyError, so that Acquire retries.
type queueError struct {
	text string
	busy *nodelease.BusyError
}

func (e *queueError) Error() string { return e.text }
func (e *queueError) Unwrap() error { return e.busy }

// errSessionEnded: the session has ended with all of its znodes; start again.
var errSessionEnded = errors.New("zklease: session ended")

// enter joins the queue and waits for the lock until the deadline.
func (s *Store) enter(ctx context.Context, root, holder string, deadline time.Time) (*place, error) {
	p := &place{store: s, queue: root + "/" + queueName}
	if err := p.take(ctx, holder); err != nil {
		p.leave()
		return nil, err
	}
	if err := p.wait(ctx, deadline); err != nil {
		p.leave()
		return nil, err
	}
	return p, nil
}

// take creates a ticket.
func (p *place) take(ctx context.Context, holder string) error {
	for {
		p.ticket = ticketName(time.Now(), rand.IntN(10000))
		mine, err := p.create(ctx, p.ticketPath(), []byte(holder))
		if mine || err != nil {
			return err
		}
	}
}

// create creates an ephemeral znode and reports whether the znode is ours. It isn't if
// another process has created it before.
func (p *place) create(ctx context.Context, path string, data []byte) (bool, error) {
	mine := false
	err := p.store.persist(ctx, func() error {
		_, err := p.store.conn.Create(path, data, zk.FlagEphemeral, p.store.config.ACL)
		if !errors.Is(err, zk.ErrNodeExists) {
			mine = err == nil
			return err
		}
		// An earlier attempt may have created it, and its answer was lost.
		found, _, err := p.store.conn.Get(path)
		mine = err == nil && string(found) == string(data)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	return mine, err
}

// wait waits until this process is first in the queue and has the lock.
func (p *place) wait(ctx context.Context, deadline time.Time) error {
	begun := time.Now()
	for {
		var names []string
		err := p.store.persist(ctx, func() (err error) {
			names, _, err = p.store.conn.Children(p.queue)
			return err
		})
		if err != nil {
			return err
		}
		before, position := inFront(names, p.ticket)
		switch position {
		case notInQueue:
			return errSessionEnded
		case 0:
			mine, err := p.create(ctx, p.lockPath(), []byte(p.ticket))
			if mine || err != nil {
				return err
			}
			before = lockName
		}
		if err := p.pass(ctx, before, position, begun, deadline); err != nil {
			return err
		}
	}
}

// The polling interval in the queue is firstPoll times the position, counted from 1, and
// at most lastPoll.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// pass waits until the znode in front is gone. It polls instead of setting a watch:
// watches may miss a change while the client reconnects, because the client tells the
// server to continue from a transaction that may be later than the change.
func (p *place) pass(ctx context.Context, before string, position int, begun, deadline time.Time) error {
	path := p.queue + "/" + before
	for poll := min(firstPoll*time.Duration(position+1), lastPoll); ; {
		var exists bool
		var stat *zk.Stat
		err := p.store.persist(ctx, func() (err error) {
			exists, stat, err = p.store.conn.Exists(path)
			return err
		})
		if err != nil || !exists {
			return err
		}
		if !time.Now().Before(deadline) {
			return &queueError{text: fmt.Sprintf("zklease: wait in %s: after %v, %s is still in front, created by session 0x%x at %s by the servers' clock; check that process, or delete the znode",
				p.queue, time.Since(begun).Round(time.Millisecond), path, uint64(stat.EphemeralOwner), stamp(stat.Ctime))}
		}
		select {
		case <-time.After(min(poll, time.Until(deadline))):
		case <-ctx.Done():
			return fmt.Errorf("zklease: wait behind %s: %w", path, ctx.Err())
		case <-p.store.life.Done():
			return errStoreClosed
		}
	}
}

// leave deletes the ticket and the lock in the background. It retries without a limit.
// Otherwise a ticket could block the queue for days, as long as the session lives.
func (p *place) leave() {
	if p.left || p.ticket == "" {
		return
	}
	p.left = true
	go func() {
		s := p.store
		_ = s.persist(s.life, func() error {
			// The lock may come from a request whose answer was lost, and the current
			// server may not know it yet.
			if _, err := s.conn.Sync(p.queue); err != nil {
				return err
			}
			// Delete the lock only if it is ours.
			data, _, err := s.conn.Get(p.lockPath())
			switch {
			case err != nil && !errors.Is(err, zk.ErrNoNode):
				return err
			case err == nil && string(data) == p.ticket:
				_, err = s.conn.Multi(p.unlock()...)
				return err
			}
			return s.conn.Delete(p.ticketPath(), -1)
		})
	}()
}

// unlock returns the requests that delete the ticket and the lock.
func (p *place) unlock() []any {
	return []any{
		&zk.DeleteRequest{Path: p.ticketPath(), Version: -1},
		&zk.DeleteRequest{Path: p.lockPath(), Version: -1},
	}
}

func stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
