package idtype

import (
	"slices"
	"time"
)

// A SnoOverflow reports a stall: a period in which calls wait because all sequence numbers
// of a unit are used.
type SnoOverflow struct {
	Now   time.Time // the time of the generator's clock
	Count int       // the number of waiting calls of the generator; 0 in the last message of a stall
	Ticks int       // milliseconds since the start of the stall
}

// A stall is a period in which calls of a generator wait because all numbers of a unit are
// used.
type stall struct {
	overflow    chan<- SnoOverflow // nil: none
	calls       int                // the waiting calls of the generator
	going       bool
	began, told time.Duration // its start and its last message, by the monotonic clock
}

// tellEvery is the minimum time between two messages of a stall. It is slightly less than
// a unit of Sno, because the leader reads the clock once per unit.
const tellEvery = 3 * time.Millisecond

// tellStalls sends a message at the start, during and at the end of each stall.
func (s *sequencer) tellStalls() {
	if len(s.stalls) == 0 {
		return
	}
	s.stalls = slices.DeleteFunc(s.stalls, func(t *stall) bool {
		s.tell(t)
		return t.calls == 0
	})
}

func (s *sequencer) tell(t *stall) {
	switch {
	case !t.going && t.calls > 0 && s.blocked.reason == reasonFull:
		t.going, t.began = true, s.reading
	case t.going && t.calls == 0:
		t.going = false
	case !t.going || s.reading-t.told < tellEvery:
		return
	}
	t.told = s.reading
	select {
	case t.overflow <- SnoOverflow{s.wall, t.calls, int((s.reading - t.began).Milliseconds())}:
	default:
	}
}
