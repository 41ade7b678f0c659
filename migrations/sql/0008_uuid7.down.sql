{{define "uuid7" -}}
DROP FUNCTION {{.Schema}}.typeid_from_text(text);
DROP FUNCTION {{.Schema}}.typeid_text(text, uuid);
DROP FUNCTION {{.Schema}}.uuid7_at(timestamptz);
DROP FUNCTION {{.Schema}}.next_uuid7();
DROP FUNCTION {{.Internal}}.uuid7_of_server();
DROP FUNCTION {{.Internal}}.uuid7_now();
DROP FUNCTION {{.Schema}}.uuid7_floor(timestamptz);
DROP FUNCTION {{.Schema}}.uuid7_time(uuid);
DROP DOMAIN {{.Schema}}.uuid7;
{{template "forget" .}}
{{- end}}
