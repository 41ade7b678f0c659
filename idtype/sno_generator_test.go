package idtype

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// snoStart is the start time of the scripted clocks, and the start of unit 0 in these
// tests.
var snoStart = utc("2026-11-21T10:11:12.344Z")

func snoTime(unit int) time.Time { return snoStart.Add(time.Duration(unit) * 4 * time.Millisecond) }

// toUnit sets the wall clock to the start of a unit.
func (c *scripted) toUnit(unit int) { c.step(snoTime(unit).Sub(c.wall)) }

// smallSno returns a generator with the numbers 10 to 13, on a scripted clock.
func smallSno(t testing.TB, c *scripted, o Options) *SnoGenerator {
	t.Helper()
	o.clock = c.clock()
	g, err := NewSnoGenerator(SnoConfig{Partition: &SnoPartition{'A', 10}, SequenceMin: 10, SequenceMax: 13, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// handOver returns a generator made from the JSON of g's snapshot.
func handOver(t testing.TB, g *SnoGenerator, c *scripted, o Options) *SnoGenerator {
	t.Helper()
	var s SnoSnapshot
	if err := json.Unmarshal(Must(json.Marshal(g.Snapshot())), &s); err != nil {
		t.Fatal(err)
	}
	o.clock = c.clock()
	g, err := NewSnoGenerator(SnoConfig{Snapshot: &s, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// snoPlace is the unit, number and tick-tock bit of an ID.
type snoPlace struct {
	unit, seq int
	tick      bool
}

func placeOf(id Sno) snoPlace {
	return snoPlace{int(id.Time().Sub(snoStart) / (4 * time.Millisecond)), int(id.Sequence()), id.TickTock()}
}

// eachClock runs a test on a clock like a caller's Clock, and on one like the system clock.
func eachClock(t *testing.T, test func(t *testing.T, c *scripted)) {
	for _, anchored := range []bool{false, true} {
		t.Run(fmt.Sprintf("anchored=%v", anchored), func(t *testing.T) {
			test(t, &scripted{wall: snoStart, anchored: anchored})
		})
	}
}

func TestSnoTickTock(t *testing.T) {
	steps := []struct {
		ms   int // the clock's time, from snoStart
		want snoPlace
		wait bool
		err  error
	}{
		{ms: 0, want: snoPlace{0, 10, false}},
		{ms: 3, want: snoPlace{0, 11, false}},
		{ms: 0, want: snoPlace{0, 12, false}}, // a step back within the unit has no effect
		{ms: 40, want: snoPlace{10, 10, false}},
		{ms: 20, want: snoPlace{5, 10, true}}, // the first step back toggles the bit and uses the clock's time
		{ms: 20, want: snoPlace{5, 11, true}},
		{ms: 28, want: snoPlace{7, 10, true}},
		{ms: 24, want: snoPlace{7, 11, true}, wait: true}, // back within the units of the toggled bit
		{ms: 12, want: snoPlace{7, 12, true}, wait: true}, // and to before these units
		{ms: 40, want: snoPlace{10, 10, true}},            // units that the other bit used
		{ms: 48, want: snoPlace{12, 10, true}},
		{ms: 44, want: snoPlace{11, 10, false}}, // after these units, a step back toggles again
		{ms: 48, want: snoPlace{12, 10, false}},
		{ms: 56, want: snoPlace{14, 10, false}},
		{ms: 48, want: snoPlace{13, 10, true}, wait: true}, // the last unit of the other bit
		{ms: 52, want: snoPlace{13, 11, true}},
		{ms: -3600_000, err: ErrClockBackwards}, // too far back for a wait
		{ms: 52, want: snoPlace{13, 12, true}},
		{ms: 60, want: snoPlace{15, 10, true}},
		{ms: 60, want: snoPlace{15, 11, true}},
		{ms: 60, want: snoPlace{15, 12, true}},
		{ms: 60, want: snoPlace{15, 13, true}},
		{ms: 56, want: snoPlace{16, 10, true}, wait: true}, // behind, and then full
		{ms: 68, want: snoPlace{17, 10, true}},
		{ms: 68, want: snoPlace{17, 11, true}},
		{ms: 68, want: snoPlace{17, 12, true}},
		{ms: 68, want: snoPlace{17, 13, true}},
		{ms: 60, want: snoPlace{15, 10, false}}, // a toggle can follow a full unit
	}
	eachClock(t, func(t *testing.T, c *scripted) {
		g := smallSno(t, c, Options{MaxWait: 100 * time.Millisecond})
		for i, step := range steps {
			c.step(snoStart.Add(time.Duration(step.ms) * time.Millisecond).Sub(c.wall))
			c.asleep = 0
			id, err := g.Next()
			if step.err != nil {
				if !errors.Is(err, step.err) || c.asleep != 0 {
					t.Fatalf("step %d, at %d ms: %v, %v after %v", i, step.ms, id, err, c.asleep)
				}
				continue
			}
			if err != nil || placeOf(id) != step.want || step.wait != (c.asleep > 0) || c.asleep > 100*time.Millisecond {
				t.Fatalf("step %d, at %d ms: %+v, %v after %v; want %+v", i, step.ms, placeOf(id), err, c.asleep, step.want)
			}
		}
	})
}

// A generator made from a snapshot continues where the other one stopped, at any time of
// the clock.
func TestSnoSnapshot(t *testing.T) {
	none := 0 // no start bound; the test cases don't use unit 0
	for _, tt := range []struct {
		name   string
		bound  int   // NotBefore of the first generator
		before []int // the units of its IDs
		bound2 int   // NotBefore of the second
		then   int   // the clock's unit at its first call
		want   snoPlace
		wait   bool
	}{
		{"same unit", none, []int{50, 50}, none, 50, snoPlace{50, 12, false}, false},
		{"later", none, []int{50, 50}, none, 55, snoPlace{55, 10, false}, false},
		{"behind", none, []int{50, 60}, none, 55, snoPlace{55, 10, true}, false},
		{"behind in the units of a toggle", none, []int{60, 55, 57}, none, 56, snoPlace{57, 11, true}, true},
		{"behind after these units", none, []int{60, 55, 62}, none, 61, snoPlace{61, 10, false}, false},
		{"behind at their end", none, []int{60, 55, 62}, none, 60, snoPlace{61, 10, false}, true},
		{"same unit, toggled", none, []int{60, 55}, none, 55, snoPlace{55, 11, true}, false},
		{"later, toggled", none, []int{60, 55}, none, 60, snoPlace{60, 10, true}, false},
		{"toggled twice", none, []int{60, 55, 62, 61}, none, 61, snoPlace{61, 11, false}, false},
		{"full", none, []int{50, 50, 50, 50}, none, 50, snoPlace{51, 10, false}, true},
		{"full, toggled", none, []int{60, 55, 55, 55, 55}, none, 55, snoPlace{56, 10, true}, true},
		{"full, then behind", none, []int{50, 50, 50, 50}, none, 49, snoPlace{49, 10, true}, false},
		{"fresh", none, nil, none, 50, snoPlace{50, 10, false}, false},
		{"fresh, behind the snapshot", none, nil, none, -50, snoPlace{-50, 10, false}, false},
		{"fresh, before its bound", 53, nil, none, 50, snoPlace{54, 10, false}, true},
		{"fresh, at its bound", 53, nil, none, 53, snoPlace{54, 10, false}, true},
		{"fresh, after its bound", 53, nil, none, 54, snoPlace{54, 10, false}, false},
		{"with a bound, behind", 53, []int{56}, none, 55, snoPlace{55, 10, true}, false},
		{"with a bound, behind the bound", 53, []int{56}, none, 53, snoPlace{54, 10, true}, true},
		{"with a later bound", none, []int{50}, 58, 50, snoPlace{59, 10, false}, true},
		{"with a bound at the last ID", none, []int{50}, 50, 50, snoPlace{51, 10, false}, true},
		{"with an earlier bound", none, []int{50}, 47, 48, snoPlace{48, 10, true}, false},
		{"at an earlier bound", none, []int{50}, 47, 47, snoPlace{48, 10, true}, true},
		{"with a bound between, toggled", none, []int{60, 55}, 57, 57, snoPlace{58, 10, true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachClock(t, func(t *testing.T, c *scripted) {
				options := func(bound int) (o Options) {
					o.MaxWait = 100 * time.Millisecond
					if bound != none {
						o.NotBefore = snoTime(bound + 1).Add(-1)
					}
					return o
				}
				g := smallSno(t, c, options(tt.bound))
				seen := map[Sno]bool{}
				for _, unit := range tt.before {
					c.toUnit(unit)
					seen[Must(g.Next())] = true
				}
				if again := handOver(t, g, c, Options{}).Snapshot(); again != g.Snapshot() {
					t.Errorf("%+v was restored as %+v", g.Snapshot(), again)
				}
				g = handOver(t, g, c, options(tt.bound2))
				c.toUnit(tt.then)
				if c.asleep != 0 {
					t.Fatal("a call waited before the tested one")
				}
				id, err := g.Next()
				if err != nil || placeOf(id) != tt.want || seen[id] || id.Partition() != (SnoPartition{'A', 10}) || tt.wait != (c.asleep > 0) {
					t.Errorf("%+v, %v after %v; want %+v", placeOf(id), err, c.asleep, tt.want)
				}
			})
		})
	}
}

// The JSON of a snapshot is stable, because programs store it. A snapshot with only the
// keys of other implementations is valid too.
func TestSnoSnapshotJSON(t *testing.T) {
	c := &scripted{wall: snoStart}
	g := Must(NewSnoGenerator(SnoConfig{Meta: 3, Partition: &SnoPartition{'A', 10}, SequenceMin: 13, SequenceMax: 10, Options: Options{clock: c.clock()}}))
	Must(g.At(3, snoTime(-20)))
	for _, unit := range []int{0, 5, 2, 2} {
		c.toUnit(unit)
		Must(g.Next())
	}
	c.toUnit(4)
	want := `{"partition":[65,10],"sequenceMin":10,"sequenceMax":13,"sequence":11,"now":133237968090,"wallHi":133237968088,"wallSafe":133237968091,"drifts":1,` +
		`"first":133237968086,"atUnit":133237968066,"atNext":11}`
	if got := string(Must(json.Marshal(g.Snapshot()))); got != want {
		t.Errorf("snapshot %s\n    want %s", got, want)
	}

	foreign, _, _ := strings.Cut(want, `,"first"`)
	foreign += "}"
	for _, tt := range []struct {
		unit int
		want snoPlace
	}{
		{2, snoPlace{2, 12, true}},
		{1, snoPlace{2, 12, true}},
		{-3, snoPlace{2, 12, true}},
		{5, snoPlace{5, 10, true}},
		{7, snoPlace{7, 10, true}},
	} {
		c.toUnit(tt.unit)
		var s SnoSnapshot
		if err := json.Unmarshal([]byte(foreign), &s); err != nil {
			t.Fatal(err)
		}
		g := Must(NewSnoGenerator(SnoConfig{Snapshot: &s, Options: Options{clock: c.clock()}}))
		// The first unit of the other implementation is unknown, so At rejects all times.
		for _, unit := range []int{-1 << 30, -1, 1, 2, 3, 5, 6} {
			if id, err := g.At(0, snoTime(unit)); !errors.Is(err, ErrRange) {
				t.Errorf("At in unit %d: %+v, %v", unit, placeOf(id), err)
			}
		}
		if got := placeOf(Must(g.Next())); got != tt.want {
			t.Errorf("at unit %d: %+v, want %+v", tt.unit, got, tt.want)
		}
	}
}

func TestSnoSnapshotRefused(t *testing.T) {
	forget()
	t.Cleanup(forget)
	last := int64(1<<39 - 1)
	valid := SnoSnapshot{SequenceMin: 10, SequenceMax: 13, Sequence: 13, Now: last, WallHi: last, WallSafe: last, First: last, AtUnit: last + 1, AtNext: 14}
	if _, err := NewSnoGenerator(SnoConfig{Snapshot: &valid}); err != nil {
		t.Errorf("the largest values: %v", err)
	}
	least := SnoSnapshot{SequenceMin: 13, SequenceMax: 10, Sequence: 10, Now: -1, WallHi: -1, WallSafe: -1, First: -1}
	if _, err := NewSnoGenerator(SnoConfig{Snapshot: &least}); err != nil {
		t.Errorf("the smallest values: %v", err)
	}
	for _, tt := range []struct {
		what   string // part of the error text
		change func(*SnoSnapshot)
	}{
		{"sequence is", func(s *SnoSnapshot) { s.Sequence = 14 }},
		{"sequence is", func(s *SnoSnapshot) { s.Sequence = 9 }},
		{"now is", func(s *SnoSnapshot) { s.Now = last + 1 }},
		{"now is", func(s *SnoSnapshot) { s.Now = -2 }},
		{"wallHi is", func(s *SnoSnapshot) { s.WallHi = last + 1 }},
		{"wallHi is", func(s *SnoSnapshot) { s.WallHi = -2 }},
		{"wallSafe is", func(s *SnoSnapshot) { s.WallSafe = last + 1 }},
		{"wallSafe is", func(s *SnoSnapshot) { s.WallSafe = -2 }},
		{"first is", func(s *SnoSnapshot) { s.First = last + 1 }},
		{"first is", func(s *SnoSnapshot) { s.First = -2 }},
		{"atUnit is", func(s *SnoSnapshot) { s.AtUnit = last + 2 }},
		{"atUnit is", func(s *SnoSnapshot) { s.AtUnit = -1 }},
		{"atNext is", func(s *SnoSnapshot) { s.AtNext = 15 }},
		{"SequenceMin and SequenceMax", func(s *SnoSnapshot) { s.SequenceMax = 12 }},
		{"SequenceMin and SequenceMax", func(s *SnoSnapshot) { s.SequenceMin = 13 }},
	} {
		s := valid
		tt.change(&s)
		g, err := NewSnoGenerator(SnoConfig{Snapshot: &s})
		if g != nil || !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), tt.what) {
			t.Errorf("%+v: %v, want %q", s, err, tt.what)
		}
	}

	// A snapshot that was never taken has no bounds.
	for _, text := range []string{`{}`, `null`, `{"partition":[65,10],"wallHi":133237968088}`} {
		var s SnoSnapshot
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		g, err := NewSnoGenerator(SnoConfig{Snapshot: &s})
		if g != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "the snapshot is empty") {
			t.Errorf("%s: %v, want an error", text, err)
		}
	}

	lease := newLease(1, snoStart, snoStart.Add(time.Hour))
	for i, c := range []SnoConfig{
		{Partition: &SnoPartition{}},
		{SequenceMin: 10},
		{SequenceMax: 13},
		{Options: Options{Lease: lease}},
		{Ranges: 3, Partition: &SnoPartition{}, Options: Options{Lease: lease}},
	} {
		c.Snapshot = &valid
		if g, err := NewSnoGenerator(c); g != nil || !errors.Is(err, ErrConfig) {
			t.Errorf("a snapshot with other settings, %d: %v", i, err)
		}
	}
}

// Two generators share a partition, each with its own range.
func TestSnoSharedPartition(t *testing.T) {
	bounds := [][2]uint16{{0, 63}, {127, 64}}
	const workers, each = 2, 1000
	var mu sync.Mutex
	seen := map[Sno]bool{}
	var wg sync.WaitGroup
	for _, b := range bounds {
		g := Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{1, 9}, SequenceMin: b[0], SequenceMax: b[1], Options: Options{MaxWait: time.Minute}}))
		for range workers {
			wg.Go(func() {
				ids := make([]Sno, each)
				for i := range ids[:each/2] {
					ids[i] = Must(g.Next())
				}
				Must(g.Fill(t.Context(), ids[each/2:]))
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					if s := id.Sequence(); s < min(b[0], b[1]) || s > max(b[0], b[1]) {
						t.Errorf("number %d is outside the bounds %v", s, b)
					}
					seen[id] = true
				}
			})
		}
	}
	wg.Wait()
	if want := len(bounds) * workers * each; len(seen) != want {
		t.Errorf("%d different IDs, want %d", len(seen), want)
	}
}

// A lease's number is the partition, or the index of one of its ranges.
func TestSnoLeaseNumbers(t *testing.T) {
	c := &scripted{wall: snoStart}
	own := &SnoPartition{'A', 10}
	lease := func(n int) Options {
		return Options{Lease: newLease(n, snoTime(-1), snoTime(100)), clock: c.clock()}
	}
	for _, ranges := range []int{1, 3, 16, 16384} {
		next := 0 // the first number after the previous ranges
		for n := range ranges {
			g, err := NewSnoGenerator(SnoConfig{Partition: own, Ranges: ranges, Options: lease(n)})
			if err != nil {
				t.Fatalf("range %d of %d: %v", n, ranges, err)
			}
			s := g.Snapshot()
			id := Must(g.Next())
			if int(s.SequenceMin) != next || int(s.SequenceMax) != next+65536/ranges-1 || id.Sequence() != s.SequenceMin || id.Partition() != *own {
				t.Fatalf("range %d of %d: %d to %d, %+v", n, ranges, s.SequenceMin, s.SequenceMax, placeOf(id))
			}
			next = int(s.SequenceMax) + 1
		}
		if next > 65536 {
			t.Errorf("%d ranges end at number %d", ranges, next-1)
		}
	}
	for _, n := range []int{0, 1, 65535} {
		g := Must(NewSnoGenerator(SnoConfig{SequenceMax: 3, Options: lease(n)}))
		if id := Must(g.Next()); id.Partition() != SnoPartitionFrom(uint16(n)) || id.Sequence() != 0 {
			t.Errorf("lease %d: partition %v", n, id.Partition())
		}
	}

	for i, tt := range []struct {
		c    SnoConfig
		want error
	}{
		{SnoConfig{Ranges: 3, Partition: own}, ErrConfig},
		{SnoConfig{Ranges: 3, Options: lease(0)}, ErrConfig},
		{SnoConfig{Ranges: 3, Partition: own, Options: lease(3)}, ErrNode},
		{SnoConfig{Ranges: 3, Partition: own, Options: lease(-1)}, ErrNode},
		{SnoConfig{Ranges: 3, Partition: own, SequenceMin: 9, Options: lease(0)}, ErrConfig},
		{SnoConfig{Ranges: 3, Partition: own, SequenceMax: 9, Options: lease(0)}, ErrConfig},
		{SnoConfig{Ranges: 16385, Partition: own, Options: lease(0)}, ErrRange},
		{SnoConfig{Ranges: -1, Partition: own, Options: lease(0)}, ErrRange},
		{SnoConfig{Partition: own, Options: lease(0)}, ErrConfig},
		{SnoConfig{Options: lease(65536)}, ErrNode},
		{SnoConfig{Options: lease(-1)}, ErrNode},
	} {
		if g, err := NewSnoGenerator(tt.c); g != nil || kindOfError(err) != tt.want {
			t.Errorf("config %d: %v", i, err)
		}
	}
}

func TestSnoOverflow(t *testing.T) {
	generator := func(messages chan SnoOverflow, c *scripted, maxWait time.Duration) *SnoGenerator {
		return Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, SequenceMax: 3, Overflow: messages, Options: Options{MaxWait: maxWait, clock: c.clock()}}))
	}
	eachClock(t, func(t *testing.T, c *scripted) {
		// Each value from turns ends one wait.
		turns := make(chan bool)
		c.onSleep = func() {
			frozen := <-turns
			c.mu.Lock()
			defer c.mu.Unlock()
			c.frozen = frozen
		}
		messages := make(chan SnoOverflow, 100)
		g := generator(messages, c, time.Hour)
		var wg sync.WaitGroup
		calls := func(n int) {
			for i := range n {
				wg.Go(func() { Must(g.Next()) })
				g.seq.queued(t, i+1)
			}
		}
		Must(g.Fill(t.Context(), make([]Sno, 4)))
		calls(6)
		turns <- true
		turns <- true
		turns <- false // four calls get the numbers of the next unit
		turns <- false
		wg.Wait()
		Must(g.Fill(t.Context(), make([]Sno, 2)))
		calls(1)
		turns <- false
		wg.Wait()

		at := snoTime
		want := []SnoOverflow{
			{at(0), 1, 0}, {at(0), 6, 4}, {at(0), 6, 8}, {at(1), 2, 12}, {at(2), 0, 16},
			{at(2), 1, 0}, {at(3), 0, 4},
		}
		close(messages)
		var got []SnoOverflow
		for m := range messages {
			got = append(got, m)
		}
		if !slices.Equal(got, want) {
			t.Errorf("messages %v\n    want %v", got, want)
		}
	})

	t.Run("none", func(t *testing.T) {
		messages := make(chan SnoOverflow, 100)
		c := &scripted{wall: snoStart}
		g := generator(messages, c, time.Second)
		for _, unit := range []int{10, 5, 3} {
			c.toUnit(unit)
			Must(g.Next())
		}
		if c.slept == 0 {
			t.Error("Next didn't wait for the clock")
		}
		g = generator(messages, c, -1)
		for range 4 {
			Must(g.Next())
		}
		if _, err := g.Next(); err == nil {
			t.Error("Next succeeded in a full unit")
		}
		if len(messages) != 0 {
			t.Errorf("a message without a stall: %+v", <-messages)
		}
	})

	t.Run("unread", func(t *testing.T) {
		full := make(chan SnoOverflow, 1)
		full <- SnoOverflow{Ticks: -1}
		for _, messages := range []chan SnoOverflow{make(chan SnoOverflow), full} {
			g := generator(messages, &scripted{wall: snoStart}, 0)
			var done atomic.Bool
			go func() {
				for range 20 {
					Must(g.Next())
				}
				done.Store(true)
			}()
			await(t, "20 IDs without a reader of the messages", done.Load)
		}
		if m := <-full; m.Ticks != -1 {
			t.Errorf("message %+v replaced an earlier one", m)
		}
	})
}

// IDs from At and IDs from Next never collide.
func TestSnoAt(t *testing.T) {
	type step struct {
		clock int // the unit
		at    int // the unit of At; live means a call of Next
		want  snoPlace
		err   error
	}
	const live = -1 << 31
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"before Next", []step{
			{clock: 100, at: -1000, want: snoPlace{-1000, 10, false}},
			{clock: 100, at: -1000, want: snoPlace{-1000, 11, false}},
			{clock: 100, at: 50, want: snoPlace{50, 10, false}},
			{clock: 100, at: 49, err: ErrRange}, // decreases
			{clock: 100, at: 50, want: snoPlace{50, 11, false}},
			{clock: 100, at: 50, want: snoPlace{50, 12, false}},
			{clock: 100, at: 50, want: snoPlace{50, 13, false}},
			{clock: 100, at: 50, err: ErrSequenceExhausted},
			{clock: 100, at: 51, want: snoPlace{51, 10, false}},
			{clock: 100, at: 100, err: ErrRange}, // now
			{clock: 100, at: 150, err: ErrRange}, // the future
			{clock: 100, at: 99, want: snoPlace{99, 10, false}},
			{clock: 100, at: live, want: snoPlace{100, 10, false}},
			{clock: 100, at: 99, want: snoPlace{99, 11, false}},
		}},
		{"after Next", []step{
			{clock: 100, at: live, want: snoPlace{100, 10, false}},
			{clock: 200, at: live, want: snoPlace{200, 10, false}},
			{clock: 200, at: 98, want: snoPlace{98, 10, false}},
			{clock: 200, at: 100, err: ErrRange},
			{clock: 200, at: 101, err: ErrRange},
			{clock: 200, at: 97, err: ErrRange},
			{clock: 200, at: 99, want: snoPlace{99, 10, false}},
			{clock: 200, at: live, want: snoPlace{200, 11, false}},
		}},
		{"after toggles", []step{
			{clock: 100, at: live, want: snoPlace{100, 10, false}},
			{clock: 90, at: live, want: snoPlace{90, 10, true}},
			{clock: 90, at: 89, want: snoPlace{89, 10, false}},
			{clock: 90, at: 90, want: snoPlace{90, 10, false}},
			{clock: 90, at: 99, want: snoPlace{99, 10, false}},
			{clock: 90, at: 100, err: ErrRange},
			{clock: 99, at: live, want: snoPlace{99, 10, true}},
			{clock: 110, at: live, want: snoPlace{110, 10, true}},
			{clock: 105, at: live, want: snoPlace{105, 10, false}},
			{clock: 105, at: 99, want: snoPlace{99, 11, false}},
			{clock: 105, at: 104, err: ErrRange},
		}},
		{"At, then a step back", []step{
			{clock: 60, at: 50, want: snoPlace{50, 10, false}},
			{clock: 49, at: live, want: snoPlace{51, 10, false}}, // waits instead of toggling
			{clock: 55, at: live, want: snoPlace{55, 10, false}},
			{clock: 52, at: live, want: snoPlace{52, 10, true}},
		}},
		{"At, then a step back into its unit", []step{
			{clock: 60, at: 50, want: snoPlace{50, 10, false}},
			{clock: 50, at: live, want: snoPlace{51, 10, false}},
			{clock: 55, at: live, want: snoPlace{55, 10, false}},
			{clock: 50, at: live, want: snoPlace{51, 10, true}}, // also after a toggle
		}},
		{"At, then a step far back", []step{
			{clock: 60, at: 50, want: snoPlace{50, 10, false}},
			{clock: -1000, at: live, err: ErrClockBackwards},
			{clock: 52, at: live, want: snoPlace{52, 10, false}},
		}},
	} {
		for _, restore := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restored=%v", tt.name, restore), func(t *testing.T) {
				eachClock(t, func(t *testing.T, c *scripted) {
					options := Options{MaxWait: 100 * time.Millisecond}
					g := smallSno(t, c, options)
					for i, step := range tt.steps {
						c.toUnit(step.clock)
						if restore {
							g = handOver(t, g, c, options)
						}
						var id Sno
						var err error
						if step.at == live {
							id, err = g.NextMeta(7)
						} else {
							id, err = g.At(7, snoTime(step.at).Add(3*time.Millisecond))
						}
						if !errors.Is(err, step.err) || err == nil && (placeOf(id) != step.want || id.Meta() != 7 || id.Partition() != SnoPartition{'A', 10}) {
							t.Fatalf("step %d: %+v, %v; want %+v, %v", i, placeOf(id), err, step.want, step.err)
						}
					}
				})
			})
		}
	}
}

func TestSnoAtLimits(t *testing.T) {
	c := &scripted{wall: snoTime(100)}
	g := smallSno(t, c, Options{NotBefore: snoTime(20).Add(3 * time.Millisecond)})
	for _, tt := range []struct {
		at  time.Time
		err error
	}{
		{snoTime(20), ErrRange}, // the unit of the bound
		{snoTime(-20), ErrRange},
		{snoPlan.epoch.Add(-1), ErrBeforeEpoch},
		{time.Time{}, ErrBeforeEpoch},
		{snoPlan.end().Add(4 * time.Millisecond), ErrTimeExhausted},
	} {
		if id, err := g.At(0, tt.at); !errors.Is(err, tt.err) || !errors.Is(err, ErrRange) || id != (Sno{}) {
			t.Errorf("At %v: %v, %v", tt.at, id, err)
		}
	}
	if id := Must(g.At(0, snoTime(21))); placeOf(id) != (snoPlace{21, 10, false}) {
		t.Errorf("after the bound: %+v", placeOf(id))
	}

	// A snapshot doesn't allow times before a later bound, or numbers outside the range.
	g = handOver(t, g, c, Options{NotBefore: snoTime(40)})
	if id, err := g.At(0, snoTime(40)); !errors.Is(err, ErrRange) {
		t.Errorf("at the bound after a snapshot: %+v, %v", placeOf(id), err)
	}
	Must(g.At(0, snoTime(41)))
	forget()
	t.Cleanup(forget)
	g = Must(NewSnoGenerator(SnoConfig{Snapshot: &SnoSnapshot{SequenceMin: 10, Sequence: 10, WallHi: -1, WallSafe: -1, First: -1}}))
	if id := Must(g.At(0, snoPlan.epoch)); id.Sequence() != 10 {
		t.Errorf("At returned number %d, want the first of the range, 10", id.Sequence())
	}

	// At never returns the zero ID.
	g = Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, Options: Options{clock: c.clock()}}))
	for want := range 3 {
		if id := Must(g.At(0, snoPlan.epoch)); id != (Sno{9: byte(want + 1)}) {
			t.Errorf("ID %d of the format's first unit is %v", want+1, id)
		}
	}
	if got := g.Stats(); got != (GeneratorStats{Minted: 3}) {
		t.Errorf("Stats after three calls of At: %+v", got)
	}
	partitionsAt(t, 0)
	for n, want := range []Sno{{9: 1}, {7: 1}} {
		g := Must(NewSnoGenerator(SnoConfig{Options: Options{clock: c.clock()}}))
		if id := Must(g.At(0, snoPlan.epoch)); id != want {
			t.Errorf("the first ID of automatic partition %d is %v, want %v", n, id, want)
		}
	}

	// A lease covers times after After, up to Until.
	l := newLease(9, snoTime(20), snoTime(40))
	g = Must(NewSnoGenerator(SnoConfig{Options: Options{Lease: l, MaxWait: time.Millisecond, clock: c.clock()}}))
	for _, tt := range []struct {
		unit int
		err  error
	}{{20, ErrRange}, {21, nil}, {40, nil}, {41, ErrLeaseNotRenewed}} {
		if id, err := g.At(0, snoTime(tt.unit)); !errors.Is(err, tt.err) || err == nil && id.Partition() != (SnoPartition{0, 9}) {
			t.Errorf("At unit %d under a lease: %+v, %v", tt.unit, placeOf(id), err)
		}
	}
	l.lose()
	if id, err := g.At(0, snoTime(40)); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("under a lost lease: %+v, %v", placeOf(id), err)
	}
}

// All views and methods of a generator share its sequence.
func TestSnoViews(t *testing.T) {
	eachClock(t, func(t *testing.T, c *scripted) {
		g := Must(NewSnoGenerator(SnoConfig{Meta: 1, Partition: &SnoPartition{}, Options: Options{clock: c.clock()}}))
		view, other := g.WithMeta(3), g.WithMeta(4)
		dst := make([]Sno, 12)
		for i := 0; i < len(dst); i += 6 {
			dst[i] = Must(g.Next())
			dst[i+1] = Must(g.NextMeta(2))
			dst[i+2] = Must(view.Next())
			Must(other.Fill(t.Context(), dst[i+3:i+5]))
			Must(g.Fill(t.Context(), dst[i+5:i+6]))
		}
		for i, id := range dst {
			if want := []byte{1, 2, 3, 4, 4, 1}[i%6]; placeOf(id) != (snoPlace{0, i, false}) || id.Meta() != want {
				t.Errorf("ID %d: %+v, meta %d, want meta %d", i, placeOf(id), id.Meta(), want)
			}
		}
	})

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	forget()
	t.Cleanup(forget)
	g := Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, SequenceMax: 499, Options: Options{MaxWait: time.Minute}}))
	past := time.Now().Add(-time.Minute)
	const each = 5000
	var mu sync.Mutex
	seen := map[Sno]bool{}
	var wg sync.WaitGroup
	for meta, mint := range []func(dst []Sno){
		func(dst []Sno) { Must(g.Fill(t.Context(), dst)) },
		func(dst []Sno) { dst[0] = Must(g.NextMeta(1)) },
		func(dst []Sno) { dst[0] = Must(g.WithMeta(2).Next()) },
		func(dst []Sno) { Must(g.WithMeta(3).Fill(t.Context(), dst)) },
		func(dst []Sno) { past = past.Add(time.Millisecond); dst[0] = Must(g.At(4, past)) },
	} {
		wg.Go(func() {
			ids := make([]Sno, each)
			for i := range ids {
				mint(ids[i : i+1])
			}
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if id.Meta() != byte(meta) {
					t.Fatalf("meta %d, want %d", id.Meta(), meta)
				}
				seen[id.WithMeta(0)] = true
			}
		})
	}
	wg.Wait()
	if len(seen) != 5*each || g.Stats().Minted != 5*each {
		t.Errorf("%d IDs, %d of them different without metabytes; Stats().Minted = %d", 5*each, len(seen), g.Stats().Minted)
	}
}

func TestRemaining(t *testing.T) {
	c := &scripted{wall: snoPlan.end().Add(-time.Hour)}
	g := smallSno(t, c, Options{})
	for _, tt := range []struct{ step, want time.Duration }{
		{0, time.Hour + 4*time.Millisecond},
		{time.Hour + 3*time.Millisecond, time.Millisecond},
		{time.Millisecond - 1, 1},
		{1, 0},
		{time.Hour, 0},
	} {
		if c.step(tt.step); g.Remaining() != tt.want {
			t.Errorf("at %v: Remaining = %v, want %v", c.wall, g.Remaining(), tt.want)
		}
	}
	c.wall = DefaultSnowflakeLayout().Epoch
	wide := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: SnowflakeLayout{SequenceBits: 1}, Options: Options{clock: c.clock()}}))
	if got := wide.Remaining(); got < 290*365*24*time.Hour {
		t.Errorf("Remaining = %v, want at least 290 years", got)
	}
}
