{{define "sno" -}}
DROP FUNCTION {{.Schema}}.next_sno(integer, integer);
DROP SEQUENCE {{.Schema}}.sno_clock;
DROP FUNCTION {{.Schema}}.sno_partman_decoder(text);
DROP FUNCTION {{.Schema}}.sno_partman_encoder(timestamptz);
DROP FUNCTION {{.Schema}}.sno_floor(timestamptz);
DROP FUNCTION {{.Schema}}.sno_digits(bigint);
DROP FUNCTION {{.Schema}}.sno_from_text(text);
DROP FUNCTION {{.Schema}}.sno_text(uuid);
DROP FUNCTION {{.Schema}}.sno_parts(uuid);
DROP FUNCTION {{.Schema}}.sno_time(uuid);
DROP DOMAIN {{.Schema}}.sno_as_text;
DROP DOMAIN {{.Schema}}.sno;
{{template "forget" .}}
{{- end}}
