{{define "snowflake" -}}
{{$s := .Schema}}{{$i := .Internal}}{{with .Snowflake -}}
-- Snowflake, a bigint:
--
--     0 | milliseconds since {{.First}} : {{.UnitBits}} | datacenter : {{.DatacenterBits}} | worker : {{.WorkerBits}} | sequence : {{.SequenceBits}}
--
-- It lasts until {{.Last}}. The node number is the number in the bits of datacenter and worker.

INSERT INTO {{$s}}.layout (format, layout) VALUES ('snowflake', '{{.Layout}}');

CREATE DOMAIN {{$s}}.snowflake AS bigint
    CONSTRAINT snowflake_is_positive CHECK (VALUE > 0);
COMMENT ON DOMAIN {{$s}}.snowflake IS 'A 64-bit ID that sorts by time. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

CREATE FUNCTION {{$s}}.snowflake_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN {{.Instant "(id >> %d)" .TimeShift}} END;
COMMENT ON FUNCTION {{$s}}.snowflake_time(bigint) IS 'Returns the time of an ID, or NULL if it is negative.';

CREATE FUNCTION {{$s}}.snowflake_node(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id >= 0 THEN ((id >> {{.WorkerShift}}) & {{.MaxNode}})::integer END;
COMMENT ON FUNCTION {{$s}}.snowflake_node(bigint) IS 'Returns the node number of an ID, or NULL if the ID is negative.';

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
COMMENT ON FUNCTION {{$s}}.snowflake_parts(bigint) IS 'Returns the parts of an ID, or raises an error if it is negative.';

CREATE FUNCTION {{$s}}.snowflake_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << {{.TimeShift}};
END
$$;
COMMENT ON FUNCTION {{$s}}.snowflake_floor(timestamptz) IS
    'Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time: id >= snowflake_floor(t1) AND id < snowflake_floor(t2).';

{{template "clock" .}}
{{template "generator" .}}
{{template "at" .}}
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
