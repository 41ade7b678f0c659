{{define "uid60" -}}
{{$s := .Schema}}{{with .UID60 -}}
-- UID60, a bigint:
--
--     0000 | milliseconds since {{.First}} : 42 | sequence : 9 | random : 9
--
-- It lasts until {{.Last}}. In text it is the digits of the number in base64url, without leading A but at least four,
-- the last two of them moved to the front.

CREATE DOMAIN {{$s}}.uid60 AS bigint
    CONSTRAINT uid60_is_positive_and_60_bits CHECK (VALUE BETWEEN 1 AND 1152921504606846975);
COMMENT ON DOMAIN {{$s}}.uid60 IS 'A 60-bit ID that orders by time, 10 characters as text. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- When an ID was minted; NULL if it is none.
CREATE FUNCTION {{$s}}.uid60_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 1152921504606846975 THEN {{.Instant "(id >> 18)"}} END;

CREATE FUNCTION {{$s}}.uid60_parts(id bigint, OUT "time" timestamptz, OUT sequence integer, OUT random integer)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF id NOT BETWEEN 0 AND 1152921504606846975 THEN
        RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
            MESSAGE = format('%s is not a UID60; want 0 to 1152921504606846975', id);
    END IF;
    "time" := {{.Instant "(id >> 18)"}};
    sequence := (id >> 9) & 511;
    random := id & 511;
END
$$;

-- The text; NULL if the number is no ID.
--
-- The first 10 digits of the number's upper 60 bits in base64 are those wanted, once the last 12 of the 60 bits are
-- moved to the front. An ID from May 2020 on has all 10 digits; of smaller ones those behind the first two lose the A
-- that they begin with (but the last two stay).
CREATE FUNCTION {{$s}}.uid60_text(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN id BETWEEN 18014398509481984 AND 1152921504606846975 THEN
            translate(substr(encode(int8send(((id & 4095) << 52) | ((id >> 12) << 4)), 'base64'), 1, 10), '+/', '-_')
        WHEN id BETWEEN 0 AND 18014398509481983 THEN
            translate(
                substr(encode(int8send(id << 4), 'base64'), 9, 2)
                    || ltrim(substr(encode(int8send(id << 4), 'base64'), 1, 6), 'A')
                    || substr(encode(int8send(id << 4), 'base64'), 7, 2),
                '+/', '-_')
        END;

-- Reads what uid60_text writes, and the same padded with A to 10 digits.
CREATE FUNCTION {{$s}}.uid60_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    digits text;
    id bigint;
BEGIN
    IF s COLLATE "C" ~ '^[A-Za-z0-9_-]{4,10}$' THEN
        -- In base64, with a last digit that completes 8 bytes.
        digits := translate(lpad(substr(s, 3) || left(s, 2), 10, 'A') || 'A=', '-_', '+/');
        id := (('x' || encode(decode(digits, 'base64'), 'hex'))::bit(64)::bigint >> 4) & 1152921504606846975;
        IF length(s) = 10 OR s COLLATE "C" = {{$s}}.uid60_text(id) THEN
            RETURN id;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as UID60; want 4 to 10 digits [A-Za-z0-9_-]', left(s, 64)),
        HINT = 'Only the 10-digit form has leading zeros, written as A.';
END
$$;

-- The lowest ID of the millisecond in which t lies: a bound for queries by time and for partitions.
CREATE FUNCTION {{$s}}.uid60_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << 18;
END
$$;

CREATE SEQUENCE {{$s}}.uid60_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.uid60_clock IS 'Of next_uid60: a time and a counter. Setting it by hand can repeat IDs.';

-- A new ID, for the default of a column. The format has no node numbers: it is chance that keeps the IDs of two
-- databases, or of one and a program, apart. So each millisecond begins at a random sequence, and 9 bits are random.
CREATE FUNCTION {{$s}}.next_uid60() RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
AS $$
{{template "tick" .}}{{template "next value" .}};
    random pg_catalog.bytea := pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
BEGIN
    IF ({{template "tick is good" .}}) IS NOT TRUE THEN
        value := {{$s}}.advance_clock('{{$s}}.uid60_clock', {{.EpochMS}}, 1, {{.UnitBits}}, {{.ClockBits}}, pg_catalog.get_byte(random, 2));
    END IF;
    RETURN ({{.Unit}} OPERATOR(pg_catalog.<<) 18)
        OPERATOR(pg_catalog.|) ((value OPERATOR(pg_catalog.>>) {{.UnitBits}}) OPERATOR(pg_catalog.<<) 9)
        OPERATOR(pg_catalog.|) (pg_catalog.get_byte(random, 0) OPERATOR(pg_catalog.<<) 1)
        OPERATOR(pg_catalog.|) (pg_catalog.get_byte(random, 1) OPERATOR(pg_catalog.&) 1);
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.next_uid60() FROM PUBLIC;
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
