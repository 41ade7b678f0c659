-- [site]
-- At site 1. At site 2 the number is 95: datacenter 2, worker 31.
SELECT sortkey.reserve_node('snowflake', 63, 'defaults of the site');
ALTER DATABASE shop SET sortkey.node = 63; -- datacenter 1, worker 31

-- [site-table]
-- At both sites.
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(),
    total bigint NOT NULL
);

-- [publish-all]
CREATE PUBLICATION orders_of_site_1 FOR TABLE orders;

-- [subscribe]
-- At site 1, once both sites have their publications.
CREATE SUBSCRIPTION site_1_from_site_2 CONNECTION 'host=site-2 dbname=shop user=replicator'
    PUBLICATION orders_of_site_2 WITH (origin = none, copy_data = false);

-- [publish-own]
-- Site 1 publishes its own rows, which have datacenter 1 in the key.
CREATE PUBLICATION orders_of_site_1 FOR TABLE orders WHERE ((id >> 17) & 31 = 1) WITH (publish = 'insert, update, delete');

-- [subscribe-own]
CREATE SUBSCRIPTION site_1_from_site_2 CONNECTION 'host=site-2 dbname=shop user=replicator'
    PUBLICATION orders_of_site_2 WITH (copy_data = false);

-- [promote]
-- At a subscriber that takes over from site 1, before the first INSERT there.
SELECT sortkey.reserve_node('snowflake', 127, 'defaults of the site');
ALTER DATABASE shop SET sortkey.node = 127; -- datacenter 3, worker 31
ALTER SUBSCRIPTION site_3_from_site_1 DISABLE;
ALTER SUBSCRIPTION site_3_from_site_1 SET (slot_name = NONE);
DROP SUBSCRIPTION site_3_from_site_1;

-- [hash]
CREATE TABLE carts (id bigint PRIMARY KEY, items integer NOT NULL) PARTITION BY HASH (id);
CREATE TABLE carts_0 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE carts_1 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE carts_2 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE carts_3 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 3);
