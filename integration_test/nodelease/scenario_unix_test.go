//go:build unix

package nodelease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
)

func TestMain(m *testing.M) { pgtest.MainParallel(m, 8) }

// must is pgtest.Must.
var must = pgtest.Must

// build gives the minting program.
func build(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "minter")
	if out, err := exec.Command("go", "build", "-o", name, "./minter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// scenarios are those of a store.
type scenarios struct {
	program string
	args    []string // that say where the store is
}

// A scenario is processes that share a pool, and what they have minted.
type scenario struct {
	scenarios
	format  string
	pool    string
	ttl     time.Duration
	dir     string
	seed    uint64
	random  *rand.Rand
	minters []*minter
	again   bool // may run once more, with a longer TTL
}

// starting is held by who starts a server: more than one at a time, and claims
// are lost elsewhere for want of a processor.
var starting sync.Mutex

// started runs a test with a server, given a function that starts it first.
func started[T any](t *testing.T, start func(*testing.T, func(*testing.T, T)), test func(*testing.T, T)) {
	starting.Lock()
	done := sync.OnceFunc(starting.Unlock)
	defer done() // if it couldn't be started
	start(t, func(t *testing.T, server T) {
		done()
		test(t, server)
	})
}

// begin makes a scenario without processes. Its pool, which is its own, has four
// numbers, and its TTL suits the machine.
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

// The TTLs of scenarios. In the shortest, on a machine that has time, a renewal is
// answered a hundred times over.
const (
	shortestTTL = 5 * time.Second
	longestTTL  = 30 * time.Second
)

// suitable is a TTL in which claims are only lost for the faults that are meant,
// and not because the machine has other things to do.
func (s *scenario) suitable(t *testing.T) time.Duration {
	t.Helper()
	probe := *s
	probe.dir, probe.pool, probe.ttl = t.TempDir(), newPool(), time.Minute
	begun := time.Now()
	m := probe.start(t)
	m.acquired(t)
	m.close(t)
	took := time.Since(begun)
	ttl := min(max(shortestTTL, (20*took).Round(time.Second)), longestTTL)
	if ttl > shortestTTL {
		t.Logf("with a TTL of %v, since a process that claims a number and gives it back takes %v", ttl, took)
	}
	return ttl
}

// mostTTL is the longest TTL of a scenario that runs again. Claims of processes
// that were killed have to be over within patience.
const mostTTL = time.Minute

// tooBusy is what a scenario panics with to run once more.
type tooBusy string

// repeat ends an attempt at a scenario for which the machine had too little time,
// unless the TTL can't be longer.
func (s *scenario) repeat(format string, args ...any) {
	if s.again {
		panic(tooBusy(fmt.Sprintf(format, args...)))
	}
}

// run runs a scenario, and again with a longer TTL where the machine had other
// things to do than to renew its claims in time.
func (sc scenarios) run(t *testing.T, f func(*testing.T, *scenario)) {
	t.Helper()
	for s := sc.begin(t); ; {
		s.again = s.ttl < mostTTL
		why := s.attempt(t, f)
		if why == "" || t.Failed() {
			return
		}
		t.Logf("a TTL of %v was too short: %s", s.ttl, why)
		ttl := min(3*s.ttl, mostTTL)
		s = sc.begin(t)
		s.ttl = max(s.ttl, ttl)
	}
}

// attempt gives the reason for which a scenario has to run again.
func (s *scenario) attempt(t *testing.T, f func(*testing.T, *scenario)) (why tooBusy) {
	t.Helper()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case tooBusy:
			why = r
			for _, m := range s.minters {
				_ = m.cmd.Process.Kill()
				m.ends(t)
			}
		default:
			panic(r)
		}
	}()
	f(t, s)
	return ""
}

// steady repeats the scenario if a process has lost a claim that it was to keep.
func (s *scenario) steady() {
	for _, m := range s.minters {
		m.steady()
	}
}

// window is for how long a claim is trusted.
func (s *scenario) window() time.Duration { return s.ttl - s.ttl/10 }

// collect ends all processes, and gives what they have minted.
func (s *scenario) collect(t *testing.T) *collection {
	t.Helper()
	var journals []string
	for _, m := range s.minters {
		_ = m.cmd.Process.Kill()
		m.ends(t)
		journals = append(journals, m.journal)
		if trouble := m.trouble.String(); trouble != "" {
			t.Errorf("expected process %s to have no complaints, got %s", m.name, trouble)
		}
	}
	format, err := journal.ParseFormat(s.format)
	must(t, err)
	c, err := collect(format, journals)
	must(t, err)
	return c
}

// check ends all processes, and expects all that they have minted to be in
// order.
func (s *scenario) check(t *testing.T) *collection {
	t.Helper()
	s.steady()
	c := s.collect(t)
	for _, p := range c.said {
		t.Error(p)
	}
	for kind, n := range c.problems {
		t.Errorf("%d times: %s", n, kind)
	}
	if len(c.ids) == 0 {
		t.Error("expected IDs, got none: the test proves nothing")
	}
	t.Logf("%d IDs of %d processes in %d terms, %d handovers", len(c.ids), len(s.minters), len(c.tenures), c.handovers())
	return c
}

// lost waits for the nth loss of a process.
func (s *scenario) lost(t *testing.T, m *minter, n int) journal.Event {
	t.Helper()
	m.meant = max(m.meant, n)
	e := m.told(t, journal.Lost, n, patience)
	if !e.LeaseLost {
		t.Errorf("expected process %s to lose its claim with ErrLeaseLost, got %q", m.name, e.Error)
	}
	return e
}
