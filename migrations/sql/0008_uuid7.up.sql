{{define "uuid7" -}}
{{$s := .Schema}}{{$i := .Internal}}{{with .UUID7 -}}
-- UUID, version 7, of RFC 9562:
--
--     milliseconds since {{.First}} : 48 | 0111 | fraction of the millisecond in 1/4096 : 12 | 10 | random : 62
--
-- It lasts until {{.Last}}. It has no node number. A column of type uuid can hold UUIDs of other versions beside these.

CREATE DOMAIN {{$s}}.uuid7 AS uuid
    CONSTRAINT uuid7_has_version_7 CHECK (get_byte(uuid_send(VALUE), 6) >> 4 = 7 AND get_byte(uuid_send(VALUE), 8) >> 6 = 2);
COMMENT ON DOMAIN {{$s}}.uuid7 IS 'A UUID of version 7, which sorts by time. Use uuid for a column with UUIDs of several versions. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

CREATE FUNCTION {{$s}}.uuid7_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN get_byte(uuid_send(id), 6) >> 4 = 7 AND get_byte(uuid_send(id), 8) >> 6 = 2 THEN
        {{.Instant "('x' || encode(substr(uuid_send(id), 1, 6), 'hex'))::bit(48)::bigint"}} END;
COMMENT ON FUNCTION {{$s}}.uuid7_time(uuid) IS 'Returns the time of a UUID of version 7, or NULL for other UUIDs.';

CREATE FUNCTION {{$s}}.uuid7_floor(t timestamptz) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN (lpad(to_hex(unit::bigint), 12, '0') || '70008000000000000000')::uuid;
END
$$;
COMMENT ON FUNCTION {{$s}}.uuid7_floor(timestamptz) IS
    'Returns the lowest UUID of version 7 of the millisecond that contains t, a bound for partitions and for queries by time. UUIDs of other versions are between any two bounds.';

-- Returns a UUID before Postgres 18.
CREATE FUNCTION {{$i}}.uuid7_now() RETURNS uuid
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    us bigint := tstzrange_subdiff(clock_timestamp(), '{{.Epoch}}') * 1000000;
BEGIN
    RETURN (lpad(to_hex(us / 1000), 12, '0') || to_hex(28672 + us % 1000 * 512 / 125) -- 0x7000, and 1/1000 in 1/4096
        || right(encode(uuid_send(gen_random_uuid()), 'hex'), 16))::uuid;
END
$$;

-- Returns a UUID since Postgres 18, which has a faster function with the same layout. PL/pgSQL looks up that function in the
-- first call, so a dump can be restored to an older version.
CREATE FUNCTION {{$i}}.uuid7_of_server() RETURNS uuid
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE
AS $$
BEGIN
    RETURN pg_catalog.uuidv7();
END
$$;

CREATE FUNCTION {{$s}}.next_uuid7() RETURNS uuid
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN {{$i}}.uuid7_of_server() ELSE {{$i}}.uuid7_now() END;
COMMENT ON FUNCTION {{$s}}.next_uuid7() IS
    'Generates a UUID of version 7, for the default of a column: uuidv7() since Postgres 18, otherwise the same in units of a microsecond. UUIDs of one microsecond have no order.';

CREATE FUNCTION {{$s}}.uuid7_at(t timestamptz) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN (left(encode(uuid_send({{$s}}.uuid7_floor(t)), 'hex'), 13)
        || lpad(to_hex(extract(microseconds FROM t)::bigint % 1000 * 512 / 125 + {{$i}}.sequence_bits('{{.Title}}', t, 0, 0)), 3, '0') -- 1/1000 in 1/4096
        || right(encode(uuid_send(gen_random_uuid()), 'hex'), 16))::uuid;
COMMENT ON FUNCTION {{$s}}.uuid7_at(timestamptz) IS
    'Returns a UUID of version 7 of a past time, in units of a microsecond, for existing rows. UUIDs of one microsecond differ in 62 random bits, and have no order.';

CREATE FUNCTION {{$s}}.typeid_text(prefix text, id uuid) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bits bit varying := B'00' || ('x' || encode(uuid_send(id), 'hex'))::bit(128);
BEGIN
    IF prefix COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?)?$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is not the prefix of a TypeID; want up to 63 lower-case letters and underscores, with a letter at both ends', left(prefix, 64));
    END IF;
    RETURN CASE prefix WHEN '' THEN '' ELSE prefix || '_' END || (
        SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', substring(bits FROM 5 * n + 1 FOR 5)::bit(5)::integer + 1, 1), '' ORDER BY n)
        FROM generate_series(0, 25) n);
END
$$;
COMMENT ON FUNCTION {{$s}}.typeid_text(text, uuid) IS 'Returns the TypeID of a UUID of any version: the prefix, an underscore, and 26 digits of base32. An empty prefix has no underscore.';

CREATE FUNCTION {{$s}}.typeid_from_text(s text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bits bit varying;
BEGIN
    IF s COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?_)?[0-7][0-9a-hjkmnp-tv-z]{25}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
            MESSAGE = format('cannot parse %L as TypeID; want a prefix, an underscore and 26 digits [0-9a-hjkmnp-tv-z], the first at most 7', left(s, 96)),
            HINT = 'Use lower-case digits.';
    END IF;
    SELECT string_agg((position(substr(right(s, 26), n, 1) IN '0123456789abcdefghjkmnpqrstvwxyz') - 1)::bit(5)::text, '' ORDER BY n)::bit varying
        INTO bits FROM generate_series(1, 26) n;
    RETURN (lpad(to_hex(substring(bits FROM 3 FOR 64)::bit(64)::bigint), 16, '0')
        || lpad(to_hex(substring(bits FROM 67)::bit(64)::bigint), 16, '0'))::uuid;
END
$$;
COMMENT ON FUNCTION {{$s}}.typeid_from_text(text) IS 'Returns the UUID of a TypeID, whatever its prefix is. Raises an error for other texts.';
{{- end}}

{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
