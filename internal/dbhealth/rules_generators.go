package dbhealth

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// generators are the last IDs of the server's generators.
type generators struct {
	last       map[string]time.Time // by format, as in SQL
	unreadable []string
}

// generators reads the sequences of the next_ functions.
func (e *Examination) generators(ctx context.Context) (generators, error) {
	return recall(e, "generators", func() (g generators, err error) {
		var text []byte
		var values map[string]*int64 // by the name of the sequence; nil: unreadable, 0: no ID yet
		err = e.row(ctx, []any{&text}, `
			SELECT coalesce(jsonb_object_agg(c.relname, CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT')
				THEN coalesce(pg_sequence_last_value(s.seqrelid), 0) END), '{}')::text
			FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = '$s_internal'`)
		if err == nil {
			err = json.Unmarshal(text, &values)
		}
		g.last = map[string]time.Time{}
		for _, span := range e.timespans() {
			switch value, ok := values[span.format+"_clock"]; {
			case !ok: // an outdated installation
			case value == nil:
				g.unreadable = append(g.unreadable, span.format)
			default:
				g.last[span.format] = span.generated(*value)
			}
		}
		return g, err
	})
}

func checkSequences(ctx context.Context, e *Examination) error {
	g, err := e.generators(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, span := range e.timespans() {
		if last, ok := g.last[span.format]; ok && last.Sub(e.serverNow()) > largeSkew {
			found = true
			e.add(Problem, "", "next_"+span.format, fmt.Sprintf("fails until %s (%s): it generated IDs while the server's clock was ahead", stamp(last), distance(last, e.serverNow())),
				e.resetRemedy(span.format))
		}
	}
	switch {
	case len(g.unreadable) > 0:
		e.add(Unknown, "", "next_ functions", "the role cannot read the sequences of "+strings.Join(g.unreadable, ", "), "connect as the owner of schema "+e.Config.Schema)
	case !found && e.timespans() != nil:
		e.add(OK, "", "next_ functions", "no generator is ahead of the server's clock", "")
	}
	return nil
}

// resetRemedy returns the remedy for a generator ahead of the clock. The reset of its
// sequence repeats IDs unless each session and default has another node number. IDs of
// uid60 have no node number.
func (e *Examination) resetRemedy(format string) string {
	if format == "uid60" {
		return "wait until then: a reset of the generator could repeat IDs"
	}
	return e.sql(fmt.Sprintf("wait until then. If you can't wait: reserve a node number with which no ID was generated; set $s.node to it, and replace the number in each default that passes a literal, such as next_%[1]s(5); "+
		"end all sessions, since they keep their number; only then run SELECT setval('$s_internal.%[1]s_clock', 1), and keep the old number reserved until that time", format))
}

func checkSubscribed(ctx context.Context, e *Examination) error {
	// Since Postgres 19, a publication can have sequences.
	_, err := e.addRows(ctx, Problem, `
		SELECT '', '$s_internal.' || c.relname,
			format('is a sequence of subscription %I: its next refresh sets it back, and the defaults repeat IDs if they create some meanwhile', u.subname),
			format('run ALTER SUBSCRIPTION %1$I DROP PUBLICATION p, where p publishes all sequences, or take the sequences out of it and run ALTER SUBSCRIPTION %1$I REFRESH PUBLICATION; copy the sequences of other schemas with setval', u.subname)
		FROM pg_subscription_rel r JOIN pg_class c ON c.oid = r.srrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_subscription u ON u.oid = r.srsubid WHERE n.nspname = '$s_internal' AND c.relkind = 'S' ORDER BY 2, u.subname`)
	return err
}

// generatedInOrder reports whether a default generates the keys, which sort by time.
func generatedInOrder(k key) bool { return k.generated && sorts(k) }

func checkGeneratorBehind(ctx context.Context, e *Examination, k key) error {
	g, err := e.generators(ctx)
	if err != nil {
		return err
	}
	n, err := e.newest(ctx, k)
	last, known := g.last[k.format]
	if err != nil || !known || n.own == nil || n.own.Sub(last) <= largeSkew {
		return err
	}
	const why = "with the node number of a default, and the last ID of next_"
	if now := e.serverNow(); n.own.Sub(now) > largeSkew {
		e.add(Problem, k.table, k.subject(), fmt.Sprintf("has a key of %s (%s) %s%s is of %s: the default repeats keys at that time", stamp(*n.own), distance(*n.own, now), why, k.format, stamp(last)),
			"reserve another node number for the defaults before that time")
		return nil
	}
	e.add(Warning, k.table, k.subject(), fmt.Sprintf("has a key of %s %s%s is of %s: its sequence was set back, or another generator uses the number", stamp(*n.own), why, k.format, stamp(last)),
		fmt.Sprintf("run %s to find duplicates, and never set or restore %s_internal.%s_clock by itself; the next ID is of the present again", e.command("audit %s", k.table), e.Config.Schema, k.format))
	return nil
}

func checkKeyAhead(ctx context.Context, e *Examination, k key) error {
	g, err := e.generators(ctx)
	if err != nil {
		return err
	}
	n, err := e.newest(ctx, k)
	now := e.serverNow()
	if err != nil || n.all == nil || n.all.Sub(now) <= largeSkew {
		return err
	}
	if last, known := g.last[k.format]; k.generated && known && n.own != nil && n.own.Sub(now) > largeSkew && n.own.Sub(last) > largeSkew {
		return nil // generator-behind
	}
	detail := fmt.Sprintf("has a key of %s (%s): a clock was wrong", stamp(*n.all), distance(*n.all, now))
	remedy := "find the program that generated it, and correct its clock; until that time, no new key sorts after this one"
	if n.all.Sub(now) > 30*day && (k.format == "snowflake" || k.format == "snowflake_si") {
		detail += ", or a program with another epoch created it"
		remedy = fmt.Sprintf("compare the layouts of your programs with the one of the database, %s; if that is the same, %s", e.layoutOf(k.format), remedy)
	}
	e.add(Problem, k.table, k.subject(), detail, remedy)
	return nil
}

const shortLifetime = 5 * year // warning below

func checkLifetimes(_ context.Context, e *Examination) error {
	const remedy = "move to a format or a layout that ends later"
	now := e.serverNow()
	for _, span := range e.timespans() {
		name := strings.ReplaceAll(span.format, "_", "-")
		end := span.last.UTC().Format(time.DateOnly)
		until := fmt.Sprintf("until %s (%s)", end, distance(span.last, now))
		switch left := span.last.Sub(now); {
		case left < 0:
			e.add(Problem, "", name, "ended on "+end+": IDs can't have later times", remedy)
		case left < shortLifetime:
			e.add(Warning, "", name, until, remedy)
		default:
			e.add(OK, "", name, until, "")
		}
	}
	return nil
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
