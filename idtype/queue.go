package idtype

import (
	"context"
	"sync"
	"time"
)

// A queue has the calls that wait, in the order in which they came. The first
// leads: it alone sleeps and looks at the clock, for all of them. Calls that
// come while there is a queue look for them too, before they queue themselves.
type queue struct {
	head, tail *waiter
	calls      int
	wanted     int           // numbers
	served     time.Duration // when one last did, by the monotonic clock
	spins      int           // pauses since then that weren't slept
	waiters    sync.Pool     // without channels, which belong to a bubble of testing/synctest
}

// A waiter is a call that waits.
type waiter struct {
	call
	n     int
	since time.Duration // by the monotonic clock

	// What it got, once it left the queue.
	left  bool
	got   slot
	count int
	err   error

	news       sync.Cond     // for a call that only news can wake
	wake       chan struct{} // for one that a timer or a context can wake as well; else nil
	prev, next *waiter
}

func (q *queue) push(w *waiter) {
	if w.prev = q.tail; w.prev != nil {
		w.prev.next = w
	} else {
		q.head, q.served = w, w.since // an earlier time may come from another bubble's clock
	}
	q.tail = w
	q.calls++
	q.wanted += w.n
}

// remove gives a waiter what it got, and the lead, if it had it, to the next.
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

// dismiss lets go of a waiter. If it is still in the queue, the caller's clock,
// lease or random source has panicked.
func (q *queue) dismiss(w *waiter) {
	if !w.left {
		q.remove(w, slot{}, 0, nil)
	}
	w.left = false
	q.waiters.Put(w)
}

// wait queues a call until it has its slot. The lock is held, but for the
// time that it sleeps.
func (s *sequencer) wait(ctx context.Context, c *call, n int) (slot, int, error) {
	s.stats.Waits++
	c.waited = true
	w, _ := s.queue.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{news: sync.Cond{L: &s.mu}}
	}
	w.call, w.n, w.since, w.next = *c, n, s.reading, nil
	s.queue.push(w)
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

// sleep waits, without the lock, for news: who leads, for the time when there
// may be some.
func (s *sequencer) sleep(ctx context.Context, w *waiter) {
	leads := w == s.queue.head
	if !leads && ctx.Done() == nil {
		w.news.Wait() // cheaper than a select, and without a channel
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

// pause is how long to wait until there may be news, and whether it is to be
// spent spinning. Against a clock that stands still just before a unit's end
// that helps for a few times only: then it is slept.
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

// serve gives the waiting calls the numbers there are. It fails calls that have
// waited too long, and calls whose wait would end before the clock gets there.
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
	// They are in the order of the time since when they wait.
	enough := max(s.blocked.least, 1)
	for w := q.head; w != nil && s.maxWait-(s.reading-w.since) < enough; {
		next := w.next
		if s.patience(w) < enough {
			b := s.blocked
			if b.reason == reasonFull && q.served > w.since {
				b.reason = reasonOvertaken
			}
			q.remove(w, slot{}, 0, s.failure(b))
		}
		w = next
	}
}

// patience is for how long a call may still wait. For the patient, what others
// get counts too: the clock isn't standing still.
func (s *sequencer) patience(w *waiter) time.Duration {
	since := w.since
	if w.patient {
		since = max(since, s.queue.served)
	}
	return s.maxWait - (s.reading - since)
}

// A stall is the time while calls wait because the numbers of units are used up.
type stall struct {
	going       bool
	began, told time.Duration // by the monotonic clock
}

// tellEvery is the least time between two messages of a stall. It is a bit less than a
// Sno's unit, because the leader looks at the clock once in each.
const tellEvery = 3 * time.Millisecond

// tellOverflow sends a message when a stall begins, while it lasts, and when it ends.
func (s *sequencer) tellOverflow() {
	t, calls := &s.stall, s.queue.calls
	switch {
	case !t.going && calls > 0 && s.blocked.reason == reasonFull:
		t.going, t.began = true, s.reading
	case t.going && calls == 0:
		t.going = false
	case !t.going || s.reading-t.told < tellEvery:
		return
	}
	t.told = s.reading
	select {
	case s.overflow <- SnoOverflow{s.wall, calls, int((s.reading - t.began).Milliseconds())}:
	default:
	}
}
