-- [table]
CREATE TABLE events (id sortkey.snowflake PRIMARY KEY, kind text NOT NULL) PARTITION BY RANGE (id);

-- [manage]
SELECT sortkey.manage_partitions('events', every => '1 day', premake => 4,
    retention => '90 days', retention_action => 'drop');

-- [maintain]
CALL sortkey.maintain_partitions();

-- [log]
SELECT parent_table, ended_at, action, partition, attempts, outcome, problem
FROM sortkey.partition_log ORDER BY ended_at DESC LIMIT 20;

-- [without]
SELECT sortkey.manage_partitions('events', every => '1 day', premake => 30,
    retention => '90 days', retention_action => 'drop', default_partition => false);

-- [plan]
SELECT action, partition, lower, upper FROM sortkey.plan_partitions('events');

-- [window]
EXPLAIN (COSTS OFF) SELECT * FROM events
WHERE id >= sortkey.snowflake_floor('2026-11-02Z') AND id < sortkey.snowflake_floor('2026-11-03Z');

-- [prepared]
PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= sortkey.snowflake_floor($1);
SET plan_cache_mode = force_generic_plan; -- Postgres chooses this plan by itself if a statement is used often
EXPLAIN (COSTS OFF) EXECUTE since('2026-11-05Z');

-- [now]
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= sortkey.snowflake_floor(now() - interval '1 hour');

-- [everything]
EXPLAIN (COSTS OFF) SELECT * FROM events
WHERE sortkey.snowflake_time(id) >= '2026-11-02Z' AND sortkey.snowflake_time(id) < '2026-11-03Z';

-- [analyze]
ANALYZE events;

-- [publication]
CREATE PUBLICATION events FOR TABLE events WITH (publish_via_partition_root = true);

-- [check]
SET lock_timeout = '200ms';
ALTER TABLE visits ADD CONSTRAINT visits_before_2027
    CHECK (id IS NOT NULL AND id < sortkey.snowflake_floor('2027-01-01Z')) NOT VALID;
ALTER TABLE visits VALIDATE CONSTRAINT visits_before_2027; -- reads the table, and blocks no reads or writes

-- [attach]
BEGIN;
SET LOCAL lock_timeout = '200ms';
ALTER TABLE visits RENAME TO visits_before_2027;
ALTER TABLE visits_before_2027 ALTER id DROP IDENTITY IF EXISTS; -- ATTACH refuses an identity column
CREATE TABLE visits (LIKE visits_before_2027 INCLUDING ALL EXCLUDING IDENTITY) PARTITION BY RANGE (id);
ALTER TABLE visits DROP CONSTRAINT visits_before_2027; -- the copy of the check, which only the old rows satisfy
ALTER TABLE visits ATTACH PARTITION visits_before_2027 FOR VALUES FROM (MINVALUE) TO (sortkey.snowflake_floor('2027-01-01Z'));
SELECT sortkey.manage_partitions('visits', every => '1 month', format => 'snowflake');
COMMIT;
ALTER TABLE visits_before_2027 DROP CONSTRAINT visits_before_2027; -- the bounds of the partition replace it
CALL sortkey.maintain_partitions('visits');

-- [partman-table]
CREATE TABLE messages (
    id uuid PRIMARY KEY CHECK (id::sortkey.sno IS NOT NULL), -- pg_partman doesn't accept a domain as the key
    body text NOT NULL
) PARTITION BY RANGE (id);

-- [partman]
SELECT partman.create_parent(
    p_parent_table := 'public.messages', p_control := 'id', p_interval := '1 day',
    p_time_encoder := 'sortkey.sno_floor', p_time_decoder := 'sortkey.sno_partman_decoder');
UPDATE partman.part_config SET retention = '90 days', retention_keep_table = false
WHERE parent_table = 'public.messages';
SELECT partman.run_maintenance('public.messages'); -- periodically
