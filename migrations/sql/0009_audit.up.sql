{{define "audit" -}}
{{$s := .Schema}}{{$i := .Internal -}}
-- Audits of the IDs in tables. The functions have the findings of the command sortkey audit, which reads batches and
-- works across databases. These functions read a whole table in one statement. They run with the privileges of their
-- caller, who needs SELECT on the table and USAGE on {{$s}}.
--
-- PL/pgSQL finds functions with the privileges of the caller, who may have no USAGE on {{$i}}. So only functions in
-- SQL call internal functions.

-- Returns the name of the column to audit, by default the primary key, and the format of its IDs: that of the column's
-- domain or default, or of the partition settings.
CREATE FUNCTION {{$i}}.audit_column(relation regclass, key name, format text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    wanted CONSTANT text := format;
    col pg_attribute;
    type pg_type;
BEGIN
    IF key IS NULL THEN
        SELECT a.attname INTO key FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
            WHERE i.indrelid = relation AND i.indisprimary AND i.indnkeyatts = 1;
    END IF;
    SELECT a.* INTO col FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = key AND a.attnum > 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('table %s has no %s', coalesce(relation::text, 'NULL'), coalesce('column ' || quote_ident(key), 'primary key of one column')),
            HINT = 'Pass the name of the column with the IDs.';
    END IF;
    format := NULL;
    SELECT t.* INTO type FROM pg_type t WHERE t.oid = col.atttypid;
    WHILE type.typtype = 'd' LOOP
        IF type.typnamespace = '{{$s}}'::regnamespace AND type.typname IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno') THEN
            format := type.typname;
        END IF;
        SELECT t.* INTO type FROM pg_type t WHERE t.oid = type.typbasetype;
    END LOOP;
    format := coalesce(format,
        (SELECT substr(min(p.proname), 6) FROM pg_attrdef d
            JOIN pg_depend u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
            JOIN pg_proc p ON p.oid = u.refobjid AND p.pronamespace = '{{$s}}'::regnamespace AND p.proname ~ '^next_(snowflake|snowflake_si|uid60|spread64|sno)$'
            WHERE d.adrelid = relation AND d.adnum = col.attnum),
        (SELECT t.format FROM {{$s}}.partitioned_table t JOIN pg_partitioned_table p ON p.partrelid = t.parent
            WHERE t.parent = relation AND p.partattrs[0] = col.attnum),
        CASE type.oid WHEN 'uuid'::regtype THEN 'sno' END);
    IF wanted <> format THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %L does not match %s.%I, which has IDs of format %s', wanted, relation, key, format),
            HINT = 'Omit format. The column determines it.';
    END IF;
    format := coalesce(format, wanted);
    IF (type.oid = CASE format WHEN 'sno' THEN 'uuid'::regtype ELSE 'bigint'::regtype END
        AND format IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno')) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %s is not valid for %s.%I of type %s', coalesce(quote_literal(format), 'NULL'), relation, key, format_type(col.atttypid, NULL)),
            HINT = 'Pass format snowflake, snowflake_si, uid60 or spread64 for a bigint column. A uuid column has format sno.';
    ELSIF to_regprocedure(format('{{$s}}.%I(bigint)', format || '_time')) IS NULL AND format <> 'sno' THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_function',
            MESSAGE = format('format %s has no functions in schema {{$s}}', format),
            HINT = 'Set Config.SnowflakeSI, which has the base clock of the format, and run Up or AddSnowflakeSI.';
    END IF;
    RETURN ARRAY[key, format];
END
$$;

-- Returns a query for the IDs of a column. A malformed or zero ID has no time and no node.
CREATE FUNCTION {{$i}}.audit_source(relation regclass, col text[], created_at name, since timestamptz, until timestamptz) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key CONSTANT text := col[1];
    format CONSTANT text := col[2];
    id CONSTANT text := format('t.%I', key);
    zero CONSTANT text := format('%s = %L', id, CASE format WHEN 'sno' THEN '32323232-3232-3232-3232-323232323232' ELSE '0' END);
    malformed CONSTANT text := CASE format WHEN 'spread64' THEN format('%s & 64512 <> 0', id) ELSE format('{{$s}}.%I(%s) IS NULL', format || '_time', id) END;
    condition text := id || ' IS NOT NULL';
    bound text;
BEGIN
    IF format = 'spread64' AND coalesce(since, until) IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('cannot find the IDs of a time range in %s.%I: Spread64 IDs do not order by time', relation, key),
            HINT = 'Omit since and until.';
    END IF;
    IF since IS NOT NULL THEN
        EXECUTE format('SELECT {{$s}}.%I($1)::text', format || '_floor') INTO bound USING since;
        condition := format('%s >= %L', id, bound);
    END IF;
    IF until IS NOT NULL THEN
        EXECUTE format('SELECT {{$s}}.%I($1)::text', format || '_floor') INTO bound USING until;
        condition := condition || format(' AND %s < %L', id, bound);
    END IF;
    RETURN format('SELECT %1$s AS id, %2$s AS malformed, %3$s AS zero, CASE WHEN NOT (%2$s OR %3$s) THEN {{$s}}.%4$I(%1$s) END AS at, '
        'CASE WHEN NOT (%2$s OR %3$s) THEN %5$s END AS node, %6$s AS created_at FROM %7$s t WHERE %8$s',
        id, malformed, zero, format || '_time',
        CASE format WHEN 'uid60' THEN 'NULL::integer' ELSE format('{{$s}}.%I(%s)', format || '_node', id) END,
        coalesce('t.' || quote_ident(created_at), 'NULL') || '::timestamptz', relation, condition);
END
$$;

-- Returns the node numbers of a format that were claimed or are reserved. It returns NULL if there is no pool of the
-- layout, or if the role cannot read the pools.
CREATE FUNCTION {{$i}}.known_nodes(format text) RETURNS integer[]
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
BEGIN
    IF NOT has_table_privilege('{{$s}}.node_pool', 'SELECT') OR NOT has_table_privilege('{{$s}}.node_status', 'SELECT') THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH pools AS (
            SELECT p.name, p.layout, true AS made FROM {{$s}}.node_pool p
            UNION ALL -- the first claim makes a pool, but it can have reservations before
            SELECT v.name, v.layout, false FROM (
                SELECT 'spread64-' || n, 'spread64: cluster ' || n FROM generate_series(0, 15) n
                UNION ALL VALUES ('sno', 'sno: partitions')
                UNION ALL SELECT replace(l.format, '_', '-'), l.format || ': ' || l.layout FROM {{$s}}.layout l
            ) v (name, layout) WHERE NOT EXISTS (SELECT FROM {{$s}}.node_pool p WHERE p.name = v.name)
        )
        SELECT coalesce(array_agg(DISTINCT CASE
                WHEN format = 'spread64' THEN s.number << 4 | substr(p.layout, 19)::integer
                -- Programs that share a partition claim ranges of its sequence.
                WHEN p.layout ~ '^sno: partition ' THEN substring(p.layout FROM '[0-9]+')::integer
                ELSE s.number END) FILTER (WHERE s.term > 0 OR s.reserved IS NOT NULL), '{}')
        FROM pools p LEFT JOIN {{$s}}.node_status s ON s.pool = p.name
        WHERE CASE format
            WHEN 'spread64' THEN p.layout ~ '^spread64: cluster [0-9]+$'
            WHEN 'sno' THEN p.layout ~ '^sno: (partitions$|partition [0-9]+ in )'
            ELSE p.layout = (SELECT format || ': ' || l.layout FROM {{$s}}.layout l WHERE l.format = format) END
        HAVING bool_or(p.made OR s.reserved IS NOT NULL)
    );
END
$$;

-- Returns the findings of the query that audit_source returned.
CREATE FUNCTION {{$i}}.audit_findings(
    source text, known integer[], compared boolean, tolerance interval, future interval, max_examples integer
) RETURNS TABLE (finding text, count bigint, examples text[])
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC'
AS $$
BEGIN
    RETURN QUERY EXECUTE format('
        WITH ids AS MATERIALIZED (%s), found AS (
            SELECT v.finding, i.id FROM ids i CROSS JOIN LATERAL (VALUES
                (''malformed'', i.malformed), (''zero'', i.zero), (''future'', i.at > $1),
                (''apart'', i.created_at NOT BETWEEN i.at - $2 AND i.at + $2),
                (''unknown_node'', i.node <> ALL ($3))
            ) v (finding, found) WHERE v.found
            UNION ALL SELECT ''duplicate'', i.id FROM ids i GROUP BY i.id HAVING count(*) > 1
        ), numbered AS (
            SELECT f.finding, f.id, dense_rank() OVER (PARTITION BY f.finding ORDER BY f.id) AS place FROM found f
        )
        SELECT v.finding, CASE WHEN v.checked THEN count(n.id) END, coalesce((array_agg(DISTINCT n.id) FILTER (WHERE n.place <= $4))::text[], ''{}'')
        FROM (VALUES (1, ''malformed'', true), (2, ''zero'', true), (3, ''future'', true), (4, ''apart'', $5), (5, ''unknown_node'', $3 IS NOT NULL),
            (6, ''duplicate'', true)) v (ordinal, finding, checked) LEFT JOIN numbered n ON n.finding = v.finding
        GROUP BY v.ordinal, v.finding, v.checked ORDER BY v.ordinal', source)
        USING clock_timestamp() + future, tolerance, known, max_examples, compared;
END
$$;

-- Returns the counts of the query that audit_source returned.
CREATE FUNCTION {{$i}}.audit_counts(source text) RETURNS TABLE (node integer, day date, count bigint)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC'
AS $$
BEGIN
    RETURN QUERY EXECUTE format('
        SELECT q.node, q.day, count(*) FROM (SELECT i.node, i.at::date AS day FROM (%s) i WHERE i.at IS NOT NULL) q
        GROUP BY GROUPING SETS ((q.node), (q.day)) HAVING coalesce(q.node::text, q.day::text) IS NOT NULL
        ORDER BY q.node, q.day', source);
END
$$;

CREATE FUNCTION {{$s}}.audit_key(
    relation regclass, key name DEFAULT NULL, format text DEFAULT NULL,
    created_at name DEFAULT NULL, tolerance interval DEFAULT '1 minute', future interval DEFAULT '1 second',
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, max_examples integer DEFAULT 5
) RETURNS TABLE (finding text, count bigint, examples text[])
    LANGUAGE sql STABLE
    RETURN {{$i}}.audit_findings(
        {{$i}}.audit_source(relation, {{$i}}.audit_column(relation, key, format), created_at, since, until),
        {{$i}}.known_nodes(({{$i}}.audit_column(relation, key, format))[2]), created_at IS NOT NULL, tolerance, future, max_examples);
COMMENT ON FUNCTION {{$s}}.audit_key IS 'Checks the IDs of a column, by default the primary key: malformed, zero, future, apart (from the column created_at), unknown_node (never claimed and not reserved) and duplicate. A count of NULL means not checked. It reads the whole table in one statement, which takes time, temporary disk space and a snapshot; the command sortkey audit reads batches instead.';

CREATE FUNCTION {{$s}}.audit_counts(
    relation regclass, key name DEFAULT NULL, format text DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL
) RETURNS TABLE (node integer, day date, count bigint)
    LANGUAGE sql STABLE
    RETURN {{$i}}.audit_counts({{$i}}.audit_source(relation, {{$i}}.audit_column(relation, key, format), NULL, since, until));
COMMENT ON FUNCTION {{$s}}.audit_counts IS 'Counts the IDs of a column by node number (day is NULL), and by day in UTC (node is NULL). It reads the whole table in one statement, which takes time and a snapshot.';

CREATE FUNCTION {{$s}}.audit_duplicates(key name, VARIADIC relations regclass[]) RETURNS TABLE (id text, count bigint, found_in regclass[])
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY EXECUTE 'SELECT q.id, count(*), array_agg(DISTINCT q.relation ORDER BY q.relation) FROM ('
        || (SELECT string_agg(format('SELECT t.%I::text, %L::regclass FROM %s t', key, r, r), ' UNION ALL ') FROM (SELECT DISTINCT u.r FROM unnest(relations) u (r)) d)
        || ') q (id, relation) WHERE q.id IS NOT NULL GROUP BY q.id HAVING count(*) > 1 ORDER BY q.id';
END
$$;
COMMENT ON FUNCTION {{$s}}.audit_duplicates IS 'Returns the IDs that stand more than once in the column key of these tables. It reads all of the tables in one statement, which takes time, temporary disk space and a snapshot.';

{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
