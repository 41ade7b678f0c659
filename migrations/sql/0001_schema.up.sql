{{define "schema" -}}
{{$i := .Internal -}}
-- The base of the other migrations: the schemas, two tables that record the installation, and the clock of the server's
-- generators. {{.Schema}} has what users call, and {{$i}} what these functions call.

DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('server version %s is not supported; want Postgres 15 or later', current_setting('server_version'));
    END IF;
END
$$;

{{template "create schemas" .}}
{{template "check owners" .}}
{{template "protect these" .}}
            SELECT 'SCHEMA', n.nspname, n.nspacl, n.nspowner FROM pg_namespace n WHERE n.nspname = '{{$i}}' AND pg_has_role(n.nspowner, 'USAGE')
{{- template "protected"}}
-- One row per installed migration, whichever tool ran it. Programs read it to check the installation.
CREATE TABLE {{.Schema}}.revision (
    version integer PRIMARY KEY,
    name text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT current_timestamp
);
COMMENT ON TABLE {{.Schema}}.revision IS 'The installed migrations, one per row.';

-- The layouts that the functions use. A program with a different layout would misread IDs.
CREATE TABLE {{.Schema}}.layout (
    format text PRIMARY KEY,
    layout text NOT NULL
);
COMMENT ON TABLE {{.Schema}}.layout IS 'The bit layouts that the functions of this schema use. They never change.';

{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('{{.Schema}}.revision'::regclass, '{{.Schema}}.layout'::regclass)
{{- template "protected"}}
GRANT SELECT ON {{.Schema}}.revision, {{.Schema}}.layout TO PUBLIC; -- any role with USAGE on the schema can check the installation

-- The clock of a generator on the server.
--
-- Each format has a sequence, which is the only state of its generator. A value of the sequence is
--
--     window << shift | spare bits | unit of the window | sequence number
--
-- A window is {{.WindowMS}} ms of the format's time, which begin at a multiple of {{.WindowMS}} ms since its epoch. nextval() counts the
-- sequence numbers of the first unit of time in the window, then of the next unit, and so on. If a spare bit is set,
-- the window is full.
--
-- An ID has the time and the sequence number of a value, and nothing of the clock. nextval() never returns a value twice,
-- and only advance() sets the sequence, always to a later window. So no pair of time and sequence number occurs twice, even
-- if the clock steps back and many sessions generate IDs, and the IDs of all sessions increase in the order of their calls.
-- The clock only decides whether a value is fresh: its window is the current one or one of the next {{.WindowsAhead}}, and it isn't
-- full. Otherwise the generator calls advance(). IDs are less than {{.WindowMS}} ms early, and less than {{.AheadMS}} ms ahead of the clock.
-- If the clock steps back by less than {{.WindowMS}} ms, the generator continues: a value of the window after these is fresh, too.
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
CREATE FUNCTION {{$i}}.advance(
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
    ahead CONSTANT bigint := {{.WindowsAhead}};
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
                    HINT = 'Run SELECT * FROM run_command_on_workers(''SELECT {{.Schema}}.prepare_citus_worker()'') at the coordinator.';
            ELSIF NOT has_sequence_privilege(clock, 'SELECT') OR NOT has_sequence_privilege(clock, 'UPDATE') THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
                    MESSAGE = format('role %I lacks SELECT or UPDATE on sequence %s', current_user, clock),
                    HINT = 'The functions and sequences of schema {{.Internal}} must have the same owner.';
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
COMMENT ON FUNCTION {{$i}}.advance(regclass, timestamptz, integer, integer, integer, integer) IS
    'Changes the window of a generator''s clock, and returns the first value of the new window.';

-- Returns the bits of a sequence number of T_at(), or raises an error if it is out of range or the time is infinite.
CREATE FUNCTION {{$i}}.sequence_bits(format text, t timestamptz, n integer, largest integer) RETURNS bigint
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
CREATE FUNCTION {{$i}}.not_zero(format text, id anyelement, zero anyelement) RETURNS anyelement
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
{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
