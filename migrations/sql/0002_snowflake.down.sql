{{define "snowflake" -}}
DROP FUNCTION {{.Schema}}.next_snowflake(integer, integer);
DROP SEQUENCE {{.Schema}}.snowflake_clock;
DROP FUNCTION {{.Schema}}.snowflake_floor(timestamptz);
DROP FUNCTION {{.Schema}}.snowflake_from_text(text);
DROP FUNCTION {{.Schema}}.snowflake_text(bigint);
DROP FUNCTION {{.Schema}}.snowflake_parts(bigint);
DROP FUNCTION {{.Schema}}.snowflake_time(bigint);
DROP DOMAIN {{.Schema}}.snowflake;
DELETE FROM {{.Schema}}.layout WHERE format = 'snowflake';
{{template "forget" .}}
{{- end}}
