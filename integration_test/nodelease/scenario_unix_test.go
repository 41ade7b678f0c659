//go:build unix

package nodelease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

func TestMain(m *testing.M) { pgtest.MainParallel(m, 16) }

// must is pgtest.Must.
var must = pgtest.Must

// scenarios starts scenarios on one store.
type scenarios struct {
	program string
	args    []string // the minter's flags for the store
}

// A scenario has processes that share a pool, and collects their IDs.
type scenario struct {
	scenarios
	format  string
	pool    string
	ttl     time.Duration
	dir     string
	seed    uint64
	random  *rand.Rand
	minters []*minter
	slow    string // why the machine is too busy for the scenario, if it is
	repeats bool   // its processes create duplicates on purpose
}

// starting serializes the start of servers. Several starts at a time use so much
// processor time that other tests lose their claims.
var starting sync.Mutex

// started starts a server with start and runs the test with it.
func started[T any](t *testing.T, start func(*testing.T, func(*testing.T, T)), test func(*testing.T, T)) {
	starting.Lock()
	done := sync.OnceFunc(starting.Unlock)
	defer done() // if start fails
	start(t, func(t *testing.T, server T) {
		done()
		test(t, server)
	})
}

// begin returns a scenario without processes. It has a new pool of four numbers, and a
// TTL that suits the machine.
func (sc scenarios) begin(t *testing.T) *scenario {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("SORTKEY_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		must(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SORTKEY_SEED=%d repeats the random choices", seed)
		}
	})
	s := &scenario{
		scenarios: sc, dir: t.TempDir(), format: "snowflake:2", pool: newPool(),
		seed: seed, random: rand.New(rand.NewPCG(seed, 1)),
	}
	s.ttl = s.suitable(t)
	return s
}

var pools atomic.Int64

func newPool() string { return fmt.Sprintf("pool-%d", pools.Add(1)) }

// The range of suitable TTLs. On an idle machine, the shortest is a hundred times the
// duration of a renewal.
const (
	shortestTTL = 5 * time.Second
	longestTTL  = 30 * time.Second
)

// suitable returns a TTL with which claims are lost through the intended faults only, and
// not because the machine is busy.
func (s *scenario) suitable(t testing.TB) time.Duration {
	t.Helper()
	took := longestTTL
	for range 3 { // the start of a server can make the machine busy for a moment
		probe := *s
		probe.dir, probe.pool, probe.ttl = t.TempDir(), newPool(), time.Minute
		begun := time.Now()
		m := probe.start(t)
		m.acquired(t)
		m.close(t)
		if took = min(took, time.Since(begun)); 20*took <= shortestTTL {
			break
		}
	}
	ttl := min(max(shortestTTL, (20*took).Round(time.Second)), longestTTL)
	if ttl > shortestTTL {
		t.Logf("using a TTL of %v, since a process needs %v to claim and release a number", ttl, took)
	}
	return ttl
}

// window returns how long a claim is trusted.
func (s *scenario) window() time.Duration { return s.ttl - s.ttl/10 }

// collect kills all processes and returns their IDs.
func (s *scenario) collect(t testing.TB) *collection {
	t.Helper()
	var journals []string
	for _, m := range s.minters {
		_ = m.cmd.Process.Kill()
		m.ends(t)
		journals = append(journals, m.journal)
		if trouble := m.trouble.String(); trouble != "" {
			t.Errorf("expected no error output of process %s, got %s", m.name, trouble)
		}
	}
	format, err := journal.ParseFormat(s.format)
	must(t, err)
	c, err := collect(format, journals)
	must(t, err)
	return c
}

// check kills all processes and reports each problem of their IDs as an error.
func (s *scenario) check(t testing.TB) *collection {
	t.Helper()
	c := s.collect(t)
	s.report(t, c)
	if len(c.ids) == 0 {
		t.Error("expected IDs, got none: the test proves nothing")
	}
	t.Logf("%d IDs by %d processes in %d terms, %d handovers", len(c.ids), len(s.minters), len(c.tenures), c.handovers())
	return c
}

// report reports each problem of the IDs as an error, also one that a busy machine
// helped to find.
func (s *scenario) report(t testing.TB, c *collection) {
	t.Helper()
	if tr, ok := t.(*trial); ok {
		t = tr.TB
	}
	for _, p := range c.said {
		t.Error(p)
	}
	for kind, n := range c.problems {
		t.Errorf("%d times: %s", n, kind)
	}
}

// lost waits for the nth loss of a process, which the scenario intends.
func (s *scenario) lost(t testing.TB, m *minter, n int) journal.Event {
	t.Helper()
	m.meant = max(m.meant, n)
	e := m.told(t, journal.Lost, n, patience)
	if !e.LeaseLost {
		t.Errorf("expected process %s to lose its claim with ErrLeaseLost, got %q", m.name, e.Error)
	}
	return e
}
