package idtype

import (
	"context"
	"runtime"
	"time"
)

// A clock reads the time and waits.
type clock struct {
	start time.Time // the zero of the monotonic clock
	// wall reads the wall clock, which can step. Nil means the system's.
	wall func() time.Time
	// anchored means that the generator uses the fast path, which reads only the monotonic
	// clock. That is safe only if both clocks run at the same pace, so not for a caller's
	// Clock.
	anchored bool

	// Tests set these to script waits.
	monotonic func() time.Duration
	sleep     func(ctx context.Context, d time.Duration, wake <-chan struct{})
}

// systemClock returns a clock that reads the wall time with the function now, or from the
// system if now is nil. Waits use the system's monotonic clock, so that a bounded
// wait ends even if the wall clock stands still.
func systemClock(now func() time.Time) clock {
	return clock{start: time.Now(), wall: now, anchored: now == nil}
}

// elapsed returns the time since start, by the monotonic clock.
func (c *clock) elapsed() time.Duration {
	if c.monotonic != nil {
		return c.monotonic()
	}
	return time.Since(c.start)
}

// read reads both clocks.
func (c *clock) read() (wall time.Time, elapsed time.Duration) {
	if c.wall == nil {
		// A Go time holds readings of both clocks.
		wall = time.Now()
		return wall, wall.Sub(c.start)
	}
	return c.wall(), c.elapsed()
}

// A Go sleep takes at least 1 ms, and can end 0.25 ms late. At the end of a
// one-millisecond unit, a sleep would end in the middle of the next unit, and the rest of
// that unit would be too short to use all its numbers. Short pauses therefore spin
// instead of sleeping. The cost is small, because a long pause follows each short one.
const (
	oversleep = 250 * time.Microsecond
	mintsIn   = 60 * time.Nanosecond   // the time to take one number
	spinMost  = 300 * time.Microsecond // the limit of that time for all numbers of a unit
)

// spinBelow returns the longest pause that spins, for units with this many numbers.
func spinBelow(numbers int64) time.Duration {
	return oversleep + time.Duration(min(numbers*int64(mintsIn), int64(spinMost)))
}

// mostStill is the number of consecutive equal readings after which pause stops spinning
// and sleeps. In a bubble of testing/synctest, time passes only while all goroutines
// sleep, so a spin would never end. A reading and its Gosched take at least 50 ns, so
// 20,000 readings take longer than a tick of Windows' 0.5 ms clock.
const mostStill = 20_000

// pause waits for d, spinning or asleep. A sleep ends early if ctx ends or wake
// receives a signal.
func (c *clock) pause(ctx context.Context, d time.Duration, spin bool, wake <-chan struct{}) {
	if c.sleep != nil {
		c.sleep(ctx, d, wake)
		return
	}
	if spin {
		now := c.elapsed()
		end := now + d
		for still := 0; now < end && still < mostStill; still++ {
			runtime.Gosched()
			if t := c.elapsed(); t != now {
				now, still = t, 0
			}
		}
		if d = end - now; d <= 0 {
			return
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
