{{define "schema" -}}
DROP FUNCTION {{.Schema}}.advance_clock(regclass, bigint, integer, integer, integer, integer);
DROP TABLE {{.Schema}}.layout;
DROP TABLE {{.Schema}}.revision;

{{template "drop empty schema" .}}
{{- end}}
