{{define "uid60" -}}
DROP FUNCTION {{.Schema}}.uid60_at(timestamptz, integer);
DROP FUNCTION {{.Schema}}.next_uid60();
DROP FUNCTION {{.Internal}}.mint_uid60(timestamptz);
DROP FUNCTION {{.Internal}}.uid60_of(bigint, bigint, bytea);
DROP FUNCTION {{.Internal}}.uid60_advance(bytea);
DROP FUNCTION {{.Internal}}.uid60_random();
{{template "drop clock" .UID60}}
DROP FUNCTION {{.Schema}}.uid60_floor(timestamptz);
DROP FUNCTION {{.Schema}}.uid60_from_text(text);
DROP FUNCTION {{.Schema}}.uid60_text(bigint);
DROP FUNCTION {{.Schema}}.uid60_parts(bigint);
DROP FUNCTION {{.Schema}}.uid60_time(bigint);
DROP DOMAIN {{.Schema}}.uid60;
{{template "forget" .}}
{{- end}}
