-- [role]
GRANT CREATE ON DATABASE shop TO shop_owner; -- or have the schema made for it, empty and owned by it

-- [grants]
GRANT USAGE ON SCHEMA sortkey TO shop_app;
GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer, integer) TO shop_app; -- for defaults
GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint) TO shop_app; -- for pglease
GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint) TO shop_app;
GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint) TO shop_app;
GRANT SELECT ON sortkey.node_status TO shop_app; -- for whoever watches

-- [goose]
-- +goose Up
SELECT sortkey.reserve_node('snowflake', 31 << 5 | 29, 'default of orders.id');
SET LOCAL lock_timeout = '2s';
ALTER TABLE orders ALTER COLUMN id SET DEFAULT sortkey.next_snowflake(31, 29);
ALTER TABLE orders ADD CONSTRAINT orders_id_is_a_key CHECK (id::sortkey.snowflake IS NOT NULL) NOT VALID;

-- +goose Down
ALTER TABLE orders DROP CONSTRAINT orders_id_is_a_key;
ALTER TABLE orders ALTER COLUMN id SET DEFAULT nextval('orders_id_seq');
SELECT sortkey.unreserve_node('snowflake', 31 << 5 | 29);

-- [uuidv7]
SELECT id, to_timestamp(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint / 1000.0) AS minted_at
FROM documents ORDER BY id;
