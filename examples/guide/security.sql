-- [program]
GRANT USAGE ON SCHEMA sortkey TO app;
GRANT EXECUTE ON FUNCTION sortkey.next_snowflake() TO app; -- to insert rows with this default
GRANT EXECUTE ON FUNCTION sortkey.claim_node, sortkey.renew_node, sortkey.release_node TO app; -- to claim node numbers: package pglease

-- [maintenance]
GRANT USAGE ON SCHEMA sortkey, sortkey_internal TO app_owner;
GRANT INSERT, UPDATE, DELETE ON sortkey.partitioned_table TO app_owner; -- for manage_partitions and unmanage_partitions
GRANT SELECT, INSERT, DELETE ON sortkey.partition_log TO app_owner; -- without this grant, steps aren't logged
GRANT USAGE, CREATE ON SCHEMA app TO app_owner; -- the schema of the tables, where partitions are created

-- [monitoring]
GRANT USAGE ON SCHEMA sortkey TO monitoring;
GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log TO monitoring;

-- [default]
SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
ALTER DATABASE shop SET sortkey.node = 1023;
CREATE TABLE payments (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), amount bigint NOT NULL);
GRANT INSERT ON payments TO app;

-- [pinned]
BEGIN; -- without a transaction, every role could call the function before the REVOKE
CREATE FUNCTION next_payment_id() RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER
    RETURN sortkey.next_snowflake(1023); -- bound at creation, so the search_path of the caller has no effect
REVOKE EXECUTE ON FUNCTION next_payment_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_payment_id() TO app;
REVOKE EXECUTE ON FUNCTION sortkey.next_snowflake() FROM app;
ALTER TABLE payments ALTER COLUMN id SET DEFAULT next_payment_id();
COMMIT;

-- [audit]
SELECT proname AS function, pronargs AS arguments,
    string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, ', ' ORDER BY grantee) AS granted_to
FROM pg_proc JOIN aclexplode(coalesce(proacl, acldefault('f', proowner))) ON grantee <> proowner
WHERE pronamespace = 'sortkey'::regnamespace AND (prosecdef OR proname ~ '^next_(snowflake|uid60|spread64|sno)')
GROUP BY proname, pronargs ORDER BY proname, pronargs;
