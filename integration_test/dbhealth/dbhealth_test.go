package dbhealth

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

var binary string

func TestMain(m *testing.M) {
	binary = pgtest.BuildCommand()
	pgtest.Main(m)
}

var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
})

// execute runs statements. A CALL that commits can't be a part of a transaction.
func execute(t *testing.T, db *pgtest.DB, sql string) {
	t.Helper()
	before, calls, called := strings.Cut(strings.ReplaceAll(sql, "DB", db.Name), "CALL")
	if before != "" {
		db.Exec(t, before)
	}
	if called {
		call, after, _ := strings.Cut(calls, ";")
		db.Exec(t, "CALL"+call)
		execute(t, db, after)
	}
}

// find returns the findings that aren't ok, as ID, level, subject and detail.
func find(t *testing.T, db *sql.DB, o dbhealth.Options) (found []string) {
	t.Helper()
	report, err := dbhealth.New(db, o).Run(t.Context())
	pgtest.Must(t, err)
	for _, f := range report.Findings {
		if f.Counts() {
			found = append(found, fmt.Sprintf("%s %s %s: %s", f.ID, f.Level, f.Subject, f.Detail))
		}
		if f.Counts() && f.Remedy == "" {
			t.Errorf("%s has no remedy", f.ID)
		}
	}
	return found
}

const (
	partitioned = `CREATE TABLE events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('events', '1 day');`
	withDefault = `SELECT sortkey.reserve_node('snowflake', 7, 'x'); CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7));`
	// The number of a pool's holder can be any text.
	claimed = `SELECT sortkey.claim_node('snowflake', 1024, (SELECT 'snowflake: ' || layout FROM sortkey.layout WHERE format = 'snowflake'), '{}', 'x', 30000, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 1000, NULL);`
)

// Each rule finds its fault, and no other rule does.
func TestRules(t *testing.T) {
	tested := map[string]bool{
		"server-version": true,                       // no such server here
		"citus-domain":   true, "citus-worker": true, // TestDoctorCitus of the command
	}
	for _, tt := range []struct {
		name, sql string
		setup     func(t *testing.T, db *pgtest.DB)
		options   dbhealth.Options
		want      []string // the beginnings of the findings
	}{
		{name: "healthy", sql: withDefault + partitioned + `CALL sortkey.maintain_partitions(); INSERT INTO t SELECT FROM generate_series(1, 100);
			CREATE TABLE r (id bigint PRIMARY KEY, t bigint REFERENCES t); INSERT INTO r SELECT 1, max(id) FROM t; CREATE TABLE small (id integer PRIMARY KEY); CREATE TABLE s (small smallint REFERENCES small);
			CREATE TABLE v (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO v SELECT FROM generate_series(1, 100);
			CREATE TABLE log (id uuid DEFAULT sortkey.next_sno(0, 7), t sortkey.snowflake); SELECT sortkey.reserve_node('sno', 7, 'x'); INSERT INTO log (t) SELECT id FROM t, generate_series(1, 2);
			COMMENT ON TABLE t IS 'sortkey: ignored by no rule'`},
		{name: "read-only", sql: `ALTER DATABASE DB SET default_transaction_read_only = on`, want: []string{"server-read-only warning primary: "}},
		{name: "clock", options: dbhealth.Options{Now: func() time.Time { return time.Now().Add(-10 * time.Second) }}, want: []string{"clock-skew problem the server's clock: 10s ahead of"}},
		{name: "another schema", options: dbhealth.Options{Config: migrations.Config{Schema: "keys"}}, want: []string{"not-installed problem schema keys: "}},
		{name: "migration", sql: `DELETE FROM sortkey.revision WHERE version = 5`, want: []string{"migration-missing problem schema sortkey: 8 of 9 migrations"}},
		{name: "layout", options: dbhealth.Options{Config: migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657)}}}, want: []string{"layout-differs problem schema sortkey: its Snowflake layout is "}},
		{name: "unknown layout", sql: `UPDATE sortkey.layout SET layout = 'new'`, want: []string{`not-installed problem schema sortkey: unknown Snowflake layout "new"`}},
		{name: "object", sql: `DROP FUNCTION sortkey.sno_at`, want: []string{"object-missing problem schema sortkey: function sortkey.sno_at is missing"}},

		{name: "sequence ahead", sql: `SELECT setval('sortkey_internal.snowflake_clock', sortkey.snowflake_floor(clock_timestamp() + interval '1 day'))`, want: []string{"generator-ahead problem next_snowflake: fails until "}},
		{name: "sequence set back", sql: withDefault + `INSERT INTO t DEFAULT VALUES; SELECT setval('sortkey_internal.snowflake_clock', 1)`, want: []string{"generator-behind warning public.t.id: has a key of "}},
		{name: "subscribed sequence", sql: `CREATE SUBSCRIPTION shop CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false); SET allow_system_table_mods = on;
				INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 'sortkey_internal.sno_clock'::regclass, 'r' FROM pg_subscription WHERE subname = 'shop';`,
			setup: func(t *testing.T, db *pgtest.DB) {
				conn := db.Conn(t)
				t.Cleanup(func() { // otherwise the database can't be dropped
					for _, sql := range []string{"ALTER SUBSCRIPTION shop SET (slot_name = NONE)", "DROP SUBSCRIPTION shop"} {
						_, err := conn.Exec(context.Background(), sql)
						pgtest.Must(t, err)
					}
				})
			},
			want: []string{"generator-subscribed problem sortkey_internal.sno_clock: is a sequence of subscription shop"}},
		// Keys with an epoch before the one of the database are of the future there.
		{name: "another epoch", sql: `CREATE TABLE t (id sortkey.snowflake PRIMARY KEY); CREATE TABLE r (id sortkey.snowflake PRIMARY KEY REFERENCES t); INSERT INTO t VALUES (sortkey.snowflake_at(now() + interval '10 years', 1, 1)); INSERT INTO r SELECT * FROM t`,
			want: []string{"key-ahead problem public.t.id: has a key of 2036-"}},
		{name: "UUIDs of the future", sql: `CREATE TABLE t (id sortkey.uuid7 PRIMARY KEY); INSERT INTO t VALUES (sortkey.next_uuid7()), (sortkey.uuid7_floor(now() + interval '1 day'))`,
			want: []string{"key-ahead problem public.t.id: has a key of "}},
		{name: "UUIDs of the future among others", sql: `CREATE TABLE t (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO t SELECT gen_random_uuid() FROM generate_series(1, 20000); INSERT INTO t VALUES (sortkey.uuid7_floor(now() + interval '1 day'))`,
			want: []string{"key-ahead problem public.t.id: has a key of ", "uuid-version info public.t.id: "}},

		{name: "end of a format", options: dbhealth.Options{Config: migrations.Config{Schema: "old"}}, setup: func(t *testing.T, db *pgtest.DB) {
			pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "old", Snowflake: idtype.SnowflakeLayout{Epoch: time.Now().Add(-100 * 24 * time.Hour).Truncate(time.Millisecond), DatacenterBits: 8, WorkerBits: 8, SequenceBits: 12}}))
		}, want: []string{"format-ends warning snowflake: until "}},
		{name: "setting of a role", sql: `SELECT sortkey.reserve_node('snowflake', 7, 'x'); ALTER ROLE CURRENT_USER IN DATABASE DB SET sortkey.node = 7`, want: []string{"node-setting warning sortkey.node: 7 in this session only"}},
		{name: "setting without a reservation", sql: `ALTER DATABASE DB SET sortkey.node = 7`, want: []string{"setting-unreserved warning reservation: number 7 "}},
		{name: "no setting", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake())`, want: []string{"node-missing problem column public.t.id: needs the setting sortkey.node, which is missing"}},
		{name: "unreserved number", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7), u bigint UNIQUE DEFAULT sortkey.next_snowflake(7))`, want: []string{"node-unreserved problem column public.t.id (and 1 more): uses unreserved number 7 "}},
		{name: "computed number", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1 + pg_backend_pid() % 2))`, want: []string{"node-opaque warning node numbers: 1 default "}},

		{name: "full pool", sql: `INSERT INTO sortkey.node_pool (name, size, layout) VALUES ('own', 1, 'l'); INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('own', 0, 'x')`, want: []string{"pool-exhausted problem pool own: 0 held, 1 reserved, 0 free"}},
		{name: "fence", sql: claimed + `UPDATE sortkey.node_pool SET fenced_until = now() + interval '10 minutes'`, want: []string{"pool-fenced warning pool snowflake: "}},
		{name: "fence without an end", sql: claimed + `UPDATE sortkey.node_pool SET fenced_until = 'infinity'`, want: []string{"pool-fenced problem pool snowflake: fenced: the server grants no number until infinity"}},
		{name: "layout of a pool", sql: `INSERT INTO sortkey.node_pool (name, size, layout) VALUES ('own', 9, 'snowflake: other')`, want: []string{"pool-layout warning pool own: "}},
		{name: "number out of range", sql: `INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('snowflake', 1024, 'x')`, want: []string{"reservation-range problem number 1024 of pool snowflake: "}},
		{name: "mark", sql: claimed + `UPDATE sortkey.node_lease SET mark = mark + 3600000`, want: []string{"mark-ahead warning number 0 of pool snowflake: "}},

		{name: "no partitions", sql: partitioned, want: []string{"partition-horizon problem public.events: no partition covers the present"}},
		{name: "few partitions", sql: partitioned + `CALL sortkey.maintain_partitions(at => clock_timestamp() - interval '2 days')`, want: []string{"partition-premake warning public.events: "}},
		{name: "rows in the default partition", sql: partitioned + `CALL sortkey.maintain_partitions(); INSERT INTO events VALUES (sortkey.snowflake_at(now() - interval '20 days', 1, 1))`, want: []string{"partition-default warning public.events: "}},
		{name: "late maintenance", sql: partitioned + `CALL sortkey.maintain_partitions(); UPDATE sortkey.partition_log SET ended_at = ended_at - interval '2 days'`, want: []string{"partition-maintenance warning public.events: "}},

		{name: "integer references", sql: withDefault + `CREATE DOMAIN small AS smallint; CREATE TABLE a (t integer REFERENCES t, u small REFERENCES t); CREATE TABLE p (n integer, t integer REFERENCES t) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p DEFAULT`,
			want: []string{"int4-reference problem public.a.t: is of type integer, and refers to public.t.id ", "int4-reference problem public.a.u: is of type smallint", "int4-reference problem public.p.t: "}},
		{name: "duplicates", sql: `CREATE TABLE t (tenant integer, id sortkey.snowflake, PRIMARY KEY (tenant, id)); INSERT INTO t SELECT n, sortkey.snowflake_at('2026-01-01Z', 1, 1) FROM generate_series(1, 3) n;
				SELECT sortkey.reserve_node('spread64', 7, 'x'); CREATE TABLE u (id bigint DEFAULT sortkey.next_spread64(7)); INSERT INTO u SELECT FROM generate_series(1, 9); INSERT INTO u SELECT * FROM u`,
			want: []string{"key-duplicate problem public.t.id: has no unique index, and 1 key more than once ", "key-duplicate problem public.u.id: has no unique index, and 9 keys "}},
		{name: "random UUIDs", sql: `CREATE TABLE t (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO t SELECT FROM generate_series(1, 9); INSERT INTO t VALUES (gen_random_uuid())`,
			want: []string{"uuid-version info public.t.id: 1 of the 10 largest UUIDs are not of version 7"}},
		{name: "rekey", setup: func(t *testing.T, db *pgtest.DB) {
			db.Exec(t, "CREATE TABLE orders (id serial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
			var spec rekey.Spec
			pgtest.Must(t, json.Unmarshal([]byte(`{"keys": [{"table": "orders", "format": "snowflake", "node": 1, "backfill_node": 2, "times": {"column": "at"}}]}`), &spec))
			pgtest.Must(t, rekey.Expand(t.Context(), db.SQL(t), spec, rekey.Options{}))
			db.Exec(t, "UPDATE rekeyed.rekey_state SET updated_at = now() - interval '3 days'")
		}, want: []string{"rekey-stalled warning rekeyed: keys of orders: the next step is backfill"}},
	} {
		for _, w := range tt.want {
			id, _, _ := strings.Cut(w, " ")
			tested[id] = true
		}
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
				execute(t, db, tt.sql)
				if tt.setup != nil {
					tt.setup(t, db)
				}
				pool := db.SQL(t)
				// Objects of the same names as the server's are not used.
				pool.SetMaxOpenConns(1)
				_, err := pool.ExecContext(t.Context(), "CREATE TEMP TABLE pg_class (oid oid); SET search_path = pg_temp, public, pg_catalog")
				if err != nil && tt.name != "read-only" {
					t.Fatal(err)
				}
				got := find(t, pool, tt.options)
				if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
				}
			})
		})
	}
	for _, rule := range dbhealth.Rules() {
		if !tested[rule.ID] {
			t.Errorf("no test for rule %s", rule.ID)
		}
	}
}

// A role without privileges gets findings of level unknown, and no error.
func TestUnknown(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		execute(t, db, withDefault+partitioned+`CALL sortkey.maintain_partitions(); CREATE TABLE r (t integer REFERENCES t); INSERT INTO t DEFAULT VALUES; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON t USING (false)`)
		role := "health_" + db.Name
		db.Exec(t, "CREATE ROLE "+role)
		defer db.Exec(t, fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", role))
		pool := db.SQL(t)
		pool.SetMaxOpenConns(1)
		_, err := pool.ExecContext(t.Context(), "SET ROLE "+role)
		pgtest.Must(t, err)
		unknown := func() (ids []string) {
			for _, f := range find(t, pool, dbhealth.Options{}) {
				id, rest, _ := strings.Cut(f, " ")
				if strings.HasPrefix(rest, "unknown ") {
					ids = append(ids, id)
				} else if id != "int4-reference" {
					t.Errorf("got %s", f)
				}
			}
			return slices.Compact(ids)
		}
		lists := []string{"pool-exhausted", "pool-fenced", "pool-layout", "reservation-range", "mark-ahead"}
		partitions := []string{"partition-premake", "partition-default", "partition-maintenance"}
		report, err := dbhealth.New(pool, dbhealth.Options{}).Run(t.Context())
		pgtest.Must(t, err)
		if got := unknown(); !report.Blind || !slices.Contains(got, "not-installed") || !slices.Contains(got, "node-unreserved") || !slices.Contains(got, "partition-horizon") {
			t.Errorf("without USAGE: got %v", got)
		}
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+role)
		if got, want := unknown(), slices.Concat([]string{"generator-behind", "key-ahead"}, lists, partitions); !slices.Equal(got, want) {
			t.Errorf("with USAGE: got %v, want %v", got, want)
		}
		// A policy that hides rows is a lack of privileges, too.
		db.Exec(t, "GRANT SELECT ON t, events, events_default TO "+role)
		if got, want := unknown(), slices.Concat([]string{"generator-behind", "key-ahead"}, lists, []string{"partition-premake", "partition-maintenance"}); !slices.Equal(got, want) {
			t.Errorf("with a policy: got %v, want %v", got, want)
		}
		db.Exec(t, "DROP POLICY none ON t; ALTER TABLE t DISABLE ROW LEVEL SECURITY; GRANT USAGE ON SCHEMA sortkey_internal TO "+role+"; GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log TO "+role)
		if got := unknown(); len(got) > 0 {
			t.Errorf("with all privileges: got %v", got)
		}
	})
}

// Doctor, check, the lists and the metrics report the same IDs, subjects and remedies.
func TestViews(t *testing.T) {
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7)); CREATE TABLE r (t integer REFERENCES t);
			DROP FUNCTION sortkey.sno_at; INSERT INTO sortkey.node_pool (name, size, layout) VALUES ('own', 1, 'l'); INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('own', 0, 'x');`+partitioned)
		report, err := dbhealth.New(db.SQL(t), dbhealth.Options{}).Run(t.Context())
		pgtest.Must(t, err)
		var want []dbhealth.Finding
		byArea := map[string][]dbhealth.Finding{}
		for _, f := range report.Findings {
			if f.Counts() {
				f.Of = "" // not in JSON
				want = append(want, f)
				byArea[f.Area] = append(byArea[f.Area], f)
			}
		}
		if len(want) != 5 {
			t.Fatalf("got %+v", want)
		}
		run := func(args ...string) []byte {
			c := exec.Command(binary, append(args, "-o", "json")...)
			c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "DATABASE_URL=" + db.URL}
			var errs bytes.Buffer
			c.Stderr = &errs
			out, _ := c.Output()
			if errs.Len() > 0 {
				t.Errorf("sortkey %s: %s", args, errs.String())
			}
			return out
		}
		same := func(name string, got, want []dbhealth.Finding) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, want)
			}
		}
		var doctor struct{ Checks []dbhealth.Finding }
		pgtest.Must(t, json.Unmarshal(run("doctor"), &doctor))
		same("doctor", slices.DeleteFunc(doctor.Checks, func(f dbhealth.Finding) bool { return !f.Counts() }), want)
		var object struct{ Findings []dbhealth.Finding }
		pgtest.Must(t, json.Unmarshal(run("migrate", "check"), &object))
		same("migrate check", object.Findings, slices.Concat(byArea["installation"], byArea["defaults"]))
		object.Findings = nil
		pgtest.Must(t, json.Unmarshal(run("nodes", "list"), &object))
		same("nodes list", object.Findings, byArea["claims"])
		object.Findings = nil
		pgtest.Must(t, json.Unmarshal(run("partitions", "list"), &object))
		same("partitions list", object.Findings, byArea["partitions"])

		// The program's check has the text of the view.
		problem := byArea["defaults"][0]
		if err := migrations.CheckDefaults(t.Context(), db.SQL(t), migrations.Config{}); err == nil || !strings.Contains(err.Error(), problem.Subject+" "+problem.Detail) {
			t.Errorf("CheckDefaults: got %v", err)
		}

		var log bytes.Buffer
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector(metrics.Database("shop", db.SQL(t), metrics.DatabaseOptions{FindingsEvery: time.Nanosecond, Logger: slog.New(slog.NewJSONHandler(&log, nil))})))
		for range 2 { // the log has each finding once
			families, err := r.Gather()
			pgtest.Must(t, err)
			counts := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if v := m.GetGauge().GetValue(); f.GetName() == "sortkey_findings" && v > 0 {
						counts[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[2].GetValue()] = v
					}
				}
			}
			for _, f := range want {
				if counts[f.ID+" "+string(f.Level)] != 1 || len(counts) != len(want) {
					t.Errorf("metrics: got %v", counts)
				}
			}
		}
		var logged []dbhealth.Finding
		for line := range bytes.Lines(log.Bytes()) {
			var entry struct{ ID, Severity, Subject, Detail, Remedy string }
			pgtest.Must(t, json.Unmarshal(line, &entry))
			logged = append(logged, dbhealth.Finding{ID: entry.ID, Level: dbhealth.Level(entry.Severity), Subject: entry.Subject, Detail: entry.Detail, Remedy: entry.Remedy})
		}
		for i := range want {
			want[i].Area = ""
		}
		same("the log of metrics", logged, want)
	})
}
