package idtype

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

var siLayout = SnowflakeSILayout{BaseClock: utc("2020-01-01T00:00:00Z")}

func TestLayoutDefaults(t *testing.T) {
	zero, def := SnowflakeLayout{}, DefaultSnowflakeLayout()
	p := SnowflakeParts{utc("2026-11-21T10:11:12.345Z"), 3, 4, 5}
	a, err := zero.Compose(p)
	b, _ := def.Compose(p)
	if err != nil || a != b {
		t.Errorf("Compose of the zero layout = %v, %v; want %v as with the default layout", a, err, b)
	}
	// A layout with only an epoch has the default widths, and one with only widths the
	// default epoch.
	c, _ := SnowflakeLayout{DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}.Compose(p)
	d, _ := SnowflakeLayout{Epoch: def.Epoch}.Compose(p)
	if c != a || d != a {
		t.Errorf("Compose of layouts with partial defaults = %v and %v, want %v", c, d, a)
	}
}

func TestLayoutValidate(t *testing.T) {
	base := siLayout.BaseClock
	for name, c := range map[string]struct {
		layout interface{ Validate() error }
		err    error
		says   string
	}{
		"zero snowflake":        {SnowflakeLayout{}, nil, ""},
		"no node":               {SnowflakeLayout{SequenceBits: 12}, nil, ""},
		"widest":                {SnowflakeLayout{SequenceBits: 31}, nil, ""},
		"no sequence":           {SnowflakeLayout{WorkerBits: 10}, ErrRange, "sequence 0"},
		"negative width":        {SnowflakeLayout{DatacenterBits: -1, WorkerBits: 5, SequenceBits: 12}, ErrRange, "datacenter -1"},
		"32 bits":               {SnowflakeLayout{DatacenterBits: 10, WorkerBits: 10, SequenceBits: 12}, ErrRange, "at most 31"},
		"overflowing sum":       {SnowflakeLayout{DatacenterBits: math.MaxInt, WorkerBits: math.MaxInt, SequenceBits: 2}, ErrRange, "at most 31"},
		"epoch between ms":      {SnowflakeLayout{Epoch: utc("2021-01-01T00:00:00.0005Z")}, ErrRange, "whole milliseconds"},
		"epoch in year 10000":   {SnowflakeLayout{Epoch: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, ErrRange, "9999"},
		"epoch before year 1":   {SnowflakeLayout{Epoch: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)}, ErrRange, "years 1"},
		"no base clock":         {SnowflakeSILayout{}, ErrConfig, "BaseClock"},
		"widths, no base clock": {SnowflakeSILayout{MachineBits: 5, IndexBits: 8}, ErrConfig, "BaseClock"},
		"base clock":            {siLayout, nil, ""},
		"base clock is 1970":    {SnowflakeSILayout{BaseClock: time.Unix(0, 0)}, nil, ""},
		"no machine":            {SnowflakeSILayout{base, 0, 13}, nil, ""},
		"no index":              {SnowflakeSILayout{base, 13, 0}, nil, ""},
		"12 bits":               {SnowflakeSILayout{base, 5, 7}, ErrRange, "13 in total"},
		"negative machine":      {SnowflakeSILayout{base, -1, 14}, ErrRange, "machine -1"},
		"base clock between ms": {SnowflakeSILayout{BaseClock: base.Add(time.Microsecond)}, ErrRange, "whole milliseconds"},
	} {
		err := c.layout.Validate()
		if kindOfError(err) != c.err || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every method and constructor rejects an invalid layout.
func TestLayoutInvalid(t *testing.T) {
	l, si := SnowflakeLayout{WorkerBits: 40, SequenceBits: 40}, SnowflakeSILayout{}
	now := utc("2026-11-21T00:00:00Z")
	_, err1 := l.Compose(SnowflakeParts{Time: now})
	_, err2 := l.Parts(1)
	_, err3 := l.Floor(now)
	_, _, err4 := l.Range(now, now)
	_, err5 := si.Compose(SnowflakeSIParts{Time: now})
	_, err6 := si.Parts(1)
	_, err7 := si.Floor(now)
	_, _, err8 := si.Range(now, now)
	_, err9 := NewSnowflakeGenerator(SnowflakeConfig{Layout: l})
	_, err10 := NewSnowflakeSIGenerator(SnowflakeSIConfig{})
	for i, err := range []error{err1, err2, err3, err4, err9} {
		if kindOfError(err) != ErrRange {
			t.Errorf("call %d of SnowflakeLayout: %v, want ErrRange", i+1, err)
		}
	}
	for i, err := range []error{err5, err6, err7, err8, err10} {
		if kindOfError(err) != ErrConfig {
			t.Errorf("call %d of SnowflakeSILayout: %v, want ErrConfig", i+1, err)
		}
	}
	if !l.Time(1).IsZero() || !si.Time(1).IsZero() {
		t.Error("Time of an invalid layout isn't the zero Time")
	}
}

func TestComposeLimits(t *testing.T) {
	at := utc("2026-11-21T10:11:12.345Z")
	snowflake := func(p SnowflakeParts) error { _, err := SnowflakeLayout{}.Compose(p); return err }
	si := func(p SnowflakeSIParts) error { _, err := siLayout.Compose(p); return err }
	uid := func(p UID60Parts) error { _, err := UID60Layout{}.Compose(p); return err }
	spread := func(p Spread64Parts) error { _, err := Spread64Layout{}.Compose(p); return err }
	sno := func(p SnoParts) error { _, err := SnoLayout{}.Compose(p); return err }
	for name, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"datacenter":           {snowflake(SnowflakeParts{at, 32, 0, 0}), ErrNode, "32 is out of range; want 0 to 31"},
		"negative datacenter":  {snowflake(SnowflakeParts{at, -1, 0, 0}), ErrNode, "-1 is out of range"},
		"worker":               {snowflake(SnowflakeParts{at, 0, 32, 0}), ErrNode, "worker"},
		"sequence":             {snowflake(SnowflakeParts{at, 0, 0, 4096}), ErrRange, "0 to 4095"},
		"snowflake before":     {snowflake(SnowflakeParts{Time: utc("2020-12-31T23:59:59.9995Z")}), ErrBeforeEpoch, "2021-01-01T00:00:00.000Z"},
		"snowflake past":       {snowflake(SnowflakeParts{Time: utc("2090-09-07T15:47:35.552Z")}), ErrTimeExhausted, "2090-09-07T15:47:35.551Z"},
		"machine":              {si(SnowflakeSIParts{at, 32, 0}), ErrNode, "0 to 31"},
		"index":                {si(SnowflakeSIParts{at, 0, 256}), ErrRange, "0 to 255"},
		"si before":            {si(SnowflakeSIParts{Time: utc("2019-12-31T23:59:59.999Z")}), ErrBeforeEpoch, "2020-01-01"},
		"si past":              {si(SnowflakeSIParts{Time: siLayout.BaseClock.Add(1 << 40 * time.Millisecond)}), ErrTimeExhausted, "2054-11-03T19:53:47.775Z"},
		"uid60 sequence":       {uid(UID60Parts{at, 512, 0}), ErrRange, "0 to 511"},
		"uid60 random":         {uid(UID60Parts{at, 0, -1}), ErrRange, "random"},
		"uid60 past":           {uid(UID60Parts{Time: utc("2157-07-13T07:35:11.104Z")}), ErrTimeExhausted, "2157-07-13T07:35:11.103Z"},
		"uid60 before":         {uid(UID60Parts{Time: utc("2018-02-28T23:59:59.999Z")}), ErrBeforeEpoch, "2018-03-01"},
		"spread64 sequence":    {spread(Spread64Parts{at, 64, 0, 0}), ErrRange, "0 to 63"},
		"spread64 generator":   {spread(Spread64Parts{at, 0, 64, 0}), ErrNode, "generator"},
		"spread64 cluster":     {spread(Spread64Parts{at, 0, 0, 16}), ErrNode, "0 to 15"},
		"spread64 past":        {spread(Spread64Parts{Time: utc("2109-05-15T07:35:11.104Z")}), ErrTimeExhausted, "2109-05-15T07:35:11.103Z"},
		"spread64 before":      {spread(Spread64Parts{Time: time.Unix(0, -1)}), ErrBeforeEpoch, "1970-01-01"},
		"sno before":           {sno(SnoParts{Time: utc("2009-12-31T23:59:59.999Z")}), ErrBeforeEpoch, "2010-01-01"},
		"sno past":             {sno(SnoParts{Time: utc("2079-09-07T15:47:35.552Z")}), ErrTimeExhausted, "2079-09-07T15:47:35.551Z"},
		"no time":              {sno(SnoParts{}), ErrBeforeEpoch, "0001-01-01"},
		"the latest Go time":   {sno(SnoParts{Time: time.Unix(math.MaxInt64, 0)}), ErrTimeExhausted, "2079"},
		"the earliest Go time": {spread(Spread64Parts{Time: time.Unix(math.MinInt64/2, 0)}), ErrBeforeEpoch, "1970"},
		"overflowing int64 ms": {uid(UID60Parts{Time: time.Unix(math.MaxInt64/900, 0)}), ErrTimeExhausted, "2157"},
	} {
		if !errors.Is(c.err, c.want) || !errors.Is(c.err, ErrRange) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v; want %v and %q", name, c.err, c.want, c.says)
		}
	}
}

func TestComposeRoundsDown(t *testing.T) {
	late := utc("2026-11-21T10:11:12.345999Z")
	a, _ := SnowflakeLayout{}.Compose(SnowflakeParts{Time: late})
	b, _ := SnoLayout{}.Compose(SnoParts{Time: utc("2026-11-21T10:11:12.347999Z")})
	if at := (SnowflakeLayout{}).Time(a); !at.Equal(utc("2026-11-21T10:11:12.345Z")) {
		t.Errorf("Snowflake: %v", at)
	}
	if at := b.Time(); !at.Equal(utc("2026-11-21T10:11:12.344Z")) {
		t.Errorf("Sno: %v", at)
	}
}

func TestPartsRefuse(t *testing.T) {
	_, err1 := SnowflakeLayout{}.Parts(-1)
	_, err2 := siLayout.Parts(1 << 53)
	_, err3 := UID60Layout{}.Parts(1 << 60)
	_, err4 := Spread64Layout{}.Parts(1 << 10)
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, ErrRange) {
			t.Errorf("type %d: %v, want ErrRange", i, err)
		}
	}
	if !(SnowflakeLayout{}).Time(-1).IsZero() || !siLayout.Time(-1).IsZero() || !UID60(-1).Time().IsZero() {
		t.Error("Time of an invalid ID isn't the zero Time")
	}
	// Reserved bits don't change the time.
	if at := Spread64(1<<10 | math.MinInt64).Time(); !at.Equal(time.UnixMilli(1)) {
		t.Errorf("Spread64 with a reserved bit: %v", at)
	}
	if s := UID60(-1).String(); s != "invalid UID60(-1)" {
		t.Errorf("String of UID60(-1) = %q", s)
	}
}

// A ranged is a format with a Range method.
type ranged struct {
	floor func(time.Time) (anyID, error)
	rng   func(from, to time.Time) (lo, hi anyID, err error)
	// edges returns the lowest and the highest ID of a time.
	edges       func(time.Time) (lo, hi anyID)
	first, last time.Time // the first and the last unit
	unit        time.Duration
	largest     anyID
	format      format
}

func anyFloor[T anyID](floor func(time.Time) (T, error)) func(time.Time) (anyID, error) {
	return func(at time.Time) (anyID, error) { return floor(at) }
}

func anyRange[T anyID](rng func(from, to time.Time) (lo, hi T, err error)) func(from, to time.Time) (lo, hi anyID, err error) {
	return func(from, to time.Time) (anyID, anyID, error) { return rng(from, to) }
}

func TestRange(t *testing.T) {
	t.Run("Snowflake", func(t *testing.T) {
		var l SnowflakeLayout
		ranged{anyFloor(l.Floor), anyRange(l.Range), func(at time.Time) (anyID, anyID) {
			return Must(l.Compose(SnowflakeParts{Time: at})), Must(l.Compose(SnowflakeParts{at, 31, 31, 4095}))
		}, utc("2021-01-01T00:00:00Z"), utc("2090-09-07T15:47:35.551Z"), time.Millisecond, Snowflake(math.MaxInt64), snowflakeFormat}.test(t)
	})
	t.Run("SnowflakeSI", func(t *testing.T) {
		ranged{anyFloor(siLayout.Floor), anyRange(siLayout.Range), func(at time.Time) (anyID, anyID) {
			return Must(siLayout.Compose(SnowflakeSIParts{Time: at})), Must(siLayout.Compose(SnowflakeSIParts{at, 31, 255}))
		}, siLayout.BaseClock, siLayout.BaseClock.Add((1<<40 - 1) * time.Millisecond), time.Millisecond, SnowflakeSI(1<<53 - 1), snowflakeSIFormat}.test(t)
	})
	t.Run("UID60", func(t *testing.T) {
		var l UID60Layout
		ranged{anyFloor(l.Floor), anyRange(l.Range), func(at time.Time) (anyID, anyID) {
			return Must(l.Compose(UID60Parts{Time: at})), Must(l.Compose(UID60Parts{at, 511, 511}))
		}, utc("2018-03-01T00:00:00Z"), utc("2157-07-13T07:35:11.103Z"), time.Millisecond, UID60(1<<60 - 1), uid60Format}.test(t)
	})
	t.Run("Sno", func(t *testing.T) {
		var l SnoLayout
		ranged{anyFloor(l.Floor), anyRange(l.Range), func(at time.Time) (anyID, anyID) {
			return Must(l.Compose(SnoParts{Time: at})), Must(l.Compose(SnoParts{at, true, 255, SnoPartition{255, 255}, 65535}))
		}, utc("2010-01-01T00:00:00Z"), utc("2079-09-07T15:47:35.548Z"), 4 * time.Millisecond, snoMax, snoFormat}.test(t)
	})
}

func (f ranged) test(t *testing.T) {
	at := utc("2026-11-21T10:11:12.344Z") // a multiple of 4 ms
	in := func(lo, id, hi anyID) bool { return f.format.compare(lo, id) <= 0 && f.format.compare(id, hi) < 0 }
	window := func(from, to time.Time) (lo, hi anyID) {
		t.Helper()
		lo, hi, err := f.rng(from, to)
		if err != nil {
			t.Fatalf("Range(%v, %v): %v", from, to, err)
		}
		return lo, hi
	}

	// The window has exactly the IDs of the units from at to before to, also if its edges
	// are within units.
	for _, within := range []time.Duration{0, 1, f.unit / 2, f.unit - 1} {
		to := at.Add(5 * f.unit)
		lo, hi := window(at.Add(within), to.Add(within))
		for i := -2; i < 8; i++ {
			low, high := f.edges(at.Add(time.Duration(i) * f.unit))
			if want := i >= 0 && i < 5; in(lo, low, hi) != want || in(lo, high, hi) != want {
				t.Errorf("unit %d, edges %v into their units: lowest ID in window %v, highest %v; want %v", i, within, in(lo, low, hi), in(lo, high, hi), want)
			}
		}
		// Adjacent windows have adjacent ranges.
		lo2, hi2 := window(to.Add(within), to.Add(time.Hour))
		if lo2 != hi || f.format.compare(hi2, lo2) <= 0 {
			t.Errorf("the next window is [%v, %v), want it to start at %v", lo2, hi2, hi)
		}
		floor, err := f.floor(at.Add(within))
		if low, _ := f.edges(at); err != nil || floor != low || floor != lo {
			t.Errorf("Floor = %v, %v; want %v", floor, err, low)
		}
	}

	zero := f.format.zero
	lowest, _ := f.edges(f.first)
	if lowest != zero {
		t.Errorf("the lowest ID is %v, want zero", lowest)
	}
	before, past := f.first.Add(-time.Nanosecond), f.last.Add(f.unit)
	noon := at.Add(time.Hour)
	floorOf := func(at time.Time) anyID { lo, _ := f.edges(at); return lo }
	for name, c := range map[string]struct {
		from, to time.Time
		lo, hi   anyID
	}{
		"open":               {time.Time{}, time.Time{}, zero, f.largest},
		"open from":          {time.Time{}, at, zero, floorOf(at)},
		"open to":            {at, time.Time{}, floorOf(at), f.largest},
		"from the epoch":     {f.first, at, zero, floorOf(at)},
		"from before":        {before, at, zero, floorOf(at)},
		"from long before":   {time.Unix(math.MinInt64/2, 0), at, zero, floorOf(at)},
		"all before":         {before.Add(-time.Hour), before, zero, zero},
		"to the last":        {at, f.last, floorOf(at), floorOf(f.last)},
		"to past":            {at, past, floorOf(at), f.largest},
		"to long past":       {at, time.Unix(math.MaxInt64/900, 0), floorOf(at), f.largest},
		"all past":           {past, past.Add(time.Hour), f.largest, f.largest},
		"nothing":            {noon, noon, floorOf(noon), floorOf(noon)},
		"in another zone":    {at.In(time.FixedZone("", 3600)), noon, floorOf(at), floorOf(noon)},
		"before to past":     {before, past, zero, f.largest},
		"within a unit":      {at, at.Add(f.unit - 1), floorOf(at), floorOf(at)},
		"from open, to past": {time.Time{}, past, zero, f.largest},
	} {
		if lo, hi := window(c.from, c.to); lo != c.lo || hi != c.hi {
			t.Errorf("%s: [%v, %v), want [%v, %v)", name, lo, hi, c.lo, c.hi)
		}
	}

	if _, _, err := f.rng(noon, at); !errors.Is(err, ErrRange) {
		t.Errorf("a window that ends before it starts: %v", err)
	}
	if _, err := f.floor(before); !errors.Is(err, ErrBeforeEpoch) {
		t.Errorf("Floor before the epoch: %v", err)
	}
	if _, err := f.floor(past); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("Floor past the end: %v", err)
	}
	if _, err := f.floor(past.Add(-time.Nanosecond)); err != nil {
		t.Errorf("Floor of the last instant: %v", err)
	}
}

func TestSnoDerived(t *testing.T) {
	id := Must(ParseSno("brpk4q72xwf2m63l"))
	v := id.WithMeta(id.Meta() + 1)
	if v.Meta() != id.Meta()+1 || v.Partition() != id.Partition() || v.Sequence() != id.Sequence() || !v.Time().Equal(id.Time()) || v.TickTock() != id.TickTock() {
		t.Errorf("%+v derived from %+v", v, id)
	}
	for m := range 256 {
		if w := id.WithMeta(byte(m)); w.Meta() != byte(m) || w.WithMeta(id.Meta()) != id {
			t.Fatalf("metabyte %d of %v: %d", m, w, w.Meta())
		}
	}
	if SnoPartitionFrom(0x410a) != (SnoPartition{'A', 10}) {
		t.Errorf("partition 0x410a is %v", SnoPartitionFrom(0x410a))
	}
}

// Models of keys in several layouts.
type (
	event      struct{}
	eventPage  struct{ event }
	invoice    struct{}
	badLayout  struct{}
	noClock    struct{}
	eventKey   struct{ SnowflakeOf[event] }
	unreported struct{ Generator[Snowflake] }
)

var eventLayout = SnowflakeLayout{Epoch: utc("2026-01-01T00:00:00Z"), WorkerBits: 6, SequenceBits: 14}

func (event) IDLayout() SnowflakeLayout      { return eventLayout }
func (event) IDPrefix() string               { return "ev" }
func (*invoice) IDLayout() SnowflakeSILayout { return siLayout }
func (badLayout) IDLayout() SnowflakeLayout  { return SnowflakeLayout{WorkerBits: 40} }
func (noClock) IDLayout() SnowflakeSILayout  { return SnowflakeSILayout{} }

// Time of a typed key reads the layout of its model.
func TestTypedTime(t *testing.T) {
	at := utc("2026-11-21T10:11:12.344Z")
	snowflake := Must(SnowflakeLayout{}.Compose(SnowflakeParts{Time: at, Worker: 3}))
	events := Must(eventLayout.Compose(SnowflakeParts{Time: at, Worker: 3}))
	si := Must(siLayout.Compose(SnowflakeSIParts{Time: at}))
	for name, got := range map[string]time.Time{
		"Snowflake, default":   SnowflakeOf[order](snowflake).Time(),
		"Snowflake":            SnowflakeOf[event](events).Time(),
		"Snowflake, embedded":  SnowflakeOf[eventPage](events).Time(),
		"Snowflake of SI":      SnowflakeOf[invoice](snowflake).Time(),
		"SnowflakeSI":          SnowflakeSIOf[invoice](si).Time(),
		"UID60":                UID60Of[event](Must(UID60Layout{}.Compose(UID60Parts{Time: at}))).Time(),
		"Spread64":             Spread64Of[event](Must(Spread64Layout{}.Compose(Spread64Parts{Time: at}))).Time(),
		"a struct with the ID": eventKey{SnowflakeOf[event](events)}.Time(),
	} {
		if !got.Equal(at) {
			t.Errorf("%s: %v, want %v", name, got, at)
		}
	}
	if !SnowflakeOf[event](-1).Time().IsZero() || !SnowflakeSIOf[invoice](-1).Time().IsZero() {
		t.Error("Time of a number out of range isn't the zero Time")
	}
	noAllocations(t, func() { _ = SnowflakeOf[event](events).Time() })
	noAllocations(t, func() { _ = SnowflakeOf[order](snowflake).Time() })
	if l := (SnowflakeSIOf[event](0)).ModelLayout(); l != nil {
		t.Errorf("layout %v of a SnowflakeSI, want none", l)
	}
}

// A generator of typed keys has the layout in which the model's keys are read.
func TestTypedLayoutPanics(t *testing.T) {
	standard, events := Must(NewSnowflakeGenerator(SnowflakeConfig{})), Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: eventLayout}))
	si := Must(NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: SnowflakeSILayout{BaseClock: utc("2026-01-01T00:00:00Z")}}))
	same := func(id Snowflake) Snowflake { return id }
	for want, use := range map[string]func(){
		`idtype: generate SnowflakeOf[idtype.order]: the generator has the layout "epoch 2026-01-01T00:00:00.000Z; bits: datacenter 0, worker 6, sequence 14", but keys of the model have "epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12"; declare the generator's layout on the model with a method IDLayout() idtype.SnowflakeLayout`: func() { GeneratorOf[SnowflakeOf[order]](events) },
		"idtype: generate SnowflakeOf[idtype.event]: the generator has the layout \"epoch 2021":     func() { GeneratorOf[SnowflakeOf[event]](standard) },
		"idtype: generate SnowflakeOf[idtype.eventPage]: the generator has the layout \"epoch 2021": func() { GeneratorOf[SnowflakeOf[eventPage]](MapGenerator(standard, same)) },
		"idtype: generate SnowflakeOf[idtype.event]: the generator has the layout \"epoch 2021-01-01T00:0": func() {
			MapGenerator(standard, func(id Snowflake) eventKey { return eventKey{SnowflakeOf[event](id)} })
		},
		"idtype: generate SnowflakeSIOf[idtype.invoice]: the generator has the layout \"base clock 2026":                                                                        func() { GeneratorOf[SnowflakeSIOf[invoice]](si) },
		"idtype: Time of a SnowflakeSIOf[idtype.order]: a SnowflakeSI has no default layout; declare its layout on the model with a method IDLayout() idtype.SnowflakeSILayout": func() { SnowflakeSIOf[order](1).Time() },
		"idtype: Time of a SnowflakeSIOf[idtype.event]: a SnowflakeSI has no default layout":                                                                                    func() { SnowflakeSIOf[event](1).Time() },
		"idtype: method IDLayout of idtype.badLayout returns an invalid layout: idtype: SnowflakeLayout: ":                                                                      func() { SnowflakeOf[badLayout](1).Time() },
		"idtype: method IDLayout of idtype.noClock returns an invalid layout: idtype: SnowflakeSILayout.B":                                                                      func() { SnowflakeSIOf[noClock](1).Time() },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			use()
		}()
	}
	for name, err := range map[string]error{
		"default":       SnowflakeOf[order](0).CheckGenerator(standard),
		"declared":      SnowflakeOf[event](0).CheckGenerator(GeneratorOf[SnowflakeOf[event]](events)),
		"another type":  SnowflakeOf[event](0).CheckGenerator(si),
		"no layout":     SnowflakeOf[event](0).CheckGenerator(unreported{standard}),
		"not declared":  SnowflakeSIOf[event](0).CheckGenerator(si),
		"no generator":  SnowflakeOf[event](0).CheckGenerator(nil),
		"fixed layouts": UID60Of[event](0).CheckGenerator(Must(NewUID60Generator(UID60Config{}))),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (SnowflakeOf[event](0)).CheckGenerator(standard); kindOfError(err) != ErrConfig {
		t.Errorf("another layout: %v, want ErrConfig", err)
	}
}

func TestLayoutOf(t *testing.T) {
	events := Must(NewSnowflakeGenerator(SnowflakeConfig{Layout: eventLayout}))
	same := func(id Snowflake) Snowflake { return id }
	for i, l := range []Layout[Snowflake]{LayoutOf(events), LayoutOf(MapGenerator(events, same)), LayoutOf(MapGenerator(MapGenerator(events, same), same))} {
		if l == nil || l.Fingerprint() != eventLayout.Fingerprint() {
			t.Errorf("generator %d: layout %v", i, l)
		}
	}
	if l := LayoutOf(MapGenerator(unreported{events}, same)); l != nil {
		t.Errorf("layout %v of a generator that reports none", l)
	}
	if l := LayoutOf(unreported{}.uid60()); l != (UID60Layout{}) {
		t.Errorf("layout %v of UID60", l)
	}
	prints := map[string]bool{}
	for _, l := range []interface{ Fingerprint() string }{
		SnowflakeLayout{}, eventLayout, SnowflakeLayout{WorkerBits: 10, SequenceBits: 12}, siLayout, SnowflakeSILayout{siLayout.BaseClock, 4, 9}, UID60Layout{}, Spread64Layout{}, SnoLayout{},
	} {
		prints[l.Fingerprint()] = true
	}
	if len(prints) != 8 || (SnowflakeLayout{}).Fingerprint() != DefaultSnowflakeLayout().Fingerprint() {
		t.Errorf("fingerprints %v", prints)
	}
	local := eventLayout
	local.Epoch = local.Epoch.In(time.FixedZone("", 3600))
	if local.Fingerprint() != eventLayout.Fingerprint() {
		t.Errorf("fingerprint %q of an epoch in another zone", local.Fingerprint())
	}
}

func (unreported) uid60() Generator[UID60] { return &scriptedGenerator[UID60]{} }

// Generators report their layouts, also if the caller left it zero.
func TestGeneratorLayout(t *testing.T) {
	custom := SnowflakeLayout{Epoch: time.UnixMilli(0).UTC(), WorkerBits: 10, SequenceBits: 12}
	for _, l := range []SnowflakeLayout{{}, custom} {
		gen, err := NewSnowflakeGenerator(SnowflakeConfig{Layout: l})
		if err != nil || gen.Layout() != l.normal() {
			t.Errorf("%v: got %v, %v", l, gen.Layout(), err)
		}
		mapped, ok := MapGenerator(gen, Snowflake.Int64).(interface{ Source() Generator[Snowflake] })
		if !ok || mapped.Source() != Generator[Snowflake](gen) {
			t.Errorf("MapGenerator: got the source %v, want %v", mapped, gen)
		}
	}
	base := SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	si, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: base})
	if err != nil || si.Layout() != base.normal() {
		t.Errorf("got %v, %v", si.Layout(), err)
	}
}
