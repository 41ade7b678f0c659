{{define "snowflake_si" -}}
-- SnowflakeSI, a bigint of 53 bits, which a JavaScript number represents exactly.

CREATE DOMAIN {{.Schema}}.snowflake_si AS bigint
    CONSTRAINT snowflake_si_is_positive_and_53_bits CHECK (VALUE BETWEEN 1 AND 9007199254740991);
COMMENT ON DOMAIN {{.Schema}}.snowflake_si IS 'A 53-bit ID that sorts by time. DROP SCHEMA {{.Schema}} CASCADE drops the columns of this type.';

{{if .SnowflakeSI -}}
{{template "snowflake_si functions" .}}
{{else -}}
-- The format counts time from a base clock, which is a setting of the installation. Without it, there are no functions.
{{end}}
{{template "revision" .}}
{{- end}}

{{define "snowflake_si functions" -}}
{{$s := .Schema}}{{with .SnowflakeSI -}}
--     milliseconds since {{.First}} : {{.UnitBits}} | machine : {{.MachineBits}} | index : {{.SequenceBits}}
--
-- It lasts until {{.Last}}.

INSERT INTO {{$s}}.layout (format, layout) VALUES ('snowflake_si', '{{.Layout}}');

-- Returns the time of an ID, or NULL if the number is not an ID.
CREATE FUNCTION {{$s}}.snowflake_si_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 9007199254740991 THEN {{.Instant "(id >> %d)" .TimeShift}} END;

CREATE FUNCTION {{$s}}.snowflake_si_parts(id bigint, OUT "time" timestamptz, OUT machine integer, OUT index integer)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF id NOT BETWEEN 0 AND 9007199254740991 THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is not a SnowflakeSI; want 0 to 9007199254740991', id);
    END IF;
    "time" := {{.Instant "(id >> %d)" .TimeShift}};
    machine := (id >> {{.SequenceBits}}) & {{.MaxMachine}};
    index := id & {{.MaxSequence}};
END
$$;

-- Returns the decimal number, or NULL if it is not an ID.
CREATE FUNCTION {{$s}}.snowflake_si_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 9007199254740991 THEN id::text END;

CREATE FUNCTION {{$s}}.snowflake_si_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF s COLLATE "C" ~ '^(0|[1-9][0-9]{0,15})$' THEN
        IF s::bigint <= 9007199254740991 THEN
            RETURN s::bigint;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as SnowflakeSI; want a decimal integer from 0 to 9007199254740991', left(s, 64)),
        HINT = 'Remove signs, spaces and leading zeros.';
END
$$;

-- Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time.
CREATE FUNCTION {{$s}}.snowflake_si_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << {{.TimeShift}};
END
$$;

CREATE SEQUENCE {{$s}}.snowflake_si_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.snowflake_si_clock IS 'The state of next_snowflake_si: a time and a counter. Setting it by hand can cause duplicate IDs.';

-- Generates an ID, for the default of a column. No program or other database may use the same machine.
CREATE FUNCTION {{$s}}.next_snowflake_si(machine integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
AS $$
{{template "tick" .}}CASE WHEN {{.Fits "machine" .MachineBits}}
        THEN {{template "next value" .}} END;
BEGIN
    IF ({{template "tick is good" .}}) IS NOT TRUE THEN
        IF value IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
                MESSAGE = pg_catalog.format('node number is out of range: machine %s (0 to {{.MaxMachine}})', coalesce(machine::pg_catalog.text, 'NULL'));
        END IF;
        value := {{$s}}.advance_clock('{{$s}}.snowflake_si_clock', {{.EpochMS}}, 1, {{.UnitBits}}, {{.ClockBits}}, 0);
    END IF;
    RETURN ({{.Unit}} OPERATOR(pg_catalog.<<) {{.TimeShift}})
        OPERATOR(pg_catalog.|) (machine::bigint OPERATOR(pg_catalog.<<) {{.SequenceBits}})
        OPERATOR(pg_catalog.|) (value OPERATOR(pg_catalog.>>) {{.UnitBits}});
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.next_snowflake_si(integer) FROM PUBLIC;
{{template "protect" .}}
{{end}}
{{- end}}
