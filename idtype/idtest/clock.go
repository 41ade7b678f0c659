package idtest

import (
	"sync"
	"time"
)

// A Clock is a clock that stands until a test moves it. Pass its method Now as the Clock of
// [idtype.Options]. It is safe for concurrent use.
//
// While the clock stands, a generator creates the IDs of one unit of time, such as the 4096
// Snowflakes of a millisecond. The next call waits for MaxWait of real time, and then fails.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at a time.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock, forward or back.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = at
}

// Add moves the clock by d, forward or back.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
