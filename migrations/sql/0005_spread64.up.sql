{{define "spread64" -}}
{{$s := .Schema}}{{with .Spread64 -}}
-- Spread64, a bigint. Half of the IDs are negative:
--
--     milliseconds since 1970 : 42, the bits in reverse | sequence : 6 | 000000 | generator : 6 | cluster : 4
--
-- It lasts until {{.Last}}. By design, IDs do not sort by time, so there is no floor function.

CREATE DOMAIN {{$s}}.spread64 AS bigint
    CONSTRAINT spread64_is_not_zero CHECK (VALUE <> 0)
    CONSTRAINT spread64_has_no_reserved_bits CHECK ((VALUE & 64512) = 0);
COMMENT ON DOMAIN {{$s}}.spread64 IS 'A 64-bit ID that spreads over all bigint values, with a text of 16 hexadecimal digits. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- Returns the time of an ID.
--
-- It reverses the upper 42 bits: 5 bytes and 2 bits. Multiplication by 0x0202020202 makes 5 copies of a byte, and the
-- mask 0x010884422010 selects each bit once. Modulo 1023, which adds groups of 10 bits, yields them in reverse order.
CREATE FUNCTION {{$s}}.spread64_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN {{.Instant `(
            (((((id >> 56) & 255) * 8623620610) & 1136090292240) % 1023)
            | ((((((id >> 48) & 255) * 8623620610) & 1136090292240) % 1023) << 8)
            | ((((((id >> 40) & 255) * 8623620610) & 1136090292240) % 1023) << 16)
            | ((((((id >> 32) & 255) * 8623620610) & 1136090292240) % 1023) << 24)
            | ((((((id >> 24) & 255) * 8623620610) & 1136090292240) % 1023) << 32)
            | (((id >> 23) & 1) << 40)
            | (((id >> 22) & 1) << 41)
        )`}};

CREATE FUNCTION {{$s}}.spread64_parts(
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
    "time" := {{$s}}.spread64_time(id);
    sequence := (id >> 16) & 63;
    generator := (id >> 4) & 63;
    cluster := id & 15;
END
$$;

-- Returns the 16 hexadecimal digits, or NULL if a reserved bit is set.
CREATE FUNCTION {{$s}}.spread64_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (id & 64512) = 0 THEN encode(int8send(id), 'hex') END;

CREATE FUNCTION {{$s}}.spread64_from_text(s text) RETURNS bigint
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

CREATE SEQUENCE {{$s}}.spread64_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.spread64_clock IS 'The state of next_spread64: a time and a counter. Setting it by hand can cause duplicate IDs.';

-- Generates an ID, for the default of a column. No program or other database may use the same generator and cluster.
CREATE FUNCTION {{$s}}.next_spread64(generator integer, cluster integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
AS $$
{{template "tick" .}}CASE WHEN {{.Fits "generator" 6}} AND {{.Fits "cluster" 4}}
        THEN {{template "next value" .}} END;
BEGIN
    IF ({{template "tick is good" .}}) IS NOT TRUE THEN
        IF value IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
                MESSAGE = pg_catalog.format('node number is out of range: generator %s (0 to 63), cluster %s (0 to 15)',
                    coalesce(generator::pg_catalog.text, 'NULL'), coalesce(cluster::pg_catalog.text, 'NULL'));
        END IF;
        value := {{$s}}.advance_clock('{{$s}}.spread64_clock', {{.EpochMS}}, 1, {{.UnitBits}}, {{.ClockBits}}, 0);
    END IF;
    RETURN (pg_catalog.reverse({{.Unit}}::bit(42)::pg_catalog.text)::bit(42)::bit(64)::bigint)
        OPERATOR(pg_catalog.|) ((value OPERATOR(pg_catalog.>>) {{.UnitBits}}) OPERATOR(pg_catalog.<<) 16)
        OPERATOR(pg_catalog.|) (generator::bigint OPERATOR(pg_catalog.<<) 4)
        OPERATOR(pg_catalog.|) cluster::bigint;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.next_spread64(integer, integer) FROM PUBLIC;
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
