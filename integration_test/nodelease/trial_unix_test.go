//go:build unix

package nodelease

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

// A trial is the testing.TB of one run of a scenario. It keeps the failures of the run,
// because they don't count if the machine was too busy for the run.
type trial struct {
	testing.TB
	failures []string
}

// abandoned is the panic value that ends a trial after a fatal failure.
type abandoned struct{}

func (tr *trial) fail(text string) {
	_, file, line, _ := runtime.Caller(2)
	tr.failures = append(tr.failures, fmt.Sprintf("%s:%d: %s", filepath.Base(file), line, text))
}

func (tr *trial) Error(args ...any)                 { tr.fail(fmt.Sprint(args...)) }
func (tr *trial) Errorf(format string, args ...any) { tr.fail(fmt.Sprintf(format, args...)) }

func (tr *trial) Fatal(args ...any) {
	tr.fail(fmt.Sprint(args...))
	panic(abandoned{})
}

func (tr *trial) Fatalf(format string, args ...any) {
	tr.fail(fmt.Sprintf(format, args...))
	panic(abandoned{})
}

func (tr *trial) FailNow() {
	tr.fail("failed")
	panic(abandoned{})
}

// longestTrialTTL is the longest TTL of a repeated scenario. Claims of killed processes
// must expire within patience.
const longestTrialTTL = time.Minute

// run runs a scenario. If it fails and the machine was too busy to renew claims in time,
// run repeats it with a longer TTL. IDs that aren't in order are a failure in every run.
func (sc scenarios) run(t *testing.T, f func(testing.TB, *scenario)) {
	t.Helper()
	for s := sc.begin(t); ; {
		ttl := s.ttl
		tr := &trial{TB: t}
		s.try(tr, f)
		busy := s.starved()
		if len(tr.failures) == 0 || busy == "" || ttl >= longestTrialTTL {
			for _, text := range tr.failures {
				t.Error(text)
			}
			return
		}
		t.Logf("a TTL of %v was too short: %s", s.ttl, busy)
		for _, text := range tr.failures {
			t.Logf("ignored: %s", text)
		}
		if !s.repeats {
			s.report(t, s.collect(t))
		}
		s = sc.begin(t)
		s.ttl = max(s.ttl, min(3*ttl, longestTrialTTL))
	}
}

func (s *scenario) try(tr *trial, f func(testing.TB, *scenario)) {
	defer func() {
		if r := recover(); r != nil && r != (abandoned{}) {
			panic(r)
		}
	}()
	f(tr, s)
}

// busy ends the trial because the machine is too busy.
func (s *scenario) busy(t testing.TB, format string, args ...any) {
	t.Helper()
	s.slow = fmt.Sprintf(format, args...)
	t.Fatal(s.slow)
}

// starved returns why the machine was too busy for the scenario, or "". A process that
// lost a claim without an intended fault is a reason, unless another process had taken
// the number: that is never the machine's fault.
func (s *scenario) starved() string {
	for _, m := range s.minters {
		m.mu.Lock()
		lost := m.all(journal.Lost)
		m.mu.Unlock()
		for _, e := range lost[min(m.meant, len(lost)):] {
			if !e.Superseded {
				return fmt.Sprintf("process %s: %s", m.name, e.Error)
			}
		}
	}
	return s.slow
}
