{{define "snowflake" -}}
{{$s := .Schema}}{{with .Snowflake -}}
-- Snowflake, a bigint:
--
--     0 | milliseconds since {{.First}} : {{.UnitBits}} | datacenter : {{.DatacenterBits}} | worker : {{.WorkerBits}} | sequence : {{.SequenceBits}}
--
-- It lasts until {{.Last}}.

INSERT INTO {{$s}}.layout (format, layout) VALUES ('snowflake', '{{.Layout}}');

CREATE DOMAIN {{$s}}.snowflake AS bigint
    CONSTRAINT snowflake_is_positive CHECK (VALUE > 0);
COMMENT ON DOMAIN {{$s}}.snowflake IS 'A 64-bit ID that sorts by time. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- Returns the time of an ID, or NULL if it is negative.
CREATE FUNCTION {{$s}}.snowflake_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN {{.Instant "(id >> %d)" .TimeShift}} END;

CREATE FUNCTION {{$s}}.snowflake_parts(
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
    "time" := {{.Instant "(id >> %d)" .TimeShift}};
    datacenter := (id >> {{.DatacenterShift}}) & {{.MaxDatacenter}};
    worker := (id >> {{.WorkerShift}}) & {{.MaxWorker}};
    sequence := id & {{.MaxSequence}};
END
$$;

-- Returns the decimal number, or NULL if it is negative.
CREATE FUNCTION {{$s}}.snowflake_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN id::text END;

-- Parses the output of snowflake_text. All from_text functions match in collation "C", since nondeterministic
-- collations of the argument don't support patterns.
CREATE FUNCTION {{$s}}.snowflake_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF s COLLATE "C" ~ '^(0|[1-9][0-9]{0,18})$' THEN
        IF s::numeric <= 9223372036854775807 THEN
            RETURN s::bigint;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as Snowflake; want a decimal integer from 0 to 9223372036854775807', left(s, 64)),
        HINT = 'Remove signs, spaces and leading zeros.';
END
$$;

-- Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time, such as
-- id >= snowflake_floor(t1) AND id < snowflake_floor(t2).
CREATE FUNCTION {{$s}}.snowflake_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << {{.TimeShift}};
END
$$;

CREATE SEQUENCE {{$s}}.snowflake_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.snowflake_clock IS 'The state of next_snowflake: a time and a counter. Setting it by hand can cause duplicate IDs.';

-- Generates an ID, for the default of a column. No program or other database may use the same datacenter and worker.
CREATE FUNCTION {{$s}}.next_snowflake(datacenter integer, worker integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
AS $$
{{template "tick" .}}CASE WHEN {{.Fits "datacenter" .DatacenterBits}} AND {{.Fits "worker" .WorkerBits}}
        THEN {{template "next value" .}} END;
BEGIN
    IF ({{template "tick is good" .}}) IS NOT TRUE THEN
        IF value IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
                MESSAGE = pg_catalog.format('node number is out of range: datacenter %s (0 to {{.MaxDatacenter}}), worker %s (0 to {{.MaxWorker}})',
                    coalesce(datacenter::pg_catalog.text, 'NULL'), coalesce(worker::pg_catalog.text, 'NULL'));
        END IF;
        value := {{$s}}.advance_clock('{{$s}}.snowflake_clock', {{.EpochMS}}, 1, {{.UnitBits}}, {{.ClockBits}}, 0);
    END IF;
    RETURN ({{.Unit}} OPERATOR(pg_catalog.<<) {{.TimeShift}})
        OPERATOR(pg_catalog.|) (datacenter::bigint OPERATOR(pg_catalog.<<) {{.DatacenterShift}})
        OPERATOR(pg_catalog.|) (worker::bigint OPERATOR(pg_catalog.<<) {{.WorkerShift}})
        OPERATOR(pg_catalog.|) (value OPERATOR(pg_catalog.>>) {{.UnitBits}});
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.next_snowflake(integer, integer) FROM PUBLIC;
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
