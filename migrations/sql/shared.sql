{{- /* Templates that several migrations share. */ -}}

{{define "revision" -}}
INSERT INTO {{.Schema}}.revision (version, name) VALUES ({{.Version}}, '{{.Name}}');
{{end}}

{{define "forget" -}}
DELETE FROM {{.Schema}}.revision WHERE version = {{.Version}};
{{end}}

{{/* The comment marks a schema as created by the migrations. */}}
{{define "mark"}}Created by the sortkey migrations.{{end}}

{{define "create schemas" -}}
-- Create the schemas, unless they exist: for a role that must not create schemas, or with a tool's version table.
DO $$
DECLARE
    name text;
    grantee text;
BEGIN
    FOREACH name IN ARRAY '{ {{- .Schema}},{{.Internal -}} }'::text[] LOOP
        IF to_regnamespace(name) IS NULL THEN
            EXECUTE format('CREATE SCHEMA %I', name);
            EXECUTE format('COMMENT ON SCHEMA %I IS %L', name, '{{template "mark"}}');
            -- by ALTER DEFAULT PRIVILEGES
            FOR grantee IN
                SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
                WHERE n.oid = to_regnamespace(name) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
            LOOP
                EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM %s', name, grantee);
            END LOOP;
        END IF;
    END LOOP;
END
$$;
{{end}}

{{define "check owners" -}}
-- A role that owns one of the schemas, an object in it, or the privilege to create one could replace the functions that
-- others call. So the schemas must belong to roles that this session trusts.
DO $$
DECLARE
    untrusted text;
    problem text;
BEGIN
    FOR untrusted, problem IN
{{.Untrusted}}
    LOOP
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('%s %s', untrusted, problem),
            DETAIL = '{{.TrustRule}}.',
            HINT = 'Drop the object or change its owner, revoke the privilege, or connect as another role.';
    END LOOP;
END
$$;
{{end}}

{{define "drop empty schemas" -}}
-- Drop the schemas that the migrations created and that are empty. Any other object in a schema, such as the version
-- table of a migration tool, keeps it.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT nspname FROM pg_namespace WHERE nspname IN ('{{.Schema}}', '{{.Internal}}')
            AND obj_description(oid, 'pg_namespace') = '{{template "mark"}}' AND pg_has_role(nspowner, 'USAGE')
    LOOP
        BEGIN
            EXECUTE format('DROP SCHEMA %I RESTRICT', name);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            NULL;
        END;
    END LOOP;
END
$$;
{{end}}

{{/* Templates that come before and after each migration. */}}
{{define "before" -}}
-- Unqualified names refer to pg_catalog, whatever search_path the role has.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('sortkey_migrations.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
END
$$;
{{end}}
{{define "after" -}}
DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('sortkey_migrations.search_path'), true);
END
$$;
{{end}}

{{/* Orders a call and confirm_copy. */}}
{{define "wait for confirm_copy" -}}
-- confirm_copy ends the claims and reservations that it sees. It changes this row first, so it waits for this call, or this
    -- call waits for it.
    PERFORM FROM {{.Schema}}.node_home FOR SHARE;
{{- end}}

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

{{/* The same for the sequence and the next_ functions of a format. */}}
{{define "protect" -}}
{{template "protect these" .}}
            SELECT 'SEQUENCE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid = '{{.Internal}}.{{.Format}}_clock'::regclass
            UNION ALL
            SELECT 'FUNCTION', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner FROM pg_proc p
            WHERE p.pronamespace = '{{.Schema}}'::regnamespace AND p.proname IN ('next_{{.Format}}', 'next_{{.Format}}_meta')
{{- template "protected"}}
-- Callers of next_{{.Format}} need nextval() for its sequence. Only the owner has UPDATE, for setval().
GRANT USAGE ON SEQUENCE {{.Internal}}.{{.Format}}_clock TO PUBLIC;
{{template "share internals" .}}
{{- end}}

{{define "share internals" -}}
-- Queries inline the functions of {{.Schema}}, so their callers need EXECUTE on the functions of {{.Internal}}. Without
-- USAGE on that schema, a role cannot call these by name.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {{.Internal}} TO PUBLIC;
{{end}}

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
    -- Numeric arithmetic is exact. Floating point would sometimes be off by one unit, and the interval between two times
    -- can be out of range.
    unit := floor((extract(epoch FROM t) - {{.EpochMS}} / 1000.0) * {{.UnitsPerSecond}});
    IF unit < 0 OR unit > {{.LastUnit}} THEN
        RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
            MESSAGE = format('time %s is out of range for {{.Title}} ({{.First}} to {{.Last}})',
                to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    || CASE WHEN t < '0001-01-01 00:00:00+00' THEN ' BC' ELSE '' END),
            HINT = 'Use -infinity or infinity for an open end.';
    END IF;
{{- end}}

{{/* The clock of a format: its sequence, and the freshness of its values. */}}
{{define "clock" -}}
CREATE SEQUENCE {{.Internal}}.{{.Format}}_clock START WITH {{.FullAt}};
COMMENT ON SEQUENCE {{.Internal}}.{{.Format}}_clock IS 'The state of next_{{.Format}}: a window of time and a counter. Setting it by hand can cause duplicate IDs.';
{{end}}

{{/* An expression that is 0 if a value is fresh: its window is the current one or one of the next, and isn't full. */}}
{{define "stale"}}(value - (({{.NowWindow}} & {{.LastWindow}}) << {{.WindowShift}})) & {{.NotFresh}}{{end}}

{{define "advance"}}{{.Internal}}.advance('{{.Internal}}.{{.Format}}_clock', '{{.Epoch}}', {{.WindowMS}}, {{.WindowShift}}, {{.CounterBits}}, {{.FirstCounter}}){{end}}

{{define "setting" -}}
-- Returns the bits of the node number in the setting {{.Schema}}.node. use_node() checks the number once per session, and
-- stores the bits in a setting of the session. The mask keeps a forged one from changing the other bits.
CREATE FUNCTION {{.Internal}}.{{.Format}}_node_bits() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN {{.NodeMask}}
        & coalesce(nullif(current_setting('{{.Schema}}.{{.Format}}_node', true), '' COLLATE "C")::bigint, {{.Internal}}.use_node('{{.Format}}', {{.MaxNode}}));
{{end}}

{{define "last" -}}
-- Returns the end of the last window with IDs, in Unix milliseconds. Only the owner can read the sequence.
CREATE FUNCTION {{.Internal}}.{{.Format}}_last_ms() RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT {{.EpochMS}} + ((c.last_value >> {{.WindowShift}}) + 1) * {{.WindowMS}} FROM {{.Internal}}.{{.Format}}_clock c);
{{end}}

{{/* The generator of a format that has its node number and its sequence number at the end. */}}
{{define "generator" -}}
{{$i := .Internal -}}
-- Returns the bits of a node number in an ID.
CREATE FUNCTION {{$i}}.{{.Format}}_node_bits(node integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF node BETWEEN 0 AND {{.MaxNode}} THEN
        RETURN node::bigint << {{.NodeShift}};
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
        MESSAGE = format('node number %s of {{.Title}} is out of range (0 to {{.MaxNode}})', coalesce(node::text, 'NULL'));
END
$$;

{{template "setting" .}}
{{template "last" .}}
-- Returns the bits of a value of the clock in an ID.
CREATE FUNCTION {{$i}}.{{.Format}}_bits(value bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    RETURN {{.Bits}};

-- Returns an ID of a later window, or an error if the node number is out of range.
CREATE FUNCTION {{$i}}.{{.Format}}_later(node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN {{$i}}.{{.Format}}_node_bits((node_bits >> {{.NodeShift}})::integer) | {{$i}}.{{.Format}}_bits({{template "advance" .}});
END
$$;

-- Returns the ID of a value, if it is fresh and the node number is in range.
CREATE FUNCTION {{$i}}.{{.Format}}_of(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN CASE WHEN (({{template "stale" .}}) | (node_bits & {{.OtherBits}})) = 0
        THEN {{$i}}.{{.Format}}_bits(value) | node_bits ELSE {{$i}}.{{.Format}}_later(node_bits) END;

{{template "before id"}}
CREATE FUNCTION {{$i}}.{{.Format}}_id(value bigint, node_bits bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER
AS $$
BEGIN
    RETURN {{$i}}.{{.Format}}_of(value, node_bits);
END
$$;

CREATE FUNCTION {{.Schema}}.next_{{.Format}}() RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.{{.Format}}_id(nextval('{{$i}}.{{.Format}}_clock'), {{$i}}.{{.Format}}_node_bits());
COMMENT ON FUNCTION {{.Schema}}.next_{{.Format}}() IS
    'Generates an ID, for the default of a column, with the node number in the setting {{.Schema}}.node (0 to {{.MaxNode}}). Set a number with ALTER DATABASE that no program or other database uses, and reserve it with reserve_node.';

CREATE FUNCTION {{.Schema}}.next_{{.Format}}(node integer) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.{{.Format}}_id(nextval('{{$i}}.{{.Format}}_clock'), node::bigint << {{.NodeShift}});
COMMENT ON FUNCTION {{.Schema}}.next_{{.Format}}(integer) IS
    'Generates an ID, for the default of a column, with the given node number (0 to {{.MaxNode}}). No program or other database may use that number.';
{{end}}

{{define "before id" -}}
-- The same in PL/pgSQL, so that the value is evaluated only once. PL/pgSQL inlines the SQL function. The body has no
-- operators and names the schema of every function, so it doesn't depend on the caller's search_path; setting one would take
-- as long as nextval(). STABLE avoids snapshots, and leaves nextval() as the only volatile function of a default, without
-- which COPY would insert each row by itself.
{{- end}}

{{define "drop generator" -}}
DROP FUNCTION {{.Schema}}.next_{{.Format}}(integer);
DROP FUNCTION {{.Schema}}.next_{{.Format}}();
DROP FUNCTION {{.Internal}}.{{.Format}}_id(bigint, bigint);
DROP FUNCTION {{.Internal}}.{{.Format}}_of(bigint, bigint);
DROP FUNCTION {{.Internal}}.{{.Format}}_later(bigint);
DROP FUNCTION {{.Internal}}.{{.Format}}_bits(bigint);
DROP FUNCTION {{.Internal}}.{{.Format}}_last_ms();
DROP FUNCTION {{.Internal}}.{{.Format}}_node_bits();
DROP FUNCTION {{.Internal}}.{{.Format}}_node_bits(integer);
DROP SEQUENCE {{.Internal}}.{{.Format}}_clock;
{{end}}

{{/* Generates IDs of past times. The format has its node bits and sequence at the end. */}}
{{define "at" -}}
{{$i := .Internal -}}
CREATE FUNCTION {{.Schema}}.{{.Format}}_at(t timestamptz, n integer, node integer DEFAULT NULL) RETURNS bigint
    LANGUAGE sql VOLATILE
    RETURN {{$i}}.not_zero('{{.Title}}', {{.Schema}}.{{.Format}}_floor(t)
        | CASE WHEN node IS NULL THEN {{$i}}.{{.Format}}_node_bits() ELSE {{$i}}.{{.Format}}_node_bits(node) END
        | {{$i}}.sequence_bits('{{.Title}}', t, n, {{.MaxSequence}}), 0::bigint);
{{template "comment at" .}}
{{- end}}

{{define "comment at" -}}
COMMENT ON FUNCTION {{.Schema}}.{{.Format}}_at IS
    'Returns the ID of a past time with sequence number n (0 to {{.MaxSequence}}), for existing rows. Reserve the node number, by default the setting {{.Schema}}.node, for this purpose: the function does not know the IDs that were generated at that time.';
{{end}}
