package dbhealth

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

const shortLifetime = 5 * year // warning below

var formatEnds = Rule{
	ID: "format-ends", Area: "lifetime",
	Means:  "the last time of a format is less than 5 years away, or, as a problem, has passed",
	Remedy: "move to a format or a layout that ends later",
	check: func(_ context.Context, e *Examination) error {
		const remedy = "move to a format or a layout that ends later"
		now := e.serverNow()
		for _, span := range e.timespans() {
			name := strings.ReplaceAll(span.format, "_", "-")
			left := span.last.Sub(now)
			end := span.last.UTC().Format(time.DateOnly)
			switch {
			case left < 0:
				e.add(Problem, "", name, "ended on "+end+": IDs can't have later times", remedy)
			case left < shortLifetime:
				e.add(Warning, "", name, fmt.Sprintf("until %s (%s)", end, distance(span.last, now)), remedy)
			default:
				e.add(OK, "", name, fmt.Sprintf("until %s (%s)", end, distance(span.last, now)), "")
			}
		}
		return nil
	},
}

// A timespan is the time that a format can hold.
type timespan struct {
	format      string // as in SQL
	first, last time.Time
}

// generated returns the beginning of the window of time in a value of the sequence of a
// server's generator: the upper of its 63 bits are the number of the window, of 4 ms.
func (s timespan) generated(value int64) time.Time {
	const windowMS = 4
	first := s.first.UnixMilli()
	lastWindow := (s.last.UnixMilli() - first) / windowMS
	return time.UnixMilli(first + value>>(63-bits.Len64(uint64(lastWindow)))*windowMS)
}

// timespans returns the times of the formats. It returns nil if the layouts are unreadable.
func (e *Examination) timespans() []timespan {
	l, si := e.Config.Snowflake, e.Config.SnowflakeSI
	if l == (idtype.SnowflakeLayout{}) {
		return nil
	}
	var lowest, highest idtype.Sno
	for i := range highest {
		highest[i] = math.MaxUint8
	}
	spans := []timespan{
		{"snowflake", l.Time(0), l.Time(idtype.MaxSnowflake)},
		{"uid60", idtype.UID60(0).Time(), idtype.UID60(idtype.MaxUID60).Time()},
		{"spread64", idtype.Spread64(0).Time(), idtype.Spread64(-1).Time()},
		{"sno", lowest.Time(), highest.Time()},
	}
	if si != (idtype.SnowflakeSILayout{}) {
		spans = append(spans, timespan{"snowflake_si", si.Time(0), si.Time(idtype.MaxSnowflakeSI)})
	}
	return spans
}
