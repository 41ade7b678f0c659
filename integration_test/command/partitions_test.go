package command_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// managedEvents are statements that create a managed table, named as in SQL.
func managedEvents(table, options string) string {
	return fmt.Sprintf(`CREATE TABLE %[1]s (id sortkey.snowflake PRIMARY KEY, v text) PARTITION BY RANGE (id);
		SELECT sortkey.manage_partitions('%[1]s', every => '1 day'%[2]s);`, table, options)
}

// oldPartition are statements that create a partition of 2021 and before.
func oldPartition(table string) string {
	return fmt.Sprintf(`DO $$ BEGIN EXECUTE 'CREATE TABLE %[1]s_old PARTITION OF %[1]s FOR VALUES FROM (1) TO (' || sortkey.snowflake_floor('2022-01-01Z') || ')'; END $$;`, table)
}

// days returns a function that returns the midnight n days from now, in UTC. A test that begins right before a
// midnight waits for it.
func days(t *testing.T) func(n int) time.Time {
	t.Helper()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if left := time.Until(today.AddDate(0, 0, 1)); left < time.Minute {
		time.Sleep(left + time.Second)
		today = today.AddDate(0, 0, 1)
	}
	return func(n int) time.Time { return today.AddDate(0, 0, n) }
}

// durations removes the durations from the output of run.
func durations(out string) string {
	return regexp.MustCompile(`(?m) in ([0-9]+m)?[0-9.]+[mµ]?s$`).ReplaceAllString(out, "")
}

func TestPartitions(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		day := days(t)
		date := func(n int) string { return day(n).Format(time.DateOnly) }
		name := func(n int) string { return "app.events_p" + day(n).Format("20060102") }
		for _, subcommand := range []string{"list", "run"} {
			wantFailure(t, sortkey(t, db, "partitions", subcommand), 2, `schema "sortkey" of this database has no installation; run sortkey migrate up`)
		}
		must(t, db, "migrate up")
		wantSame(t, must(t, db, "partitions list"), "no managed tables: call sortkey.manage_partitions for a partitioned table\n")
		wantSame(t, must(t, db, "partitions list -o json")+must(t, db, "partitions run"), "")

		db.Exec(t, "CREATE SCHEMA app; "+managedEvents("app.events", ", premake => 2, retention => '90 days', retention_action => 'drop'"))
		wantSame(t, must(t, db, "partitions list"), strings.TrimPrefix(`
TABLE       FORMAT     EVERY  PREMAKE  RETENTION           PARTITIONS  SIZE  HORIZON  DEFAULT  TO DO
app.events  snowflake  1 day        2  drop after 90 days           0  0 B   -        -        create 3, default 1

  problem  app.events: no partition covers the present: inserts fail [partition-horizon]
           → run sortkey partitions run regularly, or CALL sortkey.maintain_partitions()
`, "\n"))
		var steps []string
		for n := range 3 {
			steps = append(steps, fmt.Sprintf("create %s (%s to %s)", name(n), date(n), date(n+1)))
		}
		steps = append(steps, "default app.events_default")
		plan := must(t, db, "partitions run --dry-run")
		for _, step := range steps {
			wantParts(t, plan, "-- "+step+"\nBEGIN;\nCREATE TABLE ")
		}
		planned := objects(t, must(t, db, "partitions run --dry-run app.events -o json"))
		if len(planned) != len(steps) {
			t.Fatalf("plan in JSON: got %v", planned)
		}
		wantFields(t, planned[0], fmt.Sprintf(`{"table": "app.events", "action": "create", "partition": %q, "from": "%sT00:00:00Z", "to": "%sT00:00:00Z", "outcome": "planned"}`, name(0), date(0), date(1)))
		wantParts(t, planned[0]["sql"].(string), "ATTACH PARTITION")
		wantFields(t, planned[len(planned)-1], `{"action": "default", "from": null, "to": null}`)

		// The plan is a file for psql: take one of its steps that way.
		first, _, _ := strings.Cut(plan, "COMMIT;\n")
		db.Exec(t, first+"COMMIT")
		wantSame(t, durations(must(t, db, "partitions run")), strings.Join(steps[1:], "\n")+"\n")
		wantSame(t, must(t, db, "partitions run"), "")
		wantSame(t, must(t, db, "partitions run --dry-run"), "nothing to do\n")
		wantMatch(t, must(t, db, "partitions list"), `^app\.events .* 3\x20{2}64 KiB `+date(3)+` \([23] days from now\) 0\x20{8}-$`)
		db.Exec(t, "ALTER DATABASE "+db.Name+" SET intervalstyle = iso_8601")
		table := objects(t, must(t, db, "partitions list -o json"))[0]
		seconds := table["horizon_seconds"].(float64)
		if left := time.Until(day(3)).Seconds(); seconds < left-60 || seconds > left+60 {
			t.Errorf("the horizon is in %v s, want %v", seconds, left)
		}
		// The form of the intervals doesn't depend on the database's style.
		wantFields(t, table, `{"table": "app.events", "format": "snowflake", "every": "1 day", "premake": 2, "retention": "90 days", "retention_action": "drop",
			"default_partition": "app.events_default", "default_rows": 0, "partitions": 3, "bytes": 65536, "horizon": "`+date(3)+`T00:00:00Z", "steps": {}}`)
	})
}

// Rows of the default partition are moved, and old partitions dropped or detached.
func TestPartitionsRun(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		day := days(t)
		date := func(n int) string { return day(n).Format(time.DateOnly) }
		db.Exec(t, managedEvents("events", ", retention => '7 days', retention_action => 'drop'")+managedEvents("visits", ", retention => '7 days'"))
		must(t, db, "partitions run")
		// 10,001 rows of three days ago, and a partition that ended 8 days ago.
		db.Exec(t, fmt.Sprintf(`INSERT INTO events SELECT sortkey.snowflake_floor('%s') + i FROM generate_series(0, 10000) i;
			DO $$ BEGIN
				EXECUTE format('CREATE TABLE events_old PARTITION OF events FOR VALUES FROM (%%s) TO (%%s)', sortkey.snowflake_floor('%[2]s'), sortkey.snowflake_floor('%[3]s'));
				EXECUTE format('CREATE TABLE visits_old PARTITION OF visits FOR VALUES FROM (%%s) TO (%%s)', sortkey.snowflake_floor('%[2]s'), sortkey.snowflake_floor('%[3]s'));
			END $$; ANALYZE events_default`, date(-3)+"Z", date(-9)+"Z", date(-8)+"Z"))
		wantMatch(t, must(t, db, "partitions list"), `^public\.events .* 6 .* from now\) ~10,001\x20{2}drain 1, drop 1\npublic\.visits .* 6 .* 0\x20{8}detach 1$`)
		wantSame(t, durations(must(t, db, "partitions run")), fmt.Sprintf("drain public.events_p%s (%s to %s)\ndrop public.events_old (%s to %s)\ndetach public.visits_old (%[4]s to %[5]s)\n",
			day(-3).Format("20060102"), date(-3), date(-2), date(-9), date(-8)))

		db.Exec(t, "ANALYZE events")
		wantMatch(t, must(t, db, "partitions list events"),
			`\APARTITION FROM TO SIZE ROWS\npublic\.events_p\d{8}\x20{2}`+date(-3)+`\x20{2}`+date(-2)+` .* 10,001\n(.*\n){5}public\.events_default\x20{4}default .* 0\n\z`)
		partitions := objects(t, must(t, db, "partitions list public.events -o json"))
		wantFields(t, partitions[0], fmt.Sprintf(`{"from": "%sT00:00:00Z", "to": "%sT00:00:00Z", "rows": 10001}`, date(-3), date(-2)))
		if bytes := partitions[0]["bytes"].(float64); bytes < 100_000 {
			t.Errorf("list events: got %v bytes", bytes)
		}
		wantFields(t, partitions[6], `{"partition": "public.events_default", "from": null, "to": null}`)
		wantFailure(t, sortkey(t, db, "partitions list visitors"), 2, `relation "visitors" does not exist`)
		wantFailure(t, sortkey(t, db, "partitions list events_default"), 2, "partitions of events_default are not managed; call sortkey.manage_partitions")
		wantFailure(t, sortkey(t, db, "partitions run events_default"), 2, "partitions of public.events_default are not managed", "Call sortkey.manage_partitions for the table first")

		// The horizon ends at a gap. It has passed if the current partition is missing.
		wantHorizon := func(want string) {
			t.Helper()
			wantFields(t, objects(t, must(t, db, "partitions list -o json"))[1], `{"table": "public.visits", "horizon": `+want+`}`)
		}
		db.Exec(t, "DROP TABLE visits_p"+day(2).Format("20060102"))
		wantHorizon(`"` + date(2) + `T00:00:00Z"`)
		db.Exec(t, "DROP TABLE visits_p"+day(0).Format("20060102"))
		wantHorizon("null")
		db.Exec(t, fmt.Sprintf("DO $$ BEGIN EXECUTE format('CREATE TABLE visits_last PARTITION OF visits FOR VALUES FROM (MINVALUE) TO (%%s)', sortkey.snowflake_floor('%sZ')); END $$", date(0)))
		wantHorizon(`"` + date(0) + `T00:00:00Z"`)
		db.Exec(t, "DROP TABLE visits_last; DO $$ BEGIN EXECUTE 'CREATE TABLE visits_rest PARTITION OF visits FOR VALUES FROM (MINVALUE) TO (' || sortkey.snowflake_floor('"+date(1)+"Z') || ')'; END $$")
		wantMatch(t, must(t, db, "partitions list visits"), `^public\.visits_rest -infinity `+date(1)+` `)
	})
}

// A step that doesn't get its locks, or fails, makes the exit code 1. Other tables are
// maintained.
func TestPartitionsLeft(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, managedEvents("a", ", default_partition => false, retention => '1 day'")+managedEvents("b", "")+managedEvents("c", "")+oldPartition("a"))
		// A reader delays only the step that removes a partition.
		release := hold(t, db, "SELECT FROM a")
		db.Exec(t, "CREATE TABLE b_default ()")

		r := sortkey(t, db, "partitions run --lock-timeout 1ms -o json")
		var outcomes []string
		for _, step := range objects(t, r.out) {
			outcomes = append(outcomes, fmt.Sprintf("%s %s %s", step["table"], step["action"], step["outcome"]))
			if problem, _ := step["problem"].(string); (step["outcome"] == "done") != (problem == "") {
				t.Errorf("got %v", step)
			}
		}
		want := slices.Concat(
			slices.Repeat([]string{"public.a create done"}, 5), []string{"public.a detach locked"},
			slices.Repeat([]string{"public.b create done"}, 5), []string{"public.b default failed"},
			slices.Repeat([]string{"public.c create done"}, 5), []string{"public.c default done"})
		wantFailure(t, r, 1)
		wantSame(t, outcomes, want)
		wantFailure(t, sortkey(t, db, "partitions run --lock-timeout 1ms"), 1,
			"locked: detach public.a_old: ", "lock held by another transaction\n",
			"failed: default public.b_default: cannot create public.b_default as a partition of public.b DEFAULT: a relation with that name exists")
		wantFailure(t, sortkey(t, db, "partitions run a --lock-timeout 1ms"), 1, "locked: detach public.a_old: ")
		release()
		db.Exec(t, "DROP TABLE b_default")
		wantSame(t, durations(must(t, db, "partitions run")), "detach public.a_old (2021-01-01 to 2022-01-01)\ndefault public.b_default\n")
	})
}

// A role without all privileges gets a partial list.
func TestPartitionsReadOnly(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, managedEvents("a", ", default_partition => false")+managedEvents("b", ""))
		must(t, db, "partitions run")
		reader, name := asRole(t, db)
		wantFailure(t, sortkey(t, reader, "partitions list"), 2, "GRANT USAGE ON SCHEMA sortkey ")

		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		r := sortkey(t, reader, "partitions list")
		if r.code != 2 || strings.Count(r.out, "?") != 3 || strings.Count(r.errs, "run GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO "+name) != 1 ||
			!strings.Contains(r.errs, "permission denied for table b_default (SQLSTATE 42501); connect as the owner of table b_default, or as a role with privileges on it") {
			t.Errorf("USAGE on one schema: got %+v", r)
		}
		for _, args := range []string{"list a", "run --dry-run", "run"} {
			wantFailure(t, sortkey(t, reader, "partitions "+args), 2, "run GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO "+name)
		}

		db.Exec(t, "CREATE SCHEMA app")
		if r := sortkey(t, reader, "partitions list app.events"); r.code != 2 || strings.Contains(r.errs, "GRANT") {
			t.Errorf("a schema of the user: got %+v", r)
		}

		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey_internal TO "+name)
		r = sortkey(t, reader, "partitions list -o json")
		tables := objects(t, r.out)
		if len(tables) != 2 || tables[0]["problem"] != nil || tables[0]["steps"] == nil || tables[1]["horizon"] == nil || tables[1]["steps"] != nil ||
			!strings.Contains(tables[1]["problem"].(string), "permission denied for table b_default") || r.code != 2 || !strings.Contains(r.errs, "public.b: ERROR: permission denied for table b_default") {
			t.Errorf("USAGE on both schemas: got %+v", r)
		}
		db.Exec(t, "GRANT SELECT ON b_default TO "+name)
		must(t, reader, "partitions list")
		must(t, reader, "partitions list b")
		must(t, reader, "partitions run --dry-run")
		db.Exec(t, "SELECT sortkey.manage_partitions('a', '1 day', premake => 5, default_partition => false)")
		wantFailure(t, sortkey(t, reader, "partitions run"), 1, "failed: ", name+" does not own public.a; the owner is postgres; Use role postgres")
	})
}
