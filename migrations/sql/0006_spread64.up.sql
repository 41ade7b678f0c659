{{define "spread64" -}}
{{$s := .Schema}}{{$i := .Internal}}{{with .Spread64 -}}
-- Spread64, a bigint. Half of the IDs are negative:
--
--     milliseconds since 1970 : 42, the bits in reverse | sequence : 6 | 000000 | generator : 6 | cluster : 4
--
-- It lasts until {{.Last}}. By design, IDs do not sort by time, so there is no floor function. The node number is
-- generator << 4 | cluster.

CREATE DOMAIN {{$s}}.spread64 AS bigint
    CONSTRAINT spread64_is_not_zero CHECK (VALUE <> 0)
    CONSTRAINT spread64_has_no_reserved_bits CHECK ((VALUE & 64512) = 0);
COMMENT ON DOMAIN {{$s}}.spread64 IS 'A 64-bit ID that spreads over all bigint values, with a text of 16 hexadecimal digits. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- The function reverses the upper 42 bits: 5 bytes and 2 bits. Multiplication by 0x0202020202 makes 5 copies of a byte, and the
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
COMMENT ON FUNCTION {{$s}}.spread64_time(bigint) IS 'Returns the time of an ID.';

CREATE FUNCTION {{$s}}.spread64_node(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (id & {{.MaxNode}})::integer;
COMMENT ON FUNCTION {{$s}}.spread64_node(bigint) IS 'Returns the node number of an ID: generator << 4 | cluster.';

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
COMMENT ON FUNCTION {{$s}}.spread64_parts(bigint) IS 'Returns the parts of an ID, or raises an error if a reserved bit is set.';

CREATE FUNCTION {{$s}}.spread64_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (id & 64512) = 0 THEN encode(int8send(id), 'hex') END;
COMMENT ON FUNCTION {{$s}}.spread64_text(bigint) IS 'Returns the 16 hexadecimal digits of an ID, or NULL if a reserved bit is set.';

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
COMMENT ON FUNCTION {{$s}}.spread64_from_text(text) IS 'Parses the output of spread64_text. Raises an error for other texts.';

{{template "clock" .}}
-- Returns the bits of a unit of time in an ID.
CREATE FUNCTION {{$i}}.spread64_time_bits(unit bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN reverse(unit::bit(42)::text)::bit(42)::bit(64)::bigint;

{{template "generator" .}}
-- Returns the unit of a finite time.
CREATE FUNCTION {{$i}}.spread64_unit(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit;
END
$$;

CREATE FUNCTION {{$s}}.spread64_at(t timestamptz, n integer, node integer DEFAULT NULL) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.not_zero('{{.Title}}', {{$i}}.spread64_time_bits({{$i}}.spread64_unit(t))
        | ({{$i}}.sequence_bits('{{.Title}}', t, n, {{.MaxSequence}}) << 16)
        | CASE WHEN node IS NULL THEN {{$i}}.spread64_node_bits() ELSE {{$i}}.spread64_node_bits(node) END, 0::bigint);
{{template "comment at" .}}
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
