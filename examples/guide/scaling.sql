-- [site]
-- At site 1. At site 2 the datacenter is 2: 2 << 5 | 31 and next_snowflake(2, 31).
SELECT sortkey.reserve_node('snowflake', 1 << 5 | 31, 'default of orders.id');
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1, 31),
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
SELECT sortkey.reserve_node('snowflake', 3 << 5 | 31, 'default of orders.id');
ALTER TABLE orders ALTER COLUMN id SET DEFAULT sortkey.next_snowflake(3, 31);
ALTER SUBSCRIPTION site_3_from_site_1 DISABLE;
ALTER SUBSCRIPTION site_3_from_site_1 SET (slot_name = NONE);
DROP SUBSCRIPTION site_3_from_site_1;

-- [hash]
CREATE TABLE carts (id bigint PRIMARY KEY, items integer NOT NULL) PARTITION BY HASH (id);
CREATE TABLE carts_0 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE carts_1 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE carts_2 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE carts_3 PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER 3);

-- [citus-tables]
-- At the coordinator. The CHECK rejects the same values as the domain.
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL);
SELECT create_distributed_table('customers', 'id');
ALTER TABLE customers ADD CONSTRAINT customers_id_is_snowflake CHECK (id > 0);

CREATE TABLE purchases (
    customer_id bigint REFERENCES customers,
    id bigint CONSTRAINT purchases_id_is_snowflake CHECK (id > 0),
    PRIMARY KEY (customer_id, id)
);
SELECT create_distributed_table('purchases', 'customer_id', colocate_with => 'customers');

-- [citus-lock-timeout]
ALTER ROLE migrator SET lock_timeout = '2s';
