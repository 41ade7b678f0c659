{{define "spread64" -}}
DROP FUNCTION {{.Schema}}.spread64_at(timestamptz, integer, integer);
{{template "drop generator" .Spread64}}
DROP FUNCTION {{.Internal}}.spread64_time_bits(bigint);
DROP FUNCTION {{.Internal}}.spread64_unit(timestamptz);
DROP FUNCTION {{.Schema}}.spread64_from_text(text);
DROP FUNCTION {{.Schema}}.spread64_text(bigint);
DROP FUNCTION {{.Schema}}.spread64_parts(bigint);
DROP FUNCTION {{.Schema}}.spread64_node(bigint);
DROP FUNCTION {{.Schema}}.spread64_time(bigint);
DROP DOMAIN {{.Schema}}.spread64;
{{template "forget" .}}
{{- end}}
