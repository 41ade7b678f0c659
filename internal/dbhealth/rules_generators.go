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

var generatorAhead = Rule{
	ID: "generator-ahead", Area: "generators",
	Means:  "the server generated IDs while its clock was ahead, so the defaults fail until it has caught up",
	Remedy: "wait, or reserve another node number and reset the sequence",
	check:  checkGenerators,
}

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

func checkGenerators(ctx context.Context, e *Examination) error {
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
		"end all sessions, since they keep their number; only then run SELECT setval('$s_internal.%[1]s_clock', 1)", format))
}

var generatorSubscribed = Rule{
	ID: "generator-subscribed", Area: "generators",
	Means:  "a subscription sets a sequence of the `next_` functions to the publisher's state, and a default that creates IDs meanwhile repeats some",
	Remedy: "subscribe to no publication `FOR ALL SEQUENCES`; copy other sequences with `setval`",
	check: func(ctx context.Context, e *Examination) error {
		// Since Postgres 19, a publication can have sequences.
		type subscribed struct{ sequence, subscription string }
		list, err := collect(ctx, e, func(s *subscribed) []any { return []any{&s.sequence, &s.subscription} }, `
			SELECT c.relname, quote_ident(u.subname) FROM pg_subscription_rel r JOIN pg_class c ON c.oid = r.srrelid JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_subscription u ON u.oid = r.srsubid WHERE n.nspname = '$s_internal' AND c.relkind = 'S' ORDER BY 1, 2`)
		for _, s := range list {
			e.add(Problem, "", e.sql("$s_internal."+s.sequence), "is a sequence of subscription "+s.subscription+": its next refresh sets it back, and the defaults repeat IDs if they create some meanwhile",
				"run ALTER SUBSCRIPTION "+s.subscription+" DROP PUBLICATION … with the publication of all sequences, or take the sequences out of it and run ALTER SUBSCRIPTION "+s.subscription+" REFRESH PUBLICATION; copy the sequences of other schemas with setval")
		}
		return err
	},
}

var generatorBehind = Rule{
	ID: "generator-behind", Area: "generators",
	Means:  "a table has keys with the node number of a default that are newer than the last ID of its `next_` function: its sequence was set back, or another generator uses the number",
	Remedy: "`sortkey audit`; reserve another number for the defaults",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		g, err := e.generators(ctx)
		if err != nil {
			return err
		}
		generated := func(k key) bool { return k.generated && sorts(k) }
		return e.eachKey(ctx, generated, func(k key) error {
			n, err := e.newest(ctx, k)
			last, known := g.last[k.format]
			if err != nil || !known || n.own == nil || n.own.Sub(last) <= largeSkew {
				return err
			}
			if now := e.serverNow(); n.own.Sub(now) > largeSkew {
				e.add(Problem, k.table, k.subject(), fmt.Sprintf("has a key of %s (%s) with the node number of a default, and the last ID of next_%s is of %s: the default repeats keys at that time",
					stamp(*n.own), distance(*n.own, now), k.format, stamp(last)), "reserve another node number for the defaults before that time")
				return nil
			}
			e.add(Warning, k.table, k.subject(), fmt.Sprintf("has a key of %s with the node number of a default, and the last ID of next_%s is of %s: its sequence was set back, or another generator uses the number",
				stamp(*n.own), k.format, stamp(last)), e.sql("run sortkey audit "+k.table+" to find duplicates, and never set or restore $s_internal."+k.format+"_clock by itself; the next ID is of the present again"))
			return nil
		})
	},
}

var keyAhead = Rule{
	ID: "key-ahead", Area: "generators",
	Means:  "a column has keys of the future: a clock was wrong, or a program with another epoch created them",
	Remedy: "correct the clock, or the layout of the program",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		g, err := e.generators(ctx)
		if err != nil {
			return err
		}
		return e.eachKey(ctx, sorts, func(k key) error {
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
		})
	},
}

// layoutOf returns the layout of a format, as the flags of the command.
func (e *Examination) layoutOf(format string) string {
	l, si := e.Config.Snowflake, e.Config.SnowflakeSI
	if format == "snowflake_si" {
		return layoutFlags(si.BaseClock, si.MachineBits, si.IndexBits)
	}
	return layoutFlags(l.Epoch, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}

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
