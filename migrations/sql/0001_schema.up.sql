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
--     counter << (unit_bits + 1) | wide << unit_bits | unit
--
-- where unit is a time, counted from the format's epoch in the format's units (1 ms, or 4 ms for sno). The unit begins
-- a window: the IDs of the window have times from unit to unit + width - 1. A wide window lasts {{.WindowMS}} ms, rounded up to
-- whole units; any other window is one unit. The sequence's increment is 1 << (unit_bits + 1), so nextval() increments
-- the counter within a window. It cannot overflow into another window: the sequence ends first. Only advance_clock()
-- changes the window, and only to one that begins after the end of the current one. Therefore no pair of time and
-- counter occurs twice, even if the clock steps back and many sessions generate IDs. The IDs of a session increase, unless
-- the clock steps back within a window.
--
-- A generator calls nextval(). If the clock is in the window, or up to {{.AheadMS}} ms before it, and the counter fits the
-- format, the ID has this counter and the later one of the clock's time and the window's first unit. Otherwise the
-- generator calls advance_clock().
--
-- Most windows are wide, so that single inserts seldom have to change the window. After a full window, the next one is
-- one unit, so that a generator reaches the full rate of its format.
--
-- advance_clock() changes the window in one expression, which takes an advisory lock, compares the window with the one
-- that it knows, sets the sequence, and releases the lock. PL/pgSQL handles interrupts only between statements, so no
-- canceled or terminated session leaves the lock behind. A subtransaction would be slower, and on Citus it would send
-- a SAVEPOINT to the workers, which fails during a COPY.
--
-- The first value of a sequence is a full unit 0, so the first call sets the window from the clock.
--
-- If the clock steps back by more than {{.AheadMS}} ms, calls fail until it has caught up. Calls that need to wait a second or less
-- wait instead. They wait in pg_sleep(), which uses the same clock. If the clock steps back during the wait, the wait
-- gets longer by the size of the step. statement_timeout and lock_timeout use the same clock and don't end it;
-- pg_cancel_backend() does.
--
-- A copy of the database that generates IDs beside the original, made with TEMPLATE, from a backup or by replication,
-- needs its own node numbers. So does a second installation in the same database, which has its own sequences.
CREATE FUNCTION {{$i}}.advance_clock(
    clock regclass,
    epoch timestamptz,
    unit_ms integer,        -- milliseconds per unit
    unit_bits integer,
    counter_bits integer,
    first_counter integer   -- counter at the start of a window, unless the window before it was full
) RETURNS bigint            -- a value of the sequence for the caller alone; its unit is the time of the ID
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last_unit CONSTANT bigint := (1::bigint << unit_bits) - 1;
    wide_flag CONSTANT bigint := 1::bigint << unit_bits;
    window_mask CONSTANT bigint := (2::bigint << unit_bits) - 1;
    counter_shift CONSTANT integer := unit_bits + 1;
    capacity CONSTANT bigint := 1::bigint << counter_bits;
    wide_units CONSTANT bigint := ({{.WindowMS}} + unit_ms - 1) / unit_ms;
    ahead CONSTANT bigint := {{.AheadMS}} / unit_ms;
    lock_class CONSTANT integer := 1936683115; -- 'sork' in ASCII
    lock_key CONSTANT integer := clock::oid::integer;
    max_wait CONSTANT integer := 1000; -- milliseconds
    value bigint;
    unit bigint;
    counter bigint;
    width bigint;
    now_unit bigint;
    next_unit bigint;
    target bigint; -- the value to set
    last_value bigint;
    step bigint[];
    pause bigint;
    waited bigint := 0;  -- milliseconds, for a later unit
    busy integer := 0;   -- number of waits for the lock, of 1 ms or more
BEGIN
    LOOP
        value := nextval(clock);
        now_unit := floor((tstzrange_subdiff(clock_timestamp(), epoch) + 0.0000005) * 1000 / unit_ms);
        unit := value & last_unit;
        counter := value >> counter_shift;
        width := CASE WHEN value & wide_flag <> 0 THEN wide_units ELSE 1 END;
        IF counter < capacity AND now_unit BETWEEN unit - ahead AND unit + width - 1 THEN
            -- Another session has changed the window.
            RETURN (counter << counter_shift) | greatest(unit, now_unit);
        END IF;

        -- The earliest unit that can follow: of this window, or of the next one if this one is full or over.
        next_unit := CASE WHEN counter < capacity AND now_unit < unit THEN unit ELSE greatest(unit + width, now_unit) END;
        target := NULL;
        IF next_unit <= least(now_unit + ahead, last_unit) THEN
            target := next_unit
                -- a wide window, unless this one is full and the next one follows at once
                | CASE WHEN (counter < capacity OR next_unit > unit + width) AND next_unit + wide_units <= last_unit THEN wide_flag ELSE 0 END
                | CASE WHEN counter < capacity OR next_unit > unit + width THEN first_counter::bigint << counter_shift ELSE 0 END;
        ELSIF counter > 2 * capacity THEN
            -- Failed calls have incremented the counter. Reset it, still full, so that the sequence doesn't end.
            target := (value & window_mask) | (capacity << counter_shift);
        END IF;

        IF target IS NOT NULL THEN
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
                CASE WHEN pg_sequence_last_value(clock) & window_mask = value & window_mask THEN setval(clock, target) END,
                pg_advisory_unlock(lock_class, lock_key)::integer] END;
            IF step IS NULL THEN
                -- Another session holds the lock, for microseconds unless it is stopped. Wait without nextval(), so
                -- that the sequence doesn't end.
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
            CONTINUE WHEN step[1] IS NULL; -- another session has changed the window
            IF (target >> counter_shift) < capacity THEN
                RETURN (target & ~window_mask) | greatest(next_unit, now_unit);
            END IF;
        END IF;

        IF next_unit > last_unit THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
                MESSAGE = format('clock time %s is past the last time that IDs of %s can hold', clock_timestamp(), clock),
                HINT = 'Check the server''s clock, or use a format or layout that ends later.';
        END IF;
        pause := (next_unit - ahead - now_unit) * unit_ms;
        IF waited + pause > max_wait AND unit = 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('clock time %s is before %s, the first time that IDs of %s can hold',
                    clock_timestamp(), epoch + unit_ms * interval '1 millisecond', clock),
                HINT = 'Correct the server''s clock, or wait until that time.';
        ELSIF waited + pause > max_wait AND unit > now_unit + ahead THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('clock time %s is behind %s, the time of the last ID of %s',
                    clock_timestamp(), epoch + unit * unit_ms * interval '1 millisecond', clock),
                HINT = 'The server''s clock was set back. Correct it, or wait until it has caught up.';
        ELSIF waited + pause > max_wait THEN
            RAISE EXCEPTION USING ERRCODE = 'configuration_limit_exceeded',
                MESSAGE = format('too many calls: %s has %s IDs per %s ms, and calls exceeded this rate for %s ms',
                    clock, capacity, unit_ms, max_wait),
                HINT = 'Generate IDs in the program, with separate node numbers, or use a format with more IDs per millisecond.';
        END IF;
        -- Sleep a little longer than needed, so that the next calls have several units without a wait.
        pause := pause + 2;
        PERFORM pg_sleep(pause / 1000.0);
        waited := waited + pause;
    END LOOP;
END
$$;
COMMENT ON FUNCTION {{$i}}.advance_clock(regclass, timestamptz, integer, integer, integer, integer) IS
    'Changes the window of a generator''s clock and returns a value of the new window.';

-- Raises the error of a node number that is out of range.
CREATE FUNCTION {{$i}}.reject_node(format text, node integer, largest integer) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('node number %s of %s is out of range (0 to %s)', coalesce(node::text, 'NULL'), format, largest);
END
$$;

-- Returns the bits of a sequence number of T_at(), or raises an error if it is out of range.
CREATE FUNCTION {{$i}}.sequence_bits(format text, n integer, largest integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF n BETWEEN 0 AND largest THEN
        RETURN n;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('sequence number %s of %s is out of range (0 to %s)', coalesce(n::text, 'NULL'), format, largest),
        HINT = 'Use the next time unit for further IDs.';
END
$$;

-- Returns the argument of T_at(), or raises an error if it is infinite.
CREATE FUNCTION {{$i}}.finite_time(t timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql IMMUTABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF isfinite(t) THEN
        RETURN t;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow', MESSAGE = format('cannot generate an ID for time %s', t),
        HINT = 'Pass a finite time.';
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
