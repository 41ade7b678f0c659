{{define "uid60" -}}
{{$s := .Schema}}{{with .UID60 -}}
-- UID60, a bigint:
--
--     0000 | milliseconds since {{.First}} : 42 | sequence : 9 | random : 9
--
-- It lasts until {{.Last}}. Its text is the number in base64url without leading A digits, but with at least four
-- digits. The last two digits are moved to the front.

CREATE DOMAIN {{$s}}.uid60 AS bigint
    CONSTRAINT uid60_is_positive_and_60_bits CHECK (VALUE BETWEEN 1 AND 1152921504606846975);
COMMENT ON DOMAIN {{$s}}.uid60 IS 'A 60-bit ID that sorts by time, with a text of 10 characters. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- Returns the time of an ID, or NULL if the number is not an ID.
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

-- Returns the text of an ID, or NULL if the number is not an ID.
--
-- It moves the last 12 of the 60 bits to the front and takes the first 10 digits of base64. IDs since May 2020 have all
-- 10 digits. In a smaller ID, the digits after the first two lose their leading A digits; the last two digits stay.
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

-- Parses the output of uid60_text, and the same text padded with A to 10 digits.
CREATE FUNCTION {{$s}}.uid60_from_text(s text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    digits text;
    id bigint;
BEGIN
    IF s COLLATE "C" ~ '^[A-Za-z0-9_-]{4,10}$' THEN
        -- Base64, with an eleventh digit that completes 8 bytes.
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

-- Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time.
CREATE FUNCTION {{$s}}.uid60_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << 18;
END
$$;

CREATE SEQUENCE {{$s}}.uid60_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.uid60_clock IS 'The state of next_uid60: a time and a counter. Setting it by hand can cause duplicate IDs.';

-- Generates an ID, for the default of a column. The format has no node numbers. To make collisions with other databases
-- and programs unlikely, each millisecond starts at a random sequence number, and 9 bits of each ID are random.
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
