{{define "snowflake_si" -}}
-- IF EXISTS: without a base clock, the domain is the only object.
DROP FUNCTION IF EXISTS {{.Schema}}.next_snowflake_si(integer);
DROP SEQUENCE IF EXISTS {{.Schema}}.snowflake_si_clock;
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_floor(timestamptz);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_from_text(text);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_text(bigint);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_parts(bigint);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_time(bigint);
DROP DOMAIN {{.Schema}}.snowflake_si;
DELETE FROM {{.Schema}}.layout WHERE format = 'snowflake_si';
{{template "forget" .}}
{{- end}}
