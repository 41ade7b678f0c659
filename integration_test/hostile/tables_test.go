package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// mallorys are tables of mallory's with keys, each with code that a statement on the table runs,
// or the planner. {t} stands for the name of the table.
var mallorys = []struct{ name, sql string }{
	{"view", `CREATE VIEW {t} AS SELECT mallory.same(i::bigint) AS id, now() AS at FROM generate_series(1, 3) i`},
	{"policy", plain + policy + `(mallory.payload())`},
	{"policy with a cast to a domain", plain + `CREATE DOMAIN {t}_d AS text CHECK (mallory.payload());` + policy + `(id::text::{t}_d IS NOT NULL)`},
	{"policy with SQL in a text", plain + policy + `(query_to_xml('SELECT mallory.payload()', true, true, '') IS NOT NULL)`},
	{"policy with a view", plain + `CREATE VIEW {t}_v AS SELECT 1::bigint AS id FROM mallory.payload();` + policy + `(id IN (SELECT v.id FROM {t}_v v))`},
	{"policy with a composite type", plain + `CREATE DOMAIN {t}_d AS bigint CHECK (mallory.payload()); CREATE TYPE {t}_c AS (x {t}_d);` + policy + `(jsonb_populate_record(NULL::{t}_c, '{"x": 1}') IS NOT NULL)`},
	{"predicate of an index", plain + `CREATE INDEX ON {t} (id) WHERE mallory.spring()`},
	{"expression of an index", plain + `CREATE INDEX ON {t} (mallory.same(1)); CREATE INDEX ON {t} (id, mallory.spring())`},
	{"statistics", plain + `CREATE STATISTICS {t}_s ON (mallory.same(1)), (mallory.spring()) FROM {t}`},
	{"constraint", plain + `ALTER TABLE {t} ADD CHECK (mallory.spring()), ADD CHECK (mallory.same(id) > 0)`},
	{"child", plain + `CREATE TABLE {t}_c (CHECK (mallory.spring())) INHERITS ({t}); CREATE INDEX ON {t}_c (id) WHERE mallory.spring(); INSERT INTO {t}_c VALUES (4)`},
	{"partition key", `CREATE TABLE {t} (id sortkey.snowflake, at timestamptz DEFAULT now()) PARTITION BY RANGE ((id + mallory.same(1::bigint)))`},
	{"partitions", `CREATE TABLE {t} (id sortkey.snowflake, at timestamptz DEFAULT now()) PARTITION BY LIST (mallory.same(id)); CREATE TABLE {t}_p PARTITION OF {t} DEFAULT; CREATE INDEX ON {t} (id); CREATE INDEX ON {t}_p (id) WHERE mallory.spring()`},
	{"domain", `CREATE DOMAIN {t}_d AS bigint CHECK (mallory.payload()); CREATE TABLE {t} (id {t}_d PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())` + rows},
	{"domain over a domain", `CREATE DOMAIN {t}_d AS bigint CHECK (mallory.payload()); CREATE DOMAIN {t}_e AS {t}_d; CREATE TABLE {t} (id {t}_e PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())` + rows},
	{"domain over timestamptz", `CREATE DOMAIN {t}_d AS timestamptz CHECK (mallory.payload()); CREATE TABLE {t} (id sortkey.snowflake PRIMARY KEY, at {t}_d NOT NULL DEFAULT now())` + rows},
	{"casts", `CREATE TYPE {t}_k AS ENUM ('1'); CREATE FUNCTION {t}_cast({t}_k) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN 1; END'; CREATE CAST ({t}_k AS bigint) WITH FUNCTION {t}_cast({t}_k) AS IMPLICIT;
		CREATE TYPE {t}_m AS ENUM ('x'); CREATE FUNCTION {t}_cast({t}_m) RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN now(); END'; CREATE CAST ({t}_m AS timestamptz) WITH FUNCTION {t}_cast({t}_m) AS IMPLICIT;
		CREATE TABLE {t} (id {t}_k PRIMARY KEY, at {t}_m DEFAULT 'x'); INSERT INTO {t} (id) VALUES ('1')`},
	{"name", `CREATE TABLE {t} ("id" sortkey.snowflake PRIMARY KEY, at timestamptz, "x', mallory.payload(), '" bigint); CREATE TABLE mallory."t') FROM mallory.payload(); --" (id sortkey.snowflake PRIMARY KEY)`},
	// Managed tables.
	{"managed, with a constraint", managedByMallory + `ALTER TABLE {t} ADD CHECK (mallory.payload())`},
	{"managed, with rows to move", managedByMallory + `CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; ALTER TABLE {t} ADD CHECK (mallory.payload()); INSERT INTO {t} VALUES (sortkey.snowflake_floor(now())), (1);
		CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON {t}_default FOR EACH ROW EXECUTE FUNCTION mallory.fire(); CREATE INDEX ON {t}_default (id) WHERE mallory.spring();
		ALTER TABLE {t}_default ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t}_default USING (mallory.payload())`},
	{"managed, with an index", managedByMallory + `CREATE INDEX ON {t} (mallory.same(id)); CREATE INDEX ON {t} (id) WHERE mallory.spring(); CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; INSERT INTO {t} VALUES (sortkey.snowflake_floor(now()))`},
	{"managed, with a generated column", managedByMallory + `ALTER TABLE {t} ADD g text GENERATED ALWAYS AS (mallory.same(x)) STORED; CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; INSERT INTO {t} VALUES (sortkey.snowflake_floor(now()))`},
	{"managed, with a partitioned default partition", managedByMallory + `CREATE TABLE {t}_default PARTITION OF {t} DEFAULT PARTITION BY RANGE ((id + mallory.same(1::bigint)))`},
	{"managed, with retention", `CREATE TABLE {t} (id sortkey.snowflake) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('{t}', '1 day', retention => '1 day', retention_action => 'drop');
		CREATE TABLE mallory."old'; SELECT mallory.payload(); --" PARTITION OF {t} FOR VALUES FROM (MINVALUE) TO (1000); CREATE VIEW {t}_v AS SELECT * FROM mallory."old'; SELECT mallory.payload(); --" WHERE mallory.payload()`},
}

const (
	rows             = `; INSERT INTO {t} (id) VALUES (1), (2), (3);`
	plain            = `CREATE TABLE {t} (id sortkey.snowflake PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())` + rows
	policy           = `ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} USING `
	managedByMallory = `CREATE TABLE {t} (id sortkey.snowflake, x text DEFAULT mallory.payload()::text) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('{t}', '1 day');`
)

// maintainer are the grants of a role that maintains its own tables.
const maintainer = `GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO {mallory};
	GRANT SELECT, INSERT, UPDATE, DELETE ON sortkey.partition_settings TO {mallory}; GRANT SELECT, INSERT, DELETE ON sortkey.partition_log TO {mallory};`

// Nothing opens mallory's tables, whatever their definitions are: not for an administrator, and not
// for a service, which has no rights but to the schema of the installation.
func TestTables(t *testing.T) {
	steps := []step{admin(maintainer + managed), admin("CALL sortkey.maintain_partitions('shop.events')")}
	var audits, named []call
	for i, m := range mallorys {
		t := fmt.Sprintf("mallory.t%d", i)
		steps = append(steps, mallory(strings.ReplaceAll(m.sql, "{t}", t)))
		audits = append(audits, sortkey("audit "+t+".id --type snowflake"))
		if strings.HasPrefix(m.name, "managed") {
			named = append(named, sortkey("partitions list "+t), sortkey("partitions run "+t), sortkey("partitions run --dry-run "+t), statement("CALL sortkey.maintain_partitions('"+t+"')"))
		}
	}
	steps = append(steps, mallory(`GRANT SELECT ON ALL TABLES IN SCHEMA mallory TO PUBLIC; REVOKE SELECT ON mallory.caught FROM PUBLIC; ANALYZE`))
	names := []string{"mallory.", "partition steps failed", "shop.events"}
	springs(t, []trap{
		{name: "readers", names: names, steps: append(steps[:len(steps):len(steps)],
			allowed(sortkey("doctor"), sortkey("doctor -o json"), scrape, sortkey("partitions list"), sortkey("partitions list -o json"), planPartitionsInSQL),
			asService(allowed(sortkey("doctor"), scrape, checkOwner), calls(checkDefaults)),
			refused(audits...), calls(sortkey("audit mallory.t1 --type snowflake -o json"), sortkey("migrate check"), sortkey("audit shop.orders --type snowflake --serial-until 9")))},
		{name: "writers", names: names, steps: append(steps[:len(steps):len(steps)],
			admin(strings.ReplaceAll(managed, "shop.events", "shop.others")), refused(named...), calls(sortkey("partitions run --dry-run"), sortkey("partitions run"), maintain, statement("CALL sortkey.maintain_partitions()"), sortkey("rekey inspect {spec}")),
			// The administrator's own table was maintained.
			allowed(statement("SELECT 1 / count(*) FROM pg_inherits WHERE inhparent = 'shop.others'::regclass")))},
		// A role with REFERENCES adds a table that maintenance reads to move rows.
		{name: "reference to a managed table", names: names, steps: []step{
			admin(`GRANT REFERENCES ON shop.orders TO {mallory}; ` + managed + `CREATE TABLE shop.events_default PARTITION OF shop.events DEFAULT; INSERT INTO shop.events VALUES (sortkey.snowflake_floor(now()));
				GRANT REFERENCES ON shop.events TO {mallory}`),
			mallory(`CREATE TABLE mallory.t (ref bigint REFERENCES shop.events, CHECK (mallory.spring())); CREATE INDEX ON mallory.t (ref) WHERE mallory.spring()`),
			calls(sortkey("partitions list"), sortkey("doctor"), scrape), refused(sortkey("partitions run"), sortkey("partitions run --dry-run"), maintain, statement("CALL sortkey.maintain_partitions('shop.events')")),
			asService(calls(sortkey("doctor"), scrape)),
		}},
		// Mallory can drop the administrator's tables in its schema, or rename the schema, at any
		// time, and create views with their names.
		{name: "tables in a schema of mallory", names: names, steps: []step{
			mallory(`GRANT USAGE, CREATE ON SCHEMA mallory TO {admin}`), admin(strings.ReplaceAll(managed, "shop.events", "shop.e") + `ALTER TABLE shop.e SET SCHEMA mallory;
				CREATE TABLE mallory.t (id sortkey.snowflake PRIMARY KEY, ref bigint REFERENCES shop.orders); INSERT INTO mallory.t VALUES (1)`),
			allowed(sortkey("doctor"), scrape, sortkey("partitions list")),
			refused(sortkey("audit mallory.t.id --type snowflake"), sortkey("partitions list mallory.e"), sortkey("partitions run mallory.e"), statement("CALL sortkey.maintain_partitions('mallory.e')"), inspectLibrary),
			calls(maintain, sortkey("partitions run")), admin("DROP TABLE mallory.e, mallory.t"),
		}},
		{name: "partition of mallory", names: names, steps: []step{
			admin(managed), mallory(`CREATE TABLE mallory.p (id bigint NOT NULL PRIMARY KEY)`),
			func(w *world) {
				w.asRoot(`ALTER TABLE mallory.p ALTER id TYPE sortkey.snowflake; ALTER TABLE shop.events ATTACH PARTITION mallory.p DEFAULT; GRANT SELECT ON shop.events TO PUBLIC`)
			},
			mallory(`ALTER TABLE mallory.p ADD CHECK (mallory.spring()); CREATE INDEX ON mallory.p (id) WHERE mallory.spring(); GRANT SELECT ON mallory.p TO PUBLIC`),
			allowed(sortkey("partitions list"), sortkey("doctor"), scrape), refused(sortkey("audit shop.events"), sortkey("partitions list shop.events"), sortkey("partitions run"), maintain),
			asService(allowed(sortkey("doctor"), scrape)), admin("DROP TABLE shop.events CASCADE"),
		}},
	})
}
