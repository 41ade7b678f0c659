package hostile

import "testing"

// Mallory's tables have IDs to audit. A query runs code of the table even if it names only a
// column: the planner evaluates the predicates of indexes.
func TestAudit(t *testing.T) {
	audit := func(name, sql string) trap {
		return trap{name: name, names: []string{"mallory.", "42P13"}, steps: []step{
			mallory(sql + `; GRANT SELECT ON ALL TABLES IN SCHEMA mallory TO PUBLIC; REVOKE SELECT ON mallory.caught FROM PUBLIC; ANALYZE mallory.t`),
			calls(
				sortkey("audit mallory.t.id --type snowflake"), sortkey("audit mallory.t --type snowflake -o json"), sortkey("audit mallory.t.id --type snowflake --created-at at"),
				sortkey("audit mallory.t mallory.u.id --type snowflake"), sortkey("audit shop.orders --type snowflake"),
			),
		}}
	}
	const rows = `; CREATE TABLE mallory.u (id bigint PRIMARY KEY); INSERT INTO mallory.t (id) VALUES (1), (2), (3)`
	const plain = `CREATE TABLE mallory.t (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`
	springs(t, []trap{
		audit("view", `CREATE VIEW mallory.t AS SELECT mallory.same(i::bigint) AS id, now() AS at FROM generate_series(1, 3) i; CREATE TABLE mallory.u (id bigint PRIMARY KEY)`),
		audit("policy", plain+rows+`; ALTER TABLE mallory.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON mallory.t USING (mallory.payload())`),
		audit("predicate of an index", plain+rows+`; CREATE INDEX ON mallory.t (id) WHERE mallory.spring()`),
		audit("expression of an index", plain+rows+`; CREATE INDEX ON mallory.t (mallory.same(1)); CREATE INDEX ON mallory.t (id, mallory.spring())`),
		audit("statistics", plain+rows+`; CREATE STATISTICS mallory.s ON (mallory.same(1)), (mallory.spring()) FROM mallory.t`),
		audit("constraint", plain+rows+`; ALTER TABLE mallory.t ADD CHECK (mallory.spring()), ADD CHECK (mallory.same(id) > 0)`),
		audit("child", plain+rows+`; CREATE TABLE mallory.c (CHECK (mallory.spring())) INHERITS (mallory.t); CREATE INDEX ON mallory.c (id) WHERE mallory.spring(); INSERT INTO mallory.c VALUES (4)`),
		audit("partitions", `CREATE TABLE mallory.t (id bigint, at timestamptz DEFAULT now()) PARTITION BY LIST (mallory.same(id)); CREATE TABLE mallory.p PARTITION OF mallory.t DEFAULT; CREATE INDEX ON mallory.t (id)`+rows+
			`; CREATE INDEX ON mallory.p (id) WHERE mallory.spring()`),
		audit("domain", `CREATE DOMAIN mallory.key AS bigint CHECK (mallory.payload()); CREATE TABLE mallory.t (id mallory.key PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`+rows),
		audit("domain over timestamptz", `CREATE DOMAIN mallory.moment AS timestamptz CHECK (mallory.payload()); CREATE TABLE mallory.t (id bigint PRIMARY KEY, at mallory.moment NOT NULL DEFAULT now())`+rows),
		audit("cast to bigint", `CREATE TYPE mallory.key AS ENUM ('1', '2', '3'); CREATE FUNCTION mallory.cast(mallory.key) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN 1; END';
			CREATE CAST (mallory.key AS bigint) WITH FUNCTION mallory.cast(mallory.key) AS IMPLICIT; CREATE TABLE mallory.t (id mallory.key PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
			CREATE TABLE mallory.u (id bigint PRIMARY KEY); INSERT INTO mallory.t (id) VALUES ('1'), ('2')`),
		audit("cast to text and timestamptz", `CREATE TYPE mallory.key AS (x bigint); CREATE FUNCTION mallory.cast(mallory.key) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN 1; END';
			CREATE CAST (mallory.key AS text) WITH FUNCTION mallory.cast(mallory.key) AS ASSIGNMENT;
			CREATE TYPE mallory.moment AS ENUM ('x'); CREATE FUNCTION mallory.cast(mallory.moment) RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN now(); END';
			CREATE CAST (mallory.moment AS timestamptz) WITH FUNCTION mallory.cast(mallory.moment) AS IMPLICIT;
			CREATE TABLE mallory.t (id mallory.key, at mallory.moment DEFAULT 'x'); CREATE TABLE mallory.u (id bigint PRIMARY KEY, at mallory.moment DEFAULT 'x'); INSERT INTO mallory.t VALUES (ROW(1)), (ROW(1))`),
		audit("cast of the times", `CREATE TYPE mallory.moment AS ENUM ('x'); CREATE FUNCTION mallory.cast(mallory.moment) RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN PERFORM mallory.payload(); RETURN now(); END';
			CREATE CAST (mallory.moment AS timestamptz) WITH FUNCTION mallory.cast(mallory.moment) AS IMPLICIT; CREATE TABLE mallory.t (id bigint PRIMARY KEY, at mallory.moment DEFAULT 'x')`+rows),
		audit("name", `CREATE TABLE mallory."t') FROM mallory.payload(); --" (id bigint PRIMARY KEY); CREATE TABLE mallory.t ("id" bigint PRIMARY KEY, at timestamptz, "x', mallory.payload(), '" bigint)`+rows),
	})
}
