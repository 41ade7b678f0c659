-- [tables]
ALTER DATABASE shop SET sortkey.node = 1023; -- as a superuser; then reconnect
CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE events (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake()) PARTITION BY RANGE (id);
SELECT sortkey.manage_partitions('events', every => '1 day', retention => '90 days', retention_action => 'drop');

-- [imported]
INSERT INTO orders SELECT FROM generate_series(1, 5000); -- with defaults
INSERT INTO orders SELECT sortkey.snowflake_at(now() - interval '2 days', n, 7), now() FROM generate_series(0, 19) n;

-- [visits]
CREATE TABLE visits (id uuid PRIMARY KEY DEFAULT sortkey.next_uuid7());
INSERT INTO visits SELECT FROM generate_series(1, 300); -- with defaults
INSERT INTO visits SELECT gen_random_uuid() FROM generate_series(1, 100); -- from a client

-- [unreserved]
CREATE TABLE refunds (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(5));

-- [ignore]
COMMENT ON TABLE visits IS 'Clients create some of the keys. sortkey: ignore uuid-version, key-ahead';
