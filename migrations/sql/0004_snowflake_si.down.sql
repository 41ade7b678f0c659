{{define "snowflake_si" -}}
-- IF EXISTS: without a base clock, the domain is the only object.
DROP FUNCTION IF EXISTS {{.Schema}}.next_snowflake_si(integer);
DROP FUNCTION IF EXISTS {{.Schema}}.next_snowflake_si();
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_at(timestamptz, integer, integer);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_id(bigint, bigint);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_of(bigint, bigint);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_later(bigint);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_bits(bigint);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_node_bits();
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_node_bits(integer);
DROP FUNCTION IF EXISTS {{.Internal}}.snowflake_si_last_ms();
DROP SEQUENCE IF EXISTS {{.Internal}}.snowflake_si_clock;
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_floor(timestamptz);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_node(bigint);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_parts(bigint);
DROP FUNCTION IF EXISTS {{.Schema}}.snowflake_si_time(bigint);
DROP DOMAIN {{.Schema}}.snowflake_si;
DELETE FROM {{.Schema}}.layout WHERE format = 'snowflake_si';
{{template "forget" .}}
{{- end}}
