package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// maintainer are the grants of a role that maintains its own tables.
const maintainer = `GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO {mallory};
	GRANT SELECT, INSERT, UPDATE, DELETE ON sortkey.partitioned_table TO {mallory}; GRANT SELECT, INSERT, DELETE ON sortkey.partition_log TO {mallory};`

// Mallory manages tables of its own. The administrator maintains all tables.
func TestPartitions(t *testing.T) {
	all := []call{
		sortkey("partitions list"), sortkey("partitions run --dry-run"), sortkey("doctor"), planPartitions, scrape,
		sortkey("partitions run"), maintain, statement("CALL sortkey.maintain_partitions()"), sortkey("partitions list -o json"), sortkey("doctor -o json"),
		sortkey("audit mallory.t0"), sortkey("migrate check"),
	}
	named := func(table string) []call {
		return []call{
			sortkey("partitions list " + table), sortkey("partitions run --dry-run " + table), sortkey("partitions run " + table), statement("CALL sortkey.maintain_partitions('" + table + "')"),
		}
	}
	const table = `CREATE TABLE {t} (id sortkey.snowflake, x text DEFAULT mallory.payload()::text) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('{t}', '1 day');`
	maintained := func(name string, tables ...string) trap {
		steps := []step{admin(maintainer + managed)}
		var list []call
		for i, sql := range tables {
			t := fmt.Sprintf("mallory.t%d", i)
			steps = append(steps, mallory(strings.ReplaceAll(sql, "{t}", t)))
			list = append(list, named(t)...)
		}
		return trap{name: name, names: []string{"mallory.", "partition steps failed", "shop.events"}, steps: append(steps, calls(list...), calls(all...))}
	}
	springs(t, []trap{
		maintained("tables",
			// A constraint.
			table+`ALTER TABLE {t} ADD CHECK (mallory.payload())`,
			// Rows in a default partition.
			table+`CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; ALTER TABLE {t} ADD CHECK (mallory.payload()); INSERT INTO {t} VALUES (sortkey.snowflake_floor(now())), (1);
				CREATE TRIGGER fire BEFORE INSERT OR UPDATE OR DELETE ON {t}_default FOR EACH ROW EXECUTE FUNCTION mallory.fire(); CREATE INDEX ON {t}_default (id) WHERE mallory.spring();
				ALTER TABLE {t}_default ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t}_default USING (mallory.payload())`,
			// An index.
			table+`CREATE INDEX ON {t} (mallory.same(id)); CREATE INDEX ON {t} (id) WHERE mallory.spring(); CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; INSERT INTO {t} VALUES (sortkey.snowflake_floor(now()))`,
			// A generated column.
			table+`ALTER TABLE {t} ADD g text GENERATED ALWAYS AS (mallory.same(x)) STORED; CREATE TABLE {t}_default PARTITION OF {t} DEFAULT; INSERT INTO {t} VALUES (sortkey.snowflake_floor(now()))`,
			// Retention.
			`CREATE TABLE {t} (id sortkey.snowflake) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('{t}', '1 day', retention => '1 day', retention_action => 'drop');
				CREATE TABLE mallory."old'; SELECT mallory.payload(); --" PARTITION OF {t} FOR VALUES FROM (MINVALUE) TO (1000); CREATE VIEW mallory.v AS SELECT * FROM mallory."old'; SELECT mallory.payload(); --" WHERE mallory.payload()`),
		maintained("names", `CREATE TABLE mallory."x
forged: fine'; SELECT mallory.payload(); --" ("key'
forged: fine" sortkey.snowflake) PARTITION BY RANGE ("key'
forged: fine"); SELECT sortkey.manage_partitions('mallory."x
forged: fine''; SELECT mallory.payload(); --"', '1 day');
			CREATE TABLE mallory.`+"\"\x1b[31m\r\""+` PARTITION OF mallory."x
forged: fine'; SELECT mallory.payload(); --" DEFAULT; `+table+`INSERT INTO sortkey.partition_log (begun_at, parent_table, action, partition, attempts, outcome, problem)
				SELECT now(), t, 'maintain', E'x\nforged: fine\x1b[31m', 1, 'failed', E'x\nforged: fine\x1b[31m\r' FROM (VALUES ('shop.events'), ('{t}')) v (t)`),
		// A trigger keeps mallory from managing tables of others.
		{name: "table of the administrator", names: []string{"mallory."}, steps: []step{
			admin(maintainer + managed), malloryTries(`INSERT INTO sortkey.partitioned_table (parent, format, every, premake, retention_action, default_partition) VALUES ('shop.orders', 'snowflake', '1 day', 4, 'drop', true)`),
			malloryTries(`UPDATE sortkey.partitioned_table SET retention = '1 minute', retention_action = 'drop' WHERE parent = 'shop.events'::regclass`), malloryTries(`DELETE FROM sortkey.partitioned_table`),
			allowed(sortkey("partitions run")), calls(all...), allowed(statement("SELECT 1 / count(*) FROM sortkey.partitioned_table WHERE parent = 'shop.events'::regclass AND retention IS NULL")),
		}},
	})
}
