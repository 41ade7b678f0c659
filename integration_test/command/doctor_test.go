package command_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
)

// A diagnosis is the JSON output of doctor.
type diagnosis struct {
	Server struct {
		Version    string
		Citus      *string
		InRecovery bool `json:"in_recovery"`
		Database   string
		Role       string
	}
	Checks []struct{ ID, Area, Status, Subject, Detail, Remedy, Suppressed string }

	code int
}

// diagnose runs doctor. It fails the test unless doctor prints a report and nothing
// else.
func diagnose(t *testing.T, db *pgtest.DB, args ...string) (d diagnosis) {
	t.Helper()
	r := sortkey(t, db, "doctor -o json", args...)
	d.code = r.code
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || r.errs != "" {
		t.Fatalf("code %d: %v\n%s%s", r.code, err, r.out, r.errs)
	}
	return d
}

// notOK returns the checks that aren't ok, one per line: area, status, subject, detail
// and remedy. Several rules that lack the same privilege or object are one line, as on the
// page.
func (d diagnosis) notOK() (lines []string) {
	for _, c := range d.Checks {
		line := fmt.Sprintf("%s %s %s: %s → %s", c.Area, c.Status, c.Subject, c.Detail, c.Remedy)
		if c.Status != "ok" && c.Suppressed == "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantFindings fails the test unless the checks that aren't ok match the patterns, one
// each, in order. A pattern without a problem means exit code 0.
func wantFindings(t *testing.T, d diagnosis, patterns ...string) {
	t.Helper()
	found, code := d.notOK(), 0
	if slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(`^(\w+ problem|installation unknown) `).MatchString(p) }) {
		code = 1
	}
	if d.code != code || len(found) != len(patterns) {
		t.Fatalf("got code %d and\n%s\nwant code %d and\n%s", d.code, strings.Join(found, "\n"), code, strings.Join(patterns, "\n"))
	}
	for i, p := range patterns {
		if !regexp.MustCompile("^" + p).MatchString(found[i]) {
			t.Errorf("got\n%s\nwant\n%s", found[i], p)
		}
	}
}

// remedy returns the SQL in the remedy of the only finding.
func (d diagnosis) remedy(t *testing.T) string {
	t.Helper()
	_, remedy, ok := strings.Cut(strings.Join(d.notOK(), "\n"), " → run ")
	if !ok {
		t.Fatalf("no remedy in %q", d.notOK())
	}
	return remedy
}

// maintainEvents creates a managed table events, and its partitions.
func maintainEvents(t *testing.T, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, managedEvents("events", ""))
	db.Exec(t, "CALL sortkey.maintain_partitions()")
}

// A healthy database has no findings.
func TestDoctor(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		number := objects(t, must(t, db, "nodes reserve snowflake -o json"))[0]
		db.Exec(t, number["setting"].(string))
		db.Exec(t, `CREATE TABLE t (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake()); INSERT INTO t DEFAULT VALUES;`)
		maintainEvents(t, db)
		claim(t, db, snowflakes, nodelease.Options{})

		d := diagnose(t, db)
		wantFindings(t, d)
		if s := d.Server; !strings.HasPrefix(s.Version, db.Version) || s.Citus != nil || s.InRecovery || s.Database != db.Name || s.Role == "" {
			t.Errorf("got server %+v", s)
		}
		out := must(t, db, "doctor")
		for _, masked := range []struct{ pattern, text string }{
			{`PostgreSQL .*`, "PostgreSQL VERSION"},
			{`clock: .*`, "clock: OFFSET"},
			{`\d+ (seconds?|days?|years) (ago|from now)|now\b`, "DISTANCE"},
			{`events: partitions of 1 day until \S+`, "events: partitions of 1 day until DATE"},
			{db.Name, "DATABASE"},
		} {
			out = regexp.MustCompile(masked.pattern).ReplaceAllString(out, masked.text)
		}
		const want = `database DATABASE

server
  ok       version: PostgreSQL VERSION
  ok       primary: accepts writes

clock
  ok       the server's clock: OFFSET

installation
  ok       schema sortkey: 9 of 9 migrations
  ok       snowflake: --epoch 2021-01-01 --bits 5/5/12

generators
  ok       next_ functions: no generator is ahead of the server's clock

lifetime
  ok       snowflake: until 2090-09-07 (DISTANCE)
  ok       uid60: until 2157-07-13 (DISTANCE)
  ok       spread64: until 2109-05-15 (DISTANCE)
  ok       sno: until 2079-09-07 (DISTANCE)

setting
  ok       sortkey.node: 1023 for the database
  ok       reservation: number 1023 is reserved in snowflake (defaults of DATABASE)

defaults
  ok       node numbers: 1 default uses a reserved number

claims
  ok       pool snowflake: 1 held, 1 reserved, 1022 free

partitions
  ok       public.events: partitions of 1 day until DATE 00:00:00 UTC (DISTANCE)
  ok       public.events: the last maintenance was DISTANCE

no problems
`
		wantSame(t, out, want)
	})
}

// --ignore and the comment on a table suppress findings, which the page still shows.
func TestDoctorIgnore(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7)); CREATE TABLE u (id sortkey.snowflake PRIMARY KEY);
			INSERT INTO t VALUES (sortkey.snowflake_at(now() + interval '1 day', 5, 8)); INSERT INTO u SELECT * FROM t`)
		const t1, u1, number = `generators problem public\.t\.id: has a key`, `generators problem public\.u\.id: has a key`, `defaults problem column`
		wantFindings(t, diagnose(t, db), t1, u1, number)
		wantFindings(t, diagnose(t, db, "--ignore", "key-ahead"), number)
		wantFindings(t, diagnose(t, db, "--ignore", "key-ahead,node-unreserved"))
		docs.One(t, "monitoring", "ignore").Replace("visits", "t").Run(t, db)
		wantFindings(t, diagnose(t, db), u1, number)
		r := sortkey(t, db, "doctor --ignore node-unreserved")
		wantMatch(t, r.out, `^ ignored public\.t\.id: has a key .*: a clock was wrong \[key-ahead\], by the comment on the table$`, `^ problem public\.u\.id: has .* \[key-ahead\]$`,
			`^ ignored column public\.t\.id: uses .* \[node-unreserved\], by --ignore$`, `^1 problem, 2 suppressed$`)
		db.Exec(t, `COMMENT ON TABLE u IS 'sortkey: ignore key-ahead'`)
		wantMatch(t, must(t, db, "doctor --ignore node-unreserved"), `\n3 suppressed\n\z`)
	})
}

// The remedies work: after them, the findings are gone.
func TestDoctorRemedies(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint DEFAULT sortkey.next_snowflake(7))`)
		command, statement, _ := strings.Cut(diagnose(t, db).remedy(t), ", or ")
		db.Exec(t, statement)
		wantFindings(t, diagnose(t, db))
		db.Exec(t, `ALTER TABLE t ALTER id SET DEFAULT sortkey.next_snowflake(8)`)
		must(t, db, strings.TrimPrefix(strings.ReplaceAll(command, "7", "8"), "sortkey "))
		db.Exec(t, `ALTER TABLE t ALTER id SET DEFAULT sortkey.next_snowflake(7)`)

		// A setting in the connection string only.
		own := withSetting(t, db, "options", "-csortkey.node=7")
		d := diagnose(t, own)
		wantFindings(t, d, `setting warning sortkey\.node: 7 in this session only: its connection string or its role sets it → run ALTER DATABASE `+db.Name+` SET sortkey\.node = 7, and reconnect`)
		db.Exec(t, strings.TrimSuffix(d.remedy(t), ", and reconnect"))
		wantFindings(t, diagnose(t, db))
		wantFindings(t, diagnose(t, own))
	})
}

// A layout ends in a year, or has ended.
func TestDoctorLifetime(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		for _, tt := range []struct {
			age  time.Duration
			want string
		}{
			{30 * 24 * time.Hour, `lifetime warning snowflake: until .* \(1 year from now\) → move to a format`},
			{800 * 24 * time.Hour, `lifetime problem snowflake: ended on .*: IDs can't have later times → move to a format`},
		} {
			c := migrations.Config{
				Snowflake:   idtype.SnowflakeLayout{Epoch: time.Now().Add(-tt.age).Truncate(time.Millisecond), DatacenterBits: 8, WorkerBits: 8, SequenceBits: 12},
				SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
			}
			pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), c))
			d := diagnose(t, db)
			wantFindings(t, d, tt.want)
			out := sortkey(t, db, "doctor").out
			wantMatch(t, out, `snowflake: --epoch \S+T\S+Z --bits 8/8/12$`, `snowflake-si: --epoch 2020-01-01 --bits 5/8$`, `snowflake-si: until 2054-11-03`)
			pgtest.Must(t, migrations.Down(t.Context(), db.SQL(t), c))
		}
	})
}

// Without an installation, doctor fails with exit code 1, and without a server with 2.
func TestDoctorWithoutInstallation(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		wantFindings(t, diagnose(t, db), `installation problem schema sortkey: sortkey is not installed → run sortkey migrate up$`)
		pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "keys"}))
		d := diagnose(t, db)
		wantFindings(t, d, `installation problem schema sortkey: sortkey is not installed → pass --schema keys$`)
		for _, c := range d.Checks {
			if c.Area != "server" && c.Area != "clock" && c.Area != "installation" {
				t.Errorf("without an installation: got %+v", c)
			}
		}
		wantFindings(t, diagnose(t, db, "--schema", "keys"))
		wantFailure(t, sortkey(t, db, "doctor"), 1, "  problem  schema sortkey: sortkey is not installed [not-installed]\n           → pass --schema keys\n\n1 problem\n")
	})
	wantFailure(t, sortkey(t, nil, "doctor"), 2, "no database")
	wantFailure(t, sortkey(t, nil, "doctor x"), 2, "unknown command")
	wantFailure(t, sortkey(t, nil, "doctor --ignore pool"), 2, `--ignore "pool": want the ID of a rule: server-version, `)
	wantFailure(t, sortkey(t, nil, "doctor --schema", "a b"), 2, `"a b"`, "--help for the usage")
}

// A role sees as much as its privileges allow. The other checks are unknown.
func TestDoctorPrivileges(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint DEFAULT sortkey.next_snowflake(7))`)
		maintainEvents(t, db)
		claim(t, db, snowflakes, nodelease.Options{})

		reader, role := asRole(t, db)
		const unknown, denied = `unknown \w+: permission denied for schema sortkey → connect as the owner of schema sortkey`, ` unknown .*permission denied for .* → connect as the owner`
		wantFindings(t, diagnose(t, reader), "installation "+unknown+", or run GRANT USAGE ON SCHEMA sortkey TO "+role+"$", "defaults "+unknown,
			"claims "+unknown+", or run GRANT USAGE ON SCHEMA sortkey TO "+role+"; GRANT SELECT ON sortkey.node_pool, sortkey.node_status TO "+role+"$", "partitions "+unknown)

		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+role+"; REVOKE USAGE ON SEQUENCE sortkey_internal.snowflake_clock, sortkey_internal.sno_clock FROM PUBLIC")
		d := diagnose(t, reader)
		wantFindings(t, d, `generators unknown next_ functions: the role cannot read the sequences of snowflake, sno → connect as the owner of schema sortkey`, `generators unknown keys: 1 column of keys can't be read → connect as the owner of the tables`,
			`defaults problem column public\.t\.id: uses unreserved number 7`,
			"claims"+denied, "partitions"+denied, "partitions"+denied, "partitions"+denied, "keys unknown keys: 1 column of keys can't be read → connect as the owner of the tables")
		wantSame(t, d.Server.Role, role)

		db.Exec(t, "GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log TO "+role)
		d = diagnose(t, reader)
		wantFindings(t, d, `generators unknown next_`, `generators unknown keys`, `defaults problem `, "partitions"+denied, "partitions"+denied, "keys unknown keys")
		wantMatch(t, sortkey(t, reader, "doctor").out, `pool snowflake: 1 held, 0 reserved, 1023 free`, `public\.events: the last maintenance was`, `^1 problem, 5 unknown$`)
	})
}

// Doctor measures the difference between its clock and the server's.
func TestDoctorClock(t *testing.T) {
	t.Parallel()
	pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) {
		pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		// On a busy machine, a measurement is less exact. The next one is better.
		await := func(patterns ...string) {
			t.Helper()
			var d diagnosis
			pgtest.Eventually(t, "doctor measures the clock", func() error {
				d = diagnose(t, db)
				if found := d.notOK(); len(found) != len(patterns) || len(found) > 0 && !regexp.MustCompile("^"+patterns[0]).MatchString(found[0]) {
					return fmt.Errorf("got %q, want %q", found, patterns)
				}
				return nil
			})
			wantFindings(t, d, patterns...)
		}
		await()
		clock.Step(t, 600*time.Millisecond)
		await(`clock warning the server's clock: [56]\d\d(\.\d)?ms ahead of this machine's \(± \S+\); IDs of programs .* → find out which clock is wrong`)
		clock.Step(t, -5*time.Second)
		await(`clock problem the server's clock: (5|4\.9\d|5\.0\d)s behind this machine's`)
	})
}

// On a standby, doctor reads what it can.
func TestDoctorStandby(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
		maintainEvents(t, db)
		if out, err := pgtest.Exec(t, db.Container(), "postgres", "touch", "/pgdata/standby.signal"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		pgtest.Must(t, db.Container().Stop(t.Context(), nil))
		pgtest.Must(t, db.Container().Start(t.Context()))
		pgtest.Eventually(t, "the standby answers", func() error {
			if r := sortkey(t, db, "doctor"); r.code != 0 {
				return fmt.Errorf("code %d: %s%s", r.code, r.out, r.errs)
			}
			return nil
		})
		d := diagnose(t, db)
		wantFindings(t, d, `server warning standby: .* → connect to the primary`)
		wantSame(t, d.Server.InRecovery, true)
		wantFailure(t, sortkey(t, db, "partitions run"), 2, "this server is a standby, which takes no steps; connect to the primary")
	})
}

// On Citus, a domain as a distribution column is a problem, and its remedy works.
func TestDoctorCitus(t *testing.T) {
	t.Parallel()
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		pgtest.Must(t, migrations.Up(t.Context(), c.SQL(t), migrations.Config{}))
		c.Exec(t, `CREATE TABLE good (id bigint PRIMARY KEY, other sortkey.snowflake); SELECT create_distributed_table('good', 'id')`)
		d := diagnose(t, c.DB)
		wantFindings(t, d)
		if d.Server.Citus == nil {
			t.Error("the report has no version of Citus")
		}
		c.Exec(t, `CREATE TABLE "Bad" (id sortkey.snowflake PRIMARY KEY); SELECT create_distributed_table('"Bad"', 'id')`)
		c.Exec(t, `INSERT INTO "Bad" VALUES (1), (2), (3)`)
		d = diagnose(t, c.DB)
		wantFindings(t, d, `citus problem public\."Bad": distribution column id has domain sortkey\.snowflake: WHERE id = \$1 misses rows → run SELECT undistribute_table`)
		for statement := range strings.SplitSeq(d.remedy(t), "; ") {
			c.Exec(t, statement)
		}
		wantFindings(t, diagnose(t, c.DB))
		wantSame(t, pgtest.Value[int](t, c.Conn(t), `SELECT count(*)::int FROM "Bad"`), 3)

		c.Exec(t, `SELECT sortkey.reserve_node('snowflake', 1, 'coordinator')`)
		c.Exec(t, `ALTER TABLE good ALTER other SET DEFAULT sortkey.next_snowflake()`)
		c.Exec(t, fmt.Sprintf(`ALTER DATABASE %s SET sortkey.node = 1`, c.Name))
		c.Exec(t, fmt.Sprintf(`ALTER DATABASE %s SET sortkey.node_1 = 2`, c.Name))
		wantFindings(t, diagnose(t, c.DB), `citus warning sortkey\.node_2: not set: worker \S+ has no node number, so defaults fail there → reserve a number N`)

		wantFindings(t, diagnose(t, c.Workers[0]), `installation problem schema sortkey: this server is worker 1 of a Citus cluster → connect to the coordinator`)
	})
}

// A missing object of the installation is a problem, not unknown.
func TestDamagedInstallation(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "DROP VIEW sortkey.node_status")
		const missing = `installation problem schema sortkey: view sortkey.node_status is missing → restore it from a backup`
		wantFindings(t, diagnose(t, db), missing, `claims problem claims: relation "sortkey\.node_status" does not exist → restore it from a backup`)
		wantFailure(t, sortkey(t, db, "migrate check"), 1, "schema sortkey: view sortkey.node_status is missing; restore it from a backup", "[object-missing]")
		wantFailure(t, sortkey(t, db, "nodes list"), 2, `"sortkey.node_status" does not exist`, "run sortkey migrate check to list its missing objects")
		db.Exec(t, "DROP VIEW sortkey.node_defaults CASCADE; DROP FUNCTION sortkey.sno_at; DROP DOMAIN sortkey.uid60")
		wantFailure(t, sortkey(t, db, "migrate check"), 1, "domain sortkey.uid60 is missing", "function sortkey.sno_at(timestamptz, integer, integer, integer) is missing", "view sortkey.node_defaults is missing", "view sortkey.node_problems is missing")
	})
}

// An installation without the migration of the partitions.
func TestOutdatedInstallation(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		list, err := migrations.List(migrations.Config{})
		pgtest.Must(t, err)
		for _, m := range slices.Backward(list[8:]) {
			db.Exec(t, m.Down)
		}
		const remedy = "run sortkey migrate up, or, if your own tool ran the others, continue with its files from sortkey migrate export"
		for _, args := range []string{"partitions list", "partitions list events", "partitions run --dry-run", "partitions run"} {
			wantFailure(t, sortkey(t, db, args), 2, `schema "sortkey": migration 9 (partitions) of 9 is not installed; `+remedy)
		}
		wantFailure(t, sortkey(t, db, "migrate check"), 1, `migration 9 (partitions) of 9 is not installed; `+remedy)
		wantFindings(t, diagnose(t, db), `installation problem schema sortkey: 8 of 9 migrations; migration 9 \(partitions\) of 9 is not installed → `+remedy+"$",
			`partitions problem partitions: relation "sortkey.partitioned_table" does not exist → `+remedy+"$")
		wantSame(t, must(t, db, "migrate up"), "installed 9 partitions\n")
	})
}
