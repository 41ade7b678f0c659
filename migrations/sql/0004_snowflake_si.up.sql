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
{{$s := .Schema}}{{$i := .Internal}}{{with .SnowflakeSI -}}
--     milliseconds since {{.First}} : {{.UnitBits}} | machine : {{.MachineBits}} | index : {{.SequenceBits}}
--
-- It lasts until {{.Last}}. The node number is the machine.

INSERT INTO {{$s}}.layout (format, layout) VALUES ('snowflake_si', '{{.Layout}}');

CREATE FUNCTION {{$s}}.snowflake_si_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 9007199254740991 THEN {{.Instant "(id >> %d)" .TimeShift}} END;
COMMENT ON FUNCTION {{$s}}.snowflake_si_time(bigint) IS 'Returns the time of an ID, or NULL if the number is not an ID.';

CREATE FUNCTION {{$s}}.snowflake_si_node(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 9007199254740991 THEN ((id >> {{.SequenceBits}}) & {{.MaxNode}})::integer END;
COMMENT ON FUNCTION {{$s}}.snowflake_si_node(bigint) IS 'Returns the node number of an ID, its machine, or NULL if the number is not an ID.';

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
    machine := (id >> {{.SequenceBits}}) & {{.MaxNode}};
    index := id & {{.MaxSequence}};
END
$$;
COMMENT ON FUNCTION {{$s}}.snowflake_si_parts(bigint) IS 'Returns the parts of an ID, or raises an error if the number is not an ID.';

CREATE FUNCTION {{$s}}.snowflake_si_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << {{.TimeShift}};
END
$$;
COMMENT ON FUNCTION {{$s}}.snowflake_si_floor(timestamptz) IS
    'Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time.';

{{template "clock" .}}
{{template "generator" .}}
{{template "at" .}}
{{template "protect" .}}
{{end}}
{{- end}}
