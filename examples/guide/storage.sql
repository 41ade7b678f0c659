-- [sizes]
-- Hashes instead of random uuids, and reversed bits instead of a Spread64 generator, make the sizes the same in each run.
CREATE TABLE by_sequence (id bigserial PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_snowflake (id bigint PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_spread64 (id bigint PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_sno (id uuid PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_uuid7 (id uuid PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_random_uuid (id uuid PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_sno_text (id text COLLATE "C" PRIMARY KEY, total bigint NOT NULL);
CREATE TABLE by_random_uuid_text (id text COLLATE "C" PRIMARY KEY, total bigint NOT NULL);
INSERT INTO by_sequence (total) SELECT i FROM generate_series(1, 75000) AS i;
INSERT INTO by_snowflake SELECT sortkey.snowflake_floor(timestamptz '2026-11-01Z' + i * interval '1 ms'), i FROM generate_series(1, 75000) AS i;
INSERT INTO by_spread64 SELECT (reverse((1793491200000 + i)::bit(42)::text) || repeat('0', 22))::bit(64)::bigint, i FROM generate_series(1, 75000) AS i;
INSERT INTO by_sno SELECT sortkey.sno_floor(timestamptz '2026-11-01Z' + i * interval '4 ms'), i FROM generate_series(1, 75000) AS i;
INSERT INTO by_uuid7 SELECT sortkey.uuid7_floor(timestamptz '2026-11-01Z' + i * interval '1 ms'), i FROM generate_series(1, 75000) AS i;
INSERT INTO by_random_uuid SELECT md5(i::text)::uuid, i FROM generate_series(1, 75000) AS i;
INSERT INTO by_sno_text SELECT sortkey.sno_text(id), total FROM by_sno ORDER BY id;
INSERT INTO by_random_uuid_text SELECT md5(i::text)::uuid::text, i FROM generate_series(1, 75000) AS i;

-- [measure]
SELECT c.relname AS "table", round(pg_relation_size(c.oid) / 75000.0) AS "row", round(pg_relation_size(i.indexrelid) / 75000.0) AS index
FROM pg_class AS c JOIN pg_index AS i ON i.indrelid = c.oid
WHERE c.relname LIKE 'by\_%' ORDER BY 3, 2, 1;
