package nodelease_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/sortkey/sortkey/internal/race"
	"github.com/sortkey/sortkey/nodelease"
)

// The simulation runs processes with Keepers and generators in a bubble of testing/synctest.
// A seed determines the processes, their clocks, the faults and all random numbers, so a seed
// that fails always fails in the same way.
//
// Processes run the code of this package and of idtype. The store is a model of the three
// kinds of stores, with leasetest.Store for the rules that they share; leasetest.TestStore
// compares these with each real store. Each message to the store and back takes some time,
// and can be lost or arrive late, so that renewals overtake each other.
//
// The faults: a process is paused, also between reading its clock and using the time; it is
// killed, or closes its generator, and starts again; it is copied, and both copies continue;
// it is cut off; its wall clock steps, drifts or stands still. The store stops and restarts,
// and its clock steps and runs at another speed. All machines are suspended, so that their
// monotonic clocks stand still while the store's clock goes on. The store loses its last writes,
// as after a failover, with correct clocks: a claim that it has lost may end at any time by a
// clock that is ahead.
//
// After each ID and each call of the store, the simulation checks:
//
//   - No ID exists twice, and the IDs of a claim increase.
//   - An ID has a number that its process holds, and a time in the range of the claim.
//   - The store had a high-water mark at or after that time before the ID existed.
//   - No call that began after the trust window, or after the store refused a renewal, or
//     after Close, creates an ID.
//   - Renewals don't lower a high-water mark, and the next claim starts after all IDs.
//   - Once the faults end, each process for which the pool has a number creates an ID within a
//     bound.
//
// Copies of a process are exempt until the answer to their first renewal after the copy: this
// is the time in which the package documents that they can create equal IDs. If the store loses
// that answer, they are exempt until the answer to another renewal.
//
// The simulation doesn't show that the model behaves as the stores do, or that a machine's
// monotonic clock is less than a tenth slower than the store's.

// simulationsVariable is the number of seeds, as in make soak, or a single one with the faults
// that a failed test has printed.
const simulationsVariable = "SORTKEY_SIMULATION"

func TestSimulation(t *testing.T) {
	count := uint64(1000)
	switch {
	case race.Enabled:
		count = 50
	case testing.Short():
		count = 150
	}
	setting := os.Getenv(simulationsVariable)
	if seed, ok := strings.CutPrefix(setting, "seed="); ok {
		p, err := parsePlan(seed)
		if err != nil {
			t.Fatal(err)
		}
		s := p.run(t)
		t.Logf("%s\n%d IDs, trace %x", p, s.created, s.trace.Sum64())
		if len(s.failures) > 0 {
			t.Error(strings.Join(s.failures, "\n"))
		}
		return
	}
	begin := uint64(1)
	if first, last, ok := strings.Cut(setting, "-"); ok {
		begin, count = must(strconv.ParseUint(first, 10, 64)), must(strconv.ParseUint(last, 10, 64))
	}
	began := time.Now()
	ids, copies, losses := 0, 0, 0
	for seed := begin; seed <= count; seed++ {
		p := newPlan(seed)
		s := p.run(t)
		ids, copies, losses = ids+s.created, copies+s.refused, losses+s.losses
		if len(s.failures) > 0 {
			failed := p.shrink(t)
			t.Fatalf("seed %d: %s\n%s\nreplay: %s='seed=%s' go test -count=1 -run '^TestSimulation$' -v ./nodelease",
				seed, strings.Join(failed.run(t).failures, "\n"), failed, simulationsVariable, failed.key())
		}
	}
	took := time.Since(began)
	t.Logf("%d seeds in %v, %.0f per second; %d IDs, %d refused copies, %d losses of writes", count-begin+1, took.Round(time.Millisecond), float64(count-begin+1)/took.Seconds(), ids, copies, losses)
	if copies == 0 || losses == 0 {
		t.Error("want refused copies and losses of writes, got none")
	}
}

// A seed always runs in the same way.
func TestSimulationReplays(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector changes the order of goroutines; make unit also runs this test without it")
	}
	seeds := uint64(30)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		p := newPlan(seed)
		traces := map[uint64]int{p.run(t).trace.Sum64(): 1}
		// On a busy machine, the runtime can interrupt a goroutine at any place, which changes
		// about one trace in 10,000.
		for runs := 1; runs < 2 || len(traces) > 1 && runs < 10; runs++ {
			traces[p.run(t).trace.Sum64()]++
		}
		if usual := slices.Max(slices.Collect(maps.Values(traces))); len(traces) > 1 && usual < 9 {
			t.Errorf("seed %d: want the same trace in each run, got %v", seed, traces)
		}
	}
}

// kinds are the kinds of stores that the model knows.
var kinds = []string{"postgres", "zookeeper", "file"}

// A plan determines a simulation.
type plan struct {
	seed      uint64
	kind      string
	format    string
	processes int
	pool      int // size of the pool
	ttl       time.Duration
	length    time.Duration // until the faults end
	loss      float64       // probability that a message is lost
	rate      float64       // speed of the store's clock
	events    []event
}

// An event is one fault.
type event struct {
	index int // in the plan of the seed
	at    time.Duration
	what  string
	who   int           // process
	d     time.Duration // duration, or size of a step
	flag  bool
}

func (e event) String() string {
	return fmt.Sprintf("%d: at %v, %s, process %d, %v, %v", e.index, e.at, e.what, e.who, e.d, e.flag)
}

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{
		seed: seed, kind: kinds[r.IntN(len(kinds))], format: formatNames[r.IntN(len(formatNames))], processes: 2 + min(r.IntN(11), r.IntN(11)),
		ttl: time.Duration(1+r.IntN(4)) * time.Second, rate: 0.95 + r.Float64()/10,
	}
	p.pool = p.processes + []int{0, 1, p.processes}[r.IntN(3)]
	if p.pool > 16 {
		p.pool = 16
	}
	p.length = time.Duration(6+r.IntN(6)) * p.ttl
	if r.IntN(2) == 0 {
		p.loss = r.Float64() * 0.3
	}
	small := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	for i := range 2 + r.IntN(12) {
		e := event{index: i, at: small(p.length), who: r.IntN(p.processes), flag: r.IntN(2) == 0}
		switch n := r.IntN(20); {
		case n < 3:
			e.what, e.d = "pause", small(3*p.ttl)
		case n < 5:
			e.what, e.d = "stall", small(3*p.ttl)
		case n < 7:
			e.what, e.d = "kill", small(2*p.ttl)
		case n < 8:
			e.what, e.d = "close", small(p.ttl)
		case n < 11:
			e.what = "copy"
		case n < 13:
			e.what, e.d = "cut", small(3*p.ttl)
		case n < 15:
			e.what, e.d = "step", small(2*p.ttl)-p.ttl
			if r.IntN(4) == 0 {
				e.d *= 1000
			}
		case n < 16:
			e.what, e.d = "stop clock", small(2*p.ttl)
		case n < 17:
			e.what, e.d = "drift", small(200*time.Millisecond)-100*time.Millisecond // per second
		case n < 18:
			e.what, e.d = "store down", small(3*p.ttl)
		case n < 19:
			e.what, e.d = "store step", small(2*p.ttl)-p.ttl
		default:
			e.what, e.d = "suspend", small(3*p.ttl)
		}
		p.events = append(p.events, e)
	}
	if p.kind == "postgres" && r.IntN(3) == 0 {
		p.rate = 1
		for i := range p.events {
			if e := &p.events[i]; slices.Contains([]string{"step", "stop clock", "drift", "store step"}, e.what) {
				e.what, e.d = "lose writes", small(3*p.ttl)
			}
		}
	}
	return p
}

// key identifies a plan whose seed has lost faults and processes.
func (p plan) key() string {
	var kept []string
	for _, e := range p.events {
		kept = append(kept, strconv.Itoa(e.index))
	}
	return fmt.Sprintf("%d/%d/%s", p.seed, p.processes, strings.Join(kept, ","))
}

func parsePlan(key string) (plan, error) {
	parts := strings.Split(key, "/")
	seed, err := strconv.ParseUint(parts[0], 10, 64)
	p := newPlan(seed)
	if err != nil || len(parts) == 1 {
		return p, err
	}
	if len(parts) != 3 {
		return p, fmt.Errorf("want seed/processes/faults, got %q", key)
	}
	p.processes, err = strconv.Atoi(parts[1])
	kept := strings.Split(parts[2], ",")
	p.events = slices.DeleteFunc(p.events, func(e event) bool { return !slices.Contains(kept, strconv.Itoa(e.index)) })
	return p, err
}

func (p plan) String() string {
	text := fmt.Sprintf("seed %d: %s, %s, %d processes, pool of %d, TTL %v, %.0f %% of the messages lost, store's clock at %.3f", p.seed, p.kind, p.format, p.processes, p.pool, p.ttl, p.loss*100, p.rate)
	for _, e := range p.events {
		text += "\n\t" + e.String()
	}
	return text
}

// shrink returns a smaller plan that fails too.
func (p plan) shrink(t *testing.T) plan {
	for smaller := true; smaller; {
		smaller = false
		for i := range p.events {
			q := p
			q.events = slices.Delete(slices.Clone(p.events), i, i+1)
			if len(q.run(t).failures) > 0 {
				p, smaller = q, true
				break
			}
		}
		if q := p; p.processes > 1 {
			q.processes--
			if len(q.run(t).failures) > 0 {
				p, smaller = q, true
			}
		}
	}
	return p
}

// run runs the simulation of a plan.
func (p plan) run(t *testing.T) *simulation {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for the order of goroutines
	cryptotest.SetGlobalRandom(t, p.seed)
	s := &simulation{plan: p, trace: fnv.New64a(), ids: map[any]mint{}, format: formats[p.format](p.pool), wg: new(sync.WaitGroup)}
	s.model = newModel(s)
	onFakeTime(t, func(*testing.T) { s.run() })
	return s
}

// A simulation is a running plan. Its mutex guards all fields, and the fields of its processes.
type simulation struct {
	plan
	format  format
	wg      *sync.WaitGroup
	begun   time.Time
	mu      sync.Mutex
	skipped time.Duration // in which all machines were suspended
	down    time.Time     // the store is down until then
	healed  bool
	ahead   time.Duration // the largest error of a clock that was ahead
	model   *model
	all     []*process
	current []*process // by the event's index
	ids     map[any]mint

	created, copies, refused int
	losses                   int // of writes of the store
	failures                 []string
	trace                    interface {
		Write([]byte) (int, error)
		Sum64() uint64
	}
}

// A mint is the creation of an ID.
type mint struct {
	by     *process
	copied bool // by a copy before the answer to its first renewal
	at     time.Duration
}

// now returns the true time. The caller holds s.mu.
func (s *simulation) now() time.Time { return time.Now().Add(s.skipped) }

func (s *simulation) elapsed() time.Duration { return time.Since(s.begun) }

// fail records a violation. The caller holds s.mu.
func (s *simulation) fail(f string, args ...any) {
	if len(s.failures) < 3 {
		s.failures = append(s.failures, fmt.Sprintf("%v: ", s.elapsed())+fmt.Sprintf(f, args...))
	}
}

func (s *simulation) run() {
	s.begun = time.Now()
	shared := &machine{s: s}
	for i := range s.processes {
		m := shared
		if s.kind != "file" {
			m = &machine{s: s}
		}
		s.mu.Lock()
		s.current = append(s.current, s.start(i, m, 0))
		s.mu.Unlock()
	}
	events := slices.SortedFunc(slices.Values(s.events), func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range events {
		if e.who < s.processes {
			time.Sleep(time.Until(s.begun.Add(e.at)))
			s.inject(e)
		}
	}
	time.Sleep(time.Until(s.begun.Add(s.length)))
	s.heal()
	bound := 8*s.ttl + 10*time.Second
	if s.kind == "file" {
		bound += abandonedFile
	}
	for end := time.Now().Add(bound); time.Now().Before(end) && s.idle() != ""; {
		time.Sleep(s.ttl / 10)
	}
	if idle := s.idle(); idle != "" {
		s.mu.Lock()
		s.fail("%s created no ID within %v after the faults", idle, bound)
		s.mu.Unlock()
	}
	s.mu.Lock()
	for _, p := range s.all {
		p.end(true)
	}
	s.mu.Unlock()
	s.wg.Wait()
	time.Sleep(time.Minute) // until all messages have ended
}

// idle returns a process that has created no ID since the faults ended, or "". If more processes
// run than the pool has numbers, the others wait. A copy can keep the session alive in which a
// dead process holds numbers.
func (s *simulation) idle() (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := 0
	for _, p := range s.all {
		switch {
		case p.dead:
		case p.active:
			active++
		default:
			name = p.name
		}
	}
	if active >= s.pool-max(s.copies, s.model.heldByDead()) {
		return ""
	}
	return name
}

// start starts a process after a delay. The caller holds s.mu.
func (s *simulation) start(i int, m *machine, delay time.Duration) *process {
	p := s.process(i, fmt.Sprintf("process %d.%d", i, len(s.all)), m, &session{})
	p.delay = delay + time.Duration(p.r.Int64N(int64(s.ttl/4)))
	s.launch(p)
	return p
}

func (s *simulation) process(i int, name string, m *machine, own *session) *process {
	p := &process{s: s, index: i, serial: time.Duration(len(s.all)), name: name, m: m, session: own, r: rand.New(rand.NewPCG(s.seed, 1<<32|uint64(i)<<16|uint64(len(s.all)))), grants: map[int]*grant{}, messages: map[[2]int]*rand.Rand{}, turn: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (s *simulation) launch(p *process) {
	p.session.members = append(p.session.members, p)
	s.all = append(s.all, p)
	s.wg.Add(1)
	go p.run()
}

// inject makes a fault happen.
func (s *simulation) inject(e event) {
	s.mu.Lock()
	p := s.current[e.who]
	now := time.Now()
	s.model.observe(false)
	switch e.what {
	case "pause", "stall":
		if !p.frozen.After(now) {
			p.frozen = now.Add(e.d)
			if e.what == "stall" {
				p.stale, p.staleAt = p.m.now(), now
			}
		}
	case "kill", "close":
		p.end(e.what == "close")
		s.current[e.who] = s.start(e.who, p.m, e.d)
	case "copy":
		s.copy(p, e.flag)
	case "cut":
		p.cut = now.Add(e.d)
	case "step":
		p.m.step(e.d)
	case "stop clock":
		p.m.stopped = p.m.now()
		p.m.resumes = now.Add(e.d)
	case "drift":
		p.m.step(0)
		p.m.drift = float64(e.d) / float64(time.Second)
	case "store down":
		s.down = now.Add(e.d)
		s.model.restarts(s.down)
	case "store step":
		s.model.offset += e.d
	case "suspend":
		s.suspend(e.d, e.flag)
	case "lose writes":
		s.model.loseWrites(e.d)
		s.losses++
	}
	s.mu.Unlock()
}

// suspend suspends all machines. Their monotonic clocks stand still, and their wall clocks too
// if behind.
func (s *simulation) suspend(d time.Duration, behind bool) {
	s.model.observe(false)
	s.skipped += d
	if behind {
		for _, m := range s.machines() {
			m.step(-d)
		}
	}
	s.model.observe(true)
}

func (s *simulation) machines() []*machine {
	found := map[*machine]bool{}
	for _, p := range s.all {
		found[p.m] = true
	}
	return slices.Collect(maps.Keys(found))
}

// copy copies a running process, with or without its machine. The copy has its own connection,
// which continues the session.
func (s *simulation) copy(p *process, machineToo bool) {
	if p.source == nil || p.dead || len(s.all) > 24 {
		return
	}
	m := p.m
	if machineToo && s.kind != "file" {
		m = p.m.copy()
	}
	q := s.process(p.index, fmt.Sprintf("%s copy %d", p.name, len(s.all)), m, p.session)
	original, newest := p.source, p.newest
	s.mu.Unlock() // the new generator reads its clock
	src, err := original.copy(q, newest)
	s.mu.Lock()
	if err != nil {
		q.cancel()
		return // its claim had ended
	}
	q.source, q.frozen = src, time.Now() // the trust window may have ended while p was paused
	s.copies++
	for n, g := range p.grants {
		g.copied, g.copiedAt, g.twin = true, time.Now(), true
		twin := *g
		q.grants[n] = &twin
	}
	s.launch(q)
}

// heal ends all faults, except that a paused process continues when it would have.
func (s *simulation) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.loss = time.Time{}, 0
	for _, p := range s.all {
		p.cut = time.Time{}
	}
	for _, m := range s.machines() {
		m.correct()
	}
	// Wait until the clocks have passed the high-water marks that clocks ahead have left.
	s.suspend(s.ahead, false)
	s.healed = true
	s.model.offset = 0
}

// create checks an ID that a process has created in a call that began at p.began. The caller
// holds s.mu.
func (s *simulation) create(p *process, x minted) {
	g, began, awake := p.grants[x.number], p.began, p.frozen.Add(time.Microsecond)
	s.created++
	_, _ = fmt.Fprintf(s.trace, "%s %v %v\n", p.name, x.id, s.elapsed())
	if g == nil {
		s.fail("%s created %v with number %d, which it doesn't hold", p.name, x.id, x.number)
		return
	}
	p.active = p.active || s.healed
	copied := g.copied
	if old, ok := s.ids[x.id]; ok && !copied && !old.copied {
		s.fail("%s created %v, which %s created at %v", p.name, x.id, old.by.name, old.at)
	}
	s.ids[x.id] = mint{p, copied, s.elapsed()}
	switch last := g.last[x.track]; {
	case last >= x.key:
		s.fail("%s created %v with number %d after a later ID", p.name, x.id, x.number)
	case x.at <= g.after || x.at > g.until:
		s.fail("%s created %v for %d, outside the range of number %d from %d to %d", p.name, x.id, x.at, x.number, g.after, g.until)
	case began.After(g.trusted) && began.After(awake):
		s.fail("%s created %v %v after its trust window", p.name, x.id, began.Sub(g.trusted))
	case !g.over.IsZero() && began.After(g.over) && began.After(awake):
		s.fail("%s created %v %v after the store refused number %d", p.name, x.id, began.Sub(g.over), x.number)
	case !p.closed.IsZero() && !began.Before(p.closed):
		s.fail("%s created %v after Close", p.name, x.id)
	}
	g.last[x.track] = x.key
	if !copied {
		s.model.use(p, x)
	}
}

// A machine has a wall clock.
type machine struct {
	s       *simulation
	off     time.Duration
	drift   float64
	since   time.Time // of the drift
	stopped time.Time // the reading while the clock stands still
	resumes time.Time
}

// now reads the wall clock. The caller holds s.mu.
func (m *machine) now() time.Time {
	if time.Now().Before(m.resumes) {
		return m.stopped
	}
	now := m.s.now().Add(m.off)
	if m.drift != 0 {
		now = now.Add(time.Duration(float64(time.Since(m.since)) * m.drift))
	}
	m.s.ahead = max(m.s.ahead, now.Sub(m.s.now()))
	return now
}

// step sets the clock by d, and ends its drift.
func (m *machine) step(d time.Duration) {
	m.off, m.drift, m.since = m.now().Sub(m.s.now())+d, 0, time.Now()
	m.resumes = time.Time{}
}

// correct sets the clock to the true time.
func (m *machine) correct() { *m = machine{s: m.s} }

func (m *machine) copy() *machine { twin := *m; return &twin }

// A grant is a claim as its process knows it.
type grant struct {
	holder       string
	term         int64
	after, until int64
	trusted      time.Time
	over         time.Time // the store has refused a renewal
	copied       bool      // and no renewal was answered that was sent after copiedAt
	copiedAt     time.Time
	twin         bool      // a copy of the process had the claim, too
	last         [2]uint64 // the greatest key of each track
}

// A process is one run of a program.
type process struct {
	s        *simulation
	index    int
	serial   time.Duration // differs between processes, so that they don't act at the same moment
	name     string
	m        *machine
	r        *rand.Rand
	messages map[[2]int]*rand.Rand // by role and number
	ctx      context.Context
	cancel   context.CancelFunc
	session  *session
	turn     chan struct{} // held by a call with late
	source   source
	delay    time.Duration // before the start
	frozen   time.Time     // paused until then
	stale    time.Time     // a reading of the clock from staleAt
	staleAt  time.Time
	wakes    [roles]time.Duration
	began    time.Time // when the present call of the generator began
	cut      time.Time // its messages are lost until then
	grants   map[int]*grant
	dead     bool
	closing  bool
	closed   time.Time
	active   bool // has created an ID since the faults ended
	newest   int64
}

// The roles of the goroutines of a process.
const (
	reading = iota // of the clock
	creating
	claiming
	renewing
	releasing
	roles
)

// freeze waits while the process is paused.
func (p *process) freeze(role int) {
	for {
		p.s.mu.Lock()
		left := time.Until(p.frozen)
		// The goroutines of a process continue one after another, for the same order in each run.
		p.wakes[role] = (p.wakes[role] + 1) % 190
		late := time.Duration(role)*190 + p.wakes[role]
		p.s.mu.Unlock()
		if left <= 0 {
			return
		}
		time.Sleep(left + late)
	}
}

// clock is the wall clock as the Keeper reads it.
func (p *process) clock() time.Time {
	p.freeze(reading)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.m.now()
}

// reading is the wall clock as the generator reads it. After a stall, it returns the time at
// which the stall began, as if the process had been paused between reading the clock and
// using the time. It doesn't wait, because the generator holds a mutex.
func (p *process) reading() time.Time {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if now := p.stale; !now.IsZero() {
		p.stale = time.Time{}
		p.began = p.staleAt
		return now
	}
	return p.m.now()
}

func (p *process) options() nodelease.Options {
	return nodelease.Options{TTL: p.s.ttl, Clock: p.clock, Holder: p.name}
}

// run creates IDs until the process ends.
func (p *process) run() {
	s := p.s
	defer s.wg.Done()
	time.Sleep(p.delay)
	for p.ctx.Err() == nil {
		s.mu.Lock()
		src := p.source
		s.mu.Unlock()
		if src == nil {
			var err error
			if src, err = s.format.start(p); err != nil {
				time.Sleep(s.ttl / 10)
				continue
			}
			s.mu.Lock()
			p.source = src
			s.mu.Unlock()
		}
		if p.freeze(creating); p.ctx.Err() != nil {
			break
		}
		s.mu.Lock()
		p.began = time.Now()
		s.mu.Unlock()
		made, _ := src.create(p.r)
		s.mu.Lock()
		for _, x := range made {
			s.create(p, x)
			p.newest = max(p.newest, x.at)
		}
		// Try just after the end of the trust window, too.
		wait := time.Duration(p.r.ExpFloat64() * float64(s.ttl/8))
		for _, g := range p.grants {
			if left := time.Until(g.trusted) + 500*time.Microsecond + p.serial; left > 0 && left < wait {
				wait = left
			}
		}
		s.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-p.ctx.Done():
		}
	}
	s.mu.Lock()
	src := p.source
	s.mu.Unlock()
	if src == nil {
		return
	}
	_ = src.close()
	s.mu.Lock()
	p.closed, p.began = time.Now(), time.Now()
	s.mu.Unlock()
	made, _ := src.create(p.r)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range made {
		s.create(p, x)
	}
}

// end ends the process, without a message to the store unless gracefully. The caller holds
// s.mu.
func (p *process) end(gracefully bool) {
	if !p.dead {
		p.s.model.observe(false)
		p.dead, p.closing = true, gracefully
		p.cancel()
	}
}

var errKilled = errors.New("the process is dead")

// Claim, Renew and Release send a message to the store.
func (p *process) Claim(ctx context.Context, pool nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	sent := time.Now()
	var late func(nodelease.Claim)
	if p.s.kind != "postgres" { // as in packages zklease and filelease
		late = func(c nodelease.Claim) { _ = p.s.model.release(pool, c, c.After) }
	}
	c, err := p.send(ctx, claiming, 0, func() (nodelease.Claim, error) { return p.s.model.claim(p.session, pool, r) }, late)
	if err == nil {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		g := &grant{holder: c.Holder, term: c.Term, after: c.After, until: min(r.Until, c.Until), trusted: sent.Add(trusted(c.TTL, r.TTL))}
		// Ignore the late answer to an earlier attempt. A store that has lost writes can repeat a term.
		if old := p.grants[c.Number]; old == nil || old.after < c.After ||
			old.after == c.After && (old.term < c.Term || old.term == c.Term && old.trusted.Before(g.trusted)) {
			p.grants[c.Number] = g
		}
	}
	return c, err
}

// trusted returns how long a claim is trusted.
func trusted(granted, requested time.Duration) time.Duration {
	if granted == 0 || granted > requested {
		granted = requested
	}
	return granted * 9 / 10
}

func (p *process) Renew(ctx context.Context, pool nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	sent := time.Now()
	got, err := p.send(ctx, renewing, c.Number, func() (nodelease.Claim, error) { return p.s.model.renew(p.session, pool, c, r) }, nil)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	g := p.grants[c.Number]
	if g == nil || g.term != c.Term || g.holder != c.Holder || err != nil && !errors.Is(err, nodelease.ErrSuperseded) {
		return got, err
	}
	if err != nil {
		if ctx.Err() != nil {
			return got, err // a late answer, perhaps after that to another attempt
		}
		if g.over = time.Now(); g.copied {
			p.s.refused++
		}
	} else {
		g.until = max(g.until, min(r.Until, got.Until))
		if end := sent.Add(trusted(got.TTL, r.TTL)); end.After(g.trusted) { // not the late answer to an earlier attempt
			g.trusted = end
		}
	}
	g.copied = g.copied && !sent.After(g.copiedAt)
	return got, err
}

func (p *process) Release(ctx context.Context, pool nodelease.Pool, c nodelease.Claim, mark int64) error {
	_, err := p.send(ctx, releasing, c.Number, func() (nodelease.Claim, error) { return nodelease.Claim{}, p.s.model.release(pool, c, mark) }, nil)
	return err
}

// send makes a call of the store with a message and an answer, which can be slow or lost. If
// the context ends, the call may take effect later. A call with late waits until an earlier
// one has ended, and late gets the claim if the caller doesn't. Each kind of message has its own
// random numbers, because a process can send several at one moment, in any order.
func (p *process) send(ctx context.Context, role, number int, do func() (nodelease.Claim, error), late func(nodelease.Claim)) (nodelease.Claim, error) {
	type answer struct {
		c   nodelease.Claim
		err error
	}
	done := func() {}
	if late != nil {
		if ctx.Err() != nil { // select would choose at random
			return nodelease.Claim{}, context.DeadlineExceeded
		}
		select {
		case p.turn <- struct{}{}:
			done = func() { <-p.turn }
		case <-ctx.Done():
			return nodelease.Claim{}, context.DeadlineExceeded
		}
	}
	s := p.s
	p.freeze(role)
	s.mu.Lock()
	if p.dead && !p.closing {
		s.mu.Unlock()
		done()
		return nodelease.Claim{}, errKilled
	}
	kind := [2]int{role, number}
	r := p.messages[kind]
	if r == nil {
		r = rand.New(rand.NewPCG(s.seed, 2<<32|uint64(p.serial)<<16|uint64(role)<<8|uint64(number)))
		p.messages[kind] = r
	}
	out, back := s.travel(r), s.travel(r)
	deaf := r.IntN(20) == 0 && s.kind == "postgres" // ignores the context
	s.mu.Unlock()
	answers := make(chan answer, 1)
	gone := false
	go func() {
		defer done()
		if time.Sleep(out); out < 0 || !p.connected() {
			return
		}
		c, err := do()
		time.Sleep(back)
		arrived := back >= 0 && p.connected()
		s.mu.Lock()
		if arrived = arrived && !gone; arrived {
			answers <- answer{c, err}
		}
		alive := !p.dead || p.closing
		s.mu.Unlock()
		if !arrived && alive && err == nil && late != nil {
			late(c)
		}
	}()
	ended := ctx.Done()
	if deaf {
		longer, cancel := context.WithTimeout(context.Background(), 2*s.ttl-time.Millisecond) // not at the moment when Options.Wait is over
		defer cancel()
		ended = longer.Done()
	}
	select {
	case <-ended:
		s.mu.Lock()
		gone = true
		s.mu.Unlock()
	case a := <-answers:
		p.freeze(role)
		return a.c, a.err
	}
	p.freeze(role)
	select {
	case a := <-answers: // at the last moment
		return a.c, a.err
	default:
		return nodelease.Claim{}, context.DeadlineExceeded
	}
}

// travel returns the time that a message takes, or a negative time if it is lost. The caller
// holds s.mu.
func (s *simulation) travel(r *rand.Rand) time.Duration {
	d := time.Duration(r.ExpFloat64() * float64(5*time.Millisecond))
	switch x := r.Float64(); {
	case x < s.loss/2:
		return -1
	case x < s.loss:
		return time.Duration(r.Int64N(int64(s.ttl)))
	}
	return d
}

// connected reports whether a message arrives now.
func (p *process) connected() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return !p.cut.After(time.Now()) && !p.s.down.After(time.Now())
}

// reconnected returns the end of the last time in which the process could not send messages.
// The caller holds s.mu.
func (p *process) reconnected() time.Time {
	last := p.frozen
	for _, t := range []time.Time{p.cut, p.s.down} {
		if t.After(last) {
			last = t
		}
	}
	return last
}
