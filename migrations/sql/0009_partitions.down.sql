{{define "partitions" -}}
{{$s := .Schema}}{{$i := .Internal -}}
DROP PROCEDURE {{$s}}.maintain_partitions(regclass, interval, boolean, timestamptz);
DROP FUNCTION {{$i}}.count_failed(integer, text);
DROP FUNCTION {{$s}}.next_partition_step(regclass, timestamptz, interval, jsonb);
DROP FUNCTION {{$i}}.take_partition_step(regclass, timestamptz, interval, text, jsonb);
DROP FUNCTION {{$i}}.partition_pause(integer, interval);
DROP FUNCTION {{$i}}.end_partition_step(regclass, jsonb, timestamptz, integer, text, text, timestamptz, timestamptz, text, text);
DROP FUNCTION {{$i}}.partition_state(regclass);
DROP FUNCTION {{$i}}.plan_partition_run(regclass, timestamptz, jsonb);
DROP FUNCTION {{$s}}.plan_partitions(regclass, timestamptz);
DROP FUNCTION {{$i}}.partition_sql(regclass, text, text, timestamptz, timestamptz, timestamptz);
DROP FUNCTION {{$i}}.error_if(text, text, text, text);
DROP FUNCTION {{$i}}.is_below(uuid, uuid);
DROP FUNCTION {{$i}}.is_below(bigint, bigint);
DROP FUNCTION {{$i}}.is_at_least(uuid, uuid);
DROP FUNCTION {{$i}}.is_at_least(bigint, bigint);
DROP FUNCTION {{$i}}.partition_steps(regclass, timestamptz);
DROP VIEW {{$s}}.partition_horizon;
DROP FUNCTION {{$i}}.partition_times(regclass, text);
DROP FUNCTION {{$i}}.partition_bound(text, timestamptz);
DROP FUNCTION {{$i}}.partition_name(regclass, text);
DROP FUNCTION {{$i}}.partition_window(interval, timestamptz);
DROP FUNCTION {{$i}}.managed_tables(regclass, boolean);
DROP FUNCTION {{$s}}.unmanage_partitions(regclass);
DROP FUNCTION {{$s}}.manage_partitions(regclass, interval, text, integer, interval, text, boolean);
DROP FUNCTION {{$i}}.require_owner(regclass);
DROP FUNCTION {{$i}}.require_trusted(regclass);
DROP TABLE {{$s}}.partition_log;
DROP VIEW {{$s}}.partitioned_table;
DROP FUNCTION {{$i}}.table_of(text, oid, name, name);
DROP TABLE {{$s}}.partition_settings;
DROP FUNCTION {{$i}}.check_managed_owner();
{{template "forget" .}}
{{- end}}
