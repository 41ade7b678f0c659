{{/* The columns without a foreign key that have the type of a key. */}}
{{define "unlisted" -}}
WITH RECURSIVE types (oid, base, elements) AS (
    SELECT t.oid, t.oid, false FROM pg_type t WHERE t.typname IN ('int2', 'int4', 'int8', 'uuid', 'text', 'varchar', 'bpchar') AND t.typnamespace = 'pg_catalog'::regnamespace
    UNION ALL SELECT t.oid, b.base, t.typtype <> 'd' OR b.elements FROM types b JOIN pg_type t ON t.typtype = 'd' AND t.typbasetype = b.oid OR t.typelem = b.oid AND t.typlen = -1)
    SELECT c.oid::bigint AS "Table", format('%I.%I', n.nspname, c.relname) AS "Name", a.attname AS "Column", quote_ident(a.attname) AS "Quoted", b.typname AS "Base", t.elements AS "Array", c.reltuples AS "Rows",
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) OR a.attidentity <> '' OR a.atthasdef AS "Own",
    coalesce((SELECT quote_ident(k.attname) FROM pg_attribute k WHERE a.attname ~* '.id$' AND k.attrelid = c.oid AND k.attnum > 0 AND lower(k.attname) = regexp_replace(lower(a.attname), '_?id$', '') || CASE WHEN a.attname LIKE '%\_id' THEN '_type' ELSE 'type' END
        AND k.atttypid IN ('text'::regtype, 'varchar'::regtype) LIMIT 1), '') AS "Kind",
    NOT row_security_active(c.oid) AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS "Readable"
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid JOIN types t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = t.base
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    AND n.nspname <> 'information_schema' AND NOT starts_with(n.nspname, 'pg_') AND n.nspname <> ALL ($1::text::text[])
    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY (k.conkey))
    ORDER BY 2, a.attnum
{{- end}}

{{/* What the session may do, publications, subscriptions, uses of sequences, and node numbers. */}}
{{define "database" -}}
SELECT row_to_json(x)::text FROM (SELECT to_regnamespace($1) IS NOT NULL AS "Exists",
    has_database_privilege(current_database(), 'CREATE') AS "Create",
    has_function_privilege('{{.Functions}}.reserve_node(text,integer,text,boolean)', 'EXECUTE') AND has_function_privilege('{{.Functions}}.unreserve_node(text,integer,timestamptz)', 'EXECUTE') AS "Reserve",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT quote_ident(p.pubname) AS "Name", string_agg(format('%I.%I', p.schemaname, p.tablename), ', ' ORDER BY p.schemaname, p.tablename) AS "Tables",
    bool_and(EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid WHERE b.pubname = p.pubname AND r.prrelid = format('%I.%I', p.schemaname, p.tablename)::regclass)) AS "Listed"
    {{.Published}} GROUP BY p.pubname ORDER BY 1) y) AS "Publications",
    (SELECT array_agg(DISTINCT s.srrelid::regclass::text) FROM pg_subscription_rel s WHERE s.srrelid = ANY ($2::text::oid[])) AS "Subscribed",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT d.refobjid::regclass::text AS "Sequence", {{template "describe"}} AS "Object"
    FROM pg_depend d LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    WHERE d.refclassid = 'pg_class'::regclass AND d.deptype = 'n' AND d.refobjid = ANY (ARRAY[{{.Serials}}]::regclass[]::oid[])
    AND NOT EXISTS (SELECT FROM pg_depend s WHERE s.objid = d.refobjid AND s.classid = 'pg_class'::regclass AND s.refobjid = f.adrelid AND s.refobjsubid = f.adnum)) y) AS "Sequences",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT pool AS "Pool", number AS "Number", state AS "State", coalesce(reserved, '') AS "Reserved" FROM {{.Functions}}.node_status WHERE state <> 'free') y) AS "Nodes") x
{{- end}}

{{/* Uses of the tables that are not uses of their columns. */}}
{{define "uses" -}}
SELECT row_to_json(x)::text FROM (SELECT
    (SELECT array_agg(DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)) FROM pg_type t JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
    WHERE t.typrelid = ANY ($1::text::oid[]) AND d.classid = 'pg_class'::regclass AND d.deptype = 'n') AS "Rows",
    (SELECT array_agg(DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)) FROM pg_constraint k JOIN pg_depend d ON d.refclassid = 'pg_constraint'::regclass AND d.refobjid = k.oid
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    WHERE k.conindid = ANY ($2::text::oid[]) AND k.contype IN ('p', 'u') AND d.deptype = 'n' AND r.rulename IS DISTINCT FROM '_RETURN') AS "Constraints",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT d.objid::regclass::text AS "View", quote_ident(e.extname) AS "Extension" FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_class'::regclass AND d.objid = ANY ($3::text::oid[]) AND d.deptype = 'e' ORDER BY 1) y) AS "Extensions",
    (SELECT array_agg(pg_describe_object('pg_rewrite'::regclass, r.oid, 0) ORDER BY r.rulename) FROM pg_rewrite r WHERE r.ev_class = ANY ($1::text::oid[]) AND r.ev_type = '2'
    AND (r.ev_enabled IN ('A', 'R') OR r.ev_enabled = 'O' AND NOT has_parameter_privilege('session_replication_role', 'SET'))) AS "Rules",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT DISTINCT quote_ident(pg_get_userbyid(c.relowner)) AS "Owner", quote_ident(n.nspname) AS "Schema" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY ($3::text::oid[]) AND NOT has_schema_privilege(c.relowner, n.oid, 'CREATE')) y) AS "Owners",
    (SELECT array_agg(quote_ident(n.nspname) ORDER BY n.nspname) FROM pg_namespace n WHERE quote_ident(n.nspname) = ANY ($4::text::text[]) AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE'))) AS "Schemas",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT format('%I.%I', n.nspname, c.relname) AS "Name", format('%I.%I', o.relnamespace::regnamespace, o.relname) AS "Other"
    FROM pg_class o JOIN pg_class c ON c.relname = o.relname AND c.oid <> o.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE o.oid = ANY ($1::text::oid[] || $3::text::oid[]) AND c.oid <> ALL ($1::text::oid[] || $3::text::oid[]) AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND quote_ident(n.nspname) = ANY ($4::text::text[])
    ORDER BY 1) y) AS "Names") x
{{- end}}

{{/* Objects with the names of objects that rekey creates. */}}
{{define "fresh names" -}}
SELECT json_agg(o ORDER BY o)::text FROM (
    SELECT pg_describe_object('pg_constraint'::regclass, k.oid, 0) FROM pg_constraint k WHERE k.conrelid = ANY ($1::text::oid[]) AND k.conname LIKE 'rekey\_%'
    UNION ALL SELECT pg_describe_object('pg_trigger'::regclass, t.oid, 0) FROM pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND t.tgname ~ '{{ownTriggers}}'
    UNION ALL SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class c WHERE c.relkind IN ('r', 'i', 'S', 'v', 'm', 'p', 'f') AND c.relname LIKE 'rekey\_%'
    AND c.relnamespace IN (SELECT t.relnamespace FROM pg_class t WHERE t.oid = ANY ($1::text::oid[]))
    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.conrelid = ANY ($1::text::oid[]))) x (o)
{{- end}}

{{/* The values left in a sequence. */}}
{{define "sequence" -}}
SELECT row_to_json(x)::text FROM (SELECT s.seqincrement AS "Increment", s.seqmin AS "Min", s.seqmax AS "Max", s.seqcycle AS "Cycle", v.last_value AS "Last", v.is_called AS "Called",
    (SELECT coalesce(min({{.Column}}), 0) FROM ONLY {{.Table}}) AS "Smallest"
    FROM pg_sequence s, {{.Sequence}} v WHERE s.seqrelid = $1::text::regclass) x
{{- end}}
