package idtype

import (
	"context"
	"time"
)

// A clock tells the time and lets time pass.
type clock struct {
	now   func() time.Time // the wall clock, which may be stepped
	ticks func() time.Duration
	sleep func(context.Context, time.Duration) error
}

// systemClock reads the wall from now, and waits by the system's monotonic
// clock: even a wall that stands still can't make a bounded wait endless.
func systemClock(now func() time.Time) *clock {
	start := time.Now()
	return &clock{
		now:   now,
		ticks: func() time.Duration { return time.Since(start) },
		sleep: sleep,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Done() == nil {
		time.Sleep(d)
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
