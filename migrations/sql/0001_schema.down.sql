{{define "schema" -}}
DROP FUNCTION {{.Internal}}.not_zero(text, anyelement, anyelement);
DROP FUNCTION {{.Internal}}.sequence_bits(text, timestamptz, integer, integer);
DROP FUNCTION {{.Internal}}.advance(regclass, timestamptz, integer, integer, integer, integer);
DROP TABLE {{.Schema}}.layout;
DROP TABLE {{.Schema}}.revision;

{{template "drop empty schemas" .}}
{{- end}}
