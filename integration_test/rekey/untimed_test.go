package rekey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Rows and formats without usable times.

// Inspect names the column and a row without a time.
func TestRowsWithoutTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, change, note, problem string }{
		{"NULL", "ALTER TABLE events ALTER created_at DROP NOT NULL; UPDATE events SET created_at = NULL WHERE id IN (5, 6)", "column public.events.created_at is NULL in 2 rows, such as the one with key 5; they get IDs of 2021-01-01T00:00:00Z, the first instant of the format, in order; set Times.Start for another time", ""},
		{"infinity", "UPDATE events SET created_at = 'infinity' WHERE id = 7", "", "column public.events.created_at is infinite in 1 rows, such as the one with key 7; correct these times, or set Times.Start to the time of such rows"},
		{"-infinity", "UPDATE events SET created_at = '-infinity' WHERE id = 7", "", "column public.events.created_at is infinite in 1 rows, such as the one with key 7; correct these times, or set Times.Start to the time of such rows"},
		{"without a time zone", "ALTER TABLE events ALTER created_at TYPE timestamp; UPDATE events SET created_at = 'infinity' WHERE id = 7", "", "column public.events.created_at is infinite in 1 rows, such as the one with key 7; correct these times, or set Times.Start to the time of such rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, fmt.Sprintf(events, 10)+";"+c.change)
				text := func(list []rekey.Problem) string {
					var lines []string
					for _, p := range list {
						lines = append(lines, p.String())
					}
					return strings.Join(lines, "\n")
				}
				spec := eventsSpec()
				plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
				must(t, err)
				if note, problem := text(plan.Notes), text(plan.Problems); note != c.note || problem != c.problem {
					t.Errorf("expected the note %q and the problem %q, got %q and %q", c.note, c.problem, note, problem)
				}
				spec.Keys[0].Times.Start = sourceStart
				plan, err = rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
				must(t, err)
				if len(plan.Notes)+len(plan.Problems) > 0 {
					t.Errorf("with Start: expected no note and no problem, got %v and %v", plan.Notes, plan.Problems)
				}
				mustRun(t, db.SQL(t), spec, rekey.Options{}, steps...)
				if n := pgtest.Value[int](t, db.Conn(t), "SELECT count(*) FROM events WHERE sortkey.snowflake_time(id) < '2021-01-01'::timestamptz + interval '1 day' OR sortkey.snowflake_time(id) > now()"); n != 0 {
					t.Errorf("expected times since Start, got %d others", n)
				}
			})
		})
	}
}

// Rows whose time becomes infinite or NULL after expand don't end the backfill.
func TestTimesThatBecomeInfinite(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10))
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepExpand)
		db.Exec(t, "UPDATE events SET created_at = 'infinity' WHERE id = 7; UPDATE events SET created_at = '-infinity' WHERE id = 3; ALTER TABLE events ALTER created_at DROP NOT NULL; UPDATE events SET created_at = NULL WHERE id = 5")
		mustRun(t, db.SQL(t), eventsSpec(), rekey.Options{}, rekey.StepBackfill)
		if got := pgtest.Value[string](t, db.Conn(t), "SELECT string_agg(id::text, ' ' ORDER BY rekey_id) FROM (SELECT * FROM events ORDER BY rekey_id LIMIT 3) e WHERE sortkey.snowflake_time(rekey_id) < '2021-01-02'"); got != "3 5 7" {
			t.Errorf("expected the rows without a time at the first instant, got %s", got)
		}
	})
}

// Inspect says why a format can't be used.
func TestUnknownFormats(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(events, 10))
		for format, want := range map[rekey.Format]string{"spread64": "which doesn't sort by time", "snowflakes": "which is unknown"} {
			spec := eventsSpec()
			spec.Keys[0].Format = format
			plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
			must(t, err)
			if len(plan.Problems) != 1 || !strings.HasSuffix(plan.Problems[0].Reason, want) {
				t.Errorf("%s: expected a problem %q, got %v", format, want, plan.Problems)
			}
		}
	})
}
