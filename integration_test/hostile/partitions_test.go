package hostile

import "testing"

// Mallory has the grants to maintain its own tables, and writes to the tables of partitions.
func TestPartitions(t *testing.T) {
	all := []call{
		sortkey("partitions list"), sortkey("partitions run --dry-run"), sortkey("doctor"), planPartitions, scrape,
		sortkey("partitions run"), maintain, statement("CALL sortkey.maintain_partitions()"), sortkey("partitions list -o json"), sortkey("doctor -o json"), sortkey("migrate check"),
	}
	springs(t, []trap{
		{name: "names", names: []string{"mallory.", "partition steps failed"}, steps: []step{
			admin(maintainer + managed), mallory(`CREATE TABLE mallory."x
forged: fine'; SELECT mallory.payload(); --" ("key'
forged: fine" sortkey.snowflake) PARTITION BY RANGE ("key'
forged: fine"); SELECT sortkey.manage_partitions('mallory."x
forged: fine''; SELECT mallory.payload(); --"', '1 day');
			CREATE TABLE mallory.` + "\"\x1b[31m\r\"" + ` PARTITION OF mallory."x
forged: fine'; SELECT mallory.payload(); --" DEFAULT; INSERT INTO sortkey.partition_log (begun_at, parent_table, action, partition, attempts, outcome, problem)
				SELECT now(), t, 'maintain', E'x\nforged: fine\x1b[31m', 1, 'failed', E'x\nforged: fine\x1b[31m\r' FROM (VALUES ('shop.events'), ('mallory.t')) v (t)`),
			calls(all...),
		}},
		// Values that the functions don't accept would end doctor and partitions list.
		{name: "infinite times and intervals", names: []string{"mallory."}, steps: []step{
			admin(maintainer + managed), admin(`CALL sortkey.maintain_partitions('shop.events')`), mallory(`CREATE TABLE mallory.t (id sortkey.snowflake) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('mallory.t', '1 day')`),
			malloryTries(`INSERT INTO sortkey.partition_log (begun_at, ended_at, parent_table, action, attempts, outcome) VALUES (now(), 'infinity', 'shop.events', 'maintain', 1, 'done')`),
			malloryTries(`INSERT INTO sortkey.partition_log (begun_at, parent_table, action, attempts, outcome) VALUES ('-infinity', 'shop.events', 'maintain', 1, 'done')`),
			malloryTries(`UPDATE sortkey.partition_settings SET every = '0' WHERE id = 'mallory.t'::regclass`), malloryTries(`UPDATE sortkey.partition_settings SET every = '-1 day' WHERE id = 'mallory.t'::regclass`), malloryTries(`UPDATE sortkey.partition_settings SET premake = -5 WHERE id = 'mallory.t'::regclass`),
			malloryTries(`UPDATE sortkey.partition_settings SET retention = '-1 day' WHERE id = 'mallory.t'::regclass`), malloryTries(`UPDATE sortkey.partition_settings SET every = interval 'infinity' WHERE id = 'mallory.t'::regclass`), malloryTries(`UPDATE sortkey.partition_settings SET retention = interval '-infinity' WHERE id = 'mallory.t'::regclass`),
			allowed(sortkey("doctor"), scrape, sortkey("partitions list")),
		}},
		// A trigger keeps mallory from managing tables of others.
		{name: "table of the administrator", names: []string{"mallory."}, steps: []step{
			admin(maintainer + managed),
			malloryTries(`INSERT INTO sortkey.partition_settings SELECT database, 'shop.orders'::regclass, 'shop', 'orders', 'snowflake', '1 day', 4, '1 minute', 'drop', true FROM sortkey.partition_settings`),
			// In a restored database, the name would be enough. The table doesn't exist yet.
			malloryTries(`INSERT INTO sortkey.partition_settings VALUES ('another', 5, 'shop', 'orders', 'snowflake', '1 day', 4, '1 minute', 'drop', true)`),
			malloryTries(`INSERT INTO sortkey.partition_settings VALUES ('another', 5, 'shop', 'planned', 'snowflake', '1 day', 4, '1 minute', 'drop', true)`),
			malloryTries(`UPDATE sortkey.partition_settings SET retention = '1 minute', retention_action = 'drop' WHERE id = 'shop.events'::regclass`), malloryTries(`DELETE FROM sortkey.partition_settings`),
			allowed(sortkey("partitions run")), calls(all...), allowed(statement("SELECT 1 / count(*) FROM sortkey.partitioned_table WHERE parent = 'shop.events'::regclass AND retention IS NULL")),
		}},
	})
}
