-- What README.md shows of SQL, after Migrate.

-- [payments]
-- A node number that no program claims, for what mints in SQL.
SELECT sortkey.reserve_node('snowflake', 31 << 5 | 31, 'default of payments.id');
CREATE TABLE payments (
    id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(31, 31),
    amount bigint NOT NULL
) PARTITION BY RANGE (id);

-- A partition a month, made ahead; those that are older than two years go.
SELECT sortkey.manage_partitions('payments', every => '1 month', retention => '2 years', retention_action => 'drop');
CALL sortkey.maintain_partitions(); -- again and again, by pg_cron or a CronJob

-- November's, from one partition, by its primary key.
SELECT sortkey.snowflake_time(id), amount FROM payments
WHERE id >= sortkey.snowflake_floor('2026-11-01Z') AND id < sortkey.snowflake_floor('2026-12-01Z');
