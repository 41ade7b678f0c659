{{/* Objects that have come to depend on old columns since inspect. */}}
{{define "dependent check" -}}
SELECT 'would be lost: ' || o FROM (SELECT DISTINCT {{template "identity"}} FROM pg_depend d
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::text || ':' || d.refobjsubid IN ({{.old}})) x (o)
    WHERE o !~ '"[ ~]rekey ' AND o NOT IN ({{.known}})
{{- end}}

{{/* The roles that can insert rows now, and could not with the new default. */}}
{{define "inserters" -}}
SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END AS role
    FROM (SELECT a.* FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = {{.table}}
    UNION ALL SELECT a.* FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = {{.table}}) g
    WHERE g.privilege_type = 'INSERT' AND NOT (has_schema_privilege(g.grantee, {{literal .schema}}, 'USAGE') AND has_function_privilege(g.grantee, {{literal .creates}}, 'EXECUTE'))
{{- end}}

{{/* Privileges that only a table has, or only its view. */}}
{{define "view privileges" -}}
WITH pairs (original, view) AS (VALUES {{join . ", "}}), privileges AS (
    SELECT p.original, p.view, c.oid = p.view AS of_view, format(E'%s%s\t%s\t%s', a.privilege_type, ' (' || quote_ident(x.name) || ')', coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END) AS line
    FROM pairs p JOIN pg_class c ON c.oid IN (p.original, p.view), LATERAL (
        SELECT NULL::name, coalesce(c.relacl, acldefault('r', c.relowner))
        UNION ALL SELECT t.attname, t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped AND t.attname !~ '^rekey_'
    ) x (name, acl), aclexplode(x.acl) a WHERE a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') AND a.grantee <> c.relowner
), single AS (
    SELECT original, view, NOT bool_or(of_view) AS missing, split_part(line, E'\t', 1) AS privilege, split_part(line, E'\t', 2) AS role, split_part(line, E'\t', 3) AS option
    FROM privileges GROUP BY original, view, line HAVING count(DISTINCT of_view) = 1
)
SELECT format(CASE WHEN missing THEN '%1$s%3$s of role %5$s on %4$s is new: GRANT %1$s ON %2$s TO %5$s%3$s' ELSE '%1$s%3$s of role %5$s on %4$s is gone: REVOKE %1$s ON %2$s FROM %5$s' END, privilege, view, option, original, role)
FROM single ORDER BY original::text, privilege, role
{{- end}}

{{/* Objects of others in the schema of the job. */}}
{{define "schema check" -}}
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) || ' is in schema {{.schema}}; move it to another one with SET SCHEMA'
    FROM pg_class c WHERE c.relnamespace = {{literal .schema}}::regnamespace
    AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND c.relname NOT IN ({{.own}})
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
    UNION ALL SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) || ' is in schema {{.schema}}; move it to another one with SET SCHEMA'
    FROM pg_proc p WHERE p.pronamespace = {{literal .schema}}::regnamespace AND p.proname !~ '^(new_key|old_key|fill)_[0-9]+$'
{{- end}}

{{/*
Revokes the privileges that other roles have by ALTER DEFAULT PRIVILEGES on a schema, its tables and its
functions.
*/}}
{{define "protect"}}
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = '{{.}}'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = '{{.}}'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = '{{.}}'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
{{end}}

{{/* Views that still read old columns. */}}
{{define "view check" -}}
SELECT DISTINCT 'view ' || r.ev_class::regclass || ' reads ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || '; drop the original and create it again after contract'
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = {{literal .schema}}::regnamespace AND d.refclassid = 'pg_class'::regclass
    AND (d.refobjid::text || ':' || d.refobjsubid IN ({{.old}}) OR d.refobjid = ANY ({{literal .views}}::oid[]))
{{- end}}

{{/* A batch of the backfill of a key. */}}
{{define "fill keys" -}}
WITH batch AS MATERIALIZED (
    SELECT t.{{.key}} AS k, {{.moment}} AS moment, greatest(({{.ms}} - {{.epoch}}) / {{.unit}}, 0) * {{.per_unit}} AS first, row_number() OVER (ORDER BY {{.order}}) AS n
    FROM ONLY {{.table}} t
    WHERE t.{{.fresh}} IS NULL AND ($1::text IS NULL OR ({{.order}}) > ({{.after}}))
    ORDER BY {{.order}} LIMIT $3::text::bigint
), slots AS MATERIALIZED (
    SELECT *, {{.id}} AS id FROM (SELECT k, moment, n, n + greatest($2::text::bigint, max(first - n) OVER (ORDER BY n)) AS slot FROM batch ORDER BY n) x
), filled AS (
    UPDATE ONLY {{.table}} t SET {{.sets}} FROM slots s WHERE t.{{.key}} = s.k AND t.{{.fresh}} IS NULL RETURNING 1
)
SELECT (SELECT count(*) FROM filled), moment, k::text, slot::text FROM slots ORDER BY n DESC LIMIT 1
{{- end}}

{{define "page range" -}}
t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid
{{- end}}

{{/* A batch of the backfill of a key that keeps its values. */}}
{{define "fill in place" -}}
WITH filled AS (
    UPDATE ONLY {{.table}} t SET {{.fresh}} = t.{{.key}}::bigint WHERE {{template "page range"}} AND t.{{.fresh}} IS NULL RETURNING 1
)
SELECT count(*) FROM filled
{{- end}}

{{/* A batch of the backfill of references. */}}
{{define "fill references" -}}
WITH filled AS (
    UPDATE ONLY {{.table}} t SET {{.sets}} WHERE {{template "page range"}} AND ({{.wrong}}) RETURNING {{.complete}} AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled
{{- end}}

{{/* Revokes the privileges that a new view has by ALTER DEFAULT PRIVILEGES. */}}
{{define "revoke all" -}}
DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = {{literal .name}}::regclass AND ({{.owner}} OR a.grantee <> c.relowner)
    LOOP
        EXECUTE {{printf "REVOKE ALL ON %s FROM " .name | literal}} || role;
    END LOOP;
END
{{- end}}

{{/* A ULID of now. */}}
{{define "ulid" -}}
(SELECT string_agg(substr('{{.}}', 1 + (CASE WHEN i < 10
    THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint >> (5 * (9 - i))
    ELSE get_byte(r, (i - 10) % 8 + CASE WHEN i < 18 THEN 0 ELSE 8 END) END & 31)::integer, 1), '' ORDER BY i)
    FROM generate_series(0, 25) i, (SELECT uuid_send(gen_random_uuid()) AS r) r)
{{- end}}

{{/* Whether the new key of a reference is another one than the expected one. */}}
{{define "differs" -}}
(t.{{.old}} IS NULL) <> (t.{{.new}} IS NULL) OR {{.expected}} <> t.{{.new}}
{{- end}}

{{/* What follows are scripts: each statement begins with next. */}}

{{/* The new columns of a table, with the properties of the old ones. */}}
{{define "add columns"}}
{{- $table := .Name}}
{{- next}}ALTER TABLE {{$table}} {{range $i, $c := .Changed}}{{if $i}}, {{end}}ADD COLUMN {{.Fresh}} {{.NewType}}{{end}}
{{- range .Changed}}
    {{- if .Target}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Fresh}} SET STATISTICS {{.Target}}{{end}}
    {{- if .Options}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Fresh}} SET ({{join .Options ", "}}){{end}}
    {{- if .Comment}}{{next}}COMMENT ON COLUMN {{$table}}.{{.Fresh}} IS {{literal .Comment}}{{end}}
    {{- $fresh := .Fresh}}
    {{- range .Grants}}{{next}}{{.On $table $fresh}}{{end}}
{{- end}}
{{- end}}

{{define "drop triggers"}}
{{- $table := .}}
{{- range ourTriggers}}{{next}}DROP TRIGGER IF EXISTS {{.}} ON {{$table}}{{end}}
{{- end}}

{{/* Drops the old columns of a table, and gives their names and properties to the new ones. */}}
{{define "replace columns"}}
{{- $table := .table.Name}}{{$schema := .table.Schema}}{{$role := .role}}
{{- template "drop triggers" $table}}
{{- range .sequences}}{{next}}ALTER SEQUENCE {{.}} OWNED BY NONE{{end}}
{{- next}}ALTER TABLE {{$table}} {{range $i, $c := .table.Changed}}{{if $i}}, {{end}}DROP COLUMN {{.Quoted}}{{end}}
{{- range .table.Changed}}{{next}}ALTER TABLE {{$table}} RENAME COLUMN {{.Fresh}} TO {{.Quoted}}{{end}}
{{- if .properties}}{{next}}ALTER TABLE {{$table}} {{join .properties ", "}}{{end}}
{{- range .table.Changed}}{{with .NotNullAs}}{{if .Comment}}{{next}}COMMENT ON CONSTRAINT {{.Name}} ON {{$table}} IS {{literal .Comment}}{{end}}{{end}}{{end}}
{{- range .table.Changed}}{{if .NotNull}}{{next}}ALTER TABLE {{$table}} DROP CONSTRAINT {{.NotNullCheck}}{{end}}{{end}}
{{- range .indexes}}
    {{- if not .Constraint}}{{next}}ALTER INDEX {{$schema}}.{{.Fresh}} RENAME TO {{.Name}}
    {{- else if eq .Type "p"}}{{next}}ALTER TABLE {{$table}} ADD CONSTRAINT {{.Constraint}} PRIMARY KEY USING INDEX {{.Fresh}}{{.Checked}}
    {{- else if .Deferrable}}{{next}}ALTER TABLE {{$table}} RENAME CONSTRAINT {{.Fresh}} TO {{.Constraint}}
    {{- else}}{{next}}ALTER TABLE {{$table}} ADD CONSTRAINT {{.Constraint}} UNIQUE USING INDEX {{.Fresh}}
    {{- end}}
    {{- if .ConComment}}{{next}}COMMENT ON CONSTRAINT {{.Constraint}} ON {{$table}} IS {{literal .ConComment}}{{end}}
    {{- $name := .Name}}
    {{- range .Targets}}{{next}}ALTER INDEX {{$schema}}.{{$name}} ALTER COLUMN {{.}}{{end}}
    {{- if .Clustered}}{{next}}ALTER TABLE {{$table}} CLUSTER ON {{.Name}}{{end}}
    {{- if and .ReplIdent (eq $.table.Identity "i")}}{{next}}ALTER TABLE {{$table}} REPLICA IDENTITY USING INDEX {{.Name}}{{end}}
    {{- if .Comment}}{{next}}COMMENT ON INDEX {{$schema}}.{{.Name}} IS {{literal .Comment}}{{end}}
{{- end}}
{{- range .checks}}{{next}}ALTER TABLE {{$table}} RENAME CONSTRAINT {{.Fresh}} TO {{.Name}}
    {{- if .Comment}}{{next}}COMMENT ON CONSTRAINT {{.Name}} ON {{$table}} IS {{literal .Comment}}{{end}}
{{- end}}
{{- range .statistics}}{{next}}{{.Definition}}
    {{- if .Target}}{{next}}ALTER STATISTICS {{.Name}} SET STATISTICS {{.Target}}{{end}}
    {{- if .Comment}}{{next}}COMMENT ON STATISTICS {{.Name}} IS {{literal .Comment}}{{end}}
    {{- if ne .Owner $role}}{{next}}ALTER STATISTICS {{.Name}} OWNER TO {{.Owner}}{{end}}
{{- end}}
{{- end}}

{{/* Creates a view under a name, with the privileges of the old one. The search_path determines the tables. */}}
{{define "create view"}}
{{- $name := .name}}{{$comments := .comments}}
{{- with .view}}
{{- next}}CREATE VIEW {{$name}}{{if .Columns}} ({{join .Names ", "}}){{end}}{{if .Options}} WITH ({{join .Options ", "}}){{end}} AS
{{.Query}}
    {{- range .Columns}}
        {{- if .Default}}{{next}}ALTER VIEW {{$name}} ALTER COLUMN {{.Column}} SET DEFAULT {{.Default}}{{end}}
        {{- if and .Text $comments}}{{next}}COMMENT ON COLUMN {{$name}}.{{.Column}} IS {{literal .Text}}{{end}}
    {{- end}}
    {{- if and .Comment $comments}}{{next}}COMMENT ON VIEW {{$name}} IS {{literal .Comment}}{{end}}
    {{- next}}{{$.revoke}}
    {{- range .Grants}}{{next}}{{.On $name .Column}}{{end}}
{{- end}}
{{- end}}

{{/* Gives a view to a role. The new owner needs the privilege CREATE on the schema for it. */}}
{{define "give"}}
{{- if ne .owner .role}}
    {{- next}}GRANT CREATE ON SCHEMA {{.schema}} TO {{.owner}}
    {{- next}}ALTER VIEW {{.name}} OWNER TO {{.owner}}
    {{- next}}REVOKE CREATE ON SCHEMA {{.schema}} FROM {{.owner}}
{{- end}}
{{- end}}

{{/*
The view of a table for programs of the new version. With row security, the privileges on the table apply, and
its policies. With security_invoker, a role would need privileges on all columns, so other views have
privileges of their own.
*/}}
{{define "table view"}}
{{- $name := .name}}
{{- next}}CREATE VIEW {{$name}}{{if .table.RLS}} WITH (security_invoker = true){{end}} AS SELECT {{range .table.Others}}{{.}}, {{end}}{{range $i, $c := .table.Changed}}{{if $i}}, {{end}}{{.Fresh}} AS {{.Quoted}}{{end}} FROM {{.table.Name}}
{{- next}}{{.revoke}}
{{- if .table.RLS}}{{next}}GRANT SELECT, INSERT, UPDATE, DELETE ON {{$name}} TO PUBLIC
{{- else}}
    {{- range .grants}}{{next}}{{.On $name .Column}}{{end}}
    {{- template "give" .}}
{{- end}}
{{- end}}

{{/* Gives the names of the old columns to the new ones, and the other way around. */}}
{{define "exchange columns"}}
{{- $table := .table.Name}}
{{- template "drop triggers" $table}}
{{- range .table.Changed}}
    {{- next}}ALTER TABLE {{$table}} RENAME COLUMN {{.Quoted}} TO "~rekey"
    {{- next}}ALTER TABLE {{$table}} RENAME COLUMN {{.Fresh}} TO {{.Quoted}}
    {{- next}}ALTER TABLE {{$table}} RENAME COLUMN "~rekey" TO {{.Fresh}}
    {{- if .NewDefault}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Quoted}} SET DEFAULT {{.NewDefault}}{{end}}
    {{- if index $.optional .Quoted}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Fresh}} DROP NOT NULL{{end}}
{{- end}}
{{- range .checks}}{{next}}ALTER TABLE {{$table}} DROP CONSTRAINT {{.Name}}{{end}}
{{- end}}

{{/* The old key of a row in a trial, if a program sets only the new one. */}}
{{define "trial key"}}
    IF NEW.{{.fresh}} IS NULL THEN
        NEW.{{.fresh}} := {{.old}};
    END IF;{{end}}

{{define "trial reference"}}
    NEW.{{.fresh}} := CASE WHEN NEW.{{.quoted}} IS NOT NULL THEN coalesce((SELECT p.{{.old_key}} FROM ONLY {{.root}} p WHERE p.{{.new_key}} = NEW.{{.quoted}}), NEW.{{.fresh}}) END;{{end}}

{{/* Inserts and deletes a copy of a row in a trial. */}}
{{define "trial copy"}}{{.drops}}
    INSERT INTO {{.table}} ({{join .columns ", "}})
        SELECT {{join .values ", "}} FROM (SELECT) one LEFT JOIN (SELECT * {{.from}} LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY {{.table}} WHERE ctid = copy;{{end}}
