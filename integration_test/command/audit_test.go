package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// auditID returns an SQL expression for the Snowflake of a time, a node and a sequence
// number.
func auditID(at string, node, sequence int) string {
	return fmt.Sprintf("sortkey.snowflake_floor('%s') + (%d << 12) + %d", at, node, sequence)
}

// A messy table has every finding. Nodes 1 and 2 are reserved.
var auditMessy = `
	CREATE TABLE messy (id bigint, n serial);
	CREATE UNIQUE INDEX ON messy (id, n);
	INSERT INTO messy SELECT sortkey.snowflake_floor(timestamptz '2025-03-01 23:59:00Z' + g * interval '1 s') + (1 + g % 2 << 12) FROM generate_series(1, 100) g;
	INSERT INTO messy VALUES (-7), (-7), (0), (NULL), (7), (8),
		(` + auditID("2080-01-01Z", 1, 1) + `),
		(` + auditID("2025-03-02 11:00Z", 9, 1) + `),
		(` + auditID("2025-03-02 12:00Z", 2, 1) + `), (` + auditID("2025-03-02 12:00Z", 2, 1) + `);
	SELECT sortkey.reserve_node('snowflake', n, 'tests') FROM generate_series(1, 2) n`

const auditMessyTable = `COLUMN           TYPE       ROWS  NULLS  SERIAL  FIRST                        LAST
public.messy.id  snowflake  109   1      0       2025-03-01 23:59:01.000 UTC  2080-01-01 00:00:00.000 UTC

COLUMN           FINDING       COUNT  EXAMPLE
public.messy.id  malformed     2      -7
public.messy.id  zero          1      0
public.messy.id  small         2      8; if they are keys of a serial column, pass --serial-until 8
public.messy.id  future        1      7809096115814404097
public.messy.id  unknown_node  1      551358038016036865; node 9
public.messy.id  duplicate     2      -7
`

// An auditJSON is the part of a result that tests read.
type auditJSON map[string]any

// finding returns a finding, or nil.
func (r auditJSON) finding(name string) map[string]any {
	for _, f := range r["findings"].([]any) {
		if f := f.(map[string]any); f["finding"] == name {
			return f
		}
	}
	return nil
}

// found returns the findings with rows, such as "malformed 2 -7".
func (r auditJSON) found() string {
	var list []string
	for _, f := range r["findings"].([]any) {
		if f := f.(map[string]any); f["count"] != nil && f["count"] != 0.0 {
			list = append(list, fmt.Sprint(f["finding"], " ", f["count"], " ", f["example"]))
		}
	}
	return strings.Join(list, "; ")
}

// audit runs the command for a column with --output json, and checks its exit code.
func audit(t *testing.T, db *pgtest.DB, code int, line string, more ...string) auditJSON {
	t.Helper()
	r := sortkey(t, db, "audit -o json "+line, more...)
	if r.code != code || strings.Count(r.out, "\n") != 1 || r.errs != "" {
		t.Fatalf("audit %s %q: code %d, want %d and one line\n%s%s", line, more, r.code, code, r.out, r.errs)
	}
	return objects(t, r.out)[0]
}

func TestAuditFindings(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, auditMessy)
		const args = "messy.id --type snowflake"
		r := sortkey(t, db, "audit "+args)
		wantFailure(t, r, 1)
		wantSame(t, r.out, auditMessyTable)
		wantSame(t, audit(t, db, 1, args).found(), "malformed 2 -7; zero 1 0; small 2 8; future 1 7809096115814404097; unknown_node 1 551358038016036865; duplicate 2 -7")

		// Old serial keys have no findings.
		serial := audit(t, db, 1, args+" --serial-until 8")
		wantFields(t, serial, `{"table": "public.messy", "column": "id", "type": "snowflake", "rows": 109, "nulls": 1, "serial": 2, "first": "2025-03-01T23:59:01Z"}`)
		wantSame(t, serial.found(), "malformed 2 -7; zero 1 0; future 1 7809096115814404097; unknown_node 1 551358038016036865; duplicate 2 -7")
		wantFields(t, audit(t, db, 1, args+" --serial-until 7").finding("small"), `{"count": 1, "note": "if they are keys of a serial column, pass --serial-until 8"}`)
		db.Exec(t, `CREATE TABLE moved AS SELECT g::bigint AS id FROM generate_series(1, 5000) g; INSERT INTO moved SELECT `+auditID("2025-03-01Z", 1, 0))
		wantSame(t, audit(t, db, 1, "moved.id --type snowflake").found(), "small 5000 5000")
		wantSame(t, audit(t, db, 0, "moved.id --type snowflake --serial-until 5000").found(), "")

		// A time window.
		window := audit(t, db, 1, args+" --since", "2025-03-02 11:00", "--until", "2025-03-02 12:00")
		wantFields(t, window, `{"rows": 1, "nulls": 0}`)
		wantSame(t, window.found(), "unknown_node 1 551358038016036865")
		wantFields(t, audit(t, db, 0, args+" --until 2021-01-01"), `{"rows": 0, "first": null, "last": null}`)

		// Each column is a line of JSON.
		db.Exec(t, "CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY)")
		both := objects(t, must(t, db, "audit -o json orders moved.id --serial-until 5000 --type snowflake"))
		if len(both) != 2 || both[0]["table"] != "public.orders" || both[1]["table"] != "public.moved" {
			t.Errorf("got %v", both)
		}
	})
}

// With --sql, audit prints statements with the same results, which need no installation.
func TestAuditSQL(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, auditMessy)
		sql := must(t, db, "audit messy.id --type snowflake --sql")
		wantMatch(t, sql, `\A-- public\.messy\.id$`, `^SELECT count\(id\) AS rows`, `lag\(id\)`)
		statements := strings.Split(sql, ";\n")
		db.Exec(t, "DROP SCHEMA sortkey, sortkey_internal CASCADE")
		wantSame(t, pgtest.Value[string](t, db.Conn(t), "SELECT concat_ws(' ', rows, nulls, serial, malformed, zero, small, future, unknown_node) FROM ("+statements[0]+") q"), "109 1 0 2 1 2 1 1")
		wantSame(t, pgtest.Value[int](t, db.Conn(t), "SELECT duplicate::int FROM ("+statements[1]+") q"), 2)
		wantFields(t, objects(t, must(t, db, "audit messy.id --type snowflake --sql -o json"))[0], `{"column": "public.messy.id"}`)
		// A unique index excludes duplicates.
		db.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY); CREATE TABLE later (id bigint PRIMARY KEY DEFERRABLE)")
		if out := must(t, db, "audit orders --type snowflake --sql"); strings.Contains(out, "lag(") {
			t.Errorf("got\n%s", out)
		}
		wantParts(t, must(t, db, "audit later --type snowflake --sql"), "lag(")
	})
}

// Each format has its findings. The type comes from the column or from --type.
func TestAuditFormats(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate up --si-epoch 2024-01-01")
		db.Exec(t, `
			CREATE TABLE by_default (id bigint PRIMARY KEY DEFAULT sortkey.next_uid60());
			INSERT INTO by_default VALUES (DEFAULT), (DEFAULT), (-1), (1152921504606846976), (0), (5);
			CREATE TABLE by_domain (id sortkey.spread64 PRIMARY KEY) PARTITION BY HASH (id);
			CREATE TABLE by_domain_0 PARTITION OF by_domain FOR VALUES WITH (MODULUS 2, REMAINDER 0);
			CREATE TABLE by_domain_1 PARTITION OF by_domain FOR VALUES WITH (MODULUS 2, REMAINDER 1);
			INSERT INTO by_domain SELECT sortkey.spread64_at(timestamptz '2025-03-02Z' + g * interval '1 ms', 0, 33) FROM generate_series(1, 1000) g;
			INSERT INTO by_domain SELECT sortkey.spread64_at('2030-01-01Z', 0, 34);
			CREATE TABLE spread (id bigint); INSERT INTO spread SELECT sortkey.spread64_at('2025-03-02Z', 0, 33); INSERT INTO spread VALUES (0), (1024), (1000);
			SELECT sortkey.reserve_node('spread64', 33, 'tests');
			CREATE TABLE si (id bigint PRIMARY KEY);
			INSERT INTO si VALUES (9007199254740992), (sortkey.snowflake_si_floor('2025-03-02Z') + 1);
			CREATE TABLE "By uuid" ("Id" uuid PRIMARY KEY);
			INSERT INTO "By uuid" VALUES (sortkey.sno_at('2025-03-02Z', 1, 700, 3)), (sortkey.sno_at('2025-03-02Z', 2, 42000, 3)), (sortkey.sno_at('2070-03-02Z', 2, 700, 3)),
				('32323232-3232-3232-3232-323232323232'), ('00000000-0000-4000-8000-000000000000'), ('ffffffff-0000-4000-8000-000000000000');
			CREATE FUNCTION sortkey.next_invoice() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
			CREATE TABLE by_flag (id bigint PRIMARY KEY DEFAULT sortkey.next_invoice());
			INSERT INTO by_flag VALUES (-1), (0);
			CREATE TABLE by_meta (id uuid PRIMARY KEY DEFAULT sortkey.next_sno_meta(3));
			CREATE DOMAIN sortkey.order_id AS sortkey.snowflake;
			CREATE TABLE by_domain_of_domain (id sortkey.order_id PRIMARY KEY);
			INSERT INTO by_domain_of_domain VALUES (1::bigint << 40);
			SELECT sortkey.claim_node('sno-02bc', 4, 'sno: partition 700 in 4 ranges of its sequence', '{}', 'h', 60000, 1000, 2000)`)
		for _, tt := range []struct {
			column, typ string
			want        string // a pattern
			checked     bool   // unknown_node: three types have pools
			flags       string
		}{
			{"by_default", "uid60", `^malformed 2 -1; zero 1 0; small 1 5$`, false, ""},
			{"by_domain", "spread64", `^future 1 -?\d+; unknown_node 1 -?\d+$`, true, ""},
			{"spread.id", "spread64", `^malformed 1 1024; zero 1 0; unknown_node 1 1000$`, true, "--type spread64"},
			{"spread.id", "spread64", `^zero 1 0$`, true, "--type spread64 --serial-until 1024"},
			{"si", "snowflake-si", `^malformed 1 9007199254740992$`, false, "--type snowflake-si"},
			{`"By uuid"`, "sno", `^malformed 2 00000000-0000-4000-8000-000000000000; zero 1 32323232-3232-3232-3232-323232323232; future 1 [^;]*; unknown_node 1 [^;]*$`, true, "--type sno"},
			{`public."By uuid"."Id"`, "sno", `^malformed 2 `, true, "--type sno"},
			{"by_flag", "snowflake", `^malformed 1 -1; zero 1 0$`, false, "--type snowflake"},
			{"by_domain_of_domain", "snowflake", "^$", false, ""},
			{"by_meta", "sno", "^$", true, ""},
		} {
			code := 1
			if tt.want == "^$" {
				code = 0
			}
			r := audit(t, db, code, tt.flags, tt.column)
			wantMatch(t, r.found(), tt.want)
			if checked := r.finding("unknown_node")["count"] != nil; r["type"] != tt.typ || checked != tt.checked {
				t.Errorf("%s: got type %v, unknown_node checked %t", tt.column, r["type"], checked)
			}
		}

		// A view in the search_path before pg_catalog is not the catalog.
		db.Exec(t, "CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$; CREATE VIEW public.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE public.trap()")
		wantFields(t, audit(t, withSetting(t, db, "search_path", "public, pg_catalog"), 0, "by_domain_of_domain"), `{"rows": 1}`)
	})
}

// The keys of a table are UUIDs of several versions. Version 7 has a time.
func TestAuditUUIDs(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `
			CREATE TABLE by_domain (id sortkey.uuid7 PRIMARY KEY);
			CREATE TABLE by_default (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7());
			CREATE TABLE mixed (id uuid);
			INSERT INTO by_domain SELECT sortkey.next_uuid7() FROM generate_series(1, 50);
			INSERT INTO by_default SELECT FROM generate_series(1, 50);
			INSERT INTO mixed SELECT gen_random_uuid() FROM generate_series(1, 300);
			INSERT INTO mixed SELECT sortkey.uuid7_floor(t) FROM generate_series(timestamptz '2025-03-01Z', '2025-03-03Z', '1 day') t;
			INSERT INTO mixed VALUES ('c232ab00-9414-11ec-b3c8-9f6bdeced846'), ('1ec9414c-232a-6b00-b3c8-9f6bdeced846'), ('00000000-0000-0000-0000-000000000000'),
				('00000000-0000-4000-0000-000000000000'), (sortkey.uuid7_floor('2080-01-01Z')), (NULL);
			INSERT INTO mixed SELECT sortkey.uuid7_floor('2025-03-01Z')`)
		for _, table := range []string{"by_domain", "by_default"} {
			r := audit(t, db, 0, table)
			wantFields(t, r, `{"type": "uuid7", "rows": 50, "versions": [{"version": "1", "rows": 0}, {"version": "4", "rows": 0}, {"version": "6", "rows": 0}, {"version": "7", "rows": 50}]}`)
		}
		r := audit(t, db, 1, "mixed.id --type uuid7")
		wantSame(t, r.found(), "malformed 1 00000000-0000-4000-0000-000000000000; zero 1 00000000-0000-0000-0000-000000000000; future 1 0328392c-9c00-7000-8000-000000000000; duplicate 1 01954f00-b000-7000-8000-000000000000")
		wantFields(t, r, `{"rows": 309, "nulls": 1, "first": "2025-03-01T00:00:00Z", "last": "2080-01-01T00:00:00Z",
			"versions": [{"version": "1", "rows": 1}, {"version": "4", "rows": 300}, {"version": "6", "rows": 1}, {"version": "7", "rows": 5}]}`)
		wantMatch(t, sortkey(t, db, "audit mixed.id --type uuid7").out, `^COLUMN UUID VERSION ROWS$`, `^public\.mixed\.id 4 300$`, `unknown_node - not checked: uuid7 has no node numbers`)
	})
}

// Without an installation, the layout comes from the flags.
func TestAuditNotInstalled(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY); INSERT INTO orders SELECT g::bigint * 1000000 << 19 FROM generate_series(1, 25) g; ALTER DATABASE "+db.Name+" SET default_transaction_read_only = on")
		out := must(t, db, "audit orders --type snowflake --epoch 2020-01-01 --bits 3/4/12")
		wantMatch(t, out, `^public.orders.id snowflake 25 0 0 2020-01-01 00:16:40.000 UTC 2020-01-01 06:56:40.000 UTC$`,
			`^public.orders.id unknown_node - not checked: the database has no installation in schema sortkey$`)
		wantSame(t, strings.Count(out, "\n"), 10)
	})
}

// A node number is known if it was reserved before, or if --nodes has it.
func TestAuditKnownNodes(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		unknown := func(args ...string) any {
			t.Helper()
			r := sortkey(t, db, "audit orders.id --type snowflake -o json", args...)
			return auditJSON(objects(t, r.out)[0]).finding("unknown_node")["count"]
		}
		db.Exec(t, "CREATE TABLE orders AS SELECT (g::bigint << 40) + (g << 12) AS id FROM generate_series(1, 3) g")
		wantSame(t, unknown(), nil) // without an installation
		wantSame(t, unknown("--nodes", "0-2"), any(1.0))
		must(t, db, "migrate up")
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1, 'existing rows'); SELECT sortkey.unreserve_node('snowflake', 1)")
		for flag, want := range map[string]float64{"": 2, "2": 1, "3,2": 0, "0-31,1023": 0} {
			wantSame(t, unknown("--nodes", flag), any(want))
		}
	})
}

// A role that may only read the table audits it, without the check of nodes. With the
// necessary privileges, it checks nodes, too.
func TestAuditReadOnlyRole(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		reader, role := asRole(t, db)
		db.Exec(t, auditMessy+`; CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY); GRANT SELECT ON messy, orders TO `+role)
		wantFailure(t, sortkey(t, reader, "audit orders"), 2, "lacks USAGE on schema sortkey, so the types and layouts of IDs are unknown")
		for _, tt := range []struct{ grant, notChecked string }{
			{"", "the role lacks USAGE on schema sortkey"},
			{"GRANT USAGE ON SCHEMA sortkey TO " + role, "the role lacks SELECT on sortkey.node_status and sortkey.node_pool"},
			{"GRANT SELECT ON sortkey.node_status, sortkey.node_pool TO " + role, ""},
		} {
			db.Exec(t, tt.grant)
			f := audit(t, reader, 1, "messy.id --type snowflake --epoch 2021-01-01").finding("unknown_node")
			if tt.notChecked == "" {
				wantFields(t, f, `{"count": 1}`)
			} else {
				wantFields(t, f, `{"count": null, "note": "not checked: `+tt.notChecked+`"}`)
			}
		}
		db.Exec(t, "ALTER TABLE messy ENABLE ROW LEVEL SECURITY")
		wantParts(t, must(t, reader, "audit messy.id --type snowflake"), "Row-level security can hide rows of public.messy.id from the role.")
		db.Exec(t, "REVOKE SELECT ON messy FROM "+role)
		wantFailure(t, sortkey(t, reader, "audit messy.id --type snowflake"), 2, "permission denied for table messy")
	})
}

func TestAuditErrors(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `
			CREATE TABLE plain (id bigint, v text);
			CREATE FUNCTION sortkey.next_invoice() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
			CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT sortkey.next_invoice());
			CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY);
			CREATE TABLE spread (id sortkey.spread64 PRIMARY KEY);
			CREATE TABLE unknown (id bigint PRIMARY KEY);
			CREATE TABLE uuids (id uuid PRIMARY KEY);
			CREATE SCHEMA app; CREATE TABLE app."Orders" (id sortkey.snowflake PRIMARY KEY);
			CREATE TABLE app.id (id bigint PRIMARY KEY); CREATE TABLE app (id bigint PRIMARY KEY);
			CREATE VIEW v AS SELECT * FROM orders`)
		for _, tt := range []struct{ args, want string }{
			{"plain", "public.plain: the table has no primary key of one column; write public.plain.COLUMN"},
			{"plain.v", "column public.plain.v is of type text: audit reads columns of type bigint and uuid"},
			{"unknown", "column public.unknown.id of type bigint: the type of its IDs is unknown; pass --type with one of snowflake, snowflake-si, uid60, spread64"},
			{"invoices", "the type of its IDs is unknown; pass --type"},
			{"unknown --type snowflake-si", "the installation has no base clock; pass --epoch"},
			{"unknown --type sno", "column public.unknown.id is of type bigint; want one of snowflake, snowflake-si, uid60, spread64"},
			{"unknown --type uuid7", "column public.unknown.id is of type bigint; want one of snowflake, snowflake-si, uid60, spread64"},
			{"uuids", "column public.uuids.id of type uuid: the type of its IDs is unknown; pass --type with one of sno, uuid7"},
			{"uuids --type sno --serial-until 5", "--serial-until 5: column public.uuids.id is of type uuid"},
			{"uuids --type uid60", "column public.uuids.id is of type uuid; want one of sno, uuid7"},
			{"orders --type uid60", "column public.orders.id has IDs of type snowflake by its domain"},
			{"orders orders.id", "column public.orders.id is named twice"},
			{"spread --since -1d", "the IDs don't sort by time; omit --since and --until"},
			{"nosuch", "nosuch: the database has no such table; quote names with upper case as in SQL"},
			{"app.Orders", "table public.app has no column orders; quote names with upper case as in SQL"},
			{"orders.nosuch", "table public.orders has no column nosuch"},
			{"a..b", "no such table"},
			{"a.b.c.d.e", "no such table"},
			{"orders.", "no such table"},
			{"orders.i;d", "orders.i;d: the database has no such table; quote names with upper case as in SQL"},
			{"v", "public.v: a view or foreign table; name the tables with the rows"},
			{"orders --schema nosuch", "column public.orders.id: its domain is of the installation in schema sortkey; pass --schema sortkey"},
		} {
			wantFailure(t, sortkey(t, db, "audit "+tt.args), 2, tt.want)
		}
		wantFailure(t, sortkey(t, db, "audit orders --schema", "no schema"), 2, "--schema", "--help for the usage")
	})
}

// The layout of a column is the one of its installation: audit refuses columns of another one, also
// with --type.
func TestAuditOtherInstallation(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate up --schema s2 --epoch 2024-01-01")
		db.Exec(t, `CREATE DOMAIN order_id AS s2.snowflake;
			CREATE TABLE by_domain (id order_id PRIMARY KEY); INSERT INTO by_domain VALUES (s2.snowflake_floor('2025-03-02Z') + 1);
			CREATE TABLE by_default (id bigint PRIMARY KEY DEFAULT s2.next_snowflake(7));
			CREATE TABLE by_uuid (id uuid PRIMARY KEY DEFAULT s2.next_sno(7, 3))`)
		for table, source := range map[string]string{"by_domain": "domain", "by_default": "default", "by_uuid": "default"} {
			for _, flags := range []string{"", " --type snowflake", " --type snowflake --epoch 2024-01-01"} {
				wantFailure(t, sortkey(t, db, "audit "+table+flags), 2, "column public."+table+".id: its "+source+" is of the installation in schema s2; pass --schema s2\n")
			}
			must(t, db, "audit --schema s2 "+table)
		}
		wantFields(t, audit(t, db, 0, "by_domain --schema s2"), `{"type": "snowflake", "first": "2025-03-02T00:00:00Z"}`)
	})
}

// Audit finds a column by the name that it prints, whatever characters the names have. The name of
// a table comes before the one of a column.
func TestAuditNames(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE SCHEMA "Odd Schema"; CREATE TABLE "Odd Schema"."Ta.ble ""x""" ("I.d" sortkey.snowflake PRIMARY KEY, "o""." sortkey.uid60, "order" sortkey.uid60);
			CREATE SCHEMA a; CREATE TABLE a.b (id sortkey.snowflake PRIMARY KEY); CREATE TABLE a (b sortkey.uid60); CREATE TABLE "a.b" (id sortkey.spread64 PRIMARY KEY)`)
		for name, want := range map[string]string{
			`"Odd Schema"."Ta.ble ""x"""`:         `"Odd Schema"."Ta.ble ""x"""."I.d" snowflake`,
			`"Odd Schema"."Ta.ble ""x"""."I.d"`:   `"Odd Schema"."Ta.ble ""x"""."I.d" snowflake`,
			`"Odd Schema"."Ta.ble ""x"""."o""."`:  `"Odd Schema"."Ta.ble ""x"""."o""." uid60`,
			`"Odd Schema"."Ta.ble ""x"""."order"`: `"Odd Schema"."Ta.ble ""x"""."order" uid60`,
			`A.B`:                                 "a.b.id snowflake",
			`a.b.id`:                              "a.b.id snowflake",
			`public.a.b`:                          "public.a.b uid60",
			`"a.b"`:                               `public."a.b".id spread64`,
			`public."a.b"`:                        `public."a.b".id spread64`,
		} {
			r := audit(t, db, 0, "", name)
			wantSame(t, fmt.Sprintf("%s.%s %s", r["table"], r["column"], r["type"]), want)
		}
	})
}

// A distributed table is read at the coordinator, also by a column that is not the
// distribution column.
func TestAuditCitus(t *testing.T) {
	t.Parallel()
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		must(t, c.DB, "migrate up")
		c.Exec(t, `CREATE TABLE events (id bigint PRIMARY KEY, parent bigint)`)
		c.Exec(t, `SELECT create_distributed_table('events', 'id')`)
		c.Exec(t, `INSERT INTO events SELECT sortkey.snowflake_at(timestamptz '2025-03-01Z' + n * interval '1 ms', 0, 3), (1 + n / 50)::bigint << 40 FROM generate_series(1, 4999) n`)
		c.Exec(t, `INSERT INTO events VALUES (-5, NULL), (`+auditID("2025-03-01Z", 4, 0)+`, NULL)`)
		c.Exec(t, "SELECT sortkey.reserve_node('snowflake', 3, 'tests')")
		r := audit(t, c.DB, 1, "events --type snowflake")
		wantSame(t, r.found(), "malformed 1 -5; unknown_node 1 550829555712016384")
		wantFields(t, r, `{"rows": 5001}`)
		r = audit(t, c.DB, 1, "events.parent --type uid60")
		wantSame(t, r.found(), "duplicate 4899 1099511627776")
		wantFields(t, r, `{"rows": 4999, "nulls": 2}`)
	})
}

// The audit works through PgBouncer in transaction mode without prepared statements.
func TestAuditPgBouncer(t *testing.T) {
	t.Parallel()
	installed.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, auditMessy)
		pooled := pgtest.Bouncer{Suite: "trixie", Version: "1.24", Backends: 1, Settings: "max_prepared_statements = 0"}.Start(t, db)
		wantFields(t, audit(t, &pooled, 1, "messy.id --type snowflake"), `{"rows": 109}`)
	})
}
