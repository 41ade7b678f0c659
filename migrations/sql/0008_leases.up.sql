{{define "leases" -}}
{{$s := .Schema -}}
-- Node numbers that programs claim for a time, for package pglease.
--
-- Each number of a pool has a row, with a mark: up to there, in Unix milliseconds by the clocks of those who mint, the
-- number may have been used. A claim begins after the mark that it finds and writes the next one before it is used, and
-- only the holder of the number's present term can move that. This is what keeps IDs from repeating, and it needs no
-- clock to be right. Who holds a number, and how long, is this server's to say, by clock_timestamp() alone.
--
-- A role that could write the tables could set a mark back, and have IDs repeated. So the functions have their owner's
-- rights, and nobody has others until they are granted. Each is called in a statement and transaction of its own and
-- leaves nothing in the session, so that they work through poolers.

CREATE TABLE {{$s}}.node_pool (
    name text PRIMARY KEY,
    size integer NOT NULL,
    layout text NOT NULL,
    timeline text,
    fenced_until timestamptz NOT NULL DEFAULT '-infinity'
);
COMMENT ON TABLE {{$s}}.node_pool IS 'Pools of node numbers, as programs first asked for them.';
COMMENT ON COLUMN {{$s}}.node_pool.layout IS 'What the numbers mean: programs of another layout are refused.';
COMMENT ON COLUMN {{$s}}.node_pool.timeline IS 'Of the write-ahead log, when numbers were last claimed: another one means that a standby has taken over.';
COMMENT ON COLUMN {{$s}}.node_pool.fenced_until IS 'After a standby has taken over, whatever it hadn''t got yet was minted before this time.';

-- With room in the pages a renewal, which changes no indexed column, stays in its row's page.
CREATE TABLE {{$s}}.node_lease (
    pool text NOT NULL,
    number integer NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    after bigint NOT NULL DEFAULT 0,
    holder text,
    expires_at timestamptz,
    ttl interval,
    reserved text,
    -- A separate column: with an index on mark itself, each renewal would write to the index.
    free_mark bigint GENERATED ALWAYS AS (CASE WHEN holder IS NULL AND reserved IS NULL THEN mark END) STORED,
    PRIMARY KEY (pool, number)
) WITH (fillfactor = 50);
CREATE INDEX node_lease_free ON {{$s}}.node_lease (pool, free_mark, number) WHERE free_mark IS NOT NULL;
CREATE INDEX node_lease_held ON {{$s}}.node_lease (pool, holder) WHERE holder IS NOT NULL;
COMMENT ON TABLE {{$s}}.node_lease IS 'Who holds which node number; node_status shows it for people. Lowering a mark by hand can repeat IDs.';
COMMENT ON COLUMN {{$s}}.node_lease.term IS 'How often the number was claimed.';
COMMENT ON COLUMN {{$s}}.node_lease.mark IS 'Unix milliseconds, up to which the number may have been used.';
COMMENT ON COLUMN {{$s}}.node_lease.after IS 'The mark that the last claim found.';
COMMENT ON COLUMN {{$s}}.node_lease.holder IS 'NULL: released, or never held. Who knows it can renew and release the claim.';
COMMENT ON COLUMN {{$s}}.node_lease.expires_at IS 'From then on, by this server''s clock, somebody else may claim the number.';
COMMENT ON COLUMN {{$s}}.node_lease.ttl IS 'How long the claim stands without being renewed.';
COMMENT ON COLUMN {{$s}}.node_lease.reserved IS 'Why the number is never claimed, as reserve_node was told. NULL: it may be.';
COMMENT ON COLUMN {{$s}}.node_lease.free_mark IS 'The mark of a number that is free. NULL: it is reserved, or has a holder, whose claim may have expired.';

-- Has the transaction on disk, and on the standbys that are synchronous, before the caller hears of it, whatever the
-- database's default is. A setting of the function would end before the commit.
CREATE FUNCTION {{$s}}.commit_durably() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.commit_durably() FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.commit_durably() IS 'Part of the ..._node functions, not for anybody else.';

-- The timeline of the write-ahead log: a standby that takes over begins another one.
CREATE FUNCTION {{$s}}.node_timeline() RETURNS text
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL; -- not every service that speaks this language has a log of this kind
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.node_timeline() FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.node_timeline() IS 'Part of the ..._node functions, not for anybody else.';

-- Up to when, in Unix milliseconds, any number of a pool may have been used, whatever its mark says: 0, or after a standby
-- has taken over, the end of the fence. It may not have got the last claims and renewals. What these allowed to be minted
-- ends at the latest when the longest TTL is over, so nobody begins before that. Present claims go on.
CREATE FUNCTION {{$s}}.node_fence(pool text, ttl interval) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known {{$s}}.node_pool;
    timeline CONSTANT text := {{$s}}.node_timeline();
BEGIN
    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    IF FOUND AND known.timeline IS DISTINCT FROM timeline THEN
        UPDATE {{$s}}.node_pool p SET timeline = timeline, fenced_until = greatest(p.fenced_until, clock_timestamp()
                + greatest(ttl, (SELECT max(l.ttl) FROM {{$s}}.node_lease l WHERE l.pool = pool)))
            WHERE p.name = pool AND p.timeline IS NOT DISTINCT FROM known.timeline;
        SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    END IF;
    RETURN CASE WHEN isfinite(known.fenced_until) THEN ceil(extract(epoch FROM known.fenced_until) * 1000) ELSE 0 END;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.node_fence(text, interval) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.node_fence(text, interval) IS 'Part of the ..._node functions, not for anybody else.';

-- Claims a number of a pool, which is made when it is first asked for.
--
--     size, layout      of the pool; others than it was made with are refused (SK001)
--     reserved          numbers that this call must not claim. Other calls may; reserve_node keeps a number from all of them
--     holder            unique to the claim: the same one again gives the same number and term
--     ttl_ms            how long the claim stands
--     now_ms, until_ms  the holder's clock, and up to where it wants to mint
--
-- It takes the number with the lowest mark behind now_ms, among those that are free; if there is none, among those whose
-- claims have expired. It passes over rows that others have locked: a transaction that hangs holds up one number and not
-- the pool, unless it is about to make that or its fence. If no number can be had, number is NULL, and the result tells
-- how many are held, reserved, and free with a mark ahead of now_ms, the lowest of these marks, when the first that is
-- held is free if it isn't renewed, and the first reservations that reserve_node made.
CREATE FUNCTION {{$s}}.claim_node(
    pool text, size integer, layout text, reserved int4multirange, holder text, ttl_ms bigint, now_ms bigint, until_ms bigint,
    OUT number integer, OUT term bigint, OUT after bigint, OUT until bigint, OUT time_ms bigint,
    OUT held_count integer, OUT reserved_count integer, OUT ahead_count integer, OUT frees_ms bigint, OUT lowest_mark bigint,
    OUT reservations text
)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    ttl CONSTANT interval := ttl_ms * interval '1 millisecond';
    known {{$s}}.node_pool;
    lowest bigint; -- what no mark counts as less than
    now_at timestamptz;
BEGIN
    IF (pool ~ '^[a-z][a-z0-9_-]{0,62}$' AND size BETWEEN 1 AND 65536 AND octet_length(layout) <= 1000 AND octet_length(holder) BETWEEN 1 AND 1000
        AND ttl_ms BETWEEN 1 AND 3600000 AND now_ms <= until_ms AND until_ms < {{.EndOfTimeMS}}) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of claim_node: pool %s, size %s, layout %s, holder %s, ttl_ms %s, now_ms %s, until_ms %s',
                quote_nullable(left(pool, 100)), coalesce(size::text, 'NULL'), quote_nullable(left(layout, 100)), quote_nullable(left(holder, 100)),
                coalesce(ttl_ms::text, 'NULL'), coalesce(now_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL')),
            DETAIL = 'pool matches [a-z][a-z0-9_-]* and has up to 63 characters, size is 1 to 65536, layout has up to 1000 bytes, holder has 1 to 1000 bytes, ttl_ms is 1 to 3600000, and until_ms is at or after now_ms and not after the year 9999.';
    END IF;
    PERFORM {{$s}}.commit_durably();
    reserved := coalesce(reserved, '{}');

    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    IF NOT FOUND THEN
        -- Of several that are the first, one makes the pool and the others wait for it.
        INSERT INTO {{$s}}.node_pool (name, size, layout, timeline)
            VALUES (pool, size, layout, {{$s}}.node_timeline()) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            -- What was reserved before is there already, and what was until it was given back.
            INSERT INTO {{$s}}.node_lease (pool, number) SELECT pool, n FROM generate_series(0, size - 1) n ON CONFLICT DO NOTHING;
            DELETE FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number >= size AND l.reserved IS NULL;
            SELECT l.number INTO number FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number >= size ORDER BY l.number LIMIT 1;
            IF number IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'SK001',
                    MESSAGE = format('reserved number %s is out of range for pool %s of layout %L (0 to %s)', number, pool, layout, size - 1),
                    HINT = 'Give this process the layout that the number was reserved for, or cancel the reservation with unreserve_node.';
            END IF;
        END IF;
        SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    END IF;
    IF known.size <> size OR known.layout <> layout THEN
        RAISE EXCEPTION USING ERRCODE = 'SK001',
            MESSAGE = format('pool %s has %s numbers of layout %L, but this process has %s numbers of layout %L', pool, known.size, known.layout, size, layout),
            HINT = 'Give this process the layout of the pool, or the pool another name.';
    END IF;

    lowest := {{$s}}.node_fence(pool, ttl);

    -- The same call again? Then nobody has heard of what was granted, so nothing was minted, and it can be granted as of
    -- now; and of calls that were under way at the same time each may have got a number.
    SELECT l.number INTO number FROM {{$s}}.node_lease l
        WHERE l.pool = pool AND l.holder = holder
        ORDER BY l.reserved IS NULL DESC, l.expires_at DESC, l.number LIMIT 1 FOR UPDATE;
    IF FOUND THEN
        UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL
            WHERE l.pool = pool AND l.holder = holder AND l.number <> number;
        UPDATE {{$s}}.node_lease l
            SET after = greatest(l.after, lowest), mark = greatest(l.mark, until_ms), expires_at = clock_timestamp() + ttl, ttl = ttl
            WHERE l.pool = pool AND l.number = number AND l.holder = holder AND lowest < now_ms
                AND (l.reserved IS NULL OR l.expires_at > clock_timestamp())
            RETURNING l.term, l.after, l.mark INTO term, after, until;
        IF FOUND THEN
            time_ms := extract(epoch FROM clock_timestamp()) * 1000;
            RETURN;
        END IF;
        UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number AND l.holder = holder;
    END IF;

    -- If the clock was set back a claim would stand for as much longer. A holder that lives renews within a TTL. The
    -- clock is looked at row by row, after the claims that are seen were written. holder >= '' is true for every
    -- holder; it makes the planner choose node_lease_held, even without statistics.
    UPDATE {{$s}}.node_lease l SET expires_at = clock_timestamp() + l.ttl
        FROM (
            SELECT o.number FROM {{$s}}.node_lease o
            WHERE o.pool = pool AND o.holder >= '' AND o.expires_at > clock_timestamp() + o.ttl
            FOR UPDATE SKIP LOCKED
        ) late
        WHERE l.pool = pool AND l.number = late.number;

    now_at := clock_timestamp();
    SELECT l.number INTO number FROM {{$s}}.node_lease l
        WHERE l.pool = pool AND l.number < size AND l.free_mark < now_ms AND lowest < now_ms AND NOT l.number <@ reserved
        ORDER BY l.free_mark, l.number LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- This reads the whole pool, so that a number which is released meanwhile isn't missed.
        SELECT l.number INTO number FROM {{$s}}.node_lease l
            WHERE l.pool = pool AND l.number < size AND l.reserved IS NULL AND NOT l.number <@ reserved
                AND (l.holder IS NULL OR l.expires_at <= now_at) AND greatest(l.mark, lowest) < now_ms
            ORDER BY l.mark, l.number LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    IF FOUND THEN
        UPDATE {{$s}}.node_lease l SET term = l.term + 1, holder = holder, after = greatest(l.mark, lowest), mark = until_ms,
                expires_at = clock_timestamp() + ttl, ttl = ttl
            WHERE l.pool = pool AND l.number = number
            RETURNING l.term, l.after, l.mark INTO term, after, until;
    ELSE
        -- What is free, but locked, is being claimed.
        SELECT count(*) FILTER (WHERE NOT a.kept AND NOT a.ahead), count(*) FILTER (WHERE a.kept), count(*) FILTER (WHERE NOT a.kept AND a.ahead),
                ceil(extract(epoch FROM min(l.expires_at) FILTER (WHERE NOT a.kept AND l.holder IS NOT NULL AND l.expires_at > now_at) - now_at) * 1000),
                min(greatest(l.mark, lowest)) FILTER (WHERE NOT a.kept AND a.ahead)
            INTO held_count, reserved_count, ahead_count, frees_ms, lowest_mark
            FROM {{$s}}.node_lease l
                CROSS JOIN LATERAL (
                    SELECT l.reserved IS NOT NULL OR l.number <@ reserved,
                        (l.holder IS NULL OR l.expires_at <= now_at) AND greatest(l.mark, lowest) >= now_ms
                ) a (kept, ahead)
            WHERE l.pool = pool AND l.number < size;
        SELECT string_agg(CASE WHEN k.place <= 3 THEN format('%s for %s', k.number, quote_literal(left(k.reserved, 100))) ELSE format('%s more', k.total - 3) END, ', ' ORDER BY k.place)
            INTO reservations
            FROM (
                SELECT l.number, l.reserved, row_number() OVER (ORDER BY l.number) place, count(*) OVER () total
                FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number < size AND l.reserved IS NOT NULL
            ) k
            WHERE k.place <= 4;
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint) FROM PUBLIC;

-- Renews a claim, also one whose time is over, if nobody else has got the number meanwhile and it isn't reserved: moves
-- its mark on to until_ms, never back. If somebody has, or the claim was released, nothing changes, and the result has
-- the number's term and, in as far as it is for people, its holder.
CREATE FUNCTION {{$s}}.renew_node(
    pool text, number integer, term bigint, holder text, ttl_ms bigint, until_ms bigint,
    OUT renewed boolean, OUT after bigint, OUT until bigint, OUT time_ms bigint, OUT present_term bigint, OUT present_holder text
)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    ttl CONSTANT interval := ttl_ms * interval '1 millisecond';
BEGIN
    IF (ttl_ms BETWEEN 1 AND 3600000 AND until_ms < {{.EndOfTimeMS}}) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of renew_node: ttl_ms %s, until_ms %s', coalesce(ttl_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL')),
            DETAIL = 'ttl_ms is 1 to 3600000, and until_ms is not after the year 9999.';
    END IF;
    PERFORM {{$s}}.commit_durably();
    UPDATE {{$s}}.node_lease l SET mark = greatest(l.mark, until_ms), expires_at = clock_timestamp() + ttl, ttl = ttl
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder
            AND (l.reserved IS NULL OR l.expires_at > clock_timestamp())
        RETURNING l.after, l.mark INTO after, until;
    renewed := FOUND;
    IF NOT renewed THEN
        SELECT l.term, regexp_replace(l.holder, ' \S+$', '') INTO present_term, present_holder
            FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number = number;
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.renew_node(text, integer, bigint, text, bigint, bigint) FROM PUBLIC;

-- Ends a claim whose holder has minted up to mark_ms, and won't any more. It tells whether it did: not if the number is
-- in another term or was released. The mark doesn't get lower than the claim found it.
CREATE FUNCTION {{$s}}.release_node(pool text, number integer, term bigint, holder text, mark_ms bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF (mark_ms < {{.EndOfTimeMS}}) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of release_node: mark_ms %s', coalesce(mark_ms::text, 'NULL')),
            DETAIL = 'mark_ms is the time of the last ID and is not after the year 9999.';
    END IF;
    PERFORM {{$s}}.commit_durably();
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL, mark = greatest(mark_ms, l.after)
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder;
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.release_node(text, integer, bigint, text, bigint) FROM PUBLIC;

-- Keeps a number from being claimed, for what mints with it for ever, such as the default of a column; also before the
-- pool was ever used. note says what that is. Such a thing may mint once this has returned, and not before: so a number
-- that is held is an error, or one that was used up to a time which this server's clock has yet to pass by a second.
--
-- while_held => true only sees to it that nobody claims the number any more. Call it again when the holder is gone.
CREATE FUNCTION {{$s}}.reserve_node(pool text, number integer, note text, while_held boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known {{$s}}.node_pool;
    size integer;
    lease {{$s}}.node_lease;
    now_at timestamptz;
BEGIN
    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    size := coalesce(known.size, 65536); -- the largest
    IF (pool ~ '^[a-z][a-z0-9_-]{0,62}$' AND number BETWEEN 0 AND size - 1 AND note IS NOT NULL AND while_held IS NOT NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of reserve_node: pool %s, number %s (0 to %s), note %s, while_held %s',
                quote_nullable(pool), coalesce(number::text, 'NULL'), size - 1, quote_nullable(note), coalesce(while_held::text, 'NULL')),
            HINT = 'A pool name has up to 63 lower-case letters, digits, hyphens and underscores, and begins with a letter. No argument can be NULL.';
    END IF;
    PERFORM {{$s}}.commit_durably();
    INSERT INTO {{$s}}.node_lease AS l (pool, number, reserved) VALUES (pool, number, note)
        ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET reserved = note
        RETURNING l.* INTO lease;
    IF while_held THEN
        RETURN;
    END IF;
    now_at := clock_timestamp();
    IF lease.holder IS NOT NULL AND lease.expires_at > now_at THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: it is held by %s until %s, unless renewed',
                number, pool, regexp_replace(lease.holder, ' \S+$', ''), lease.expires_at),
            HINT = 'Call reserve_node with while_held => true, stop the holder, and call it again; or choose another number.';
    END IF;
    lease.mark := greatest(lease.mark, {{$s}}.node_fence(pool, interval '0'));
    -- The mark's unit of time, which is some milliseconds in some formats, counts as a whole.
    IF lease.mark + 1000 >= extract(epoch FROM now_at) * 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: it has a high-water mark of %s, and the clock is at %s, in Unix milliseconds',
                number, pool, lease.mark, floor(extract(epoch FROM now_at) * 1000)),
            DETAIL = 'The number may have been used up to the high-water mark.',
            HINT = 'Call reserve_node again once the clock is a second past the mark, or choose another number.';
    END IF;
    -- A claim whose time is over could be renewed.
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.reserve_node(text, integer, text, boolean) FROM PUBLIC;

-- Gives a reserved number back to the pool, when nothing mints with it any more: used_until is up to when something
-- did, by the times in its IDs; NULL means up to now.
CREATE FUNCTION {{$s}}.unreserve_node(pool text, number integer, used_until timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    used_ms bigint;
BEGIN
    IF isfinite(used_until) IS FALSE OR used_until >= timestamptz '10000-01-01 00:00:00+00' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('used_until %s is out of range; want a finite time that is not after the year 9999', used_until);
    END IF;
    -- IDs are up to {{.AheadMS}} ms ahead of the server's clock.
    used_ms := ceil(extract(epoch FROM coalesce(used_until, clock_timestamp())) * 1000) + {{.AheadMS}};
    PERFORM {{$s}}.commit_durably();
    -- Whoever held it before mustn't release it now, with a mark of then.
    UPDATE {{$s}}.node_lease l SET reserved = NULL, holder = NULL, expires_at = NULL, mark = greatest(l.mark, used_ms)
        WHERE l.pool = pool AND l.number = number AND l.reserved IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('number %s of pool %s is not reserved', coalesce(number::text, 'NULL'), quote_nullable(pool));
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.unreserve_node(text, integer, timestamptz) FROM PUBLIC;

-- For people. It leaves out what makes a holder unique, by which claims can be released.
CREATE VIEW {{$s}}.node_status AS
    SELECT l.pool, l.number,
        CASE WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'held' WHEN l.reserved IS NOT NULL THEN 'reserved' ELSE 'free' END AS state,
        regexp_replace(l.holder, ' \S+$', '') AS holder, l.expires_at, l.ttl, l.term,
        CASE WHEN l.mark < {{.EndOfTimeMS}} THEN to_timestamp(nullif(l.mark, 0) / 1000.0) ELSE 'infinity' END AS mark, l.reserved
    FROM {{$s}}.node_lease l;
COMMENT ON VIEW {{$s}}.node_status IS 'Node numbers, who holds them, and the time up to which each may have been used (mark; NULL if it was never used).';

{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.relnamespace = '{{$s}}'::regnamespace AND c.relname IN ('node_pool', 'node_lease', 'node_status')
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{$s}}'::regnamespace
                AND p.proname IN ('claim_node', 'renew_node', 'release_node', 'reserve_node', 'unreserve_node', 'node_fence', 'node_timeline', 'commit_durably')
{{- template "protected"}}
-- Lists the defaults that mint with a node number, to find numbers that aren't reserved. Postgres tells which columns,
-- domains and SQL functions (with RETURN or BEGIN ATOMIC) depend on the functions that mint. The number is read from the
-- text of the default.
CREATE VIEW {{$s}}.node_defaults AS
    WITH minting (function, first, second) AS (
        VALUES ('next_snowflake', 'datacenter', 'worker'), ('next_snowflake_si', 'machine', NULL),
            ('next_spread64', 'generator', 'cluster'), ('next_sno', 'meta', 'partition')
    ), uses AS (
        SELECT d.classid, d.objid, m.function, m.first, m.second,
            CASE WHEN pg_function_is_visible(p.oid) THEN '' ELSE '{{$s}}\.' END AS prefix
        FROM minting m
            JOIN pg_proc p ON p.pronamespace = '{{$s}}'::regnamespace AND p.proname = m.function
            JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
    ), lasting AS (
        -- Any role may create temporary objects, and only its session uses them.
        SELECT n.oid, n.nspname FROM pg_namespace n WHERE n.nspname !~ '^pg_temp_'
    ), defaults AS (
        SELECT 'column' AS kind, format('%I.%I.%I', n.nspname, c.relname, t.attname) AS name,
            pg_get_expr(a.adbin, a.adrelid) AS expression, u.function, u.first, u.second, u.prefix
        FROM uses u JOIN pg_attrdef a ON u.classid = 'pg_attrdef'::regclass AND a.oid = u.objid
            JOIN pg_attribute t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
            JOIN pg_class c ON c.oid = a.adrelid JOIN lasting n ON n.oid = c.relnamespace
        UNION
        SELECT 'domain', format('%I.%I', n.nspname, t.typname), pg_get_expr(t.typdefaultbin, 0), u.function, u.first, u.second, u.prefix
        FROM uses u JOIN pg_type t ON u.classid = 'pg_type'::regclass AND t.oid = u.objid
            JOIN lasting n ON n.oid = t.typnamespace
        UNION
        SELECT 'function', format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
            pg_get_function_sqlbody(p.oid), u.function, u.first, u.second, u.prefix
        FROM uses u JOIN pg_proc p ON u.classid = 'pg_proc'::regclass AND p.oid = u.objid AND p.prosqlbody IS NOT NULL
            JOIN lasting n ON n.oid = p.pronamespace AND n.oid <> '{{$s}}'::regnamespace
    ), calls AS (
        -- Without the quotes of simple names, and without anything else in quotes, a call is a name and its arguments.
        SELECT d.kind, d.name, d.expression, d.function,
            coalesce(substring(c[1] FROM d.first || ' => ([0-9]{1,5})(?:,|$)'),
                substring(c[1] FROM '^([0-9]{1,5})(?:,|$)'))::integer AS first,
            coalesce(substring(c[1] FROM d.second || ' => ([0-9]{1,5})(?:,|$)'),
                substring(c[1] FROM '^[^,=]*, ([0-9]{1,5})$'))::integer AS second
        FROM defaults d CROSS JOIN LATERAL regexp_matches(
            regexp_replace(regexp_replace(d.expression, '"([a-z_][a-z0-9_]*)"', '\1', 'g'), '"([^"]|"")*"|''([^'']|'''')*''', '""', 'g'),
            '(?<![a-z0-9_.])' || d.prefix || d.function || '\((?:((?:[^()]|\([^()]*\))*)\))?', 'g') c
    ), numbers AS (
        SELECT c.kind, c.name, c.expression,
            CASE c.function WHEN 'next_snowflake' THEN 'snowflake' WHEN 'next_snowflake_si' THEN 'snowflake-si'
                WHEN 'next_spread64' THEN 'spread64-' || c.second WHEN 'next_sno' THEN 'sno' END AS pool,
            -- As nodelease writes it.
            CASE c.function
                WHEN 'next_snowflake' THEN (SELECT 'snowflake: ' || l.layout FROM {{$s}}.layout l WHERE l.format = 'snowflake')
                WHEN 'next_snowflake_si' THEN (SELECT 'snowflake_si: ' || l.layout FROM {{$s}}.layout l WHERE l.format = 'snowflake_si')
                WHEN 'next_spread64' THEN 'spread64: cluster ' || c.second
                WHEN 'next_sno' THEN 'sno: partitions' END AS layout,
            CASE c.function
                WHEN 'next_snowflake' THEN CASE WHEN c.first <= {{.Snowflake.MaxDatacenter}} AND c.second <= {{.Snowflake.MaxWorker}}
                    THEN c.first * {{.Snowflake.Workers}} + c.second END
                WHEN 'next_snowflake_si' THEN c.first
                WHEN 'next_spread64' THEN CASE WHEN c.second IS NOT NULL THEN c.first END
                WHEN 'next_sno' THEN c.second END AS number
        FROM calls c
    )
    SELECT n.kind, n.name, n.expression, o.pool, n.number, l.reserved
    FROM numbers n
        -- A program may give its pool another name than nodelease does.
        LEFT JOIN LATERAL (
            SELECT p.name FROM {{$s}}.node_pool p WHERE p.layout = n.layout AND p.size > n.number
            UNION ALL
            SELECT n.pool WHERE NOT EXISTS (SELECT FROM {{$s}}.node_pool p WHERE p.layout = n.layout AND p.size > n.number)
        ) o (pool) ON true
        LEFT JOIN {{$s}}.node_lease l ON l.pool = o.pool AND l.number = n.number;
COMMENT ON VIEW {{$s}}.node_defaults IS 'Defaults that mint with a node number, with the note of the reservation. reserved is NULL if the number isn''t reserved; number is NULL if it isn''t a literal.';
{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c WHERE c.oid = '{{$s}}.node_defaults'::regclass
{{- template "protected"}}
GRANT SELECT ON {{$s}}.node_defaults TO PUBLIC; -- Check reads it

{{template "revision" .}}
{{- end}}
