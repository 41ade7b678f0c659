{{define "partitions" -}}
DROP PROCEDURE {{.Schema}}.maintain_partitions(regclass, interval, boolean, timestamptz);
DROP FUNCTION {{.Schema}}.next_partition_step(regclass, timestamptz, interval, jsonb);
DROP FUNCTION {{.Schema}}.partition_pause(integer, interval);
DROP FUNCTION {{.Schema}}.end_partition_step(regclass, jsonb, timestamptz, integer, text, text, timestamptz, timestamptz, text, text);
DROP FUNCTION {{.Schema}}.partition_state(regclass);
DROP FUNCTION {{.Schema}}.plan_partition_run(regclass, timestamptz, jsonb);
DROP FUNCTION {{.Schema}}.plan_partitions(regclass, timestamptz);
DROP FUNCTION {{.Schema}}.partition_sql(regclass, text, text, timestamptz, timestamptz, timestamptz);
DROP FUNCTION {{.Schema}}.partition_steps(regclass, timestamptz);
DROP FUNCTION {{.Schema}}.partition_times(regclass, text);
DROP FUNCTION {{.Schema}}.partition_bound(text, timestamptz);
DROP FUNCTION {{.Schema}}.partition_name(regclass, text);
DROP FUNCTION {{.Schema}}.partition_window(interval, timestamptz);
DROP FUNCTION {{.Schema}}.managed_tables(regclass, boolean);
DROP FUNCTION {{.Schema}}.unmanage_partitions(regclass);
DROP FUNCTION {{.Schema}}.manage_partitions(regclass, interval, text, integer, interval, text, boolean);
DROP FUNCTION {{.Schema}}.require_owner(regclass);
DROP TABLE {{.Schema}}.partition_log;
DROP TABLE {{.Schema}}.partitioned_table;
{{template "forget" .}}
{{- end}}
