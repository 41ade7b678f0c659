package dbhealth

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
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
