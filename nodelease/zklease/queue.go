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

// A place in a pool's queue. Who is first takes the lock, claims and leaves. The
// Java program gives its ticket back when it has the lock; here it is kept, so
// that requests can name it: they fail if the session has ended, and the lock
// may be someone else's.
type place struct {
	store  *Store
	queue  string
	ticket string
	left   bool
}

func (p *place) ticketPath() string { return p.queue + "/" + p.ticket }
func (p *place) lockPath() string   { return p.queue + "/" + lockName }

// A queueError tells what was in front of us for all the time that there was. It
// is a BusyError, so that Acquire goes on trying.
type queueError struct {
	text string
	busy *nodelease.BusyError
}

func (e *queueError) Error() string { return e.text }
func (e *queueError) Unwrap() error { return e.busy }

// errSessionEnded: what the session held is gone, so begin anew.
var errSessionEnded = errors.New("zklease: the session has ended")

// enter waits for the lock until the deadline.
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

// take gets a ticket.
func (p *place) take(ctx context.Context, holder string) error {
	for {
		p.ticket = ticketName(time.Now(), rand.IntN(10000))
		mine, err := p.create(ctx, p.ticketPath(), []byte(holder))
		if mine || err != nil {
			return err
		}
	}
}

// create makes a znode that goes with the session, and says whether it is ours:
// it isn't if somebody else has made one.
func (p *place) create(ctx context.Context, path string, data []byte) (bool, error) {
	mine := false
	err := p.store.persist(ctx, func() error {
		_, err := p.store.conn.Create(path, data, zk.FlagEphemeral, p.store.config.ACL)
		if !errors.Is(err, zk.ErrNodeExists) {
			mine = err == nil
			return err
		}
		// It may be from an attempt whose answer got lost.
		found, _, err := p.store.conn.Get(path)
		mine = err == nil && string(found) == string(data)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	})
	return mine, err
}

// wait waits until we are first and have the lock.
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

// How often to look at what is in front of us: the more often, the nearer to the
// front we are.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// pass waits until what is in front of us is gone. It looks again and again, and
// sets no watch: those of the client may miss what happens while it connects
// anew, as it names a transaction to go on from that it may have got after that.
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
			return &queueError{text: fmt.Sprintf("zklease: expected to get to the front of %s within %v, got %s in front, which session 0x%x made at %s by the servers' clock: see what became of that process, or delete the znode",
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

// leave gives the place and the lock back, however long that takes: the session
// may live on for days.
func (p *place) leave() {
	if p.left || p.ticket == "" {
		return
	}
	p.left = true
	go func() {
		s := p.store
		_ = s.persist(s.life, func() error {
			// The lock may have been made in a request whose answer got lost, and be
			// unknown yet to the server that we are connected to now.
			if _, err := s.conn.Sync(p.queue); err != nil {
				return err
			}
			// Both or the ticket alone: the lock may be someone else's.
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

// unlock is what gives the place and the lock back.
func (p *place) unlock() []any {
	return []any{
		&zk.DeleteRequest{Path: p.ticketPath(), Version: -1},
		&zk.DeleteRequest{Path: p.lockPath(), Version: -1},
	}
}

func stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
