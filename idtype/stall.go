package idtype

import "time"

// A stall tells of the calls that wait because a unit's numbers are used up.
type stall struct {
	tell  func(now time.Time, calls int, since time.Duration) // nil: nobody
	going bool
	began time.Duration // by the monotonic clock
	told  time.Duration
}

// tellEvery is how long the calls wait between two notifications. A bit less
// than a Sno's unit, since they are looked after once in each.
const tellEvery = 3 * time.Millisecond

// notify tells of a stall: when it begins, while it lasts, and when it ends.
func (s *sequencer) notify() {
	t, calls := &s.stall, s.queue.calls
	switch {
	case t.tell == nil:
		return
	case !t.going && (calls == 0 || s.queue.blocked.reason != reasonFull):
		return
	case !t.going:
		t.going, t.began = true, s.reading
	case calls == 0:
		t.going = false
	case s.reading-t.told < tellEvery:
		return
	}
	t.told = s.reading
	t.tell(s.wall, calls, s.reading-t.began)
}
