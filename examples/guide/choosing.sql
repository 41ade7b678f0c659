-- [fill]
CREATE TABLE ordered (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE spread (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE random (id uuid PRIMARY KEY) WITH (autovacuum_enabled = off);
INSERT INTO ordered SELECT sortkey.snowflake_floor(timestamptz '2026-11-01Z' + i * interval '1 ms') FROM generate_series(1, 100000) AS i;
INSERT INTO spread SELECT (reverse((1793491200000 + i)::bit(42)::text) || repeat('0', 22))::bit(64)::bigint FROM generate_series(1, 100000) AS i;
INSERT INTO random SELECT md5(i::text)::uuid FROM generate_series(1, 100000) AS i; -- as scattered as random keys, but the same in each run

-- [write]
CHECKPOINT;
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
INSERT INTO ordered SELECT sortkey.snowflake_floor(timestamptz '2026-11-01Z' + i * interval '1 ms') FROM generate_series(100001, 101000) AS i;
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
INSERT INTO spread SELECT (reverse((1793491200000 + i)::bit(42)::text) || repeat('0', 22))::bit(64)::bigint FROM generate_series(100001, 101000) AS i;
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
INSERT INTO random SELECT md5(i::text)::uuid FROM generate_series(100001, 101000) AS i;
