-- The SQL of the section on Citus in docs/scaling-out.md, for the coordinator.

-- [nodes]
-- The coordinator and each worker have a number of their own. The setting of a worker
-- ends with its groupid in pg_dist_node.
SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop on the coordinator');
SELECT sortkey.reserve_node('snowflake', 1022, 'defaults of shop on worker 1');
SELECT sortkey.reserve_node('snowflake', 1021, 'defaults of shop on worker 2');
ALTER DATABASE shop SET sortkey.node = 1023;
ALTER DATABASE shop SET sortkey.node_1 = 1022;
ALTER DATABASE shop SET sortkey.node_2 = 1021;
SELECT * FROM run_command_on_workers('SELECT sortkey.prepare_citus_worker()');

-- [tables]
CREATE TABLE customers (
    id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake() CONSTRAINT customers_id_is_snowflake CHECK (id > 0), -- as the domain does
    name text NOT NULL
);
SELECT create_distributed_table('customers', 'id');

CREATE TABLE purchases (
    customer_id bigint REFERENCES customers,
    id sortkey.snowflake DEFAULT sortkey.next_snowflake(),
    total bigint NOT NULL,
    PRIMARY KEY (customer_id, id)
);
SELECT create_distributed_table('purchases', 'customer_id', colocate_with => 'customers');

-- [rows]
-- In a new session, at the coordinator or a worker.
INSERT INTO customers (name) VALUES ('Ada'), ('Grace') RETURNING id;
INSERT INTO purchases (customer_id, total) SELECT id, 1000 FROM customers;

SELECT c.name, p.total FROM customers c JOIN purchases p ON p.customer_id = c.id
WHERE p.id >= sortkey.snowflake_floor(now() - interval '1 hour');

-- [lock-timeout]
ALTER ROLE migrator SET lock_timeout = '2s';
