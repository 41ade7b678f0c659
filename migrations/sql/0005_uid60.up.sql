{{define "uid60" -}}
{{$s := .Schema}}{{$i := .Internal}}{{with .UID60 -}}
-- UID60, a bigint:
--
--     0000 | milliseconds since {{.First}} : 42 | sequence : 9 | random : 9
--
-- It lasts until {{.Last}}. Its text is the number in base64url without leading A digits, but with at least four
-- digits. The last two digits are moved to the front.

CREATE DOMAIN {{$s}}.uid60 AS bigint
    CONSTRAINT uid60_is_positive_and_60_bits CHECK (VALUE BETWEEN 1 AND 1152921504606846975);
COMMENT ON DOMAIN {{$s}}.uid60 IS 'A 60-bit ID that sorts by time, with a text of 10 characters. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

CREATE FUNCTION {{$s}}.uid60_time(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN id BETWEEN 0 AND 1152921504606846975 THEN {{.Instant "(id >> 18)"}} END;
COMMENT ON FUNCTION {{$s}}.uid60_time(bigint) IS 'Returns the time of an ID, or NULL if the number is not an ID.';

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
COMMENT ON FUNCTION {{$s}}.uid60_parts(bigint) IS 'Returns the parts of an ID, or raises an error if the number is not an ID.';

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
COMMENT ON FUNCTION {{$s}}.uid60_text(bigint) IS 'Returns the text of an ID, or NULL if the number is not an ID.';

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
COMMENT ON FUNCTION {{$s}}.uid60_from_text(text) IS 'Parses the output of uid60_text, and the same text padded with A to 10 digits. Raises an error for other texts.';

CREATE FUNCTION {{$s}}.uid60_floor(t timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN unit::bigint << 18;
END
$$;
COMMENT ON FUNCTION {{$s}}.uid60_floor(timestamptz) IS
    'Returns the lowest ID of the millisecond that contains t, a bound for partitions and for queries by time.';

{{template "clock" .}}
-- Returns the bits of a value of the clock in an ID.
CREATE FUNCTION {{$i}}.uid60_bits(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN {{.Bits}};

-- Returns an ID of a later window, without its random bits.
CREATE FUNCTION {{$i}}.uid60_later() RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN {{$i}}.uid60_bits({{template "advance" .}});
END
$$;

-- Returns the ID of a value, if it is fresh. The random bits are a hash of 122 random ones.
CREATE FUNCTION {{$i}}.uid60_of(value bigint) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN ({{template "stale" .}}) = 0
        THEN {{$i}}.uid60_bits(value) ELSE {{$i}}.uid60_later() END
        | (uuid_hash(gen_random_uuid()) & 511);

{{template "before id"}}
CREATE FUNCTION {{$i}}.uid60_id(value bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN {{$i}}.uid60_of(value);
END
$$;

CREATE FUNCTION {{$s}}.next_uid60() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.uid60_id(nextval('{{$i}}.uid60_clock'));
COMMENT ON FUNCTION {{$s}}.next_uid60() IS
    'Generates an ID, for the default of a column. The format has no node numbers. To make collisions with other databases and programs unlikely, 9 bits of each ID are random, and the sequence starts at a random number every 4 ms or more.';

CREATE FUNCTION {{$s}}.uid60_at(t timestamptz, n integer) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.not_zero('{{.Title}}', {{$s}}.uid60_floor(t) | ({{$i}}.sequence_bits('{{.Title}}', t, n, {{.MaxSequence}}) << 9)
        | floor(random() * 512)::bigint, 0::bigint);
COMMENT ON FUNCTION {{$s}}.uid60_at(timestamptz, integer) IS
    'Returns an ID of a past time with sequence number n (0 to {{.MaxSequence}}) and random bits, for existing rows. It can equal an ID that was generated at that time.';
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
