package idtype

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A block describes why a call can't take a number now.
type block struct {
	reason reason
	unit   int64         // the unit that the clock must pass or reach, or that the lease must cover
	until  int64         // the end of the lease, in Unix milliseconds
	pause  time.Duration // the time to wait before the next attempt
	least  time.Duration // the block's minimum duration if the clock runs at its normal rate
}

type reason int

const (
	reasonFull      reason = iota // all numbers of the clock's unit are used
	reasonBehind                  // the clock is behind the unit of the last ID
	reasonBound                   // the clock has not passed the start bound
	reasonUnleased                // the lease doesn't cover the unit
	reasonEnded                   // the lease has ended
	reasonOvertaken               // other calls in the queue took all numbers
)

// behind returns the block for a clock that must first reach a unit, or pass the start
// bound.
func (s *sequencer) behind() block {
	b := block{reason: reasonBehind, unit: s.unit}
	next := s.unit // the first unit in which the generator can continue
	switch {
	case s.unit == s.bound:
		b.reason = reasonBound
		next++
	case s.toggles:
		b.unit = min(s.unit, s.safe+1)
		next = b.unit
	}
	b.least = s.until(next)
	b.pause = min(b.least, longPause)
	return b
}

// usedUp returns the block for a unit without unused numbers.
func (s *sequencer) usedUp() block {
	if !s.full {
		s.full = true
		s.stats.SequenceOverflows++
	}
	return block{reason: reasonFull, unit: s.unit, pause: s.left()}
}

// A queue holds the waiting calls in order of arrival. Only the first, the leader, sleeps
// until a deadline and then reads the clock for all of them. A new call also reads the
// clock and serves the queue, before it joins the queue itself.
type queue struct {
	head, tail *waiter
	calls      int
	wanted     int           // the numbers that all calls want
	shortest   time.Duration // the shortest MaxWait of a call since the queue was empty
	served     time.Duration // the time when a call last got numbers, by the monotonic clock
	spins      int           // pauses since then that spun
	waiters    sync.Pool     // without channels, which belong to one bubble of testing/synctest
}

// A waiter is a waiting call.
type waiter struct {
	call
	n     int
	since time.Duration // the start of the wait, by the monotonic clock

	// The result, once the call has left the queue.
	left  bool
	got   slot
	count int
	err   error

	news       sync.Cond     // wakes a call that waits with neither a timer nor a context
	wake       chan struct{} // wakes a call that waits with a timer or a context; otherwise nil
	prev, next *waiter
}

func (q *queue) push(w *waiter) {
	if w.prev = q.tail; w.prev != nil {
		w.prev.next = w
	} else {
		q.head, q.served = w, w.since // the old value of served may come from another bubble's clock
		q.shortest = w.by.maxWait
	}
	q.tail = w
	q.shortest = min(q.shortest, w.by.maxWait)
	w.by.stall.calls++
	q.calls++
	q.wanted += w.n
}

// remove takes a waiter out of the queue and sets its result. If the waiter was the leader,
// the next one becomes the leader.
func (q *queue) remove(w *waiter, got slot, count int, err error) {
	if w.prev != nil {
		w.prev.next = w.next
	} else if q.head = w.next; q.head != nil {
		q.head.signal()
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	q.calls--
	q.wanted -= w.n
	w.by.stall.calls--
	w.left, w.got, w.count, w.err = true, got, count, err
	w.signal()
}

func (w *waiter) signal() {
	w.news.Signal()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// dismiss recycles a waiter. If the waiter is still in the queue, the caller's clock, lease
// or random source has panicked.
func (q *queue) dismiss(w *waiter) {
	if !w.left {
		q.remove(w, slot{}, 0, nil)
	}
	w.left = false
	q.waiters.Put(w)
}

// wait queues a call until it gets a slot or fails. The caller holds the lock; wait
// releases it while it sleeps.
func (s *sequencer) wait(ctx context.Context, c *call, n int) (slot, int, error) {
	s.stats.Waits++
	c.waited = true
	w, _ := s.queue.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{news: sync.Cond{L: &s.mu}}
	}
	w.call, w.n, w.since, w.next = *c, n, s.reading, nil
	s.queue.push(w)
	if t := &c.by.stall; t.overflow != nil && !slices.Contains(s.stalls, t) {
		s.stalls = append(s.stalls, t)
	}
	defer s.queue.dismiss(w)
	for s.settle(); !w.left; s.settle() {
		s.sleep(ctx, w)
		if w.left {
			break
		}
		if err := ctx.Err(); err != nil {
			s.queue.remove(w, slot{}, 0, err)
		} else if w == s.queue.head {
			s.poll()
		}
	}
	return w.got, w.count, w.err
}

// sleep waits without the lock. The leader waits until the clock may allow new numbers;
// the other calls wait until they are woken.
func (s *sequencer) sleep(ctx context.Context, w *waiter) {
	leads := w == s.queue.head
	if !leads && ctx.Done() == nil {
		w.news.Wait() // cheaper than a select, and needs no channel
		return
	}
	wake := make(chan struct{}, 1)
	w.wake = wake
	pause, spin := time.Duration(0), false
	if leads {
		pause, spin = s.pause(w)
	}
	s.mu.Unlock()
	defer func() { s.mu.Lock(); w.wake = nil }()
	if leads {
		s.clock.pause(ctx, pause, spin, wake)
		return
	}
	select {
	case <-wake:
	case <-ctx.Done():
	}
}

// pause returns the time to wait until there may be new numbers, and whether to spin for
// it. After three spins without a result it sleeps instead, because the clock may stand
// still just before the end of a unit.
func (s *sequencer) pause(w *waiter) (pause time.Duration, spin bool) {
	pause, left := s.blocked.pause, s.patience(w)
	switch {
	case pause > s.spin:
	case s.queue.spins < 3:
		s.queue.spins++
		spin = true
	default:
		pause = time.Millisecond
	}
	return min(pause, left), spin
}

// poll reads the clock and serves the waiting calls.
func (s *sequencer) poll() {
	now, err := s.now()
	if err != nil {
		for s.queue.head != nil {
			s.queue.remove(s.queue.head, slot{}, 0, err)
		}
		return
	}
	s.serve(now)
}

// serve gives the available numbers to the waiting calls, in order. It fails calls that
// have waited too long, and calls whose wait would end before the clock allows new numbers.
func (s *sequencer) serve(now int64) {
	q := &s.queue
	for w := q.head; w != nil; w = q.head {
		got, count, err := s.takeNow(&w.call, w.n, q.wanted, now)
		if count == 0 && err == nil {
			break
		}
		if count > 0 {
			q.served, q.spins = s.reading, 0
		}
		q.remove(w, got, count, err)
	}
	// The queue is sorted by since, so the loop ends where even the shortest MaxWait leaves
	// time.
	enough := max(s.blocked.least, 1)
	for w := q.head; w != nil && q.shortest-(s.reading-w.since) < enough; {
		next := w.next
		if s.patience(w) < enough {
			b := s.blocked
			if b.reason == reasonFull && q.served > w.since {
				b.reason = reasonOvertaken
			}
			q.remove(w, slot{}, 0, s.failure(b, w.by.maxWait))
		}
		w = next
	}
}

// patience returns the time that a call may still wait. For a patient call, the time
// starts again when any call gets numbers, because the clock is then running.
func (s *sequencer) patience(w *waiter) time.Duration {
	since := w.since
	if w.patient {
		since = max(since, s.queue.served)
	}
	return w.by.maxWait - (s.reading - since)
}

// failure returns the error for a call that may not wait longer.
func (s *sequencer) failure(b block, maxWait time.Duration) error {
	format, within := s.line.format, max(maxWait, 0)
	now, unit := stamp(s.wall), stamp(s.line.time(b.unit))
	switch b.reason {
	case reasonFull:
		return fmt.Errorf("idtype: create %s within %v: all %d sequence numbers of %s are used, and the clock is at %s; raise MaxWait, or check that the clock runs: %w",
			format, within, s.capacity(), unit, now, ErrSequenceExhausted)
	case reasonOvertaken:
		return fmt.Errorf("idtype: create %s within %v: other calls took all sequence numbers; use fewer goroutines, Fill, or more generators: %w",
			format, within, ErrSequenceExhausted)
	case reasonEnded:
		return endedError(s.lease, format)
	case reasonUnleased:
		return fmt.Errorf("idtype: create %s with number %d: the lease ends at %s, before %s; wait for its renewal, and check that the lease uses the generator's clock: %w",
			format, s.lease.Number(), stamp(time.UnixMilli(b.until)), unit, ErrLeaseNotRenewed)
	case reasonBound:
		return fmt.Errorf("idtype: create %s within %v: the clock is at %s and must pass %s, because this node may have created IDs up to then; check the system time, and NotBefore or the lease: %w",
			format, within, now, unit, ErrClockBackwards)
	default:
		return fmt.Errorf("idtype: create %s within %v: the clock is at %s and must reach %s, because this node created IDs up to then; check the system time: %w",
			format, within, now, unit, ErrClockBackwards)
	}
}
