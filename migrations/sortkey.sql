-- The installation of sortkey. Run it once: psql -v ON_ERROR_STOP=1 -f sortkey.sql
--
-- It is one transaction, so it is installed completely or not at all.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp; -- unqualified names are the server's

DO $$
BEGIN
    IF to_regclass('sortkey.revision') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = 'sortkey is already installed in schema sortkey',
            HINT = 'SELECT * FROM sortkey.revision lists the installed migrations.';
    END IF;
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 1. schema
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- The base of the other migrations: the schemas, two tables that record the installation, and the clock of the server's
-- generators. sortkey has what users call, and sortkey_internal what these functions call.

DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('server version %s is not supported; want Postgres 15 or later', current_setting('server_version'));
    END IF;
END
$$;

-- Create the schemas, unless they exist: for a role that must not create schemas, or with a tool's version table.
DO $$
DECLARE
    name text;
    grantee text;
BEGIN
    FOREACH name IN ARRAY '{sortkey,sortkey_internal}'::text[] LOOP
        IF to_regnamespace(name) IS NULL THEN
            EXECUTE format('CREATE SCHEMA %I', name);
            EXECUTE format('COMMENT ON SCHEMA %I IS %L', name, 'Created by the sortkey migrations.');
            -- by ALTER DEFAULT PRIVILEGES
            FOR grantee IN
                SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
                WHERE n.oid = to_regnamespace(name) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
            LOOP
                EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM %s', name, grantee);
            END LOOP;
        END IF;
    END LOOP;
END
$$;

-- A role that owns one of the schemas, an object in it, or the privilege to create one could replace the functions that
-- others call. So the schemas must belong to roles that this session trusts.
DO $$
DECLARE
    untrusted text;
    problem text;
BEGIN
    FOR untrusted, problem IN
WITH trusted AS MATERIALIZED (SELECT o.oid FROM pg_catalog.pg_roles o, pg_catalog.pg_database d, pg_catalog.pg_roles b
    WHERE d.datname = pg_catalog.current_database() AND b.oid = d.datdba AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_roles s WHERE s.rolname IN (session_user, current_user)
            AND NOT CASE WHEN s.rolsuper THEN o.rolsuper OR o.rolname = 'pg_database_owner' AND b.rolsuper
                ELSE o.rolsuper OR o.oid = b.oid OR o.rolname = 'pg_database_owner' OR pg_catalog.pg_has_role(s.oid, o.oid, 'MEMBER') END)),
spaces AS (SELECT n.oid, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n WHERE n.nspname = ANY ('{sortkey,sortkey_internal}'::pg_catalog.name[])),
tables AS (SELECT c.* FROM pg_catalog.pg_class c WHERE c.relnamespace IN (SELECT oid FROM spaces) AND c.relkind NOT IN ('i', 'I', 't')),
owned (class, oid, owner) AS (
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, nspowner FROM spaces
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, oid, relowner FROM tables
    UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, p.proowner FROM pg_catalog.pg_proc p WHERE p.pronamespace IN (SELECT oid FROM spaces)
    UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, t.typowner FROM pg_catalog.pg_type t WHERE t.typnamespace IN (SELECT oid FROM spaces) AND t.typrelid = 0 AND t.typelem = 0
    UNION ALL SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, o.oprowner FROM pg_catalog.pg_operator o WHERE o.oprnamespace IN (SELECT oid FROM spaces)
    UNION ALL SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, o.opcowner FROM pg_catalog.pg_opclass o WHERE o.opcnamespace IN (SELECT oid FROM spaces)
), writers (class, oid, grantee, privilege) AS (
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, s.oid, a.grantee, a.privilege_type FROM spaces s, pg_catalog.aclexplode(s.nspacl) a WHERE a.privilege_type = 'CREATE' AND a.grantee <> s.nspowner
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.oid, a.grantee, a.privilege_type FROM tables t, pg_catalog.aclexplode(t.relacl) a
        WHERE a.grantee <> t.relowner AND (t.relname <> ALL ('{partition_settings,partition_log}'::pg_catalog.name[]) OR a.privilege_type = 'TRIGGER') AND (t.relkind IN ('r', 'p', 'f') AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER') OR t.relkind = 'S' AND a.privilege_type = 'UPDATE')
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.oid, a.grantee, a.privilege_type FROM tables t JOIN pg_catalog.pg_attribute c ON c.attrelid = t.oid, pg_catalog.aclexplode(c.attacl) a
        WHERE t.relname <> ALL ('{partition_settings,partition_log}'::pg_catalog.name[]) AND t.relkind IN ('r', 'p', 'f') AND a.privilege_type IN ('INSERT', 'UPDATE')
)
SELECT * FROM (
    SELECT pg_catalog.pg_describe_object(o.class, o.oid, 0), pg_catalog.format('belongs to role %I', pg_catalog.pg_get_userbyid(o.owner)) FROM owned o
        WHERE o.owner NOT IN (SELECT oid FROM trusted) AND (o.class = 'pg_catalog.pg_namespace'::pg_catalog.regclass OR o.owner NOT IN (SELECT nspowner FROM spaces)) -- once per owner of a schema
    UNION SELECT pg_catalog.pg_describe_object(w.class, w.oid, 0), pg_catalog.format('grants %s to %s', w.privilege, CASE w.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.format('role %I', pg_catalog.pg_get_userbyid(w.grantee)) END)
        FROM writers w WHERE w.grantee NOT IN (SELECT oid FROM trusted)
    UNION SELECT pg_catalog.pg_describe_object('pg_catalog.pg_trigger'::pg_catalog.regclass, g.oid, 0), pg_catalog.format('calls a function of role %I', pg_catalog.pg_get_userbyid(p.proowner))
        FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid WHERE g.tgrelid IN (SELECT oid FROM tables) AND p.proowner NOT IN (SELECT oid FROM trusted UNION SELECT nspowner FROM spaces)
) x (object, reason) ORDER BY object !~ '^schema ', 1, 2
    LOOP
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s %s', untrusted, problem),
            DETAIL = 'A session trusts itself, roles that it is a member of, the database''s owner and superusers; a superuser trusts only superusers.',
            HINT = 'Drop the object or change its owner, revoke the privilege, or connect as another role.';
    END LOOP;
END
$$;

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'SCHEMA', n.nspname, n.nspacl, n.nspowner FROM pg_namespace n WHERE n.nspname = 'sortkey_internal' AND pg_has_role(n.nspowner, 'USAGE')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- One row per installed migration, whichever tool ran it. Programs read it to check the installation.
CREATE TABLE sortkey.revision (
    version integer PRIMARY KEY,
    name text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT current_timestamp
);
COMMENT ON TABLE sortkey.revision IS 'The installed migrations, one per row.';

-- The layouts that the functions use. A program with a different layout would misread IDs.
CREATE TABLE sortkey.layout (
    format text PRIMARY KEY,
    layout text NOT NULL
);
COMMENT ON TABLE sortkey.layout IS 'The bit layouts that the functions of this schema use. They never change.';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('sortkey.revision'::regclass, 'sortkey.layout'::regclass)
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

GRANT SELECT ON sortkey.revision, sortkey.layout TO PUBLIC; -- any role with USAGE on the schema can check the installation

-- The clock of a generator on the server.
--
-- Each format has a sequence, which is the only state of its generator. A value of the sequence is
--
--     window << shift | spare bits | unit of the window | sequence number
--
-- A window is 4 ms of the format's time, which begin at a multiple of 4 ms since its epoch. nextval() counts the
-- sequence numbers of the first unit of time in the window, then of the next unit, and so on. If a spare bit is set,
-- the window is full.
--
-- An ID has the time and the sequence number of a value, and nothing of the clock. nextval() never returns a value twice,
-- and only advance() sets the sequence, always to a later window. So no pair of time and sequence number occurs twice, even
-- if the clock steps back and many sessions generate IDs, and the IDs of all sessions increase in the order of their calls.
-- The clock only decides whether a value is fresh: its window is the current one or one of the next 2, and it isn't
-- full. Otherwise the generator calls advance(). IDs are less than 4 ms early, and less than 12 ms ahead of the clock.
-- If the clock steps back by less than 4 ms, the generator continues: a value of the window after these is fresh, too.
--
-- advance() changes the window in one expression, which takes an advisory lock, compares the window with the one
-- that it knows, sets the sequence, and releases the lock. PL/pgSQL handles interrupts only between statements, so no
-- canceled or terminated session leaves the lock behind. A subtransaction would be slower, and on Citus it would send
-- a SAVEPOINT to the workers, which fails during a COPY.
--
-- The sequence starts in a full window 0, so the first call sets the window from the clock.
--
-- If the clock steps back further, calls fail until it has caught up. Calls that need to wait a second or less
-- wait instead. They wait in pg_sleep(), which uses the same clock. If the clock steps back during the wait, the wait
-- gets longer by the size of the step. statement_timeout and lock_timeout use the same clock and don't end it;
-- pg_cancel_backend() does.
--
-- Any role can call nextval() for these sequences: the callers of the next_ functions need that, as for the sequence of a
-- bigserial. A value that no ID has only fills its window. It takes at least 2^19 such values to reach the next window.
--
-- A copy of the database that generates IDs beside the original, made with TEMPLATE, from a backup or by replication,
-- needs its own node numbers. So does a second installation in the same database, which has its own sequences.
CREATE FUNCTION sortkey_internal.advance(
    clock regclass,
    epoch timestamptz,
    window_ms integer,      -- milliseconds per window
    window_shift integer,
    counter_bits integer,   -- of the capacity of a window
    first_counter integer   -- the first counter of a new window
) RETURNS bigint            -- a fresh value of the sequence for the caller alone
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last_window CONSTANT bigint := 9223372036854775807 >> window_shift;
    counter_mask CONSTANT bigint := (1::bigint << window_shift) - 1;
    capacity CONSTANT bigint := 1::bigint << counter_bits;
    ahead CONSTANT bigint := 2;
    lock_class CONSTANT integer := 1936683115; -- 'sork' in ASCII
    lock_key CONSTANT integer := clock::oid::integer;
    max_wait CONSTANT float8 := 1000; -- milliseconds
    value bigint;
    full_window boolean;
    this_window bigint;
    now_window bigint;
    next_window bigint;
    now_ms float8;          -- since the epoch
    target bigint;          -- the value to set
    last_value bigint;
    step bigint[];
    pause float8;
    waited float8 := 0;     -- milliseconds, for a later window
    busy integer := 0;      -- number of waits for the lock, of 1 ms or more
BEGIN
    LOOP
        value := nextval(clock);
        now_ms := (tstzrange_subdiff(clock_timestamp(), epoch) + 0.0000005) * 1000; -- with half a microsecond for rounding
        now_window := floor(now_ms / window_ms);
        this_window := value >> window_shift;
        full_window := value & counter_mask >= capacity;
        IF NOT full_window AND this_window BETWEEN now_window AND now_window + ahead + 1 THEN
            RETURN value; -- another session has changed the window
        END IF;

        -- The earliest window that can follow. This one can, if it isn't full, once the clock has caught up.
        next_window := CASE WHEN full_window OR this_window < now_window THEN greatest(this_window + 1, now_window) ELSE this_window END;
        IF next_window > this_window AND next_window <= least(now_window + ahead, last_window) THEN
            target := next_window << window_shift | first_counter;
            -- If setval() failed, the session would keep the lock.
            last_value := (pg_sequence_parameters(clock)).maximum_value;
            IF last_value < 9223372036854775807 THEN
                RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                    MESSAGE = format('sequence %s ends at %s instead of 9223372036854775807, as on a new worker of a Citus cluster', clock, last_value),
                    HINT = 'Run SELECT * FROM run_command_on_workers(''SELECT sortkey.prepare_citus_worker()'') at the coordinator.';
            ELSIF NOT has_sequence_privilege(clock, 'SELECT') OR NOT has_sequence_privilege(clock, 'UPDATE') THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                    MESSAGE = format('role %I lacks SELECT or UPDATE on sequence %s', current_user, clock),
                    HINT = 'The functions and sequences of schema sortkey_internal must have the same owner.';
            END IF;
            PERFORM pg_current_xact_id(); -- get a transaction ID now, so that setval() doesn't, which could fail
            step := CASE WHEN pg_try_advisory_lock(lock_class, lock_key) THEN ARRAY[
                CASE WHEN pg_sequence_last_value(clock) >> window_shift = this_window THEN setval(clock, target) END,
                pg_advisory_unlock(lock_class, lock_key)::integer] END;
            IF step IS NOT NULL THEN
                IF step[1] IS NOT NULL THEN
                    RETURN target;
                END IF;
                CONTINUE; -- another session has changed the window
            END IF;
            -- Another session holds the lock, for microseconds unless it is stopped. Wait without nextval(), so that
            -- the values don't reach the next window.
            LOOP
                EXIT WHEN CASE WHEN pg_try_advisory_lock(lock_class, lock_key) THEN pg_advisory_unlock(lock_class, lock_key) END;
                IF busy >= max_wait THEN
                    RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
                        MESSAGE = format('session %s has held the lock of %s for more than a second', coalesce((
                            SELECT string_agg(l.pid::text, ', ') FROM pg_locks l
                            WHERE l.locktype = 'advisory' AND l.classid::bigint = lock_class AND l.objid = clock::oid AND l.granted
                                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())), '?'), clock),
                        HINT = 'The session is stopped, or has taken this advisory lock by itself. End it with pg_terminate_backend.';
                END IF;
                PERFORM pg_sleep(0.001);
                busy := busy + 1;
            END LOOP;
            CONTINUE;
        END IF;

        IF next_window > last_window THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
                MESSAGE = format('clock time %s is past the last time that IDs of %s can hold', clock_timestamp(), clock),
                HINT = 'Check the server''s clock, or use a format or layout that ends later.';
        END IF;
        pause := greatest((next_window - ahead) * window_ms - now_ms, 0.1);
        IF waited + pause > max_wait AND this_window = 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('clock time %s is before %s, the first time that IDs of %s can hold',
                    clock_timestamp(), epoch + window_ms * interval '1 millisecond', clock),
                HINT = 'Correct the server''s clock, or wait until that time.';
        ELSIF waited + pause > max_wait AND this_window > now_window + ahead THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('clock time %s is behind %s, the time of the last ID of %s',
                    clock_timestamp(), epoch + this_window * window_ms * interval '1 millisecond', clock),
                HINT = 'The server''s clock was set back. Correct it, or wait until it has caught up.';
        ELSIF waited + pause > max_wait THEN
            RAISE EXCEPTION USING ERRCODE = 'configuration_limit_exceeded',
                MESSAGE = format('too many calls: %s has %s IDs per %s ms, and calls exceeded this rate for %s ms',
                    clock, capacity, window_ms, max_wait),
                HINT = 'Generate IDs in the program, with separate node numbers, or use a format with more IDs per millisecond.';
        END IF;
        PERFORM pg_sleep(pause / 1000);
        waited := waited + pause;
    END LOOP;
END
$$;
COMMENT ON FUNCTION sortkey_internal.advance(regclass, timestamptz, integer, integer, integer, integer) IS
    'Changes the window of a generator''s clock, and returns the first value of the new window.';

-- Returns the bits of a sequence number of T_at(), or raises an error if it is out of range or the time is infinite.
CREATE FUNCTION sortkey_internal.sequence_bits(format text, t timestamptz, n integer, largest integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT isfinite(t) THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow', MESSAGE = format('cannot generate an ID for time %s', t),
            HINT = 'Pass a finite time.';
    ELSIF n BETWEEN 0 AND largest THEN
        RETURN n;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('sequence number %s of %s is out of range (0 to %s)', coalesce(n::text, 'NULL'), format, largest),
        HINT = 'Use the next time unit for further IDs.';
END
$$;

-- Returns the result of T_at(), or raises an error if it is zero, which no column of an ID type accepts.
CREATE FUNCTION sortkey_internal.not_zero(format text, id anyelement, zero anyelement) RETURNS anyelement
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF id IS DISTINCT FROM zero THEN
        RETURN id;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('%s of the first instant with all other parts 0 is zero, which is not an ID', format),
        HINT = 'Use a sequence number from 1 on for this instant, or another node number.';
END
$$;
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (1, 'schema');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 2. nodes
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

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

CREATE TABLE sortkey.node_pool (
    name text PRIMARY KEY,
    size integer NOT NULL,
    layout text NOT NULL,
    timeline text,
    fenced_until timestamptz NOT NULL DEFAULT '-infinity',
    filled integer NOT NULL DEFAULT 0,
    of_original int4multirange
);
COMMENT ON TABLE sortkey.node_pool IS 'The pools of node numbers. The first claim creates a pool with a default name, and create_node_pool other ones.';
COMMENT ON COLUMN sortkey.node_pool.layout IS 'The layout of the IDs. Programs with another layout are rejected.';
COMMENT ON COLUMN sortkey.node_pool.timeline IS 'The timeline of the write-ahead log, and the database, at the last claim. A change means that a standby has taken over, or that the database was restored.';
COMMENT ON COLUMN sortkey.node_pool.fenced_until IS 'No number is granted before this time. By then, every claim that a promoted standby or a dump does not have has expired.';
COMMENT ON COLUMN sortkey.node_pool.filled IS 'Each lower number has a row in node_lease. Claims begin their search for a number without a row here.';
COMMENT ON COLUMN sortkey.node_pool.of_original IS 'The numbers that only the original of this copy uses, or NULL if this database is no copy; see confirm_copy.';

-- The database whose programs and defaults use the numbers. A dump has this row, and so does a copy of the files.
CREATE TABLE sortkey.node_home (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    database text NOT NULL,
    timeline text,
    copy boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE sortkey.node_home IS 'The database in which node numbers were first claimed or reserved, or that confirm_original or confirm_copy recorded since; see database_problems.';
COMMENT ON COLUMN sortkey.node_home.database IS 'The system identifier of the server, where roles may read it, and the OIDs of the database and of table node_lease.';
COMMENT ON COLUMN sortkey.node_home.timeline IS 'The timeline of the write-ahead log at that time.';
COMMENT ON COLUMN sortkey.node_home.copy IS 'The database is a copy, with numbers from its original.';

-- The fillfactor leaves room for HOT updates: renewals change no indexed column.
CREATE TABLE sortkey.node_lease (
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
CREATE INDEX node_lease_free ON sortkey.node_lease (pool, free_mark, number) WHERE free_mark IS NOT NULL;
CREATE INDEX node_lease_held ON sortkey.node_lease (pool, holder) WHERE holder IS NOT NULL;
COMMENT ON TABLE sortkey.node_lease IS 'The node numbers that were used or reserved, and their holders; see node_status. Lowering a mark by hand can cause duplicate IDs.';
COMMENT ON COLUMN sortkey.node_lease.term IS 'The number of claims so far.';
COMMENT ON COLUMN sortkey.node_lease.mark IS 'The high-water mark: the number may have been used up to this time, in Unix milliseconds.';
COMMENT ON COLUMN sortkey.node_lease.after IS 'The high-water mark before the last claim.';
COMMENT ON COLUMN sortkey.node_lease.holder IS 'The holder, or NULL if the number was released or never held. A program that knows this value and the nonce can renew and release the claim.';
COMMENT ON COLUMN sortkey.node_lease.nonce IS 'The random value of the last renewal, or an empty text before the first one. Of two copies of one process, only the first to renew the claim knows it.';
COMMENT ON COLUMN sortkey.node_lease.claimed_at IS 'The time of the last claim, by this server''s clock.';
COMMENT ON COLUMN sortkey.node_lease.expires_at IS 'The time, by this server''s clock, from which other programs can claim the number.';
COMMENT ON COLUMN sortkey.node_lease.ttl IS 'The time until the claim expires, unless renewed.';
COMMENT ON COLUMN sortkey.node_lease.reserved IS 'The note passed to reserve_node or reserve_for_copy, or NULL if the number is not reserved. A reserved number cannot be claimed.';
COMMENT ON COLUMN sortkey.node_lease.of_copy IS 'A copy of this database uses the number; see reserve_for_copy.';
COMMENT ON COLUMN sortkey.node_lease.free_mark IS 'The mark of a free number, or NULL if the number is reserved or has a holder, even an expired one.';

-- Makes the commit wait for the disk and for synchronous standbys, even if the database's default is a weaker
-- synchronous_commit. A SET clause of the function would end before the commit.
CREATE FUNCTION sortkey_internal.commit_durably() RETURNS void
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
CREATE FUNCTION sortkey_internal.node_lock(pool text, number integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN hashtextextended(format('sortkey.node_lease %s %s', pool, number), 0);

-- Returns the timeline of the write-ahead log. A promoted standby begins a new timeline.
CREATE FUNCTION sortkey_internal.node_timeline() RETURNS text
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
CREATE FUNCTION sortkey_internal.database_identity() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id CONSTANT text := concat_ws('/', (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()), to_regclass('sortkey.node_lease')::oid);
BEGIN
    RETURN (SELECT c.system_identifier FROM pg_control_system() c) || '/' || id;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN id;
END
$$;

-- Returns the timeline and the database, for node_fence. A dump that is restored has the timeline of another server.
CREATE FUNCTION sortkey_internal.node_place() RETURNS text
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
    RETURN concat_ws(' ', sortkey_internal.node_timeline(), sortkey_internal.database_identity());

-- Records the database as the one that uses the numbers, unless one is recorded. If a transaction that is still open has
-- recorded it, settle doesn't wait for that transaction.
CREATE FUNCTION sortkey_internal.settle() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM sortkey.node_home) AND pg_try_advisory_xact_lock(hashtextextended('sortkey.node_home', 0)) THEN
        INSERT INTO sortkey.node_home (database, timeline) VALUES (sortkey_internal.database_identity(), sortkey_internal.node_timeline()) ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- Records the database, in place of the one that is recorded.
CREATE FUNCTION sortkey_internal.settle(copy boolean) RETURNS void
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO sortkey.node_home (database, timeline, copy) VALUES (sortkey_internal.database_identity(), sortkey_internal.node_timeline(), copy)
        ON CONFLICT ON CONSTRAINT node_home_pkey DO UPDATE SET database = EXCLUDED.database, timeline = EXCLUDED.timeline, copy = EXCLUDED.copy
$$;

-- Returns the numbers of a pool that only the original of this copy uses: none if this database is no copy. A copy has no
-- numbers of a pool that didn't exist when it got its numbers.
CREATE FUNCTION sortkey_internal.of_original(pool text) RETURNS int4multirange
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(
        (SELECT p.of_original FROM sortkey.node_pool p WHERE p.name = pool),
        CASE WHEN (SELECT h.copy FROM sortkey.node_home h) AND NOT EXISTS (SELECT FROM sortkey.node_pool p WHERE p.name = pool)
            THEN int4multirange(int4range(0, NULL)) ELSE '{}' END)
$$;

-- Returns the time, in Unix milliseconds, up to which any number of a pool may have been used, regardless of its mark.
-- It is 0 before any failover or restore, and fenced_until of the pool afterwards. The promoted standby or the dump can lack
-- the last claims and renewals. These expire within the longest TTL, so new claims wait until then. Existing claims continue.
CREATE FUNCTION sortkey_internal.node_fence(pool text, ttl interval) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known sortkey.node_pool;
    timeline CONSTANT text := sortkey_internal.node_place();
BEGIN
    SELECT p.* INTO known FROM sortkey.node_pool p WHERE p.name = pool;
    IF FOUND AND known.timeline IS DISTINCT FROM timeline THEN
        UPDATE sortkey.node_pool p SET timeline = timeline, fenced_until = greatest(p.fenced_until, clock_timestamp()
                + greatest(ttl, (SELECT max(l.ttl) FROM sortkey.node_lease l WHERE l.pool = pool)))
            WHERE p.name = pool AND p.timeline IS NOT DISTINCT FROM known.timeline;
        SELECT p.* INTO known FROM sortkey.node_pool p WHERE p.name = pool;
    END IF;
    RETURN CASE WHEN isfinite(known.fenced_until) THEN ceil(extract(epoch FROM known.fenced_until) * 1000) ELSE 0 END;
END
$$;

-- The largest distance of a mark from this server's clock, in addition to the TTL of the claim, in milliseconds: a day. A
-- program writes marks by its own clock. Without a limit, one call with a wrong clock, or by a hostile program, would make
-- a number unusable for years.
CREATE FUNCTION sortkey_internal.max_skew() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN 86400000;

-- Returns the size and the layout of a pool with a default name of package nodelease, by the layouts of the installation.
-- It returns no row for other names, and for formats that aren't installed.
CREATE FUNCTION sortkey_internal.default_pool(pool text) RETURNS TABLE (size integer, layout text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 1023 + 1, 'snowflake: ' || l.layout FROM sortkey.layout l WHERE pool = 'snowflake' AND l.format = 'snowflake'
    UNION ALL SELECT 1 << substring(l.layout FROM 'machine ([0-9]+)')::integer, 'snowflake_si: ' || l.layout FROM sortkey.layout l WHERE pool = 'snowflake-si' AND l.format = 'snowflake_si'
    UNION ALL SELECT (1023 + 1) >> 4, replace(pool, '-', ': cluster ') WHERE pool ~ '^spread64-([0-9]|1[0-5])$'
    UNION ALL SELECT 65535 + 1, 'sno: partitions' WHERE pool = 'sno'
$$;

-- Creates a pool that doesn't exist, and checks the size and layout of one that does. Without may_create, it creates only
-- pools with a default name, size and layout, unless the role of the session is a member of the owner's role: a second
-- pool of a layout would need reservations of its own, and each pool can grow to 65,536 rows.
CREATE FUNCTION sortkey_internal.open_pool(pool text, size integer, layout text, may_create boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known sortkey.node_pool;
    usual record;
    number integer;
BEGIN
    SELECT p.* INTO known FROM sortkey.node_pool p WHERE p.name = pool;
    IF NOT FOUND THEN
        SELECT d.size, d.layout INTO usual FROM sortkey_internal.default_pool(pool) d;
        IF FOUND AND (usual.size <> size OR usual.layout <> layout) THEN
            RAISE EXCEPTION USING ERRCODE = 'SK001',
                MESSAGE = format('pool %s of this database has %s numbers of layout %L, but this process has %s numbers of layout %L', pool, usual.size, usual.layout, size, layout),
                HINT = 'Give this process the layout of the database, or the pool another name.';
        ELSIF NOT FOUND AND NOT may_create AND NOT pg_has_role(session_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = 'sortkey.node_pool'::regclass), 'MEMBER') THEN
            RAISE EXCEPTION USING ERRCODE = 'undefined_object',
                MESSAGE = format('pool %s doesn''t exist', pool),
                HINT = format('As the owner of schema sortkey, run SELECT sortkey.create_node_pool(%L, %s, %L).', pool, size, layout);
        END IF;
        -- If several first claims run at once, one creates the pool and the others wait for it.
        INSERT INTO sortkey.node_pool (name, size, layout, timeline, of_original)
            VALUES (pool, size, layout, sortkey_internal.node_place(), CASE WHEN (SELECT h.copy FROM sortkey.node_home h) THEN int4multirange(int4range(0, size)) END)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            -- Numbers reserved in other pools of this layout, or in the pool with the default name, are reserved here, too:
            -- defaults generate IDs with them.
            INSERT INTO sortkey.node_lease AS l (pool, number, reserved, of_copy)
                SELECT pool, r.number, (array_agg(r.reserved ORDER BY r.of_copy, r.reserved))[1], bool_and(r.of_copy)
                FROM sortkey.node_lease r LEFT JOIN sortkey.node_pool p ON p.name = r.pool
                WHERE r.reserved IS NOT NULL AND r.pool <> pool AND r.number < size
                    AND (p.layout = layout
                        OR r.pool = CASE
                            WHEN layout ~ '^snowflake: ' THEN 'snowflake'
                            WHEN layout ~ '^snowflake_si: ' THEN 'snowflake-si'
                            WHEN layout ~ '^spread64: cluster [0-9]+$' THEN replace(layout, ': cluster ', '-')
                            WHEN layout = 'sno: partitions' THEN 'sno' END)
                GROUP BY r.number
                ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET reserved = EXCLUDED.reserved, of_copy = EXCLUDED.of_copy WHERE l.reserved IS NULL;
            DELETE FROM sortkey.node_lease l WHERE l.pool = pool AND l.number >= size AND l.reserved IS NULL;
            SELECT l.number INTO number FROM sortkey.node_lease l WHERE l.pool = pool AND l.number >= size ORDER BY l.number LIMIT 1;
            IF number IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'SK001',
                    MESSAGE = format('reserved number %s is out of range for pool %s of layout %L (0 to %s)', number, pool, layout, size - 1),
                    HINT = 'Give this process the layout that the number was reserved for, or cancel the reservation with unreserve_node.';
            END IF;
        END IF;
        SELECT p.* INTO known FROM sortkey.node_pool p WHERE p.name = pool;
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
CREATE FUNCTION sortkey.create_node_pool(pool text, size integer, layout text) RETURNS void
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
    PERFORM sortkey_internal.open_pool(pool, size, layout, true);
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.create_node_pool(text, integer, text) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.create_node_pool IS 'Creates a pool of node numbers with another name, size or layout than the default ones, which the first claim creates.';

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
CREATE FUNCTION sortkey.claim_node(
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
        AND ttl_ms BETWEEN 1 AND 3600000 AND now_ms <= until_ms AND until_ms < 253402300800000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of claim_node: pool %s, size %s (1 to 65536), layout %s (up to 1000 bytes), holder %s (1 to 1000 bytes), ttl_ms %s (1 to 3600000), now_ms %s, until_ms %s (not after the year 9999)',
                quote_nullable(left(pool, 100)), coalesce(size::text, 'NULL'), quote_nullable(left(layout, 100)), quote_nullable(left(holder, 100)),
                coalesce(ttl_ms::text, 'NULL'), coalesce(now_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL')),
            DETAIL = 'A pool name has up to 63 lower-case letters, digits, hyphens and underscores, and begins with a letter. until_ms is not before now_ms.';
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
    skewed := until_ms > time_ms + ttl_ms + sortkey_internal.max_skew() OR coalesce(abs(now_ms::numeric - time_ms) > max_skew_ms, false);
    IF skewed THEN
        RETURN;
    END IF;
    PERFORM sortkey_internal.commit_durably();
    reserved := coalesce(reserved, '{}');

    -- confirm_copy ends the claims and reservations that it sees. It changes this row first, so it waits for this call, or this
    -- call waits for it.
    PERFORM FROM sortkey.node_home FOR SHARE;
    PERFORM sortkey_internal.open_pool(pool, size, layout, false);
    PERFORM sortkey_internal.settle();
    reserved := reserved + sortkey_internal.of_original(pool);
    lowest := sortkey_internal.node_fence(pool, ttl);

    -- If the holder already has a number, this is a repeated call: the holder didn't receive the first result and has
    -- generated no IDs. Grant the number again, as of now. Concurrent calls of one holder can each have claimed a number;
    -- release all but one.
    SELECT l.number INTO number FROM sortkey.node_lease l
        WHERE l.pool = pool AND l.holder = holder AND l.nonce = ''
        ORDER BY l.reserved IS NULL DESC, l.expires_at DESC, l.number LIMIT 1 FOR UPDATE;
    IF FOUND THEN
        UPDATE sortkey.node_lease l SET holder = NULL, expires_at = NULL
            WHERE l.pool = pool AND l.holder = holder AND l.nonce = '' AND l.number <> number;
        UPDATE sortkey.node_lease l
            SET after = greatest(l.after, lowest), mark = greatest(l.mark, until_ms),
                claimed_at = clock_timestamp(), expires_at = clock_timestamp() + ttl, ttl = ttl
            WHERE l.pool = pool AND l.number = number AND l.holder = holder AND lowest < now_ms
                AND (l.reserved IS NULL OR l.expires_at > clock_timestamp())
            RETURNING l.term, l.after, l.mark INTO term, after, until;
        IF FOUND THEN
            time_ms := extract(epoch FROM clock_timestamp()) * 1000;
            RETURN;
        END IF;
        UPDATE sortkey.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number AND l.holder = holder;
    END IF;

    -- If the clock steps back, claims would expire later by the size of the step. Cap them at one TTL from now, since a
    -- live holder renews within a TTL. clock_timestamp() runs per row, so it is later than each visible claim. The
    -- condition holder >= '' is true for every holder; it makes the planner choose node_lease_held, even without
    -- statistics.
    WITH late AS MATERIALIZED (
        SELECT o.number FROM sortkey.node_lease o
        WHERE o.pool = pool AND o.holder >= '' AND o.expires_at > clock_timestamp() + o.ttl
        FOR UPDATE SKIP LOCKED
    )
    UPDATE sortkey.node_lease l SET expires_at = clock_timestamp() + l.ttl FROM late WHERE l.pool = pool AND l.number = late.number;

    -- Insert the row of the lowest number that has none. filled is stored only now and then, and not if the row of the pool
    -- is locked, so that claims don't wait for each other.
    IF greatest(lowest, 0) < now_ms THEN
        SELECT p.filled INTO filled FROM sortkey.node_pool p WHERE p.name = pool;
        unused := int4multirange(int4range(filled, size)) - coalesce((
            SELECT range_agg(int4range(l.number, l.number + 1)) FROM sortkey.node_lease l WHERE l.pool = pool AND l.number >= filled), '{}');
        filled := coalesce(lower(unused), size);
        UPDATE sortkey.node_pool p SET filled = filled
            FROM (
                SELECT o.name FROM sortkey.node_pool o
                WHERE o.name = pool AND o.filled < filled AND least(o.filled + 64, size) <= filled FOR UPDATE SKIP LOCKED
            ) o
            WHERE p.name = o.name;
        FOR number IN SELECT generate_series(lower(r), upper(r) - 1) FROM unnest(unused - reserved) r LOOP
            IF pg_try_advisory_xact_lock(sortkey_internal.node_lock(pool, number)) THEN
                INSERT INTO sortkey.node_lease (pool, number) VALUES (pool, number) ON CONFLICT DO NOTHING;
                EXIT WHEN FOUND;
            END IF;
        END LOOP;
    END IF;

    now_at := clock_timestamp();
    SELECT l.number INTO number FROM sortkey.node_lease l
        WHERE l.pool = pool AND l.number < size AND l.free_mark < now_ms AND lowest < now_ms AND NOT l.number <@ reserved
        ORDER BY l.free_mark, l.number LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- Read the whole pool, to include numbers that were released in the meantime.
        SELECT l.number INTO number FROM sortkey.node_lease l
            WHERE l.pool = pool AND l.number < size AND l.reserved IS NULL AND NOT l.number <@ reserved
                AND (l.holder IS NULL OR l.expires_at <= now_at) AND greatest(l.mark, lowest) < now_ms
            ORDER BY l.mark, l.number LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    IF FOUND THEN
        UPDATE sortkey.node_lease l SET term = l.term + 1, holder = holder, nonce = '', after = greatest(l.mark, lowest), mark = until_ms,
                claimed_at = clock_timestamp(), expires_at = clock_timestamp() + ttl, ttl = ttl
            WHERE l.pool = pool AND l.number = number
            RETURNING l.term, l.after, l.mark INTO term, after, until;
    ELSE
        -- A number that is free but locked is being claimed, and counts as held.
        SELECT count(*) FILTER (WHERE NOT a.kept AND NOT a.ahead), count(*) FILTER (WHERE a.kept), count(*) FILTER (WHERE NOT a.kept AND a.ahead),
                ceil(extract(epoch FROM min(l.expires_at) FILTER (WHERE NOT a.kept AND l.holder IS NOT NULL AND l.expires_at > now_at) - now_at) * 1000),
                min(greatest(l.mark, lowest, 0)) FILTER (WHERE NOT a.kept AND a.ahead)
            INTO held_count, reserved_count, ahead_count, frees_ms, lowest_mark
            FROM generate_series(0, size - 1) n LEFT JOIN sortkey.node_lease l ON l.pool = pool AND l.number = n
                CROSS JOIN LATERAL (
                    SELECT l.reserved IS NOT NULL OR n <@ reserved,
                        (l.holder IS NULL OR l.expires_at <= now_at) AND greatest(l.mark, lowest, 0) >= now_ms
                ) a (kept, ahead);
        SELECT string_agg(CASE WHEN k.place <= 3 THEN format('%s for %s', k.number, quote_literal(left(k.reserved, 100))) ELSE format('%s more', k.total - 3) END, ', ' ORDER BY k.place)
            INTO reservations
            FROM (
                SELECT l.number, l.reserved, row_number() OVER (ORDER BY l.number) place, count(*) OVER () total
                FROM sortkey.node_lease l WHERE l.pool = pool AND l.number < size AND l.reserved IS NOT NULL
            ) k
            WHERE k.place <= 4;
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.claim_node IS 'Claims a node number of a pool for a program, for package pglease.';

-- Renews a claim and raises its mark to until_ms, if that is later. An expired claim can be renewed if no other program
-- has claimed the number and it isn't reserved. If another program has claimed it, or the claim was released, nothing
-- changes, and the result has the current term and the readable part of the holder. now_ms, max_skew_ms and skewed are as
-- in claim_node.
--
-- nonce is a random value, which this function stores. nonces must contain the stored one. It has the nonces of the holder's
-- last renewals, and '' before the first one. So if a process is copied while it runs, only the first copy that renews the
-- claim keeps it. A standby that was promoted may have an earlier nonce than the last one.
CREATE FUNCTION sortkey.renew_node(
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
    IF (ttl_ms BETWEEN 1 AND 3600000 AND until_ms < 253402300800000 AND octet_length(nonce) <= 100 AND cardinality(nonces) <= 100) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of renew_node: ttl_ms %s (1 to 3600000), until_ms %s (not after the year 9999), nonce of %s bytes (0 to 100), %s nonces (0 to 100)',
                coalesce(ttl_ms::text, 'NULL'), coalesce(until_ms::text, 'NULL'), coalesce(octet_length(nonce)::text, 'NULL'), coalesce(cardinality(nonces)::text, 'NULL'));
    END IF;
    renewed := false;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
    skewed := until_ms > time_ms + ttl_ms + sortkey_internal.max_skew() OR coalesce(abs(now_ms::numeric - time_ms) > max_skew_ms, false);
    IF skewed THEN
        RETURN;
    END IF;
    PERFORM sortkey_internal.commit_durably();
    UPDATE sortkey.node_lease l SET mark = greatest(l.mark, until_ms), expires_at = clock_timestamp() + ttl, ttl = ttl, nonce = nonce
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder AND l.nonce = ANY (nonces)
            AND (l.reserved IS NULL OR l.expires_at > clock_timestamp())
        RETURNING l.after, l.mark INTO after, until;
    renewed := FOUND;
    IF NOT renewed THEN
        SELECT l.term, regexp_replace(l.holder, ' [^ ]+$', '') INTO present_term, present_holder
            FROM sortkey.node_lease l WHERE l.pool = pool AND l.number = number;
    END IF;
    time_ms := extract(epoch FROM clock_timestamp()) * 1000;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.renew_node IS 'Renews a claim, for package pglease.';

-- Releases a claim whose holder has generated IDs up to mark_ms and generates no more. It returns false if the number
-- is in another term, was released before, or has a nonce that isn't in nonces; see renew_node. The mark doesn't fall below its value before the claim, and doesn't rise.
CREATE FUNCTION sortkey.release_node(
    pool text, number integer, term bigint, holder text, mark_ms bigint, nonces text[] DEFAULT '{""}'
) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF (mark_ms < 253402300800000 AND cardinality(nonces) <= 100) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of release_node: mark_ms %s (not after the year 9999), %s nonces (0 to 100)',
                coalesce(mark_ms::text, 'NULL'), coalesce(cardinality(nonces)::text, 'NULL'));
    END IF;
    PERFORM sortkey_internal.commit_durably();
    UPDATE sortkey.node_lease l SET holder = NULL, expires_at = NULL, mark = greatest(least(mark_ms, l.mark), l.after)
        WHERE l.pool = pool AND l.number = number AND l.term = term AND l.holder = holder AND l.nonce = ANY (nonces);
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint, text[]) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.release_node IS 'Releases a claim, for package pglease.';

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
CREATE FUNCTION sortkey.reserve_node(pool text, number integer, note text, while_held boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    known sortkey.node_pool;
    size integer;
    lease sortkey.node_lease;
    now_at timestamptz;
    wait_ms bigint;
    clock text;
BEGIN
    SELECT p.* INTO known FROM sortkey.node_pool p WHERE p.name = pool;
    -- The first claim creates the pool, with the size of its format. The pools of programs can have other names and any size.
    size := coalesce(known.size, CASE WHEN pool = 'spread64' THEN 1023 + 1 END, (SELECT d.size FROM sortkey_internal.default_pool(pool) d), 65536);
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
    -- confirm_copy ends the claims and reservations that it sees. It changes this row first, so it waits for this call, or this
    -- call waits for it.
    PERFORM FROM sortkey.node_home FOR SHARE;
    IF number <@ sortkey_internal.of_original(pool) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve number %s of pool %s: this database is a copy, and its original uses the number', number, pool),
            HINT = CASE WHEN known.of_original IS NULL THEN 'At the original, run SELECT sortkey.reserve_for_copy with the note of this copy again, and pass the result to sortkey.confirm_copy here.'
                ELSE format('Choose one of %s.', int4multirange(int4range(0, size)) - known.of_original) END;
    END IF;
    PERFORM sortkey_internal.commit_durably();
    PERFORM sortkey_internal.settle();
    PERFORM pg_advisory_xact_lock(sortkey_internal.node_lock(pool, number));
    INSERT INTO sortkey.node_lease AS l (pool, number, reserved) VALUES (pool, number, note)
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
    lease.mark := greatest(lease.mark, sortkey_internal.node_fence(pool, interval '0'));
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
    clock := split_part(coalesce(known.layout, (SELECT d.layout FROM sortkey_internal.default_pool(pool) d)), ':', 1);
    IF lease.mark > 0 AND to_regclass(format('sortkey_internal.%I', clock || '_clock')) IS NOT NULL THEN
        EXECUTE format('SELECT CASE WHEN sortkey_internal.%I() <= $1 THEN sortkey_internal.%I(0) END', clock || '_last_ms', clock || '_later') USING lease.mark + 1000;
    END IF;
    -- Remove an expired claim, which the holder could renew.
    UPDATE sortkey.node_lease l SET holder = NULL, expires_at = NULL WHERE l.pool = pool AND l.number = number;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.reserve_node(text, integer, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.reserve_node IS 'Reserves a node number permanently, for example for the defaults of this database, so that no program can claim it.';

-- Cancels the reservation of a number that is no longer in use. used_until is the time of the last ID generated with
-- it. NULL means now, or the time of the last ID of a default, if the server's clock was ahead then.
CREATE FUNCTION sortkey.unreserve_node(pool text, number integer, used_until timestamptz DEFAULT NULL) RETURNS void
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
    -- IDs are up to 12 ms ahead of the server's clock.
    used_ms := ceil(extract(epoch FROM coalesce(used_until, clock_timestamp())) * 1000) + 12;
    IF used_until IS NULL THEN
        FOR function IN
            SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'sortkey_internal'::regnamespace AND right(p.proname::text, 8) = '_last_ms' -- one per format with node numbers
        LOOP
            EXECUTE format('SELECT %s()', function) INTO last_ms;
            used_ms := greatest(used_ms, last_ms);
        END LOOP;
    END IF;
    PERFORM sortkey_internal.commit_durably();
    -- Remove the holder, so that it cannot release the number with an old mark.
    UPDATE sortkey.node_lease l SET reserved = NULL, of_copy = false, holder = NULL, expires_at = NULL, mark = greatest(l.mark, used_ms)
        WHERE l.pool = pool AND l.number = number AND l.reserved IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('number %s of pool %s is not reserved', coalesce(number::text, 'NULL'), quote_nullable(pool)),
                HINT = 'The view sortkey.node_status lists the reserved numbers.';
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.unreserve_node(text, integer, timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.unreserve_node IS 'Cancels the reservation of a node number that generates no more IDs. used_until is the time of its last ID; NULL means now, or the last ID of a default, if that is later.';

-- Shows node numbers to people. It omits the unique part of a holder, since a program that knows it can release the
-- claim.
--
-- statement_timestamp() lets a query compute only the columns that it needs. With clock_timestamp(), which is volatile, it
-- would compute them for all rows. The division of doubles is exact to the millisecond, and faster than one of numerics.
-- The numbers that were never used have no rows. The planner drops them from a query of states other than free.
CREATE VIEW sortkey.node_status AS
    SELECT l.pool, l.number,
        CASE WHEN l.holder IS NOT NULL AND l.expires_at > statement_timestamp() THEN 'held'
            WHEN l.reserved IS NOT NULL OR l.number <@ p.of_original THEN 'reserved' ELSE 'free' END AS state,
        regexp_replace(l.holder, ' [^ ]+$', '') AS holder, l.claimed_at, l.expires_at, l.ttl, l.term,
        CASE WHEN l.mark < 253402300800000 THEN to_timestamp(nullif(l.mark, 0)::float8 / 1000) ELSE 'infinity' END AS mark,
        CASE WHEN l.number <@ p.of_original THEN 'the original of this copy' ELSE l.reserved END AS reserved
    FROM sortkey.node_lease l LEFT JOIN sortkey.node_pool p ON p.name = l.pool
    UNION ALL
    SELECT p.name, n, CASE WHEN n <@ p.of_original THEN 'reserved' ELSE 'free' END, NULL, NULL, NULL, NULL, 0, NULL,
        CASE WHEN n <@ p.of_original THEN 'the original of this copy' END
    FROM sortkey.node_pool p CROSS JOIN LATERAL generate_series(0, p.size - 1) n
    WHERE NOT EXISTS (SELECT FROM sortkey.node_lease l WHERE l.pool = p.name AND l.number = n);
COMMENT ON VIEW sortkey.node_status IS 'Node numbers, their holders, and the time up to which each may have been used (mark; NULL if it was never used).';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.relnamespace = 'sortkey'::regnamespace AND c.relname IN ('node_pool', 'node_lease', 'node_status')
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace
                AND p.proname IN ('create_node_pool', 'claim_node', 'renew_node', 'release_node', 'reserve_node', 'unreserve_node')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Returns the pools of a node number, and its number there: all pools with the layout of the format, or, if there is
-- none, the pool with the default name of package nodelease. Programs can give a pool another name.
CREATE FUNCTION sortkey_internal.node_pools(format text, node integer) RETURNS TABLE (pool text, number integer)
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
            LEFT JOIN LATERAL sortkey_internal.default_pool(v.pool) d ON true
        WHERE v.format = node_pools.format AND v.number >= 0
    ), p AS (
        SELECT p.name, w.number FROM w JOIN sortkey.node_pool p ON p.layout = w.layout AND p.size > w.number
    )
    SELECT p.* FROM p UNION ALL SELECT w.pool, w.number FROM w WHERE NOT EXISTS (SELECT FROM p)
$$;

-- Checks the setting sortkey.node for a format. Returns the bits of the number in an ID, and stores them in a setting of the
-- session for ..._node_bits(). STABLE, so that its callers can be inlined and COPY inserts many rows at once.
--
-- The workers of a Citus cluster have the functions, but not the tables. Citus copies the settings of the coordinator's
-- database to all workers, again when it adds or activates one. So each worker ignores sortkey.node and reads a setting
-- that ends with its group, such as sortkey.node_1. A session keeps the number until it ends.
CREATE FUNCTION sortkey_internal.use_node(format text, largest integer) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text := 'sortkey.node';
    place text := '';
    worker integer;
    setting text;
    remedy text;
    bits bigint;
    missing record;
    other text;
BEGIN
    IF to_regclass('sortkey.node_lease') IS NULL THEN
        EXECUTE 'SELECT groupid FROM pg_dist_local_group' INTO worker;
        name := name || '_' || worker;
        place := format(' on worker %s of the Citus cluster', worker);
    END IF;
    setting := nullif(current_setting(name, true), '');
    remedy := format('ALTER DATABASE %I SET %s = N', current_database(), name);
    IF setting IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('%s is not set, so next_%s has no node number%s', name, format, place),
            HINT = format('Choose a number N from 0 to %s that no other server, database or program uses. Run SELECT sortkey.reserve_node(%L, N, %L) and %s%s, and reconnect.%s',
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
        SELECT p.pool, p.number, l.reserved INTO missing FROM sortkey_internal.node_pools(format, setting::integer) p
            LEFT JOIN sortkey.node_lease l ON l.pool = p.pool AND l.number = p.number
            WHERE l.reserved IS NULL OR l.holder IS NOT NULL ORDER BY p.pool LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('sortkey.node is %s, but number %s of pool %s is %s', setting, missing.number, missing.pool,
                    CASE WHEN missing.reserved IS NOT NULL THEN 'still held' ELSE 'not reserved' END),
                HINT = format('Run SELECT sortkey.reserve_node(%L, %s, %L), or run %s with a reserved number and reconnect.',
                    missing.pool, missing.number, coalesce(missing.reserved, 'defaults of ' || current_database()), remedy);
        END IF;
    ELSE
        -- The reservations are on the coordinator, but the numbers of the other servers are known here.
        EXECUTE 'SELECT n.name FROM (SELECT ''sortkey.node'' UNION SELECT ''sortkey.node_'' || groupid FROM pg_dist_node) n (name)
            WHERE n.name <> $1 AND current_setting(n.name, true) = $2 ORDER BY 1 LIMIT 1' INTO other USING name, setting;
        IF other IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('%s and %s are both %s', name, other, setting),
                HINT = format('Each server of the Citus cluster needs its own number. Run %s with a reserved number, and reconnect.', remedy);
        END IF;
    END IF;
    EXECUTE format('SELECT sortkey_internal.%I($1)', format || '_node_bits') INTO bits USING setting::integer;
    PERFORM set_config(format('sortkey.%s_node', format), bits::text, false);
    RETURN bits;
END
$$;

-- Prepares a worker of a Citus cluster to generate IDs. On each worker Citus limits sequences to 48 bits, so that the
-- values of different workers differ. The clocks need 63 bits, and node numbers make the IDs of workers differ.
--
-- Citus sets the limits again when it activates the worker, and the clocks lose their state. So the function waits until
-- their last windows are over.
CREATE FUNCTION sortkey.prepare_citus_worker() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    clock regclass;
BEGIN
    IF to_regclass('sortkey.node_lease') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'this server is not a worker of a Citus cluster',
            HINT = 'Run SELECT * FROM run_command_on_workers(''SELECT sortkey.prepare_citus_worker()'') at the coordinator.';
    END IF;
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    FOR clock IN
        SELECT s.seqrelid FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
        WHERE c.relnamespace = 'sortkey_internal'::regnamespace AND s.seqmax < 9223372036854775807
    LOOP
        EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 MAXVALUE 9223372036854775807', clock);
    END LOOP;
    PERFORM pg_sleep((12 + 4) / 1000.0); -- no session can generate an ID before the commit
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.prepare_citus_worker() FROM PUBLIC;
COMMENT ON FUNCTION sortkey.prepare_citus_worker IS 'Prepares a worker of a Citus cluster to generate IDs. Call it on all workers with run_command_on_workers, and again after a worker is added or activated.';

-- Lists the defaults that generate IDs with a node number, to find numbers that aren't reserved. pg_depend has the
-- columns, domains and SQL functions (with RETURN or BEGIN ATOMIC) that depend on the next_ functions. The view reads
-- explicit numbers from the text of the default.
CREATE VIEW sortkey.node_defaults AS
    WITH uses AS (
        SELECT d.classid, d.objid, p.proname AS function, NOT 'node' = ANY (coalesce(p.proargnames, '{}')) AS from_setting,
            CASE WHEN pg_function_is_visible(p.oid) THEN '' ELSE E'sortkey\\.' END AS prefix
        FROM pg_proc p JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
        WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('next_snowflake', 'next_snowflake_si', 'next_spread64', 'next_sno', 'next_sno_meta')
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
            JOIN lasting n ON n.oid = p.pronamespace AND n.oid <> 'sortkey'::regnamespace
    ), nodes AS (
        SELECT d.kind, d.name, d.expression, d.function, d.from_setting,
            CASE WHEN v.setting ~ '^(0|[1-9][0-9]{0,8})$' THEN v.setting::integer END AS node
        FROM defaults d CROSS JOIN current_setting('sortkey.node', true) v (setting) WHERE d.from_setting
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
        FROM (SELECT DISTINCT n.format, n.node FROM numbers n) n CROSS JOIN LATERAL sortkey_internal.node_pools(n.format, n.node) p
        WHERE n.node <= CASE n.format
            WHEN 'snowflake' THEN 1023
            WHEN 'snowflake_si' THEN 8191
            WHEN 'spread64' THEN 1023
            ELSE 65535 END
    )
    SELECT n.kind, n.name, n.expression, n.format, n.from_setting, p.pool, p.number, CASE WHEN l.holder IS NULL THEN l.reserved END AS reserved
    FROM numbers n
        LEFT JOIN pools p ON p.format = n.format AND p.node = n.node
        LEFT JOIN sortkey.node_lease l ON l.pool = p.pool AND l.number = p.number;
COMMENT ON VIEW sortkey.node_defaults IS 'Defaults that generate IDs with a node number, which is an argument or the setting sortkey.node (from_setting). reserved is the note of the reservation, or NULL if the number is not reserved. number is NULL if the argument is not a literal, if the expression has more than 2,000 bytes, or if the setting is not a node number.';

-- The setting is one problem, whatever the formats of its defaults. Each unreserved number is another one.
CREATE VIEW sortkey.node_problems AS
    WITH d AS (
        SELECT n.kind || ' ' || n.name AS name, replace(n.format, '_', '-') AS format, n.from_setting, n.pool, n.number,
            coalesce(l.reserved, CASE WHEN n.from_setting THEN 'defaults of ' || current_database() ELSE n.kind || ' ' || n.name END) AS note
        FROM sortkey.node_defaults n LEFT JOIN sortkey.node_lease l ON l.pool = n.pool AND l.number = n.number -- reserved, but held
        WHERE n.reserved IS NULL AND (n.number IS NOT NULL OR n.from_setting)
    )
    SELECT d.number IS NULL AS no_node, d.pool, d.number, min(d.name) || CASE WHEN count(*) > 1 THEN format(' (and %s more)', count(*) - 1) ELSE '' END AS subject,
        CASE WHEN d.number IS NULL THEN
            'needs the setting sortkey.node, which is ' || CASE WHEN coalesce(current_setting('sortkey.node', true), '') = '' THEN 'missing'
                ELSE format('%L, no node number of %s', current_setting('sortkey.node'), string_agg(DISTINCT d.format, ' and ')) END
        ELSE
            format('uses unreserved number %s of pool %s%s', d.number, d.pool, CASE WHEN d.from_setting THEN ' from the setting sortkey.node' ELSE '' END)
        END AS problem,
        CASE WHEN d.number IS NULL THEN
            format('choose a number N that no program and no other database uses; run SELECT %s and ALTER DATABASE %I SET sortkey.node = N; and reconnect',
                string_agg(DISTINCT format('sortkey.reserve_node(%L, N, %L)', d.format, d.note), ', '), current_database())
        ELSE
            format('run SELECT sortkey.reserve_node(%L, %s, %L)', d.pool, d.number, min(d.note))
        END AS remedy
    FROM d GROUP BY d.from_setting, d.pool, d.number;
COMMENT ON VIEW sortkey.node_problems IS 'Defaults whose node number is missing or not reserved, and the remedies. Package migrations reports them in CheckDefaults.';
-- Says whether the database is another one than the one that uses the numbers, or has another timeline. It is empty until a
-- number is claimed or reserved, and where a service hides the identity and the timeline.
CREATE VIEW sortkey.database_problems AS
    SELECT CASE WHEN h.database <> n.database THEN
            'was copied, restored from a dump or upgraded: its node numbers belong to another database, which can create the same IDs'
        ELSE
            format('continues after a promotion or a recovery (timeline %s, before %s): if the old server still runs, both can create the same IDs', n.timeline, h.timeline)
        END AS problem,
        format('stop the inserts and the programs of the other one, and run SELECT sortkey.confirm_original() here; or, if both continue, run SELECT sortkey.reserve_for_copy(%L) there and SELECT sortkey.confirm_copy(...) here, with the result',
            current_database() || ' ' || n.database) AS remedy
    FROM sortkey.node_home h CROSS JOIN LATERAL (SELECT sortkey_internal.database_identity(), sortkey_internal.node_timeline()) n (database, timeline)
    WHERE h.database <> n.database OR h.timeline <> n.timeline;
COMMENT ON VIEW sortkey.database_problems IS 'Says that this database was copied, restored or promoted, until confirm_original or confirm_copy was called.';

-- Records that this database continues alone with its node numbers, because the other one is gone or creates no IDs.
CREATE FUNCTION sortkey.confirm_original() RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM sortkey_internal.commit_durably();
    PERFORM sortkey_internal.settle(false);
    UPDATE sortkey.node_pool p SET of_original = NULL WHERE p.of_original IS NOT NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.confirm_original() FROM PUBLIC;
COMMENT ON FUNCTION sortkey.confirm_original IS 'Records that this database, which was copied, restored or promoted, continues with its node numbers, and that no other database uses them.';

-- Reserves free numbers of each pool for a copy of this database, the highest ones, and returns them for confirm_copy. A
-- repeated call with the same note returns the same numbers, and adds numbers of new pools. It covers the pools that exist
-- or have reservations, and snowflake, snowflake-si and sno.
CREATE FUNCTION sortkey.reserve_for_copy(note text, numbers integer DEFAULT 32) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    pool record;
    number integer;
    got int4multirange;
    lowest bigint;
    common CONSTANT integer := (SELECT min(d.size) FROM unnest('{snowflake,snowflake-si,sno}'::text[]) n CROSS JOIN LATERAL sortkey_internal.default_pool(n) d);
    result jsonb := '{}';
BEGIN
    IF (octet_length(note) BETWEEN 1 AND 1000 AND numbers BETWEEN 1 AND 65536) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('invalid argument of reserve_for_copy: note %s (1 to 1000 bytes), numbers %s (1 to 65536)', quote_nullable(left(note, 100)), coalesce(numbers::text, 'NULL'));
    ELSIF EXISTS (SELECT FROM sortkey.node_lease l WHERE l.reserved = note AND NOT l.of_copy) THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use',
            MESSAGE = format('cannot reserve numbers for copy %L: this database uses a number with that note', note),
            HINT = 'Pass another note, which no reservation has.';
    END IF;
    PERFORM sortkey_internal.commit_durably();
    PERFORM sortkey_internal.settle();
    FOR pool IN
        SELECT v.name, coalesce(p.size, d.size) AS size, coalesce(p.layout, d.layout) AS layout
        FROM (
            SELECT p.name FROM sortkey.node_pool p
            UNION SELECT l.pool FROM sortkey.node_lease l
            UNION SELECT unnest('{snowflake,snowflake-si,sno}'::text[])
        ) v (name)
            LEFT JOIN sortkey.node_pool p ON p.name = v.name LEFT JOIN LATERAL sortkey_internal.default_pool(v.name) d ON true
        WHERE coalesce(p.size, d.size) IS NOT NULL ORDER BY 1
    LOOP
        got := coalesce((SELECT range_agg(int4range(l.number, l.number + 1)) FROM sortkey.node_lease l WHERE l.pool = pool.name AND l.reserved = note AND l.of_copy), '{}');
        IF isempty(got) THEN
            lowest := sortkey_internal.node_fence(pool.name, interval '0');
            -- The setting sortkey.node needs one number for all formats.
            FOR number IN SELECT n FROM generate_series(0, pool.size - 1) n, sortkey_internal.of_original(pool.name) o WHERE NOT n <@ o ORDER BY n >= common, n DESC LOOP
                EXIT WHEN coalesce((SELECT sum(upper(r) - lower(r)) FROM unnest(got) r), 0) >= least(numbers, pool.size / 2);
                CONTINUE WHEN NOT pg_try_advisory_xact_lock(sortkey_internal.node_lock(pool.name, number)); -- a claim inserts the row
                INSERT INTO sortkey.node_lease AS l (pool, number, reserved, of_copy) VALUES (pool.name, number, note, true)
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
    RETURN jsonb_build_object('place', sortkey_internal.node_place(), 'time_ms', ceil(extract(epoch FROM clock_timestamp()) * 1000), 'pools', result);
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.reserve_for_copy(text, integer) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.reserve_for_copy IS 'Reserves node numbers for a copy of this database, up to the given count and half of each pool, and returns them for confirm_copy.';

-- Returns the highest node number that this copy owns in all pools of these formats and whose high-water mark has passed,
-- or NULL if there is none.
CREATE FUNCTION sortkey_internal.node_of_copy(formats text[], note text) RETURNS integer
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
    WITH own AS (
        SELECT l.pool, l.number, CASE WHEN p.layout ~ '^spread64: cluster ' THEN l.number << 4 | substring(p.layout FROM '[0-9]+$')::integer ELSE l.number END AS node
        FROM sortkey.node_lease l JOIN sortkey.node_pool p ON p.name = l.pool AND NOT l.number <@ p.of_original
        WHERE (l.reserved IS NULL OR l.reserved = note) AND l.mark + 1000 < extract(epoch FROM clock_timestamp()) * 1000
    )
    SELECT max(o.node) FROM own o WHERE NOT EXISTS (
        SELECT FROM unnest(formats) f CROSS JOIN LATERAL sortkey_internal.node_pools(f, o.node) p
        WHERE NOT EXISTS (SELECT FROM own x WHERE x.pool = p.pool AND x.number = p.number))
$$;

-- Makes this database use only the numbers that its original has reserved for it. Claims end, as if their holders had been
-- killed, and so do reservations, because the defaults of the original use their numbers. A repeated call ends only those
-- outside of the given numbers. Returns the statements that give the defaults a number of this database, for the owners of the
-- database and of the tables. A comment has no line breaks, because its names and expressions come from any role.
--
-- snapshot says that the database is a copy of the files that has the timeline of its original, which nothing else tells.
CREATE FUNCTION sortkey.confirm_copy(numbers jsonb, snapshot boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    note CONSTANT text := 'defaults of ' || current_database();
    again CONSTANT boolean := EXISTS (SELECT FROM sortkey.node_home h WHERE h.copy AND h.database = sortkey_internal.database_identity());
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
    ELSIF numbers ->> 'place' = sortkey_internal.node_place() AND snapshot IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = 'the numbers were reserved at this database, which would be a copy of itself',
            HINT = 'Call confirm_copy at the copy. If this is the copy, started from a snapshot of the disk of its original, pass snapshot => true.';
    END IF;
    PERFORM sortkey_internal.commit_durably();
    PERFORM sortkey_internal.settle(true);
    -- The marks of the claims stay, so nobody needs to wait for the fence.
    UPDATE sortkey.node_pool p SET of_original = int4multirange(int4range(0, p.size)), timeline = sortkey_internal.node_place(),
        fenced_until = CASE WHEN again THEN p.fenced_until ELSE '-infinity' END;
    FOR pool IN
        SELECT j.key AS name, (j.value ->> 'size')::integer AS size, j.value ->> 'layout' AS layout, (j.value ->> 'numbers')::int4multirange AS numbers
        FROM jsonb_each(numbers -> 'pools') j
    LOOP
        IF (pool.size BETWEEN 1 AND 65536 AND pool.layout <> '' AND pool.numbers <@ int4multirange(int4range(0, pool.size))) IS NOT TRUE THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('invalid argument of confirm_copy: pool %s; want the result of reserve_for_copy at the original', pool);
        END IF;
        PERFORM sortkey_internal.open_pool(pool.name, pool.size, pool.layout, true);
        UPDATE sortkey.node_pool p SET of_original = int4multirange(int4range(0, p.size)) - pool.numbers WHERE p.name = pool.name;
        INSERT INTO sortkey.node_lease AS l (pool, number, mark)
            SELECT pool.name, n, (numbers ->> 'time_ms')::bigint FROM unnest(pool.numbers) r, generate_series(lower(r), upper(r) - 1) n
            ON CONFLICT ON CONSTRAINT node_lease_pkey DO UPDATE SET mark = greatest(l.mark, EXCLUDED.mark);
    END LOOP;
    UPDATE sortkey.node_lease l SET reserved = NULL, of_copy = false, holder = NULL, expires_at = NULL WHERE NOT again OR l.number <@ sortkey_internal.of_original(l.pool);

    -- Reservations begin a second after the marks.
    PERFORM pg_sleep(least(((numbers ->> 'time_ms')::bigint - extract(epoch FROM clock_timestamp()) * 1000 + 1001) / 1000, 10));
    -- A number for the setting, and one for the explicit numbers of each format.
    FOR used IN
        SELECT n.from_setting, array_agg(DISTINCT n.format) AS formats FROM sortkey.node_defaults n
        GROUP BY n.from_setting, CASE WHEN NOT n.from_setting THEN n.format END ORDER BY n.from_setting DESC
    LOOP
        node := sortkey_internal.node_of_copy(used.formats, note);
        IF node IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('no number of this copy fits the defaults of %s', array_to_string(used.formats, ' and ')),
                HINT = 'Try again in a second. If the error stays, run sortkey.reserve_for_copy at the original with another note and more numbers.';
        END IF;
        PERFORM sortkey.reserve_node(p.pool, p.number, note) FROM unnest(used.formats) f CROSS JOIN LATERAL sortkey_internal.node_pools(f, node) p;
        IF used.from_setting THEN
            RETURN NEXT format('ALTER DATABASE %I SET sortkey.node = %s', current_database(), node);
            CONTINUE;
        END IF;
        FOR d IN SELECT DISTINCT n.kind, n.name, n.expression FROM sortkey.node_defaults n WHERE NOT n.from_setting AND n.format = used.formats[1] ORDER BY 1, 2 LOOP
            part := CASE WHEN d.kind <> 'function' THEN parse_ident(d.name) END;
            changed := CASE WHEN d.kind <> 'function' AND d.expression ~ format('^sortkey[.]next_%s[(][0-9]+(, [0-9]+)?[)]$', used.formats[1])
                THEN format('sortkey.next_%s(%s%s)', used.formats[1], node, substring(d.expression FROM ', [0-9]+')) END;
            RETURN NEXT CASE WHEN changed IS NULL THEN translate(format('-- give %s %s the number %s: %s', d.kind, d.name, node, d.expression), chr(10) || chr(13), '  ')
                WHEN d.kind = 'domain' THEN format('ALTER DOMAIN %I.%I SET DEFAULT %s', part[1], part[2], changed)
                ELSE format('ALTER TABLE %I.%I ALTER COLUMN %I SET DEFAULT %s', part[1], part[2], part[3], changed) END;
        END LOOP;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION sortkey.confirm_copy(jsonb, boolean) FROM PUBLIC;
COMMENT ON FUNCTION sortkey.confirm_copy IS 'Makes this database a copy that uses only the node numbers that reserve_for_copy returned at its original. Returns the statements that change the defaults.';
-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('sortkey.node_defaults'::regclass, 'sortkey.node_problems'::regclass, 'sortkey.node_home'::regclass, 'sortkey.database_problems'::regclass)
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('prepare_citus_worker', 'confirm_original', 'reserve_for_copy', 'confirm_copy')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

GRANT SELECT ON sortkey.node_defaults, sortkey.node_problems, sortkey.database_problems TO PUBLIC; -- Check reads them
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (2, 'nodes');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 3. snowflake
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- Snowflake, a bigint:
--
--     0 | milliseconds since 2021-01-01T00:00:00.000Z : 41 | datacenter : 5 | worker : 5 | sequence : 12
--
-- It lasts until 2090-09-07T15:47:35.551Z. The node number is the number in the bits of datacenter and worker.

INSERT INTO sortkey.layout (format, layout) VALUES ('snowflake', 'epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12');

CREATE DOMAIN sortkey.snowflake AS bigint
    CONSTRAINT snowflake_is_positive CHECK (VALUE > 0);
COMMENT ON DOMAIN sortkey.snowflake IS 'A 64-bit ID that sorts by time. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

CREATE FUNCTION sortkey.snowflake_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN to_timestamp(((id >> 22) + 1609459200000) / 1000::float8) END;
COMMENT ON FUNCTION sortkey.snowflake_time(bigint) IS 'Returns the time of an ID, or NULL if it is negative.';

CREATE FUNCTION sortkey.snowflake_node(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN ((id >> 12) & 1023)::integer END;
COMMENT ON FUNCTION sortkey.snowflake_node(bigint) IS 'Returns the node number of an ID, or NULL if the ID is negative.';

CREATE FUNCTION sortkey.snowflake_parts(
    id bigint, OUT "time" timestamptz, OUT datacenter integer, OUT worker integer, OUT sequence integer
)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF id < 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is not a Snowflake; want 0 or greater', id);
    END IF;
    "time" := to_timestamp(((id >> 22) + 1609459200000) / 1000::float8);
    datacenter := (id >> 17) & 31;
    worker := (id >> 12) & 31;
    sequence := id & 4095;
END
$$;
COMMENT ON FUNCTION sortkey.snowflake_parts(bigint) IS 'Returns the parts of an ID, or raises an error if it is negative.';

CREATE FUNCTION sortkey.snowflake_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN 0;
    ELSIF t = 'infinity' THEN
        RETURN 9223372036854775807;
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - 1609459200000 / 1000.0) * 1000);
    IF unit < 0 OR unit > 2199023255551 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for Snowflake (2021-01-01T00:00:00.000Z to 2090-09-07T15:47:35.551Z)',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
    RETURN unit::bigint << 22;
END
$$;
COMMENT ON FUNCTION sortkey.snowflake_floor(timestamptz) IS
    'Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time: id >= snowflake_floor(t1) AND id < snowflake_floor(t2).';

CREATE SEQUENCE sortkey_internal.snowflake_clock START WITH 16384;
COMMENT ON SEQUENCE sortkey_internal.snowflake_clock IS 'The state of next_snowflake: a window of time and a counter. Setting it by hand can cause duplicate IDs.';

-- Returns the bits of a node number in an ID.
CREATE FUNCTION sortkey_internal.snowflake_node_bits(node integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF node BETWEEN 0 AND 1023 THEN
        RETURN node::bigint << 12;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('node number %s of Snowflake is out of range (0 to 1023)', coalesce(node::text, 'NULL'));
END
$$;

-- Returns the bits of the node number in the setting sortkey.node. use_node() checks the number once per session, and
-- stores the bits in a setting of the session. The mask keeps a forged one from changing the other bits.
CREATE FUNCTION sortkey_internal.snowflake_node_bits() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN 4190208
        & coalesce(nullif(current_setting('sortkey.snowflake_node', true), '' COLLATE "C")::bigint, sortkey_internal.use_node('snowflake', 1023));

-- Returns the end of the last window with IDs, in Unix milliseconds. Only the owner can read the sequence.
CREATE FUNCTION sortkey_internal.snowflake_last_ms() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT 1609459200000 + ((c.last_value >> 24) + 1) * 4 FROM sortkey_internal.snowflake_clock c);

-- Returns the bits of a value of the clock in an ID.
CREATE FUNCTION sortkey_internal.snowflake_bits(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN (value & 9223372036838002687) | ((value & 12288) << 10);

-- Returns an ID of a later window, or an error if the node number is out of range.
CREATE FUNCTION sortkey_internal.snowflake_later(node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN sortkey_internal.snowflake_node_bits((node_bits >> 12)::integer) | sortkey_internal.snowflake_bits(sortkey_internal.advance('sortkey_internal.snowflake_clock', '2021-01-01 00:00:00.000+00', 4, 24, 14, 0));
END
$$;

-- Returns the ID of a value, if it is fresh and the node number is in range.
CREATE FUNCTION sortkey_internal.snowflake_of(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN (((value - (((tstzrange_subdiff(clock_timestamp(), '2021-01-01 00:00:00.001999+00') * 250)::bigint & 549755813887) << 24)) & -50348032) | (node_bits & -4190209)) = 0
        THEN sortkey_internal.snowflake_bits(value) | node_bits ELSE sortkey_internal.snowflake_later(node_bits) END;

-- The same in PL/pgSQL, so that the value is evaluated only once. PL/pgSQL inlines the SQL function. The body has no
-- operators and names the schema of every function, so it doesn't depend on the caller's search_path; setting one would take
-- as long as nextval(). STABLE avoids snapshots, and leaves nextval() as the only volatile function of a default, without
-- which COPY would insert each row by itself.
CREATE FUNCTION sortkey_internal.snowflake_id(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN sortkey_internal.snowflake_of(value, node_bits);
END
$$;

CREATE FUNCTION sortkey.next_snowflake() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.snowflake_id(nextval('sortkey_internal.snowflake_clock'), sortkey_internal.snowflake_node_bits());
COMMENT ON FUNCTION sortkey.next_snowflake() IS
    'Generates an ID, for the default of a column, with the node number in the setting sortkey.node (0 to 1023). Set a number with ALTER DATABASE that no program or other database uses, and reserve it with reserve_node.';

CREATE FUNCTION sortkey.next_snowflake(node integer) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.snowflake_id(nextval('sortkey_internal.snowflake_clock'), node::bigint << 12);
COMMENT ON FUNCTION sortkey.next_snowflake(integer) IS
    'Generates an ID, for the default of a column, with the given node number (0 to 1023). No program or other database may use that number.';

CREATE FUNCTION sortkey.snowflake_at(t timestamptz, n integer, node integer DEFAULT NULL) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.not_zero('Snowflake', sortkey.snowflake_floor(t)
        | CASE WHEN node IS NULL THEN sortkey_internal.snowflake_node_bits() ELSE sortkey_internal.snowflake_node_bits(node) END
        | sortkey_internal.sequence_bits('Snowflake', t, n, 4095), 0::bigint);
COMMENT ON FUNCTION sortkey.snowflake_at IS
    'Returns the ID of a past time with sequence number n (0 to 4095), for existing rows. Reserve the node number, by default the setting sortkey.node, for this purpose: the function does not know the IDs that were generated at that time.';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = 'sortkey_internal.snowflake_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('next_snowflake', 'next_snowflake_meta')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Callers of next_snowflake need nextval() for its sequence. Only the owner has UPDATE, for setval().
GRANT USAGE ON SEQUENCE sortkey_internal.snowflake_clock TO PUBLIC;
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (3, 'snowflake');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 4. snowflake_si
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- SnowflakeSI, a bigint of 53 bits, which a JavaScript number represents exactly.

CREATE DOMAIN sortkey.snowflake_si AS bigint
    CONSTRAINT snowflake_si_is_positive_and_53_bits CHECK (VALUE BETWEEN 1 AND 9007199254740991);
COMMENT ON DOMAIN sortkey.snowflake_si IS 'A 53-bit ID that sorts by time. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

-- The format counts time from a base clock, which is a setting of the installation. Without it, there are no functions.

INSERT INTO sortkey.revision (version, name) VALUES (4, 'snowflake_si');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 5. uid60
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- UID60, a bigint:
--
--     0000 | milliseconds since 2018-03-01T00:00:00.000Z : 42 | sequence : 9 | random : 9
--
-- It lasts until 2157-07-13T07:35:11.103Z. Its text is the number in base64url without leading A digits, but with at least four
-- digits. The last two digits are moved to the front.

CREATE DOMAIN sortkey.uid60 AS bigint
    CONSTRAINT uid60_is_positive_and_60_bits CHECK (VALUE BETWEEN 1 AND 1152921504606846975);
COMMENT ON DOMAIN sortkey.uid60 IS 'A 60-bit ID that sorts by time, with a text of 10 characters. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

CREATE FUNCTION sortkey.uid60_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 1152921504606846975 THEN to_timestamp(((id >> 18) + 1519862400000) / 1000::float8) END;
COMMENT ON FUNCTION sortkey.uid60_time(bigint) IS 'Returns the time of an ID, or NULL if the number is not an ID.';

CREATE FUNCTION sortkey.uid60_parts(id bigint, OUT "time" timestamptz, OUT sequence integer, OUT random integer)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF id NOT BETWEEN 0 AND 1152921504606846975 THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is not a UID60; want 0 to 1152921504606846975', id);
    END IF;
    "time" := to_timestamp(((id >> 18) + 1519862400000) / 1000::float8);
    sequence := (id >> 9) & 511;
    random := id & 511;
END
$$;
COMMENT ON FUNCTION sortkey.uid60_parts(bigint) IS 'Returns the parts of an ID, or raises an error if the number is not an ID.';

-- It moves the last 12 of the 60 bits to the front and takes the first 10 digits of base64. IDs since May 2020 have all
-- 10 digits. In a smaller ID, the digits after the first two lose their leading A digits; the last two digits stay.
CREATE FUNCTION sortkey.uid60_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN id BETWEEN 18014398509481984 AND 1152921504606846975 THEN
            translate(substr(encode(int8send(((id & 4095) << 52) | ((id >> 12) << 4)), 'base64'), 1, 10), '+/', '-_')
        WHEN id BETWEEN 0 AND 18014398509481983 THEN
            translate(
                substr(encode(int8send(id << 4), 'base64'), 9, 2)
                    || ltrim(substr(encode(int8send(id << 4), 'base64'), 1, 6), 'A')
                    || substr(encode(int8send(id << 4), 'base64'), 7, 2),
                '+/', '-_')
        END;
COMMENT ON FUNCTION sortkey.uid60_text(bigint) IS 'Returns the text of an ID, or NULL if the number is not an ID.';

CREATE FUNCTION sortkey.uid60_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    digits text;
    id bigint;
BEGIN
    IF s COLLATE "C" ~ '^[A-Za-z0-9_-]{4,10}$' THEN
        -- Base64, with an eleventh digit that completes 8 bytes.
        digits := translate(lpad(substr(s, 3) || left(s, 2), 10, 'A') || 'A=', '-_', '+/');
        id := (('x' || encode(decode(digits, 'base64'), 'hex'))::bit(64)::bigint >> 4) & 1152921504606846975;
        IF length(s) = 10 OR s COLLATE "C" = sortkey.uid60_text(id) THEN
            RETURN id;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as UID60; want 4 to 10 digits [A-Za-z0-9_-]', left(s, 64)),
        HINT = 'Only the 10-digit form has leading zeros, written as A.';
END
$$;
COMMENT ON FUNCTION sortkey.uid60_from_text(text) IS 'Parses the output of uid60_text, and the same text padded with A to 10 digits. Raises an error for other texts.';

CREATE FUNCTION sortkey.uid60_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN 0;
    ELSIF t = 'infinity' THEN
        RETURN 1152921504606846975;
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - 1519862400000 / 1000.0) * 1000);
    IF unit < 0 OR unit > 4398046511103 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for UID60 (2018-03-01T00:00:00.000Z to 2157-07-13T07:35:11.103Z)',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
    RETURN unit::bigint << 18;
END
$$;
COMMENT ON FUNCTION sortkey.uid60_floor(timestamptz) IS
    'Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time.';

CREATE SEQUENCE sortkey_internal.uid60_clock START WITH 2048;
COMMENT ON SEQUENCE sortkey_internal.uid60_clock IS 'The state of next_uid60: a window of time and a counter. Setting it by hand can cause duplicate IDs.';

-- Returns the bits of a value of the clock in an ID.
CREATE FUNCTION sortkey_internal.uid60_bits(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN (value >> 23 << 20) | ((value & 2047) << 9);

-- Returns an ID of a later window, without its random bits.
CREATE FUNCTION sortkey_internal.uid60_later() RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN sortkey_internal.uid60_bits(sortkey_internal.advance('sortkey_internal.uid60_clock', '2018-03-01 00:00:00.000+00', 4, 23, 11, uuid_hash(gen_random_uuid()) & 255));
END
$$;

-- Returns the ID of a value, if it is fresh. The random bits are a hash of 122 random ones.
CREATE FUNCTION sortkey_internal.uid60_of(value bigint) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN ((value - (((tstzrange_subdiff(clock_timestamp(), '2018-03-01 00:00:00.001999+00') * 250)::bigint & 1099511627775) << 23)) & -25167872) = 0
        THEN sortkey_internal.uid60_bits(value) ELSE sortkey_internal.uid60_later() END
        | (uuid_hash(gen_random_uuid()) & 511);

-- The same in PL/pgSQL, so that the value is evaluated only once. PL/pgSQL inlines the SQL function. The body has no
-- operators and names the schema of every function, so it doesn't depend on the caller's search_path; setting one would take
-- as long as nextval(). STABLE avoids snapshots, and leaves nextval() as the only volatile function of a default, without
-- which COPY would insert each row by itself.
CREATE FUNCTION sortkey_internal.uid60_id(value bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN sortkey_internal.uid60_of(value);
END
$$;

CREATE FUNCTION sortkey.next_uid60() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.uid60_id(nextval('sortkey_internal.uid60_clock'));
COMMENT ON FUNCTION sortkey.next_uid60() IS
    'Generates an ID, for the default of a column. The format has no node numbers. To make collisions with other databases and programs unlikely, 9 bits of each ID are random, and the sequence starts at a random number every 4 ms or more.';

CREATE FUNCTION sortkey.uid60_at(t timestamptz, n integer) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.not_zero('UID60', sortkey.uid60_floor(t) | (sortkey_internal.sequence_bits('UID60', t, n, 511) << 9)
        | floor(random() * 512)::bigint, 0::bigint);
COMMENT ON FUNCTION sortkey.uid60_at(timestamptz, integer) IS
    'Returns an ID of a past time with sequence number n (0 to 511) and random bits, for existing rows. It can equal an ID that was generated at that time.';
-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = 'sortkey_internal.uid60_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('next_uid60', 'next_uid60_meta')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Callers of next_uid60 need nextval() for its sequence. Only the owner has UPDATE, for setval().
GRANT USAGE ON SEQUENCE sortkey_internal.uid60_clock TO PUBLIC;
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (5, 'uid60');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 6. spread64
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- Spread64, a bigint. Half of the IDs are negative:
--
--     milliseconds since 1970 : 42, the bits in reverse | sequence : 6 | 000000 | generator : 6 | cluster : 4
--
-- It lasts until 2109-05-15T07:35:11.103Z. By design, IDs do not sort by time, so there is no floor function. The node number is
-- generator << 4 | cluster.

CREATE DOMAIN sortkey.spread64 AS bigint
    CONSTRAINT spread64_is_not_zero CHECK (VALUE <> 0)
    CONSTRAINT spread64_has_no_reserved_bits CHECK ((VALUE & 64512) = 0);
COMMENT ON DOMAIN sortkey.spread64 IS 'A 64-bit ID that spreads over all bigint values, with a text of 16 hexadecimal digits. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

-- The function reverses the upper 42 bits: 5 bytes and 2 bits. Multiplication by 0x0202020202 makes 5 copies of a byte, and the
-- mask 0x010884422010 selects each bit once. Modulo 1023, which adds groups of 10 bits, yields them in reverse order.
CREATE FUNCTION sortkey.spread64_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_timestamp(((
            (((((id >> 56) & 255) * 8623620610) & 1136090292240) % 1023)
            | ((((((id >> 48) & 255) * 8623620610) & 1136090292240) % 1023) << 8)
            | ((((((id >> 40) & 255) * 8623620610) & 1136090292240) % 1023) << 16)
            | ((((((id >> 32) & 255) * 8623620610) & 1136090292240) % 1023) << 24)
            | ((((((id >> 24) & 255) * 8623620610) & 1136090292240) % 1023) << 32)
            | (((id >> 23) & 1) << 40)
            | (((id >> 22) & 1) << 41)
        ) + 0) / 1000::float8);
COMMENT ON FUNCTION sortkey.spread64_time(bigint) IS 'Returns the time of an ID.';

CREATE FUNCTION sortkey.spread64_node(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (id & 1023)::integer;
COMMENT ON FUNCTION sortkey.spread64_node(bigint) IS 'Returns the node number of an ID: generator << 4 | cluster.';

CREATE FUNCTION sortkey.spread64_parts(
    id bigint, OUT "time" timestamptz, OUT sequence integer, OUT generator integer, OUT cluster integer
)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (id & 64512) <> 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is not a Spread64; want zero in bits 10 to 15', id);
    END IF;
    "time" := sortkey.spread64_time(id);
    sequence := (id >> 16) & 63;
    generator := (id >> 4) & 63;
    cluster := id & 15;
END
$$;
COMMENT ON FUNCTION sortkey.spread64_parts(bigint) IS 'Returns the parts of an ID, or raises an error if a reserved bit is set.';

CREATE FUNCTION sortkey.spread64_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (id & 64512) = 0 THEN encode(int8send(id), 'hex') END;
COMMENT ON FUNCTION sortkey.spread64_text(bigint) IS 'Returns the 16 hexadecimal digits of an ID, or NULL if a reserved bit is set.';

CREATE FUNCTION sortkey.spread64_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    IF s COLLATE "C" ~ '^[0-9a-f]{16}$' THEN
        id := ('x' || s)::bit(64)::bigint;
        IF (id & 64512) = 0 THEN
            RETURN id;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as Spread64; want 16 digits [0-9a-f] with zero in bits 10 to 15', left(s, 64)),
        HINT = 'Use lower-case digits.';
END
$$;
COMMENT ON FUNCTION sortkey.spread64_from_text(text) IS 'Parses the output of spread64_text. Raises an error for other texts.';

CREATE SEQUENCE sortkey_internal.spread64_clock START WITH 256;
COMMENT ON SEQUENCE sortkey_internal.spread64_clock IS 'The state of next_spread64: a window of time and a counter. Setting it by hand can cause duplicate IDs.';

-- Returns the bits of a unit of time in an ID.
CREATE FUNCTION sortkey_internal.spread64_time_bits(unit bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN reverse(unit::bit(42)::text)::bit(42)::bit(64)::bigint;

-- Returns the bits of a node number in an ID.
CREATE FUNCTION sortkey_internal.spread64_node_bits(node integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF node BETWEEN 0 AND 1023 THEN
        RETURN node::bigint << 0;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('node number %s of Spread64 is out of range (0 to 1023)', coalesce(node::text, 'NULL'));
END
$$;

-- Returns the bits of the node number in the setting sortkey.node. use_node() checks the number once per session, and
-- stores the bits in a setting of the session. The mask keeps a forged one from changing the other bits.
CREATE FUNCTION sortkey_internal.spread64_node_bits() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN 1023
        & coalesce(nullif(current_setting('sortkey.spread64_node', true), '' COLLATE "C")::bigint, sortkey_internal.use_node('spread64', 1023));

-- Returns the end of the last window with IDs, in Unix milliseconds. Only the owner can read the sequence.
CREATE FUNCTION sortkey_internal.spread64_last_ms() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT 0 + ((c.last_value >> 23) + 1) * 4 FROM sortkey_internal.spread64_clock c);

-- Returns the bits of a value of the clock in an ID.
CREATE FUNCTION sortkey_internal.spread64_bits(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN sortkey_internal.spread64_time_bits((value >> 23 << 2) | ((value >> 6) & 3)) | ((value & 63) << 16);

-- Returns an ID of a later window, or an error if the node number is out of range.
CREATE FUNCTION sortkey_internal.spread64_later(node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN sortkey_internal.spread64_node_bits((node_bits >> 0)::integer) | sortkey_internal.spread64_bits(sortkey_internal.advance('sortkey_internal.spread64_clock', '1970-01-01 00:00:00.000+00', 4, 23, 8, 0));
END
$$;

-- Returns the ID of a value, if it is fresh and the node number is in range.
CREATE FUNCTION sortkey_internal.spread64_of(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN (((value - (((tstzrange_subdiff(clock_timestamp(), '1970-01-01 00:00:00.001999+00') * 250)::bigint & 1099511627775) << 23)) & -25166080) | (node_bits & -1024)) = 0
        THEN sortkey_internal.spread64_bits(value) | node_bits ELSE sortkey_internal.spread64_later(node_bits) END;

-- The same in PL/pgSQL, so that the value is evaluated only once. PL/pgSQL inlines the SQL function. The body has no
-- operators and names the schema of every function, so it doesn't depend on the caller's search_path; setting one would take
-- as long as nextval(). STABLE avoids snapshots, and leaves nextval() as the only volatile function of a default, without
-- which COPY would insert each row by itself.
CREATE FUNCTION sortkey_internal.spread64_id(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN sortkey_internal.spread64_of(value, node_bits);
END
$$;

CREATE FUNCTION sortkey.next_spread64() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.spread64_id(nextval('sortkey_internal.spread64_clock'), sortkey_internal.spread64_node_bits());
COMMENT ON FUNCTION sortkey.next_spread64() IS
    'Generates an ID, for the default of a column, with the node number in the setting sortkey.node (0 to 1023). Set a number with ALTER DATABASE that no program or other database uses, and reserve it with reserve_node.';

CREATE FUNCTION sortkey.next_spread64(node integer) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.spread64_id(nextval('sortkey_internal.spread64_clock'), node::bigint << 0);
COMMENT ON FUNCTION sortkey.next_spread64(integer) IS
    'Generates an ID, for the default of a column, with the given node number (0 to 1023). No program or other database may use that number.';

-- Returns the unit of a finite time.
CREATE FUNCTION sortkey_internal.spread64_unit(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN 0;
    ELSIF t = 'infinity' THEN
        RETURN 4398046511103;
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - 0 / 1000.0) * 1000);
    IF unit < 0 OR unit > 4398046511103 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for Spread64 (1970-01-01T00:00:00.000Z to 2109-05-15T07:35:11.103Z)',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
    RETURN unit;
END
$$;

CREATE FUNCTION sortkey.spread64_at(t timestamptz, n integer, node integer DEFAULT NULL) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.not_zero('Spread64', sortkey_internal.spread64_time_bits(sortkey_internal.spread64_unit(t))
        | (sortkey_internal.sequence_bits('Spread64', t, n, 63) << 16)
        | CASE WHEN node IS NULL THEN sortkey_internal.spread64_node_bits() ELSE sortkey_internal.spread64_node_bits(node) END, 0::bigint);
COMMENT ON FUNCTION sortkey.spread64_at IS
    'Returns the ID of a past time with sequence number n (0 to 63), for existing rows. Reserve the node number, by default the setting sortkey.node, for this purpose: the function does not know the IDs that were generated at that time.';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = 'sortkey_internal.spread64_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('next_spread64', 'next_spread64_meta')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Callers of next_spread64 need nextval() for its sequence. Only the owner has UPDATE, for setval().
GRANT USAGE ON SEQUENCE sortkey_internal.spread64_clock TO PUBLIC;
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (6, 'spread64');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 7. sno
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- Sno, 80 bits:
--
--     4 ms units since 2010-01-01T00:00:00.000Z : 39 | tick-tock : 1 | metabyte : 8 | partition : 16 | sequence : 16
--
-- It lasts until 2079-09-07T15:47:35.551Z. The node number is the partition. Its text has 16 digits of 5 bits each, from the alphabet 23456789abcdefghijklmnopqrstuvwx.
-- The uuid that stores it has these 16 ASCII characters as its bytes. So the text, the bytes and the uuid sort alike.

CREATE DOMAIN sortkey.sno AS uuid
    CONSTRAINT sno_is_not_zero CHECK (VALUE <> '32323232-3232-3232-3232-323232323232')
    CONSTRAINT sno_has_digits_for_bytes CHECK (btrim(uuid_send(VALUE), '23456789abcdefghijklmnopqrstuvwx') = '');
COMMENT ON DOMAIN sortkey.sno IS 'An 80-bit ID that sorts by time. The bytes of the uuid are the 16 characters of its text. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

-- Collation "C" sorts by time. Other collations put letters before digits or ignore case.
CREATE DOMAIN sortkey.sno_as_text AS text COLLATE "C"
    CONSTRAINT sno_as_text_is_not_zero CHECK (VALUE <> '2222222222222222')
    CONSTRAINT sno_as_text_has_16_digits CHECK (octet_length(VALUE) = 16 AND btrim(VALUE, '23456789abcdefghijklmnopqrstuvwx') = '');
COMMENT ON DOMAIN sortkey.sno_as_text IS 'The text of a sno, for columns that must be text. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

-- The time is in the first 8 digits, without their last bit. The value of a digit is its character minus 50 (the code
-- of '2'), or minus 89 for a letter. Both are equal modulo 39, and every value is less than 39.
CREATE FUNCTION sortkey.sno_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN
        to_timestamp((((
                (((get_byte(uuid_send(id), 0) - 50) % 39)::bigint << 35)
                | (((get_byte(uuid_send(id), 1) - 50) % 39)::bigint << 30)
                | (((get_byte(uuid_send(id), 2) - 50) % 39) << 25)
                | (((get_byte(uuid_send(id), 3) - 50) % 39) << 20)
                | (((get_byte(uuid_send(id), 4) - 50) % 39) << 15)
                | (((get_byte(uuid_send(id), 5) - 50) % 39) << 10)
                | (((get_byte(uuid_send(id), 6) - 50) % 39) << 5)
                | ((get_byte(uuid_send(id), 7) - 50) % 39)
            ) >> 1) * 4 + 1262304000000) / 1000::float8)
        END;
COMMENT ON FUNCTION sortkey.sno_time(uuid) IS 'Returns the time of an ID, in units of 4 ms, or NULL if the uuid is not a sno.';

-- The partition is in the last bits of digit 9, digits 10 to 11, and the first bits of digit 12.
CREATE FUNCTION sortkey.sno_node(id uuid) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN
        ((((get_byte(uuid_send(id), 9) - 50) % 39) & 3) << 14)
        | (((get_byte(uuid_send(id), 10) - 50) % 39) << 9)
        | (((get_byte(uuid_send(id), 11) - 50) % 39) << 4)
        | (((get_byte(uuid_send(id), 12) - 50) % 39) >> 1)
        END;
COMMENT ON FUNCTION sortkey.sno_node(uuid) IS 'Returns the node number of an ID, its partition, or NULL if the uuid is not a sno.';

CREATE FUNCTION sortkey.sno_parts(
    id uuid, OUT "time" timestamptz, OUT tick_tock boolean, OUT meta integer, OUT partition integer, OUT sequence integer
)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    half bigint;
    parts bigint[];
BEGIN
    IF btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') <> '' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
            MESSAGE = format('%s is not a Sno; want a uuid whose 16 bytes are digits [2-9a-x]', id);
    END IF;
    -- For each half: convert 8 characters to 8 digits, 5 bits per byte, then pack them to 4 x 10, 2 x 20 and 40 bits.
    FOREACH half IN ARRAY ARRAY[
        ('x' || encode(substr(uuid_send(id), 1, 8), 'hex'))::bit(64)::bigint,
        ('x' || encode(substr(uuid_send(id), 9, 8), 'hex'))::bit(64)::bigint]
    LOOP
        half := half - 3617008641903833650 - 39 * ((half >> 6) & 72340172838076673);
        half := ((half & 2233819500556328704) >> 3) | (half & 8725857424048159);
        half := ((half & 287948901242044416) >> 6) | (half & 4393751544831);
        parts := parts || (((half >> 32) << 20) | (half & 1048575));
    END LOOP;
    "time" := to_timestamp(((parts[1] >> 1) * 4 + 1262304000000) / 1000::float8);
    tick_tock := (parts[1] & 1) = 1;
    meta := parts[2] >> 32;
    partition := (parts[2] >> 16) & 65535;
    sequence := parts[2] & 65535;
END
$$;
COMMENT ON FUNCTION sortkey.sno_parts(uuid) IS 'Returns the parts of an ID, or raises an error if the uuid is not a sno.';

CREATE FUNCTION sortkey.sno_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN encode(uuid_send(id), 'escape') END;
COMMENT ON FUNCTION sortkey.sno_text(uuid) IS 'Returns the 16 digits of an ID, or NULL if the uuid is not a sno.';

CREATE FUNCTION sortkey.sno_from_text(s text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF s COLLATE "C" ~ '^[2-9a-x]{16}$' THEN
        RETURN encode(s::bytea, 'hex')::uuid;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as Sno; want 16 digits [2-9a-x]', left(s, 64)),
        HINT = 'Use lower-case digits.';
END
$$;
COMMENT ON FUNCTION sortkey.sno_from_text(text) IS 'Parses the output of sno_text. Raises an error for other texts.';

-- Spreads 40 bits to 8 digits of 5 bits, one per byte.
CREATE FUNCTION sortkey_internal.sno_digits(bits bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN (bits & 31) | ((bits << 3) & 7936) | ((bits << 6) & 2031616) | ((bits << 9) & 520093696)
        | ((bits << 12) & 133143986176) | ((bits << 15) & 34084860461056) | ((bits << 18) & 8725724278030336)
        | ((bits << 21) & 2233785415175766016);

-- Converts 8 digits to the hexadecimal codes of their characters. The character of a digit is '2' plus the digit, plus 39
-- for letters, which are the digits from 8 on.
CREATE FUNCTION sortkey_internal.sno_hex(digits bigint) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN to_hex(digits + 3617008641903833650 + 39 * (((digits + 1736164148113840152) >> 5) & 72340172838076673));

CREATE FUNCTION sortkey.sno_floor(t timestamptz) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN '32323232-3232-3232-3232-323232323232';
    ELSIF t = 'infinity' THEN
        RETURN '78787878-7878-7878-7878-787878787878';
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - 1262304000000 / 1000.0) * 250);
    IF unit < 0 OR unit > 549755813887 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for Sno (2010-01-01T00:00:00.000Z to 2079-09-07T15:47:35.551Z)',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
    -- Unpack 40 bits to 2 x 20, 4 x 10 and 8 x 5 bits, and then to characters. The functions of sortkey_internal are not
    -- available here, since a PL/pgSQL function finds functions with the privileges of its caller.
    DECLARE
        digits bigint := unit::bigint << 1;
    BEGIN
        digits := ((digits >> 20) << 32) | (digits & 1048575);
        digits := ((digits & 4499201581906944) << 6) | (digits & 4393751544831);
        digits := ((digits & 279227437569541088) << 3) | (digits & 8725857424048159);
        digits := digits + 3617008641903833650 + 39 * (((digits + 1736164148113840152) >> 5) & 72340172838076673);
        RETURN (to_hex(digits) || '3232323232323232')::uuid;
    END;
END
$$;
COMMENT ON FUNCTION sortkey.sno_floor(timestamptz) IS
    'Returns the lowest ID of the 4 ms that contain t, for any metabyte and node: a bound for partitions and for queries by time. It is also the encoder for pg_partman 5.2 and later.';

CREATE FUNCTION sortkey.sno_partman_decoder(s text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN sortkey.sno_time(s::uuid);
COMMENT ON FUNCTION sortkey.sno_partman_decoder(text) IS 'The decoder for pg_partman 5.2 and later. The encoder is sno_floor.';

CREATE SEQUENCE sortkey_internal.sno_clock START WITH 65536;
COMMENT ON SEQUENCE sortkey_internal.sno_clock IS 'The state of next_sno: a window of time and a counter. Setting it by hand can cause duplicate IDs.';

-- Returns the digits of a node number and a metabyte in the second half of an ID.
CREATE FUNCTION sortkey_internal.sno_node_bits(node integer, meta integer DEFAULT 0) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bits bigint := (meta::bigint << 32) | (node::bigint << 16);
BEGIN
    IF node BETWEEN 0 AND 65535 AND meta BETWEEN 0 AND 255 THEN
        RETURN ((bits << 6) & 2031616) | ((bits << 9) & 520093696) | ((bits << 12) & 133143986176)
            | ((bits << 15) & 34084860461056) | ((bits << 18) & 8725724278030336) | ((bits << 21) & 2233785415175766016);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = CASE WHEN node BETWEEN 0 AND 65535 THEN format('metabyte %s is out of range (0 to 255)', coalesce(meta::text, 'NULL'))
            ELSE format('node number %s of Sno is out of range (0 to 65535)', coalesce(node::text, 'NULL')) END;
END
$$;

-- Returns the bits of the node number in the setting sortkey.node. use_node() checks the number once per session, and
-- stores the bits in a setting of the session. The mask keeps a forged one from changing the other bits.
CREATE FUNCTION sortkey_internal.sno_node_bits() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN 878643437895680
        & coalesce(nullif(current_setting('sortkey.sno_node', true), '' COLLATE "C")::bigint, sortkey_internal.use_node('sno', 65535));

-- Returns the end of the last window with IDs, in Unix milliseconds. Only the owner can read the sequence.
CREATE FUNCTION sortkey_internal.sno_last_ms() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT 1262304000000 + ((c.last_value >> 24) + 1) * 4 FROM sortkey_internal.sno_clock c);

-- Returns the first 8 digits for a value of the clock: its time, and a tick-tock bit of zero, since this clock never steps back.
CREATE FUNCTION sortkey_internal.sno_high(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN ((value >> 23) & 30) | ((value >> 20) & 7936) | ((value >> 17) & 2031616) | ((value >> 14) & 520093696)
        | ((value >> 11) & 133143986176) | ((value >> 8) & 34084860461056) | ((value >> 5) & 8725724278030336)
        | ((value >> 2) & 2233785415175766016);

-- Returns the last 8 digits: the metabyte, the node number, and the sequence number of a value.
CREATE FUNCTION sortkey_internal.sno_low(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN node_bits | (value & 31) | ((value << 3) & 7936) | ((value << 6) & 2031616) | ((value << 9) & 16777216);

CREATE FUNCTION sortkey_internal.sno_of(high bigint, low bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    RETURN (sortkey_internal.sno_hex(high) || sortkey_internal.sno_hex(low))::uuid;

-- Returns an ID of a later window.
CREATE FUNCTION sortkey_internal.sno_later(node_bits bigint) RETURNS uuid
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    value bigint := sortkey_internal.advance('sortkey_internal.sno_clock', '2010-01-01 00:00:00.000+00', 4, 24, 16, 0);
BEGIN
    RETURN sortkey_internal.sno_of(sortkey_internal.sno_high(value), sortkey_internal.sno_low(value, node_bits));
END
$$;

-- Returns the ID of these digits, if their value is fresh.
CREATE FUNCTION sortkey_internal.sno_of(value bigint, node_bits bigint, high bigint, low bigint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN ((value - (((tstzrange_subdiff(clock_timestamp(), '2010-01-01 00:00:00.001999+00') * 250)::bigint & 549755813887) << 24)) & -50397184) = 0
        THEN sortkey_internal.sno_of(high, low) ELSE sortkey_internal.sno_later(node_bits) END;

-- The same in PL/pgSQL, so that the value is evaluated only once. PL/pgSQL inlines the SQL function. The body has no
-- operators and names the schema of every function, so it doesn't depend on the caller's search_path; setting one would take
-- as long as nextval(). STABLE avoids snapshots, and leaves nextval() as the only volatile function of a default, without
-- which COPY would insert each row by itself.
CREATE FUNCTION sortkey_internal.sno_id(value bigint, node_bits bigint) RETURNS uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
DECLARE
    high bigint := sortkey_internal.sno_high(value);
    low bigint := sortkey_internal.sno_low(value, node_bits);
BEGIN
    RETURN sortkey_internal.sno_of(value, node_bits, high, low);
END
$$;

CREATE FUNCTION sortkey.next_sno() RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.sno_id(nextval('sortkey_internal.sno_clock'), sortkey_internal.sno_node_bits(0, 0) | sortkey_internal.sno_node_bits());
COMMENT ON FUNCTION sortkey.next_sno() IS
    'Generates an ID, for the default of a column, with the node number in the setting sortkey.node (0 to 65535), as its partition. Set a number with ALTER DATABASE that no program or other database uses, and reserve it with reserve_node.';

CREATE FUNCTION sortkey.next_sno(node integer, meta integer DEFAULT 0) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.sno_id(nextval('sortkey_internal.sno_clock'), sortkey_internal.sno_node_bits(node, meta));
COMMENT ON FUNCTION sortkey.next_sno(integer, integer) IS
    'Generates an ID, for the default of a column, with a node number (0 to 65535), as its partition, and a metabyte (0 to 255). No program or other database may use that number.';

-- Not an overload of next_sno, whose only argument is a node number.
CREATE FUNCTION sortkey.next_sno_meta(meta integer) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.sno_id(nextval('sortkey_internal.sno_clock'), sortkey_internal.sno_node_bits(0, meta) | sortkey_internal.sno_node_bits());
COMMENT ON FUNCTION sortkey.next_sno_meta(integer) IS
    'Generates an ID as next_sno() does, with a metabyte (0 to 255).';

CREATE FUNCTION sortkey.sno_at(t timestamptz, n integer, node integer DEFAULT NULL, meta integer DEFAULT 0) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN sortkey_internal.not_zero('Sno', (left(encode(uuid_send(sortkey.sno_floor(t)), 'hex'), 16) || sortkey_internal.sno_hex(
        CASE WHEN node IS NULL THEN sortkey_internal.sno_node_bits(0, meta) | sortkey_internal.sno_node_bits() ELSE sortkey_internal.sno_node_bits(node, meta) END
        | sortkey_internal.sno_digits(sortkey_internal.sequence_bits('Sno', t, n, 65535))))::uuid, '32323232-3232-3232-3232-323232323232');
COMMENT ON FUNCTION sortkey.sno_at IS
    'Returns the ID of a past time with sequence number n (0 to 65535), for existing rows. Reserve the node number, by default the setting sortkey.node, for this purpose: the function does not know the IDs that were generated at that time.';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = 'sortkey_internal.sno_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner FROM pg_proc p
            WHERE p.pronamespace = 'sortkey'::regnamespace AND p.proname IN ('next_sno', 'next_sno_meta')
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

-- Callers of next_sno need nextval() for its sequence. Only the owner has UPDATE, for setval().
GRANT USAGE ON SEQUENCE sortkey_internal.sno_clock TO PUBLIC;
-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (7, 'sno');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 8. uuid7
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- UUID, version 7, of RFC 9562:
--
--     milliseconds since 1970-01-01T00:00:00.000Z : 48 | 0111 | fraction of the millisecond in 1/4096 : 12 | 10 | random : 62
--
-- It lasts until 10889-08-02T05:31:50.655Z. It has no node number. A column of type uuid can hold UUIDs of other versions beside these.

CREATE DOMAIN sortkey.uuid7 AS uuid
    CONSTRAINT uuid7_has_version_7 CHECK (get_byte(uuid_send(VALUE), 6) >> 4 = 7 AND get_byte(uuid_send(VALUE), 8) >> 6 = 2);
COMMENT ON DOMAIN sortkey.uuid7 IS 'A UUID of version 7, which sorts by time. Use uuid for a column with UUIDs of several versions. DROP SCHEMA sortkey CASCADE drops the columns of this type.';

CREATE FUNCTION sortkey.uuid7_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN get_byte(uuid_send(id), 6) >> 4 = 7 AND get_byte(uuid_send(id), 8) >> 6 = 2 THEN
        (timestamp '1970-01-01' + ('x' || encode(substr(uuid_send(id), 1, 6), 'hex'))::bit(48)::bigint / 86400000 * interval '1 day' + ('x' || encode(substr(uuid_send(id), 1, 6), 'hex'))::bit(48)::bigint % 86400000 * interval '1 millisecond') AT TIME ZONE 'UTC' END;
COMMENT ON FUNCTION sortkey.uuid7_time(uuid) IS 'Returns the time of a UUID of version 7, or NULL for other UUIDs.';

CREATE FUNCTION sortkey.uuid7_floor(t timestamptz) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN '00000000-0000-7000-8000-000000000000';
    ELSIF t = 'infinity' THEN
        RETURN 'ffffffff-ffff-7fff-bfff-ffffffffffff';
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - 0 / 1000.0) * 1000);
    IF unit < 0 OR unit > 281474976710655 THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for UUID (1970-01-01T00:00:00.000Z to 10889-08-02T05:31:50.655Z)',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
    RETURN (lpad(to_hex(unit::bigint), 12, '0') || '70008000000000000000')::uuid;
END
$$;
COMMENT ON FUNCTION sortkey.uuid7_floor(timestamptz) IS
    'Returns the lowest UUID of version 7 of the millisecond that contains t, a bound for partitions and for queries by time. UUIDs of other versions are between any two bounds.';

-- Returns a UUID before Postgres 18.
CREATE FUNCTION sortkey_internal.uuid7_now() RETURNS uuid
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    us bigint := tstzrange_subdiff(clock_timestamp(), '1970-01-01 00:00:00.000+00') * 1000000;
BEGIN
    RETURN (lpad(to_hex(us / 1000), 12, '0') || to_hex(28672 + us % 1000 * 512 / 125) -- 0x7000, and 1/1000 in 1/4096
        || right(encode(uuid_send(gen_random_uuid()), 'hex'), 16))::uuid;
END
$$;

-- Returns a UUID since Postgres 18, which has a faster function with the same layout. PL/pgSQL looks up that function in the
-- first call, so a dump can be restored to an older version.
CREATE FUNCTION sortkey_internal.uuid7_of_server() RETURNS uuid
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE
AS $$
BEGIN
    RETURN pg_catalog.uuidv7();
END
$$;

CREATE FUNCTION sortkey.next_uuid7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN sortkey_internal.uuid7_of_server() ELSE sortkey_internal.uuid7_now() END;
COMMENT ON FUNCTION sortkey.next_uuid7() IS
    'Generates a UUID of version 7, for the default of a column: uuidv7() since Postgres 18, otherwise the same in units of a microsecond. UUIDs of one microsecond have no order.';

CREATE FUNCTION sortkey.uuid7_at(t timestamptz) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN (left(encode(uuid_send(sortkey.uuid7_floor(t)), 'hex'), 13)
        || lpad(to_hex(extract(microseconds FROM t)::bigint % 1000 * 512 / 125 + sortkey_internal.sequence_bits('UUID', t, 0, 0)), 3, '0') -- 1/1000 in 1/4096
        || right(encode(uuid_send(gen_random_uuid()), 'hex'), 16))::uuid;
COMMENT ON FUNCTION sortkey.uuid7_at(timestamptz) IS
    'Returns a UUID of version 7 of a past time, in units of a microsecond, for existing rows. UUIDs of one microsecond differ in 62 random bits, and have no order.';

CREATE FUNCTION sortkey.typeid_text(prefix text, id uuid) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    hi CONSTANT bigint := ('x' || left(encode(uuid_send(id), 'hex'), 16))::bit(64)::bigint;
    lo CONSTANT bigint := ('x' || right(encode(uuid_send(id), 'hex'), 16))::bit(64)::bigint;
BEGIN
    IF prefix COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?)?$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is not the prefix of a TypeID; want up to 63 lower-case letters and underscores, with a letter at both ends', left(prefix, 64));
    END IF;
    RETURN CASE prefix WHEN '' THEN '' ELSE prefix || '_' END
        || substr(a, (hi >> 61 & 7)::integer + 1, 1) || substr(a, (hi >> 56 & 31)::integer + 1, 1) || substr(a, (hi >> 51 & 31)::integer + 1, 1)
        || substr(a, (hi >> 46 & 31)::integer + 1, 1) || substr(a, (hi >> 41 & 31)::integer + 1, 1) || substr(a, (hi >> 36 & 31)::integer + 1, 1)
        || substr(a, (hi >> 31 & 31)::integer + 1, 1) || substr(a, (hi >> 26 & 31)::integer + 1, 1) || substr(a, (hi >> 21 & 31)::integer + 1, 1)
        || substr(a, (hi >> 16 & 31)::integer + 1, 1) || substr(a, (hi >> 11 & 31)::integer + 1, 1) || substr(a, (hi >> 6 & 31)::integer + 1, 1)
        || substr(a, (hi >> 1 & 31)::integer + 1, 1) || substr(a, ((hi & 1) << 4 | (lo >> 60 & 15))::integer + 1, 1) || substr(a, (lo >> 55 & 31)::integer + 1, 1)
        || substr(a, (lo >> 50 & 31)::integer + 1, 1) || substr(a, (lo >> 45 & 31)::integer + 1, 1) || substr(a, (lo >> 40 & 31)::integer + 1, 1)
        || substr(a, (lo >> 35 & 31)::integer + 1, 1) || substr(a, (lo >> 30 & 31)::integer + 1, 1) || substr(a, (lo >> 25 & 31)::integer + 1, 1)
        || substr(a, (lo >> 20 & 31)::integer + 1, 1) || substr(a, (lo >> 15 & 31)::integer + 1, 1) || substr(a, (lo >> 10 & 31)::integer + 1, 1)
        || substr(a, (lo >> 5 & 31)::integer + 1, 1) || substr(a, (lo & 31)::integer + 1, 1);
END
$$;
COMMENT ON FUNCTION sortkey.typeid_text(text, uuid) IS 'Returns the TypeID of a UUID of any version: the prefix, an underscore, and 26 digits of base32. An empty prefix has no underscore.';

CREATE FUNCTION sortkey.typeid_from_text(s text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    t CONSTANT text := right(s, 26);
    hi bigint;
    lo bigint;
BEGIN
    IF s COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?_)?[0-7][0-9a-hjkmnp-tv-z]{25}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
            MESSAGE = format('cannot parse %L as TypeID; want a prefix, an underscore and 26 digits [0-9a-hjkmnp-tv-z], the first at most 7', left(s, 96)),
            HINT = 'Use lower-case digits.';
    END IF;
    hi := ((strpos(a, substr(t, 1, 1)) - 1)::bigint << 61) | ((strpos(a, substr(t, 2, 1)) - 1)::bigint << 56) | ((strpos(a, substr(t, 3, 1)) - 1)::bigint << 51)
        | ((strpos(a, substr(t, 4, 1)) - 1)::bigint << 46) | ((strpos(a, substr(t, 5, 1)) - 1)::bigint << 41) | ((strpos(a, substr(t, 6, 1)) - 1)::bigint << 36)
        | ((strpos(a, substr(t, 7, 1)) - 1)::bigint << 31) | ((strpos(a, substr(t, 8, 1)) - 1)::bigint << 26) | ((strpos(a, substr(t, 9, 1)) - 1)::bigint << 21)
        | ((strpos(a, substr(t, 10, 1)) - 1)::bigint << 16) | ((strpos(a, substr(t, 11, 1)) - 1)::bigint << 11) | ((strpos(a, substr(t, 12, 1)) - 1)::bigint << 6)
        | ((strpos(a, substr(t, 13, 1)) - 1)::bigint << 1) | ((strpos(a, substr(t, 14, 1)) - 1)::bigint >> 4);
    lo := (((strpos(a, substr(t, 14, 1)) - 1)::bigint & 15) << 60) | ((strpos(a, substr(t, 15, 1)) - 1)::bigint << 55) | ((strpos(a, substr(t, 16, 1)) - 1)::bigint << 50)
        | ((strpos(a, substr(t, 17, 1)) - 1)::bigint << 45) | ((strpos(a, substr(t, 18, 1)) - 1)::bigint << 40) | ((strpos(a, substr(t, 19, 1)) - 1)::bigint << 35)
        | ((strpos(a, substr(t, 20, 1)) - 1)::bigint << 30) | ((strpos(a, substr(t, 21, 1)) - 1)::bigint << 25) | ((strpos(a, substr(t, 22, 1)) - 1)::bigint << 20)
        | ((strpos(a, substr(t, 23, 1)) - 1)::bigint << 15) | ((strpos(a, substr(t, 24, 1)) - 1)::bigint << 10) | ((strpos(a, substr(t, 25, 1)) - 1)::bigint << 5)
        | (strpos(a, substr(t, 26, 1)) - 1)::bigint;
    RETURN (lpad(to_hex(hi), 16, '0') || lpad(to_hex(lo), 16, '0'))::uuid;
END
$$;
COMMENT ON FUNCTION sortkey.typeid_from_text(text) IS 'Returns the UUID of a TypeID, whatever its prefix is. Raises an error for other texts.';

-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (8, 'uuid7');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- 9. partitions
-- ---------------------------------------------------------------------------------------------------------------------

-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;

-- Partitions by time, for tables that are PARTITION BY RANGE of a key that sorts by time.
--
-- manage_partitions() records the settings of a table. maintain_partitions(), called regularly, does the work: it
-- creates the current partition and some partitions ahead, creates a default partition if the settings ask for one,
-- moves rows from the default partition to new partitions, and detaches or drops partitions older than the retention.
-- plan_partitions() shows the steps as SQL, and the table partition_log records the completed steps. Every function
-- runs with the privileges of its caller, who needs USAGE on both schemas.

-- A table has its OID in the database that wrote the row, so that settings follow a renamed table and end with a dropped
-- one. In a restored database, which has other OIDs, its name identifies the table until maintenance writes the new OID.
-- A dump of a regclass would have a number in place of a dropped table, and could not be restored without all tables.
CREATE TABLE sortkey.partition_settings (
    database text NOT NULL,
    id oid NOT NULL,
    schema name NOT NULL,
    name name NOT NULL,
    format text NOT NULL CHECK (format IN ('snowflake', 'snowflake_si', 'uid60', 'sno', 'uuid7')),
    -- Limits that keep the functions that read the settings from failing. manage_partitions has more.
    every interval NOT NULL CHECK (every BETWEEN interval '1 minute' AND interval '36525 days'),
    premake integer NOT NULL CHECK (premake BETWEEN 1 AND 1000),
    retention interval CHECK (retention > interval '0' AND retention <= interval '1000 years'), -- NULL: permanent
    retention_action text NOT NULL CHECK (retention_action IN ('detach', 'drop')),
    default_partition boolean NOT NULL,
    PRIMARY KEY (database, id)
);
COMMENT ON TABLE sortkey.partition_settings IS 'The partition settings of tables, written by manage_partitions, unmanage_partitions and maintain_partitions. The view partitioned_table has the settings of existing tables.';

-- Returns the OID of the table of a row of partition_settings, or NULL if there is none. Its arguments are the columns, because
-- Citus doesn't copy functions of row types to workers.
CREATE FUNCTION sortkey_internal.table_of(database text, id oid, schema name, name name) RETURNS oid
    LANGUAGE sql STABLE
    RETURN CASE WHEN database = sortkey_internal.database_identity() THEN (SELECT c.oid FROM pg_class c WHERE c.oid = id)
        ELSE (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = schema AND c.relname = name) END;

CREATE VIEW sortkey.partitioned_table AS
    -- As table_of, which would read the identity once per row.
    WITH here AS MATERIALIZED (SELECT sortkey_internal.database_identity() AS database)
    SELECT c.oid::regclass AS parent, s.format, s.every, s.premake, s.retention, s.retention_action, s.default_partition
    FROM here h JOIN sortkey.partition_settings s ON s.database = h.database JOIN pg_class c ON c.oid = s.id
    UNION ALL
    SELECT c.oid::regclass, s.format, s.every, s.premake, s.retention, s.retention_action, s.default_partition
    FROM here h JOIN sortkey.partition_settings s ON s.database <> h.database
        JOIN pg_namespace n ON n.nspname = s.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = s.name;
COMMENT ON VIEW sortkey.partitioned_table IS 'The tables with managed partitions, and their settings.';

-- A random key, so that rows don't collide with local rows of a logical replica of this table.
CREATE TABLE sortkey.partition_log (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    begun_at timestamptz NOT NULL CHECK (isfinite(begun_at)),
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(ended_at)),
    role name NOT NULL DEFAULT current_user,
    parent_table text NOT NULL,
    action text NOT NULL,
    partition text,
    lower timestamptz,
    upper timestamptz,
    attempts integer NOT NULL,
    outcome text NOT NULL,
    problem text
);
CREATE INDEX ON sortkey.partition_log (ended_at);
COMMENT ON TABLE sortkey.partition_log IS 'The steps of maintain_partitions in the last 90 days. Each run for a table ends with the action maintain.';
COMMENT ON COLUMN sortkey.partition_log.attempts IS 'The number of attempts: more than one if another transaction held a lock.';
COMMENT ON COLUMN sortkey.partition_log.outcome IS 'done, skipped (because of a lock) or failed. The column problem has the reason.';

-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('sortkey.partition_settings'::regclass, 'sortkey.partitioned_table'::regclass, 'sortkey.partition_log'::regclass)
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

GRANT SELECT ON sortkey.partition_settings, sortkey.partitioned_table TO PUBLIC; -- not INSERT, since maintain_partitions() changes the tables that are listed here

-- Raises an error unless the session trusts the owners of a table, of its partitions, and of the tables that a foreign key
-- connects with one of them. Maintenance opens all of these, and the server runs code of their owners when it does.
CREATE FUNCTION sortkey_internal.require_trusted(parent regclass) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    found record;
BEGIN
    FOR found IN
WITH RECURSIVE trusted AS MATERIALIZED (SELECT o.oid FROM pg_catalog.pg_roles o, pg_catalog.pg_database d, pg_catalog.pg_roles b
    WHERE d.datname = pg_catalog.current_database() AND b.oid = d.datdba AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_roles s WHERE s.rolname IN (session_user, current_user)
            AND NOT CASE WHEN s.rolsuper THEN o.rolsuper OR o.rolname = 'pg_database_owner' AND b.rolsuper
                ELSE o.rolsuper OR o.oid = b.oid OR o.rolname = 'pg_database_owner' OR pg_catalog.pg_has_role(s.oid, o.oid, 'MEMBER') END)),
t (root, oid) AS (
    SELECT g.oid, g.oid FROM pg_catalog.unnest(ARRAY(WITH RECURSIVE t (oid) AS (SELECT parent::pg_catalog.oid UNION SELECT i.inhrelid FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid)
    SELECT parent::pg_catalog.oid UNION SELECT e.oid FROM pg_catalog.pg_constraint k, pg_catalog.unnest(ARRAY[k.conrelid, k.confrelid]) e (oid)
        WHERE k.contype = 'f' AND (k.conrelid IN (SELECT oid FROM t) OR k.confrelid IN (SELECT oid FROM t)) AND e.oid NOT IN (SELECT oid FROM t))) g (oid)
    UNION SELECT t.root, i.inhrelid FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
)
SELECT DISTINCT ON (t.root) t.root::bigint, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END || pg_catalog.format(' %I.%I', n.nspname, c.relname) AS object,
    CASE WHEN c.relowner NOT IN (SELECT oid FROM trusted) THEN pg_catalog.format('belongs to role %I', pg_catalog.pg_get_userbyid(c.relowner))
        WHEN n.nspowner NOT IN (SELECT oid FROM trusted) THEN pg_catalog.format('is in schema %I of role %I', n.nspname, pg_catalog.pg_get_userbyid(n.nspowner))
        ELSE 'is on another server' END AS reason
FROM t JOIN pg_catalog.pg_class c ON c.oid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (c.relowner NOT IN (SELECT oid FROM trusted) OR n.nspowner NOT IN (SELECT oid FROM trusted)) ORDER BY t.root, t.oid <> t.root, 2
    LOOP
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I must not open %s: %s %s', session_user, parent, found.object, found.reason),
            HINT = 'A session trusts itself, roles that it is a member of, the database''s owner and superusers; a superuser trusts only superusers. Connect as the owner of the tables and their schemas, or remove the partition or the foreign key.';
    END LOOP;
END
$$;

-- Raises an error unless the current role has the privileges of the table's owner, and trusts the owners of all relations
-- that maintenance opens.
CREATE FUNCTION sortkey_internal.require_owner(parent regclass) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner oid;
BEGIN
    SELECT c.relowner INTO owner FROM pg_class c WHERE c.oid = parent;
    IF NOT pg_has_role(owner, 'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I does not own %s; the owner is %I', current_user, parent, pg_get_userbyid(owner)),
            HINT = format('Use role %I, or a member of %1$I.', pg_get_userbyid(owner));
    END IF;
    PERFORM sortkey_internal.require_trusted(parent);
END
$$;

-- Keeps a role with write access to partition_settings from managing tables of others. It can delete the settings of missing
-- tables. Only the owner of the settings, who restores dumps, can write settings that another database made.
CREATE FUNCTION sortkey_internal.check_managed_owner() RETURNS trigger
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    refused record;
BEGIN
    SELECT c.oid::regclass AS parent, pg_get_userbyid(c.relowner) AS owner INTO refused FROM pg_class c
        WHERE (TG_OP <> 'INSERT' AND c.oid = sortkey_internal.table_of(OLD.database, OLD.id, OLD.schema, OLD.name) OR TG_OP <> 'DELETE' AND c.oid = sortkey_internal.table_of(NEW.database, NEW.id, NEW.schema, NEW.name)) AND NOT pg_has_role(c.relowner, 'USAGE');
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I does not own %s; the owner is %I', current_user, refused.parent, refused.owner),
            HINT = format('Use role %I, or a member of %1$I.', refused.owner);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE NEW.database = sortkey_internal.database_identity() AND c.oid = NEW.id AND n.nspname = NEW.schema AND c.relname = NEW.name)
        AND NOT pg_has_role((SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('table %I.%I with OID %s is not a table of this database', NEW.schema, NEW.name, NEW.id),
            HINT = 'Call sortkey.manage_partitions, which writes the settings of an existing table.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER check_owner BEFORE INSERT OR UPDATE OR DELETE ON sortkey.partition_settings
    FOR EACH ROW EXECUTE FUNCTION sortkey_internal.check_managed_owner();

-- The arguments are
--
--     parent            a table that is PARTITION BY RANGE of one column: a bigint, a uuid or a domain over them
--     every             the interval of a partition: months, or days, hours and minutes
--     format            the format of the IDs: snowflake, snowflake_si, uid60, sno or uuid7; NULL if the column's domain has it
--     premake           the number of partitions to create ahead of the current one
--     retention         how long to keep a partition after its end; NULL: permanently
--     retention_action  detach or drop
--     default_partition whether a default partition takes rows outside all others; without one, such a row is an error
--
-- The caller must own the table, since maintenance can drop rows.
--
-- Partitions begin in UTC. Intervals of months count from 2000-01-01, so that they align with months, quarters and
-- years. Other intervals count from Monday, 2000-01-03, so that they align with weeks, days and hours.
CREATE FUNCTION sortkey.manage_partitions(
    parent regclass, every interval, format text DEFAULT NULL,
    premake integer DEFAULT 4, retention interval DEFAULT NULL, retention_action text DEFAULT 'detach',
    default_partition boolean DEFAULT true
) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    wanted text := format; -- NULL: the format of the domain
    domain_format text;
    rel pg_class;
    type pg_type;
    strategy text;
    columns integer;
    key text;
    key_type oid;
    months integer := extract(year FROM every) * 12 + extract(month FROM every);
    seconds numeric := extract(epoch FROM every - make_interval(months => months));
BEGIN
    SELECT c.* INTO rel FROM pg_class c WHERE c.oid = parent;
    IF rel.oid IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_table',
            MESSAGE = format('table %s does not exist', coalesce(parent::text, 'NULL')),
            HINT = 'Pass the name of an existing partitioned table.';
    END IF;
    PERFORM sortkey_internal.require_owner(parent);
    SELECT p.partstrat, p.partnatts, a.attname, a.atttypid INTO strategy, columns, key, key_type
        FROM pg_partitioned_table p LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        WHERE p.partrelid = parent;
    IF strategy IS DISTINCT FROM 'r' OR columns <> 1 OR key IS NULL OR rel.relpersistence = 't' THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('cannot manage partitions of %s: it is %s', parent, CASE
                WHEN strategy IS NULL THEN 'not partitioned'
                WHEN rel.relpersistence = 't' THEN 'temporary'
                ELSE 'PARTITION BY ' || pg_get_partkeydef(parent) END),
            DETAIL = 'The table must be PARTITION BY RANGE of one column, and not temporary.',
            HINT = 'A table is partitioned when it is created. To partition an existing table, create a partitioned table and attach the existing one to it.';
    END IF;

    -- Resolve domains over domains to the base type.
    SELECT t.* INTO type FROM pg_type t WHERE t.oid = key_type;
    WHILE type.typtype = 'd' LOOP
        IF type.typnamespace = 'sortkey'::regnamespace AND type.typname IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno', 'uuid7') THEN
            domain_format := type.typname;
        END IF;
        SELECT t.* INTO type FROM pg_type t WHERE t.oid = type.typbasetype;
    END LOOP;
    IF wanted IS NOT NULL AND wanted <> domain_format THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %L does not match %s.%I, whose domain is %s', wanted, parent, key, domain_format),
            DETAIL = 'The times of the partitions would be wrong.',
            HINT = 'Omit format. The domain determines it.';
    END IF;
    wanted := coalesce(wanted, domain_format);
    IF wanted = 'spread64' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('cannot manage partitions by %s.%I: Spread64 IDs do not order by time', parent, key),
            HINT = 'Partition by another column or by HASH, or use another format.';
    ELSIF wanted IS NULL OR wanted NOT IN ('snowflake', 'snowflake_si', 'uid60', 'sno', 'uuid7') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %s is not valid for %s.%I of type %s',
                coalesce(quote_literal(wanted), 'NULL'), parent, key, format_type(key_type, NULL)),
            HINT = 'Pass format snowflake, snowflake_si or uid60 for a bigint column, or sno or uuid7 for a uuid column.';
    ELSIF to_regprocedure(format('sortkey.%I(timestamptz)', wanted || '_floor')) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_function',
            MESSAGE = format('format %s has no functions in schema sortkey', wanted),
            HINT = 'Set Config.SnowflakeSI, which has the base clock of the format, and run Up or AddSnowflakeSI.';
    ELSIF type.oid <> (CASE WHEN wanted IN ('sno', 'uuid7') THEN 'uuid'::regtype ELSE 'bigint'::regtype END) THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('format %s needs a column of type %s, but %s.%I is of type %s',
                wanted, CASE WHEN wanted IN ('sno', 'uuid7') THEN 'uuid' ELSE 'bigint' END, parent, key, format_type(key_type, NULL)),
            HINT = 'Pass the format of the IDs in this column.';
    END IF;

    IF (months >= 0 AND seconds >= 0 AND (months > 0) <> (seconds > 0)
        AND seconds % 60 = 0 AND months <= 1200 AND seconds <= 3155760000) IS NOT TRUE THEN -- NULL if it is infinite
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('partition interval %s is not valid; want whole months, or whole days, hours and minutes', coalesce(quote_literal(every), 'NULL')),
            HINT = 'Use an interval from 1 minute to 100 years, such as ''1 month'', ''7 days'' or ''6 hours''. Do not mix months with days, hours or minutes.';
    END IF;
    IF premake IS NULL OR premake NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('premake %s is out of range (1 to 1000)', coalesce(premake::text, 'NULL')),
            HINT = 'Use 1 to 1000: enough to last until somebody notices that maintenance has stopped.';
    END IF;
    -- Check the fields separately: an interval such as '1 month -29 days' is negative in February.
    IF retention <= interval '0' OR extract(year FROM retention) * 12 + extract(month FROM retention) < 0
        OR extract(day FROM retention) < 0 OR extract(epoch FROM retention) <= 0 OR retention > interval '1000 years' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('retention %L is not valid; want a positive interval of up to 1000 years, or NULL', retention),
            HINT = 'Use an interval without negative fields, or NULL to keep partitions permanently.';
    END IF;
    IF retention_action IS NULL OR retention_action NOT IN ('detach', 'drop') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('retention_action %s is not valid; want detach or drop', coalesce(quote_literal(retention_action), 'NULL')),
            HINT = 'Use detach to keep old partitions as separate tables, or drop to delete them.';
    END IF;
    IF default_partition IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'default_partition must not be NULL',
            HINT = 'Use true to keep rows outside all partitions, or false to reject them.';
    END IF;

    PERFORM sortkey_internal.managed_tables(NULL, true);
    -- The settings of a dropped table of this name, or of this table in the database that a dump was made of.
    DELETE FROM sortkey.partition_settings s
        WHERE coalesce(sortkey_internal.table_of(s.database, s.id, s.schema, s.name), parent) = parent AND s.schema = (SELECT n.nspname FROM pg_namespace n WHERE n.oid = rel.relnamespace) AND s.name = rel.relname
            AND (s.database, s.id) <> (sortkey_internal.database_identity(), rel.oid);
    INSERT INTO sortkey.partition_settings (database, id, schema, name, format, every, premake, retention, retention_action, default_partition)
        SELECT sortkey_internal.database_identity(), rel.oid, n.nspname, rel.relname, wanted, every, premake, retention, retention_action, default_partition
            FROM pg_namespace n WHERE n.oid = rel.relnamespace
        ON CONFLICT ON CONSTRAINT partition_settings_pkey DO UPDATE SET schema = excluded.schema, name = excluded.name, format = excluded.format,
            every = excluded.every, premake = excluded.premake, retention = excluded.retention,
            retention_action = excluded.retention_action, default_partition = excluded.default_partition;
END
$$;
COMMENT ON FUNCTION sortkey.manage_partitions(regclass, interval, text, integer, interval, text, boolean) IS
    'Records or replaces the partition settings of a table, which maintain_partitions applies. The caller must own the table or be a member of its owner.';

CREATE FUNCTION sortkey.unmanage_partitions(parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM sortkey_internal.managed_tables(unmanage_partitions.parent, true);
    PERFORM sortkey_internal.require_owner(unmanage_partitions.parent);
    DELETE FROM sortkey.partition_settings s WHERE sortkey_internal.table_of(s.database, s.id, s.schema, s.name) = unmanage_partitions.parent;
END
$$;
COMMENT ON FUNCTION sortkey.unmanage_partitions(regclass) IS
    'Ends the maintenance of a table; its partitions stay. The caller must own the table or be a member of its owner.';

-- Returns all managed tables, or parent, which must be managed. If clean is true, it also deletes the settings of dropped
-- tables and log rows older than 90 days, and writes the current names and OIDs of the role's tables, if the role has the
-- privileges and no lock prevents it.
CREATE FUNCTION sortkey_internal.managed_tables(parent regclass, clean boolean) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '2s'
AS $$
DECLARE
    here CONSTANT text := sortkey_internal.database_identity();
BEGIN
    BEGIN
        IF clean AND has_table_privilege('sortkey.partition_settings', 'DELETE') AND has_table_privilege('sortkey.partition_settings', 'UPDATE') THEN
            DELETE FROM sortkey.partition_settings s WHERE s.database = here AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = s.id);
            UPDATE sortkey.partition_settings s SET database = here, id = c.oid
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE s.database <> here AND n.nspname = s.schema AND c.relname = s.name AND pg_has_role(c.relowner, 'USAGE');
            UPDATE sortkey.partition_settings s SET schema = n.nspname, name = c.relname
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE s.database = here AND c.oid = s.id AND pg_has_role(c.relowner, 'USAGE') AND (s.schema, s.name) <> (n.nspname, c.relname);
        END IF;
        IF clean AND has_table_privilege('sortkey.partition_log', 'DELETE') AND has_table_privilege('sortkey.partition_log', 'SELECT') THEN
            DELETE FROM sortkey.partition_log l WHERE l.ended_at < now() - interval '90 days';
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'cannot delete old rows of partition_log and partition_settings: %', SQLERRM;
    END;
    RETURN QUERY SELECT t.parent FROM sortkey.partitioned_table t JOIN pg_class c ON c.oid = t.parent
        WHERE managed_tables.parent IS NULL OR t.parent = managed_tables.parent
        ORDER BY t.parent::text;
    IF NOT FOUND AND managed_tables.parent IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('partitions of %s are not managed', managed_tables.parent),
            HINT = 'Call sortkey.manage_partitions for the table first.';
    END IF;
END
$$;

-- Returns the time range of the partition that contains t.
CREATE FUNCTION sortkey_internal.partition_window(every interval, t timestamptz) RETURNS tstzrange
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    utc CONSTANT timestamp := t AT TIME ZONE 'UTC';
    months CONSTANT integer := extract(year FROM every) * 12 + extract(month FROM every);
    seconds CONSTANT numeric := extract(epoch FROM every);
    monday CONSTANT numeric := extract(epoch FROM timestamptz '2000-01-03 00:00:00+00');
    start numeric;
BEGIN
    IF months > 0 THEN
        start := floor(((extract(year FROM utc) - 2000) * 12 + extract(month FROM utc) - 1) / months) * months;
        RETURN tstzrange(
            (timestamp '2000-01-01' + make_interval(months => start::integer)) AT TIME ZONE 'UTC',
            (timestamp '2000-01-01' + make_interval(months => start::integer + months)) AT TIME ZONE 'UTC');
    END IF;
    start := floor((extract(epoch FROM t) - monday) / seconds) * seconds + monday;
    RETURN tstzrange(to_timestamp(start::float8), to_timestamp((start + seconds)::float8)); -- whole seconds, so exact
END
$$;

-- Returns the name of a partition, with its schema. It truncates a long table name and adds a hash of the full name, to
-- keep it unique.
CREATE FUNCTION sortkey_internal.partition_name(parent regclass, suffix text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    longest CONSTANT integer := current_setting('max_identifier_length');
    schema text;
    base text;
    hash text := '';
BEGIN
    SELECT n.nspname, c.relname INTO schema, base FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF octet_length(base || suffix) > longest THEN
        hash := '_' || left(md5(base), 8);
    END IF;
    WHILE octet_length(base || hash || suffix) > longest LOOP
        base := left(base, -1);
    END LOOP;
    RETURN format('%I.%I', schema, base || hash || suffix);
END
$$;

-- Converts a time to the bound of a partition. The lowest bound is the first ID after zero, since domains reject zero.
CREATE FUNCTION sortkey_internal.partition_bound(format text, t timestamptz) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bound text;
BEGIN
    IF t = 'infinity' THEN
        RETURN 'MAXVALUE';
    END IF;
    EXECUTE format('SELECT quote_literal(greatest(sortkey.%I($1), %L)::text)', format || '_floor',
        CASE format WHEN 'sno' THEN '32323232-3232-3232-3232-323232323233' WHEN 'uuid7' THEN '00000000-0000-0000-0000-000000000001' ELSE '1' END) INTO bound USING t;
    RETURN bound;
END
$$;

-- Returns the time ranges of a table's partitions, except the default partition. If an upper bound isn't the first ID
-- of its time unit, the range ends with the next unit, so that adjacent partitions have no gap between them.
CREATE FUNCTION sortkey_internal.partition_times(parent regclass, format text)
    RETURNS TABLE (partition regclass, times tstzrange)
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bounds text;
BEGIN
    FOR partition, bounds, times IN EXECUTE format($q$
        SELECT c.oid, e.bounds, CASE WHEN f.t IS NOT NULL AND u.t IS NOT NULL THEN tstzrange(f.t, u.t) END
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) e (bounds)
        -- The text of numbers and uuids doesn't depend on settings.
        CROSS JOIN LATERAL regexp_match(e.bounds,
            '^FOR VALUES FROM [(]''?([-0-9a-fA-F]+|MINVALUE)''?[)] TO [(]''?([-0-9a-fA-F]+|MAXVALUE)''?[)]$') p (bound)
        CROSS JOIN LATERAL (SELECT CASE
            WHEN p.bound[1] = 'MINVALUE' THEN '-infinity'
            WHEN p.bound[1]::%1$s < sortkey.%2$I('-infinity') THEN '-infinity'
            WHEN p.bound[1]::%1$s > sortkey.%2$I('infinity') THEN 'infinity'
            ELSE sortkey.%3$I(p.bound[1]::%1$s) END) f (t)
        CROSS JOIN LATERAL (SELECT CASE
            WHEN p.bound[2] = 'MAXVALUE' THEN 'infinity'
            WHEN p.bound[2]::%1$s < sortkey.%2$I('-infinity') THEN '-infinity'
            WHEN p.bound[2]::%1$s > sortkey.%2$I('infinity') THEN 'infinity'
            WHEN p.bound[2]::%1$s > sortkey.%2$I(sortkey.%3$I(p.bound[2]::%1$s)) THEN sortkey.%3$I(p.bound[2]::%1$s) + %4$L::interval
            ELSE sortkey.%3$I(p.bound[2]::%1$s) END) u (t)
        WHERE i.inhparent = $1 AND e.bounds <> 'DEFAULT'$q$,
        CASE WHEN format IN ('sno', 'uuid7') THEN 'uuid' ELSE 'bigint' END, format || '_floor', format || '_time',
        CASE format WHEN 'sno' THEN '4 milliseconds' ELSE '1 millisecond' END) USING parent
    LOOP
        IF times IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('bounds of partition %s of %s are not IDs of format %s: %s', partition, parent, format, bounds),
                HINT = format('Detach that partition, or attach it with bounds from %s_floor.', format);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Shows the times up to which managed tables have partitions without a gap from now, or NULL if no partition contains the
-- present. A partition whose bounds aren't IDs is an error, so read one table per query. A reader of the view needs no
-- privilege on schema sortkey_internal.
CREATE VIEW sortkey.partition_horizon AS
    SELECT t.parent, t.format, (
        SELECT max(upper(r.times)) FROM unnest((SELECT range_agg(p.times) FROM sortkey_internal.partition_times(t.parent, t.format) p)) r (times)
        WHERE lower(r.times) <= clock_timestamp()
    ) AS horizon
    FROM sortkey.partitioned_table t;
COMMENT ON VIEW sortkey.partition_horizon IS 'The times up to which managed tables have partitions without a gap from now. Read one table per query, since a partition whose bounds are not IDs is an error.';
-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c WHERE c.oid = 'sortkey.partition_horizon'::regclass
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;

GRANT SELECT ON sortkey.partition_horizon TO PUBLIC; -- the bounds of partitions are in the catalog, too

-- Returns the steps that parent, or each managed table, needs at the time at. plan_partitions() describes them.
CREATE FUNCTION sortkey_internal.partition_steps(parent regclass, at timestamptz)
    RETURNS TABLE (parent_table regclass, action text, partition text, lower timestamptz, upper timestamptz)
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- raise an error instead of hiding rows
AS $$
#variable_conflict use_variable
DECLARE
    m record;
    default_partition regclass;
    taken tstzmultirange;      -- ranges of existing partitions
    next_window tstzrange;
    gaps tstzrange[];          -- windows without a partition
    drained tstzrange[];       -- windows without a partition and with rows in the default partition
    gap tstzrange;
    first timestamptz;         -- the first time of the format
    last timestamptz;          -- its last time
    horizon timestamptz;       -- the end of the last partition ahead
    cutoff timestamptz;        -- partitions that end by this time are removed
    position timestamptz;
    t timestamptz;
BEGIN
    FOR m IN
        SELECT x.*, k.attname AS key, nullif(p.partdefid, 0) AS default_id
            FROM sortkey.partitioned_table x
            JOIN pg_partitioned_table p ON p.partrelid = x.parent
            JOIN pg_attribute k ON k.attrelid = x.parent AND k.attnum = p.partattrs[0]
            WHERE parent IS NULL OR x.parent = parent
            ORDER BY x.parent::text
    LOOP
        BEGIN
            PERFORM sortkey_internal.require_trusted(m.parent);
        EXCEPTION WHEN insufficient_privilege THEN
            IF parent IS NOT NULL THEN
                RAISE;
            END IF;
            RAISE WARNING 'skipped %: %', m.parent, SQLERRM;
            CONTINUE;
        END;
        parent_table := m.parent;
        default_partition := m.default_id;
        EXECUTE format('SELECT sortkey.%1$I(sortkey.%2$I(''-infinity'')), sortkey.%1$I(sortkey.%2$I(''infinity''))', m.format || '_time', m.format || '_floor')
            INTO first, last;
        IF at IS NULL OR at < first OR at > last THEN
            RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
                MESSAGE = format('time %s is out of range for format %s (%s to %s)',
                    coalesce(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'NULL'), m.format,
                    to_char(first AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_char(last AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
                HINT = 'Check the server''s clock, or the argument at.';
        END IF;
        SELECT coalesce(range_agg(p.times), '{}') INTO taken FROM sortkey_internal.partition_times(m.parent, m.format) p;

        cutoff := (at AT TIME ZONE 'UTC' - m.retention) AT TIME ZONE 'UTC';
        gaps := '{}';
        next_window := sortkey_internal.partition_window(m.every, at);
        FOR i IN 0..m.premake LOOP
            horizon := upper(next_window);
            -- The first and the last partition end with the format.
            gap := tstzrange(greatest(lower(next_window), first), CASE WHEN horizon > last THEN 'infinity' ELSE horizon END);
            IF NOT taken @> gap THEN
                gaps := gaps || ARRAY(SELECT unnest(tstzmultirange(gap) - taken));
            END IF;
            EXIT WHEN horizon > last;
            next_window := sortkey_internal.partition_window(m.every, horizon);
        END LOOP;

        -- Use the index to find the first row in the default partition, then the first row after its window, and so on.
        drained := '{}';
        position := CASE WHEN cutoff > first THEN greatest(lower(sortkey_internal.partition_window(m.every, cutoff)), first) ELSE '-infinity' END;
        WHILE default_partition IS NOT NULL AND position <= last LOOP
            t := NULL;
            EXECUTE format('SELECT sortkey.%1$I(d.%2$I) FROM %3$s d'
                    ' WHERE d.%2$I >= sortkey.%4$I($1) AND sortkey.%1$I(d.%2$I) IS NOT NULL ORDER BY d.%2$I LIMIT 1',
                m.format || '_time', m.key, default_partition, m.format || '_floor')
                INTO t USING position;
            EXIT WHEN t IS NULL OR t >= horizon;
            next_window := sortkey_internal.partition_window(m.every, t);
            gap := NULL;
            SELECT g INTO gap FROM unnest(tstzmultirange(tstzrange(
                greatest(lower(next_window), first), CASE WHEN upper(next_window) > last THEN 'infinity' ELSE upper(next_window) END)) - taken) g
                WHERE g @> t;
            IF gap IS NOT NULL THEN
                drained := drained || gap;
            ELSE
                -- The row is in the time unit in which a manually created partition begins or ends.
                SELECT g INTO gap FROM unnest(taken) g WHERE g @> t;
            END IF;
            position := upper(gap);
        END LOOP;

        FOR gap IN SELECT g FROM unnest(gaps || drained) g
            WHERE (upper(g) <= cutoff) IS NOT TRUE -- retention would remove such a partition at once
            GROUP BY g ORDER BY g = ANY (drained), g
        LOOP
            action := CASE WHEN gap = ANY (drained) THEN 'drain' ELSE 'create' END;
            lower := lower(gap);
            upper := upper(gap);
            partition := sortkey_internal.partition_name(m.parent, to_char(lower AT TIME ZONE 'UTC', '"_p"YYYYMMDD' || CASE
                WHEN extract(second FROM lower) % 1 <> 0 THEN '"t"HH24MISSMS'
                WHEN extract(second FROM lower) <> 0 THEN '"t"HH24MISS'
                WHEN m.every < '1 day' OR (lower AT TIME ZONE 'UTC')::time <> '00:00' THEN '"t"HH24MI'
                ELSE '' END));
            RETURN NEXT;
        END LOOP;

        IF m.default_partition AND default_partition IS NULL THEN
            action := 'default';
            partition := sortkey_internal.partition_name(m.parent, '_default');
            lower := NULL;
            upper := NULL;
            RETURN NEXT;
        END IF;

        action := m.retention_action;
        FOR partition, lower, upper IN
            SELECT p.partition::text, lower(p.times), upper(p.times) FROM sortkey_internal.partition_times(m.parent, m.format) p
            WHERE m.retention IS NOT NULL AND isfinite(lower(p.times)) AND upper(p.times) <= cutoff
            ORDER BY p.times
        LOOP
            RETURN NEXT;
        END LOOP;

        IF default_partition IS NOT NULL AND NOT m.default_partition THEN
            action := 'drop';
            partition := default_partition::text;
            lower := NULL;
            upper := NULL;
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

-- The conditions on keys in the SQL of steps, which runs under the search_path of the caller. They use the operators of
-- pg_catalog. Queries inline the functions, and use the index of the key.
CREATE FUNCTION sortkey_internal.is_at_least(key bigint, bound bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key >= bound;

CREATE FUNCTION sortkey_internal.is_at_least(key uuid, bound uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key >= bound;

CREATE FUNCTION sortkey_internal.is_below(key bigint, bound bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key < bound;

CREATE FUNCTION sortkey_internal.is_below(key uuid, bound uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key < bound;

-- Returns a statement that raises an error if a query returns a row.
CREATE FUNCTION sortkey_internal.error_if(query text, code text, message text, hint text) RETURNS text
    LANGUAGE sql STABLE
    RETURN format('DO %L', format('BEGIN IF EXISTS (%s) THEN RAISE EXCEPTION USING ERRCODE = %L, MESSAGE = %L, HINT = %L; END IF; END',
        query, code, message, hint));

-- Returns the SQL of a step, one statement per element, since Citus rejects several statements in one EXECUTE. Citus
-- also rejects an empty SELECT list.
--
-- A step creates a partition as a table and then attaches it. This doesn't block reads and writes of the parent, except
-- of the default partition, which Postgres locks and reads. CREATE TABLE ... PARTITION OF would block all reads and
-- writes of the parent.
--
-- A step that moves rows or removes a partition has to block them. Otherwise a writer that has already chosen the
-- default partition for its row would get an error. Such a step waits only for the lock on the parent. It takes its
-- other locks with NOWAIT, so other sessions wait behind it for at most one lock_timeout, or two if a foreign key
-- references the table. Any session that uses a partition through the parent also holds a lock on the parent.
CREATE FUNCTION sortkey_internal.partition_sql(
    parent regclass, action text, partition text, lower timestamptz, upper timestamptz, at timestamptz
) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    statements text[] := '{}';
    m record;
    rel pg_class;
    first text;
    last text;
    bounds text;
    locks text; -- the tables to lock with NOWAIT
    columns text;
    moved text; -- a condition
    triggers record;
BEGIN
    SELECT c.* INTO rel FROM pg_class c WHERE c.oid = parent;
    SELECT x.format, k.attname AS key, d.oid::regclass AS default_id, d.relkind AS default_kind INTO m
        FROM sortkey.partitioned_table x
        JOIN pg_partitioned_table p ON p.partrelid = x.parent
        JOIN pg_attribute k ON k.attrelid = p.partrelid AND k.attnum = p.partattrs[0]
        LEFT JOIN pg_class d ON d.oid = p.partdefid
        WHERE x.parent = parent;

    IF action IN ('detach', 'drop') THEN
        -- LOCK TABLE rejects foreign tables, and tables on which the role lacks privileges.
        SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid = m.default_id) INTO locks FROM pg_class c
            WHERE c.oid IN (to_regclass(partition), m.default_id) AND c.relkind <> 'f' AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE');
        statements := ARRAY[format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent)];
        IF locks IS NOT NULL THEN
            statements := statements || format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', locks);
        END IF;
        IF to_regclass(partition) = m.default_id THEN
            statements := statements || '{SET LOCAL row_security = off}' -- raise an error instead of hiding rows
                || sortkey_internal.error_if('SELECT 1 FROM ' || partition, 'object_not_in_prerequisite_state',
                    format('cannot drop default partition %s: it has rows', partition),
                    'Delete or move the rows, or call manage_partitions with default_partition => true.');
        END IF;
        -- DETACH CONCURRENTLY cannot run in a transaction. DROP alone would drop rows that foreign keys reference.
        statements := statements || format('ALTER TABLE %s DETACH PARTITION %s', parent, partition);
        IF action = 'drop' THEN
            statements := statements || format('DROP %s %s',
                (SELECT CASE c.relkind WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END FROM pg_class c WHERE c.oid = to_regclass(partition)), partition);
        END IF;
        RETURN statements;
    END IF;

    first := sortkey_internal.partition_bound(m.format, lower);
    last := sortkey_internal.partition_bound(m.format, upper);
    bounds := CASE action WHEN 'default' THEN 'DEFAULT' ELSE format('FOR VALUES FROM (%s) TO (%s)', first, last) END;
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN ARRAY[sortkey_internal.error_if('SELECT 1', 'duplicate_table',
            format('cannot create %s as a partition of %s %s: a relation with that name exists and is not a partition of the table', partition, parent, bounds),
            'Rename, drop or attach that relation. If retention detached it, rows that arrived for it since then are in the default partition.')];
    END IF;

    IF m.default_id IS NOT NULL AND (action = 'drain' OR lower <= at) THEN
        IF m.default_kind = 'p' THEN
            RETURN ARRAY[sortkey_internal.error_if('SELECT 1', 'wrong_object_type',
                format('cannot move rows to %s: default partition %s is itself partitioned', partition, m.default_id),
                'Move the rows by hand, or replace the default partition with a plain table.')];
        END IF;
        moved := concat_ws(' AND ', format('sortkey_internal.is_at_least(d.%I, %s)', m.key, first),
            CASE WHEN upper < 'infinity' THEN format('sortkey_internal.is_below(d.%I, %s)', m.key, last) END);
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns FROM pg_attribute a
            WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';

        statements := '{SET LOCAL row_security = off}'; -- raise an error instead of hiding rows
        IF EXISTS (SELECT FROM pg_constraint c WHERE c.condeferrable AND parent IN (c.conrelid, c.confrelid)) THEN
            statements := statements || '{SET CONSTRAINTS ALL IMMEDIATE}';
        END IF;
        statements := statements || format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent)
            || format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', m.default_id)
            || ARRAY( -- The move deletes and inserts rows. The deletes must not cascade.
                SELECT sortkey_internal.error_if(format('SELECT 1 FROM %s d JOIN %s r ON %s WHERE %s', m.default_id, c.conrelid::regclass,
                        string_agg(format('d.%I OPERATOR(%I.%s) r.%I', p.attname, n.nspname, o.oprname, f.attname), ' AND '), moved),
                    'foreign_key_violation', format('cannot move rows of %s to %s: %s references some of them by foreign key %I',
                        m.default_id, partition, c.conrelid::regclass, c.conname),
                    'Drop that foreign key, maintain the partitions, and add it again.')
                FROM pg_constraint c
                CROSS JOIN unnest(c.conkey, c.confkey, c.conpfeqop) AS k (f, p, op)
                JOIN pg_operator o ON o.oid = k.op
                JOIN pg_namespace n ON n.oid = o.oprnamespace
                JOIN pg_attribute f ON f.attrelid = c.conrelid AND f.attnum = k.f
                JOIN pg_attribute p ON p.attrelid = c.confrelid AND p.attnum = k.p
                WHERE c.contype = 'f' AND c.conparentid = 0
                    AND (c.confrelid = m.default_id OR c.confrelid IN (SELECT a FROM pg_partition_ancestors(parent) a)) -- includes the parent
                GROUP BY c.oid ORDER BY c.conname)
            || ARRAY( -- A subscriber gets both, or it would have two rows with one key.
                SELECT sortkey_internal.error_if(format('SELECT 1 FROM %s d WHERE %s', m.default_id, moved), 'object_not_in_prerequisite_state',
                    format('cannot move rows of %s to %s: publication %I has their INSERT, and not their DELETE', m.default_id, partition, p.pubname),
                    'Add delete to the option publish of the publication.')
                FROM pg_publication p
                WHERE p.pubinsert AND NOT p.pubdelete AND EXISTS (
                    SELECT FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
                    WHERE t.pubname = p.pubname AND (c.oid = m.default_id OR c.oid IN (SELECT a FROM pg_partition_ancestors(parent) a)))
                ORDER BY p.pubname);
    END IF;

    statements := statements || (format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)', partition, parent)
        || coalesce((SELECT format(' USING %I', a.amname) FROM pg_am a WHERE a.oid = rel.relam), '')
        || coalesce((SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace t WHERE t.oid = rel.reltablespace), ''));
    IF pg_get_userbyid(rel.relowner) <> current_user THEN
        statements := statements || format('ALTER TABLE %s OWNER TO %I', partition, pg_get_userbyid(rel.relowner));
    END IF;
    IF moved IS NULL THEN
        RETURN statements || format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds);
    END IF;

    -- A publication of the table includes the DELETE. To include the INSERT, attach the partition before it. Disable
    -- triggers, since the move adds and removes no rows.
    SELECT array_agg(t.disable) FILTER (WHERE t.event = 'DELETE') AS before_delete, array_agg(t.enable) FILTER (WHERE t.event = 'DELETE') AS after_delete,
            array_agg(t.disable) FILTER (WHERE t.event = 'INSERT') AS before_insert, array_agg(t.enable) FILTER (WHERE t.event = 'INSERT') AS after_insert
        INTO triggers
        FROM (
            SELECT o.event, format('ALTER TABLE %s DISABLE TRIGGER %I', o.target, t.tgname) AS disable,
                    format('ALTER TABLE %s %s TRIGGER %I', o.target, e.enable, t.tgname) AS enable
                FROM (VALUES ('DELETE', m.default_id, m.default_id::text, 8),
                    ('INSERT', parent, partition, 5)) o (event, source, target, bits) -- 5 = ROW + INSERT: a partition gets the row triggers of its table only
                JOIN pg_trigger t ON t.tgrelid = o.source AND NOT t.tgisinternal AND (t.tgtype & o.bits) = o.bits
                JOIN (VALUES ('O', 'ENABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) e (enabled, enable) ON e.enabled = t.tgenabled::text
                ORDER BY t.tgname) t;
    RETURN statements
        || triggers.before_delete
        || format('CREATE TEMPORARY TABLE sortkey_drained AS SELECT %s FROM %s d WHERE %s', columns, m.default_id, moved)
        || format('DELETE FROM %s d WHERE %s', m.default_id, moved)
        || triggers.after_delete
        || format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds)
        || triggers.before_insert
        || format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pg_temp.sortkey_drained', partition, columns, columns)
        || triggers.after_insert
        || '{DROP TABLE pg_temp.sortkey_drained}';
END
$$;

-- The actions are
--
--     create   creates a partition; if its time has begun, moves its rows out of the default partition
--     drain    creates a partition for rows in the default partition, and moves them. Rows after the last partition
--              ahead stay there until their time is near. Rows older than the retention stay permanently
--     default  creates the default partition
--     detach   detaches a partition that ended longer ago than the retention
--     drop     drops such a partition; or drops the default partition if default_partition is false, which fails
--              while it has rows. If a create or drain fails, the run doesn't drop the default partition
--
-- The steps fill the gaps between manually created partitions, and change these only by retention.
CREATE FUNCTION sortkey.plan_partitions(parent regclass DEFAULT NULL, at timestamptz DEFAULT clock_timestamp())
    RETURNS TABLE (
        parent_table regclass, action text, partition text, lower timestamptz, upper timestamptz, statements text[]
    )
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.*, sortkey_internal.partition_sql(s.parent_table, s.action, s.partition, s.lower, s.upper, plan_partitions.at)
    FROM sortkey_internal.partition_steps(plan_partitions.parent, plan_partitions.at) s
$$;
COMMENT ON FUNCTION sortkey.plan_partitions(regclass, timestamptz) IS
    'Returns the steps that maintain_partitions would take at a time, in order, for parent or for all managed tables. The statements of a row run in one transaction.';

-- A run is the maintenance of a table in one call of maintain_partitions(). Between its transactions the caller holds:
--
--     plan   the remaining steps, from partition_steps()
--     state  the state of the partitions at the time of the plan, to detect changes by other sessions
--     taken  the partitions of completed and failed steps, which this run doesn't plan again; also the default partition
--            after a step failed to create a partition
--
-- plan_partition_run locks the table and returns the run with a plan for its next step. If the run has no plan, or if
-- the state has changed, it makes a new plan.
--
-- It locks the table, the default partition and the partition to be removed. These locks make maintainers of a table
-- wait for one another, and prevent new foreign keys and triggers until the step is done. They don't block reads and
-- writes, so the timeout can be long. After deadlock_timeout, Postgres also cancels an autovacuum that holds such a
-- lock.
CREATE FUNCTION sortkey_internal.plan_partition_run(parent regclass, at timestamptz, run jsonb) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '2s'
AS $$
#variable_conflict use_variable
DECLARE
    id oid;
    state text;
BEGIN
    IF run->'plan' = '[]' THEN
        RETURN run;
    END IF;
    SELECT c.oid INTO id FROM pg_class c WHERE c.oid = parent;
    IF FOUND THEN
        PERFORM sortkey_internal.require_owner(parent); -- a lock, too, waits for other sessions
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
    END IF;
    -- Look up the default partition after locking the table, since another session can create or drop it until then.
    SELECT c.oid INTO id FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partdefid WHERE p.partrelid = parent AND c.relkind <> 'f';
    IF FOUND THEN
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
    END IF;
    state := sortkey_internal.partition_state(parent);
    IF run->>'state' IS DISTINCT FROM state THEN
        run := jsonb_build_object('state', state, 'taken', coalesce(run->'taken', '[]'), 'plan', (
            SELECT coalesce(jsonb_agg(s ORDER BY s.number), '[]')
            FROM sortkey_internal.partition_steps(parent, at) WITH ORDINALITY s (parent_table, action, partition, lower, upper, number)
            WHERE NOT coalesce(run->'taken', '[]') ? s.partition));
    END IF;
    IF run#>>'{plan,0,action}' IN ('detach', 'drop') THEN
        FOR id IN
            SELECT c.oid FROM pg_class c WHERE c.oid = to_regclass(run#>>'{plan,0,partition}') AND c.relkind <> 'f'
                AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')
        LOOP
            EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
        END LOOP;
        -- Until this had the lock, another session could give the name to another partition.
        IF sortkey_internal.partition_state(parent) IS DISTINCT FROM state THEN
            RETURN sortkey_internal.plan_partition_run(parent, at, run);
        END IF;
    END IF;
    RETURN run;
END
$$;

-- Returns a hash of the catalog rows of a table and its partitions, and of its settings.
CREATE FUNCTION sortkey_internal.partition_state(parent regclass) RETURNS text
    LANGUAGE sql STABLE
    RETURN md5(concat_ws(' ', (SELECT t FROM sortkey.partitioned_table t WHERE t.parent = partition_state.parent),
        (SELECT string_agg(c.oid || ' ' || c.xmin, ' ' ORDER BY c.oid) FROM pg_class c
            WHERE c.oid = partition_state.parent OR c.oid IN (SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = partition_state.parent))));

-- Logs a step, if the role has the privilege, and returns the run without that step. The step still holds its locks, so
-- the lock timeout for the log is short, and an error of the log is only a warning.
CREATE FUNCTION sortkey_internal.end_partition_step(
    parent regclass, run jsonb, begun_at timestamptz, attempts integer,
    action text, partition text, lower timestamptz, upper timestamptz, outcome text, problem text
) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '100ms'
AS $$
#variable_conflict use_variable
DECLARE
    plan jsonb := (run->'plan') - 0;
    taken jsonb := run->'taken' || to_jsonb(partition);
    state text := run->>'state';
    default_partition text;
BEGIN
    BEGIN
        IF outcome = 'done' THEN
            state := NULL;
            state := sortkey_internal.partition_state(parent);
        END IF;
        IF EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = 'sortkey.partition_log'::regclass AND NOT g.tgisinternal) THEN
            RAISE WARNING 'cannot write to partition_log: it has a trigger, which could run code of another role; drop it';
        ELSIF has_table_privilege('sortkey.partition_log', 'INSERT') THEN
            INSERT INTO sortkey.partition_log (begun_at, parent_table, action, partition, lower, upper, attempts, outcome, problem)
                VALUES (begun_at, parent::text, action, partition, lower, upper, attempts, outcome, problem);
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'cannot write to partition_log: %', SQLERRM;
    END;
    -- A lock timeout ends the run. The next step would wait for the same lock, and block other sessions behind it.
    IF partition IS NULL OR outcome = 'skipped' THEN
        RETURN '{"plan": []}';
    END IF;
    -- If a step fails to create a partition, the default partition still takes its rows. So this run doesn't drop it.
    IF outcome = 'failed' AND action IN ('create', 'drain') THEN
        SELECT p.partdefid::regclass::text INTO default_partition FROM pg_partitioned_table p WHERE p.partrelid = parent;
        plan := jsonb_path_query_array(plan, '$[*] ? (@.partition != $default)', jsonb_build_object('default', default_partition));
        taken := taken || to_jsonb(default_partition);
    END IF;
    RETURN jsonb_build_object('plan', plan, 'taken', taken, 'state', state);
END
$$;

-- Returns the seconds to pause after a lock timeout. The pause doubles with each attempt, up to 5 s, and is randomized
-- so that two callers don't collide repeatedly.
CREATE FUNCTION sortkey_internal.partition_pause(attempt integer, lock_timeout interval) RETURNS double precision
    LANGUAGE sql VOLATILE
    RETURN least(5, extract(epoch FROM lock_timeout)::double precision * 2 ^ (attempt - 1)) * (0.5 + random() / 2);

-- Takes the next step of a run and returns the run without that step. It returns no row if no steps are left. A failed
-- attempt releases its locks before the pause. If the plan itself fails, the action is plan.
--
-- The statements of the step run under path, the search_path of the caller, since functions that the table uses can
-- depend on it.
CREATE FUNCTION sortkey_internal.take_partition_step(
    parent regclass, at timestamptz, lock_timeout interval, path text, INOUT run jsonb,
    OUT action text, OUT partition text, OUT lower timestamptz, OUT upper timestamptz, OUT statements text[], OUT outcome text, OUT problem text
) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = 0   -- the function sets it to the argument
    SET row_security = off -- raise an error instead of hiding rows
AS $$
#variable_conflict use_variable
DECLARE
    attempts CONSTANT integer := 6;
    attempt integer := 0;
    begun_at timestamptz := clock_timestamp(); -- the start of this step
    tried text;                                -- the partition of the last attempt
    before integer := 0;                       -- the number of attempts at other steps
    ms CONSTANT numeric := ceil(extract(epoch FROM lock_timeout) * 1000);
    statement text;
    message text;
    detail text;
    hint text;
BEGIN
    IF (ms BETWEEN 1 AND 86400000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('lock_timeout %s is out of range (1 millisecond to 1 day)', coalesce(quote_literal(lock_timeout), 'NULL')),
            HINT = 'Other sessions wait behind this lock request. Use a short timeout such as 100 milliseconds.';
    END IF;
    IF parent IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'parent must not be NULL', HINT = 'Pass one table per call, or call maintain_partitions.';
    END IF;
    LOOP
        attempt := attempt + 1;
        action := 'plan';
        partition := NULL;
        lower := NULL;
        upper := NULL;
        statements := NULL;
        outcome := 'done';
        problem := NULL;
        BEGIN
            run := sortkey_internal.plan_partition_run(parent, at, run);
            SELECT s.* INTO action, partition, lower, upper
                FROM jsonb_to_record(run#>'{plan,0}') s (action text, partition text, lower timestamptz, upper timestamptz);
            -- A new plan can begin with another step.
            IF tried IS NOT NULL AND (partition = tried) IS NOT TRUE THEN
                begun_at := clock_timestamp();
                before := attempt - 1;
            END IF;
            tried := partition;
            IF action IS NOT NULL THEN
                PERFORM sortkey_internal.require_owner(parent); -- again, since the locks now keep other roles from adding a foreign key
                statements := sortkey_internal.partition_sql(parent, action, partition, lower, upper, at);
                PERFORM set_config('lock_timeout', ms::text, true);
                PERFORM set_config('search_path', path, true);
                FOREACH statement IN ARRAY statements LOOP
                    EXECUTE statement;
                END LOOP;
                PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
            END IF;
            EXIT;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                outcome := 'skipped';
                problem := SQLERRM;
                EXIT WHEN attempt = attempts;
                PERFORM pg_sleep(sortkey_internal.partition_pause(attempt, lock_timeout));
            WHEN OTHERS THEN
                outcome := 'failed';
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
                problem := concat_ws('; ', message, nullif(detail, ''), CASE WHEN SQLSTATE <> '2BP01' THEN nullif(hint, '') END); -- that one advises CASCADE
                -- After the plan, a row for the new partition went to the default partition. A new plan moves it.
                EXIT WHEN SQLSTATE <> '23514' OR action <> 'create' OR attempt = attempts;
                run := run - 'state';
        END;
    END LOOP;
    IF action IS NULL THEN
        PERFORM sortkey_internal.end_partition_step(parent, run, begun_at, attempt - before, 'maintain', NULL, NULL, NULL, outcome, NULL);
        RETURN;
    END IF;
    run := sortkey_internal.end_partition_step(parent, run, begun_at, attempt - before, action, partition, lower, upper, outcome, problem);
    RETURN NEXT;
END
$$;

-- The outcome is
--
--     done
--     skipped  because of a lock, after six attempts; this ends the run
--     failed   because of an error
--
-- A skipped or failed step is rolled back, and problem has the reason. A step holds its locks until the end of the
-- transaction.
CREATE FUNCTION sortkey.next_partition_step(
    parent regclass, at timestamptz DEFAULT clock_timestamp(), lock_timeout interval DEFAULT '100 milliseconds', INOUT run jsonb DEFAULT NULL,
    OUT action text, OUT partition text, OUT lower timestamptz, OUT upper timestamptz, OUT statements text[], OUT outcome text, OUT problem text
) RETURNS SETOF record
    LANGUAGE sql VOLATILE
AS $$
    SELECT s.* FROM sortkey_internal.take_partition_step(parent, at, lock_timeout, pg_catalog.current_setting('search_path'), run) s
$$;
COMMENT ON FUNCTION sortkey.next_partition_step(regclass, timestamptz, interval, jsonb) IS
    'Takes one step of the maintenance of a table and returns it, or no row if no steps are left. Call it in one transaction per step: first with NULL as run, then with the run that the last call returned.';

-- Returns the number of failed steps, with one more step of the given outcome. NULL: none.
CREATE FUNCTION sortkey_internal.count_failed(failed integer, outcome text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN outcome = 'failed' THEN coalesce(failed, 0) + 1 ELSE failed END;

-- Each step has its own transaction and a notice. If a step doesn't get a lock in six attempts, the procedure raises a
-- warning and leaves the step, and the later steps of that table, to the next call. Each attempt waits up to 2 s for
-- locks that don't block reads and writes, then lock_timeout for the others. If a step fails, the procedure takes the
-- other steps and then raises an error.
--
-- Inside a transaction block, Postgres rejects the first COMMIT with "invalid transaction termination", before any step.
-- A procedure that sets search_path cannot commit, so this one qualifies all names and has no operators.
CREATE PROCEDURE sortkey.maintain_partitions(
    parent regclass DEFAULT NULL, lock_timeout interval DEFAULT '100 milliseconds', dry_run boolean DEFAULT false,
    at timestamptz DEFAULT NULL
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    now_at CONSTANT pg_catalog.timestamptz := coalesce(at, pg_catalog.clock_timestamp());
    tables pg_catalog.oid[];
    id pg_catalog.oid;
    step pg_catalog.record;
    run pg_catalog.jsonb;
    failed integer;
BEGIN
    IF dry_run THEN
        FOR id IN SELECT m FROM sortkey_internal.managed_tables(parent, false) m LOOP
            BEGIN
                FOR step IN SELECT p.* FROM sortkey.plan_partitions(id, now_at) p LOOP
                    RAISE NOTICE E'% %\nBEGIN;\n%;\nCOMMIT;', step.action, step.partition, pg_catalog.array_to_string(step.statements, E';\n');
                END LOOP;
            EXCEPTION WHEN OTHERS THEN
                RAISE WARNING 'failed plan %: %', id::pg_catalog.regclass::pg_catalog.text, SQLERRM;
            END;
        END LOOP;
        RETURN;
    END IF;

    -- A statement must see all changes that were committed before it got its locks. SET TRANSACTION must come first in a transaction.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    tables := ARRAY(SELECT m FROM sortkey_internal.managed_tables(parent, true) m);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOREACH id IN ARRAY tables LOOP
        run := NULL;
        LOOP
            SELECT s.* INTO step FROM sortkey.next_partition_step(id, now_at, lock_timeout, run) s;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            EXIT WHEN step.action IS NULL;
            run := step.run;
            IF step.problem IS NULL THEN
                RAISE NOTICE '% %', step.action, step.partition;
            ELSE
                RAISE WARNING '% % %: %', step.outcome, step.action, coalesce(step.partition, id::pg_catalog.regclass::pg_catalog.text), step.problem;
                failed := sortkey_internal.count_failed(failed, step.outcome);
            END IF;
        END LOOP;
    END LOOP;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.format('partition steps failed: %s', failed),
            HINT = 'See the warnings for the steps and the reasons. All other steps are done, unless they depend on a failed one.';
    END IF;
END
$$;
COMMENT ON PROCEDURE sortkey.maintain_partitions(regclass, interval, boolean, timestamptz) IS
    'Creates partitions ahead, moves rows out of default partitions, and removes old partitions, for parent or for all managed tables. CALL it regularly, outside a transaction block. With dry_run it takes no steps and shows their SQL.';

-- Queries inline the functions of sortkey, so their callers need EXECUTE on the functions of sortkey_internal. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey_internal TO PUBLIC;

INSERT INTO sortkey.revision (version, name) VALUES (9, 'partitions');

DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;

COMMIT;
