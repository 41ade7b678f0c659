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
ALTER TABLE orders ADD CONSTRAINT orders_id_is_a_key CHECK (id > 0) NOT VALID;

-- +goose Down
ALTER TABLE orders DROP CONSTRAINT orders_id_is_a_key;
ALTER TABLE orders ALTER COLUMN id SET DEFAULT nextval('orders_id_seq');
SELECT sortkey.unreserve_node('snowflake', 31 << 5 | 29);

-- [uuidv7]
SELECT id, to_timestamp(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint / 1000.0) AS minted_at
FROM documents ORDER BY id;

-- [checks]
ALTER TABLE events
    ADD CONSTRAINT events_snowflake CHECK (snowflake > 0),
    ADD CONSTRAINT events_snowflake_si CHECK (snowflake_si BETWEEN 1 AND 9007199254740991),
    ADD CONSTRAINT events_uid60 CHECK (uid60 BETWEEN 1 AND 1152921504606846975),
    ADD CONSTRAINT events_spread64 CHECK (spread64 <> 0 AND (spread64 & 64512) = 0),
    ADD CONSTRAINT events_sno CHECK (sno <> '32323232-3232-3232-3232-323232323232'
        AND btrim(uuid_send(sno), '23456789abcdefghijklmnopqrstuvwx') = ''),
    ADD CONSTRAINT events_sno_as_text CHECK (sno_as_text <> '2222222222222222'
        AND octet_length(sno_as_text) = 16 AND btrim(sno_as_text, '23456789abcdefghijklmnopqrstuvwx') = '');
