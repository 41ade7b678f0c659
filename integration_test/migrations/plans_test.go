package migrations

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// plansFormats are those of the first installation, and one whose times need
// the other expression of an instant.
func plansFormats(t *testing.T, db *pgtest.DB) []*parityFormat {
	t.Helper()
	pool, late := db.SQL(t), parityConfigs[3]
	must(t, migrations.Up(t.Context(), pool, late))
	return append(parityInstall(t, db, 1), paritySnowflake(late.Schema, late.Snowflake))
}

// plansExplain is the plan of a statement, a line each.
func plansExplain(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	rows, _ := conn.Query(t.Context(), "EXPLAIN (COSTS OFF, VERBOSE) "+sql)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, "\n")
}

var plansIndexCond = regexp.MustCompile(`(?m)^ *Index Cond: (.*)$`)

// A window of time is one of the index, however its ends are given. They are
// constants to the planner where they can be, so that it knows how many rows
// to expect.
func TestPlansOfWindows(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		exec := func(sql string) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		for i, f := range plansFormats(t, db) {
			if f.floor == nil {
				continue
			}
			floor, first := f.function("floor"), parityInstant(f.first)
			for _, column := range []string{f.column, f.schema + "." + f.name} {
				table := fmt.Sprintf("t%d_%d", i, len(column))
				exec("CREATE TABLE " + table + " (id " + column + " PRIMARY KEY, filler text NOT NULL DEFAULT repeat('x', 100))")
				// A row a minute for four days: now and after the format's first hour.
				exec(fmt.Sprintf(`INSERT INTO %s SELECT %s(t) FROM generate_series(1, 6000) i, LATERAL (SELECT CASE WHEN i %% 2 = 0 OR now() < '%[3]s'
					THEN timestamptz '%[3]s' + i * interval '1 minute' ELSE now() - i * interval '1 minute' END AS t) x`, table, floor, first))
				exec("ANALYZE " + table)
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

				check := func(kind, plan string, want ...string) {
					t.Helper()
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
				check("literals", plansExplain(t, conn, fmt.Sprintf(window, "'"+literals[0]+"'", "'"+literals[1]+"'")), constants...)
				exec("SET plan_cache_mode = force_custom_plan")
				exec(prepared)
				check("custom plan", plansExplain(t, conn, execute), constants...)
				exec("SET plan_cache_mode = force_generic_plan")
				check("generic plan", plansExplain(t, conn, execute), floor+"($1)", floor+"($2)")
				exec("RESET plan_cache_mode")
				exec("DEALLOCATE w")
				// What is known when the statement begins.
				if f.first.Before(parityUTC("2100-01-01T00:00:00Z")) {
					check("now()", plansExplain(t, conn, fmt.Sprintf(window, "now() - interval '2 hours'", "now() - interval '1 hour'")), floor+"((now()", floor+"((now()")
				}
				check("an expression", plansExplain(t, conn, fmt.Sprintf(window, from, to)), floor+"(('")
				check("open end", plansExplain(t, conn, fmt.Sprintf(window, "'-infinity'", "'"+literals[0]+"'")), "'"+f.lo+"'::"+f.column)

				// And they are the rows of that hour.
				var n int
				must(t, conn.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM ("+window+") w", "'"+literals[0]+"'", "'"+literals[1]+"'")).Scan(&n))
				if n != 30 && n != 60 {
					t.Errorf("%s: %d rows in an hour, want one every two minutes", f.name, n)
				}
			}
		}
	})
}

// In a query the functions of time and text are what they are made of, built-in
// functions all, and what they make of a constant is a constant.
func TestPlansInline(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		r := idtest.Rand("inline")
		for i, f := range plansFormats(t, db) {
			for _, column := range []string{f.column, f.schema + "." + f.name} {
				table := fmt.Sprintf("t%d_%d", i, len(column))
				db.Exec(t, "CREATE TABLE "+table+" (id "+column+")")
				for _, function := range []string{"time", "text"} {
					plan := plansExplain(t, conn, "SELECT "+f.function(function)+"(id) FROM "+table)
					if strings.Contains(plan, f.schema+".") || !strings.Contains(plan, "Output: CASE WHEN ") && !(f.name == "spread64" && strings.Contains(plan, "Output: to_timestamp(")) {
						t.Errorf("%s(%s) isn't inlined:\n%s", f.function(function), column, plan)
					}
				}
			}
			id := f.random(r)
			text, err := f.text(id)
			must(t, err)
			at, _ := f.time(id)
			literal := "'" + id + "'::" + f.column
			for expression, want := range map[string]string{
				f.function("time") + "(" + literal + ")":               "Output: '" + at.UTC().Format("2006-01-02 15:04:05.999999") + "+00'::timestamp with time zone",
				f.function("text") + "(" + literal + ")":               "Output: '" + text + "'::text",
				f.function("from_text") + "('" + text + "')":           "Output: '" + id + "'::" + f.column,
				f.function("text") + "(" + literal + ") || 'constant'": "Output: '" + text + "constant'::text",
			} {
				if plan := plansExplain(t, conn, "SELECT "+expression); !strings.Contains(plan, want) {
					t.Errorf("%s: expected %s, got\n%s", expression, want, plan)
				}
			}
		}
	})
}

// What gives the same for the same values says so: it can be indexed, and run
// by the workers of a parallel query.
func TestPlansImmutable(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		formats := parityInstall(t, db, 1)
		for _, f := range formats {
			db.Exec(t, fmt.Sprintf(`CREATE TABLE t_%s (id %s, code text, at timestamptz);
				CREATE INDEX ON t_%[1]s (%[3]s(id)); CREATE INDEX ON t_%[1]s (%[4]s(id)); CREATE INDEX ON t_%[1]s (%[5]s(code))`,
				f.name, f.column, f.function("time"), f.function("text"), f.function("from_text")))
			if f.floor != nil {
				db.Exec(t, fmt.Sprintf("CREATE INDEX ON t_%s (%s(at))", f.name, f.function("floor")))
			}
		}
		rows, _ := db.Conn(t).Query(t.Context(), `SELECT oid::regprocedure::text || ' ' || provolatile::text || proparallel::text FROM pg_proc
			WHERE pronamespace = 'sortkey'::regnamespace AND proname ~ ('^(' || $1::text || ')_(time|parts|text|from_text|floor)$')`, "snowflake|snowflake_si|uid60|spread64|sno")
		functions, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		if len(functions) != 24 { // five of each format, less the floor of Spread64
			t.Errorf("%d functions: %q", len(functions), functions)
		}
		for _, f := range functions {
			if !strings.HasSuffix(f, " is") {
				t.Errorf("%s isn't IMMUTABLE PARALLEL SAFE", f)
			}
		}
	})
}
