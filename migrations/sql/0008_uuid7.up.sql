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
    a CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    hi CONSTANT bigint := ('x' || left(encode(uuid_send(id), 'hex'), 16))::bit(64)::bigint;
    lo CONSTANT bigint := ('x' || right(encode(uuid_send(id), 'hex'), 16))::bit(64)::bigint;
BEGIN
    IF prefix COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?)?$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%L is not the prefix of a TypeID; want up to 63 lower-case letters and underscores, with a letter at both ends', left(prefix, 64));
    END IF;
    RETURN CASE prefix WHEN '' THEN '' ELSE prefix || '_' END
        || substr(a, (hi >> 61 & 7)::integer + 1, 1) || substr(a, (hi >> 56 & 31)::integer + 1, 1) || substr(a, (hi >> 51 & 31)::integer + 1, 1)
        || substr(a, (hi >> 46 & 31)::integer + 1, 1) || substr(a, (hi >> 41 & 31)::integer + 1, 1) || substr(a, (hi >> 36 & 31)::integer + 1, 1)
        || substr(a, (hi >> 31 & 31)::integer + 1, 1) || substr(a, (hi >> 26 & 31)::integer + 1, 1) || substr(a, (hi >> 21 & 31)::integer + 1, 1)
        || substr(a, (hi >> 16 & 31)::integer + 1, 1) || substr(a, (hi >> 11 & 31)::integer + 1, 1) || substr(a, (hi >> 6 & 31)::integer + 1, 1)
        || substr(a, (hi >> 1 & 31)::integer + 1, 1) || substr(a, ((hi & 1) << 4 | (lo >> 60 & 15))::integer + 1, 1) || substr(a, (lo >> 55 & 31)::integer + 1, 1)
        || substr(a, (lo >> 50 & 31)::integer + 1, 1) || substr(a, (lo >> 45 & 31)::integer + 1, 1) || substr(a, (lo >> 40 & 31)::integer + 1, 1)
        || substr(a, (lo >> 35 & 31)::integer + 1, 1) || substr(a, (lo >> 30 & 31)::integer + 1, 1) || substr(a, (lo >> 25 & 31)::integer + 1, 1)
        || substr(a, (lo >> 20 & 31)::integer + 1, 1) || substr(a, (lo >> 15 & 31)::integer + 1, 1) || substr(a, (lo >> 10 & 31)::integer + 1, 1)
        || substr(a, (lo >> 5 & 31)::integer + 1, 1) || substr(a, (lo & 31)::integer + 1, 1);
END
$$;
COMMENT ON FUNCTION {{$s}}.typeid_text(text, uuid) IS 'Returns the TypeID of a UUID of any version: the prefix, an underscore, and 26 digits of base32. An empty prefix has no underscore.';

CREATE FUNCTION {{$s}}.typeid_from_text(s text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    t CONSTANT text := right(s, 26);
    hi bigint;
    lo bigint;
BEGIN
    IF s COLLATE "C" !~ '^([a-z]([a-z_]{0,61}[a-z])?_)?[0-7][0-9a-hjkmnp-tv-z]{25}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
            MESSAGE = format('cannot parse %L as TypeID; want a prefix, an underscore and 26 digits [0-9a-hjkmnp-tv-z], the first at most 7', left(s, 96)),
            HINT = 'Use lower-case digits.';
    END IF;
    hi := ((strpos(a, substr(t, 1, 1)) - 1)::bigint << 61) | ((strpos(a, substr(t, 2, 1)) - 1)::bigint << 56) | ((strpos(a, substr(t, 3, 1)) - 1)::bigint << 51)
        | ((strpos(a, substr(t, 4, 1)) - 1)::bigint << 46) | ((strpos(a, substr(t, 5, 1)) - 1)::bigint << 41) | ((strpos(a, substr(t, 6, 1)) - 1)::bigint << 36)
        | ((strpos(a, substr(t, 7, 1)) - 1)::bigint << 31) | ((strpos(a, substr(t, 8, 1)) - 1)::bigint << 26) | ((strpos(a, substr(t, 9, 1)) - 1)::bigint << 21)
        | ((strpos(a, substr(t, 10, 1)) - 1)::bigint << 16) | ((strpos(a, substr(t, 11, 1)) - 1)::bigint << 11) | ((strpos(a, substr(t, 12, 1)) - 1)::bigint << 6)
        | ((strpos(a, substr(t, 13, 1)) - 1)::bigint << 1) | ((strpos(a, substr(t, 14, 1)) - 1)::bigint >> 4);
    lo := (((strpos(a, substr(t, 14, 1)) - 1)::bigint & 15) << 60) | ((strpos(a, substr(t, 15, 1)) - 1)::bigint << 55) | ((strpos(a, substr(t, 16, 1)) - 1)::bigint << 50)
        | ((strpos(a, substr(t, 17, 1)) - 1)::bigint << 45) | ((strpos(a, substr(t, 18, 1)) - 1)::bigint << 40) | ((strpos(a, substr(t, 19, 1)) - 1)::bigint << 35)
        | ((strpos(a, substr(t, 20, 1)) - 1)::bigint << 30) | ((strpos(a, substr(t, 21, 1)) - 1)::bigint << 25) | ((strpos(a, substr(t, 22, 1)) - 1)::bigint << 20)
        | ((strpos(a, substr(t, 23, 1)) - 1)::bigint << 15) | ((strpos(a, substr(t, 24, 1)) - 1)::bigint << 10) | ((strpos(a, substr(t, 25, 1)) - 1)::bigint << 5)
        | (strpos(a, substr(t, 26, 1)) - 1)::bigint;
    RETURN (lpad(to_hex(hi), 16, '0') || lpad(to_hex(lo), 16, '0'))::uuid;
END
$$;
COMMENT ON FUNCTION {{$s}}.typeid_from_text(text) IS 'Returns the UUID of a TypeID, whatever its prefix is. Raises an error for other texts.';
{{- end}}

{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
