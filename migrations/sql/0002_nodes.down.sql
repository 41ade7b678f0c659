{{define "nodes" -}}
DROP FUNCTION {{.Schema}}.confirm_copy(jsonb, boolean);
DROP FUNCTION {{.Internal}}.node_of_copy(text[], text);
DROP FUNCTION {{.Schema}}.reserve_for_copy(text, integer);
DROP FUNCTION {{.Schema}}.confirm_original();
DROP VIEW {{.Schema}}.database_problems;
DROP VIEW {{.Schema}}.node_problems;
DROP VIEW {{.Schema}}.node_defaults;
DROP FUNCTION {{.Schema}}.prepare_citus_worker();
DROP FUNCTION {{.Internal}}.use_node(text, integer);
DROP FUNCTION {{.Internal}}.node_pools(text, integer);
DROP VIEW {{.Schema}}.node_status;
DROP FUNCTION {{.Schema}}.unreserve_node(text, integer, timestamptz);
DROP FUNCTION {{.Schema}}.reserve_node(text, integer, text, boolean);
DROP FUNCTION {{.Schema}}.release_node(text, integer, bigint, text, bigint, text[]);
DROP FUNCTION {{.Schema}}.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]);
DROP FUNCTION {{.Schema}}.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint);
DROP FUNCTION {{.Schema}}.create_node_pool(text, integer, text);
DROP FUNCTION {{.Internal}}.open_pool(text, integer, text, boolean);
DROP FUNCTION {{.Internal}}.default_pool(text);
DROP FUNCTION {{.Internal}}.max_skew();
DROP FUNCTION {{.Internal}}.node_fence(text, interval);
DROP FUNCTION {{.Internal}}.of_original(text);
DROP FUNCTION {{.Internal}}.settle(boolean);
DROP FUNCTION {{.Internal}}.settle();
DROP FUNCTION {{.Internal}}.node_place();
DROP FUNCTION {{.Internal}}.database_identity();
DROP FUNCTION {{.Internal}}.node_timeline();
DROP FUNCTION {{.Internal}}.node_lock(text, integer);
DROP FUNCTION {{.Internal}}.commit_durably();
DROP TABLE {{.Schema}}.node_lease;
DROP TABLE {{.Schema}}.node_home;
DROP TABLE {{.Schema}}.node_pool;
{{template "forget" .}}
{{- end}}
