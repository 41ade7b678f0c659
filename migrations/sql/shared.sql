{{- /* What several migrations have in common. */ -}}

{{define "revision" -}}
INSERT INTO {{.Schema}}.revision (version, name) VALUES ({{.Version}}, '{{.Name}}');
{{end}}

{{define "forget" -}}
DELETE FROM {{.Schema}}.revision WHERE version = {{.Version}};
{{end}}

{{/* By its comment a schema that the migrations have made is told from one that was there. */}}
{{define "mark schema"}}COMMENT ON SCHEMA {{.Schema}} IS 'Sortable keys: this schema was made by their migrations.';{{end}}

{{define "drop empty schema" -}}
-- The schema goes if it was made for this and is empty. A tool's table of versions, or whatever else was put there,
-- keeps it.
DO $$
BEGIN
    IF (SELECT obj_description(oid, 'pg_namespace') = 'Sortable keys: this schema was made by their migrations.' AND pg_has_role(nspowner, 'USAGE')
        FROM pg_namespace WHERE nspname = '{{.Schema}}')
    THEN
        DROP SCHEMA {{.Schema}} RESTRICT;
    END IF;
EXCEPTION WHEN dependent_objects_still_exist THEN
    NULL;
END
$$;
{{end}}

{{/* Around each migration. */}}
{{define "before" -}}
-- Names without a schema mean the system's, whatever else the role's search_path would find.
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

{{/* Around a query for what is the owner's alone: its kind, name, privileges and owner. */}}
{{define "protect these" -}}
-- ALTER DEFAULT PRIVILEGES may have given to others what must be the owner's alone.
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

{{/* Of a format. */}}
{{define "protect" -}}
{{template "protect these" .}}
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = '{{.Schema}}.{{.Format}}_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, p.proacl, p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{.Schema}}'::regnamespace AND p.proname IN ('advance_clock', 'next_{{.Format}}')
{{- template "protected"}}
{{- end}}

{{/* The unit of time in which t lies, as the beginning of a floor function. */}}
{{define "unit" -}}
DECLARE
    unit numeric;
BEGIN
    IF t = '-infinity' THEN
        RETURN {{.Lowest}};
    ELSIF t = 'infinity' THEN
        RETURN {{.Highest}};
    END IF;
    -- Numeric all the way: floating point would be wrong by a unit now and then.
    unit := floor(extract(epoch FROM (t - timestamptz '{{.Epoch}}')) * {{.UnitsPerSecond}});
    IF unit < 0 OR unit > {{.LastUnit}} THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for {{.Title}} ({{.First}} to {{.Last}})',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
{{- end}}

{{/* What the functions that mint begin with: the next value of the format's sequence, and whether it will do. */}}
{{define "tick" -}}
DECLARE
    -- What runs for each row is spared variables, and a search_path of the function's own, which together would cost
    -- a quarter of its time. So all names have their schema, those of operators and types included: the function
    -- has its owner's rights, and a caller's search_path mustn't choose what they are used for.
    value bigint :={{" "}}
{{- end}}
{{define "next value"}}pg_catalog.nextval('{{.Schema}}.{{.Format}}_clock'){{end}}
{{define "tick is good" -}}
value OPERATOR(pg_catalog.<) {{.FullAt}}
        AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.<) {{.UnitEnd}}
        AND pg_catalog.clock_timestamp() OPERATOR(pg_catalog.>=) {{.UnitNear}}
{{- end}}
