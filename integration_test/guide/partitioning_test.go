package guide

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

var (
	// Plans in pages omit the scan types and conditions of partitions.
	scanOf    = regexp.MustCompile(`(?:Seq Scan|Index Scan using \S+|Index Only Scan using \S+|Bitmap Heap Scan) on (\S+).*`)
	condition = regexp.MustCompile(`^ *(Filter|Index Cond|Recheck Cond|-> +Bitmap Index Scan)`)
)

// plan formats the output of EXPLAIN as pages show it.
func plan(explained []string) string {
	var out strings.Builder
	for _, line := range explained {
		if !condition.MatchString(line) {
			fmt.Fprintln(&out, scanOf.ReplaceAllString(line, "Scan on $1"))
		}
	}
	return out.String()
}

// The SQL of docs/partitioning.md works.
func TestPartitioningSQL(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		lines(t, conn, "SET timezone = 'UTC'")
		now := time.Now().UTC()
		wantPlan := func(what, query, want string) {
			t.Helper()
			if got := plan(lines(t, conn, query)); got != want {
				t.Errorf("%s: got\n%swant\n%s", what, got, want)
			}
		}
		for _, p := range docs.SQL(t, "partitioning", "table", "manage", "window", "plan", "maintain", "log", "publication", "check", "attach", "partman-table", "partman") {
			switch p.Name {
			case "table":
				p.Run(t, db)
			case "manage":
				p.Run(t, db)
				// The plans in the page are for partitions of November 2026.
				db.Exec(t, "CALL sortkey.maintain_partitions(at => '2026-11-02 12:00Z')")
			case "window":
				wantPlan(p.Name, p.SQL, p.Output)
				// A filter on the time of the key reads all partitions.
				everything := "Append\n"
				for _, partition := range []string{"p20261102", "p20261103", "p20261104", "p20261105", "p20261106", "default"} {
					everything += "  ->  Scan on events_" + partition + "\n"
				}
				wantPlan("a filter on the time", "EXPLAIN (COSTS OFF) SELECT * FROM events WHERE sortkey.snowflake_time(id) >= '2026-11-02Z' AND sortkey.snowflake_time(id) < '2026-11-03Z'", everything)
				lines(t, conn, "PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= sortkey.snowflake_floor($1)")
				lines(t, conn, "SET plan_cache_mode = force_generic_plan")
				wantPlan("a generic plan", "EXPLAIN (COSTS OFF) EXECUTE since('2026-11-05Z')",
					"Append\n  Subplans Removed: 3\n  ->  Scan on events_p20261105\n  ->  Scan on events_p20261106\n  ->  Scan on events_default\n")
				lines(t, conn, "RESET plan_cache_mode")
				if now.After(time.Date(2026, 11, 8, 0, 0, 0, 0, time.UTC)) { // all partitions but the default one are older
					wantPlan("a time of the server's clock", "EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= sortkey.snowflake_floor(now() - interval '1 hour')",
						"Append\n  Subplans Removed: 5\n  ->  Scan on events_default\n")
				}
			case "plan":
				// Today's partition doesn't exist yet.
				if got := strings.Join(lines(t, conn, p.SQL), "\n"); !strings.Contains(got, "create|public.events_p"+now.Format("20060102")+"|"+now.Format("2006-01-02 00:00:00+00")) &&
					time.Now().UTC().YearDay() == now.YearDay() {
					t.Errorf("expected a step that creates today's partition, got %s", got)
				}
			case "maintain":
				db.Exec(t, "SELECT sortkey.unmanage_partitions('events'); CREATE TABLE kept (LIKE events INCLUDING ALL) PARTITION BY RANGE (id);"+
					"SELECT sortkey.manage_partitions('kept', every => '1 day', premake => 4, retention => '90 days', retention_action => 'drop');")
				db.Exec(t, "CALL sortkey.maintain_partitions(at => now() - interval '100 days')")
				p.Run(t, db)
				var want []string
				for n := range 5 {
					want = append(want, "kept_p"+now.AddDate(0, 0, n).Format("20060102"))
				}
				got := lines(t, conn, "SELECT relid FROM pg_partition_tree('kept') WHERE isleaf ORDER BY relid::text")
				if time.Now().UTC().YearDay() == now.YearDay() {
					has(t, "partitions after maintenance dropped the old ones", got, append([]string{"kept_default"}, want...)...)
				}
				db.Exec(t, "SELECT sortkey.unmanage_partitions('kept'); SELECT sortkey.manage_partitions('events', every => '1 day')")
			case "log":
				has(t, p.Name, lines(t, conn, p.SQL)[:2], "public.kept|*|maintain||1|done|", "public.kept|*|drop|public.kept_p*|1|done|")
				// Without a default partition, the maintenance drops it.
				db.Exec(t, "SELECT sortkey.manage_partitions('events', every => '1 day', premake => 30, retention => '90 days', retention_action => 'drop', default_partition => false)")
				has(t, "without a default partition", lines(t, conn, "SELECT action, count(*) FROM sortkey.plan_partitions('events') WHERE action <> 'detach' AND upper IS NULL OR action = 'create' GROUP BY 1 ORDER BY 1"),
					"create|*", "drop|1")
				db.Exec(t, "SELECT sortkey.manage_partitions('events', every => '1 day')")
				// ANALYZE makes statistics of the whole table, once it has rows.
				db.Exec(t, "ANALYZE events")
				has(t, "statistics", lines(t, conn, "SELECT DISTINCT inherited FROM pg_stats WHERE tablename = 'events'"))
				db.Exec(t, "INSERT INTO events VALUES (sortkey.snowflake_floor('2026-11-02Z'), 'x'); ANALYZE events")
				has(t, "statistics", lines(t, conn, "SELECT DISTINCT inherited FROM pg_stats WHERE tablename = 'events'"), "t")
			case "publication": // see TestPartitioningReplicated
			case "check":
				db.Exec(t, `CREATE TABLE visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, page text NOT NULL DEFAULT '/' CHECK (page <> ''));
					CREATE INDEX visits_page ON visits (page);
					INSERT INTO visits OVERRIDING SYSTEM VALUE VALUES (17), (sortkey.snowflake_floor('2026-11-02Z') + 5)`)
				p.Run(t, db)
			case "attach":
				// A statement that was prepared before the change still works.
				user := db.Conn(t)
				var before, after int
				const count = "SELECT count(*) FROM visits WHERE id > $1"
				must(t, user.QueryRow(t.Context(), count, 0).Scan(&before))
				p.Run(t, db)
				must(t, user.QueryRow(t.Context(), count, 0).Scan(&after))
				if before != 2 || after != 2 {
					t.Errorf("expected 2 rows before and after, got %d and %d", before, after)
				}
				has(t, "rows", lines(t, conn, "SELECT tableoid::regclass, id < 100, page FROM visits ORDER BY id"), "visits_before_2027|t|/", "visits_before_2027|f|/")
				has(t, "partitions", lines(t, conn, "SELECT count(*) > 1 FROM pg_partition_tree('visits') WHERE isleaf"), "t")
				has(t, "indexes", lines(t, conn, "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'visits'::regclass) AND inhrelid::regclass::text !~ '_p20|default' ORDER BY 1"),
					"visits_pkey", "visits_page")
				db.Exec(t, "INSERT INTO visits VALUES (sortkey.snowflake_floor('2027-01-01Z'))")
				must(t, user.QueryRow(t.Context(), count, 0).Scan(&after))
				if after != 3 {
					t.Errorf("expected 3 rows after an INSERT, got %d", after)
				}
				for _, invalid := range []string{"INSERT INTO visits VALUES (17)", "INSERT INTO visits VALUES (18, '')"} {
					if _, err := conn.Exec(t.Context(), invalid); err == nil {
						t.Errorf("%s: expected an error, got none", invalid)
					}
				}
			case "partman-table", "partman": // see TestPartmanSQL
			default:
				t.Errorf("no test runs %s", p.Name)
			}
		}
	})
}

// ATTACH PARTITION relies on the CHECK of the page and reads no rows.
func TestAttachReadsNothing(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE visits (id bigint PRIMARY KEY); INSERT INTO visits VALUES (17)")
		docs.One(t, "partitioning", "check").Run(t, db)
		conn := db.Conn(t)
		for _, s := range docs.One(t, "partitioning", "attach").Statements() {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%v\nin: %s", err, s)
			}
			if strings.Contains(s, "ATTACH PARTITION") {
				has(t, "rows read", lines(t, conn, "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname = 'visits_before_2027'"), "0")
			}
		}
	})
}

// The statements of the page move a second identity column to the new table.
func TestAttachIdentity(t *testing.T) {
	page := docs.Page(t, "partitioning")
	before, after := "ALTER TABLE visits_before_2027 ALTER n DROP IDENTITY", "ALTER TABLE visits ALTER n ADD GENERATED BY DEFAULT AS IDENTITY (START 1000)"
	for _, s := range []string{before, after} {
		if !strings.Contains(page, "`"+s+"`") {
			t.Errorf("the page doesn't contain %s", s)
		}
	}
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE visits (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY);
			INSERT INTO visits DEFAULT VALUES; INSERT INTO visits DEFAULT VALUES`)
		docs.One(t, "partitioning", "check").Run(t, db)
		conn := db.Conn(t)
		for _, s := range docs.One(t, "partitioning", "attach").Statements() {
			if strings.Contains(s, "ATTACH PARTITION") {
				lines(t, conn, before)
				lines(t, conn, s)
				lines(t, conn, after)
			} else {
				lines(t, conn, s)
			}
		}
		lines(t, conn, "INSERT INTO visits (id) VALUES (3), (sortkey.snowflake_floor('2027-01-01Z'))")
		has(t, "rows", lines(t, conn, "SELECT n FROM visits ORDER BY id"), "1", "2", "1000", "1001")
		_, err := conn.Exec(t.Context(), "INSERT INTO visits DEFAULT VALUES")
		pgtest.Fails(t, err, nil, `null value in column "id"`) // the key has no identity any more
	})
}

// With only the grants in docs/security.md, the owner of a table and a member of the owner
// manage and maintain it, and a DBA reads the log.
func TestPartitioningGrants(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		owner, member, dba := db.NewRole(t, "app_owner", ""), db.NewRole(t, "member", ""), db.NewRole(t, "dba", "")
		db.Exec(t, fmt.Sprintf(`GRANT %[1]s TO %[2]s; CREATE SCHEMA app; CREATE TABLE app.events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id);
			ALTER TABLE app.events OWNER TO %[1]s; REVOKE CREATE ON SCHEMA public FROM PUBLIC`, owner, member))
		as := func(role, sql string) error {
			conn := db.Conn(t)
			lines(t, conn, "SET SESSION AUTHORIZATION "+role)
			_, err := conn.Exec(t.Context(), sql)
			return err
		}
		grants := docs.One(t, "security", "maintenance")
		monitoring := docs.One(t, "security", "monitoring")
		const manage, maintain = "SELECT sortkey.manage_partitions('app.events', '1 day', premake => 2)", "CALL sortkey.maintain_partitions(at => '2026-11-21 12:00Z')"
		pgtest.Fails(t, as(owner, manage), nil, "permission denied") // before the grants
		grants.Replace("app_owner", owner).Run(t, db)
		monitoring.Replace("TO monitoring", "TO "+dba).Run(t, db)
		must(t, as(owner, manage))
		must(t, as(owner, maintain))
		db.Exec(t, "INSERT INTO app.events VALUES (sortkey.snowflake_floor('2026-10-12Z'))") // for maintenance to move
		must(t, as(owner, strings.Replace(manage, "2)", "3)", 1)))
		must(t, as(member, maintain))
		conn := db.Conn(t)
		has(t, "the owner's partitions", lines(t, conn, fmt.Sprintf(`SELECT count(*), bool_and(pg_get_userbyid(c.relowner) = '%s')
			FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'app.events'::regclass`, owner)), "6|t")
		lines(t, conn, "SET SESSION AUTHORIZATION "+dba)
		has(t, "the log", lines(t, conn, "SELECT role, count(*), count(*) FILTER (WHERE outcome = 'done') FROM sortkey.partition_log GROUP BY role ORDER BY role"),
			owner+"|5|5", member+"|3|3")
		// The DBA needs no right to the schema of the table.
		has(t, "the last maintenance", lines(t, conn, docs.Find(t, docs.File(t, "examples/guide/operations.sql"), "maintained").SQL), "app.events|*-*|0")
		for _, denied := range []string{"DELETE FROM sortkey.partition_log", "SELECT * FROM app.events", "INSERT INTO sortkey.partition_settings SELECT * FROM sortkey.partition_settings"} {
			pgtest.Fails(t, fmt.Errorf("%s: %w", denied, as(dba, denied)), nil, "permission denied")
		}
		// Without CREATE on the schema, maintenance can't create partitions.
		db.Exec(t, "REVOKE CREATE ON SCHEMA app FROM "+owner)
		must(t, as(owner, strings.Replace(manage, "2)", "4)", 1)))
		pgtest.Fails(t, as(owner, maintain), nil, "partition steps failed: 1")
		must(t, as(owner, "SELECT sortkey.unmanage_partitions('app.events')"))
	})
}

// With the publication of the page, two servers replicate a table that each one
// partitions itself. Either server can create a partition first.
func TestPartitioningReplicated(t *testing.T) {
	t.Parallel()
	pgtest.OnePair(t, func(t *testing.T, publisher, subscriber *pgtest.DB, link *pgtest.Link) {
		const at = "2026-11-02 12:00Z"
		for _, db := range []*pgtest.DB{publisher, subscriber} {
			migrate(t, db)
			docs.One(t, "partitioning", "table").Run(t, db)
			db.Exec(t, "SELECT sortkey.manage_partitions('events', every => '1 day', premake => 1)")
			db.Exec(t, "CALL sortkey.maintain_partitions(at => '"+at+"')")
		}
		docs.One(t, "partitioning", "publication").Run(t, publisher)
		subscriber.Exec(t, "CREATE SUBSCRIPTION events CONNECTION '"+link.URL(t, publisher)+"' PUBLICATION events WITH (copy_data = false)")
		places := func(db *pgtest.DB) []string {
			return lines(t, db.Conn(t), "SELECT tableoid::regclass, kind FROM events ORDER BY id")
		}
		arrived := func(want ...string) {
			t.Helper()
			pgtest.Eventually(t, "the rows are replicated", func() error {
				if got := places(subscriber); !slices.Equal(got, want) {
					return fmt.Errorf("got %q, want %q", got, want)
				}
				return nil
			})
		}
		insert := func(day, kind string) {
			publisher.Exec(t, "INSERT INTO events VALUES (sortkey.snowflake_floor('"+day+"Z') + 1, '"+kind+"')")
		}
		insert("2026-11-02", "in both")
		arrived("events_p20261102|in both")

		// The publisher creates a partition first, and moves a row to it.
		insert("2026-11-04", "moved")
		publisher.Exec(t, "CALL sortkey.maintain_partitions(at => '2026-11-03 12:00Z')")
		insert("2026-11-04 12:00", "publisher first")
		has(t, "at the publisher", places(publisher), "events_p20261102|*", "events_p20261104|moved", "events_p20261104|*")
		arrived("events_p20261102|in both", "events_default|moved", "events_default|publisher first")
		subscriber.Exec(t, "CALL sortkey.maintain_partitions(at => '2026-11-03 12:00Z')")
		arrived("events_p20261102|in both", "events_p20261104|moved", "events_p20261104|publisher first")

		// The subscriber creates a partition first.
		subscriber.Exec(t, "CALL sortkey.maintain_partitions(at => '2026-11-04 12:00Z')")
		insert("2026-11-05", "subscriber first")
		arrived("events_p20261102|in both", "events_p20261104|moved", "events_p20261104|publisher first", "events_p20261105|subscriber first")
		subscriber.Exec(t, "DROP SUBSCRIPTION events")
	})
}

func TestMaintainAndWindows(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		db.Exec(t, `CREATE TABLE events (id sortkey.snowflake PRIMARY KEY, kind text NOT NULL) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('events', every => '1 day')`)
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		must(t, guide.Maintain(ctx, pool, logger))
		if n := strings.Count(log.String(), "action=create"); n != 5 {
			t.Errorf("expected 5 new partitions, got %d: %s", n, log.String())
		}
		// While a session holds a lock on the default partition, maintenance skips the step.
		day := time.Now().UTC().AddDate(0, 0, -40).Truncate(24 * time.Hour)
		db.Exec(t, fmt.Sprintf("INSERT INTO events SELECT sortkey.snowflake_floor('%s'), 'late'", day.Format(time.RFC3339)))
		log.Reset()
		tx, err := pool.BeginTx(ctx, nil)
		must(t, err)
		_, err = tx.ExecContext(ctx, "LOCK TABLE events_default IN ACCESS SHARE MODE")
		must(t, err)
		must(t, guide.Maintain(ctx, pool, logger))
		if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "action=drain") {
			t.Errorf("expected a warning about a skipped step, got %s", log.String())
		}
		must(t, tx.Rollback())
		must(t, guide.Maintain(ctx, pool, logger))
		has(t, "moved", lines(t, db.Conn(t), "SELECT tableoid::regclass FROM events"), "events_p"+day.Format("20060102"))

		gdb := db.GORM(t, nil)
		layout := idtype.DefaultSnowflakeLayout()
		for i, at := range []time.Duration{-time.Millisecond, 0, 24*time.Hour - time.Millisecond, 24 * time.Hour} {
			id, err := layout.Compose(idtype.SnowflakeParts{Time: day.Add(at), Sequence: 1 + i})
			must(t, err)
			must(t, gdb.Create(&guide.Event{ID: idtype.SnowflakeOf[guide.Event](id), Kind: fmt.Sprint(i)}).Error)
		}
		events, err := guide.EventsOf(gdb, day, day.AddDate(0, 0, 1))
		must(t, err)
		if len(events) != 3 || events[0].Kind != "late" || events[2].Kind != "2" {
			t.Errorf("expected the 3 events of the day, got %v", events)
		}
		if n, err := guide.CountEvents(ctx, pool, day, day.AddDate(0, 0, 1)); err != nil || n != 3 {
			t.Errorf("expected a count of 3, got %d, %v", n, err)
		}
	})
}

func TestPartmanSQL(t *testing.T) {
	t.Parallel()
	pgtest.EachPartman(t, func(t *testing.T, db *pgtest.DB) {
		migrate(t, db)
		db.Exec(t, "CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman")
		conn := db.Conn(t)
		docs.One(t, "partitioning", "partman-table").Run(t, db)
		docs.One(t, "partitioning", "partman").Run(t, db)
		id, err := idtype.NewSno('m')
		must(t, err)
		has(t, "a message", lines(t, conn, fmt.Sprintf("INSERT INTO messages VALUES ('%s', 'hello') RETURNING tableoid::regclass", id.UUID())),
			"messages_p"+id.Time().Format("20060102"))
		if _, err := conn.Exec(t.Context(), "INSERT INTO messages VALUES (gen_random_uuid(), 'no sno')"); err == nil {
			t.Error("expected an error for a random uuid, but the INSERT succeeded")
		}
	})
}
