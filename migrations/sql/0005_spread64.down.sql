{{define "spread64" -}}
DROP FUNCTION {{.Schema}}.next_spread64(integer, integer);
DROP SEQUENCE {{.Schema}}.spread64_clock;
DROP FUNCTION {{.Schema}}.spread64_from_text(text);
DROP FUNCTION {{.Schema}}.spread64_text(bigint);
DROP FUNCTION {{.Schema}}.spread64_parts(bigint);
DROP FUNCTION {{.Schema}}.spread64_time(bigint);
DROP DOMAIN {{.Schema}}.spread64;
{{template "forget" .}}
{{- end}}
