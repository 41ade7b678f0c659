{{define "spread64" -}}
DROP FUNCTION {{.Schema}}.next_spread64(integer);
DROP FUNCTION {{.Schema}}.next_spread64();
DROP FUNCTION {{.Schema}}.spread64_at(timestamptz, integer, integer);
DROP FUNCTION {{.Internal}}.mint_spread64(timestamptz, integer);
DROP FUNCTION {{.Internal}}.mint_spread64(timestamptz);
DROP FUNCTION {{.Internal}}.spread64_of(bigint, bigint, bigint);
DROP FUNCTION {{.Internal}}.spread64_bits(bigint, bigint);
DROP FUNCTION {{.Internal}}.spread64_unit(timestamptz);
{{template "drop node" .Spread64}}
{{- template "drop clock" .Spread64}}
DROP FUNCTION {{.Schema}}.spread64_from_text(text);
DROP FUNCTION {{.Schema}}.spread64_text(bigint);
DROP FUNCTION {{.Schema}}.spread64_parts(bigint);
DROP FUNCTION {{.Schema}}.spread64_node(bigint);
DROP FUNCTION {{.Schema}}.spread64_time(bigint);
DROP DOMAIN {{.Schema}}.spread64;
{{template "forget" .}}
{{- end}}
