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
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

func TestMain(m *testing.M) { pgtest.Main(m, TestRules) }

var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{}))
})

// execute runs statements, in which DB is the name of the database. A CALL that commits can't be
// a part of a transaction.
func execute(t *testing.T, db *pgtest.DB, conn *pgx.Conn, sql string) {
	t.Helper()
	before, calls, called := strings.Cut(strings.ReplaceAll(sql, "DB", db.Name), "CALL")
	if strings.TrimSpace(before) != "" {
		_, err := conn.Exec(t.Context(), before, pgx.QueryExecModeSimpleProtocol)
		pgtest.Must(t, err)
	}
	if called {
		call, after, _ := strings.Cut(calls, ";")
		_, err := conn.Exec(t.Context(), "CALL"+call)
		pgtest.Must(t, err)
		execute(t, db, conn, after)
	}
}

// restore undoes the statements of a case, except in a case with its own database.
const restore = `
	DROP SCHEMA public CASCADE; CREATE SCHEMA public;
	ALTER DATABASE DB RESET ALL; ALTER ROLE CURRENT_USER IN DATABASE DB RESET ALL;
	SELECT setval(seqrelid, seqstart, false) FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid
		WHERE relnamespace = 'sortkey_internal'::regnamespace AND relname LIKE '%\_clock'`

// find returns the findings that aren't ok, as "ID level subject: detail → remedy".
func find(t *testing.T, db *sql.DB, o dbhealth.Options) (found []string) {
	t.Helper()
	report, err := dbhealth.New(db, o).Run(t.Context())
	pgtest.Must(t, err)
	for _, f := range report.Findings {
		if f.Counts() {
			found = append(found, fmt.Sprintf("%s %s %s: %s → %s", f.ID, f.Level, f.Subject, f.Detail, f.Remedy))
		}
		if f.Counts() && f.Remedy == "" {
			t.Errorf("%s has no remedy", f.ID)
		}
	}
	return found
}

const (
	events      = `CREATE TABLE events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id);`
	partitioned = events + `SELECT sortkey.manage_partitions('events', '1 day');`
	maintained  = `CALL sortkey.maintain_partitions();`
	retained    = events + `SELECT sortkey.manage_partitions('events', '1 day', retention => '10 days');`
	withDefault = `SELECT sortkey.reserve_node('snowflake', 7, 'x'); CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7));`
)

// claims returns SQL that claims numbers of a pool for the holders "orders 1" to "orders n". The layout is an expression.
func claims(pool string, size int, layout string, n int) string {
	const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
	return fmt.Sprintf("SELECT sortkey.claim_node('%s', %d, %s, '{}', 'orders ' || n || ' token', 300000, %[5]s, %[5]s + 1000, NULL) FROM generate_series(1, %[4]d) n;", pool, size, layout, n, now)
}

// Each rule finds its fault, and no other rule does.
func TestRules(t *testing.T) {
	claimed := claims("snowflake", 1024, "(SELECT 'snowflake: ' || layout FROM sortkey.layout WHERE format = 'snowflake')", 1)
	tested := map[string]bool{
		"server-version": true,                       // no such server here
		"citus-domain":   true, "citus-worker": true, // TestDoctorCitus of the command
	}
	for _, tt := range []struct {
		name, sql string
		setup     func(t *testing.T, db *pgtest.DB)
		options   dbhealth.Options
		own       bool     // needs its own database, since restore and pgtest don't undo its changes
		one       bool     // reads no catalogs, so one version of Postgres is enough
		want      []string // patterns for the beginnings of the findings
	}{
		{name: "healthy", sql: withDefault + partitioned + maintained + `INSERT INTO t SELECT FROM generate_series(1, 100);
			CREATE TABLE r (id bigint PRIMARY KEY, t bigint REFERENCES t); INSERT INTO r SELECT 1, max(id) FROM t; CREATE TABLE small (id integer PRIMARY KEY); CREATE TABLE s (small smallint REFERENCES small);
			CREATE TABLE v (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO v SELECT FROM generate_series(1, 100);
			CREATE TABLE log (id uuid DEFAULT sortkey.next_sno(7), t sortkey.snowflake); SELECT sortkey.reserve_node('sno', 7, 'x'); INSERT INTO log (t) SELECT id FROM t, generate_series(1, 2);
			COMMENT ON TABLE t IS 'sortkey: ignored by no rule'`},
		{name: "read-only", own: true, sql: `ALTER DATABASE DB SET default_transaction_read_only = on`, want: []string{"server-read-only problem primary: default_transaction_read_only is on for the database or the server"}},
		{name: "role that is read-only", own: true, sql: `ALTER ROLE CURRENT_USER IN DATABASE DB SET default_transaction_read_only = on`, want: []string{"server-read-only warning primary: default_transaction_read_only is on for this session"}},
		{name: "clock", one: true, options: dbhealth.Options{Now: func() time.Time { return time.Now().Add(-10 * time.Second) }}, want: []string{`clock-skew problem the server's clock: 1\d(\.\d+)?s ahead of`}},
		{name: "another schema", one: true, options: dbhealth.Options{Config: migrations.Config{Schema: "keys"}}, want: []string{"not-installed problem schema keys: "}},
		{name: "migration", own: true, one: true, sql: `DELETE FROM sortkey.revision WHERE version = 5`, want: []string{"migration-missing problem schema sortkey: 8 of 9 migrations"}},
		{name: "layout", one: true, options: dbhealth.Options{Config: migrations.Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657)}}}, want: []string{"layout-differs problem schema sortkey: its Snowflake layout is "}},
		{name: "newer migration", own: true, one: true, sql: `INSERT INTO sortkey.revision VALUES (99, 'future')`,
			want: []string{"migration-missing warning schema sortkey: migrations up to 99; this command knows 9 → upgrade the command"}},
		{name: "restore without data", own: true, one: true, sql: `DELETE FROM sortkey.layout`,
			want: []string{`not-installed problem schema sortkey: table sortkey\.layout has no layout of Snowflake → restore the data of the schemas sortkey and sortkey_internal`}},
		{name: "unknown layout", own: true, one: true, sql: `UPDATE sortkey.layout SET layout = 'new'`, want: []string{`not-installed problem schema sortkey: unknown Snowflake layout "new"`}},
		{name: "object", own: true, sql: `DROP FUNCTION sortkey.sno_at`, want: []string{`object-missing problem schema sortkey: function sortkey\.sno_at\(timestamptz, integer, integer, integer\) is missing`}},
		{name: "overload", own: true, sql: `DROP FUNCTION sortkey.next_snowflake()`, want: []string{`object-missing problem schema sortkey: function sortkey\.next_snowflake\(\) is missing → restore it from a backup; .* sortkey migrate print: CREATE`}},
		{name: "function of another layout", own: true, sql: `CREATE OR REPLACE FUNCTION sortkey.snowflake_time(id bigint) RETURNS timestamptz IMMUTABLE RETURN to_timestamp((id >> 22) / 1000.0)`,
			want: []string{`layout-differs problem schema sortkey: functions have another layout than the installation: snowflake_time → replace them with their statements from sortkey migrate print$`}},

		{name: "another installation", own: true, one: true, options: dbhealth.Options{Config: migrations.Config{Schema: "keys"}}, setup: func(t *testing.T, db *pgtest.DB) {
			epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
			pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "keys", Snowflake: idtype.SnowflakeLayout{Epoch: epoch, DatacenterBits: 4, WorkerBits: 6, SequenceBits: 12},
				SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: epoch.AddDate(0, 6, 0)}}))
			db.Exec(t, "DROP FUNCTION keys.snowflake_time; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT keys.next_snowflake(7))")
		}, want: []string{`object-missing problem schema keys: function keys\.snowflake_time\(bigint\) is missing → .* sortkey migrate print --epoch 2024-01-01 --bits 4/6/12 --si-epoch 2024-07-01 --si-bits 5/8 --schema keys: CREATE`,
			`node-unreserved problem column public\.t\.id: .* → run sortkey nodes reserve snowflake 7 --schema keys, or SELECT keys\.reserve_node`}},

		{name: "copy of a database", sql: `SELECT sortkey.reserve_node('snowflake', 1, 'x'); UPDATE sortkey.node_home SET database = 'other'`,
			want: []string{`database-copied warning database DB: was copied, .* → stop .*, and run SELECT sortkey\.confirm_original\(\) here; or, if both continue, run SELECT sortkey\.reserve_for_copy\('DB [0-9/]+'\) there`}},
		{name: "promoted server", sql: `SELECT sortkey.reserve_node('snowflake', 1, 'x'); UPDATE sortkey.node_home SET timeline = '00000000'`,
			want: []string{`database-copied warning database DB: continues after a promotion or a recovery \(timeline 00000001, before 00000000\)`}},

		{name: "sequence ahead", sql: `SELECT setval('sortkey_internal.snowflake_clock', sortkey.snowflake_floor(clock_timestamp() + interval '1 day')), sortkey.reserve_node('snowflake', 1, 'x');
				DO $$ BEGIN PERFORM sortkey.next_snowflake(1); RAISE 'next_snowflake returned'; EXCEPTION WHEN OTHERS THEN IF SQLERRM !~ 'is behind' THEN RAISE; END IF; END $$`,
			want: []string{`generator-ahead problem next_snowflake: fails until .* UTC \((1 day|23 hours) from now\): .* → wait until then\. If you can't wait: reserve .* next_snowflake\(5\); end all sessions, .* SELECT setval\('sortkey_internal\.snowflake_clock', 1\)`}},
		{name: "sequence of uid60 ahead", sql: `SELECT setval('sortkey_internal.uid60_clock', sortkey.uid60_floor(clock_timestamp() + interval '1 day') << 3)`,
			want: []string{"generator-ahead problem next_uid60: fails until .* → wait until then: a reset"}},
		{name: "sequence of sno ahead", sql: `SELECT setval('sortkey_internal.sno_clock', (extract(epoch FROM clock_timestamp() + interval '1 day' - '2010-01-01Z') * 250)::bigint << 24)`,
			want: []string{`generator-ahead problem next_sno: fails until .* UTC \((1 day|23 hours) from now\): .* such as next_sno\(5\); end all sessions`}},
		{name: "sequence set back", sql: withDefault + `INSERT INTO t SELECT FROM generate_series(1, 10); SELECT setval('sortkey_internal.snowflake_clock', 1)`,
			want: []string{`generator-behind warning public\.t\.id: has a key of .* with the node number of a default, and the last ID of next_snowflake is of 2021-01-01 .*: its sequence was set back`}},
		{name: "sequence set back, with keys of the future", sql: withDefault + `INSERT INTO t VALUES (DEFAULT), (sortkey.snowflake_at(now() + interval '1 day', 5, 7))`,
			want: []string{`generator-behind problem public\.t\.id: has a key of .* UTC \((1 day|23 hours) from now\) with the node number of a default, and .*: the default repeats keys at that time → reserve another`}},
		{name: "sequence set back, with keys of other types and nodes", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_uid60(), n bigint UNIQUE DEFAULT sortkey.next_spread64(1), v text UNIQUE DEFAULT sortkey.next_uid60());
			INSERT INTO t SELECT FROM generate_series(1, 10); INSERT INTO t VALUES (-1, NULL, NULL); SELECT setval('sortkey_internal.uid60_clock', 1); SELECT sortkey.reserve_node('spread64', 1, 'x')`},
		{name: "keys of the future", sql: withDefault + `CREATE TABLE u (id uuid PRIMARY KEY DEFAULT sortkey.next_sno(7)); SELECT sortkey.reserve_node('sno', 7, 'x');
				INSERT INTO u VALUES (DEFAULT), (sortkey.sno_at(now() + interval '1 day', 5, 8)); INSERT INTO t VALUES (DEFAULT), (sortkey.snowflake_at(now() + interval '1 day', 5, 8))`,
			want: []string{`key-ahead problem public\.t\.id: has a key of .* UTC \((1 day|23 hours) from now\): a clock was wrong → find the program`, `key-ahead problem public\.u\.id: has a key of`}},
		{name: "subscribed sequence", own: true, sql: `CREATE SUBSCRIPTION shop CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false); SET allow_system_table_mods = on;
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

		{name: "end of a format", own: true, options: dbhealth.Options{Config: migrations.Config{Schema: "old"}}, setup: func(t *testing.T, db *pgtest.DB) {
			pgtest.Must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Schema: "old", Snowflake: idtype.SnowflakeLayout{Epoch: time.Now().Add(-100 * 24 * time.Hour).Truncate(time.Millisecond), DatacenterBits: 8, WorkerBits: 8, SequenceBits: 12}}))
		}, want: []string{"format-ends warning snowflake: until "}},
		{name: "setting of a role", sql: `SELECT sortkey.reserve_node('snowflake', 7, 'x'); ALTER ROLE CURRENT_USER IN DATABASE DB SET sortkey.node = 7`, want: []string{"node-setting warning sortkey.node: 7 in this session only"}},
		{name: "settings of the database and a role", sql: `SELECT sortkey.reserve_node('spread64', n, 'x') FROM unnest('{5,6}'::int[]) n; ALTER DATABASE DB SET sortkey.node = 5; ALTER ROLE CURRENT_USER IN DATABASE DB SET sortkey.node = 6`,
			want: []string{`node-setting warning sortkey\.node: 5 for the database, but 6 in this session: its connection string or its role sets it → run ALTER DATABASE DB SET sortkey\.node = N`}},
		{name: "setting that is no number", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake()); ALTER DATABASE DB SET sortkey.node = 'abc'`,
			want: []string{`setting-unreserved warning reservation: "abc" is not a node number → run ALTER DATABASE DB SET sortkey\.node = N`, `node-missing problem column public\.t\.id: .*, which is 'abc', no node number of snowflake → choose`}},
		{name: "setting that no format has", one: true, sql: `ALTER DATABASE DB SET sortkey.node = 70000`,
			want: []string{"setting-unreserved problem reservation: number 70000 is out of range: no format has this number → run ALTER DATABASE DB SET"}},
		{name: "setting without a reservation", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake()); ALTER DATABASE DB SET sortkey.node = 5; SELECT sortkey.reserve_node('spread64', 6, 'other')`,
			want: []string{`setting-unreserved warning reservation: number 5 is not reserved in any pool.* → run sortkey nodes reserve POOL 5,`, `node-unreserved problem column public\.t\.id: uses unreserved number 5 of pool snowflake from the setting`}},
		{name: "setting reserved in a misspelled pool", one: true, sql: `ALTER DATABASE DB SET sortkey.node = 30; SELECT sortkey.reserve_node('snowflake_si', 30, 'x'), sortkey.reserve_node('spread64', 31, 'x')`,
			want: []string{"setting-unreserved warning reservation: number 30 is not reserved in any pool"}},
		{name: "no setting", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake())`,
			want: []string{`node-missing problem column public\.t\.id: needs the setting sortkey\.node, which is missing → choose a number N .* ALTER DATABASE DB SET sortkey\.node = N`}},
		{name: "unreserved number", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(7), u bigint UNIQUE DEFAULT sortkey.next_snowflake(7))`, want: []string{"node-unreserved problem column public.t.id \\(and 1 more\\): uses unreserved number 7 "}},
		{name: "computed number", sql: `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1 + pg_backend_pid() % 2)); CREATE DOMAIN d AS bigint DEFAULT sortkey.next_snowflake(pg_backend_pid() % 2)`,
			want: []string{`node-opaque warning column public\.t\.id: doesn't pass a literal`, `node-opaque warning domain public\.d: doesn't pass a literal`}},
		{name: "many numbers", sql: `DO $$ BEGIN EXECUTE 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT ' || (SELECT string_agg('sortkey.next_snowflake(7)', ' + ') FROM generate_series(1, 500)) || ')'; END $$`,
			want: []string{`node-opaque warning column public\.t\.id: doesn't pass a literal`}},

		{name: "full pool", one: true, sql: `INSERT INTO sortkey.node_pool (name, size, layout) VALUES ('own', 1, 'l'); INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('own', 0, 'x')`, want: []string{"pool-exhausted problem pool own: 0 held, 1 reserved, 0 free"}},
		{name: "full pool without claims", one: true, sql: `SELECT sortkey.reserve_node('spread64', n << 4 | 3, 'x') FROM generate_series(0, 63) n`,
			want: []string{"pool-exhausted problem pool spread64-3: 64 reserved; no program has claimed a number, and none is free → release the reservations"}},
		{name: "pool without claims, one number free", one: true, sql: `SELECT sortkey.reserve_node('spread64', n << 4 | 3, 'x') FROM generate_series(0, 62) n`},
		{name: "claimed pool", one: true, sql: claims("own", 1, "'l'", 1), want: []string{"pool-exhausted problem pool own: 1 held, 0 reserved, 0 free: no other program can start → "}},
		{name: "almost claimed pool", one: true, sql: claims("own", 6, "'l'", 5), want: []string{"pool-exhausted warning pool own: 5 held, 0 reserved, 1 free: a rolling deploy"}},
		{name: "fence", one: true, sql: claimed + `UPDATE sortkey.node_pool SET fenced_until = now() + interval '10 minutes'`,
			want: []string{`pool-fenced warning pool snowflake: fenced: the server grants no number until .* UTC \((9|10) minutes from now\) → wait`}},
		{name: "fence of a wrong clock", one: true, sql: claimed + `UPDATE sortkey.node_pool SET fenced_until = now() + interval '10 days'`,
			want: []string{"pool-fenced problem pool snowflake: fenced: .* → the server's clock was ahead when the fence began"}},
		{name: "fence without an end", one: true, sql: claimed + `UPDATE sortkey.node_pool SET fenced_until = 'infinity'`, want: []string{"pool-fenced problem pool snowflake: fenced: the server grants no number until infinity"}},
		{name: "layout of a pool", one: true, sql: claims("own", 1024, "(SELECT 'snowflake: ' || replace(layout, 'datacenter 5, worker 5', 'datacenter 4, worker 6') FROM sortkey.layout WHERE format = 'snowflake')", 1),
			want: []string{`pool-layout warning pool own: has layout "snowflake: .* datacenter 4.*, but the functions of this database have "snowflake: .* datacenter 5`}},
		{name: "number out of range", one: true, sql: `ALTER DATABASE DB SET sortkey.node = 1024; INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('snowflake', 1024, 'x')`,
			want: []string{"setting-unreserved problem reservation: number 1024 is out of range: snowflake has 0 to 1023 → run ALTER",
				"reservation-range problem number 1024 of pool snowflake: reserved, but out of range: snowflake has 0 to 1023 → run sortkey nodes release snowflake 1024"}},
		{name: "mark", one: true, sql: claimed + `UPDATE sortkey.node_lease SET mark = mark + 3690000`,
			want: []string{`mark-ahead warning number 0 of pool snowflake: high-water mark 1h[01]m\d+s ahead of the server's clock: the clock of a holder was wrong → correct the clock of orders 1`}},
		{name: "mark of a former holder", one: true, sql: claimed + `UPDATE sortkey.node_lease SET mark = mark + 3690000, holder = NULL, expires_at = NULL`,
			want: []string{`mark-ahead warning number 0 of pool snowflake: high-water mark 1h[01]m\d+s ahead .* → no program can claim the number until then`}},
		{name: "many marks", one: true, sql: claimed + `INSERT INTO sortkey.node_lease (pool, number, mark) SELECT 'snowflake', n, mark + 3690000 FROM sortkey.node_lease, generate_series(1, 7) n`,
			want: append(slices.Repeat([]string{`mark-ahead warning number \d of pool snowflake: high-water mark`}, 5),
				"mark-ahead warning other numbers: 2 more high-water marks are ahead → run sortkey nodes list --all")},

		{name: "denied defaults", setup: func(t *testing.T, db *pgtest.DB) {
			app, may := db.NewRole(t, "app", ""), db.NewRole(t, "may", "")
			db.Exec(t, withDefault+`CREATE TABLE parted (id bigint DEFAULT sortkey.next_snowflake(7)) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parted DEFAULT;
				CREATE TABLE u (id uuid DEFAULT sortkey.next_uuid7(), n int); CREATE TABLE unused (id bigint DEFAULT sortkey.next_snowflake(7));
				GRANT USAGE ON SCHEMA sortkey TO `+may+`; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer) TO `+may+`; GRANT SELECT ON unused TO `+app+`;
				GRANT INSERT ON t, part, u TO `+app+`, `+may+`; GRANT INSERT (id) ON parted TO PUBLIC`)
		}, want: []string{
			`default-denied warning column public\.parted\.id: role PUBLIC can insert rows, but can't execute sortkey\.next_snowflake\(integer\), its default → run GRANT EXECUTE ON FUNCTION sortkey\.next_snowflake\(integer\) TO PUBLIC$`,
			`default-denied warning column public\.t\.id: role (app_\w+) can insert rows, but can't execute sortkey\.next_snowflake\(integer\), its default → run GRANT EXECUTE ON FUNCTION sortkey\.next_snowflake\(integer\) TO app_`,
		}},
		{name: "settings without a table", sql: `INSERT INTO sortkey.partition_settings VALUES ('another', 1, 'app', 'it''s', 'sno', '1 day', 4, NULL, 'detach', true)`,
			want: []string{`partition-missing warning app\."it's": has settings for partitions, and doesn't exist → restore the table with its data, or run DELETE FROM sortkey\.partition_settings WHERE schema = 'app' AND name = 'it''s'$`}},
		{name: "no partitions", sql: partitioned, want: []string{"partition-horizon problem public.events: no partition covers the present"}},
		{name: "no partition but the default one", sql: events + `CREATE TABLE rest PARTITION OF events DEFAULT; SELECT sortkey.manage_partitions('events', '1 day')`,
			want: []string{`partition-horizon problem public\.events: no partition covers the present: new rows go to the default partition → `}},
		{name: "less than one interval", sql: partitioned + `CALL sortkey.maintain_partitions(at => clock_timestamp() - interval '4 days')`,
			want: []string{`partition-horizon problem public\.events: partitions of 1 day until .*, less than one interval ahead → `}},
		{name: "bounds that are no IDs", sql: `CREATE TABLE events (id uuid) PARTITION BY RANGE (id); CREATE TABLE p PARTITION OF events FOR VALUES FROM ('33000000-0000-0000-0000-000000000000') TO ('34000000-0000-0000-0000-000000000000');
				SELECT sortkey.manage_partitions('events', '1 day', format => 'sno')`,
			want: []string{`partition-horizon problem public\.events: bounds of partition p.* are not IDs of format sno: .* → Detach that partition`}},
		{name: "few partitions", sql: partitioned + `CALL sortkey.maintain_partitions(at => clock_timestamp() - interval '2 days')`,
			want: []string{`partition-premake warning public\.events: partitions of 1 day until .*; 2 of 4 partitions ahead are missing → `}},
		{name: "rows in the default partition", sql: partitioned + maintained + `INSERT INTO events SELECT sortkey.snowflake_at(now() - interval '20 days', n, 1) FROM generate_series(1, 3) n`,
			want: []string{`partition-default warning public\.events: default partition public\.events_default has 3 rows outside all other partitions → run sortkey partitions run`}},
		{name: "rows of the future", sql: partitioned + maintained + `INSERT INTO events SELECT sortkey.snowflake_at(now() + interval '20 days', n, 1) FROM generate_series(1, 2000) n`,
			want: []string{`key-ahead problem public\.events\.id: has a key of .* \((19|20) days from now\): a clock was wrong → find`,
				`partition-default warning public\.events: default partition public\.events_default has 1,000 rows or more outside all other partitions → run SELECT sortkey\.snowflake_time\(id\), \* FROM public\.events_default ORDER BY id to see them\. Maintenance doesn't move rows older than`}},
		{name: "rows older than the retention", sql: retained + maintained + `INSERT INTO events SELECT sortkey.snowflake_at(now() - interval '20 days', n, 1) FROM generate_series(1, 3) n`,
			want: []string{`partition-default warning public\.events: default partition public\.events_default has 3 rows outside all other partitions → run SELECT sortkey\.snowflake_time\(id\), \* FROM`}},
		{name: "old and recent rows", sql: retained + maintained + `INSERT INTO events SELECT sortkey.snowflake_at(now() - n * interval '5 days', n, 1) FROM unnest('{1,20}'::int[]) n`,
			want: []string{`partition-default warning public\.events: default partition public\.events_default has 2 rows .* → run sortkey partitions run, .*; if rows remain, run SELECT sortkey\.snowflake_time\(id\), \* FROM`}},
		{name: "late maintenance", one: true, sql: partitioned + maintained + `UPDATE sortkey.partition_log SET ended_at = ended_at - interval '2 days'`, want: []string{"partition-maintenance warning public.events: "}},
		{name: "late maintenance of months", one: true, sql: events + `SELECT sortkey.manage_partitions('events', '1 month'); ` + maintained + `UPDATE sortkey.partition_log SET ended_at = ended_at - interval '40 days'`,
			want: []string{`partition-maintenance warning public\.events: the last maintenance was 1 month ago → run sortkey partitions run every hour or so`}},
		{name: "skipped maintenance", one: true, sql: partitioned + maintained + `INSERT INTO sortkey.partition_log (begun_at, parent_table, action, partition, attempts, outcome, problem) VALUES (now(), 'public.events', 'create', 'public.p', 6, 'skipped', 'canceling statement due to lock timeout')`,
			want: []string{`partition-maintenance warning public\.events: the last maintenance of a table with this name skipped step create public\.p: canceling statement`}},
		{name: "failed maintenance", sql: partitioned + `CALL sortkey.maintain_partitions(at => clock_timestamp() - interval '1 day')`, setup: func(t *testing.T, db *pgtest.DB) {
			db.Exec(t, fmt.Sprintf(`CREATE TABLE events_p%s ()`, time.Now().UTC().AddDate(0, 0, 4).Format("20060102")))
			_, _ = db.SQL(t).ExecContext(t.Context(), maintained) // fails
		}, want: []string{`partition-maintenance problem public\.events: the last maintenance of a table with this name failed at step create public\.events_p\d+: cannot create .* a relation with that name exists .* → correct the cause`}},

		{name: "integer references", sql: withDefault + `CREATE DOMAIN small AS smallint; CREATE TABLE a (t integer REFERENCES t, u small REFERENCES t); CREATE TABLE p (n integer, t integer REFERENCES t) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p DEFAULT`,
			want: []string{"int4-reference problem public.a.t: is of type integer, and refers to public.t.id ", "int4-reference problem public.a.u: is of type smallint", "int4-reference problem public.p.t: "}},
		{name: "duplicates", sql: `CREATE TABLE t (tenant integer, id sortkey.snowflake, PRIMARY KEY (tenant, id)); INSERT INTO t SELECT n, sortkey.snowflake_at('2026-01-01Z', 1, 1) FROM generate_series(1, 3) n;
				SELECT sortkey.reserve_node('spread64', 7, 'x'); CREATE TABLE u (id bigint DEFAULT sortkey.next_spread64(7)); INSERT INTO u SELECT FROM generate_series(1, 9); INSERT INTO u SELECT * FROM u`,
			want: []string{"key-duplicate problem public.t.id: has no unique index, and 1 key more than once ", "key-duplicate problem public.u.id: has no unique index, and 9 keys "}},
		{name: "name with the placeholder of the schema", sql: `CREATE TABLE "a$s" (id sortkey.snowflake); INSERT INTO "a$s" SELECT sortkey.snowflake_at('2026-01-01Z', 1, 1) FROM generate_series(1, 2);
				CREATE TABLE "b$s" (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO "b$s" VALUES (gen_random_uuid())`,
			want: []string{`key-duplicate problem public\."a\$s"\.id: has no unique index, and 1 key more than once`, `uuid-version info public\."b\$s"\.id: 1 of the 1 largest`}},
		{name: "tables of another role", own: true, setup: func(t *testing.T, db *pgtest.DB) {
			role := db.NewRole(t, "other", "")
			db.Exec(t, partitioned+`CREATE TABLE events_default PARTITION OF events DEFAULT; CREATE TABLE t (id sortkey.snowflake, at timestamptz); ALTER TABLE t OWNER TO `+role+`; ALTER TABLE events_default OWNER TO `+role)
		}, want: []string{`partition-skipped skipped public\.events: not examined: table public\.events_default belongs to role other_`,
			`key-skipped skipped public\.events: not examined: table public\.events_default belongs to role other_`, `key-skipped skipped public\.t: not examined: belongs to role other_`}},
		{name: "tables on another server", own: true, setup: func(t *testing.T, db *pgtest.DB) {
			db.Exec(t, `CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE TABLE t (id sortkey.snowflake); CREATE FOREIGN TABLE far () INHERITS (t) SERVER s;
				CREATE TABLE events (id sortkey.snowflake) PARTITION BY RANGE (id); CREATE FOREIGN TABLE old PARTITION OF events FOR VALUES FROM (1) TO (2) SERVER s; SELECT sortkey.manage_partitions('events', '1 day')`)
			db.Exec(t, maintained)
		}, want: []string{`key-skipped skipped public\.events: not examined: foreign table public\.old is on another server`, `key-skipped skipped public\.t: not examined: foreign table public\.far is on another server`}},
		{name: "random UUIDs", sql: `CREATE TABLE t (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7()); INSERT INTO t SELECT FROM generate_series(1, 9); INSERT INTO t VALUES (gen_random_uuid())`,
			want: []string{"uuid-version info public.t.id: 1 of the 10 largest UUIDs are not of version 7"}},
		{name: "zero keys", sql: `CREATE TABLE a (id bigint PRIMARY KEY); CREATE TABLE b (id uuid PRIMARY KEY); INSERT INTO a VALUES (0), (1); INSERT INTO b VALUES ('32323232-3232-3232-3232-323232323232');
				CREATE TABLE serial (id bigserial PRIMARY KEY, a bigint); CREATE TABLE child (id bigint PRIMARY KEY REFERENCES a); CREATE TABLE pair (a bigint, b bigint, PRIMARY KEY (a, b)); CREATE TABLE fine (id uuid PRIMARY KEY); CREATE TABLE ignored (id bigint PRIMARY KEY);
				INSERT INTO serial VALUES (0); INSERT INTO child VALUES (0); INSERT INTO pair VALUES (0, 0); INSERT INTO fine VALUES (gen_random_uuid()); INSERT INTO ignored VALUES (0); COMMENT ON TABLE ignored IS 'sortkey: ignore key-zero'`,
			want: []string{`key-zero warning public\.a\.id: has a row with the zero key 0: a program created it without a generator, .* → correct the program, .* CHECK \(id <> '0'\)`,
				`key-zero warning public\.b\.id: has a row with the zero key 32323232-3232-3232-3232-323232323232: `}},
		{name: "rekey", own: true, setup: func(t *testing.T, db *pgtest.DB) {
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
			t.Parallel()
			run := installed.EachReused
			switch {
			case tt.own && tt.one:
				run = installed.One
			case tt.own:
				run = installed.Each
			case tt.one:
				run = installed.OneReused
			}
			run(t, func(t *testing.T, db *pgtest.DB) {
				conn := db.Conn(t)
				if !tt.own {
					t.Cleanup(func() {
						_, err := conn.Exec(context.Background(), strings.ReplaceAll(restore, "DB", db.Name), pgx.QueryExecModeSimpleProtocol)
						pgtest.Must(t, err)
					})
				}
				execute(t, db, conn, tt.sql)
				if tt.setup != nil {
					tt.setup(t, db)
				}
				pool := db.SQL(t)
				pool.SetMaxOpenConns(1)
				do := func(sql string) {
					t.Helper()
					_, err := pool.ExecContext(t.Context(), sql)
					pgtest.Must(t, err)
				}
				// Objects of the same names as the server's are not used.
				if !strings.HasSuffix(tt.name, "read-only") {
					do("CREATE TEMP TABLE pg_class (oid oid); SET search_path = pg_temp, public, pg_catalog")
				}
				got := find(t, pool, tt.options)
				if !strings.HasSuffix(tt.name, "read-only") {
					do("DROP TABLE pg_temp.pg_class") // the server may drop it later than the next test begins
				}
				matches := func(finding, pattern string) bool {
					return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "DB", db.Name)).MatchString(finding)
				}
				if !slices.EqualFunc(got, tt.want, matches) {
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
		execute(t, db, db.Conn(t), withDefault+partitioned+`CALL sortkey.maintain_partitions(); CREATE TABLE r (t integer REFERENCES t); INSERT INTO t DEFAULT VALUES; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON t USING (false)`)
		role := db.NewRole(t, "health", "")
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
		for _, f := range report.Findings {
			if f.Area == "installation" && f.Level == dbhealth.OK {
				t.Errorf("without USAGE: got %s: %s", f.Subject, f.Detail)
			}
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
	t.Parallel()
	binary := pgtest.Command(t)
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
		for line, want := range map[string][]dbhealth.Finding{
			"migrate check": slices.Concat(byArea["installation"], byArea["defaults"]), "nodes list": byArea["claims"], "partitions list": byArea["partitions"],
		} {
			var object struct{ Findings []dbhealth.Finding }
			pgtest.Must(t, json.Unmarshal(run(strings.Fields(line)...), &object))
			same(line, object.Findings, want)
		}

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

// Names that aren't UTF-8 are escaped in findings, lists and metrics.
func TestNamesOfOtherEncodings(t *testing.T) {
	t.Parallel()
	binary := pgtest.Command(t)
	pgtest.One(t, func(t *testing.T, server *pgtest.DB) {
		db := *server
		db.Name += "_ascii"
		db.URL = strings.Replace(server.URL, "/"+server.Name, "/"+db.Name, 1)
		server.Exec(t, "CREATE DATABASE "+db.Name+" TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
		t.Cleanup(func() {
			_, err := server.SQL(t).ExecContext(context.Background(), "DROP DATABASE "+db.Name+" WITH (FORCE)")
			pgtest.Must(t, err)
		})
		pool := db.SQL(t)
		pgtest.Must(t, migrations.Up(t.Context(), pool, migrations.Config{}))
		const table = `public."k\xe4ufe"`
		db.Exec(t, `
			CREATE TABLE "k`+"\xe4"+`ufe" (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
			CREATE TABLE "rest`+"\xff"+`" PARTITION OF "k`+"\xe4"+`ufe" DEFAULT;
			INSERT INTO "k`+"\xe4"+`ufe" VALUES (1);
			SELECT sortkey.manage_partitions('"k`+"\xe4"+`ufe"', '1 day', format => 'snowflake'), sortkey.reserve_node('snowflake', 7, '`+"\xfc"+`ber');
			COMMENT ON TABLE "k`+"\xe4"+`ufe" IS 'sortkey: ignore partition-horizon'`)

		report, err := dbhealth.New(pool, dbhealth.Options{}).Run(t.Context())
		pgtest.Must(t, err)
		levels := map[string]string{}
		for _, f := range report.Findings {
			if f.Subject == table && f.Level != dbhealth.OK {
				levels[f.ID] = string(f.Level) + " " + f.Suppressed
			}
		}
		if levels["partition-default"] != "warning " || levels["partition-horizon"] != "problem by the comment on the table" {
			t.Errorf("got %v of %+v", levels, report.Findings)
		}

		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector(metrics.Database("shop", pool, metrics.DatabaseOptions{})))
		families, err := r.Gather()
		pgtest.Must(t, err)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if labels := m.GetLabel(); len(labels) == 1 || labels[1].GetValue() == table {
					values[f.GetName()] = m.GetGauge().GetValue()
				}
			}
		}
		if _, ok := values["sortkey_partition_horizon_seconds"]; !ok || values["sortkey_database_up"] != 1 {
			t.Errorf("got %v, want the horizon of %s", values, table)
		}

		for line, want := range map[string]string{
			"partitions list": table, "partitions list -o json": `"table":"public.\"k\\xe4ufe\""`,
			"nodes list snowflake": `\xfcber`, "nodes list snowflake -o json": `"note":"\\xfcber"`,
			"doctor": `default partition public."rest\xff" has 1 row`, "doctor -o json": `"subject":"public.\"k\\xe4ufe\""`,
		} {
			c := exec.Command(binary, strings.Fields(line)...)
			c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "DATABASE_URL=" + db.URL}
			out, _ := c.Output() // doctor exits with 1
			if !strings.Contains(string(out), want) {
				t.Errorf("sortkey %s: want %s, got\n%s", line, want, out)
			}
		}
	})
}
