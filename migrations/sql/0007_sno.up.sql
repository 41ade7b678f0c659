{{define "sno" -}}
{{$s := .Schema}}{{$i := .Internal}}{{with .Sno -}}
-- Sno, 80 bits:
--
--     4 ms units since {{.First}} : 39 | tick-tock : 1 | metabyte : 8 | partition : 16 | sequence : 16
--
-- It lasts until {{.Last}}. The node number is the partition. Its text has 16 digits of 5 bits each, from the alphabet 23456789abcdefghijklmnopqrstuvwx.
-- The uuid that stores it has these 16 ASCII characters as its bytes. So the text, the bytes and the uuid sort alike.

CREATE DOMAIN {{$s}}.sno AS uuid
    CONSTRAINT sno_is_not_zero CHECK (VALUE <> '32323232-3232-3232-3232-323232323232')
    CONSTRAINT sno_has_digits_for_bytes CHECK (btrim(uuid_send(VALUE), '23456789abcdefghijklmnopqrstuvwx') = '');
COMMENT ON DOMAIN {{$s}}.sno IS 'An 80-bit ID that sorts by time. The bytes of the uuid are the 16 characters of its text. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- Collation "C" sorts by time. Other collations put letters before digits or ignore case.
CREATE DOMAIN {{$s}}.sno_as_text AS text COLLATE "C"
    CONSTRAINT sno_as_text_is_not_zero CHECK (VALUE <> '2222222222222222')
    CONSTRAINT sno_as_text_has_16_digits CHECK (octet_length(VALUE) = 16 AND btrim(VALUE, '23456789abcdefghijklmnopqrstuvwx') = '');
COMMENT ON DOMAIN {{$s}}.sno_as_text IS 'The text of a sno, for columns that must be text. DROP SCHEMA {{$s}} CASCADE drops the columns of this type.';

-- The time is in the first 8 digits, without their last bit. The value of a digit is its character minus 50 (the code
-- of '2'), or minus 89 for a letter. Both are equal modulo 39, and every value is less than 39.
CREATE FUNCTION {{$s}}.sno_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN
        {{.Instant `((
                (((get_byte(uuid_send(id), 0) - 50) % 39)::bigint << 35)
                | (((get_byte(uuid_send(id), 1) - 50) % 39)::bigint << 30)
                | (((get_byte(uuid_send(id), 2) - 50) % 39) << 25)
                | (((get_byte(uuid_send(id), 3) - 50) % 39) << 20)
                | (((get_byte(uuid_send(id), 4) - 50) % 39) << 15)
                | (((get_byte(uuid_send(id), 5) - 50) % 39) << 10)
                | (((get_byte(uuid_send(id), 6) - 50) % 39) << 5)
                | ((get_byte(uuid_send(id), 7) - 50) % 39)
            ) >> 1)`}}
        END;
COMMENT ON FUNCTION {{$s}}.sno_time(uuid) IS 'Returns the time of an ID, in units of 4 ms, or NULL if the uuid is not a sno.';

-- The partition is in the last bits of digit 9, digits 10 to 11, and the first bits of digit 12.
CREATE FUNCTION {{$s}}.sno_node(id uuid) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN
        ((((get_byte(uuid_send(id), 9) - 50) % 39) & 3) << 14)
        | (((get_byte(uuid_send(id), 10) - 50) % 39) << 9)
        | (((get_byte(uuid_send(id), 11) - 50) % 39) << 4)
        | (((get_byte(uuid_send(id), 12) - 50) % 39) >> 1)
        END;
COMMENT ON FUNCTION {{$s}}.sno_node(uuid) IS 'Returns the node number of an ID, its partition, or NULL if the uuid is not a sno.';

CREATE FUNCTION {{$s}}.sno_parts(
    id uuid, OUT "time" timestamptz, OUT tick_tock boolean, OUT meta integer, OUT partition integer, OUT sequence integer
)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    half bigint;
    parts bigint[];
BEGIN
    IF btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') <> '' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
            MESSAGE = format('%s is not a Sno; want a uuid whose 16 bytes are digits [2-9a-x]', id);
    END IF;
    -- For each half: convert 8 characters to 8 digits, 5 bits per byte, then pack them to 4 x 10, 2 x 20 and 40 bits.
    FOREACH half IN ARRAY ARRAY[
        ('x' || encode(substr(uuid_send(id), 1, 8), 'hex'))::bit(64)::bigint,
        ('x' || encode(substr(uuid_send(id), 9, 8), 'hex'))::bit(64)::bigint]
    LOOP
        half := half - {{int64 0x3232323232323232}} - 39 * ((half >> 6) & {{int64 0x0101010101010101}});
        half := ((half & {{int64 0x1f001f001f001f00}}) >> 3) | (half & {{int64 0x001f001f001f001f}});
        half := ((half & {{int64 0x03ff000003ff0000}}) >> 6) | (half & {{int64 0x000003ff000003ff}});
        parts := parts || (((half >> 32) << 20) | (half & 1048575));
    END LOOP;
    "time" := {{.Instant "(parts[1] >> 1)"}};
    tick_tock := (parts[1] & 1) = 1;
    meta := parts[2] >> 32;
    partition := (parts[2] >> 16) & 65535;
    sequence := parts[2] & 65535;
END
$$;
COMMENT ON FUNCTION {{$s}}.sno_parts(uuid) IS 'Returns the parts of an ID, or raises an error if the uuid is not a sno.';

CREATE FUNCTION {{$s}}.sno_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN encode(uuid_send(id), 'escape') END;
COMMENT ON FUNCTION {{$s}}.sno_text(uuid) IS 'Returns the 16 digits of an ID, or NULL if the uuid is not a sno.';

CREATE FUNCTION {{$s}}.sno_from_text(s text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF s COLLATE "C" ~ '^[2-9a-x]{16}$' THEN
        RETURN encode(s::bytea, 'hex')::uuid;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'invalid_text_representation',
        MESSAGE = format('cannot parse %L as Sno; want 16 digits [2-9a-x]', left(s, 64)),
        HINT = 'Use lower-case digits.';
END
$$;
COMMENT ON FUNCTION {{$s}}.sno_from_text(text) IS 'Parses the output of sno_text. Raises an error for other texts.';

-- Spreads 40 bits to 8 digits of 5 bits, one per byte.
CREATE FUNCTION {{$i}}.sno_digits(bits bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN (bits & 31) | ((bits << 3) & {{int64 0x1f00}}) | ((bits << 6) & {{int64 0x1f0000}}) | ((bits << 9) & {{int64 0x1f000000}})
        | ((bits << 12) & {{int64 0x1f00000000}}) | ((bits << 15) & {{int64 0x1f0000000000}}) | ((bits << 18) & {{int64 0x1f000000000000}})
        | ((bits << 21) & {{int64 0x1f00000000000000}});

-- Converts 8 digits to the hexadecimal codes of their characters. The character of a digit is '2' plus the digit, plus 39
-- for letters, which are the digits from 8 on.
CREATE FUNCTION {{$i}}.sno_hex(digits bigint) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN to_hex(digits + {{int64 0x3232323232323232}} + 39 * (((digits + {{int64 0x1818181818181818}}) >> 5) & {{int64 0x0101010101010101}}));

CREATE FUNCTION {{$s}}.sno_floor(t timestamptz) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    -- Unpack 40 bits to 2 x 20, 4 x 10 and 8 x 5 bits, and then to characters. The functions of {{$i}} are not
    -- available here, since a PL/pgSQL function finds functions with the privileges of its caller.
    DECLARE
        digits bigint := unit::bigint << 1;
    BEGIN
        digits := ((digits >> 20) << 32) | (digits & 1048575);
        digits := ((digits & {{int64 0x000ffc00000ffc00}}) << 6) | (digits & {{int64 0x000003ff000003ff}});
        digits := ((digits & {{int64 0x03e003e003e003e0}}) << 3) | (digits & {{int64 0x001f001f001f001f}});
        digits := digits + {{int64 0x3232323232323232}} + 39 * (((digits + {{int64 0x1818181818181818}}) >> 5) & {{int64 0x0101010101010101}});
        RETURN (to_hex(digits) || '3232323232323232')::uuid;
    END;
END
$$;
COMMENT ON FUNCTION {{$s}}.sno_floor(timestamptz) IS
    'Returns the lowest ID of the 4 ms that contain t, for any metabyte and node: a bound for partitions and for queries by time. It is also the encoder for pg_partman 5.2 and later.';

CREATE FUNCTION {{$s}}.sno_partman_decoder(s text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN {{$s}}.sno_time(s::uuid);
COMMENT ON FUNCTION {{$s}}.sno_partman_decoder(text) IS 'The decoder for pg_partman 5.2 and later. The encoder is sno_floor.';

{{template "clock" .}}
-- Returns the digits of a node number and a metabyte in the second half of an ID.
CREATE FUNCTION {{$i}}.sno_node_bits(node integer, meta integer DEFAULT 0) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bits bigint := (meta::bigint << 32) | (node::bigint << 16);
BEGIN
    IF node BETWEEN 0 AND {{.MaxNode}} AND meta BETWEEN 0 AND 255 THEN
        RETURN ((bits << 6) & {{int64 0x1f0000}}) | ((bits << 9) & {{int64 0x1f000000}}) | ((bits << 12) & {{int64 0x1f00000000}})
            | ((bits << 15) & {{int64 0x1f0000000000}}) | ((bits << 18) & {{int64 0x1f000000000000}}) | ((bits << 21) & {{int64 0x1f00000000000000}});
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = CASE WHEN node BETWEEN 0 AND {{.MaxNode}} THEN format('metabyte %s is out of range (0 to 255)', coalesce(meta::text, 'NULL'))
            ELSE format('node number %s of {{.Title}} is out of range (0 to {{.MaxNode}})', coalesce(node::text, 'NULL')) END;
END
$$;

{{template "setting" .}}
{{template "last" .}}
-- Returns the first 8 digits for a value of the clock: its time, and a tick-tock bit of zero, since this clock never steps back.
CREATE FUNCTION {{$i}}.sno_high(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN ((value >> 23) & 30) | ((value >> 20) & {{int64 0x1f00}}) | ((value >> 17) & {{int64 0x1f0000}}) | ((value >> 14) & {{int64 0x1f000000}})
        | ((value >> 11) & {{int64 0x1f00000000}}) | ((value >> 8) & {{int64 0x1f0000000000}}) | ((value >> 5) & {{int64 0x1f000000000000}})
        | ((value >> 2) & {{int64 0x1f00000000000000}});

-- Returns the last 8 digits: the metabyte, the node number, and the sequence number of a value.
CREATE FUNCTION {{$i}}.sno_low(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN node_bits | (value & 31) | ((value << 3) & {{int64 0x1f00}}) | ((value << 6) & {{int64 0x1f0000}}) | ((value << 9) & {{int64 0x1000000}});

CREATE FUNCTION {{$i}}.sno_of(high bigint, low bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    RETURN ({{$i}}.sno_hex(high) || {{$i}}.sno_hex(low))::uuid;

-- Returns an ID of a later window.
CREATE FUNCTION {{$i}}.sno_later(node_bits bigint) RETURNS uuid
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    value bigint := {{template "advance" .}};
BEGIN
    RETURN {{$i}}.sno_of({{$i}}.sno_high(value), {{$i}}.sno_low(value, node_bits));
END
$$;

-- Returns the ID of these digits, if their value is fresh.
CREATE FUNCTION {{$i}}.sno_of(value bigint, node_bits bigint, high bigint, low bigint) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN ({{template "stale" .}}) = 0
        THEN {{$i}}.sno_of(high, low) ELSE {{$i}}.sno_later(node_bits) END;

{{template "before id"}}
CREATE FUNCTION {{$i}}.sno_id(value bigint, node_bits bigint) RETURNS uuid
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
DECLARE
    high bigint := {{$i}}.sno_high(value);
    low bigint := {{$i}}.sno_low(value, node_bits);
BEGIN
    RETURN {{$i}}.sno_of(value, node_bits, high, low);
END
$$;

CREATE FUNCTION {{$s}}.next_sno() RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.sno_id(nextval('{{$i}}.sno_clock'), {{$i}}.sno_node_bits(0, 0) | {{$i}}.sno_node_bits());
COMMENT ON FUNCTION {{$s}}.next_sno() IS
    'Generates an ID, for the default of a column, with the node number in the setting {{$s}}.node (0 to {{.MaxNode}}), as its partition. Set a number with ALTER DATABASE that no program or other database uses, and reserve it with reserve_node.';

CREATE FUNCTION {{$s}}.next_sno(node integer, meta integer DEFAULT 0) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.sno_id(nextval('{{$i}}.sno_clock'), {{$i}}.sno_node_bits(node, meta));
COMMENT ON FUNCTION {{$s}}.next_sno(integer, integer) IS
    'Generates an ID, for the default of a column, with a node number (0 to {{.MaxNode}}), as its partition, and a metabyte (0 to 255). No program or other database may use that number.';

-- Not an overload of next_sno, whose only argument is a node number.
CREATE FUNCTION {{$s}}.next_sno_meta(meta integer) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.sno_id(nextval('{{$i}}.sno_clock'), {{$i}}.sno_node_bits(0, meta) | {{$i}}.sno_node_bits());
COMMENT ON FUNCTION {{$s}}.next_sno_meta(integer) IS
    'Generates an ID as next_sno() does, with a metabyte (0 to 255).';

CREATE FUNCTION {{$s}}.sno_at(t timestamptz, n integer, node integer DEFAULT NULL, meta integer DEFAULT 0) RETURNS uuid
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.not_zero('{{.Title}}', (left(encode(uuid_send({{$s}}.sno_floor(t)), 'hex'), 16) || {{$i}}.sno_hex(
        CASE WHEN node IS NULL THEN {{$i}}.sno_node_bits(0, meta) | {{$i}}.sno_node_bits() ELSE {{$i}}.sno_node_bits(node, meta) END
        | {{$i}}.sno_digits({{$i}}.sequence_bits('{{.Title}}', t, n, {{.MaxSequence}}))))::uuid, '32323232-3232-3232-3232-323232323232');
{{template "comment at" .}}
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
