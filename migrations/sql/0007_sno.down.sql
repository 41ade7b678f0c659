{{define "sno" -}}
DROP FUNCTION {{.Schema}}.sno_at(timestamptz, integer, integer, integer);
DROP FUNCTION {{.Schema}}.next_sno(integer, integer);
DROP FUNCTION {{.Schema}}.next_sno();
DROP FUNCTION {{.Schema}}.next_sno_meta(integer);
DROP FUNCTION {{.Internal}}.sno_id(bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_of(bigint, bigint, bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_later(bigint);
DROP FUNCTION {{.Internal}}.sno_of(bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_low(bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_high(bigint);
DROP FUNCTION {{.Internal}}.sno_last_ms();
DROP SEQUENCE {{.Internal}}.sno_clock;
DROP FUNCTION {{.Internal}}.sno_node_bits();
DROP FUNCTION {{.Internal}}.sno_node_bits(integer, integer);
DROP FUNCTION {{.Schema}}.sno_partman_decoder(text);
DROP FUNCTION {{.Schema}}.sno_floor(timestamptz);
DROP FUNCTION {{.Internal}}.sno_hex(bigint);
DROP FUNCTION {{.Internal}}.sno_digits(bigint);
DROP FUNCTION {{.Schema}}.sno_from_text(text);
DROP FUNCTION {{.Schema}}.sno_text(uuid);
DROP FUNCTION {{.Schema}}.sno_parts(uuid);
DROP FUNCTION {{.Schema}}.sno_node(uuid);
DROP FUNCTION {{.Schema}}.sno_time(uuid);
DROP DOMAIN {{.Schema}}.sno_as_text;
DROP DOMAIN {{.Schema}}.sno;
{{template "forget" .}}
{{- end}}
