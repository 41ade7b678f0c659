//go:build unix

package nodelease

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// patience is the time limit for each wait.
const patience = 5 * time.Minute

// A minter is a process of the program minter.
type minter struct {
	name    string
	journal string
	cmd     *exec.Cmd
	orders  io.WriteCloser
	exited  chan struct{}
	status  error // once exited is closed
	meant   int   // number of losses that the scenario intends
	of      *scenario
	trouble bytes.Buffer

	mu     sync.Mutex
	events []journal.Event
	minted uint64
	news   chan struct{} // closed at the next event
}

// start starts another process.
func (s *scenario) start(t testing.TB, args ...string) *minter {
	t.Helper()
	name := fmt.Sprintf("%d", len(s.minters))
	m := &minter{name: name, journal: filepath.Join(s.dir, name), of: s, exited: make(chan struct{}), news: make(chan struct{})}
	args = slices.Concat(s.args, []string{"-format", s.format, "-pool", s.pool, "-ttl", s.ttl.String(), "-journal", m.journal,
		"-seed", fmt.Sprint(s.random.Uint64())}, args)
	m.cmd = exec.Command(s.program, args...)
	m.cmd.SysProcAttr = pgtest.Child()
	m.cmd.Stderr = &m.trouble
	out, err := m.cmd.StdoutPipe()
	must(t, err)
	m.orders, err = m.cmd.StdinPipe()
	must(t, err)
	must(t, m.cmd.Start())
	s.minters = append(s.minters, m)
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		<-m.exited
		if t.Failed() {
			t.Log(m)
		}
	})
	go func() {
		defer close(m.exited)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e journal.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e = journal.Event{Event: "not an event", Error: lines.Text()}
			}
			m.happened(e)
		}
		m.status = m.cmd.Wait()
	}()
	return m
}

func (m *minter) happened(e journal.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.minted = max(m.minted, e.Minted)
	if e.Event != journal.Progress {
		m.events = append(m.events, e)
	}
	close(m.news)
	m.news = make(chan struct{})
}

// String returns the events and the error output of the process.
func (m *minter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "process %s (%s) reported at least %d IDs and these events:", m.name, strings.Join(m.cmd.Args[1:], " "), m.minted)
	for _, e := range m.events {
		fmt.Fprintf(&b, "\n\t%+v", e)
	}
	return b.String() + "\n" + m.trouble.String()
}

// until waits until done returns nil. It calls done, with the lock held, after each
// event.
func (m *minter) until(t testing.TB, within time.Duration, done func() error) {
	t.Helper()
	deadline := time.After(within)
	for {
		m.mu.Lock()
		err, news := done(), m.news
		m.mu.Unlock()
		if err == nil {
			return
		}
		select {
		case <-news:
		case <-m.exited:
			m.mu.Lock()
			err := done()
			m.mu.Unlock()
			if err != nil {
				t.Fatalf("expected process %s %v, but it ended: %v", m.name, err, m.status)
			}
			return
		case <-deadline:
			t.Fatalf("expected process %s %v within %v", m.name, err, within)
		}
	}
}

// told waits for the nth event of a kind, from 1.
func (m *minter) told(t testing.TB, event string, n int, within time.Duration) (e journal.Event) {
	t.Helper()
	m.until(t, within, func() error {
		if all := m.all(event); len(all) >= n {
			e = all[n-1]
			return nil
		}
		return fmt.Errorf("to report the event %q %d times", event, n)
	})
	return e
}

// all returns the events of a kind. The caller holds the lock.
func (m *minter) all(event string) (all []journal.Event) {
	for _, e := range m.events {
		if e.Event == event {
			all = append(all, e)
		}
	}
	return all
}

// count returns the number of events of a kind so far.
func (m *minter) count(event string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all(event))
}

// acquired waits for the first claim.
func (m *minter) acquired(t testing.TB) journal.Event {
	t.Helper()
	return m.told(t, journal.Acquired, 1, patience)
}

// fails waits for the end of a process that gets no number. If the store didn't answer,
// it repeats the scenario.
func (m *minter) fails(t testing.TB) journal.Event {
	t.Helper()
	e := m.told(t, journal.Failed, 1, patience)
	m.ends(t)
	if e.NoAnswer {
		m.of.busy(t, "process %s: %s", m.name, e.Error)
	}
	return e
}

// mints waits until the process creates new IDs.
func (m *minter) mints(t testing.TB) {
	t.Helper()
	// The next report may count IDs from before this call, so wait for two.
	for range 2 {
		m.mu.Lock()
		before := m.minted
		m.mu.Unlock()
		m.until(t, patience, func() error {
			if m.minted > before {
				return nil
			}
			return fmt.Errorf("to create more than %d IDs", before)
		})
	}
}

// keeps checks that the process creates IDs and hasn't lost a claim.
func (m *minter) keeps(t testing.TB) {
	t.Helper()
	m.mints(t)
	if n := m.count(journal.Lost); n > 0 {
		t.Errorf("expected process %s to keep its claim, got %d losses", m.name, n)
	}
}

// renews waits for n more renewals. Four renewals take longer than a TTL.
func (m *minter) renews(t testing.TB, n int) {
	t.Helper()
	m.told(t, journal.Renewed, m.count(journal.Renewed)+n, patience)
}

func (m *minter) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatalf("send process %s %v: %v", m.name, s, err)
	}
}

// ends waits for the end of the process.
func (m *minter) ends(t testing.TB) {
	t.Helper()
	select {
	case <-m.exited:
	case <-time.After(patience):
		t.Fatalf("expected process %s to end within %v", m.name, patience)
	}
}

// close makes the process release its number and end.
func (m *minter) close(t testing.TB) {
	t.Helper()
	m.signal(t, syscall.SIGTERM)
	m.ends(t)
	if m.status != nil {
		t.Errorf("expected process %s to end without an error, got %v", m.name, m.status)
	}
}

// kill kills the process.
func (m *minter) kill(t testing.TB) {
	t.Helper()
	m.signal(t, syscall.SIGKILL)
	m.ends(t)
}

// order sends the process a command.
func (m *minter) order(t testing.TB, order string) {
	t.Helper()
	_, err := io.WriteString(m.orders, order+"\n")
	must(t, err)
}

// tries waits for the end of a process that has lost its claim permanently, and checks
// that all its calls of the generator failed after the loss.
func (m *minter) tries(t testing.TB) {
	t.Helper()
	if e := m.told(t, journal.Refused, 1, patience); !e.LeaseLost {
		t.Errorf("expected process %s to fail with ErrLeaseLost, got %q", m.name, e.Error)
	}
	if e := m.told(t, journal.Tried, 1, patience); e.Refusals == 0 || e.Minted != 0 {
		t.Errorf("expected all calls of process %s to fail after its loss, got %d failed and %d successful calls", m.name, e.Refusals, e.Minted)
	}
	m.ends(t)
}
