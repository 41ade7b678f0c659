package migrations

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

const (
	// maxAhead is the most that IDs of the server's generators can be ahead of its
	// clock. At peak rates, a generator takes IDs of the next milliseconds.
	maxAhead = 10 * time.Millisecond
	// maxTimeBits is the limit of a layout's time bits. 46 bits of milliseconds are
	// 2229 years. For longer times, a multiplication of intervals in Postgres,
	// which is in floating point, loses microseconds.
	maxTimeBits = 46
	// spareBits is the number of spare bits in the counter of a server's generator.
	// Calls count into them while the unit is full or the clock is behind.
	spareBits = 8
)

// A format holds the properties of an ID type that its SQL needs. Times come from
// package idtype, so that no definition is repeated.
type format struct {
	Schema string
	Format string // as in the names of functions: snowflake_si
	Title  string // as in errors: SnowflakeSI

	first, last  time.Time
	unit         time.Duration
	UnitBits     int
	SequenceBits int

	Lowest, Highest string // literals: the floors of -infinity and infinity
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// First returns the first instant of the format.
func (f format) First() string { return stamp(f.first) }

// Last returns the last millisecond of the format.
func (f format) Last() string { return stamp(f.last.Add(f.unit - time.Millisecond)) }

// Epoch returns the first instant as a literal of type timestamptz.
func (f format) Epoch() string { return f.first.UTC().Format("2006-01-02 15:04:05.000+00") }

// EpochMS returns the first instant in Unix milliseconds.
func (f format) EpochMS() int64 { return f.first.UnixMilli() }

// UnitsPerSecond returns the number of time units per second.
func (f format) UnitsPerSecond() int64 { return int64(time.Second / f.unit) }

func (f format) unitMS() int64 { return f.unit.Milliseconds() }

// LastUnit returns the largest unit, which is also the mask for a unit.
func (f format) LastUnit() int64 { return 1<<f.UnitBits - 1 }

// MaxSequence returns the largest sequence number.
func (f format) MaxSequence() int64 { return 1<<f.SequenceBits - 1 }

// ClockBits returns the number of sequence bits that a server's generator uses:
// all, unless that leaves fewer than spareBits for the counter.
func (f format) ClockBits() int { return min(f.SequenceBits, 63-spareBits-f.UnitBits) }

// Increment returns the increment of the sequence that is a generator's clock.
func (f format) Increment() int64 { return 1 << f.UnitBits }

// FullAt returns the first value of that sequence whose counter is too large.
func (f format) FullAt() int64 { return 1 << (f.UnitBits + f.ClockBits()) }

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
		if f.unitMS() != 1 {
			unit = fmt.Sprintf("%s * %d", unit, f.unitMS())
		}
		return fmt.Sprintf("to_timestamp((%s + %d) / 1000::float8)", unit, f.EpochMS())
	}
	return fmt.Sprintf("(timestamp '%s' + %s * interval '%d milliseconds') AT TIME ZONE 'UTC'",
		f.first.UTC().Format("2006-01-02 15:04:05.000"), unit, f.unitMS())
}

// Unit returns an SQL expression for the unit in a value of the clock, from the
// PL/pgSQL variable named value. The expression qualifies all names, as do UnitEnd
// and UnitNear.
func (f format) Unit() string {
	return fmt.Sprintf("(value OPERATOR(pg_catalog.&) %d)", f.LastUnit())
}

// UnitEnd returns an SQL expression for the end of that unit, exact enough to
// compare with the clock.
func (f format) UnitEnd() string { return f.instantOf(f.unitMS()) }

// UnitNear returns an SQL expression for the first instant at which that unit is
// not too far ahead of the clock.
func (f format) UnitNear() string { return f.instantOf(-f.aheadMS()) }

// aheadMS returns the most that a unit can be ahead of the clock, in milliseconds,
// rounded down to whole units.
func (f format) aheadMS() int64 { return maxAhead.Milliseconds() / f.unitMS() * f.unitMS() }

// instantOf returns an SQL expression for the beginning of the unit that Unit
// returns, plus an offset in milliseconds.
func (f format) instantOf(offset int64) string {
	unit := f.Unit()
	if f.unitMS() != 1 {
		unit = fmt.Sprintf("(%s OPERATOR(pg_catalog.*) %d)", unit, f.unitMS())
	}
	return fmt.Sprintf(`pg_catalog.to_timestamp(
            (%s OPERATOR(pg_catalog.+) %d)
            OPERATOR(pg_catalog./) 1000::double precision)`,
		unit, f.EpochMS()+offset)
}

// Fits returns an SQL expression that is true if a variable fits into width bits.
func (f format) Fits(variable string, width int) string {
	return fmt.Sprintf("(%s OPERATOR(pg_catalog.>>) %d) OPERATOR(pg_catalog.=) 0", variable, width)
}

type snowflake struct {
	format
	DatacenterBits, WorkerBits int
	Layout                     string
}

func (s snowflake) WorkerShift() int     { return s.SequenceBits }
func (s snowflake) DatacenterShift() int { return s.SequenceBits + s.WorkerBits }
func (s snowflake) TimeShift() int       { return s.SequenceBits + s.WorkerBits + s.DatacenterBits }
func (s snowflake) Workers() int         { return 1 << s.WorkerBits }
func (s snowflake) MaxWorker() int       { return 1<<s.WorkerBits - 1 }
func (s snowflake) MaxDatacenter() int   { return 1<<s.DatacenterBits - 1 }

func snowflakeOf(schema string, l idtype.SnowflakeLayout) (snowflake, error) {
	max, err := l.Parts(idtype.MaxSnowflake) // the maximum of each field
	if err != nil {
		return snowflake{}, fmt.Errorf("migrations: Config.Snowflake: %w", err)
	}
	s := snowflake{
		format: format{
			Schema: schema, Format: "snowflake", Title: "Snowflake",
			first: l.Time(0), last: max.Time, unit: time.Millisecond,
			SequenceBits: bits.Len(uint(max.Sequence)),
			Lowest:       "0", Highest: fmt.Sprint(int64(math.MaxInt64)),
		},
		DatacenterBits: bits.Len(uint(max.Datacenter)),
		WorkerBits:     bits.Len(uint(max.Worker)),
	}
	s.UnitBits = 63 - s.TimeShift()
	s.Layout = l.String()
	if s.UnitBits > maxTimeBits {
		return snowflake{}, fmt.Errorf("migrations: Config.Snowflake: time has %d bits (%s); want at most %d, since SQL computes longer times inexactly; give datacenter, worker or sequence more bits",
			s.UnitBits, s.Layout, maxTimeBits)
	}
	return s, nil
}

type snowflakeSI struct {
	format
	MachineBits int
	Layout      string
}

func (s snowflakeSI) TimeShift() int  { return s.SequenceBits + s.MachineBits }
func (s snowflakeSI) MaxMachine() int { return 1<<s.MachineBits - 1 }

func snowflakeSIOf(schema string, l idtype.SnowflakeSILayout) (*snowflakeSI, error) {
	if l == (idtype.SnowflakeSILayout{}) {
		return nil, nil
	}
	max, err := l.Parts(idtype.MaxSnowflakeSI)
	if err != nil {
		return nil, fmt.Errorf("migrations: Config.SnowflakeSI: %w", err)
	}
	s := &snowflakeSI{
		format: format{
			Schema: schema, Format: "snowflake_si", Title: "SnowflakeSI",
			first: l.Time(0), last: max.Time, unit: time.Millisecond, UnitBits: 40,
			SequenceBits: bits.Len(uint(max.Index)),
			Lowest:       "0", Highest: fmt.Sprint(int64(idtype.MaxSnowflakeSI)),
		},
		MachineBits: bits.Len(uint(max.Machine)),
	}
	s.Layout = l.String()
	return s, nil
}

func uid60(schema string) format {
	return format{
		Schema: schema, Format: "uid60", Title: "UID60",
		first: idtype.UID60(0).Time(), last: idtype.UID60(idtype.MaxUID60).Time(), unit: time.Millisecond,
		UnitBits: 42, SequenceBits: 9,
		Lowest: "0", Highest: fmt.Sprint(int64(idtype.MaxUID60)),
	}
}

func spread64(schema string) format {
	return format{
		Schema: schema, Format: "spread64", Title: "Spread64",
		first: idtype.Spread64(0).Time(), last: idtype.Spread64(-1).Time(), unit: time.Millisecond,
		UnitBits: 42, SequenceBits: 6,
	}
}

func sno(schema string) format {
	var lowest, highest idtype.Sno
	for i := range highest {
		highest[i] = 0xff
	}
	return format{
		Schema: schema, Format: "sno", Title: "Sno",
		first: lowest.Time(), last: highest.Time(), unit: 4 * time.Millisecond,
		UnitBits: 39, SequenceBits: 16,
		Lowest: fmt.Sprintf("'%s'", lowest.UUID()), Highest: fmt.Sprintf("'%s'", highest.UUID()),
	}
}
