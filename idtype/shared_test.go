package idtype

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// continueEachOther checks that generators that take turns never create the same ID, and
// that they count their IDs together.
func continueEachOther[T comparable](t *testing.T, generators ...Generator[T]) {
	t.Helper()
	before := stats(generators[0]).Minted
	seen := map[T]bool{}
	ids := make([]T, 5)
	for range 20 {
		for _, g := range generators {
			Must(g.Fill(t.Context(), ids[1:]))
			ids[0] = Must(g.Next())
			for _, id := range ids {
				if seen[id] {
					t.Fatalf("duplicate %v", id)
				}
				seen[id] = true
			}
		}
	}
	for i, g := range generators {
		if minted := stats(g).Minted - before; minted != uint64(len(seen)) {
			t.Errorf("generator %d counts %d IDs, want all %d", i, minted, len(seen))
		}
	}
}

// Generators with the same number share its sequence.
func TestShared(t *testing.T) {
	each(t, append(formats[:4:4], snoSubject(SnoPartition{3, 4}, 0, 65535)), subject.testShared)
}

func (s subject) testShared(t *testing.T) {
	t.Run("turns", func(t *testing.T) {
		a, b := s.new(t, Options{}), Must(s.make(Options{MaxWait: time.Minute}))
		continueEachOther[record](t, a, b)
		last := Must(a.Next())
		for range 100 {
			for _, g := range []source{b, a} {
				if next := Must(g.Next()); next.unit < last.unit || next.unit == last.unit && next.number <= last.number {
					t.Fatalf("%v after %v", next, last)
				} else {
					last = next
				}
			}
		}
	})

	// A program creates a generator for each ID, and drops it.
	t.Run("constructor per ID", func(t *testing.T) {
		forget()
		var mu sync.Mutex
		seen := map[record]bool{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 500 {
					id := Must(Must(s.make(Options{MaxWait: time.Minute})).Next())
					mu.Lock()
					if seen[id] {
						t.Errorf("duplicate %v", id)
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})

	// A start bound of one generator holds for all, and MaxWait for its generator only. In a
	// bubble, no call is too late for the bound.
	t.Run("start bound", func(t *testing.T) { bubble(t, utc("2026-11-21T10:11:12.344Z"), s.testSharedBound) })
}

func (s subject) testSharedBound(t *testing.T) {
	t.Cleanup(forget)
	a := s.new(t, Options{})
	before := Must(a.Next())
	impatient := Must(s.make(Options{MaxWait: -1}))
	bound := time.Now().Add(300 * time.Millisecond)
	c := Must(s.make(Options{NotBefore: bound, MaxWait: time.Minute}))
	waits := make(chan record, 1)
	go func() { waits <- Must(c.Next()) }()
	await(t, "a wait", func() bool { return stats(a).Waits > 0 })
	for range 2 {
		if id, err := impatient.Next(); !errors.Is(err, ErrClockBackwards) || !time.Now().Before(bound) {
			t.Errorf("before the bound, with a negative MaxWait: %v, %v", id, err)
		}
	}
	if id := <-waits; !s.at(id).After(bound) {
		t.Errorf("an ID of %v, want one after the bound %v", s.at(id), bound)
	}
	if id := Must(a.Next()); !s.at(id).After(bound) || id.unit <= before.unit {
		t.Errorf("an ID of %v, want one after the bound %v", s.at(id), bound)
	}
	// A bound that has passed changes nothing but the current unit.
	for _, bound := range []time.Time{time.Now(), time.Now().Add(-time.Hour), {}} {
		b := Must(s.make(Options{NotBefore: bound, MaxWait: time.Minute}))
		continueEachOther[record](t, a, b)
	}
	if g, err := s.make(Options{NotBefore: s.end().Add(s.step)}); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("with a bound past the end: %v, %v", g, err)
	}
}

// Layouts of the same epoch and total width, but with another division of the bits below the
// time, never create an ID twice in a process: the second generator is rejected unless its
// bits differ.
func TestLayoutsThatOverlap(t *testing.T) {
	snowflake := func(datacenterBits, workerBits, sequenceBits, worker int) func() error {
		return func() error {
			_, err := NewSnowflakeGenerator(SnowflakeConfig{Layout: SnowflakeLayout{DatacenterBits: datacenterBits, WorkerBits: workerBits, SequenceBits: sequenceBits}, Worker: worker})
			return err
		}
	}
	si := func(machineBits, machine int) func() error {
		return func() error {
			_, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: machineBits, IndexBits: 13 - machineBits}, Machine: machine})
			return err
		}
	}
	for name, test := range map[string]struct {
		first, second func() error
		overlap       bool
	}{
		"upper half of a sequence": {snowflake(5, 4, 13, 1), snowflake(5, 5, 12, 3), true},
		"two of 32 numbers":        {snowflake(5, 5, 12, 2), snowflake(5, 4, 13, 1), true},
		"other bits":               {snowflake(5, 4, 13, 1), snowflake(5, 5, 12, 4), false},
		"machine":                  {si(5, 3), si(4, 1), true},
		"another machine":          {si(5, 3), si(4, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			forget()
			t.Cleanup(forget)
			if err := test.first(); err != nil {
				t.Fatal(err)
			}
			err := test.second()
			if !test.overlap {
				if err != nil {
					t.Error(err)
				}
			} else if kindOfError(err) != ErrConfig || !strings.Contains(err.Error(), " creates the same IDs; use one layout for both") {
				t.Errorf("second layout: %v, want ErrConfig", err)
			}
		})
	}
}

// Layouts that divide the node number in another way make the same IDs.
func TestSharedByEqualLayouts(t *testing.T) {
	forget()
	t.Cleanup(forget)
	five := Must(NewSnowflakeGenerator(SnowflakeConfig{Datacenter: 1, Worker: 2}))
	ten := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: SnowflakeLayout{WorkerBits: 10, SequenceBits: 12}, Worker: 34}))
	seen := map[Snowflake]bool{}
	for range 20_000 {
		for _, g := range []*SnowflakeGenerator{five, ten} {
			id := Must(g.Next())
			if seen[id] {
				t.Fatalf("%v was created twice", id)
			}
			seen[id] = true
		}
	}
}

// A NotBefore that no call would wait for is an error of the constructor. It changes nothing for
// other generators of the number.
func TestNotBeforeFarAhead(t *testing.T) {
	forget()
	t.Cleanup(forget)
	for name, create := range map[string]func(Options) error{
		"Snowflake": func(o Options) error { _, err := NewSnowflakeGenerator(SnowflakeConfig{Options: o}); return err },
		"SnowflakeSI": func(o Options) error {
			_, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: siLayout, Options: o})
			return err
		},
		"UID60":    func(o Options) error { _, err := NewUID60Generator(uid60Config(o)); return err },
		"Spread64": func(o Options) error { _, err := NewSpread64Generator(Spread64Config{Options: o}); return err },
		"Sno":      func(o Options) error { _, err := NewSnoGenerator(SnoConfig{Options: o}); return err },
	} {
		for wait, ahead := range map[time.Duration]time.Duration{0: time.Minute, -1: time.Minute, time.Hour: 365 * 24 * time.Hour} {
			o := Options{MaxWait: wait, NotBefore: time.Now().Add(ahead)}
			if err := create(o); !errors.Is(err, ErrClockBackwards) || !strings.Contains(fmt.Sprint(err), "check the system time and NotBefore, or raise MaxWait") {
				t.Errorf("%s, %v ahead with MaxWait %v: %v", name, ahead, wait, err)
			}
		}
		if err := create(Options{MaxWait: time.Hour, NotBefore: time.Now().Add(30 * time.Millisecond)}); err != nil {
			t.Errorf("%s, a little ahead: %v", name, err)
		}
	}
	if id, err := Must(NewSnowflakeGenerator(SnowflakeConfig{})).Next(); err != nil {
		t.Errorf("another generator of the number: %v, %v", id, err)
	}
}

// Generators share only a sequence of the same layout and number, and only if both use the
// system clock, no lease and no random source of their own.
func TestNotShared(t *testing.T) {
	forget()
	t.Cleanup(forget)
	later := DefaultSnowflakeLayout()
	later.Epoch = later.Epoch.Add(time.Millisecond)
	split := SnowflakeLayout{DatacenterBits: 4, WorkerBits: 7, SequenceBits: 12}
	lease := func(n int) Options {
		return Options{Lease: newLease(n, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))}
	}
	own := Options{Clock: time.Now}
	snowflake := func(c SnowflakeConfig) handle { return Must(NewSnowflakeGenerator(c)).seq }
	si := func(c SnowflakeSIConfig) handle { return Must(NewSnowflakeSIGenerator(c)).seq }
	spread := func(c Spread64Config) handle { return Must(NewSpread64Generator(c)).seq }
	sno := func(c SnoConfig) handle { return Must(NewSnoGenerator(c)).seq }
	uid := func(c UID60Config) handle { return Must(NewUID60Generator(c)).seq }
	shorter := SnowflakeSILayout{BaseClock: siLayout.BaseClock, MachineBits: 8, IndexBits: 5}
	made := map[*sequencer]int{}
	for i, h := range []handle{
		snowflake(SnowflakeConfig{}), snowflake(SnowflakeConfig{Worker: 1}), snowflake(SnowflakeConfig{Datacenter: 1}), snowflake(SnowflakeConfig{Layout: later}),
		snowflake(SnowflakeConfig{Layout: split}), snowflake(SnowflakeConfig{Options: own}), snowflake(SnowflakeConfig{Options: own}),
		snowflake(SnowflakeConfig{Options: lease(0)}),
		si(SnowflakeSIConfig{Layout: siLayout}), si(SnowflakeSIConfig{Layout: siLayout, Machine: 1}), si(SnowflakeSIConfig{Layout: shorter, Machine: 64}),
		si(SnowflakeSIConfig{Layout: siLayout, Options: own}), si(SnowflakeSIConfig{Layout: siLayout, Options: lease(0)}),
		spread(Spread64Config{}), spread(Spread64Config{Generator: 1}), spread(Spread64Config{Cluster: 1}), spread(Spread64Config{Options: own}), spread(Spread64Config{Options: lease(0)}),
		sno(SnoConfig{Partition: &SnoPartition{}, SequenceMax: 99}), sno(SnoConfig{Partition: &SnoPartition{}, SequenceMin: 100}), sno(SnoConfig{Partition: &SnoPartition{1}}),
		sno(SnoConfig{}), sno(SnoConfig{}), sno(SnoConfig{Partition: &SnoPartition{}, Options: own}), sno(SnoConfig{Options: lease(0)}),
		uid(UID60Config{}), uid(uid60Config(own)), uid(UID60Config{Random: rand.NewChaCha8([32]byte{})}),
	} {
		if j, ok := made[h.sequencer]; ok {
			t.Errorf("generator %d shares the sequence of generator %d", i, j)
		}
		made[h.sequencer] = i
	}
	for i, h := range []handle{
		snowflake(SnowflakeConfig{Layout: DefaultSnowflakeLayout()}), snowflake(SnowflakeConfig{Options: Options{MaxWait: -1, NotBefore: time.Unix(1, 0)}}),
		sno(SnoConfig{Partition: &SnoPartition{}, SequenceMin: 100, SequenceMax: 65535, Meta: 3}), sno(SnoConfig{Partition: &SnoPartition{1}, SequenceMax: 65535}),
	} {
		if _, ok := made[h.sequencer]; !ok {
			t.Errorf("generator %d shares no sequence", i)
		}
	}
}

// Ranges of a partition that overlap are rejected, because neither generator could continue
// the other.
func TestSnoOverlappingRanges(t *testing.T) {
	forget()
	t.Cleanup(forget)
	with := func(lo, hi uint16) SnoConfig {
		return SnoConfig{Partition: &SnoPartition{'A', 10}, SequenceMin: lo, SequenceMax: hi}
	}
	Must(NewSnoGenerator(with(100, 199)))
	Must(NewSnoGenerator(with(300, 399)))
	for _, r := range [][2]uint16{{0, 0}, {0, 100}, {199, 299}, {150, 160}, {399, 500}, {200, 300}} {
		g, err := NewSnoGenerator(with(r[0], r[1]))
		if g != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "of Sno partition 16650: a generator of this process uses ") {
			t.Errorf("numbers %d to %d: %v", r[0], r[1], err)
		}
	}
	for _, r := range [][2]uint16{{100, 199}, {0, 99}, {200, 299}, {400, 65535}} {
		if _, err := NewSnoGenerator(with(r[0], r[1])); err != nil {
			t.Errorf("numbers %d to %d: %v", r[0], r[1], err)
		}
	}
}

// MaxWait limits the waits of its generator only, in whatever order the calls wait.
func TestSharedMaxWait(t *testing.T) {
	for _, patient := range []bool{false, true} {
		c := &gate{}
		long := c.sequencer(t, time.Hour)
		short := &handle{sequencer: long.sequencer, maxWait: 3 * time.Millisecond}
		never := &handle{sequencer: long.sequencer, maxWait: -1}
		for range 4 {
			Must(long.takeOne())
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waits, ends []chan minted
		for i := range 3 {
			waits = append(waits, long.goes(ctx, 1, patient))
			long.queued(t, 2*i+1)
			ends = append(ends, short.goes(ctx, 1, patient))
			long.queued(t, 2*i+2)
		}
		if m := <-never.goes(ctx, 1, patient); !errors.Is(m.err, ErrSequenceExhausted) || !strings.Contains(m.err.Error(), "within 0s") {
			t.Errorf("with a negative MaxWait: %+v", m)
		}
		c.mu.Lock()
		c.ticks += 3 * time.Millisecond
		c.mu.Unlock()
		for i := range ends {
			if m := c.until(ends[i]); !errors.Is(m.err, ErrSequenceExhausted) || !strings.Contains(m.err.Error(), "within 3ms") {
				t.Errorf("after 3 ms: %+v", m)
			}
		}
		long.queued(t, 3)
		// The clock is behind by less than the longer MaxWait.
		long.mu.Lock()
		c.step(-time.Second)
		long.mu.Unlock()
		if m := <-short.goes(ctx, 1, patient); !errors.Is(m.err, ErrClockBackwards) {
			t.Errorf("behind, with the shorter MaxWait: %+v", m)
		}
		c.step(time.Second + time.Millisecond)
		for i := range waits {
			if m := c.until(waits[i]); m.err != nil {
				t.Errorf("with the longer MaxWait: %+v", m)
			}
		}
		long.queued(t, 0)
	}
}

// Each generator tells of its own waiting calls.
func TestSharedOverflow(t *testing.T) {
	c := &gate{}
	s := c.sequencer(t, time.Hour)
	channels := []chan SnoOverflow{make(chan SnoOverflow, 10), make(chan SnoOverflow, 10), nil}
	handles := make([]*handle, len(channels))
	for i := range handles {
		handles[i] = &handle{sequencer: s.sequencer, maxWait: time.Hour, stall: stall{overflow: channels[i]}}
	}
	at := c.wall
	for range 4 {
		Must(s.takeOne())
	}
	var calls []chan minted
	for i, h := range []int{0, 1, 1, 2, 2, 1} {
		calls = append(calls, handles[h].goes(t.Context(), 1, false))
		s.queued(t, i+1)
	}
	c.step(5 * time.Millisecond)
	for _, got := range calls {
		c.until(got)
	}
	s.queued(t, 0)
	messages := func(c chan SnoOverflow) (got []SnoOverflow) {
		for len(c) > 0 {
			m := <-c
			m.Now = at.Add(time.Duration(m.Now.Sub(at).Milliseconds()) * time.Millisecond)
			got = append(got, m)
		}
		return got
	}
	later := at.Add(5 * time.Millisecond)
	if got, want := messages(channels[0]), []SnoOverflow{{at, 1, 0}, {later, 0, 5}}; !slices.Equal(got, want) {
		t.Errorf("messages %v, want %v", got, want)
	}
	if got, want := messages(channels[1]), []SnoOverflow{{at, 1, 0}, {later, 0, 5}}; !slices.Equal(got, want) {
		t.Errorf("messages %v, want %v", got, want)
	}
	if len(s.stalls) != 0 {
		t.Errorf("%d stalls are left", len(s.stalls))
	}
}

// A generator made from a snapshot in the same process shares the sequence of the one that
// made it. It neither repeats an ID nor skips one.
func TestSharedSnapshot(t *testing.T) {
	forget()
	t.Cleanup(forget)
	g := Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{2, 2}}))
	for range 20 {
		old := g.Snapshot()
		first := Must(g.Next())
		next := Must(NewSnoGenerator(SnoConfig{Snapshot: &old}))
		id := Must(next.Next())
		if id.Time().Equal(first.Time()) && id.Sequence() != first.Sequence()+1 || id.Compare(first) <= 0 {
			t.Fatalf("%v after %v", id, first)
		}
		continueEachOther(t, g, next)
		g = next
	}
	// The snapshot of an earlier process ends in the future.
	p := g.Snapshot()
	p.WallHi += 25
	other := Must(NewSnoGenerator(SnoConfig{Snapshot: &p}))
	for _, g := range []*SnoGenerator{g, other} {
		if id := Must(g.Next()); int64(id.head()>>1) <= p.WallHi {
			t.Errorf("%v, want a later unit than the snapshot's", id)
		}
	}
}

// A sequencer resumes from snapshots of its own past and of other sequencers with the same
// number. A snapshot of its own changes nothing. It repeats no ID from before a snapshot.
func TestResume(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range scaledAlone(3000, 30_000) {
		c := &scripted{wall: snoStart}
		o := Options{MaxWait: -1}
		var generators [2]*SnoGenerator
		var snapshots [2][]SnoSnapshot
		var made [2][]map[Sno]bool // the IDs until each snapshot
		ids := [2]map[Sno]bool{{}, {}}
		for i := range generators {
			if i == 1 && r.IntN(2) == 0 {
				o.NotBefore = snoTime(r.IntN(10))
			}
			generators[i] = smallSno(t, c, o)
		}
		banned := [2]map[Sno]bool{{}, {}}
		for range 30 {
			c.toUnit(r.IntN(12))
			i := r.IntN(2)
			g := generators[i]
			switch r.IntN(8) {
			case 0:
				snapshots[i] = append(snapshots[i], g.Snapshot())
				all := map[Sno]bool{}
				for id := range ids[i] {
					all[id] = true
				}
				made[i] = append(made[i], all)
			case 1:
				if n := len(snapshots[i]); n > 0 {
					p := snapshots[i][r.IntN(n)]
					before := g.Snapshot()
					g.seq.resume(&p)
					after := g.Snapshot()
					if before.First >= 0 && before != after {
						t.Fatalf("its own snapshot %+v changed the state from %+v to %+v", p, before, after)
					}
				}
			case 2:
				if n := len(snapshots[1-i]); n > 0 {
					n = r.IntN(n)
					p := snapshots[1-i][n]
					g.seq.resume(&p)
					for id := range made[1-i][n] {
						banned[i][id] = true
					}
				}
			default:
				var id Sno
				var err error
				if r.IntN(4) == 0 {
					id, err = g.At(0, snoTime(r.IntN(12)))
				} else {
					id, err = g.Next()
				}
				if err != nil {
					continue
				}
				if ids[i][id] || banned[i][id] {
					t.Fatalf("duplicate %+v", placeOf(id))
				}
				ids[i][id] = true
			}
		}
	}
}

// A zero generator panics with a message that names the remedy.
func TestZeroGenerator(t *testing.T) {
	for i, call := range []func(){
		func() { _, _ = new(SnowflakeGenerator).Next() },
		func() { _, _ = new(SnowflakeSIGenerator).Next() },
		func() { _, _ = new(UID60Generator).Next() },
		func() { _, _ = new(Spread64Generator).Next() },
		func() { _, _ = new(SnoGenerator).Next() },
		func() { _, _ = new(SnowflakeGenerator).Fill(t.Context(), make([]Snowflake, 1)) },
		func() { _, _ = new(SnowflakeSIGenerator).Fill(t.Context(), make([]SnowflakeSI, 2)) },
		func() { _, _ = new(UID60Generator).Fill(t.Context(), make([]UID60, 1)) },
		func() { _, _ = new(Spread64Generator).Fill(t.Context(), make([]Spread64, 2)) },
		func() { _, _ = new(SnoGenerator).Fill(t.Context(), make([]Sno, 1)) },
		func() { new(SnowflakeGenerator).Stats() },
		func() { new(UID60Generator).Remaining() },
		func() { _ = new(Spread64Generator).Ready() },
		func() { _, _ = new(SnoGenerator).NextMeta(3) },
		func() { _, _ = new(SnoGenerator).WithMeta(3).Next() },
		func() { _, _ = new(SnoGenerator).At(3, time.Now()) },
		func() { new(SnoGenerator).Snapshot() },
		func() { _, _ = new(UUIDGenerator).Next() },
		func() { _, _ = new(UUIDGenerator).Fill(t.Context(), make([]UUID, 1)) },
		func() { new(UUIDGenerator).Stats() },
		func() { new(UUIDGenerator).Remaining() },
		func() { _ = new(UUIDGenerator).Ready() },
		func() { _, _ = GeneratorOf[SnowflakeOf[int]](Generator[Snowflake](new(SnowflakeGenerator))).Next() },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "idtype: the generator is a zero value; create it with ") {
					t.Errorf("call %d: panic %q", i, got)
				}
			}()
			call()
		}()
	}
}

// Views of a generator forward its counters and its readiness.
func TestMonitored(t *testing.T) {
	c := &scripted{wall: snoStart}
	o := Options{clock: c.clock()}
	snowflakes := Must(NewSnowflakeGenerator(SnowflakeConfig{Options: o}))
	snos := Must(NewSnoGenerator(SnoConfig{Partition: &SnoPartition{}, Options: o}))
	uuids := Must(NewUUIDGenerator(uuidConfig(o)))
	text := func(id Snowflake) string { return id.String() }
	for name, test := range map[string]struct {
		of   Monitored
		view any
		next func() error
	}{
		"GeneratorOf":     {snowflakes, GeneratorOf[SnowflakeOf[order]](snowflakes), func() error { _, err := snowflakes.Next(); return err }},
		"MapGenerator":    {snowflakes, MapGenerator(snowflakes, text), func() error { _, err := snowflakes.Next(); return err }},
		"a map of a map":  {snowflakes, MapGenerator(MapGenerator(snowflakes, text), func(s string) []byte { return []byte(s) }), func() error { _, err := snowflakes.Next(); return err }},
		"UUIDGeneratorOf": {uuids, GeneratorOf[UUIDOf[order]](uuids), func() error { _, err := uuids.Next(); return err }},
		"SnoGeneratorOf":  {snos, GeneratorOf[SnoOf[customer]](snos), func() error { _, err := snos.Next(); return err }},
		"WithMeta":        {snos, snos.WithMeta(3), func() error { _, err := snos.Next(); return err }},
		"a map of a view": {snos, GeneratorOf[SnoOf[order]](snos.WithMeta(3)), func() error { _, err := snos.Next(); return err }},
	} {
		c.step(time.Hour)
		if err := test.next(); err != nil {
			t.Fatal(err)
		}
		view, ok := test.view.(Monitored)
		if !ok {
			t.Errorf("%s: not Monitored", name)
			continue
		}
		if got, want := view.Stats(), test.of.Stats(); got != want || want.Minted == 0 || view.Remaining() != test.of.Remaining() || view.Remaining() <= 0 {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, got, view.Remaining(), want, test.of.Remaining())
		}
		if err := view.Ready(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.wall = snoPlan.epoch.AddDate(-1, 0, 0)
		if err := view.Ready(); name == "UUIDGeneratorOf" && err == nil { // it doesn't depend on the clock
		} else if !errors.Is(err, ErrClockBackwards) || err.Error() != test.of.Ready().Error() {
			t.Errorf("%s, with a clock that stepped back: %v, want %v", name, err, ErrClockBackwards)
		}
		c.wall = snoStart
	}

	// A view has only the methods that its generator has.
	plain, ready := Generator[Snowflake](&scriptedGenerator[Snowflake]{}), readyGenerator{&scriptedGenerator[Snowflake]{}}
	if g, ok := MapGenerator(plain, text).(interface{ Ready() error }); ok {
		t.Errorf("%T has a method Ready", g)
	}
	if g, ok := MapGenerator[Snowflake](ready, text).(interface{ Ready() error }); !ok || g.Ready() != errEmpty {
		t.Errorf("%T lacks the method Ready", g)
	}
	if g, ok := MapGenerator[Snowflake](ready, text).(Monitored); ok {
		t.Errorf("%T is Monitored", g)
	}
}

type readyGenerator struct{ Generator[Snowflake] }

func (readyGenerator) Ready() error { return errEmpty }
