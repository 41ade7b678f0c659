-- [token]
CREATE TABLE documents (
    id sortkey.snowflake PRIMARY KEY,
    token uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    owner_id bigint NOT NULL,
    title text NOT NULL
);

-- [default]
SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
ALTER DATABASE shop SET sortkey.node = 1023;
CREATE TABLE payments (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), amount bigint NOT NULL);
GRANT INSERT ON payments TO app;
GRANT USAGE ON SCHEMA sortkey TO app;
GRANT EXECUTE ON FUNCTION sortkey.next_snowflake() TO app;

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

-- [lease]
GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) TO app;
GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint) TO app;
GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint) TO app;

-- [watch]
GRANT USAGE ON SCHEMA sortkey TO monitoring;
GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log, sortkey.partition_horizon TO monitoring;

-- [audit]
SELECT proname AS function, pronargs AS arguments,
    string_agg(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, ', ' ORDER BY grantee) AS granted_to
FROM pg_proc LEFT JOIN aclexplode(coalesce(proacl, acldefault('f', proowner))) ON grantee <> proowner
WHERE pronamespace = 'sortkey'::regnamespace AND (prosecdef OR proname ~ '^next_(snowflake|uid60|spread64|sno)')
GROUP BY proname, pronargs ORDER BY proname, pronargs;
