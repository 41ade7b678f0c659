package migrations

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
)

// advanceGates are the steps of a call before which a session stops, as the model calls them.
var advanceGates = []string{"clock", "next", "try", "compare", "set", "unlock", "probe"}

// advanceFunctions create a gate, at which a session waits until the test lets it pass, and a clock
// that stands still. A session reports its gate in the sequence at, and waits for a change of the
// sequence pass, because other sessions see these at once.
const advanceFunctions = `
	create schema test_gate;
	create sequence test_gate.window minvalue 0;
	create function test_gate.gate(gate integer) returns bigint language plpgsql as $$
	declare
		pass regclass := 'test_gate.pass_' || current_setting('test_gate.session');
		at regclass := 'test_gate.at_' || current_setting('test_gate.session');
		passed bigint := pg_sequence_last_value(pass);
	begin
		perform setval(at, passed * 16 + gate);
		while pg_sequence_last_value(pass) = passed loop
			perform pg_sleep(0.0001);
		end loop;
		return 0;
	end
	$$;
	create function test_gate.read() returns timestamptz language plpgsql as $$
	begin
		perform test_gate.gate(0);
		return test_clock.now();
	end
	$$`

// The SQL follows random traces of the model in migrations/advance_model_test.go. In each step, the
// session stops at the same gate as in the model, the sequence has the same value, and calls return
// the same values and errors. In this test, a window has the size that it has in the model.
func TestAdvanceTraces(t *testing.T) {
	traces, err := os.ReadFile("../../migrations/testdata/advance.txt")
	must(t, err)
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const schema, shift, counterBits = "model", 4, 1
		stale := func(shift, counterBits int) string {
			return fmt.Sprintf("& %d) << %d)) & %d", int64(1)<<(63-shift)-1, shift, ^(3<<shift | (1<<counterBits - 1)))
		}
		gate := func(name string) string { return fmt.Sprintf("test_gate.gate(%d)", slices.Index(advanceGates, name)) }
		db.Exec(t, advanceFunctions)
		genInstallClock(t, db, schema, "clock_timestamp()",
			stale(24, 14), stale(shift, counterBits),
			", 4, 24, 14, 0)", fmt.Sprintf(", 4, %d, %d, 0)", shift, counterBits),
			"max_wait CONSTANT float8 := 1000", "max_wait CONSTANT float8 := 8", // 2 windows
			"busy >= max_wait", "busy >= 1",
			"PERFORM pg_sleep(pause / 1000);", "",
			"(tstzrange_subdiff(clock_timestamp(),", "(tstzrange_subdiff(test_gate.read(),",
			"value := nextval(clock)", "value := "+gate("next")+" + nextval(clock)",
			"pg_try_advisory_lock(lock_class, lock_key) THEN ARRAY", gate("try")+" = 0 AND pg_try_advisory_lock(lock_class, lock_key) THEN ARRAY",
			"WHEN pg_sequence_last_value(clock)", "WHEN "+gate("compare")+" + pg_sequence_last_value(clock)",
			"setval(clock, target)", "setval(clock, "+gate("set")+" + target)",
			"pg_advisory_unlock(lock_class, lock_key)::integer]", "("+gate("unlock")+" = 0 AND pg_advisory_unlock(lock_class, lock_key))::integer]",
			"EXIT WHEN CASE WHEN pg_try", "EXIT WHEN CASE WHEN "+gate("probe")+" = 0 AND pg_try")
		genSetClock(t, db, fmt.Sprintf("timestamptz '%s' + pg_sequence_last_value('test_gate.window') * interval '4 ms'",
			idtype.DefaultSnowflakeLayout().Time(0).Format("2006-01-02 15:04:05.000-07")))
		db.Exec(t, "create or replace function model_internal.snowflake_bits(value bigint) returns bigint language sql immutable return value")
		r := &advanceRun{db: db, admin: db.Conn(t)}
		for i := range r.sessions {
			db.Exec(t, fmt.Sprintf("create sequence test_gate.pass_%[1]d; create sequence test_gate.at_%[1]d; select nextval('test_gate.at_%[1]d')", i))
			r.connect(t, i)
		}
		lines, steps := slices.Collect(strings.Lines(string(traces))), 0
		for _, trace := range lines[:pgtest.Scaled(len(lines)/8, len(lines))] {
			exec(t, r.admin, "select setval('model_internal.snowflake_clock', 2, false), setval('test_gate.window', 1)")
			for i, step := range strings.Fields(trace) {
				if got := r.step(t, step); got != step {
					t.Fatalf("step %d: expected %s, got %s; in: %s", i, step, got, trace)
				}
				steps++
			}
			for _, s := range r.sessions {
				exec(t, s.conn, "select pg_advisory_unlock_all()") // after errors
			}
		}
		t.Logf("%d steps", steps)
		if steps == 0 {
			t.Error("expected traces, got none")
		}
	})
}

// An advanceRun runs traces on a server.
type advanceRun struct {
	db       *pgtest.DB
	admin    *pgx.Conn
	sessions [3]advanceSession
	value    int64 // of the clock's sequence, from look
}

type advanceSession struct {
	conn   *pgx.Conn
	result chan string // of the current call
	passed int64       // gates
	gate   string      // at which the session waits
}

// connect opens a session.
func (r *advanceRun) connect(t *testing.T, i int) {
	t.Helper()
	r.sessions[i] = advanceSession{conn: r.db.Conn(t)}
	exec(t, r.sessions[i].conn, fmt.Sprintf("set test_gate.session = %d", i))
	r.pass(t, i)
}

// pass lets a session pass its gate. After a call has ended, it makes the last report outdated.
func (r *advanceRun) pass(t *testing.T, i int) {
	t.Helper()
	r.sessions[i].passed = pgtest.Value[int64](t, r.admin, fmt.Sprintf("select nextval('test_gate.pass_%d')", i))
}

// look returns the last report of a session, and reads the value of the clock's sequence
// after it.
func (r *advanceRun) look(t *testing.T, i int) (at int64) {
	t.Helper()
	must(t, r.admin.QueryRow(t.Context(), fmt.Sprintf(`select pg_sequence_last_value('test_gate.at_%d'),
		coalesce(pg_sequence_last_value('model_internal.snowflake_clock'), 1)`, i)).Scan(&at, &r.value))
	return at
}

// step does a step such as now=2, take=31 or 0:unlock=16>16, and returns it with the actual results.
func (r *advanceRun) step(t *testing.T, step string) string {
	t.Helper()
	what, want, _ := strings.Cut(step, "=")
	who, place, ofSession := strings.Cut(what, ":")
	result := ""
	switch {
	case what == "now":
		exec(t, r.admin, fmt.Sprintf("select setval('test_gate.window', %s)", want))
		return step
	case what == "take":
		exec(t, r.admin, `select nextval('model_internal.snowflake_clock')
			from generate_series(coalesce(pg_sequence_last_value('model_internal.snowflake_clock'), 1) % 16 + 1, 15)`)
		r.look(t, 0)
	case ofSession:
		i, err := strconv.Atoi(who)
		must(t, err)
		result = r.move(t, i, place)
	default:
		t.Fatalf("unknown step %s", step)
	}
	return fmt.Sprintf("%s=%d%s", what, r.value, result)
}

// move does a step of a session, and returns the value or the error if it ends the call.
func (r *advanceRun) move(t *testing.T, i int, place string) string {
	t.Helper()
	s := &r.sessions[i]
	switch place {
	case "cancel":
		exec(t, r.admin, "select pg_cancel_backend($1)", s.conn.PgConn().PID())
		if result := <-s.result; result != "!57014" { // query_canceled
			return result
		}
		r.pass(t, i)
		r.look(t, i)
		return ""
	case "terminate":
		exec(t, r.admin, "select pg_terminate_backend($1, 10000)", s.conn.PgConn().PID())
		r.connect(t, i)
		r.look(t, i)
		return ""
	case "call":
		conn, result := s.conn, make(chan string, 1)
		s.result = result
		go func() {
			var value int64
			if err := conn.QueryRow(context.WithoutCancel(t.Context()), "select model.next_snowflake(0)").Scan(&value); err != nil {
				result <- "!" + pgerror.State(err)
				return
			}
			result <- fmt.Sprintf(">%d", value)
		}()
	default:
		if place == "judge" {
			place = "clock"
		}
		if s.gate != place {
			return " at " + s.gate
		}
		r.pass(t, i)
	}
	for {
		select {
		case result := <-s.result:
			r.pass(t, i)
			r.look(t, i)
			return result
		case <-time.After(100 * time.Microsecond): // the session sleeps as long
		}
		if at := r.look(t, i); at/16 == s.passed {
			s.gate = advanceGates[at%16]
			return ""
		}
	}
}
