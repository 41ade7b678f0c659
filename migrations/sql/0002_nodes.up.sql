{{define "nodes" -}}
{{$s := .Schema}}{{$i := .Internal -}}
-- Node numbers: leases for package pglease, and reservations for the server's generators.
--
-- Each number that was used or reserved has a row with a high-water mark, in Unix milliseconds by the clocks of the
-- programs. The number may have been used up to that mark. A claim begins after the current mark and writes the next one
-- before the program generates an ID. Only the holder of the number's current term can advance the mark. This rule
-- prevents duplicate IDs and doesn't depend on correct clocks. Only this server, by clock_timestamp(), decides which
-- program holds a number and for how long.
--
-- A role with write access to the tables could lower a mark and cause duplicate IDs. So the functions are SECURITY
-- DEFINER, and other roles have no privileges until they are granted. Each function is called in a separate statement
-- and transaction and leaves no session state, so it works through connection poolers.

CREATE TABLE {{$s}}.node_pool (
    name text PRIMARY KEY,
    size integer NOT NULL,
    layout text NOT NULL,
    timeline text,
    fenced_until timestamptz NOT NULL DEFAULT '-infinity',
    filled integer NOT NULL DEFAULT 0,
    of_original int4multirange
);
COMMENT ON TABLE {{$s}}.node_pool IS 'The pools of node numbers. The first claim creates a pool with a default name, and create_node_pool other ones.';
COMMENT ON COLUMN {{$s}}.node_pool.layout IS 'The layout of the IDs. Programs with another layout are rejected.';
COMMENT ON COLUMN {{$s}}.node_pool.timeline IS 'The timeline of the write-ahead log, and the database, at the last claim. A change means that a standby has taken over, or that the database was restored.';
COMMENT ON COLUMN {{$s}}.node_pool.fenced_until IS 'No number is granted before this time. By then, every claim that a promoted standby or a dump does not have has expired.';
COMMENT ON COLUMN {{$s}}.node_pool.filled IS 'Each lower number has a row in node_lease. Claims begin their search for a number without a row here.';
COMMENT ON COLUMN {{$s}}.node_pool.of_original IS 'The numbers that only the original of this copy uses, or NULL if this database is no copy; see confirm_copy.';

-- The database whose programs and defaults use the numbers. A dump has this row, and so does a copy of the files.
CREATE TABLE {{$s}}.node_home (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    database text NOT NULL,
    timeline text,
    copy boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE {{$s}}.node_home IS 'The database in which node numbers were first claimed or reserved, or that confirm_original or confirm_copy recorded since; see database_problems.';
COMMENT ON COLUMN {{$s}}.node_home.database IS 'The system identifier of the server, where roles may read it, and the OIDs of the database and of table node_lease.';
COMMENT ON COLUMN {{$s}}.node_home.timeline IS 'The timeline of the write-ahead log at that time.';
COMMENT ON COLUMN {{$s}}.node_home.copy IS 'The database is a copy, with numbers from its original.';

-- The fillfactor leaves room for HOT updates: renewals change no indexed column.
CREATE TABLE {{$s}}.node_lease (
    pool text NOT NULL,
    number integer NOT NULL,
    term bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    after bigint NOT NULL DEFAULT 0,
    holder text,
    nonce text NOT NULL DEFAULT '',
    claimed_at timestamptz,
    expires_at timestamptz,
    ttl interval,
    reserved text,
    of_copy boolean NOT NULL DEFAULT false,
    -- A separate column: with an index on mark itself, each renewal would write to the index.
    free_mark bigint GENERATED ALWAYS AS (CASE WHEN holder IS NULL AND reserved IS NULL THEN mark END) STORED,
    PRIMARY KEY (pool, number)
) WITH (fillfactor = 50);
CREATE INDEX node_lease_free ON {{$s}}.node_lease (pool, free_mark, number) WHERE free_mark IS NOT NULL;
CREATE INDEX node_lease_held ON {{$s}}.node_lease (pool, holder) WHERE holder IS NOT NULL;
COMMENT ON TABLE {{$s}}.node_lease IS 'The node numbers that were used or reserved, and their holders; see node_status. Lowering a mark by hand can cause duplicate IDs.';
COMMENT ON COLUMN {{$s}}.node_lease.term IS 'The number of claims so far.';
COMMENT ON COLUMN {{$s}}.node_lease.mark IS 'The high-water mark: the number may have been used up to this time, in Unix milliseconds.';
COMMENT ON COLUMN {{$s}}.node_lease.after IS 'The high-water mark before the last claim.';
COMMENT ON COLUMN {{$s}}.node_lease.holder IS 'The holder, or NULL if the number was released or never held. A program that knows this value and the nonce can renew and release the claim.';
COMMENT ON COLUMN {{$s}}.node_lease.nonce IS 'The random value of the last renewal, or an empty text before the first one. Of two copies of one process, only the first to renew the claim knows it.';
COMMENT ON COLUMN {{$s}}.node_lease.claimed_at IS 'The time of the last claim, by this server''s clock.';
COMMENT ON COLUMN {{$s}}.node_lease.expires_at IS 'The time, by this server''s clock, from which other programs can claim the number.';
COMMENT ON COLUMN {{$s}}.node_lease.ttl IS 'The time until the claim expires, unless renewed.';
COMMENT ON COLUMN {{$s}}.node_lease.reserved IS 'The note passed to reserve_node or reserve_for_copy, or NULL if the number is not reserved. A reserved number cannot be claimed.';
COMMENT ON COLUMN {{$s}}.node_lease.of_copy IS 'A copy of this database uses the number; see reserve_for_copy.';
COMMENT ON COLUMN {{$s}}.node_lease.free_mark IS 'The mark of a free number, or NULL if the number is reserved or has a holder, even an expired one.';

-- Makes the commit wait for the disk and for synchronous standbys, even if the database's default is a weaker
-- synchronous_commit. A SET clause of the function would end before the commit.
CREATE FUNCTION {{$i}}.commit_durably() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

-- Returns the key of the advisory lock for the row of a number. A transaction that may insert the row takes the lock first,
-- so that claims skip the number instead of waiting for the end of the transaction.
CREATE FUNCTION {{$i}}.node_lock(pool text, number integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN hashtextextended(format('{{$s}}.node_lease %s %s', pool, number), 0);

-- Returns the timeline of the write-ahead log. A promoted standby begins a new timeline.
CREATE FUNCTION {{$i}}.node_timeline() RETURNS text
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL; -- some Postgres-compatible services have no such log
END
$$;

-- Returns a text that identifies the database: the system identifier of the server, where roles may read it, and the OIDs of the
-- database and of a table. pg_upgrade and a restored dump change it, also one that is restored into the same database, and a
-- physical copy doesn't. SECURITY DEFINER, so that all roles get the same text. The workers of a Citus cluster lack the table.
CREATE FUNCTION {{$i}}.database_identity() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id CONSTANT text := concat_ws('/', (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()), to_regclass('{{$s}}.node_lease')::oid);
BEGIN
    RETURN (SELECT c.system_identifier FROM pg_control_system() c) || '/' || id;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN id;
END
$$;

-- Returns the timeline and the database, for node_fence. A dump that is restored has the timeline of another server.
CREATE FUNCTION {{$i}}.node_place() RETURNS text
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
    RETURN concat_ws(' ', {{$i}}.node_timeline(), {{$i}}.database_identity());

-- Records the database as the one that uses the numbers, unless one is recorded. If a transaction that is still open has
-- recorded it, settle doesn't wait for that transaction.
CREATE FUNCTION {{$i}}.settle() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM {{$s}}.node_home) AND pg_try_advisory_xact_lock(hashtextextended('{{$s}}.node_home', 0)) THEN
        INSERT INTO {{$s}}.node_home (database, timeline) VALUES ({{$i}}.database_identity(), {{$i}}.node_timeline()) ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- Records the database, in place of the one that is recorded.
CREATE FUNCTION {{$i}}.settle(copy boolean) RETURNS void
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO {{$s}}.node_home (database, timeline, copy) VALUES ({{$i}}.database_identity(), {{$i}}.node_timeline(), copy)
        ON CONFLICT ON CONSTRAINT node_home_pkey DO UPDATE SET database = EXCLUDED.database, timeline = EXCLUDED.timeline, copy = EXCLUDED.copy
$$;

-- Returns the numbers of a pool that only the original of this copy uses: none if this database is no copy. A copy has no
-- numbers of a pool that didn't exist when it got its numbers.
CREATE FUNCTION {{$i}}.of_original(pool text) RETURNS int4multirange
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT p.of_original FROM {{$s}}.node_pool p WHERE p.name = pool),
        CASE WHEN (SELECT h.copy FROM {{$s}}.node_home h) AND NOT EXISTS (SELECT FROM {{$s}}.node_pool p WHERE p.name = pool)
            THEN int4multirange(int4range(0, NULL)) ELSE '{}' END)
$$;

-- Returns the time, in Unix milliseconds, up to which any number of a pool may have been used, regardless of its mark.
-- It is 0 before any failover or restore, and fenced_until of the pool afterwards. The promoted standby or the dump can lack
-- the last claims and renewals. These expire within the longest TTL, so new claims wait until then. Existing claims continue.
CREATE FUNCTION {{$i}}.node_fence(pool text, ttl interval) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known {{$s}}.node_pool;
    timeline CONSTANT text := {{$i}}.node_place();
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

-- The largest distance of a mark from this server's clock, in addition to the TTL of the claim, in milliseconds: a day. A
-- program writes marks by its own clock. Without a limit, one call with a wrong clock, or by a hostile program, would make
-- a number unusable for years.
CREATE FUNCTION {{$i}}.max_skew() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN 86400000;

-- Returns the size and the layout of a pool with a default name of package nodelease, by the layouts of the installation.
-- It returns no row for other names, and for formats that aren't installed.
CREATE FUNCTION {{$i}}.default_pool(pool text) RETURNS TABLE (size integer, layout text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT {{.Snowflake.MaxNode}} + 1, 'snowflake: ' || l.layout FROM {{$s}}.layout l WHERE pool = 'snowflake' AND l.format = 'snowflake'
    UNION ALL SELECT 1 << substring(l.layout FROM 'machine ([0-9]+)')::integer, 'snowflake_si: ' || l.layout FROM {{$s}}.layout l WHERE pool = 'snowflake-si' AND l.format = 'snowflake_si'
    UNION ALL SELECT ({{.Spread64.MaxNode}} + 1) >> 4, replace(pool, '-', ': cluster ') WHERE pool ~ '^spread64-([0-9]|1[0-5])$'
    UNION ALL SELECT {{.Sno.MaxNode}} + 1, 'sno: partitions' WHERE pool = 'sno'
$$;

-- Creates a pool that doesn't exist, and checks the size and layout of one that does. Without may_create, it creates only
-- pools with a default name, size and layout, unless the role of the session is a member of the owner's role: a second
-- pool of a layout would need reservations of its own, and each pool can grow to 65,536 rows.
CREATE FUNCTION {{$i}}.open_pool(pool text, size integer, layout text, may_create boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known {{$s}}.node_pool;
    usual record;
    number integer;
BEGIN
    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    IF NOT FOUND THEN
        SELECT d.size, d.layout INTO usual FROM {{$i}}.default_pool(pool) d;
        IF FOUND AND (usual.size <> size OR usual.layout <> layout) THEN
            RAISE EXCEPTION USING ERRCODE = 'SK001',
                MESSAGE = format('pool %s of this database has %s numbers of layout %L, but this process has %s numbers of layout %L', pool, usual.size, usual.layout, size, layout),
                HINT = 'Give this process the layout of the database, or the pool another name.';
        ELSIF NOT FOUND AND NOT may_create AND NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = '{{$s}}.node_pool'::regclass), 'MEMBER') THEN
            RAISE EXCEPTION USING ERRCODE = 'undefined_object',
                MESSAGE = format('pool %s doesn''t exist', pool),
                HINT = format('As the owner of schema {{$s}}, run SELECT {{$s}}.create_node_pool(%L, %s, %L).', pool, size, layout);
        END IF;
        -- If several first claims run at once, one creates the pool and the others wait for it.
        INSERT INTO {{$s}}.node_pool (name, size, layout, timeline, of_original)
            VALUES (pool, size, layout, {{$i}}.node_place(), CASE WHEN (SELECT h.copy FROM {{$s}}.node_home h) THEN int4multirange(int4range(0, size)) END)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            -- Numbers reserved in other pools of this layout, or in the pool with the default name, are reserved here, too:
            -- defaults generate IDs with them.
            INSERT INTO {{$s}}.node_lease AS l (pool, number, reserved, of_copy)
                SELECT pool, r.number, (array_agg(r.reserved ORDER BY r.of_copy, r.reserved))[1], bool_and(r.of_copy)
                FROM {{$s}}.node_lease r LEFT JOIN {{$s}}.node_pool p ON p.name = r.pool
                WHERE r.reserved IS NOT NULL AND r.pool <> pool AND r.number < size
                    AND (p.layout = layout
                        OR r.pool = CASE
                            WHEN layout ~ '^snowflake: ' THEN 'snowflake'
                            WHEN layout ~ '^snowflake_si: ' THEN 'snowflake-si'
                            WHEN layout ~ '^spread64: cluster [0-9]+$' THEN replace(layout, ': cluster ', '-')
                            WHEN layout = 'sno: partitions' THEN 'sno' END)
                GROUP BY r.number
                ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET reserved = EXCLUDED.reserved, of_copy = EXCLUDED.of_copy WHERE l.reserved IS NULL;
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
END
$$;

-- Creates a pool for programs that use another name, size or layout than the default ones. It does nothing if the pool
-- exists with this size and layout.
CREATE FUNCTION {{$s}}.create_node_pool(pool text, size integer, layout text) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (pool ~ '^[a-z][a-z0-9_-]{0,62}$' AND size BETWEEN 1 AND 65536 AND octet_length(layout) <= 1000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of create_node_pool: pool %s, size %s (1 to 65536), layout %s (up to 1000 bytes)',
                quote_nullable(left(pool, 100)), coalesce(size::text, 'NULL'), quote_nullable(left(layout, 100))),
            DETAIL = 'A pool name has up to 63 lower-case letters, digits, hyphens and underscores, and begins with a letter.';
    END IF;
    PERFORM {{$i}}.open_pool(pool, size, layout, true);
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.create_node_pool(text, integer, text) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.create_node_pool IS 'Creates a pool of node numbers with another name, size or layout than the default ones, which the first claim creates.';

-- Claims a number of a pool. The first claim creates a pool with a default name; see open_pool.
--
--     size, layout      the size and layout of the pool; they must be those it was created with (else SK001)
--     reserved          numbers that this call must not claim; reserve_node reserves a number for all calls
--     holder            unique to the claim; until the first renewal, a repeated call with the same holder returns the same
--                       number and term
--     ttl_ms            the time until the claim expires
--     now_ms, until_ms  the holder's clock, and the time up to which it intends to generate IDs
--     max_skew_ms       the largest difference between the holder's clock and this server's; NULL means no limit
--
-- If the clocks differ by more, or until_ms is more than a TTL and a day ahead of this server's clock, nothing changes,
-- and skewed is true. A clock that is years ahead would leave a mark that is years ahead.
--
-- It claims the free number with the lowest mark before now_ms, which is 0 for a number that was never used. If no number
-- is free, it claims the number with the lowest mark before now_ms whose claim has expired. It skips locked numbers, so a
-- hanging transaction blocks one number and not the pool, unless it is creating the pool or the fence. If no number is
-- available, number is NULL, and the result has
--
--     held_count        the number of held numbers
--     reserved_count    the number of reserved numbers
--     ahead_count       the number of free numbers with a mark at or after now_ms
--     lowest_mark       the lowest of these marks
--     frees_ms          the time until the first held number is free, unless renewed
--     reservations      the first three reservations made with reserve_node, and the count of the others
CREATE FUNCTION {{$s}}.claim_node(
    pool text, size integer, layout text, reserved int4multirange, holder text, ttl_ms bigint, now_ms bigint, until_ms bigint,
    max_skew_ms bigint DEFAULT NULL,
    OUT number integer, OUT term bigint, OUT after bigint, OUT until bigint, OUT time_ms bigint,
    OUT held_count integer, OUT reserved_count integer, OUT ahead_count integer, OUT frees_ms bigint, OUT lowest_mark bigint,
    OUT reservations text, OUT skewed boolean
)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET enable_sort = off -- use the indexes and their order, even with old statistics
    SET jit = off -- up to Postgres 17, a plan that can't do without them costs enough to be compiled, for half a second
AS $$
#variable_conflict use_variable
DECLARE
    ttl CONSTANT interval := ttl_ms * interval '1 millisecond';
    lowest bigint; -- the fence, a lower limit of all marks
    filled integer;
    unused int4multirange; -- the numbers from filled on that have no row
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
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
    skewed := until_ms > time_ms + ttl_ms + {{$i}}.max_skew() OR coalesce(abs(now_ms::numeric - time_ms) > max_skew_ms, false);
    IF skewed THEN
        RETURN;
    END IF;
    PERFORM {{$i}}.commit_durably();
    reserved := coalesce(reserved, '{}');

    {{template "wait for confirm_copy" .}}
    PERFORM {{$i}}.open_pool(pool, size, layout, false);
    PERFORM {{$i}}.settle();
    reserved := reserved + {{$i}}.of_original(pool);
    lowest := {{$i}}.node_fence(pool, ttl);

    -- If the holder already has a number, this is a repeated call: the holder didn't receive the first result and has
    -- generated no IDs. Grant the number again, as of now. Concurrent calls of one holder can each have claimed a number;
    -- release all but one.
    SELECT l.number INTO number FROM {{$s}}.node_lease l
        WHERE l.pool = pool AND l.holder = holder AND l.nonce = ''
        ORDER BY l.reserved IS NULL DESC, l.expires_at DESC, l.number LIMIT 1 FOR UPDATE;
    IF FOUND THEN
        UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL
            WHERE l.pool = pool AND l.holder = holder AND l.nonce = '' AND l.number <> number;
        UPDATE {{$s}}.node_lease l
            SET after = greatest(l.after, lowest), mark = greatest(l.mark, until_ms),
                claimed_at = clock_timestamp(), expires_at = clock_timestamp() + ttl, ttl = ttl
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
    WITH late AS MATERIALIZED (
        SELECT o.number FROM {{$s}}.node_lease o
        WHERE o.pool = pool AND o.holder >= '' AND o.expires_at > clock_timestamp() + o.ttl
        FOR UPDATE SKIP LOCKED
    )
    UPDATE {{$s}}.node_lease l SET expires_at = clock_timestamp() + l.ttl FROM late WHERE l.pool = pool AND l.number = late.number;

    -- Insert the row of the lowest number that has none. filled is stored only now and then, and not if the row of the pool
    -- is locked, so that claims don't wait for each other.
    IF greatest(lowest, 0) < now_ms THEN
        SELECT p.filled INTO filled FROM {{$s}}.node_pool p WHERE p.name = pool;
        unused := int4multirange(int4range(filled, size)) - coalesce((
            SELECT range_agg(int4range(l.number, l.number + 1)) FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number >= filled), '{}');
        filled := coalesce(lower(unused), size);
        UPDATE {{$s}}.node_pool p SET filled = filled
            FROM (
                SELECT o.name FROM {{$s}}.node_pool o
                WHERE o.name = pool AND o.filled < filled AND least(o.filled + 64, size) <= filled FOR UPDATE SKIP LOCKED
            ) o
            WHERE p.name = o.name;
        FOR number IN SELECT generate_series(lower(r), upper(r) - 1) FROM unnest(unused - reserved) r LOOP
            IF pg_try_advisory_xact_lock({{$i}}.node_lock(pool, number)) THEN
                INSERT INTO {{$s}}.node_lease (pool, number) VALUES (pool, number) ON CONFLICT DO NOTHING;
                EXIT WHEN FOUND;
            END IF;
        END LOOP;
    END IF;

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
        UPDATE {{$s}}.node_lease l SET term = l.term + 1, holder = holder, nonce = '', after = greatest(l.mark, lowest), mark = until_ms,
                claimed_at = clock_timestamp(), expires_at = clock_timestamp() + ttl, ttl = ttl
            WHERE l.pool = pool AND l.number = number
            RETURNING l.term, l.after, l.mark INTO term, after, until;
    ELSE
        -- A number that is free but locked is being claimed, and counts as held.
        SELECT count(*) FILTER (WHERE NOT a.kept AND NOT a.ahead), count(*) FILTER (WHERE a.kept), count(*) FILTER (WHERE NOT a.kept AND a.ahead),
                ceil(extract(epoch FROM min(l.expires_at) FILTER (WHERE NOT a.kept AND l.holder IS NOT NULL AND l.expires_at > now_at) - now_at) * 1000),
                min(greatest(l.mark, lowest, 0)) FILTER (WHERE NOT a.kept AND a.ahead)
            INTO held_count, reserved_count, ahead_count, frees_ms, lowest_mark
            FROM generate_series(0, size - 1) n LEFT JOIN {{$s}}.node_lease l ON l.pool = pool AND l.number = n
                CROSS JOIN LATERAL (
                    SELECT l.reserved IS NOT NULL OR n <@ reserved,
                        (l.holder IS NULL OR l.expires_at <= now_at) AND greatest(l.mark, lowest, 0) >= now_ms
                ) a (kept, ahead);
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
REVOKE EXECUTE ON FUNCTION {{$s}}.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.claim_node IS 'Claims a node number of a pool for a program, for package pglease.';

-- Renews a claim and raises its mark to until_ms, if that is later. An expired claim can be renewed if no other program
-- has claimed the number and it isn't reserved. If another program has claimed it, or the claim was released, nothing
-- changes, and the result has the current term and the readable part of the holder. now_ms, max_skew_ms and skewed are as
-- in claim_node.
--
-- nonce is a random value, which this function stores. nonces must contain the stored one. It has the nonces of the holder's
-- last renewals, and '' before the first one. So if a process is copied while it runs, only the first copy that renews the
-- claim keeps it. A standby that was promoted may have an earlier nonce than the last one.
CREATE FUNCTION {{$s}}.renew_node(
    pool text, number integer, term bigint, holder text, ttl_ms bigint, until_ms bigint,
    now_ms bigint DEFAULT NULL, max_skew_ms bigint DEFAULT NULL, nonce text DEFAULT '', nonces text[] DEFAULT '{""}',
    OUT renewed boolean, OUT after bigint, OUT until bigint, OUT time_ms bigint, OUT present_term bigint, OUT present_holder text,
    OUT skewed boolean
)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    ttl CONSTANT interval := ttl_ms * interval '1 millisecond';
BEGIN
    IF (ttl_ms BETWEEN 1 AND 3600000 AND until_ms < {{.EndOfTimeMS}} AND octet_length(nonce) <= 100 AND cardinality(nonces) <= 100) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of renew_node: ttl_ms %s (1 to 3600000), until_ms %s (not after the year 9999), nonce of %s bytes (0 to 100), %s nonces (0 to 100)',
                coalesce(ttl_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL'), coalesce(octet_length(nonce)::text, 'NULL'), coalesce(cardinality(nonces)::text, 'NULL'));
    END IF;
    renewed := false;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
    skewed := until_ms > time_ms + ttl_ms + {{$i}}.max_skew() OR coalesce(abs(now_ms::numeric - time_ms) > max_skew_ms, false);
    IF skewed THEN
        RETURN;
    END IF;
    PERFORM {{$i}}.commit_durably();
    UPDATE {{$s}}.node_lease l SET mark = greatest(l.mark, until_ms), expires_at = clock_timestamp() + ttl, ttl = ttl, nonce = nonce
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder AND l.nonce = ANY (nonces)
            AND (l.reserved IS NULL OR l.expires_at > clock_timestamp())
        RETURNING l.after, l.mark INTO after, until;
    renewed := FOUND;
    IF NOT renewed THEN
        SELECT l.term, regexp_replace(l.holder, ' [^ ]+$', '') INTO present_term, present_holder
            FROM {{$s}}.node_lease l WHERE l.pool = pool AND l.number = number;
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.renew_node IS 'Renews a claim, for package pglease.';

-- Releases a claim whose holder has generated IDs up to mark_ms and generates no more. It returns false if the number
-- is in another term, was released before, or has a nonce that isn't in nonces; see renew_node. The mark doesn't fall below its value before the claim, and doesn't rise.
CREATE FUNCTION {{$s}}.release_node(
    pool text, number integer, term bigint, holder text, mark_ms bigint, nonces text[] DEFAULT '{""}'
) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF (mark_ms < {{.EndOfTimeMS}} AND cardinality(nonces) <= 100) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of release_node: mark_ms %s (not after the year 9999), %s nonces (0 to 100)',
                coalesce(mark_ms::text, 'NULL'), coalesce(cardinality(nonces)::text, 'NULL'));
    END IF;
    PERFORM {{$i}}.commit_durably();
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL, mark = greatest(least(mark_ms, l.mark), l.after)
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder AND l.nonce = ANY (nonces);
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.release_node(text, integer, bigint, text, bigint, text[]) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.release_node IS 'Releases a claim, for package pglease.';

-- Reserves a number permanently, for example for the default of a column. Programs cannot claim a reserved number. The
-- pool need not exist yet. note describes the use of the number: reserve_node fails if the number is reserved with another
-- note, and repeated calls with one note do nothing. The number can be used once reserve_node has returned. So reserve_node
-- fails if the number is held. It waits until this server's clock is a second past the number's mark, or fails if that
-- takes more than two seconds.
--
-- Pool spread64 stands for the pools of the 16 clusters, spread64-0 to spread64-15: number is generator << 4 | cluster,
-- as in next_spread64.
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
    wait_ms bigint;
    clock text;
BEGIN
    SELECT p.* INTO known FROM {{$s}}.node_pool p WHERE p.name = pool;
    -- The first claim creates the pool, with the size of its format. The pools of programs can have other names and any size.
    size := coalesce(known.size, CASE WHEN pool = 'spread64' THEN {{.Spread64.MaxNode}} + 1 END, (SELECT d.size FROM {{$i}}.default_pool(pool) d), 65536);
    IF (pool ~ '^[a-z][a-z0-9_-]{0,62}$' AND number BETWEEN 0 AND size - 1 AND note IS NOT NULL AND while_held IS NOT NULL) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of reserve_node: pool %s, number %s (0 to %s), note %s, while_held %s',
                quote_nullable(pool), coalesce(number::text, 'NULL'), size - 1, quote_nullable(note), coalesce(while_held::text, 'NULL')),
            HINT = 'A pool name has up to 63 lower-case letters, digits, hyphens and underscores, and begins with a letter. No argument can be NULL.';
    END IF;
    IF pool = 'spread64' THEN
        pool := 'spread64-' || (number & 15);
        number := number >> 4;
    END IF;
    {{template "wait for confirm_copy" .}}
    IF number <@ {{$i}}.of_original(pool) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: this database is a copy, and its original uses the number', number, pool),
            HINT = CASE WHEN known.of_original IS NULL THEN 'At the original, run SELECT {{$s}}.reserve_for_copy with the note of this copy again, and pass the result to {{$s}}.confirm_copy here.'
                ELSE format('Choose one of %s.', int4multirange(int4range(0, size)) - known.of_original) END;
    END IF;
    PERFORM {{$i}}.commit_durably();
    PERFORM {{$i}}.settle();
    PERFORM pg_advisory_xact_lock({{$i}}.node_lock(pool, number));
    INSERT INTO {{$s}}.node_lease AS l (pool, number, reserved) VALUES (pool, number, note)
        ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET reserved = coalesce(l.reserved, note)
        RETURNING l.* INTO lease;
    IF lease.reserved <> note OR lease.of_copy THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s for %L: it is reserved for %L', number, pool, note, lease.reserved),
            HINT = 'Choose another number. If nothing uses the number any more, cancel its reservation with unreserve_node first.';
    END IF;
    IF while_held THEN
        RETURN;
    END IF;
    now_at := clock_timestamp();
    IF lease.holder IS NOT NULL AND lease.expires_at > now_at THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: it is held by %s until %s, unless renewed',
                number, pool, regexp_replace(lease.holder, ' [^ ]+$', ''), lease.expires_at),
            HINT = 'Call reserve_node with while_held => true, stop the holder, and call it again; or choose another number.';
    END IF;
    lease.mark := greatest(lease.mark, {{$i}}.node_fence(pool, interval '0'));
    -- Wait for the whole time unit of the mark, which is several milliseconds in some formats. After unreserve_node, as in a
    -- test of a migration and its way back, that is a second.
    wait_ms := lease.mark + 1001 - floor(extract(epoch FROM now_at) * 1000);
    IF wait_ms > 2000 THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: it may be in use for another %s ms', number, pool, wait_ms),
            DETAIL = format('The number has a high-water mark of %s, and the clock is at %s, in Unix milliseconds. It has to be a second later.',
                lease.mark, floor(extract(epoch FROM now_at) * 1000)),
            HINT = 'Call reserve_node again after this time, or choose another number.';
    END IF;
    PERFORM pg_sleep(wait_ms / 1000.0) WHERE wait_ms > 0;
    -- The first default could run after the server's clock was set back. So the clock of its format continues after the mark from
    -- now on: in a window that begins after it, since windows are shorter than the second that has passed.
    clock := split_part(coalesce(known.layout, (SELECT d.layout FROM {{$i}}.default_pool(pool) d)), ':', 1);
    IF lease.mark > 0 AND to_regclass(format('{{$i}}.%I', clock || '_clock')) IS NOT NULL THEN
        EXECUTE format('SELECT CASE WHEN {{$i}}.%I() <= $1 THEN {{$i}}.%I(0) END', clock || '_last_ms', clock || '_later') USING lease.mark + 1000;
    END IF;
    -- Remove an expired claim, which the holder could renew.
    UPDATE {{$s}}.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.reserve_node(text, integer, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.reserve_node IS 'Reserves a node number permanently, for example for the defaults of this database, so that no program can claim it.';

-- Cancels the reservation of a number that is no longer in use. used_until is the time of the last ID generated with
-- it. NULL means now, or the time of the last ID of a default, if the server's clock was ahead then.
CREATE FUNCTION {{$s}}.unreserve_node(pool text, number integer, used_until timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    used_ms bigint;
    last_ms bigint;
    function regproc;
BEGIN
    IF isfinite(used_until) IS FALSE OR used_until >= timestamptz '10000-01-01 00:00:00+00' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('used_until %s is out of range; want a finite time that is not after the year 9999', used_until);
    END IF;
    IF pool = 'spread64' THEN
        pool := 'spread64-' || (number & 15);
        number := number >> 4;
    END IF;
    -- IDs are up to {{.AheadMS}} ms ahead of the server's clock.
    used_ms := ceil(extract(epoch FROM coalesce(used_until, clock_timestamp())) * 1000) + {{.AheadMS}};
    IF used_until IS NULL THEN
        FOR function IN
            SELECT p.oid FROM pg_proc p WHERE p.pronamespace = '{{$i}}'::regnamespace AND right(p.proname::text, 8) = '_last_ms' -- one per format with node numbers
        LOOP
            EXECUTE format('SELECT %s()', function) INTO last_ms;
            used_ms := greatest(used_ms, last_ms);
        END LOOP;
    END IF;
    PERFORM {{$i}}.commit_durably();
    -- Remove the holder, so that it cannot release the number with an old mark.
    UPDATE {{$s}}.node_lease l SET reserved = NULL, of_copy = false, holder = NULL, expires_at = NULL, mark = greatest(l.mark, used_ms)
        WHERE l.pool = pool AND l.number = number AND l.reserved IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('number %s of pool %s is not reserved', coalesce(number::text, 'NULL'), quote_nullable(pool)),
                HINT = 'The view {{$s}}.node_status lists the reserved numbers.';
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.unreserve_node(text, integer, timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.unreserve_node IS 'Cancels the reservation of a node number that generates no more IDs. used_until is the time of its last ID; NULL means now, or the last ID of a default, if that is later.';

-- Shows node numbers to people. It omits the unique part of a holder, since a program that knows it can release the
-- claim.
--
-- statement_timestamp() lets a query compute only the columns that it needs. With clock_timestamp(), which is volatile, it
-- would compute them for all rows. The division of doubles is exact to the millisecond, and faster than one of numerics.
-- The numbers that were never used have no rows. The planner drops them from a query of states other than free.
CREATE VIEW {{$s}}.node_status AS
    SELECT l.pool, l.number,
        CASE WHEN l.holder IS NOT NULL AND l.expires_at > statement_timestamp() THEN 'held'
            WHEN l.reserved IS NOT NULL OR l.number <@ p.of_original THEN 'reserved' ELSE 'free' END AS state,
        regexp_replace(l.holder, ' [^ ]+$', '') AS holder, l.claimed_at, l.expires_at, l.ttl, l.term,
        CASE WHEN l.mark < {{.EndOfTimeMS}} THEN to_timestamp(nullif(l.mark, 0)::float8 / 1000) ELSE 'infinity' END AS mark,
        CASE WHEN l.number <@ p.of_original THEN 'the original of this copy' ELSE l.reserved END AS reserved
    FROM {{$s}}.node_lease l LEFT JOIN {{$s}}.node_pool p ON p.name = l.pool
    UNION ALL
    SELECT p.name, n, CASE WHEN n <@ p.of_original THEN 'reserved' ELSE 'free' END, NULL, NULL, NULL, NULL, 0, NULL,
        CASE WHEN n <@ p.of_original THEN 'the original of this copy' END
    FROM {{$s}}.node_pool p CROSS JOIN LATERAL generate_series(0, p.size - 1) n
    WHERE NOT EXISTS (SELECT FROM {{$s}}.node_lease l WHERE l.pool = p.name AND l.number = n);
COMMENT ON VIEW {{$s}}.node_status IS 'Node numbers, their holders, and the time up to which each may have been used (mark; NULL if it was never used).';

{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.relnamespace = '{{$s}}'::regnamespace AND c.relname IN ('node_pool', 'node_lease', 'node_status')
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{$s}}'::regnamespace
                AND p.proname IN ('create_node_pool', 'claim_node', 'renew_node', 'release_node', 'reserve_node', 'unreserve_node')
{{- template "protected"}}
-- Returns the pools of a node number, and its number there: all pools with the layout of the format, or, if there is
-- none, the pool with the default name of package nodelease. Programs can give a pool another name.
CREATE FUNCTION {{$i}}.node_pools(format text, node integer) RETURNS TABLE (pool text, number integer)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH w AS (
        SELECT v.pool, d.layout, v.number
        FROM (VALUES
            ('snowflake', 'snowflake', node),
            ('snowflake_si', 'snowflake-si', node),
            ('spread64', 'spread64-' || (node & 15), node >> 4),
            ('sno', 'sno', node)
        ) v (format, pool, number)
            LEFT JOIN LATERAL {{$i}}.default_pool(v.pool) d ON true
        WHERE v.format = node_pools.format AND v.number >= 0
    ), p AS (
        SELECT p.name, w.number FROM w JOIN {{$s}}.node_pool p ON p.layout = w.layout AND p.size > w.number
    )
    SELECT p.* FROM p UNION ALL SELECT w.pool, w.number FROM w WHERE NOT EXISTS (SELECT FROM p)
$$;

-- Checks the setting {{$s}}.node for a format. Returns the bits of the number in an ID, and stores them in a setting of the
-- session for ..._node_bits(). STABLE, so that its callers can be inlined and COPY inserts many rows at once.
--
-- The workers of a Citus cluster have the functions, but not the tables. Citus copies the settings of the coordinator's
-- database to all workers, again when it adds or activates one. So each worker ignores {{$s}}.node and reads a setting
-- that ends with its group, such as {{$s}}.node_1. A session keeps the number until it ends.
CREATE FUNCTION {{$i}}.use_node(format text, largest integer) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text := '{{$s}}.node';
    place text := '';
    worker integer;
    setting text;
    remedy text;
    bits bigint;
    missing record;
    other text;
BEGIN
    IF to_regclass('{{$s}}.node_lease') IS NULL THEN
        EXECUTE 'SELECT groupid FROM pg_dist_local_group' INTO worker;
        name := name || '_' || worker;
        place := format(' on worker %s of the Citus cluster', worker);
    END IF;
    setting := nullif(current_setting(name, true), '');
    remedy := format('ALTER DATABASE %I SET %s = N', current_database(), name);
    IF setting IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('%s is not set, so next_%s has no node number%s', name, format, place),
            HINT = format('Choose a number N from 0 to %s that no other server, database or program uses. Run SELECT {{$s}}.reserve_node(%L, N, %L) and %s%s, and reconnect.%s',
                largest, replace(format, '_', '-'), 'defaults of ' || current_database() || place, remedy,
                CASE WHEN worker IS NOT NULL THEN ' at the coordinator' ELSE '' END,
                CASE WHEN worker IS NULL THEN format(' If no superuser can run this, pass N to next_%s instead.', format) ELSE '' END);
    END IF;
    IF setting !~ '^(0|[1-9][0-9]{0,8})$' OR setting::bigint > largest THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%s is %L, which is not a node number of %s (0 to %s)', name, setting, format, largest),
            HINT = format('Run %s with a reserved number, and reconnect.', remedy);
    END IF;
    IF worker IS NULL THEN
        -- reserve_node with while_held reserves a number that a program still uses.
        SELECT p.pool, p.number, l.reserved INTO missing FROM {{$i}}.node_pools(format, setting::integer) p
            LEFT JOIN {{$s}}.node_lease l ON l.pool = p.pool AND l.number = p.number
            WHERE l.reserved IS NULL OR l.holder IS NOT NULL ORDER BY p.pool LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('{{$s}}.node is %s, but number %s of pool %s is %s', setting, missing.number, missing.pool,
                    CASE WHEN missing.reserved IS NOT NULL THEN 'still held' ELSE 'not reserved' END),
                HINT = format('Run SELECT {{$s}}.reserve_node(%L, %s, %L), or run %s with a reserved number and reconnect.',
                    missing.pool, missing.number, coalesce(missing.reserved, 'defaults of ' || current_database()), remedy);
        END IF;
    ELSE
        -- The reservations are on the coordinator, but the numbers of the other servers are known here.
        EXECUTE 'SELECT n.name FROM (SELECT ''{{$s}}.node'' UNION SELECT ''{{$s}}.node_'' || groupid FROM pg_dist_node) n (name)
            WHERE n.name <> $1 AND current_setting(n.name, true) = $2 ORDER BY 1 LIMIT 1' INTO other USING name, setting;
        IF other IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('%s and %s are both %s', name, other, setting),
                HINT = format('Each server of the Citus cluster needs its own number. Run %s with a reserved number, and reconnect.', remedy);
        END IF;
    END IF;
    EXECUTE format('SELECT {{$i}}.%I($1)', format || '_node_bits') INTO bits USING setting::integer;
    PERFORM set_config(format('{{$s}}.%s_node', format), bits::text, false);
    RETURN bits;
END
$$;

-- Prepares a worker of a Citus cluster to generate IDs. On each worker Citus limits sequences to 48 bits, so that the
-- values of different workers differ. The clocks need 63 bits, and node numbers make the IDs of workers differ.
--
-- Citus sets the limits again when it activates the worker, and the clocks lose their state. So the function waits until
-- their last windows are over.
CREATE FUNCTION {{$s}}.prepare_citus_worker() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    clock regclass;
BEGIN
    IF to_regclass('{{$s}}.node_lease') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'this server is not a worker of a Citus cluster',
            HINT = 'Run SELECT * FROM run_command_on_workers(''SELECT {{$s}}.prepare_citus_worker()'') at the coordinator.';
    END IF;
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    FOR clock IN
        SELECT s.seqrelid FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
        WHERE c.relnamespace = '{{$i}}'::regnamespace AND s.seqmax < 9223372036854775807
    LOOP
        EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 MAXVALUE 9223372036854775807', clock);
    END LOOP;
    PERFORM pg_sleep(({{.AheadMS}} + {{.WindowMS}}) / 1000.0); -- no session can generate an ID before the commit
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.prepare_citus_worker() FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.prepare_citus_worker IS 'Prepares a worker of a Citus cluster to generate IDs. Call it on all workers with run_command_on_workers, and again after a worker is added or activated.';

-- Lists the defaults that generate IDs with a node number, to find numbers that aren't reserved. pg_depend has the
-- columns, domains and SQL functions (with RETURN or BEGIN ATOMIC) that depend on the next_ functions. The view reads
-- explicit numbers from the text of the default.
CREATE VIEW {{$s}}.node_defaults AS
    WITH uses AS (
        SELECT d.classid, d.objid, p.proname AS function, NOT 'node' = ANY (coalesce(p.proargnames, '{}')) AS from_setting,
            CASE WHEN pg_function_is_visible(p.oid) THEN '' ELSE E'{{$s}}\\.' END AS prefix
        FROM pg_proc p JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
        WHERE p.pronamespace = '{{$s}}'::regnamespace AND p.proname IN ('next_snowflake', 'next_snowflake_si', 'next_spread64', 'next_sno', 'next_sno_meta')
    ), lasting AS (
        -- Exclude temporary objects: any role can create them, and only one session uses them.
        SELECT n.oid, n.nspname FROM pg_namespace n WHERE n.nspname !~ '^pg_temp_'
    ), defaults AS (
        SELECT 'column' AS kind, format('%I.%I.%I', n.nspname, c.relname, t.attname) AS name,
            pg_get_expr(a.adbin, a.adrelid) AS expression, u.function, u.from_setting, u.prefix
        FROM uses u JOIN pg_attrdef a ON u.classid = 'pg_attrdef'::regclass AND a.oid = u.objid
            JOIN pg_attribute t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
            JOIN pg_class c ON c.oid = a.adrelid JOIN lasting n ON n.oid = c.relnamespace
        UNION
        SELECT 'domain', format('%I.%I', n.nspname, t.typname), pg_get_expr(t.typdefaultbin, 0), u.function, u.from_setting, u.prefix
        FROM uses u JOIN pg_type t ON u.classid = 'pg_type'::regclass AND t.oid = u.objid
            JOIN lasting n ON n.oid = t.typnamespace
        UNION
        SELECT 'function', format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
            pg_get_function_sqlbody(p.oid), u.function, u.from_setting, u.prefix
        FROM uses u JOIN pg_proc p ON u.classid = 'pg_proc'::regclass AND p.oid = u.objid AND p.prosqlbody IS NOT NULL
            JOIN lasting n ON n.oid = p.pronamespace AND n.oid <> '{{$s}}'::regnamespace
    ), nodes AS (
        SELECT d.kind, d.name, d.expression, d.function, d.from_setting,
            CASE WHEN v.setting ~ '^(0|[1-9][0-9]{0,8})$' THEN v.setting::integer END AS node
        FROM defaults d CROSS JOIN current_setting('{{$s}}.node', true) v (setting) WHERE d.from_setting
        UNION ALL
        -- Remove the quotes of simple names, and replace all other quoted text with "". Then a call is a name and its arguments.
        SELECT d.kind, d.name, d.expression, d.function, d.from_setting,
            substring(c[1] FROM '(?:^|node => )([0-9]{1,9})(?:,|$)')::integer
        FROM (SELECT * FROM defaults WHERE octet_length(expression) <= 2000) d CROSS JOIN LATERAL regexp_matches(
            regexp_replace(regexp_replace(d.expression, '"([a-z_][a-z0-9_]*)"', E'\\1', 'g'), '"([^"]|"")*"|''([^'']|'''')*''', '""', 'g'),
            '(?<![a-z0-9_.])' || d.prefix || d.function || E'\\((?:((?:[^()]|\\([^()]*\\))*)\\))?', 'g') c
        WHERE NOT d.from_setting AND c[1] <> '' IS NOT FALSE
        UNION ALL
        -- Any role can write defaults with many calls, so the time per default has a limit.
        SELECT d.kind, d.name, d.expression, d.function, d.from_setting, NULL FROM defaults d WHERE NOT d.from_setting AND octet_length(d.expression) > 2000
    ), numbers AS (
        SELECT DISTINCT n.kind, n.name, n.expression, n.from_setting, n.node, replace(substr(n.function, 6), '_meta', '') AS format FROM nodes n
    ), pools AS MATERIALIZED (
        -- Once per number, for the same reason.
        SELECT n.format, n.node, p.pool, p.number
        FROM (SELECT DISTINCT n.format, n.node FROM numbers n) n CROSS JOIN LATERAL {{$i}}.node_pools(n.format, n.node) p
        WHERE n.node <= CASE n.format
            WHEN 'snowflake' THEN {{.Snowflake.MaxNode}}
            WHEN 'snowflake_si' THEN 8191
            WHEN 'spread64' THEN {{.Spread64.MaxNode}}
            ELSE {{.Sno.MaxNode}} END
    )
    SELECT n.kind, n.name, n.expression, n.format, n.from_setting, p.pool, p.number, CASE WHEN l.holder IS NULL THEN l.reserved END AS reserved
    FROM numbers n
        LEFT JOIN pools p ON p.format = n.format AND p.node = n.node
        LEFT JOIN {{$s}}.node_lease l ON l.pool = p.pool AND l.number = p.number;
COMMENT ON VIEW {{$s}}.node_defaults IS 'Defaults that generate IDs with a node number, which is an argument or the setting {{$s}}.node (from_setting). reserved is the note of the reservation, or NULL if the number is not reserved. number is NULL if the argument is not a literal, if the expression has more than 2,000 bytes, or if the setting is not a node number.';

-- The setting is one problem, whatever the formats of its defaults. Each unreserved number is another one.
CREATE VIEW {{$s}}.node_problems AS
    WITH d AS (
        SELECT n.kind || ' ' || n.name AS name, replace(n.format, '_', '-') AS format, n.from_setting, n.pool, n.number,
            coalesce(l.reserved, CASE WHEN n.from_setting THEN 'defaults of ' || current_database() ELSE n.kind || ' ' || n.name END) AS note
        FROM {{$s}}.node_defaults n LEFT JOIN {{$s}}.node_lease l ON l.pool = n.pool AND l.number = n.number -- reserved, but held
        WHERE n.reserved IS NULL AND (n.number IS NOT NULL OR n.from_setting)
    )
    SELECT d.number IS NULL AS no_node, d.pool, d.number, min(d.name) || CASE WHEN count(*) > 1 THEN format(' (and %s more)', count(*) - 1) ELSE '' END AS subject,
        CASE WHEN d.number IS NULL THEN
            'needs the setting {{$s}}.node, which is ' || CASE WHEN coalesce(current_setting('{{$s}}.node', true), '') = '' THEN 'missing'
                ELSE format('%L, no node number of %s', current_setting('{{$s}}.node'), string_agg(DISTINCT d.format, ' and ')) END
        ELSE
            format('uses unreserved number %s of pool %s%s', d.number, d.pool, CASE WHEN d.from_setting THEN ' from the setting {{$s}}.node' ELSE '' END)
        END AS problem,
        CASE WHEN d.number IS NULL THEN
            format('choose a number N that no program and no other database uses; run SELECT %s and ALTER DATABASE %I SET {{$s}}.node = N; and reconnect',
                string_agg(DISTINCT format('{{$s}}.reserve_node(%L, N, %L)', d.format, d.note), ', '), current_database())
        ELSE
            format('run SELECT {{$s}}.reserve_node(%L, %s, %L)', d.pool, d.number, min(d.note))
        END AS remedy
    FROM d GROUP BY d.from_setting, d.pool, d.number;
COMMENT ON VIEW {{$s}}.node_problems IS 'Defaults whose node number is missing or not reserved, and the remedies. Package migrations reports them in CheckDefaults.';
-- Says whether the database is another one than the one that uses the numbers, or has another timeline. It is empty until a
-- number is claimed or reserved, and where a service hides the identity and the timeline.
CREATE VIEW {{$s}}.database_problems AS
    SELECT CASE WHEN h.database <> n.database THEN
            'was copied, restored from a dump or upgraded: its node numbers belong to another database, which can create the same IDs'
        ELSE
            format('continues after a promotion or a recovery (timeline %s, before %s): if the old server still runs, both can create the same IDs', n.timeline, h.timeline)
        END AS problem,
        format('stop the inserts and the programs of the other one, and run SELECT {{$s}}.confirm_original() here; or, if both continue, run SELECT {{$s}}.reserve_for_copy(%L) there and SELECT {{$s}}.confirm_copy(...) here, with the result',
            current_database() || ' ' || n.database) AS remedy
    FROM {{$s}}.node_home h CROSS JOIN LATERAL (SELECT {{$i}}.database_identity(), {{$i}}.node_timeline()) n (database, timeline)
    WHERE h.database <> n.database OR h.timeline <> n.timeline;
COMMENT ON VIEW {{$s}}.database_problems IS 'Says that this database was copied, restored or promoted, until confirm_original or confirm_copy was called.';

-- Records that this database continues alone with its node numbers, because the other one is gone or creates no IDs.
CREATE FUNCTION {{$s}}.confirm_original() RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM {{$i}}.commit_durably();
    PERFORM {{$i}}.settle(false);
    UPDATE {{$s}}.node_pool p SET of_original = NULL WHERE p.of_original IS NOT NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.confirm_original() FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.confirm_original IS 'Records that this database, which was copied, restored or promoted, continues with its node numbers, and that no other database uses them.';

-- Reserves free numbers of each pool for a copy of this database, the highest ones, and returns them for confirm_copy. A
-- repeated call with the same note returns the same numbers, and adds numbers of new pools. It covers the pools that exist
-- or have reservations, and snowflake, snowflake-si and sno.
CREATE FUNCTION {{$s}}.reserve_for_copy(note text, numbers integer DEFAULT 32) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    pool record;
    number integer;
    got int4multirange;
    lowest bigint;
    common CONSTANT integer := (SELECT min(d.size) FROM unnest('{snowflake,snowflake-si,sno}'::text[]) n CROSS JOIN LATERAL {{$i}}.default_pool(n) d);
    result jsonb := '{}';
BEGIN
    IF (octet_length(note) BETWEEN 1 AND 1000 AND numbers BETWEEN 1 AND 65536) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of reserve_for_copy: note %s (1 to 1000 bytes), numbers %s (1 to 65536)', quote_nullable(left(note, 100)), coalesce(numbers::text, 'NULL'));
    ELSIF EXISTS (SELECT FROM {{$s}}.node_lease l WHERE l.reserved = note AND NOT l.of_copy) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve numbers for copy %L: this database uses a number with that note', note),
            HINT = 'Pass another note, which no reservation has.';
    END IF;
    PERFORM {{$i}}.commit_durably();
    PERFORM {{$i}}.settle();
    FOR pool IN
        SELECT v.name, coalesce(p.size, d.size) AS size, coalesce(p.layout, d.layout) AS layout
        FROM (
            SELECT p.name FROM {{$s}}.node_pool p
            UNION SELECT l.pool FROM {{$s}}.node_lease l
            UNION SELECT unnest('{snowflake,snowflake-si,sno}'::text[])
        ) v (name)
            LEFT JOIN {{$s}}.node_pool p ON p.name = v.name LEFT JOIN LATERAL {{$i}}.default_pool(v.name) d ON true
        WHERE coalesce(p.size, d.size) IS NOT NULL ORDER BY 1
    LOOP
        got := coalesce((SELECT range_agg(int4range(l.number, l.number + 1)) FROM {{$s}}.node_lease l WHERE l.pool = pool.name AND l.reserved = note AND l.of_copy), '{}');
        IF isempty(got) THEN
            lowest := {{$i}}.node_fence(pool.name, interval '0');
            -- The setting {{$s}}.node needs one number for all formats.
            FOR number IN SELECT n FROM generate_series(0, pool.size - 1) n, {{$i}}.of_original(pool.name) o WHERE NOT n <@ o ORDER BY n >= common, n DESC LOOP
                EXIT WHEN coalesce((SELECT sum(upper(r) - lower(r)) FROM unnest(got) r), 0) >= least(numbers, pool.size / 2);
                CONTINUE WHEN NOT pg_try_advisory_xact_lock({{$i}}.node_lock(pool.name, number)); -- a claim inserts the row
                INSERT INTO {{$s}}.node_lease AS l (pool, number, reserved, of_copy) VALUES (pool.name, number, note, true)
                    ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET reserved = note, of_copy = true, holder = NULL, expires_at = NULL
                        WHERE l.reserved IS NULL AND (l.holder IS NULL OR l.expires_at < clock_timestamp())
                            AND greatest(l.mark, lowest) + 1000 < extract(epoch FROM clock_timestamp()) * 1000;
                IF FOUND THEN
                    got := got + int4multirange(int4range(number, number + 1));
                END IF;
            END LOOP;
        END IF;
        result := result || jsonb_build_object(pool.name, jsonb_build_object('size', pool.size, 'layout', pool.layout, 'numbers', got));
    END LOOP;
    RETURN jsonb_build_object('place', {{$i}}.node_place(), 'time_ms', ceil(extract(epoch FROM clock_timestamp()) * 1000), 'pools', result);
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.reserve_for_copy(text, integer) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.reserve_for_copy IS 'Reserves node numbers for a copy of this database, up to the given count and half of each pool, and returns them for confirm_copy.';

-- Returns the highest node number that this copy owns in all pools of these formats and whose high-water mark has passed,
-- or NULL if there is none.
CREATE FUNCTION {{$i}}.node_of_copy(formats text[], note text) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH own AS (
        SELECT l.pool, l.number, CASE WHEN p.layout ~ '^spread64: cluster ' THEN l.number << 4 | substring(p.layout FROM '[0-9]+$')::integer ELSE l.number END AS node
        FROM {{$s}}.node_lease l JOIN {{$s}}.node_pool p ON p.name = l.pool AND NOT l.number <@ p.of_original
        WHERE (l.reserved IS NULL OR l.reserved = note) AND l.mark + 1000 < extract(epoch FROM clock_timestamp()) * 1000
    )
    SELECT max(o.node) FROM own o WHERE NOT EXISTS (
        SELECT FROM unnest(formats) f CROSS JOIN LATERAL {{$i}}.node_pools(f, o.node) p
        WHERE NOT EXISTS (SELECT FROM own x WHERE x.pool = p.pool AND x.number = p.number))
$$;

-- Makes this database use only the numbers that its original has reserved for it. Claims end, as if their holders had been
-- killed, and so do reservations, because the defaults of the original use their numbers. A repeated call ends only those
-- outside of the given numbers. Returns the statements that give the defaults a number of this database, for the owners of the
-- database and of the tables. A comment has no line breaks, because its names and expressions come from any role.
--
-- snapshot says that the database is a copy of the files that has the timeline of its original, which nothing else tells.
CREATE FUNCTION {{$s}}.confirm_copy(numbers jsonb, snapshot boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    note CONSTANT text := 'defaults of ' || current_database();
    again CONSTANT boolean := EXISTS (SELECT FROM {{$s}}.node_home h WHERE h.copy AND h.database = {{$i}}.database_identity());
    pool record;
    used record;
    d record;
    node integer;
    part text[];
    changed text;
BEGIN
    IF (numbers ->> 'place' <> '' AND numbers ->> 'time_ms' ~ '^[0-9]{1,14}$' AND jsonb_typeof(numbers -> 'pools') = 'object') IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of confirm_copy: %s; want the result of reserve_for_copy at the original', quote_nullable(left(numbers::text, 100)));
    ELSIF numbers ->> 'place' = {{$i}}.node_place() AND snapshot IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the numbers were reserved at this database, which would be a copy of itself',
            HINT = 'Call confirm_copy at the copy. If this is the copy, started from a snapshot of the disk of its original, pass snapshot => true.';
    END IF;
    PERFORM {{$i}}.commit_durably();
    PERFORM {{$i}}.settle(true);
    -- The marks of the claims stay, so nobody needs to wait for the fence.
    UPDATE {{$s}}.node_pool p SET of_original = int4multirange(int4range(0, p.size)), timeline = {{$i}}.node_place(),
        fenced_until = CASE WHEN again THEN p.fenced_until ELSE '-infinity' END;
    FOR pool IN
        SELECT j.key AS name, (j.value ->> 'size')::integer AS size, j.value ->> 'layout' AS layout, (j.value ->> 'numbers')::int4multirange AS numbers
        FROM jsonb_each(numbers -> 'pools') j
    LOOP
        IF (pool.size BETWEEN 1 AND 65536 AND pool.layout <> '' AND pool.numbers <@ int4multirange(int4range(0, pool.size))) IS NOT TRUE THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('invalid argument of confirm_copy: pool %s; want the result of reserve_for_copy at the original', pool);
        END IF;
        PERFORM {{$i}}.open_pool(pool.name, pool.size, pool.layout, true);
        UPDATE {{$s}}.node_pool p SET of_original = int4multirange(int4range(0, p.size)) - pool.numbers WHERE p.name = pool.name;
        INSERT INTO {{$s}}.node_lease AS l (pool, number, mark)
            SELECT pool.name, n, (numbers ->> 'time_ms')::bigint FROM unnest(pool.numbers) r, generate_series(lower(r), upper(r) - 1) n
            ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET mark = greatest(l.mark, EXCLUDED.mark);
    END LOOP;
    UPDATE {{$s}}.node_lease l SET reserved = NULL, of_copy = false, holder = NULL, expires_at = NULL WHERE NOT again OR l.number <@ {{$i}}.of_original(l.pool);

    -- Reservations begin a second after the marks.
    PERFORM pg_sleep(least(((numbers ->> 'time_ms')::bigint - extract(epoch FROM clock_timestamp()) * 1000 + 1001) / 1000, 10));
    -- A number for the setting, and one for the explicit numbers of each format.
    FOR used IN
        SELECT n.from_setting, array_agg(DISTINCT n.format) AS formats FROM {{$s}}.node_defaults n
        GROUP BY n.from_setting, CASE WHEN NOT n.from_setting THEN n.format END ORDER BY n.from_setting DESC
    LOOP
        node := {{$i}}.node_of_copy(used.formats, note);
        IF node IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('no number of this copy fits the defaults of %s', array_to_string(used.formats, ' and ')),
                HINT = 'Try again in a second. If the error stays, run {{$s}}.reserve_for_copy at the original with another note and more numbers.';
        END IF;
        PERFORM {{$s}}.reserve_node(p.pool, p.number, note) FROM unnest(used.formats) f CROSS JOIN LATERAL {{$i}}.node_pools(f, node) p;
        IF used.from_setting THEN
            RETURN NEXT format('ALTER DATABASE %I SET {{$s}}.node = %s', current_database(), node);
            CONTINUE;
        END IF;
        FOR d IN SELECT DISTINCT n.kind, n.name, n.expression FROM {{$s}}.node_defaults n WHERE NOT n.from_setting AND n.format = used.formats[1] ORDER BY 1, 2 LOOP
            part := CASE WHEN d.kind <> 'function' THEN parse_ident(d.name) END;
            changed := CASE WHEN d.kind <> 'function' AND d.expression ~ format('^{{$s}}[.]next_%s[(][0-9]+(, [0-9]+)?[)]$', used.formats[1])
                THEN format('{{$s}}.next_%s(%s%s)', used.formats[1], node, substring(d.expression FROM ', [0-9]+')) END;
            RETURN NEXT CASE WHEN changed IS NULL THEN translate(format('-- give %s %s the number %s: %s', d.kind, d.name, node, d.expression), chr(10) || chr(13), '  ')
                WHEN d.kind = 'domain' THEN format('ALTER DOMAIN %I.%I SET DEFAULT %s', part[1], part[2], changed)
                ELSE format('ALTER TABLE %I.%I ALTER COLUMN %I SET DEFAULT %s', part[1], part[2], part[3], changed) END;
        END LOOP;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.confirm_copy(jsonb, boolean) FROM PUBLIC;
COMMENT ON FUNCTION {{$s}}.confirm_copy IS 'Makes this database a copy that uses only the node numbers that reserve_for_copy returned at its original. Returns the statements that change the defaults.';
{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('{{$s}}.node_defaults'::regclass, '{{$s}}.node_problems'::regclass, '{{$s}}.node_home'::regclass, '{{$s}}.database_problems'::regclass)
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{$s}}'::regnamespace AND p.proname IN ('prepare_citus_worker', 'confirm_original', 'reserve_for_copy', 'confirm_copy')
{{- template "protected"}}
GRANT SELECT ON {{$s}}.node_defaults, {{$s}}.node_problems, {{$s}}.database_problems TO PUBLIC; -- Check reads them
{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
