-- [tables]
CREATE TABLE customers (id sortkey.sno PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
    id sortkey.snowflake PRIMARY KEY,
    customer_id uuid NOT NULL REFERENCES customers, -- a column of the base type can reference a column of the domain
    replaces_id sortkey.snowflake REFERENCES orders, -- domains reject zero, but accept NULL
    total bigint NOT NULL
);
INSERT INTO customers VALUES (sortkey.sno_from_text('brpk4q72xwf2m63l'), 'Ada');
INSERT INTO orders VALUES (779300444248735744, sortkey.sno_from_text('brpk4q72xwf2m63l'), NULL, 4200);

-- [look]
SELECT id, customer_id, total FROM orders;
SELECT sortkey.snowflake_time(id) AS created_at, sortkey.sno_text(customer_id) AS customer FROM orders;
SELECT to_timestamp(((id >> 22) + 1609459200000) / 1000.0) AS created_at, encode(uuid_send(customer_id), 'escape') AS customer FROM orders;

-- [find]
SELECT name FROM customers WHERE id = sortkey.sno_from_text('brpk4q72xwf2m63l');
SELECT total FROM orders
WHERE id >= sortkey.snowflake_floor('2026-11-01Z') AND id < sortkey.snowflake_floor('2026-12-01Z');

-- [refused]
INSERT INTO customers VALUES ('f47ac10b-58cc-4372-a567-0e02b2c3d479', 'a random uuid');
INSERT INTO orders VALUES (0, sortkey.sno_from_text('brpk4q72xwf2m63l'), NULL, 1);
SELECT sortkey.sno_from_text('BRPK4Q72XWF2M63L');

-- [view]
CREATE VIEW orders_readable AS
SELECT id::text AS id, sortkey.snowflake_time(id) AS created_at, sortkey.sno_text(customer_id) AS customer, total
FROM orders;
SELECT * FROM orders_readable;

-- [statistics]
ALTER TABLE customers ALTER COLUMN id SET STATISTICS 500;
ANALYZE customers;

-- [text]
CREATE TABLE exports (subject sortkey.sno_as_text PRIMARY KEY, raw bytea NOT NULL, parent sortkey.sno, orders bigint[]);

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
