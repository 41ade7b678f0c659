{{- /* Templates that several migrations share. */ -}}

{{define "revision" -}}
INSERT INTO {{.Schema}}.revision (version, name) VALUES ({{.Version}}, '{{.Name}}');
{{end}}

{{define "forget" -}}
DELETE FROM {{.Schema}}.revision WHERE version = {{.Version}};
{{end}}

{{/* The comment marks a schema as created by the migrations. */}}
{{define "mark schema"}}COMMENT ON SCHEMA {{.Schema}} IS 'Created by the sortkey migrations.';{{end}}

{{define "drop empty schema" -}}
-- Drop the schema if the migrations created it and it is empty. Any other object in it, such as the version table of a
-- migration tool, keeps it.
DO $$
BEGIN
    IF (SELECT obj_description(oid, 'pg_namespace') = 'Created by the sortkey migrations.' AND pg_has_role(nspowner, 'USAGE')
        FROM pg_namespace WHERE nspname = '{{.Schema}}')
    THEN
        DROP SCHEMA {{.Schema}} RESTRICT;
    END IF;
EXCEPTION WHEN dependent_objects_still_exist THEN
    NULL;
END
$$;
{{end}}

{{/* Templates that come before and after each migration. */}}
{{define "before" -}}
-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM set_config('sortkey_migrations.search_path', current_setting('search_path'), true);
    PERFORM set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;
{{end}}
{{define "after" -}}
DO $$
BEGIN
    PERFORM set_config('search_path', current_setting('sortkey_migrations.search_path'), true);
END
$$;
{{end}}

{{/* Templates around a query that returns kind, name, privileges and owner of the objects that only their owner may use. */}}
{{define "protect these" -}}
-- Revoke privileges that ALTER DEFAULT PRIVILEGES granted to other roles. Only the owner may use these objects.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', o.kind, o.name, coalesce(quote_ident(r.rolname), 'PUBLIC'))
        FROM (
{{- end}}
{{define "protected"}}
        ) o (kind, name, acl, owner), aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;
{{end}}

{{/* The same for the sequence and the functions of a format. */}}
{{define "protect" -}}
{{template "protect these" .}}
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = '{{.Schema}}.{{.Format}}_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{.Schema}}'::regnamespace AND p.proname IN ('advance_clock', 'next_{{.Format}}')
{{- template "protected"}}
{{- end}}

{{/* The beginning of a floor function: computes the unit of time that contains t. */}}
{{define "unit" -}}
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN {{.Lowest}};
    ELSIF t = 'infinity' THEN
        RETURN {{.Highest}};
    END IF;
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit.
    unit := floor(extract(epoch FROM (t - timestamptz '{{.Epoch}}')) * {{.UnitsPerSecond}});
    IF unit < 0 OR unit > {{.LastUnit}} THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for {{.Title}} ({{.First}} to {{.Last}})',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
{{- end}}

{{/* The beginning of a next_ function: takes a value of the format's sequence and checks it. */}}
{{define "tick" -}}
DECLARE
    -- This runs for each row. More variables and a search_path setting would cost a quarter of its time. Without the
    -- setting, every name needs its schema, including operators and types: the function is SECURITY DEFINER, and the
    -- caller's search_path must not decide which objects it uses.
    value bigint :={{" "}}
{{- end}}
{{define "next value"}}pg_catalog.nextval('{{.Schema}}.{{.Format}}_clock'){{end}}
{{define "tick is good" -}}
value OPERATOR(pg_catalog.<) {{.FullAt}}
        AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) {{.UnitEnd}}
        AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) {{.UnitNear}}
{{- end}}
