{{define "snowflake" -}}
DROP FUNCTION {{.Schema}}.next_snowflake(integer);
DROP FUNCTION {{.Schema}}.next_snowflake();
DROP FUNCTION {{.Schema}}.snowflake_at(timestamptz, integer, integer);
DROP FUNCTION {{.Internal}}.mint_snowflake(timestamptz, integer);
DROP FUNCTION {{.Internal}}.mint_snowflake(timestamptz);
DROP FUNCTION {{.Internal}}.snowflake_of(bigint, bigint, bigint);
{{template "drop node" .Snowflake}}
{{- template "drop clock" .Snowflake}}
DROP FUNCTION {{.Schema}}.snowflake_floor(timestamptz);
DROP FUNCTION {{.Schema}}.snowflake_node(bigint);
DROP FUNCTION {{.Schema}}.snowflake_parts(bigint);
DROP FUNCTION {{.Schema}}.snowflake_time(bigint);
DROP DOMAIN {{.Schema}}.snowflake;
DELETE FROM {{.Schema}}.layout WHERE format = 'snowflake';
{{template "forget" .}}
{{- end}}
