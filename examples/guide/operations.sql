-- [status]
SELECT pool, number, state, holder, expires_at, term, mark, reserved
FROM sortkey.node_status WHERE state <> 'free' ORDER BY pool, number;

-- [partitions]
SELECT parent_table, count(*) FILTER (WHERE action = 'create') AS missing, count(*) FILTER (WHERE action = 'drain') AS to_drain
FROM sortkey.plan_partitions() GROUP BY parent_table;

-- [defaults]
SELECT t.parent, p.partdefid::regclass AS default_partition, pg_table_size(p.partdefid) AS bytes
FROM sortkey.partitioned_table t JOIN pg_partitioned_table p ON p.partrelid = t.parent AND p.partdefid <> 0 ORDER BY bytes DESC;

-- [maintained]
SELECT t.parent, max(l.ended_at) FILTER (WHERE l.action = 'maintain') AS maintained_at,
    count(*) FILTER (WHERE l.outcome <> 'done' AND l.ended_at > now() - interval '1 day') AS not_done
FROM sortkey.partitioned_table t JOIN pg_class c ON c.oid = t.parent JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN sortkey.partition_log l ON l.parent_table = format('%I.%I', n.nspname, c.relname)
GROUP BY t.parent ORDER BY maintained_at NULLS FIRST;

-- [analyzed]
SELECT t.parent, s.last_analyze
FROM sortkey.partitioned_table t JOIN pg_stat_all_tables s ON s.relid = t.parent
WHERE s.last_analyze IS NULL OR s.last_analyze < now() - interval '30 days' ORDER BY s.last_analyze NULLS FIRST, t.parent::text;
