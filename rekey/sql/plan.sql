{{/* The roles that can insert rows now, and could not with the new default. */}}
{{define "inserters" -}}
SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END AS role
    FROM (SELECT a.* FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = {{.table}}::regclass
    UNION ALL SELECT a.* FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = {{.table}}::regclass) g
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
    FROM pg_proc p WHERE p.pronamespace = {{literal .schema}}::regnamespace AND p.proname !~ '^(new_key|old_key|new_of|old_of|fill)_[0-9]+$'
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

{{/* Deletes the pairs that differ from their rows, and corrects the references that have them. */}}
{{define "settle"}}
DECLARE
    pair record;
BEGIN
    FOR pair IN
        DELETE FROM {{.pending}} d USING ONLY {{.table}} r
        WHERE d.key = {{.key}} AND r.{{.old}} = d.old_key::{{.old_type}}{{.collation}} AND r.{{.new}}::text COLLATE "C" <> d.new_key
        RETURNING r.{{.old}} AS old, r.{{.new}} AS fresh, d.new_key::{{.new_type}} AS stale
    LOOP
        {{- range .updates}}
        {{.}};
        {{- end}}
    END LOOP;
END
{{end}}

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

{{/* A finding about rows. */}}
{{define "rows" -}}
SELECT count(*) || {{literal .reason}} || {{.sample}} || {{literal .remedy}} FROM ONLY {{.table}} t{{.join}} WHERE {{.where}} HAVING count(*) > 0
{{- end}}

{{/* What follows are scripts: each statement begins with next. */}}

{{/* The new columns of a table, with the properties of the old ones. */}}
{{define "add columns"}}
{{- $table := .Name}}
{{- next}}ALTER TABLE {{$table}} {{range $i, $c := .Changed}}{{if $i}}, {{end}}ADD COLUMN {{.Fresh}} {{.NewType}}{{end}}
{{- range .Changed}}
    {{- if .Comment}}{{next}}COMMENT ON COLUMN {{$table}}.{{.Fresh}} IS {{literal .Comment}}{{end}}
    {{- $fresh := .Fresh}}
    {{- range .Grants}}{{next}}{{.On $table $fresh}}{{end}}
{{- end}}
{{- end}}

{{define "drop triggers"}}
{{- $table := .}}
{{- range ourTriggers}}{{next}}DROP TRIGGER IF EXISTS {{.}} ON {{$table}}{{end}}
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
{{- if .table.RLS}}
    {{- next}}{{.revoke}}
    {{- next}}GRANT SELECT, INSERT, UPDATE, DELETE ON {{$name}} TO PUBLIC
{{- else}}
    {{- template "give" .}}
    {{- next}}{{.revoke}}
    {{- range .grants}}{{next}}{{.On $name .Column}}{{end}}
{{- end}}
{{- end}}

{{/* Exchanges the names of the columns of a table, and of their indexes and constraints. */}}
{{define "exchange"}}
{{- $table := .table.Name}}{{$schema := .table.Schema}}
{{- range .table.Changed}}{{template "exchange names" (exchange (print "ALTER TABLE " $table " RENAME COLUMN") .Quoted .Fresh)}}{{end}}
{{- range .indexes}}{{template "exchange names" (exchangeIndex $schema .Name .Fresh)}}{{end}}
{{- range .checks}}{{template "exchange names" (exchange (print "ALTER TABLE " $table " RENAME CONSTRAINT") .Name .Fresh)}}{{end}}
{{- range .foreign_keys}}{{template "exchange names" (exchange (print "ALTER TABLE " $table " RENAME CONSTRAINT") .Name .Fresh)}}
    {{- if .Loosened}}
        {{- next}}ALTER TABLE {{$table}} ALTER CONSTRAINT {{.Name}} DEFERRABLE INITIALLY IMMEDIATE
        {{- next}}ALTER TABLE {{$table}} ALTER CONSTRAINT {{.Fresh}} DEFERRABLE INITIALLY DEFERRED
    {{- end}}
{{- end}}
{{- range .table.Changed}}
    {{- if .NotNullAs}}{{template "exchange names" (exchange (print "ALTER TABLE " $table " RENAME CONSTRAINT") .NotNullAs.Name .NotNullAs.Fresh)}}{{end}}
    {{- if not .NewDefault}}
    {{- else if $.forward}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Quoted}} SET DEFAULT {{.NewDefault}}
    {{- else}}{{next}}ALTER TABLE {{$table}} ALTER COLUMN {{.Fresh}} DROP DEFAULT
    {{- end}}
{{- end}}
{{- end}}

{{/* Exchanges two names of columns, constraints or indexes. */}}
{{define "exchange names"}}
{{- next}}{{.Rename .Visible}} TO "~rekey"
{{- next}}{{.Rename .Hidden}} TO {{.Visible}}
{{- next}}{{.Rename "\"~rekey\""}} TO {{.Hidden}}
{{- end}}

{{/* Drops the old columns of a table, which have names of rekey's. The primary key is still theirs. */}}
{{define "drop old columns"}}
{{- $table := .table.Name}}{{$schema := .table.Schema}}
{{- template "drop triggers" $table}}
{{- range .sequences}}{{next}}ALTER SEQUENCE {{.}} OWNED BY NONE{{end}}
{{- range .checks}}{{next}}ALTER TABLE {{$table}} DROP CONSTRAINT IF EXISTS {{.Fresh}}{{end}}
{{- next}}ALTER TABLE {{$table}} {{range $i, $c := .table.Changed}}{{if $i}}, {{end}}DROP COLUMN {{.Fresh}}{{end}}
{{- range .indexes}}
    {{- if eq .Type "p"}}{{next}}ALTER TABLE {{$table}} ADD CONSTRAINT {{.Constraint}} PRIMARY KEY USING INDEX {{.Name}}
        {{- if .ConComment}}{{next}}COMMENT ON CONSTRAINT {{.Constraint}} ON {{$table}} IS {{literal .ConComment}}{{end}}
    {{- end}}
    {{- if and .ReplIdent (eq $.table.Identity "i")}}{{next}}ALTER TABLE {{$table}} REPLICA IDENTITY USING INDEX {{.Name}}{{end}}
{{- end}}
{{- end}}

{{/* Creates a view under a name. The search_path determines the tables. */}}
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
{{- end}}
{{- end}}

{{/* Grants the privileges of a view. */}}
{{define "grant on a view"}}
{{- next}}{{.revoke}}
{{- range .view.Grants}}{{next}}{{.On $.name .Column}}{{end}}
{{- end}}

{{/*
Objects that depend on the columns, and that the plan does not know. The names of rekey's columns are for rekey
alone. A view of the job reads the columns with the new keys.
*/}}
{{define "dependent check" -}}
SELECT DISTINCT CASE WHEN x.hidden THEN 'depends on a column of rekey: ' ELSE 'would be lost: ' END || x.object || {{literal (print "; " .remedy)}}
    FROM (SELECT {{template "identity"}} AS object, t.name || ':' || a.attname IN ({{.hidden}}) AS hidden
        FROM (SELECT c.oid, format('%I.%I', c.relnamespace::regnamespace::text::name, c.relname) AS name FROM pg_class c) t
        JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid AND d.refobjsubid = a.attnum
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        WHERE g.tgisinternal IS NOT true AND t.name || ':' || a.attname IN ({{.visible}}, {{.hidden}})) x
    WHERE x.object !~ '"[ ~]rekey ' AND x.object !~ '(^| )(index [^ ]*\.|)"?rekey_' AND x.object !~ ' {{.schema}}\.' AND x.object NOT IN ({{.known}})
{{- end}}

{{/*
Tables that inherit from a table of the rekey, or from which one inherits. Triggers don't fire for a child, and
to drop a column drops that of the child.
*/}}
{{define "inheritance" -}}
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ({{.}}) THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ({{.}}) OR i.inhparent::regclass::text IN ({{.}})
{{- end}}

{{/* Views that still read old columns. */}}
{{define "view check" -}}
SELECT DISTINCT 'view ' || r.ev_class::regclass || ' reads ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || '; drop the original and create it again after cleanup'
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass JOIN pg_class c ON c.oid = r.ev_class
    LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE c.relnamespace = {{literal .schema}}::regnamespace AND d.refclassid = 'pg_class'::regclass
    AND (d.refobjid::regclass || ':' || a.attname IN ({{.old}}) OR d.refobjid::regclass::text IN ({{.views}}))
{{- end}}

{{/* Views of users that read columns with names of rekey's. */}}
{{define "readers" -}}
SELECT DISTINCT 'view ' || r.ev_class::regclass || ' would still read the old key, ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || ', as by its position; drop the view and create it again after cleanup'
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND r.ev_class::regclass::text IN ({{.views}}) AND d.refobjid::regclass || ':' || a.attname IN ({{.columns}})
{{- end}}

{{/* Objects of others that depend on the views of the job. */}}
{{define "view users" -}}
SELECT DISTINCT {{template "identity"}} || ' depends on the views of rekey; drop it, or let it read the tables'
    FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::regclass::text IN ({{.views}}) AND d.deptype = 'n'
    AND {{template "identity"}} NOT IN (SELECT 'view ' || v FROM unnest(ARRAY[{{.views}}]) v)
{{- end}}

{{/* Other objects that use the sequences of old keys, which end with their columns. */}}
{{define "sequence uses" -}}
SELECT DISTINCT {{template "identity"}} || ' uses sequence ' || d.refobjid::regclass || ', which would be dropped; '
    || CASE s.deptype WHEN 'i' THEN 'drop this use, or let it use another sequence' ELSE 'run ALTER SEQUENCE ' || d.refobjid::regclass || ' OWNED BY NONE, and cleanup keeps the sequence, or drop this use' END
    FROM pg_depend d LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    JOIN pg_depend s ON s.classid = 'pg_class'::regclass AND s.objid = d.refobjid AND s.refclassid = 'pg_class'::regclass AND s.deptype IN ('a', 'i')
    JOIN pg_attribute a ON a.attrelid = s.refobjid AND a.attnum = s.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::regclass::text IN ({{.sequences}}) AND d.deptype = 'n'
    AND s.refobjid::regclass || ':' || a.attname IN ({{.owners}}) AND (f.adrelid, f.adnum) IS DISTINCT FROM (s.refobjid, s.refobjsubid)
{{- end}}

{{/* Inserts and deletes a copy of a row in a trial. */}}
{{define "trial copy"}}{{template "trial insert" .}} RETURNING ctid INTO copy;
    DELETE FROM ONLY {{.table}} WHERE ctid = copy;{{end}}

{{define "trial insert"}}{{.drops}}
    INSERT INTO {{.table}}{{if .columns}} ({{join .columns ", "}})
        SELECT {{join .values ", "}} FROM (SELECT) one LEFT JOIN (SELECT * {{.from}} LIMIT 1) x ON true{{else}} DEFAULT VALUES{{end}}
{{- end}}

{{/* Inserts a copy of a row without a key in a trial, and compares the time of the key that it gets. */}}
{{define "trial without a key"}}{{template "trial insert" .}}{{if .time}} RETURNING {{.key}}::text, coalesce({{.time}}({{.key}}) NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day', true) INTO given, other;
    IF other THEN
        RAISE EXCEPTION USING ERRCODE = '{{.code}}', MESSAGE = {{literal (print "a trigger on " .table " sets the key that a program leaves out to ")}} || coalesce(given, 'NULL') || {{literal (print ", which is no " .format " of now")}};
    END IF;{{else}};{{end}}{{end}}
