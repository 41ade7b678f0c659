package migrations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// plansFormats returns the formats of the first installation, and a format that uses
// the other expression for times.
func plansFormats(t *testing.T, db *pgtest.DB) []*format {
	t.Helper()
	late := parityConfigs[3]
	up(t, db, late)
	return append(parityInstall(t, db, 1), formatsOf(late)[0])
}

var plansIndexCond = regexp.MustCompile(`(?m)^ *Index Cond: (.*)$`)

// Queries inline the functions of times, node numbers and texts, which then consist of built-in
// functions. With a constant argument, they are constants.
//
// A query by time is a range of the index, in whatever form its bounds are. If
// possible, the bounds are constants to the planner, which can then estimate the rows.
func TestPlans(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn, r := db.Conn(t), idtest.Rand("inline")
		verbose := func(query string) string {
			t.Helper()
			return explain(t, conn, "COSTS OFF, VERBOSE", query)
		}
		for i, f := range plansFormats(t, db) {
			id := f.random(r)
			text, err := f.text(id)
			must(t, err)
			at, _ := f.time(id)
			literal := "'" + id + "'::" + f.column
			for expression, want := range map[string]string{
				f.call("time", literal):                    "Output: '" + at.UTC().Format("2006-01-02 15:04:05.999999") + "+00'::timestamp with time zone",
				f.call("text", literal):                    "Output: '" + text + "'::text",
				f.call("from_text", "'"+text+"'"):          "Output: '" + id + "'::" + f.column,
				f.call("text", literal) + " || 'constant'": "Output: '" + text + "constant'::text",
			} {
				if plan := verbose("SELECT " + expression); !strings.Contains(plan, want) {
					t.Errorf("%s: expected %s, got\n%s", expression, want, plan)
				}
			}
			functions := []string{"time"}
			if !f.numeric() {
				functions = append(functions, "text")
			}
			if f.hasNodes() {
				functions = append(functions, "node")
			}
			floor, first := f.function("floor"), parityInstant(f.first)
			for _, column := range []string{f.column, f.schema + "." + f.name} {
				table := fmt.Sprintf("t%d_%d", i, len(column))
				exec(t, conn, "CREATE TABLE "+table+" (id "+column+" PRIMARY KEY, filler text NOT NULL DEFAULT repeat('x', 100))")
				for _, function := range functions {
					plan := verbose("SELECT " + f.function(function) + "(id) FROM " + table)
					want := "Output: CASE WHEN "
					if f.name == "spread64" {
						want = map[string]string{"time": "Output: to_timestamp(", "node": "Output: ((", "text": want}[function]
					}
					if strings.Contains(plan, f.schema+".") || !strings.Contains(plan, want) {
						t.Errorf("%s(%s) isn't inlined:\n%s", f.function(function), column, plan)
					}
				}
				if f.floor == nil {
					continue
				}
				// A row per two minutes before now, and one per two minutes after the start of the format.
				exec(t, conn, fmt.Sprintf(`INSERT INTO %s SELECT %s(t) FROM generate_series(1, 6000) i, LATERAL (SELECT CASE WHEN i %% 2 = 0 OR now() < '%[3]s'
					THEN timestamptz '%[3]s' + i * interval '1 minute' ELSE now() - i * interval '1 minute' END AS t) x`, table, floor, first))
				exec(t, conn, "ANALYZE "+table)
				from, to := "timestamptz '"+first+"' + interval '1 hour'", "timestamptz '"+first+"' + interval '2 hours'"
				literals := [2]string{parityInstant(f.first.Add(60 * 60e9)), parityInstant(f.first.Add(2 * 60 * 60e9))}
				window := "SELECT filler FROM " + table + " WHERE id >= " + floor + "(%s) AND id < " + floor + "(%s)"
				prepared := fmt.Sprintf("PREPARE w (timestamptz, timestamptz) AS "+window, "$1", "$2")
				execute := fmt.Sprintf("EXECUTE w ('%s', '%s')", literals[0], literals[1])
				lo, err := f.floor(f.first.Add(60 * 60e9))
				must(t, err)
				hi, err := f.floor(f.first.Add(2 * 60 * 60e9))
				must(t, err)
				constants := []string{"'" + lo + "'::" + f.column, "'" + hi + "'::" + f.column}

				check := func(kind, query string, want ...string) {
					t.Helper()
					plan := verbose(query)
					m := plansIndexCond.FindStringSubmatch(plan)
					if m == nil || strings.Count(m[1], "<") != 1 || strings.Count(m[1], ">=") != 1 || strings.Contains(plan, "Filter:") {
						t.Errorf("%s of %s, %s: expected both ends in the condition of an index, got\n%s", f.name, column, kind, plan)
						return
					}
					for _, w := range want {
						if !strings.Contains(m[1], w) {
							t.Errorf("%s of %s, %s: expected %s in the condition of the index, got\n%s", f.name, column, kind, w, plan)
						}
					}
				}
				check("literals", fmt.Sprintf(window, "'"+literals[0]+"'", "'"+literals[1]+"'"), constants...)
				exec(t, conn, "SET plan_cache_mode = force_custom_plan")
				exec(t, conn, prepared)
				check("custom plan", execute, constants...)
				exec(t, conn, "SET plan_cache_mode = force_generic_plan")
				check("generic plan", execute, floor+"($1)", floor+"($2)")
				exec(t, conn, "RESET plan_cache_mode")
				exec(t, conn, "DEALLOCATE w")
				// Bounds that are known when the statement begins.
				if f.first.Before(parityUTC("2100-01-01T00:00:00Z")) {
					check("now()", fmt.Sprintf(window, "now() - interval '2 hours'", "now() - interval '1 hour'"), floor+"((now()", floor+"((now()")
				}
				check("an expression", fmt.Sprintf(window, from, to), floor+"(('")
				check("open end", fmt.Sprintf(window, "'-infinity'", "'"+literals[0]+"'"), "'"+f.lo+"'::"+f.column)

				// The query returns the rows of that hour.
				wantValue(t, conn, fmt.Sprintf("SELECT count(*) IN (30, 60) FROM ("+window+") w", "'"+literals[0]+"'", "'"+literals[1]+"'"), true)
			}
		}
	})
}
