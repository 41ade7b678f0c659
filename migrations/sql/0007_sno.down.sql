{{define "sno" -}}
DROP FUNCTION {{.Schema}}.sno_at(timestamptz, integer, integer, integer);
DROP FUNCTION {{.Schema}}.next_sno(integer, integer);
DROP FUNCTION {{.Schema}}.next_sno(integer);
DROP FUNCTION {{.Internal}}.mint_sno(timestamptz, integer, integer);
DROP FUNCTION {{.Internal}}.mint_sno(timestamptz, integer);
DROP FUNCTION {{.Internal}}.sno_of(bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_low(bigint, bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_high(bigint, bigint);
DROP FUNCTION {{.Internal}}.sno_meta_bits(integer);
DROP FUNCTION {{.Internal}}.reject_meta(integer);
{{template "drop node" .Sno}}
{{- template "drop clock" .Sno}}
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
