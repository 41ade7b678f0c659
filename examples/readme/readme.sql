-- The SQL that docs/migrating.md begins with, for a database with the migrations.

-- [payments]
SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop'); -- no instance claims this node number
CREATE TABLE payments (
    id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(1023),
    amount bigint NOT NULL
) PARTITION BY RANGE (id);
SELECT sortkey.manage_partitions('payments', every => '1 month', retention => '2 years', retention_action => 'drop');
CALL sortkey.maintain_partitions(); -- run it from pg_cron or a CronJob
SELECT sortkey.snowflake_time(id), amount FROM payments -- reads the partition of November
WHERE id >= sortkey.snowflake_floor('2026-11-01Z') AND id < sortkey.snowflake_floor('2026-12-01Z');
