{{/* The columns of a grant, for an alias g of aclexplode. */}}
{{define "grant" -}}
g.privilege_type AS "Privilege", CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) END AS "Role", g.is_grantable AS "Option"
{{- end}}

{{/* The view whose query is the object of a row d of pg_depend. */}}
{{define "queried" -}}
(SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN')
{{- end}}

{{/* The arguments for the object of a row d of pg_depend, and of the view for its rule. */}}
{{define "object" -}}
CASE WHEN {{template "queried"}} IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce({{template "queried"}}, d.objid), CASE WHEN {{template "queried"}} IS NULL THEN d.objsubid ELSE 0 END
{{- end}}

{{/* The type and the qualified name of that object. */}}
{{define "identity" -}}
(SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object({{template "object"}}) i)
{{- end}}

{{/* A description of that object. */}}
{{define "describe" -}}
pg_catalog.pg_describe_object({{template "object"}})
{{- end}}

{{/* The columns of a dependent. */}}
{{define "dependent" -}}
d.classid::regclass::text AS "Class", d.objid::bigint AS "OID", d.refobjid::bigint AS "Table", d.refobjsubid AS "Column",
    pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) AS "Object", {{template "identity"}} AS "Identity",
    CASE d.classid WHEN 'pg_catalog.pg_attrdef'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_attrdef f WHERE f.oid = d.objid AND f.adrelid = d.refobjid AND f.adnum = d.refobjsubid)
    WHEN 'pg_catalog.pg_rewrite'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.oid = d.objid AND r.rulename = '_RETURN')
    WHEN 'pg_catalog.pg_trigger'::regclass THEN EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.oid = d.objid AND t.tgisinternal) ELSE false END AS "Own"
{{- end}}

{{/* The columns of a foreign key f. */}}
{{define "foreign key" -}}
f.oid::bigint AS "OID", pg_catalog.quote_ident(f.conname) AS "Name", f.conrelid::bigint AS "Table", f.confrelid::bigint AS "To",
    (SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.conrelid) AS "TableName",
    (SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = f.confrelid) AS "ToName",
    f.conkey AS "Columns", f.confkey AS "ToColumns", f.convalidated AS "Valid", f.condeferrable AS "Deferrable", pg_catalog.pg_get_constraintdef(f.oid) AS "Definition",
    coalesce(pg_catalog.obj_description(f.oid, 'pg_constraint'), '') AS "Comment"
{{- end}}

{{/* The primary key of a table. */}}
{{define "primary key" -}}
SELECT row_to_json(x)::text FROM (SELECT c.oid::bigint AS "OID", c.relkind AS "Kind",
    (SELECT array_agg(k) FROM pg_catalog.pg_index i, unnest(i.indkey::smallint[]) WITH ORDINALITY u(k, o) WHERE i.indrelid = c.oid AND i.indisprimary AND o <= i.indnkeyatts) AS "Columns"
    FROM pg_catalog.pg_class c WHERE c.oid = $1::text::oid) x
{{- end}}

{{/* A column of a table. */}}
{{define "column by name" -}}
SELECT row_to_json(x)::text FROM (SELECT a.attrelid::bigint AS "OID", a.attnum AS "Num"
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::text::oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped) x
{{- end}}

{{/* The foreign keys from and to a column. */}}
{{define "foreign keys" -}}
SELECT {{template "foreign key"}} FROM pg_catalog.pg_constraint f
    WHERE f.contype = 'f' AND f.conparentid = 0 AND (f.confrelid = $1::text::oid AND $2::text::smallint = ANY (f.confkey) OR f.conrelid = $1::text::oid AND $2::text::smallint = ANY (f.conkey))
    ORDER BY f.conname
{{- end}}

{{/* A table. */}}
{{define "relation" -}}
SELECT row_to_json(x)::text FROM (SELECT c.oid::bigint AS "OID", pg_catalog.format('%I.%I', n.nspname, c.relname) AS "Name",
    c.relname AS "Plain", pg_catalog.quote_ident(n.nspname) AS "Schema", c.relkind AS "Kind", c.relispartition AS "Partition",
    (SELECT pg_catalog.format('%I.%I', rn.nspname, rc.relname) FROM pg_catalog.pg_class rc JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace WHERE rc.oid = pg_catalog.pg_partition_root(c.oid)) AS "Root",
    c.reloftype <> 0 AS "Typed",
    (SELECT coalesce(string_agg(pg_catalog.format('ALTER TABLE %s NO INHERIT %s', i.inhrelid::regclass, i.inhparent::regclass), '; ' ORDER BY i.inhrelid, i.inhparent), '') FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)) AS "NoInherit",
    pg_catalog.pg_has_role(c.relowner, 'USAGE') AS "Owned", c.relrowsecurity AS "RLS", c.relforcerowsecurity AS "ForceRLS",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT {{template "grant"}} FROM pg_catalog.aclexplode(c.relacl) g) y) AS "Grants", c.relpersistence = 't' AS "Temporary",
    EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = c.oid AND p.proname = 'citus_truncate_trigger') AS "Distributed",
    EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 16 <> 0 AND t.tgenabled IN ('O', 'A')) AS "Triggers",
    EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgtype & 16 <> 0 AND t.tgenabled IN ('A', 'R')) AS "AlwaysTriggers",
    c.reltuples AS "Rows", c.relnatts AS "Attributes", c.relreplident AS "Identity", pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) AS "Owner"
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::text::oid) x
{{- end}}

{{/* The database and the role of the session. */}}
{{define "session" -}}
SELECT row_to_json(x)::text FROM (SELECT pg_catalog.quote_ident(current_database()) AS "Database", pg_catalog.quote_ident(current_user) AS "Role",
    pg_catalog.has_parameter_privilege('session_replication_role', 'SET') AS "ReplicaRole",
    (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user) AS "BypassRLS") x
{{- end}}

{{/* The indexes of tables. */}}
{{define "indexes" -}}
SELECT i.indexrelid::bigint AS "OID", i.indrelid::bigint AS "Table", pg_catalog.quote_ident(c.relname) AS "Name", c.relname AS "Plain", i.indisunique AS "Unique",
    i.indkey::smallint[] AS "Columns", (SELECT array_agg(coalesce('(' || pg_catalog.pg_get_expr(g.adbin, g.adrelid) || ')', pg_catalog.pg_get_indexdef(i.indexrelid, n, false)) ORDER BY n) FROM generate_series(1, i.indnkeyatts) n
    LEFT JOIN (pg_catalog.pg_attribute ga JOIN pg_catalog.pg_attrdef g ON g.adrelid = ga.attrelid AND g.adnum = ga.attnum) ON ga.attrelid = i.indrelid AND ga.attnum = i.indkey[n - 1] AND ga.attgenerated <> '') AS "Keys",
    (SELECT array_agg(pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum <= i.indnkeyatts) AS "Types",
    (SELECT bool_and(coalesce(ca.attgenerated = '' AND t.typnamespace = 'pg_catalog'::regnamespace, false)) FROM unnest(i.indkey::smallint[]) u(num)
    LEFT JOIN pg_catalog.pg_attribute ca ON ca.attrelid = i.indrelid AND ca.attnum = u.num LEFT JOIN pg_catalog.pg_type t ON t.oid = ca.atttypid) AS "Findable",
    i.indnullsnotdistinct AS "NullsEqual", coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), '') AS "Predicate", concat_ws(' ', pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)) AS "Expression",
    pg_catalog.pg_get_indexdef(i.indexrelid) AS "Definition", coalesce(pg_catalog.quote_ident(k.conname), '') AS "Constraint", coalesce(k.contype::text, '') AS "Type",
    coalesce(k.condeferrable, false) AS "Deferrable", i.indisclustered AS "Clustered", i.indisreplident AS "ReplIdent",
    i.indisvalid AS "Valid", h.amname AS "Method", (SELECT array_agg(o.opcdefault ORDER BY u.n) FROM unnest(i.indclass::oid[]) WITH ORDINALITY u(oid, n) JOIN pg_catalog.pg_opclass o ON o.oid = u.oid) AS "DefaultOps",
    (SELECT array_agg(coalesce(u.oid = a.attcollation, true) ORDER BY u.n) FROM unnest(i.indcollation::oid[], i.indkey::smallint[]) WITH ORDINALITY u(oid, num, n) LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.num AND u.oid <> 0 WHERE u.oid IS NOT NULL) AS "DefaultCollations",
    coalesce(pg_catalog.quote_ident(s.spcname), '') AS "Tablespace", coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') AS "Comment",
    coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "ConComment"
    FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am h ON h.oid = c.relam LEFT JOIN pg_catalog.pg_tablespace s ON s.oid = c.reltablespace
    LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
    WHERE i.indrelid = ANY ($1::text::oid[]) ORDER BY i.indrelid, c.relname
{{- end}}

{{/* The check constraints of tables. */}}
{{define "checks" -}}
SELECT k.conrelid::bigint AS "Table", pg_catalog.quote_ident(k.conname) AS "Name", coalesce(k.conkey, '{}') AS "Columns", pg_catalog.pg_get_constraintdef(k.oid) AS "Definition",
    pg_catalog.pg_get_expr(k.conbin, k.conrelid) AS "Expression", k.convalidated AS "Valid", coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "Comment"
    FROM pg_catalog.pg_constraint k WHERE k.contype = 'c' AND k.conrelid = ANY ($1::text::oid[]) ORDER BY k.conrelid, k.conname
{{- end}}

{{/* The extended statistics of tables. */}}
{{define "statistics" -}}
SELECT s.stxrelid::bigint AS "Table", pg_catalog.format('%I.%I', n.nspname, s.stxname) AS "Name", s.stxkeys::smallint[] AS "Columns",
    pg_catalog.pg_get_statisticsobjdef(s.oid) AS "Definition"
    FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace WHERE s.stxrelid = ANY ($1::text::oid[]) ORDER BY 3
{{- end}}

{{/* The columns of a table, whose name is the parameter of the template. */}}
{{define "columns" -}}
SELECT a.attnum AS "Num", a.attname AS "Name", pg_catalog.quote_ident(a.attname) AS "Quoted",
    pg_catalog.format_type(a.atttypid, a.atttypmod) AS "Type", coalesce(l.collnamespace::regnamespace || '.' || pg_catalog.quote_ident(l.collname), '') AS "Collation", NOT coalesce(l.collisdeterministic, true) AS "Equal", b.typname AS "Base", t.typtype = 'd' AS "Domain", pg_catalog.format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) AS "Stored", a.attnotnull AS "NotNull", a.attidentity AS "Identity", a.attgenerated AS "Generated",
    coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') AS "Default",
    (SELECT row_to_json(y) FROM (SELECT pg_catalog.quote_ident(k.conname) AS "Name", k.convalidated AS "Valid", k.connoinherit AS "NoInherit",
    coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '') AS "Comment"
    FROM pg_catalog.pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey[1] = a.attnum) y) AS "NotNullAs",
    pg_catalog.pg_get_serial_sequence({{literal .}}, a.attname) AS "Sequence",
    concat_ws(', ', 'ALTER ' || quote_ident(a.attname) || ' SET STATISTICS ' || CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END,
    'ALTER ' || quote_ident(a.attname) || ' SET (' || (SELECT string_agg(o, ', ') FROM unnest(a.attoptions) o WHERE o LIKE 'n_distinct%') || ')') AS "Settings", -- the server sets other options
    coalesce((SELECT format(' INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s CYCLE', q.seqincrement, q.seqmin, q.seqmax, q.seqstart, q.seqcache, CASE WHEN q.seqcycle THEN '' ELSE 'NO' END)
    FROM pg_catalog.pg_sequence q WHERE q.seqrelid = pg_catalog.pg_get_serial_sequence({{literal .}}, a.attname)::regclass), '') AS "SequenceOptions",
    (SELECT array_agg(format('GRANT %s ON SEQUENCE %s TO %s%s', g.privilege_type, s.oid::regclass, coalesce(nullif(g.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END))
    FROM pg_catalog.pg_class s, pg_catalog.aclexplode(s.relacl) g WHERE s.oid = pg_catalog.pg_get_serial_sequence({{literal .}}, a.attname)::regclass AND g.grantee <> s.relowner) AS "SequenceGrants",
    coalesce(pg_catalog.col_description(a.attrelid, a.attnum), '') AS "Comment",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT {{template "grant"}}, pg_catalog.quote_ident(a.attname) AS "Column" FROM pg_catalog.aclexplode(a.attacl) g) y) AS "Grants"
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN (WITH RECURSIVE d(oid, kind, base) AS (
    SELECT t.oid, t.typtype, t.typbasetype UNION ALL SELECT p.oid, p.typtype, p.typbasetype FROM d JOIN pg_catalog.pg_type p ON p.oid = d.base WHERE d.kind = 'd')
    SELECT d.oid FROM d WHERE d.kind <> 'd') ELSE t.oid END
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
    WHERE a.attrelid = $1::text::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
{{- end}}

{{/* The objects that depend on columns, each a table and a number. */}}
{{define "dependents of columns" -}}
SELECT DISTINCT {{template "dependent"}} FROM pg_catalog.pg_depend d
    WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid::text || ':' || d.refobjsubid = ANY ($1::text::text[]) ORDER BY 5
{{- end}}

{{/* The views of rules. Names of tables in the definition depend on the search_path. The server opens a view to print its
definition, so the views of untrusted roles have none here. */}}
{{define "views" -}}
WITH trusted AS MATERIALIZED ({{.}})
SELECT c.oid::bigint AS "OID", c.relkind AS "Kind", pg_catalog.format('%I.%I', n.nspname, c.relname) AS "Name", pg_catalog.quote_ident(c.relname) AS "Plain",
    CASE WHEN c.relkind = 'v' AND c.relowner IN (SELECT oid FROM trusted) THEN pg_catalog.pg_get_viewdef(c.oid) ELSE '' END AS "Definition", c.reloptions AS "Options", pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) AS "Owner",
    pg_catalog.pg_has_role(c.relowner, 'USAGE') AS "Owned",
    coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') AS "Comment", EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid) AS "Triggers",
    EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN') AS "Rules",
    EXISTS (SELECT FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_class = c.oid AND d.refclassid = 'pg_catalog.pg_constraint'::regclass) AS "Groups",
    (SELECT array_agg(DISTINCT e.refobjid::bigint) FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_rewrite'::regclass AND e.objid = r.oid
    WHERE r.ev_class = c.oid AND e.refclassid = 'pg_catalog.pg_class'::regclass AND e.refobjid <> c.oid) AS "Reads",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT pg_catalog.quote_ident(a.attname) AS "Column", pg_catalog.col_description(a.attrelid, a.attnum) AS "Text", CASE WHEN c.relowner IN (SELECT oid FROM trusted) THEN coalesce(pg_catalog.pg_get_expr(f.adbin, f.adrelid), '') ELSE '' END AS "Default"
    FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 ORDER BY a.attnum) y) AS "Columns",
    (SELECT json_agg(row_to_json(y)) FROM (SELECT {{template "grant"}}, '' AS "Column" FROM pg_catalog.aclexplode(c.relacl) g
    UNION ALL SELECT {{template "grant"}}, pg_catalog.quote_ident(a.attname)
    FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) g WHERE a.attrelid = c.oid) y) AS "Grants"
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid IN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE r.oid = ANY ($1::text::oid[]) AND r.rulename = '_RETURN') ORDER BY 2
{{- end}}

{{/* The objects that depend on views. */}}
{{define "dependents of views" -}}
SELECT DISTINCT {{template "dependent"}}, d.refclassid <> 'pg_catalog.pg_class'::regclass AS "ByType" FROM pg_catalog.pg_depend d
    WHERE (d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ANY ($1::text::oid[]) OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (
    SELECT pg_catalog.unnest(ARRAY[t.oid, t.typarray]) FROM pg_catalog.pg_type t WHERE t.typrelid = ANY ($1::text::oid[])))
    AND d.deptype = 'n' AND NOT (d.classid = 'pg_catalog.pg_rewrite'::regclass AND EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.oid = d.objid AND r.ev_class = d.refobjid)) ORDER BY 5
{{- end}}

{{/* The triggers of users on tables. */}}
{{define "triggers" -}}
SELECT t.tgrelid::bigint AS "Table", t.tgname AS "Name", t.tgfoid::bigint AS "Function", t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0 AND t.tgenabled IN ('O', 'A') AS "Before",
    coalesce(t.tgoldtable, '') AS "Old", coalesce(t.tgnewtable, '') AS "New"
    FROM pg_catalog.pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND NOT t.tgisinternal AND t.tgname !~ '{{ownTriggers}}' ORDER BY 1, 2
{{- end}}

{{/* The functions of users in a language that the server does not analyze. */}}
{{define "functions" -}}
SELECT p.oid::bigint AS "OID", p.oid::regprocedure::text AS "Name", p.proname AS "Plain", p.prosrc AS "Source",
    pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(p.proowner)) AS "Owner", pg_catalog.pg_has_role(p.proowner, 'USAGE') AS "Owned", p.prosecdef AS "Definer",
    EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE pg_catalog.starts_with(s, 'search_path=')) AS "Path",
    EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = p.prorettype AND t.typrelid = ANY ($1::text::oid[])) AS "Rows"
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) AND p.pronamespace::regnamespace::text <> ALL ($2::text::text[]) AND l.lanname NOT IN ('c', 'internal') AND p.prosqlbody IS NULL AND p.prokind <> 'a'
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 2
{{- end}}

{{/* The schemas in which only trusted roles can create objects. */}}
{{define "trusted schemas" -}}
WITH trusted AS MATERIALIZED ({{.}})
    SELECT json_agg(quote_ident(n.nspname) ORDER BY array_position($1::text::text[], quote_ident(n.nspname)))::text FROM pg_namespace n WHERE quote_ident(n.nspname) = ANY ($1::text::text[]) AND n.nspowner IN (SELECT oid FROM trusted)
    AND NOT EXISTS (SELECT FROM aclexplode(n.nspacl) a WHERE a.privilege_type = 'CREATE' AND a.grantee NOT IN (SELECT oid FROM trusted))
{{- end}}
