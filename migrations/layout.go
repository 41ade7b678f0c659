package migrations

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

const (
	// windowTime is the time of a window of a server's generator. It is a whole number
	// of units of each format.
	windowTime = 4 * time.Millisecond
	// windowsAhead is how many windows a server's generator can be ahead of the clock.
	// If the clock then steps back by a window, the generator continues. The sum of both
	// is a mask: one less than a power of two.
	windowsAhead = 2
	// spareBits is the minimum number of bits above the counter of a window. Calls
	// count into them while the window is full or the clock is behind.
	spareBits = 7
	// maxTimeBits is the limit of a layout's time bits. 46 bits of milliseconds are
	// 2229 years. For longer times, a multiplication of intervals in Postgres,
	// which is in floating point, loses microseconds.
	maxTimeBits = 46
)

// A format holds the properties of an ID type that its SQL needs. Times come from
// package idtype, so that no definition is repeated.
type format struct {
	Schema   string
	Internal string // the schema of the functions that users don't call
	Format   string // as in the names of functions: snowflake_si
	Title    string // as in errors: SnowflakeSI

	first, last    time.Time // of the first and the last unit
	First, Last    string    // the first and the last millisecond, as in errors
	Epoch          string    // the first instant, as a literal of type timestamptz
	EpochMS        int64     // the first instant, in Unix milliseconds
	UnitMS         int64
	UnitsPerSecond int64
	UnitBits       int
	LastUnit       int64 // the largest unit, which is also the mask for a unit
	SequenceBits   int
	MaxSequence    int64

	Lowest, Highest string // literals: the floors of -infinity and infinity

	MaxNode   int   // the largest node number
	NodeShift int   // position of the node number, except in Sno
	NodeMask  int64 // bits of the node number in an ID, or in the second half of a Sno

	clock
}

// A clock holds the constants and the SQL expressions of a server's generator. A value of its
// sequence, a bigint of 63 bits, has the number of a window, and the counter of that window, which
// counts the IDs of each unit and then the units.
type clock struct {
	WindowMS       int64
	WindowUnitBits int   // the number of bits that number the units of a window
	WindowShift    int   // the position of the window in a value
	LastWindow     int64 // the largest window, which is also the mask for a window
	ClockBits      int   // the number of sequence bits in a counter
	CounterBits    int
	FullAt         int64 // the capacity of a window

	// NotFresh is the mask for the difference between a value and the first value of the
	// current window. The result is zero if the value's window isn't full, and is the current
	// one or one of the next.
	NotFresh int64

	NowWindow    string // the number of the current window
	Bits         string // the bits of an ID for a value of the clock
	FirstCounter string // the first counter of a window
}

// newFormat returns a format with the fields that follow from others. unit is the length of a unit
// of time, in whole milliseconds.
func newFormat(f format, unit time.Duration) format {
	f.Internal = f.Schema + internalSuffix
	f.First, f.Last = stamp(f.first), stamp(f.last.Add(unit-time.Millisecond))
	f.Epoch, f.EpochMS = f.first.UTC().Format("2006-01-02 15:04:05.000+00"), f.first.UnixMilli()
	f.UnitMS, f.UnitsPerSecond = unit.Milliseconds(), int64(time.Second/unit)
	f.LastUnit, f.MaxSequence = 1<<f.UnitBits-1, 1<<f.SequenceBits-1

	c := &f.clock
	c.WindowMS = windowTime.Milliseconds()
	c.WindowUnitBits = bits.Len64(uint64(windowTime/unit)) - 1
	windowBits := f.UnitBits - c.WindowUnitBits
	c.WindowShift, c.LastWindow = 63-windowBits, 1<<windowBits-1
	// All sequence bits, unless that leaves fewer than spareBits below the window.
	c.ClockBits = min(f.SequenceBits, c.WindowShift-c.WindowUnitBits-spareBits)
	c.CounterBits = c.ClockBits + c.WindowUnitBits
	c.FullAt = 1 << c.CounterBits
	c.NotFresh = ^((windowsAhead+1)<<c.WindowShift | (c.FullAt - 1))
	c.FirstCounter = "0"
	// tstzrange_subdiff returns the seconds between two times as float8, in a third of
	// the time of extract and date_part, which look up the name of the field. The cast
	// rounds, so the time is counted from the middle of the first window, less the
	// microsecond that keeps half of a window from being rounded down.
	c.NowWindow = fmt.Sprintf("(tstzrange_subdiff(clock_timestamp(), '%s') * %d)::bigint",
		f.first.Add(windowTime/2-time.Microsecond).UTC().Format("2006-01-02 15:04:05.000000+00"), time.Second/windowTime)
	return f
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// bitsAt returns an SQL expression for the time and the sequence number of a value of
// the clock, with the time at a position of the ID and the sequence number at its end.
func (f format) bitsAt(timeShift int) string {
	windowShift := timeShift + f.WindowUnitBits
	sequence := f.FullAt>>f.WindowUnitBits - 1
	units := fmt.Sprintf("((value & %d) << %d)", f.FullAt-1-sequence, timeShift-f.ClockBits)
	if windowShift == f.WindowShift { // one mask for the window and the sequence number
		return fmt.Sprintf("(value & %d) | %s", -1<<windowShift&math.MaxInt64|sequence, units)
	}
	return fmt.Sprintf("(value >> %d << %d) | %s | (value & %d)", f.WindowShift, windowShift, units, sequence)
}

// OtherBits returns the mask for all bits outside of the node number.
func (f format) OtherBits() int64 { return ^f.NodeMask }

// Instant returns an SQL expression for the beginning of a unit. The unit is an SQL
// expression too, or a format string if there are arguments. The result is
// IMMUTABLE, so that functions can be inlined.
func (f format) Instant(unit string, args ...any) string {
	if len(args) > 0 {
		unit = fmt.Sprintf(unit, args...)
	}
	// Floating-point seconds since 1970 are faster. They are exact to a microsecond
	// within 2^33 seconds, from the year 1697 to 2242.
	const exact = 1 << 33
	if max(-f.first.Unix(), f.last.Unix()) < exact {
		if f.UnitMS != 1 {
			unit = fmt.Sprintf("%s * %d", unit, f.UnitMS)
		}
		return fmt.Sprintf("to_timestamp((%s + %d) / 1000::float8)", unit, f.EpochMS)
	}
	if f.UnitBits > maxTimeBits { // only for a unit of a millisecond
		return fmt.Sprintf("(timestamp '%s' + %[2]s / 86400000 * interval '1 day' + %[2]s %% 86400000 * interval '1 millisecond') AT TIME ZONE 'UTC'",
			f.first.UTC().Format("2006-01-02"), unit)
	}
	return fmt.Sprintf("(timestamp '%s' + %s * interval '%d milliseconds') AT TIME ZONE 'UTC'",
		f.first.UTC().Format("2006-01-02 15:04:05.000"), unit, f.UnitMS)
}

type snowflake struct {
	format
	DatacenterBits, WorkerBits              int
	MaxDatacenter, MaxWorker                int
	TimeShift, DatacenterShift, WorkerShift int
	Layout                                  string
}

func snowflakeOf(schema string, l idtype.SnowflakeLayout) (snowflake, error) {
	max, err := l.Parts(idtype.MaxSnowflake) // the maximum of each field
	if err != nil {
		return snowflake{}, fmt.Errorf("migrations: Config.Snowflake: %w", err)
	}
	s := snowflake{DatacenterBits: bits.Len(uint(max.Datacenter)), WorkerBits: bits.Len(uint(max.Worker)), Layout: l.Fingerprint()}
	s.MaxDatacenter, s.MaxWorker = max.Datacenter, max.Worker
	s.WorkerShift = bits.Len(uint(max.Sequence))
	s.DatacenterShift = s.WorkerShift + s.WorkerBits
	s.TimeShift = s.DatacenterShift + s.DatacenterBits
	timeBits := 63 - s.TimeShift
	if timeBits > maxTimeBits {
		return snowflake{}, fmt.Errorf("migrations: Config.Snowflake: time has %d bits (%s); want at most %d, since SQL computes longer times inexactly; give datacenter, worker or sequence more bits",
			timeBits, s.Layout, maxTimeBits)
	}
	nodes := 1<<(s.DatacenterBits+s.WorkerBits) - 1
	s.format = newFormat(format{
		Schema: schema, Format: "snowflake", Title: "Snowflake",
		first: l.Time(0), last: max.Time,
		UnitBits: timeBits, SequenceBits: s.WorkerShift,
		Lowest: "0", Highest: fmt.Sprint(int64(math.MaxInt64)),
		MaxNode: nodes, NodeShift: s.WorkerShift, NodeMask: int64(nodes) << s.WorkerShift,
	}, time.Millisecond)
	s.Bits = s.bitsAt(s.TimeShift)
	return s, nil
}

type snowflakeSI struct {
	format
	MachineBits, TimeShift int
	Layout                 string
}

func snowflakeSIOf(schema string, l idtype.SnowflakeSILayout) (*snowflakeSI, error) {
	if l == (idtype.SnowflakeSILayout{}) {
		return nil, nil
	}
	max, err := l.Parts(idtype.MaxSnowflakeSI)
	if err != nil {
		return nil, fmt.Errorf("migrations: Config.SnowflakeSI: %w", err)
	}
	sequenceBits, machineBits := bits.Len(uint(max.Index)), bits.Len(uint(max.Machine))
	s := &snowflakeSI{MachineBits: machineBits, TimeShift: sequenceBits + machineBits, Layout: l.Fingerprint()}
	s.format = newFormat(format{
		Schema: schema, Format: "snowflake_si", Title: "SnowflakeSI",
		first: l.Time(0), last: max.Time,
		UnitBits: 40, SequenceBits: sequenceBits,
		Lowest: "0", Highest: fmt.Sprint(int64(idtype.MaxSnowflakeSI)),
		MaxNode: max.Machine, NodeShift: sequenceBits, NodeMask: int64(max.Machine) << sequenceBits,
	}, time.Millisecond)
	s.Bits = s.bitsAt(s.TimeShift)
	return s, nil
}

// parseSnowflakeLayout is the inverse of [idtype.SnowflakeLayout.Fingerprint].
func parseSnowflakeLayout(s string) (l idtype.SnowflakeLayout, err error) {
	l.Epoch, err = scanLayout(s, "epoch %s bits: datacenter %d, worker %d, sequence %d", &l.DatacenterBits, &l.WorkerBits, &l.SequenceBits)
	if err != nil || l.Fingerprint() != s {
		return l, fmt.Errorf("unknown Snowflake layout %q; update the program, which may be older than the installation", s)
	}
	return l, nil
}

// parseSnowflakeSILayout is the inverse of [idtype.SnowflakeSILayout.Fingerprint].
func parseSnowflakeSILayout(s string) (l idtype.SnowflakeSILayout, err error) {
	l.BaseClock, err = scanLayout(s, "base clock %s bits: machine %d, index %d", &l.MachineBits, &l.IndexBits)
	if err != nil || l.Fingerprint() != s {
		return l, fmt.Errorf("unknown SnowflakeSI layout %q; update the program, which may be older than the installation", s)
	}
	return l, nil
}

func scanLayout(s, format string, bits ...any) (time.Time, error) {
	var start string
	if _, err := fmt.Sscanf(s, format, append([]any{&start}, bits...)...); err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, strings.TrimSuffix(start, ";"))
}

func uid60(schema string) format {
	f := newFormat(format{
		Schema: schema, Format: "uid60", Title: "UID60",
		first: idtype.UID60(0).Time(), last: idtype.UID60(idtype.MaxUID60).Time(),
		UnitBits: 42, SequenceBits: 9,
		Lowest: "0", Highest: fmt.Sprint(int64(idtype.MaxUID60)),
	}, time.Millisecond)
	f.Bits = fmt.Sprintf("(value >> %d << %d) | ((value & %d) << 9)", f.WindowShift, 18+f.WindowUnitBits, f.FullAt-1)
	f.FirstCounter = "uuid_hash(gen_random_uuid()) & 255"
	return f
}

func spread64(schema string) format {
	f := newFormat(format{
		Schema: schema, Format: "spread64", Title: "Spread64",
		first: idtype.Spread64(0).Time(), last: idtype.Spread64(-1).Time(),
		UnitBits: 42, SequenceBits: 6,
		Lowest: "0", Highest: fmt.Sprint(int64(1)<<42 - 1), // not of IDs, which have no floors, but of units
		MaxNode: 1<<10 - 1, NodeMask: 1<<10 - 1,
	}, time.Millisecond)
	f.Bits = fmt.Sprintf("%s.spread64_time_bits((value >> %d << %d) | ((value >> %d) & %d)) | ((value & %d) << 16)",
		f.Internal, f.WindowShift, f.WindowUnitBits, f.ClockBits, 1<<f.WindowUnitBits-1, f.MaxSequence)
	return f
}

func sno(schema string) format {
	var lowest, highest idtype.Sno
	for i := range highest {
		highest[i] = 0xff
	}
	return newFormat(format{
		Schema: schema, Format: "sno", Title: "Sno",
		first: lowest.Time(), last: highest.Time(),
		UnitBits: 39, SequenceBits: 16,
		Lowest: fmt.Sprintf("'%s'", lowest.UUID()), Highest: fmt.Sprintf("'%s'", highest.UUID()),
		MaxNode: 1<<16 - 1, NodeMask: 0x31f1f1e000000, // digits 1 to 4
	}, 4*time.Millisecond)
}

func uuid7(schema string) format {
	return newFormat(format{
		Schema: schema, Format: "uuid7", Title: "UUID",
		first: time.UnixMilli(0), last: time.UnixMilli(1<<48 - 1),
		UnitBits: 48,
		Lowest:   "'00000000-0000-7000-8000-000000000000'", Highest: "'ffffffff-ffff-7fff-bfff-ffffffffffff'",
	}, time.Millisecond)
}
