package idtype

import (
	"context"
	"runtime"
	"time"
)

// A clock tells the time and lets time pass.
type clock struct {
	start time.Time // from which ticks counts
	// wall is the clock that may be stepped. Nil: the system's.
	wall func() time.Time
	// anchored: within a unit, ticks alone is read. Only a wall that runs
	// at the pace of ticks can be trusted with that; a caller's can't.
	anchored bool

	// Tests set these, so that waits are scripted too.
	monotonic func() time.Duration
	sleep     func(ctx context.Context, d time.Duration, wake <-chan struct{})
}

// systemClock reads the wall from now, or from the system if it is nil. Ticks
// and waits go by the system's monotonic clock: even a wall that stands still
// can't make a bounded wait endless.
func systemClock(now func() time.Time) clock {
	return clock{start: time.Now(), wall: now, anchored: now == nil}
}

// ticks is the monotonic clock.
func (c *clock) ticks() time.Duration {
	if c.monotonic != nil {
		return c.monotonic()
	}
	return time.Since(c.start)
}

// read reads both clocks.
func (c *clock) read() (wall time.Time, ticks time.Duration) {
	if c.wall == nil {
		// One reading is of both.
		wall = time.Now()
		return wall, wall.Sub(c.start)
	}
	return c.wall(), c.ticks()
}

// Go's sleeps take a millisecond, or up to a quarter more, even if less was
// asked for. At the end of a unit of a millisecond that would be to oversleep
// into the next one, and if what is left of that doesn't suffice to mint all its
// numbers, they are lost. So a pause that is as short as this is spent
// spinning. That is but a small part of the time: the next pause is a long one.
const (
	oversleep = 250 * time.Microsecond
	mintsIn   = 60 * time.Nanosecond   // a number
	spinMost  = 300 * time.Microsecond // for all of them
)

// spinBelow is the longest pause that isn't slept, if a unit has so many
// numbers.
func spinBelow(numbers int64) time.Duration {
	return oversleep + time.Duration(min(numbers*int64(mintsIn), int64(spinMost)))
}

// mostStill is how many readings in a row may show the same time before spinning
// ends. In a bubble of testing/synctest time only passes while all sleep, and there
// is no other clock. A reading takes 50 ns or more with its Gosched, so this many
// take longer than a tick of a clock that ticks every 0.5 ms, as on Windows.
const mostStill = 20_000

// pause lets d pass, spinning or asleep; less if ctx ends or wake is signalled
// while it sleeps.
func (c *clock) pause(ctx context.Context, d time.Duration, spin bool, wake <-chan struct{}) {
	if c.sleep != nil {
		c.sleep(ctx, d, wake)
		return
	}
	if spin {
		now := c.ticks()
		end := now + d
		for still := 0; now < end && still < mostStill; still++ {
			runtime.Gosched()
			if t := c.ticks(); t != now {
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
