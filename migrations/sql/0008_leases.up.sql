{{define "leases" -}}
{{$s := .Schema -}}
-- Leases of node numbers, for package pglease.
--
-- Each number of a pool has a row with a high-water mark, in Unix milliseconds by the clocks of the programs. The
-- number may have been used up to that mark. A claim begins after the current mark and writes the next one before the
-- program generates an ID. Only the holder of the number's current term can advance the mark. This rule prevents
-- duplicate IDs and doesn't depend on correct clocks. Only this server, by clock_timestamp(), decides which program
-- holds a number and for how long.
--
-- A role with write access to the tables could lower a mark and cause duplicate IDs. So the functions are SECURITY
-- DEFINER, and other roles have no privileges until they are granted. Each function is called in a separate statement
-- and transaction and leaves no session state, so it works through connection poolers.

CREATE TABLE {{$s}}.node_pool (
    name text PRIMARY KEY,
    size integer NOT NULL,
    layout text NOT NULL,
    timeline text,
    fenced_until timestamptz NOT NULL DEFAULT '-infinity'
);
COMMENT ON TABLE {{$s}}.node_pool IS 'The pools of node numbers. The first claim creates a pool.';
COMMENT ON COLUMN {{$s}}.node_pool.layout IS 'The layout of the IDs. Programs with another layout are rejected.';
COMMENT ON COLUMN {{$s}}.node_pool.timeline IS 'The timeline of the write-ahead log at the last claim. A change means that a standby has taken over.';
COMMENT ON COLUMN {{$s}}.node_pool.fenced_until IS 'No number is granted before this time. By then, every claim that a promoted standby had not received has expired.';

-- The fillfactor leaves room for HOT updates: renewals change no indexed column.
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
COMMENT ON TABLE {{$s}}.node_lease IS 'The node numbers and their holders; see node_status. Lowering a mark by hand can cause duplicate IDs.';
COMMENT ON COLUMN {{$s}}.node_lease.term IS 'The number of claims so far.';
COMMENT ON COLUMN {{$s}}.node_lease.mark IS 'The high-water mark: the number may have been used up to this time, in Unix milliseconds.';
COMMENT ON COLUMN {{$s}}.node_lease.after IS 'The high-water mark before the last claim.';
COMMENT ON COLUMN {{$s}}.node_lease.holder IS 'The holder, or NULL if the number was released or never held. A program that knows the value can renew and release the claim.';
COMMENT ON COLUMN {{$s}}.node_lease.expires_at IS 'The time, by this server''s clock, from which other programs can claim the number.';
COMMENT ON COLUMN {{$s}}.node_lease.ttl IS 'The time until the claim expires, unless renewed.';
COMMENT ON COLUMN {{$s}}.node_lease.reserved IS 'The note passed to reserve_node, or NULL if the number is not reserved. A reserved number cannot be claimed.';
COMMENT ON COLUMN {{$s}}.node_lease.free_mark IS 'The mark of a free number, or NULL if the number is reserved or has a holder, even an expired one.';

-- Makes the commit wait for the disk and for synchronous standbys, even if the database's default is a weaker
-- synchronous_commit. A SET clause of the function would end before the commit.
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
COMMENT ON FUNCTION {{$s}}.commit_durably() IS 'Internal function of the ..._node functions.';

-- Returns the timeline of the write-ahead log. A promoted standby begins a new timeline.
CREATE FUNCTION {{$s}}.node_timeline() RETURNS text
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL; -- some Postgres-compatible services have no such log
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.node_timeline() FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.node_timeline() IS 'Internal function of the ..._node functions.';

-- Returns the time, in Unix milliseconds, up to which any number of a pool may have been used, regardless of its mark.
-- It is 0 before any failover, and fenced_until of the pool afterwards. The promoted standby can lack the last claims
-- and renewals. These expire within the longest TTL, so new claims wait until then. Existing claims continue.
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
COMMENT ON FUNCTION {{$s}}.node_fence(text, interval) IS 'Internal function of the ..._node functions.';

-- Claims a number of a pool. The first claim creates the pool.
--
--     size, layout      the size and layout of the pool; they must be those it was created with (else SK001)
--     reserved          numbers that this call must not claim; reserve_node reserves a number for all calls
--     holder            unique to the claim; a repeated call with the same holder returns the same number and term
--     ttl_ms            the time until the claim expires
--     now_ms, until_ms  the holder's clock, and the time up to which it intends to generate IDs
--
-- It claims the free number with the lowest mark before now_ms. If no number is free, it claims the
-- number with the lowest mark before now_ms whose claim has expired. It skips locked rows, so a hanging transaction blocks one number and not the pool, unless it is
-- creating the pool or the fence. If no number is available, number is NULL, and the result has
--
--     held_count        the number of held numbers
--     reserved_count    the number of reserved numbers
--     ahead_count       the number of free numbers with a mark at or after now_ms
--     lowest_mark       the lowest of these marks
--     frees_ms          the time until the first held number is free, unless renewed
--     reservations      the first three reservations made with reserve_node, and the count of the others
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
    lowest bigint; -- the fence, a lower limit of all marks
    now_at timestamptz;
BEGIN
    IF (pool ~ '^[a-z][a-z0-9_-]{0,62}$' AND size BETWEEN 1 AND 65536 AND octet_length(layout) <= 1000 AND octet_length(holder) BETWEEN 1 AND 1000
        AND ttl_ms BETWEEN 1 AND 3600000 AND now_ms <= until_ms AND until_ms < {{.EndOfTimeMS}}) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of claim_node: pool %s, size %s (1 to 65536), layout %s (up to 1000 bytes), holder %s (1 to 1000 bytes), ttl_ms %s (1 to 3600000), now_ms %s, until_ms %s (not after the year 9999)',
                quote_nullable(left(pool, 100)), coalesce(size::text, 'NULL'), quote_nullable(left(layout, 100)), quote_nullable(left(holder, 100)),
                coalesce(ttl_ms::text, 'NULL'), coalesce(now_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL')),
            DETAIL = 'A pool name has up to 63 lower-case letters, digits, hyphens and underscores, and begins with a letter. until_ms is not before now_ms.';
    END IF;
    PERFORM {{$s}}.commit_durably();
    reserved := coalesce(reserved, '{}');

    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    IF NOT FOUND THEN
        -- If several first claims run at once, one creates the pool and the others wait for it.
        INSERT INTO {{$s}}.node_pool (name, size, layout, timeline)
            VALUES (pool, size, layout, {{$s}}.node_timeline()) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            -- Rows exist already for numbers that are reserved, or were.
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

    -- If the holder already has a number, this is a repeated call: the holder didn't receive the first result and has
    -- generated no IDs. Grant the number again, as of now. Concurrent calls of one holder can each have claimed a number; release all but one.
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

    -- If the clock steps back, claims would expire later by the size of the step. Cap them at one TTL from now, since a
    -- live holder renews within a TTL. clock_timestamp() runs per row, so it is later than each visible claim. The
    -- condition holder >= '' is true for every holder; it makes the planner choose node_lease_held, even without
    -- statistics.
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
        -- Read the whole pool, to include numbers that were released in the meantime.
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
        -- A number that is free but locked is being claimed, and counts as held.
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

-- Renews a claim and raises its mark to until_ms, if that is later. An expired claim can be renewed if no other program
-- has claimed the number and it isn't reserved. If another program has claimed it, or the claim was released, nothing
-- changes, and the result has the current term and the readable part of the holder.
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
            MESSAGE = format('invalid argument of renew_node: ttl_ms %s (1 to 3600000), until_ms %s (not after the year 9999)',
                coalesce(ttl_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL'));
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

-- Releases a claim whose holder has generated IDs up to mark_ms and generates no more. It returns false if the number
-- is in another term or was released before. The mark doesn't fall below its value before the claim.
CREATE FUNCTION {{$s}}.release_node(pool text, number integer, term bigint, holder text, mark_ms bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF (mark_ms < {{.EndOfTimeMS}}) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of release_node: mark_ms %s (not after the year 9999)', coalesce(mark_ms::text, 'NULL'));
    END IF;
    PERFORM {{$s}}.commit_durably();
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL, mark = greatest(mark_ms, l.after)
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder;
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.release_node(text, integer, bigint, text, bigint) FROM PUBLIC;

-- Reserves a number permanently, for example for the default of a column. Programs cannot claim a reserved number. The
-- pool need not exist yet. note describes the use of the number. The number can be used once reserve_node has returned.
-- So reserve_node fails if the number is held, or if this server's clock isn't a second past the number's mark.
--
-- while_held => true only prevents further claims. Call reserve_node again after the holder has stopped.
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
    size := coalesce(known.size, 65536); -- the largest size
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
    -- Wait for the whole time unit of the mark, which is several milliseconds in some formats.
    IF lease.mark + 1000 >= extract(epoch FROM now_at) * 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: it has a high-water mark of %s, and the clock is at %s, in Unix milliseconds',
                number, pool, lease.mark, floor(extract(epoch FROM now_at) * 1000)),
            DETAIL = 'The number may have been used up to the high-water mark.',
            HINT = 'Call reserve_node again once the clock is a second past the mark, or choose another number.';
    END IF;
    -- Remove an expired claim, which the holder could renew.
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.reserve_node(text, integer, text, boolean) FROM PUBLIC;

-- Cancels the reservation of a number that is no longer in use. used_until is the time of the last ID generated with
-- it. NULL means now.
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
    -- Remove the holder, so that it cannot release the number with an old mark.
    UPDATE {{$s}}.node_lease l SET reserved = NULL, holder = NULL, expires_at = NULL, mark = greatest(l.mark, used_ms)
        WHERE l.pool = pool AND l.number = number AND l.reserved IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('number %s of pool %s is not reserved', coalesce(number::text, 'NULL'), quote_nullable(pool)),
                HINT = 'The view {{$s}}.node_status lists the reserved numbers.';
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.unreserve_node(text, integer, timestamptz) FROM PUBLIC;

-- Shows node numbers to people. It omits the unique part of a holder, since a program that knows it can release the
-- claim.
CREATE VIEW {{$s}}.node_status AS
    SELECT l.pool, l.number,
        CASE WHEN l.holder IS NOT NULL AND l.expires_at > clock_timestamp() THEN 'held' WHEN l.reserved IS NOT NULL THEN 'reserved' ELSE 'free' END AS state,
        regexp_replace(l.holder, ' \S+$', '') AS holder, l.expires_at, l.ttl, l.term,
        CASE WHEN l.mark < {{.EndOfTimeMS}} THEN to_timestamp(nullif(l.mark, 0) / 1000.0) ELSE 'infinity' END AS mark, l.reserved
    FROM {{$s}}.node_lease l;
COMMENT ON VIEW {{$s}}.node_status IS 'Node numbers, their holders, and the time up to which each may have been used (mark; NULL if it was never used).';

{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.relnamespace = '{{$s}}'::regnamespace AND c.relname IN ('node_pool', 'node_lease', 'node_status')
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{$s}}'::regnamespace
                AND p.proname IN ('claim_node', 'renew_node', 'release_node', 'reserve_node', 'unreserve_node', 'node_fence', 'node_timeline', 'commit_durably')
{{- template "protected"}}
-- Lists the defaults that generate IDs with a node number, to find numbers that aren't reserved. pg_depend has the
-- columns, domains and SQL functions (with RETURN or BEGIN ATOMIC) that depend on the next_ functions. The view reads
-- the number from the text of the default.
CREATE VIEW {{$s}}.node_defaults AS
    WITH generators (function, first, second) AS (
        VALUES ('next_snowflake', 'datacenter', 'worker'), ('next_snowflake_si', 'machine', NULL),
            ('next_spread64', 'generator', 'cluster'), ('next_sno', 'meta', 'partition')
    ), uses AS (
        SELECT d.classid, d.objid, m.function, m.first, m.second,
            CASE WHEN pg_function_is_visible(p.oid) THEN '' ELSE '{{$s}}\.' END AS prefix
        FROM generators m
            JOIN pg_proc p ON p.pronamespace = '{{$s}}'::regnamespace AND p.proname = m.function
            JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
    ), lasting AS (
        -- Exclude temporary objects: any role can create them, and only one session uses them.
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
        -- Remove the quotes of simple names, and replace all other quoted text with "". Then a call is a name and its arguments.
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
            -- The layout text of package nodelease.
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
        -- Programs can give a pool a name other than the default of package nodelease.
        LEFT JOIN LATERAL (
            SELECT p.name FROM {{$s}}.node_pool p WHERE p.layout = n.layout AND p.size > n.number
            UNION ALL
            SELECT n.pool WHERE NOT EXISTS (SELECT FROM {{$s}}.node_pool p WHERE p.layout = n.layout AND p.size > n.number)
        ) o (pool) ON true
        LEFT JOIN {{$s}}.node_lease l ON l.pool = o.pool AND l.number = n.number;
COMMENT ON VIEW {{$s}}.node_defaults IS 'Defaults that generate IDs with a node number. reserved is the note of the reservation, or NULL if the number is not reserved. number is NULL if it is not a literal.';
{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c WHERE c.oid = '{{$s}}.node_defaults'::regclass
{{- template "protected"}}
GRANT SELECT ON {{$s}}.node_defaults TO PUBLIC; -- Check reads it

{{template "revision" .}}
{{- end}}
