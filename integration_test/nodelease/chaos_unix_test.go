//go:build unix

package nodelease

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// An upheaval is a scenario with random faults.
type upheaval struct {
	*scenario
	pace          time.Duration // a TTL with which this machine loses no claims
	numbers, most int
	alive         []*minter
	due           []deed
	done          map[string]int
}

// A deed is an action at a later time.
type deed struct {
	at time.Time
	do func()
}

// chaos randomly starts, ends, kills and stops processes of two pools, more than the
// pools have numbers, and sometimes pauses the server.
func chaos(t *testing.T, scenarios scenarios, srv *server) {
	one, two := scenarios.begin(t), scenarios.begin(t)
	one.format, two.format = "snowflake:2", "sno:3"
	pools := []*upheaval{{scenario: one, pace: one.ttl, numbers: 4, most: 6}, {scenario: two, pace: two.ttl, numbers: 3, most: 4}}
	for _, u := range pools {
		u.done = map[string]int{}
	}
	// Run until numbers have passed to other processes, even on a slow machine.
	begun, lasts := time.Now(), pgtest.Soak(t, 10*time.Second, 10*time.Second)
	goesOn := func() bool {
		since := time.Since(begun)
		return since < lasts || since < lasts+4*patience && slices.ContainsFunc(pools, func(u *upheaval) bool { return u.holders() < 2*u.numbers })
	}
	random, paused := one.random, false
	var back time.Time // when the server is to be unpaused
	for goesOn() {
		u := pools[random.IntN(len(pools))]
		if random.IntN(12) == 0 && !paused {
			srv.pause(t)
			paused, back = true, time.Now().Add(u.upTo(u.pace/2))
			u.done["pauses of the server"]++
		}
		if paused && time.Now().After(back) {
			srv.unpause(t)
			paused, back = false, time.Time{}
		}
		u.fault(t)
		for _, u := range pools {
			u.settle(t, time.Now())
		}
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
	}
	if paused {
		srv.unpause(t)
	}
	for _, u := range pools {
		u.settle(t, time.Now().Add(time.Hour))
		for _, m := range u.alive {
			u.send(m, syscall.SIGTERM)
		}
		for _, m := range u.alive {
			m.ends(t)
		}
		u.recovers(t)
		if c := u.check(t); c.handovers() < u.numbers {
			t.Errorf("expected at least %d handovers, got %d: the test proves little", u.numbers, c.handovers())
		}
		t.Logf("%s: %v", u.format, u.done)
	}
}

// holders returns how many processes have held a number. All but the first holder of a
// number got it from another process.
func (u *upheaval) holders() (n int) {
	for _, m := range u.minters {
		n += min(m.count(journal.Acquired), 1)
	}
	return n
}

// fault starts a process, or signals one.
func (u *upheaval) fault(t *testing.T) {
	t.Helper()
	if len(u.alive) < u.most && u.random.IntN(2) == 0 {
		u.ttl = u.pace * time.Duration(2+u.random.IntN(3)) / 10
		args := []string{"-try", "300ms"}
		if u.random.IntN(2) == 0 {
			args = append(args, "-reacquire")
		}
		// Half of the processes have a wrong clock.
		if u.random.IntN(2) == 0 {
			args = append(args, "-offset", time.Duration(u.random.Int64N(int64(2*time.Second))-int64(time.Second)).String())
		}
		u.alive = append(u.alive, u.start(t, args...))
		u.done["starts"]++
		return
	}
	if len(u.alive) == 0 {
		return
	}
	m := u.alive[u.random.IntN(len(u.alive))]
	if m.count(journal.Acquired) == 0 && u.random.IntN(10) > 0 {
		return // usually let a process start first, even if that takes long
	}
	switch u.random.IntN(4) {
	case 0:
		u.send(m, syscall.SIGKILL)
		u.done["kills"]++
	case 1:
		u.send(m, syscall.SIGTERM)
		u.done["ends"]++
	case 2:
		u.send(m, syscall.SIGSTOP)
		u.done["stops"]++
		u.due = append(u.due, deed{time.Now().Add(u.upTo(u.pace)), func() { u.send(m, syscall.SIGCONT) }})
	}
}

// upTo returns a random duration below d.
func (u *upheaval) upTo(d time.Duration) time.Duration {
	return time.Duration(u.random.Int64N(int64(d)))
}

// send sends a signal to a process. The process may have ended before.
func (u *upheaval) send(m *minter, s syscall.Signal) { _ = m.cmd.Process.Signal(s) }

// settle runs the deeds that are due by the given time, and drops processes that have
// ended.
func (u *upheaval) settle(t *testing.T, by time.Time) {
	t.Helper()
	u.due = slices.DeleteFunc(u.due, func(d deed) bool {
		if d.at.After(by) {
			return false
		}
		d.do()
		return true
	})
	u.alive = slices.DeleteFunc(u.alive, func(m *minter) bool {
		select {
		case <-m.exited:
			return true
		default:
			return false
		}
	})
}

// recovers checks that all numbers are usable in the end.
func (u *upheaval) recovers(t *testing.T) {
	t.Helper()
	u.ttl = 2 * u.pace
	numbers := map[int]bool{}
	for range u.numbers {
		m := u.start(t, "-wait", patience.String())
		numbers[m.told(t, journal.Acquired, 1, 2*patience).Number] = true
		m.mints(t)
	}
	if len(numbers) != u.numbers {
		t.Errorf("expected %d numbers to be held at the end, got %v", u.numbers, numbers)
	}
}
