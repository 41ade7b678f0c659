{{define "snowflake" -}}
DROP FUNCTION {{.Schema}}.snowflake_at(timestamptz, integer, integer);
{{template "drop generator" .Snowflake}}
DROP FUNCTION {{.Schema}}.snowflake_floor(timestamptz);
DROP FUNCTION {{.Schema}}.snowflake_node(bigint);
DROP FUNCTION {{.Schema}}.snowflake_parts(bigint);
DROP FUNCTION {{.Schema}}.snowflake_time(bigint);
DROP DOMAIN {{.Schema}}.snowflake;
DELETE FROM {{.Schema}}.layout WHERE format = 'snowflake';
{{template "forget" .}}
{{- end}}
