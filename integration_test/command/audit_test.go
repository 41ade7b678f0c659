package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// auditID returns an SQL expression for the Snowflake of a time, a node and a sequence
// number.
func auditID(at string, node, sequence int) string {
	return fmt.Sprintf("sortkey.snowflake_floor('%s') + (%d << 12) + %d", at, node, sequence)
}

// A messy table has every finding. Nodes 1 and 2 are reserved.
var auditMessy = `
	CREATE TABLE messy (id bigint, created_at timestamptz, n serial);
	CREATE UNIQUE INDEX ON messy (id, n);
	INSERT INTO messy SELECT sortkey.snowflake_floor(at) + (1 + g % 2 << 12), at FROM (
		SELECT g, timestamptz '2025-03-01 23:59:00Z' + g * interval '1 s' AS at FROM generate_series(1, 100) g) q;
	INSERT INTO messy VALUES
		(-7, '2025-03-01Z'), (-7, '2025-03-01Z'), (0, '2025-03-01Z'), (NULL, NULL),
		(` + auditID("2080-01-01Z", 1, 1) + `, NULL),
		(` + auditID("2025-03-02 10:00Z", 1, 1) + `, '2025-03-02 10:00:59Z'), -- within the tolerance
		(` + auditID("2025-03-02 10:00Z", 1, 2) + `, '2025-03-02 10:01:01Z'),
		(` + auditID("2025-03-02 10:00Z", 1, 3) + `, '-infinity'),
		(` + auditID("2025-03-02 11:00Z", 9, 1) + `, '2025-03-02 11:00Z'),
		(` + auditID("2025-03-02 12:00Z", 2, 1) + `, '2025-03-02 12:00Z'), (` + auditID("2025-03-02 12:00Z", 2, 1) + `, '2025-03-02 12:00Z');
	SELECT sortkey.reserve_node('snowflake', n, 'tests') FROM generate_series(1, 2) n`

const auditMessyTable = `COLUMN           TYPE       ROWS  NULLS  FIRST                        LAST
public.messy.id  snowflake  110   1      2025-03-01 23:59:01.000 UTC  2080-01-01 00:00:00.000 UTC

FINDING       COUNT  EXAMPLES
malformed     2      -7, 2 times in public.messy.id
zero          1      0 in public.messy.id
future        1      7809096115814404097 of 2080-01-01 00:00:00.000 UTC in public.messy.id
apart         2      551342938521604098 of 2025-03-02 10:00:00.000 UTC, but created at 2025-03-02T10:01:01Z in public.messy.id
                     551342938521604099 of 2025-03-02 10:00:00.000 UTC, but created at -infinity in public.messy.id
unknown_node  1      551358038016036865 of node 9 in public.messy.id
duplicate     2      -7, 2 times in public.messy.id
                     551373137510408193, 2 times in public.messy.id

TYPE       NODE  ROWS  SHARE
snowflake     1  54    50.5%
snowflake     2  52    48.6%
snowflake     9  1     0.9%   unknown

DAY         ROWS  SHARE
2025-03-01  59    55.1%
2025-03-02  47    43.9%
2080-01-01  1     0.9%
`

// An auditJSON is the part of the result that tests read.
type auditJSON struct {
	Tables []struct {
		Database, Table, Column, Type string
		Rows, Nulls                   int64
		First, Last                   *string
	}
	Findings []struct {
		Finding    string
		Checked    bool
		NotChecked []string `json:"not_checked"`
		Count      int64
		Examples   []struct {
			Key    string
			Rows   int64
			Places []struct{ Database, Table, Column string }
		}
	}
	Nodes []struct {
		Type  string
		Node  int
		Known any // nil, true or false
		Rows  int64
	}
	Versions []struct {
		Version string
		Rows    int64
	}
	Days []struct {
		Day  string
		Rows int64
	}
	Rows     int64
	Complete bool
}

// counts returns the findings with IDs, such as "malformed 2 [-7]".
func (r auditJSON) counts() (lines []string) {
	for _, f := range r.Findings {
		var keys []string
		for _, e := range f.Examples {
			keys = append(keys, e.Key)
		}
		if f.Count > 0 {
			lines = append(lines, fmt.Sprint(f.Finding, " ", f.Count, " ", keys))
		}
	}
	return lines
}

// audit runs the command with --output json and checks its exit code.
func audit(t *testing.T, db *pgtest.DB, code int, line string, more ...string) auditJSON {
	t.Helper()
	r := sortkey(t, db, "audit -o json "+line, more...)
	if r.code != code || strings.Count(r.out, "\n") != 1 { // on a slow machine, progress goes to errs
		t.Fatalf("audit %s %q: code %d, want %d and one line\n%s%s", line, more, r.code, code, r.out, r.errs)
	}
	return parseAudit(t, r)
}

// parseAudit reads the output of audit with --output json.
func parseAudit(t *testing.T, r result) (a auditJSON) {
	t.Helper()
	pgtest.Must(t, json.Unmarshal([]byte(r.out), &a))
	return a
}

// The findings, nodes and days are the same for batches of any size.
func TestAuditFindings(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, auditMessy)
		db.Exec(t, `CREATE TABLE other (id bigint PRIMARY KEY); INSERT INTO other VALUES (-8), (-7), (1);
			CREATE TABLE positive (id bigint PRIMARY KEY); INSERT INTO positive VALUES (1);
			CREATE TABLE few (id bigint); CREATE INDEX ON few (id); INSERT INTO few VALUES (-7), (-7), (0)`)
		wantSame(t, audit(t, db, 1, "few.id other positive --type uid60").counts(), []string{"malformed 4 [-8 -7 -7]", "zero 1 [0]", "duplicate 2 [-7 1]"})
		const args = "messy.id --type snowflake --created-at created_at --examples 2"
		r := sortkey(t, db, "audit "+args)
		wantFailure(t, r, 1)
		wantSame(t, r.out, auditMessyTable)
		// Batches that end within the rows of an ID.
		for _, batch := range []string{"1", "3", "10000"} {
			a := audit(t, db, 1, args+" --batch "+batch)
			wantSame(t, a.counts(), []string{"malformed 2 [-7]", "zero 1 [0]", "future 1 [7809096115814404097]", "apart 2 [551342938521604098 551342938521604099]",
				"unknown_node 1 [551358038016036865]", "duplicate 2 [-7 551373137510408193]"})
			wantSame(t, fmt.Sprint(a.Nodes, a.Days), "[{snowflake 1 true 54} {snowflake 2 true 52} {snowflake 9 false 1}] [{2025-03-01 59} {2025-03-02 47} {2080-01-01 1}]")
			if a.Rows != 110 || !a.Complete || a.Tables[0].Nulls != 1 || a.Tables[0].Database != db.Name {
				t.Errorf("got %+v", a)
			}
		}
		window := audit(t, db, 1, "messy.id --type snowflake --since", "2025-03-02 11:00")
		wantSame(t, window.counts(), []string{"future 1 [7809096115814404097]", "unknown_node 1 [551358038016036865]", "duplicate 1 [551373137510408193]"})
		wantSame(t, window.Complete, false)
		wantSame(t, window.Rows, 4)
	})
}

// Each format has its findings. The type comes from the column or from --type.
func TestAuditFormats(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		must(t, db, "migrate up --si-epoch 2024-01-01")
		db.Exec(t, `
			CREATE TABLE by_default (id bigint PRIMARY KEY DEFAULT sortkey.next_uid60());
			INSERT INTO by_default VALUES (DEFAULT), (DEFAULT), (-1), (1152921504606846976), (0);
			CREATE TABLE by_domain (id sortkey.spread64 PRIMARY KEY) PARTITION BY HASH (id);
			CREATE TABLE by_domain_0 PARTITION OF by_domain FOR VALUES WITH (MODULUS 2, REMAINDER 0);
			CREATE TABLE by_domain_1 PARTITION OF by_domain FOR VALUES WITH (MODULUS 2, REMAINDER 1);
			INSERT INTO by_domain SELECT sortkey.spread64_at(timestamptz '2025-03-02Z' + g * interval '1 ms', 0, 33) FROM generate_series(1, 1000) g;
			INSERT INTO by_domain SELECT sortkey.spread64_at('2030-01-01Z', 0, 34);
			SELECT sortkey.reserve_node('spread64', 33, 'tests');
			CREATE TABLE by_settings (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
			CREATE TABLE by_settings_default PARTITION OF by_settings DEFAULT;
			SELECT sortkey.manage_partitions('by_settings', '1 day', 'snowflake_si');
			INSERT INTO by_settings VALUES (9007199254740992), (sortkey.snowflake_si_floor('2025-03-02Z') + 1);
			CREATE TABLE "By uuid" ("Id" uuid PRIMARY KEY, at timestamp);
			INSERT INTO "By uuid" VALUES (sortkey.sno_at('2025-03-02Z', 1, 700, 3), '2025-03-02'), (sortkey.sno_at('2025-03-02Z', 2, 700, 3), '2025-03-02 00:02'),
				('32323232-3232-3232-3232-323232323232', NULL), ('00000000-0000-4000-8000-000000000000', NULL), ('ffffffff-0000-4000-8000-000000000000', NULL);
			CREATE FUNCTION sortkey.next_invoice() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
			CREATE TABLE by_flag (id bigint PRIMARY KEY DEFAULT sortkey.next_invoice());
			INSERT INTO by_flag VALUES (-1), (0);
			CREATE DOMAIN sortkey.order_id AS sortkey.snowflake;
			CREATE TABLE by_domain_of_domain (id sortkey.order_id PRIMARY KEY);
			INSERT INTO by_domain_of_domain VALUES (1);
			SELECT sortkey.claim_node('sno-02bc', 4, 'sno: partition 700 in 4 ranges of its sequence', '{}', 'h', 60000, 1000, 2000)`)
		for _, tt := range []struct {
			table, typ string
			want       string // a pattern
			code       int
			flags      []string
		}{
			{"by_default", "uid60", `^malformed 2 \[-1 1152921504606846976\]; zero 1 \[0\]$`, 1, nil},
			{"by_domain", "spread64", `^future 1 \[[^;]*; unknown_node 1 \[[^;]*$`, 1, nil},
			{"by_settings", "snowflake-si", `^malformed 1 \[9007199254740992\]$`, 1, nil},
			{`"By uuid"`, "sno", `^malformed 2 \[00000000-0000-4000-8000-000000000000 ffffffff-0000-4000-8000-000000000000\]; zero 1 \[32323232-3232-3232-3232-323232323232\]; apart 1 \[[^;]*$`, 1, []string{"--created-at", "at"}},
			{"by_flag", "snowflake", `^malformed 1 \[-1\]; zero 1 \[0\]$`, 1, []string{"--type", "snowflake"}},
			{"by_domain_of_domain", "snowflake", "^$", 0, nil},
		} {
			a := audit(t, db, tt.code, "", append([]string{tt.table}, tt.flags...)...)
			wantMatch(t, strings.Join(a.counts(), "; "), tt.want)
			if a.Tables[0].Type != tt.typ {
				t.Errorf("%s: got type %s, want %s", tt.table, a.Tables[0].Type, tt.typ)
			}
			// Only these two have pools.
			if checked := a.Findings[4].Checked; checked != (tt.typ == "spread64" || tt.typ == "sno") {
				t.Errorf("%s: unknown_node: got checked %t", tt.table, checked)
			}
		}

		// A view in the search_path before pg_catalog is not the catalog.
		db.Exec(t, "CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$; CREATE VIEW public.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE public.trap()")
		wantSame(t, audit(t, withSetting(t, db, "search_path", "public, pg_catalog"), 0, "by_domain_of_domain").Rows, 1)
	})
}

// The keys of a table are UUIDs of several versions. Versions 1 and 7 have a time.
func TestAuditUUIDs(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `
			CREATE TABLE by_domain (id sortkey.uuid7 PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
			CREATE TABLE by_default (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7());
			CREATE TABLE empty (id uuid PRIMARY KEY);
			CREATE TABLE by_settings (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('by_settings', '1 day', 'uuid7');
			CREATE TABLE mixed (id uuid, at timestamptz); CREATE INDEX ON mixed (id);
			INSERT INTO by_domain SELECT sortkey.next_uuid7() FROM generate_series(1, 50);
			INSERT INTO by_default SELECT FROM generate_series(1, 50);
			INSERT INTO mixed SELECT gen_random_uuid(), '2020-01-01Z' FROM generate_series(1, 300);
			INSERT INTO mixed SELECT sortkey.uuid7_floor(t), t FROM generate_series(timestamptz '2025-03-01Z', '2025-03-03Z', '1 day') t;
			INSERT INTO mixed VALUES
				('c232ab00-9414-11ec-b3c8-9f6bdeced846', '2022-02-22 19:22:22Z'),
				('00000000-0000-0000-0000-000000000000', NULL),
				('00000000-0000-0000-c000-000000000046', NULL), ('ffffffff-ffff-ffff-ffff-ffffffffffff', NULL),
				(sortkey.uuid7_floor('2080-01-01Z'), NULL), ('ffffffff-ffff-7000-8000-000000000000', NULL),
				(sortkey.uuid7_floor('2025-03-02 10:00Z'), '2025-03-02 10:02Z'),
				(sortkey.uuid7_floor('2025-03-02 11:00Z'), '2025-03-02 11:00Z'), (sortkey.uuid7_floor('2025-03-02 11:00Z'), NULL)`)
		for _, table := range []string{"by_domain", "by_default", "by_settings", "empty"} {
			a := audit(t, db, 0, table)
			if a.Tables[0].Type != "uuid7" {
				t.Errorf("%s: got type %s, want uuid7", table, a.Tables[0].Type)
			}
			if got := fmt.Sprint(a.Versions); strings.HasPrefix(table, "by_d") && got != "[{7 50}]" {
				t.Errorf("%s: got versions %s", table, got)
			}
		}
		audit(t, db, 0, "by_domain --created-at at")
		for _, batch := range []string{"2", "10000"} {
			a := audit(t, db, 1, "mixed.id --created-at at --batch", batch)
			wantSame(t, a.counts(), []string{"malformed 2 [00000000-0000-0000-c000-000000000046 ffffffff-ffff-ffff-ffff-ffffffffffff]",
				"zero 1 [00000000-0000-0000-0000-000000000000]",
				"future 2 [0328392c-9c00-7000-8000-000000000000 ffffffff-ffff-7000-8000-000000000000]",
				"apart 1 [0195564c-5d00-7000-8000-000000000000]",
				"duplicate 1 [01955683-4b80-7000-8000-000000000000]"})
			wantSame(t, fmt.Sprint(a.Versions, a.Days), "[{1 1} {4 300} {7 8} {nil 1} {other 2}] [{2022-02-22 1} {2025-03-01 1} {2025-03-02 4} {2025-03-03 1} {2080-01-01 1} {10889-08-02 1}]")
			if first := a.Tables[0].First; a.Rows != 312 || first == nil || *first != "2022-02-22T19:22:22Z" {
				t.Errorf("got %+v", a.Tables)
			}
		}
		wantMatch(t, sortkey(t, db, "audit mixed.id").out, `^UUID VERSION ROWS SHARE$`, `^4 300 96\.2%$`, `^other 2 0\.6%$`, `^unknown_node - not checked: uuid7 has no node numbers$`)
		// The UUIDs of other versions sort by chance.
		window := audit(t, db, 1, "mixed.id --since 2079-12-31")
		wantSame(t, fmt.Sprint(window.Days), "[{2022-02-22 1} {2080-01-01 1} {10889-08-02 1}]")
	})
}

// Without problems the exit code is 0. The command works without an installation, on
// a server that is read-only, and with --epoch and --bits.
func TestAuditNothingFound(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY); INSERT INTO orders SELECT g::bigint * 1000000 << 19 FROM generate_series(1, 25) g; ALTER DATABASE "+db.Name+" SET default_transaction_read_only = on")
		want := `COLUMN            TYPE       ROWS  NULLS  FIRST                        LAST
public.orders.id  snowflake  25    0      2020-01-01 00:16:40.000 UTC  2020-01-01 06:56:40.000 UTC

FINDING       COUNT  EXAMPLES
malformed     0
zero          0
future        0
apart         -      not checked: no --created-at
unknown_node  -      not checked: the database has no installation in schema sortkey
duplicate     0

TYPE       NODE  ROWS  SHARE
snowflake     0  25    100.0%

DAY         ROWS  SHARE
2020-01-01  25    100.0%
`
		wantSame(t, must(t, db, "audit orders --type snowflake --epoch 2020-01-01 --bits 3/4/12"), want)
		a := audit(t, db, 0, "orders --type uid60 --since 2100-01-01")
		if a.Rows != 0 || a.Complete || a.Tables[0].First != nil || a.Nodes == nil || a.Days == nil {
			t.Errorf("an empty window: got %+v; want empty lists, not null", a)
		}
	})
}

// A node number is known if it was reserved before, or if --nodes has it.
func TestAuditKnownNodes(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		const rows = "CREATE TABLE orders AS SELECT (g::bigint << 22) + (g << 12) AS id FROM generate_series(0, 3) g; DELETE FROM orders WHERE id = 0; CREATE UNIQUE INDEX ON orders (id)"
		unknown := func(args ...string) string {
			t.Helper()
			a := parseAudit(t, sortkey(t, db, "audit orders.id --type snowflake -o json", args...))
			return fmt.Sprint(a.Findings[4].Checked, a.Findings[4].Count)
		}
		db.Exec(t, rows)
		wantSame(t, unknown(), "false 0") // without an installation
		wantSame(t, unknown("--nodes", "0-2"), "true 1")
		must(t, db, "migrate up")
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1, 'existing rows'); SELECT sortkey.unreserve_node('snowflake', 1)")
		for flag, want := range map[string]string{"": "true 2", "2": "true 1", "3,2": "true 0", "0-31,1023": "true 0"} {
			if got := unknown("--nodes", flag); got != want {
				t.Errorf("--nodes %q: got %s, want %s", flag, got, want)
			}
		}
	})
}

// An ID that stands in several tables or databases is a duplicate. A node is known if any of
// the databases knows it.
func TestAuditShards(t *testing.T) {
	pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		shard := auditDatabase(t, db)
		for i, d := range []*pgtest.DB{db, shard} {
			must(t, d, "migrate up")
			d.Exec(t, fmt.Sprintf(`
				CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY);
				CREATE TABLE archive (id sortkey.snowflake PRIMARY KEY);
				INSERT INTO orders SELECT sortkey.snowflake_at(timestamptz '2025-03-01Z' + g * interval '1 ms', 0, %[1]d) FROM generate_series(1, 1000) g;
				INSERT INTO archive SELECT sortkey.snowflake_at(timestamptz '2025-02-01Z' + g * interval '1 ms', 0, %[1]d) FROM generate_series(1, 1000) g;
				SELECT sortkey.reserve_node('snowflake', %[1]d, 'tests')`, i+1))
		}
		both := []string{"orders", "archive", "--database", db.URL, "--database", shard.URL, "--batch", "77"}
		if a := audit(t, nil, 0, "", both...); a.Rows != 4000 || len(a.Nodes) != 2 || a.Nodes[0].Known != true || a.Nodes[1].Known != true {
			t.Errorf("got %+v", a)
		}
		shared := auditID("2025-03-01 00:00:00.500Z", 1, 0)
		shard.Exec(t, "INSERT INTO orders SELECT "+shared+"; INSERT INTO archive SELECT "+shared)
		a := audit(t, nil, 1, "", both...)
		wantSame(t, a.counts(), []string{"duplicate 1 [550829557809156096]"})
		var places []string
		for _, p := range a.Findings[5].Examples[0].Places {
			places = append(places, p.Database+" "+p.Table+" "+p.Column)
		}
		slices.Sort(places)
		wantSame(t, places, []string{db.Name + " public.orders id", shard.Name + " public.archive id", shard.Name + " public.orders id"})
		table := sortkey(t, nil, "audit", both...)
		wantParts(t, table.out, "550829557809156096, 3 times in "+db.Name+": public.orders.id, "+shard.Name+": public.", "\n"+shard.Name+": public.archive.id  snowflake  1,001 ")
		wantSame(t, audit(t, shard, 1, "orders archive").counts(), []string{"unknown_node 2 [550829557809156096 550829557809156096]", "duplicate 1 [550829557809156096]"})
		wantFailure(t, sortkey(t, nil, "audit orders --database", db.URL, "--database", db.URL), 2, "is given twice")

		// Databases are compared only in the layouts that their columns use.
		must(t, shard, "migrate up --si-epoch 2026-01-01")
		audit(t, db, 1, "orders -d", db.URL, "-d", shard.URL)
	})
}

// auditDatabase creates another database on the server.
func auditDatabase(t *testing.T, db *pgtest.DB) *pgtest.DB {
	t.Helper()
	name := db.Name + "_shard"
	db.Exec(t, "CREATE DATABASE "+name+" TEMPLATE template0")
	pool := db.SQL(t)
	t.Cleanup(func() {
		_, err := pool.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		pgtest.Must(t, err)
	})
	other := withURL(t, db, func(u *url.URL) { u.Path = "/" + name })
	other.Name = name
	return other
}

// A role that may only read the table audits it, without the check of nodes. With the
// necessary privileges, it checks nodes, too.
func TestAuditReadOnlyRole(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		reader, role := asRole(t, db)
		db.Exec(t, auditMessy+`; CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY); INSERT INTO orders SELECT sortkey.snowflake_at(now() - interval '1 day', 1, 3); GRANT SELECT ON messy, orders TO `+role)
		wantFailure(t, sortkey(t, reader, "audit orders"), 2, "lacks USAGE on schema sortkey, so the layout of its IDs is unknown")

		// Audit doesn't take the pools of another database for all.
		other := auditDatabase(t, db)
		must(t, other, "migrate up")
		other.Exec(t, "CREATE TABLE orders (id bigint PRIMARY KEY); SELECT sortkey.reserve_node('snowflake', 9, 'tests'); GRANT USAGE ON SCHEMA sortkey TO "+role+`;
			GRANT SELECT ON orders, sortkey.node_status, sortkey.node_pool TO `+role)
		otherReader := withURL(t, reader, func(u *url.URL) { u.Path = "/" + other.Name })
		if f := audit(t, reader, 0, "orders --type snowflake --epoch 2021-01-01 -d", otherReader.URL, "-d", reader.URL).Findings[4]; f.Checked {
			t.Errorf("the role cannot read the pools of one database, but audit checked node numbers: %+v", f)
		}

		for _, tt := range []struct{ grant, notChecked string }{
			{"", "the role lacks USAGE on schema sortkey"},
			{"GRANT USAGE ON SCHEMA sortkey TO " + role, "the role lacks SELECT on sortkey.node_status and sortkey.node_pool"},
			{"GRANT SELECT ON sortkey.node_status, sortkey.node_pool TO " + role, ""},
		} {
			db.Exec(t, tt.grant)
			f := audit(t, reader, 1, "messy.id --type snowflake --epoch 2021-01-01").Findings[4]
			if f.Checked != (tt.notChecked == "") || strings.Join(f.NotChecked, "; ") != tt.notChecked || f.Checked && f.Count != 1 {
				t.Errorf("after %q: got %+v, want %q", tt.grant, f, tt.notChecked)
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
			CREATE TABLE plain (id bigint, hashed bigint, "order" bigint, v text, at timestamptz);
			CREATE INDEX ON plain USING hash (hashed);
			CREATE INDEX ON plain ("order") WHERE "order" > 7;
			CREATE FUNCTION sortkey.next_invoice() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
			CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT sortkey.next_invoice());
			CREATE TABLE loose (id bigint);
			CREATE INDEX ON loose (id NULLS FIRST);
			CREATE INDEX ON loose (id DESC NULLS LAST);
			CREATE TABLE parent (id sortkey.snowflake PRIMARY KEY);
			CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
			CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child);
			CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY, at timestamptz, times timestamptz[]);
			CREATE TABLE spread (id sortkey.spread64 PRIMARY KEY);
			CREATE TABLE unknown (id bigint PRIMARY KEY);
			CREATE TABLE uuids (id uuid PRIMARY KEY);
			CREATE SCHEMA app; CREATE TABLE app."Orders" (id sortkey.snowflake PRIMARY KEY);
			CREATE TABLE app.id (id bigint PRIMARY KEY); CREATE TABLE app (id bigint PRIMARY KEY);
			CREATE TABLE parted (id bigint, at timestamptz) PARTITION BY RANGE (at);
			CREATE VIEW v AS SELECT * FROM orders`)
		for _, tt := range []struct{ args, want string }{
			{"plain.id", "column public.plain.id has no index, so that each batch would read the whole table; run CREATE INDEX CONCURRENTLY ON public.plain (id)"},
			{"plain.hashed", "run CREATE INDEX CONCURRENTLY ON public.plain (hashed)"},
			{"plain.order", `run CREATE INDEX CONCURRENTLY ON public.plain ("order")`},
			{"parted.id", "run CREATE INDEX ON public.parted (id)"},
			{"loose.id --type snowflake", "has no index"}, // in the order of the keys
			{"plain", "public.plain: the table has no primary key of one column; write public.plain.COLUMN"},
			{"plain.v", "column public.plain.v is of type text: audit reads columns of type bigint and uuid"},
			{"unknown", "column public.unknown.id of type bigint: the type of its IDs is unknown; pass --type with one of snowflake, snowflake-si, uid60, spread64"},
			{"invoices", "the type of its IDs is unknown; pass --type"},
			{"unknown --type snowflake-si", "the installation has no base clock; pass --epoch"},
			{"unknown --type sno", "column public.unknown.id is of type bigint; want one of snowflake, snowflake-si, uid60, spread64"},
			{"unknown --type uuid7", "column public.unknown.id is of type bigint; want one of snowflake, snowflake-si, uid60, spread64"},
			{"uuids --type uid60", "column public.uuids.id is of type uuid; want one of sno, uuid7"},
			{"orders --type uid60", "column public.orders.id has IDs of type snowflake by its domain"},
			{"orders orders.id", "column public.orders.id is named twice"},
			{"orders --created-at nosuch", "table public.orders has no such column"},
			{"orders --created-at id", "want timestamp or timestamptz"},
			{"orders --created-at times", "the column is of type timestamp with time zone[]; want timestamp"},
			{"parent grandchild", "have rows in common, since one inherits from the other; name the parent alone"},
			{"child grandchild", "have rows in common, since one inherits from the other; name the parent alone"},
			{"spread --since -1d", "the IDs don't sort by time; omit --since"},
			{"nosuch", "nosuch: database " + db.Name + " has no such table or column"},
			{"app.Orders", "no such table or column; quote names with upper case as in SQL"},
			{"orders.nosuch", "no such table or column"},
			{"app.id", "both table app.id and column public.app.id have this name; write the schema, the table and the column"},
			{"a..b", "want [SCHEMA.]TABLE[.COLUMN]"},
			{"v", "public.v: a view or foreign table has no indexes"},
			{"orders --schema nosuch", "--type"},
		} {
			wantFailure(t, sortkey(t, db, "audit "+tt.args), 2, tt.want)
		}
		wantFailure(t, sortkey(t, db, "audit orders --schema", "no schema"), 2, "--schema", "--help for the usage")
	})
}

// readsBatches is the condition for a session of an audit of a column id.
const readsBatches = `query ~ 'ORDER BY id'`

// Rows that are inserted behind the audit's position are not read, and those before it are.
// No row is read twice.
func TestAuditConcurrentInserts(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE big (id bigint PRIMARY KEY); INSERT INTO big SELECT g * 2 FROM generate_series(1, 3000) g`)
		conn, probe := db.Conn(t), db.Conn(t)
		end := start(t, command(t, db, "audit big --type snowflake --rate 1000 --batch 100 -o json"))
		awaitSession(t, probe, readsBatches+" AND state = 'idle'")
		tx, err := conn.Begin(t.Context())
		pgtest.Must(t, err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE big; INSERT INTO big SELECT -g FROM generate_series(1, 1000) g; INSERT INTO big SELECT 6000 + g FROM generate_series(1, 1000) g", pgx.QueryExecModeSimpleProtocol)
		pgtest.Must(t, err)
		awaitSession(t, probe, readsBatches+" AND "+waits) // before its end
		pgtest.Must(t, tx.Commit(t.Context()))
		r := end()
		a := parseAudit(t, r)
		if a.Rows != 4000 || len(a.counts()) != 0 || r.code != 0 {
			t.Errorf("code %d, %d rows, findings %q; want 4000 rows and none", r.code, a.Rows, a.counts())
		}
	})
}

// A distributed table is read at the coordinator, also by a column that is not the
// distribution column.
func TestAuditCitus(t *testing.T) {
	t.Parallel()
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		must(t, c.DB, "migrate up")
		c.Exec(t, `CREATE TABLE events (id bigint PRIMARY KEY, parent bigint, created_at timestamptz)`)
		c.Exec(t, `SELECT create_distributed_table('events', 'id')`)
		c.Exec(t, `INSERT INTO events SELECT sortkey.snowflake_at(at, 0, 3), n / 50, at FROM generate_series(1, 5000) n, LATERAL (SELECT timestamptz '2025-03-01Z' + n * interval '1 ms') t (at)`)
		c.Exec(t, `INSERT INTO events VALUES (-5, NULL, NULL), (`+auditID("2025-03-01Z", 4, 0)+`, NULL, '2025-03-02Z')`)
		c.Exec(t, "CREATE INDEX ON events (parent)")
		c.Exec(t, `CREATE TABLE referenced (id bigint PRIMARY KEY)`)
		c.Exec(t, `SELECT create_reference_table('referenced')`)
		c.Exec(t, `INSERT INTO referenced SELECT id FROM events WHERE parent = 7 AND id % 3 = 0 ORDER BY id LIMIT 1`)
		c.Exec(t, "SELECT sortkey.reserve_node('snowflake', 3, 'tests')")
		a := audit(t, c.DB, 1, "events --type snowflake --created-at created_at --batch 700")
		wantSame(t, a.counts(), []string{"malformed 1 [-5]", "apart 1 [550829555712016384]", "unknown_node 1 [550829555712016384]"})
		wantSame(t, a.Rows, 5002)
		a = audit(t, c.DB, 1, "events.id referenced --type snowflake")
		wantSame(t, a.Findings[5].Count, 1) // of duplicates in both tables
		a = audit(t, c.DB, 1, "events.parent --type uid60 --batch 99")
		if f := a.Findings[5]; f.Count != 100 || a.Rows != 5000 || a.Tables[0].Nulls != 2 {
			t.Errorf("duplicates: got %+v, %+v", a.Tables, f)
		}
	})
}

// The audit works through PgBouncer in transaction mode without prepared statements, and
// leaves the settings of the server's sessions as they are.
func TestAuditPgBouncer(t *testing.T) {
	t.Parallel()
	installed.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, auditMessy)
		pooled := pgtest.Bouncer{Suite: "trixie", Version: "1.24", Backends: 1, Settings: "max_prepared_statements = 0"}.Start(t, db)
		a := audit(t, &pooled, 1, "messy.id --type snowflake --batch 7")
		if a.Rows != 110 || a.Findings[5].Count != 2 {
			t.Errorf("got %+v", a)
		}
		wantSame(t, pgtest.Value[string](t, pooled.Conn(t), "SELECT current_setting('enable_seqscan') || ' ' || current_setting('transaction_read_only')"), "on off")
	})
}
