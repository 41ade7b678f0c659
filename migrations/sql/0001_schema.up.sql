{{define "schema" -}}
-- What the other migrations build on: the schema, two tables that say what is installed, and the clock of the
-- generators on the server.

DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('server version %s is not supported; want Postgres 15 or later', current_setting('server_version'));
    END IF;
    -- It may be there: made beforehand for a role that mustn't make schemas, or for a tool's table of versions.
    IF to_regnamespace('{{.Schema}}') IS NULL THEN
        CREATE SCHEMA {{.Schema}};
        {{template "mark schema" .}}
    END IF;
END
$$;

-- One row per migration that was run, whichever tool ran it. A program asks here whether it finds what it needs.
CREATE TABLE {{.Schema}}.revision (
    version integer PRIMARY KEY,
    name text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT current_timestamp
);
COMMENT ON TABLE {{.Schema}}.revision IS 'The migrations of sortkey that were run.';

-- The layouts that the functions were made for. A program with another one would take IDs for what they aren't.
CREATE TABLE {{.Schema}}.layout (
    format text PRIMARY KEY,
    layout text NOT NULL
);
COMMENT ON TABLE {{.Schema}}.layout IS 'What the bits of the formats with a choice mean in the functions of this schema. It never changes.';

GRANT SELECT ON {{.Schema}}.revision, {{.Schema}}.layout TO PUBLIC; -- who may use the schema may ask

-- The clock of a generator on the server.
--
-- Each format that is minted here has a sequence, and all that a generator remembers is in it. Its value is
--
--     counter << unit_bits | unit
--
-- where unit is a time, counted in the format's units (milliseconds, or 4 of them) from its epoch. The sequence's
-- increment is 1 << unit_bits. So nextval() counts up within a unit, and can't get from one unit into another: before
-- it did, the sequence would end. Only advance_clock() sets the unit, one session at a time, and only to a later one.
-- From that it follows that no pair of unit and counter comes up twice, whatever the clock does and however many
-- sessions there are.
--
-- A generator calls nextval(), and makes an ID of what it gets if the unit is the clock's (or up to {{.AheadMS}} ms ahead
-- of it) and the counter fits the format. If not, it calls advance_clock().
--
-- The lock is one of transactions, taken in a subtransaction that is rolled back when the work is done. A sequence
-- isn't rolled back, but the lock is given back at once: were it kept until the end of the transaction, one that stays
-- open would stop all inserts. And no error or cancelled statement can leave it behind, as one of sessions could be.
--
-- A sequence begins with a value that is full, of unit 0: so the first call finds out the time.
--
-- If the clock is set back, calls fail until it has caught up; those that it catches up with within a second wait. They
-- wait in pg_sleep(), which goes by the same clock: one that the clock is set back under waits for as much longer, and
-- neither statement_timeout nor lock_timeout, which go by that clock too, end it. pg_cancel_backend() does.
--
-- A copy of the database that mints beside the original, whether made with TEMPLATE, from a backup or by replication,
-- needs node numbers of its own, and so does another installation in the same database: it has sequences of its own.
CREATE FUNCTION {{.Schema}}.advance_clock(
    clock regclass,
    epoch bigint,           -- milliseconds since 1970
    unit_ms integer,        -- milliseconds in a unit
    unit_bits integer,
    sequence_bits integer,
    first_counter integer   -- with which a unit begins, unless the one before it was full
) RETURNS bigint            -- a value of the sequence that is the caller's
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
                -- Without it there would be no telling what was minted.
                RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
                    MESSAGE = format('sequence %s was set by hand and has no last value', clock);
            END IF;
            unit := value & last_unit;
            counter := value >> unit_bits;
            now_unit := floor((extract(epoch FROM clock_timestamp()) * 1000 - epoch) / unit_ms);

            -- Another session may have advanced the clock while this one waited for the lock.
            IF unit >= now_unit AND unit <= now_unit + ahead AND counter < capacity THEN
                taken := nextval(clock);
                counter := taken >> unit_bits;
            END IF;
            -- With a CACHE, which nobody should give the sequence, the value can be of another unit.
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
                    -- Calls that failed have counted on. Keep the sequence from its end; it stays full.
                    PERFORM setval(clock, unit | (capacity << unit_bits));
                END IF;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'SK000', MESSAGE = 'give back the lock';
        EXCEPTION WHEN SQLSTATE 'SK000' THEN
            NULL;
        END;
        IF taken IS NOT NULL THEN
            RETURN taken;
        END IF;

        IF next_unit > last_unit THEN
            RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
                MESSAGE = format('clock time %s is past the last time that IDs of %s can hold', clock_timestamp(), clock),
                HINT = 'Check the server''s clock, or change to a format or layout with a later end.';
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
        -- A little more than needed: then the next calls find several units that they need not wait for.
        pause := pause + 2;
        PERFORM pg_sleep(pause / 1000.0);
        waited := waited + pause;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION {{.Schema}}.advance_clock(regclass, bigint, integer, integer, integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION {{.Schema}}.advance_clock(regclass, bigint, integer, integer, integer, integer) IS
    'Part of the next_... functions, not for anybody else.';

{{template "revision" .}}
{{- end}}
