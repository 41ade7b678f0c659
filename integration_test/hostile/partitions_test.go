package hostile

import "testing"

// maintainer are the grants of a role that maintains its own tables.
const maintainer = `GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO {mallory};
	GRANT SELECT, INSERT, UPDATE, DELETE ON sortkey.partitioned_table TO {mallory}; GRANT SELECT, INSERT, DELETE ON sortkey.partition_log TO {mallory};`

// Mallory manages tables of its own. The administrator maintains all tables.
func TestPartitions(t *testing.T) {
	all := []call{
		sortkey("partitions list"), sortkey("partitions run --dry-run"), sortkey("doctor"), planPartitions, scrape,
		sortkey("partitions run"), maintain, statement("CALL sortkey.maintain_partitions()"), sortkey("partitions list -o json"), sortkey("doctor -o json"),
		sortkey("audit mallory.t"), sortkey("migrate check"),
	}
	named := []call{sortkey("partitions list mallory.t"), sortkey("partitions run --dry-run mallory.t"), sortkey("partitions run mallory.t"), statement("CALL sortkey.maintain_partitions('mallory.t')")}
	const table = `CREATE TABLE mallory.t (id sortkey.snowflake, x text DEFAULT mallory.payload()::text) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('mallory.t', '1 day');`
	maintained := func(name, sql string) trap {
		return trap{name: name, names: []string{"mallory.", "partition steps failed", "shop.events"}, steps: []step{
			admin(maintainer + managed), mallory(sql), calls(named...), calls(all...),
		}}
	}
	springs(t, []trap{
		maintained("constraint", table+`ALTER TABLE mallory.t ADD CHECK (mallory.payload())`),
		maintained("rows in a default partition", table+`CREATE TABLE mallory.t_default PARTITION OF mallory.t DEFAULT; ALTER TABLE mallory.t ADD CHECK (mallory.payload()); INSERT INTO mallory.t VALUES (sortkey.snowflake_floor(now())), (1);
			CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON mallory.t_default FOR EACH ROW EXECUTE FUNCTION mallory.fire(); CREATE INDEX ON mallory.t_default (id) WHERE mallory.spring();
			ALTER TABLE mallory.t_default ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON mallory.t_default USING (mallory.payload())`),
		maintained("index", table+`CREATE INDEX ON mallory.t (mallory.same(id)); CREATE INDEX ON mallory.t (id) WHERE mallory.spring(); CREATE TABLE mallory.t_default PARTITION OF mallory.t DEFAULT; INSERT INTO mallory.t VALUES (sortkey.snowflake_floor(now()))`),
		maintained("generated column", table+`ALTER TABLE mallory.t ADD g text GENERATED ALWAYS AS (mallory.same(x)) STORED; CREATE TABLE mallory.t_default PARTITION OF mallory.t DEFAULT; INSERT INTO mallory.t VALUES (sortkey.snowflake_floor(now()))`),
		maintained("retention", `CREATE TABLE mallory.t (id sortkey.snowflake) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('mallory.t', '1 day', retention => '1 day', retention_action => 'drop');
			CREATE TABLE mallory."old'; SELECT mallory.payload(); --" PARTITION OF mallory.t FOR VALUES FROM (MINVALUE) TO (1000); CREATE VIEW mallory.v AS SELECT * FROM mallory."old'; SELECT mallory.payload(); --" WHERE mallory.payload()`),
		maintained("names", `CREATE TABLE mallory."x
forged: fine'; SELECT mallory.payload(); --" ("key'
forged: fine" sortkey.snowflake) PARTITION BY RANGE ("key'
forged: fine"); SELECT sortkey.manage_partitions('mallory."x
forged: fine''; SELECT mallory.payload(); --"', '1 day');
			CREATE TABLE mallory.`+"\"\x1b[31m\r\""+` PARTITION OF mallory."x
forged: fine'; SELECT mallory.payload(); --" DEFAULT; `+table),
		maintained("log", table+`INSERT INTO sortkey.partition_log (begun_at, parent_table, action, partition, attempts, outcome, problem)
				SELECT now(), t, 'maintain', E'x\nforged: fine\x1b[31m', 1, 'failed', E'x\nforged: fine\x1b[31m\r' FROM (VALUES ('shop.events'), ('mallory.t')) v (t)`),
		// A trigger keeps mallory from managing tables of others.
		{name: "table of the administrator", names: []string{"mallory."}, steps: []step{
			admin(maintainer + managed), malloryTries(`INSERT INTO sortkey.partitioned_table (parent, format, every, premake, retention_action, default_partition) VALUES ('shop.orders', 'snowflake', '1 day', 4, 'drop', true)`),
			malloryTries(`UPDATE sortkey.partitioned_table SET retention = '1 minute', retention_action = 'drop' WHERE parent = 'shop.events'::regclass`), malloryTries(`DELETE FROM sortkey.partitioned_table`),
			allowed(sortkey("partitions run")), calls(all...), allowed(statement("SELECT 1 / count(*) FROM sortkey.partitioned_table WHERE parent = 'shop.events'::regclass AND retention IS NULL")),
		}},
	})
}
