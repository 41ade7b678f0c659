{{define "sno" -}}
{{$s := .Schema}}{{with .Sno -}}
-- Sno, 80 bits:
--
--     4 ms units since {{.First}} : 39 | tick-tock : 1 | metabyte : 8 | partition : 16 | sequence : 16
--
-- It lasts until {{.Last}}. Its text has 16 digits of 5 bits each, from the alphabet 23456789abcdefghijklmnopqrstuvwx.
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

-- Returns the time of an ID, in units of 4 ms, or NULL if the uuid is not a sno.
--
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
        half := half - {{0x3232323232323232}} - 39 * ((half >> 6) & {{0x0101010101010101}});
        half := ((half & {{0x1f001f001f001f00}}) >> 3) | (half & {{0x001f001f001f001f}});
        half := ((half & {{0x03ff000003ff0000}}) >> 6) | (half & {{0x000003ff000003ff}});
        parts := parts || (((half >> 32) << 20) | (half & 1048575));
    END LOOP;
    "time" := {{.Instant "(parts[1] >> 1)"}};
    tick_tock := (parts[1] & 1) = 1;
    meta := parts[2] >> 32;
    partition := (parts[2] >> 16) & 65535;
    sequence := parts[2] & 65535;
END
$$;

-- Returns the 16 digits, or NULL if the uuid is not a sno.
CREATE FUNCTION {{$s}}.sno_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx') = '' THEN encode(uuid_send(id), 'escape') END;

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

-- Returns the lowest ID of the 4 ms that contain t, for any metabyte and partition: a bound for partitions and for
-- queries by time.
CREATE FUNCTION {{$s}}.sno_floor(t timestamptz) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "unit" .}}
    RETURN (to_hex({{$s}}.sno_digits(unit::bigint << 1)) || '3232323232323232')::uuid;
END
$$;

-- Converts 40 bits to 8 digits, with one character per byte of the result. It unpacks them to 2 x 20, 4 x 10 and 8 x 5
-- bits, and then to characters. Digits from 8 on are letters.
CREATE FUNCTION {{$s}}.sno_digits(bits bigint) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    digits bigint := ((bits >> 20) << 32) | (bits & 1048575);
BEGIN
    digits := ((digits & {{0x000ffc00000ffc00}}) << 6) | (digits & {{0x000003ff000003ff}});
    digits := ((digits & {{0x03e003e003e003e0}}) << 3) | (digits & {{0x001f001f001f001f}});
    RETURN digits + {{0x3232323232323232}} + 39 * (((digits + {{0x1818181818181818}}) >> 5) & {{0x0101010101010101}});
END
$$;

-- The encoder and decoder that pg_partman 5.2 and later use to convert between times and snos.
CREATE FUNCTION {{$s}}.sno_partman_encoder(t timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN {{$s}}.sno_floor(t);

CREATE FUNCTION {{$s}}.sno_partman_decoder(s text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN {{$s}}.sno_time(s::uuid);

CREATE SEQUENCE {{$s}}.sno_clock INCREMENT BY {{.Increment}} START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{$s}}.sno_clock IS 'The state of next_sno: a time and a counter. Setting it by hand can cause duplicate IDs.';

-- Generates an ID, for the default of a column. No program or other database may use the same partition.
CREATE FUNCTION {{$s}}.next_sno(meta integer, partition integer) RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
{{template "tick" .}}CASE WHEN {{.Fits "meta" 8}} AND {{.Fits "partition" 16}}
        THEN {{template "next value" .}} END;
BEGIN
    IF ({{template "tick is good" .}}) IS NOT TRUE THEN
        IF value IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
                MESSAGE = pg_catalog.format('node number is out of range: metabyte %s (0 to 255), partition %s (0 to 65535)',
                    coalesce(meta::pg_catalog.text, 'NULL'), coalesce(partition::pg_catalog.text, 'NULL'));
        END IF;
        value := {{$s}}.advance_clock('{{$s}}.sno_clock', {{.EpochMS}}, 4, {{.UnitBits}}, {{.ClockBits}}, 0);
    END IF;
    -- The tick-tock bit is zero, since this clock never steps back.
    RETURN (to_hex({{$s}}.sno_digits({{.Unit}} << 1))
        || to_hex({{$s}}.sno_digits((meta::bigint << 32) | (partition::bigint << 16) | (value >> {{.UnitBits}}))))::uuid;
END
$$;
REVOKE EXECUTE ON FUNCTION {{$s}}.next_sno(integer, integer) FROM PUBLIC;
{{template "protect" .}}
{{- end}}

{{template "revision" .}}
{{- end}}
