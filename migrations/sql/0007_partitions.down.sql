{{define "partitions" -}}
DROP PROCEDURE {{.Schema}}.maintain_partitions(regclass, interval, boolean, timestamptz);
DROP FUNCTION {{.Schema}}.next_partition_step(regclass, timestamptz, interval, text[]);
DROP FUNCTION {{.Schema}}.plan_partitions(regclass, timestamptz);
DROP FUNCTION {{.Schema}}.partition_sql(regclass, text, text, timestamptz, timestamptz, regclass);
DROP FUNCTION {{.Schema}}.partition_times(regclass, text);
DROP FUNCTION {{.Schema}}.partition_bound(text, timestamptz);
DROP FUNCTION {{.Schema}}.partition_time(text, text, boolean);
DROP FUNCTION {{.Schema}}.partition_name(regclass, text);
DROP FUNCTION {{.Schema}}.partition_window(interval, timestamptz);
DROP FUNCTION {{.Schema}}.managed_tables(regclass, boolean);
DROP FUNCTION {{.Schema}}.unmanage_partitions(regclass);
DROP FUNCTION {{.Schema}}.manage_partitions(regclass, interval, text, integer, interval, text);
DROP TABLE {{.Schema}}.partitioned_table;
{{template "forget" .}}
{{- end}}
