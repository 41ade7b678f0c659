{{define "uid60" -}}
DROP FUNCTION {{.Schema}}.uid60_at(timestamptz, integer);
DROP FUNCTION {{.Schema}}.next_uid60();
DROP FUNCTION {{.Internal}}.uid60_id(bigint);
DROP FUNCTION {{.Internal}}.uid60_of(bigint);
DROP FUNCTION {{.Internal}}.uid60_later();
DROP FUNCTION {{.Internal}}.uid60_bits(bigint);
DROP SEQUENCE {{.Internal}}.uid60_clock;
DROP FUNCTION {{.Schema}}.uid60_floor(timestamptz);
DROP FUNCTION {{.Schema}}.uid60_from_text(text);
DROP FUNCTION {{.Schema}}.uid60_text(bigint);
DROP FUNCTION {{.Schema}}.uid60_parts(bigint);
DROP FUNCTION {{.Schema}}.uid60_time(bigint);
DROP DOMAIN {{.Schema}}.uid60;
{{template "forget" .}}
{{- end}}
