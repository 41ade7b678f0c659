{{define "schema" -}}
-- The base of the other migrations: the schema, two tables that record the installation, and the clock of the server's
-- generators.

DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('server version %s is not supported; want Postgres 15 or later', current_setting('server_version'));
    END IF;
    -- The schema can exist already, created for a role that must not create schemas or for a tool's version table.
    IF to_regnamespace('{{.Schema}}') IS NULL THEN
        CREATE SCHEMA {{.Schema}};
        {{template "mark schema" .}}
    END IF;
END
$$;

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

GRANT SELECT ON {{.Schema}}.revision, {{.Schema}}.layout TO PUBLIC; -- any role with USAGE on the schema can check the installation

-- The clock of a generator on the server.
--
-- Each format has a sequence, which is the only state of its generator. A value of the sequence is
--
--     counter << unit_bits | unit
--
-- where unit is a time, counted from the format's epoch in the format's units (1 ms, or 4 ms for sno). The sequence's
-- increment is 1 << unit_bits. So nextval() increments the counter within a unit. It cannot overflow into another
-- unit: the sequence ends first. Only advance_clock() changes the unit, in one session at a time, and only to a later
-- one. Therefore no pair of unit and counter occurs twice, even if the clock steps back and many sessions generate IDs.
--
-- A generator calls nextval(). If the unit is that of the clock, or up to {{.AheadMS}} ms ahead of it, and the counter
-- fits the format, the value becomes an ID. Otherwise the generator calls advance_clock().
--
-- advance_clock() takes a transaction-level advisory lock in a subtransaction, and rolls the subtransaction back when
-- it has advanced the sequence. A rollback doesn't revert a sequence, but it releases the lock at once. If the lock
-- were held until the end of the transaction, an open transaction would block all inserts. A session-level lock could
-- remain after an error or a canceled statement.
--
-- The first value of a sequence is a full unit 0, so the first call sets the unit from the clock.
--
-- If the clock steps back, calls fail until it has caught up. Calls that need to wait a second or less wait instead.
-- They wait in pg_sleep(), which uses the same clock. If the clock steps back during the wait, the wait gets longer by
-- the size of the step. statement_timeout and lock_timeout use the same clock and don't end it; pg_cancel_backend()
-- does.
--
-- A copy of the database that generates IDs beside the original, made with TEMPLATE, from a backup or by replication,
-- needs its own node numbers. So does a second installation in the same database, which has its own sequences.
CREATE FUNCTION {{.Schema}}.advance_clock(
    clock regclass,
    epoch bigint,           -- milliseconds since 1970
    unit_ms integer,        -- milliseconds per unit
    unit_bits integer,
    sequence_bits integer,
    first_counter integer   -- counter at the start of a unit, unless the unit before it was full
) RETURNS bigint            -- a value of the sequence, for the caller alone
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last_unit CONSTANT bigint := (1::bigint << unit_bits) - 1;
    capacity CONSTANT bigint := 1::bigint << sequence_bits;
    ahead CONSTANT bigint := {{.AheadMS}} / unit_ms;
    max_wait CONSTANT integer := 1000; -- milliseconds
    value bigint;
    unit bigint;
    counter bigint;
    now_unit bigint;
    next_unit bigint;
    taken bigint;
    pause bigint;
    waited bigint := 0;
BEGIN
    LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(1936683115, clock::oid::integer); -- the number is 'sork' in ASCII
            value := pg_sequence_last_value(clock);
            IF value IS NULL THEN
                -- The last value is the only record of the generated IDs.
                RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                    MESSAGE = format('sequence %s was set by hand and has no last value', clock),
                    HINT = format('Switch to a node number with which no ID was generated. Then run SELECT setval(%L, 1).', clock);
            END IF;
            unit := value & last_unit;
            counter := value >> unit_bits;
            now_unit := floor((extract(epoch FROM clock_timestamp()) * 1000 - epoch) / unit_ms);

            -- Another session may have advanced the clock while this one waited for the lock.
            IF unit >= now_unit AND unit <= now_unit + ahead AND counter < capacity THEN
                taken := nextval(clock);
                counter := taken >> unit_bits;
            END IF;
            -- If somebody sets a CACHE on the sequence, the value can be from another unit.
            IF taken IS NULL OR counter >= capacity OR (taken & last_unit) <> unit THEN
                taken := NULL;
                next_unit := greatest(unit + 1, now_unit);
                IF next_unit <= least(now_unit + ahead, last_unit) THEN
                    taken := next_unit;
                    IF counter < capacity OR next_unit > unit + 1 THEN
                        taken := taken | (first_counter::bigint << unit_bits);
                    END IF;
                    PERFORM setval(clock, taken);
                ELSIF counter > 2 * capacity THEN
                    -- Failed calls have incremented the counter. Reset it, still full, so that the sequence doesn't end.
                    PERFORM setval(clock, unit | (capacity << unit_bits));
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'SK000', MESSAGE = 'release the lock';
        EXCEPTION WHEN SQLSTATE 'SK000' THEN
            NULL;
        END;
        IF taken IS NOT NULL THEN
            RETURN taken;
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
                    clock_timestamp(), to_timestamp((epoch + unit_ms) / 1000.0), clock),
                HINT = 'Correct the server''s clock, or wait until that time.';
        ELSIF waited + pause > max_wait AND unit > now_unit + ahead THEN
            RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = format('clock time %s is behind %s, the time of the last ID of %s',
                    clock_timestamp(), to_timestamp((epoch + unit * unit_ms) / 1000.0), clock),
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
REVOKE EXECUTE ON FUNCTION {{.Schema}}.advance_clock(regclass, bigint, integer, integer, integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION {{.Schema}}.advance_clock(regclass, bigint, integer, integer, integer, integer) IS
    'Internal function of the next_... functions.';

{{template "revision" .}}
{{- end}}
