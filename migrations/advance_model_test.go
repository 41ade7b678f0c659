package migrations

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// This file explores a model of the server's generators: sessions that call a next_ function, the
// sequence, the advisory lock, the write-ahead log and the clock. A session does the atomic steps of
// T_of and advance. The environment moves the clock, cancels and terminates sessions, takes values
// as any role may, makes checkpoints, crashes the server and sets the sequence back. The explorer
// visits all interleavings, and checks:
//
//   - No ID exists twice. A crash ends the existence of an ID that isn't on disk. After the sequence
//     was set back, the IDs that doc.go names are exempt.
//   - The window of an ID is at most windowsAhead windows after the largest reading of the clock, or
//     one more once the room of a window was used up.
//   - A session holds the lock only within the expression that takes it, unless that fails.
//   - Each call ends, no matter where other sessions stop.
//
// The ID of a value is the value without its spare bits, as in T_bits(value). TestAdvanceTraces in
// integration_test/migrations runs the SQL step by step along random traces of the model, and
// compares both.
//
// The model relies on these facts about Postgres:
//
//   - nextval and setval change the sequence under a lock of its page. Rollback doesn't undo them.
//   - nextval logs a value that is 32 later (SEQ_LOG_VALS; here modelLogged), and then logs nothing
//     for 32 calls, or until a checkpoint. setval always logs. Recovery sets the sequence to the last
//     logged value on disk. So a crash skips up to 32 values.
//   - A commit with changes flushes the log up to its own record, including all earlier changes of
//     the sequence by any session. So the ID of a committed row is on disk. An ID that a client has
//     read but no committed row contains can occur again after a crash.
//   - The advisory lock belongs to the session. Cancellation and errors keep it; the end of the session
//     and a crash release it. PL/pgSQL handles interrupts between statements, and the expression that
//     takes the lock waits for no other lock. So cancellation ends a call before or after that
//     expression, and never within.
//
// The model makes these assumptions:
//
//   - Between comparing the sequence and setting it, which takes about a microsecond, other sessions
//     don't use up the room of the window. A window has at least 2^23 values in the default layouts,
//     and 2^19 in any. Otherwise setval repeats IDs, if the clock still accepts the next window: see
//     the bug "room used up before setval".
//   - A waiting session tries the lock and releases it in one step. If this makes the attempt of
//     another session fail, that is a fault. The number of faults is limited, so the model doesn't
//     show that two sessions could delay each other in this way forever.
//
// It omits the end of the format, missing privileges, read-only transactions, and standbys.
const (
	modelRoom      = 16 // values per window
	modelCapacity  = 2  // IDs per window
	modelLastClock = 2  // in windows
	modelLogged    = 2  // values per record in the log
	modelWait      = 2  // windows that a call waits for the clock
	modelBusy      = 1  // times that a call waits for the lock
)

// A place is the atomic step that a session does next.
type place uint8

const (
	atCall      place = iota // nextval in the caller's expression
	atJudge                  // T_of: read the clock and decide whether the value is fresh
	atNext                   // advance: nextval
	atClock                  // read the clock and decide
	atTry                    // pg_try_advisory_lock
	atCompare                // pg_sequence_last_value
	atSet                    // setval
	atUnlock                 // pg_advisory_unlock after another session has changed the window
	atUnlockSet              // pg_advisory_unlock after setval
	atProbe                  // wait for the lock: pg_try_advisory_lock and pg_advisory_unlock
)

var placeNames = [...]string{"call", "judge", "next", "clock", "try", "compare", "set", "unlock", "unlock", "probe"}

// locked reports whether the place is within the expression that holds the lock.
func (p place) locked() bool { return p >= atCompare && p <= atUnlockSet }

type modelSession struct {
	place         place
	calls         uint8 // that haven't ended
	value, target uint8
	waited, busy  uint8
	held          uint8 // times that the session holds the lock
}

// end ends the current call, if there is one.
func (s *modelSession) end() {
	if s.place != atCall {
		*s = modelSession{calls: s.calls - 1, held: s.held}
	}
}

type modelState struct {
	issued, flushed uint32 // IDs that exist, and IDs that survive a crash, one bit each
	last            uint8  // value of the sequence
	logged          uint8  // calls of nextval that write no record
	newest, durable uint8  // value after replay of all records, and of the records on disk
	now, read       uint8  // the clock, and its largest reading
	faults          uint8  // that can still occur
	carried         uint8  // 1 once the room of a window was used up
	restored        uint8  // 1 + the clock when the sequence was set back
	choosing        uint8  // calls that were between reading the clock and setval then
	sessions        [3]modelSession
}

// A step is a transition. It was made by a session, or by the environment if who is negative.
type modelStep struct {
	who     int
	what    string
	state   modelState
	result  string // at the end of a call: >value, or !SQLSTATE
	problem string // violated invariant
}

func (r modelStep) String() string {
	if r.who < 0 {
		return r.what
	}
	return fmt.Sprintf("%d:%s", r.who, r.what)
}

// A model has a number of sessions with a number of calls each, and faults of some kinds. Its bug
// is a deviation from the SQL.
type model struct {
	sessions, calls, faults int
	kinds, bug              string
}

func (m model) has(kind string) bool { return strings.Contains(m.kinds, kind) }

func (m model) start() modelState {
	// nextval returns the first full value, as after START WITH.
	st := modelState{last: modelCapacity - 1, newest: modelCapacity - 1, durable: modelCapacity - 1, now: 1, faults: uint8(m.faults)}
	for i := range m.sessions {
		st.sessions[i].calls = uint8(m.calls)
	}
	return st
}

// nextval returns false if an assumption excludes the step.
func (m model) nextval(st *modelState) (value uint8, ok bool) {
	value = st.last + 1
	if value%modelRoom == 0 {
		switch {
		case m.bug == "nextval starts its window again":
			value -= modelRoom
		case m.bug != "room used up before setval" &&
			slices.ContainsFunc(st.sessions[:], func(s modelSession) bool { return s.place == atSet }):
			return 0, false
		}
		st.carried = 1
	}
	if st.logged == 0 {
		st.newest, st.logged = value+modelLogged, modelLogged
	} else {
		st.logged--
	}
	st.last = value
	return value, true
}

func (st *modelState) set(value uint8) { st.last, st.newest, st.logged = value, value, 0 }

// issue adds the ID of a value, and returns what is wrong with it.
func (st *modelState) issue(value uint8) string {
	window, sequence := value/modelRoom, value%modelCapacity
	id := uint32(1) << (window*modelCapacity + sequence)
	again := st.issued&id != 0
	st.issued |= id
	// After the sequence was set back, IDs of the current window and of the next ones can repeat.
	if again && (st.restored == 0 || window < st.restored-1 || window > st.restored-1+windowsAhead) {
		if st.choosing == 0 {
			return fmt.Sprintf("ID %d of window %d twice", sequence, window)
		}
		st.choosing--
	}
	if window > st.read+windowsAhead+st.carried {
		return fmt.Sprintf("ID of window %d after reading %d", window, st.read)
	}
	return ""
}

// step does the next step of a session. It returns false if an assumption excludes it.
func (m model) step(st modelState, i int) (r modelStep, ok bool) {
	s := &st.sessions[i]
	r, ok = modelStep{who: i, what: placeNames[s.place]}, true
	free := true
	for j, other := range st.sessions {
		free = free && (j == i || other.held == 0 || m.bug == "no lock")
	}
	returns := func(value uint8) {
		r.result, r.problem = fmt.Sprintf(">%d", value), st.issue(value)
		s.end()
	}
	fails := func(code string) {
		r.result = "!" + code
		s.end()
	}
	window, counter := s.value/modelRoom, s.value%modelRoom
	switch s.place {
	case atCall:
		s.value, ok = m.nextval(&st)
		s.place = atJudge
	case atNext:
		s.value, ok = m.nextval(&st)
		s.place = atClock
	case atJudge, atClock:
		st.read = max(st.read, st.now)
		full, fresh, ahead := counter >= modelCapacity, st.now+windowsAhead+1, st.now+windowsAhead
		switch m.bug {
		case "a full window is fresh":
			full = false
		case "a window is full one value later":
			full = counter > modelCapacity
		case "one more window is fresh":
			fresh++
		case "target one window further ahead":
			ahead++
		}
		if !full && (window >= st.now || m.bug == "an old window is fresh") && window <= fresh {
			returns(s.value)
			break
		}
		if s.place == atJudge {
			s.place = atNext
			break
		}
		target := window
		if full || window < st.now {
			target = max(window+1, st.now)
		}
		if m.bug == "target in the same window" {
			target = max(window, st.now)
		}
		if (target > window || m.bug == "target in the same window") && target <= ahead {
			s.target, s.place = target*modelRoom, atTry
			break
		}
		s.waited += target - ahead
		switch {
		case s.waited <= modelWait:
			s.place = atNext
		case window > st.now+windowsAhead:
			fails("55000")
		default:
			fails("53400")
		}
	case atTry:
		if s.place = atProbe; free {
			s.held++
			s.place = atCompare
		}
	case atCompare:
		s.place = atUnlock
		if st.last/modelRoom == window || m.bug == "no comparison" {
			s.place = atSet
		}
		if m.bug == "unlock before setval" {
			s.held--
		}
	case atSet:
		st.set(s.target)
		if m.bug == "setval with is_called false" {
			st.set(s.target - 1)
		}
		s.place = atUnlockSet
	case atUnlock, atUnlockSet:
		if m.bug != "unlock before setval" {
			s.held--
		}
		switch {
		case s.place == atUnlock:
			s.place = atNext
		case m.bug == "return the last value":
			returns(st.last)
		default:
			returns(s.target)
		}
	case atProbe:
		switch {
		case free:
			s.place = atNext
		case m.bug == "wait without limit":
		case s.busy == modelBusy:
			fails("55P03")
		default:
			s.busy++
		}
	}
	r.state = st
	return r, ok
}

// environment yields all steps that no session makes.
func (m model) environment(st modelState, yield func(modelStep)) {
	does := func(who int, what string, f func(*modelState)) {
		n := st
		f(&n)
		yield(modelStep{who: who, what: what, state: n})
	}
	fault := func(kind string, who int, what string, f func(*modelState)) {
		if m.has(kind) && st.faults > 0 {
			does(who, what, func(n *modelState) { n.faults--; f(n) })
		}
	}
	if st.now < modelLastClock {
		does(-1, "now", func(n *modelState) { n.now++ })
	}
	for now := range st.now {
		fault("back", -1, "now", func(n *modelState) { n.now = now })
	}
	fault("take", -1, "take", func(n *modelState) { // all values of the window, by another role
		for n.last%modelRoom != modelRoom-1 {
			m.nextval(n)
		}
	})
	if m.has("crash") && st.faults > 0 && (st.durable != st.newest || st.flushed != st.issued) {
		does(-1, "flush", func(n *modelState) { n.durable, n.flushed = n.newest, n.issued })
	}
	fault("crash", -1, "checkpoint", func(n *modelState) {
		n.newest, n.durable, n.logged, n.flushed = n.last, n.last, 0, n.issued
	})
	fault("crash", -1, "crash", func(n *modelState) {
		if n.durable/modelRoom > n.last/modelRoom {
			n.carried = 1
		}
		if n.set(n.durable); m.bug == "unlogged sequence" {
			n.set(modelCapacity - 1)
		}
		n.issued = n.flushed
		for i := range n.sessions {
			n.sessions[i].held = 0
			n.sessions[i].end()
		}
	})
	choosing := uint8(0)
	for i, s := range st.sessions[:m.sessions] {
		if s.place >= atTry && s.place <= atSet {
			choosing++
		}
		end := func(n *modelState) { n.sessions[i].end() }
		switch {
		case s.place.locked() && m.bug == "interrupts while it holds the lock":
			fault("cancel", i, "cancel", end)
		case s.place.locked():
			fault("error", i, "cancel", end)
		case s.place != atCall:
			fault("cancel", i, "cancel", end)
		}
		if s.held > 0 && !s.place.locked() {
			fault("error", i, "terminate", func(n *modelState) { end(n); n.sessions[i].held = 0 })
		}
		if s.place == atTry && s.held == 0 {
			fault("collide", i, "collide", func(n *modelState) { n.sessions[i].place = atNext })
		}
	}
	for value := uint8(1); value < st.last && st.restored == 0; value++ {
		fault("restore", -1, "restore", func(n *modelState) { n.set(value); n.restored, n.choosing = 1+n.now, choosing })
	}
}

// steps yields all steps of the sessions.
func (m model) steps(st modelState, yield func(modelStep)) {
	for i := range m.sessions {
		if st.sessions[i].calls > 0 {
			if r, ok := m.step(st, i); ok {
				yield(r)
			}
		}
	}
}

// check returns what is wrong with a state.
func (m model) check(st modelState) string {
	for _, s := range st.sessions {
		if s.held > 0 && !s.place.locked() && !m.has("error") {
			return "lock left behind"
		}
	}
	return ""
}

// canonical returns the state that stands for all with the same behavior: sessions are equal, and
// without further faults, the log no longer matters.
func (m model) canonical(st modelState) modelState {
	if st.faults == 0 || !m.has("crash") {
		st.flushed, st.logged, st.newest, st.durable = 0, 0, 0, 0
	}
	slices.SortFunc(st.sessions[:m.sessions], func(a, b modelSession) int { return cmp.Compare(a.key(), b.key()) })
	return st
}

func (s modelSession) key() (k uint64) {
	for _, b := range [...]uint8{uint8(s.place), s.calls, s.value, s.target, s.waited, s.busy, s.held} {
		k = k<<8 | uint64(b)
	}
	return k
}

// explore visits all states, in the order of the number of steps. It returns the number of states, the
// largest number of steps of sessions alone, and the first problem with the steps that lead to it.
// Since sessions are equal, a session can have another number in each step.
func (m model) explore() (count, longest int, problem string) {
	index := map[modelState]int32{m.start(): 0}
	first, parents := []modelStep{{state: m.start()}}, []int32{-1} // the steps that reach the states first, and from which state
	var edges, begin []int32                                       // the steps of sessions, and the index of the first step of each state
	found := func(i int32, what string) {
		if problem == "" {
			for problem = what; parents[i] >= 0; i = parents[i] {
				problem = first[i].String() + ", " + problem
			}
		}
	}
	for i := int32(0); int(i) < len(first) && problem == ""; i++ {
		st := first[i].state
		add := func(r modelStep) int32 {
			r.state = m.canonical(r.state)
			j, ok := index[r.state]
			if !ok {
				j = int32(len(first))
				index[r.state], first, parents = j, append(first, r), append(parents, i)
			}
			if what := cmp.Or(r.problem, m.check(r.state)); what != "" {
				found(i, r.String()+": "+what)
			}
			return j
		}
		begin = append(begin, int32(len(edges)))
		m.steps(st, func(r modelStep) { edges = append(edges, add(r)) })
		m.environment(st, func(r modelStep) { add(r) })
		if len(edges) == int(begin[i]) && slices.ContainsFunc(st.sessions[:], func(s modelSession) bool { return s.calls > 0 }) {
			found(i, "no session can continue")
		}
	}
	if problem != "" {
		return len(first), 0, problem
	}
	begin = append(begin, int32(len(edges)))
	depths := make([]int, len(first)) // 1 + the number of steps, or -1 during the visit
	var depth func(i int32) int
	depth = func(i int32) int {
		switch depths[i] {
		case 0:
			depths[i] = -1
			deepest := 0
			for _, j := range edges[begin[i]:begin[i+1]] {
				deepest = max(deepest, depth(j))
			}
			depths[i] = 1 + deepest
		case -1:
			found(i, "a call doesn't end")
		}
		return depths[i]
	}
	for i := range first {
		longest = max(longest, depth(int32(i))-1)
	}
	return len(first), longest, problem
}

var (
	alone    = model{sessions: 1, calls: 5, faults: 4, kinds: "back take"}
	crowd    = model{sessions: 3, calls: 1}
	pair     = model{sessions: 2, calls: 2, faults: 1, kinds: "back take cancel crash collide"}
	faulty   = model{sessions: 2, calls: 1, faults: 3, kinds: "back take cancel crash"}
	broken   = model{sessions: 2, calls: 2, faults: 2, kinds: "error"}
	restored = model{sessions: 2, calls: 1, faults: 2, kinds: "restore cancel"}
)

func TestAdvanceModel(t *testing.T) {
	total := 0
	for _, m := range []model{alone, crowd, pair, faulty, broken, restored} {
		states, longest, problem := m.explore()
		if problem != "" {
			t.Errorf("%+v: %s", m, problem)
		}
		t.Logf("%+v: %d states; all calls end after at most %d steps", m, states, longest)
		total += states
	}
	t.Logf("%d states", total)
}

// The explorer finds bugs. A comparison of the last value with the target instead of the windows
// isn't a bug: setval then still sets the sequence to a later window.
func TestAdvanceModelBugs(t *testing.T) {
	const twice, ahead = " twice", " after reading "
	for _, b := range []struct {
		bug  string
		in   model
		want string
	}{
		{"no lock", crowd, twice},
		{"no comparison", crowd, twice}, // the target depends on a clock reading from before the lock
		{"unlock before setval", crowd, twice},
		{"target in the same window", alone, twice},
		{"target one window further ahead", alone, ahead},
		{"setval with is_called false", crowd, twice},
		{"return the last value", crowd, twice},
		{"nextval starts its window again", alone, twice},
		{"room used up before setval", faulty, twice},
		{"a full window is fresh", alone, twice},
		{"a window is full one value later", alone, twice},
		{"an old window is fresh", restored, twice}, // without a restore, IDs are only old
		{"one more window is fresh", alone, ahead},
		{"unlogged sequence", faulty, twice},
		{"interrupts while it holds the lock", faulty, "lock left behind"},
		{"wait without limit", crowd, "a call doesn't end"},
	} {
		b.in.bug = b.bug
		states, _, problem := b.in.explore()
		if !strings.Contains(problem, b.want) {
			t.Errorf("%s: expected a problem with %q, got %q in %d states", b.bug, b.want, problem, states)
		}
		t.Logf("%s: after %d states: %s", b.bug, states, problem)
	}
}

// testdata/advance.txt has random traces of the model. Each step has the value of the sequence
// afterwards, and the result of a call that it ends.
func TestAdvanceTraces(t *testing.T) {
	const file = "testdata/advance.txt"
	random := rand.New(rand.NewPCG(1, 1))
	var want strings.Builder
	for i := range 200 {
		m := []model{
			{sessions: 1, calls: 5, faults: 8, kinds: "back take"},
			{sessions: 2, calls: 2, faults: 3, kinds: "back take cancel error"},
			{sessions: 3, calls: 1, faults: 3, kinds: "back take cancel error"},
		}[i%3]
		for st := m.start(); ; {
			var own, other []modelStep
			m.steps(st, func(r modelStep) { own = append(own, r) })
			m.environment(st, func(r modelStep) { other = append(other, r) })
			if len(own) == 0 {
				break
			}
			if len(other) > 0 && random.IntN(4) == 0 {
				own = other
			}
			r := own[random.IntN(len(own))]
			st = r.state
			value := st.last
			if r.what == "now" {
				value = st.now
			}
			fmt.Fprintf(&want, "%v=%d%s ", r, value, r.result)
		}
		want.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("%s differs from the traces of the model; regenerate it with go test ./migrations -run %s -update", file, t.Name())
	}
}
