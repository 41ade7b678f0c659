{{define "audit" -}}
{{$s := .Schema}}{{$i := .Internal -}}
DROP FUNCTION {{$s}}.audit_duplicates(name, regclass[]);
DROP FUNCTION {{$s}}.audit_counts(regclass, name, text, timestamptz, timestamptz);
DROP FUNCTION {{$s}}.audit_key(regclass, name, text, name, interval, interval, timestamptz, timestamptz, integer);
DROP FUNCTION {{$i}}.audit_counts(text);
DROP FUNCTION {{$i}}.audit_findings(text, integer[], boolean, interval, interval, integer);
DROP FUNCTION {{$i}}.known_nodes(text);
DROP FUNCTION {{$i}}.audit_source(regclass, text[], name, timestamptz, timestamptz);
DROP FUNCTION {{$i}}.audit_column(regclass, name, text);
{{template "forget" .}}
{{- end}}
